//! What became of a message that did not arrive: lost, under way, or unknown.
//!
//! ```text
//!   dropped? ─► lost    gap? ─► unknown    a delivery that nothing traces? ─► unknown    at the broker before the first
//!   subscription? ─► not expected    overtaken? ─► lost
//!   session over? ─► lost    expired before the receiver came back? ─► lost    otherwise ─► under way
//! ```
//!
//! That a message has not arrived does not mean that it is lost: the recording may end before it comes. It is lost
//! when whoever had it dropped it, when the session ended that would have delivered it, or when a later message of the
//! same publisher, topic and QoS arrived, for these keep their order (MQTT 5 §4.6). Where the evidence cannot tell, the
//! fate is unknown, and the cause says what may have become of it.
//!
//! A broker of MQTT 5 may refuse a PUBLISH, which is lost by that, or say that it knows of no subscriber: then the message has no
//! receiver, and where a subscription was granted before it is lost.
//!
//! A broker does not say that it drops a message whose expiry interval is over. Live it is lost by that where the receiver was
//! away until then ([`Layout::expiry`]).
//!
//! What a server dropped by its log, which does not say which messages, is unknown where nothing later arrived.
//!
//! What it does not know: when the broker had a message. At QoS 1 and 2 it had it by the acknowledgement; at QoS 0
//! nobody says, so that what was sent at QoS 0 before a connection broke is unknown until a later message arrives, unless
//! the producer writes down everything that is dropped ([`Layout::drops_are_complete`]).
//!
//! Where events change subscriptions, [`crate::coverage`] tells what is expected.
//!
//! A subscription that was given up owes no message at QoS 0 any more; what the broker holds at QoS 1 and 2 it may still
//! deliver (MQTT 5 §3.10.4), so that this is unknown.

use std::collections::HashMap;

use crate::connection_times::{ConnectionTimes, RunEnds};
use crate::coverage::{ChangedSubscriptions, Coverage, ReceiverCoverage};
use crate::origin::{CopyOrigin, SESSION_PRESENT, SubscribeTimes};
use crate::turn::Turn;
use mqttlab_rows::{Event, EventKind, Gap, Layout, LossCause, MessageFate, Received, Sent};
use mqttlab_units::{Duration, Instant};

/// Which rows may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Missing {
    /// Some, from any time.
    pub rows: bool,
    /// Those that the producer still held when it was killed.
    pub end: bool,
}

/// When a client had a connection, a session, a subscription.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attendance {
    /// Sessions that began.
    sessions: u32,
    /// Whether the present session has a subscription, and since when the broker may have known of it.
    subscribed: Option<Instant>,
    /// When the broker first granted it one.
    granted: Option<Instant>,
    /// When a connection last ended that should not have.
    broke: Option<Instant>,
    /// Whether it was connected after that.
    is_away: bool,
    /// When it last said goodbye, unless it has come back.
    left: Option<Instant>,
    /// When a connection last ended, as planned or not.
    parted: Option<Instant>,
    /// When a session last ended, as its evidence says.
    session_ended: Option<Instant>,
    /// Since when its server may have dropped messages for it, by the server's log.
    dropping: Option<Instant>,
    /// When it last sent a CONNECT, and when the last that was accepted.
    connecting: Option<Instant>,
    connected: Option<Instant>,
    /// When a server last started.
    server_started: Option<Instant>,
    /// When the connection before its present session ended.
    away_since: Option<Instant>,
}

