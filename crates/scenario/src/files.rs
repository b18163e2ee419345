//! Files of users: where they are, what they are, and what is wrong with them. One reader serves every field that names
//! a file: sizes, directories, devices, pipes, NUL bytes and encodings are answered alike.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use mqttlab_fields::{Node, Value, closest, with_commas};

use crate::document;

/// Bytes by which a file is known.
const HEAD_BYTES: u64 = 4096;
/// Opens a pipe without waiting for its writer (`O_NONBLOCK` of Linux).
const NONBLOCKING: i32 = 0o4000;

/// pcapng, pcap of either byte order in µs and ns and modified, snoop, Network Monitor.
const CAPTURES: [&[u8]; 10] = [
    b"\x0a\x0d\x0d\x0a",
    b"\xd4\xc3\xb2\xa1",
    b"\xa1\xb2\xc3\xd4",
    b"\x4d\x3c\xb2\xa1",
    b"\xa1\xb2\x3c\x4d",
    b"\x34\xcd\xb2\xa1",
    b"\xa1\xb2\xcd\x34",
    b"snoop\0\0\0",
    b"RTSS",
    b"GMBU",
];
/// gzip, Zstandard.
const PACKED: [&[u8]; 2] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd"];
const OTHERS: [(&[u8], &str); 3] = [
    (b"PAR1", "a Parquet table"),
    (b"PK\x03\x04", "a workbook or archive"),
    (b"SQLite format 3", "a database"),
];
/// What lines of brokers' logs have in them: Mosquitto's, EMQX's.
const OF_BROKERS: [&str; 6] = [
    "mosquitto version ",
    "New client connected from ",
    "Received PUBLISH from ",
    "Sending PUBLISH to ",
    "mqtt_packet_received",
    "mqtt_packet_sent",
];
const TABLE: &str = "is a table";

/// A file that a scenario names: beside the scenario's, or in the working directory where it is only there.
pub fn beside(path: &Path, directory: Option<&Path>) -> PathBuf {
    match directory {
        Some(directory) if path.is_relative() => {
            let joined = if directory == Path::new(".") { path.to_owned() } else { directory.join(path) };
            if path.exists() && !joined.exists() { path.to_owned() } else { joined }
        }
        _ => path.to_owned(),
    }
}

/// The text of a file; a byte order mark is passed over.
///
/// # Errors
/// What is wrong with the file, in words that follow its name; `kind` says what it is to be, such as `a trace`.
pub fn read_text(path: &Path, bytes_max: u64, kind: &str) -> Result<String, String> {
    let data = read_bytes(path, bytes_max, kind)?;
    match String::from_utf8(data) {
        Ok(text) => Ok(text.trim_start_matches('\u{feff}').to_owned()),
        Err(error) => {
            let other = what_it_is(path).filter(|other| !other.starts_with(TABLE));
            let byte = error.utf8_error().valid_up_to();
            // A table in another encoding is still the table that was asked for.
            Err(other.unwrap_or_else(|| format!("is not UTF-8 text (byte {byte})")))
        }
    }
}

/// The bytes of a file.
///
/// # Errors
/// As [`read_text`].
pub fn read_bytes(path: &Path, bytes_max: u64, kind: &str) -> Result<Vec<u8>, String> {
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err("has a NUL in its name, which no file has".into());
    }
    let unread = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => {
            let near = nearest_path(path).map_or_else(String::new, |near| format!("; did you mean {near}?"));
            format!("is not there{near}")
        }
        _ => format!("cannot be read: {}", reason(&error)),
    };
    let about = fs::metadata(path).map_err(unread)?;
    if !about.is_file() {
        return Err(if about.is_dir() { "is a directory" } else { "is no file" }.into());
    }
    if about.len() > bytes_max {
        let most = with_commas(&bytes_max.to_string());
        return Err(format!(
            "has {} B, but {kind} may have {most} B at most",
            with_commas(&about.len().to_string())
        ));
    }
    let mut data = Vec::with_capacity(about.len() as usize);
    let mut file = OpenOptions::new().read(true).custom_flags(NONBLOCKING).open(path).map_err(unread)?;
    // What grows meanwhile is read as far as it may be.
    (&mut file).take(bytes_max).read_to_end(&mut data).map_err(unread)?;
    if about.len() == 0 && !data.is_empty() {
        return Err("is no file: the system makes its contents when they are read".into());
    }
    Ok(data)
}

