//! A leg as a chain of instants, and the parts between them.
//!
//! A leg's instants, from the intended time to the reception, come from different tables and from both ends of links. They
//! are put in order by moving each to the one before it where it would lie earlier, so that no part is negative and the
//! parts add up to the latency whatever the tables say. What is *adjusted* is the sum of what would have been negative: how
//! far the tables disagree, and no part is wrong by more.

use mqttlab_recording::reading::{ABSENT, Vocabulary};
use mqttlab_recording::{AttributionRow, LegRow};

use crate::control::{ControlPackets, NamedPacket};
use crate::legs::{Leg, LegSide, SLACK_NS};
use crate::moment::{Kept, Moment, known};
use crate::settings::RunSettings;
use crate::ways::{CarriedPacket, SegmentFlight};

/// The parts, in the order in which they pass.
const PARTS: usize = 17;
const SCHEDULE: usize = 0;
const SESSION: usize = 1;
const SENDER_NAGLE: usize = 2;
const SENDER_SOCKET: usize = 3;
const QUEUE_TO_BROKER: usize = 4;
const WIRE_TO_BROKER: usize = 5;
const LOST_TO_BROKER: usize = 6;
const HANDSHAKE: usize = 7;
const BROKER: usize = 8;
const BROKER_WINDOW: usize = 9;
const BROKER_NAGLE: usize = 10;
const BROKER_SOCKET: usize = 11;
const QUEUE_TO_SUBSCRIBER: usize = 12;
const WIRE_TO_SUBSCRIBER: usize = 13;
const LOST_TO_SUBSCRIBER: usize = 14;
const RELEASE: usize = 15;
const DELIVERY: usize = 16;

const EARLIER_LEG: &str = "a part of their way to the relay was not recorded";
/// Relays behind one another, at most: where tables contradict each other, a leg may come before itself.
const LEGS_MAX: u32 = 1000;

/// Where the time of a delivery went, all legs together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Attribution {
    parts: Option<[i64; PARTS]>,
    adjusted: Option<i64>,
    legs: u32,
    unattributed: Option<&'static str>,
}

/// What legs are read from.
pub(crate) struct Chains<'a> {
    pub(crate) legs: &'a [Leg],
    pub(crate) control: &'a ControlPackets,
    /// The ways of PUBLISH packets, in the order of their numbers.
    pub(crate) flights: &'a [(u32, SegmentFlight)],
    pub(crate) settings: &'a RunSettings,
}

/// A side's instants.
struct Instants {
    flight: SegmentFlight,
    first_sent: Moment,
    complete: Moment,
    started: Moment,
    /// What is known of waits is of the copy that came through; an earlier copy had been sent before.
    nagle_until: Moment,
    socket_until: Moment,
    held_until: Moment,
    window: Moment,
}

/// The packets whose ways are looked for, each once and in order, with the first leg that asks.
pub(crate) fn wanted(legs: &[Leg]) -> Vec<(u32, u32)> {
    let of_leg = |(number, leg): (u32, &Leg)| {
        [leg.up.packet, leg.down.packet].into_iter().flatten().map(move |packet| (packet, number))
    };
    let mut wanted: Vec<(u32, u32)> = (0..).zip(legs).flat_map(of_leg).collect();
    wanted.sort_unstable();
    wanted.dedup_by_key(|(packet, _)| *packet);
    wanted
}

/// What is to be known of a packet whose way is looked for.
pub(crate) fn carried(packet: &NamedPacket, leg: &Leg, settings: &RunSettings) -> CarriedPacket {
    let of = |client: i64| usize::try_from(client).ok().and_then(|client| settings.clients.get(client));
    let (side, nagle) = if packet.to_broker {
        (&leg.up, of(leg.up_client).map(|sender| sender.nagle))
    } else {
        (&leg.down, of(leg.delivery.subscriber).map(|receiver| receiver.broker_nagle))
    };
    CarriedPacket {
        stream_start: packet.stream_start,
        stream_end: packet.stream_end,
        first_sent: known(packet.first_sent_ns),
        complete: known(packet.complete_ns),
        tried: side.tried.get(),
        ready: side.ready.get(),
        nagle,
    }
}

