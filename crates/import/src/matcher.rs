//! Messages out of PUBLISH packets: what was published beside what was delivered.
//!
//! ```text
//!   publisher ──PUBLISH──► broker ──PUBLISH──► subscriber
//!        published()                 delivered()            identity, else content ──► the same message
//!   publisher ◄──PUBACK, PUBCOMP── broker                   acknowledged()
//!                  broker ──PUBREL──► subscriber            released(): delivery at QoS 2
//! ```
//!
//! A PUBLISH to the broker is a message, unless it repeats one: by DUP and packet identifier, or because it carries
//! the identity of a message that was published before (a relay's copy). A PUBLISH from the broker is a delivery of
//! the message with the same identity, else of the one with the same content ([`ContentQueues`]), else foreign. Behind a hole
//! in its publisher's stream a message is known only later than its delivery, which waits for it ([`UntracedDelivery`]).

mod answers;
mod proofs;
mod untraced;

use std::collections::VecDeque;

use mqttlab_mqtt::SubscriptionOptions;
use mqttlab_recording::{Acknowledged, Dropped, Identified, NumberMap, NumberSet, Received, Sent, identity};
use mqttlab_units::Instant;

use super::causes::PacketCauses;
use super::clocks::ClockEvidence;
use super::content_order::OrderWindow;
use super::content_queues::{self, ContentQueues, TracedMessage};
use super::delays::{self, DelayedMessages};
use super::identities::{Identities, PublishOrigin};
use super::message::{CountedMessage, SeenPublish};
use super::servers::ObservedServers;
use super::strangers::Strangers;
use super::streams::StreamPlace;
use super::subscriptions::ObservedSubscriptions;
use super::wills::ObservedWills;
use untraced::UntracedDelivery;

/// A row for the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchedRow {
    /// A message was published.
    Sent(Sent),
    /// It was acknowledged.
    Acknowledged(Acknowledged),
    /// It was delivered.
    Received(Received),
    /// The broker said that it will not be.
    Dropped(Dropped),
}

/// How deliveries were traced to messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traced {
    /// By order, which is certain: several messages had the same content.
    pub by_order: u64,
    /// By order, which is a guess: not all of several messages with the same content came, or their order is not promised.
    pub ambiguous: u64,
    /// Not at all.
    pub foreign: u64,
}

/// Everything that is known about the messages under way.
pub struct Matcher {
    /// Who subscribes to what.
    pub subscriptions: ObservedSubscriptions,
    /// Who is connected to which server.
    pub servers: ObservedServers,
    /// Whether the clocks of several captures agree.
    pub clocks: ClockEvidence,
    identities: Identities,
    waiting: ContentQueues,
    counts: NumberMap<u32, u32>,
    /// Not acknowledged, by publisher and packet identifier.
    outgoing: NumberMap<(u32, u16), UnacknowledgedMessage>,
    /// Not acknowledged by the receiver, by receiver and packet identifier.
    incoming: NumberMap<(u32, u16), PendingDelivery>,
    deliver_on_release: bool,
    traced: Traced,
    /// Messages that their topics delay.
    pub delays: DelayedMessages,
    /// What packets prove of messages that do not arrive.
    pub causes: PacketCauses,
    /// What CONNECT packets announce.
    pub wills: ObservedWills,
    /// What foreign deliveries may be.
    pub strangers: Strangers,
    /// Clients that were taken for subscribers because a message reached them.
    guessed: Vec<u32>,
    /// Messages that a relay has published to another server.
    relayed: NumberSet<(u32, u32)>,
    /// Connections that are over.
    parted: NumberSet<u32>,
    rows: VecDeque<(Slot, Option<StreamPlace>)>,
    /// See [`Matcher::carried_at`].
    place: Option<StreamPlace>,
    /// How many rows have gone: the number of the first one.
    gone: u64,
    /// The rows of deliveries that wait for their message, by content.
    untraced: NumberMap<u64, Vec<u64>>,
    /// Whether no more packets come.
    over: bool,
}

