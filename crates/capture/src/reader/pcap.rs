//! Classic pcap: a file header, then records (draft-ietf-opsawg-pcap), in the dialects that libraries have written.
//!
//! Records of modified libraries have further fields behind the four that all have. One of them writes the usual number at the
//! file's start, so that only the records tell: where those of the usual form contradict themselves, the others are tried.

use std::io::Read;

use mqttlab_units::Instant;

use super::source::ByteSource;
use super::{BLOCK_MAX, ByteOrder, Located};
use crate::CaptureError;
use crate::link::LinkType;

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
/// Of libraries that note interface, protocol and direction of each frame.
const MODIFIED: u32 = 0xa1b2_cd34;
/// Of Ixia's devices, which write the length of all records behind the file's header.
const IXIA_NANOSECONDS: u32 = 0x1c00_01ac;
const IXIA_MICROSECONDS: u32 = 0x1c00_01ab;
const FILE_HEADER_LEN: usize = 24;
/// Time, captured length, original length.
const RECORD_HEADER_LEN: usize = 16;
/// Behind the usual number: as it should be, Red Hat 6.1, Nokia.
const USUAL: &[usize] = &[RECORD_HEADER_LEN, 24, 20];
/// Behind [`MODIFIED`]: the patch of October 1999, SuSE 6.3.
const OF_MODIFIED: &[usize] = &[24, 28];

pub(super) struct PcapHeader {
    order: ByteOrder,
    fraction_ns: u64,
    link_type: LinkType,
    lengths: Lengths,
    snap_len: u32,
    /// Bytes before a record's frame.
    header_len: usize,
    /// Other lengths of it that are possible, until the first record is read.
    others: &'static [usize],
}

/// The order of a record's lengths.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lengths {
    CapturedFirst,
    /// Before version 2.3.
    OriginalFirst,
    /// In version 2.3, of which some files have the older order: the captured length is the lesser one.
    Either,
}

impl PcapHeader {
    /// `None` when the file does not start as pcap does.
    pub(super) fn read<R: Read>(source: &mut ByteSource<R>) -> Result<Option<PcapHeader>, CaptureError> {
        if !source.fill(FILE_HEADER_LEN)? {
            return Ok(None);
        }
        for big in [false, true] {
            let (order, bytes) = (ByteOrder { big }, source.bytes());
            let magic = order.u32(bytes, 0);
            let (fraction_ns, others, len) = match magic {
                MICROSECONDS => (1_000, USUAL, FILE_HEADER_LEN),
                NANOSECONDS => (1, &USUAL[..1], FILE_HEADER_LEN),
                MODIFIED => (1_000, OF_MODIFIED, FILE_HEADER_LEN),
                IXIA_MICROSECONDS => (1_000, &USUAL[..1], FILE_HEADER_LEN + 4),
                IXIA_NANOSECONDS => (1, &USUAL[..1], FILE_HEADER_LEN + 4),
                _ => continue,
            };
            // The upper half of the last field holds the length of the frame check sequence.
            let link = (order.u32(bytes, 20) & 0xffff) as u16;
            let version = (order.u16(bytes, 4), order.u16(bytes, 6));
            let mut header = PcapHeader {
                order,
                fraction_ns,
                link_type: LinkType(link),
                lengths: match version {
                    (2, 0..=2) | (543, _) => Lengths::OriginalFirst,
                    (2, 3) => Lengths::Either,
                    _ => Lengths::CapturedFirst,
                },
                snap_len: order.u32(bytes, 16),
                header_len: others[0],
                // Only the latest version was modified.
                others: if version == (2, 4) { others } else { &others[..1] },
            };
            if let (MICROSECONDS, (2, 2), Some(link)) = (magic, version, link_of_aix(link)) {
                (header.link_type, header.fraction_ns) = (link, 1);
                header.lengths = Lengths::Either;
            }
            if !source.fill(len)? {
                return Ok(None);
            }
            source.consume(len);
            return Ok(Some(header));
        }
        Ok(None)
    }

