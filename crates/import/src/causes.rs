//! Causes that packets prove: a message that was larger than its receiver takes, that expired while it could not be sent, or that
//! was never released.
//!
//! ```text
//!   Maximum Packet Size of CONNECT, CONNACK ─┐
//!   Message Expiry Interval, absences ───────┼─► candidates ─► rows, where the evidence of both ends is whole
//!   QoS 2 without PUBREL, session over ──────┘
//! ```
//!
//! A message that was delivered all the same is delivered, whatever is said here. What it does not model: messages that were in
//! flight when a connection broke, which may be sent again.

use std::collections::{BTreeMap, BTreeSet};

use mqttlab_recording::{Dropped, LossCause, NumberMap, NumberSet};
use mqttlab_units::{Duration, Instant};

use super::message::{CountedMessage, ForwardedSize, SeenPublish};

/// What is known of messages that will not arrive.
#[derive(Default)]
pub struct PacketCauses {
    /// The largest packet that a client takes, and whether it takes aliases for topics.
    takes: NumberMap<u32, (u32, bool)>,
    /// The least that any has ever taken.
    takes_least: Option<u32>,
    /// The largest packet that its broker takes of a client.
    broker_takes: NumberMap<u32, u32>,
    /// How many messages at QoS 1 and 2 a client takes at once.
    windows: NumberMap<u32, u16>,
    /// The packet identifiers that such a client has not acknowledged.
    in_flight: BTreeMap<u32, BTreeSet<u16>>,
    /// Those of them that take no more.
    full: BTreeSet<u32>,
    /// What waits for clients that are away or whose window is full.
    waiting: BTreeMap<u32, Vec<WaitingMessage>>,
    /// Clients that are away while their session goes on.
    away: BTreeSet<u32>,
    held: usize,
    /// Messages at QoS 2 that their publisher has not released.
    unreleased: NumberSet<(u32, u32)>,
    /// Whether a broker has passed on a message before that.
    passes_on_unreleased: bool,
    candidates: Vec<Dropped>,
}

/// A message that its broker cannot send yet.
struct WaitingMessage {
    message: CountedMessage,
    forwarded: ForwardedSize,
    expires: Option<Instant>,
    /// Whether its receiver was connected and took no more.
    is_blocked: bool,
}

/// What a CONNECT says of the packets that its client takes.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientLimits {
    /// Maximum Packet Size.
    pub packet_bytes: Option<u32>,
    /// Whether Topic Alias Maximum is not 0.
    pub takes_aliases: bool,
    /// Receive Maximum.
    pub window: Option<u16>,
}

impl PacketCauses {
    /// A broker has accepted a CONNECT that was sent at that time.
    pub fn connected(&mut self, client: u32, limits: ClientLimits, at: Instant) {
        self.away.remove(&client);
        self.full.remove(&client);
        match limits.packet_bytes {
            Some(bytes) => {
                self.takes.insert(client, (bytes, limits.takes_aliases));
                self.takes_least = Some(self.takes_least.map_or(bytes, |least| least.min(bytes)));
            }
            None => drop(self.takes.remove(&client)),
        }
        match limits.window {
            Some(window) => {
                self.windows.insert(client, window);
                self.in_flight.insert(client, BTreeSet::new());
            }
            None => {
                self.windows.remove(&client);
                self.in_flight.remove(&client);
            }
        }
        for waited in self.waiting.remove(&client).unwrap_or_default() {
            self.held -= 1;
            if waited.expires.is_some_and(|expires| expires <= at) {
                self.give_up(waited.message, Some(client), LossCause::Expired, at);
            } else {
                self.judge_size(waited.message, client, waited.forwarded, at);
            }
        }
    }

    /// A CONNACK says how large its client's packets may be.
    pub fn broker_takes(&mut self, client: u32, bytes: Option<u32>) {
        match bytes {
            Some(bytes) => drop(self.broker_takes.insert(client, bytes)),
            None => drop(self.broker_takes.remove(&client)),
        }
    }

    /// A client's connection is over, and its session goes on.
    pub fn parted(&mut self, client: u32) {
        self.away.insert(client);
    }