/// A row, or one that is not known yet. The rows behind it wait, for their order says who came first.
enum Slot {
    Row(MatchedRow),
    Untraced(Received, Box<UntracedDelivery>),
    /// Whether its message is certain is not known yet.
    Undecided(Received, OrderWindow),
}

/// A message whose acknowledgement is awaited, and the connection that carried it last.
#[derive(Clone, Copy)]
struct UnacknowledgedMessage {
    message: CountedMessage,
    connection: u32,
    /// The number of its topic, where this is its first copy.
    topic: Option<u32>,
    /// Its number among those that wait, where its content tells it.
    waiting: Option<u64>,
}

/// A delivery at QoS 1 or 2 under way.
#[derive(Clone)]
struct PendingDelivery {
    connection: u32,
    message: Option<TracedMessage>,
    /// Whose will it is.
    will: Option<u32>,
    /// The row that waits for the PUBREL.
    held: Option<HeldDelivery>,
}

/// A delivery's row, and what it takes to trace it later.
#[derive(Clone)]
struct HeldDelivery {
    row: Received,
    untraced: Option<Box<UntracedDelivery>>,
    window: Option<OrderWindow>,
}

impl Matcher {
    /// A matcher without messages. At QoS 2 a message counts as delivered at its PUBREL, or already at its PUBLISH.
    pub fn new(deliver_on_release: bool) -> Matcher {
        Matcher {
            subscriptions: ObservedSubscriptions::default(),
            servers: ObservedServers::default(),
            clocks: ClockEvidence::default(),
            identities: Identities::default(),
            waiting: ContentQueues::default(),
            counts: NumberMap::default(),
            outgoing: NumberMap::default(),
            incoming: NumberMap::default(),
            deliver_on_release,
            traced: Traced::default(),
            delays: DelayedMessages::default(),
            causes: PacketCauses::default(),
            wills: ObservedWills::default(),
            strangers: Strangers::default(),
            guessed: Vec::new(),
            relayed: NumberSet::default(),
            parted: NumberSet::default(),
            rows: VecDeque::new(),
            place: None,
            gone: 0,
            untraced: NumberMap::default(),
            over: false,
        }
    }

    /// The same one with these servers, of which nobody has a client yet.
    pub fn with_servers(mut self, servers: ObservedServers) -> Matcher {
        self.servers = servers;
        self
    }

    /// The recording's clock is that of the run whose messages these are.
    pub fn trust_clock(&mut self) {
        self.identities.trust_clock();
    }

    /// Where the packets lie that come next, when their receiver may not have them yet; `None`: it has them.
    pub fn carried_at(&mut self, place: Option<StreamPlace>) {
        self.place = place;
    }

    /// The next row.
    pub fn poll(&mut self) -> Option<MatchedRow> {
        self.poll_placed().map(|(row, _)| row)
    }

    /// The next row, and the place of its packet, when its receiver may not have it.
    pub fn poll_placed(&mut self) -> Option<(MatchedRow, Option<StreamPlace>)> {
        let waits = match &self.rows.front()?.0 {
            Slot::Row(_) => false,
            Slot::Untraced(..) => self.rows.len() <= self.rows_waiting_max(),
            Slot::Undecided(_, window) => window.is_undecided() && self.rows.len() <= ROWS_UNDECIDED_MAX,
        };
        if waits && !self.over {
            return None;
        }
        let (slot, place) = self.rows.pop_front()?;
        let row = match slot {
            Slot::Row(row) => row,
            Slot::Untraced(row, untraced) => {
                self.forget_untraced(untraced.key, self.gone);
                MatchedRow::Received(self.given_up(row, &untraced))
            }
            Slot::Undecided(row, window) => {
                let identified = if window.is_certain() { row.identified } else { Identified::Ambiguous };
                MatchedRow::Received(Received { identified, ..row })
            }
        };
        self.gone += 1;
        if let MatchedRow::Received(row) = &row {
            self.traced.by_order += u64::from(row.identified == Identified::Order);
            self.traced.ambiguous += u64::from(row.identified == Identified::Ambiguous);
        }
        Some((row, place))
    }

