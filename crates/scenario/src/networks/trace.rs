//! Traces of links: files with packet-delivery opportunities (Mahimahi) or with columns (CSV), and those of mqttlab.
//!
//! A file whose first line is a whole number is Mahimahi's: a line for each opportunity to carry 1,500 B, its time in ms.
//! Any other has a header: `time`, and one or more of `rate`, `delay`, `jitter` and `loss`, with the unit in the name
//! (`rate_mbit`) or in each value (`2 Mbit/s`).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use mqttlab_fields::{Node, Reader, Rule, Shape, closest, shown, words};
use mqttlab_net::{TraceCourse, TraceSpec, TraceValues};
use mqttlab_units::Duration;

use super::columns::{self, Column};
use crate::files;

const FILE_BYTES_MAX: u64 = 16_000_000;
const ROWS_MAX: usize = 1_000_000;
const OPPORTUNITY_BYTES: u32 = 1_500;
const RATE_MAX: u128 = 100_000_000_000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
const PPB: i128 = 1_000_000_000;

/// The name of a trace of mqttlab with its texts.
macro_rules! shipped {
    ($name:literal) => {
        (
            $name,
            [
                include_str!(concat!("../../../../python/mqttlab/networks/traces/", $name, "-down.csv")),
                include_str!(concat!("../../../../python/mqttlab/networks/traces/", $name, "-up.csv")),
            ],
        )
    };
}

/// The traces of mqttlab, down and up.
const SHIPPED: [(&str, [&str; 2]); 6] = [
    shipped!("lte-drive"),
    shipped!("nb-iot-coverage"),
    shipped!("rain-fade"),
    shipped!("starlink"),
    shipped!("train-tunnel"),
    shipped!("wifi-busy"),
];

/// A trace as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// As the scenario writes it.
    pub name: String,
    /// What the file has, shared by all links that follow it.
    pub course: Arc<Course>,
}

/// What a trace's file has.
#[derive(Debug, PartialEq, Eq)]
pub struct Course {
    /// Times of rows in ns, from 0 on; of opportunities in ms.
    at: Vec<u64>,
    /// Values in the plan's units; none of opportunities.
    columns: BTreeMap<Column, Vec<u64>>,
}

words! {
    /// What follows the last line of a trace.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum After {
        /// It begins again.
        Loop = "loop",
        /// Its last values stay.
        Hold = "hold",
    }
}

impl Course {
    /// Whether it is Mahimahi's.
    pub fn is_opportunities(&self) -> bool {
        self.columns.is_empty()
    }

    /// Until it begins again: the last row lasts as long as the one before it.
    pub fn length(&self) -> Duration {
        let last = self.at[self.at.len() - 1];
        Duration::from_ns(match self.at.len() {
            _ if self.is_opportunities() => last * MS,
            1 => S,
            rows => 2 * last - self.at[rows - 2],
        })
    }

    /// The fields of a link that it has values of, as a scenario calls them.
    pub fn sets(&self) -> Vec<Column> {
        if self.is_opportunities() { vec![Column::Rate] } else { self.columns.keys().copied().collect() }
    }

    /// The mean over its time of a column, in the plan's unit.
    pub fn mean(&self, column: Column) -> u64 {
        let length = u128::from(self.length().as_ns());
        let Some(values) = self.columns.get(&column) else {
            let bits = self.at.len() as u128 * u128::from(OPPORTUNITY_BYTES) * 8 * u128::from(S);
            return rounded(bits, length).max(1) as u64;
        };
        let until = self.at[1..].iter().copied().chain([self.length().as_ns()]);
        let lengths = self.at.iter().zip(until).map(|(at, until)| u128::from(until - at));
        let total: u128 = values.iter().zip(lengths).map(|(value, length)| u128::from(*value) * length).sum();
        let mean = rounded(total, length) as u64;
        if column == Column::Rate { mean.max(1) } else { mean }
    }

