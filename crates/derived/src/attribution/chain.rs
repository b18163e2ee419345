//! A leg as a chain of instants, and the parts between them.
//!
//! A leg's instants, from the intended time to the reception, come from different tables and from both ends of links. They
//! are put in order by moving each to the one before it where it would lie earlier, so that no part is negative and the
//! parts add up to the latency whatever the tables say. What is *adjusted* is the sum of what would have been negative: how
//! far the tables disagree, and no part is wrong by more.
//!
//! What TCP's bytes waited for (Nagle's algorithm, windows) is worked out in `connections/streams.rs`. Words for the parts
//! are in Python: `metrics/attribution`, `report/headline.py`.

use mqttlab_recording::reading::{ABSENT, Vocabulary};
use mqttlab_recording::{AttributionRow, LegRow};

use crate::attribution::flights::PacketFlight;
use crate::attribution::gateway_hops::{GatewayHop, Wait};
use crate::attribution::holds::Holds;
use crate::attribution::latency_parts::{LatencyPart, LatencyParts};
use crate::attribution::legs::{FollowedLegs, Leg, LegSide};
use crate::attribution::part_steps::{HeldSpan, PartSteps};
use crate::connections::segment_flight::{SegmentFlight, WaitEnd};
use crate::control_packets::NamedPacket;
use crate::instants::{MaybeInstant, PackedInstant, SLACK_NS, known};
use crate::settings::RunSettings;

/// Of a packet that no frame shows.
const NO_FLIGHT: SegmentFlight = SegmentFlight::NONE;
const NO_WAIT: WaitEnd = WaitEnd::NONE;
const EARLIER_LEG: &str = "a part of their way to the relay was not recorded";
/// Relays behind one another, at most: where tables contradict each other, a leg may come before itself.
const LEGS_MAX: u32 = 1000;

/// Where the time of a delivery went, all legs together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Attribution {
    parts: Option<LatencyParts>,
    adjusted: Option<i64>,
    legs: u32,
    /// Whether frames tell of it, and whether clients alone do of some of it.
    evidence: [bool; 2],
    unattributed: Option<&'static str>,
}

/// What the legs of a range of messages are read from.
pub(crate) struct Chains<'a> {
    pub(crate) followed: &'a FollowedLegs,
    pub(crate) packets: &'a [NamedPacket],
    pub(crate) flights: PublishFlights,
    pub(crate) settings: &'a RunSettings,
    pub(crate) holds: &'a Holds,
    /// How many legs were before.
    pub(crate) before: u64,
}

/// The ways of PUBLISH packets.
#[derive(Default)]
pub(crate) struct PublishFlights {
    pub(crate) flights: Vec<PacketFlight>,
    /// Of each packet the place of its flight, counted from 1; 0 for none.
    pub(crate) places: Vec<u32>,
}

/// The instants of a leg's sides, to the broker and from it.
pub(crate) type SideInstants<'a> = [Instants<'a>; 2];

/// A side's instants.
pub(crate) struct Instants<'a> {
    flight: &'a SegmentFlight,
    first_sent: MaybeInstant,
    complete: MaybeInstant,
    started: MaybeInstant,
    /// What is known of waits is of the copy that came through; an earlier copy had been sent before.
    nagle_until: MaybeInstant,
    socket_until: MaybeInstant,
    held_until: MaybeInstant,
    window: MaybeInstant,
    /// The frame that ended the wait of the first segment, and what later ones waited for.
    release: MaybeInstant,
    tail: &'a WaitEnd,
}

impl<'a> Instants<'a> {
    fn without_waits(self) -> Instants<'a> {
        Instants { nagle_until: None, socket_until: None, held_until: None, window: None, ..self }
    }

    /// Of frames that were captured away from their sender: what they waited for there is not told from the way.
    fn away_if(self, is_away: bool) -> Instants<'a> {
        if !is_away {
            return self;
        }
        Instants { release: None, tail: &NO_WAIT, ..self.without_waits() }
    }
}