/// The system's reason, without its number.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// What is at a path, and the command that takes it; none where nothing is there, or nothing is known of it.
pub fn what_it_is(path: &Path) -> Option<String> {
    let shown = path.display();
    if path.is_dir() {
        return Some(directory(path));
    }
    let head = head_of(path)?;
    let starts = |firsts: &[&[u8]]| firsts.iter().any(|first| head.starts_with(first));
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if starts(&CAPTURES) || (starts(&PACKED) && name.contains("pcap")) {
        return Some(format!("is a capture; import it with: mqttlab import capture {shown}"));
    }
    if starts(&PACKED) {
        return Some(
            "is a compressed file; unpack it, or import it with mqttlab import, if it is a capture or a log"
                .into(),
        );
    }
    let ending = ending_of(path);
    if ending == "etl" {
        let made = path.with_extension("pcapng");
        let command = format!("etl2pcapng {shown} {}", made.display());
        return Some(format!("is a trace of Windows; make a capture of it with: {command}"));
    }
    if let Some((_, what)) = OTHERS.iter().find(|(first, _)| head.starts_with(first)) {
        return Some(format!("is {what}{}", part_of(path)));
    }
    if ending == "toml" {
        return toml(path);
    }
    text_is(&String::from_utf8_lossy(&head), path)
}

fn head_of(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    let file: File = OpenOptions::new().read(true).custom_flags(NONBLOCKING).open(path).ok()?;
    file.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    Some(head)
}

fn ending_of(path: &Path) -> String {
    path.extension().unwrap_or_default().to_string_lossy().to_lowercase()
}

/// What a text is that is not TOML.
pub fn text_is(text: &str, path: &Path) -> Option<String> {
    let ending = ending_of(path);
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let begin = text.trim_start();
    if ["<!doctype", "<html", "<svg"]
        .iter()
        .any(|tag| begin.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag)))
    {
        return Some(format!("is an HTML page{}", part_of(path)));
    }
    if ending != "toml" && OF_BROKERS.iter().any(|words| text.contains(words)) {
        return Some(format!("is a broker's log; import it with: mqttlab import log {}", path.display()));
    }
    if (begin.starts_with('{') || begin.starts_with("[{")) && is_json(text) {
        return Some(format!("is JSON{}", part_of(path)));
    }
    let bare = text.lines().find(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    if matches!(ending.as_str(), "yaml" | "yml") || (bare.is_some_and(is_yaml) && !text.lines().any(is_toml))
    {
        return Some("is YAML".into());
    }
    if first.starts_with("publisher,sequence,") {
        let replay = format!("publish = {{ replay = \"{}\" }}", path.display());
        return Some(format!("{TABLE} of a recording's messages; a scenario replays it: {replay}"));
    }
    let is_separated =
        first.matches(',').count() >= 2 && !first.contains('=') && !first.starts_with(['#', '[']);
    if ending == "csv" || is_separated {
        let command = format!("mqttlab import log {}", path.display());
        return Some(format!("{TABLE}{}; a table of messages is imported with: {command}", part_of(path)));
    }
    None
}

/// Whether a text is JSON, as far as it was read: what was cut off goes on behind its end.
fn is_json(text: &str) -> bool {
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(_) => true,
        Err(error) => error.is_eof() || text.contains("\":"),
    }
}

fn is_yaml(line: &str) -> bool {
    if line.starts_with("---") || line.starts_with("%YAML") {
        return true;
    }
    let key = line.strip_prefix("- ").unwrap_or(line);
    let Some((key, value)) = key.split_once(':') else { return false };
    let is_begin = key.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let is_key = key.chars().all(|letter| letter.is_alphanumeric() || "_ -\t".contains(letter));
    is_begin && is_key && (value.is_empty() || value.starts_with(char::is_whitespace))
}

/// A field of TOML has an equals sign, and a heading brackets.
fn is_toml(line: &str) -> bool {
    let line = line.trim_start();
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || "_.-".contains(letter))
    };
    match line.strip_prefix('[') {
        Some(heading) => {
            heading.trim_start_matches('[').split_once(']').is_some_and(|(name, _)| is_name(name))
        }
        None => line.split_once('=').is_some_and(|(name, _)| is_name(name.trim_end())),
    }
}

fn directory(path: &Path) -> String {
    let shown = path.display();
    if path.join("plan.json").is_file() {
        return format!("is a recording; its report: mqttlab report {shown}");
    }
    if path.join("journal.jsonl").is_file() {
        let experiment = path.join("experiment.toml");
        return format!(
            "is an experiment's directory; its report: mqttlab report {shown}; to go on: mqttlab experiment {}",
            experiment.display()
        );
    }
    let mut inner: Vec<PathBuf> =
        fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    inner.sort();
    if inner.iter().any(|each| each.join("plan.json").is_file() || each.join("journal.jsonl").is_file()) {
        return format!("is a directory of recordings; mqttlab list --runs {shown} shows them");
    }
    match inner.iter().find(|each| ending_of(each) == "toml") {
        Some(file) => format!("is a directory; name a file in it, such as {}", file.display()),
        None => "is a directory; name a file".into(),
    }
}

