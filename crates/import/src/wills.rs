//! Wills: what CONNECT packets announce, and what a broker publishes for clients whose connections end without a DISCONNECT.
//!
//! ```text
//!   CONNECT ─► armed ─┬─ DISCONNECT ─► removed          (0x04 keeps it, MQTT 5 §3.14.2.1)
//!                     ├─ back within its delay ─► removed          (§3.1.3.2.2)
//!                     └─ connection over ─► due ─► deliveries with its topic, size and content
//! ```
//!
//! No client publishes a will, so that it is none of the messages that are lost or take time. A delivery that may be a message of a
//! client's, which has the same content, is that. What it does not model: connections without a CONNECT in the evidence.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use mqttlab_capture::mqtt::{SeenConnect, SeenWill};
use mqttlab_recording::{Client, NumberMap};
use mqttlab_units::{Duration, Instant};
use serde_json::{Value, json};

use super::message::SeenPublish;

/// All wills, in the order of their CONNECT packets.
#[derive(Default)]
pub struct ObservedWills {
    all: Vec<ObservedWill>,
    by_content: NumberMap<u64, Vec<usize>>,
    /// The will of each connection that has one.
    of_connection: NumberMap<u32, usize>,
    /// The last will of each client.
    latest: NumberMap<u32, usize>,
    /// The last message of a client's to the topic of its will.
    own_messages: BTreeMap<(u32, Arc<str>), OwnMessage>,
}

/// A message of a client's to the topic of its will.
#[derive(Clone, Copy)]
struct OwnMessage {
    published: Instant,
    /// When it first reached a subscriber.
    delivered: Option<Instant>,
}

/// A will of one connection.
struct ObservedWill {
    client: u32,
    said: SeenWill,
    keep_alive_s: u16,
    /// When its client last sent a packet on the connection, and when that ended.
    heard: Instant,
    ended: Option<Instant>,
    is_removed: bool,
    /// When it first came live, and how many deliveries there were.
    came: Option<Instant>,
    subscribers: Vec<u32>,
    copies: u64,
    /// When its client had published to the topic on another connection before it came.
    overtook: Option<Instant>,
}

impl ObservedWills {
    /// A client connects. The connection that it had is over.
    pub fn announce(&mut self, client: u32, connection: u32, connect: &SeenConnect, at: Instant) {
        let before = self.latest.remove(&client).map(|number| &mut self.all[number]);
        if let Some(will) = before.filter(|will| !will.is_removed) {
            let is_in_time = |ended: Instant| at < ended + Duration::from_s(will.said.delay_s.into());
            if will.came.is_none() && will.said.delay_s > 0 && will.ended.is_none_or(is_in_time) {
                will.is_removed = true;
            }
            will.ended = will.ended.or(Some(at));
        }
        let Some(said) = &connect.will else { return };
        if self.all.len() >= WILLS_MAX {
            return;
        }
        let number = self.all.len();
        self.by_content.entry(key(&said.topic, said.payload_bytes, &said.head)).or_default().push(number);
        self.of_connection.insert(connection, number);
        self.latest.insert(client, number);
        self.all.push(ObservedWill {
            client,
            said: (**said).clone(),
            keep_alive_s: connect.keep_alive_s,
            heard: at,
            ended: None,
            is_removed: false,
            came: None,
            subscribers: Vec::new(),
            copies: 0,
            overtook: None,
        });
    }

    /// A client has sent a packet.
    pub fn heard(&mut self, connection: u32, at: Instant) {
        if let Some(will) = self.of(connection) {
            will.heard = will.heard.max(at);
        }
    }

    /// A client says goodbye: its will is not published, unless the reason asks for it.
    pub fn goodbye(&mut self, connection: u32, reason: u8) {
        if let Some(will) = self.of(connection).filter(|_| reason != WITH_WILL) {
            will.is_removed = true;
        }
    }

    /// A connection is over.
    pub fn ended(&mut self, connection: u32, at: Instant) {
        if let Some(will) = self.of(connection) {
            will.ended = will.ended.or(Some(at));
        }
    }

