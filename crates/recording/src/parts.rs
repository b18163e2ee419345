//! The rows of one run that several producers have written, each into spools of its own, brought together.
//!
//! Whoever joins them appends the others' rows to his own spools before he finishes the recording. Frames stay where they
//! are: a run with several producers has no network of its own. What a producer says of the run as a whole, its phases, is
//! said once, by who joins.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::path::Path;

use mqttlab_rows::{
    Acknowledged, Dropped, Event, EventKind, Gap, OwnPacket, Payload, PositionSample, Received, Record, Sent,
    TcpSample, Unsent,
};
use mqttlab_units::Instant;

use crate::error::{ErrorContext, Result};
use crate::message_rows::for_each;
use crate::spool::{self, Spool};

/// Name and size of the files of rows in a directory, whose [`Recorder`](crate::Recorder) is closed.
///
/// # Errors
/// They cannot be looked at.
pub fn part_files(dir: &Path) -> Result<Vec<(String, u64)>> {
    let mut files = Vec::new();
    for spool in rows() {
        let path = spool.path(dir);
        if path.exists() {
            let bytes = path.metadata().on("read", &path)?.len();
            files.push((spool.file_name(), bytes));
        }
    }
    Ok(files)
}

/// Whether a file of that name is one of [`part_files`].
pub fn is_part_file(name: &str) -> bool {
    rows().any(|spool| name == spool.file_name())
}

/// Appends the rows in `from` to the spools of a recording in `dir` whose recorder is closed and which is not finished. Their
/// times are `shift`ed. What is not whole at the end of a file is left out.
///
/// # Errors
/// Files cannot be read or written, or are no spools.
pub fn append_part(dir: &Path, from: &Path, shift: impl Fn(Instant) -> Instant) -> Result<()> {
    let shift = &shift;
    let some = |at: Option<Instant>| at.map(shift);
    append(dir, from, Spool::Sent, |row: Sent| Sent {
        intended: shift(row.intended),
        sent: shift(row.sent),
        written: some(row.written),
        ..row
    })?;
    append(dir, from, Spool::Acknowledged, |row: Acknowledged| Acknowledged { at: shift(row.at), ..row })?;
    append(dir, from, Spool::Unsent, |row: Unsent| Unsent { intended: shift(row.intended), ..row })?;
    append(dir, from, Spool::Received, |row: Received| Received { received: shift(row.received), ..row })?;
    append(dir, from, Spool::Dropped, |row: Dropped| Dropped { at: shift(row.at), ..row })?;
    append(dir, from, Spool::Gaps, |row: Gap| Gap { from: shift(row.from), until: shift(row.until), ..row })?;
    append(dir, from, Spool::TcpSamples, |row: TcpSample| TcpSample { at: shift(row.at), ..row })?;
    append(dir, from, Spool::Positions, |row: PositionSample| PositionSample { at: shift(row.at), ..row })?;
    append(dir, from, Spool::Payloads, |row: Payload| Payload { received: shift(row.received), ..row })?;
    append(dir, from, Spool::OwnPackets, |row: OwnPacket| OwnPacket { at: shift(row.at), ..row })?;
    // Phases are of the run as a whole.
    append_some(dir, from, Spool::Events, |row: Event| {
        (row.kind != EventKind::Phase).then(|| Event { at: shift(row.at), ..row })
    })
}

fn append<R: Record>(dir: &Path, from: &Path, spool: Spool, shifted: impl Fn(R) -> R) -> Result<()> {
    append_some(dir, from, spool, |row| Some(shifted(row)))
}

fn append_some<R: Record>(
    dir: &Path,
    from: &Path,
    spool: Spool,
    shifted: impl Fn(R) -> Option<R>,
) -> Result<()> {
    let path = spool.path(dir);
    let file = OpenOptions::new().append(true).open(&path).on("open", &path)?;
    let mut out = BufWriter::new(file);
    let mut bytes = Vec::new();
    for_each(from, spool, |row: R, tail| {
        let Some(row) = shifted(row) else { return Ok(()) };
        bytes.clear();
        spool::put(spool, &row, tail, &mut bytes);
        out.write_all(&bytes).on("write", &path)
    })?;
    out.flush().on("write", &path)
}

/// Resources are a machine's, and rows do not say whose.
fn rows() -> impl Iterator<Item = Spool> {
    Spool::ALL.into_iter().filter(|spool| ![Spool::Frames, Spool::Resources].contains(spool))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Recorder};
    use mqttlab_units::Duration;

    fn part(dir: &Path, publisher: u32, at: Instant) {
        let recorder = Recorder::create(dir, "{}", &Layout::default()).unwrap();
        let mut sink = recorder.sink();
        for sequence in 0..3 {
            sink.acknowledged(&Acknowledged { publisher, sequence, at });
        }
        let event =
            Event { at, kind: EventKind::Connack, client: Some(publisher), took: Some(Duration::from_ns(1)) };
        sink.event(&event, "words");
        sink.event(&Event { kind: EventKind::Phase, client: None, took: None, ..event }, "connect");
        drop(sink);
        drop(recorder.close());
    }

    #[test]
    fn rows_of_another_part_are_shifted_and_appended_and_phases_stay_those_of_the_first() {
        let root = std::env::temp_dir().join(format!("mqttlab-parts-{}", std::process::id()));
        let (own, other) = (root.join("own"), root.join("other"));
        part(&own, 0, Instant::from_ns(10));
        part(&other, 1, Instant::from_ns(20));
        let names: Vec<String> = part_files(&other).unwrap().into_iter().map(|(name, _)| name).collect();
        assert!(names.iter().all(|name| is_part_file(name)) && names.contains(&"sent.spool".into()));
        assert!(!["frames.spool", "../sent.spool", "plan.json"].iter().any(|name| is_part_file(name)));
        // The last row is torn.
        let torn = Spool::Acknowledged.path(&other);
        let file = OpenOptions::new().write(true).open(&torn).unwrap();
        file.set_len(torn.metadata().unwrap().len() - 1).unwrap();
        append_part(&own, &other, |at| at + Duration::from_ns(7)).unwrap();
        let mut found = Vec::new();
        for_each(&own, Spool::Acknowledged, |row: Acknowledged, _| {
            found.push((row.publisher, row.sequence, row.at.as_ns()));
            Ok(())
        })
        .unwrap();
        assert_eq!(found, [(0, 0, 10), (0, 1, 10), (0, 2, 10), (1, 0, 27), (1, 1, 27)]);
        let mut events = Vec::new();
        for_each(&own, Spool::Events, |row: Event, words| {
            events.push((row.at.as_ns(), row.client, String::from_utf8_lossy(words).into_owned()));
            Ok(())
        })
        .unwrap();
        let expected = [(10, Some(0), "words"), (10, None, "connect"), (27, Some(1), "words")];
        assert_eq!(events, expected.map(|(at, client, words)| (at, client, words.to_owned())));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
