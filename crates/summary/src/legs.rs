//! Which control packets carried a message: its PUBLISH to the broker, the one to the subscriber, the PUBREL of each.
//!
//! ```text
//!   message ──► the last PUBLISH that its receiver had before it received it ──► topic
//!           ──► the first PUBLISH to the broker that was complete, with that topic ──► its sender
//!                  the publisher itself, or a relay: then the relay's own reception is the leg before this one
//! ```
//!
//! A message that was published again after a reconnect has several PUBLISHes. What came first to the broker decides when
//! the broker had it; what was sent first decides since when it has been on its way.

use std::collections::HashMap;

use mqttlab_recording::reading::ABSENT;

use crate::control::{ControlPackets, Kind, Packet};
use crate::messages::Delivery;
use crate::moment::{Moment, known, least, most};
use crate::settings::Settings;

/// The two ends of a link are stamped by one clock but not by one hand: the stack is woken up to this much before or
/// after the frame's own time of arrival.
pub(crate) const SLACK_NS: i64 = 200_000;

/// A PUBLISH on one side of the broker, and what let it go.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Side {
    pub(crate) packet: Option<u32>,
    /// When the first byte of the first copy was sent, complete or not.
    pub(crate) tried: Moment,
    /// When the in-flight window let it through, if that held it, and which acknowledgement made room.
    pub(crate) window: Moment,
    pub(crate) window_packet: Option<u32>,
    /// When its sender could send it.
    pub(crate) ready: Moment,
    /// The PUBREL that lets its receiver hand it on.
    pub(crate) release_packet: Option<u32>,
    pub(crate) release: Moment,
}

/// A message's way from one client over the broker to another; a relayed message has several.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leg {
    pub(crate) delivery: Delivery,
    pub(crate) up_client: i64,
    /// The topic that it was delivered on.
    pub(crate) topic: i64,
    /// `None` where the sender is not known.
    pub(crate) relayed: Option<bool>,
    /// The leg by which a relay had received what it sent on in this one, and when it had.
    pub(crate) before: Option<u32>,
    pub(crate) before_received: Moment,
    pub(crate) begins: Moment,
    pub(crate) handed: Moment,
    /// When the broker could hand it on.
    pub(crate) ingress: Moment,
    pub(crate) up: Side,
    pub(crate) down: Side,
}

/// What legs are looked up in.
struct Index<'a> {
    packets: &'a [Packet],
    /// PUBLISH packets from the broker by receiver and message, and to it by message and topic: those of a key in the order
    /// of their completion, the others last.
    downwards: HashMap<(i64, i64, i64), Few>,
    upwards: HashMap<(i64, i64, i64), Few>,
    /// PUBREL packets by direction, client and packet identifier, in the order of their completion.
    releases: HashMap<(bool, i64, i32), Vec<u32>>,
    windows: [Windows; 2],
}

/// The packets of one key: mostly there is one.
#[derive(Clone, Debug)]
enum Few {
    One(u32),
    Many(Vec<u32>),
}

impl Few {
    fn add(&mut self, packet: u32) {
        match self {
            Few::One(first) => *self = Few::Many(vec![*first, packet]),
            Few::Many(packets) => packets.push(packet),
        }
    }

    fn as_slice(&self) -> &[u32] {
        match self {
            Few::One(packet) => std::slice::from_ref(packet),
            Few::Many(packets) => packets,
        }
    }
}

/// The order of one direction's QoS 1 and 2 PUBLISHes on each connection, and of what acknowledged them.
#[derive(Default)]
struct Windows {
    /// How many were before a packet on its connection.
    before: HashMap<u32, i64>,
    /// By connection, the acknowledgements in the order of their completion.
    done: HashMap<i64, Vec<u32>>,
}

/// The legs of every delivery, in its order.
pub(crate) fn legs(deliveries: &[Delivery], control: &ControlPackets, settings: &Settings) -> Vec<Leg> {
    let index = Index::of(&control.packets);
    let mut legs: Vec<Leg> = deliveries.iter().map(|delivery| index.matched(delivery)).collect();
    join_relays(&mut legs);
    for leg in &mut legs {
        index.fill(leg, settings);
    }
    legs
}

