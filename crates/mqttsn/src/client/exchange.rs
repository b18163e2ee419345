//! The one exchange that a client has with its gateway at a time, and its repetitions (§6.13).

use mqttlab_mqtt::Qos;
use mqttlab_units::{Duration, Instant};

use super::interface::Subject;
use crate::packet::Topic;

/// A message that waits for its turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queued {
    pub(super) token: u32,
    pub(super) subject: Subject,
    pub(super) qos: Qos,
    /// What it was sent as before, to a gateway that has gone.
    pub(super) sent_as: Option<u16>,
    /// How often the gateway did not know its topic.
    pub(super) unknown: u32,
}

/// What an answer is awaited to.
#[derive(Clone, Copy, Debug)]
pub(super) enum PendingExchange {
    Search,
    Connect,
    Willtopic,
    Willmsg,
    Register {
        topic: u32,
        id: u16,
    },
    Subscribe {
        subscription: u32,
        id: u16,
    },
    Publish {
        message: Queued,
        topic: Topic,
        id: u16,
    },
    /// PUBREC has come, PUBCOMP has not.
    Release {
        message: Queued,
        id: u16,
    },
    Sleep,
}

impl PendingExchange {
    /// The packet that is not answered, for people.
    pub(super) fn name(&self) -> &'static str {
        match self {
            PendingExchange::Search => "no gateway answers SEARCHGW",
            PendingExchange::Connect => "no CONNACK after N_retry repetitions of CONNECT",
            PendingExchange::Willtopic => "no WILLMSGREQ after N_retry repetitions of WILLTOPIC",
            PendingExchange::Willmsg => "no CONNACK after N_retry repetitions of WILLMSG",
            PendingExchange::Register { .. } => "no REGACK after N_retry repetitions of REGISTER",
            PendingExchange::Subscribe { .. } => "no SUBACK after N_retry repetitions of SUBSCRIBE",
            PendingExchange::Publish { .. } => "no answer after N_retry repetitions of PUBLISH",
            PendingExchange::Release { .. } => "no PUBCOMP after N_retry repetitions of PUBREL",
            PendingExchange::Sleep => "no DISCONNECT after N_retry repetitions of DISCONNECT",
        }
    }
}

/// Something that is sent again until it is answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Awaited<T> {
    pub(super) what: T,
    pub(super) sent: Instant,
    /// How often it was sent again.
    pub(super) repeated: u32,
}

impl<T> Awaited<T> {
    pub(super) fn new(what: T, now: Instant) -> Awaited<T> {
        Awaited { what, sent: now, repeated: 0 }
    }

    pub(super) fn overdue_at(&self, retry: Duration) -> Instant {
        self.sent + retry
    }

    /// Counts a repetition; `false` when there were enough.
    pub(super) fn repeat(&mut self, now: Instant, retries: u32) -> bool {
        if self.repeated >= retries {
            return false;
        }
        self.repeated += 1;
        self.sent = now;
        true
    }
}
