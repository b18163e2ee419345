//! How late the emulator was on each path, and how late it may be there.
//!
//! A frame is handed over once on its path, however many links that has. Latencies are of whole ways: a message goes to a
//! server and on to its receiver, a segment goes one way and its acknowledgement the other. So a path bears 2 % of the
//! mean delay of the paths on the shortest such way over it, and 100 µs where that is more. Where clients run on a
//! server's own host, a way may be that path alone. Paths that bear the same are counted together. Where delays change in
//! the course of a run, a frame counts by those that its path had when it was handed over.

use std::collections::{BTreeMap, BTreeSet};

use mqttlab_net::{LinkChange, LinkSpec};
use mqttlab_plan::{Hop, PathPlan};
use mqttlab_units::Duration;
use serde_json::{Value, json};

use crate::histogram::{AtomicHistogram, HistogramSnapshot};
use crate::network::wiring::{Change, Wiring};

/// Every path bears this much.
pub const LATENESS: Duration = Duration::from_us(100);

/// Counters for the frames of all paths.
#[derive(Default)]
pub struct PathLatenessCounters {
    /// After how many changes of links, and the place of each path's counter from then on.
    of_path: Vec<(usize, Vec<usize>)>,
    counters: Vec<Counter>,
}

struct Counter {
    limit: Duration,
    paths: usize,
    first: usize,
    late: AtomicHistogram,
}

/// Paths that bear the same lateness, and how late frames came there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathLateness {
    /// How late a frame may be at the 99th percentile.
    pub limit: Duration,
    /// How many paths there are.
    pub paths: usize,
    /// The hosts at the ends of the first of them.
    pub ends: [String; 2],
    /// How late frames were handed over.
    pub late: HistogramSnapshot,
}

impl PathLatenessCounters {
    /// Nothing counted yet.
    pub fn of(wiring: &Wiring) -> PathLatenessCounters {
        let spans = spans(wiring);
        // By limit, the paths that ever have it.
        let mut places: BTreeMap<Duration, BTreeSet<usize>> = BTreeMap::new();
        for (_, limits) in &spans {
            for (path, limit) in limits.iter().enumerate() {
                places.entry(*limit).or_default().insert(path);
            }
        }
        let place = |limit: &Duration| places.range(..limit).count();
        let of_path = spans.iter().map(|(from, limits)| (*from, limits.iter().map(place).collect()));
        let of_path = of_path.collect();
        let counter = |(&limit, paths): (&Duration, &BTreeSet<usize>)| Counter {
            limit,
            paths: paths.len(),
            first: paths.first().copied().unwrap_or_default(),
            late: AtomicHistogram::default(),
        };
        PathLatenessCounters { of_path, counters: places.iter().map(counter).collect() }
    }

    /// A frame came over this path after so many changes of links, so late.
    pub fn count(&self, changes: usize, path: usize, late: Duration) {
        let span = self.of_path.partition_point(|(from, _)| *from <= changes) - 1;
        self.counters[self.of_path[span].1[path]].late.count(late);
    }

    /// How late frames came, over all paths.
    pub fn snapshot(&self) -> HistogramSnapshot {
        let all = self.counters.iter().map(|counter| counter.late.snapshot());
        all.reduce(|sum, late| sum.and(&late)).unwrap_or_else(|| AtomicHistogram::default().snapshot())
    }

    /// The same by limit, the smallest first; `ends` names the hosts at a path's ends.
    pub fn by_limit(&self, ends: impl Fn(usize) -> [String; 2]) -> Vec<PathLateness> {
        let late = |Counter { limit, paths, first, late }: &Counter| PathLateness {
            limit: *limit,
            paths: *paths,
            ends: ends(*first),
            late: late.snapshot(),
        };
        self.counters.iter().map(late).collect()
    }
}

impl PathLateness {
    /// As `run.json` holds it.
    pub fn facts(&self) -> Value {
        let [from, to] = &self.ends;
        let mut facts =
            json!({ "from": from, "to": to, "paths": self.paths, "limit_ns": self.limit.as_ns() });
        for (name, value) in self.late.summary().as_object().into_iter().flatten() {
            facts[name] = value.clone();
        }
        facts
    }

