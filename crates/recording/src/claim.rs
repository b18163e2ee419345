//! A directory that a recording is being written to: taken, locked, and given back.
//!
//! The lock is `flock` on the directory itself: it needs no file, and is gone with whoever held it, however he ended.
//! Whoever looks meanwhile makes a [`snapshot`](crate::snapshot).
//!
//! What it does not model: file systems that know no `flock`. There recordings are written without a lock.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mqttlab_rows::Layout;

use crate::derived::DERIVED_TABLES;
use crate::error::{Error, ErrorContext, Result};
use crate::folding;
use crate::identifier;
use crate::layout;
use crate::spool::Spool;
use crate::tables::TABLES;

/// A recording's directory while it is written. Nobody else can write or recover it.
#[derive(Debug)]
pub struct Claim {
    dir: PathBuf,
    kept: bool,
    _lock: Option<File>,
}

impl Claim {
    /// Makes the directory if need be, and writes what is known before the first row. With the identifier and, unless
    /// it is given, the start filled in. [`Error::Occupied`] when there is a recording already.
    pub(crate) fn take(dir: &Path, plan_json: &str, layout: &Layout) -> Result<Claim> {
        fs::create_dir_all(dir).on("create", dir)?;
        let lock = lock(dir, Duration::ZERO)?;
        let plan = dir.join("plan.json");
        // Made, not found missing: of two that start at once one gets it.
        let mut file = match OpenOptions::new().write(true).create_new(true).open(&plan) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(Error::Occupied(dir.to_owned()));
            }
            outcome => outcome.on("create", &plan)?,
        };
        // From here on the directory is ours, and is emptied when something fails.
        let claim = Claim { dir: dir.to_owned(), kept: false, _lock: lock };
        file.write_all(plan_json.as_bytes()).on("write", &plan)?;
        let now = identifier::unix_now_ns();
        let started_unix_ns =
            if layout.started_unix_ns == 0 { now.unwrap_or(0) } else { layout.started_unix_ns };
        let given = Some(layout.run_id.clone()).filter(|id| !id.is_empty());
        let run_id = given.unwrap_or_else(|| identifier::ulid(now.unwrap_or(0)));
        layout::write(&Layout { run_id, started_unix_ns, ..layout.clone() }, dir)?;
        Ok(claim)
    }

    /// Locks a directory that holds a recording, to finish or to recover it.
    ///
    /// # Errors
    /// It is not there, or somebody else holds it.
    pub fn resume(dir: &Path) -> Result<Claim> {
        Ok(Claim { dir: dir.to_owned(), kept: true, _lock: lock(dir, PATIENCE)? })
    }

    /// Whether what is written stays when the claim ends before the recording is finished.
    pub(crate) fn set_kept(&mut self, kept: bool) {
        self.kept = kept;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.kept {
            discard(&self.dir);
        }
    }
}

/// Whether somebody is writing the recording.
pub(crate) fn is_held(dir: &Path) -> bool {
    File::open(dir).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Locks the directory. Whoever asks whether it is locked holds it for an instant himself, so that it may take two
/// tries; whoever recovers it holds it longer.
fn lock(dir: &Path, patience: Duration) -> Result<Option<File>> {
    let began = Instant::now();
    let file = File::open(dir).on("open", dir)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) if began.elapsed() < patience.max(GLANCE) => {
                std::thread::sleep(GLANCE / 20);
            }
            Err(TryLockError::WouldBlock) => return Err(Error::BeingWritten(dir.to_owned())),
            Err(TryLockError::Error(_)) => return Ok(None),
        }
    }
}

/// Removes what a run puts into its directory, and the directory when nothing else is in it: for whoever holds the
/// claim on it.
pub fn discard(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if is_of_recordings(&entry.file_name().to_string_lossy()) {
            let _ = fs::remove_file(entry.path());
        }
    }
    let _ = folding::remove(dir);
    let _ = fs::remove_dir(dir);
}

fn is_of_recordings(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name);
    let is_table =
        name.contains(".parquet") && TABLES.iter().chain(&DERIVED_TABLES).any(|table| table.name == stem);
    let is_spool = name.ends_with(".spool") && Spool::ALL.iter().any(|spool| spool.name() == stem);
    let others = [
        "plan.json",
        "layout.json",
        "layout.json.tmp",
        "run.json.tmp",
        "incomplete.json.tmp",
        "broker.log",
        BY_HAND,
        HAND_SOCKET,
        KEY_LOG,
    ];
    is_table || is_spool || name.ends_with(".groups.spool") || others.contains(&name)
}

/// In a recording's directory: the events that were fired by hand, a JSON object a line.
pub const BY_HAND: &str = "by-hand.jsonl";
/// The socket at which a run that goes on is asked for one.
pub const HAND_SOCKET: &str = "events.sock";
/// Stands there as long as other files may show a secret of the plan: from before the first is written, until the secrets are
/// overwritten.
pub const UNHIDDEN: &str = "secrets-not-hidden.txt";
/// Secrets of the run's TLS connections (NSS key log).
pub const KEY_LOG: &str = "keys.log";
/// How long somebody who only asks may hold the lock.
const GLANCE: Duration = Duration::from_millis(200);
/// How long somebody who recovers it is waited for.
const PATIENCE: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_that_ends_before_anything_was_kept_leaves_what_others_put_there() {
        let dir = std::env::temp_dir().join(format!("mqttlab-claim-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        drop(Claim::take(&dir, "{}", &Layout::default()).unwrap());
        assert!(!dir.exists());
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("notes.txt"), "mine").unwrap();
        drop(Claim::take(&dir, "{}", &Layout::default()).unwrap());
        let left: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["notes.txt"]);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn of_many_that_take_one_directory_at_once_one_gets_it() {
        let dir = std::env::temp_dir().join(format!("mqttlab-claims-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        let claims: Vec<Result<Claim>> = std::thread::scope(|scope| {
            let take = || scope.spawn(|| Claim::take(&dir, "{}", &Layout::default()));
            let threads: Vec<_> = (0..8).map(|_| take()).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(claims.iter().filter(|claim| claim.is_ok()).count(), 1);
        let refused = |error: &Error| matches!(error, Error::BeingWritten(_) | Error::Occupied(_));
        assert!(claims.iter().filter_map(|claim| claim.as_ref().err()).all(refused), "{claims:?}");
        assert!(is_held(&dir));
        drop(claims);
        assert!(!dir.exists());
    }
}