    /// A field of a link that follows it, with its mean, as a scenario writes it.
    pub fn written(&self, column: Column) -> Node {
        let unit = match column {
            Column::Rate => " bit/s".into(),
            Column::Loss => format!("/{PPB}"),
            Column::Delay | Column::Jitter | Column::Time => " ns".to_string(),
        };
        Node::text(format!("{}{unit}", self.mean(column)))
    }
}

impl Trace {
    /// As the plan has it; place 0 is so long after publishing begins.
    pub fn planned(&self, links: Vec<String>, before: Duration, after: After) -> TraceSpec {
        let course = &self.course;
        let length = course.length().as_ns();
        let begins_at = match after {
            After::Loop => (length - before.as_ns() % length) % length,
            After::Hold => 0,
        };
        let later = |at: u64| if at > 0 && after == After::Hold { at + before.as_ns() } else { at };
        let column = |column| course.columns.get(&column).cloned();
        let times =
            |which| column(which).map(|values: Vec<u64>| values.into_iter().map(Duration::from_ns).collect());
        TraceSpec {
            name: self.name.clone(),
            links,
            begins_at: Duration::from_ns(begins_at),
            period: (after == After::Loop).then(|| Duration::from_ns(length)),
            course: if course.is_opportunities() {
                let at_ms = course.at.iter().map(|at| *at as u32).collect();
                TraceCourse::Opportunities { at_ms, bytes: OPPORTUNITY_BYTES }
            } else {
                TraceCourse::Values(TraceValues {
                    at: course.at.iter().map(|at| Duration::from_ns(later(*at))).collect(),
                    rate_bit_s: column(Column::Rate),
                    delay: times(Column::Delay),
                    jitter: times(Column::Jitter),
                    loss_ppb: column(Column::Loss)
                        .map(|values| values.iter().map(|value| *value as u32).collect()),
                })
            },
        }
    }
}

/// Halves to even, as all quantities are rounded.
fn rounded(above: u128, below: u128) -> u128 {
    let (whole, rest) = (above / below, above % below);
    let up = 2 * rest > below || (2 * rest == below && whole % 2 == 1);
    whole + u128::from(up)
}

/// The rule of a field that names a trace: one of mqttlab, or a file beside the scenario's.
#[derive(Debug)]
pub struct TraceFile;

impl Rule for TraceFile {
    type Target = Trace;

    fn read(node: &Node, reader: &mut Reader) -> Option<Trace> {
        let directory = reader.directory().map(Path::to_owned);
        read_trace(node, directory.as_deref()).map_or_else(|what| reader.wrong(what), Some)
    }

    fn shape() -> Shape {
        Shape::Text(Some("drive.csv"))
    }
}

/// The names of the traces that mqttlab has.
pub fn shipped() -> impl Iterator<Item = &'static str> + Clone {
    SHIPPED.iter().map(|(name, _)| *name)
}

/// Whether it is the name of a trace of mqttlab, with or without a direction.
pub fn is_shipped(name: &str) -> bool {
    of_mqttlab(name).is_some()
}

/// The text of a trace of mqttlab.
fn of_mqttlab(value: &str) -> Option<&'static str> {
    let (name, way) = value.split_once('/').unwrap_or((value, "down"));
    let (_, [down, up]) = SHIPPED.iter().find(|(known, _)| *known == name)?;
    match way {
        "down" => Some(down),
        "up" => Some(up),
        _ => None,
    }
}