/// A hop's instants.
#[derive(Default)]
struct HopInstants {
    tried: MaybeInstant,
    went: MaybeInstant,
    started: MaybeInstant,
    complete: MaybeInstant,
    frame: MaybeInstant,
    first_sent: MaybeInstant,
}

/// From when until when a topic was registered, before the first copy of its PUBLISH was sent; and the same where that was
/// done anew, between the first copy and the one that came through.
fn registration(register: Wait, tried: MaybeInstant) -> [[MaybeInstant; 2]; 2] {
    let is_anew = register.from.get().zip(tried).is_some_and(|(from, tried)| from > tried);
    [!is_anew, is_anew]
        .map(|is_there| [register.from, register.until].map(|instant| instant.get().filter(|_| is_there)))
}

impl Chains<'_> {
    fn packet(&self, side: &LegSide) -> Option<&NamedPacket> {
        side.packet.map(|number| &self.packets[number as usize])
    }

    /// The packet of a side that only the client at its end has seen.
    fn clients_own(&self, side: &LegSide) -> Option<&NamedPacket> {
        self.packet(side).filter(|packet| packet.is_clients)
    }

    fn flight(&self, packet: Option<u32>) -> &SegmentFlight {
        let place = packet.map_or(0, |packet| self.flights.places[packet as usize]) as usize;
        place.checked_sub(1).map_or(&NO_FLIGHT, |place| &self.flights.flights[place].flight)
    }

    /// Whether only the client at the end of a hop has seen what crossed it.
    fn is_clients(&self, hop: Option<&GatewayHop>) -> bool {
        hop.is_some_and(|hop| self.packets[hop.packet as usize].is_clients)
    }

    /// What frames tell of a hop. Its own client knows when it sent, or had read.
    fn hop_instants(&self, hop: Option<&GatewayHop>) -> HopInstants {
        let Some(hop) = hop else { return HopInstants::default() };
        let packet = &self.packets[hop.packet as usize];
        if packet.is_clients {
            let sent = Some(hop.tried).filter(|_| packet.to_broker);
            let read = known(packet.complete_ns).filter(|_| !packet.to_broker);
            return HopInstants { tried: sent, complete: read, ..HopInstants::default() };
        }
        let flight = self.flight(Some(hop.packet));
        HopInstants {
            tried: Some(hop.tried),
            went: flight.went.get(),
            started: flight.started(),
            complete: known(packet.complete_ns),
            frame: flight.frame.get(),
            first_sent: known(packet.first_sent_ns),
        }
    }

    /// Whether the message's way to the broker, or a part of it at its end, has been seen by nobody.
    fn is_unseen_up(&self, leg: &Leg) -> bool {
        let of_hop = || leg.up.packet.is_none() && self.is_clients(self.followed.hop(leg.hop_up));
        self.clients_own(&leg.up).is_some() || of_hop()
    }

    /// The same of the side towards the broker. What its first segment waited for is not known where nobody knows when a
    /// gateway had the message.
    fn instants_up(&self, leg: &Leg) -> Instants<'_> {
        let up = self.instants(&leg.up);
        let up = if self.is_clients(self.followed.hop(leg.hop_up)) { up.without_waits() } else { up };
        up.away_if(self.settings.away_from_senders)
    }

    /// What frames tell of a side.
    fn instants(&self, side: &LegSide) -> Instants<'_> {
        let packet = self.packet(side).filter(|packet| !packet.is_clients);
        let flight = self.flight(side.packet);
        let first_sent = packet.and_then(|packet| known(packet.first_sent_ns));
        // Waits are known of one copy only: of another they would be counted twice, with the time of its loss.
        let came_through = first_sent.is_some() && side.tried.get() == first_sent;
        let of_copy = |at: PackedInstant| at.get().filter(|_| came_through);
        Instants {
            first_sent,
            complete: packet.and_then(|packet| known(packet.complete_ns)),
            started: flight.started(),
            nagle_until: of_copy(flight.first.nagle_until),
            socket_until: of_copy(flight.first.socket_until),
            held_until: of_copy(flight.first.held_until),
            window: of_copy(side.window),
            release: flight.first.frame.get(),
            tail: &flight.tail,
            flight,
        }
    }

    /// The same of the side towards the subscriber. What its first segment waited for is not known where nobody knows when
    /// the broker had the message.
    fn instants_down(&self, leg: &Leg) -> Instants<'_> {
        let down = self.instants(&leg.down);
        let down = if self.is_unseen_up(leg) { down.without_waits() } else { down };
        down.away_if(self.settings.away_from_broker)
    }

    /// What frames tell of a leg.
    pub(crate) fn instants_of(&self, leg: &Leg) -> SideInstants<'_> {
        [self.instants_up(leg), self.instants_down(leg)]
    }

    /// When the subscriber could hand the message on, where it waits for the PUBREL.
    fn handed_on(&self, leg: &Leg) -> MaybeInstant {
        let receiver = usize::try_from(leg.delivery.subscriber).ok();
        let receiver = receiver.and_then(|client| self.settings.clients.get(client));
        let on_release =
            receiver.is_some_and(|receiver| receiver.on_release) && leg.delivery.qos_delivered == 2;
        let hop = self.followed.hop(leg.hop_down);
        let release = hop.map_or(leg.down.release, |hop| hop.release);
        // A PUBREL behind the delivery is of a client that delivers at the PUBLISH (method B of §4.3.3).
        release.get().filter(|&at| on_release && at <= leg.delivery.received_ns + SLACK_NS)
    }

    /// The steps to a publisher's gateway: the instant, and the part that ends there. A part may end at several steps.
    fn steps_to_gateway(&self, leg: &Leg, steps: &mut PartSteps<'_>) {
        let hop = self.followed.hop(leg.hop_up);
        let at = self.hop_instants(hop);
        let [sleep, register] = hop.map(|hop| [hop.sleep, hop.register]).unwrap_or_default();
        let [before, anew] = registration(register, at.tried);
        // What a relay does before it sends is its session's; of others it is the socket that is left.
        let rest = if leg.relayed == Some(true) { LatencyPart::Session } else { LatencyPart::SenderSocket };
        steps.step(leg.handed.get().filter(|_| hop.is_some()), LatencyPart::Schedule);
        steps.step(sleep.from.get(), LatencyPart::Session);
        steps.step(sleep.until.get(), LatencyPart::Sleep);
        steps.step(before[0], LatencyPart::Session);
        steps.step(before[1], LatencyPart::Register);
        steps.step(hop.and_then(|hop| hop.ready.get()), LatencyPart::Session);
        steps.step(at.tried, rest);
        steps.step(anew[0], LatencyPart::Retry);
        steps.step(anew[1], LatencyPart::Register);
        steps.step(at.went, LatencyPart::Retry);
        steps.step(at.started, LatencyPart::QueueToBroker);
        steps.step(at.complete, LatencyPart::WireToBroker);
    }

    /// The steps from a subscriber's gateway to it.
    fn steps_from_gateway(&self, leg: &Leg, steps: &mut PartSteps<'_>) {
        let hop = self.followed.hop(leg.hop_down);
        let at = self.hop_instants(hop);
        let [sleep, register] = hop.map(|hop| [hop.sleep, hop.register]).unwrap_or_default();
        let [before, anew] = registration(register, at.tried);
        // Where nothing between both ends was seen, the way to the gateway is a part of it.
        let is_all_unseen = leg.down.packet.is_none() && self.is_unseen_up(leg);
        // A gateway is the broker's client: away from it, it is not told from the ways there and on.
        let is_undivided = is_all_unseen || self.settings.away_from_senders;
        let gateway = if is_undivided { LatencyPart::Undivided } else { LatencyPart::Gateway };
        let last = if self.is_clients(hop) { LatencyPart::Undivided } else { LatencyPart::WireToSubscriber };
        steps.step(sleep.from.get(), gateway);
        steps.step(sleep.until.get(), LatencyPart::Sleep);
        steps.step(before[0], gateway);
        steps.step(before[1], LatencyPart::Register);
        steps.step(at.tried, gateway);
        steps.step(anew[0], LatencyPart::Retry);
        steps.step(anew[1], LatencyPart::Register);
        steps.step(at.went, LatencyPart::Retry);
        steps.step(at.started, LatencyPart::QueueToSubscriber);
        steps.step(at.complete, last);
    }

    /// The steps from its sender, or its gateway, to the broker.
    fn steps_up(&self, leg: &Leg, up: &Instants<'_>, steps: &mut PartSteps<'_>) {
        let is_passed_on = leg.hop_up.is_some();
        let is_away = self.settings.away_from_senders;
        let is_clients = self.is_clients(self.followed.hop(leg.hop_up));
        // A relay's own time is its session's, a gateway's its own, a stack's is its socket's. Away from them all that was
        // before the capture is one.
        let (before, rest) = match (is_passed_on, leg.relayed) {
            (true, _) if is_clients || is_away => (LatencyPart::Undivided, LatencyPart::Undivided),
            (true, _) => (LatencyPart::Gateway, LatencyPart::Gateway),
            (false, _) if is_away => (LatencyPart::Schedule, LatencyPart::Schedule),
            (false, Some(true)) => (LatencyPart::Session, LatencyPart::Session),
            (false, _) => (LatencyPart::Session, LatencyPart::SenderSocket),
        };
        let later = if is_away { rest } else { LatencyPart::SenderSocket };
        steps.step(leg.handed.get().filter(|_| !is_passed_on), LatencyPart::Schedule);
        steps.step(leg.up.ready.get(), before);
        steps.step(up.nagle_until, LatencyPart::SenderNagle);
        steps.step(up.socket_until, LatencyPart::SenderSocket);
        steps.step(up.held_until, LatencyPart::SenderNagle);
        steps.step(leg.up.tried.get(), rest);
        steps.step(up.flight.resumed.get(), LatencyPart::RetransmissionToBroker);
        steps.step(up.tail.nagle_until.get(), LatencyPart::SenderNagle);
        steps.step(up.tail.socket_until.get(), LatencyPart::SenderSocket);
        steps.step(up.tail.held_until.get(), LatencyPart::SenderNagle);
        steps.step(up.flight.went.get(), later);
        steps.step(up.started, LatencyPart::QueueToBroker);
        steps.step(up.flight.arrived.get(), LatencyPart::WireToBroker);
        steps.step(up.complete, LatencyPart::RetransmissionToBroker);
        steps.step(leg.ingress.get(), LatencyPart::Handshake);
    }

    /// The steps from the broker to the subscriber, or its gateway.
    fn steps_down(&self, leg: &Leg, down: &Instants<'_>, steps: &mut PartSteps<'_>) {
        // Where one of both sides has no frames, the broker's time cannot be told from the way there or from there.
        let read = self.clients_own(&leg.down).map(|packet| known(packet.complete_ns));
        let is_away = self.settings.away_from_broker;
        let is_undivided = read.is_some() || self.is_unseen_up(leg) || is_away;
        let broker = if is_undivided { LatencyPart::Undivided } else { LatencyPart::Broker };
        let later = if is_away { LatencyPart::Undivided } else { LatencyPart::BrokerSocket };
        steps.step(down.window, LatencyPart::BrokerWindow);
        steps.step(down.nagle_until, LatencyPart::BrokerNagle);
        steps.step(down.socket_until, LatencyPart::BrokerSocket);
        steps.step(down.held_until, LatencyPart::BrokerNagle);
        steps.step(read.unwrap_or(leg.down.tried.get()), broker);
        steps.step(down.flight.resumed.get(), LatencyPart::RetransmissionToSubscriber);
        steps.step(down.tail.nagle_until.get(), LatencyPart::BrokerNagle);
        steps.step(down.tail.socket_until.get(), LatencyPart::BrokerSocket);
        steps.step(down.tail.held_until.get(), LatencyPart::BrokerNagle);
        steps.step(down.flight.went.get(), later);
        steps.step(down.started, LatencyPart::QueueToSubscriber);
        steps.step(down.flight.arrived.get(), LatencyPart::WireToSubscriber);
        steps.step(down.complete, LatencyPart::RetransmissionToSubscriber);
    }

    /// What a leg lacks of the packets and frames that carried it: the first thing, looked at from the receiver.
    fn missing(&self, leg: &Leg, up: &Instants<'_>, down: &Instants<'_>) -> Option<&'static str> {
        let hops = [leg.hop_up, leg.hop_down].map(|place| self.followed.hop(place));
        // Where both ends are hops and nothing behind the gateway was recorded, all of that counts as the gateway's.
        let is_all_behind = leg.down.packet.is_none() && hops[1].is_some();
        if leg.down.packet.is_none() && !is_all_behind {
            return Some("their PUBLISH to the subscriber was not recorded");
        }
        // Or where the one end is a hop and the other is told by its client alone.
        let is_all_before = self.clients_own(&leg.down).is_some();
        if leg.up.packet.is_none() && !((is_all_behind || is_all_before) && hops[0].is_some()) {
            return Some("their PUBLISH to the broker was not recorded");
        }
        let frames = [(down, &leg.down), (up, &leg.up)];
        let is_seen = frames.iter().all(|(instants, side)| {
            let needs_none = side.packet.is_none() || self.clients_own(side).is_some();
            needs_none || instants.flight.frame.get().is_some()
        });
        let hops_seen = hops
            .into_iter()
            .flatten()
            .all(|hop| self.is_clients(Some(hop)) || self.flight(Some(hop.packet)).frame.get().is_some());
        (!is_seen || !hops_seen).then_some("the frame that completed their PUBLISH was not recorded")
    }

    /// The parts of one leg, and what was adjusted; else what it lacks. What held it is put into `held`.
    fn parts(
        &self,
        leg: &Leg,
        [up, down]: &SideInstants<'_>,
        held: &mut Vec<HeldSpan>,
    ) -> Result<(LatencyParts, i64), &'static str> {
        if let Some(missing) = self.missing(leg, up, down) {
            return Err(missing);
        }
        let Some(begins) = leg.begins.get() else {
            return Err("the time at which their relay received them is not known");
        };
        let holds = self.holds.of(leg, self.settings);
        let mut steps = PartSteps::from(begins, leg.delivery.received_ns, &holds, held);
        // Plain MQTT has no steps at gateways.
        if leg.hop_up.is_some() {
            self.steps_to_gateway(leg, &mut steps);
        }
        self.steps_up(leg, up, &mut steps);
        self.steps_down(leg, down, &mut steps);
        if leg.hop_down.is_some() {
            self.steps_from_gateway(leg, &mut steps);
        }
        steps.step(self.handed_on(leg), LatencyPart::Release);
        steps.step(Some(leg.delivery.received_ns), LatencyPart::Delivery);
        Ok((steps.parts, steps.adjusted))
    }

    /// The parts of a delivery: those of its last leg, and of the legs before. What held its last leg is put into `held`.
    pub(crate) fn attribution<'a>(
        &'a self,
        mut leg: &'a Leg,
        instants: &SideInstants<'_>,
        held: &mut Vec<HeldSpan>,
    ) -> Attribution {
        let mut whole = Attribution {
            parts: None,
            adjusted: None,
            legs: 1,
            evidence: self.evidence(leg),
            unattributed: None,
        };
        match self.parts(leg, instants, held) {
            Ok((parts, adjusted)) => (whole.parts, whole.adjusted) = (Some(parts), Some(adjusted)),
            Err(reason) => whole.unattributed = Some(reason),
        }
        // From the last leg back: what a relay had waited for belongs to the delivery that it caused.
        while let Some(before) = leg.before.filter(|_| whole.legs < LEGS_MAX) {
            leg = &self.followed.legs[before as usize];
            whole.legs += 1;
            let [frames, clients] = self.evidence(leg);
            whole.evidence = [whole.evidence[0] | frames, whole.evidence[1] | clients];
            // The spans of that leg stand with its own row.
            let earlier = self.parts(leg, &self.instants_of(leg), &mut Vec::new()).ok();
            if earlier.is_none() && whole.unattributed.is_none() {
                whole.unattributed = Some(EARLIER_LEG);
            }
            // One leg without parts leaves the delivery without: a sum of some would look like the whole.
            whole.parts = whole.parts.zip(earlier).map(|(mut parts, (earlier, _))| {
                parts += earlier;
                parts
            });
            whole.adjusted = whole.adjusted.zip(earlier).map(|(adjusted, (_, more))| adjusted + more);
        }
        whole
    }

    /// Whether frames tell of a leg, and whether clients alone do of some of it.
    fn evidence(&self, leg: &Leg) -> [bool; 2] {
        let hops = [leg.hop_up, leg.hop_down].map(|place| self.followed.hop(place).map(|hop| hop.packet));
        let packets = [leg.up.packet, leg.down.packet].into_iter().chain(hops).flatten();
        packets.fold([false; 2], |[frames, clients], number| {
            let is_clients = self.packets[number as usize].is_clients;
            [frames | !is_clients, clients | is_clients]
        })
    }

    /// The row in `control_packets` of a packet that is known by its place.
    fn number_of(&self, place: Option<u32>) -> Option<u64> {
        place.map(|place| self.packets[place as usize].number.into())
    }

    /// The row of a delivery in `legs`.
    pub(crate) fn row<'a>(
        &self,
        leg: &Leg,
        [up, down]: &SideInstants<'_>,
        words: &'a Vocabulary,
        topic: &'a mut String,
    ) -> LegRow<'a> {
        topic.clear();
        if leg.topic != ABSENT {
            topic.push_str(&words.word(leg.topic as u32));
        }
        let mut row = LegRow {
            before: leg.before.map(|leg| self.before + u64::from(leg)),
            relayed: leg.relayed,
            up_client: u32::try_from(leg.up_client).ok(),
            topic: (leg.topic != ABSENT).then_some(topic.as_str()),
            begins_ns: ns(leg.begins.get()),
            handed_ns: ns(leg.handed.get()),
            ingress_ns: ns(leg.ingress.get()),
            handed_on_ns: ns(self.handed_on(leg)),
            qos: u8::try_from(leg.delivery.qos).ok(),
            at_sender: !self.settings.away_from_senders,
            at_broker: !self.settings.away_from_broker,
            ..LegRow::default()
        };
        self.put_up(leg, up, &mut row);
        self.put_down(leg, down, &mut row);
        self.put_hops(leg, &mut row);
        row
    }

    /// Puts in what is known of the ways between clients of MQTT-SN and gateways.
    fn put_hops(&self, leg: &Leg, row: &mut LegRow<'_>) {
        let [up, down] = [leg.hop_up, leg.hop_down].map(|place| self.followed.hop(place));
        if up.is_none() && down.is_none() {
            return;
        }
        let [up_at, down_at] = [up, down].map(|hop| self.hop_instants(hop));
        row.sn_up_packet = self.number_of(up.map(|hop| hop.packet));
        row.sn_up_ready_ns = up.and_then(|hop| ns(hop.ready.get()));
        row.sn_up_sleep_from_ns = up.and_then(|hop| ns(hop.sleep.from.get()));
        row.sn_up_sleep_until_ns = up.and_then(|hop| ns(hop.sleep.until.get()));
        row.sn_up_register_from_ns = up.and_then(|hop| ns(hop.register.from.get()));
        row.sn_up_register_until_ns = up.and_then(|hop| ns(hop.register.until.get()));
        row.sn_up_tried_ns = ns(up_at.tried);
        row.sn_up_first_sent_ns = ns(up_at.first_sent);
        row.sn_up_frame = ns(up_at.frame);
        row.sn_up_went_ns = ns(up_at.went);
        row.sn_up_started_ns = ns(up_at.started);
        row.sn_up_complete_ns = ns(up_at.complete);
        row.sn_down_packet = self.number_of(down.map(|hop| hop.packet));
        row.sn_down_sleep_from_ns = down.and_then(|hop| ns(hop.sleep.from.get()));
        row.sn_down_sleep_until_ns = down.and_then(|hop| ns(hop.sleep.until.get()));
        row.sn_down_register_from_ns = down.and_then(|hop| ns(hop.register.from.get()));
        row.sn_down_register_until_ns = down.and_then(|hop| ns(hop.register.until.get()));
        row.sn_down_tried_ns = ns(down_at.tried);
        row.sn_down_first_sent_ns = ns(down_at.first_sent);
        row.sn_down_frame = ns(down_at.frame);
        row.sn_down_went_ns = ns(down_at.went);
        row.sn_down_started_ns = ns(down_at.started);
        row.sn_down_complete_ns = ns(down_at.complete);
        row.sn_down_release_packet = down.and_then(|hop| row_of(hop.release_packet));
        row.sn_down_release_ns = down.and_then(|hop| ns(hop.release.get()));
    }

    /// Puts in what is known of the way to the broker.
    fn put_up(&self, leg: &Leg, up: &Instants<'_>, row: &mut LegRow<'_>) {
        let up_packet = self.packet(&leg.up);
        let is_clients = self.clients_own(&leg.up).is_some();
        row.up_packet = self.number_of(leg.up.packet);
        row.up_connection = connection(up_packet);
        row.up_packet_id = identifier(up_packet);
        row.up_first_sent_ns = ns(up.first_sent);
        row.up_ready_ns = ns(leg.up.ready.get());
        row.up_written_ns = ns(leg.up.tried.get()).filter(|_| is_clients);
        row.up_window_ns = ns(up.window);
        row.up_window_packet = row_of(leg.up.window_packet);
        row.up_nagle_until_ns = ns(up.nagle_until);
        row.up_socket_until_ns = ns(up.socket_until);
        row.up_held_until_ns = ns(up.held_until);
        row.up_release_frame = ns(up.release);
        row.up_tried_ns = ns(leg.up.tried.get()).filter(|_| !is_clients);
        row.up_resumed_ns = ns(up.flight.resumed.get());
        row.up_tail_nagle_until_ns = ns(up.tail.nagle_until.get());
        row.up_tail_socket_until_ns = ns(up.tail.socket_until.get());
        row.up_tail_held_until_ns = ns(up.tail.held_until.get());
        row.up_tail_release_frame = ns(up.tail.frame.get());
        row.up_frame = ns(up.flight.frame.get());
        row.up_went_ns = ns(up.flight.went.get());
        row.up_started_ns = ns(up.started);
        row.up_arrived_ns = ns(up.flight.arrived.get());
        row.up_complete_ns = ns(up.complete);
        row.up_release_packet = row_of(leg.up.release_packet);
        row.up_release_ns = ns(leg.up.release.get());
    }

    /// Puts in what is known of the way from the broker.
    fn put_down(&self, leg: &Leg, down: &Instants<'_>, row: &mut LegRow<'_>) {
        let down_packet = self.packet(&leg.down);
        let own = self.clients_own(&leg.down);
        row.down_packet = self.number_of(leg.down.packet);
        row.down_connection = connection(down_packet);
        row.down_packet_id = identifier(down_packet);
        row.down_first_sent_ns = ns(down.first_sent);
        row.down_ready_ns = ns(leg.down.ready.get());
        row.down_window_ns = ns(down.window);
        row.down_window_packet = row_of(leg.down.window_packet);
        row.down_nagle_until_ns = ns(down.nagle_until);
        row.down_socket_until_ns = ns(down.socket_until);
        row.down_held_until_ns = ns(down.held_until);
        row.down_release_frame = ns(down.release);
        row.down_tried_ns = ns(leg.down.tried.get()).filter(|_| own.is_none());
        row.down_resumed_ns = ns(down.flight.resumed.get());
        row.down_tail_nagle_until_ns = ns(down.tail.nagle_until.get());
        row.down_tail_socket_until_ns = ns(down.tail.socket_until.get());
        row.down_tail_held_until_ns = ns(down.tail.held_until.get());
        row.down_tail_release_frame = ns(down.tail.frame.get());
        row.down_frame = ns(down.flight.frame.get());
        row.down_went_ns = ns(down.flight.went.get());
        row.down_started_ns = ns(down.started);
        row.down_arrived_ns = ns(down.flight.arrived.get());
        row.down_complete_ns = ns(down.complete);
        row.down_read_ns = own.and_then(|packet| ns(known(packet.complete_ns)));
        row.down_release_packet = row_of(leg.down.release_packet);
        row.down_release_ns = ns(leg.down.release.get());
    }
}

