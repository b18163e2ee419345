//! The hop between a client of MQTT-SN and its gateway: which datagrams carried a message there, and what they waited for.
//!
//! ```text
//!   publisher ─(sleep) (register)─ PUBLISH ─(retry)─► gateway ─ PUBLISH ─► broker ─ PUBLISH ─► gateway
//!                                     gateway ─(sleep) (register)─ PUBLISH ─(retry)─► subscriber
//! ```
//!
//! A topic is registered from the first REGISTER until its REGACK has come back, however often it was sent. A client sleeps
//! from its DISCONNECT with a duration, or from the PINGRESP that ends an awakening, until it says that it is awake: by the
//! clock of whoever waits for that, the client itself or the gateway.
//!
//! What it does not model: which topic a REGISTER names, which no column tells. A client has one such exchange at a time.

use std::collections::BTreeMap;

use mqttlab_recording::NumberMap;
use mqttlab_recording::reading::ABSENT;

use crate::attribution::messages::StoredDelivery;
use crate::control_packets::{FollowedKind, NamedPacket};
use crate::instants::{PackedInstant, SLACK_NS, known};

/// A PUBLISH between a client and its gateway.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GatewayHop {
    pub(crate) packet: u32,
    /// When the first of its copies was sent.
    pub(crate) tried: i64,
    /// When its sender could send it: what follows on it ends before.
    pub(crate) ready: PackedInstant,
    /// When its receiver slept, and when its topic was being registered.
    pub(crate) sleep: Wait,
    pub(crate) register: Wait,
    /// The PUBREL that lets its receiver hand it on.
    pub(crate) release_packet: Option<u32>,
    pub(crate) release: PackedInstant,
}

/// A wait, from and until.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wait {
    pub(crate) from: PackedInstant,
    pub(crate) until: PackedInstant,
}

impl Wait {
    fn between(from: i64, until: i64) -> Wait {
        Wait { from: Some(from).into(), until: Some(until).into() }
    }
}

type Spans<K> = BTreeMap<K, Vec<(i64, i64)>>;

/// When clients of MQTT-SN and their gateways waited for one another.
#[derive(Default)]
pub(crate) struct DatagramWaits {
    /// When topics were being registered, by whether their clients did it, and client; in the order of their ends.
    registering: Spans<(bool, i64)>,
    /// When clients slept, as they know it (`true`) and as their gateways do, by client.
    asleep: Spans<(bool, i64)>,
}

impl DatagramWaits {
    pub(crate) fn of(exchanges: &[NamedPacket]) -> DatagramWaits {
        DatagramWaits { registering: registering(exchanges), asleep: asleep(exchanges) }
    }
}

/// What is looked up of datagrams.
pub(crate) struct HopDatagrams<'a> {
    packets: &'a [NamedPacket],
    /// PUBLISH packets that arrived, sorted: to clients by client and message, to gateways by message.
    downwards: Vec<u32>,
    upwards: Vec<u32>,
    waits: &'a DatagramWaits,
}

fn downwards_key(packet: &NamedPacket) -> (i64, i64, i64) {
    let (publisher, sequence) = packet.message();
    (packet.client(), publisher, sequence)
}

