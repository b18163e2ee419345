//! Classic pcap: a file header, then records (draft-ietf-opsawg-pcap).

use std::io::Read;

use mqttlab_units::Instant;

use super::source::ByteSource;
use super::{BLOCK_MAX, ByteOrder, Located};
use crate::CaptureError;
use crate::link::LinkType;

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const FILE_HEADER_LEN: usize = 24;
const RECORD_HEADER_LEN: usize = 16;

pub(super) struct PcapHeader {
    order: ByteOrder,
    fraction_ns: u64,
    link_type: LinkType,
}

impl PcapHeader {
    /// `None` when the file does not start as pcap does.
    pub(super) fn read<R: Read>(source: &mut ByteSource<R>) -> Result<Option<PcapHeader>, CaptureError> {
        if !source.fill(FILE_HEADER_LEN)? {
            return Ok(None);
        }
        let bytes = source.bytes();
        for big in [false, true] {
            let order = ByteOrder { big };
            let fraction_ns = match order.u32(bytes, 0) {
                MICROSECONDS => 1_000,
                NANOSECONDS => 1,
                _ => continue,
            };
            // The upper half of the last field holds the length of the frame check sequence.
            let link_type = LinkType((order.u32(bytes, 20) & 0xffff) as u16);
            source.consume(FILE_HEADER_LEN);
            return Ok(Some(PcapHeader { order, fraction_ns, link_type }));
        }
        Ok(None)
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
        let seconds = u64::from(self.order.u32(header, 0));
        let fraction = u64::from(self.order.u32(header, 4));
        let captured = self.order.u32(header, 8);
        let original_len = self.order.u32(header, 12);
        if captured > BLOCK_MAX {
            let problem = "a record is longer than any link's frame";
            return Err(CaptureError::Malformed { offset: source.offset(), problem });
        }
        let block_len = RECORD_HEADER_LEN + captured as usize;
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
            data: RECORD_HEADER_LEN..block_len,
            block_len,
        }))
    }
}
