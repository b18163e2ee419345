//! Frames between hosts, as bytes: whose frame it is, what crosses what, and what is written down of it.
//!
//! ```text
//!   arrive(at, host, bytes) ──► net::Network ──► next_deadline() ──► poll(now) ──► the receiving host
//!                                    └────────── what became of it on each link or medium ──► rows
//! ```
//!
//! A machine without a clock. What happens to a frame is the [`Network`]'s, which the simulator drives too; this keeps the
//! frame's bytes meanwhile, and does to them what the network says: flips a bit, marks, copies, drops. A frame's time is taken
//! once, when it arrives; an emulator that is late does not stretch the emulated time. Only the last step, the delivery,
//! needs the real clock.
//!
//! What it does not model: hosts, and anything but IPv4 from one of the hosts to another.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use mqttlab_net::radio::{Medium, StationReport};
use mqttlab_net::{
    Delivery as Crossing, Fate, Link, LinkChange, LinkSpec, LinkTraffic, Nats, Network, Output, Stage,
    copy_made_at, link_traces,
};
use mqttlab_plan::PathPlan;
use mqttlab_recording::{Cause, Direction, Frame, FrameFate};
use mqttlab_units::{Bytes, Duration, Instant, Seed};

use crate::network::frame_names::{self, FrameNames};
use crate::network::ip_header::{self, destination};
use crate::network::wiring::{Change, Wiring};

/// A frame that is due at its receiver.
#[derive(Debug, PartialEq, Eq)]
pub struct FrameDelivery {
    /// The receiving host.
    pub host: usize,
    /// The path that it came by.
    pub path: usize,
    /// When it should be handed over: its arrival by the network, less the compensation.
    pub due: Instant,
    /// The IP packet.
    pub bytes: Vec<u8>,
}

/// Writes down what became of each frame on each link.
pub trait FrameRecorder {
    /// A frame has entered a link and its fate there is known; or its fate on a medium is.
    fn frame(&mut self, frame: &Frame, bytes: &[u8]);
}

/// The network, and the bytes of the frames on it.
pub struct EmulatedWire {
    network: Network,
    /// What the random streams of links derive from.
    seed: Seed,
    nats: Nats,
    paths: Vec<WirePath>,
    /// Path by sending host and destination address.
    routes: HashMap<(usize, u32), usize>,
    server_hosts: BTreeSet<usize>,
    stations: BTreeMap<(usize, usize), usize>,
    flights: Vec<FrameInFlight>,
    free: Vec<usize>,
    /// The memory of frames that are gone.
    spare: Vec<Vec<u8>>,
    names: FrameNames,
    numbered: u64,
    unrouted: u64,
}

#[derive(Clone, Copy, Debug)]
struct WirePath {
    from: usize,
    to: usize,
    /// Links and media on it.
    stages: u8,
}

/// A frame under way, and the copies that links have made of it. Its place is the network's token.
#[derive(Debug, Default)]
struct FrameInFlight {
    path: usize,
    repetition: Option<u32>,
    itself: FrameCopy,
    copies: Vec<FrameCopy>,
    /// How many of these are under way.
    outstanding: usize,
}

/// A frame, or a copy of one.
#[derive(Debug, Default)]
struct FrameCopy {
    /// As the network numbers a frame's copies.
    copy: u16,
    /// As the recording numbers frames.
    number: u64,
    bytes: Vec<u8>,
}

impl EmulatedWire {
    /// A network at rest. Deliveries are due `compensation` before their time, because handing a frame over takes
    /// that long.
    pub fn new(wiring: Wiring, compensation: Duration) -> EmulatedWire {
        let seed = wiring.seed.derive("network");
        let address = |path: &PathPlan| u32::from(wiring.addresses[path.to]);
        let routes = wiring.paths.iter().enumerate();
        let routes = routes.map(|(number, path)| ((path.from, address(path)), number)).collect();
        let path = |path: &PathPlan| WirePath { from: path.from, to: path.to, stages: path.hops.len() as u8 };
        let paths = wiring.paths.iter().map(path).collect();
        let stages = wiring.paths.iter().map(|path| path.hops.iter().map(|hop| (*hop).into()).collect());
        let stages: Vec<Vec<Stage>> = stages.collect();
        let nats = Nats::new(wiring.nats, &stages);
        let changing: HashSet<usize> =
            wiring.changes.iter().flat_map(|change| change.links().to_vec()).collect();
        let traces = link_traces(wiring.traces);
        let link = |(place, spec)| Link::planned(spec, seed, changing.contains(&place), &traces);
        let network = Network::with_media(
            wiring.links.into_iter().enumerate().map(link).collect(),
            wiring.media.into_iter().map(|spec| Medium::new(spec, seed)).collect(),
            stages,
        );
        EmulatedWire {
            network: network.with_handover(compensation),
            seed,
            nats,
            paths,
            routes,
            server_hosts: wiring.server_hosts,
            stations: wiring.stations,
            flights: Vec::new(),
            free: Vec::new(),
            spare: Vec::new(),
            names: FrameNames::default(),
            numbered: 0,
            unrouted: 0,
        }
    }