impl Attendance {
    /// Takes an event of the client's into account. They come in order.
    pub(crate) fn note(&mut self, event: &Event, detail: &[u8]) {
        match event.kind {
            EventKind::Connect => self.connecting = Some(event.at),
            EventKind::ServerStart => self.server_started = Some(event.at),
            EventKind::Connack => {
                (self.is_away, self.connected, self.left) = (false, self.connecting, None);
                if detail != SESSION_PRESENT || self.sessions == 0 {
                    self.sessions += 1;
                    self.away_since = self.parted;
                    (self.subscribed, self.granted) = (None, None);
                }
            }
            EventKind::Subscribe => self.subscribed = self.subscribed.or(Some(event.at)),
            EventKind::Suback => self.granted = self.granted.or(Some(event.at)),
            EventKind::Disconnect => {
                (self.broke, self.is_away, self.parted) = (Some(event.at), true, Some(event.at));
            }
            EventKind::Close => (self.parted, self.left) = (Some(event.at), Some(event.at)),
            EventKind::SessionEnd => {
                (self.session_ended, self.subscribed, self.granted) = (Some(event.at), None, None);
            }
            EventKind::QueueFull => {
                self.dropping = Some(self.dropping.map_or(event.at, |since| since.min(event.at)));
            }
            _ => {}
        }
    }

    /// Whether the broker ever accepted it.
    pub(crate) fn ever_connected(&self) -> bool {
        self.sessions > 0
    }

    /// Whether its present session has sent a SUBSCRIBE.
    pub(crate) fn is_subscribing(&self) -> bool {
        self.subscribed.is_some()
    }

    /// Whether its first subscription was not granted yet when a message was sent.
    fn came_later_than(&self, sent: Instant) -> bool {
        self.granted.or(self.subscribed).is_some_and(|granted| sent < granted)
    }

    /// Whether it had lost its connection and has not come back.
    pub(crate) fn is_away(&self) -> bool {
        self.is_away
    }

    /// Whether it had said goodbye before an instant and did not come back.
    pub(crate) fn has_left_before(&self, at: Instant) -> bool {
        self.left.is_some_and(|left| left < at)
    }

    fn broke_after(&self, at: Instant) -> bool {
        self.broke.is_some_and(|broke| broke >= at)
    }
}

/// A message that has not arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UndeliveredMessage {
    pub publisher: u32,
    /// `None`: some member of a shared subscription.
    pub subscriber: Option<u32>,
    pub topic: u32,
    pub qos: u8,
    pub sent: Instant,
    pub acknowledged: Option<Instant>,
    /// When somebody received it, or what its publisher sent later: its broker had it before.
    pub at_broker_by: Option<Instant>,
    /// Whether it was written down as dropped, and why.
    pub dropped: Option<LossCause>,
    /// Whether a later message of the same publisher, topic and QoS reached the receiver.
    pub overtaken: bool,
    /// What it is lost by in that case, where more is known of its receivers.
    pub instead: Option<LossCause>,
    /// In that case, between which messages that reached the receiver a connection ended.
    pub turn: Option<Turn>,
    /// Whether the receiver had a delivery of its size since then, and none later than what overtook it, that nothing traces
    /// to a message, or to one of several alike: it may be this one.
    pub untraced: Option<LossCause>,
    /// Whether its publisher had as much in flight as its broker takes, and nobody received it.
    pub crowded: bool,
}

impl UndeliveredMessage {
    /// One of which nothing more is known than that it was sent.
    pub(crate) fn of(sent: &Sent, acknowledged: Option<Instant>) -> UndeliveredMessage {
        UndeliveredMessage {
            publisher: sent.publisher,
            subscriber: None,
            topic: sent.topic,
            qos: sent.qos,
            sent: sent.sent,
            acknowledged,
            at_broker_by: None,
            dropped: None,
            overtaken: false,
            instead: None,
            turn: None,
            untraced: None,
            crowded: false,
        }
    }
}

/// What the clients' connections say of a message: what it is lost by, or what may have become of it.
enum LossVerdict {
    Lost(LossCause),
    Unknown(LossCause),
}

