//! What messages carried: their bytes one behind the other in `payloads.bin`, and a table that says whose they are.
//!
//! Bytes stand beside the table, not in it: who looks at a message reads as many bytes as it has, and a table of the other
//! columns stays small whatever the payloads are.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use mqttlab_rows::Payload;

use crate::error::{ErrorContext, Result};
use crate::footer::FileSize;
use crate::message_rows::for_each;
use crate::spool::{HEADER_BYTES, Spool};
use crate::table::TableWriter;
use crate::tables::{PayloadColumns, PayloadRow};

/// Makes both files, where payloads were kept.
pub(crate) fn payloads(from: &Path, to: &Path, files: &mut BTreeMap<String, FileSize>) -> Result<()> {
    let spooled = fs::metadata(Spool::Payloads.path(from)).map_or(0, |file| file.len());
    if spooled <= HEADER_BYTES as u64 {
        return Ok(());
    }
    let path = to.join(BYTES);
    let mut bytes = BufWriter::new(File::create(&path).on("create", &path)?);
    let mut table = TableWriter::<PayloadColumns<'static>>::create(to)?;
    let mut size = FileSize::default();
    for_each(from, Spool::Payloads, |payload: Payload, content| {
        bytes.write_all(content).on("write", &path)?;
        let row = PayloadRow {
            received_ns: payload.received.as_ns(),
            subscriber: payload.subscriber,
            publisher: payload.publisher,
            sequence: payload.publisher.map(|_| payload.sequence),
            source: payload.source.as_str(),
            start_bytes: size.bytes,
            kept_bytes: content.len() as u32,
        };
        size = FileSize { rows: size.rows + 1, bytes: size.bytes + content.len() as u64 };
        table.push(|columns, place| columns.set(place, &row))
    })?;
    bytes.flush().on("write", &path)?;
    files.insert("payloads.parquet".into(), table.finish()?);
    files.insert(BYTES.into(), size);
    Ok(())
}

const BYTES: &str = "payloads.bin";
