//! Connections as their clients live them: who connects, subscribes, is refused, leaves or is thrown out.
//!
//! A connection ends with its first FIN or RST. It was closed as planned when a DISCONNECT of the client came before,
//! and lost otherwise. Of a connection whose CONNECT was not captured nobody knows the keep-alive interval; when it has
//! been silent for a while nothing is expected of it any more.
//!
//! A CONNECT changes nothing until the broker accepts it: what it refuses leaves the old session as it was (MQTT 5
//! §3.1.4). Where its CONNACK is not captured, the next packet of the broker's says that it did.
//!
//! Why a connection ended is worked out in [`endings`].

mod endings;
mod listed;

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use mqttlab_capture::mqtt::{CapturedPacket, Kind, SeenConnect};
use mqttlab_capture::{ServerDirection, SocketEndpoint};
use mqttlab_mqtt::terms::ServerTerms;
use mqttlab_mqtt::{Version, reason};
use mqttlab_recording::{Event, EventKind, NumberMap, NumberSet};
use mqttlab_units::{Duration, Instant};

use super::body;
use super::causes::ClientLimits;
use super::clocks::DISORDER_MAX;
use super::matcher::Matcher;
use super::participants::{Participants, written};

pub use listed::without_connect_in_words;

/// All conversations, by the connection's number.
#[derive(Default)]
pub struct CapturedConnections {
    ends: NumberMap<u32, Ends>,
    of: NumberMap<u32, CapturedConnection>,
    /// The connection that a client uses now.
    current: NumberMap<u32, u32>,
    /// The connection on which a client sent its last CONNECT, and when.
    asking: NumberMap<u32, (u32, Instant)>,
    /// Clients whose last connection was lost.
    lost: NumberSet<u32>,
    /// Connections without a CONNECT.
    unknown: NumberSet<u32>,
    swept: Instant,
    /// Connections of which only the session is left, by when it ends.
    expiring: BTreeMap<Instant, Vec<u32>>,
    events: VecDeque<(Event, String)>,
}

/// Who is at the ends of a connection, and when it opened.
#[derive(Clone, Copy)]
struct Ends {
    client: SocketEndpoint,
    broker: SocketEndpoint,
    /// The host at the client's end of the TCP connection: the client's, or a proxy's.
    peer: IpAddr,
    opened: Instant,
    /// Whether a segment of the broker's was seen.
    answered: bool,
    /// When it was heard last, and since when there was no long silence.
    heard: Instant,
    lively_since: Instant,
    /// When its first FIN or RST came, whose it was, and whether it was a RST.
    closed: Option<(Instant, ServerDirection, bool)>,
}

struct CapturedConnection {
    client: u32,
    /// How long its session outlives it; `None`: for ever.
    keeps: Option<Duration>,
    goodbye: bool,
    /// When it ended, and how.
    ended: Option<(Instant, String)>,
    /// What the CONNECT says, and when it was sent.
    connect: Option<(Instant, SeenConnect)>,
    /// Whether the CONNECT has neither been accepted nor refused.
    asks: bool,
    /// The code of a CONNACK that refused it.
    refused: Option<u8>,
    /// What the CONNACK changed, where it said anything.
    terms: Option<Box<ServerTerms>>,
    /// When the client's last control packet was whole, and the longest time between two.
    spoke: Instant,
    silent: Duration,
    /// Filters whose SUBSCRIBE or UNSUBSCRIBE is not answered, by packet identifier.
    subscribing: NumberMap<u16, (Instant, Vec<String>)>,
    unsubscribing: NumberMap<u16, (Instant, Vec<String>)>,
    /// The last SUBACK that answers no SUBSCRIBE seen before it, and when it was seen.
    early_suback: Option<Box<(Instant, CapturedPacket)>>,
}

impl CapturedConnections {
    /// A segment of a connection was seen: its ends are known from the first one.
    pub fn seen(
        &mut self,
        connection: u32,
        direction: ServerDirection,
        [client, broker]: [SocketEndpoint; 2],
        at: Instant,
        matcher: &mut Matcher,
    ) {
        self.expire(at, matcher);
        let ends = Ends {
            client,
            broker,
            peer: client.address,
            opened: at,
            answered: false,
            heard: at,
            lively_since: at,
            closed: None,
        };
        let ends = self.ends.entry(connection).or_insert(ends);
        ends.answered |= direction == ServerDirection::FromServer;
        if at.checked_since(ends.heard).is_some_and(|passed| passed >= SILENCE) {
            ends.lively_since = at;
        }
        ends.heard = at;
        if at.checked_since(self.swept).is_some_and(|passed| passed >= SILENCE) {
            self.swept = at;
            self.forget_silent(at, matcher);
        }
    }

