//! Frames on the network: the same links that the live emulator drives, in virtual time.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::rc::Rc;

use mqttlab_net::radio::{Medium, StationReport};
use mqttlab_net::{self as net, Fate, Link, LinkTraffic, Named, Nats, Network, Output, Stage, link_traces};
use mqttlab_plan::{Event, LinksEvent, MediumEvent, NetworkKind};
use mqttlab_tcp::{Ecn, Flags, Segment};
use mqttlab_units::{Bytes, Instant, OptionalInstant, Seed};
use serde::Serialize;
use serde_json::{Value, json};

use crate::hosts::datagrams::SimDatagram;
use crate::ids::{HostId, Side, TcpConnectionId};

/// The network, and what is on it.
pub(crate) struct SimWire {
    network: Network,
    nats: Nats,
    paths: Vec<PathFacts>,
    routes: HashMap<(usize, usize), usize>,
    /// For paths between any two hosts where nothing is emulated.
    everywhere: Option<usize>,
    /// Within a host, over its loopback device.
    loopback: usize,
    /// The host of each station, by medium and number.
    stations: BTreeMap<(usize, usize), usize>,
    frames: Vec<SimFrame>,
    free: Vec<u32>,
    arrived: VecDeque<u32>,
    /// The last instant at which several things came.
    crowded_at: OptionalInstant,
    counts: FrameCounts,
}

/// What has become of frames. `sent + copied = arrived + corrupted + dropped + under_way`, always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FrameCounts {
    /// Frames that set out.
    pub sent: u64,
    /// Copies that links made of them.
    pub copied: u64,
    /// Frames and copies that were handed to their receivers.
    pub arrived: u64,
    /// Frames and copies that arrived damaged.
    pub corrupted: u64,
    /// Frames that were dropped.
    pub dropped: u64,
    /// Frames and copies that are still on their way.
    pub under_way: u64,
}

/// What of a path its frames must know.
#[derive(Clone, Copy)]
struct PathFacts {
    hops: u8,
    /// The number of what stands for it where it crosses nothing.
    bare: Option<usize>,
}

/// A frame under way.
#[derive(Debug)]
pub(crate) struct SimFrame {
    pub(crate) number: u64,
    /// Who sent it.
    pub(crate) from: Side,
    pub(crate) cargo: Cargo,
    /// As the recording counts it.
    pub(crate) repetition: Option<u32>,
    pub(crate) hops: u8,
    /// Where nothing is in its way, the number of what stands for that.
    bare: Option<usize>,
    /// Itself and its copies.
    outstanding: u8,
}

impl SimFrame {
    /// A link has marked it: what it carries has met congestion. Its copies have, too, wherever they are.
    fn mark(&mut self) {
        if let Cargo::Segment(carried) = &mut self.cargo {
            carried.segment.ecn = Ecn::Ce;
        }
    }
}

/// What a frame carries.
#[derive(Debug)]
pub(crate) enum Cargo {
    Segment(CarriedSegment),
    Datagram(Rc<SimDatagram>),
}

/// A segment of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CarriedSegment {
    pub(crate) connection: TcpConnectionId,
    pub(crate) segment: Segment,
    /// Position of its payload in the stream; `None` without payload.
    pub(crate) offset: Option<u64>,
}

impl Cargo {
    /// Size of the IP packet.
    pub(crate) fn ip_bytes(&self) -> u32 {
        match self {
            Cargo::Segment(carried) => ip_bytes(&carried.segment),
            Cargo::Datagram(datagram) => datagram.ip_bytes(),
        }
    }
}

/// Something became of a frame, which is named by its slot.
pub(crate) enum FrameEvent {
    /// On a link. [`SimWire::note_fate`] follows once it has been looked at. `copy` is 0 for the frame itself.
    Crossed { frame: u32, copy: u16, link: usize, hop: usize, entered: Instant, fate: Fate },
    /// Nothing was in its way; `link` stands for that.
    Bare { frame: u32, link: usize, at: Instant },
    /// It arrived damaged, and its receiver does not take it. To be [released](SimWire::release).
    Corrupted { frame: u32 },
}

