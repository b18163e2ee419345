//! pcapng: sections of blocks (draft-ietf-opsawg-pcapng).

use std::io::Read;
use std::sync::Arc;

use mqttlab_recording::{Direction, Transit};
use mqttlab_units::Instant;

use super::own::{self, LinkTransit};
use super::source::ByteSource;
use super::{BLOCK_MAX, ByteOrder, DroppedFrames, Located};
use crate::CaptureError;
use crate::link::LinkType;

pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
/// Obsolete, but still written by old tools.
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const DECRYPTION_SECRETS: u32 = 10;

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const OPTION_END: u16 = 0;
const OPTION_COMMENT: u16 = 1;
const OPTION_NAME: u16 = 2;
/// The program that wrote a section.
const OPTION_APPLICATION: u16 = 4;
const OPTION_DROP_COUNT: u16 = 4;
const OPTION_INTERFACE_DROPPED: u16 = 5;
const OPTION_SYSTEM_DROPPED: u16 = 7;
const OPTION_TIME_RESOLUTION: u16 = 9;
const OPTION_TIME_OFFSET: u16 = 14;
/// Secrets as a TLS key log (draft-ietf-opsawg-pcapng §4.7).
const SECRETS_TLS: u32 = 0x544c_534b;
/// Secrets that nobody has taken yet; a hostile file could repeat them forever.
const SECRETS_MAX: usize = 64 << 20;
/// Type, length and the repeated length at the end.
const BLOCK_OVERHEAD: u32 = 12;
/// A hostile file could describe interfaces forever.
const INTERFACES_MAX: usize = 65_536;

/// The sections read so far: the byte order and interfaces of the current one.
#[derive(Default)]
pub(super) struct Sections {
    order: ByteOrder,
    interfaces: Vec<Interface>,
    interfaces_before: u32,
    last_time: Instant,
    dropped: DroppedFrames,
    secrets: Vec<u8>,
    is_own: bool,
    /// When the run began of which the section before the first frame holds all.
    started: Option<Instant>,
    /// From when to when that run was measured.
    measured: Option<[Instant; 2]>,
    /// How the last frame crossed its link.
    transit: Option<LinkTransit>,
}

#[derive(Clone)]
struct Interface {
    link_type: LinkType,
    snap_len: u32,
    resolution: Resolution,
    offset_s: i64,
    /// Frames that its statistics call dropped.
    dropped: u64,
    /// The link and direction that its name says, in captures of our own.
    link: Option<(Arc<str>, Direction)>,
}

/// What one tick of an interface's timestamps is.
#[derive(Clone, Copy)]
enum Resolution {
    /// 10^-n s.
    Decimal(u32),
    /// 2^-n s.
    Binary(u32),
}

impl Sections {
    pub(super) fn next<R: Read>(
        &mut self,
        source: &mut ByteSource<R>,
        truncated: &mut bool,
    ) -> Result<Option<Located>, CaptureError> {
        loop {
            if !source.fill(12)? {
                *truncated = !source.bytes().is_empty();
                return Ok(None);
            }
            let (kind, length) = self.block_header(source)?;
            if !matches!(
                kind,
                SECTION_HEADER
                    | INTERFACE_DESCRIPTION
                    | PACKET
                    | SIMPLE_PACKET
                    | INTERFACE_STATISTICS
                    | ENHANCED_PACKET
                    | DECRYPTION_SECRETS
            ) {
                if !source.skip(u64::from(length))? {
                    *truncated = true;
                    return Ok(None);
                }
                continue;
            }
            if length > BLOCK_MAX {
                return Err(malformed(source, "a block is longer than any link's frame"));
            }
            if !source.fill(length as usize)? {
                *truncated = true;
                return Ok(None);
            }
            if let Some(located) = self.block(source, kind, length)? {
                return Ok(Some(located));
            }
            source.consume(length as usize);
        }
    }

