//! What a send buffer takes where it counts memory and not bytes (Linux), and how it grows where it was not set.
//!
//! What is written is kept in skbs until it is acknowledged, and each counts its descriptor beside its bytes
//! (`sk_wmem_queued`). Another skb is begun as long as that is below the buffer's limit, and one that was begun is filled
//! (`sk_stream_memory_free` in `tcp_sendmsg_locked`). One that is full leaves at once if the window takes it
//! (`tcp_push_one`); those that wait are merged into one, which gives descriptors back (`tcp_grow_skb`, Linux 6.10), whenever
//! the queue is pushed: after each half of the peer's window (`forced_push`) and at the end of a write. What leaves of it is
//! split off again (`tso_fragment`). A writer that waits is woken when no more than two thirds of the
//! limit are queued (`sk_stream_min_wspace`).
//!
//! ```text
//!   una                next                end
//!    │ sent │   sent    │ unsent, merged     │
//! ```
//!
//! A buffer that was not set has room for two congestion windows of segments that were written one by one
//! (`tcp_sndbuf_expand`): from the handshake on for the initial one, later for the window that there is when a writer waits and
//! the window is not full (`tcp_new_space`). It does not shrink. So it is sized by the worst case, and holds many segments more
//! where a program writes much at once.
//!
//! Not modelled: how far the congestion window limits merging, the fragments of pages within skbs, and a host that is short of
//! memory for TCP.

use std::collections::VecDeque;
use std::ops::Range;

/// The skbs of what is written and not acknowledged.
#[derive(Clone, Debug, Default)]
pub(crate) struct SendMemory {
    skbs: VecDeque<Range<u64>>,
    /// What begins here or later has not been sent.
    next: u64,
    /// Up to where the queue was pushed (`pushed_seq`).
    pushed: u64,
}

/// What a write meets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteRoom {
    /// Of the buffer, in bytes of memory.
    pub limit: u64,
    /// The most that an skb holds.
    pub skb_bytes: u64,
    /// Half of the peer's largest window.
    pub half: u64,
    /// Where its present one ends.
    pub edge: u64,
}

/// How much memory so many segments of so many bytes take, each written by itself, twice: a block of a power of two for
/// payload, headers and shared information, and a descriptor (`tcp_sndbuf_expand`).
pub(crate) fn room_for_windows(segments: u64, mss: u64) -> u64 {
    2 * segments * ((mss + HEADERS + SHARED_INFO).next_power_of_two() + SKB)
}

impl SendMemory {
    /// Of what was sent, in segments with these ends, and of what was written behind that up to `end`, none of which is
    /// acknowledged before `una`.
    pub fn begin(una: u64, sent: impl Iterator<Item = u64>, end: u64) -> SendMemory {
        let mut memory = SendMemory { next: una, ..SendMemory::default() };
        for sent in sent {
            memory.append(memory.next..sent.min(end));
            memory.next = memory.next.max(sent.min(end));
        }
        memory.append(memory.next..end);
        memory.pushed = end;
        memory
    }

    fn append(&mut self, skb: Range<u64>) {
        if !skb.is_empty() {
            self.skbs.push_back(skb);
        }
    }

    /// Takes up to `bytes` behind `end`, and says how many.
    pub fn write(&mut self, room: WriteRoom, end: u64, bytes: u64) -> u64 {
        let mut at = end;
        while at < end + bytes {
            let left = end + bytes - at;
            // What was sent is in another queue of the kernel's (`tcp_rtx_queue`), which no write appends to.
            let is_open = |skb: &Range<u64>| skb.end == at && skb.start >= self.next;
            let begun = self.skbs.back().filter(|skb| is_open(skb)).map_or(0, |skb| skb.end - skb.start);
            if begun > 0 && begun < room.skb_bytes {
                at += left.min(room.skb_bytes - begun);
                self.skbs.back_mut().expect("it was begun").end = at;
            } else if self.queued() < room.limit {
                let start = at;
                at += left.min(room.skb_bytes);
                self.skbs.push_back(start..at);
            } else {
                break;
            }
            self.push(room);
        }
        self.merge_unsent();
        self.pushed = at;
        at - end
    }

    /// The last skb has grown. When it is full, and nothing waits before it, it leaves if the window takes it.
    fn push(&mut self, room: WriteRoom) {
        let Some(last) = self.skbs.back().filter(|skb| skb.end - skb.start >= room.skb_bytes).cloned() else {
            return;
        };
        if last.start == self.next.max(1) && last.end <= room.edge {
            self.next = last.end;
        }
        if last.end > self.pushed.max(1) + room.half {
            self.pushed = last.end;
            self.merge_unsent();
        }
    }

    /// Everything before `una` was acknowledged, and everything before `next` has been sent.
    pub fn advance(&mut self, una: u64, next: u64) {
        if next > self.next {
            self.merge_unsent();
            self.next = next;
            // `tso_fragment`: what is left of an skb that was sent in part has a descriptor of its own.
            let place = self.skbs.partition_point(|skb| skb.end <= next);
            if self.skbs.get(place).is_some_and(|skb| skb.start < next) {
                let rest = next..self.skbs[place].end;
                self.skbs[place].end = next;
                self.skbs.insert(place + 1, rest);
            }
        }
        while self.skbs.pop_front_if(|skb| skb.end <= una).is_some() {}
        // `tcp_trim_head`: acknowledged in part, an skb gives its bytes back but keeps its descriptor.
        if let Some(first) = self.skbs.front_mut() {
            first.start = first.start.max(una);
        }
    }

