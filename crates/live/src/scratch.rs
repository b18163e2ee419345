//! A private directory that is gone when the run is over.
//!
//! It is locked while its owner lives; one whose engine was killed is unlocked, and is removed by the next run. It gets its
//! name only when it is locked, so that one with the name and without a lock belongs to nobody.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};
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
        let name = format!("{}-{purpose}-{number}", std::process::id());
        let (unlocked, path) = (parent.join(format!("{NEW}{name}")), parent.join(format!("{PREFIX}{name}")));
        fs::DirBuilder::new().mode(0o700).create(&unlocked)?;
        let lock = fs::File::open(&unlocked)?;
        lock.lock()?;
        fs::rename(&unlocked, &path)?;
        Ok(Scratch { path, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file into it, and makes the directories on the way.
    ///
    /// # Errors
    /// `path` leads out of it, or what the file system said.
    pub fn write(&self, path: &str, text: &str) -> io::Result<()> {
        if !Path::new(path).components().all(|part| matches!(part, Component::Normal(_))) {
            let problem = format!("`{path}` is not a path below the server's directory");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let path = self.path.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, text)
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
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // One without a lock yet may be just about to get it.
        let patience = if name.starts_with(NEW) { Duration::from_secs(60) } else { Duration::ZERO };
        if (name.starts_with(PREFIX) || name.starts_with(NEW)) && is_abandoned(&entry.path(), patience) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_abandoned(path: &Path, patience: Duration) -> bool {
    let Ok(directory) = fs::File::open(path) else { return false };
    let age = directory.metadata().and_then(|data| data.modified()).ok().and_then(|made| made.elapsed().ok());
    let old = patience.is_zero() || age.is_some_and(|age| age > patience);
    old && directory.try_lock().is_ok()
}

const PREFIX: &str = "mqttlab-engine-";
const NEW: &str = "mqttlab-new-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_directory_is_private_and_goes_with_its_owner() {
        let scratch = Scratch::new("test").unwrap();
        scratch.write("a.conf", "x").unwrap();
        assert!(scratch.write("../a.conf", "x").is_err() && scratch.write("/a.conf", "x").is_err());
        scratch.write("etc/broker/a.conf", "y").unwrap();
        assert_eq!(fs::read_to_string(scratch.path().join("etc/broker/a.conf")).unwrap(), "y");
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn the_directory_of_an_engine_that_was_killed_goes_at_the_next_start() {
        let parent = std::env::temp_dir();
        let left = parent.join(format!("{PREFIX}{}-killed", std::process::id()));
        fs::create_dir(&left).unwrap();
        fs::write(left.join("mosquitto.conf"), "x").unwrap();
        let alive = Scratch::new("alive").unwrap();
        assert!(!left.exists(), "a minute need not pass");
        let _next = Scratch::new("next").unwrap();
        assert!(alive.path().exists());
    }
}