    /// In words, behind "on".
    pub fn words(&self) -> String {
        let [from, to] = &self.ends;
        match self.paths {
            1 => format!("the path from `{from}` to `{to}`"),
            paths => format!("{paths} paths, such as from `{from}` to `{to}`"),
        }
    }
}

/// What each path bears from which change on, as long as that stays.
fn spans(wiring: &Wiring) -> Vec<(usize, Vec<Duration>)> {
    // A trace goes on all the time: its shortest delay counts.
    let traced: BTreeMap<&str, Duration> = wiring
        .traces
        .iter()
        .filter_map(|trace| Some((trace, trace.delay_min()?)))
        .flat_map(|(trace, least)| trace.links.iter().map(move |name| (name.as_str(), least)))
        .collect();
    let delay = |link: &LinkSpec| traced.get(link.name.as_str()).copied().unwrap_or(link.delay.mean);
    let mut delays: Vec<Duration> = wiring.links.iter().map(delay).collect();
    let mut spans = vec![(0, limits(wiring, &delays))];
    for (place, changed) in wiring.changes.iter().enumerate() {
        let Change::Links { links, change: LinkChange::Spec { spec } } = &changed.change else { continue };
        for &link in links {
            // One spec may be for several links.
            delays[link] = traced.get(wiring.links[link].name.as_str()).copied().unwrap_or(spec.delay.mean);
        }
        let limits = limits(wiring, &delays);
        if spans.last().is_none_or(|(_, before)| *before != limits) {
            spans.push((place + 1, limits));
        }
    }
    spans
}

