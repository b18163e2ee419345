//! Spools: append-only files that hold the rows while the run goes on.
//!
//! A Parquet file without its footer cannot be read, so a run that may be killed at any moment writes these
//! instead. A spool is a header of 32 bytes (magic, schema version, record size, name, size of a record's fixed part) and
//! then records: of fixed size, or, where the header says size 0, each after its length. A reader stops at the last whole record, so
//! a torn tail costs one row. What is written survives the death of the process, not of the machine: nothing is
//! synced to the disk before the recording is finished.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use mqttlab_rows::{
    Acknowledged, Dropped, Event, Frame, Gap, OwnPacket, Payload, PositionSample, Received, Record, Resource,
    Sent, TcpSample, Unsent,
};

use crate::error::{Error, ErrorContext, Result};
use crate::schema::SCHEMA_VERSION;

/// The spools of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spool {
    Sent,
    Acknowledged,
    Unsent,
    Received,
    Resources,
    Events,
    Dropped,
    Gaps,
    TcpSamples,
    Positions,
    Payloads,
    OwnPackets,
    Frames,
}

impl Spool {
    pub(crate) const ALL: [Spool; 13] = [
        Spool::Sent,
        Spool::Acknowledged,
        Spool::Unsent,
        Spool::Received,
        Spool::Resources,
        Spool::Events,
        Spool::Dropped,
        Spool::Gaps,
        Spool::TcpSamples,
        Spool::Positions,
        Spool::Payloads,
        Spool::OwnPackets,
        Spool::Frames,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Spool::Sent => "sent",
            Spool::Acknowledged => "acknowledged",
            Spool::Unsent => "unsent",
            Spool::Received => "received",
            Spool::Resources => "resources",
            Spool::Events => "events",
            Spool::Dropped => "dropped",
            Spool::Gaps => "gaps",
            Spool::TcpSamples => "tcp_samples",
            Spool::Positions => "positions",
            Spool::Payloads => "payloads",
            Spool::OwnPackets => "own_packets",
            Spool::Frames => "frames",
        }
    }

    /// Size of a record; 0 when records differ in size and carry their length.
    pub(crate) const fn record_bytes(self) -> usize {
        match self {
            Spool::Sent => Sent::SIZE,
            Spool::Acknowledged => Acknowledged::SIZE,
            Spool::Unsent => Unsent::SIZE,
            Spool::Received => Received::SIZE,
            Spool::Resources => Resource::SIZE,
            Spool::Dropped => Dropped::SIZE,
            Spool::Gaps => Gap::SIZE,
            Spool::TcpSamples => TcpSample::SIZE,
            Spool::Positions => PositionSample::SIZE,
            Spool::Events | Spool::Payloads | Spool::OwnPackets | Spool::Frames => 0,
        }
    }

    /// Size of the part of a record that every record of this spool has.
    const fn least_bytes(self) -> usize {
        match self {
            Spool::Events => Event::SIZE,
            Spool::Payloads => Payload::SIZE,
            Spool::OwnPackets => OwnPacket::SIZE,
            Spool::Frames => Frame::SIZE,
            _ => self.record_bytes(),
        }
    }

    /// How many bytes a producer gathers before it hands them over.
    pub(crate) const fn batch_bytes(self) -> usize {
        match self {
            Spool::Frames | Spool::Payloads => 256 << 10,
            Spool::Events | Spool::Resources | Spool::Dropped | Spool::Gaps => 8 << 10,
            _ => 64 << 10,
        }
    }

    pub(crate) fn path(self, dir: &Path) -> PathBuf {
        dir.join(self.file_name())
    }

    pub(crate) fn file_name(self) -> String {
        format!("{}.spool", self.name())
    }

    /// Where rows of the kind are that were found in frames.
    pub(crate) fn seen_path(self, dir: &Path) -> PathBuf {
        dir.join(format!("{}.seen.spool", self.name()))
    }

    /// Where rows of the kind are that a fold carried.
    pub(crate) fn carried_path(self, dir: &Path) -> PathBuf {
        dir.join(format!("{}.carried.spool", self.name()))
    }

    pub(crate) fn header(self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&SCHEMA_VERSION.to_le_bytes());
        header[12..16].copy_from_slice(&(self.record_bytes() as u32).to_le_bytes());
        header[16..16 + self.name().len()].copy_from_slice(self.name().as_bytes());
        header[28..].copy_from_slice(&(self.least_bytes() as u32).to_le_bytes());
        header
    }

    /// Size of a record's fixed part in schema version 1, whose headers do not say it.
    const fn least_bytes_1(self) -> usize {
        match self {
            Spool::Sent => 42,
            Spool::Acknowledged => 16,
            Spool::Unsent => 25,
            Spool::Received => 28,
            Spool::Resources => 73,
            Spool::Events => 21,
            Spool::Frames => 55,
            // Later ones than that schema.
            Spool::Dropped
            | Spool::Gaps
            | Spool::TcpSamples
            | Spool::Positions
            | Spool::Payloads
            | Spool::OwnPackets => self.least_bytes(),
        }
    }
}

