//! When a server stood still, by what the kernel says of its processes: stopped by a signal, or waiting for a disk.
//!
//! A broker that stands still answers nobody, and what comes late of it has the latency of the stop. It is seen at
//! samples (`recording.resource_interval`), so that a shorter stop may go unseen.

use mqttlab_system::usage::StallCause;
use mqttlab_units::{Duration, Instant};

/// When one server did not run.
#[derive(Debug, Default)]
pub(crate) struct ServerStalls {
    since: Option<(Instant, StallCause)>,
    latest: Instant,
    over: Vec<(Instant, Instant, StallCause)>,
}

impl ServerStalls {
    /// What a sample saw.
    pub(crate) fn note(&mut self, now: Instant, stall: Option<StallCause>) {
        self.latest = now;
        if self.since.map(|(_, kind)| kind) == stall {
            return;
        }
        self.over.extend(self.until_now());
        self.since = stall.map(|kind| (now, kind));
    }

    /// A sentence for each stop; of a disk only for those that a broker's clients notice.
    pub(crate) fn in_words(&self, server: &str) -> Vec<String> {
        let stops = self.over.iter().copied().chain(self.until_now());
        let counts = |(from, until, kind): &(Instant, Instant, StallCause)| {
            *kind == StallCause::Stopped || until.since(*from) >= DISK_WAIT_MIN
        };
        let words = |(from, until, kind): (Instant, Instant, StallCause)| {
            let (what, remedy) = match kind {
                StallCause::Stopped => ("was stopped by a signal", "see who stops it"),
                StallCause::Disk => ("waited for a disk", "see whether the disk is full or slow"),
            };
            let seconds = |at: Instant| at.since(Instant::ZERO).as_s_f64();
            format!(
                "server `{server}` {what} from {:.1} s to {:.1} s of the run and answered nobody: {remedy}",
                seconds(from),
                seconds(until)
            )
        };
        stops.filter(counts).map(words).collect()
    }

    fn until_now(&self) -> Option<(Instant, Instant, StallCause)> {
        self.since.map(|(from, kind)| (from, self.latest, kind))
    }
}

/// Less than this is a disk at work.
const DISK_WAIT_MIN: Duration = Duration::from_ms(1000);

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(samples: &[(u64, &str)]) -> Vec<String> {
        let mut stalls = ServerStalls::default();
        for (ms, state) in samples {
            stalls.note(Instant::ZERO + Duration::from_ms(*ms), StallCause::of(state));
        }
        stalls.in_words("broker")
    }

    #[test]
    fn a_stop_goes_from_the_sample_that_saw_it_to_the_one_that_saw_its_end() {
        assert!(sentences(&[(0, "S"), (500, "R"), (1000, "S")]).is_empty());
        let stopped = sentences(&[(0, "S"), (4000, "T"), (4500, "T"), (6000, "S"), (6500, "S")]);
        assert_eq!(stopped.len(), 1);
        assert!(
            stopped[0].starts_with("server `broker` was stopped by a signal from 4.0 s to 6.0 s of the run")
        );
        // Until the end.
        assert!(sentences(&[(0, "S"), (7000, "T"), (9500, "T")])[0].contains("from 7.0 s to 9.5 s"));
        assert_eq!(sentences(&[(0, "T"), (1000, "S"), (2000, "T"), (3000, "S")]).len(), 2);
    }

    #[test]
    fn a_disk_at_work_is_no_stop_and_one_that_holds_the_broker_is() {
        assert!(sentences(&[(0, "S"), (500, "D"), (1000, "S"), (1500, "D"), (2000, "S")]).is_empty());
        assert!(
            sentences(&[(0, "D"), (500, "D"), (1500, "S")])[0]
                .contains("waited for a disk from 0.0 s to 1.5 s")
        );
    }
}
