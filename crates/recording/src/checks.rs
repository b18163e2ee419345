//! What a recording's files are, so that a reader sees when one of them has changed since.
//!
//! Parquet has a check of each page, which our readers neither write nor read, and none of what its footer says. A byte that a
//! disk has lost would be another number in a report. CRC-32 finds every change of up to 32 bits that lie together.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use mqttlab_recording::Result;
use serde::{Deserialize, Serialize};

use crate::disk;

/// A file as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Its length.
    pub bytes: u64,
    /// Its CRC-32 (IEEE 802.3).
    pub crc32: u32,
}

/// The checks of all tables in some directories, and of what is read with them.
pub(crate) fn of(directories: &[&Path]) -> Result<BTreeMap<String, Check>> {
    let mut checks = BTreeMap::new();
    for directory in directories {
        let entries = fs::read_dir(directory).map_err(|source| disk("read", directory, source))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.ends_with(".parquet") || READ_WITH_THEM.contains(&name) {
                let check = check(&path).map_err(|source| disk("read", &path, source))?;
                checks.insert(name.to_owned(), check);
            }
        }
    }
    Ok(checks)
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

const READ_WITH_THEM: [&str; 4] = ["plan.json", "layout.json", "run.json", "incomplete.json"];

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
        let found = of(&[&place]).unwrap();
        fs::remove_dir_all(&place).unwrap();
        let expected = Check { bytes: 9, crc32: 0xcbf4_3926 };
        assert_eq!(found["messages.parquet"], expected);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["messages.parquet", "plan.json"]);
    }
}
