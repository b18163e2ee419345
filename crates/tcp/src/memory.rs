//! What a receive buffer that was set offers as a window, where the buffer counts memory and not bytes (Linux 6.10 and later).
//!
//! A kernel keeps an arrived segment in a block of memory (`skb->truesize`) that is larger than its payload, and offers the
//! part of the buffer that payload would take (`tcp_win_from_space`): half of it at first, then what the largest segments
//! that came show (`tcp_measure_rcv_mss`, `scaling_ratio`). What is offered begins with whole segments
//! (`tcp_select_initial_window`) and grows by two with every segment (`tcp_grow_window`), as far as there is memory beside that
//! segment. A window that is not scaled moves in whole segments (`__tcp_select_window`).
//!
//! Not modelled: several segments in one block, devices whose blocks differ from those of virtual Ethernet, and the pruning of
//! a buffer that holds more memory than it may.

use std::num::NonZeroU8;

/// The memory of a receive buffer, in 256ths and bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveMemory {
    /// The part of memory that is payload, in 256ths.
    ratio: NonZeroU8,
    /// The window is never larger (`rcv_ssthresh`).
    ceiling: u32,
}

impl ReceiveMemory {
    /// Of a connection that offers this window at first.
    pub fn new(first_window: u64) -> ReceiveMemory {
        ReceiveMemory { ratio: RATIO_FIRST, ceiling: first_window as u32 }
    }

    /// A segment came in order, with so many bytes; `is_news` when it is longer than any before.
    pub fn on_data(&mut self, buffer: u64, length: u64, mss: u64, is_news: bool) {
        if is_news {
            let ratio = (length * 256 / truesize(length)).min(u8::MAX.into()) as u8;
            self.ratio = NonZeroU8::new(ratio).unwrap_or(NonZeroU8::MIN);
        }
        if length >= GROWS_FROM_BYTES {
            let left = buffer.saturating_sub(truesize(length));
            let grown = (u64::from(self.ceiling) + 2 * mss).min(self.payload_of(left));
            self.ceiling = self.ceiling.max(grown as u32);
        }
    }

    /// How many bytes an empty buffer offers, in steps of the window's scale: rounded up, as the kernel does.
    pub fn window(&self, buffer: u64, scale: u8) -> u64 {
        self.payload_of(buffer).min(self.ceiling.into()).next_multiple_of(1 << scale)
    }

    /// The window that is offered where it is not scaled: `last` is what was offered last, `unread` waits for the application, and
    /// `segment` is the largest segment that has come.
    pub fn unscaled_window(&self, buffer: u64, unread: u64, last: u64, segment: u64) -> u64 {
        let full = self.payload_of(buffer);
        let free = full.saturating_sub(unread);
        let segment = segment.min(full).max(1);
        // Too little to be worth a segment: better none than a silly window (RFC 1122 §4.2.3.3).
        if free < full / 2 && (free < full / 16 || free < segment) {
            return 0;
        }
        let free = free.min(self.ceiling.into());
        // Within a segment of what is free the last offer stands, so that the edge does not creep byte by byte.
        if last + segment <= free || last > free {
            free / segment * segment
        } else if segment == full && free > last + full / 2 {
            free
        } else {
            last
        }
    }

    fn payload_of(&self, memory: u64) -> u64 {
        (memory * u64::from(self.ratio.get())) >> 8
    }
}

/// The window of a SYN: the whole segments that fit into the part of the buffer that counts as payload.
pub(crate) fn first_window(buffer: u64, mss: u64) -> u64 {
    let payload = (buffer * u64::from(RATIO_FIRST.get())) >> 8;
    if payload > mss { payload / mss * mss } else { payload }
}

/// The memory of a segment with so many bytes of payload: a descriptor, and a block for payload, headers, the room that
/// drivers keep, and shared information. Blocks are powers of two up to four pages, pages beyond.
fn truesize(length: u64) -> u64 {
    let block = length + HEADERS + HEADROOM + SHARED_INFO;
    let block = if block <= 4 * PAGE { block.next_power_of_two() } else { block.next_multiple_of(PAGE) };
    DESCRIPTOR + block
}

