//! Frames between hosts: which links they cross, and when they arrive.
//!
//! ```text
//!   arrive(at, host, frame) ──► link ──► link ──► … ──► next_deadline() ──► poll(now) ──► the receiving host
//! ```
//!
//! A machine without a clock. A frame's time is taken once, when it arrives; what it meets at every later stage
//! is worked out from the stage before, not from when somebody looked, so that an emulator that is late does not
//! stretch the emulated time. Only the last step, the delivery, needs the real clock.
//!
//! What it does not model: hosts, and anything but IPv4 from one of the hosts to another.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::Ipv4Addr;

use mqttlab_net::{self as net, Fate, Link, LinkSpec, Named};
use mqttlab_plan::{Hop, PathPlan, Plan};
use mqttlab_recording::{Cause, Direction, Frame, FrameFate};
use mqttlab_units::{Bytes, Duration, Instant, Seed};

use crate::naming::Naming;

/// What lies between the hosts.
#[derive(Clone, Debug)]
pub struct Wiring {
    /// The address of each host.
    pub addresses: Vec<Ipv4Addr>,
    /// The host that frames go up to, for the direction that is recorded.
    pub broker_host: usize,
    /// The links.
    pub links: Vec<LinkSpec>,
    /// The links from one host to another.
    pub paths: Vec<PathPlan>,
    /// What the links' random streams are derived from.
    pub seed: Seed,
}

impl Wiring {
    /// As the plan says.
    pub fn of(plan: &Plan) -> Wiring {
        Wiring {
            addresses: plan.hosts.iter().map(|host| host.address).collect(),
            broker_host: plan.broker.host,
            links: plan.network.links.clone(),
            paths: plan.network.paths.clone(),
            seed: plan.seed,
        }
    }
}

/// A frame that is due at its receiver.
#[derive(Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The receiving host.
    pub host: usize,
    /// When it should be handed over: its arrival by the links, less the compensation.
    pub due: Instant,
    /// The IP packet.
    pub bytes: Vec<u8>,
}

/// Who is told what became of each frame on each link.
pub trait Witness {
    /// A frame has entered a link and its fate there is known.
    fn frame(&mut self, frame: &Frame, bytes: &[u8]);
}

/// The links, and the frames on them.
pub struct Wire {
    links: Vec<Link>,
    paths: Vec<Vec<usize>>,
    /// Path by sending host and destination address.
    routes: HashMap<(usize, u32), Route>,
    broker_host: usize,
    compensation: Duration,
    /// When something is to be done with which flight; equal times in the order in which they were made.
    agenda: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    flights: Vec<Option<Flight>>,
    free: Vec<usize>,
    /// The memory of frames that are gone.
    spare: Vec<Vec<u8>>,
    naming: Naming,
    made: u64,
    numbered: u64,
    unrouted: u64,
}

#[derive(Clone, Copy, Debug)]
struct Route {
    path: usize,
    to: usize,
}

/// A frame under way.
#[derive(Clone, Debug)]
struct Flight {
    bytes: Vec<u8>,
    number: u64,
    named: Named,
    from: usize,
    to: usize,
    path: usize,
    /// How many links it has crossed.
    hop: usize,
}

impl Wire {
    /// Links at rest. Deliveries are due `compensation` before their time, because handing a frame over takes
    /// that long.
    pub fn new(wiring: &Wiring, compensation: Duration) -> Wire {
        let seed = wiring.seed.derive("network");
        let mut routes = HashMap::new();
        for (path, plan) in wiring.paths.iter().enumerate() {
            let address = u32::from(wiring.addresses[plan.to]);
            routes.insert((plan.from, address), Route { path, to: plan.to });
        }
        Wire {
            links: wiring.links.iter().map(|spec| Link::new(spec.clone(), seed)).collect(),
            paths: wiring.paths.iter().map(|path| path.hops.iter().map(link_of).collect()).collect(),
            routes,
            broker_host: wiring.broker_host,
            compensation,
            agenda: BinaryHeap::new(),
            flights: Vec::new(),
            free: Vec::new(),
            spare: Vec::new(),
            naming: Naming::default(),
            made: 0,
            numbered: 0,
            unrouted: 0,
        }
    }

    /// A host has sent a frame. `at` must not lie before the `now` of an earlier call of anything.
    pub fn arrive(&mut self, at: Instant, from: usize, bytes: &[u8], witness: &mut impl Witness) {
        let route = destination(bytes).and_then(|address| self.routes.get(&(from, address)));
        let Some(&Route { path, to }) = route else {
            self.unrouted += 1;
            return;
        };
        let number = self.number();
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        let named = self.naming.name(from as u32, bytes, number);
        self.proceed(Flight { bytes: buffer, number, named, from, to, path, hop: 0 }, at, witness);
    }