    fn push(&mut self, slot: Slot) {
        self.rows.push_back((slot, self.place));
    }

    /// Behind the clock of another capture a message may come long after its delivery.
    fn rows_waiting_max(&self) -> usize {
        if self.clocks.are_several() { ROWS_OF_SEVERAL_MAX } else { ROWS_WAITING_MAX }
    }

    /// How deliveries were traced so far.
    pub fn traced(&self) -> Traced {
        self.traced
    }

    /// Clients that were taken for subscribers since this was asked last.
    pub fn guessed_subscribers(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.guessed)
    }

    /// Packets of a client were not captured: which of several equal messages it had or sent cannot be counted any more.
    pub fn distrust_order(&mut self, client: u32) {
        self.waiting.distrust(client);
    }

    /// A PUBLISH was sent to the broker. Returns the message that it carries.
    pub fn published(&mut self, publish: &SeenPublish<'_>) -> CountedMessage {
        self.wills.published(publish);
        let place = publish.id.map(|id| (publish.client, id));
        if publish.dup
            && let Some(outgoing) = place.and_then(|place| self.outgoing.get_mut(&place))
        {
            outgoing.connection = publish.connection;
            let message = outgoing.message;
            if let Some(number) = outgoing.waiting {
                self.waiting.publish_again(publish, number);
            }
            return message;
        }
        let origin = match identity::find(publish.head) {
            Some(identity) => self.identities.published(&identity, publish),
            None => PublishOrigin::Foreign,
        };
        let mut waiting = None;
        let (message, intended) = match origin {
            PublishOrigin::New(message, intended) => (message, Some(intended)),
            PublishOrigin::Known(message) => {
                if self.servers.of(publish.client) != self.servers.of(message.publisher) {
                    self.relayed.insert((message.publisher, message.sequence));
                }
                (message, None)
            }
            PublishOrigin::Foreign => {
                let (message, intended, number) = self.foreign(publish);
                waiting = Some(number);
                (message, intended)
            }
        };
        let mut topic = None;
        if let Some(intended) = intended {
            topic = Some(self.sent(publish, message, intended));
            self.trace_again(publish, message);
        }
        if let Some(place) = place {
            let connection = publish.connection;
            self.outgoing.insert(place, UnacknowledgedMessage { message, connection, topic, waiting });
        }
        message
    }

    /// The message that somebody passes on with these first bytes, if its identity is known.
    pub fn passed_on(&self, head: &[u8]) -> Option<CountedMessage> {
        identity::find(head).and_then(|identity| self.identities.known(&identity))
    }

    /// A message without an identity, with its number among those that wait: new, unless it is a repetition whose first copy was
    /// acknowledged or forgotten.
    fn foreign(&mut self, publish: &SeenPublish<'_>) -> (CountedMessage, Option<Instant>, u64) {
        let again = self.waiting.again(publish, self.servers.of(publish.client));
        if let Some((message, number)) = again.filter(|_| publish.dup) {
            self.waiting.publish_again(publish, number);
            return (message, None, number);
        }
        // The counts of identified messages are their run's; others of the same client are counted far from them.
        let first = if self.identities.knows(publish.client) { FOREIGN_FROM } else { 0 };
        let count = self.counts.entry(publish.client).or_default();
        *count = (*count).max(first);
        let message = CountedMessage { publisher: publish.client, sequence: *count };
        *count = count.saturating_add(1);
        let server = self.servers.of(publish.client);
        let number = self.waiting.put(publish, message, server);
        if let Some(inner) = delays::inner(publish.topic) {
            self.waiting.put(&SeenPublish { topic: &inner, ..*publish }, message, server);
        }
        (message, Some(publish.first), number)
    }

    /// Answers the number of its topic.
    fn sent(&mut self, publish: &SeenPublish<'_>, message: CountedMessage, intended: Instant) -> u32 {
        let server = self.servers.of(publish.client);
        let topic = match self.delays.published(publish, message) {
            Some(inner) => {
                let names = [publish.topic, &inner];
                self.subscriptions.topic_delayed(publish.client, names, publish.complete, server)
            }
            None => self.subscriptions.topic_from(publish.client, publish.topic, publish.complete, server),
        };
        if !self.subscriptions.has_receivers(topic) {
            self.strangers.unreceived(publish);
        }
        self.causes.sent(publish, message);
        if self.causes.concern(publish) {
            let subscriptions = &self.subscriptions;
            let receivers = subscriptions.receivers_of(topic);
            self.causes.published(publish, message, receivers, |client| subscriptions.qos_of(client, topic));
        }
        if self.servers.are_several() {
            self.subscriptions
                .receivers_of(topic)
                .iter()
                .for_each(|&client| self.servers.fits(server, client));
        }
        self.push(Slot::Row(MatchedRow::Sent(Sent {
            publisher: message.publisher,
            sequence: message.sequence,
            topic,
            qos: publish.qos,
            retain: publish.retain,
            payload_bytes: publish.payload_bytes,
            intended,
            sent: publish.first,
            written: None,
            publication: None,
        })));
        topic
    }

    /// The last acknowledgement of a packet identifier came back to its publisher.
    pub fn acknowledged(&mut self, client: u32, id: u16, at: Instant) {
        if let Some(outgoing) = self.outgoing.remove(&(client, id))
            && outgoing.message.publisher == client
        {
            let CountedMessage { publisher, sequence } = outgoing.message;
            self.push(Slot::Row(MatchedRow::Acknowledged(Acknowledged { publisher, sequence, at })));
        }
    }

    /// A PUBLISH came from the broker. Returns the message that it carries, when that is known.
    pub fn delivered(&mut self, publish: &SeenPublish<'_>) -> Option<CountedMessage> {
        let place = publish.id.map(|id| (publish.client, id));
        let earlier = place.and_then(|place| self.incoming.get(&place).cloned());
        let since = self.subscribed_since(publish);
        let (traced, will, repeated) = match earlier {
            Some(ref delivery) if publish.dup => (delivery.message.clone(), delivery.will, true),
            _ => match self.will_of(publish, since) {
                Some(client) => (None, Some(client), false),
                None => (self.trace(publish, since), None, false),
            },
        };
        let (copy_of, traced) = match traced {
            Some(copy) if copy.is_unexplained => (Some(copy), None),
            traced => (None, traced),
        };
        let message = traced.as_ref().map(|traced| traced.message);
        if let Some(id) = publish.id {
            self.causes.takes_place(publish.client, id);
        }
        if let Some(message) = message {
            self.causes.delivered(message, publish.client, publish.complete);
            self.wills.passed_on(message.publisher, publish);
        }
        // A receiver at QoS 2 drops a repetition that it has not released (MQTT 5 §4.3.3).
        if repeated && publish.qos == 2 {
            return message;
        }
        if let Some(held) = earlier.and_then(|delivery| delivery.held) {
            // Its identifier is in use again, so that its release was not captured.
            self.received(held);
        }
        let row = received(publish, traced.as_ref());
        let untraced = || Box::new(UntracedDelivery::of(publish, copy_of.clone()));
        let row = HeldDelivery {
            row: will.map_or(row, |client| row.with_will(Some(client))),
            untraced: (traced.is_none() && will.is_none()).then(untraced),
            window: traced.as_ref().and_then(|traced| traced.window.clone()),
        };
        let hold = publish.qos == 2 && self.deliver_on_release;
        if let Some(place) = place {
            let (connection, message) = (publish.connection, traced.or(copy_of));
            let held = hold.then(|| row.clone());
            self.incoming.insert(place, PendingDelivery { connection, message, will, held });
        }
        if !hold || place.is_none() {
            self.received(row);
        }
        message
    }

    /// The broker released a packet identifier at QoS 2.
    pub fn released(&mut self, client: u32, id: u16, at: Instant) {
        if let Some(held) = self.incoming.get_mut(&(client, id)).and_then(|delivery| delivery.held.take()) {
            self.received(HeldDelivery { row: Received { received: at, ..held.row }, ..held });
        }
    }

    /// The receiver's last acknowledgement of a packet identifier was sent.
    pub fn completed(&mut self, client: u32, id: u16) {
        self.causes.gives_place(client, id);
        if let Some(held) = self.incoming.remove(&(client, id)).and_then(|delivery| delivery.held) {
            self.received(held);
        }
    }

    /// A client's session is over: what was under way will not be acknowledged, except on the connection that began
    /// another session.
    pub fn forget(&mut self, client: u32, but: Option<u32>) {
        let stays = |owner: u32, connection: u32| owner != client || but == Some(connection);
        self.outgoing.retain(|&(owner, _), outgoing| stays(owner, outgoing.connection));
        self.incoming.retain(|&(owner, _), delivery| stays(owner, delivery.connection));
    }

    /// A connection is over: what may still come on it makes nobody a subscriber.
    pub fn part(&mut self, connection: u32) {
        self.parted.insert(connection);
    }

    /// Since when the receiver subscribes to the topic; if its SUBSCRIBE was not captured it has as long as there is
    /// its connection, and is expected to receive from now on.
    fn subscribed_since(&mut self, publish: &SeenPublish<'_>) -> Instant {
        self.subscriptions.since(publish.client, publish.topic).unwrap_or_else(|| {
            if self.parted.contains(&publish.connection) {
                return publish.since;
            }
            let options = SubscriptionOptions::default();
            self.subscriptions.ask(publish.client, publish.topic, options, publish.since);
            self.subscriptions.grant(publish.client, publish.topic, publish.since);
            self.guessed.push(publish.client);
            publish.since
        })
    }

    fn received(&mut self, held: HeldDelivery) {
        let number = self.gone + self.rows.len() as u64;
        let slot = match (held.untraced, held.window) {
            (Some(untraced), _) => {
                self.untraced.entry(untraced.key).or_default().push(number);
                Slot::Untraced(held.row, untraced)
            }
            (None, Some(window)) => Slot::Undecided(held.row, window),
            (None, None) => Slot::Row(MatchedRow::Received(held.row)),
        };
        self.push(slot);
    }

    fn trace(&mut self, publish: &SeenPublish<'_>, since: Instant) -> Option<TracedMessage> {
        let identity = identity::find(publish.head);
        let ours = identity.and_then(|identity| self.identities.delivered(&identity, publish.client));
        let traced = match ours {
            Some(message) => TracedMessage::certain(message, Identified::Payload),
            None => {
                let taker = self.subscriptions.taker(publish.client, publish.topic);
                let copies_each = || self.subscriptions.copies_each(publish.client, publish.topic);
                let servers = self.servers.own_first(publish.client);
                self.waiting.match_delivery(publish, (taker, since), &copies_each, servers)?
            }
        };
        let message = traced.message;
        if self.delays.delivered(publish, message) {
            self.subscriptions.prove_delay();
        }
        if !publish.retain {
            self.clocks.note_regular(message, publish.client);
        }
        if traced.passed_over > 0 {
            self.clocks.note_passed_over(content_queues::key(publish), publish.client, traced.passed_over);
        }
        // A relay's copy was published where it is delivered.
        let CountedMessage { publisher, sequence } = message;
        let is_told = traced.identified == Identified::Payload;
        if is_told && !publish.retain && !self.relayed.contains(&(publisher, sequence)) {
            self.servers.reached(self.servers.of(publisher), publish.client);
        }
        Some(traced)
    }
}