    /// A preamble names the client, the broker, or both: they are at the ends, and not the proxies between them.
    pub fn name_ends(&mut self, connection: u32, [client, broker]: [Option<SocketEndpoint>; 2]) {
        let Some(ends) = self.ends.get_mut(&connection) else { return };
        ends.client = client.unwrap_or(ends.client);
        ends.broker = broker.unwrap_or(ends.broker);
    }

    fn forget_silent(&mut self, now: Instant, matcher: &mut Matcher) {
        let (of, ends) = (&self.of, &self.ends);
        self.unknown.retain(|connection| {
            let (Some(conversation), Some(ends)) = (of.get(connection), ends.get(connection)) else {
                return false;
            };
            let silent = now.checked_since(ends.heard).is_some_and(|passed| passed >= SILENCE);
            if silent {
                matcher.forget(conversation.client, None);
                matcher.subscriptions.forget(conversation.client, LAST, now);
            }
            !silent
        });
    }

    /// The next event.
    pub fn poll(&mut self) -> Option<(Event, String)> {
        self.events.pop_front()
    }

    /// The client of a connection that carries MQTT.
    pub fn client(&self, connection: u32) -> Option<u32> {
        self.of.get(&connection).map(|conversation| conversation.client)
    }

    /// The client's end of a connection, and the broker's.
    pub fn ends(&self, connection: u32) -> Option<(SocketEndpoint, SocketEndpoint)> {
        self.ends.get(&connection).map(|ends| (ends.client, ends.broker))
    }

    /// When a connection ended, and whether its client's session ended with it.
    pub fn ended(&self, connection: u32) -> (Option<Instant>, bool) {
        let Some(conversation) = self.of.get(&connection) else { return (None, false) };
        let ended = conversation.ended.as_ref().map(|(at, _)| *at);
        (ended, ended.is_some() && conversation.keeps == Some(Duration::ZERO))
    }

    /// Since when messages for a connection can have been under way, when nothing else is known: one that was not
    /// heard for longer is taken for dead.
    pub fn since(&self, connection: u32) -> Instant {
        let lively = self.ends.get(&connection).map_or(Instant::ZERO, |ends| ends.lively_since);
        Instant::from_ns(lively.as_ns().saturating_sub(SILENCE.as_ns()))
    }

    /// The broker's end of the first connection that carries MQTT.
    pub fn broker(&self) -> Option<SocketEndpoint> {
        let first = self.of.keys().min()?;
        self.ends.get(first).map(|ends| ends.broker)
    }

    /// A control packet was seen whole. Returns the client at the connection's end.
    pub fn packet(
        &mut self,
        connection: u32,
        direction: ServerDirection,
        packet: &CapturedPacket,
        times: [Instant; 2],
        participants: &mut Participants,
        matcher: &mut Matcher,
    ) -> Option<u32> {
        let ends = *self.ends.get(&connection)?;
        let id = packet.connect.as_ref().map_or("", |connect| &*connect.client_id);
        let conversation = self.of.entry(connection).or_insert_with(|| {
            CapturedConnection::of(
                participants.client_behind(ends.peer, id, ends.client, ends.broker),
                times[1],
            )
        });
        let client = conversation.client;
        if direction == ServerDirection::ToServer {
            conversation.spoke_at(times[1]);
        }
        matcher.servers.assign(client, ends.broker);
        let unnamed = packet.connect.is_none() && conversation.connect.is_none();
        if unnamed && !self.current.contains_key(&client) {
            self.unknown.insert(connection);
        }
        if direction == ServerDirection::ToServer {
            matcher.wills.heard(connection, times[1]);
        }
        if direction == ServerDirection::FromServer && packet.kind != Kind::Connack {
            self.accepted(connection, true, matcher);
        }
        match (packet.kind.mqtt()?, direction) {
            (Kind::Connect, ServerDirection::ToServer) => {
                self.connect(connection, ends, packet, times[0], matcher)
            }
            (Kind::Connack, ServerDirection::FromServer) => {
                self.connack(connection, ends, packet, (times[1], participants), matcher);
            }
            (Kind::Subscribe, ServerDirection::ToServer) => {
                self.subscribe(connection, packet, times, matcher)
            }
            (Kind::Suback, ServerDirection::FromServer) => self.suback(connection, packet, times[1], matcher),
            (Kind::Unsubscribe, ServerDirection::ToServer) => {
                self.unsubscribe(connection, packet, times[1], matcher)
            }
            (Kind::Unsuback, ServerDirection::FromServer) => {
                self.unsuback(connection, packet, times[1], matcher)
            }
            (Kind::Disconnect, ServerDirection::ToServer) => {
                self.farewell(connection, packet, times[1], matcher);
            }
            (Kind::Disconnect, ServerDirection::FromServer) => {
                self.thrown_out(connection, packet, times[1], matcher);
            }
            _ => {}
        }
        Some(client)
    }

