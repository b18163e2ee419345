//! Which control packets carried a message: its PUBLISH to the broker, the one to the subscriber, the PUBREL of each.
//!
//! ```text
//!   message ──► the last PUBLISH that its receiver had before it received it ──► topic
//!           ──► the first PUBLISH to the broker that was complete, with that topic ──► its sender
//!                  the publisher itself, or a relay: then the relay's own reception is the leg before this one
//!                  or a gateway: then a datagram had brought it there (`gateway_hops`)
//! ```
//!
//! A message that was published again after a reconnect has several PUBLISHes. What came first to the broker decides when
//! the broker had it; what was sent first decides since when it has been on its way.

use mqttlab_recording::NumberMap;
use mqttlab_recording::reading::ABSENT;

use crate::attribution::gateway_hops::{DatagramWaits, GatewayHop, HopDatagrams};
use crate::attribution::in_flight::OverOfGateways;
use crate::attribution::messages::StoredDelivery;
use crate::attribution::publishes::RangePackets;
use crate::control_packets::{NamedPacket, narrow};
use crate::instants::{MaybeInstant, PackedInstant, SLACK_NS, known, least, most};
use crate::search_hint::SearchHint;
use crate::settings::RunSettings;

/// A PUBLISH on one side of the broker, and what let it go.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LegSide {
    /// Its place among the range's packets. Those of other packets below are rows of the table.
    pub(crate) packet: Option<u32>,
    /// When the first byte of the first copy was sent, complete or not.
    pub(crate) tried: PackedInstant,
    /// When the in-flight window let it through, if that held it, and which acknowledgement made room.
    pub(crate) window: PackedInstant,
    pub(crate) window_packet: Option<u32>,
    /// When its sender could send it.
    pub(crate) ready: PackedInstant,
    /// The PUBREL that lets its receiver hand it on.
    pub(crate) release_packet: Option<u32>,
    pub(crate) release: PackedInstant,
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
    pub(crate) before_received: PackedInstant,
    pub(crate) begins: PackedInstant,
    pub(crate) handed: PackedInstant,
    /// When the broker could hand it on.
    pub(crate) ingress: PackedInstant,
    pub(crate) up: LegSide,
    pub(crate) down: LegSide,
    /// Where a client of MQTT-SN is at an end: its hop, a place in [`FollowedLegs::hops`].
    pub(crate) hop_up: Option<u32>,
    pub(crate) hop_down: Option<u32>,
}

/// The legs of every delivery of a range, in its order, and the hops of those that went through gateways.
#[derive(Default)]
pub(crate) struct FollowedLegs {
    pub(crate) legs: Vec<Leg>,
    pub(crate) hops: Vec<GatewayHop>,
}

impl FollowedLegs {
    pub(crate) fn hop(&self, place: Option<u32>) -> Option<&GatewayHop> {
        place.map(|place| &self.hops[place as usize])
    }
}

/// What legs are looked up in.
struct Index<'a> {
    range: &'a RangePackets,
    packets: &'a [NamedPacket],
    /// PUBLISH packets from the broker by message and receiver, and to it by message and topic.
    downwards: Copies,
    upwards: Copies,
    datagrams: HopDatagrams<'a>,
    gateways: &'a OverOfGateways,
}

/// PUBLISH packets in the order of what they are looked up by, and where one was found last: deliveries come in much the same
/// order.
struct Copies {
    sorted: Vec<Copied>,
    near: SearchHint,
}

impl Copies {
    fn of(mut copies: Vec<Copied>) -> Copies {
        copies.sort_unstable();
        Copies { sorted: copies, near: SearchHint::default() }
    }

    /// Those with a key.
    fn with(&self, wanted: Key) -> &[Copied] {
        let from = self.near.partition_point(&self.sorted, |copy| copy.key < wanted);
        let count = self.sorted[from..].iter().take_while(|copy| copy.key == wanted).count();
        &self.sorted[from..from + count]
    }
}

/// A PUBLISH by what it is looked up by. Those with equal keys are in the order of their completion, those that never were
/// complete last; ties stay in the order of the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Copied {
    key: Key,
    complete: u64,
    place: u32,
}

/// Which message it is, and who received it or on which topic it was published.
type Key = (u64, u32);

fn key((publisher, sequence): (i64, i64), beside: i64) -> Key {
    (u64::from(narrow(publisher)) << 32 | u64::from(narrow(sequence)), narrow(beside))
}

/// The legs of every delivery of a range, in its order.
pub(crate) fn legs(
    deliveries: &[StoredDelivery],
    range: &RangePackets,
    waits: &DatagramWaits,
    gateways: &OverOfGateways,
    settings: &RunSettings,
) -> FollowedLegs {
    let index = Index::of(range, waits, gateways);
    let mut hops = Vec::new();
    let mut legs: Vec<Leg> = deliveries.iter().map(|delivery| index.matched(delivery, &mut hops)).collect();
    // After all are matched, and before they are filled: a relay could send when the leg before had ended.
    join_relays(&mut legs);
    for leg in &mut legs {
        index.fill(leg, &mut hops, settings);
    }
    FollowedLegs { legs, hops }
}

