//! A run's secrets, taken out of what others wrote into its recording: logs of programs, captures, keys of TLS.
//!
//! ```text
//!   run begins ──► secrets-not-hidden.txt ──► run ends: the engine knows the secrets, and overwrites them ──► it goes
//!                            │
//!                            └── engine killed ──► its command knows them: hide DIR --secrets
//!                                     └── that, too ──► nobody knows them: hide DIR
//! ```
//!
//! What the engine writes of a plan has marks. A program may print what it was told, and a capture has the bytes of CONNECT.
//! In captures the fields that are secret are overwritten ([`credentials`]), and where the values are known, these wherever
//! they stand ([`Needles`]). Over TLS the keys would show them: the key log goes when the recording has its tables.
//! Where nobody knows the values, the logs of programs that were told one go, too.

mod needles;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use mqttlab_capture::credentials::{self, Rewritten, SecretFields};
use mqttlab_plan::{StoredMarks, secret_parts};
use mqttlab_recording::{Claim, KEY_LOG, UNHIDDEN};
use needles::Needles;

/// A file that was changed, and what of it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Changed {
    /// Its name in the recording's directory.
    pub file: String,
    /// What was overwritten or removed.
    pub what: &'static str,
}

/// Overwrites the secrets of a recording whose engine has ended. What was changed is returned.
///
/// # Errors
/// It is being written, or a file cannot be changed: the others are.
pub fn hide(directory: &Path, values: Option<&[String]>) -> Result<Vec<Changed>, String> {
    let _claim = Claim::resume(directory).map_err(|error| error.to_string())?;
    let plan = fs::read_to_string(directory.join("plan.json")).unwrap_or_default();
    let mut marks = StoredMarks::read(&plan);
    let is_abandoned = values.is_none() && directory.join(UNHIDDEN).exists();
    if is_abandoned && !marks.any {
        // The plan is gone: anything may be secret.
        marks = StoredMarks::all();
    }
    let changed = Hiding { directory, marks: &marks, values, is_abandoned }.perform()?;
    if is_abandoned && !changed.is_empty() {
        let files: Vec<String> =
            changed.iter().map(|one| format!("- {}: {}\n", one.file, one.what)).collect();
        let text = format!("{OVERWRITTEN_WORDS}\n{}", files.concat());
        // Where it cannot be written the files are as they should be all the same.
        let _ = fs::write(directory.join(OVERWRITTEN), text);
    }
    Ok(changed)
}

/// The same at the end of a run, whose plan's directory may be gone.
pub fn hide_after_run(directory: &Path, plan: &str, values: &[String]) -> Result<(), String> {
    if !directory.join(UNHIDDEN).exists() {
        return Ok(());
    }
    let _claim = Claim::resume(directory).map_err(|error| error.to_string())?;
    let marks = StoredMarks::read(plan);
    Hiding { directory, marks: &marks, values: Some(values), is_abandoned: false }.perform()?;
    // Of a run that came to nothing nothing is kept.
    let _ = fs::remove_dir(directory);
    Ok(())
}

struct Hiding<'a> {
    directory: &'a Path,
    marks: &'a StoredMarks,
    /// The values of the secrets; `None` where nobody knows them.
    values: Option<&'a [String]>,
    /// Whether nobody has hidden them, who knew them.
    is_abandoned: bool,
}

