//! F-RTO (RFC 5682 §3.1, with SACK), as Linux has it (`tcp_process_loss`): was a retransmission timeout needless? Instead of the
//! rest, something new is sent, and what is delivered next tells.
//!
//! ```text
//!        timeout          some acknowledged        new data sent        answered
//!  Off ──────────► Armed ──────────────────► Sends ────────────► Waits ────────► Repeats
//!                    └── what was never repeated is delivered: the timeout was needless ──► undo
//! ```

/// How far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ForwardRto {
    /// No timeout, or the loss was real.
    #[default]
    Off,
    /// The first segment is sent again (step 1).
    Armed,
    /// New data goes before what counts as lost (step 2.b).
    Sends,
    /// It is under way, and nothing is repeated before an answer.
    Waits,
    /// Conventional recovery goes on; what was never repeated may still be delivered.
    Repeats,
}

/// What an acknowledgement after a timeout brought.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeoutAnswer {
    /// It advanced.
    pub advanced: bool,
    /// It reported something new by SACK, or was a duplicate.
    pub reports_loss: bool,
    /// It delivered what was sent once, before the timeout.
    pub delivers_original: bool,
    /// It acknowledged all that was sent before the timeout.
    pub is_last: bool,
    /// New data was sent since.
    pub sent_new: bool,
}

impl ForwardRto {
    /// Takes an acknowledgement. `true` when the timeout was needless (step 3.b).
    pub fn on_ack(&mut self, answer: TimeoutAnswer) -> bool {
        if *self == ForwardRto::Off {
            return false;
        }
        if answer.delivers_original {
            *self = ForwardRto::Off;
            return true;
        }
        *self = match (answer.sent_new, *self) {
            // Step 3.a: what is missing among the new shows that the path still loses.
            (true, _) if answer.reports_loss => ForwardRto::Off,
            (true, _) => ForwardRto::Repeats,
            (false, _) if answer.advanced && !answer.is_last => ForwardRto::Sends,
            (false, before) => before,
        };
        false
    }

    /// Nothing new can leave any more. `sent_new` says whether something has.
    pub fn on_sent(&mut self, sent_new: bool) {
        if *self == ForwardRto::Sends {
            *self = if sent_new { ForwardRto::Waits } else { ForwardRto::Off };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: TimeoutAnswer = TimeoutAnswer {
        advanced: false,
        reports_loss: false,
        delivers_original: false,
        is_last: false,
        sent_new: false,
    };

    #[test]
    fn rfc5682_3_1_step_2b_without_new_data_recovery_is_conventional() {
        let mut state = ForwardRto::Armed;
        assert!(!state.on_ack(TimeoutAnswer { advanced: true, ..NOTHING }));
        assert_eq!(state, ForwardRto::Sends);
        state.on_sent(false);
        assert_eq!(state, ForwardRto::Off);
    }

    #[test]
    fn rfc5682_3_1_step_3a_a_report_after_new_data_shows_a_real_loss() {
        let mut state = ForwardRto::Waits;
        assert!(!state.on_ack(TimeoutAnswer { reports_loss: true, sent_new: true, ..NOTHING }));
        assert_eq!(state, ForwardRto::Off);
    }
}
