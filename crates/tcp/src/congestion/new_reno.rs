//! NewReno's congestion avoidance (RFC 5681 §3.1, RFC 6582): one segment more for each window that was acknowledged.

use mqttlab_units::Instant;

use super::{AckedUnits, Controller, Window};

#[derive(Clone, Debug, Default)]
pub(crate) struct NewReno {
    /// Units acknowledged that have not yet grown the window (Linux `snd_cwnd_cnt`).
    ack_count: u64,
}

impl Controller for NewReno {
    fn on_ack(&mut self, window: &mut Window, ack: &AckedUnits) {
        // What exceeds the threshold counts for avoidance already.
        let units = window.slow_start(ack);
        if units == 0 {
            return;
        }
        self.ack_count += units;
        while self.ack_count >= window.cwnd {
            self.ack_count -= window.cwnd;
            window.cwnd += window.smss;
        }
    }

    fn on_loss(&mut self, window: &mut Window, flight: u64) {
        self.ack_count = 0;
        // RFC 5681 eq. 4 halves what is in flight; counting segments, Linux halves the window (`tcp_reno_ssthresh`).
        window.ssthresh = if window.smss > 1 { flight / 2 } else { window.cwnd / 2 };
    }

    fn on_rto(&mut self, window: &mut Window, _now: Instant, _next: u64) {
        self.ack_count = 0;
        window.cwnd = window.smss;
    }
}
