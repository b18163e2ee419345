//! What the engine says while it works: [`Progress`] as JSON, one object a line.

use std::io::{self, Write};
use std::sync::atomic::Ordering::Relaxed;

use mqttlab_plan::{Phase, Progress};
use mqttlab_units::{Duration, Instant};

use crate::control::Control;
use crate::histogram::{Histogram, Snapshot};

/// Writes progress lines, and remembers what it has said.
pub struct Announcer {
    out: Box<dyn Write + Send>,
    warnings: Vec<String>,
    latency: Snapshot,
    sender: Snapshot,
    emulator: Snapshot,
    is_broken: bool,
}

impl Announcer {
    /// Writes to `out`.
    pub fn new(out: Box<dyn Write + Send>) -> Announcer {
        let (latency, sender, emulator) = Default::default();
        Announcer { out, warnings: Vec::new(), latency, sender, emulator, is_broken: false }
    }

    /// Says one thing. Whether anybody listens is asked by [`Announcer::is_broken`].
    pub fn say(&mut self, progress: &Progress) {
        let line = serde_json::to_string(progress).expect("progress is made of strings and numbers") + "\n";
        let written = self.out.write_all(line.as_bytes()).and_then(|()| self.out.flush());
        self.is_broken |= matches!(written, Err(error) if error.kind() == io::ErrorKind::BrokenPipe);
    }

    /// Nobody listens any more.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// A phase begins.
    pub fn phase(&mut self, phase: Phase, at: Instant, length: Duration) {
        self.say(&Progress::Phase { phase, at_ns: at.as_ns(), length_ns: length.as_ns() });
    }

    /// Something to be read before the numbers are trusted; said once, and kept for the recording.
    pub fn warn(&mut self, text: String) {
        if !self.warnings.contains(&text) {
            self.say(&Progress::Warning { text: text.clone() });
            self.warnings.push(text);
        }
    }

    /// All warnings so far.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The live figures, and how late things were since the last time.
    pub fn tick(&mut self, control: &Control, emulator: Option<&Histogram>) {
        let figures = &control.figures;
        let latency = since(&mut self.latency, figures.latency.snapshot());
        let sender = since(&mut self.sender, figures.sender_lateness.snapshot());
        let emulator = emulator.map(|histogram| since(&mut self.emulator, histogram.snapshot()));
        let ns = |snapshot: &Snapshot, percent| snapshot.percentile(percent).map(Duration::as_ns);
        self.say(&Progress::Tick {
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
        });
    }
}

fn since(last: &mut Snapshot, now: Snapshot) -> Snapshot {
    let between = now.since(last);
    *last = now;
    between
}
