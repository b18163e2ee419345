//! Linux's coalescing of writes into skbs (socket buffers), and why Nagle's algorithm lets some small segments go.
//!
//! What a program writes is coalesced into skbs of a full segment and at most 17 fragments (`MAX_SKB_FRAGS`). A write
//! continues the last fragment, or begins another one if the program has written to another socket in between, because
//! fragments are cut from one page for all of a thread's sockets. When there is no fragment left the skb is closed,
//! and Nagle's algorithm waits for the last skb of a queue only (`tcp_sendmsg_locked`, `tcp_write_xmit`). So a broker
//! that writes to a subscriber and acknowledges to the publisher in turn sends 17 acknowledgements at once.
//!
//! What it does not model: pages that end within a fragment, and more than one closed skb that waits.

/// The skb that is being filled.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SkbCoalescing {
    /// Position behind the last skb that was closed.
    pub closed: u64,
    start: u64,
    fragments: u8,
}

impl SkbCoalescing {
    /// So many bytes were written behind `end`, of which everything before `next` has been sent. `apart` says that
    /// another socket was written to in between.
    pub fn write(&mut self, next: u64, end: u64, bytes: u64, apart: bool, full: u64) {
        // An skb that has been sent is not written to any more.
        if next == end {
            (self.start, self.fragments) = (end, 0);
        }
        if self.fragments == 0 || !apart {
            self.fragments = self.fragments.max(1);
        } else if self.fragments == MAX_SKB_FRAGS {
            (self.closed, self.start, self.fragments) = (end, end, 1);
        } else {
            self.fragments += 1;
        }
        // Full segments leave as skbs of their own; what is left over begins a new one.
        let length = end + bytes - self.start;
        if length > full {
            self.start += length / full * full;
            self.fragments = 1;
        }
    }
}

const MAX_SKB_FRAGS: u8 = 17;