/// A delivery whose message turns out.
fn of_message(row: &Received, message: CountedMessage, identified: Identified) -> Received {
    Received { publisher: Some(message.publisher), sequence: message.sequence, identified, ..*row }
}

fn received(publish: &SeenPublish<'_>, traced: Option<&TracedMessage>) -> Received {
    Received {
        subscriber: publish.client,
        publisher: traced.map(|traced| traced.message.publisher),
        sequence: traced.map_or(0, |traced| traced.message.sequence),
        qos: publish.qos,
        dup: publish.dup,
        retained: publish.retain,
        payload_bytes: publish.payload_bytes,
        received: publish.complete,
        identified: traced.map_or(Identified::Unknown, |traced| traced.identified),
    }
}

/// Rows that wait for a delivery to be traced: a hole in a stream is given up sooner.
const ROWS_WAITING_MAX: usize = 1024;
/// Rows that wait for what shows whether a delivery's message is certain, 2 MB of them; beyond that it is not.
const ROWS_UNDECIDED_MAX: usize = 1 << 14;
/// The same where there are several captures.
const ROWS_OF_SEVERAL_MAX: usize = 1 << 14;
/// Where the counts of messages without an identity begin when their client sends others with one.
const FOREIGN_FROM: u32 = 1 << 31;