    fn merge_unsent(&mut self) {
        let first = self.skbs.partition_point(|skb| skb.start < self.next);
        let end = self.skbs.back().map(|skb| skb.end);
        if let (Some(head), Some(end)) = (self.skbs.get_mut(first), end) {
            head.end = end;
            self.skbs.truncate(first + 1);
        }
    }

    /// Whether what leaves at a position is of the same skb as what left before it.
    pub fn continues(&self, position: u64) -> bool {
        let place = self.skbs.partition_point(|skb| skb.end <= position);
        self.skbs.get(place).is_some_and(|skb| skb.start < position)
    }

    /// Whether a writer that waits is woken.
    pub fn wakes(&self, limit: u64) -> bool {
        3 * self.queued() <= 2 * limit
    }

    fn queued(&self) -> u64 {
        let bytes = self.skbs.front().zip(self.skbs.back()).map_or(0, |(first, last)| last.end - first.start);
        bytes + self.skbs.len() as u64 * DESCRIPTOR
    }
}

/// `SKB_TRUESIZE` of the headers' room of an skb that TCP has allocated (Linux 6.18, by `SO_MEMINFO`).
pub(crate) const DESCRIPTOR: u64 = 832;
/// `sizeof(struct sk_buff)`, aligned.
const SKB: u64 = 256;
/// `MAX_TCP_HEADER` of a kernel without wireless networks and tunnels (Linux 6.18, by `SO_SNDBUF`).
const HEADERS: u64 = 256;
/// `sizeof(struct skb_shared_info)`.
const SHARED_INFO: u64 = 320;

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: WriteRoom = WriteRoom { limit: 4000, skb_bytes: 768, half: 768, edge: 1409 };

    /// Linux 6.18 with `tcp_wmem = 4000` and a window of 1408 bytes: segments, bytes that the program wrote, acknowledgements.
    #[test]
    fn a_buffer_of_4000_bytes_takes_what_a_kernel_s_does() {
        let mut memory = SendMemory::default();
        // One leaves at once, and two wait, as one.
        assert_eq!(memory.write(ROOM, 1, 20_000), 3 * 768);
        assert!(memory.continues(1000) && !memory.continues(769));
        memory.advance(769, 769 + 1408);
        assert!(!memory.wakes(4000));
        // All but 128 bytes is acknowledged, and these have left.
        memory.advance(769 + 1408, 3 * 768 + 1);
        assert!(memory.wakes(4000));
        let at = 3 * 768 + 1;
        assert_eq!(memory.write(WriteRoom { edge: at + 1280, ..ROOM }, at, 20_000), 2 * 768);
        memory.advance(at + 768, at + 2 * 768);
        assert!(memory.wakes(4000), "768 bytes in flight");
        let at = at + 2 * 768;
        // The second and the third are merged with the first, which does not fit the window.
        assert_eq!(memory.write(WriteRoom { edge: at + 640, ..ROOM }, at, 20_000), 3 * 768);
        memory.advance(at, at + 1408);
        assert!(!memory.wakes(4000));
        memory.advance(at + 1408, at + 3 * 768);
        assert!(memory.wakes(4000), "896 bytes in flight");
        let at = at + 3 * 768;
        assert_eq!(memory.write(WriteRoom { edge: at + 512, ..ROOM }, at, 20_000), 2 * 768);
    }

    /// Linux 6.18 with CUBIC and `TCP_MAXSEG`: `SO_SNDBUF` of a connection that was just opened.
    #[test]
    fn a_buffer_that_is_not_set_begins_as_a_kernel_s_does() {
        let begun = [88, 536, 1460, 9000].map(|mss| room_for_windows(10, mss));
        assert_eq!(begun, [25_600, 46_080, 46_080, 332_800]);
    }

    #[test]
    fn memory_that_is_looked_at_later_holds_what_was_sent_and_what_waits() {
        let mut memory = SendMemory::begin(101, [201, 1649, 3097].into_iter(), 5000);
        assert_eq!(memory.queued(), 4899 + 4 * DESCRIPTOR);
        assert!(memory.continues(4000) && !memory.continues(3097));
        memory.advance(1649, 4545);
        assert_eq!(memory.queued(), 3351 + 3 * DESCRIPTOR);
        let nothing = SendMemory::begin(101, std::iter::empty(), 101);
        assert_eq!(nothing.queued(), 0);
    }

    #[test]
    fn an_skb_that_was_begun_is_filled_whatever_the_buffer_holds() {
        let mut memory = SendMemory::default();
        let room = WriteRoom { limit: 4000, skb_bytes: 28_960, half: 30_000, edge: 1 };
        assert_eq!(memory.write(room, 1, 20_000), 20_000);
        assert_eq!(memory.write(room, 20_001, 20_000), 8_960);
        assert_eq!(memory.write(room, 28_961, 1), 0);
        memory.advance(27_961, 28_961);
        assert!(memory.wakes(4000));
        // What has been sent is not written to any more.
        assert_eq!(memory.write(room, 28_961, 100), 100);
        assert_eq!(memory.queued(), 1_100 + 2 * DESCRIPTOR);
    }

    #[test]
    fn an_empty_buffer_takes_something_however_small_it_is() {
        let mut memory = SendMemory::default();
        let room = WriteRoom { limit: 1, skb_bytes: 1448, half: 2000, edge: u64::MAX };
        assert_eq!(memory.write(room, 1, 10_000), 1448);
        memory.advance(1449, 1449);
        assert!(memory.wakes(1));
        assert_eq!(memory.write(room, 1449, 10_000), 1448);
    }
}
