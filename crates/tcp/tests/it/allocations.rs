//! What an endpoint costs in memory: little at rest, and nothing more for each segment once warm.

use std::sync::Arc;

use mqttlab_counting::{calls, held};
use mqttlab_tcp::{ConnectionState, Endpoint, Profile, Role, Segment, TcpOutput};
use mqttlab_units::{Duration, Instant};

/// Two endpoints 1 ms apart on a network that loses nothing.
struct Pair {
    ends: [Endpoint; 2],
    now: Instant,
    to: [Vec<Segment>; 2],
    segments: u64,
}

impl Pair {
    fn established(profile: &Arc<Profile>) -> Pair {
        let ends = [Role::Active, Role::Passive].map(|role| Endpoint::new(Arc::clone(profile), role));
        // Room enough beforehand: the network's memory is not the endpoint's.
        let to = [(); 2].map(|()| Vec::with_capacity(100));
        let mut pair = Pair { ends, now: Instant::ZERO, to, segments: 0 };
        pair.ends[0].open(pair.now);
        pair.settle();
        assert!(pair.ends.iter().all(|end| end.state() == ConnectionState::Established));
        pair
    }

    /// A request, and when all of it has come, its answer.
    fn exchange(&mut self, request: u64, answer: u64) {
        for (from, bytes) in [(0, request), (1, answer)] {
            assert_eq!(self.ends[from].write(self.now, bytes), bytes);
            self.run(Duration::from_ms(500));
            assert_eq!(self.ends[1 - from].read(self.now, u64::MAX), bytes);
        }
        self.run(Duration::from_ms(500));
    }

    /// Carries segments and lets timers fire for so long.
    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        self.settle();
        let due = |ends: &[Endpoint; 2]| ends.iter().filter_map(Endpoint::next_deadline).min();
        while let Some(at) = due(&self.ends).filter(|at| *at <= end) {
            self.now = at;
            self.ends.iter_mut().for_each(|end| end.tick(at));
            self.settle();
        }
        self.now = self.now.max(end);
    }

    /// Carries segments until both are silent.
    fn settle(&mut self) {
        loop {
            self.drain();
            if self.to.iter().all(Vec::is_empty) {
                return;
            }
            self.now += Duration::from_ms(1);
            for side in 0..2 {
                let ends = &mut self.ends;
                self.to[side].drain(..).for_each(|segment| ends[side].receive(self.now, &segment));
            }
        }
    }

    fn drain(&mut self) {
        for side in 0..2 {
            while let Some(output) = self.ends[side].poll() {
                if let TcpOutput::Transmit(segment) = output {
                    self.to[1 - side].push(segment);
                    self.segments += 1;
                }
            }
        }
    }
}

#[test]
fn once_warm_no_segment_allocates() {
    for profile in [crate::stacks::linux(), crate::stacks::netbsd_2005(), crate::stacks::microcontroller()] {
        let mut pair = Pair::established(&Arc::new(profile));
        (0..10).for_each(|_| pair.exchange(1000, 200));
        let (before, segments) = (calls(), pair.segments);
        (0..1000).for_each(|_| pair.exchange(1000, 200));
        assert!(pair.segments - segments >= 2000, "segments were exchanged");
        assert_eq!(calls() - before, 0, "allocations");
    }
}

#[test]
fn an_idle_connection_keeps_little_more_than_a_kibibyte_at_each_end() {
    let profile = Arc::new(crate::stacks::linux());
    let before = held();
    let mut pair = Pair::established(&profile);
    (0..10).for_each(|_| pair.exchange(1000, 200));
    let network: usize = pair.to.iter().map(|queue| queue.capacity() * size_of::<Segment>()).sum();
    let heap = (held() - before) as usize - network;
    let each = size_of::<Endpoint>() + heap / 2;
    assert!(each <= 1080, "{each} bytes, {} of them on the heap", heap / 2);
}
