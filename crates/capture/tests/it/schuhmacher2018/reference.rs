//! Reads the reference tables and the files they are about, and collects what agrees and what does not.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The directory with the study's data.
pub struct Data {
    root: PathBuf,
}

impl Data {
    /// `None` when it is not on this machine.
    pub fn find() -> Option<Data> {
        let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
        let shared = std::env::var_os("MQTTLAB_SHARED").map_or(beside, PathBuf::from);
        let root = shared.join("data/schuhmacher2018");
        root.is_dir().then_some(Data { root })
    }

    /// The rows of a table, by column name.
    pub fn table(&self, name: &str) -> Vec<BTreeMap<String, String>> {
        let text = fs::read_to_string(self.root.join(name)).expect("the reference table is readable");
        let mut lines = text.lines().map(fields);
        let header = lines.next().expect("the reference table has a header");
        lines.map(|line| header.iter().cloned().zip(line).collect()).collect()
    }

    /// The logs of a folder, by file name without compression suffix.
    pub fn files(&self, folder: &str) -> Vec<String> {
        let entries =
            fs::read_dir(self.root.join("logs").join(folder)).expect("the folder of logs is readable");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("a directory entry").file_name().to_string_lossy().into_owned())
            .map(|name| name.trim_end_matches(".zst").to_owned())
            .collect();
        names.sort();
        names
    }

    /// A file under the name it has in the study's repository, decompressed; `archive!entry` is in an archive.
    pub fn open(&self, name: &str) -> Box<dyn Read> {
        if let Some((archive, entry)) = name.split_once('!') {
            return Box::new(std::io::Cursor::new(self.unpack(archive, entry)));
        }
        let path = self.root.join(name);
        let compressed = self.root.join(format!("{name}.zst"));
        if compressed.exists() {
            let file = File::open(compressed).expect("the compressed file is readable");
            return Box::new(zstd::Decoder::new(file).expect("a zstd stream"));
        }
        Box::new(File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    }
}

impl Data {
    fn unpack(&self, archive: &str, name: &str) -> Vec<u8> {
        let archive = File::open(self.root.join(archive)).expect("the archive is readable");
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive));
        for entry in archive.entries().expect("the archive has entries") {
            let mut entry = entry.expect("an entry of the archive");
            if entry.path().expect("the entry's path").ends_with(name) {
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes).expect("the entry's bytes");
                return bytes;
            }
        }
        panic!("the archive holds no {name}");
    }
}

/// Splits a line of comma-separated values, in which quoted fields may contain commas.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            _ => field.push(character),
        }
    }
    fields.push(field);
    fields
}

/// What the comparison of a table found.
#[derive(Default)]
pub struct Verdicts {
    equal: usize,
    explained: Vec<(String, &'static str)>,
    wrong: Vec<String>,
}

impl Verdicts {
    /// Compares two numbers to the digits that the reference has.
    pub fn number(&mut self, what: &str, ours: Option<f64>, expected: &str) {
        let close = match (ours, expected.parse::<f64>()) {
            (Some(ours), Ok(reference)) => same(ours, reference, expected),
            (None, Err(_)) => expected.is_empty(),
            (None, Ok(_)) | (Some(_), Err(_)) => false,
        };
        let ours = ours.map_or("none".to_owned(), |ours| ours.to_string());
        self.judge(what, close, &ours, expected);
    }

    /// Compares two numbers that may differ by `tolerance`.
    pub fn number_within(&mut self, what: &str, ours: Option<f64>, expected: &str, tolerance: f64) {
        let close = match (ours, expected.parse::<f64>()) {
            (Some(ours), Ok(reference)) => (ours - reference).abs() <= tolerance,
            (None, Err(_)) => expected.is_empty(),
            _ => false,
        };
        self.judge(what, close, &ours.map_or("none".to_owned(), |ours| ours.to_string()), expected);
    }

    /// Compares two texts.
    pub fn text(&mut self, what: &str, ours: &str, expected: &str) {
        self.judge(what, ours == expected, ours, expected);
    }

    fn judge(&mut self, what: &str, equal: bool, ours: &str, expected: &str) {
        if equal {
            self.equal += 1;
        } else {
            self.wrong.push(format!("{what}: {ours}, reference {expected}"));
        }
    }

    /// A difference with a reason.
    pub fn explain(&mut self, what: String, reason: &'static str) {
        self.explained.push((what, reason));
    }

    /// Whether the last comparison failed; takes that failure back.
    pub fn retract(&mut self, before: usize) -> Option<String> {
        if self.wrong.len() > before { self.wrong.pop() } else { None }
    }

    /// How many differences without a reason there are so far.
    pub fn wrong(&self) -> usize {
        self.wrong.len()
    }

    /// Prints everything and fails when a difference has no reason.
    pub fn report(self) {
        for (what, reason) in &self.explained {
            println!("{what}\n    because {reason}");
        }
        for what in &self.wrong {
            println!("DIFFERS {what}");
        }
        let (equal, explained, wrong) = (self.equal, self.explained.len(), self.wrong.len());
        println!("{equal} rows equal, {explained} different for a reason, {wrong} different without");
        assert!(equal > 0, "nothing was compared");
        assert_eq!(wrong, 0, "differences without a reason; see above");
    }
}

/// Equal to half a unit of the last digit that the reference prints, or of the precision of the reference's own
/// floating-point sums.
fn same(ours: f64, reference: f64, printed: &str) -> bool {
    let mantissa = printed.split(['e', 'E']).next().unwrap_or(printed);
    let exponent: i32 = printed.split(['e', 'E']).nth(1).map_or(0, |digits| digits.parse().unwrap_or(0));
    let decimals = mantissa.split('.').nth(1).map_or(0, str::len) as i32;
    let step = 10_f64.powi(exponent - decimals);
    (ours - reference).abs() <= (0.51 * step).max(reference.abs() * 1e-12)
}
