//! The gateway's own connection to the broker: all of an aggregating gateway, and what was published at QoS −1.
//!
//! The session on it is `crates/mqtt`'s client: its window is shared by everybody behind the gateway, so that one message
//! that is not acknowledged holds up all that come after it once the window is full.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use mqttlab_mqtt::client::{self as mqtt, Admission, ClientOptions};
use mqttlab_mqtt::{Kind, Qos, TopicTree};
use mqttlab_units::{Duration, Instant};

use super::interface::{BrokerPacket, Cause, GatewayOptions, Link, Output, Will};
use super::member::Around;

/// Who waits for a message's acknowledgement: a client, and what it calls the message. `None` for wills and QoS −1.
pub(super) type Waiter = Option<(u32, u16)>;

/// A filter that the broker is to be told, and the clients that wait for it, with the identifiers of their SUBSCRIBEs.
type Asked = (Arc<str>, Qos, Vec<(u32, u16)>);

/// The connection.
pub(super) struct OwnLink<M> {
    session: mqtt::Client,
    state: OwnLinkState,
    /// Messages that the session holds, by its token.
    held: BTreeMap<u64, (Will<M>, Waiter)>,
    last_token: u64,
    /// What came before the connection was there, at QoS 0.
    early: VecDeque<Will<M>>,
    /// Who has subscribed to what.
    subscribers: TopicTree<(u32, Qos)>,
    /// What of that the broker knows, with the highest QoS.
    filters: BTreeMap<Arc<str>, Qos>,
    /// What it is still to be told, the first now.
    asking: VecDeque<Asked>,
    /// Whether the first of `asking` was sent.
    asked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnLinkState {
    Closed {
        /// When to try again, if it is needed.
        since: Option<Instant>,
    },
    Opening,
    Open,
}

/// What follows for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnLinkEvent {
    /// The broker has accepted the gateway.
    Online,
    /// The broker has a client's message.
    Acknowledged { client: u32, id: u16 },
    /// The broker has answered a client's SUBSCRIBE.
    Subscribed { client: u32, id: u16, granted: Option<Qos> },
}

impl<M: Clone> OwnLink<M> {
    pub(super) fn new(options: &GatewayOptions) -> OwnLink<M> {
        let session = mqtt::Client::new(ClientOptions {
            keep_alive: options.keep_alive,
            // A gateway that is started again has forgotten its clients: an old session would be nobody's.
            clean: true,
            max_inflight: options.broker_window,
            max_queued: options.broker_queue,
            // At PUBLISH: for the clients behind it the gateway begins an exchange of its own.
            deliver_on_release: false,
            retry: None,
            ping: mqtt::Ping::Sent,
            connect_timeout: options.retry,
        });
        OwnLink {
            session,
            state: OwnLinkState::Closed { since: None },
            held: BTreeMap::new(),
            last_token: 0,
            early: VecDeque::new(),
            subscribers: TopicTree::new(),
            filters: BTreeMap::new(),
            asking: VecDeque::new(),
            asked: false,
        }
    }

    pub(super) fn is_online(&self) -> bool {
        self.session.is_online()
    }

    /// Messages that wait for the broker, or for its acknowledgement.
    pub(super) fn waiting(&self) -> usize {
        self.session.unacknowledged() + self.early.len()
    }

    /// Sees to it that there is a connection, or will be.
    pub(super) fn need(&mut self, around: &mut Around<'_, M>) {
        if self.state == (OwnLinkState::Closed { since: None }) {
            self.state = OwnLinkState::Opening;
            around.out.push_back(Output::Open(Link::OWN));
        }
    }

    pub(super) fn next_deadline(&self, retry: Duration) -> Option<Instant> {
        match self.state {
            OwnLinkState::Closed { since } => since.map(|since| since + retry),
            OwnLinkState::Opening => None,
            OwnLinkState::Open => self.session.next_deadline(),
        }
    }

    pub(super) fn tick(&mut self, around: &mut Around<'_, M>) -> Vec<OwnLinkEvent> {
        match self.state {
            OwnLinkState::Closed { since: Some(since) } if since + around.options.retry <= around.now => {
                self.state = OwnLinkState::Closed { since: None };
                self.need(around);
            }
            OwnLinkState::Open => self.session.handle(around.now, mqtt::Input::Tick),
            _ => {}
        }
        self.drain(around)
    }

    pub(super) fn opened(&mut self, around: &mut Around<'_, M>) -> Vec<OwnLinkEvent> {
        self.state = OwnLinkState::Open;
        self.session.handle(around.now, mqtt::Input::Opened);
        self.drain(around)
    }

    pub(super) fn closed(&mut self, now: Instant) {
        self.state = OwnLinkState::Closed { since: Some(now) };
        self.asked = false;
        self.session.handle(now, mqtt::Input::Closed);
        // What the session would still say has no connection to be said on.
        while self.session.poll().is_some() {}
    }