    fn connect(
        &mut self,
        connection: u32,
        ends: Ends,
        packet: &CapturedPacket,
        at: Instant,
        matcher: &mut Matcher,
    ) {
        let Some(conversation) = self.of.get_mut(&connection) else { return };
        let client = conversation.client;
        let Some(connect) = &packet.connect else { return };
        // In MQTT 5 a bridge's subscriptions have options.
        matcher.subscriptions.connect(client, connect.is_bridge && connect.level < 5);
        let clean = connect.flags & CLEAN != 0;
        conversation.keeps = match connect.session_expiry_s {
            Some(expiry_s) => kept(expiry_s),
            None => clean.then_some(Duration::ZERO),
        };
        conversation.connect = Some((at, (**connect).clone()));
        conversation.asks = true;
        self.asking.insert(client, (connection, at));
        if !ends.answered {
            // Nothing of the broker's is captured, so that no CONNACK will be.
            self.accepted(connection, true, matcher);
        }
        if self.lost.remove(&client) {
            self.push_event(ends.opened, EventKind::Reconnect, Some(client), None, String::new());
        }
        self.push_event(at, EventKind::Connect, Some(client), None, format!("from {}", written(ends.client)));
    }

    fn connack(
        &mut self,
        connection: u32,
        ends: Ends,
        packet: &CapturedPacket,
        (at, participants): (Instant, &mut Participants),
        matcher: &mut Matcher,
    ) {
        let Some(conversation) = self.of.get_mut(&connection) else { return };
        let client = conversation.client;
        let terms = ServerTerms::of_body(bytes(packet), Version::from_level(packet.level));
        participants.assign(client, &terms.assigned_client_id, [ends.client, ends.broker]);
        if let Some(expiry_s) = terms.session_expiry_s.filter(|_| packet.reason == Some(0)) {
            conversation.keeps = kept(expiry_s);
        }
        matcher.causes.broker_takes(client, terms.maximum_packet_bytes.filter(|_| packet.reason == Some(0)));
        conversation.terms = (terms != ServerTerms::default()).then(|| Box::new(terms));
        match packet.reason {
            Some(0) => {
                let present = body::session_present(bytes(packet));
                self.accepted(connection, present, matcher);
                let words = if present { "session present".into() } else { String::new() };
                self.push_event(at, EventKind::Connack, Some(client), at.checked_since(ends.opened), words);
            }
            Some(code) => {
                (conversation.asks, conversation.refused) = (false, Some(code));
                let code = reason::in_words(Kind::Connack, Version::from_level(packet.level), code);
                let words = format!("CONNECT: {code}");
                self.push_event(at, EventKind::Refused, Some(client), None, words);
            }
            None => {}
        }
    }

    /// The broker accepts a CONNECT: the client uses this connection from now on, in its session, `present` at the
    /// broker, or in a new one.
    fn accepted(&mut self, connection: u32, present: bool, matcher: &mut Matcher) {
        let Some(conversation) = self.of.get_mut(&connection).filter(|conversation| conversation.asks) else {
            return;
        };
        conversation.asks = false;
        let client = conversation.client;
        let Some((asked, clean, limits)) = conversation
            .connect
            .as_ref()
            .map(|(at, connect)| (*at, connect.flags & CLEAN != 0, limits(connect)))
        else {
            return;
        };
        if let Some((at, connect)) = &conversation.connect {
            matcher.wills.announce(client, connection, connect, *at);
        }
        if clean || !present {
            matcher.end_session(client, Some(connection), asked);
        }
        if clean {
            matcher.forget(client, Some(connection));
        }
        if clean || !present {
            // What it subscribed to since then, before it was answered, is the new session's.
            self.session_over(client, asked, asked, matcher);
        }
        matcher.causes.connected(client, limits, asked);
        self.current.insert(client, connection);
    }

