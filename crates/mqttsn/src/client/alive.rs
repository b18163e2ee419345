//! Signs of life: when a client has to give one, and whether the gateway has answered (§6.11).

use mqttlab_units::{Duration, Instant};

use super::exchange::Awaited;

/// What a client knows of its last packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alive {
    /// A PINGREQ that was not answered.
    ping: Option<Awaited<()>>,
    last_sent: Instant,
    /// The last packet of an exchange, or of a message.
    pub(super) last_busy: Instant,
}

/// What is to be done about a PINGREQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// Nothing.
    None,
    /// It is sent, or sent again.
    Ping,
    /// The gateway does not answer.
    Unanswered,
}

impl Alive {
    pub(super) fn new() -> Alive {
        Alive { ping: None, last_sent: Instant::ZERO, last_busy: Instant::ZERO }
    }

    /// Something was sent.
    pub(super) fn sent(&mut self, now: Instant) {
        self.last_sent = now;
    }

    /// While messages come to a client that has just woken up, its PINGREQ is not lost.
    pub(super) fn heard_awake(&mut self, now: Instant) {
        if let Some(ping) = &mut self.ping {
            *ping = Awaited::new((), now);
        }
    }

    /// PINGREQ is sent: an answer is awaited.
    pub(super) fn ping(&mut self, now: Instant) {
        self.ping = Some(Awaited::new((), now));
    }

    /// It was answered, or nobody waits for an answer any more.
    pub(super) fn stop_waiting(&mut self) {
        self.ping = None;
    }

    /// When to look at it next; `keep_alive` where a sign of life is needed.
    pub(super) fn next_deadline(&self, keep_alive: Option<Duration>, retry: Duration) -> Option<Instant> {
        match self.ping {
            // PINGREQ is repeated after T_retry like any other packet (§6.13), and no second one is begun.
            Some(ping) => Some(ping.overdue_at(retry)),
            None => keep_alive.map(|keep_alive| self.last_sent + keep_alive),
        }
    }

    /// Time has passed.
    pub(super) fn tick(
        &mut self,
        now: Instant,
        keep_alive: Option<Duration>,
        (retry, retries): (Duration, u32),
    ) -> Sign {
        if self.next_deadline(keep_alive, retry).is_none_or(|at| at > now) {
            return Sign::None;
        }
        match &mut self.ping {
            Some(ping) => match ping.repeat(now, retries) {
                true => Sign::Ping,
                false => Sign::Unanswered,
            },
            None => {
                self.ping(now);
                Sign::Ping
            }
        }
    }
}
