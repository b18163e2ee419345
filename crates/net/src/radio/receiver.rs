//! A station's ear: what is on the air here, and which frame of it is being received.
//!
//! A receiver takes up a frame when it hears its first bit, if it is neither sending nor receiving and the preamble
//! stands out of noise and interference. From then on the sum of all other powers must stay below what the frame
//! bears, to its last bit. A much stronger frame takes the receiver over; of frames that begin in the same instant
//! it takes the strongest.

use mqttlab_units::{Duration, Instant};

use super::air_time::AirTime;
use super::level::Levels;
use super::timing::FrameKind;

/// What one station hears.
#[derive(Clone, Debug, Default)]
pub(crate) struct RadioReceiver {
    /// Sum of all powers on the air here, in attowatts.
    total: u64,
    locked: Option<Lock>,
    transmitting: bool,
    /// Whether the medium is sensed busy.
    sensed: bool,
    /// Off: it neither hears nor senses.
    asleep: bool,
    since: Instant,
    time: AirTime,
}

/// The frame that is being received.
#[derive(Clone, Copy, Debug)]
struct Lock {
    from: u32,
    start: Instant,
    power: u64,
    /// Interference that it bears.
    tolerance: u64,
    spoilt: Option<Spoilt>,
}

/// Why a frame that was being received is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoilt {
    /// By other transmissions.
    Collision,
    /// By noise.
    Weak,
}

/// What the end of a transmission is to a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reception {
    /// It was not receiving it.
    Nothing,
    /// It has the frame.
    Frame,
    /// It has a spoilt one.
    Spoilt(Spoilt),
}

impl RadioReceiver {
    /// The station sends, or senses a busy medium.
    pub(crate) fn is_busy(&self) -> bool {
        self.transmitting || self.sensed
    }

    /// As [`RadioReceiver::is_busy`], but a station cannot know yet of what began in this very instant.
    pub(crate) fn was_busy_before(&self, now: Instant) -> bool {
        self.is_busy() && (self.transmitting || self.since < now)
    }

    pub(crate) fn is_transmitting(&self) -> bool {
        self.transmitting
    }

    /// Whether nothing is being sent or received here.
    pub(crate) fn is_quiet(&self) -> bool {
        !self.transmitting && self.locked.is_none()
    }

    pub(crate) fn is_asleep(&self) -> bool {
        self.asleep
    }

    /// The radio goes off, or on again: then it senses what is on the air, and takes up none of the frames that began
    /// before. `now` may lie in the past, as far as nothing has happened here since.
    pub(crate) fn rest(&mut self, now: Instant, asleep: bool, levels: &Levels) {
        // What was decided in the past was past by then: time that is counted already stays.
        self.account(now.max(self.since));
        self.asleep = asleep;
        self.sensed = !asleep && self.total >= levels.carrier_sense;
    }

    /// Since when it is receiving the frame that it receives.
    pub(crate) fn receiving_since(&self) -> Option<Instant> {
        self.locked.map(|lock| lock.start)
    }

    /// The station begins to send. What it was receiving is lost.
    pub(crate) fn begin_transmission(&mut self, now: Instant) {
        self.change(now);
        self.transmitting = true;
        self.locked = None;
    }

    /// The station has sent its last bit.
    pub(crate) fn end_transmission(&mut self, now: Instant, levels: &Levels) {
        self.change(now);
        self.transmitting = false;
        self.sensed = self.total >= levels.carrier_sense;
    }

    /// Another station begins to send. Whether this one begins to receive it.
    pub(crate) fn begin(
        &mut self,
        now: Instant,
        from: u32,
        kind: FrameKind,
        power: u64,
        levels: &Levels,
    ) -> bool {
        // Even while it sends or sleeps: what is on the air when it listens again counts.
        self.total += power;
        if self.transmitting || self.asleep {
            return false;
        }
        let interference = self.total - power;
        let takes = match &self.locked {
            None => levels.finds(power, interference),
            Some(lock) if lock.start == now && power > lock.power => levels.finds(power, interference),
            Some(_) => levels.captures(power, interference) && levels.finds(power, interference),
        };
        if takes {
            self.locked = Some(Lock::new(now, from, kind, power, levels));
        }
        if let Some(lock) = &mut self.locked
            && self.total - lock.power > lock.tolerance
        {
            lock.spoilt.get_or_insert(Spoilt::Collision);
        }
        self.sense(now, levels);
        takes
    }

    /// Another station has sent its last bit.
    pub(crate) fn end(&mut self, now: Instant, from: u32, power: u64, levels: &Levels) -> Reception {
        self.total -= power;
        if self.transmitting || self.asleep {
            return Reception::Nothing;
        }
        let heard = match self.locked {
            Some(lock) if lock.from == from => {
                self.locked = None;
                lock.spoilt.map_or(Reception::Frame, Reception::Spoilt)
            }
            _ => Reception::Nothing,
        };
        self.sense(now, levels);
        heard
    }

    /// The times in each state up to now.
    pub(crate) fn time(&self, now: Instant) -> AirTime {
        let mut settled = self.clone();
        settled.account(now);
        settled.time
    }

    fn sense(&mut self, now: Instant, levels: &Levels) {
        // However weak, a frame that is being received keeps the medium busy to its end, which its header has told.
        let sensed = self.locked.is_some() || self.total >= levels.carrier_sense;
        if sensed != self.sensed {
            self.change(now);
            self.sensed = sensed;
        }
    }

    /// The state ends here, and another one begins.
    fn change(&mut self, now: Instant) {
        let was_idle = !self.transmitting && !self.sensed;
        // A silence without length is one between two frames that follow each other at once.
        self.time.wake_ups += u64::from(was_idle && now > self.since);
        self.account(now);
    }

    fn account(&mut self, now: Instant) {
        let passed: Duration = now.since(self.since);
        let state = match (self.transmitting, self.sensed) {
            _ if self.asleep => &mut self.time.sleep,
            (true, _) => &mut self.time.transmit,
            (false, true) => &mut self.time.receive,
            (false, false) => &mut self.time.idle,
        };
        *state += passed;
        self.since = now;
    }
}

impl Lock {
    fn new(now: Instant, from: u32, kind: FrameKind, power: u64, levels: &Levels) -> Self {
        let tolerance = levels.tolerance(kind, power);
        let spoilt = tolerance.is_none().then_some(Spoilt::Weak);
        Lock { from, start: now, power, tolerance: tolerance.unwrap_or(0), spoilt }
    }
}
