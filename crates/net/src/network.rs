//! The stage graph: frames crossing one link or radio channel after another.
//!
//! A link that several paths name is shared by them. A frame enters the next stage of its path when it arrives at
//! the end of the last one, at that *ideal* time, however late the shell calls: lateness does not add up along a
//! path. Frames of different flows enter a shared stage in the order of these times; equal times keep the order in
//! which they were made.
//!
//! Contract: `handle` with times that never run back, drain `poll` until `None`, call again at `next_deadline`.
//!
//! A shell in real time needs some time to hand a frame over. It is told in [`Network::with_handover`], and frames come
//! out that much before they arrive, where that can be foretold: a link knows a frame's arrival when it comes, a medium
//! only when the frame is over, and a link that may change or has another discipline than tail drop only when the frame has
//! left its transmitter.
//!
//! Cost: a heap of the frames under way, and for each call a look at each medium; media are few.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use mqttlab_units::{Bytes, Duration, Instant, Seed};

use crate::change::LinkChange;
use crate::fate::{Cause, Delivery, Fate};
use crate::link::Link;
use crate::name::FrameName;
use crate::radio::{self, Medium, MediumChange, Outcome};
use crate::spec::LinkSpec;
use crate::traffic::LinkTraffic;

/// Links and media, and the frames between them.
#[derive(Clone, Debug)]
pub struct Network {
    links: Vec<Link>,
    media: Vec<Medium>,
    paths: Vec<Vec<Stage>>,
    /// Frames at the ends of links, and links that have to be told of the time; see [`LINK_TIMER`].
    waiting: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    /// For when links that may change are among these.
    link_timers: BTreeMap<usize, Instant>,
    next_number: u64,
    transits: Vec<FrameTransit>,
    free: Vec<u32>,
    in_transit: usize,
    /// Frames that did not get to a link, which counts its own.
    refused: BTreeMap<usize, u64>,
    handover: Duration,
    ready: VecDeque<Output>,
    now: Instant,
}

/// One thing that a frame crosses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// A link.
    Link(usize),
    /// A radio channel, from one of its stations to another.
    Radio {
        /// The medium.
        medium: usize,
        /// The sending station.
        from: usize,
        /// The receiving station.
        to: usize,
    },
}

/// What happens to frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A frame entered a link, and this is what becomes of it there; or it has crossed a medium, or was dropped
    /// there. Comes when that is decided, and before the frame's `Arrived`.
    Crossed {
        /// The caller's token.
        frame: u64,
        /// Which copy of the frame; 0 for the frame itself. See [`copy_made_at`].
        copy: u16,
        /// The link; media are counted on after the last link.
        link: usize,
        /// Which stage of the path, from 0.
        hop: u16,
        /// When it came to the link, or to the sending station.
        entered: Instant,
        /// What becomes of it. On a medium, `start` is the begin of the first attempt.
        fate: Fate,
    },
    /// A frame is at the end of its path.
    Arrived {
        /// The caller's token.
        frame: u64,
        /// When it is to be handed over: its arrival, less the time that handing it over takes. Never later than the
        /// `now` of the call that made it ready.
        at: Instant,
        /// The bit that a link flipped, if one did; the last one where several did.
        corrupted_bit: Option<u64>,
        /// Which copy of the frame; 0 for the frame itself. See [`copy_made_at`].
        copy: u16,
    },
}

/// The number of the copy that the stage `hop` makes of `copy`, which may be the frame itself (0). A stage makes one copy
/// of a frame at most, so that the stages which made a copy tell it from all others: one bit for each.
pub fn copy_made_at(copy: u16, hop: u16) -> u16 {
    copy | 1 << hop
}

/// A frame on its way.
#[derive(Clone, Copy, Debug)]
struct FrameTransit {
    frame: u64,
    name: FrameName,
    size: Bytes,
    path: u32,
    hop: u16,
    copy: u16,
    corrupted_bit: Option<u64>,
}

impl Network {
    /// A network of these links; each path is a list of indices into them, in the order of crossing.
    ///
    /// # Panics
    /// When a path names a link that is not there.
    pub fn new(links: Vec<Link>, paths: Vec<Vec<usize>>) -> Self {
        let stages = |path: Vec<usize>| path.into_iter().map(Stage::Link).collect();
        Network::with_media(links, Vec::new(), paths.into_iter().map(stages).collect())
    }