/// What there is to judge by, beside the rows of messages.
pub(crate) struct Judge<'a> {
    layout: &'a Layout,
    attendances: &'a [Attendance],
    gaps: Vec<Gap>,
    missing: Missing,
    /// When the recording ended.
    end: Instant,
    /// When subscriptions were given up, by topic and client.
    given_up: HashMap<(u32, u32), Instant>,
    /// Since when some server may have dropped messages for some client.
    dropping: Option<Instant>,
    coverage: ReceiverCoverage,
    times: SubscribeTimes,
    connections: &'a ConnectionTimes,
}

impl<'a> Judge<'a> {
    /// When the recording ended.
    pub(crate) fn end(&self) -> Instant {
        self.end
    }

    pub(crate) fn new(
        layout: &'a Layout,
        attendances: &'a [Attendance],
        gaps: Vec<Gap>,
        missing: Missing,
        end: Instant,
        changes: &'a ChangedSubscriptions,
    ) -> Judge<'a> {
        let given_up = layout.given_up.iter();
        let given_up = given_up.map(|row| ((row.topic, row.client), Instant::from_ns(row.at_ns))).collect();
        let dropping = attendances.iter().filter_map(|attendance| attendance.dropping).min();
        let coverage = ReceiverCoverage::new(layout, changes);
        let (times, connections) = (changes.times.clone(), &changes.connections);
        Judge { layout, attendances, gaps, missing, end, given_up, dropping, coverage, times, connections }
    }

    pub(crate) fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// When clients were connected.
    pub(crate) fn connections(&self) -> &'a ConnectionTimes {
        self.connections
    }

    /// Whether a connection on the way of these messages ended between the two of a turn: their publisher's, their receiver's,
    /// or one of those from which a relay has its copies.
    pub(crate) fn ended_within(&self, key: &(u32, u32, u8, u32), turn: &Turn) -> bool {
        let &(publisher, topic, _, subscriber) = key;
        let ended = |client, (from, until)| self.connections.ended_between(client, from, until);
        ended(subscriber, turn.received())
            || ended(publisher, turn.sent())
            || self.layout.is_relayed(topic)
                && self.layout.subscribers_of(topic).iter().any(|relay| ended(*relay, way(turn)))
    }

    /// Whether events tell every connection of a client since a message was sent.
    pub(crate) fn knows_connections(&self, client: u32, absent: &UndeliveredMessage) -> bool {
        let knows = self.layout.clients.get(client as usize).is_some_and(|client| client.session.is_some());
        knows
            && !self.missing.end
            && !self.has_gap(&UndeliveredMessage { subscriber: Some(client), ..*absent })
    }

    /// Whether its server has said that it dropped messages for a client.
    pub(crate) fn drops_for(&self, client: u32) -> bool {
        self.attendances.get(client as usize).is_some_and(|attendance| attendance.dropping.is_some())
    }

    /// How long a client's session outlives its connection; `None`: for ever.
    pub(crate) fn session_lasts(&self, client: u32) -> Option<Duration> {
        let expiry_ns = self.layout.clients.get(client as usize)?.session?.expiry_ns?;
        Some(Duration::from_ns(expiry_ns))
    }

    /// When clients began to say goodbye, and when the recording ended.
    pub(crate) fn ends(&self) -> RunEnds {
        let farewells_ns = Some(self.layout.measurement_end_ns).filter(|&until_ns| until_ns < u64::MAX);
        RunEnds { farewells: farewells_ns.map(Instant::from_ns), end: self.end }
    }

    /// Whether a message that nobody is known to receive has no receiver for certain.
    pub(crate) fn knows_receivers(&self, sent: &Sent) -> bool {
        let layout = self.layout;
        let has_topic = !layout.topics_may_be_missing || !layout.topic_name(sent.topic).is_empty();
        has_topic && layout.receivers_known_until_ns.is_none_or(|until_ns| sent.sent.as_ns() < until_ns)
    }

    /// What became of it, and why, or what may have.
    pub(crate) fn judge(&self, absent: &UndeliveredMessage) -> (MessageFate, Option<LossCause>) {
        let lost = |cause| (MessageFate::Lost, Some(cause));
        let unknown = |cause| (MessageFate::Unknown, Some(cause));
        // A broker without a matching subscription says nothing of when it had the message.
        let unmatched = absent.dropped.filter(|cause| *cause == LossCause::NoMatchingSubscribers);
        match absent.dropped.filter(|_| unmatched.is_none()) {
            Some(cause @ LossCause::NoAcknowledgement) => return unknown(cause),
            // A full queue drops copies from the store, too: those are no deliveries, whether they arrive or not.
            Some(cause) if cause.is_dropped_by_server() && self.is_from_store(absent) => {
                return (MessageFate::NoReceiver, None);
            }
            Some(cause) => return lost(cause),
            None => {}
        }
        if self.missing.rows || self.has_gap(absent) {
            return unknown(LossCause::NotRecorded);
        }
        match self.coverage(absent) {
            Coverage::Expected => {}
            Coverage::NotExpected => return (MessageFate::NoReceiver, None),
            Coverage::NotDecided => return (MessageFate::NotDecided, None),
        }
        // What came later overtook nothing if the delivery that nothing traces was this one.
        if let Some(cause) = absent.untraced {
            return unknown(cause);
        }
        if absent.overtaken {
            if let Some(cause) = self.between_sessions(absent) {
                return lost(cause);
            }
            // A subscriber is owed messages in their order: the broker had this one before the subscription.
            let is_early = self
                .attended_by(absent)
                .is_some_and(|who| who.sessions == 1 && who.came_later_than(absent.sent));
            return match (is_early, self.is_client_s(absent)) {
                (true, true) => (MessageFate::NoReceiver, None),
                (true, false) => lost(LossCause::NotSubscribed),
                (false, _) if self.is_over_inflight(absent) => lost(LossCause::OverInflight),
                (false, _) if self.is_expired(absent) => lost(LossCause::Expired),
                (false, _) => lost(
                    unmatched
                        .or(absent.instead)
                        .or_else(|| self.by_turn(absent))
                        .or_else(|| self.by_server_s_word(absent))
                        .unwrap_or(LossCause::Overtaken),
                ),
            };
        }
        if self.precedes_subscription(absent) {
            return (MessageFate::NoReceiver, None);
        }
        if let Some(cause) = unmatched {
            return lost(cause);
        }
        let verdict = if self.layout.drops_are_complete { None } else { self.by_connections(absent) };
        match verdict {
            Some(LossVerdict::Lost(cause)) => lost(cause),
            Some(LossVerdict::Unknown(cause)) => unknown(cause),
            None if self.missing.end => unknown(LossCause::NotRecorded),
            None if self.may_be_dropped(absent) => unknown(LossCause::QueueFull),
            None if self.is_expired(absent) => lost(LossCause::Expired),
            None => (MessageFate::UnderWay, None),
        }
    }

    /// Whether RETAIN alone says where every delivery came from.
    pub(crate) fn trusts_retain(&self) -> bool {
        self.times.is_empty()
    }

    /// Where a delivery came from. `came`: whether its receiver had a copy before.
    pub(crate) fn origin(
        &self,
        copy: &Received,
        sent: Option<&Sent>,
        acknowledged: Option<Instant>,
        came: bool,
    ) -> CopyOrigin {
        self.times.origin(copy, sent, came, |asked| {
            let Some(sent) = sent else { return false };
            let coverage =
                self.coverage.of(sent.topic, copy.subscriber, sent.publisher, sent.sent, acknowledged);
            coverage == Coverage::NotExpected || self.is_before(sent, acknowledged, asked)
        })
    }

    /// Whether the broker had a message before an instant. At QoS 0 that is said of what was sent before it, unless the publisher's
    /// connection broke, on which it may have waited.
    fn is_before(&self, sent: &Sent, acknowledged: Option<Instant>, at: Instant) -> bool {
        let broke = self.attendance(sent.publisher).is_some_and(|who| who.broke_after(sent.sent));
        match acknowledged {
            Some(acknowledged) => acknowledged <= at,
            None => sent.qos == 0 && sent.sent < at && !broke,
        }
    }

    /// Whether the receiver subscribed after the broker had it, so that only a copy from the store could come to it.
    fn is_from_store(&self, absent: &UndeliveredMessage) -> bool {
        self.coverage(absent) == Coverage::NotExpected || self.precedes_subscription(absent)
    }

    /// What the subscriptions of its receiver say, where events change them.
    fn coverage(&self, absent: &UndeliveredMessage) -> Coverage {
        let at_broker_by = [absent.acknowledged, absent.at_broker_by].into_iter().flatten().min();
        absent.subscriber.map_or(Coverage::Expected, |subscriber| {
            self.coverage.of(absent.topic, subscriber, absent.publisher, absent.sent, at_broker_by)
        })
    }

    /// Whether the broker had it before its receiver's first subscription, so that nobody was to deliver it. At QoS 1 and 2 the
    /// acknowledgement says so; at QoS 0 that it was sent before the SUBSCRIBE was, and that no connection broke on which it may
    /// have waited.
    fn precedes_subscription(&self, absent: &UndeliveredMessage) -> bool {
        let Some(who) = absent.subscriber.and_then(|subscriber| self.attendance(subscriber)) else {
            return false;
        };
        let Some(asked) =
            who.subscribed.filter(|_| who.sessions == 1 && !self.layout.is_relayed(absent.topic))
        else {
            return false;
        };
        let broke = |who: Option<&Attendance>| who.is_some_and(|who| who.broke_after(absent.sent));
        match absent.acknowledged {
            Some(at) => at <= asked,
            None if absent.qos > 0 => false,
            None => absent.sent < asked && !broke(Some(who)) && !broke(self.attendance(absent.publisher)),
        }
    }

    /// Whether its broker acknowledged it and dropped it, because its publisher had too much in flight. Nothing else explains it where
    /// a message without a place was acknowledged, reached nobody, and no connection broke and no queue was full.
    fn is_over_inflight(&self, absent: &UndeliveredMessage) -> bool {
        let broke = |who: Option<&Attendance>| who.is_some_and(|who| who.broke_after(absent.sent));
        let ends = [self.attendance(absent.publisher), self.attended_by(absent)];
        absent.crowded
            && absent.acknowledged.is_some()
            && !ends.into_iter().any(broke)
            && !self.may_be_dropped(absent)
    }

    /// Whether it was older than its expiry interval when its receiver last connected, so that its broker could not send it any more
    /// ([MQTT-3.3.2-5]). The session had the subscription before, and neither a connection of the publisher nor a restarted server may
    /// have lost the message. What nobody says: when the broker had it, which is by the acknowledgement, and how it rounds seconds.
    fn is_expired(&self, absent: &UndeliveredMessage) -> bool {
        let Some(receiver) = absent.subscriber.and_then(|subscriber| self.attendance(subscriber)) else {
            return false;
        };
        let times = (self.layout.expiry(absent.topic), absent.acknowledged, receiver.connected);
        let (Some(expiry), Some(acknowledged), Some(connected)) = times else { return false };
        let is_over = acknowledged + expiry + ROUNDED <= connected;
        let had_subscription = receiver.granted.is_some_and(|granted| granted <= absent.sent);
        let restarted = receiver.server_started.is_some_and(|at| at >= absent.sent);
        let broke = self.attendance(absent.publisher).is_none_or(|who| who.broke_after(absent.sent));
        absent.qos > 0
            && is_over
            && had_subscription
            && !(restarted || broke)
            && !self.layout.is_relayed(absent.topic)
            && !self.may_be_dropped(absent)
    }

    /// What it is lost by where its receiver had no connection when it was sent, and subscribed in a new session afterwards. What came
    /// later and arrived did so in that session, and keeps its order there: so the broker had this one before the subscription.
    fn between_sessions(&self, absent: &UndeliveredMessage) -> Option<LossCause> {
        let receiver = self.attended_by(absent).filter(|_| self.is_client_s(absent))?;
        let was_away = receiver.away_since.is_some_and(|since| since <= absent.sent);
        if receiver.sessions < 2 || !was_away || !receiver.came_later_than(absent.sent) {
            return None;
        }
        // What the broker acknowledged after its start was in no session of before.
        let came = absent.acknowledged.unwrap_or(absent.sent);
        let restarted =
            receiver.server_started.filter(|&at| receiver.away_since.is_some_and(|since| since <= at));
        let is_of_new_server = restarted.is_some_and(|at| at <= came);
        Some(if is_of_new_server { LossCause::NotSubscribed } else { LossCause::SessionEnded })
    }

    /// What it is lost by where a connection ended between the message that arrived before it and the one behind it.
    fn by_turn(&self, absent: &UndeliveredMessage) -> Option<LossCause> {
        let (turn, subscriber) = absent.turn.zip(absent.subscriber)?;
        let qos = absent.qos.min(turn.qos());
        let message = (absent.sent, absent.acknowledged, qos);
        let by_receiver = self.connections.lost_between(subscriber, message, turn.received());
        let by_publisher = || {
            let (from, until) = turn.sent();
            let ended = self.connections.ended_between(absent.publisher, from.max(absent.sent), until)
                && absent.qos == 0;
            ended.then_some(LossCause::ConnectionLost)
        };
        let by_relay = || {
            let relays = self.layout.subscribers_of(absent.topic).iter();
            let relays = relays.filter(|_| self.layout.is_relayed(absent.topic));
            relays.filter_map(|relay| self.connections.lost_between(*relay, message, way(&turn))).next()
        };
        by_receiver.or_else(by_publisher).or_else(by_relay)
    }

    /// What it is lost by where its server has said that it drops messages for the receiver, and no connection explains it.
    fn by_server_s_word(&self, absent: &UndeliveredMessage) -> Option<LossCause> {
        let is_said = absent.subscriber.is_some() && self.may_be_dropped(absent);
        is_said.then_some(if absent.qos == 0 { LossCause::SocketFull } else { LossCause::QueueFull })
    }

    /// Whether its receiver is one of the run's clients, of which events say when they subscribed; imports have worked out from
    /// packets who was subscribed.
    fn is_client_s(&self, absent: &UndeliveredMessage) -> bool {
        absent.subscriber.is_some_and(|subscriber| self.attendance(subscriber).is_some())
    }

    fn has_gap(&self, absent: &UndeliveredMessage) -> bool {
        let concerns = |client: u32| client == absent.publisher || Some(client) == absent.subscriber;
        self.gaps.iter().any(|gap| gap.until >= absent.sent && gap.client.is_none_or(concerns))
    }

    /// Whether its server has said that it dropped messages for the receiver when it may have come to this one. At QoS 1 and 2
    /// the server has it before it acknowledges it; at QoS 0 nobody says when.
    fn may_be_dropped(&self, absent: &UndeliveredMessage) -> bool {
        let of_client = |client: u32| self.attendances.get(client as usize)?.dropping;
        // Of a shared subscription nobody says which member it was for.
        let since = absent.subscriber.map_or(self.dropping, of_client);
        since.is_some_and(|since| absent.qos == 0 || absent.acknowledged.is_some_and(|at| at >= since))
    }

    /// What the clients' connections say; `None`: that somebody owes it still.
    fn by_connections(&self, absent: &UndeliveredMessage) -> Option<LossVerdict> {
        let broke = |who: Option<&Attendance>| who.is_some_and(|who| who.broke_after(absent.sent));
        if absent.qos == 0 && broke(self.attendance(absent.publisher)) {
            return Some(LossVerdict::Unknown(LossCause::ConnectionLost));
        }
        let subscriber = absent.subscriber?;
        let Some(attendance) = self.attendance(subscriber) else { return self.by_end(absent, subscriber) };
        // A copy may still wait at a relay, whatever the publisher has heard from the broker.
        if self.layout.is_relayed(absent.topic) {
            return broke(Some(attendance)).then_some(LossVerdict::Unknown(LossCause::ConnectionLost));
        }
        let cause = if attendance.sessions > 1 { LossCause::SessionEnded } else { LossCause::NotSubscribed };
        match attendance.subscribed {
            None => without_session(absent, cause),
            Some(since) if absent.sent < since => before_subscription(absent, since, cause),
            Some(_) if self.has_no_session(subscriber, attendance) => {
                without_session(absent, LossCause::SessionEnded)
            }
            Some(_) => (absent.qos == 0 && broke(Some(attendance)))
                .then_some(LossVerdict::Unknown(LossCause::ConnectionLost)),
        }
    }

    /// What foreign evidence says of sessions and subscriptions that ended after the message was sent.
    fn by_end(&self, absent: &UndeliveredMessage, subscriber: u32) -> Option<LossVerdict> {
        let attendance = self.attendances.get(subscriber as usize)?;
        let after = |at: &Instant| *at >= absent.sent;
        if attendance.session_ended.as_ref().is_some_and(after) {
            return match attendance.subscribed {
                None => without_session(absent, LossCause::SessionEnded),
                Some(since) => before_subscription(absent, since, LossCause::SessionEnded),
            };
        }
        if self.given_up.get(&(absent.topic, subscriber)).is_some_and(after) {
            let fate = if absent.qos == 0 { LossVerdict::Lost } else { LossVerdict::Unknown };
            return Some(fate(LossCause::NotSubscribed));
        }
        // Nobody promises a message at QoS 0 to a session without a connection.
        (absent.qos == 0 && attendance.parted.as_ref().is_some_and(after))
            .then_some(LossVerdict::Unknown(LossCause::ConnectionLost))
    }

    /// Whether a client is away for longer than its session lasts.
    fn has_no_session(&self, client: u32, attendance: &Attendance) -> bool {
        let session = self.layout.clients.get(client as usize).and_then(|client| client.session);
        let away = attendance.broke.filter(|_| attendance.is_away);
        let away = away.and_then(|broke| self.end.checked_since(broke));
        let expiry = session.and_then(|session| session.expiry_ns);
        away.zip(expiry).is_some_and(|(away, expiry_ns)| away.as_ns() >= expiry_ns)
    }

    /// What is known of its receiver, live, simulated or imported.
    fn attended_by(&self, absent: &UndeliveredMessage) -> Option<&Attendance> {
        self.attendances.get(absent.subscriber? as usize)
    }

    fn attendance(&self, client: u32) -> Option<&Attendance> {
        self.layout.clients.get(client as usize)?.session?;
        self.attendances.get(client as usize)
    }
}

/// From when the first of two messages was sent until the second was received.
fn way(turn: &Turn) -> (Instant, Instant) {
    (turn.sent().0, turn.received().1)
}

/// The receiver has no session when the recording ends. What its publisher still has may yet reach a new one.
fn without_session(absent: &UndeliveredMessage, cause: LossCause) -> Option<LossVerdict> {
    (absent.qos == 0 || absent.acknowledged.is_some()).then_some(LossVerdict::Lost(cause))
}

/// The receiver subscribed after the message was sent: it gets what the broker had only then.
fn before_subscription(absent: &UndeliveredMessage, since: Instant, cause: LossCause) -> Option<LossVerdict> {
    match absent.acknowledged {
        Some(at) if at <= since => Some(LossVerdict::Lost(cause)),
        None if absent.qos > 0 => None,
        _ => Some(LossVerdict::Unknown(cause)),
    }
}

/// Mosquitto reads its clock once for all that it does in a turn, and counts whole seconds from there.
const ROUNDED: Duration = Duration::from_s(2);
