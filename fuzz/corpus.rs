//! The committed inputs of the fuzz targets, for tests that try them again: `corpus/TARGET` has those that were made by hand,
//! `corpus/TARGET/found` those that a campaign has found.

use std::fs;
use std::path::{Path, PathBuf};

/// The inputs of a target that were made by hand, by name.
pub fn made(target: &str) -> Vec<Vec<u8>> {
    let inputs = files(&folder(target));
    assert!(!inputs.is_empty(), "the corpus of {target} is empty");
    inputs
}

/// The inputs of a target that a campaign has found.
pub fn found(target: &str) -> Vec<Vec<u8>> {
    let inputs = files(&folder(target).join("found"));
    assert!(!inputs.is_empty(), "a campaign has found nothing for {target}");
    inputs
}

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

fn files(folder: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(folder).expect("a corpus").map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<PathBuf> = entries.filter(|path| path.is_file()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("a corpus file")).collect()
}