/// Finds the legs by which relays had received what they sent on.
fn join_relays(legs: &mut [Leg]) {
    let is_relayed = |leg: &Leg| leg.relayed == Some(true);
    if !legs.iter().any(is_relayed) {
        return;
    }
    let mut received = HashMap::new();
    for (number, leg) in (0..).zip(legs.iter()) {
        let Delivery { publisher, sequence, subscriber, received_ns, .. } = leg.delivery;
        received.entry((publisher, sequence, subscriber)).or_insert((number, received_ns));
    }
    for leg in legs.iter_mut().filter(|leg| is_relayed(leg)) {
        let key = (leg.delivery.publisher, leg.delivery.sequence, leg.up_client);
        if let Some(&(number, at)) = received.get(&key) {
            (leg.before, leg.before_received) = (Some(number), Some(at));
        }
    }
}

impl<'a> Index<'a> {
    fn of(packets: &'a [Packet]) -> Index<'a> {
        let (mut downwards, mut upwards) = (HashMap::new(), HashMap::new());
        let mut releases = HashMap::<_, Vec<u32>>::new();
        let add = |map: &mut HashMap<_, Few>, key, number| {
            map.entry(key).and_modify(|few| few.add(number)).or_insert(Few::One(number));
        };
        for (number, packet) in (0..).zip(packets) {
            match packet.kind {
                Kind::Publish if packet.publisher != ABSENT && packet.to_broker => {
                    add(&mut upwards, (packet.publisher, packet.sequence, packet.topic), number);
                }
                Kind::Publish if packet.publisher != ABSENT => {
                    add(&mut downwards, (packet.client, packet.publisher, packet.sequence), number);
                }
                Kind::Release if packet.complete_ns != ABSENT => {
                    let key = (packet.to_broker, packet.client, packet.packet_id);
                    releases.entry(key).or_default().push(number);
                }
                _ => {}
            }
        }
        // Ties stay in the order of the table.
        let in_order = |numbers: &mut Vec<u32>| {
            numbers.sort_by_key(|&number| {
                let at = packets[number as usize].complete_ns;
                (at == ABSENT, at)
            });
        };
        for few in downwards.values_mut().chain(upwards.values_mut()) {
            if let Few::Many(numbers) = few {
                in_order(numbers);
            }
        }
        releases.values_mut().for_each(in_order);
        let windows = [Windows::of(packets, false), Windows::of(packets, true)];
        Index { packets, downwards, upwards, releases, windows }
    }

    fn packet(&self, number: u32) -> &'a Packet {
        &self.packets[number as usize]
    }

    fn matched(&self, delivery: &Delivery) -> Leg {
        let mut leg = Leg {
            delivery: *delivery,
            up_client: ABSENT,
            topic: ABSENT,
            relayed: None,
            before: None,
            before_received: None,
            begins: None,
            handed: None,
            ingress: None,
            up: Side::default(),
            down: Side::default(),
        };
        let Delivery { publisher, sequence, subscriber, received_ns, .. } = *delivery;
        let copies = self.downwards.get(&(subscriber, publisher, sequence)).map_or(&[][..], Few::as_slice);
        let until = received_ns + SLACK_NS;
        let last = copies.iter().rev().find(|&&number| {
            let at = self.packet(number).complete_ns;
            at != ABSENT && at <= until
        });
        let Some(&down) = last else { return leg };
        leg.topic = self.packet(down).topic;
        leg.down.packet = Some(down);
        leg.down.tried = self.tried(copies, |packet| packet.topic == leg.topic);
        let copies = self.upwards.get(&(publisher, sequence, leg.topic)).map_or(&[][..], Few::as_slice);
        let first = copies.first().filter(|&&number| self.packet(number).complete_ns != ABSENT);
        if let Some(&up) = first {
            leg.up_client = self.packet(up).client;
            leg.up.packet = Some(up);
            leg.up.tried = self.tried(copies, |packet| packet.client == leg.up_client);
            leg.relayed = (leg.up_client != ABSENT).then_some(leg.up_client != publisher);
        }
        leg
    }

    /// When the first byte of the first of the copies was sent.
    fn tried(&self, copies: &[u32], is_one: impl Fn(&Packet) -> bool) -> Moment {
        let packets = copies.iter().map(|&number| self.packet(number)).filter(|packet| is_one(packet));
        packets.filter_map(|packet| known(packet.first_sent_ns)).min()
    }

