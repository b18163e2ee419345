//! How long a server works on a packet, what waits meanwhile, and when it is to be woken.

use std::collections::VecDeque;

use mqttlab_plan::ServiceTime;
use mqttlab_units::{Dice, Duration, Instant, Seed};

use crate::control::event::SimEvent;
use crate::control::event_queue::EventQueue;
use crate::ids::ServerId;

/// Service times around their means.
pub(crate) struct ServiceTimes {
    means: ServiceTime,
    dice: Dice,
}

impl ServiceTimes {
    /// Of a server of this name.
    pub(crate) fn new(means: ServiceTime, name: &str, seed: Seed) -> ServiceTimes {
        ServiceTimes { means, dice: seed.derive(&format!("{name}/service")).dice() }
    }

    /// For a packet that has come.
    pub(crate) fn per_packet(&mut self) -> Duration {
        self.around(self.means.per_packet)
    }

    /// For a copy that is sent.
    pub(crate) fn per_copy(&mut self) -> Duration {
        self.around(self.means.per_copy)
    }

    fn around(&mut self, mean: Duration) -> Duration {
        if mean.is_zero() || self.means.jitter.is_zero() {
            return mean;
        }
        let factor = 1.0 + self.means.jitter.as_f64() * self.dice.normal();
        Duration::from_ns((mean.as_ns() as f64 * factor.max(0.0)) as u64)
    }
}

/// What waits for a server of one thread; it works on the first.
pub(super) struct ServiceQueue<W> {
    waiting: VecDeque<W>,
    service: ServiceTimes,
    /// When it has done with the first, once it has begun.
    done: Option<Instant>,
    /// Until then it does something else, and begins with nothing.
    rests_until: Instant,
}

impl<W> ServiceQueue<W> {
    pub(super) fn new(service: ServiceTimes) -> ServiceQueue<W> {
        ServiceQueue { waiting: VecDeque::new(), service, done: None, rests_until: Instant::ZERO }
    }

    pub(super) fn push(&mut self, work: W) {
        self.waiting.push_back(work);
    }

    /// Begins with the first, unless it has or nothing waits.
    pub(super) fn begin(&mut self, now: Instant) {
        if self.done.is_none() && !self.waiting.is_empty() {
            // What takes longer than there is time is never done.
            self.done = Some(now.max(self.rests_until).saturating_add(self.service.per_packet()));
        }
    }

    /// What it has done with by now. The next one is begun by [`ServiceQueue::begin`].
    pub(super) fn served(&mut self, now: Instant) -> Option<W> {
        self.done.take_if(|done| *done <= now)?;
        self.waiting.pop_front()
    }

    /// It stands still for so long.
    pub(super) fn delay(&mut self, by: Duration) {
        self.done = self.done.map(|done| done.saturating_add(by));
        self.rests_until = self.rests_until.saturating_add(by);
    }

    /// Puts the first that is so before the others, unless it has begun: whether there is one.
    pub(super) fn promote(&mut self, is_next: impl Fn(&W) -> bool) -> bool {
        let Some(place) = self.waiting.iter().position(is_next) else { return false };
        if place > 0 && self.done.is_none() {
            let next = self.waiting.remove(place).expect("it was found there");
            self.waiting.push_front(next);
        }
        true
    }

    /// Until then it begins with nothing.
    pub(super) fn rest_until(&mut self, until: Instant) {
        self.rests_until = self.rests_until.max(until);
    }

    /// What it works on, once it has begun.
    pub(super) fn in_service(&self) -> Option<&W> {
        self.waiting.front().filter(|_| self.done.is_some())
    }

    /// What is first.
    pub(super) fn first(&self) -> Option<&W> {
        self.waiting.front()
    }

    /// Forgets everything, and hands it out.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = W> + '_ {
        (self.done, self.rests_until) = (None, Instant::ZERO);
        self.waiting.drain(..)
    }

    /// When it has done with the first.
    pub(super) fn done(&self) -> Option<Instant> {
        self.done
    }

    /// For a copy that is sent.
    pub(super) fn per_copy(&mut self) -> Duration {
        self.service.per_copy()
    }

    /// For a packet that has come, or for a look at what has.
    pub(super) fn per_packet(&mut self) -> Duration {
        self.service.per_packet()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}

/// When a server has itself woken: the earliest time for which it is on the agenda.
pub(super) struct Alarm {
    server: ServerId,
    at: Option<Instant>,
}

impl Alarm {
    pub(super) fn new(server: ServerId) -> Alarm {
        Alarm { server, at: None }
    }

    /// Puts it on the agenda, unless it is there for as early a time.
    pub(super) fn set(&mut self, next: Option<Instant>, agenda: &mut EventQueue<SimEvent>) {
        let Some(next) = next.map(|at| at.max(agenda.now())) else { return };
        if self.at.is_none_or(|at| next < at) {
            self.at = Some(next);
            agenda.add(next, SimEvent::Server(self.server));
        }
    }

    /// Forgets for when it was set: what is on the agenda wakes nobody.
    pub(super) fn forget(&mut self) {
        self.at = None;
    }

    /// Whether it was set for now; another may have come before it.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        self.at.take_if(|at| *at == now).is_some()
    }
}