    pub(super) fn next<R: Read>(
        &mut self,
        source: &mut ByteSource<R>,
        truncated: &mut bool,
    ) -> Result<Option<Located>, CaptureError> {
        if self.others.len() > 1 {
            self.choose(source)?;
        }
        let header_len = self.header_len;
        if !source.fill(header_len)? {
            *truncated = !source.bytes().is_empty();
            return Ok(None);
        }
        let header = source.bytes();
        let seconds = u64::from(self.order.u32(header, 0));
        let fraction = u64::from(self.order.u32(header, 4));
        let (captured, original_len) = self.lengths(header);
        if captured > BLOCK_MAX {
            let problem = "a record is longer than any link's frame";
            return Err(CaptureError::Malformed { offset: source.offset(), problem });
        }
        let block_len = header_len + captured as usize;
        if !source.fill(block_len)? {
            *truncated = true;
            return Ok(None);
        }
        Ok(Some(Located {
            time: Instant::from_ns(seconds * 1_000_000_000 + fraction * self.fraction_ns),
            is_timed: true,
            interface: 0,
            link_type: self.link_type,
            original_len: original_len.max(captured),
            data: header_len..block_len,
            block_len,
        }))
    }

    /// A record's captured and original length.
    fn lengths(&self, header: &[u8]) -> (u32, u32) {
        let (one, other) = (self.order.u32(header, 8), self.order.u32(header, 12));
        let is_swapped =
            self.lengths == Lengths::OriginalFirst || self.lengths == Lengths::Either && one > other;
        if is_swapped { (other, one) } else { (one, other) }
    }

    /// Chooses the length of a record's header, by the first records. A pipe is not waited for, unless the first record looks as
    /// if it had further fields.
    fn choose<R: Read>(&mut self, source: &mut ByteSource<R>) -> Result<(), CaptureError> {
        let others = std::mem::take(&mut self.others);
        if !source.fill(RECORD_HEADER_LEN)? {
            return Ok(());
        }
        let (captured, _) = self.lengths(source.bytes());
        if captured > BLOCK_MAX {
            return Ok(());
        }
        let mut has_ended = false;
        let longest = others.iter().max().copied().unwrap_or_default();
        if self.may_be_modified(source.bytes()) || others[0] != RECORD_HEADER_LEN {
            has_ended = !source.fill(longest + captured as usize + RECORD_HEADER_LEN)?;
        }
        let bytes = source.bytes();
        let possible = others.iter().find(|&&len| {
            // One record that was cut may look like a whole one of another form.
            let least = if others[0] == RECORD_HEADER_LEN && len != RECORD_HEADER_LEN { 2 } else { 1 };
            self.is_consistent(bytes, len, has_ended, least)
        });
        self.header_len = possible.copied().unwrap_or(others[0]);
        Ok(())
    }

    /// Whether a first record may have an interface's number, a protocol and a kind of packet behind its lengths.
    fn may_be_modified(&self, bytes: &[u8]) -> bool {
        bytes.get(16..24).is_none_or(|more| self.order.u32(more, 0) <= 10_000 && more[6] <= 4 && more[7] == 0)
    }

    /// Whether the first records of what is visible, `least` of them, are as records should be, with headers of this length.
    fn is_consistent(&self, bytes: &[u8], header_len: usize, has_ended: bool, least: usize) -> bool {
        let mut at = 0;
        for judged in 0..RECORDS_JUDGED {
            let Some(header) = bytes.get(at..at + RECORD_HEADER_LEN) else {
                return judged >= least && (!has_ended || at == bytes.len());
            };
            let (captured, original) = self.lengths(header);
            let captured_max = self.snap_len.max(SNAP_LEN_USUAL);
            let fits = captured <= captured_max && captured <= original && original <= ORIGINAL_MAX;
            if !fits || self.order.u32(header, 4) >= 1_000_000 {
                return false;
            }
            at += header_len + captured as usize;
        }
        at <= bytes.len() || !has_ended
    }
}

/// The link type by the number that AIX has for an interface (RFC 1573), where it is one.
fn link_of_aix(number: u16) -> Option<LinkType> {
    match number {
        6 => Some(LinkType::ETHERNET),
        9 => Some(LinkType(6)),
        15 => Some(LinkType(10)),
        24 => Some(LinkType::NULL),
        _ => None,
    }
}

/// Records by which a dialect is told.
const RECORDS_JUDGED: usize = 3;
/// The longest record that tcpdump writes.
const SNAP_LEN_USUAL: u32 = 262_144;
/// No link has longer frames.
const ORIGINAL_MAX: u32 = 128 << 20;