    /// A client's session is over: what has not expired by then ends with it.
    pub fn session_over(&mut self, client: u32, at: Instant) {
        self.away.remove(&client);
        self.end_waiting(client, at, Some(LossCause::WindowFull));
    }

    /// What waits for a client waits no longer; `blocked`: the cause of what it took no more of.
    fn end_waiting(&mut self, client: u32, at: Instant, blocked: Option<LossCause>) {
        for waited in self.waiting.remove(&client).unwrap_or_default() {
            self.held -= 1;
            let is_expired = waited.expires.is_some_and(|expires| expires <= at);
            let blocked = blocked.filter(|_| waited.is_blocked);
            if let Some(cause) = is_expired.then_some(LossCause::Expired).or(blocked) {
                self.give_up(waited.message, Some(client), cause, at);
            }
        }
    }

    /// A message at QoS 1 or 2 was sent to a client that takes so many of them.
    pub fn takes_place(&mut self, client: u32, id: u16) {
        if !self.in_flight.is_empty()
            && let Some(ids) = self.in_flight.get_mut(&client)
        {
            ids.insert(id);
            if ids.len() >= self.windows.get(&client).copied().map_or(usize::MAX, usize::from) {
                self.full.insert(client);
            }
        }
    }

    /// The client has acknowledged it.
    pub fn gives_place(&mut self, client: u32, id: u16) {
        if !self.in_flight.is_empty()
            && let Some(ids) = self.in_flight.get_mut(&client)
        {
            ids.remove(&id);
            if ids.len() < self.windows.get(&client).copied().map_or(usize::MAX, usize::from) {
                self.full.remove(&client);
            }
        }
    }

    /// Whether anything has to be known of a message's receivers.
    pub fn concern(&self, publish: &SeenPublish<'_>) -> bool {
        let is_large = self.takes_least.is_some_and(|least| publish.forwarded.bytes > least);
        is_large || publish.qos > 0 && !(self.away.is_empty() && self.full.is_empty())
    }

    /// A message came to its broker. `receivers`: who should have it, in order; `qos_of`: at which QoS.
    pub fn published(
        &mut self,
        publish: &SeenPublish<'_>,
        message: CountedMessage,
        receivers: &[u32],
        qos_of: impl Fn(u32) -> Option<u8>,
    ) {
        let at = publish.complete;
        let expires = publish.expiry_s.map(|expiry_s| at + Duration::from_s(expiry_s.into()));
        if self.takes_least.is_some_and(|least| publish.forwarded.bytes > least) {
            let sized = receivers.iter().filter(|client| !self.away.contains(client));
            let sized: Vec<u32> = sized.copied().filter(|client| self.takes.contains_key(client)).collect();
            sized.into_iter().for_each(|client| self.judge_size(message, client, publish.forwarded, at));
        }
        let away = common(&self.away, receivers).map(|client| (client, false));
        let full = common(&self.full, receivers).filter(|client| !self.away.contains(client));
        let who = away.chain(full.map(|client| (client, true)));
        let who: Vec<(u32, bool)> =
            who.filter(|&(client, _)| qos_of(client).is_some_and(|qos| qos.min(publish.qos) > 0)).collect();
        for (client, is_blocked) in who {
            if self.held < WAITING_MAX {
                self.held += 1;
                let waits = WaitingMessage { message, forwarded: publish.forwarded, expires, is_blocked };
                self.waiting.entry(client).or_default().push(waits);
            }
        }
    }

    /// A client sends a packet with a message: its broker closes the connection where it is too large (MQTT 5 §3.2.2.3.6).
    pub fn sent(&mut self, publish: &SeenPublish<'_>, message: CountedMessage) {
        if publish.qos == 2 {
            self.unreleased.insert((message.publisher, message.sequence));
        }
        let takes = if self.broker_takes.is_empty() { None } else { self.broker_takes.get(&publish.client) };
        if takes.is_some_and(|&most| publish.packet_bytes > u64::from(most)) {
            self.give_up(message, None, LossCause::TooLarge, publish.complete);
        }
    }

