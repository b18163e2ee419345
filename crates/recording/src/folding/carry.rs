//! Rows that the next fold, or the end of the run, joins with what comes until then.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use mqttlab_rows::{Acknowledged, Dropped, Received, Record};

use crate::error::{ErrorContext, Result};
use crate::message_rows::GatheredMessage;
use crate::spool::{self, Spool};

/// The carried spools of one fold.
pub(crate) struct Carry {
    files: Vec<(Spool, PathBuf, BufWriter<File>)>,
    record: Vec<u8>,
    bytes: u64,
    /// One bit for each delivery: whether a later message came before it.
    overtaken: Vec<u64>,
    deliveries: usize,
}

impl Carry {
    pub(crate) fn create(dir: &Path) -> Result<Carry> {
        let mut files = Vec::new();
        for spool in super::MESSAGE_SPOOLS {
            let path = spool.carried_path(dir);
            let mut file = BufWriter::new(File::create_new(&path).on("create", &path)?);
            file.write_all(&spool.header()).on("write", &path)?;
            files.push((spool, path, file));
        }
        Ok(Carry { files, record: Vec::new(), bytes: 0, overtaken: Vec::new(), deliveries: 0 })
    }

    /// What was sent and what arrived of a message; its acknowledgements and drops are carried by themselves.
    pub(crate) fn message(&mut self, message: &GatheredMessage<'_>) -> Result<()> {
        if let Some(sent) = message.sent {
            self.put(Spool::Sent, sent)?;
        }
        if let Some(unsent) = message.unsent {
            self.put(Spool::Unsent, unsent)?;
        }
        message.deliveries.iter().try_for_each(|delivery| self.received(&delivery.row, delivery.overtaken))
    }

    pub(crate) fn received(&mut self, row: &Received, overtaken: bool) -> Result<()> {
        if self.deliveries.is_multiple_of(64) {
            self.overtaken.push(0);
        }
        *self.overtaken.last_mut().expect("it was pushed") |= u64::from(overtaken) << (self.deliveries % 64);
        self.deliveries += 1;
        self.put(Spool::Received, row)
    }

    pub(crate) fn acknowledged(&mut self, row: &Acknowledged) -> Result<()> {
        self.put(Spool::Acknowledged, row)
    }

    pub(crate) fn dropped(&mut self, row: &Dropped) -> Result<()> {
        self.put(Spool::Dropped, row)
    }

    fn put<R: Record>(&mut self, spool: Spool, row: &R) -> Result<()> {
        self.record.clear();
        spool::put(spool, row, &[], &mut self.record);
        self.bytes += self.record.len() as u64;
        let file = self.files.iter_mut().find(|(of, ..)| *of == spool);
        let (_, path, file) = file.expect("every spool of messages has a file");
        file.write_all(&self.record).on("write", path)
    }

    /// Writes what is left. Hands out the bits of the deliveries with their number, and the bytes of all rows.
    pub(crate) fn finish(mut self) -> Result<((Vec<u64>, usize), u64)> {
        for (_, path, file) in &mut self.files {
            file.flush().on("write", path)?;
        }
        Ok(((self.overtaken, self.deliveries), self.bytes))
    }
}