    /// A client publishes a message.
    pub fn published(&mut self, publish: &SeenPublish<'_>) {
        if self.all.is_empty() {
            return;
        }
        let is_own = |will: &ObservedWill| will.client == publish.client && will.said.topic == *publish.topic;
        if self.of_connection.get(&publish.connection).is_some_and(|&number| is_own(&self.all[number])) {
            let message = OwnMessage { published: publish.complete, delivered: None };
            self.own_messages.insert((publish.client, Arc::clone(publish.topic)), message);
        }
    }

    /// A message of a client's reached a subscriber.
    pub fn passed_on(&mut self, publisher: u32, publish: &SeenPublish<'_>) {
        if !self.own_messages.is_empty()
            && let Some(own) = self.own_messages.get_mut(&(publisher, Arc::clone(publish.topic)))
        {
            own.delivered = own.delivered.or(Some(publish.complete));
        }
    }

    /// Whether a delivery may be a will: the client whose CONNECT announced it.
    pub fn may_be(&self, publish: &SeenPublish<'_>) -> Option<u32> {
        self.find(publish).map(|number| self.all[number].client)
    }

    /// A delivery is a will.
    pub fn delivered(&mut self, publish: &SeenPublish<'_>) {
        let Some(number) = self.find(publish) else { return };
        let own = (self.all[number].client, Arc::clone(publish.topic));
        let before = self.own_messages.get(&own).copied();
        let will = &mut self.all[number];
        will.copies += 1;
        if publish.retain {
            return;
        }
        if !will.subscribers.contains(&publish.client) {
            will.subscribers.push(publish.client);
        }
        if will.came.is_none() {
            will.came = Some(publish.complete);
            let before = before.filter(|own| own.published > will.heard);
            will.overtook = before.map(|own| own.delivered.unwrap_or(own.published));
        }
    }

    /// The will that a delivery is: one that is due and that this subscriber has not had, else another copy; of a stored one any.
    fn find(&self, publish: &SeenPublish<'_>) -> Option<usize> {
        if self.all.is_empty() {
            return None;
        }
        let known = self.by_content.get(&key(publish.topic, publish.payload_bytes, publish.head))?;
        let is_due = |will: &ObservedWill| !will.is_removed && will.ended.is_some();
        // Of a long will the beginning is known.
        let is_same = |will: &ObservedWill| {
            let is_whole = will.said.rest.captured == will.said.payload_bytes && publish.is_whole;
            if is_whole { will.said.rest == publish.rest } else { will.said.rest.agrees(&publish.rest) }
        };
        let all =
            || known.iter().map(|&number| (number, &self.all[number])).filter(|(_, will)| is_same(will));
        if publish.retain {
            let due = all().rev().find(|(_, will)| is_due(will));
            return due.or(all().next_back()).map(|(number, _)| number);
        }
        let fresh =
            || all().filter(|(_, will)| !will.is_removed && !will.subscribers.contains(&publish.client));
        let due = fresh().find(|(_, will)| is_due(will));
        // Where the end of its connection is not captured, the broker alone knows that it is over.
        let again = || all().rev().find(|(_, will)| !will.is_removed);
        due.or(fresh().next()).or_else(again).map(|(number, _)| number)
    }

    fn of(&mut self, connection: u32) -> Option<&mut ObservedWill> {
        if self.all.is_empty() {
            return None;
        }
        self.of_connection.get(&connection).map(|&number| &mut self.all[number])
    }

    /// How long they took, and which of them came too late.
    pub fn warnings(&self, clients: &[Client]) -> Vec<String> {
        let name = |client: u32| clients.get(client as usize).map_or("", |client| &client.name);
        let came: Vec<(&ObservedWill, Instant)> =
            self.all.iter().filter_map(|will| Some((will, will.came?))).collect();
        let mut words = Vec::new();
        if came.len() <= WILLS_NAMED {
            words.extend(came.iter().map(|(will, at)| will.words(name(will.client), *at)));
        } else {
            words.push(summary(&came));
        }
        let late: Vec<&ObservedWill> =
            came.iter().map(|(will, _)| *will).filter(|will| will.overtook.is_some()).collect();
        if let Some(first) = late.first() {
            words.push(first.words_late(name(first.client), late.len(), &self.own_messages));
        }
        words
    }