/// What is kept of a payload.
pub(crate) fn kept_of(payload: &[u8]) -> &[u8] {
    &payload[..payload.len().min(PAYLOAD_BYTES_MAX)]
}

/// Appends one record, with its words or bytes behind it where the spool has such.
pub(crate) fn put<R: Record>(spool: Spool, row: &R, tail: &[u8], out: &mut Vec<u8>) {
    if spool.record_bytes() == 0 {
        out.extend_from_slice(&((R::SIZE + tail.len()) as u32).to_le_bytes());
    }
    row.put(out);
    out.extend_from_slice(tail);
}

/// How many whole records lie at the beginning of `bytes`.
pub(crate) fn whole_records(spool: Spool, bytes: &[u8]) -> u64 {
    if spool.record_bytes() > 0 {
        return (bytes.len() / spool.record_bytes()) as u64;
    }
    let (mut count, mut at) = (0, 0);
    while let Some(length) = bytes.get(at..at + 4) {
        at += 4 + u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
        count += u64::from(at <= bytes.len());
    }
    count
}

/// How many records a spool holds by the size of its file, where its records are of one size; 0 where it is not there.
pub(crate) fn records_in_file(spool: Spool, dir: &Path) -> u64 {
    let bytes =
        |path: PathBuf| path.metadata().map_or(0, |file| file.len()).saturating_sub(HEADER_BYTES as u64);
    let bytes = bytes(spool.carried_path(dir)) + bytes(spool.path(dir));
    bytes.checked_div(spool.record_bytes() as u64).unwrap_or(0)
}

/// Creates the file of a spool, with its header.
pub(crate) fn create(spool: Spool, dir: &Path) -> Result<File> {
    let path = spool.path(dir);
    let mut file = File::create_new(&path).on("create", &path)?;
    file.write_all(&spool.header()).on("write", &path)?;
    Ok(file)
}

/// Reads the whole records of a spool, one after the other.
pub(crate) struct SpoolReader {
    spool: Spool,
    path: PathBuf,
    file: File,
    /// What has been read of the file and not been passed: everything from the record to `read`.
    bytes: Vec<u8>,
    record: Range<usize>,
    read: usize,
    /// Where in the file the next byte is read.
    place: u64,
    /// Sizes as the header gives them: of a record, or 0, and of its fixed part.
    record_bytes: usize,
    least_bytes: usize,
}

impl SpoolReader {
    /// Opens the spool; `None` when it is not there, or was killed before its header was whole.
    pub(crate) fn open(spool: Spool, dir: &Path) -> Result<Option<SpoolReader>> {
        SpoolReader::open_at(spool, spool.path(dir))
    }

