//! Explicit congestion notification at the two halves of an endpoint (RFC 3168 §6.1; RFC 9768 calls it "Classic ECN").
//!
//! ```text
//!   sender: new data as ECT(0) ──► a queue marks it CE ──► receiver
//!      ▲  window reduced once a window of data              │ ECE on all that it sends …
//!      └── ◄──────────────────────────────────────────────── ┘
//!      └── CWR on the next new data ────────────────────────► … until then
//! ```
//!
//! SYNs, bare acknowledgements, window probes and what is sent again are Not-ECT (§5.2, §6.1.1, §6.1.4 to §6.1.6).
//!
//! What it does not model: ECT(1), accurate ECN (RFC 9768), and experiments that RFC 8311 permits.

use crate::segment::{Ecn, Flags, Segment};

/// What a receiver echoes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CongestionEcho {
    /// The network has marked something, and the sender has not said that it knows (Linux `TCP_ECN_DEMAND_CWR`).
    echoes: bool,
    /// Something marked, or that could have been, has come (Linux `TCP_ECN_SEEN`).
    seen: bool,
}

/// What a sender does about it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowReduced {
    /// The window is being reduced because of an echo.
    is_on: bool,
    /// The next new data says that the window was reduced.
    due: bool,
}

impl CongestionEcho {
    /// Data has come. Says whether it should be acknowledged at once; a mark is worth two quick acknowledgements in Linux
    /// (`__tcp_ecn_check_ce`), and so is what was sent again, which is Not-ECT.
    pub fn on_data(&mut self, segment: &Segment) -> Quickly {
        // First: a mark on the segment with CWR is another one (RFC 3168 §6.1.3).
        let is_answered = segment.flags.has(Flags::CWR);
        if is_answered {
            self.echoes = false;
        }
        let is_quick = match segment.ecn {
            Ecn::NotEct => self.seen,
            Ecn::Ect0 => false,
            Ecn::Ce => !std::mem::replace(&mut self.echoes, true),
        };
        self.seen |= segment.ecn != Ecn::NotEct;
        match (is_answered, is_quick) {
            // The sender's window may have room for one segment only (Linux `tcp_ecn_accept_cwr`).
            (true, _) => Quickly::Now,
            (_, true) => Quickly::TwoQuick,
            _ => Quickly::AsUsual,
        }
    }

    /// Whether ECE is set on what leaves.
    pub fn is_due(&self) -> bool {
        self.echoes
    }
}

/// How soon data is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quickly {
    AsUsual,
    /// This one and the next.
    TwoQuick,
    Now,
}

impl WindowReduced {
    /// Whether the window is being reduced because of an echo. That ends with an acknowledgement *beyond* what was sent when it
    /// began, so that CWR has reached the receiver before the next one (Linux `TCP_CA_CWR`).
    pub fn is_on(self) -> bool {
        self.is_on
    }

    /// The window is reduced because of an echo.
    pub fn begin(&mut self) {
        (self.is_on, self.due) = (true, true);
    }

    /// The window is reduced for another reason, which the receiver is told as well (RFC 3168 §6.1.2). Says whether an echo
    /// had it reduced until now.
    pub fn note_other(&mut self) -> bool {
        self.due = true;
        std::mem::take(&mut self.is_on)
    }

    /// What was sent when it began is acknowledged, and more.
    pub fn end(&mut self) {
        self.is_on = false;
    }

    /// Whether CWR is set on new data that leaves; asked once.
    pub fn take_due(&mut self) -> bool {
        std::mem::take(&mut self.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(ecn: Ecn, flags: Flags) -> Segment {
        Segment { length: 100, ecn, flags: flags.with(Flags::ACK), ..Segment::default() }
    }

    #[test]
    fn rfc3168_6_1_3_a_mark_is_echoed_until_cwr_comes() {
        let mut echo = CongestionEcho::default();
        echo.on_data(&data(Ecn::Ect0, Flags::ACK));
        assert!(!echo.is_due());
        assert_eq!(echo.on_data(&data(Ecn::Ce, Flags::ACK)), Quickly::TwoQuick);
        assert_eq!(echo.on_data(&data(Ecn::Ce, Flags::ACK)), Quickly::AsUsual);
        echo.on_data(&data(Ecn::Ect0, Flags::ACK));
        assert!(echo.is_due(), "until CWR, whatever comes");
        assert_eq!(echo.on_data(&data(Ecn::Ect0, Flags::CWR)), Quickly::Now);
        assert!(!echo.is_due());
    }

    #[test]
    fn rfc3168_6_1_3_a_mark_on_the_segment_with_cwr_is_another_one() {
        let mut echo = CongestionEcho::default();
        echo.on_data(&data(Ecn::Ce, Flags::ACK));
        echo.on_data(&data(Ecn::Ce, Flags::CWR));
        assert!(echo.is_due());
    }
}