impl Hiding<'_> {
    fn perform(&self) -> Result<Vec<Changed>, String> {
        let values = self.values.unwrap_or_default();
        if values.is_empty() && !self.marks.any {
            return Ok(Vec::new());
        }
        let needles = Needles::new(values.iter().flat_map(|value| secret_parts(value)));
        let files = files(self.directory).map_err(|error| named(self.directory, &error))?;
        let (mut changed, mut problems) = (Vec::new(), Vec::new());
        for path in &files {
            match self.file(path, &needles) {
                Ok(None) => {}
                Ok(Some(what)) => changed.push(Changed { file: name_of(path), what }),
                Err(problem) => problems.push(problem),
            }
        }
        if let Some(problem) = problems.into_iter().next() {
            return Err(problem);
        }
        if has_tables(&files) {
            let marker = self.directory.join(UNHIDDEN);
            match fs::remove_file(&marker) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(named(&marker, &error)),
                _ => {}
            }
        }
        Ok(changed)
    }

    /// What was changed in a file, if anything was.
    fn file(&self, path: &Path, needles: &Needles) -> Result<Option<&'static str>, String> {
        let name = name_of(path);
        let done = if name == KEY_LOG {
            let files = files(self.directory).map_err(|error| named(path, &error))?;
            // Without them tables cannot be made of what is in TLS.
            if !has_tables(&files) {
                return Ok(None);
            }
            put(path, KEYS_GONE).map(|is_new| is_new.then_some(KEYS))
        } else if name.ends_with(".pcapng") {
            return self.capture(path, needles);
        } else if name.ends_with(".log") && self.is_abandoned && self.was_told(&name) {
            put(path, LOG_GONE).map(|is_new| is_new.then_some(LOG))
        } else if name.ends_with(".log") && self.values.is_some() {
            log(path, needles).map(|is_new| is_new.then_some(COPIES))
        } else {
            Ok(None)
        };
        done.map_err(|error| named(path, &error))
    }

    fn capture(&self, path: &Path, needles: &Needles) -> Result<Option<&'static str>, String> {
        let io = |error: io::Error| named(path, &error);
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(io)?;
        if file.metadata().map_err(io)?.len() == 0 {
            return Ok(None);
        }
        let fields = SecretFields { username: self.marks.username, path: self.marks.path };
        let mut found = match credentials::credentials(again(&file).map_err(io)?, fields) {
            Ok(found) => found,
            // What is known is found all the same.
            Err(_) if self.values.is_some() => Rewritten::new(),
            Err(error) => {
                return Err(format!("{}: {error}; remove it, for it may show a secret", path.display()));
            }
        };
        let fields_found = !found.is_empty();
        if self.values.is_some() {
            found.extend(needles.find(BufReader::new(again(&file).map_err(io)?), true).map_err(io)?);
        }
        if found.is_empty() {
            return Ok(None);
        }
        let reading = again(&file).map_err(io)?;
        if credentials::rewrite(&reading, found.clone()).is_err() {
            credentials::write(&file, &found).map_err(io)?;
        }
        file.sync_all().map_err(io)?;
        Ok(Some(if fields_found { FIELDS } else { COPIES }))
    }

    /// Whether a log is of a program that was told a secret.
    fn was_told(&self, name: &str) -> bool {
        let server = name.strip_suffix(".log").unwrap_or(name);
        let is_client = name.starts_with("program-");
        let is_server = self.marks.servers.as_ref().is_none_or(|told| told.iter().any(|told| told == server));
        is_server || is_client && self.marks.clients
    }
}

/// The same file, read from its beginning.
fn again(mut file: &File) -> io::Result<File> {
    use std::io::Seek;
    file.rewind()?;
    file.try_clone()
}

fn log(path: &Path, needles: &Needles) -> io::Result<bool> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let found = needles.find(BufReader::new(&file), false)?;
    credentials::write(&file, &found)?;
    Ok(!found.is_empty())
}

/// Puts a text into a file's place, whose mode stays; whether it had another one.
fn put(path: &Path, text: &str) -> io::Result<bool> {
    if fs::read(path)? == text.as_bytes() {
        return Ok(false);
    }
    fs::write(path, text)?;
    Ok(true)
}

/// The regular files of a directory, sorted.
fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// Whether nothing waits to become a table: spools have frames as they were sent.
fn has_tables(files: &[PathBuf]) -> bool {
    files.iter().all(|path| path.extension().is_none_or(|extension| extension != "spool"))
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn named(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

const FIELDS: &str = "passwords and other credentials of the captured connections";
const COPIES: &str = "copies of the secrets";
const KEYS: &str = "keys of TLS connections, which show the secret in a capture";
const LOG: &str = "the log of a program that was told a secret";
const KEYS_GONE: &str =
    "# The keys were removed: with them the capture would show a secret of the scenario.\n";
const LOG_GONE: &str =
    "# The log was removed: its program was told a secret of the scenario, and may have printed it.\n";
/// What was overwritten because the run was killed.
const OVERWRITTEN: &str = "secrets-overwritten.txt";
const OVERWRITTEN_WORDS: &str = "\
The command that made this recording and its engine were killed before they had hidden the secrets of the scenario.
Nobody knows their values any more, so everything that may have shown one was overwritten or removed:
";
