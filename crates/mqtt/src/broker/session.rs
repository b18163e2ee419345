//! What a broker keeps for a client.

use mqttlab_units::{Duration, Instant};

use super::{ConnectionId, Publication, Will};
use crate::outbox::Outbox;

/// A message on its way to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delivery {
    pub(super) topic: u32,
    pub(super) message: u64,
    pub(super) retain: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) client: String,
    pub(super) connection: Option<ConnectionId>,
    pub(super) outbox: Outbox<Delivery>,
    /// QoS 2 messages whose PUBREL has not come, by packet identifier.
    held: Vec<(u16, Publication)>,
    pub(super) keep_alive: Duration,
    pub(super) last_heard: Instant,
    /// How long it outlives its connection; `None` for ever.
    pub(super) expiry: Option<Duration>,
    /// When it ends, while there is no connection.
    pub(super) expires: Option<Instant>,
    pub(super) will: Option<Will>,
}

impl Session {
    pub(super) fn new(client: &str, window: u16, queue: u32) -> Session {
        Session {
            client: client.to_owned(),
            connection: None,
            outbox: Outbox::new(window, queue),
            held: Vec::new(),
            keep_alive: Duration::ZERO,
            last_heard: Instant::ZERO,
            expiry: None,
            expires: None,
            will: None,
        }
    }

    /// When the client has been silent for one and a half keep-alive intervals ([MQTT-3.1.2-24]).
    pub(super) fn silence_ends(&self) -> Option<Instant> {
        let allowed = Duration::from_ns(self.keep_alive.as_ns() / 2 * 3);
        (!allowed.is_zero()).then(|| self.last_heard + allowed)
    }

    /// Keeps a QoS 2 message until its PUBREL comes. What comes again under its identifier is the same message.
    pub(super) fn hold(&mut self, id: u16, publication: Publication) {
        if !self.held.iter().any(|(held, _)| *held == id) {
            self.held.push((id, publication));
        }
    }

    /// The PUBREL has come.
    pub(super) fn take_held(&mut self, id: u16) -> Option<Publication> {
        let place = self.held.iter().position(|(held, _)| *held == id)?;
        Some(self.held.remove(place).1)
    }
}
