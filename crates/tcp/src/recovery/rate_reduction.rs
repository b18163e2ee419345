//! Proportional rate reduction (RFC 6937): while recovering, what leaves is in proportion to what arrives, so that the window
//! falls to the threshold over a round trip and not at once.

/// Units delivered and sent since the recovery began (`prr_delivered`, `prr_out`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RateReduction {
    delivered: u64,
    sent: u64,
}

/// What the reduction looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecoveryPipe {
    /// Units in the network (`pipe`).
    pub in_flight: u64,
    /// Where the window is to end.
    pub ssthresh: u64,
    /// The window before the reduction (`RecoverFS`).
    pub cwnd_before: u64,
    /// One full segment.
    pub smss: u64,
}

impl RateReduction {
    /// Units left for the network.
    pub fn on_sent(&mut self, units: u64) {
        self.sent += units;
    }

    /// Units were delivered; returns the window that follows. `safe` is an acknowledgement that advances and shows no
    /// further loss: only then may the slow-start bound grow, as in Linux (`tcp_cwnd_reduction`).
    pub fn on_delivered(&mut self, pipe: &RecoveryPipe, units: u64, safe: bool) -> u64 {
        self.delivered += units;
        let mut allowed = if pipe.in_flight > pipe.ssthresh {
            // §3.1, the proportional part: ceil(prr_delivered * ssthresh / RecoverFS) − prr_out.
            let share = self.delivered * pipe.ssthresh;
            share.div_ceil(pipe.cwnd_before.max(1)).saturating_sub(self.sent)
        } else {
            // §3.1, the slow-start reduction bound: losses have made more room than the reduction asks for.
            let bound =
                self.delivered.saturating_sub(self.sent).max(units) + if safe { pipe.smss } else { 0 };
            (pipe.ssthresh - pipe.in_flight).min(bound)
        };
        // The first retransmission goes out in any case.
        if self.sent == 0 {
            allowed = allowed.max(pipe.smss);
        }
        pipe.in_flight + allowed
    }
}
