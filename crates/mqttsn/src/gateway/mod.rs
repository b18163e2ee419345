//! A gateway, as a machine.
//!
//! ```text
//!   datagrams             ┌───────── gateway ─────────┐            MQTT 3.1.1 over TCP
//!   client ─────────────► │ Members: Member (state,   │ ─ Link 1 ─► broker     transparent: a link for each client
//!   client ── forwarder ► │  topics, queue, retries)  │ ─ Link 2 ─►
//!   QoS −1 ─────────────► │ OwnLink (shared session)  │ ─ Link 0 ─►            aggregating: this one for all
//!                         └───────────────────────────┘
//! ```
//!
//! The shell owns sockets and bytes: it says what came from whom, and does what [`Gateway::poll`] says. Messages are of
//! any type that can be cloned: bytes in a program, tokens in the simulator.
//!
//! *Transparent*: packets are translated one by one, identifiers pass through, acknowledgements are the broker's. *Aggregating*:
//! one session with the broker for everybody; who gets what is decided here, and towards clients the gateway acknowledges
//! what the broker has acknowledged to it.
//!
//! Towards a client, REGISTER and messages of QoS 1 and 2 are sent again after T_retry, N_retry times; then the client is
//! lost, and its will published. What comes for a sleeper is kept until it asks (§6.14). A packet of a client that is not
//! known is answered with DISCONNECT, so that it connects anew after the gateway has been restarted. A CONNECT that comes
//! again before anything else is the same one, whose answer was lost.
//!
//! Where the specification is silent: PUBLISH of QoS 1 that was repeated is acknowledged again and not published twice
//! (`filter_duplicates`); what does not fit into a client's buffer is dropped, the newest first, and acknowledged to the broker.
//!
//! What it does not model: an aggregating gateway never unsubscribes, and a second subscriber of a filter gets no retained
//! messages through it; it keeps no sessions over a restart; WILLTOPICUPD and WILLMSGUPD change the will that it knows, which
//! of a transparent gateway the broker has already.

mod connecting;
mod downstream;
mod interface;
mod member;
mod members;
mod own_link;
mod registry;
mod upstream;

use std::collections::VecDeque;
use std::sync::Arc;

use mqttlab_units::Instant;

use crate::kind::{PublishQos, ReturnCode};
use crate::packet::{Filter, Packet, Topic};
pub use interface::{
    Address, BrokerPacket, Cause, Counters, GatewayOptions, Input, Link, Mode, Output, Will,
};
use member::{Around, GatewayMember, MemberState};
use members::Members;
use own_link::OwnLink;

/// A gateway.
pub struct Gateway<M> {
    options: GatewayOptions,
    members: Members<M>,
    own: OwnLink<M>,
    advertise_at: Option<Instant>,
    counters: Counters,
    out: VecDeque<Output<M>>,
}

/// What a gateway looks like at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Clients that it knows.
    pub clients: usize,
    /// Of these, those that sleep.
    pub asleep: usize,
    /// Messages on their way to clients, or kept for them.
    pub to_clients: usize,
    /// Messages on its own connection that wait, or are not acknowledged.
    pub to_broker: usize,
}

impl<M: Clone> Gateway<M> {
    /// A gateway that has just been started. An aggregating one connects to the broker at once.
    pub fn new(options: GatewayOptions, now: Instant) -> Gateway<M> {
        let mut gateway = Gateway {
            own: OwnLink::new(&options),
            members: Members::new(),
            advertise_at: options.advertise.map(|_| now),
            counters: Counters::default(),
            out: VecDeque::new(),
            options,
        };
        if gateway.options.mode == Mode::Aggregating {
            gateway.with_own(now, |own, around| own.need(around));
        }
        gateway
    }

    /// What it has counted.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// What it looks like now.
    pub fn snapshot(&self) -> Snapshot {
        let clients = || self.members.iter().map(|(_, client)| client);
        Snapshot {
            clients: self.members.len(),
            asleep: clients().filter(|client| client.state == MemberState::Asleep).count(),
            to_clients: clients().map(GatewayMember::waiting).sum(),
            to_broker: self.own.waiting(),
        }
    }