    fn subscribe(
        &mut self,
        connection: u32,
        packet: &CapturedPacket,
        times: [Instant; 2],
        matcher: &mut Matcher,
    ) {
        let Some(conversation) = self.of.get_mut(&connection) else { return };
        let client = conversation.client;
        let asked = body::subscriptions(bytes(packet), packet.level);
        let answered = self.ends.get(&connection).is_some_and(|ends| ends.answered);
        for (filter, options) in &asked {
            matcher.subscriptions.ask(client, filter, *options, times[0]);
            // Where nothing of the broker's is captured no SUBACK will be.
            if !answered {
                matcher.subscriptions.grant(client, filter, times[0]);
            }
        }
        let filters: Vec<String> = asked.into_iter().map(|(filter, _)| filter).collect();
        let words = filters.join(" ");
        let [sent, complete] = times;
        if let Some(id) = packet.id {
            conversation.subscribing.insert(id, (sent, filters));
        }
        // A mirror port may show the answer first.
        let early = conversation.early_suback.take_if(|early| {
            early.1.id == packet.id
                && complete.checked_since(early.0).is_some_and(|passed| passed < DISORDER_MAX)
        });
        self.push_event(sent, EventKind::Subscribe, Some(client), None, words);
        if let Some(early) = early {
            self.suback(connection, &early.1, complete, matcher);
        }
    }

    fn suback(&mut self, connection: u32, packet: &CapturedPacket, at: Instant, matcher: &mut Matcher) {
        let Some(conversation) = self.of.get_mut(&connection) else { return };
        let client = conversation.client;
        let asked = packet.id.and_then(|id| conversation.subscribing.remove(&id));
        let Some((asked, filters)) = asked else {
            conversation.early_suback = Some(Box::new((at, packet.clone())));
            return;
        };
        let mut refused = Vec::new();
        // MQTT 3.1 has no refusals, and a cut packet no codes: what is not refused is granted.
        let version = Version::from_level(packet.level);
        let codes = reason::codes(bytes(packet), version);
        for (filter, code) in filters.iter().zip(codes.iter().copied().chain(std::iter::repeat(0))) {
            if code < reason::REFUSED {
                matcher.subscriptions.grant(client, filter, at);
            } else {
                matcher.subscriptions.unsubscribe(client, filter, at);
                refused
                    .push(format!("SUBSCRIBE {filter}: {}", reason::in_words(Kind::Suback, version, code)));
            }
        }
        self.push_event(at, EventKind::Suback, Some(client), at.checked_since(asked), String::new());
        for words in refused {
            self.push_event(at, EventKind::Refused, Some(client), None, words);
        }
    }

    fn unsubscribe(&mut self, connection: u32, packet: &CapturedPacket, at: Instant, matcher: &mut Matcher) {
        let Some(conversation) = self.of.get_mut(&connection) else { return };
        let filters = body::filters(bytes(packet), packet.level);
        for filter in &filters {
            matcher.subscriptions.unsubscribe(conversation.client, filter, at);
        }
        // Before MQTT 5 no UNSUBACK refuses.
        if let Some(id) = packet.id.filter(|_| packet.level >= 5) {
            conversation.unsubscribing.insert(id, (at, filters));
        }
    }

    /// From 0x80 on a code says that the subscription goes on (MQTT 5 §3.11.3).
    fn unsuback(&mut self, connection: u32, packet: &CapturedPacket, at: Instant, matcher: &mut Matcher) {
        let Some(conversation) = self.of.get_mut(&connection) else { return };
        let client = conversation.client;
        let asked = packet.id.and_then(|id| conversation.unsubscribing.remove(&id));
        let Some((given_up, filters)) = asked else { return };
        let codes = reason::codes(bytes(packet), Version::from_level(packet.level));
        for (filter, &code) in filters.iter().zip(codes).filter(|(_, code)| **code >= reason::REFUSED) {
            matcher.subscriptions.restore(client, filter, given_up);
            let code = reason::in_words(Kind::Unsuback, Version::V5, code);
            let words = format!("UNSUBSCRIBE {filter}: {code}");
            self.push_event(at, EventKind::Refused, Some(client), None, words);
        }
    }

