//! The table of a trace: its header and its rows.

use std::collections::BTreeMap;

use mqttlab_fields::{Bound, Field, Kind, Node, Reader, Rule, closest, did_you_mean, shown};
use mqttlab_units::Ratio;

const MS: f64 = 1e6;
const S: f64 = 1e9;
const PPB: u64 = 1_000_000_000;
const DAYS_366_NS: i128 = 366 * 86_400 * 1_000_000_000;
/// A line without separators is one name.
const LONGEST_NAME: usize = 40;

/// What a column has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    /// From when on a row holds.
    Time,
    /// Data rate.
    Rate,
    /// Mean delay.
    Delay,
    /// Jitter.
    Jitter,
    /// Probability of loss.
    Loss,
}

const COLUMNS: [Column; 5] = [Column::Time, Column::Rate, Column::Delay, Column::Jitter, Column::Loss];
/// Units of columns, each with its number of least units.
const TIMES: &[(&str, f64)] = &[("ns", 1.0), ("us", 1e3), ("ms", MS), ("s", S), ("min", 60.0 * S)];
const RATES: &[(&str, f64)] = &[("bit", 1.0), ("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9)];
const LOSSES: &[(&str, f64)] = &[("percent", 1e7), ("ratio", 1e9), ("ppm", 1e3)];
/// What other tools call a column.
const ALSO_CALLED: &[(Column, &[&str])] = &[
    (Column::Time, &["timestamp", "t"]),
    (Column::Delay, &["latency", "owd"]),
    (Column::Rate, &["bandwidth", "throughput", "capacity"]),
    (Column::Loss, &["packet", "plr"]),
];
/// How other tools write a unit.
const SPELLED: &[(&str, &[&str])] = &[
    ("mbit", &["mbps", "mbits"]),
    ("kbit", &["kbps", "kbits"]),
    ("gbit", &["gbps"]),
    ("bit", &["bps", "bits"]),
    ("s", &["sec", "seconds"]),
    ("ms", &["msec"]),
    ("percent", &["pct", "%"]),
];

impl Column {
    /// As a header has it.
    pub fn name(self) -> &'static str {
        match self {
            Column::Time => "time",
            Column::Rate => "rate",
            Column::Delay => "delay",
            Column::Jitter => "jitter",
            Column::Loss => "loss",
        }
    }

    fn units(self) -> &'static [(&'static str, f64)] {
        match self {
            Column::Time | Column::Delay | Column::Jitter => TIMES,
            Column::Rate => RATES,
            Column::Loss => LOSSES,
        }
    }

    fn example(self) -> &'static str {
        match self {
            Column::Time => "time_s",
            Column::Rate => "rate_mbit",
            Column::Delay => "delay_ms",
            Column::Jitter => "jitter_ms",
            Column::Loss => "loss_percent",
        }
    }

    fn most(self) -> (i128, &'static str) {
        match self {
            Column::Time => (DAYS_366_NS, "366 days"),
            Column::Rate => (100_000_000_000, "100 Gbit/s"),
            Column::Delay | Column::Jitter => (3_600_000_000_000, "1 h"),
            Column::Loss => (PPB.into(), "100 %"),
        }
    }
}

/// A column of the header: as written, what it has, and its unit where the header says one.
type Heading = (String, Column, Option<f64>);

/// Times from the first row on, and the values of the other columns, in least units.
type Rows = (Vec<u64>, BTreeMap<Column, Vec<u64>>);

/// The rows of a table, by the numbers of its lines.
///
/// # Errors
/// What is wrong, with the line.
pub fn table(lines: &[(usize, &str)]) -> Result<Rows, String> {
    let Some(((number, header), rows)) = lines.split_first() else { return Err("there is no line".into()) };
    let headings = headings(*number, header)?;
    let mut found: Vec<Vec<i128>> = vec![Vec::with_capacity(rows.len()); headings.len()];
    for (number, line) in rows {
        let cells = cells(*number, line)?;
        if cells.len() != headings.len() {
            let (values, columns) = (cells.len(), headings.len());
            return Err(format!("line {number} has {values} values, but the header has {columns} columns"));
        }
        for ((cell, heading), values) in cells.iter().zip(&headings).zip(&mut found) {
            let (written, column, _) = heading;
            let at = format!("line {number}, column `{written}`");
            let value = value(heading, cell.trim()).map_err(|what| format!("{at} {what}"))?;
            if *column == Column::Time {
                time_follows(value, values, cell.trim()).map_err(|what| format!("{at} {what}"))?;
            }
            values.push(value);
        }
    }
    let last = lines.last().map_or(*number, |(number, _)| *number);
    by_column(*number, last, &headings, found)
}

