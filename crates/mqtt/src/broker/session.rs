//! What a broker keeps for a client.

use std::sync::Arc;

use mqttlab_units::{Duration, Instant};

use super::expiry::Expiry;
use super::receive_quota::ReceiveQuota;
use super::subscriptions::{Overlap, SubscriptionPlace};
use super::{BrokerOptions, ConnectionId, SessionInfo, TopicId, Will};
use crate::inbox::Inbox;
use crate::kind::Qos;
use crate::outbox::{Dispatch, Outbox};

/// A message that a client has published.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceivedPublish {
    pub(super) topic: TopicId,
    pub(super) message: u64,
    pub(super) qos: Qos,
    pub(super) retain: bool,
    pub(super) empty: bool,
    pub(super) came: Instant,
    pub(super) expires: Expiry,
}

/// A message on its way to a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingDelivery {
    pub(super) topic: TopicId,
    pub(super) message: u64,
    pub(super) retain: bool,
    pub(super) expires: Expiry,
}

#[derive(Clone, Debug)]
pub(super) struct BrokerSession {
    pub(super) client: Arc<str>,
    pub(super) connection: Option<ConnectionId>,
    pub(super) subscriptions: Vec<SubscriptionPlace>,
    /// Of what it subscribes to on this connection.
    pub(super) overlap: Overlap,
    /// `None` before the first, which many clients never get to: a session at rest is small.
    pub(super) exchanges: Option<Box<Exchanges>>,
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
    /// Messages that may be in flight on this connection.
    pub(super) window: u16,
    /// Messages that the client may still send.
    pub(super) receive_quota: ReceiveQuota,
}

/// What takes several packets: QoS 1 and 2, in both directions.
#[derive(Clone, Debug)]
pub(super) struct Exchanges {
    pub(super) outbox: Outbox<PendingDelivery>,
    /// QoS 2 messages whose PUBREL has not come.
    pub(super) inbox: Inbox<ReceivedPublish>,
}

impl BrokerSession {
    pub(super) fn new(client: Arc<str>, options: &BrokerOptions) -> BrokerSession {
        BrokerSession {
            client,
            connection: None,
            subscriptions: Vec::new(),
            overlap: Overlap::default(),
            exchanges: None,
            keep_alive: Duration::ZERO,
            heard: Instant::ZERO,
            expiry: None,
            will: None,
            look: None,
            backlog: 0,
            window: options.window(),
            receive_quota: ReceiveQuota::NONE,
        }
    }

    /// What is under way, or nothing yet.
    pub(super) fn exchanges(&mut self, options: &BrokerOptions) -> &mut Exchanges {
        self.exchanges.get_or_insert_with(|| {
            let outbox =
                Outbox::new(self.window, options.queue(), options.refill).timed(options.retry.is_some());
            Box::new(Exchanges { outbox, inbox: Inbox::default() })
        })
    }

    /// The next packet that the window lets out.
    pub(super) fn next_dispatch(&mut self, now: Instant) -> Option<Dispatch<PendingDelivery>> {
        self.exchanges.as_mut()?.outbox.next(now)
    }

    /// Whether it outlives its connection, and so the broker's program.
    pub(super) fn is_stored(&self) -> bool {
        self.expiry.is_none_or(|expiry| !expiry.is_zero())
    }

    /// When it ends, while there is no connection.
    pub(super) fn expires(&self) -> Option<Instant> {
        // `heard` is when the connection ended, while there is none.
        Some(self.heard + self.expiry.filter(|_| self.connection.is_none())?)
    }

    /// When the client has been silent for too long.
    pub(super) fn silence_ends(&self, options: &BrokerOptions) -> Option<Instant> {
        self.connection.and_then(|_| options.silence_ends(self.heard, self.keep_alive))
    }

    /// When something may have to be done about it.
    pub(super) fn next_look(&self, options: &BrokerOptions) -> Option<Instant> {
        let overdue = |interval| self.exchanges.as_ref()?.outbox.overdue_at(interval);
        let retry = options.retry.and_then(overdue);
        [self.expires(), self.silence_ends(options), retry].into_iter().flatten().min()
    }

    /// A look into it.
    pub(super) fn info(&self) -> SessionInfo<'_> {
        let exchanges = self.exchanges.as_ref();
        SessionInfo {
            client: &self.client,
            connection: self.connection,
            subscriptions: self.subscriptions.len(),
            in_flight: exchanges.map_or(0, |exchanges| exchanges.outbox.in_flight()),
            waiting: exchanges.map_or(0, |exchanges| exchanges.outbox.waiting()),
            held: exchanges.map_or(0, |exchanges| exchanges.inbox.len()),
            window: self.window,
        }
    }

    /// Whether as many messages wait for an absent client as may. Mosquitto counts what is in flight among them; while the
    /// client is there the outbox says it.
    pub(super) fn is_full(&self, queue: u32) -> bool {
        let Some(exchanges) = self.exchanges.as_ref().filter(|_| self.connection.is_none()) else {
            return false;
        };
        // While the client is away `db__ready_for_queue` takes no window off the count.
        (exchanges.outbox.waiting() + exchanges.outbox.in_flight()) as u64 >= u64::from(queue)
    }
}