    fn end(&mut self, connection: u32, at: Instant, kind: EventKind, words: String, matcher: &mut Matcher) {
        let Some(conversation) = self.of.get_mut(&connection) else { return };
        if conversation.ended.is_some() {
            return;
        }
        let how = if words.is_empty() { "closed as planned".into() } else { words.clone() };
        conversation.ended = Some((at, how));
        let client = conversation.client;
        if kind == EventKind::Disconnect {
            self.lost.insert(client);
        }
        let is_over = conversation.keeps == Some(Duration::ZERO);
        if is_over && self.current.get(&client) == Some(&connection) {
            matcher.end_session(client, None, at);
            matcher.forget(client, None);
        }
        self.push_event(at, kind, Some(client), None, words);
        self.end_connection(connection, at, matcher);
    }

    /// A connection on which the broker refused the CONNECT is over. It has begun no session.
    fn end_refused(&mut self, connection: u32, at: Instant, how: String, matcher: &mut Matcher) {
        let Some(conversation) = self.of.get_mut(&connection) else { return };
        conversation.ended.get_or_insert((at, how));
        self.end_connection(connection, at, matcher);
    }

    /// A connection is over: its session ends now, later, or never. Another connection of the client may have taken it
    /// over.
    fn end_connection(&mut self, connection: u32, at: Instant, matcher: &mut Matcher) {
        matcher.part(connection);
        matcher.wills.ended(connection, at);
        let Some(conversation) = self.of.get(&connection) else { return };
        let (client, keeps) = (conversation.client, conversation.keeps);
        if self.current.get(&client) != Some(&connection) {
            return;
        }
        match keeps {
            Some(Duration::ZERO) => {
                matcher.end_session(client, None, at);
                self.session_over(client, LAST, at, matcher);
            }
            Some(keeps) => {
                matcher.causes.parted(client);
                self.expiring.entry(at + keeps).or_default().push(connection);
            }
            None => matcher.causes.parted(client),
        }
    }

    /// Sessions that nobody came back to in time are over.
    pub fn expire(&mut self, now: Instant, matcher: &mut Matcher) {
        while let Some(entry) = self.expiring.first_entry().filter(|entry| *entry.key() <= now) {
            let (at, connections) = entry.remove_entry();
            for connection in connections {
                let Some(client) = self.client(connection) else { continue };
                if self.current.get(&client) == Some(&connection) {
                    matcher.end_session(client, None, at);
                    self.session_over(client, LAST, at, matcher);
                }
            }
        }
    }

    /// A client's session is over, with the subscriptions that it asked for before a time.
    fn session_over(&mut self, client: u32, before: Instant, at: Instant, matcher: &mut Matcher) {
        if matcher.subscriptions.forget(client, before, at) {
            self.push_event(at, EventKind::SessionEnd, Some(client), None, String::new());
        }
    }

    /// Adds an event.
    pub fn push_event(
        &mut self,
        at: Instant,
        kind: EventKind,
        client: Option<u32>,
        took: Option<Duration>,
        words: String,
    ) {
        self.events.push_back((Event { at, kind, client, took }, words));
    }
}

impl CapturedConnection {
    /// Of a client, of which nothing is known but that it was there at a time.
    fn of(client: u32, at: Instant) -> CapturedConnection {
        CapturedConnection {
            client,
            // A client without a name cannot come back to a session.
            keeps: Some(Duration::ZERO),
            goodbye: false,
            ended: None,
            connect: None,
            asks: false,
            refused: None,
            terms: None,
            spoke: at,
            silent: Duration::ZERO,
            subscribing: NumberMap::default(),
            unsubscribing: NumberMap::default(),
            early_suback: None,
        }
    }
}

/// How long a session lasts that MQTT 5 gives so many seconds; `None`: for ever (MQTT 5 §3.1.2.11.2).
fn kept(expiry_s: u32) -> Option<Duration> {
    (expiry_s < u32::MAX).then(|| Duration::from_s(expiry_s.into()))
}

/// What a client says of the packets that it takes.
fn limits(connect: &SeenConnect) -> ClientLimits {
    ClientLimits {
        packet_bytes: connect.maximum_packet_bytes,
        takes_aliases: connect.takes_aliases,
        window: connect.receive_maximum,
    }
}

fn bytes(packet: &CapturedPacket) -> &[u8] {
    packet.body.as_deref().unwrap_or_default()
}

/// One and a half times the keep-alive interval that most clients have.
pub const SILENCE: Duration = Duration::from_s(90);
/// Later than everything.
const LAST: Instant = Instant::from_ns(u64::MAX);
/// Clean Session, or Clean Start (MQTT 5 §3.1.2.4).
const CLEAN: u8 = 2;