    /// What came, for `run.json`.
    pub fn as_json(&self, clients: &[Client]) -> Value {
        let came = self.all.iter().filter(|will| will.copies > 0).take(WILLS_TOLD);
        let row = |will: &ObservedWill| {
            json!({
                "client": clients.get(will.client as usize).map(|client| &client.name),
                "topic": &*will.said.topic,
                "keep_alive_s": will.keep_alive_s,
                "delay_s": will.said.delay_s,
                "heard_ns": will.heard.as_ns(),
                "ended_ns": will.ended.map(Instant::as_ns),
                "came_ns": will.came.map(Instant::as_ns),
                "deliveries": will.copies,
            })
        };
        Value::Array(came.map(row).collect())
    }
}

impl ObservedWill {
    fn words(&self, client: &str, came: Instant) -> String {
        let (until, keep_alives) = self.until(came);
        let after = self.ended.and_then(|ended| came.checked_since(ended));
        let after = after
            .map_or(String::new(), |after| format!(", {} after the end of its connection", in_words(after)));
        let counted = if self.subscribers.len() == 1 { "subscriber" } else { "subscribers" };
        format!(
            "The will of {client} (`{}`) came to {} {counted} {} after its last packet{keep_alives}{after}.",
            self.said.topic,
            self.subscribers.len(),
            in_words(until)
        )
    }

    fn words_late(&self, client: &str, count: usize, own: &BTreeMap<(u32, Arc<str>), OwnMessage>) -> String {
        let (Some(came), Some(before)) = (self.came, self.overtook) else { return String::new() };
        let last =
            own.get(&(self.client, Arc::clone(&self.said.topic))).is_some_and(|last| last.published <= came);
        let stored = if self.said.retain { "retained " } else { "" };
        let stays =
            if last { format!("; it stays the last {stored}message of the topic") } else { String::new() };
        let more = if count > 1 { format!(" ({count} wills came so)") } else { String::new() };
        format!(
            "The will of {client}'s earlier connection came {} behind its message to `{}` on the new one, while it was \
             connected{stays}{more}.",
            in_words(came.checked_since(before).unwrap_or_default()),
            self.said.topic
        )
    }

    /// From its client's last packet until it came, also in keep-alives.
    fn until(&self, came: Instant) -> (Duration, String) {
        let until = came.checked_since(self.heard).unwrap_or_default();
        let keep_alive_s = self.keep_alive_s;
        let words = match keep_alive_s {
            0 => String::new(),
            _ => {
                let times = until.as_ns() as f64 / 1e9 / f64::from(keep_alive_s);
                format!(" ({times:.2} keep-alives of {keep_alive_s} s)")
            }
        };
        (until, words)
    }
}

/// Many wills in one sentence.
fn summary(came: &[(&ObservedWill, Instant)]) -> String {
    let mut times: Vec<Duration> = came.iter().map(|(will, at)| will.until(*at).0).collect();
    times.sort_unstable();
    let in_keep_alives = |(will, at): &(&ObservedWill, Instant)| {
        let keep_alive = f64::from(will.keep_alive_s);
        (keep_alive > 0.0).then(|| will.until(*at).0.as_ns() as f64 / 1e9 / keep_alive)
    };
    let most = came.iter().filter_map(in_keep_alives).fold(0.0, f64::max);
    let keep_alives = if most > 0.0 { format!(", {most:.2} keep-alives at most") } else { String::new() };
    format!(
        "{} wills came: {} after the last packets of their clients in the median, {} at most{keep_alives}.",
        came.len(),
        in_words(times[times.len() / 2]),
        in_words(times[times.len() - 1])
    )
}