    /// The next frame that is due at its receiver; moves everything else that happens until `now` along. To be
    /// asked until it says `None`.
    pub fn poll(&mut self, now: Instant, witness: &mut impl Witness) -> Option<Delivery> {
        while self.next_deadline().is_some_and(|due| due <= now) {
            let Reverse((due, _, place)) = self.agenda.pop().expect("it was there a moment ago");
            let flight = self.flights[place].take().expect("a flight is on the agenda once");
            self.free.push(place);
            if flight.hop < self.paths[flight.path].len() {
                self.proceed(flight, due, witness);
                continue;
            }
            return Some(Delivery { host: flight.to, due, bytes: flight.bytes });
        }
        None
    }

    /// When [`Wire::poll`] has something to do next.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.agenda.peek().map(|next| next.0.0)
    }

    /// Gives the memory of a delivered frame back.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        self.spare.push(bytes);
    }

    /// Frames to an address that no path leads to.
    pub fn unrouted(&self) -> u64 {
        self.unrouted
    }

    /// Sends a flight over its next link; without one, it is handed over at once.
    fn proceed(&mut self, mut flight: Flight, at: Instant, witness: &mut impl Witness) {
        let Some(&link) = self.paths[flight.path].get(flight.hop) else {
            self.record_direct(&flight, at, witness);
            return self.schedule(flight, at);
        };
        let fate = self.links[link].offer(at, Bytes(flight.bytes.len() as u64), flight.named.name);
        self.record(&flight, link, at, fate, witness);
        let Fate::Delivered(delivery) = fate else { return self.spare.push(flight.bytes) };
        flight.hop += 1;
        if let Some(bit) = delivery.corrupted_bit {
            flight.bytes[(bit / 8) as usize] ^= 0x80 >> (bit % 8);
        }
        if let Some(copy_at) = delivery.duplicate_at {
            let named = Named { name: flight.named.name.copy(), ..flight.named };
            let copy = Flight { bytes: flight.bytes.clone(), named, number: self.number(), ..flight };
            self.schedule_arrival(copy, at, copy_at);
        }
        self.schedule_arrival(flight, at, delivery.at);
    }

    /// Puts a flight on the agenda for its arrival: at the next link then, at its receiver a little earlier.
    fn schedule_arrival(&mut self, flight: Flight, now: Instant, at: Instant) {
        let is_last = flight.hop == self.paths[flight.path].len();
        let length = at.since(now);
        let due = if is_last { now + length.saturating_sub(self.compensation) } else { at };
        self.schedule(flight, due);
    }

    fn schedule(&mut self, flight: Flight, due: Instant) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.flights.push(None);
            self.flights.len() - 1
        });
        self.flights[place] = Some(flight);
        self.agenda.push(Reverse((due, self.made, place)));
        self.made += 1;
    }

    fn number(&mut self) -> u64 {
        self.numbered += 1;
        self.numbered - 1
    }

    fn record(&self, flight: &Flight, link: usize, at: Instant, fate: Fate, witness: &mut impl Witness) {
        let hops = self.paths[flight.path].len() as u8;
        let mut frame = Frame {
            link: link as u16,
            hop: flight.hop as u8,
            hops,
            frame_bytes: self.links[link].frame_size(Bytes(flight.bytes.len() as u64)).0 as u32,
            ..self.frame(flight, at)
        };
        match fate {
            Fate::Delivered(delivery) => {
                frame.start = Some(delivery.start);
                frame.sent = Some(delivery.sent);
                frame.delivered = Some(delivery.at);
                if delivery.corrupted_bit.is_some() {
                    (frame.fate, frame.cause) = (FrameFate::Corrupted, Cause::BitError);
                }
            }
            Fate::Dropped { cause, air } => {
                (frame.start, frame.sent) = (air.map(|air| air.0), air.map(|air| air.1));
                (frame.fate, frame.cause) = (FrameFate::Dropped, recorded(cause));
            }
        }
        witness.frame(&frame, &flight.bytes);
        if let Fate::Delivered(net::Delivery { duplicate_at: Some(copy_at), .. }) = fate {
            // The copy's own row; it is numbered next.
            let copy = Frame {
                frame: self.numbered,
                delivered: Some(copy_at),
                fate: FrameFate::Duplicated,
                cause: Cause::None,
                ..frame
            };
            witness.frame(&copy, &flight.bytes);
        }
    }

    /// A direction without links has one row all the same, so that a capture shows both directions.
    fn record_direct(&self, flight: &Flight, at: Instant, witness: &mut impl Witness) {
        let arrived = Some(at);
        let frame = Frame { start: arrived, sent: arrived, delivered: arrived, ..self.frame(flight, at) };
        witness.frame(&frame, &flight.bytes);
    }

    /// What all rows of a flight have in common; on the link after the last one.
    fn frame(&self, flight: &Flight, at: Instant) -> Frame {
        let up = flight.to == self.broker_host;
        Frame {
            link: self.links.len() as u16,
            direction: if up { Direction::Up } else { Direction::Down },
            hop: 0,
            hops: 1,
            frame: flight.number,
            from_host: flight.from as u16,
            to_host: flight.to as u16,
            frame_bytes: flight.bytes.len() as u32,
            entered: at,
            start: None,
            sent: None,
            delivered: None,
            fate: FrameFate::Delivered,
            cause: Cause::None,
            repetition: flight.named.repetition,
        }
    }
}

