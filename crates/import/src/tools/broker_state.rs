//! What a broker's log says of messages: what was published, whom it was sent to, and what was acknowledged.
//!
//! A log has no content, so that copies are told from each other by where they stand. Mosquitto has one thread: what it sends
//! between a PUBLISH (at QoS 2 the PUBREL) and the next line of another kind are that message's copies. What waits for a client
//! that is away or has as much in flight as it may comes later, in its order; it is told by topic, size and order.
//!
//! ```text
//!   Received PUBLISH ─┬─► Sending PUBLISH to b     the copy of b: read by b when it acknowledges (at QoS 0: sent)
//!                     ├─► Sending PUBACK           acknowledged; the batch is over
//!                     └─► nothing for c            waits for c: the next copy for c of its topic and size
//! ```
//!
//! At QoS 1 and 2 a copy is delivered when its receiver acknowledged it; its time is that of its sending, the last one where it was
//! sent again. At QoS 0 the broker's word is all there is.
//!
//! What it does not model: sessions that MQTT 5 lets expire, several brokers in one log.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use mqttlab_mqtt::{Qos, RetainHandling, SubscriptionOptions};
use mqttlab_recording::{Acknowledged, Dropped, Event, EventKind, Identified, LossCause, Received, Sent};
use mqttlab_units::Instant;

use super::broker_events::{AckKind, BrokerEvent, LoggedAck, LoggedPublish, REFUSED, Way};
use crate::clock::CaptureClock;
use crate::error::Result;
use crate::output::ImportOutput;
use crate::participants::Participants;
use crate::subscriptions::ObservedSubscriptions;

/// Everything that a log has said so far.
pub struct BrokerState<'a> {
    /// Where rows go.
    pub output: ImportOutput<'a>,
    /// Counts from the log's beginning.
    clock: CaptureClock,
    /// Whether copies follow their message at once ([`Batch`]).
    is_causal: bool,
    /// Who takes part.
    pub participants: Participants,
    /// Who should receive what.
    pub subscriptions: ObservedSubscriptions,
    clients: HashMap<u32, LoggedClient>,
    retained: HashMap<Arc<str>, LoggedMessage>,
    topics: HashMap<String, Arc<str>>,
    batch: Option<Batch>,
    asking: Option<Asking>,
    /// Whether the log notes granted subscriptions.
    notes_grants: bool,
    /// What there was.
    pub counts: LogCounts,
}

/// What a log had, for its findings.
#[derive(Default)]
pub struct LogCounts {
    /// PUBLISH packets from clients.
    pub published: u64,
    /// PUBLISH packets to clients.
    pub copies: u64,
    /// Copies told by topic, size and order.
    pub by_order: u64,
    /// Copies of no message in the log.
    pub foreign: u64,
    /// PUBLISH packets that the broker refused.
    pub denied: u64,
    /// Clients that were connected before the log began.
    pub joined: u64,
    /// Times that the broker began.
    pub starts: u64,
    /// Clients of MQTT 5 that were away while messages came for them, and did not come back to their sessions.
    pub unsure: u64,
}

/// A message from a client.
#[derive(Clone)]
struct LoggedMessage {
    publisher: u32,
    sequence: u32,
    /// The topic's number, with its receivers.
    number: u32,
    topic: Arc<str>,
    qos: u8,
    bytes: Option<u32>,
    content: Option<u64>,
}

impl LoggedMessage {
    fn fits(&self, copy: &LoggedPublish) -> bool {
        *self.topic == *copy.topic && self.bytes == copy.bytes && self.content == copy.content
    }
}

/// A message whose copies are being sent.
struct Batch {
    message: LoggedMessage,
    /// Who has got one.
    got: Vec<u32>,
}

/// A SUBSCRIBE or an UNSUBSCRIBE whose filters follow.
struct Asking {
    client: u32,
    subscribes: bool,
    /// Those that have not been granted.
    filters: Vec<String>,
}

/// A copy that has not been acknowledged.
struct OpenCopy {
    message: Option<LoggedMessage>,
    row: Received,
}

#[derive(Default)]
struct LoggedClient {
    name: String,
    sent: u32,
    /// Whether its CONNECT is in the log.
    is_known: bool,
    is_connected: bool,
    /// Whether its session outlives its connection.
    keeps: bool,
    /// Whether it is of MQTT 5, where a session ends when its expiry interval is over, which no log has.
    may_expire: bool,
    goodbye: bool,
    /// Messages from it that are not acknowledged, by packet identifier.
    inbound: HashMap<u32, LoggedMessage>,
    /// Copies to it that are not acknowledged, by packet identifier.
    outbound: HashMap<u32, OpenCopy>,
    /// What waits for it at the broker.
    waiting: VecDeque<LoggedMessage>,
    /// Whether the broker has said that it drops what would wait, since when nothing waited.
    is_dropping: bool,
    /// Its filters, with their QoS.
    filters: Vec<(String, u8)>,
}

