//! A private directory that is gone when the run is over.
//!
//! It is locked while its owner lives; one whose engine was killed is unlocked, and is removed by the next run.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A directory that only its owner may enter, removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    _lock: fs::File,
}

impl Scratch {
    /// Makes one for `purpose`, and removes those of engines that are no more.
    ///
    /// # Errors
    /// What the file system said.
    pub fn new(purpose: &str) -> io::Result<Scratch> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let parent = std::env::temp_dir();
        remove_abandoned(&parent);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{PREFIX}{}-{purpose}-{number}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let lock = fs::File::open(&path)?;
        lock.lock()?;
        Ok(Scratch { path, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file into it.
    ///
    /// # Errors
    /// `name` is not a plain file name, or what the file system said.
    pub fn write(&self, name: &str, text: &str) -> io::Result<()> {
        if Path::new(name).file_name() != Some(name.as_ref()) {
            let problem = format!("`{name}` is not a plain file name");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        fs::write(self.path.join(name), text)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing can be done about a failure at this point, and the next run tries again.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) && is_abandoned(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A young directory may belong to an engine that has not locked it yet.
fn is_abandoned(path: &Path) -> bool {
    let Ok(directory) = fs::File::open(path) else { return false };
    let age = directory.metadata().and_then(|data| data.modified()).ok().and_then(|made| made.elapsed().ok());
    age.is_some_and(|age| age > Duration::from_secs(60)) && directory.try_lock().is_ok()
}

const PREFIX: &str = "mqttlab-engine-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_directory_is_private_and_goes_with_its_owner() {
        let scratch = Scratch::new("test").unwrap();
        scratch.write("a.conf", "x").unwrap();
        assert!(scratch.write("../a.conf", "x").is_err());
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists());
    }
}