/// Keeps a hop; returns its place.
fn keep(hops: &mut Vec<GatewayHop>, hop: GatewayHop) -> u32 {
    hops.push(hop);
    (hops.len() - 1) as u32
}

/// Finds the legs by which relays had received what they sent on.
fn join_relays(legs: &mut [Leg]) {
    let is_relayed = |leg: &Leg| leg.relayed == Some(true);
    if !legs.iter().any(is_relayed) {
        return;
    }
    let mut received = NumberMap::default();
    for (number, leg) in (0..).zip(legs.iter()) {
        let StoredDelivery { publisher, sequence, subscriber, received_ns, .. } = leg.delivery;
        // The first reception counts: a relay sends on what is new to it.
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
    fn of(range: &'a RangePackets, waits: &'a DatagramWaits, gateways: &'a OverOfGateways) -> Index<'a> {
        let packets = &range.packets;
        let [mut downwards, mut upwards] = [Vec::with_capacity(packets.len()), Vec::new()];
        for (place, packet) in (0..).zip(packets).filter(|(_, packet)| !packet.is_datagram) {
            let (copies, beside) = match packet.to_broker {
                true => (&mut upwards, packet.topic()),
                false => (&mut downwards, packet.client()),
            };
            let complete = if packet.complete_ns == ABSENT { u64::MAX } else { packet.complete_ns as u64 };
            copies.push(Copied { key: key(packet.message(), beside), complete, place });
        }
        let [downwards, upwards] = [downwards, upwards].map(Copies::of);
        Index { range, packets, downwards, upwards, datagrams: HopDatagrams::of(packets, waits), gateways }
    }

    fn packet(&self, number: u32) -> &'a NamedPacket {
        &self.packets[number as usize]
    }

    fn matched(&self, delivery: &StoredDelivery, hops: &mut Vec<GatewayHop>) -> Leg {
        let mut leg = Leg {
            delivery: *delivery,
            up_client: ABSENT,
            topic: ABSENT,
            relayed: None,
            before: None,
            before_received: PackedInstant::default(),
            begins: PackedInstant::default(),
            handed: PackedInstant::default(),
            ingress: PackedInstant::default(),
            up: LegSide::default(),
            down: LegSide::default(),
            hop_up: None,
            hop_down: None,
        };
        let hop = self.datagrams.down(delivery);
        leg.hop_down = hop.map(|hop| keep(hops, hop));
        let found = self.match_down(&mut leg, hop.as_ref());
        let is_clients = |number: u32| self.packet(number).is_clients;
        // What a gateway had it on nobody has seen, but the subscriber knows its topic.
        let read = hop.map(|hop| hop.packet).filter(|&packet| !found && is_clients(packet));
        leg.topic = read.map_or(leg.topic, |packet| self.packet(packet).topic());
        if found || leg.topic != ABSENT {
            self.match_up(&mut leg);
        }
        // What a gateway had passed on by then, or, where nothing is known behind gateways, had to pass on.
        let by_hop = || hop.filter(|_| !found).map(|hop| hop.tried);
        let by_reader = || leg.down.tried.get().filter(|_| leg.down.packet.is_some_and(is_clients));
        let passed_on = leg.up.tried.get().or_else(by_hop).or_else(by_reader);
        let message = (delivery.publisher, delivery.sequence);
        // Behind the broker's side, for a gateway must have had the datagram before it passed it on.
        let brought = passed_on.and_then(|by| self.datagrams.up(message, leg.up_client, by));
        if let Some(hop) = brought {
            leg.hop_up = Some(keep(hops, hop));
            leg.up_client = self.packet(hop.packet).client();
        }
        let is_known = leg.up_client != ABSENT;
        leg.relayed = is_known.then_some(leg.up_client != delivery.publisher);
        leg
    }

    /// Finds the broker's PUBLISH to the subscriber, or to the gateway from which that has it.
    fn match_down(&self, leg: &mut Leg, hop: Option<&GatewayHop>) -> bool {
        let StoredDelivery { publisher, sequence, subscriber, received_ns, .. } = leg.delivery;
        let until = hop.map_or(received_ns, |hop| hop.tried) + SLACK_NS;
        // An aggregating gateway's connection is nobody's.
        let owners = if hop.is_some() { &[subscriber, ABSENT][..] } else { &[subscriber] };
        for &owner in owners {
            let copies = self.downwards.with(key((publisher, sequence), owner));
            // The last that was there in time: an earlier one was lost with its connection, or refused.
            let last = copies.iter().rev().find(|copy| {
                let at = self.packet(copy.place).complete_ns;
                at != ABSENT && at <= until
            });
            let Some(&Copied { place: down, .. }) = last else { continue };
            leg.topic = self.packet(down).topic();
            leg.down.packet = Some(down);
            leg.down.tried = self.tried(copies, |packet| packet.topic() == leg.topic).into();
            return true;
        }
        false
    }

    /// Finds the PUBLISH to the broker.
    fn match_up(&self, leg: &mut Leg) {
        let key = key((leg.delivery.publisher, leg.delivery.sequence), leg.topic);
        let copies = self.upwards.with(key);
        // The first that was complete: from then on the broker had the message, and a repetition gives it nothing.
        let first = copies.first().filter(|copy| self.packet(copy.place).complete_ns != ABSENT);
        if let Some(&Copied { place: up, .. }) = first {
            leg.up_client = self.packet(up).client();
            leg.up.packet = Some(up);
            leg.up.tried = self.tried(copies, |packet| packet.client() == leg.up_client).into();
        }
    }

    /// When the first byte of the first of the copies was sent.
    fn tried(&self, copies: &[Copied], is_one: impl Fn(&NamedPacket) -> bool) -> MaybeInstant {
        let packets = copies.iter().map(|copy| self.packet(copy.place)).filter(|packet| is_one(packet));
        packets.filter_map(|packet| known(packet.first_sent_ns)).min()
    }

    /// What depends on the legs before, and on windows: when each side could send.
    fn fill(&self, leg: &mut Leg, hops: &mut [GatewayHop], settings: &RunSettings) {
        let relayed = leg.relayed == Some(true);
        let delivery = leg.delivery;
        let of = |client: i64| usize::try_from(client).ok().and_then(|client| settings.clients.get(client));
        let (sender, receiver) = (of(leg.up_client), of(delivery.subscriber));
        self.released(&mut leg.up);
        self.released(&mut leg.down);
        self.through(&mut leg.up, sender.map(|sender| sender.window));
        // Of a relay nothing but its packets is known: it could send when it had received, and its window had room.
        let is_clients = |side: &LegSide| side.packet.is_some_and(|number| self.packet(number).is_clients);
        let (up_is_clients, down_is_clients) = (is_clients(&leg.up), is_clients(&leg.down));
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
        // What a client says itself is when its socket had taken it; behind that nothing is known of its stack.
        let ready = if up_is_clients { leg.up.tried.get() } else { ready };
        (leg.begins, leg.handed, leg.up.ready) = (begins.into(), handed.into(), ready.into());
        if let Some(hop) = leg.hop_up.map(|place| &mut hops[place as usize]) {
            let packet = self.packet(hop.packet);
            self.datagrams.fill(hop, handed);
            hop.ready = if packet.is_clients { Some(hop.tried) } else { ready }.into();
            // The gateway can send when the datagram has come, which nobody knows of one that only its sender has seen.
            leg.up.ready = known(packet.complete_ns).filter(|_| !packet.is_clients).into();
        }
        if let Some(hop) = leg.hop_down.map(|place| &mut hops[place as usize]) {
            let packet = self.packet(hop.packet);
            // What its gateway waited for lies in what nobody has seen.
            if !packet.is_clients {
                let came = leg.down.packet.and_then(|number| known(self.packet(number).complete_ns));
                self.datagrams.fill(hop, came.or(begins));
            }
            (hop.release_packet, hop.release) = self.release(hop.packet);
        }
        // Either time is allowed (MQTT 5 §4.3.3): a broker that had sent before the PUBREL came did not wait for it.
        let (release, tried) = (leg.up.release.get(), leg.down.tried.get());
        // When it sent is not known where only the subscriber has seen it.
        let waited = !down_is_clients && release.zip(tried).is_some_and(|(at, tried)| at <= tried + SLACK_NS);
        let complete = leg.up.packet.and_then(|up| known(self.packet(up).complete_ns));
        let ingress = if waited { release } else { complete }.filter(|_| !up_is_clients);
        if !down_is_clients {
            self.through(&mut leg.down, receiver.map(|receiver| receiver.window_to_it));
        }
        // A window that opened before the broker had the message held nothing up.
        let window = leg.down.window.get().filter(|&at| ingress.is_some_and(|ingress| at > ingress));
        leg.down.ready = most([ingress, window]).into();
        (leg.ingress, leg.down.window) = (ingress.into(), window.into());
    }

    fn released(&self, side: &mut LegSide) {
        if let Some(number) = side.packet {
            (side.release_packet, side.release) = self.release(number);
        }
    }

    /// The PUBREL that lets the receiver of a QoS 2 PUBLISH hand it on, and when that had come.
    fn release(&self, place: u32) -> (Option<u32>, PackedInstant) {
        let permits = self.range.permits(place);
        (permits.release_packet, permits.release)
    }

    /// When the in-flight window of the packet's sender let it through; `window`: how many it lets through, where that is known.
    /// A packet that was sent earlier was held by no window.
    fn through(&self, side: &mut LegSide, window: Option<i64>) {
        let (Some(place), Some(window)) = (side.packet, window) else { return };
        let publish = self.packet(place);
        let permits = self.range.permits(place);
        if let Some(at) = permits.window.get() {
            (side.window, side.window_packet) = (Some(at).into(), permits.window_packet);
        }
        // A gateway's connection is nobody's: only its client at the other side tells which window it is.
        let Some(before) = permits.before.filter(|_| known(publish.first_sent_ns).is_some()) else { return };
        if let Some((by, at)) = self.gateways.let_go(publish, before, window) {
            (side.window, side.window_packet) = (Some(at).into(), Some(by));
        }
    }
}
