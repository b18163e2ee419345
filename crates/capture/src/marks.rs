//! The marks of a segment, with the names and meanings of Wireshark 4.0's `tcp.analysis.*` fields (User's Guide §7.5).

use std::fmt;

/// A set of marks on a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(pub u32);

macro_rules! marks {
    ($($(#[$doc:meta])* $name:ident = $bit:literal, $text:literal;)*) => {
        impl Marks {
            $($(#[$doc])* pub const $name: Marks = Marks(1 << $bit);)*

            /// Every mark with its name, in the order of the bits.
            pub const ALL: &'static [(Marks, &'static str)] = &[$((Marks::$name, $text)),*];
        }
    };
}

marks! {
    /// Data below the highest sequence number seen; also set with the two kinds below.
    RETRANSMISSION = 0, "retransmission";
    /// Sent within 20 ms of a third equal acknowledgment, at exactly the byte that it asks for.
    FAST_RETRANSMISSION = 1, "fast_retransmission";
    /// All of its bytes had been acknowledged already.
    SPURIOUS_RETRANSMISSION = 2, "spurious_retransmission";
    /// Below the highest sequence number, but closer in time than a retransmission could be.
    OUT_OF_ORDER = 3, "out_of_order";
    /// Repeats the previous acknowledgment without data.
    DUPLICATE_ACK = 4, "duplicate_ack";
    /// Starts beyond what was seen: something before it was not captured (yet).
    LOST_SEGMENT = 5, "lost_segment";
    /// Acknowledges bytes that were never captured.
    ACK_LOST_SEGMENT = 6, "ack_lost_segment";
    /// Offers no window.
    ZERO_WINDOW = 7, "zero_window";
    /// One byte sent against a closed window.
    ZERO_WINDOW_PROBE = 8, "zero_window_probe";
    /// Answers a zero-window probe with a window that is still closed.
    ZERO_WINDOW_PROBE_ACK = 9, "zero_window_probe_ack";
    /// Fills the window that the other side offered.
    WINDOW_FULL = 10, "window_full";
    /// Changes only the window.
    WINDOW_UPDATE = 11, "window_update";
    /// At most one byte, one below the next expected sequence number.
    KEEP_ALIVE = 12, "keep_alive";
    /// Answers a keep-alive.
    KEEP_ALIVE_ACK = 13, "keep_alive_ack";
    /// A SYN for an address pair that an earlier connection in the capture had.
    REUSED_PORTS = 14, "reused_ports";
}

impl Marks {
    /// Whether all of `others` are set.
    pub const fn has(self, others: Marks) -> bool {
        self.0 & others.0 == others.0
    }

    pub(crate) fn set(&mut self, others: Marks) {
        self.0 |= others.0;
    }

    /// The names of the marks that are set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Marks::ALL.iter().filter(move |(mark, _)| self.has(*mark)).map(|(_, name)| *name)
    }
}

impl fmt::Display for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.names().enumerate() {
            write!(f, "{}{name}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}
