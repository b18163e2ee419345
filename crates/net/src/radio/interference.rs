//! The medium's part in what interferers do: who hears them, and whom that keeps from sending.

use mqttlab_units::Instant;

use super::agenda::RadioEvent;
use super::medium::Medium;

impl Medium {
    /// An interferer's turn begins or ends, or powers are others.
    pub(super) fn interference(&mut self, now: Instant, number: usize) {
        // Put off or brought forward since: a heap's entry cannot be taken back.
        if self.interferers[number].due == Some(now) {
            self.interfere(now, number);
        }
    }

    /// What is heard of an interferer is reckoned anew.
    pub(super) fn interfere(&mut self, now: Instant, number: usize) {
        let row = self.stations.len() + number;
        let interferer = &mut self.interferers[number];
        interferer.advance(now);
        let mut heard = vec![0; self.stations.len()];
        if interferer.is_heard() {
            self.field.update(now, row, &self.levels);
            for near in self.field.row(row) {
                heard[near.station as usize] = near.power;
            }
        }
        interferer.due = interferer.next(now, &self.intervals);
        if let Some(due) = interferer.due {
            self.agenda.add(due, number as u32, RadioEvent::Interference);
        }
        let before = std::mem::replace(&mut interferer.heard, heard);
        for (station, before) in before.into_iter().enumerate() {
            self.change_interference(now, station, before, self.interferers[number].heard[station]);
        }
    }

    fn change_interference(&mut self, now: Instant, number: usize, before: u64, after: u64) {
        if before == after {
            return;
        }
        let receiver = &mut self.receivers[number];
        let was_busy = receiver.is_busy();
        receiver.interfere(now, before, after, &self.levels);
        let is_busy = receiver.is_busy();
        let station = &mut self.stations[number];
        if !was_busy && is_busy {
            station.freeze(now, &self.timing);
        } else if was_busy && !is_busy {
            station.carrier.silent(now, &self.timing);
            self.contend(number);
        }
    }
}