    /// A host has sent a frame. `at` must not lie before the `now` of an earlier call of anything; what became of it is
    /// told by [`EmulatedWire::poll`].
    pub fn arrive(&mut self, at: Instant, from: usize, bytes: &[u8]) {
        let path = destination(bytes).and_then(|address| self.routes.get(&(from, address)));
        let Some(&path) = path else {
            self.unrouted += 1;
            return;
        };
        let number = self.number();
        let named = self.names.name(from as u32, bytes, number);
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        let place = self.free.pop().unwrap_or_else(|| {
            self.flights.push(FrameInFlight::default());
            self.flights.len() - 1
        });
        let flight = &mut self.flights[place];
        (flight.path, flight.repetition, flight.outstanding) = (path, named.repetition, 1);
        flight.itself = FrameCopy { copy: 0, number, bytes: buffer };
        // Headers are read only where a translator asks for them.
        let flow = self.nats.are_crossed_by(path).then(|| frame_names::tcp_flow(bytes)).flatten();
        match flow.and_then(|(flow, begins)| self.nats.drops(at, path, flow, begins)) {
            Some(hop) => self.network.refuse(at, place as u64, path, hop),
            None => {
                let name = named.name.with_ect(ip_header::is_ect(bytes));
                self.network.handle(at, place as u64, name, path, Bytes(bytes.len() as u64));
            }
        }
    }

    /// The next frame that is due at its receiver; moves everything else that happens until `now` along. To be
    /// asked until it says `None`.
    pub fn poll(&mut self, now: Instant, recorder: &mut impl FrameRecorder) -> Option<FrameDelivery> {
        loop {
            match self.network.poll() {
                Some(Output::Crossed { frame, copy, link, hop, entered, fate }) => {
                    self.on_crossed((frame as usize, copy), (link, hop), entered, fate, recorder);
                }
                Some(Output::Arrived { frame, copy, at, .. }) => {
                    return Some(self.hand_over(frame as usize, copy, at, recorder));
                }
                None if self.next_deadline().is_some_and(|due| due <= now) => self.network.tick(now),
                None => return None,
            }
        }
    }

    /// Publishing begins at `at`: traces count from then.
    pub fn begin_traces(&mut self, at: Instant) {
        self.network.begin_traces(at);
    }

    /// Something changes, after all else that happens until then. Told later than that, it changes at once.
    pub fn change(&mut self, at: Instant, change: &Change) {
        match change {
            Change::Links { links, change } => {
                links.iter().for_each(|link| self.network.change(at, *link, change));
            }
            Change::Medium { medium, change } => self.network.change_medium(at, *medium, change),
        }
    }

    /// A link changes, which was made of this spec, whether the plan lets it change or not.
    pub fn change_by_hand(&mut self, at: Instant, (link, spec): (usize, &LinkSpec), change: &LinkChange) {
        self.network.let_change(link, spec, self.seed);
        self.network.change(at, link, change);
    }

    /// All clients on this host sleep from then on, or no longer: so does its radio, if it has one.
    pub fn set_asleep(&mut self, at: Instant, host: usize, asleep: bool) {
        self.network.rest(at, &self.stations, host, asleep);
    }

