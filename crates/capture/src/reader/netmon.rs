//! Microsoft's Network Monitor, versions 1 and 2: a file header, frames one after the other, then a table of them.
//!
//! The header has the time at which the capture began on the clock of its zone, which it does not name: it is taken for UTC.
//! Since version 2.3 each frame has its own time in UTC.

use std::io::Read;

use mqttlab_units::Instant;

use super::source::ByteSource;
use super::{BLOCK_MAX, ByteOrder, Located};
use crate::CaptureError;
use crate::link::LinkType;

pub(super) const MAGICS: [&[u8]; 2] = [b"RTSS", b"GMBU"];
const FILE_HEADER_LEN: usize = 128;
const LITTLE: ByteOrder = ByteOrder { big: false };

pub(super) struct NetmonHeader {
    /// Major and minor version.
    version: (u8, u8),
    link_type: LinkType,
    start_ns: u64,
    /// Where the frames end and the table begins.
    table: u64,
}

impl NetmonHeader {
    pub(super) fn read<R: Read>(source: &mut ByteSource<R>) -> Result<NetmonHeader, CaptureError> {
        let malformed = || CaptureError::Malformed { offset: 0, problem: UNREADABLE };
        if !source.fill(FILE_HEADER_LEN)? {
            return Err(malformed());
        }
        let bytes = source.bytes();
        let version = (bytes[5], bytes[4]);
        let table = u64::from(LITTLE.u32(bytes, 24));
        let date = [8, 10, 14, 16, 18, 20].map(|at| u64::from(LITTLE.u16(bytes, at)));
        let start_s = seconds(date).filter(|_| matches!(version.0, 1 | 2) && table >= FILE_HEADER_LEN as u64);
        let start_ns =
            start_s.ok_or_else(malformed)? * 1_000_000_000 + u64::from(LITTLE.u16(bytes, 22)) * 1_000_000;
        let link_type = link_of(LITTLE.u16(bytes, 6));
        source.consume(FILE_HEADER_LEN);
        Ok(NetmonHeader { version, link_type, start_ns, table })
    }

    pub(super) fn next<R: Read>(
        &mut self,
        source: &mut ByteSource<R>,
        truncated: &mut bool,
    ) -> Result<Option<Located>, CaptureError> {
        let header_len = if self.version.0 == 1 { 8 } else { 16 };
        loop {
            if source.offset() >= self.table {
                return Ok(None);
            }
            if !source.fill(header_len)? {
                *truncated = true;
                return Ok(None);
            }
            let header = source.bytes();
            let (delta_ns, original_len, captured) = if self.version.0 == 1 {
                let [original, captured] = [4, 6].map(|at| u32::from(LITTLE.u16(header, at)));
                (u64::from(LITTLE.u32(header, 0)) * 1_000_000, original, captured)
            } else {
                let delta = LITTLE.u64(header, 0).saturating_mul(1_000);
                (delta, LITTLE.u32(header, 8), LITTLE.u32(header, 12))
            };
            if captured > BLOCK_MAX {
                return Err(CaptureError::Malformed { offset: source.offset(), problem: UNREADABLE });
            }
            let data = header_len..header_len + captured as usize;
            let block_len = data.end + self.trailer_len();
            if !source.fill(block_len)? {
                *truncated = true;
                return Ok(None);
            }
            let trailer = &source.bytes()[data.end..block_len];
            let (mut time_ns, mut link_type) = (self.start_ns.saturating_add(delta_ns), self.link_type);
            if let Some(own) = trailer.get(..2) {
                let number = LITTLE.u16(own, 0);
                if number >= NO_FRAMES {
                    // What the program notes of itself and of the network.
                    source.consume(block_len);
                    continue;
                }
                link_type = link_of(number);
            }
            if trailer.len() == 15 {
                // Tenths of microseconds since 1601.
                time_ns = LITTLE.u64(trailer, 6).saturating_sub(SINCE_1601).saturating_mul(100);
            }
            return Ok(Some(Located {
                time: Instant::from_ns(time_ns),
                is_timed: true,
                interface: 0,
                link_type,
                original_len: original_len.max(captured),
                data,
                block_len,
            }));
        }
    }

    /// Version 1 has times in milliseconds.
    pub(super) fn is_coarse(&self) -> bool {
        self.version.0 == 1
    }

    /// What stands behind each frame: its link, a process, a time and its zone.
    fn trailer_len(&self) -> usize {
        match self.version {
            (2, 1) => 2,
            (2, 2) => 6,
            (2, 3..) => 15,
            _ => 0,
        }
    }
}

/// Seconds since 1970 of year, month, day, hour, minute and second.
fn seconds([year, month, day, hour, minute, second]: [u64; 6]) -> Option<u64> {
    if !(1970..=2400).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years that begin in March have their leap day at their end.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * years + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5 + day - 1;
    Some(days.checked_sub(DAYS_TO_1970)? * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// The link type by Network Monitor's number. From 0xe000 on these are the numbers of pcap.
fn link_of(number: u16) -> LinkType {
    match number {
        0 | 1 => LinkType::ETHERNET,
        2 => LinkType(6),
        3 => LinkType(10),
        7..=9 => LinkType::RAW,
        0xe000..NO_FRAMES => LinkType(number - 0xe000),
        _ => LinkType(u16::MAX),
    }
}

const UNREADABLE: &str =
    "a file of Network Monitor that is not as it should be; try: editcap -F pcapng IN OUT";
/// From this number on records are no frames.
const NO_FRAMES: u16 = 0xffe0;
/// From 1 March of the year 0 to 1970.
const DAYS_TO_1970: u64 = 719_468;
/// From 1601 to 1970, in tenths of microseconds.
const SINCE_1601: u64 = 116_444_736_000_000_000;
