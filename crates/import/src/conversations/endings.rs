//! Why connections ended: as a DISCONNECT says, as CONNACK said before, or as the times of packets show.
//!
//! MQTT 3.1.1 has no words for it. A broker that closes a connection just after another one has connected with the same
//! identifier has handed the session over ([MQTT-3.1.4-2]); one that closes it when the client has been silent for one and a
//! half times the keep-alive interval has given it up ([MQTT-3.1.2-24]). What else a broker closes it does not explain.

use mqttlab_capture::mqtt::CapturedPacket;
use mqttlab_capture::{Bits, ServerDirection};
use mqttlab_mqtt::{Kind, Version, reason};
use mqttlab_recording::EventKind;
use mqttlab_units::{Duration, Instant};

use super::{CapturedConnection, CapturedConnections, body, bytes, kept};
use crate::matcher::Matcher;

impl CapturedConnections {
    /// A segment with FIN or RST was seen, after the packets in it.
    pub fn closing(
        &mut self,
        connection: u32,
        direction: ServerDirection,
        bits: Bits,
        at: Instant,
        matcher: &mut Matcher,
    ) {
        if !bits.any(Bits::FIN.and(Bits::RST)) {
            return;
        }
        if let Some(ends) = self.ends.get_mut(&connection) {
            ends.closed.get_or_insert((at, direction, bits.has(Bits::RST)));
        }
        let Some(conversation) = self.of.get(&connection) else { return };
        if direction == ServerDirection::ToServer {
            matcher.wills.heard(connection, at);
        }
        if let Some(code) = conversation.refused {
            // The closing follows from the refusal ([MQTT-3.2.2-7]), which an event has.
            let code = reason::in_words(Kind::Connack, conversation.version(), code);
            let how = format!("refused by the broker: CONNACK, {code}");
            return self.end_refused(connection, at, how, matcher);
        }
        if conversation.goodbye {
            return self.end(connection, at, EventKind::Close, String::new(), matcher);
        }
        let who = if direction == ServerDirection::ToServer { "the client" } else { "the broker" };
        let how = if bits.has(Bits::RST) { "reset" } else { "closed" };
        let why = match direction {
            ServerDirection::ToServer => String::new(),
            ServerDirection::FromServer => self.why_closed(connection, at),
        };
        let words = format!("{how} by {who} without a DISCONNECT{why}");
        self.end(connection, at, EventKind::Disconnect, words, matcher);
    }

    /// The client sent a DISCONNECT: as planned, unless its code names an error.
    pub(super) fn farewell(
        &mut self,
        connection: u32,
        packet: &CapturedPacket,
        at: Instant,
        matcher: &mut Matcher,
    ) {
        let Some(conversation) = self.of.get_mut(&connection) else { return };
        conversation.goodbye = true;
        let body = bytes(packet);
        matcher.wills.goodbye(connection, body.first().copied().unwrap_or_default());
        if let Some(expiry_s) = body::session_expiry(body, 1) {
            conversation.keeps = kept(expiry_s);
        }
        match packet.reason.filter(|&code| code >= reason::REFUSED) {
            Some(code) => {
                let code = reason::in_words(Kind::Disconnect, Version::V5, code);
                let words = format!("the client sent DISCONNECT, {code}");
                self.end(connection, at, EventKind::Disconnect, words, matcher);
            }
            None => self.end_connection(connection, at, matcher),
        }
    }

    /// The broker sent a DISCONNECT.
    pub(super) fn thrown_out(
        &mut self,
        connection: u32,
        packet: &CapturedPacket,
        at: Instant,
        matcher: &mut Matcher,
    ) {
        let Some(conversation) = self.of.get(&connection) else { return };
        let code = packet.reason.unwrap_or(0);
        let is_late = code == reason::KEEP_ALIVE_TIMEOUT;
        let why = if is_late { conversation.ignored_keep_alive(at) } else { None };
        let why = why.map_or(String::new(), |words| format!("; {words}"));
        let code = reason::in_words(Kind::Disconnect, Version::V5, code);
        let words = format!("the broker sent DISCONNECT, {code}{why}");
        self.end(connection, at, EventKind::Disconnect, words, matcher);
    }

    /// What shows why a broker closed a connection without a word; empty where nothing does.
    fn why_closed(&self, connection: u32, at: Instant) -> String {
        let Some(conversation) = self.of.get(&connection) else { return String::new() };
        if self.is_taken_over(connection, conversation, at) {
            return " (session taken over: a connection with the same identifier came just before)".into();
        }
        let Some(keep_alive) = conversation.keep_alive().filter(|keep_alive| !keep_alive.is_zero()) else {
            return String::new();
        };
        let silent = at.checked_since(conversation.spoke).unwrap_or_default();
        let seconds = keep_alive.as_ns() / 1_000_000_000;
        let least = Duration::from_ms(seconds * 1_500).saturating_sub(GRAIN);
        if silent < least || silent > keep_alive * 2 + LATE {
            return String::new();
        }
        match conversation.ignored_keep_alive(at) {
            Some(words) => format!(" (keep alive timeout: {words})"),
            None => format!(" (keep alive timeout: nothing from the client for 1.5 times its {seconds} s)"),
        }
    }

    /// Whether another connection of the client, that is not refused, asked to be accepted just before.
    fn is_taken_over(&self, connection: u32, conversation: &CapturedConnection, at: Instant) -> bool {
        let Some(&(other, asked)) = self.asking.get(&conversation.client) else { return false };
        let is_refused = self.of.get(&other).is_some_and(|other| other.refused.is_some());
        other != connection && !is_refused && at.checked_since(asked).is_some_and(|passed| passed <= LATE)
    }
}

impl CapturedConnection {
    /// A control packet of the client's was seen whole.
    pub(super) fn spoke_at(&mut self, at: Instant) {
        self.silent = self.silent.max(at.checked_since(self.spoke).unwrap_or_default());
        self.spoke = self.spoke.max(at);
    }

    /// The keep-alive interval in force: the broker's, where its CONNACK has one ([MQTT-3.2.2-21]). Zero: none.
    pub(super) fn keep_alive(&self) -> Option<Duration> {
        let (_, connect) = self.connect.as_ref()?;
        let own = self.terms.as_ref().and_then(|terms| terms.keep_alive_s);
        Some(Duration::from_s(own.unwrap_or(connect.keep_alive_s).into()))
    }

    /// Whether the client was silent for longer than the broker's keep-alive interval allows, having asked for a longer one.
    pub(super) fn ignored_keep_alive(&self, at: Instant) -> Option<String> {
        let own_s = self.terms.as_ref()?.keep_alive_s.filter(|&own_s| own_s > 0)?;
        let asked_s = self.connect.as_ref()?.1.keep_alive_s;
        let silent = self.silent.max(at.checked_since(self.spoke).unwrap_or_default());
        let is_ignored =
            (asked_s == 0 || asked_s > own_s) && silent > Duration::from_ms(u64::from(own_s) * 1_250);
        is_ignored.then(|| format!("the client ignored the server's keep-alive of {own_s} s"))
    }

    /// What it speaks, as far as known.
    pub(super) fn version(&self) -> Version {
        self.connect.as_ref().map_or(Version::V311, |(_, connect)| Version::from_level(connect.level))
    }
}

/// So much later a broker may close a connection of which it knows that it is over.
const LATE: Duration = Duration::from_s(5);
/// Its clock and the capture's need not tick together.
const GRAIN: Duration = Duration::from_ms(500);