#[cfg(test)]
impl SeenPublish<'static> {
    /// A small PUBLISH for tests.
    pub fn example() -> SeenPublish<'static> {
        static TOPIC: std::sync::LazyLock<std::sync::Arc<str>> = std::sync::LazyLock::new(|| "t".into());
        SeenPublish {
            client: 0,
            connection: 0,
            since: Instant::ZERO,
            topic: &TOPIC,
            qos: 0,
            dup: false,
            retain: false,
            id: None,
            payload_bytes: 1,
            head: b"x",
            rest: mqttlab_capture::mqtt::PayloadRest::of(b"x"),
            is_whole: true,
            first: Instant::ZERO,
            complete: Instant::ZERO,
            packet_bytes: 0,
            forwarded: super::message::ForwardedSize::of("t", 1, 0),
            expiry_s: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mqttlab_recording::identity::Identity;

    fn at(ns: u64) -> Instant {
        Instant::from_ns(ns)
    }

    fn publish(client: u32, qos: u8, at_ns: u64) -> SeenPublish<'static> {
        let at = at(at_ns);
        let id = (qos > 0).then_some(7);
        SeenPublish { client, qos, id, first: at, complete: at, ..SeenPublish::example() }
    }

    /// What the matcher says, in words.
    fn written(matcher: &mut Matcher) -> Vec<String> {
        std::iter::from_fn(|| matcher.poll())
            .map(|row| match row {
                MatchedRow::Sent(row) => {
                    format!("{}.{} sent at {}", row.publisher, row.sequence, row.sent.as_ns())
                }
                MatchedRow::Acknowledged(row) => {
                    format!("{}.{} acknowledged at {}", row.publisher, row.sequence, row.at.as_ns())
                }
                MatchedRow::Dropped(row) => {
                    format!("{}.{} {} at {}", row.publisher, row.sequence, row.cause.as_str(), row.at.as_ns())
                }
                MatchedRow::Received(row) => {
                    let publisher = row.publisher.map_or("?".into(), |publisher| publisher.to_string());
                    let at = row.received.as_ns();
                    format!("{publisher}.{} to {} at {at}", row.sequence, row.subscriber)
                }
            })
            .collect()
    }

    #[test]
    fn a_message_at_qos_1_is_sent_delivered_and_acknowledged_once() {
        let mut matcher = Matcher::new(true);
        matcher.published(&publish(0, 1, 10));
        matcher.delivered(&publish(5, 1, 20));
        matcher.published(&SeenPublish { dup: true, ..publish(0, 1, 30) });
        matcher.acknowledged(0, 7, at(40));
        matcher.acknowledged(0, 7, at(50));
        assert_eq!(written(&mut matcher), ["0.0 sent at 10", "0.0 to 5 at 20", "0.0 acknowledged at 40"]);
    }

    #[test]
    fn at_qos_2_a_message_is_delivered_when_it_is_released_and_its_repetition_is_not() {
        let mut matcher = Matcher::new(true);
        matcher.published(&publish(0, 2, 10));
        matcher.delivered(&publish(5, 2, 20));
        matcher.delivered(&SeenPublish { dup: true, ..publish(5, 2, 25) });
        matcher.released(5, 7, at(30));
        matcher.released(5, 7, at(35));
        matcher.completed(5, 7);
        assert_eq!(written(&mut matcher), ["0.0 sent at 10", "0.0 to 5 at 30"]);
        let mut early = Matcher::new(false);
        early.published(&publish(0, 2, 10));
        early.delivered(&publish(5, 2, 20));
        early.released(5, 7, at(30));
        assert_eq!(written(&mut early), ["0.0 sent at 10", "0.0 to 5 at 20"]);
    }

    #[test]
    fn a_repetition_at_qos_1_is_delivered_again() {
        let mut matcher = Matcher::new(true);
        matcher.published(&publish(0, 0, 10));
        matcher.delivered(&publish(5, 1, 20));
        matcher.delivered(&SeenPublish { dup: true, ..publish(5, 1, 25) });
        assert_eq!(written(&mut matcher)[1..], ["0.0 to 5 at 20", "0.0 to 5 at 25"]);
    }

    #[test]
    fn what_nobody_published_is_foreign() {
        let mut matcher = Matcher::new(true);
        assert_eq!(matcher.delivered(&publish(5, 0, 20)), None);
        assert_eq!(written(&mut matcher), [""; 0], "it may be published behind a hole");
        matcher.finish();
        assert_eq!((written(&mut matcher), matcher.traced().foreign), (vec!["?.0 to 5 at 20".into()], 1));
    }

    #[test]
    fn a_delivery_waits_for_a_message_that_is_known_late_and_keeps_its_place() {
        let mut matcher = Matcher::new(true);
        matcher.delivered(&publish(5, 0, 20));
        matcher.delivered(&SeenPublish { head: b"y", ..publish(5, 0, 21) });
        matcher.published(&SeenPublish { head: b"y", ..publish(0, 0, 19) });
        matcher.published(&publish(0, 0, 10));
        matcher.finish();
        let written = written(&mut matcher);
        assert_eq!(written, ["0.1 to 5 at 20", "0.0 to 5 at 21", "0.0 sent at 19", "0.1 sent at 10"]);
    }

    #[test]
    fn a_relays_copy_carries_the_message_of_its_publisher() {
        let mut head = [0; 17];
        Identity { publisher: 3, sequence: 8, intended: Some(Instant::ZERO) }.write(&mut head);
        let copied =
            |client, at_ns| SeenPublish { head: &*Box::leak(Box::new(head)), ..publish(client, 1, at_ns) };
        let mut matcher = Matcher::new(true);
        matcher.published(&copied(0, 10));
        matcher.delivered(&copied(1, 20));
        matcher.published(&copied(1, 30));
        matcher.acknowledged(1, 7, at(35));
        matcher.delivered(&copied(2, 40));
        assert_eq!(written(&mut matcher), ["0.8 sent at 10", "0.8 to 1 at 20", "0.8 to 2 at 40"]);
    }

    #[test]
    fn a_receiver_whose_subscribe_was_not_captured_is_expected_from_its_first_message_on() {
        let mut matcher = Matcher::new(true);
        matcher.published(&publish(0, 0, 10));
        matcher.delivered(&publish(5, 0, 20));
        matcher.published(&publish(0, 0, 30));
        let topics: Vec<u32> = std::iter::from_fn(|| matcher.poll())
            .filter_map(|row| if let MatchedRow::Sent(row) = row { Some(row.topic) } else { None })
            .collect();
        let (topics_of, receivers) = std::mem::take(&mut matcher.subscriptions).into_layout(&matcher.servers);
        let sets: Vec<&[u32]> =
            topics.iter().map(|&topic| &*receivers[topics_of[topic as usize].receivers as usize]).collect();
        assert_eq!(sets, [&[][..], &[5]]);
    }
}