impl<'a> BrokerState<'a> {
    /// Nothing has been said. `is_causal`: see [`Batch`].
    pub fn new(output: ImportOutput<'a>, clock: CaptureClock, is_causal: bool) -> BrokerState<'a> {
        BrokerState {
            output,
            clock,
            is_causal,
            participants: Participants::default(),
            subscriptions: ObservedSubscriptions::default(),
            clients: HashMap::new(),
            retained: HashMap::new(),
            topics: HashMap::new(),
            batch: None,
            asking: None,
            notes_grants: false,
            counts: LogCounts::default(),
        }
    }

    /// The client and the filters whose grant a line may note.
    pub fn awaited(&self) -> Option<(&str, &[String])> {
        let asking = self.asking.as_ref().filter(|asking| asking.subscribes)?;
        Some((&self.clients.get(&asking.client)?.name, &asking.filters))
    }

    /// What a line says.
    pub fn event(&mut self, at: Instant, event: BrokerEvent) -> Result<()> {
        let is_copy = matches!(&event, BrokerEvent::Publish(publish) if publish.way == Way::Sent);
        if !is_copy {
            self.end_batch();
        }
        match event {
            BrokerEvent::Started => self.started(at),
            BrokerEvent::Connected { client, clean, level } => self.connected(at, &client, clean, level),
            BrokerEvent::Connack { client, present, code } => self.connack(at, &client, present, code),
            BrokerEvent::Goodbye(client) => {
                let client = self.client(&client);
                self.of(client).goodbye = true;
                Ok(())
            }
            BrokerEvent::Ended { client, how } => self.ended(at, &client, &how),
            BrokerEvent::Subscribe(client) => self.asks(at, &client, true),
            BrokerEvent::Unsubscribe(client) => self.asks(at, &client, false),
            BrokerEvent::Detail(detail) => {
                self.asked(at, &detail);
                Ok(())
            }
            BrokerEvent::Granted { client, filter } => {
                self.granted(at, &client, &filter);
                Ok(())
            }
            BrokerEvent::Suback { client, codes } => self.suback(at, &client, &codes),
            BrokerEvent::Publish(publish) => match publish.way {
                Way::Received => self.published(at, publish),
                Way::Denied => self.denied(at, &publish),
                Way::Sent => self.copied(at, &publish),
            },
            BrokerEvent::Ack(ack) => self.acknowledged(at, &ack),
            BrokerEvent::Dropping(client) => {
                let client = self.client(&client);
                self.of(client).is_dropping = true;
                self.push(at, EventKind::QueueFull, client, "broker")
            }
        }
    }

    fn client(&mut self, name: &str) -> u32 {
        let number = self.participants.logged(name, "");
        self.clients
            .entry(number)
            .or_insert_with(|| LoggedClient { name: name.to_owned(), ..LoggedClient::default() });
        number
    }

    /// A client of which a packet was seen: without a CONNECT it was connected before the log began.
    fn present(&mut self, name: &str) -> u32 {
        let number = self.client(name);
        let client = self.of(number);
        let is_new = !client.is_known;
        client.is_known = true;
        client.is_connected = true;
        // Its session may go on.
        client.keeps |= is_new;
        self.counts.joined += u64::from(is_new);
        number
    }

    fn of(&mut self, client: u32) -> &mut LoggedClient {
        self.clients.entry(client).or_default()
    }

    fn push(&mut self, at: Instant, kind: EventKind, client: u32, words: &str) -> Result<()> {
        let row = Event { at: self.clock.at(at), kind, client: Some(client), took: None };
        Ok(self.output.recorder.event(&row, words)?)
    }

    fn topic(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.topics.get(name) {
            return Arc::clone(known);
        }
        let topic: Arc<str> = name.into();
        self.topics.insert(name.to_owned(), Arc::clone(&topic));
        topic
    }

    /// All has been said.
    pub fn finish(&mut self) {
        self.end_batch();
        let away = |client: &&LoggedClient| {
            client.may_expire && client.keeps && !client.is_connected && !client.waiting.is_empty()
        };
        self.counts.unsure += self.clients.values().filter(away).count() as u64;
    }

    // Connections and sessions.

    fn started(&mut self, at: Instant) -> Result<()> {
        self.counts.starts += 1;
        let mut cut: Vec<u32> = self
            .clients
            .iter()
            .filter(|(_, client)| client.is_connected)
            .map(|(&number, _)| number)
            .collect();
        cut.sort_unstable();
        for client in cut {
            self.over(at, client, "the broker ended")?;
        }
        Ok(())
    }

    fn connected(&mut self, at: Instant, name: &str, clean: bool, level: Option<u8>) -> Result<()> {
        let number = self.client(name);
        let client = self.of(number);
        client.is_known = true;
        client.is_connected = true;
        let was_away = client.may_expire && client.keeps && !client.waiting.is_empty();
        client.keeps = !clean;
        client.may_expire = level == Some(5);
        client.goodbye = false;
        self.counts.unsure += u64::from(clean && was_away);
        self.push(at, EventKind::Connect, number, "")?;
        if clean { self.session_over(at, number) } else { Ok(()) }
    }

    fn connack(&mut self, at: Instant, name: &str, present: Option<bool>, code: u32) -> Result<()> {
        let client = self.client(name);
        if code != 0 {
            return self.push(at, EventKind::Refused, client, &format!("CONNACK with code 0x{code:02x}"));
        }
        if present == Some(false) {
            let known = self.of(client);
            let is_unsure = known.may_expire && known.keeps && !known.waiting.is_empty();
            self.counts.unsure += u64::from(is_unsure);
            self.session_over(at, client)?;
        }
        let words = if present == Some(true) { "session present" } else { "" };
        self.push(at, EventKind::Connack, client, words)
    }

    fn ended(&mut self, at: Instant, name: &str, how: &str) -> Result<()> {
        let client = self.client(name);
        if self.of(client).is_connected { self.over(at, client, how) } else { Ok(()) }
    }

    fn over(&mut self, at: Instant, number: u32, how: &str) -> Result<()> {
        let client = self.of(number);
        client.is_connected = false;
        let (planned, keeps) = (client.goodbye, client.keeps);
        client.inbound.clear();
        if planned {
            self.push(at, EventKind::Close, number, "")?;
        } else {
            self.push(at, EventKind::Disconnect, number, how)?;
        }
        if keeps { Ok(()) } else { self.session_over(at, number) }
    }

    fn session_over(&mut self, at: Instant, number: u32) -> Result<()> {
        let client = self.of(number);
        client.outbound.clear();
        client.waiting.clear();
        client.filters.clear();
        if self.subscriptions.forget(number, LAST, at) {
            return self.push(at, EventKind::SessionEnd, number, "");
        }
        Ok(())
    }

    // Subscriptions.

    fn asks(&mut self, at: Instant, name: &str, subscribes: bool) -> Result<()> {
        let client = self.present(name);
        self.asking = Some(Asking { client, subscribes, filters: Vec::new() });
        let kind = if subscribes { EventKind::Subscribe } else { EventKind::Unsubscribe };
        self.push(at, kind, client, "")
    }

    fn asked(&mut self, at: Instant, detail: &str) {
        let Some(asking) = &mut self.asking else { return };
        let client = asking.client;
        let (filter, qos) = super::mosquitto::filter(detail);
        if !asking.subscribes {
            self.subscriptions.unsubscribe(client, filter, at);
            self.of(client).filters.retain(|(known, _)| known != filter);
            return;
        }
        asking.filters.push(filter.to_owned());
        let options = SubscriptionOptions {
            qos: [Qos::AtMostOnce, Qos::AtLeastOnce, Qos::ExactlyOnce][usize::from(qos.min(2))],
            retain_handling: RetainHandling::Send,
            retain_as_published: false,
            no_local: false,
        };
        self.subscriptions.ask(client, filter, options, at);
        let filters = &mut self.of(client).filters;
        filters.retain(|(known, _)| known != filter);
        filters.push((filter.to_owned(), qos));
    }

    fn granted(&mut self, at: Instant, name: &str, filter: &str) {
        self.notes_grants = true;
        let client = self.client(name);
        self.subscriptions.grant(client, filter, at);
        if let Some(asking) = self.asking.as_mut().filter(|asking| asking.client == client) {
            asking.filters.retain(|known| known != filter);
        }
    }

    fn suback(&mut self, at: Instant, name: &str, codes: &[u32]) -> Result<()> {
        let client = self.client(name);
        let left = self.asking.take().filter(|asking| asking.client == client).map(|asking| asking.filters);
        for (place, filter) in left.unwrap_or_default().into_iter().enumerate() {
            if codes.get(place).map_or(self.notes_grants, |code| *code >= REFUSED) {
                self.subscriptions.unsubscribe(client, &filter, at);
                self.of(client).filters.retain(|(known, _)| *known != filter);
                self.push(at, EventKind::Refused, client, &filter)?;
            } else {
                self.subscriptions.grant(client, &filter, at);
            }
        }
        self.push(at, EventKind::Suback, client, "")
    }

    // Messages.

    fn published(&mut self, at: Instant, publish: LoggedPublish) -> Result<()> {
        let publisher = self.present(&publish.client);
        let known = self.of(publisher).inbound.get(&publish.id).filter(|known| known.fits(&publish));
        if let Some(message) = known.filter(|_| publish.qos == 2 || publish.dup).cloned() {
            // The same message again: at QoS 1 the broker passes it on again (MQTT 5 §4.3.2).
            self.batch = (publish.qos == 1).then_some(Batch { message, got: Vec::new() });
            return Ok(());
        }
        self.counts.published += 1;
        let topic = self.topic(&publish.topic);
        let number = self.subscriptions.topic_from(publisher, &topic, at, 0);
        let message = self.sent(at, publisher, &publish, topic, number)?;
        if publish.qos > 0 {
            self.of(publisher).inbound.insert(publish.id, message.clone());
        }
        if publish.retain {
            match publish.bytes {
                Some(0) => self.retained.remove(&message.topic),
                _ => self.retained.insert(Arc::clone(&message.topic), message.clone()),
            };
        }
        if !self.is_causal {
            self.wait(&message, &[]);
        } else if publish.qos < 2 {
            self.batch = Some(Batch { message, got: Vec::new() });
        }
        Ok(())
    }

    fn sent(
        &mut self,
        at: Instant,
        publisher: u32,
        publish: &LoggedPublish,
        topic: Arc<str>,
        number: u32,
    ) -> Result<LoggedMessage> {
        let client = self.of(publisher);
        let sequence = client.sent;
        client.sent += 1;
        let at = self.clock.at(at);
        self.output.recorder.sent(&Sent {
            publisher,
            sequence,
            topic: number,
            qos: publish.qos,
            retain: publish.retain,
            payload_bytes: publish.bytes.unwrap_or_default(),
            intended: at,
            sent: at,
            written: None,
            publication: None,
        })?;
        let (qos, bytes, content) = (publish.qos, publish.bytes, publish.content);
        Ok(LoggedMessage { publisher, sequence, number, topic, qos, bytes, content })
    }

    fn denied(&mut self, at: Instant, publish: &LoggedPublish) -> Result<()> {
        self.counts.denied += 1;
        let publisher = self.present(&publish.client);
        let topic = self.topic(&publish.topic);
        let number = self.subscriptions.topic_for(&topic, Vec::new(), 0);
        self.sent(at, publisher, publish, topic, number)?;
        self.push(at, EventKind::Refused, publisher, &format!("PUBLISH to {}", publish.topic))
    }

    /// Who should have had a copy of the message before waits for it.
    fn end_batch(&mut self) {
        if let Some(Batch { message, got }) = self.batch.take() {
            self.wait(&message, &got);
        }
    }

    fn wait(&mut self, message: &LoggedMessage, got: &[u32]) {
        let receivers: Vec<u32> = self.subscriptions.receivers_of(message.number).to_vec();
        for receiver in receivers.into_iter().filter(|receiver| !got.contains(receiver)) {
            let Some(client) = self.clients.get_mut(&receiver) else { continue };
            let mut fitting = client
                .filters
                .iter()
                .filter(|(filter, _)| mqttlab_mqtt::topic::matches(filter, &message.topic));
            let keeps_all = !self.is_causal;
            if keeps_all || (message.qos > 0 && fitting.any(|(_, qos)| *qos > 0)) {
                if client.waiting.len() >= WAITING_MAX {
                    client.waiting.pop_front();
                }
                client.waiting.push_back(message.clone());
            }
        }
    }

    fn copied(&mut self, at: Instant, copy: &LoggedPublish) -> Result<()> {
        self.counts.copies += 1;
        let subscriber = self.present(&copy.client);
        let (message, is_stored, by_order) = self.origin(subscriber, copy);
        if self.is_causal && copy.qos > 0 && !by_order && !is_stored && !copy.dup && message.is_some() {
            self.nothing_waits(at, subscriber)?;
        }
        self.counts.by_order += u64::from(by_order);
        self.counts.foreign += u64::from(message.is_none());
        let identified = match (&message, by_order) {
            (None, _) => Identified::Unknown,
            (Some(_), true) => Identified::Order,
            (Some(_), false) => Identified::Payload,
        };
        let row = Received {
            subscriber,
            publisher: message.as_ref().map(|message| message.publisher),
            sequence: message.as_ref().map_or(0, |message| message.sequence),
            qos: copy.qos,
            dup: copy.dup,
            retained: is_stored,
            payload_bytes: copy.bytes.unwrap_or_default(),
            received: self.clock.at(at),
            identified,
        };
        if copy.qos == 0 {
            self.output.recorder.received(&row)?;
        } else {
            self.of(subscriber).outbound.insert(copy.id, OpenCopy { message, row });
        }
        Ok(())
    }

    /// A copy at QoS 1 or 2 that was sent at once: had anything waited for the receiver, this message would, too
    /// (MQTT 5 §4.6).
    fn nothing_waits(&mut self, at: Instant, subscriber: u32) -> Result<()> {
        let at = self.clock.at(at);
        let client = self.of(subscriber);
        let is_dropping = std::mem::take(&mut client.is_dropping);
        for message in std::mem::take(&mut client.waiting).into_iter().filter(|_| is_dropping) {
            self.output.recorder.dropped(&Dropped {
                publisher: message.publisher,
                sequence: message.sequence,
                subscriber: Some(subscriber),
                cause: LossCause::QueueFull,
                at,
            })?;
        }
        Ok(())
    }

    /// Whose copy it is, whether it is from the store, and whether order alone says so.
    fn origin(&mut self, subscriber: u32, copy: &LoggedPublish) -> (Option<LoggedMessage>, bool, bool) {
        let client = self.clients.entry(subscriber).or_default();
        let open = client.outbound.get(&copy.id).filter(|_| copy.qos > 0 && copy.dup);
        if let Some(open) = open.filter(|open| open.message.as_ref().is_some_and(|known| known.fits(copy))) {
            return (open.message.clone(), open.row.retained, open.row.identified == Identified::Order);
        }
        if let Some(batch) = self.batch.as_mut().filter(|batch| batch.message.fits(copy)) {
            batch.got.push(subscriber);
            return (Some(batch.message.clone()), false, false);
        }
        if copy.retain
            && let Some(stored) = self.retained.get(&*copy.topic).filter(|known| known.fits(copy))
        {
            return (Some(stored.clone()), true, false);
        }
        let place = client.waiting.iter().position(|message| message.fits(copy));
        match place.and_then(|place| client.waiting.remove(place)) {
            // With its content a message is known by that.
            Some(message) => {
                let by_order = message.content.is_none();
                (Some(message), false, by_order)
            }
            None => (None, copy.retain, false),
        }
    }

    fn acknowledged(&mut self, at: Instant, ack: &LoggedAck) -> Result<()> {
        let client = self.present(&ack.client);
        match (ack.way, ack.kind) {
            (Way::Received, AckKind::Puback | AckKind::Pubrec | AckKind::Pubcomp) => {
                if let Some(open) = self.of(client).outbound.remove(&ack.id) {
                    self.output.recorder.received(&open.row)?;
                }
                Ok(())
            }
            (Way::Received, AckKind::Pubrel) => {
                let message = self.of(client).inbound.get(&ack.id).cloned();
                self.batch =
                    message.filter(|_| self.is_causal).map(|message| Batch { message, got: Vec::new() });
                Ok(())
            }
            (Way::Sent, AckKind::Puback | AckKind::Pubcomp) => self.answered(at, client, ack),
            (Way::Sent, AckKind::Pubrec) if ack.code >= REFUSED => self.answered(at, client, ack),
            _ => Ok(()),
        }
    }

    /// The broker has answered a message for good.
    fn answered(&mut self, at: Instant, client: u32, ack: &LoggedAck) -> Result<()> {
        let Some(message) = self.of(client).inbound.remove(&ack.id) else { return Ok(()) };
        if ack.code >= REFUSED {
            self.counts.denied += 1;
            return self.push(
                at,
                EventKind::Refused,
                client,
                &format!("PUBLISH with code 0x{:02x}", ack.code),
            );
        }
        let LoggedMessage { publisher, sequence, .. } = message;
        let row = Acknowledged { publisher, sequence, at: self.clock.at(at) };
        Ok(self.output.recorder.acknowledged(&row)?)
    }
}

/// Later than everything.
const LAST: Instant = Instant::from_ns(u64::MAX);
/// Mosquitto keeps 1,000 for a client unless it is configured otherwise.
const WAITING_MAX: usize = 100_000;