    /// Publishes for a client. `false` where too many wait.
    pub(super) fn publish(&mut self, around: &mut Around<'_, M>, content: Will<M>, waiter: Waiter) -> bool {
        self.need(around);
        if content.qos == Qos::AtMostOnce && !self.is_online() {
            // The session refuses QoS 0 without a connection; but this one is opened for the message.
            let room = self.early.len() < around.options.broker_queue as usize;
            match room {
                true => self.early.push_back(content),
                false => around.drop(None, content.message, Cause::BufferFull),
            }
            return room;
        }
        self.last_token += 1;
        let (token, qos) = (self.last_token, content.qos);
        match self.session.publish(around.now, token, qos) {
            Admission::Refused => {
                around.drop(None, content.message, Cause::BufferFull);
                false
            }
            Admission::Sent | Admission::Waiting => {
                self.held.insert(token, (content, waiter));
                true
            }
        }
    }

    /// Subscribes for a client; `true` where the broker need not be asked.
    pub(super) fn subscribe(
        &mut self,
        around: &mut Around<'_, M>,
        (client, id): (u32, u16),
        filter: &Arc<str>,
        qos: Qos,
    ) -> bool {
        // A repeated SUBSCRIBE replaces the first ([MQTT-3.8.4-3]).
        self.subscribers.remove(filter, |(subscriber, _)| *subscriber == client);
        self.subscribers.insert(filter, (client, qos));
        // The broker sends these already, at this QoS or above.
        if self.filters.get(filter).is_some_and(|granted| *granted >= qos) {
            return true;
        }
        // One SUBSCRIBE for all who ask meanwhile.
        match self.asking.iter_mut().find(|(asked, wanted, _)| asked == filter && *wanted >= qos) {
            Some((_, _, waiting)) => waiting.push((client, id)),
            None => self.asking.push_back((Arc::clone(filter), qos, vec![(client, id)])),
        }
        self.need(around);
        self.ask(around.now);
        false
    }

    pub(super) fn unsubscribe(&mut self, client: u32, filter: &str) {
        self.subscribers.remove(filter, |(subscriber, _)| *subscriber == client);
    }

    /// A client's subscriptions are over.
    pub(super) fn forget(&mut self, client: u32) {
        for filter in self.filters.keys() {
            self.subscribers.remove(filter, |(subscriber, _)| *subscriber == client);
        }
        for (filter, _, waiting) in &mut self.asking {
            self.subscribers.remove(filter, |(subscriber, _)| *subscriber == client);
            waiting.retain(|(waiter, _)| *waiter != client);
        }
    }

    /// Who gets a message of this topic, once each, at the highest QoS that it has asked for.
    pub(super) fn audience(&self, topic: &str) -> BTreeMap<u32, Qos> {
        let mut audience = BTreeMap::new();
        self.subscribers.each_match(topic, |(client, qos)| {
            let best = audience.entry(*client).or_insert(*qos);
            *best = (*best).max(*qos);
        });
        audience
    }

    /// A PUBLISH of the broker; whether it is new.
    pub(super) fn arrived(&mut self, now: Instant, qos: Qos, id: u16) -> bool {
        matches!(self.session.arrived(now, qos, id), Some(mqtt::Receipt::Deliver | mqtt::Receipt::Hold))
    }

    /// Another packet of the broker.
    pub(super) fn received(
        &mut self,
        around: &mut Around<'_, M>,
        packet: BrokerPacket<M>,
    ) -> Vec<OwnLinkEvent> {
        let input = match packet {
            BrokerPacket::Connack { code, session_present } => mqtt::Input::Connack {
                accepted: code == 0,
                session_present,
                // MQTT 3.1.1 has neither of these two.
                receive_maximum: u16::MAX,
                keep_alive_s: None,
            },
            // Before MQTT 5 there are no reason codes: an acknowledgement accepts.
            BrokerPacket::Acknowledgement { kind: Kind::Puback, id } => mqtt::Input::Puback { id, code: 0 },
            BrokerPacket::Acknowledgement { kind: Kind::Pubrec, id } => mqtt::Input::Pubrec { id, code: 0 },
            BrokerPacket::Acknowledgement { kind: Kind::Pubrel, id } => mqtt::Input::Pubrel { id },
            BrokerPacket::Acknowledgement { kind: Kind::Pubcomp, id } => mqtt::Input::Pubcomp { id },
            BrokerPacket::Suback { id, code } => return self.suback(around, id, code),
            BrokerPacket::Pingresp => mqtt::Input::Pingresp,
            _ => return Vec::new(),
        };
        self.session.handle(around.now, input);
        self.drain(around)
    }

