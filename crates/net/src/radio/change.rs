//! What may happen to a medium while it is in use, as a plan says it, and what the medium makes of it.

use mqttlab_units::Instant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::medium::Medium;
use super::spec::Position;

/// A change of a medium.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum MediumChange {
    /// An interferer is switched on.
    InterfererOn {
        /// Its name.
        interferer: String,
    },
    /// An interferer is switched off.
    InterfererOff {
        /// Its name.
        interferer: String,
    },
    /// Radios go off: they neither send nor hear. What is on the air goes on to its last bit.
    StationsOff {
        /// The stations' numbers.
        stations: Vec<usize>,
    },
    /// Radios go on again, with what waits in their queues.
    StationsOn {
        /// The stations' numbers.
        stations: Vec<usize>,
    },
    /// A station that stands still stands elsewhere.
    StationMoved {
        /// Its number.
        station: usize,
        /// Where.
        position: Position,
    },
}

impl Medium {
    /// Something changes, after all else that happens until then.
    ///
    /// # Panics
    /// When time runs back, there is no such interferer or station, or stations move by themselves.
    pub fn change(&mut self, now: Instant, change: &MediumChange) {
        self.tick(now);
        match change {
            MediumChange::InterfererOn { interferer } => self.switch(now, interferer, true),
            MediumChange::InterfererOff { interferer } => self.switch(now, interferer, false),
            MediumChange::StationsOff { stations } => {
                stations.iter().for_each(|station| self.turn_off(now, *station));
            }
            MediumChange::StationsOn { stations } => {
                stations.iter().for_each(|station| self.turn_on(now, *station));
            }
            MediumChange::StationMoved { station, position } => {
                self.field.place(*station, *position);
                (0..self.interferers.len()).for_each(|number| self.interfere(now, number));
            }
        }
    }

    fn switch(&mut self, now: Instant, name: &str, on: bool) {
        let named = self.spec().interferers.iter().position(|spec| spec.name == name);
        let number = named.expect("an interferer was switched that is not there");
        self.interferers[number].on = on;
        self.interfere(now, number);
    }

    fn turn_off(&mut self, now: Instant, number: usize) {
        let station = &mut self.stations[number];
        station.off = true;
        // No slot counts meanwhile.
        station.freeze(now, &self.timing);
        // What it is sending goes out; then the radio goes off.
        if !self.receivers[number].is_transmitting() {
            self.receivers[number].turn_off(now, &self.levels);
        }
    }

    fn turn_on(&mut self, now: Instant, number: usize) {
        let station = &mut self.stations[number];
        if !std::mem::take(&mut station.off) {
            return;
        }
        let has_frames = !station.queue.is_empty();
        let is_free = station.waiting.is_none() && station.response.is_none();
        let sends = self.receivers[number].is_transmitting();
        if has_frames && is_free && !sends && station.backoff.is_off(now, &self.timing) {
            // It does not know how long the medium has been idle.
            station.backoff.draw(&mut station.dice, station.window);
        }
        if has_frames || !station.rests {
            self.wake(now, number);
        }
        self.contend(number);
    }
}