impl SimWire {
    /// A plan's network, and the events that may change it. `direct_link` and `loopback_link` stand for what crosses no
    /// link, as the plan numbers them.
    pub(crate) fn new(
        network: mqttlab_plan::Network,
        events: &[Event],
        seed: Seed,
        [direct_link, loopback_link]: [usize; 2],
    ) -> SimWire {
        let seed = seed.derive("network");
        let stations = network.stations();
        let mut paths: Vec<Vec<Stage>> = Vec::with_capacity(network.paths.len() + 2);
        paths.extend(network.paths.iter().map(|path| path.hops.iter().map(|hop| (*hop).into()).collect()));
        let nats = Nats::new(network.translators(), &paths);
        let mqttlab_plan::Network { kind, links, media, paths: planned, traces, .. } = network;
        let traces = link_traces(traces);
        let mut made = Vec::with_capacity(links.len());
        let changing: HashSet<&String> = events.iter().flat_map(Event::links).collect();
        made.extend(links.into_iter().map(|spec| {
            let may_change = changing.contains(&spec.name);
            Link::planned(spec, seed, may_change, &traces)
        }));
        let media = media.into_iter().map(|spec| Medium::new(spec, seed)).collect();
        let routes =
            planned.iter().enumerate().map(|(number, path)| ((path.from, path.to), number)).collect();
        let facts = |path: &Vec<Stage>| PathFacts {
            hops: path.len().max(1) as u8,
            bare: path.is_empty().then_some(direct_link),
        };
        let mut facts: Vec<PathFacts> = paths.iter().map(facts).collect();
        let [everywhere, loopback] = [direct_link, loopback_link].map(|link| {
            paths.push(Vec::new());
            facts.push(PathFacts { hops: 1, bare: Some(link) });
            paths.len() - 1
        });
        let everywhere = match kind {
            NetworkKind::Emulated => None,
            NetworkKind::Loopback => Some(loopback),
            NetworkKind::Veth | NetworkKind::External => Some(everywhere),
        };
        SimWire {
            paths: facts,
            network: Network::with_media(made, media, paths),
            nats,
            routes,
            everywhere,
            loopback,
            stations,
            frames: Vec::new(),
            free: Vec::new(),
            arrived: VecDeque::new(),
            crowded_at: OptionalInstant::NONE,
            counts: FrameCounts::default(),
        }
    }

    /// The path between two hosts. A host reaches itself over its loopback device, whatever is between the others.
    pub(crate) fn path(&self, from: HostId, to: HostId) -> Option<usize> {
        if from == to {
            return Some(self.loopback);
        }
        self.everywhere.or_else(|| self.routes.get(&(from.0 as usize, to.0 as usize)).copied())
    }

    /// Whether a path leads over a loopback device.
    pub(crate) fn is_loopback(&self, path: usize) -> bool {
        path == self.loopback
    }

    /// The size that a link counts for an IP packet; without a link that of the packet.
    pub(crate) fn frame_bytes(&self, link: usize, ip_bytes: u32) -> u32 {
        if link >= self.network.links().len() + self.network.media().len() {
            return ip_bytes;
        }
        self.network.frame_size(link, Bytes(ip_bytes.into())).0 as u32
    }

