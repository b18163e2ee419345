//! Frames out of a capture file: pcapng, classic pcap, snoop or Network Monitor's, told apart by their first bytes.
//!
//! [`CaptureReader`] takes any [`Read`], a pipe included, and holds one block at a time, so that memory does not grow
//! with the file. A file that ends inside a block (the capturing program was killed) ends there without an
//! error, and [`CaptureReader::truncated`] says so.
//!
//! What was dropped before it reached the file is read, too: [`CaptureReader::dropped`]. So are secrets of TLS connections:
//! [`CaptureReader::take_secrets`].
//!
//! What it does not do: decompress (pipe `zstd -dc` or `gzip -dc` into it), follow name resolution blocks, or read
//! custom blocks; they are skipped.

mod netmon;
pub(crate) mod others;
mod own;
mod pcap;
mod pcapng;
mod snoop;
mod source;

use std::io::Read;

use mqttlab_units::Instant;

use crate::CaptureError;
use crate::link::LinkType;
pub use own::LinkTransit;
use source::ByteSource;

/// The largest packet block that is accepted. Offloaded segments reach 64 KiB, loopback may exceed that.
const BLOCK_MAX: u32 = 64 << 20;

/// What a link carried, as captured.
#[derive(Clone, Copy, Debug)]
pub struct CapturedFrame<'a> {
    /// When it was captured: nanoseconds since the Unix epoch, or since the start of the run for our own.
    pub time: Instant,
    /// Whether the file says when; else `time` is that of the frame before.
    pub is_timed: bool,
    /// Which interface of the file, counted over all its sections.
    pub interface: u32,
    /// How the first bytes of `data` are to be read.
    pub link_type: LinkType,
    /// Bytes on the link, which the snap length may have cut in `data`.
    pub original_len: u32,
    /// The captured bytes.
    pub data: &'a [u8],
}

/// Where a frame lies in the source's buffer, so that the borrow of `data` starts only when all is parsed.
struct Located {
    time: Instant,
    is_timed: bool,
    interface: u32,
    link_type: LinkType,
    original_len: u32,
    data: std::ops::Range<usize>,
    block_len: usize,
}

enum Format {
    Pcap(pcap::PcapHeader),
    Pcapng(Box<pcapng::Sections>),
    Snoop(snoop::SnoopHeader),
    Netmon(netmon::NetmonHeader),
}

/// First bytes that say what a file is that is no capture.
const HEAD_BYTES: usize = 256;

/// Reads a capture frame by frame.
///
/// ```
/// # fn main() -> Result<(), mqttlab_capture::CaptureError> {
/// // A pcap header (little endian, microseconds, raw IP) and no frames.
/// let file = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0];
/// let mut reader = mqttlab_capture::CaptureReader::new(&file[..])?;
/// assert!(reader.next_frame()?.is_none());
/// # Ok(()) }
/// ```
pub struct CaptureReader<R> {
    source: ByteSource<R>,
    format: Format,
    pending: usize,
    truncated: bool,
}

impl<R: Read> CaptureReader<R> {
    /// Reads the file header.
    ///
    /// # Errors
    /// [`CaptureError::NotACapture`] when the first bytes belong to neither format, [`CaptureError::Io`] when reading fails.
    pub fn new(reader: R) -> Result<Self, CaptureError> {
        let mut source = ByteSource::new(reader);
        source.fill(4)?;
        let format = if source.bytes().starts_with(&pcapng::SECTION_HEADER.to_le_bytes()) {
            Format::Pcapng(Box::default())
        } else if source.bytes().starts_with(&snoop::MAGIC[..4]) && source.fill(8)? && is_snoop(&source) {
            Format::Snoop(snoop::SnoopHeader::read(&mut source)?)
        } else if netmon::MAGICS.iter().any(|magic| source.bytes().starts_with(magic)) {
            Format::Netmon(netmon::NetmonHeader::read(&mut source)?)
        } else if let Some(header) = pcap::PcapHeader::read(&mut source)? {
            Format::Pcap(header)
        } else {
            source.fill(HEAD_BYTES)?;
            let first = source.bytes().iter().take(HEAD_BYTES).copied().collect();
            return Err(CaptureError::NotACapture { first });
        };
        Ok(CaptureReader { source, format, pending: 0, truncated: false })
    }