    /// A network of these links and media.
    ///
    /// # Panics
    /// When a path names a link, a medium or a station that is not there, a station twice in one stage, or more stages than
    /// [`STAGES_MAX`].
    pub fn with_media(links: Vec<Link>, media: Vec<Medium>, paths: Vec<Vec<Stage>>) -> Self {
        let known = |stage: &Stage| match *stage {
            Stage::Link(link) => link < links.len(),
            Stage::Radio { medium, from, to } => {
                media.get(medium).is_some_and(|medium| from.max(to) < medium.stations() && from != to)
            }
        };
        assert!(paths.iter().flatten().all(known), "a path names a link or a station that is not there");
        assert!(
            paths.iter().all(|path| path.len() <= STAGES_MAX),
            "a path has more than {STAGES_MAX} stages"
        );
        Network {
            links,
            media,
            paths,
            waiting: BinaryHeap::new(),
            link_timers: BTreeMap::new(),
            next_number: 0,
            transits: Vec::new(),
            free: Vec::new(),
            in_transit: 0,
            refused: BTreeMap::new(),
            handover: Duration::ZERO,
            ready: VecDeque::new(),
            now: Instant::ZERO,
        }
    }

    /// Lets frames out this much before they arrive, because it takes so long to hand one over; but not before they come
    /// to their last link. What a medium carries last is handed over when it arrives: nothing knows before.
    #[must_use]
    pub fn with_handover(self, handover: Duration) -> Self {
        Network { handover, ..self }
    }

    /// The links, for their counters.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The media, for their counters.
    pub fn media(&self) -> &[Medium] {
        &self.media
    }