    /// When [`EmulatedWire::poll`], which has said `None`, has something to do next.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.network.next_deadline()
    }

    /// Gives the memory of a delivered frame back.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        self.spare.push(bytes);
    }

    /// Frames to an address that no path leads to.
    pub fn unrouted(&self) -> u64 {
        self.unrouted
    }

    /// What each link and then each medium has carried, and what waits there.
    pub fn traffic(&self, now: Instant) -> impl Iterator<Item = LinkTraffic> + use<'_> {
        self.network.traffic(now)
    }

    /// What each radio has done until `now`, which must not lie before that of an earlier call. Frames under way are gone.
    pub fn stations(mut self, now: Instant) -> Vec<StationReport> {
        self.network.tick(now);
        StationReport::all(self.network.media(), &self.stations)
    }

    /// A piece has met a link or a medium.
    fn on_crossed(
        &mut self,
        (place, copy): (usize, u16),
        (link, hop): (usize, u16),
        entered: Instant,
        fate: Fate,
        recorder: &mut impl FrameRecorder,
    ) {
        if let Fate::Delivered(Crossing { is_marked: true, .. }) = fate {
            ip_header::mark(&mut self.flights[place].frame_copy_mut(copy).bytes);
        }
        let flight = &self.flights[place];
        let piece = flight.frame_copy(copy);
        let size = Bytes(piece.bytes.len() as u64);
        let mut row = Frame {
            link: link as u16,
            hop: hop as u8,
            hops: self.paths[flight.path].stages,
            frame_bytes: self.network.frame_size(link, size).0 as u32,
            ..self.row(flight, piece, entered)
        };
        match fate {
            Fate::Delivered(crossing) => {
                row.start = Some(crossing.start);
                row.sent = Some(crossing.sent);
                row.delivered = Some(crossing.at);
                if crossing.corrupted_bit.is_some() {
                    (row.fate, row.cause) = (FrameFate::Corrupted, Some(Cause::BitError));
                }
                recorder.frame(&row, &piece.bytes);
                self.apply_crossing((place, copy), crossing, row, recorder);
            }
            Fate::Dropped { cause, air } => {
                (row.start, row.sent) = air.unzip();
                (row.fate, row.cause) = (FrameFate::Dropped, Some(cause));
                recorder.frame(&row, &piece.bytes);
                let bytes = self.release(place, copy);
                self.recycle(bytes);
            }
        }
    }

    /// Does to a piece what the link did: flips a bit, and makes a copy of what is left.
    fn apply_crossing(
        &mut self,
        (place, copy): (usize, u16),
        crossing: Crossing,
        row: Frame,
        recorder: &mut impl FrameRecorder,
    ) {
        let number = self.numbered;
        let flight = &mut self.flights[place];
        let piece = flight.frame_copy_mut(copy);
        if let Some(copy_at) = crossing.duplicate_at {
            let (delivered, fate, cause) = (Some(copy_at), FrameFate::Duplicated, None);
            recorder.frame(&Frame { frame: number, delivered, fate, cause, ..row }, &piece.bytes);
        }
        if let Some(bit) = crossing.corrupted_bit {
            piece.bytes[(bit / 8) as usize] ^= 0x80 >> (bit % 8);
        }
        if crossing.duplicate_at.is_some() {
            let bytes = piece.bytes.clone();
            flight.copies.push(FrameCopy { copy: copy_made_at(copy, row.hop.into()), number, bytes });
            flight.outstanding += 1;
            self.numbered += 1;
        }
    }

    /// A piece is at the end of its path.
    fn hand_over(
        &mut self,
        place: usize,
        copy: u16,
        due: Instant,
        recorder: &mut impl FrameRecorder,
    ) -> FrameDelivery {
        let flight = &self.flights[place];
        let path = flight.path;
        let WirePath { to, stages, .. } = self.paths[path];
        if stages == 0 {
            // A direction without links has one row all the same, so that a capture shows both directions.
            let (piece, at) = (flight.frame_copy(copy), Some(due));
            let row = Frame { start: at, sent: at, delivered: at, ..self.row(flight, piece, due) };
            recorder.frame(&row, &piece.bytes);
        }
        FrameDelivery { host: to, path, due, bytes: self.release(place, copy) }
    }

    /// What all rows of a piece have in common; on the link that stands for none.
    fn row(&self, flight: &FrameInFlight, piece: &FrameCopy, entered: Instant) -> Frame {
        let WirePath { from, to, .. } = self.paths[flight.path];
        // Between two servers' hosts, towards the later one.
        let up = self.server_hosts.contains(&to) && (to > from || !self.server_hosts.contains(&from));
        Frame {
            link: (self.network.links().len() + self.network.media().len()) as u16,
            direction: if up { Direction::Up } else { Direction::Down },
            hop: 0,
            hops: 1,
            frame: piece.number,
            from_host: from as u16,
            to_host: to as u16,
            frame_bytes: piece.bytes.len() as u32,
            entered,
            start: None,
            sent: None,
            delivered: None,
            fate: FrameFate::Delivered,
            cause: None,
            repetition: flight.repetition,
        }
    }

    /// The bytes of a piece that is not under way any more.
    fn release(&mut self, place: usize, copy: u16) -> Vec<u8> {
        let flight = &mut self.flights[place];
        flight.outstanding -= 1;
        let bytes = std::mem::take(&mut flight.frame_copy_mut(copy).bytes);
        if flight.outstanding == 0 {
            // The token of a frame whose copies are under way is theirs, too.
            flight.copies.clear();
            self.free.push(place);
        }
        bytes
    }

    fn number(&mut self) -> u64 {
        self.numbered += 1;
        self.numbered - 1
    }
}