impl<'a> HopDatagrams<'a> {
    /// Of the packets of some messages.
    pub(crate) fn of(packets: &'a [NamedPacket], waits: &'a DatagramWaits) -> HopDatagrams<'a> {
        let numbers = || (0..).zip(packets).filter(|(_, packet)| packet.is_datagram);
        let publishes = |to_broker: bool| {
            let is_one = move |packet: &NamedPacket| {
                packet.kind == FollowedKind::Publish && packet.is_named() && packet.to_broker == to_broker
            };
            numbers().filter(move |(_, packet)| is_one(packet)).map(|(number, _)| number)
        };
        let at = |number: u32| &packets[number as usize];
        let mut downwards: Vec<u32> = publishes(false).collect();
        downwards
            .sort_unstable_by_key(|&number| (downwards_key(at(number)), at(number).first_sent_ns, number));
        let mut upwards: Vec<u32> = publishes(true).collect();
        upwards.sort_unstable_by_key(|&number| (at(number).message(), at(number).first_sent_ns, number));
        HopDatagrams { packets, downwards, upwards, waits }
    }

    fn packet(&self, number: u32) -> &'a NamedPacket {
        &self.packets[number as usize]
    }

    /// The datagram that brought a message to its subscriber.
    pub(crate) fn down(&self, delivery: &StoredDelivery) -> Option<GatewayHop> {
        let key = (delivery.subscriber, delivery.publisher, delivery.sequence);
        let from = self.downwards.partition_point(|&number| downwards_key(self.packet(number)) < key);
        let copies: Vec<u32> = self.downwards[from..]
            .iter()
            .copied()
            .take_while(|&number| downwards_key(self.packet(number)) == key)
            .collect();
        self.hop(&copies, delivery.received_ns)
    }

    /// The datagram that brought to a gateway what that had passed on by then; its client, where that is known.
    pub(crate) fn up(&self, message: (i64, i64), client: i64, passed_on: i64) -> Option<GatewayHop> {
        let from = self.upwards.partition_point(|&number| self.packet(number).message() < message);
        let copies: Vec<u32> = self.upwards[from..]
            .iter()
            .copied()
            .take_while(|&number| self.packet(number).message() == message)
            .filter(|&number| client == ABSENT || self.packet(number).client() == client)
            .collect();
        self.hop(&copies, passed_on)
    }

    /// Of the copies of a PUBLISH, in the order of sending, the one that counted: what was there by then came with the last
    /// exchange that had arrived, and with the first of its repetitions. An exchange before may have been refused.
    fn hop(&self, copies: &[u32], by: i64) -> Option<GatewayHop> {
        let arrived = |number: &u32| {
            let at = self.packet(*number).complete_ns;
            at != ABSENT && at <= by + SLACK_NS
        };
        let last = self.packet(*copies.iter().rev().find(|number| arrived(number))?);
        let is_same = |packet: &NamedPacket| {
            (packet.connection, packet.packet_id, packet.client())
                == (last.connection, last.packet_id, last.client())
        };
        // A repetition keeps its identifier (§6.13); another one is another exchange.
        let same = copies.iter().filter(|number| arrived(number) && is_same(self.packet(**number)));
        let packet = *same.min_by_key(|&&number| self.packet(number).complete_ns)?;
        let of_client = copies.iter().map(|&number| self.packet(number));
        let of_client = of_client.filter(|copy| copy.client() == last.client());
        let tried = of_client.map(|copy| copy.first_sent_ns).min()?;
        Some(GatewayHop { packet, tried, ..GatewayHop::default() })
    }

    /// Fills in what a hop's PUBLISH waited for since this instant.
    pub(crate) fn fill(&self, hop: &mut GatewayHop, since: Option<i64>) {
        let packet = self.packet(hop.packet);
        let (client, to_broker) = (packet.client(), packet.to_broker);
        let Some(since) = since else { return };
        let went = packet.first_sent_ns;
        // What it registered after a refusal lies between the copies.
        let registered = last_within(self.waits.registering.get(&(to_broker, client)), since, went);
        hop.register = registered.map(|(from, until)| Wait::between(from, until)).unwrap_or_default();
        // A client may have woken up and slept again before it was reached: all of that is the sleep that was waited
        // for.
        let slept = all_within(self.waits.asleep.get(&(to_broker, client)), since, hop.tried);
        hop.sleep = slept.map(|(from, until)| Wait::between(from, until)).unwrap_or_default();
    }
}

/// The last of the spans that ended by then and lies behind `since`, as far as it does.
fn last_within(spans: Option<&Vec<(i64, i64)>>, since: i64, by: i64) -> Option<(i64, i64)> {
    let spans = spans?;
    let place = spans.partition_point(|&(_, until)| until <= by + SLACK_NS).checked_sub(1)?;
    let (from, until) = spans[place];
    (until > since).then_some((from.max(since), until))
}

/// From the first of the spans until the end of the last that had ended by then, as far as that lies behind `since`.
fn all_within(spans: Option<&Vec<(i64, i64)>>, since: i64, by: i64) -> Option<(i64, i64)> {
    let spans = spans?;
    let first = spans.partition_point(|&(_, until)| until <= since);
    let end = spans.partition_point(|&(_, until)| until <= by + SLACK_NS);
    (first < end).then(|| (spans[first].0.max(since), spans[end - 1].1))
}