    /// The type and total length of the block ahead; a section header sets the byte order it is read in.
    fn block_header<R: Read>(&mut self, source: &ByteSource<R>) -> Result<(u32, u32), CaptureError> {
        let bytes = source.bytes();
        if bytes[..4] == SECTION_HEADER.to_le_bytes() {
            self.order = match u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) {
                BYTE_ORDER_MAGIC => ByteOrder { big: false },
                magic if magic.swap_bytes() == BYTE_ORDER_MAGIC => ByteOrder { big: true },
                _ => return Err(malformed(source, "a section header has no byte-order magic")),
            };
        }
        let (kind, length) = (self.order.u32(bytes, 0), self.order.u32(bytes, 4));
        if length < BLOCK_OVERHEAD {
            return Err(malformed(source, "a block is shorter than its own header"));
        }
        // Some writers forget the padding in the length; the format asks readers to round up.
        let padded = length.checked_next_multiple_of(4).unwrap_or(!3);
        Ok((kind, padded))
    }

    fn block<R: Read>(
        &mut self,
        source: &ByteSource<R>,
        kind: u32,
        length: u32,
    ) -> Result<Option<Located>, CaptureError> {
        let block = &source.bytes()[..length as usize];
        match kind {
            SECTION_HEADER => {
                self.interfaces_before = self.interfaces_before.saturating_add(self.interfaces.len() as u32);
                self.interfaces.clear();
                let (order, options) = (self.order, block.get(24..block.len() - 4).unwrap_or_default());
                let (mut is_own, mut started, mut measured) = (false, None, None);
                each_option(order, options, |code, value| match code {
                    OPTION_APPLICATION => is_own |= value.starts_with(b"mqttlab"),
                    OPTION_COMMENT => {
                        started = started.or(own::started(value));
                        measured = measured.or(own::measured(value));
                    }
                    _ => {}
                });
                self.is_own |= is_own;
                self.started = started.filter(|_| is_own);
                self.measured = measured.filter(|_| is_own);
                Ok(None)
            }
            INTERFACE_DESCRIPTION => {
                if block.len() < 20 || self.interfaces.len() >= INTERFACES_MAX {
                    return Err(malformed(
                        source,
                        "an interface description is too short, or there are too many",
                    ));
                }
                self.interfaces.push(Interface::parse(self.order, block));
                Ok(None)
            }
            INTERFACE_STATISTICS => {
                self.statistics(length as usize, source);
                Ok(None)
            }
            DECRYPTION_SECRETS => {
                self.keep_secrets(length as usize, source);
                Ok(None)
            }
            _ => match self.packet(kind, block) {
                Some(located) => Ok(Some(located)),
                None => Err(malformed(source, "a packet block contradicts its own length or interface")),
            },
        }
    }

    /// Frames that the capture dropped, as far as it has said.
    pub(super) fn dropped(&self) -> DroppedFrames {
        self.dropped
    }

    /// Whether mqttlab wrote it.
    pub(super) fn is_own(&self) -> bool {
        self.is_own
    }

    /// When the run began that it holds.
    pub(super) fn started(&self) -> Option<Instant> {
        self.started
    }

    /// From when to when that run was measured, on its own clock.
    pub(super) fn measured(&self) -> Option<[Instant; 2]> {
        self.measured
    }

    /// How the last frame crossed its link.
    pub(super) fn take_transit(&mut self) -> Option<LinkTransit> {
        self.transit.take()
    }

    /// Secrets that have come since they were taken last.
    pub(super) fn take_secrets(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.secrets)
    }

    fn keep_secrets<R: Read>(&mut self, length: usize, source: &ByteSource<R>) {
        let (block, order) = (&source.bytes()[..length], self.order);
        let Some(fields) = block.get(8..16) else { return };
        let Some(secrets) = block.get(16..16 + order.u32(fields, 4) as usize) else { return };
        if order.u32(fields, 0) == SECRETS_TLS && self.secrets.len() + secrets.len() < SECRETS_MAX {
            self.secrets.extend_from_slice(secrets);
            self.secrets.push(b'\n');
        }
    }

    /// What an interface's statistics say that it dropped, from the start of its capture on.
    fn statistics<R: Read>(&mut self, length: usize, source: &ByteSource<R>) {
        let (block, order) = (&source.bytes()[..length], self.order);
        let Some(options) = block.get(20..length - 4) else { return };
        let Some(interface) = self.interfaces.get_mut(order.u32(block, 8) as usize) else { return };
        let mut dropped = 0_u64;
        each_option(order, options, |code, value| {
            if matches!(code, OPTION_INTERFACE_DROPPED | OPTION_SYSTEM_DROPPED) && value.len() == 8 {
                // A capture that did not count says so by the largest number there is.
                let count = order.u64(value, 0);
                dropped = dropped.saturating_add(if count == u64::MAX { 0 } else { count });
            }
        });
        self.dropped.anywhere =
            self.dropped.anywhere.saturating_add(dropped.saturating_sub(interface.dropped));
        interface.dropped = interface.dropped.max(dropped);
    }

    fn packet(&mut self, kind: u32, block: &[u8]) -> Option<Located> {
        let order = self.order;
        let body_end = block.len() - 4;
        let (id, data, captured, original_len) = match kind {
            SIMPLE_PACKET if block.len() >= 16 => {
                let original = order.u32(block, 8);
                let snap_len = self.interfaces.first()?.snap_len;
                let limit = if snap_len == 0 { u32::MAX } else { snap_len };
                (0, 12, original.min(limit).min(body_end as u32 - 12), original)
            }
            ENHANCED_PACKET if block.len() >= 32 => {
                (order.u32(block, 8), 28, order.u32(block, 20), order.u32(block, 24))
            }
            PACKET if block.len() >= 32 => {
                (u32::from(order.u16(block, 8)), 28, order.u32(block, 20), order.u32(block, 24))
            }
            _ => return None,
        };
        let interface = self.interfaces.get(id as usize)?.clone();
        let data = data..data + captured as usize;
        if data.end > body_end {
            return None;
        }
        self.dropped.between = 0;
        self.transit = None;
        if kind == ENHANCED_PACKET {
            let options = block.get(data.end.next_multiple_of(4)..body_end).unwrap_or_default();
            let (is_own, mut transit) = (self.is_own, None);
            each_option(order, options, |code, value| match code {
                OPTION_DROP_COUNT if value.len() == 8 => self.dropped.between = order.u64(value, 0),
                OPTION_COMMENT if is_own && transit.is_none() => {
                    transit = std::str::from_utf8(value).ok().and_then(Transit::read);
                }
                _ => {}
            });
            self.transit = transit
                .zip(interface.link.clone())
                .map(|(transit, (link, direction))| LinkTransit { link, direction, transit });
        }
        // A simple packet block has no time of its own; it gets that of the frame before it.
        if kind != SIMPLE_PACKET {
            let ticks = u64::from(order.u32(block, 12)) << 32 | u64::from(order.u32(block, 16));
            self.last_time = interface.instant(ticks);
        }
        Some(Located {
            time: self.last_time,
            is_timed: kind != SIMPLE_PACKET,
            interface: self.interfaces_before.saturating_add(id),
            link_type: interface.link_type,
            original_len: original_len.max(captured),
            data,
            block_len: block.len(),
        })
    }
}