    /// What each link and then each medium has carried so far, and what waits there.
    pub fn traffic(&self, now: Instant) -> impl Iterator<Item = LinkTraffic> + use<'_> {
        let links = self.links.iter().enumerate().map(move |(index, link)| {
            let mut traffic = link.traffic(now);
            if let Some(refused) = self.refused.get(&index) {
                traffic.drops.note(Cause::NatForgot, *refused);
            }
            traffic
        });
        links.chain(self.media.iter().map(Medium::traffic))
    }

    /// The name of a link, or of a medium. `link` as in [`Output::Crossed`].
    pub fn link_name(&self, link: usize) -> &str {
        match self.links.get(link) {
            Some(link) => link.name(),
            None => &self.media[link - self.links.len()].spec().name,
        }
    }

    /// The size that a link counts for an IP packet, or a medium's MAC. `link` as in [`Output::Crossed`].
    pub fn frame_size(&self, link: usize, packet: Bytes) -> Bytes {
        match self.links.get(link) {
            Some(link) => link.frame_size(packet),
            None => self.media[link - self.links.len()].frame_size(packet),
        }
    }

    /// A frame sets out on a path.
    ///
    /// # Panics
    /// When time runs back, or the path is not there.
    pub fn handle(&mut self, now: Instant, frame: u64, name: FrameName, path: usize, size: Bytes) {
        self.tick(now);
        self.in_transit += 1;
        self.advance(
            now,
            FrameTransit { frame, name, size, path: path as u32, hop: 0, copy: 0, corrupted_bit: None },
        );
    }

    /// A frame sets out in vain: a translator of addresses before this stage of its path has forgotten its connection
    /// ([`crate::Nats::drops`]). It is told as of any other frame; what it crosses before is left out.
    ///
    /// # Panics
    /// When time runs back, or the stage is not there or no link.
    pub fn refuse(&mut self, now: Instant, frame: u64, path: usize, hop: u16) {
        self.tick(now);
        let Stage::Link(link) = self.paths[path][usize::from(hop)] else { panic!("the stage is no link") };
        *self.refused.entry(link).or_default() += 1;
        let fate = Fate::Dropped { cause: Cause::NatForgot, air: None };
        self.ready.push_back(Output::Crossed { frame, copy: 0, link, hop, entered: now, fate });
    }

    /// Time has passed.
    ///
    /// # Panics
    /// When time runs back.
    pub fn tick(&mut self, now: Instant) {
        assert!(now >= self.now, "time ran back in the network");
        self.now = now;
        if self.media.is_empty() {
            while self.next_at_link().is_some_and(|at| at <= now) {
                self.leave_link();
            }
            return;
        }
        loop {
            let wire = self.next_at_link().filter(|at| *at <= now);
            let radio = self.next_medium().filter(|(at, _)| *at <= now);
            // At equal times links first: what leaves one may enter a medium now, and media have no way back in time.
            match radio {
                _ if wire.is_some_and(|wire| radio.is_none_or(|(radio, _)| wire <= radio)) => {
                    self.leave_link()
                }
                Some((at, medium)) => {
                    self.media[medium].tick(at);
                    self.drain(medium);
                }
                None => break,
            }
        }
        // Their counters of time run on where nothing happens.
        for medium in &mut self.media {
            medium.tick(now);
        }
    }

    /// Whether a host's radios, if it has any, are to be off while they have nothing to do; see [`Medium::rest`]. `stations`
    /// are the hosts of a medium's number and its station's. `at` may lie in the past.
    pub fn rest(
        &mut self,
        at: Instant,
        stations: &BTreeMap<(usize, usize), usize>,
        host: usize,
        rests: bool,
    ) {
        for (&(medium, station), _) in stations.iter().filter(|(_, its)| **its == host) {
            self.tick(self.now.max(at));
            self.media[medium].rest(at, station, rests);
            self.drain(medium);
        }
    }

    /// A link may change from now on, as [`Link::let_change`] says.
    pub fn let_change(&mut self, link: usize, spec: &LinkSpec, seed: Seed) {
        self.links[link].let_change(spec, seed);
    }

    /// A link changes, after all else that happens until then. `at` may lie in the past: then it changes at once.
    ///
    /// # Panics
    /// When the link was not [made to change](Link::changeable).
    pub fn change(&mut self, at: Instant, link: usize, change: &LinkChange) {
        let now = self.now.max(at);
        self.tick(now);
        self.links[link].change(now, change);
        self.drain_link(now, link);
    }

    /// A medium changes, as a link does.
    pub fn change_medium(&mut self, at: Instant, medium: usize, change: &MediumChange) {
        let now = self.now.max(at);
        self.tick(now);
        self.media[medium].change(now, change);
        self.drain(medium);
    }

    /// Publishing begins at `at`: traces count from then.
    pub fn begin_traces(&mut self, at: Instant) {
        self.links.iter_mut().for_each(|link| link.begin_trace(at));
    }

    /// The next thing that happened.
    pub fn poll(&mut self) -> Option<Output> {
        self.ready.pop_front()
    }

    /// When something may happen next.
    pub fn next_deadline(&self) -> Option<Instant> {
        match (self.next_at_link(), self.next_medium()) {
            (Some(wire), Some((radio, _))) => Some(wire.min(radio)),
            (wire, radio) => wire.or(radio.map(|(at, _)| at)),
        }
    }

    /// Frames under way.
    pub fn in_transit(&self) -> usize {
        self.in_transit
    }

    #[inline]
    fn next_at_link(&self) -> Option<Instant> {
        self.waiting.peek().map(|Reverse((at, _, _))| *at)
    }

    #[inline]
    fn next_medium(&self) -> Option<(Instant, usize)> {
        let deadlines = self.media.iter().enumerate();
        deadlines.filter_map(|(index, medium)| Some((medium.next_deadline()?, index))).min()
    }

    fn leave_link(&mut self) {
        let Reverse((at, _, place)) = self.waiting.pop().expect("a frame is due");
        if place >= LINK_TIMER {
            let link = (place - LINK_TIMER) as usize;
            self.links[link].tick(at);
            return self.drain_link(at, link);
        }
        let transit = self.release(place);
        self.advance(at, transit);
    }

    /// The frame is at the entrance of its next stage, or at the end of its path, at this ideal time.
    fn advance(&mut self, at: Instant, transit: FrameTransit) {
        let FrameTransit { frame, corrupted_bit, copy, .. } = transit;
        match self.paths[transit.path as usize].get(transit.hop as usize).copied() {
            None => {
                self.in_transit -= 1;
                self.ready.push_back(Output::Arrived { frame, at, corrupted_bit, copy });
            }
            Some(Stage::Link(link)) => self.offer(at, link, transit),
            Some(Stage::Radio { medium, from, to }) => {
                let place = self.keep(transit);
                let input = radio::Input::Send { frame: place.into(), from, to, size: transit.size };
                self.media[medium].handle(at, input);
                self.drain(medium);
            }
        }
    }

    fn offer(&mut self, at: Instant, link: usize, transit: FrameTransit) {
        if self.links[link].is_stepwise() {
            let place = self.keep(transit);
            self.links[link].enter(at, place, transit.size, transit.name);
            return self.drain_link(at, link);
        }
        let fate = self.links[link].offer(at, transit.size, transit.name);
        self.cross_link(at, link, at, transit, fate);
    }

    /// What became of frames on a link that may change, at this instant.
    fn drain_link(&mut self, at: Instant, link: usize) {
        while let Some(settled) = self.links[link].poll() {
            let transit = self.release(settled.frame);
            self.cross_link(at, link, settled.entered, transit, settled.fate);
        }
        if let Some(due) = self.links[link].next_deadline()
            && self.link_timers.insert(link, due) != Some(due)
        {
            self.waiting.push(Reverse((due, self.next_number, LINK_TIMER + link as u32)));
            self.next_number += 1;
        }
    }

    /// What becomes of a frame on a link has been decided at this instant.
    #[inline]
    fn cross_link(&mut self, at: Instant, link: usize, entered: Instant, transit: FrameTransit, fate: Fate) {
        let FrameTransit { frame, copy, hop, corrupted_bit, .. } = transit;
        self.ready.push_back(Output::Crossed { frame, copy, link, hop, entered, fate });
        let Fate::Delivered(delivery) = fate else {
            self.in_transit -= 1;
            return;
        };
        let corrupted_bit = delivery.corrupted_bit.or(corrupted_bit);
        let onward = FrameTransit { hop: hop + 1, corrupted_bit, ..transit };
        self.schedule(at, delivery.at, onward);
        if let Some(copy_at) = delivery.duplicate_at {
            self.in_transit += 1;
            let copy = copy_made_at(copy, hop);
            // The copy has a name of its own, and so other luck on the stages that follow.
            self.schedule(at, copy_at, FrameTransit { copy, name: onward.name.copy(), ..onward });
        }
    }

    /// What became of frames on a medium. A frame goes on when it arrives; its sender is done with it later.
    fn drain(&mut self, medium: usize) {
        while let Some(output) = self.media[medium].poll() {
            match output {
                radio::Output::Arrived { frame, entered, start, at } => {
                    // Kept until the medium is finished with it: its sender repeats it until it hears an ACK.
                    let transit = self.transits[frame as usize];
                    let (corrupted_bit, duplicate_at) = (None, None);
                    let delivery =
                        Delivery { start, sent: at, at, corrupted_bit, duplicate_at, is_marked: false };
                    self.crossed(medium, transit, entered, Fate::Delivered(delivery));
                    self.advance(at, FrameTransit { hop: transit.hop + 1, ..transit });
                }
                radio::Output::Finished(finished) => {
                    let transit = self.release(finished.frame as u32);
                    if let Outcome::Dropped { cause } = finished.fate {
                        let air = finished.start.zip(finished.sent);
                        self.crossed(medium, transit, finished.entered, Fate::Dropped { cause, air });
                        self.in_transit -= 1;
                    }
                }
            }
        }
    }

    fn crossed(&mut self, medium: usize, transit: FrameTransit, entered: Instant, fate: Fate) {
        let link = self.links.len() + medium;
        let FrameTransit { frame, copy, hop, .. } = transit;
        self.ready.push_back(Output::Crossed { frame, copy, link, hop, entered, fate });
    }

    /// A frame whose fate on a link was decided at `decided` is at its end at `at`: at the next stage then, at its receiver a
    /// little earlier.
    fn schedule(&mut self, decided: Instant, at: Instant, transit: FrameTransit) {
        let is_last = usize::from(transit.hop) == self.paths[transit.path as usize].len();
        // Not before that: the machine's time does not run back.
        let due = if is_last { decided + at.since(decided).saturating_sub(self.handover) } else { at };
        let place = self.keep(transit);
        // The number keeps equal times in order, which a heap alone does not.
        self.waiting.push(Reverse((due, self.next_number, place)));
        self.next_number += 1;
    }

    fn keep(&mut self, transit: FrameTransit) -> u32 {
        if let Some(place) = self.free.pop() {
            self.transits[place as usize] = transit;
            return place;
        }
        self.transits.push(transit);
        self.transits.len() as u32 - 1
    }

    fn release(&mut self, place: u32) -> FrameTransit {
        self.free.push(place);
        self.transits[place as usize]
    }
}

/// From here on, what waits is not a frame's place but a link's number.
const LINK_TIMER: u32 = 1 << 31;
/// Stages of a path at most; [`copy_made_at`] has a bit for each.
pub const STAGES_MAX: usize = 16;