    /// What depends on the legs before, and on windows: when each side could send.
    fn fill(&self, leg: &mut Leg, settings: &Settings) {
        let relayed = leg.relayed == Some(true);
        let delivery = leg.delivery;
        let of = |client: i64| usize::try_from(client).ok().and_then(|client| settings.clients.get(client));
        let (sender, receiver) = (of(leg.up_client), of(delivery.subscriber));
        self.released(&mut leg.up, leg.up_client, true);
        self.released(&mut leg.down, delivery.subscriber, false);
        self.through(&mut leg.up, sender.map(|sender| sender.window), true);
        // Of a relay nothing but its packets is known: it could send when it had received, and its window had room.
        (leg.begins, leg.handed, leg.up.ready) = if relayed {
            (leg.before_received, leg.before_received, most([leg.before_received, leg.up.window]))
        } else {
            let written = known(delivery.written_ns);
            let segments = leg.up.packet.map_or(0, |up| self.packet(up).segments);
            // A message of several segments is being sent while the socket still takes the rest.
            let ready = if segments > 1 { least([written, leg.up.tried]) } else { written };
            (known(delivery.intended_ns), known(delivery.sent_ns), ready)
        };
        // Either time is allowed (MQTT 5 §4.3.3): a broker that had sent before the PUBREL came did not wait for it.
        let waited = leg.up.release.zip(leg.down.tried).is_some_and(|(at, tried)| at <= tried + SLACK_NS);
        let complete = leg.up.packet.and_then(|up| known(self.packet(up).complete_ns));
        leg.ingress = if waited { leg.up.release } else { complete };
        self.through(&mut leg.down, receiver.map(|receiver| receiver.window_to_it), false);
        leg.down.window = leg.down.window.filter(|&at| leg.ingress.is_some_and(|ingress| at > ingress));
        leg.down.ready = most([leg.ingress, leg.down.window]);
    }

    /// The PUBREL that lets the receiver of a QoS 2 PUBLISH hand it on: the next one with its identifier.
    fn released(&self, side: &mut Side, client: i64, to_broker: bool) {
        let Some(publish) = side.packet.map(|number| self.packet(number)) else { return };
        if publish.qos != 2 || publish.complete_ns == ABSENT {
            return;
        }
        let key = (to_broker, client, publish.packet_id);
        let numbers = self.releases.get(&key).map_or(&[][..], Vec::as_slice);
        let place = numbers.partition_point(|&number| self.packet(number).complete_ns < publish.complete_ns);
        side.release_packet = numbers.get(place).copied();
        side.release = side.release_packet.map(|number| self.packet(number).complete_ns);
    }

    /// When the in-flight window of the packet's sender let it through (MQTT 5 §4.9).
    ///
    /// With n packets of QoS 1 and 2 before it on its connection and a window of w, that was when the acknowledgement
    /// number n - w + 1 had come. A packet that was sent earlier was held by no window.
    fn through(&self, side: &mut Side, window: Option<i64>, to_broker: bool) {
        let windows = &self.windows[usize::from(to_broker)];
        let (Some(number), Some(window)) = (side.packet, window) else { return };
        let Some(before) = windows.before.get(&number) else { return };
        let publish = self.packet(number);
        let Ok(nth) = usize::try_from(before - window) else { return };
        let Some(&over) = windows.done.get(&publish.connection).and_then(|done| done.get(nth)) else {
            return;
        };
        let at = self.packet(over).complete_ns;
        if publish.first_sent_ns != ABSENT && at <= publish.first_sent_ns + SLACK_NS {
            side.window = Some(at.min(publish.first_sent_ns));
            side.window_packet = Some(over);
        }
    }
}

impl Windows {
    fn of(packets: &[Packet], to_broker: bool) -> Windows {
        let mut order: Vec<u32> = Vec::new();
        let mut done = HashMap::<i64, Vec<u32>>::new();
        for (number, packet) in (0..).zip(packets) {
            let counts = matches!(packet.kind, Kind::Over | Kind::Received { refuses: true });
            if packet.kind == Kind::Publish && packet.qos > 0 && packet.to_broker == to_broker {
                order.push(number);
            } else if counts && packet.to_broker != to_broker && packet.complete_ns != ABSENT {
                done.entry(packet.connection).or_default().push(number);
            }
        }
        let at = |number: u32| &packets[number as usize];
        done.values_mut().for_each(|numbers| numbers.sort_by_key(|&number| at(number).complete_ns));
        order.sort_by_key(|&number| (at(number).connection, at(number).stream_start));
        let mut counts = HashMap::new();
        let mut before = HashMap::with_capacity(order.len());
        for number in order {
            let count = counts.entry(at(number).connection).or_insert(0);
            before.insert(number, *count);
            *count += 1;
        }
        Windows { before, done }
    }
}