/// `TCP_DEFAULT_SCALING_RATIO`.
const RATIO_FIRST: NonZeroU8 = NonZeroU8::new(128).expect("not zero");
/// Shorter segments do not make the window grow (`tcp_event_data_recv`).
const GROWS_FROM_BYTES: u64 = 128;
const PAGE: u64 = 4096;
/// `sizeof(struct sk_buff)`, aligned.
const DESCRIPTOR: u64 = 256;
/// `sizeof(struct skb_shared_info)`.
const SHARED_INFO: u64 = 320;
/// `NET_SKB_PAD`.
const HEADROOM: u64 = 64;
/// Of IP, and of TCP with timestamps.
const HEADERS: u64 = 52;

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux 6.18 with `tcp_rmem = 4000`: SYN and SYN-ACK offer 1460 and 1448, the next segments 12 × 128, and once segments of
    /// 768 bytes have come 11 × 128.
    #[test]
    fn a_buffer_of_4000_bytes_offers_what_a_kernel_does() {
        assert_eq!([first_window(4000, 1460), first_window(4000, 1448)], [1460, 1448]);
        let mut memory = ReceiveMemory::new(1460);
        assert_eq!(memory.window(4000, 7), 12 << 7);
        memory.on_data(4000, 768, 1448, true);
        assert_eq!(memory.window(4000, 7), 11 << 7);
    }

    #[test]
    fn full_segments_open_the_window_to_their_part_of_the_memory() {
        let mut memory = ReceiveMemory::new(first_window(65_536, 1460));
        memory.on_data(65_536, 1448, 1448, true);
        assert!(memory.window(65_536, 7) < 36_000, "it grows by two segments");
        (0..10).for_each(|_| memory.on_data(65_536, 1448, 1448, false));
        // 1448 of 2304 bytes, which the segment itself takes, too.
        assert_eq!(memory.window(65_536, 7), (63_232u64 * 160 / 256).next_multiple_of(128));
    }

    /// Linux 6.18 with `tcp_rmem = 8000` and no scale: 2920 in the SYN, 2304 when 768 bytes have been read, 1536 before, and 2896,
    /// never more, once segments are full.
    #[test]
    fn a_window_that_is_not_scaled_moves_in_whole_segments() {
        assert_eq!(first_window(8000, 1460), 2920);
        let mut memory = ReceiveMemory::new(2920);
        memory.on_data(8000, 768, 1448, true);
        assert_eq!(memory.unscaled_window(8000, 768, 2911, 768), 1536);
        assert_eq!(memory.unscaled_window(8000, 0, 1536, 768), 2304);
        memory.on_data(8000, 1448, 1448, true);
        (0..10).for_each(|_| memory.on_data(8000, 1448, 1448, false));
        assert_eq!(
            memory.unscaled_window(8000, 0, 2304, 1448),
            2304,
            "within a segment of what is free it stays"
        );
        assert_eq!(memory.unscaled_window(8000, 0, 1448, 1448), 2896);
        assert_eq!(memory.unscaled_window(8000, 3700, 1448, 1448), 0, "less than a segment");
    }

    /// Linux 6.18 with `tcp_rmem = 15000` and no scale: the 7291 bytes that were left of 7300 are offered for ever, so that messages
    /// of 7519 take a round trip more.
    #[test]
    fn a_window_within_a_segment_of_the_memory_stays() {
        let mut memory = ReceiveMemory::new(first_window(15_000, 1460));
        memory.on_data(15_000, 1460, 1460, true);
        (0..10).for_each(|_| memory.on_data(15_000, 1460, 1460, false));
        assert_eq!(memory.unscaled_window(15_000, 0, 7291, 1460), 7291);
    }
}