fn time_follows(value: i128, before: &[i128], cell: &str) -> Result<(), String> {
    let given = shown(&Node::text(cell));
    let (most, words) = Column::Time.most();
    if before.last().is_some_and(|last| value <= *last) {
        let right = "put the rows in the order of time, one for each time";
        return Err(format!("is {given}, which is not after the time in the line above; {right}"));
    }
    if before.first().is_some_and(|first| value - first > most) {
        return Err(format!("is {given}, but must be at most {words} after the first row"));
    }
    Ok(())
}

fn by_column(
    header: usize,
    last: usize,
    headings: &[Heading],
    found: Vec<Vec<i128>>,
) -> Result<Rows, String> {
    let mut columns: BTreeMap<Column, Vec<i128>> =
        headings.iter().map(|(_, column, _)| *column).zip(found).collect();
    let times = columns.remove(&Column::Time).unwrap_or_default();
    let [first, .., end] = times[..] else {
        if times.is_empty() {
            return Err(format!("line {header} has a header, and no row follows it; add one"));
        }
        return Ok((vec![0], plain(columns)?));
    };
    // The last row lasts as long as the one before it.
    let (most, words) = Column::Time.most();
    if 2 * end - times[times.len() - 2] - first > most {
        return Err(format!(
            "line {last}, the last row, lasts as long as the one before it, so that the trace takes more than {words}; \
             use a part of it"
        ));
    }
    let at = times.iter().map(|at| (at - first) as u64).collect();
    Ok((at, plain(columns)?))
}

fn plain(columns: BTreeMap<Column, Vec<i128>>) -> Result<BTreeMap<Column, Vec<u64>>, String> {
    if columns.get(&Column::Rate).is_some_and(|rates| rates.iter().all(|rate| *rate == 0)) {
        return Err("the rate is 0 in every row; write a rate above 0 in one of them".into());
    }
    Ok(columns
        .into_iter()
        .map(|(column, values)| (column, values.into_iter().map(|value| value as u64).collect()))
        .collect())
}

/// The cells of a line.
fn cells(number: usize, line: &str) -> Result<Vec<String>, String> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_bytes());
    match reader.records().next() {
        Some(Ok(record)) => Ok(record.iter().map(str::to_owned).collect()),
        Some(Err(error)) => Err(format!("line {number} is not a line of a table: {error}")),
        None => Ok(Vec::new()),
    }
}

fn headings(number: usize, header: &str) -> Result<Vec<Heading>, String> {
    if let Some(mark) = [';', '\t'].into_iter().find(|mark| header.contains(*mark)) {
        let mark = if mark == ';' { "\";\"" } else { "a tab" };
        return Err(format!("line {number} separates columns with {mark}; use commas"));
    }
    let written: Vec<String> = cells(number, header)?.iter().map(|name| name.trim().to_owned()).collect();
    if !written.iter().any(|name| name.starts_with(|first: char| first.is_ascii_alphabetic())) {
        let given = shown(&Node::text(header));
        let right = "write one such as time_s,rate_mbit above it";
        return Err(format!("line {number} is {given}, which is no header; {right}"));
    }
    let mut found: Vec<Heading> = Vec::new();
    for name in written {
        let (column, unit) = heading(number, &name)?;
        if found.iter().any(|(_, known, _)| *known == column) {
            return Err(format!("line {number} has two columns of `{}`; keep one", column.name()));
        }
        found.push((name, column, unit));
    }
    if !found.iter().any(|(_, column, _)| *column == Column::Time) {
        return Err(format!("line {number} has no column of times; add `time_s`"));
    }
    if found.len() == 1 {
        return Err(format!("line {number} has times alone; add a column such as `rate_mbit` or `delay_ms`"));
    }
    Ok(found)
}

