//! What a recording's files are, so that a reader sees when one of them has changed since.
//!
//! Parquet has a check of each page, which our readers neither write nor read, and none of what its footer says. A byte that a
//! disk has lost would be another number in a report. CRC-32 finds every change of up to 32 bits that lie together. `run.json`
//! has the checks of what the run itself has left: whoever loses `summary.json` loses only those of tables that can be made again.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::claim::BY_HAND;
use crate::error::{ErrorContext, Result};

/// A file as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Its length.
    pub bytes: u64,
    /// Its CRC-32 (IEEE 802.3).
    pub crc32: u32,
}

/// Checks by the file's name.
pub type Checks = BTreeMap<String, Check>;

/// Adds the checks of all tables in a directory, and of what is read with them, but for those that are known.
///
/// # Errors
/// A file cannot be read.
pub fn add(checks: &mut Checks, directory: &Path) -> Result<()> {
    let entries = fs::read_dir(directory).on("read", directory)?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_read = name.ends_with(".parquet") || READ_WITH_THEM.contains(&name);
        if is_read && !checks.contains_key(name) {
            checks.insert(name.to_owned(), check(&path).on("read", &path)?);
        }
    }
    Ok(())
}

/// The checks that a run has left of its own files; none where it has left none, as earlier ones.
pub fn left(directory: &Path) -> Checks {
    #[derive(Deserialize)]
    struct Told {
        checks: Checks,
    }
    let told = ENDED.iter().find_map(|name| fs::read(directory.join(name)).ok());
    told.and_then(|text| serde_json::from_slice::<Told>(&text).ok())
        .map_or_else(Checks::new, |told| told.checks)
}

fn check(path: &Path) -> std::io::Result<Check> {
    let (mut file, mut sum, mut bytes) = (File::open(path)?, crc32fast::Hasher::new(), 0);
    let mut part = vec![0; 1 << 16];
    loop {
        let length = file.read(&mut part)?;
        if length == 0 {
            return Ok(Check { bytes, crc32: sum.finalize() });
        }
        sum.update(&part[..length]);
        bytes += length as u64;
    }
}

/// What a run leaves last.
pub(crate) const ENDED: [&str; 2] = ["run.json", "incomplete.json"];
const READ_WITH_THEM: [&str; 5] = ["plan.json", "layout.json", ENDED[0], ENDED[1], BY_HAND];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_the_check_that_others_compute() {
        let place = std::env::temp_dir().join(format!("mqttlab-checks-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("messages.parquet"), "123456789").unwrap();
        fs::write(place.join("plan.json"), "{}").unwrap();
        // The check value of CRC-32/ISO-HDLC.
        let mut found = Checks::new();
        add(&mut found, &place).unwrap();
        fs::remove_dir_all(&place).unwrap();
        let expected = Check { bytes: 9, crc32: 0xcbf4_3926 };
        assert_eq!(found["messages.parquet"], expected);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["messages.parquet", "plan.json"]);
    }
}
