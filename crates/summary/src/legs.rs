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

use crate::control::{ControlPackets, NamedPacket, PacketKind};
use crate::messages::StoredDelivery;
use crate::moment::{Kept, Moment, known, least, most};
use crate::settings::RunSettings;

/// The two ends of a link are stamped by one clock but not by one hand: the stack is woken up to this much before or
/// after the frame's own time of arrival.
pub(crate) const SLACK_NS: i64 = 200_000;

/// A PUBLISH on one side of the broker, and what let it go.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LegSide {
    pub(crate) packet: Option<u32>,
    /// When the first byte of the first copy was sent, complete or not.
    pub(crate) tried: Kept,
    /// When the in-flight window let it through, if that held it, and which acknowledgement made room.
    pub(crate) window: Kept,
    pub(crate) window_packet: Option<u32>,
    /// When its sender could send it.
    pub(crate) ready: Kept,
    /// The PUBREL that lets its receiver hand it on.
    pub(crate) release_packet: Option<u32>,
    pub(crate) release: Kept,
}

/// A message's way from one client over the broker to another; a relayed message has several.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leg {
    pub(crate) delivery: StoredDelivery,
    pub(crate) up_client: i64,
    /// The topic that it was delivered on.
    pub(crate) topic: i64,
    /// `None` where the sender is not known.
    pub(crate) relayed: Option<bool>,
    /// The leg by which a relay had received what it sent on in this one, and when it had.
    pub(crate) before: Option<u32>,
    pub(crate) before_received: Kept,
    pub(crate) begins: Kept,
    pub(crate) handed: Kept,
    /// When the broker could hand it on.
    pub(crate) ingress: Kept,
    pub(crate) up: LegSide,
    pub(crate) down: LegSide,
}

/// What legs are looked up in: numbers of packets, sorted by what they are looked up by. Those with equal keys are in the
/// order of their completion, those that never were complete last; ties stay in the order of the table.
struct Index<'a> {
    packets: &'a [NamedPacket],
    /// PUBLISH packets from the broker by receiver and message, and to it by message and topic.
    downwards: Vec<u32>,
    upwards: Vec<u32>,
    /// PUBREL packets by direction, client and packet identifier.
    releases: Vec<u32>,
    /// What acknowledged QoS 1 and 2 PUBLISHes, by direction and connection.
    over: Vec<u32>,
    /// How many QoS 1 and 2 PUBLISHes were before each one of its direction on its connection.
    before: Vec<u32>,
}

/// Who received a message, or on which topic it was published, and which it is.
type Key = (i64, i64, i64);

fn downwards_key(packet: &NamedPacket) -> Key {
    let (publisher, sequence) = packet.message();
    (packet.client(), publisher, sequence)
}

fn upwards_key(packet: &NamedPacket) -> Key {
    let (publisher, sequence) = packet.message();
    (publisher, sequence, packet.topic())
}

fn release_key(packet: &NamedPacket) -> (bool, i64, i32) {
    (packet.to_broker, packet.client(), packet.packet_id)
}

fn connection_key(packet: &NamedPacket) -> (bool, u32) {
    (packet.to_broker, packet.connection)
}

/// The numbers of the packets that are wanted, sorted by a key and their completion.
fn sorted<K: Ord>(
    packets: &[NamedPacket],
    wanted: impl Fn(&NamedPacket) -> bool,
    key: impl Fn(&NamedPacket) -> K,
) -> Vec<u32> {
    let numbers = (0..).zip(packets).filter(|(_, packet)| wanted(packet)).map(|(number, _)| number);
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable_by_key(|&number| {
        let packet = &packets[number as usize];
        (key(packet), packet.complete_ns == ABSENT, packet.complete_ns, number)
    });
    numbers
}

/// The legs of every delivery, in its order.
pub(crate) fn legs(
    deliveries: &[StoredDelivery],
    control: &ControlPackets,
    settings: &RunSettings,
) -> Vec<Leg> {
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
        let StoredDelivery { publisher, sequence, subscriber, received_ns, .. } = leg.delivery;
        received.entry((publisher, sequence, subscriber)).or_insert((number, received_ns));
    }
    for leg in legs.iter_mut().filter(|leg| is_relayed(leg)) {
        let key = (leg.delivery.publisher, leg.delivery.sequence, leg.up_client);
        if let Some(&(number, at)) = received.get(&key) {
            (leg.before, leg.before_received) = (Some(number), Some(at).into());
        }
    }
}