/// From the first REGISTER with an identifier until its REGACK had come.
fn registering(packets: &[NamedPacket]) -> Spans<(bool, i64)> {
    let mut events: Vec<(i64, bool, &NamedPacket)> = Vec::new();
    for packet in packets {
        match packet.kind {
            FollowedKind::Register => events.push((packet.first_sent_ns, false, packet)),
            FollowedKind::Registered if packet.complete_ns != ABSENT => {
                events.push((packet.complete_ns, true, packet));
            }
            _ => {}
        }
    }
    // At one instant a REGISTER goes before an answer, which may be its own on a network without delay.
    events.sort_by_key(|&(at, ends, _)| (at, ends));
    let (mut open, mut spans) = (NumberMap::default(), Spans::new());
    for (at, ends, packet) in events {
        // The answer goes the other way.
        let by_client = packet.to_broker != ends;
        let key = (by_client, packet.client(), packet.packet_id);
        if !ends {
            // A repeated REGISTER has the identifier of the first (§6.13), from which on the wait counts.
            open.entry(key).or_insert(at);
        } else if let Some(from) = open.remove(&key) {
            spans.entry((by_client, packet.client())).or_insert_with(Vec::new).push((from, at));
        }
    }
    spans
}

/// Whether a client can be reached.
#[derive(Clone, Copy, Debug, Default)]
enum Wakefulness {
    #[default]
    Active,
    Awake,
    AsleepSince(i64),
}

/// When clients slept, as they know it and as their gateways do.
fn asleep(packets: &[NamedPacket]) -> Spans<(bool, i64)> {
    let mut events: Vec<(i64, bool, &NamedPacket)> = Vec::new();
    for packet in packets {
        let says =
            matches!(packet.kind, FollowedKind::Connect | FollowedKind::Disconnect | FollowedKind::Ping);
        let is_said = says && packet.to_broker;
        if is_said || (packet.kind == FollowedKind::Pong && !packet.to_broker) {
            // Who sends knows it when it sends, who receives when it has come.
            let times = [known(packet.complete_ns), Some(packet.first_sent_ns)];
            for (by_client, at) in [packet.to_broker, !packet.to_broker].into_iter().zip([times[1], times[0]])
            {
                events.extend(at.map(|at| (at, by_client, packet)));
            }
        }
    }
    events.sort_by_key(|&(at, by_client, _)| (at, by_client));
    let (mut states, mut spans) = (NumberMap::<_, Wakefulness>::default(), Spans::new());
    for (at, by_client, packet) in events {
        let key = (by_client, packet.client());
        let state = states.entry(key).or_default();
        let bytes = packet.stream_end - packet.stream_start;
        let next = match (packet.kind, *state) {
            // A sleeper becomes active by CONNECT (§6.14).
            (FollowedKind::Connect, _) => Wakefulness::Active,
            // A duration makes four octets, a client identifier more than two (§5.4.19, §5.4.21).
            (FollowedKind::Disconnect, _) if bytes > BARE_BYTES => Wakefulness::AsleepSince(at),
            (FollowedKind::Disconnect, _) => Wakefulness::Active,
            (FollowedKind::Ping, Wakefulness::AsleepSince(_)) if bytes > BARE_BYTES => Wakefulness::Awake,
            (FollowedKind::Pong, Wakefulness::Awake) => Wakefulness::AsleepSince(at),
            (_, state) => state,
        };
        if let (Wakefulness::AsleepSince(from), Wakefulness::Awake | Wakefulness::Active) = (*state, next) {
            spans.entry(key).or_insert_with(Vec::new).push((from, at));
        }
        *state = next;
    }
    spans
}

/// Length and type, and nothing else.
const BARE_BYTES: i64 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_spans_the_last_one_counts_or_all_from_the_first_on_as_far_as_they_lie_behind_an_instant() {
        let ms = |at: i64| at * 1_000_000;
        let spans = vec![(ms(0), ms(10)), (ms(20), ms(30)), (ms(40), ms(50))];
        assert_eq!(last_within(Some(&spans), ms(5), ms(35)), Some((ms(20), ms(30))));
        assert_eq!(last_within(Some(&spans), ms(25), ms(35)), Some((ms(25), ms(30))));
        assert_eq!(last_within(Some(&spans), ms(30), ms(35)), None);
        assert_eq!(all_within(Some(&spans), ms(5), ms(35)), Some((ms(5), ms(30))));
        assert_eq!(all_within(Some(&spans), ms(12), ms(60)), Some((ms(20), ms(50))));
        assert_eq!(all_within(Some(&spans), ms(31), ms(45)), None);
        assert_eq!(all_within(None, 0, ms(60)), None);
    }
}
