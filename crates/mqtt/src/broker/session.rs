//! What a broker keeps for a client.

use std::sync::Arc;

use mqttlab_units::{Duration, Instant};

use super::{BrokerOptions, ConnectionId, TopicId, Will};
use crate::kind::Qos;
use crate::outbox::{Inbox, Outbox};

/// A message that a client has published.
#[derive(Clone, Copy, Debug)]
pub(super) struct Publication {
    pub(super) topic: TopicId,
    pub(super) message: u64,
    pub(super) qos: Qos,
    pub(super) retain: bool,
    pub(super) empty: bool,
}

/// A message on its way to a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    pub(super) topic: TopicId,
    pub(super) message: u64,
    pub(super) retain: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) client: Arc<str>,
    pub(super) connection: Option<ConnectionId>,
    pub(super) outbox: Outbox<Delivery>,
    /// QoS 2 messages whose PUBREL has not come.
    pub(super) inbox: Inbox<Publication>,
    pub(super) keep_alive: Duration,
    /// When the client was last heard, or its connection ended.
    pub(super) heard: Instant,
    /// How long it outlives its connection; `None` for ever.
    pub(super) expiry: Option<Duration>,
    pub(super) will: Option<Will>,
    /// When it is to be looked at.
    pub(super) look: Option<Instant>,
    /// Packets that wait at the socket.
    pub(super) backlog: u32,
}

impl Session {
    pub(super) fn new(client: Arc<str>, options: &BrokerOptions) -> Session {
        Session {
            client,
            connection: None,
            outbox: Outbox::new(options.window(), options.queue()),
            inbox: Inbox::default(),
            keep_alive: Duration::ZERO,
            heard: Instant::ZERO,
            expiry: None,
            will: None,
            look: None,
            backlog: 0,
        }
    }

    /// When it ends, while there is no connection.
    pub(super) fn expires(&self) -> Option<Instant> {
        Some(self.heard + self.expiry.filter(|_| self.connection.is_none())?)
    }

    /// When the client has been silent for one and a half keep-alive intervals ([MQTT-3.1.2-24]).
    pub(super) fn silence_ends(&self) -> Option<Instant> {
        let allowed = Duration::from_ns(self.keep_alive.as_ns() / 2 * 3);
        (self.connection.is_some() && !allowed.is_zero()).then(|| self.heard + allowed)
    }

    /// When something may have to be done about it.
    pub(super) fn next_look(&self, retry: Option<Duration>) -> Option<Instant> {
        let retry = retry.and_then(|interval| self.outbox.overdue_at(interval));
        [self.expires(), self.silence_ends(), retry].into_iter().flatten().min()
    }

    /// Whether as many messages wait as may. Mosquitto counts what is in flight as waiting while the client is away.
    pub(super) fn is_full(&self, queue: u32) -> bool {
        let away = if self.connection.is_none() { self.outbox.in_flight() } else { 0 };
        (self.outbox.waiting() + away) as u64 >= u64::from(queue)
    }
}