    /// As [`SpoolReader::open`], of a file of that kind elsewhere.
    pub(crate) fn open_at(spool: Spool, path: PathBuf) -> Result<Option<SpoolReader>> {
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::Disk { action: "open", path, source }),
        };
        let (record_bytes, least_bytes) = (spool.record_bytes(), spool.least_bytes());
        let bytes = vec![0; READ_BYTES];
        let mut reader = SpoolReader {
            spool,
            path,
            file,
            bytes,
            record: 0..0,
            read: 0,
            place: 0,
            record_bytes,
            least_bytes,
        };
        Ok(if reader.header_is_whole()? { Some(reader) } else { None })
    }

    fn header_is_whole(&mut self) -> Result<bool> {
        if !self.fill(HEADER_BYTES)? {
            return Ok(false);
        }
        let header: [u8; HEADER_BYTES] = self.record().try_into().expect("it was filled");
        let number = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
        if &header[..8] != MAGIC {
            return Err(Error::Damaged { path: self.path.clone(), what: "it is not a spool".into() });
        }
        let found = number(8);
        if found > SCHEMA_VERSION {
            return Err(Error::LaterSchema { path: self.path.clone(), found, known: SCHEMA_VERSION });
        }
        self.record_bytes = number(12) as usize;
        self.least_bytes = if found == 1 { self.spool.least_bytes_1() } else { number(28) as usize };
        let named = header[16..28] == self.spool.header()[16..28];
        if !named || ![0, self.least_bytes].contains(&self.record_bytes) || self.least_bytes == 0 {
            let what = format!("its header is not that of the {} spool", self.spool.name());
            return Err(Error::Damaged { path: self.path.clone(), what });
        }
        Ok(true)
    }

    /// The next whole record, or `None` where the whole records end.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>> {
        let mut size = self.record_bytes;
        if size == 0 {
            if !self.fill(4)? {
                return Ok(None);
            }
            size = u32::from_le_bytes(self.record().try_into().expect("four bytes")) as usize;
            if size < self.least_bytes || size > RECORD_BYTES_MAX {
                return Ok(None);
            }
        }
        Ok(if self.fill(size)? { Some(self.record()) } else { None })
    }

    /// Calls `each` with every row and what lies behind it.
    pub(crate) fn for_each<R: Record>(&mut self, mut each: impl FnMut(R, &[u8]) -> Result<()>) -> Result<()> {
        let least = self.least_bytes;
        while let Some(record) = self.next()? {
            let (row, tail) = record.split_at(least);
            each(R::take(row), tail)?;
        }
        Ok(())
    }

    /// Size of a record's fixed part in this file.
    pub(crate) fn least_bytes(&self) -> usize {
        self.least_bytes
    }

    /// Where in the file the record that was read last ends.
    pub(crate) fn place(&self) -> u64 {
        self.place
    }

    /// Goes on where a record ends that was read before: see [`SpoolReader::place`].
    pub(crate) fn skip_to(&mut self, place: u64) -> Result<()> {
        let sought = self.file.seek(SeekFrom::Start(place));
        sought.map_err(|source| Error::Disk { action: "read", path: self.path.clone(), source })?;
        (self.record, self.read, self.place) = (0..0, 0, place);
        Ok(())
    }

    /// What was filled last.
    fn record(&self) -> &[u8] {
        &self.bytes[self.record.clone()]
    }

    /// Makes the next `size` bytes the record; `false` when the file ends before.
    #[inline]
    fn fill(&mut self, size: usize) -> Result<bool> {
        if self.read - self.record.end < size && !self.refill(size)? {
            return Ok(false);
        }
        self.record = self.record.end..self.record.end + size;
        self.place += size as u64;
        Ok(true)
    }

    /// Reads on until `size` bytes are there; `false` when the file ends before.
    #[cold]
    fn refill(&mut self, size: usize) -> Result<bool> {
        self.bytes.copy_within(self.record.end..self.read, 0);
        self.read -= self.record.end;
        self.record = 0..0;
        self.bytes.resize(self.bytes.len().max(size), 0);
        while self.read < size {
            match self.file.read(&mut self.bytes[self.read..]) {
                Ok(0) => return Ok(false),
                Ok(count) => self.read += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::Disk { action: "read", path: self.path.clone(), source }),
            }
        }
        Ok(true)
    }
}

/// Whether any row has been written to the spools of a recording; `None` where there are no spools, because it is
/// finished or was never begun.
pub fn holds_rows(dir: &Path) -> Option<bool> {
    let sizes = Spool::ALL.iter().filter_map(|spool| Some(spool.path(dir).metadata().ok()?.len()));
    sizes.map(|bytes| bytes > HEADER_BYTES as u64).reduce(|some, more| some || more)
}

pub(crate) const HEADER_BYTES: usize = 32;
/// Bytes of a file that are read at a time.
const READ_BYTES: usize = 256 << 10;
const MAGIC: &[u8; 8] = b"MQTTLABS";
/// No frame is larger, and no payload is kept beyond it: a greater length is damage.
const RECORD_BYTES_MAX: usize = 16 << 20;
/// Of a longer payload only its beginning is kept.
const PAYLOAD_BYTES_MAX: usize = 8 << 20;