/// What each path bears where links have these delays.
fn limits(wiring: &Wiring, delays: &[Duration]) -> Vec<Duration> {
    let delay = |hop: &Hop| match hop {
        Hop::Link(link) => delays[*link].as_ns(),
        Hop::Radio { .. } => 0,
    };
    let delays: Vec<u64> = wiring.paths.iter().map(|path| path.hops.iter().map(delay).sum()).collect();
    // The shortest path that begins, and that ends, at each host.
    let (mut begins, mut ends) = (BTreeMap::new(), BTreeMap::new());
    for (path, &delay) in wiring.paths.iter().zip(&delays) {
        for (shortest, host) in [(&mut begins, path.from), (&mut ends, path.to)] {
            shortest.entry(host).and_modify(|least: &mut u64| *least = delay.min(*least)).or_insert(delay);
        }
    }
    let limit = |(path, &delay): (&_, &u64)| {
        let PathPlan { from, to, .. } = path;
        let beside = [begins.get(to), ends.get(from)].into_iter().flatten().min();
        let of_two = beside.map_or(delay, |other| (delay + other) / 2);
        let alone =
            wiring.clients_beside_servers.contains(from) || wiring.clients_beside_servers.contains(to);
        let each = if alone { delay.min(of_two) } else { of_two };
        Duration::from_ns(each / 50).max(LATENESS)
    };
    wiring.paths.iter().zip(&delays).map(limit).collect()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use mqttlab_net::{TraceCourse, TraceSpec, TraceValues};
    use mqttlab_units::Seed;

    use super::*;
    use crate::network::calibration::constant_delay;
    use crate::network::wiring::WiringChange;

    /// A server, host 0, and a host for each pair of delays to it and back, in milliseconds.
    fn star(delays_ms: &[[u64; 2]], clients_beside_servers: &[usize]) -> Wiring {
        let mut paths = Vec::new();
        for host in 1..=delays_ms.len() {
            let hop = |way: usize| vec![Hop::Link(2 * (host - 1) + way)];
            paths.push(PathPlan { from: host, to: 0, hops: hop(0) });
            paths.push(PathPlan { from: 0, to: host, hops: hop(1) });
        }
        Wiring {
            addresses: vec![Ipv4Addr::LOCALHOST; delays_ms.len() + 1],
            server_hosts: BTreeSet::from([0]),
            clients_beside_servers: clients_beside_servers.iter().copied().collect(),
            links: delays_ms.iter().flatten().map(|ms| constant_delay(Duration::from_ms(*ms))).collect(),
            media: Vec::new(),
            paths,
            stations: BTreeMap::new(),
            seed: Seed(1),
            changes: Vec::new(),
            nats: Vec::new(),
            traces: Vec::new(),
        }
    }

    fn limits_us(delays_ms: &[[u64; 2]], beside: &[usize]) -> Vec<u64> {
        in_us(&spans(&star(delays_ms, beside))[0].1)
    }

    fn in_us(limits: &[Duration]) -> Vec<u64> {
        limits.iter().map(|limit| limit.as_ns() / 1000).collect()
    }

    #[test]
    fn each_path_bears_a_share_of_the_shortest_way_over_it() {
        assert_eq!(limits_us(&[[10, 10]], &[]), [200, 200]);
        assert_eq!(limits_us(&[[550, 550], [1, 1]], &[]), [5_510, 5_510, 100, 100], "LAN beside a satellite");
        assert_eq!(limits_us(&[[0, 550]], &[]), [5_500, 5_500], "shaped in one direction alone");
        assert_eq!(
            limits_us(&[[0, 550]], &[0]),
            [100, 5_500],
            "somebody beside the server hears what goes up"
        );
        assert_eq!(limits_us(&[[0, 0]], &[]), [100, 100]);
    }

    #[test]
    fn a_path_without_links_has_a_limit_too() {
        let mut wiring = star(&[[0, 550], [0, 0]], &[]);
        wiring.paths[2].hops.clear();
        wiring.paths[3].hops.clear();
        assert_eq!(in_us(&spans(&wiring)[0].1), [100, 5_500, 100, 100]);
    }

    #[test]
    fn a_path_that_follows_a_trace_bears_by_its_shortest_delay() {
        let mut wiring = star(&[[50, 50]], &[]);
        let values = TraceValues {
            at: vec![Duration::ZERO, Duration::from_s(1)],
            delay: Some([90, 10].map(Duration::from_ms).to_vec()),
            ..TraceValues::default()
        };
        let links = wiring.links.iter().map(|link| link.name.clone()).collect();
        let (name, begins_at, period) = ("t".into(), Duration::ZERO, None);
        wiring.traces =
            vec![TraceSpec { name, links, begins_at, period, course: TraceCourse::Values(values) }];
        assert_eq!(in_us(&spans(&wiring)[0].1), [200, 200]);
    }

    #[test]
    fn a_frame_counts_by_the_delays_that_its_path_had() {
        let mut wiring = star(&[[10, 10]], &[]);
        let change = |ms: u64, change| {
            let change = Change::Links { links: vec![0, 1], change };
            WiringChange { at: Duration::from_ms(ms), change }
        };
        let spec = |ms| LinkChange::Spec { spec: Box::new(constant_delay(Duration::from_ms(ms))) };
        wiring.changes = vec![change(1, LinkChange::Up), change(2, spec(50)), change(3, spec(10))];
        let late = PathLatenessCounters::of(&wiring);
        for (changes, us) in [(0, 10), (1, 11), (2, 12), (3, 13)] {
            late.count(changes, 0, Duration::from_us(us));
        }
        let by_limit = late.by_limit(|_| Default::default());
        let found: Vec<_> =
            by_limit.iter().map(|one| (one.limit.as_ns() / 1000, one.paths, one.late.len())).collect();
        assert_eq!(found, [(200, 2, 3), (1_000, 2, 1)]);
    }

    #[test]
    fn what_is_counted_on_a_path_is_counted_with_those_that_bear_the_same() {
        let late = PathLatenessCounters::of(&star(&[[550, 550], [1, 1]], &[]));
        late.count(0, 2, Duration::from_ms(3));
        late.count(0, 1, Duration::from_us(7));
        let by_limit = late.by_limit(|path| [path.to_string(), String::new()]);
        let facts: Vec<_> =
            by_limit.iter().map(|one| (one.paths, one.ends[0].as_str(), one.late.max())).collect();
        assert_eq!(facts, [(2, "2", Duration::from_ms(3)), (2, "0", Duration::from_us(7))]);
        assert_eq!((late.snapshot().len(), late.snapshot().max()), (2, Duration::from_ms(3)));
    }
}