    /// The client whose connection to the broker this is.
    pub fn client_of(&self, link: Link) -> Option<&Arc<str>> {
        self.members.get(link.0).map(|client| &client.client_id)
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Output<M>> {
        self.out.pop_front()
    }

    /// When to call [`Gateway::handle`] with [`Input::Tick`] at the latest.
    pub fn next_deadline(&self) -> Option<Instant> {
        let client = self.members.next_deadline();
        let own = self.own.next_deadline(self.options.retry);
        [client, own, self.advertise_at].into_iter().flatten().min()
    }

    /// Something happened.
    pub fn handle(&mut self, now: Instant, input: Input<M>) {
        match input {
            Input::Packet { from, packet } => self.packet(now, from, packet),
            Input::Opened(link) => self.opened(now, link),
            Input::Broker(link, packet) => self.hear_broker(now, link, packet),
            Input::Closed(link) => self.closed(now, link),
            Input::Tick => self.tick(now),
        }
    }

    fn tick(&mut self, now: Instant) {
        if let (Some(at), Some(every)) = (self.advertise_at, self.options.advertise)
            && at <= now
        {
            // From now, and not from when it was due: after a late tick there is no burst.
            self.advertise_at = Some(now + every);
            // The field has two octets (§5.3.3).
            let duration_s = (every.as_ns() / 1_000_000_000).min(u64::from(u16::MAX)) as u16;
            let packet = Packet::Advertise { gateway: self.options.id, duration_s };
            self.out.push_back(Output::Broadcast(packet));
        }
        // Each call puts the client's next deadline in the place of this one, so that the loop ends.
        while let Some(number) = self.members.next_due(now) {
            let alive = self.with(now, number, |client, around| client.tick(around));
            if alive == Some(false) {
                self.counters.lost += 1;
                self.lose(now, number);
            }
        }
        if self.own.next_deadline(self.options.retry).is_some_and(|at| at <= now) {
            let followed = self.with_own(now, |own, around| own.tick(around));
            self.follow(now, followed);
        }
    }

    /// A packet came from a client, or from somebody who wants to be one.
    fn packet(&mut self, now: Instant, from: Address, packet: Packet<Arc<str>, M>) {
        match packet {
            Packet::Searchgw { .. } => {
                // A gateway leaves its address out: the datagram has it (§5.4.3).
                let packet = Packet::Gwinfo { gateway: self.options.id, address: Vec::new() };
                return self.out.push_back(Output::Send { to: from, packet });
            }
            // Whether the sender is known or not: QoS −1 belongs to no connection (§6.8).
            Packet::Publish { qos: PublishQos::WithoutConnection, retain, topic, message, .. } => {
                return self.publish_without_connection(now, topic, retain, message);
            }
            Packet::Connect { will, clean, duration_s, client_id } => {
                return self.connect(now, from, (will, clean, duration_s), client_id);
            }
            // What gateways say to each other, and to clients.
            Packet::Advertise { .. } | Packet::Gwinfo { .. } => return,
            _ => {}
        }
        match self.members.at(&from) {
            Some(number) => self.hear_client(now, number, packet),
            // A client of another life says goodbye: it is gone already.
            None if matches!(packet, Packet::Disconnect { duration_s: None }) => {}
            // A packet that cannot be mapped to a client; by DISCONNECT it learns to connect again (§5.4.21).
            None => {
                let packet = Packet::Disconnect { duration_s: None };
                self.out.push_back(Output::Send { to: from, packet });
            }
        }
    }

    /// The name of a topic that a client has called something.
    fn name(&mut self, number: u32, topic: Topic) -> Option<Arc<str>> {
        match topic {
            Topic::Registered(id) => self.members.get(number)?.topics.name(id).cloned(),
            Topic::Predefined(id) => {
                let name = predefined(&self.options, id)?;
                self.members.get_mut(number)?.topics.note_predefined(id);
                Some(name)
            }
            Topic::Short(_) => topic.short_name().map(Arc::from),
        }
    }

    fn filter(&mut self, number: u32, filter: Filter<Arc<str>>) -> Option<Arc<str>> {
        match filter {
            Filter::Name(name) => Some(name).filter(|name| mqttlab_mqtt::topic::is_filter(name)),
            Filter::Predefined(id) => self.name(number, Topic::Predefined(id)),
            Filter::Short(name) => self.name(number, Topic::Short(name)),
        }
    }

    /// Lets something happen to a client, and sees to its deadline.
    fn with<R>(
        &mut self,
        now: Instant,
        number: u32,
        act: impl FnOnce(&mut GatewayMember<M>, &mut Around<'_, M>) -> R,
    ) -> Option<R> {
        let client = self.members.get_mut(number)?;
        let (options, counters, out) = (&self.options, &mut self.counters, &mut self.out);
        let result = act(client, &mut Around { now, options, counters, out });
        self.members.reschedule(number, &self.options);
        Some(result)
    }

    fn with_own<R>(&mut self, now: Instant, act: impl FnOnce(&mut OwnLink<M>, &mut Around<'_, M>) -> R) -> R {
        let (options, counters, out) = (&self.options, &mut self.counters, &mut self.out);
        act(&mut self.own, &mut Around { now, options, counters, out })
    }

    fn answer(&mut self, number: u32, packet: Packet<Arc<str>, M>) {
        if let Some(client) = self.members.get(number) {
            self.out.push_back(Output::Send { to: client.address.clone(), packet });
        }
    }
}

fn predefined(options: &GatewayOptions, id: u16) -> Option<Arc<str>> {
    options.predefined.iter().find(|(known, _)| *known == id).map(|(_, name)| Arc::clone(name))
}

fn invalid_topic<M>(topic: Topic, id: u16) -> Packet<Arc<str>, M> {
    // PUBACK tells the error at every QoS (§5.4.13).
    Packet::Puback { topic_id: topic.number(), id, code: ReturnCode::InvalidTopic }
}