impl Chains<'_> {
    fn packet(&self, side: &LegSide) -> Option<&NamedPacket> {
        side.packet.map(|number| &self.control.packets[number as usize])
    }

    fn is_behind_gateway(&self, client: i64) -> bool {
        let client = usize::try_from(client).ok().and_then(|client| self.settings.clients.get(client));
        client.is_some_and(|client| client.is_behind_gateway)
    }

    fn instants(&self, side: &LegSide) -> Instants {
        let place = |number: u32| self.flights.binary_search_by_key(&number, |&(packet, _)| packet).ok();
        let flight = side.packet.and_then(place).map(|place| self.flights[place].1).unwrap_or_default();
        let packet = self.packet(side);
        let first_sent = packet.and_then(|packet| known(packet.first_sent_ns));
        let came_through = first_sent.is_some() && side.tried.get() == first_sent;
        let of_copy = |at: Kept| at.get().filter(|_| came_through);
        Instants {
            first_sent,
            complete: packet.and_then(|packet| known(packet.complete_ns)),
            started: flight.went.get().zip(flight.queue.get()).map(|(went, queue)| went + queue),
            nagle_until: of_copy(flight.first.nagle_until),
            socket_until: of_copy(flight.first.socket_until),
            held_until: of_copy(flight.first.held_until),
            window: of_copy(side.window),
            flight,
        }
    }

    /// When the subscriber could hand the message on, where it waits for the PUBREL.
    fn handed_on(&self, leg: &Leg) -> Moment {
        let receiver = usize::try_from(leg.delivery.subscriber).ok();
        let receiver = receiver.and_then(|client| self.settings.clients.get(client));
        let on_release =
            receiver.is_some_and(|receiver| receiver.on_release) && leg.delivery.qos_delivered == 2;
        leg.down.release.get().filter(|&at| on_release && at <= leg.delivery.received_ns + SLACK_NS)
    }

    /// Each step of the chain: the instant, and the part that ends there. A part may end at several steps.
    fn steps(&self, leg: &Leg, up: &Instants, down: &Instants) -> [(Moment, usize); 30] {
        // A relay's own time is its session's, a stack's is its socket's.
        let rest = if leg.relayed == Some(true) { SESSION } else { SENDER_SOCKET };
        [
            (leg.handed.get(), SCHEDULE),
            (leg.up.ready.get(), SESSION),
            (up.nagle_until, SENDER_NAGLE),
            (up.socket_until, SENDER_SOCKET),
            (up.held_until, SENDER_NAGLE),
            (leg.up.tried.get(), rest),
            (up.flight.resumed.get(), LOST_TO_BROKER),
            (up.flight.tail.nagle_until.get(), SENDER_NAGLE),
            (up.flight.tail.socket_until.get(), SENDER_SOCKET),
            (up.flight.tail.held_until.get(), SENDER_NAGLE),
            (up.flight.went.get(), SENDER_SOCKET),
            (up.started, QUEUE_TO_BROKER),
            (up.flight.arrived.get(), WIRE_TO_BROKER),
            (up.complete, LOST_TO_BROKER),
            (leg.ingress.get(), HANDSHAKE),
            (down.window, BROKER_WINDOW),
            (down.nagle_until, BROKER_NAGLE),
            (down.socket_until, BROKER_SOCKET),
            (down.held_until, BROKER_NAGLE),
            (leg.down.tried.get(), BROKER),
            (down.flight.resumed.get(), LOST_TO_SUBSCRIBER),
            (down.flight.tail.nagle_until.get(), BROKER_NAGLE),
            (down.flight.tail.socket_until.get(), BROKER_SOCKET),
            (down.flight.tail.held_until.get(), BROKER_NAGLE),
            (down.flight.went.get(), BROKER_SOCKET),
            (down.started, QUEUE_TO_SUBSCRIBER),
            (down.flight.arrived.get(), WIRE_TO_SUBSCRIBER),
            (down.complete, LOST_TO_SUBSCRIBER),
            (self.handed_on(leg), RELEASE),
            (Some(leg.delivery.received_ns), DELIVERY),
        ]
    }

    /// The parts of one leg, and what was adjusted; else what it lacks: the first thing, looked at from the receiver.
    fn parts(&self, leg: &Leg) -> Result<([i64; PARTS], i64), &'static str> {
        if self.is_behind_gateway(leg.delivery.publisher) || self.is_behind_gateway(leg.delivery.subscriber) {
            return Err("they went through an MQTT-SN gateway, whose time is not told apart");
        }
        let (up, down) = (self.instants(&leg.up), self.instants(&leg.down));
        if leg.down.packet.is_none() {
            return Err("their PUBLISH to the subscriber was not recorded");
        }
        if leg.up.packet.is_none() {
            return Err("their PUBLISH to the broker was not recorded");
        }
        if down.flight.frame.get().is_none() || up.flight.frame.get().is_none() {
            return Err("the frame that completed their PUBLISH was not recorded");
        }
        let Some(begins) = leg.begins.get() else {
            return Err("the time at which their relay received them is not known");
        };
        let (mut parts, mut adjusted) = ([0; PARTS], 0);
        let (mut last, mut before) = (begins, begins);
        let received = leg.delivery.received_ns;
        for (instant, part) in self.steps(leg, &up, &down) {
            let Some(instant) = instant else { continue };
            adjusted += (before - instant).max(0);
            before = instant;
            let moved = instant.max(last).min(received.max(last));
            parts[part] += moved - last;
            last = moved;
        }
        Ok((parts, adjusted))
    }

    /// The parts of a delivery: those of its last leg, and of the legs before.
    pub(crate) fn attribution(&self, number: usize) -> Attribution {
        let mut whole = Attribution { parts: None, adjusted: None, legs: 1, unattributed: None };
        let mut leg = &self.legs[number];
        match self.parts(leg) {
            Ok((parts, adjusted)) => (whole.parts, whole.adjusted) = (Some(parts), Some(adjusted)),
            Err(reason) => whole.unattributed = Some(reason),
        }
        while let Some(before) = leg.before.filter(|_| whole.legs < LEGS_MAX) {
            leg = &self.legs[before as usize];
            whole.legs += 1;
            let earlier = self.parts(leg).ok();
            if earlier.is_none() && whole.unattributed.is_none() {
                whole.unattributed = Some(EARLIER_LEG);
            }
            whole.parts = whole.parts.zip(earlier).map(|(mut parts, (earlier, _))| {
                parts.iter_mut().zip(earlier).for_each(|(part, more)| *part += more);
                parts
            });
            whole.adjusted = whole.adjusted.zip(earlier).map(|(adjusted, (_, more))| adjusted + more);
        }
        whole
    }

    /// The row of a delivery in `legs`.
    pub(crate) fn row<'a>(&self, number: usize, words: &'a Vocabulary, topic: &'a mut String) -> LegRow<'a> {
        let leg = &self.legs[number];
        topic.clear();
        if leg.topic != ABSENT {
            topic.push_str(&words.word(leg.topic as u32));
        }
        let row = LegRow {
            before: leg.before.map(u64::from),
            relayed: leg.relayed,
            up_client: u32::try_from(leg.up_client).ok(),
            topic: (leg.topic != ABSENT).then_some(topic.as_str()),
            begins_ns: ns(leg.begins.get()),
            handed_ns: ns(leg.handed.get()),
            ingress_ns: ns(leg.ingress.get()),
            handed_on_ns: ns(self.handed_on(leg)),
            qos: u8::try_from(leg.delivery.qos).ok(),
            ..LegRow::default()
        };
        self.with_down(leg, self.with_up(leg, row))
    }

    /// With what is known of the way to the broker.
    fn with_up<'a>(&self, leg: &Leg, row: LegRow<'a>) -> LegRow<'a> {
        let (up, up_packet) = (self.instants(&leg.up), self.packet(&leg.up));
        LegRow {
            up_packet: number_of(leg.up.packet),
            up_connection: connection(up_packet),
            up_packet_id: identifier(up_packet),
            up_first_sent_ns: ns(up.first_sent),
            up_ready_ns: ns(leg.up.ready.get()),
            up_window_ns: ns(up.window),
            up_window_packet: number_of(leg.up.window_packet),
            up_nagle_until_ns: ns(up.nagle_until),
            up_socket_until_ns: ns(up.socket_until),
            up_held_until_ns: ns(up.held_until),
            up_release_frame: ns(up.flight.first.frame.get()),
            up_tried_ns: ns(leg.up.tried.get()),
            up_resumed_ns: ns(up.flight.resumed.get()),
            up_tail_nagle_until_ns: ns(up.flight.tail.nagle_until.get()),
            up_tail_socket_until_ns: ns(up.flight.tail.socket_until.get()),
            up_tail_held_until_ns: ns(up.flight.tail.held_until.get()),
            up_tail_release_frame: ns(up.flight.tail.frame.get()),
            up_frame: ns(up.flight.frame.get()),
            up_went_ns: ns(up.flight.went.get()),
            up_started_ns: ns(up.started),
            up_arrived_ns: ns(up.flight.arrived.get()),
            up_complete_ns: ns(up.complete),
            up_release_packet: number_of(leg.up.release_packet),
            up_release_ns: ns(leg.up.release.get()),
            ..row
        }
    }

    /// With what is known of the way from the broker.
    fn with_down<'a>(&self, leg: &Leg, row: LegRow<'a>) -> LegRow<'a> {
        let (down, down_packet) = (self.instants(&leg.down), self.packet(&leg.down));
        LegRow {
            down_packet: number_of(leg.down.packet),
            down_connection: connection(down_packet),
            down_packet_id: identifier(down_packet),
            down_first_sent_ns: ns(down.first_sent),
            down_ready_ns: ns(leg.down.ready.get()),
            down_window_ns: ns(down.window),
            down_window_packet: number_of(leg.down.window_packet),
            down_nagle_until_ns: ns(down.nagle_until),
            down_socket_until_ns: ns(down.socket_until),
            down_held_until_ns: ns(down.held_until),
            down_release_frame: ns(down.flight.first.frame.get()),
            down_tried_ns: ns(leg.down.tried.get()),
            down_resumed_ns: ns(down.flight.resumed.get()),
            down_tail_nagle_until_ns: ns(down.flight.tail.nagle_until.get()),
            down_tail_socket_until_ns: ns(down.flight.tail.socket_until.get()),
            down_tail_held_until_ns: ns(down.flight.tail.held_until.get()),
            down_tail_release_frame: ns(down.flight.tail.frame.get()),
            down_frame: ns(down.flight.frame.get()),
            down_went_ns: ns(down.flight.went.get()),
            down_started_ns: ns(down.started),
            down_arrived_ns: ns(down.flight.arrived.get()),
            down_complete_ns: ns(down.complete),
            down_release_packet: number_of(leg.down.release_packet),
            down_release_ns: ns(leg.down.release.get()),
            ..row
        }
    }
}