fn in_words(time: Duration) -> String {
    match time.as_ns() as f64 / 1e6 {
        ms if ms < 1000.0 => format!("{ms:.1} ms"),
        ms => format!("{:.1} s", ms / 1e3),
    }
}

fn key(topic: &str, payload_bytes: u32, head: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (topic, payload_bytes, head).hash(&mut hasher);
    hasher.finish()
}

/// Disconnect with Will Message (MQTT 5 §3.14.2.1).
const WITH_WILL: u8 = 4;
/// Connections whose wills are remembered.
const WILLS_MAX: usize = 1 << 16;
/// Wills that have a sentence each.
const WILLS_NAMED: usize = 3;
/// Wills that `run.json` lists.
const WILLS_TOLD: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;
    use mqttlab_capture::mqtt::PayloadRest;

    fn at(ms: u64) -> Instant {
        Instant::from_ns(ms * 1_000_000)
    }

    fn connect(delay_s: u32) -> SeenConnect {
        let will = SeenWill {
            topic: "t".into(),
            payload_bytes: 1,
            head: b"x"[..].into(),
            rest: PayloadRest::of(b"x"),
            qos: 0,
            retain: true,
            delay_s,
        };
        SeenConnect { keep_alive_s: 10, will: Some(Box::new(will)), ..SeenConnect::default() }
    }

    fn copy(client: u32, ms: u64) -> SeenPublish<'static> {
        SeenPublish { client, first: at(ms), complete: at(ms), ..SeenPublish::example() }
    }

    #[test]
    fn a_will_is_one_delivery_at_each_subscriber_and_another_one_is_none() {
        let mut wills = ObservedWills::default();
        wills.announce(7, 0, &connect(0), at(0));
        wills.heard(0, at(3000));
        wills.ended(0, at(18_000));
        for subscriber in [1, 2] {
            assert_eq!(wills.may_be(&copy(subscriber, 18_001)), Some(7));
            wills.delivered(&copy(subscriber, 18_001));
            assert_eq!(wills.may_be(&copy(subscriber, 18_002)), Some(7), "twice");
        }
        assert_eq!(wills.may_be(&SeenPublish { head: b"y", ..copy(3, 18_001) }), None);
        assert_eq!(wills.may_be(&SeenPublish { retain: true, ..copy(1, 30_000) }), Some(7), "from the store");
        assert_eq!(
            wills.warnings(&[]),
            [
                "The will of  (`t`) came to 2 subscribers 15.0 s after its last packet (1.50 keep-alives of 10 s), 1.0 ms \
              after the end of its connection."
            ]
        );
    }

    #[test]
    fn a_goodbye_takes_the_will_back_unless_it_asks_for_it() {
        for (reason, expected) in [(0, None), (4, Some(7))] {
            let mut wills = ObservedWills::default();
            wills.announce(7, 0, &connect(0), at(0));
            wills.goodbye(0, reason);
            wills.ended(0, at(5));
            assert_eq!(wills.may_be(&copy(1, 6)), expected);
        }
    }

    #[test]
    fn who_is_back_within_the_delay_has_no_will_published() {
        for (back, expected) in [(4999, None), (5001, Some(7))] {
            let mut wills = ObservedWills::default();
            wills.announce(7, 0, &connect(5), at(0));
            wills.ended(0, at(0));
            wills.announce(7, 1, &SeenConnect::default(), at(back));
            assert_eq!(wills.may_be(&copy(1, 9000)), expected, "{back}");
        }
    }

    #[test]
    fn a_will_that_comes_behind_a_message_of_the_next_connection_is_said() {
        let mut wills = ObservedWills::default();
        wills.announce(7, 0, &connect(0), at(0));
        wills.announce(7, 1, &connect(0), at(1000));
        wills.published(&SeenPublish { connection: 1, head: b"up", ..copy(7, 1001) });
        wills.delivered(&copy(1, 1004));
        let words = wills.warnings(&[]);
        assert!(words[1].contains("came 3.0 ms behind its message to `t` on the new one"), "{words:?}");
        assert!(words[1].contains("it stays the last retained message"), "{words:?}");
    }
}
