//! Solaris's snoop, version 2 (RFC 1761): a file header, then records, all in network byte order.

use std::io::Read;

use mqttlab_units::Instant;

use super::source::ByteSource;
use super::{BLOCK_MAX, ByteOrder, Located};
use crate::CaptureError;
use crate::link::LinkType;

pub(super) const MAGIC: &[u8] = b"snoop\0\0\0";
const FILE_HEADER_LEN: usize = 16;
const RECORD_HEADER_LEN: usize = 24;
const BIG: ByteOrder = ByteOrder { big: true };

pub(super) struct SnoopHeader {
    link_type: LinkType,
    /// Frames that were dropped before the last record, and between it and the one before.
    dropped: u32,
    pub(super) dropped_between: u64,
}

impl SnoopHeader {
    pub(super) fn read<R: Read>(source: &mut ByteSource<R>) -> Result<SnoopHeader, CaptureError> {
        let problem = "a snoop file of a version that is not read; convert it with: editcap -F pcapng IN OUT";
        if !source.fill(FILE_HEADER_LEN)? || BIG.u32(source.bytes(), 8) != 2 {
            return Err(CaptureError::Malformed { offset: 0, problem });
        }
        let link_type = match BIG.u32(source.bytes(), 12) {
            0 | 4 => LinkType::ETHERNET,
            8 => LinkType(10),
            // A number without an equal here is named as it stands.
            other => LinkType(u16::try_from(other).map_or(u16::MAX, |other| SNOOP_LINKS + other.min(0xff))),
        };
        source.consume(FILE_HEADER_LEN);
        Ok(SnoopHeader { link_type, dropped: 0, dropped_between: 0 })
    }

    pub(super) fn next<R: Read>(
        &mut self,
        source: &mut ByteSource<R>,
        truncated: &mut bool,
    ) -> Result<Option<Located>, CaptureError> {
        if !source.fill(RECORD_HEADER_LEN)? {
            *truncated = !source.bytes().is_empty();
            return Ok(None);
        }
        let header = source.bytes();
        let [original_len, captured, block_len, dropped, seconds, micros] =
            [0, 4, 8, 12, 16, 20].map(|at| BIG.u32(header, at));
        if block_len > BLOCK_MAX || captured > block_len.saturating_sub(RECORD_HEADER_LEN as u32) {
            let problem = "a record's lengths contradict one another";
            return Err(CaptureError::Malformed { offset: source.offset(), problem });
        }
        if !source.fill(block_len as usize)? {
            *truncated = true;
            return Ok(None);
        }
        self.dropped_between = u64::from(dropped.saturating_sub(self.dropped));
        self.dropped = dropped;
        Ok(Some(Located {
            time: Instant::from_ns(u64::from(seconds) * 1_000_000_000 + u64::from(micros) * 1_000),
            is_timed: true,
            interface: 0,
            link_type: self.link_type,
            original_len: original_len.max(captured),
            data: RECORD_HEADER_LEN..RECORD_HEADER_LEN + captured as usize,
            block_len: block_len as usize,
        }))
    }
}

/// Numbers that no link type has: those of snoop are told by their distance.
const SNOOP_LINKS: u16 = 0xff00;
