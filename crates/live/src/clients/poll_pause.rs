//! How often a worker looks at its sockets when all that it does is a throughput test.
//!
//! A message that arrives wakes a waiting worker, and waking up costs ten times as much as reading the message. When
//! every publisher is back-to-back, latency is the length of queues and nobody is served by a wake-up for each
//! message: the worker then lets a little time pass before it looks again, so that it finds many messages at once.
//! The time adapts: it shrinks as soon as a publisher, or the broker towards a subscriber, has used up
//! a good part of its window, so that the pause does not decide the throughput.
//!
//! In every other plan, and on every emulated network, there is no pause. The recording has a note where there is:
//! what is received may then seem up to `LONGEST` later than it was.

use mqttlab_mqtt::Qos;
use mqttlab_plan::{Arrival, NetworkKind, Plan};
use mqttlab_units::Duration;

pub(super) struct PollPause {
    pause: Option<Duration>,
}

impl PollPause {
    pub(super) fn of(plan: &Plan) -> PollPause {
        let mut publishers = plan.groups.iter().flat_map(|group| &group.publications).peekable();
        let some = publishers.peek().is_some();
        let all = publishers.all(|publish| publish.arrival == Arrival::BackToBack);
        let direct = plan.network.kind != NetworkKind::Emulated;
        PollPause { pause: (some && all && direct).then_some(Duration::ZERO) }
    }

    /// What to tell the reader of the recording.
    pub(super) fn note(&self) -> Option<String> {
        self.pause.map(|_| {
            format!(
                "throughput test: clients poll their sockets every {LONGEST} or more often, and latencies include that"
            )
        })
    }

    /// How long to wait before the next look. `hurried` tells whether the last pause may have held somebody up.
    pub(super) fn next(&mut self, hurried: bool) -> Option<Duration> {
        let pause = self.pause.as_mut()?;
        let ns = if hurried { pause.as_ns() / 2 } else { pause.as_ns() + pause.as_ns() / 4 + FIRST.as_ns() };
        *pause = Duration::from_ns(ns).min(LONGEST);
        Some(*pause).filter(|pause| *pause >= WORTHWHILE)
    }
}

/// Whether `count` messages in one turn come near to what a window lets out. A window of 0 is unknown, and taken for
/// Mosquitto's default.
pub(super) fn nears_window(qos: Qos, count: u32, window: u32) -> bool {
    let window = if window == 0 { 20 } else { window };
    match qos {
        Qos::AtMostOnce => false,
        Qos::AtLeastOnce => count * 2 > window,
        // Each message passes through the window twice, and the two halves of the exchange wait for each other.
        Qos::ExactlyOnce => count * 8 > window,
    }
}

const FIRST: Duration = Duration::from_us(1);
/// Shorter than this, going to sleep takes longer than the sleep.
const WORTHWHILE: Duration = Duration::from_us(20);
const LONGEST: Duration = Duration::from_ms(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_grows_to_its_limit_and_shrinks_at_once() {
        let mut pace = PollPause { pause: Some(Duration::ZERO) };
        assert_eq!(pace.next(false), None);
        assert_eq!((0..100).filter_map(|_| pace.next(false)).max(), Some(LONGEST));
        assert_eq!(pace.next(true), Some(Duration::from_ns(LONGEST.as_ns() / 2)));
        assert!((0..100).filter_map(|_| pace.next(true)).all(|pause| pause >= WORTHWHILE));
        assert_eq!(pace.next(true), None);
    }

    #[test]
    fn without_back_to_back_publishers_there_is_no_pause() {
        let mut pace = PollPause { pause: None };
        assert!((0..100).all(|_| pace.next(false).is_none()));
    }
}