    /// A message reached a client.
    pub fn delivered(&mut self, message: CountedMessage, client: u32, at: Instant) {
        self.passes_on_unreleased |=
            !self.unreleased.is_empty() && self.unreleased.contains(&(message.publisher, message.sequence));
        let Some(waiting) = self.waiting.get_mut(&client) else { return };
        let before = waiting.len();
        let mut over = Vec::new();
        waiting.retain(|waited| {
            let is_over = waited.expires.is_some_and(|expires| expires <= at);
            if is_over && waited.message != message {
                over.push(waited.message);
            }
            !is_over && waited.message != message
        });
        self.held -= before - waiting.len();
        over.into_iter().for_each(|message| self.give_up(message, Some(client), LossCause::Expired, at));
    }

    /// A publisher released a message at QoS 2.
    pub fn released(&mut self, message: CountedMessage) {
        self.unreleased.remove(&(message.publisher, message.sequence));
    }

    /// A message at QoS 2 can be released no more: by its publisher, or to a subscriber.
    pub fn unreleased(&mut self, message: CountedMessage, subscriber: Option<u32>, at: Instant) {
        if subscriber.is_some() || self.unreleased.remove(&(message.publisher, message.sequence)) {
            self.give_up(message, subscriber, LossCause::NotReleased, at);
        }
    }

    /// What is lost for certain, as far as the evidence of its publisher and its receiver is `whole`.
    pub fn finish(&mut self, end: Instant, whole: impl Fn(u32) -> bool) -> Vec<Dropped> {
        for client in self.waiting.keys().copied().collect::<Vec<_>>() {
            self.end_waiting(client, end, None);
        }
        let early = self.passes_on_unreleased;
        let mut rows = std::mem::take(&mut self.candidates);
        rows.retain(|row| {
            let is_unproved = early && row.cause == LossCause::NotReleased && row.subscriber.is_none();
            !is_unproved && whole(row.publisher) && row.subscriber.is_none_or(&whole)
        });
        rows
    }

    fn judge_size(&mut self, message: CountedMessage, client: u32, forwarded: ForwardedSize, at: Instant) {
        let Some(&(most, takes_aliases)) = self.takes.get(&client) else { return };
        let least = if takes_aliases { forwarded.aliased_bytes } else { forwarded.bytes };
        // The broker acts as if it had sent it (MQTT 5 §3.1.2.11.4).
        if least > most {
            self.give_up(message, Some(client), LossCause::TooLarge, at);
        }
    }

    fn give_up(&mut self, message: CountedMessage, subscriber: Option<u32>, cause: LossCause, at: Instant) {
        if self.candidates.len() < CANDIDATES_MAX {
            let CountedMessage { publisher, sequence } = message;
            self.candidates.push(Dropped { publisher, sequence, subscriber, cause, at });
        }
    }
}

/// Those of a set that should have a message, in order.
fn common<'a>(set: &'a BTreeSet<u32>, receivers: &'a [u32]) -> impl Iterator<Item = u32> + 'a {
    // The shorter one is walked.
    let few = set.len() < receivers.len();
    let of_set = few.then(|| set.iter().filter(|client| receivers.binary_search(client).is_ok()));
    let of_receivers = (!few).then(|| receivers.iter().filter(|client| set.contains(client)));
    of_set.into_iter().flatten().chain(of_receivers.into_iter().flatten()).copied()
}

