//! Mirror ports that show each frame several times on one link, where the sender does not number its packets.
//!
//! An equal frame a moment later may be a repetition then: of acknowledgments a receiver sends equal ones at once, and a
//! segment is sent again soon where the network is fast. So the mirror has to be proved. No host repeats a SYN within
//! milliseconds: what comes twice at the beginning of a direction comes twice until its end. Of connections that were open
//! before, the first frames of the capture tell: (nearly) all of them have a twin.
//!
//! Then every original has as many copies as were proved, and the next equal frame is a repetition.

use std::hash::BuildHasher;

use mqttlab_recording::{FoldedHash, NumberMap, NumberSet};
use mqttlab_units::{Duration, Instant};

use super::{COPIED_WITHIN, Ends, Fingerprint, SYN_REPEATED_AFTER};

/// Where a mirror is proved.
#[derive(Default)]
pub struct Mirrors {
    /// How often a direction of a connection shows each frame at a place, by both.
    times: NumberMap<u64, usize>,
    /// Captures of which (nearly) all frames have a twin.
    files: NumberSet<u16>,
}

impl Mirrors {
    /// Whether a frame that equals one of a moment ago at the same place, which has been there so many
    /// times and not for so long, is a copy.
    pub fn show_again(&mut self, print: &Fingerprint, file: u16, (shown, passed): (usize, Duration)) -> bool {
        let Some(ends) = print.ends else { return shown < TWICE && self.files.contains(&file) };
        let key = direction(ends, print.place.on_link);
        if print.is_syn && passed < SYN_REPEATED_AFTER {
            self.times.insert(key, shown + 1);
            return true;
        }
        let times = self.times.get(&key).copied();
        let times = times.or_else(|| self.files.contains(&file).then_some(TWICE));
        times.is_some_and(|times| shown < times)
    }
}

/// The first frames of all captures, as far as their packets have no numbers.
#[derive(Default)]
pub struct FirstLook {
    /// When a frame was seen last, and how often in a row.
    seen: NumberMap<(u64, u32, u16), (Instant, u64)>,
    /// By direction of a connection and place.
    directions: NumberMap<u64, Pairs>,
    files: NumberMap<u16, Pairs>,
}

/// How many frames there are, and how many of them are the second of a pair.
#[derive(Default)]
struct Pairs {
    frames: u64,
    second: u64,
}

impl Pairs {
    /// Whether frames come in pairs. At the end of the look one may be without its twin.
    fn are_all(&self, least: u64) -> bool {
        self.frames >= least && 100 * 2 * self.second >= 90 * self.frames.saturating_sub(1)
    }
}

impl FirstLook {
    /// Takes a frame of a capture into account.
    pub fn add(&mut self, print: &Fingerprint, file: u16, at: Instant) {
        if print.id != 0 {
            return;
        }
        let key = print.ends.map_or(0, |ends| direction(ends, print.place.on_link));
        let seen = (print.content ^ key, print.place.on_link, file);
        let (last, times) = self.seen.entry(seen).or_insert((at, 0));
        let is_soon = at.checked_since(*last).is_some_and(|passed| passed < COPIED_WITHIN);
        *times = if is_soon { *times + 1 } else { 1 };
        *last = at;
        let is_second = *times % 2 == 0;
        let directions = print.ends.map(|_| self.directions.entry(key).or_default());
        for pairs in directions.into_iter().chain([self.files.entry(file).or_default()]) {
            pairs.frames += 1;
            pairs.second += u64::from(is_second);
        }
    }

    /// What follows.
    pub fn conclude(self, mirrors: &mut Mirrors) {
        let shown_twice = self.directions.into_iter().filter(|(_, pairs)| pairs.are_all(DIRECTION_LEAST));
        mirrors.times.extend(shown_twice.map(|(key, _)| (key, TWICE)));
        let files = self.files.into_iter().filter(|(_, pairs)| pairs.are_all(FILE_LEAST));
        mirrors.files.extend(files.map(|(file, _)| file));
    }
}

/// A direction of a connection at a place.
fn direction(ends: Ends, on_link: u32) -> u64 {
    FoldedHash::default().hash_one((ends, on_link))
}

/// A mirror of both ways of a switch shows each frame so often.
const TWICE: usize = 2;
/// Frames of one direction that tell of it.
const DIRECTION_LEAST: u64 = 6;
/// Frames of a capture that tell of it.
const FILE_LEAST: u64 = 16;
