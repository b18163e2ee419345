//! What the links have carried, from the emulator to the conductor, without making frames late.
//!
//! The conductor asks, the emulator answers when nothing is due for a moment, and the conductor finds the answer when it
//! looks again. Neither waits for the other: a lock that the other side holds is tried again later.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use mqttlab_net::LinkTraffic;
use mqttlab_units::{Duration, Instant};

/// A question and its last answer.
#[derive(Default)]
pub struct TrafficRequest {
    is_wanted: AtomicBool,
    answer: Mutex<TrafficAnswer>,
}

#[derive(Default)]
struct TrafficAnswer {
    at: Instant,
    links: Vec<LinkTraffic>,
}

impl TrafficRequest {
    /// Answers, if somebody has asked and `idle` is time enough, or the last answer is old. By the emulator.
    pub(crate) fn answer<I: Iterator<Item = LinkTraffic>>(
        &self,
        now: Instant,
        idle: Duration,
        traffic: impl FnOnce() -> I,
    ) {
        if !self.is_wanted.load(Relaxed) {
            return;
        }
        let Ok(mut answer) = self.answer.try_lock() else { return };
        let is_old = now.checked_since(answer.at).is_some_and(|age| age >= OLD);
        if idle >= ENOUGH || is_old {
            answer.at = now;
            answer.links.clear();
            answer.links.extend(traffic());
            self.is_wanted.store(false, Relaxed);
        }
    }

    /// Takes the last answer, with its time, and asks anew. By the conductor. Empty before the first answer.
    pub(crate) fn take_answer(&self, links: &mut Vec<LinkTraffic>) -> Instant {
        let mut answer = self.answer.lock().expect("no thread panics with it");
        links.clone_from(&answer.links);
        let at = answer.at;
        // What the emulator will fill has its room by then.
        answer.links.reserve(links.len());
        drop(answer);
        self.is_wanted.store(true, Relaxed);
        at
    }
}

/// A thousand links take about a tenth of this.
const ENOUGH: Duration = Duration::from_us(200);
/// A busy emulator answers all the same, after this.
const OLD: Duration = Duration::from_ms(700);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(ms)
    }

    fn carried(bytes: u64) -> std::iter::Once<LinkTraffic> {
        std::iter::once(LinkTraffic { bytes, ..LinkTraffic::default() })
    }

    #[test]
    fn the_emulator_answers_when_it_has_time_or_the_last_answer_is_old() {
        let request = TrafficRequest::default();
        let (mut links, free) = (Vec::new(), Duration::from_ms(5));
        request.answer(at(1), free, || -> std::iter::Once<LinkTraffic> { panic!("nobody has asked") });
        assert_eq!(request.take_answer(&mut links), Instant::ZERO);
        assert!(links.is_empty());
        request
            .answer(at(2), Duration::ZERO, || -> std::iter::Once<LinkTraffic> { panic!("it has no time") });
        request.answer(at(3), free, || carried(7));
        request.answer(at(4), free, || -> std::iter::Once<LinkTraffic> { panic!("it has answered") });
        assert_eq!((request.take_answer(&mut links), links[0].bytes), (at(3), 7));
        request
            .answer(at(500), Duration::ZERO, || -> std::iter::Once<LinkTraffic> { panic!("not old enough") });
        request.answer(at(710), Duration::ZERO, || carried(9));
        assert_eq!((request.take_answer(&mut links), links[0].bytes), (at(710), 9));
    }
}
