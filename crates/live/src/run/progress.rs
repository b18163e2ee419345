//! The figures of progress lines: what has happened so far, and how late things were since the last line.

use mqttlab_net::LinkTraffic;
use mqttlab_plan::{NetworkKind, Plan};
use mqttlab_run::{Figures, GroupFigures, LinkFigures, ServerFigures, Sketch, Watched};
use mqttlab_units::{Duration, Instant};

use crate::control::Control;
use crate::histogram::HistogramSnapshot;
use crate::network::emulator;
use crate::parts::client_share::ClientsStatus;

/// Remembers what was told last.
pub(crate) struct LiveProgress {
    groups: Vec<String>,
    links: Vec<String>,
    latency: HistogramSnapshot,
    sender: HistogramSnapshot,
    emulator: HistogramSnapshot,
    watched: Watched,
    traffic: Vec<LinkTraffic>,
    /// Of the emulator's last answer: rates are between answers, however often somebody looks.
    last_links: (Instant, Vec<LinkFigures>, u64),
}

impl LiveProgress {
    /// Of a run of this plan that has not begun.
    pub(crate) fn of(plan: &Plan) -> LiveProgress {
        let is_emulated = plan.network.kind == NetworkKind::Emulated;
        LiveProgress {
            groups: plan.groups.iter().map(|group| group.name.clone()).collect(),
            links: if is_emulated { plan.link_names() } else { Vec::new() },
            latency: HistogramSnapshot::default(),
            sender: HistogramSnapshot::default(),
            emulator: HistogramSnapshot::default(),
            watched: Watched::new(),
            traffic: Vec::new(),
            last_links: Default::default(),
        }
    }

    /// The next line. `others` are the clients of parts that other engines perform.
    pub(crate) fn tick(
        &mut self,
        control: &Control,
        others: &ClientsStatus,
        emulator: Option<&emulator::EmulatorCounters>,
        servers: Vec<ServerFigures>,
    ) -> Figures {
        let (now, figures) = (control.now(), &control.figures);
        let latency = since(&mut self.latency, figures.latency.snapshot());
        let sender = since(&mut self.sender, figures.sender_lateness.all());
        let late = emulator.map(|shared| since(&mut self.emulator, shared.lateness.snapshot()));
        let ns = |snapshot: &HistogramSnapshot, percent| snapshot.percentile(percent).map(Duration::as_ns);
        let all = figures.clients_status().and(others);
        let mut sketch = Sketch::default();
        latency.ranges().for_each(|(end, times)| sketch.count(end.as_ns(), times));
        if let Some(shared) = emulator {
            self.look_at_links(shared);
        }
        let (_, links, links_left_out) = &self.last_links;
        Figures {
            at_ns: now.as_ns(),
            connected: all.connected,
            offered: all.offered,
            sent: all.sent,
            expected: all.expected,
            delivered: all.delivered,
            disconnects: all.disconnects,
            latency_p50_ns: ns(&latency, 50.0),
            latency_p99_ns: ns(&latency, 99.0),
            sender_lateness_p99_ns: ns(&sender, 99.0),
            emulator_lateness_p99_ns: late.and_then(|late| ns(&late, 99.0)),
            events_per_s: None,
            speed: None,
            latency: self.watched.latencies(now, sketch),
            groups: self.groups(&all),
            links: links.clone(),
            links_left_out: *links_left_out,
            servers,
            messages: figures.sample.drain(),
        }
    }

    fn groups(&self, all: &ClientsStatus) -> Vec<GroupFigures> {
        let told = self.groups.iter().zip(&all.groups).map(|(name, &[offered, unsent, delivered])| {
            GroupFigures { group: name.clone(), offered, sent: offered.saturating_sub(unsent), delivered }
        });
        told.collect()
    }

    fn look_at_links(&mut self, shared: &emulator::EmulatorCounters) {
        let at = shared.traffic.take_answer(&mut self.traffic);
        if at > self.last_links.0 {
            let names = &self.links;
            let (links, left_out) = self.watched.links(at, self.traffic.iter().copied(), |link| &names[link]);
            self.last_links = (at, links, left_out);
        }
    }
}

fn since(last: &mut HistogramSnapshot, now: HistogramSnapshot) -> HistogramSnapshot {
    let between = now.since(last);
    *last = now;
    between
}
