//! Tail loss probes (RFC 8985 §7): where nothing behind a lost segment can show the loss, something is sent that makes the
//! peer answer, well before the retransmission timeout.
//!
//! ```text
//! idle ── data sent, may be scheduled ──► timer ── fires ──► due ── sent ──► out ── answered ──► idle
//! ```

use mqttlab_units::Duration;

use super::rtt::RttEstimator;
use super::scoreboard::Scoreboard;
use crate::context::EndpointContext;
use crate::segment::Segment;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TailProbe {
    /// The timer has fired: one must be sent.
    pub due: bool,
    /// One is out (`TLP.end_seq`).
    out: Option<Out>,
}

/// A probe that waits for its answer.
#[derive(Clone, Copy, Debug)]
struct Out {
    /// SND.NXT when it was sent.
    end: u64,
    /// It repeated data (`TLP.is_retrans`), and did not send new.
    repeats: bool,
}

impl TailProbe {
    /// Whether one is out: there is never more than one (§7.2).
    pub fn is_out(&self) -> bool {
        self.out.is_some()
    }

    /// Whether one is out that repeats data.
    pub fn repeats(&self) -> bool {
        self.out.is_some_and(|out| out.repeats)
    }

    /// Whether one is out that ends here (`TLP.end_seq`).
    pub fn ends_at(&self, end: u64) -> bool {
        self.out.is_some_and(|out| out.end == end)
    }

    /// One was sent.
    pub fn on_sent(&mut self, next: u64, repeats: bool) {
        self.out = Some(Out { end: next, repeats });
    }

    /// A recovery begins or ends: what was out does not count any more.
    pub fn forget(&mut self) {
        self.out = None;
    }

    /// How long to wait before one (§7.2), with Linux's allowances (`tcp_schedule_loss_probe`): the peer may delay the
    /// acknowledgement of a single segment.
    pub fn timeout(cx: &EndpointContext, flight: &Scoreboard, rtt: &RttEstimator) -> Duration {
        let patience = match rtt.srtt() {
            Some(srtt) if flight.len() == 1 => srtt * 2 + cx.profile.rto.min,
            Some(srtt) => srtt * 2 + Duration::from_ms(2),
            None => cx.profile.rto.initial,
        };
        patience.min(rtt.timeout(&cx.profile.rto))
    }

    /// §7.4.2: what an acknowledgement says of the probe. Says whether the probe itself has repaired a loss.
    pub fn on_ack(
        &mut self,
        flight: &Scoreboard,
        segment: &Segment,
        ack: u64,
        advanced: bool,
        newly_sacked: bool,
    ) -> bool {
        let Some(Out { end, repeats }) = self.out else { return false };
        // §7.4.2: only an acknowledgement of all that was sent before the probe answers it.
        if ack < end {
            return false;
        }
        // Original and probe have both arrived: a D-SACK that ends there says so, and so does a bare duplicate.
        let told = segment.sack.iter().next().is_some_and(|(_, last)| last == flight.initial.at(end));
        let both_came = told || !advanced && !newly_sacked && segment.sequence_length() == 0;
        // Acknowledged beyond the probe without a sign of the original: that one was lost.
        let repaired = repeats && ack > end && !both_came;
        if !repeats || ack > end || both_came {
            self.out = None;
        }
        repaired
    }
}
