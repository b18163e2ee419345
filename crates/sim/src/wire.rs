//! Frames on the network: the same links that the live emulator drives, in virtual time.

use std::collections::{BTreeMap, HashMap, VecDeque};

use mqttlab_net::radio::{Medium, StationReport};
use mqttlab_net::{self as net, Fate, Link, Named, Network, Output, Stage};
use mqttlab_plan::{NetworkKind, Plan};
use mqttlab_tcp::Segment;
use mqttlab_units::{Bytes, Instant};
use serde_json::{Value, json};

use crate::connection::Side;

/// The network, and what is on it.
pub(crate) struct Wire {
    network: Network,
    paths: Vec<PathFacts>,
    routes: HashMap<(usize, usize), usize>,
    /// For paths between any two hosts where nothing is emulated.
    everywhere: Option<usize>,
    /// Within a host, over its loopback device.
    loopback: usize,
    /// The host of each station, by medium and number.
    stations: BTreeMap<(usize, usize), usize>,
    frames: Vec<Frame>,
    free: Vec<u32>,
    numbered: u64,
    arrived: VecDeque<u32>,
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
pub(crate) struct Frame {
    pub(crate) number: u64,
    /// Place of its connection.
    pub(crate) connection: u32,
    /// Who sent it.
    pub(crate) from: Side,
    pub(crate) segment: Segment,
    /// Position of its payload in the stream; `None` without payload.
    pub(crate) offset: Option<u64>,
    /// As the recording counts it.
    pub(crate) repetition: Option<u32>,
    pub(crate) hops: u8,
    /// Where nothing is in its way, the number of what stands for that.
    bare: Option<usize>,
    /// Itself and its copies.
    outstanding: u8,
}

/// Something became of a frame, which is named by its place.
pub(crate) enum Happened {
    /// On a link. To be [settled](Wire::settle) once it has been looked at.
    Crossed { frame: u32, link: usize, hop: usize, entered: Instant, fate: Fate },
    /// Nothing was in its way; `link` stands for that.
    Bare { frame: u32, link: usize, at: Instant },
    /// It arrived damaged, and its receiver does not take it. To be [released](Wire::release).
    Spoilt { frame: u32 },
}

impl Wire {
    /// The plan's network. Its links and paths are taken out of the plan: there may be tens of thousands.
    pub(crate) fn new(plan: &mut Plan) -> Wire {
        let seed = plan.seed.derive("network");
        let (direct_link, loopback_link) = (plan.direct_link(), plan.loopback_link());
        let links = std::mem::take(&mut plan.network.links);
        let mut made = Vec::with_capacity(links.len());
        made.extend(links.into_iter().map(|spec| Link::new(spec, seed)));
        let media = plan.network.media.iter().map(|spec| Medium::new(spec.clone(), seed)).collect();
        let stations = plan.network.stations();
        let planned = std::mem::take(&mut plan.network.paths);
        let mut paths: Vec<Vec<Stage>> = Vec::with_capacity(planned.len() + 1);
        let mut routes = HashMap::with_capacity(planned.len());
        for path in planned {
            routes.insert((path.from, path.to), paths.len());
            paths.push(path.hops.iter().map(|hop| (*hop).into()).collect());
        }
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
        let everywhere = match plan.network.kind {
            NetworkKind::Emulated => None,
            NetworkKind::Loopback => Some(loopback),
            NetworkKind::Veth | NetworkKind::External => Some(everywhere),
        };
        Wire {
            paths: facts,
            network: Network::with_media(made, media, paths),
            routes,
            everywhere,
            loopback,
            stations,
            frames: Vec::new(),
            free: Vec::new(),
            numbered: 0,
            arrived: VecDeque::new(),
        }
    }

    /// The path between two hosts. A host reaches itself over its loopback device, whatever is between the others.
    pub(crate) fn path(&self, from: usize, to: usize) -> Option<usize> {
        if from == to {
            return Some(self.loopback);
        }
        self.everywhere.or_else(|| self.routes.get(&(from, to)).copied())
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

    /// What each station's radio has done, for the recording; null where there is no radio.
    pub(crate) fn stations(&self) -> Value {
        if self.network.media().is_empty() {
            return Value::Null;
        }
        json!(StationReport::all(self.network.media(), &self.stations))
    }

    /// A segment sets out on a path.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        path: usize,
        named: Named,
        (connection, from): (u32, Side),
        segment: &Segment,
        offset: Option<u64>,
    ) {
        let frame = Frame {
            number: self.numbered,
            connection,
            from,
            segment: *segment,
            offset,
            repetition: named.repetition,
            hops: self.paths[path].hops,
            bare: self.paths[path].bare,
            outstanding: 1,
        };
        self.numbered += 1;
        let place = match self.free.pop() {
            Some(place) => {
                self.frames[place as usize] = frame;
                place
            }
            None => {
                self.frames.push(frame);
                self.frames.len() as u32 - 1
            }
        };
        self.network.handle(now, place.into(), named.name, path, Bytes(ip_bytes(segment).into()));
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, now: Instant) {
        self.network.tick(now);
    }

    /// When something happens to a frame next.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.network.next_deadline()
    }

    /// Whether something more arrives, or happens, at this instant.
    pub(crate) fn has_more_at(&self, now: Instant) -> bool {
        !self.arrived.is_empty() || self.network.next_deadline() == Some(now)
    }

    /// What happened on the links. Frames that reach the ends of their paths are kept for [`Wire::arrival`].
    pub(crate) fn poll(&mut self) -> Option<Happened> {
        loop {
            match self.network.poll()? {
                Output::Crossed { frame, link, hop, entered, fate, .. } => {
                    let (frame, hop) = (frame as u32, hop.into());
                    return Some(Happened::Crossed { frame, link, hop, entered, fate });
                }
                Output::Arrived { frame, at, corrupted_bit, .. } => {
                    let frame = frame as u32;
                    if corrupted_bit.is_some() {
                        // The checksum finds it.
                        return Some(Happened::Spoilt { frame });
                    }
                    self.arrived.push_back(frame);
                    if let Some(link) = self.frame(frame).bare {
                        return Some(Happened::Bare { frame, link, at });
                    }
                }
            }
        }
    }

    /// A frame under way.
    pub(crate) fn frame(&self, place: u32) -> &Frame {
        &self.frames[place as usize]
    }

    /// The next frame that is at the end of its path, to be released.
    pub(crate) fn arrival(&mut self) -> Option<u32> {
        self.arrived.pop_front()
    }

    /// Takes note of what a link did to a frame.
    pub(crate) fn settle(&mut self, place: u32, fate: &Fate) {
        match fate {
            Fate::Delivered(net::Delivery { duplicate_at: Some(_), .. }) => {
                self.frames[place as usize].outstanding += 1;
            }
            Fate::Delivered(_) => {}
            Fate::Dropped { .. } => self.release(place),
        }
    }

    /// Nobody needs this frame, or this copy of it, any more.
    pub(crate) fn release(&mut self, place: u32) {
        let frame = &mut self.frames[place as usize];
        frame.outstanding -= 1;
        if frame.outstanding == 0 {
            self.free.push(place);
        }
    }
}

/// Size of the IP packet that carries a segment: IPv4 without options.
pub(crate) fn ip_bytes(segment: &Segment) -> u32 {
    20 + u32::from(segment.header_bytes()) + u32::from(segment.length)
}
