//! A station's ear: what is on the air here, and which frame of it is being received.
//!
//! A receiver takes up a frame when it hears its first bit, if it is neither sending nor receiving and the preamble
//! stands out of noise and interference. From then on the sum of all other powers must stay below what the frame
//! bears, to its last bit. A much stronger frame takes the receiver over; of frames that begin in the same instant
//! it takes the strongest.
//!
//! Where frames are lost by their bits' errors, the bound on other powers holds for the preamble only. From there on the
//! chance of each stretch with equal interference is noted, and the end of the frame tells the chance of all of it.

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

/// A frame that begins, as one receiver hears it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming {
    pub(crate) from: u32,
    pub(crate) kind: FrameKind,
    pub(crate) bytes: u32,
    pub(crate) power: u64,
    /// When its preamble ends, and its last bit.
    pub(crate) payload: [Instant; 2],
}

/// The frame that is being received.
#[derive(Clone, Copy, Debug)]
struct Lock {
    frame: Incoming,
    start: Instant,
    /// Interference that it bears, or its preamble.
    tolerance: u64,
    spoilt: Option<Spoilt>,
    /// Until when `chance` is reckoned.
    reckoned: Instant,
    chance: Chance,
}

/// Logarithms of the chances that all bits so far are right.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Chance {
    /// With interference.
    right: f64,
    /// With noise alone.
    right_in_silence: f64,
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
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reception {
    /// It was not receiving it.
    Nothing,
    /// It has the frame with this chance.
    Uncertain(Chance),
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

    /// The radio goes off, whatever it was receiving.
    pub(crate) fn turn_off(&mut self, now: Instant, levels: &Levels) {
        self.locked = None;
        self.rest(now, true, levels);
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
    pub(crate) fn begin(&mut self, now: Instant, frame: Incoming, levels: &Levels) -> bool {
        let power = frame.power;
        self.reckon(now, levels);
        // Even while it sends or sleeps: what is on the air when it listens again counts.
        self.total += power;
        if self.transmitting || self.asleep {
            return false;
        }
        let interference = self.total - power;
        let takes = match &self.locked {
            None => levels.finds(power, interference),
            Some(lock) if lock.start == now && power > lock.frame.power => levels.finds(power, interference),
            Some(_) => levels.captures(power, interference) && levels.finds(power, interference),
        };
        if takes {
            self.locked = Some(Lock::new(now, frame, levels));
        }
        self.spoil(now, levels);
        self.sense(now, levels);
        takes
    }

    /// The frame that is being received bears no more than its tolerance.
    fn spoil(&mut self, now: Instant, levels: &Levels) {
        if let Some(lock) = &mut self.locked
            && self.total - lock.frame.power > lock.tolerance
            && (!levels.has_errors() || now < lock.frame.payload[0])
        {
            lock.spoilt.get_or_insert(Spoilt::Collision);
        }
    }

    /// Notes the chance of the bits since the last time, before the sum of powers changes.
    fn reckon(&mut self, now: Instant, levels: &Levels) {
        if let Some(lock) = self.locked.as_mut().filter(|_| levels.has_errors()) {
            let interference = self.total - lock.frame.power;
            lock.reckon(now, interference, levels);
        }
    }

    /// Another station has sent its last bit.
    pub(crate) fn end(&mut self, now: Instant, from: u32, power: u64, levels: &Levels) -> Reception {
        self.reckon(now, levels);
        self.total -= power;
        if self.transmitting || self.asleep {
            return Reception::Nothing;
        }
        let heard = match self.locked {
            Some(lock) if lock.frame.from == from => {
                self.locked = None;
                let whole =
                    if levels.has_errors() { Reception::Uncertain(lock.chance) } else { Reception::Frame };
                lock.spoilt.map_or(whole, Reception::Spoilt)
            }
            _ => Reception::Nothing,
        };
        self.sense(now, levels);
        heard
    }

    /// What is heard here of an interferer changes.
    pub(crate) fn interfere(&mut self, now: Instant, before: u64, after: u64, levels: &Levels) {
        self.reckon(now, levels);
        self.total = self.total - before + after;
        if !self.transmitting && !self.asleep {
            self.spoil(now, levels);
            self.sense(now, levels);
        }
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
    fn new(now: Instant, frame: Incoming, levels: &Levels) -> Self {
        let tolerance = levels.tolerance(frame.kind, frame.power);
        let spoilt = tolerance.is_none().then_some(Spoilt::Weak);
        let tolerance = tolerance.unwrap_or(0);
        Lock { frame, start: now, tolerance, spoilt, reckoned: frame.payload[0], chance: Chance::default() }
    }

    fn reckon(&mut self, now: Instant, interference: u64, levels: &Levels) {
        let Some(stretch) = now.checked_since(self.reckoned).filter(|stretch| *stretch > Duration::ZERO)
        else {
            return;
        };
        let [begin, end] = self.frame.payload;
        let share = stretch.as_ns() as f64 / end.since(begin).as_ns() as f64;
        let bits = f64::from(self.frame.bytes) * 8.0 * share;
        let right = |interference| bits * levels.log_right(self.frame.kind, self.frame.power, interference);
        let in_silence = right(0);
        self.chance.right += if interference == 0 { in_silence } else { right(interference) };
        self.chance.right_in_silence += in_silence;
        self.reckoned = now;
    }
}

impl Chance {
    /// What a uniform draw makes of the frame. Errors that noise alone had made are noise's.
    pub(crate) fn decide(self, uniform: f64) -> Reception {
        if uniform < self.right.exp() {
            Reception::Frame
        } else if uniform < self.right_in_silence.exp() {
            Reception::Spoilt(Spoilt::Collision)
        } else {
            Reception::Spoilt(Spoilt::Weak)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec::{PhySpec, RadioSpec};
    use super::*;

    #[test]
    fn bits_under_interference_have_its_ratio_and_the_others_that_of_noise() {
        let phy = PhySpec::preset("b-11").unwrap();
        let levels = Levels::new(&RadioSpec::preset("b-11").unwrap()).with_errors(&phy);
        // -85 dBm over -95 dBm of noise; another one of -93 dBm begins in the middle of 1000 B.
        let (power, other) = (3_162_278, 501_187);
        let at = |us| Instant::ZERO + Duration::from_us(us);
        let frame = |from, power| Incoming {
            from,
            kind: FrameKind::Data,
            bytes: 1_000,
            power,
            payload: [at(192), at(992)],
        };
        let mut receiver = RadioReceiver::default();
        assert!(receiver.begin(at(0), frame(1, power), &levels));
        assert!(!receiver.begin(at(592), frame(2, other), &levels));
        let heard = receiver.end(at(992), 1, power, &levels);
        let Reception::Uncertain(chance) = heard else { panic!("{heard:?}") };
        let right = |interference| levels.log_right(FrameKind::Data, power, interference);
        assert!((chance.right_in_silence / (8_000.0 * right(0)) - 1.0).abs() < 1e-12);
        assert!((chance.right / (4_000.0 * right(0) + 4_000.0 * right(other)) - 1.0).abs() < 1e-12);
        // Between both chances the interference has spoilt it.
        let between = (chance.right.exp() + chance.right_in_silence.exp()) / 2.0;
        assert_eq!(chance.decide(between), Reception::Spoilt(Spoilt::Collision));
        assert_eq!(chance.decide(0.0), Reception::Frame);
        assert_eq!(chance.decide(1.0), Reception::Spoilt(Spoilt::Weak));
    }
}
