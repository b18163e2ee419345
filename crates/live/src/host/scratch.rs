//! A private directory that is gone when the run is over, in the one place of this user, `$TMPDIR/mqttlab-UID`.
//!
//! It is locked while its owner lives; one whose engine was killed is unlocked, and is removed by the next command, or the
//! next run: Python's half is `mqttlab/scratch.py`. A directory is made and locked, and those without a lock are looked for,
//! while the whole place is locked: none is without a lock and has an owner.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use mqttlab_system::process;

/// A directory that only its owner may enter, removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    _lock: fs::File,
}

impl Scratch {
    /// Makes one for `purpose`, and removes those of owners that are no more.
    ///
    /// # Errors
    /// What the file system said.
    pub fn new(purpose: &str) -> io::Result<Scratch> {
        Scratch::below(&std::env::temp_dir(), purpose)
    }

    fn below(temporary: &Path, purpose: &str) -> io::Result<Scratch> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let place = temporary.join(format!("mqttlab-{}", process::user()));
        let said = |error: io::Error| {
            io::Error::new(error.kind(), format!("no temporary directory {}: {error}", place.display()))
        };
        let whole = own(&place).map_err(said)?;
        whole.lock().map_err(said)?;
        remove_abandoned(&place);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = place.join(format!("{PREFIX}{purpose}-{}-{number}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&path).map_err(said)?;
        let lock = fs::File::open(&path).map_err(said)?;
        lock.lock().map_err(said)?;
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

/// Opens the place, made where it is missing: a directory that is this user's alone, and no symbolic link.
fn own(place: &Path) -> io::Result<fs::File> {
    match fs::DirBuilder::new().mode(0o700).create(place) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let opened = fs::OpenOptions::new().read(true).custom_flags(flags).open(place)?;
    let found = opened.metadata()?;
    if found.uid() != process::user_now() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"));
    }
    if found.mode() & 0o077 != 0 {
        opened.set_permissions(fs::Permissions::from_mode(0o700))?;
    }
    Ok(opened)
}

fn remove_abandoned(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let path = entry.path();
        // What it names beside a result is removed by Python, which has named it.
        let is_ours =
            entry.file_name().to_string_lossy().starts_with(PREFIX) && !path.join(UNFINISHED).exists();
        if is_ours && fs::File::open(&path).is_ok_and(|directory| directory.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

const PREFIX: &str = "scratch-";
const UNFINISHED: &str = "unfinished";

#[cfg(test)]
mod tests {
    use super::*;

    struct Temporary(PathBuf);

    impl Temporary {
        fn new(name: &str) -> Temporary {
            let path = std::env::temp_dir().join(format!("mqttlab-scratch-of-{}-{name}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Temporary(path)
        }

        fn place(&self) -> PathBuf {
            self.0.join(format!("mqttlab-{}", process::user()))
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_scratch_directory_is_private_and_goes_with_its_owner() {
        let temporary = Temporary::new("private");
        let scratch = Scratch::below(&temporary.0, "test").unwrap();
        scratch.write("a.conf", "x").unwrap();
        assert!(scratch.write("../a.conf", "x").is_err() && scratch.write("/a.conf", "x").is_err());
        scratch.write("etc/broker/a.conf", "y").unwrap();
        assert_eq!(fs::read_to_string(scratch.path().join("etc/broker/a.conf")).unwrap(), "y");
        let path = scratch.path().to_owned();
        assert_eq!(fs::metadata(temporary.place()).unwrap().mode() & 0o777, 0o700);
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn the_directory_of_an_engine_that_was_killed_goes_at_the_next_start() {
        let temporary = Temporary::new("killed");
        let alive = Scratch::below(&temporary.0, "alive").unwrap();
        let left = temporary.place().join(format!("{PREFIX}server-killed"));
        fs::create_dir(&left).unwrap();
        fs::write(left.join("mosquitto.conf"), "x").unwrap();
        let _next = Scratch::below(&temporary.0, "next").unwrap();
        assert!(!left.exists() && alive.path().exists());
    }

    #[test]
    fn a_place_that_is_a_symbolic_link_is_refused_and_one_that_others_may_enter_is_closed() {
        let temporary = Temporary::new("link");
        let elsewhere = temporary.0.join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, temporary.place()).unwrap();
        let error = Scratch::below(&temporary.0, "test").unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("no temporary directory {}", temporary.place().display())),
            "{error}"
        );
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
        fs::remove_file(temporary.place()).unwrap();
        fs::create_dir(temporary.place()).unwrap();
        fs::set_permissions(temporary.place(), fs::Permissions::from_mode(0o755)).unwrap();
        let _scratch = Scratch::below(&temporary.0, "test").unwrap();
        assert_eq!(fs::metadata(temporary.place()).unwrap().mode() & 0o777, 0o700);
    }
}
