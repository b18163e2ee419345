//! Rows that were found in frames: messages and events of clients that are known by their frames alone.
//!
//! They are found when a recording is finished, and stand in spools of their own beside the producer's, which are read after
//! those. Finishing may be tried again: then they are found again, and replace what was there.

use std::fs;
use std::path::Path;

use mqttlab_rows::Layout;

use crate::error::{ErrorContext, Result};
use crate::frames::{FrameAnalyser, SeenRow};
use crate::spool::{Spool, put};

/// Writes what the analyser has found, and says whether there was anything. Topics and receivers are added to `layout`.
pub(crate) fn write(dir: &Path, layout: &mut Layout, analyser: &mut dyn FrameAnalyser) -> Result<bool> {
    let mut found: [Vec<u8>; SPOOLS.len()] = Default::default();
    analyser.messages(layout, &mut |row| match row {
        SeenRow::Sent(row) => put(Spool::Sent, row, &[], &mut found[0]),
        SeenRow::Acknowledged(row) => put(Spool::Acknowledged, row, &[], &mut found[1]),
        SeenRow::Received(row) => put(Spool::Received, row, &[], &mut found[2]),
        SeenRow::Event(row, words) => put(Spool::Events, row, words.as_bytes(), &mut found[3]),
        SeenRow::Position(row) => put(Spool::Positions, row, &[], &mut found[4]),
        SeenRow::Dropped(row) => put(Spool::Dropped, row, &[], &mut found[5]),
    });
    for (spool, rows) in SPOOLS.iter().zip(&found).filter(|(_, rows)| !rows.is_empty()) {
        let path = spool.seen_path(dir);
        let whole = [&spool.header()[..], rows].concat();
        fs::write(&path, whole).on("write", &path)?;
    }
    Ok(found.iter().any(|rows| !rows.is_empty()))
}

const SPOOLS: [Spool; 6] =
    [Spool::Sent, Spool::Acknowledged, Spool::Received, Spool::Events, Spool::Positions, Spool::Dropped];