fn ns(at: Moment) -> Option<u64> {
    at.map(|at| at as u64)
}

fn number_of(packet: Option<u32>) -> Option<u64> {
    packet.map(u64::from)
}

fn connection(packet: Option<&NamedPacket>) -> Option<u32> {
    packet.map(|packet| packet.connection).filter(|&connection| connection != u32::MAX)
}

fn identifier(packet: Option<&NamedPacket>) -> Option<u16> {
    packet.and_then(|packet| u16::try_from(packet.packet_id).ok())
}

impl Attribution {
    /// Its row, beside the message's.
    pub(crate) fn row(&self, row: u64) -> AttributionRow<'static> {
        let part = |number: usize| self.parts.map(|parts| parts[number] as u64);
        AttributionRow {
            row,
            schedule_ns: part(SCHEDULE),
            session_ns: part(SESSION),
            sender_nagle_ns: part(SENDER_NAGLE),
            sender_socket_ns: part(SENDER_SOCKET),
            queue_to_broker_ns: part(QUEUE_TO_BROKER),
            wire_to_broker_ns: part(WIRE_TO_BROKER),
            retransmission_to_broker_ns: part(LOST_TO_BROKER),
            handshake_ns: part(HANDSHAKE),
            broker_ns: part(BROKER),
            broker_window_ns: part(BROKER_WINDOW),
            broker_nagle_ns: part(BROKER_NAGLE),
            broker_socket_ns: part(BROKER_SOCKET),
            queue_to_subscriber_ns: part(QUEUE_TO_SUBSCRIBER),
            wire_to_subscriber_ns: part(WIRE_TO_SUBSCRIBER),
            retransmission_to_subscriber_ns: part(LOST_TO_SUBSCRIBER),
            release_ns: part(RELEASE),
            delivery_ns: part(DELIVERY),
            adjusted_ns: self.adjusted.map(|adjusted| adjusted as u64),
            legs: self.legs,
            unattributed: self.unattributed,
        }
    }
}