impl FrameInFlight {
    fn frame_copy(&self, copy: u16) -> &FrameCopy {
        if copy == 0 {
            return &self.itself;
        }
        self.copies.iter().find(|piece| piece.copy == copy).expect("a copy is told of when it is made")
    }

    fn frame_copy_mut(&mut self, copy: u16) -> &mut FrameCopy {
        if copy == 0 {
            return &mut self.itself;
        }
        self.copies.iter_mut().find(|piece| piece.copy == copy).expect("a copy is told of when it is made")
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use mqttlab_net::radio::{
        EnergyProfile, MacSpec, MediumSpec, MobilitySpec, PhySpec, PlacementSpec, Position, RadioSpec,
    };
    use mqttlab_net::{LinkChange, LinkSpec};
    use mqttlab_plan::Hop;
    use mqttlab_units::Seed;

    use super::*;
    use crate::network::calibration::constant_delay;
    use crate::network::wiring::WiringChange;

    /// Collects the rows.
    #[derive(Default)]
    struct Rows(Vec<Frame>);

    impl FrameRecorder for Rows {
        fn frame(&mut self, frame: &Frame, _: &[u8]) {
            self.0.push(*frame);
        }
    }

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    /// 10.0.0.1 sends over two links of 5 ms to 10.0.0.2, which answers over none.
    fn wiring() -> Wiring {
        let link = |name: &str| LinkSpec { name: name.into(), ..constant_delay(Duration::from_ms(5)) };
        let paths = vec![
            PathPlan { from: 0, to: 1, hops: vec![Hop::Link(0), Hop::Link(1)] },
            PathPlan { from: 1, to: 0, hops: vec![] },
        ];
        Wiring::of_pair([A, B], vec![link("one"), link("two")], paths, Seed(1))
    }

    fn packet(to: Ipv4Addr) -> Vec<u8> {
        let mut packet = vec![0x45; 20];
        packet[16..20].copy_from_slice(&to.octets());
        packet
    }

    #[test]
    fn a_late_look_does_not_stretch_the_time_on_the_links() {
        let (mut wire, mut rows) = (EmulatedWire::new(wiring(), Duration::ZERO), Rows::default());
        wire.arrive(Instant::from_ns(1_000), 0, &packet(B));
        let late = Instant::from_ns(50_000_000);
        let delivery = wire.poll(late, &mut rows).unwrap();
        assert_eq!((delivery.host, delivery.due), (1, Instant::from_ns(10_001_000)));
        assert_eq!(wire.poll(late, &mut rows), None);
        let hops: Vec<_> =
            rows.0.iter().map(|row| (row.link, row.hop, row.hops, row.entered.as_ns())).collect();
        assert_eq!(hops, [(0, 0, 2, 1_000), (1, 1, 2, 5_001_000)]);
    }

    #[test]
    fn compensation_brings_a_delivery_forward_but_not_before_its_last_link() {
        for (compensation, due) in [(Duration::from_us(60), 9_940_000), (Duration::from_ms(7), 5_000_000)] {
            let (mut wire, mut rows) = (EmulatedWire::new(wiring(), compensation), Rows::default());
            wire.arrive(Instant::ZERO, 0, &packet(B));
            let delivery = wire.poll(Instant::from_ns(20_000_000), &mut rows).unwrap();
            assert_eq!(delivery.due, Instant::from_ns(due));
            assert_eq!(
                rows.0[1].delivered,
                Some(Instant::from_ns(10_000_000)),
                "the recording has the link's time"
            );
        }
    }

    #[test]
    fn a_direction_without_links_is_immediate_and_recorded_all_the_same() {
        let (mut wire, mut rows) = (EmulatedWire::new(wiring(), Duration::from_us(60)), Rows::default());
        wire.arrive(Instant::from_ns(5), 1, &packet(A));
        assert_eq!(wire.poll(Instant::from_ns(5), &mut rows).unwrap().host, 0);
        assert_eq!((rows.0[0].link, rows.0[0].direction), (2, Direction::Down));
    }

    #[test]
    fn a_frame_to_nobody_is_counted_and_gone() {
        let mut wire = EmulatedWire::new(wiring(), Duration::ZERO);
        wire.arrive(Instant::ZERO, 0, &packet(A));
        wire.arrive(Instant::ZERO, 0, &[0x60; 40]);
        wire.arrive(Instant::ZERO, 0, &[]);
        assert_eq!((wire.unrouted(), wire.next_deadline()), (3, None));
    }

    #[test]
    fn a_corrupted_frame_differs_in_one_bit_and_a_duplicated_one_comes_twice() {
        let mut wiring = wiring();
        wiring.paths[0].hops = vec![Hop::Link(0)];
        wiring.links[0].corruption = mqttlab_units::Ratio::ONE;
        wiring.links[0].duplication = mqttlab_units::Ratio::ONE;
        let (mut wire, mut rows) = (EmulatedWire::new(wiring, Duration::ZERO), Rows::default());
        wire.arrive(Instant::ZERO, 0, &packet(B));
        let later = Instant::from_ns(1_000_000_000);
        for _ in 0..2 {
            let delivery = wire.poll(later, &mut rows).unwrap();
            let differing = delivery.bytes.iter().zip(packet(B)).map(|(a, b)| (a ^ b).count_ones());
            assert_eq!(differing.sum::<u32>(), 1);
        }
        let fates: Vec<_> = rows.0.iter().map(|row| (row.frame, row.fate)).collect();
        assert_eq!(fates, [(0, FrameFate::Corrupted), (1, FrameFate::Duplicated)]);
    }

    #[test]
    fn copies_of_copies_have_numbers_and_bytes_of_their_own() {
        let mut wiring = wiring();
        for link in &mut wiring.links {
            link.duplication = mqttlab_units::Ratio::ONE;
            link.corruption = mqttlab_units::Ratio::ONE;
        }
        let (mut wire, mut rows) = (EmulatedWire::new(wiring, Duration::ZERO), Rows::default());
        let later = Instant::from_ns(1_000_000_000);
        for round in 0..2 {
            rows.0.clear();
            wire.arrive(Instant::from_ns(round * 100_000_000), 0, &packet(B));
            let arrived: Vec<Vec<u8>> = std::iter::from_fn(|| {
                wire.poll(Instant::from_ns(round * 100_000_000 + 50_000_000), &mut rows)
            })
            .map(|delivery| delivery.bytes)
            .collect();
            let differing =
                |bytes: &Vec<u8>| bytes.iter().zip(packet(B)).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
            // The frame and its copy by the first link, and a copy of each by the second; two flips each, which may meet.
            assert_eq!(arrived.len(), 4);
            assert!(arrived.iter().all(|bytes| [0, 2].contains(&differing(bytes))), "{arrived:?}");
            assert_ne!(arrived[0], arrived[2], "the second link flips another bit of the copy");
            let first = round * 4;
            let found: Vec<_> = rows.0.iter().map(|row| (row.hop, row.frame - first, row.fate)).collect();
            let expected = [
                (0, 0, FrameFate::Corrupted),
                (0, 1, FrameFate::Duplicated),
                (1, 0, FrameFate::Corrupted),
                (1, 2, FrameFate::Duplicated),
                (1, 1, FrameFate::Corrupted),
                (1, 3, FrameFate::Duplicated),
            ];
            assert_eq!(found, expected);
        }
        assert_eq!(
            (wire.poll(later, &mut rows), wire.flights.len()),
            (None, 1),
            "a flight's memory is used again"
        );
    }

    #[test]
    fn a_link_that_goes_down_keeps_the_bytes_of_what_waits_and_hands_them_over_afterwards() {
        let mut wiring = wiring();
        let change = |change| {
            let change = Change::Links { links: vec![0], change };
            WiringChange { at: Duration::ZERO, change }
        };
        let changes = [LinkChange::Down { queue: mqttlab_net::DownQueue::Keep }, LinkChange::Up];
        wiring.changes = changes.map(change).to_vec();
        let changes = wiring.changes.clone();
        let at = |ms: u64| Instant::ZERO + Duration::from_ms(ms);
        let (mut wire, mut rows) = (EmulatedWire::new(wiring, Duration::from_us(60)), Rows::default());
        wire.arrive(at(0), 0, &packet(B));
        wire.change(at(1), &changes[0].change);
        wire.arrive(at(2), 0, &packet(B));
        assert_eq!(wire.poll(at(100), &mut rows).map(|delivery| delivery.host), Some(1), "it was on its way");
        assert_eq!((wire.poll(at(100), &mut rows), wire.next_deadline()), (None, None));
        // Told too late, it goes up at once.
        wire.change(at(50), &changes[1].change);
        let delivery = wire.poll(at(200), &mut rows).unwrap();
        assert_eq!((delivery.due, delivery.bytes), (at(110) - Duration::from_us(60), packet(B)));
        let found: Vec<_> = rows.0.iter().map(|row| (row.link, row.entered, row.start)).collect();
        let expected = [(0, 0, 0), (1, 5, 5), (0, 2, 100), (1, 105, 105)];
        assert_eq!(found, expected.map(|(link, entered, start)| (link, at(entered), Some(at(start)))));
    }

    /// The hosts' stations 10 m apart, and a cable between the broker's station and the broker.
    fn radio(distance_m: i64) -> Wiring {
        let medium = MediumSpec {
            name: "air".into(),
            phy: PhySpec::preset("b-11").unwrap(),
            mac: MacSpec::standard(),
            radio: RadioSpec::preset("b-11").unwrap(),
            channel: None,
            interferers: Vec::new(),
            placement: PlacementSpec::Explicit {
                positions: [0, distance_m].map(|metres| Position { x_mm: metres * 1000, y_mm: 0 }).to_vec(),
            },
            mobility: MobilitySpec::None,
            energy: EnergyProfile::preset("mica2").unwrap(),
        };
        let mut wiring = wiring();
        wiring.media = vec![medium];
        wiring.paths = vec![
            PathPlan { from: 0, to: 1, hops: vec![Hop::Radio { medium: 0, from: 0, to: 1 }, Hop::Link(0)] },
            PathPlan { from: 1, to: 0, hops: vec![Hop::Link(1), Hop::Radio { medium: 0, from: 1, to: 0 }] },
        ];
        wiring.stations = BTreeMap::from([((0, 0), 0), ((0, 1), 1)]);
        wiring
    }

    #[test]
    fn a_frame_crosses_air_and_cable_and_only_the_cable_is_foretold() {
        let compensation = Duration::from_us(60);
        let (mut wire, mut rows) = (EmulatedWire::new(radio(10), compensation), Rows::default());
        let start = Instant::from_ns(1_000_000);
        wire.arrive(start, 0, &packet(B));
        assert_eq!(wire.poll(start, &mut rows), None, "what becomes of it on the air is not known yet");
        assert!(rows.0.is_empty());
        // Preamble 192 us, and 20 B of IP and 36 B of MAC at 11 Mbit/s.
        let air = Duration::from_ns(192_000 + (56_u64 * 8 * 1_000_000_000).div_ceil(11_000_000));
        let due = wire.poll(Instant::from_ns(20_000_000), &mut rows).unwrap().due;
        let delivered = rows.0[0].delivered.unwrap();
        assert!(delivered.since(start + air) < Duration::from_us(1), "{delivered}");
        assert_eq!(due, delivered + Duration::from_ms(5).saturating_sub(compensation));
        // Media are numbered after the links.
        let found: Vec<_> = rows.0.iter().map(|row| (row.link, row.hop, row.hops, row.frame_bytes)).collect();
        assert_eq!(found, [(2, 0, 2, 56), (0, 1, 2, 20)]);
        wire.arrive(Instant::from_ns(20_000_000), 1, &packet(A));
        let back = wire.poll(Instant::from_ns(40_000_000), &mut rows).unwrap();
        assert_eq!(
            (back.host, Some(back.due)),
            (0, rows.0[3].delivered),
            "the air's end is not known before"
        );
        let stations = wire.stations(Instant::from_ns(50_000_000));
        let sent: Vec<_> =
            stations.iter().map(|station| (station.host, station.data_sent, station.ack_sent)).collect();
        assert_eq!(sent, [(0, 1, 1), (1, 1, 1)]);
    }

    #[test]
    fn a_station_out_of_reach_drops_a_frame_and_says_why() {
        let (mut wire, mut rows) = (EmulatedWire::new(radio(5_000), Duration::ZERO), Rows::default());
        wire.arrive(Instant::ZERO, 0, &packet(B));
        assert_eq!(wire.poll(Instant::from_ns(1_000_000_000), &mut rows), None);
        assert_eq!((rows.0[0].fate, rows.0[0].cause), (FrameFate::Dropped, Some(Cause::Unreachable)));
        assert_eq!((wire.free.len(), wire.next_deadline()), (1, None));
    }
}
