//! The figures of progress lines: what has happened so far, and how late things were since the last line.

use std::sync::atomic::Ordering::Relaxed;

use mqttlab_net::LinkTraffic;
use mqttlab_plan::{NetworkKind, Plan};
use mqttlab_run::{Figures, GroupFigures, LinkFigures, ServerFigures, Sketch, Watched};
use mqttlab_units::{Duration, Instant};

use crate::control::Control;
use crate::emulator;
use crate::histogram::HistogramSnapshot;

/// Remembers what was told last.
pub(crate) struct LiveFigures {
    groups: Vec<String>,
    links: Vec<String>,
    latency: HistogramSnapshot,
    sender: HistogramSnapshot,
    emulator: HistogramSnapshot,
    watched: Watched,
    traffic: Vec<LinkTraffic>,
    /// Of the emulator's last answer: rates are between answers, however often somebody looks.
    told: (Instant, Vec<LinkFigures>, u64),
}

impl LiveFigures {
    /// Of a run of this plan that has not begun.
    pub(crate) fn of(plan: &Plan) -> LiveFigures {
        let is_emulated = plan.network.kind == NetworkKind::Emulated;
        LiveFigures {
            groups: plan.groups.iter().map(|group| group.name.clone()).collect(),
            links: if is_emulated { plan.link_names() } else { Vec::new() },
            latency: HistogramSnapshot::default(),
            sender: HistogramSnapshot::default(),
            emulator: HistogramSnapshot::default(),
            watched: Watched::new(),
            traffic: Vec::new(),
            told: Default::default(),
        }
    }

    /// The next line.
    pub(crate) fn tick(
        &mut self,
        control: &Control,
        emulator: Option<&emulator::Shared>,
        servers: Vec<ServerFigures>,
    ) -> Figures {
        let (now, figures) = (control.now(), &control.figures);
        let latency = since(&mut self.latency, figures.latency.snapshot());
        let sender = since(&mut self.sender, figures.sender_lateness.snapshot());
        let late = emulator.map(|shared| since(&mut self.emulator, shared.lateness.snapshot()));
        let ns = |snapshot: &HistogramSnapshot, percent| snapshot.percentile(percent).map(Duration::as_ns);
        let mut sketch = Sketch::default();
        latency.each(|time, times| sketch.count(time, times));
        if let Some(shared) = emulator {
            self.look_at_links(shared);
        }
        let (_, links, links_left_out) = &self.told;
        Figures {
            at_ns: now.as_ns(),
            connected: figures.connected.load(Relaxed),
            offered: figures.offered.load(Relaxed),
            sent: figures.sent.load(Relaxed),
            expected: figures.expected.load(Relaxed),
            delivered: figures.delivered.load(Relaxed),
            disconnects: figures.disconnects.load(Relaxed),
            latency_p50_ns: ns(&latency, 50.0),
            latency_p99_ns: ns(&latency, 99.0),
            sender_lateness_p99_ns: ns(&sender, 99.0),
            emulator_lateness_p99_ns: late.and_then(|late| ns(&late, 99.0)),
            events_per_s: None,
            speed: None,
            latency: self.watched.latencies(now, sketch),
            groups: self.groups(control),
            links: links.clone(),
            links_left_out: *links_left_out,
            servers,
            messages: figures.tail.take(),
        }
    }

    fn groups(&self, control: &Control) -> Vec<GroupFigures> {
        let told = self.groups.iter().zip(&control.figures.groups).map(|(name, counters)| {
            // What is not sent was offered before: in this order nothing is taken from too little.
            let unsent = counters.unsent.load(Relaxed);
            let offered = counters.offered.load(Relaxed);
            GroupFigures {
                group: name.clone(),
                offered,
                sent: offered.saturating_sub(unsent),
                delivered: counters.delivered.load(Relaxed),
            }
        });
        told.collect()
    }

    fn look_at_links(&mut self, shared: &emulator::Shared) {
        let at = shared.traffic.ask(&mut self.traffic);
        if at > self.told.0 {
            let names = &self.links;
            let (links, left_out) = self.watched.links(at, self.traffic.iter().copied(), |link| &names[link]);
            self.told = (at, links, left_out);
        }
    }
}

fn since(last: &mut HistogramSnapshot, now: HistogramSnapshot) -> HistogramSnapshot {
    let between = now.since(last);
    *last = now;
    between
}