impl<'a> Index<'a> {
    fn of(packets: &'a [NamedPacket]) -> Index<'a> {
        let is_publish = |packet: &NamedPacket| packet.kind == PacketKind::Publish && packet.is_named();
        let is_over = |packet: &NamedPacket| {
            let counts = matches!(packet.kind, PacketKind::Over | PacketKind::Received { refuses: true });
            counts && packet.complete_ns != ABSENT
        };
        let is_release =
            |packet: &NamedPacket| packet.kind == PacketKind::Release && packet.complete_ns != ABSENT;
        Index {
            packets,
            downwards: sorted(packets, |packet| is_publish(packet) && !packet.to_broker, downwards_key),
            upwards: sorted(packets, |packet| is_publish(packet) && packet.to_broker, upwards_key),
            releases: sorted(packets, is_release, release_key),
            over: sorted(packets, is_over, connection_key),
            before: before(packets),
        }
    }

    /// The numbers with a key.
    fn range<'b, K: Ord>(
        &self,
        numbers: &'b [u32],
        wanted: &K,
        key: impl Fn(&NamedPacket) -> K,
    ) -> &'b [u32] {
        let from = numbers.partition_point(|&number| key(self.packet(number)) < *wanted);
        let count = numbers[from..].partition_point(|&number| key(self.packet(number)) == *wanted);
        &numbers[from..from + count]
    }

    fn packet(&self, number: u32) -> &'a NamedPacket {
        &self.packets[number as usize]
    }

    fn matched(&self, delivery: &StoredDelivery) -> Leg {
        let mut leg = Leg {
            delivery: *delivery,
            up_client: ABSENT,
            topic: ABSENT,
            relayed: None,
            before: None,
            before_received: Kept::default(),
            begins: Kept::default(),
            handed: Kept::default(),
            ingress: Kept::default(),
            up: LegSide::default(),
            down: LegSide::default(),
        };
        let StoredDelivery { publisher, sequence, subscriber, received_ns, .. } = *delivery;
        let copies = self.range(&self.downwards, &(subscriber, publisher, sequence), downwards_key);
        let until = received_ns + SLACK_NS;
        let last = copies.iter().rev().find(|&&number| {
            let at = self.packet(number).complete_ns;
            at != ABSENT && at <= until
        });
        let Some(&down) = last else { return leg };
        leg.topic = self.packet(down).topic();
        leg.down.packet = Some(down);
        leg.down.tried = self.tried(copies, |packet| packet.topic() == leg.topic).into();
        let copies = self.range(&self.upwards, &(publisher, sequence, leg.topic), upwards_key);
        let first = copies.first().filter(|&&number| self.packet(number).complete_ns != ABSENT);
        if let Some(&up) = first {
            leg.up_client = self.packet(up).client();
            leg.up.packet = Some(up);
            leg.up.tried = self.tried(copies, |packet| packet.client() == leg.up_client).into();
            leg.relayed = (leg.up_client != ABSENT).then_some(leg.up_client != publisher);
        }
        leg
    }

    /// When the first byte of the first of the copies was sent.
    fn tried(&self, copies: &[u32], is_one: impl Fn(&NamedPacket) -> bool) -> Moment {
        let packets = copies.iter().map(|&number| self.packet(number)).filter(|packet| is_one(packet));
        packets.filter_map(|packet| known(packet.first_sent_ns)).min()
    }

    /// What depends on the legs before, and on windows: when each side could send.
    fn fill(&self, leg: &mut Leg, settings: &RunSettings) {
        let relayed = leg.relayed == Some(true);
        let delivery = leg.delivery;
        let of = |client: i64| usize::try_from(client).ok().and_then(|client| settings.clients.get(client));
        let (sender, receiver) = (of(leg.up_client), of(delivery.subscriber));
        self.released(&mut leg.up, leg.up_client, true);
        self.released(&mut leg.down, delivery.subscriber, false);
        self.through(&mut leg.up, sender.map(|sender| sender.window));
        // Of a relay nothing but its packets is known: it could send when it had received, and its window had room.
        let (begins, handed, ready) = if relayed {
            let received = leg.before_received.get();
            (received, received, most([received, leg.up.window.get()]))
        } else {
            let written = known(delivery.written_ns);
            let segments = leg.up.packet.map_or(0, |up| self.packet(up).segments);
            // A message of several segments is being sent while the socket still takes the rest.
            let ready = if segments > 1 { least([written, leg.up.tried.get()]) } else { written };
            (known(delivery.intended_ns), known(delivery.sent_ns), ready)
        };
        (leg.begins, leg.handed, leg.up.ready) = (begins.into(), handed.into(), ready.into());
        // Either time is allowed (MQTT 5 §4.3.3): a broker that had sent before the PUBREL came did not wait for it.
        let (release, tried) = (leg.up.release.get(), leg.down.tried.get());
        let waited = release.zip(tried).is_some_and(|(at, tried)| at <= tried + SLACK_NS);
        let complete = leg.up.packet.and_then(|up| known(self.packet(up).complete_ns));
        let ingress = if waited { release } else { complete };
        self.through(&mut leg.down, receiver.map(|receiver| receiver.window_to_it));
        let window = leg.down.window.get().filter(|&at| ingress.is_some_and(|ingress| at > ingress));
        leg.down.ready = most([ingress, window]).into();
        (leg.ingress, leg.down.window) = (ingress.into(), window.into());
    }

    /// The PUBREL that lets the receiver of a QoS 2 PUBLISH hand it on: the next one with its identifier.
    fn released(&self, side: &mut LegSide, client: i64, to_broker: bool) {
        let Some(publish) = side.packet.map(|number| self.packet(number)) else { return };
        if publish.qos != 2 || publish.complete_ns == ABSENT {
            return;
        }
        let numbers = self.range(&self.releases, &(to_broker, client, publish.packet_id), release_key);
        let place = numbers.partition_point(|&number| self.packet(number).complete_ns < publish.complete_ns);
        side.release_packet = numbers.get(place).copied();
        side.release = side.release_packet.map(|number| self.packet(number).complete_ns).into();
    }

    /// When the in-flight window of the packet's sender let it through (MQTT 5 §4.9).
    ///
    /// With n packets of QoS 1 and 2 before it on its connection and a window of w, that was when the acknowledgement
    /// number n - w + 1 had come. A packet that was sent earlier was held by no window.
    fn through(&self, side: &mut LegSide, window: Option<i64>) {
        let (Some(number), Some(window)) = (side.packet, window) else { return };
        let publish = self.packet(number);
        let before = i64::from(self.before[number as usize]);
        let Ok(nth) = usize::try_from(before - window) else { return };
        if publish.qos <= 0 || publish.first_sent_ns == ABSENT {
            return;
        }
        let back = (!publish.to_broker, publish.connection);
        let Some(&over) = self.range(&self.over, &back, connection_key).get(nth) else { return };
        let at = self.packet(over).complete_ns;
        if at <= publish.first_sent_ns + SLACK_NS {
            side.window = Some(at.min(publish.first_sent_ns)).into();
            side.window_packet = Some(over);
        }
    }
}

/// How many QoS 1 and 2 PUBLISHes were before each one of its direction on its connection; 0 for other packets.
fn before(packets: &[NamedPacket]) -> Vec<u32> {
    let counts = |packet: &NamedPacket| packet.kind == PacketKind::Publish && packet.qos > 0;
    let mut order: Vec<u32> =
        (0..).zip(packets).filter(|(_, packet)| counts(packet)).map(|(number, _)| number).collect();
    let at = |number: u32| &packets[number as usize];
    order.sort_by_key(|&number| (connection_key(at(number)), at(number).stream_start));
    let mut before = vec![0; packets.len()];
    for connection in order.chunk_by(|&one, &next| connection_key(at(one)) == connection_key(at(next))) {
        for (count, &number) in (0..).zip(connection) {
            before[number as usize] = count;
        }
    }
    before
}