/// Messages that wait, some 3 MiB of them.
const WAITING_MAX: usize = 1 << 16;
/// Messages that are given up, some 40 MiB of them.
const CANDIDATES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: CountedMessage = CountedMessage { publisher: 7, sequence: 3 };

    fn at(seconds: u64) -> Instant {
        Instant::from_ns(seconds * 1_000_000_000)
    }

    fn expiring(qos: u8, expiry_s: u32) -> SeenPublish<'static> {
        SeenPublish { qos, expiry_s: Some(expiry_s), complete: at(1), ..SeenPublish::example() }
    }

    fn said(causes: &mut PacketCauses) -> Vec<(Option<u32>, LossCause)> {
        causes.finish(at(100), |_| true).iter().map(|row| (row.subscriber, row.cause)).collect()
    }

    fn away(publish: &SeenPublish<'_>, granted: u8) -> PacketCauses {
        let mut causes = PacketCauses::default();
        causes.parted(5);
        causes.published(publish, MESSAGE, &[5], |_| Some(granted));
        causes
    }

    #[test]
    fn a_message_expires_that_waits_for_a_client_until_its_time_is_over() {
        let mut late = away(&expiring(1, 5), 1);
        late.connected(5, ClientLimits::default(), at(6));
        assert_eq!(said(&mut late), [(Some(5), LossCause::Expired)]);
        let mut early = away(&expiring(1, 6), 1);
        early.connected(5, ClientLimits::default(), at(6));
        assert_eq!(said(&mut early), []);
        assert_eq!(said(&mut away(&expiring(1, 200), 1)), [], "it may still come");
        assert_eq!(
            said(&mut away(&expiring(1, 5), 1)),
            [(Some(5), LossCause::Expired)],
            "it never came back"
        );
        assert_eq!(said(&mut away(&expiring(0, 5), 1)), [], "nothing waits at QoS 0");
        assert_eq!(said(&mut away(&expiring(1, 5), 0)), []);
    }

    #[test]
    fn a_session_that_ends_first_is_the_cause() {
        let mut causes = away(&expiring(1, 5), 1);
        causes.session_over(5, at(4));
        assert_eq!(said(&mut causes), []);
    }

    #[test]
    fn a_message_expires_behind_a_full_window() {
        let mut causes = PacketCauses::default();
        causes.connected(5, ClientLimits { window: Some(2), ..ClientLimits::default() }, at(0));
        for (sequence, expiry_s) in [(0, 5), (1, 5), (2, 50)] {
            let message = CountedMessage { publisher: 7, sequence };
            causes.published(&expiring(1, expiry_s), message, &[5], |_| Some(1));
            causes.takes_place(5, 1 + sequence.min(1) as u16);
        }
        causes.delivered(CountedMessage { publisher: 7, sequence: 9 }, 5, at(7));
        causes.published(&expiring(1, 5), MESSAGE, &[5], |_| Some(1));
        causes.published(&expiring(1, 50), MESSAGE, &[5], |_| Some(1));
        causes.session_over(5, at(9));
        // The third came to a full window, the first two did not.
        let rows = [LossCause::WindowFull, LossCause::Expired, LossCause::WindowFull];
        assert_eq!(said(&mut causes), rows.map(|cause| (Some(5), cause)));
    }

    #[test]
    fn a_packet_is_too_large_by_what_has_to_be_sent_of_it() {
        let size = ForwardedSize::of("t/long", 90, 0);
        assert_eq!((size.bytes, size.aliased_bytes), (101, 98));
        let mut causes = PacketCauses::default();
        let limits =
            |bytes| ClientLimits { packet_bytes: Some(bytes), takes_aliases: bytes == 100, window: None };
        for (client, bytes) in [(5, 100), (6, 101), (8, 99)] {
            causes.connected(client, limits(bytes), at(0));
        }
        let publish = SeenPublish { forwarded: size, ..SeenPublish::example() };
        causes.published(&publish, MESSAGE, &[5, 6, 8, 9], |_| Some(1));
        assert_eq!(said(&mut causes), [(Some(8), LossCause::TooLarge)]);
        causes.broker_takes(7, Some(50));
        causes.sent(&SeenPublish { client: 7, packet_bytes: 51, ..publish }, MESSAGE);
        causes.sent(&SeenPublish { client: 7, packet_bytes: 50, ..publish }, MESSAGE);
        assert_eq!(said(&mut causes), [(None, LossCause::TooLarge)]);
    }

    #[test]
    fn what_is_not_released_is_lost_unless_the_broker_passes_it_on_before() {
        let publish = SeenPublish { client: 7, qos: 2, ..SeenPublish::example() };
        let mut causes = PacketCauses::default();
        causes.sent(&publish, MESSAGE);
        causes.unreleased(MESSAGE, None, at(5));
        causes.unreleased(MESSAGE, None, at(6));
        assert_eq!(said(&mut causes), [(None, LossCause::NotReleased)]);
        causes.sent(&publish, MESSAGE);
        causes.delivered(MESSAGE, 5, at(2));
        causes.unreleased(MESSAGE, None, at(5));
        assert_eq!(said(&mut causes), []);
    }

    #[test]
    fn nothing_is_said_where_the_evidence_is_not_whole() {
        let mut causes = away(&expiring(1, 5), 1);
        assert_eq!(causes.finish(at(100), |client| client != 5), []);
    }
}