/// A trace by the name of one that mqttlab has, or from a file in a directory.
///
/// # Errors
/// It cannot be read; in words that follow the field's name.
pub fn read_trace(node: &Node, directory: Option<&Path>) -> Result<Trace, String> {
    let known = || shipped().collect::<Vec<_>>().join(", ");
    let given = shown(node);
    let Some(value) = node.as_text().filter(|value| !value.is_empty()) else {
        return Err(format!("is {given}, but must be the path of a file, or one of {}", known()));
    };
    let course = match of_mqttlab(value) {
        Some(text) => course_of(text),
        None => {
            let path = files::beside(Path::new(value), directory);
            if !path.exists() && !value.contains('\0') {
                return Err(missing(value, &given, &path));
            }
            if path.is_dir() {
                let right = format!("write the path of a file, or a trace of mqttlab: {}", known());
                return Err(format!("is {given}, which is a directory; {right}"));
            }
            let text = files::read_text(&path, FILE_BYTES_MAX, "a trace");
            let text = text.map_err(|what| {
                format!("is {given}, which {what}; use a CSV file or a packet-delivery trace")
            })?;
            course_of(&text)
        }
    };
    let course = course.map_err(|what| format!("is {given}, where {what}"))?;
    Ok(Trace { name: value.into(), course: Arc::new(course) })
}

fn missing(value: &str, given: &str, path: &Path) -> String {
    if value.contains(['.', '/', '\\']) {
        let near =
            files::nearest_path(path).map(|near| format!("; did you mean {}?", shown(&Node::text(near))));
        let near = near.unwrap_or_else(|| "; a path is relative to the scenario's file".into());
        return format!("is {given}, but there is no file {}{near}", path.display());
    }
    let hint = match closest(&value.to_lowercase(), shipped(), 0.4) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("known: {}", shipped().collect::<Vec<_>>().join(", ")),
    };
    format!("is {given}, which is neither a trace of mqttlab nor a file {}; {hint}", path.display())
}

/// What a file's text has.
fn course_of(text: &str) -> Result<Course, String> {
    let lines: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .map(|(number, line)| (number + 1, line))
        .filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
        .collect();
    let Some((_, first)) = lines.first() else {
        return Err("there is no line; write a header such as time_s,rate_mbit and rows below it".into());
    };
    if lines.len() > ROWS_MAX + 1 {
        let (found, most) =
            (columns::with_commas(lines.len() as u128), columns::with_commas(ROWS_MAX as u128));
        return Err(format!("there are {found} lines, but {most} are read at most; use a part of it"));
    }
    let number = first.trim().trim_start_matches(['-', '+']);
    if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Ok(Course { at: opportunities(&lines)?, columns: BTreeMap::new() });
    }
    let (at, columns) = columns::table(&lines)?;
    Ok(Course { at, columns })
}

fn opportunities(lines: &[(usize, &str)]) -> Result<Vec<u64>, String> {
    let mut found: Vec<u64> = Vec::with_capacity(lines.len());
    for (number, line) in lines {
        let word = line.trim();
        let is_whole = (1..=9).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit());
        let Some(at) = word.parse().ok().filter(|_| is_whole) else {
            let nearest = word.parse::<f64>().ok().filter(|value| value.is_finite());
            let right = nearest.map_or_else(
                || ", such as 12".into(),
                |value| format!("; the nearest is {:.0}", value.round_ties_even().max(0.0)),
            );
            let given = shown(&Node::text(word));
            return Err(format!("line {number} is {given}, but must be a time in whole ms{right}"));
        };
        if let Some(before) = found.last().filter(|before| at < **before) {
            let right = format!("write {before} or more");
            return Err(format!(
                "line {number} is {word}, which is before the time in the line above; {right}"
            ));
        }
        found.push(at);
    }
    let last = found.last().copied().unwrap_or(0);
    if last == 0 {
        let number = lines.last().map_or(1, |(number, _)| *number);
        return Err(format!(
            "line {number} is 0, so that the trace takes no time; the last one must be 1 or more"
        ));
    }
    let rate = found.len() as u128 * u128::from(OPPORTUNITY_BYTES) * 8 * 1000 / u128::from(last);
    if rate > RATE_MAX {
        let (count, rate) =
            (columns::with_commas(found.len() as u128), columns::with_commas(rate / 1_000_000_000));
        return Err(format!(
            "{count} lines end at {last} ms, which is {rate} Gbit/s on the mean, but must be 100 Gbit/s or less; a line \
             stands for {} B",
            columns::with_commas(OPPORTUNITY_BYTES.into())
        ));
    }
    Ok(found)
}