    /// Frames and bytes in the queue of each link, in order.
    pub(crate) fn queues(&self, now: Instant) -> impl Iterator<Item = (usize, u64)> + use<'_> {
        self.network.links().iter().map(move |link| {
            let (frames, bytes) = link.queued(now);
            (frames, bytes.0)
        })
    }

    /// What each link and then each medium has carried, and what waits there.
    pub(crate) fn traffic(&self, now: Instant) -> impl Iterator<Item = LinkTraffic> + use<'_> {
        self.network.traffic(now)
    }

    /// The name of a link or a medium, by its number.
    pub(crate) fn link_name(&self, link: usize) -> &str {
        self.network.link_name(link)
    }

    /// What each station's radio has done, for the recording; null where there is no radio.
    pub(crate) fn stations(&self) -> Value {
        if self.network.media().is_empty() {
            return Value::Null;
        }
        json!(StationReport::all(self.network.media(), &self.stations))
    }

    /// Everybody on this host sleeps from now on, or no longer: so does its radio, if it has one.
    pub(crate) fn set_asleep(&mut self, now: Instant, host: HostId, asleep: bool) {
        self.network.rest(now, &self.stations, host.0 as usize, asleep);
    }

    /// Publishing begins at `at`: traces count from then.
    pub(crate) fn begin_traces(&mut self, at: Instant) {
        self.network.begin_traces(at);
    }

    /// Links change.
    pub(crate) fn change(&mut self, now: Instant, event: &LinksEvent) {
        let links: HashSet<&str> = event.links.iter().map(String::as_str).collect();
        for link in 0..self.network.links().len() {
            if links.contains(self.network.link_name(link)) {
                self.network.change(now, link, &event.change);
            }
        }
    }

    /// A radio channel changes.
    pub(crate) fn change_medium(&mut self, now: Instant, event: &MediumEvent) {
        let named = self.network.media().iter().position(|medium| medium.spec().name == event.medium);
        let medium = named.expect("a checked plan changes a channel that is there");
        self.network.change_medium(now, medium, &event.change);
    }

    /// A frame sets out on a path.
    pub(crate) fn send(&mut self, now: Instant, path: usize, named: Named, from: Side, cargo: Cargo) {
        let size = Bytes(cargo.ip_bytes().into());
        let mut name = named.name;
        let forgotten = match &cargo {
            Cargo::Segment(carried) => {
                name = name.with_ect(carried.segment.ecn != Ecn::NotEct);
                let flags = carried.segment.flags;
                let begins = flags.has(Flags::SYN) && !flags.has(Flags::ACK);
                self.nats.drops(now, path, carried.connection.number(), begins)
            }
            Cargo::Datagram(_) => None,
        };
        let frame = SimFrame {
            number: self.counts.sent,
            from,
            cargo,
            repetition: named.repetition,
            hops: self.paths[path].hops,
            bare: self.paths[path].bare,
            outstanding: 1,
        };
        self.counts.sent += 1;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.frames[slot as usize] = frame;
                slot
            }
            None => {
                self.frames.push(frame);
                self.frames.len() as u32 - 1
            }
        };
        match forgotten {
            Some(hop) => self.network.refuse(now, slot.into(), path, hop),
            None => self.network.handle(now, slot.into(), name, path, size),
        }
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, now: Instant) {
        self.network.tick(now);
    }

    /// When something happens to a frame next.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.network.next_deadline()
    }

    /// Whether frames are at the ends of their paths.
    pub(crate) fn has_arrivals(&self) -> bool {
        !self.arrived.is_empty()
    }

    /// Whether what has come at this instant comes alone: nothing more arrives or happens then, and nothing has before.
    pub(crate) fn comes_alone(&mut self, now: Instant) -> bool {
        if self.has_arrivals() || self.network.next_deadline() == Some(now) {
            self.crowded_at = now.into();
        }
        self.crowded_at.get() != Some(now)
    }

    /// What happened on the links. Frames that reach the ends of their paths are kept for [`SimWire::arrival`].
    pub(crate) fn poll(&mut self) -> Option<FrameEvent> {
        loop {
            match self.network.poll()? {
                Output::Crossed { frame, copy, link, hop, entered, fate } => {
                    let (frame, hop) = (frame as u32, hop.into());
                    return Some(FrameEvent::Crossed { frame, copy, link, hop, entered, fate });
                }
                Output::Arrived { frame, at, corrupted_bit, .. } => {
                    let frame = frame as u32;
                    if corrupted_bit.is_some() {
                        // The checksum finds it.
                        self.counts.corrupted += 1;
                        return Some(FrameEvent::Corrupted { frame });
                    }
                    self.arrived.push_back(frame);
                    if let Some(link) = self.frame(frame).bare {
                        return Some(FrameEvent::Bare { frame, link, at });
                    }
                }
            }
        }
    }

    /// A frame under way.
    pub(crate) fn frame(&self, slot: u32) -> &SimFrame {
        &self.frames[slot as usize]
    }

    /// What has become of frames so far.
    pub(crate) fn counts(&self) -> FrameCounts {
        let under_way = self.frames.iter().map(|frame| u64::from(frame.outstanding)).sum();
        FrameCounts { under_way, ..self.counts }
    }

    /// The next frame that is at the end of its path, to be released.
    pub(crate) fn arrival(&mut self) -> Option<u32> {
        let slot = self.arrived.pop_front()?;
        self.counts.arrived += 1;
        Some(slot)
    }

    /// Takes note of what a link did to a frame.
    pub(crate) fn note_fate(&mut self, slot: u32, fate: &Fate) {
        if let Fate::Delivered(net::Delivery { is_marked: true, .. }) = fate {
            self.frames[slot as usize].mark();
        }
        match fate {
            Fate::Delivered(net::Delivery { duplicate_at: Some(_), .. }) => {
                self.frames[slot as usize].outstanding += 1;
                self.counts.copied += 1;
            }
            Fate::Delivered(_) => {}
            Fate::Dropped { .. } => {
                self.counts.dropped += 1;
                self.release(slot);
            }
        }
    }

    /// This frame, or this copy of it, is not needed any more.
    pub(crate) fn release(&mut self, slot: u32) {
        let frame = &mut self.frames[slot as usize];
        frame.outstanding -= 1;
        if frame.outstanding == 0 {
            self.free.push(slot);
        }
    }
}

/// Size of the IP packet that carries a segment: IPv4 without options.
pub(crate) fn ip_bytes(segment: &Segment) -> u32 {
    20 + u32::from(segment.header_bytes()) + u32::from(segment.length)
}