    fn suback(&mut self, around: &mut Around<'_, M>, id: u16, code: u8) -> Vec<OwnLinkEvent> {
        self.session.handle(around.now, mqtt::Input::Suback { id });
        let mut followed = self.drain(around);
        if !self.asked {
            return followed;
        }
        self.asked = false;
        let Some((filter, _, waiting)) = self.asking.pop_front() else { return followed };
        let granted = Qos::from_level(code);
        match granted {
            Some(qos) => drop(self.filters.insert(filter, qos)),
            None => {
                // 0x80 (MQTT 3.1.1 §3.9.3): who has asked is no subscriber.
                let refused: BTreeSet<u32> = waiting.iter().map(|(client, _)| *client).collect();
                self.subscribers.remove(&filter, |(client, _)| refused.contains(client));
            }
        }
        followed.extend(waiting.into_iter().map(|(client, id)| OwnLinkEvent::Subscribed {
            client,
            id,
            granted,
        }));
        self.ask(around.now);
        followed.extend(self.drain(around));
        followed
    }

    /// Tells the broker the next filter, once it has answered the last.
    fn ask(&mut self, now: Instant) {
        // The session has one SUBSCRIBE at a time.
        if self.is_online() && !self.asked && !self.asking.is_empty() {
            self.asked = true;
            self.session.handle(now, mqtt::Input::Subscribe);
        }
    }

    /// Does what the session says.
    pub(super) fn drain(&mut self, around: &mut Around<'_, M>) -> Vec<OwnLinkEvent> {
        let mut followed = Vec::new();
        while let Some(output) = self.session.poll() {
            let acknowledgement = |kind, id| BrokerPacket::Acknowledgement { kind, id };
            let packet = match output {
                mqtt::Output::SendConnect => BrokerPacket::Connect {
                    client_id: Arc::clone(&around.options.client_id),
                    clean: true,
                    keep_alive_s: (around.options.keep_alive.as_ns() / 1_000_000_000) as u16,
                    will: None,
                },
                mqtt::Output::SendPublish { token, id, qos, dup } => {
                    match self.publication(token, id, qos, dup) {
                        Some(packet) => packet,
                        None => continue,
                    }
                }
                mqtt::Output::SendPuback { id } => acknowledgement(Kind::Puback, id),
                mqtt::Output::SendPubrec { id } => acknowledgement(Kind::Pubrec, id),
                mqtt::Output::SendPubrel { id } => acknowledgement(Kind::Pubrel, id),
                mqtt::Output::SendPubcomp { id } => acknowledgement(Kind::Pubcomp, id),
                mqtt::Output::SendSubscribe { id } => match self.asking.front() {
                    Some((filter, qos, _)) => {
                        BrokerPacket::Subscribe { id, filter: Arc::clone(filter), qos: *qos }
                    }
                    None => continue,
                },
                mqtt::Output::SendPingreq => BrokerPacket::Pingreq,
                mqtt::Output::SendDisconnect => BrokerPacket::Disconnect,
                mqtt::Output::Connected { session_present } => {
                    self.connected(around, session_present);
                    followed.push(OwnLinkEvent::Online);
                    continue;
                }
                mqtt::Output::Acknowledged { token } | mqtt::Output::Refused { token, .. } => {
                    if let Some((_, Some((client, id)))) = self.held.remove(&token) {
                        followed.push(OwnLinkEvent::Acknowledged { client, id });
                    }
                    continue;
                }
                // It subscribes to one filter after the other, and never asks for a change.
                mqtt::Output::Subscribed
                | mqtt::Output::NoSubscribers { .. }
                | mqtt::Output::SendChange { .. }
                | mqtt::Output::SubscriptionChanged
                | mqtt::Output::Release { .. } => continue,
                mqtt::Output::Close(_) => {
                    self.state = OwnLinkState::Closed { since: Some(around.now) };
                    self.asked = false;
                    around.out.push_back(Output::Close(Link::OWN));
                    continue;
                }
            };
            around.out.push_back(Output::Broker(Link::OWN, packet));
        }
        followed
    }

    fn publication(&mut self, token: u64, id: u16, qos: Qos, dup: bool) -> Option<BrokerPacket<M>> {
        // At QoS 0 nothing more will be heard of it.
        let content = match qos {
            Qos::AtMostOnce => self.held.remove(&token)?.0,
            _ => self.held.get(&token)?.0.clone(),
        };
        let Will { topic, retain, message, .. } = content;
        Some(BrokerPacket::Publish { dup, qos, retain, topic, id, message })
    }

    /// What the broker must be told after a connection was made; what came before it goes first.
    fn connected(&mut self, around: &mut Around<'_, M>, session_present: bool) {
        if !session_present {
            let known = std::mem::take(&mut self.filters);
            // Known filters before those that clients have asked for meanwhile, in their order.
            for (filter, qos) in known.into_iter().rev() {
                self.asking.push_front((filter, qos, Vec::new()));
            }
        }
        for content in std::mem::take(&mut self.early) {
            self.publish(around, content, None);
        }
        self.ask(around.now);
    }
}