fn heading(number: usize, written: &str) -> Result<(Column, Option<f64>), String> {
    let lower = written.to_lowercase().replace('-', "_");
    let (name, unit) = lower.split_once('_').unwrap_or((&lower, ""));
    let shown_name = if written.chars().count() < LONGEST_NAME {
        format!("`{written}`")
    } else {
        shown(&Node::text(written))
    };
    let Some(column) = COLUMNS.into_iter().find(|column| column.name() == name) else {
        let also = ALSO_CALLED.iter().find(|(_, names)| names.contains(&name)).map(|(column, _)| *column);
        let near = || closest(name, COLUMNS.iter().map(|column| column.name()), 0.6);
        let near =
            also.or_else(|| near().and_then(|near| COLUMNS.into_iter().find(|column| column.name() == near)));
        let hint = match near {
            Some(column) => format!("did you mean `{}`?", column.example()),
            None => format!("known: {}", COLUMNS.map(Column::example).join(", ")),
        };
        return Err(format!("line {number}, column {shown_name} is unknown; {hint}"));
    };
    let unit = if column == Column::Rate {
        let unit = unit.strip_suffix("_s").unwrap_or(unit);
        unit.strip_suffix("/s").unwrap_or(unit)
    } else {
        unit
    };
    let unit = SPELLED.iter().find(|(_, others)| others.contains(&unit)).map_or(unit, |(right, _)| *right);
    if unit.is_empty() {
        return Ok((column, None));
    }
    match column.units().iter().find(|(known, _)| *known == unit) {
        Some((_, factor)) => Ok((column, Some(*factor))),
        None => {
            let known: Vec<_> = column.units().iter().map(|(unit, _)| format!("{name}_{unit}")).collect();
            let hint = did_you_mean(&format!("{name}_{unit}"), known.iter().map(String::as_str), 0.8);
            Err(format!("line {number}, column {shown_name} has an unknown unit; {hint}"))
        }
    }
}

/// A value in least units.
fn value((_, column, unit): &Heading, cell: &str) -> Result<i128, String> {
    if cell.is_empty() {
        return Err("is empty; write the value of the line above again".into());
    }
    match unit {
        Some(unit) => number(*column, cell, *unit),
        None => quantity(*column, cell),
    }
}

fn number(column: Column, cell: &str, unit: f64) -> Result<i128, String> {
    let given = shown(&Node::text(cell));
    let bare = cell.trim_start_matches(['+', '-']).to_lowercase();
    let is_word = ["inf", "infinity", "nan"].contains(&bare.as_str());
    let Some(value) = cell.parse::<f64>().ok().filter(|_| is_numeral(cell) || is_word) else {
        return Err(format!("is {given}, which is not a number; the header has the unit"));
    };
    if !(value * unit).is_finite() {
        return Err(format!("is {given}, but must be a finite number"));
    }
    if value < 0.0 && column != Column::Time {
        return Err(format!("is {given}, but must be 0 or more"));
    }
    within(column, cell, (value * unit).round_ties_even() as i128)
}

/// Digits with a point among them, and an exponent; the digits of other scripts are none.
fn is_numeral(cell: &str) -> bool {
    let bare = cell.strip_prefix(['+', '-']).unwrap_or(cell);
    let (mantissa, exponent) = match bare.find(['e', 'E']) {
        Some(at) => (&bare[..at], Some(bare[at + 1..].strip_prefix(['+', '-']).unwrap_or(&bare[at + 1..]))),
        None => (bare, None),
    };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_mantissa = is_digits(whole) && is_digits(fraction) && !(whole.is_empty() && fraction.is_empty());
    is_mantissa && exponent.is_none_or(|digits| !digits.is_empty() && is_digits(digits))
}

fn quantity(column: Column, cell: &str) -> Result<i128, String> {
    let node = Node::text(cell);
    if cell.contains('_') {
        let right = "write it without underscores";
        return Err(format!("is {}, which is not a number with a unit; {right}", shown(&node)));
    }
    const RATE: Kind = Kind { least: Bound(0, "0 bit/s"), ..mqttlab_fields::RATE };
    let kind = match column {
        Column::Time => &mqttlab_fields::DURATION,
        Column::Rate => &RATE,
        Column::Delay | Column::Jitter => &mqttlab_fields::DELAY,
        Column::Loss => {
            let mut reader = Reader::default();
            let read = <Ratio as Field>::Rule::read(&node, &mut reader);
            let problems = reader.into_problems();
            let wrong = || problems.into_iter().next().map_or_else(String::new, |problem| problem.what);
            return read.ok_or_else(wrong).map(parts_per_billion);
        }
    };
    within(column, cell, kind.read(&node)?)
}

fn parts_per_billion(ratio: Ratio) -> i128 {
    let (above, below): (u64, u64) = ratio.into();
    // As Python's floats have it, in which both are exact.
    (PPB as f64 * above as f64 / below as f64).round_ties_even() as i128
}

fn within(column: Column, cell: &str, value: i128) -> Result<i128, String> {
    let (most, words) = column.most();
    // Times may count from long ago, as those of a clock do.
    if value > most && column != Column::Time {
        return Err(format!("is {}, but must be {words} or less", shown(&Node::text(cell))));
    }
    Ok(value)
}

/// A whole number with a comma before each three digits.
pub fn with_commas(number: u128) -> String {
    mqttlab_fields::with_commas(&number.to_string())
}
