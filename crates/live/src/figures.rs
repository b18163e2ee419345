//! The figures of progress lines: what has happened so far, and how late things were since the last line.

use std::sync::atomic::Ordering::Relaxed;

use mqttlab_run::Progress;
use mqttlab_units::Duration;

use crate::control::Control;
use crate::histogram::{Histogram, Snapshot};

/// Remembers what was told last.
#[derive(Default)]
pub struct LiveFigures {
    latency: Snapshot,
    sender: Snapshot,
    emulator: Snapshot,
}

impl LiveFigures {
    /// The next line.
    pub fn tick(&mut self, control: &Control, emulator: Option<&Histogram>) -> Progress {
        let figures = &control.figures;
        let latency = since(&mut self.latency, figures.latency.snapshot());
        let sender = since(&mut self.sender, figures.sender_lateness.snapshot());
        let emulator = emulator.map(|histogram| since(&mut self.emulator, histogram.snapshot()));
        let ns = |snapshot: &Snapshot, percent| snapshot.percentile(percent).map(Duration::as_ns);
        Progress::Tick {
            at_ns: control.now().as_ns(),
            connected: figures.connected.load(Relaxed),
            offered: figures.offered.load(Relaxed),
            sent: figures.sent.load(Relaxed),
            delivered: figures.delivered.load(Relaxed),
            disconnects: figures.disconnects.load(Relaxed),
            latency_p50_ns: ns(&latency, 50.0),
            latency_p99_ns: ns(&latency, 99.0),
            sender_lateness_p99_ns: ns(&sender, 99.0),
            emulator_lateness_p99_ns: emulator.and_then(|emulator| ns(&emulator, 99.0)),
            events_per_s: None,
        }
    }
}

fn since(last: &mut Snapshot, now: Snapshot) -> Snapshot {
    let between = now.since(last);
    *last = now;
    between
}