    /// The next frame, or `None` at the end.
    ///
    /// # Errors
    /// [`CaptureError::Malformed`] when a length contradicts the format, [`CaptureError::Io`] when reading fails.
    pub fn next_frame(&mut self) -> Result<Option<CapturedFrame<'_>>, CaptureError> {
        Ok(self.next_placed()?.map(|(frame, _)| frame))
    }

    /// Likewise, with the place of its first byte in the file.
    ///
    /// # Errors
    /// As [`CaptureReader::next_frame`].
    pub(crate) fn next_placed(&mut self) -> Result<Option<(CapturedFrame<'_>, u64)>, CaptureError> {
        self.source.consume(std::mem::take(&mut self.pending));
        let located = match &mut self.format {
            Format::Pcap(header) => header.next(&mut self.source, &mut self.truncated)?,
            Format::Snoop(header) => header.next(&mut self.source, &mut self.truncated)?,
            Format::Netmon(header) => header.next(&mut self.source, &mut self.truncated)?,
            Format::Pcapng(sections) => sections.next(&mut self.source, &mut self.truncated)?,
        };
        let Some(located) = located else { return Ok(None) };
        self.pending = located.block_len;
        let place = self.source.offset() + located.data.start as u64;
        let frame = CapturedFrame {
            time: located.time,
            is_timed: located.is_timed,
            interface: located.interface,
            link_type: located.link_type,
            original_len: located.original_len,
            data: &self.source.bytes()[located.data],
        };
        Ok(Some((frame, place)))
    }

    /// Frames that the capture dropped, as far as the file says by now.
    pub fn dropped(&self) -> DroppedFrames {
        match &self.format {
            Format::Pcap(_) | Format::Netmon(_) => DroppedFrames::default(),
            Format::Snoop(header) => DroppedFrames { between: header.dropped_between, anywhere: 0 },
            Format::Pcapng(sections) => sections.dropped(),
        }
    }

    /// Whether its times are in whole milliseconds, which is more than many latencies.
    pub fn is_coarse(&self) -> bool {
        matches!(&self.format, Format::Netmon(header) if header.is_coarse())
    }

    /// Whether mqttlab wrote it, as a section that was read says: frames have the time at which they came to their sender's link,
    /// and [`CaptureReader::take_transit`] may say when they arrived.
    pub fn is_own(&self) -> bool {
        matches!(&self.format, Format::Pcapng(sections) if sections.is_own())
    }

    /// How the last frame crossed its link, where mqttlab wrote that down.
    pub fn take_transit(&mut self) -> Option<LinkTransit> {
        match &mut self.format {
            Format::Pcap(_) | Format::Snoop(_) | Format::Netmon(_) => None,
            Format::Pcapng(sections) => sections.take_transit(),
        }
    }

    /// When the run of mqttlab's began that the capture holds from its beginning to its end; counted from 1970.
    pub fn run_started(&self) -> Option<Instant> {
        match &self.format {
            Format::Pcap(_) | Format::Snoop(_) | Format::Netmon(_) => None,
            Format::Pcapng(sections) => sections.started(),
        }
    }

    /// From when to when the run was measured that the capture holds; counted from its beginning.
    pub fn run_measured(&self) -> Option<[Instant; 2]> {
        match &self.format {
            Format::Pcap(_) | Format::Snoop(_) | Format::Netmon(_) => None,
            Format::Pcapng(sections) => sections.measured(),
        }
    }

    /// Secrets of TLS connections that have come since they were taken last, as the text of a key log. They stand before the
    /// frames that they open (draft-ietf-opsawg-pcapng §4.7).
    pub fn take_secrets(&mut self) -> Vec<u8> {
        match &mut self.format {
            Format::Pcap(_) | Format::Snoop(_) | Format::Netmon(_) => Vec::new(),
            Format::Pcapng(sections) => sections.take_secrets(),
        }
    }

    /// Whether the file ended inside a block.
    pub fn truncated(&self) -> bool {
        self.truncated
    }
}

fn is_snoop<R: Read>(source: &ByteSource<R>) -> bool {
    source.bytes().starts_with(snoop::MAGIC)
}

/// Frames that were seen and are not in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DroppedFrames {
    /// As the frames themselves say (`epb_dropcount`): between the last frame and the one before.
    pub between: u64,
    /// As the interfaces' statistics say (`isb_ifdrop`, `isb_osdrop`): anywhere in the section.
    pub anywhere: u64,
}

/// Reads integers in the byte order of a file or section.
#[derive(Clone, Copy, Debug, Default)]
struct ByteOrder {
    big: bool,
}

impl ByteOrder {
    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let bytes = [bytes[at], bytes[at + 1]];
        if self.big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }

    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let bytes = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        if self.big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let (first, second) = (u64::from(self.u32(bytes, at)), u64::from(self.u32(bytes, at + 4)));
        if self.big { first << 32 | second } else { second << 32 | first }
    }
}