fn toml(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let tree = document::parse(&text).ok()?;
    let Node { value: Value::Table(table), .. } = tree else { return None };
    if table.has("scenario") && !table.has("groups") {
        return Some(format!("is an experiment; run it with: mqttlab experiment {}", path.display()));
    }
    table.has("groups").then(|| format!("is a scenario; run it with: mqttlab run {}", path.display()))
}

/// The recording that a file belongs to.
fn part_of(path: &Path) -> String {
    let home = path.parent().unwrap_or(Path::new(""));
    if !home.join("plan.json").is_file() {
        return String::new();
    }
    let home = home.display();
    format!(" of the recording {home}; its report: mqttlab report {home}")
}

/// What is beside a path where nothing is, by the nearest name.
pub fn nearest_path(path: &Path) -> Option<String> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name()?.to_string_lossy().into_owned();
    let entries = fs::read_dir(parent).ok()?.flatten();
    let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let beside = |name: &str| path.with_file_name(name).display().to_string();
    // A recording by its scenario's name: the latest of that name.
    let longer =
        names.iter().filter(|other| other.starts_with(&format!("{name}-")) && parent.join(other).is_dir());
    if let Some(longest) = longer.max() {
        return Some(beside(longest));
    }
    // Names of one kind of file are alike by their ends alone.
    let (stem, ending) = split(&name);
    let same = names.iter().map(|other| split(other)).filter(|(_, other)| *other == ending);
    if let Some(near) = closest(stem, same.map(|(stem, _)| stem), 0.6) {
        return Some(beside(&format!("{near}{ending}")));
    }
    let others = names.iter().filter(|other| split(other).1 != ending).map(String::as_str);
    closest(&name, others, 0.6).map(beside)
}

/// A file's name before its ending, and the ending with its point.
fn split(name: &str) -> (&str, &str) {
    match name.rfind('.') {
        Some(at) if at > 0 && at + 1 < name.len() => name.split_at(at),
        _ => (name, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory_of_this_test(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("mqttlab-files-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).expect("a directory for temporary files");
        directory
    }

    #[test]
    fn what_cannot_be_read_is_told_and_nothing_waits() {
        let home = directory_of_this_test("read");
        let write = |name: &str, data: &[u8]| fs::write(home.join(name), data).expect("it can be written");
        write("drive.csv", b"time_s,rate_mbit\n0,1\n");
        write("latin.txt", b"caf\xe9");
        let told = |name: &str| read_text(&home.join(name), 100, "a trace").unwrap_err();
        assert_eq!(
            told("drvie.csv"),
            format!("is not there; did you mean {}?", home.join("drive.csv").display())
        );
        assert_eq!(told("latin.txt"), "is not UTF-8 text (byte 3)");
        assert_eq!(told("a\0b"), "has a NUL in its name, which no file has");
        assert_eq!(read_text(&home, 100, "a trace").unwrap_err(), "is a directory");
        assert_eq!(read_text(Path::new("/dev/zero"), 100, "a trace").unwrap_err(), "is no file");
        assert!(
            read_text(Path::new("/proc/self/status"), 100, "a trace")
                .unwrap_err()
                .starts_with("is no file: ")
        );
        write("long.csv", &[b'1'; 200]);
        assert_eq!(told("long.csv"), "has 200 B, but a trace may have 100 B at most");
        assert_eq!(read_text(&home.join("drive.csv"), 100, "a trace").map(|text| text.len()), Ok(21));
        fs::remove_dir_all(&home).expect("it was made");
    }

    #[test]
    fn what_a_file_is_comes_with_the_command_that_takes_it() {
        let is = |text: &str, name: &str| text_is(text, Path::new(name)).unwrap_or_default();
        assert_eq!(is("name: x\n", "a"), "is YAML");
        assert_eq!(is("{\"a\": 1}", "a"), "is JSON");
        assert!(is("a,b,c\n1,2,3\n", "x").ends_with("mqttlab import log x"));
        assert!(is("<!DOCTYPE html>", "x").starts_with("is an HTML page"));
        assert_eq!(is("a = 1\nb: c\n", "a"), "");
        assert!(is("publisher,sequence,topic\n", "m.csv").ends_with("publish = { replay = \"m.csv\" }"));
    }
}
