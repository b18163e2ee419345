//! `layout.json`: the names behind the indices, stored before the first row.

use std::fs;
use std::io;
use std::path::Path;

use mqttlab_rows::Layout;
use mqttlab_units::Instant;

use crate::error::{Error, ErrorContext, Result};
use crate::machine;
use crate::schema::SCHEMA_VERSION;

/// Reads `layout.json`; every set of receivers, and of members of a share, comes ordered and without repetitions.
pub fn read(dir: &Path) -> Result<Layout> {
    let path = dir.join("layout.json");
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Error::NotARecording(dir.to_owned()));
        }
        Err(source) => return Err(Error::Disk { action: "read", path, source }),
    };
    let mut layout: Layout = serde_json::from_slice(&text)
        .map_err(|error| Error::Damaged { path: path.clone(), what: error.to_string() })?;
    if layout.schema_version > SCHEMA_VERSION {
        return Err(Error::LaterSchema { path, found: layout.schema_version, known: SCHEMA_VERSION });
    }
    for receivers in &mut layout.receivers {
        receivers.sort_unstable();
        receivers.dedup();
    }
    for share in &mut layout.shares {
        share.members.sort_by_key(|member| member.client);
        share.members.dedup_by_key(|member| member.client);
    }
    Ok(layout)
}

/// Writes `layout.json`, with the schema version and, unless it is given, the machine filled in.
pub(crate) fn write(layout: &Layout, dir: &Path) -> Result<()> {
    let machine = if layout.machine.is_null() { machine::describe() } else { layout.machine.clone() };
    let layout = Layout { schema_version: SCHEMA_VERSION, machine, ..layout.clone() };
    let path = dir.join("layout.json");
    let json = serde_json::to_vec(&layout).expect("a layout is made of strings and numbers");
    fs::write(&path, json).on("write", &path)
}

/// Stores when measuring began and when it ends, as soon as that is known: even a killed run's messages then fall into the
/// right phases. The file is replaced, so that it is there whole or not at all.
pub fn store_phases(dir: &Path, measure_from: Instant, measure_until: Instant) -> Result<()> {
    let layout = Layout {
        warm_up_end_ns: measure_from.as_ns(),
        measurement_end_ns: measure_until.as_ns(),
        ..read(dir)?
    };
    replace(dir, &layout)
}

/// Puts another layout in the place of the one that is there: whole or not at all.
pub(crate) fn replace(dir: &Path, layout: &Layout) -> Result<()> {
    let (path, temporary) = (dir.join("layout.json"), dir.join("layout.json.tmp"));
    let json = serde_json::to_vec(layout).expect("a layout is made of strings and numbers");
    fs::write(&temporary, json).on("write", &temporary)?;
    fs::rename(&temporary, &path).on("rename", &temporary)
}