/// The plan's check lets no radio channel into a live run.
fn link_of(hop: &Hop) -> usize {
    match hop {
        Hop::Link(link) => *link,
        Hop::Radio { .. } => panic!("a radio channel is in the path of a live run"),
    }
}

/// The destination address of an IPv4 packet (RFC 791 §3.1).
fn destination(packet: &[u8]) -> Option<u32> {
    let is_ipv4 = packet.first()? >> 4 == 4;
    let address = packet.get(16..20)?.try_into().expect("four bytes");
    is_ipv4.then(|| u32::from_be_bytes(address))
}

fn recorded(cause: net::Cause) -> Cause {
    match cause {
        net::Cause::QueueFull => Cause::QueueFull,
        net::Cause::RandomLoss => Cause::RandomLoss,
        net::Cause::BurstLoss => Cause::BurstLoss,
        net::Cause::BitError => Cause::BitError,
        net::Cause::RetryLimit => Cause::RetryLimit,
        net::Cause::Unreachable => Cause::Unreachable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::constant_delay;

    /// Collects the rows.
    #[derive(Default)]
    struct Rows(Vec<Frame>);

    impl Witness for Rows {
        fn frame(&mut self, frame: &Frame, _: &[u8]) {
            self.0.push(*frame);
        }
    }

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    /// 10.0.0.1 sends over two links of 5 ms to 10.0.0.2, which answers over none.
    fn wiring() -> Wiring {
        let link = |name: &str| LinkSpec { name: name.into(), ..constant_delay(Duration::from_ms(5)) };
        Wiring {
            addresses: vec![A, B],
            broker_host: 1,
            links: vec![link("one"), link("two")],
            paths: vec![
                PathPlan { from: 0, to: 1, hops: vec![Hop::Link(0), Hop::Link(1)] },
                PathPlan { from: 1, to: 0, hops: vec![] },
            ],
            seed: Seed(1),
        }
    }

    fn packet(to: Ipv4Addr) -> Vec<u8> {
        let mut packet = vec![0x45; 20];
        packet[16..20].copy_from_slice(&to.octets());
        packet
    }

    #[test]
    fn a_late_look_does_not_stretch_the_time_on_the_links() {
        let (mut wire, mut rows) = (Wire::new(&wiring(), Duration::ZERO), Rows::default());
        wire.arrive(Instant::from_ns(1_000), 0, &packet(B), &mut rows);
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
            let (mut wire, mut rows) = (Wire::new(&wiring(), compensation), Rows::default());
            wire.arrive(Instant::ZERO, 0, &packet(B), &mut rows);
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
        let (mut wire, mut rows) = (Wire::new(&wiring(), Duration::from_us(60)), Rows::default());
        wire.arrive(Instant::from_ns(5), 1, &packet(A), &mut rows);
        assert_eq!(wire.poll(Instant::from_ns(5), &mut rows).unwrap().host, 0);
        assert_eq!((rows.0[0].link, rows.0[0].direction), (2, Direction::Down));
    }

    #[test]
    fn a_frame_to_nobody_is_counted_and_gone() {
        let (mut wire, mut rows) = (Wire::new(&wiring(), Duration::ZERO), Rows::default());
        wire.arrive(Instant::ZERO, 0, &packet(A), &mut rows);
        wire.arrive(Instant::ZERO, 0, &[0x60; 40], &mut rows);
        wire.arrive(Instant::ZERO, 0, &[], &mut rows);
        assert_eq!((wire.unrouted(), wire.next_deadline()), (3, None));
    }

    #[test]
    fn a_corrupted_frame_differs_in_one_bit_and_a_duplicated_one_comes_twice() {
        let mut wiring = wiring();
        wiring.paths[0].hops = vec![Hop::Link(0)];
        wiring.links[0].corruption = mqttlab_units::Ratio::ONE;
        wiring.links[0].duplication = mqttlab_units::Ratio::ONE;
        let (mut wire, mut rows) = (Wire::new(&wiring, Duration::ZERO), Rows::default());
        wire.arrive(Instant::ZERO, 0, &packet(B), &mut rows);
        let later = Instant::from_ns(1_000_000_000);
        for _ in 0..2 {
            let delivery = wire.poll(later, &mut rows).unwrap();
            let differing = delivery.bytes.iter().zip(packet(B)).map(|(a, b)| (a ^ b).count_ones());
            assert_eq!(differing.sum::<u32>(), 1);
        }
        let fates: Vec<_> = rows.0.iter().map(|row| (row.frame, row.fate)).collect();
        assert_eq!(fates, [(0, FrameFate::Corrupted), (1, FrameFate::Duplicated)]);
    }
}
