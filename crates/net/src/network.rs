//! The stage graph: frames crossing one link after another.
//!
//! A link that several paths name is shared by them. A frame enters the next link of its path when it arrives at the
//! end of the last one, at that *ideal* time, however late the shell calls: lateness does not add up along a path.
//! Frames of different flows enter a shared link in the order of these times; equal times keep the order in which
//! they were made.
//!
//! Contract: `handle` with times that never run back, drain `poll` until `None`, call again at `next_deadline`.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use mqttlab_units::{Bytes, Instant};

use crate::fate::Fate;
use crate::link::Link;

/// Links, and the frames between them.
#[derive(Clone, Debug)]
pub struct Network {
    links: Vec<Link>,
    paths: Vec<Vec<usize>>,
    waiting: BinaryHeap<Reverse<(Instant, u64, Transit)>>,
    next_number: u64,
    ready: VecDeque<Output>,
    now: Instant,
}

/// What happens to frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A frame entered a link, and this is what becomes of it there.
    Crossed {
        /// The caller's token.
        frame: u64,
        /// The link.
        link: usize,
        /// Which link of the path, from 0.
        hop: usize,
        /// When it came to the link.
        entered: Instant,
        /// What becomes of it.
        fate: Fate,
    },
    /// A frame is at the end of its path.
    Arrived {
        /// The caller's token.
        frame: u64,
        /// When; never later than the `now` of the call that made it ready.
        at: Instant,
        /// The bit that a link flipped, if one did; the last one where several did.
        corrupted_bit: Option<u64>,
        /// Whether this is a copy that a link made.
        copy: bool,
    },
}

/// A frame on its way. The ordering serves only to break ties that the insertion number has broken already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Transit {
    frame: u64,
    size: u64,
    path: usize,
    hop: usize,
    corrupted_bit: Option<u64>,
    copy: bool,
}

impl Network {
    /// A network of these links; each path is a list of indices into them, in the order of crossing.
    ///
    /// # Panics
    /// When a path names a link that is not there.
    pub fn new(links: Vec<Link>, paths: Vec<Vec<usize>>) -> Self {
        let known = paths.iter().flatten().all(|link| *link < links.len());
        assert!(known, "a path names a link that is not there");
        Network {
            links,
            paths,
            waiting: BinaryHeap::new(),
            next_number: 0,
            ready: VecDeque::new(),
            now: Instant::ZERO,
        }
    }

    /// The links, for their counters.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// A frame sets out on a path.
    ///
    /// # Panics
    /// When time runs back, or the path is not there.
    pub fn handle(&mut self, now: Instant, frame: u64, path: usize, size: Bytes) {
        self.tick(now);
        self.advance(now, Transit { frame, size: size.0, path, hop: 0, corrupted_bit: None, copy: false });
    }

    /// Time has passed.
    ///
    /// # Panics
    /// When time runs back.
    pub fn tick(&mut self, now: Instant) {
        assert!(now >= self.now, "time ran back in the network");
        self.now = now;
        while let Some(Reverse((at, _, transit))) = self.waiting.peek().copied() {
            if at > now {
                break;
            }
            self.waiting.pop();
            self.advance(at, transit);
        }
    }

    /// The next thing that happened.
    pub fn poll(&mut self) -> Option<Output> {
        self.ready.pop_front()
    }

    /// When the next frame arrives somewhere.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.waiting.peek().map(|Reverse((at, _, _))| *at)
    }

    /// Frames under way.
    pub fn in_transit(&self) -> usize {
        self.waiting.len()
    }

    /// The frame is at the entrance of its next link, or at the end of its path, at this ideal time.
    fn advance(&mut self, at: Instant, transit: Transit) {
        let Transit { frame, corrupted_bit, copy, .. } = transit;
        let Some(&link) = self.paths[transit.path].get(transit.hop) else {
            self.ready.push_back(Output::Arrived { frame, at, corrupted_bit, copy });
            return;
        };
        let fate = self.links[link].offer(at, Bytes(transit.size));
        self.ready.push_back(Output::Crossed { frame, link, hop: transit.hop, entered: at, fate });
        let Fate::Delivered(delivery) = fate else { return };
        let onward = Transit {
            hop: transit.hop + 1,
            corrupted_bit: delivery.corrupted_bit.or(corrupted_bit),
            ..transit
        };
        self.schedule(delivery.at, onward);
        if let Some(copy_at) = delivery.duplicate_at {
            self.schedule(copy_at, Transit { copy: true, ..onward });
        }
    }

    fn schedule(&mut self, at: Instant, transit: Transit) {
        self.waiting.push(Reverse((at, self.next_number, transit)));
        self.next_number += 1;
    }
}