fn ns(at: MaybeInstant) -> Option<u64> {
    at.map(|at| at as u64)
}

fn row_of(packet: Option<u32>) -> Option<u64> {
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
        let part = |part: LatencyPart| self.parts.map(|parts| parts[part] as u64);
        AttributionRow {
            row,
            schedule_ns: part(LatencyPart::Schedule),
            session_ns: part(LatencyPart::Session),
            sleep_ns: part(LatencyPart::Sleep),
            register_ns: part(LatencyPart::Register),
            sender_nagle_ns: part(LatencyPart::SenderNagle),
            sender_socket_ns: part(LatencyPart::SenderSocket),
            retry_ns: part(LatencyPart::Retry),
            queue_to_broker_ns: part(LatencyPart::QueueToBroker),
            wire_to_broker_ns: part(LatencyPart::WireToBroker),
            retransmission_to_broker_ns: part(LatencyPart::RetransmissionToBroker),
            gateway_ns: part(LatencyPart::Gateway),
            handshake_ns: part(LatencyPart::Handshake),
            undivided_ns: part(LatencyPart::Undivided),
            broker_ns: part(LatencyPart::Broker),
            broker_window_ns: part(LatencyPart::BrokerWindow),
            broker_nagle_ns: part(LatencyPart::BrokerNagle),
            broker_socket_ns: part(LatencyPart::BrokerSocket),
            queue_to_subscriber_ns: part(LatencyPart::QueueToSubscriber),
            wire_to_subscriber_ns: part(LatencyPart::WireToSubscriber),
            retransmission_to_subscriber_ns: part(LatencyPart::RetransmissionToSubscriber),
            release_ns: part(LatencyPart::Release),
            delivery_ns: part(LatencyPart::Delivery),
            sender_unconnected_ns: part(LatencyPart::SenderUnconnected),
            link_down_ns: part(LatencyPart::LinkDown),
            nat_forgot_ns: part(LatencyPart::NatForgot),
            broker_paused_ns: part(LatencyPart::BrokerPaused),
            subscriber_unconnected_ns: part(LatencyPart::SubscriberUnconnected),
            reader_stopped_ns: part(LatencyPart::ReaderStopped),
            adjusted_ns: self.adjusted.map(|adjusted| adjusted as u64),
            legs: self.legs,
            seen_by: self.parts.map(|_| match self.evidence {
                [true, true] => "both",
                [true, false] => "capture",
                [false, _] => "client",
            }),
            unattributed: self.unattributed,
        }
    }
}