impl Interface {
    fn parse(order: ByteOrder, block: &[u8]) -> Interface {
        let mut interface = Interface {
            link_type: LinkType(order.u16(block, 8)),
            snap_len: order.u32(block, 12),
            resolution: Resolution::Decimal(6),
            offset_s: 0,
            dropped: 0,
            link: None,
        };
        each_option(order, &block[16..block.len() - 4], |code, value| match (code, value.len()) {
            (OPTION_NAME, _) => interface.link = own::link_of(value),
            (OPTION_TIME_RESOLUTION, 1) => interface.resolution = Resolution::parse(value[0]),
            (OPTION_TIME_OFFSET, 8) => interface.offset_s = order.u64(value, 0) as i64,
            _ => {}
        });
        interface
    }

    /// Times before the epoch become the epoch, times past the year 2554 the last instant there is.
    fn instant(&self, ticks: u64) -> Instant {
        let since = self.resolution.nanoseconds(ticks) + i128::from(self.offset_s) * 1_000_000_000;
        Instant::from_ns(since.clamp(0, i128::from(u64::MAX)) as u64)
    }
}

impl Resolution {
    fn parse(value: u8) -> Resolution {
        let exponent = u32::from(value & 0x7f);
        if value & 0x80 == 0 { Resolution::Decimal(exponent) } else { Resolution::Binary(exponent) }
    }

    fn nanoseconds(self, ticks: u64) -> i128 {
        let ticks = i128::from(ticks);
        match self {
            Resolution::Decimal(exponent @ 0..=9) => ticks * 10_i128.pow(9 - exponent),
            // Beyond 10^-28 s the 64-bit counter cannot reach a nanosecond.
            Resolution::Decimal(exponent) => {
                10_i128.checked_pow(exponent - 9).map_or(0, |divisor| ticks / divisor)
            }
            Resolution::Binary(exponent) => ticks.saturating_mul(1_000_000_000) >> exponent.min(126),
        }
    }
}

/// Calls `each` with the code and the value of every option (draft-ietf-opsawg-pcapng §3.5).
fn each_option(order: ByteOrder, mut options: &[u8], mut each: impl FnMut(u16, &[u8])) {
    while options.len() >= 4 {
        let (code, length) = (order.u16(options, 0), usize::from(order.u16(options, 2)));
        let Some(value) = options.get(4..4 + length) else { break };
        if code == OPTION_END {
            break;
        }
        each(code, value);
        options = options.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
    }
}

fn malformed<R: Read>(source: &ByteSource<R>, problem: &'static str) -> CaptureError {
    CaptureError::Malformed { offset: source.offset(), problem }
}
