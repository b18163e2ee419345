//! What else is on the air: a source of power that speaks no 802.11.
//!
//! A station senses it as a busy medium where it is loud enough, and receives frames under it as under other stations' frames.
//! Its power goes the way of a station's, through the same shadowing and fading. Where stations move or powers fade, it is
//! reckoned anew at every refresh and every block; a frame has its power throughout.

use mqttlab_units::{Dice, Duration, Instant, Seed};

use super::spec::{DutySpec, InterfererSpec};

/// An interferer in the course of time.
#[derive(Clone, Debug)]
pub(crate) struct Interferer {
    duty: DutySpec,
    pub(crate) on: bool,
    radiates: bool,
    /// When the present turn is over; `None` for never.
    until: Option<Instant>,
    /// When it is on the agenda.
    pub(crate) due: Option<Instant>,
    /// What each station hears of it now, in attowatts.
    pub(crate) heard: Vec<u64>,
    dice: Dice,
}

impl Interferer {
    /// At the begin of a turn in which it radiates.
    pub(crate) fn new(spec: &InterfererSpec, stations: usize, seed: Seed) -> Self {
        let mut interferer = Interferer {
            duty: spec.duty,
            on: spec.on,
            radiates: false,
            until: Some(Instant::ZERO),
            due: Some(Instant::ZERO),
            heard: vec![0; stations],
            dice: seed.derive("interferer").derive(&spec.name).dice(),
        };
        interferer.advance(Instant::ZERO);
        interferer
    }

    /// Whether it is to be heard.
    pub(crate) fn is_heard(&self) -> bool {
        self.on && self.radiates
    }

    /// Turns go on whether it is switched on or not, so that an event does not change when it radiates.
    pub(crate) fn advance(&mut self, now: Instant) {
        while let Some(until) = self.until.filter(|until| *until <= now) {
            self.radiates = !self.radiates;
            let length = match (self.duty, self.radiates) {
                (DutySpec::Constant, _) => None,
                (DutySpec::Regular { on, .. }, true) => Some(on),
                (DutySpec::Regular { off, .. }, false) => Some(off),
                (DutySpec::Exponential { on, .. }, true) => Some(self.dice.exponential(on)),
                (DutySpec::Exponential { off, .. }, false) => Some(self.dice.exponential(off)),
            };
            // At least a nanosecond, so that time goes on.
            self.until = length.map(|length| until + length.max(Duration::from_ns(1)));
        }
    }

    /// When its turn is over, or what is heard of it may change: at a multiple of one of these times.
    pub(crate) fn next(&self, now: Instant, intervals: &[Duration]) -> Option<Instant> {
        let steps = intervals
            .iter()
            .filter(|_| self.is_heard())
            .map(|interval| Instant::ZERO + *interval * (now.as_ns() / interval.as_ns() + 1));
        steps.chain(self.until).min()
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec::Position;
    use super::*;

    fn interferer(duty: DutySpec) -> Interferer {
        let position = Position { x_mm: 0, y_mm: 0 };
        let spec = InterfererSpec { name: "oven".into(), position, power_mdbm: 20_000, duty, on: true };
        Interferer::new(&spec, 1, Seed(3))
    }

    /// Its turns: how long each of them is, in ms.
    fn turns(duty: DutySpec, count: usize) -> Vec<f64> {
        let mut interferer = interferer(duty);
        let mut now = Instant::ZERO;
        let mut next = || {
            let until = interferer.next(now, &[]).unwrap();
            let length = until.since(now).as_ns() as f64 / 1e6;
            now = until;
            interferer.advance(now);
            length
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn regular_turns_have_their_lengths() {
        let duty = DutySpec::Regular { on: Duration::from_ms(8), off: Duration::from_ms(12) };
        assert_eq!(turns(duty, 4), [8.0, 12.0, 8.0, 12.0]);
    }

    #[test]
    fn exponential_turns_have_their_means_and_deviations() {
        let duty = DutySpec::Exponential { on: Duration::from_ms(2), off: Duration::from_ms(6) };
        let turns = turns(duty, 40_000);
        for (first, expected) in [(0, 2.0), (1, 6.0)] {
            let lengths: Vec<f64> = turns.iter().skip(first).step_by(2).copied().collect();
            let count = lengths.len() as f64;
            let mean = lengths.iter().sum::<f64>() / count;
            let square = lengths.iter().map(|length| length * length).sum::<f64>() / count;
            // An exponential's second moment is twice the square of its mean; that of its square is 24 mean^4.
            assert!((mean - expected).abs() < 5.0 * expected / count.sqrt(), "{mean}");
            let error = 20_f64.sqrt() * expected * expected / count.sqrt();
            assert!((square - 2.0 * expected * expected).abs() < 5.0 * error, "{square}");
        }
    }

    #[test]
    fn a_constant_one_has_no_turns_but_is_reckoned_anew_where_powers_vary() {
        let interferer = interferer(DutySpec::Constant);
        assert!(interferer.is_heard());
        assert_eq!(interferer.next(Instant::from_ns(5), &[]), None);
        let intervals = [Duration::from_ms(100), Duration::from_ms(30)];
        assert_eq!(interferer.next(Instant::from_ns(5), &intervals), Some(Instant::from_ns(30_000_000)));
    }
}
