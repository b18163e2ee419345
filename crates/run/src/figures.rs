//! What a run looks like while it goes on: totals so far, and for each group, link and server what a watcher wants to see.
//!
//! Counts are totals since the run began, so that a watcher who misses a line, or comes late, loses nothing; rates and
//! latencies are of the time since the line before, or of the last few lines. `docs/reference/progress.md` says it for readers of the
//! lines.
//!
//! What it does not hold: anything that is not in the recording afterwards.

use std::collections::VecDeque;

use mqttlab_net::{Drops, LinkTraffic};
use mqttlab_rows::Received;
use mqttlab_units::{Duration, Histogram, Instant};
use serde::{Deserialize, Serialize};

/// Latencies counted by size: enough to draw how they are distributed while a run goes on. The recording has them.
pub type Sketch = Histogram<4>;

/// The figures of one progress line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Run time.
    pub at_ns: u64,
    /// Clients connected now.
    pub connected: u32,
    /// Messages due so far.
    pub offered: u64,
    /// Messages handed to sessions so far.
    pub sent: u64,
    /// Deliveries that these should cause.
    pub expected: u64,
    /// Deliveries so far.
    pub delivered: u64,
    /// Connections lost so far.
    pub disconnects: u64,
    /// Median latency of the deliveries since the last line; `null` when there were none.
    pub latency_p50_ns: Option<u64>,
    /// 99th percentile of these.
    pub latency_p99_ns: Option<u64>,
    /// How late the senders were since the last line, 99th percentile; live only.
    pub sender_lateness_p99_ns: Option<u64>,
    /// How late the emulator was since the last line, 99th percentile; live only.
    pub emulator_lateness_p99_ns: Option<u64>,
    /// Events in a second of real time since the last line; simulations only.
    pub events_per_s: Option<u64>,
    /// Simulated seconds in a second of real time since the last line; simulations only.
    pub speed: Option<f64>,
    /// Latencies of the last lines together.
    pub latency: RecentLatency,
    /// The plan's groups, in order.
    pub groups: Vec<GroupFigures>,
    /// Links and then media, in order; where there are more than [`LINKS_MAX`], those that did most since the last line.
    pub links: Vec<LinkFigures>,
    /// Links that are not among them.
    pub links_left_out: u64,
    /// The servers whose processes the run has started; live only.
    pub servers: Vec<ServerFigures>,
    /// A sample of what was delivered since the last line: its first messages, at most [`MESSAGES_MAX`].
    pub messages: Vec<MessageFigures>,
}

/// A message that was delivered. Names are as they are in the plan, but no longer than [`NAME_CHARS_MAX`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageFigures {
    /// When its receiver had it.
    pub at_ns: u64,
    /// The topic that it was published to.
    pub topic: String,
    /// Who published it.
    pub publisher: String,
    /// Who received it.
    pub subscriber: String,
    /// Quality of service of the delivery.
    pub qos: u8,
    /// Its size.
    pub payload_bytes: u32,
    /// From when it was due; `null` where that is not known.
    pub latency_ns: Option<u64>,
}

impl MessageFigures {
    /// A delivery in words: its topic, who published it and who received it.
    pub fn of(row: &Received, latency: Option<Duration>, topic: &str, clients: [&str; 2]) -> MessageFigures {
        let [publisher, subscriber] = clients.map(MessageFigures::name);
        MessageFigures {
            at_ns: row.received.as_ns(),
            topic: MessageFigures::name(topic),
            publisher,
            subscriber,
            qos: row.qos,
            payload_bytes: row.payload_bytes,
            latency_ns: latency.map(Duration::as_ns),
        }
    }

    /// A name or topic as lines hold it: MQTT allows 64 KB, four times a second and five times a line.
    fn name(text: &str) -> String {
        match text.char_indices().nth(NAME_CHARS_MAX) {
            None => text.to_owned(),
            Some((end, _)) => format!("{}…", &text[..end]),
        }
    }
}

/// The latencies of the last lines' deliveries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentLatency {
    /// The run time since which they were delivered.
    pub since_ns: u64,
    /// Deliveries.
    pub count: u64,
    /// Median; `null` when there were none.
    pub p50_ns: Option<u64>,
    /// 90th percentile.
    pub p90_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// How they are distributed: latencies up to this, and how many of them are above the pair before. Pairs without any are
    /// left out.
    pub buckets: Vec<(u64, u64)>,
}

/// What a group has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupFigures {
    /// Its name.
    pub group: String,
    /// Messages that its clients were due to publish.
    pub offered: u64,
    /// Messages that their sessions have taken.
    pub sent: u64,
    /// Deliveries to its clients, repetitions not counted.
    pub delivered: u64,
}

/// What a link or a medium has done so far, and what waits there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkFigures {
    /// Its name.
    pub link: String,
    /// Frames that arrive at its end.
    pub frames: u64,
    /// Their bytes; of a medium, all MAC bytes on the air.
    pub bytes: u64,
    /// Bits carried in a second of run time since the last line.
    pub rate_bit_s: u64,
    /// Frames that wait or are being sent.
    pub queue_frames: u64,
    /// Their bytes.
    pub queue_bytes: u64,
    /// Dropped frames by cause, as in the recording's `packets`. Causes without any are left out.
    #[serde(default)]
    pub drops: Drops,
}

/// What a server's processes have used, as they were last sampled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerFigures {
    /// Its name.
    pub server: String,
    /// Processor time so far.
    pub cpu_s: f64,
    /// Memory resident.
    pub rss_bytes: u64,
}

/// Makes figures of one line after the other: remembers what it takes to tell rates and recent latencies.
#[derive(Debug, Default)]
pub struct Watched {
    latencies: RecentLatencies,
    /// When links were last looked at, and the bytes that each had carried.
    links_at: Instant,
    links: Vec<u64>,
}

impl Watched {
    /// Of a run that has not begun.
    pub fn new() -> Watched {
        Watched::default()
    }

    /// Adds the latencies of the deliveries since the last line, and tells those of the last few lines.
    pub fn latencies(&mut self, now: Instant, since_last: Sketch) -> RecentLatency {
        self.latencies.add(now, since_last);
        self.latencies.snapshot()
    }

    /// What links have done, those that did most where there are more than a line should hold, and how many are left out.
    pub fn links<'n>(
        &mut self,
        now: Instant,
        traffic: impl Iterator<Item = LinkTraffic>,
        name: impl Fn(usize) -> &'n str,
    ) -> (Vec<LinkFigures>, u64) {
        let passed_s = now.checked_since(self.links_at).unwrap_or_default().as_s_f64();
        let mut seen: Vec<(usize, LinkTraffic, u64)> = Vec::new();
        for (index, traffic) in traffic.enumerate() {
            if index == self.links.len() {
                self.links.push(0);
            }
            let carried =
                traffic.bytes.saturating_sub(std::mem::replace(&mut self.links[index], traffic.bytes));
            seen.push((index, traffic, carried));
        }
        self.links_at = now;
        let left_out = seen.len().saturating_sub(LINKS_MAX);
        if left_out > 0 {
            seen.select_nth_unstable_by_key(LINKS_MAX, |(_, traffic, carried)| {
                std::cmp::Reverse((*carried, traffic.queue_bytes, traffic.drops.total()))
            });
            seen.truncate(LINKS_MAX);
            seen.sort_unstable_by_key(|(index, ..)| *index);
        }
        let figures = |(index, traffic, carried): &(usize, LinkTraffic, u64)| LinkFigures {
            link: name(*index).to_owned(),
            frames: traffic.frames,
            bytes: traffic.bytes,
            rate_bit_s: if passed_s > 0.0 { (*carried as f64 * 8.0 / passed_s).round() as u64 } else { 0 },
            queue_frames: traffic.queue_frames,
            queue_bytes: traffic.queue_bytes,
            drops: traffic.drops,
        };
        (seen.iter().map(figures).collect(), left_out as u64)
    }
}

/// The sketches of the last lines.
#[derive(Debug, Default)]
struct RecentLatencies {
    /// When the line before the first of them was.
    since: Instant,
    lines: VecDeque<(Instant, Sketch)>,
}

impl RecentLatencies {
    /// Of the deliveries since the last line.
    fn add(&mut self, now: Instant, sketch: Sketch) {
        self.lines.push_back((now, sketch));
        if self.lines.len() > LINES
            && let Some((at, _)) = self.lines.pop_front()
        {
            self.since = at;
        }
    }

    fn snapshot(&self) -> RecentLatency {
        let mut all = Sketch::default();
        self.lines.iter().for_each(|(_, sketch)| all.add(sketch));
        RecentLatency {
            since_ns: self.since.as_ns(),
            count: all.len(),
            p50_ns: all.percentile(50.0),
            p90_ns: all.percentile(90.0),
            p99_ns: all.percentile(99.0),
            buckets: all.ranges().map(|(_, end, count)| (end, count)).collect(),
        }
    }
}

/// Five seconds of lines.
const LINES: usize = 20;
/// Links in a line at most.
pub const LINKS_MAX: usize = 64;
/// Messages in a line at most: with four lines a second, 20 a second.
pub const MESSAGES_MAX: usize = 5;
/// Characters of a name in a line.
const NAME_CHARS_MAX: usize = 120;

#[cfg(test)]
mod tests {
    use mqttlab_net::Cause;
    use mqttlab_units::Duration;

    use super::*;

    fn carried(bytes: u64) -> LinkTraffic {
        LinkTraffic { frames: 1, bytes, ..LinkTraffic::default() }
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(ms)
    }

    #[test]
    fn a_name_of_any_length_makes_a_line_of_bounded_length() {
        let name = format!("long/{}", "é".repeat(5_000));
        let told = MessageFigures::name(&name);
        assert_eq!(told.chars().count(), NAME_CHARS_MAX + 1);
        assert!(told.ends_with('…') && name.starts_with(told.trim_end_matches('…')));
        assert_eq!(MessageFigures::name("short"), "short");
    }

    #[test]
    fn a_rate_is_what_was_carried_since_the_line_before() {
        let mut watched = Watched::new();
        let mut rates = |ms, bytes| {
            let (links, left_out) = watched.links(at(ms), [carried(bytes)].into_iter(), |_| "up");
            (links[0].rate_bit_s, links[0].bytes, left_out)
        };
        assert_eq!(rates(250, 1_000), (32_000, 1_000, 0));
        assert_eq!(rates(750, 1_500), (8_000, 1_500, 0));
        assert_eq!(rates(750, 1_500), (0, 1_500, 0), "no time has passed");
    }

    #[test]
    fn of_many_links_a_line_holds_those_that_did_most_in_their_order() {
        let mut watched = Watched::new();
        let names: Vec<String> = (0..100).map(|index| format!("link {index}")).collect();
        // The later a link, the more it has carried; the first one only drops.
        let mut drops = Drops::default();
        drops.note(Cause::QueueFull, 7);
        let traffic = |index: u64| match index {
            0 => LinkTraffic { drops, ..LinkTraffic::default() },
            _ => carried(index),
        };
        let (links, left_out) = watched.links(at(1), (0..100).map(traffic), |index| &names[index]);
        assert_eq!((links.len(), left_out), (64, 36));
        assert_eq!((&*links[0].link, &*links[63].link), ("link 36", "link 99"));
        // Nobody has carried anything since: what drops goes first.
        let (links, _) = watched.links(at(2), (0..100).map(traffic), |index| &names[index]);
        assert_eq!((&*links[0].link, links[0].drops.of(Cause::QueueFull)), ("link 0", 7));
    }

    #[test]
    fn causes_without_drops_are_not_in_a_line() {
        let mut drops = Drops::default();
        drops.note(Cause::BitError, 3);
        assert_eq!(serde_json::to_string(&drops).unwrap(), r#"{"bit_error":3}"#);
        assert_eq!(serde_json::from_str::<Drops>(r#"{"bit_error":3}"#).unwrap(), drops);
        assert_eq!(serde_json::from_str::<Drops>("{}").unwrap(), Drops::default());
    }

    #[test]
    fn what_is_older_than_the_last_lines_is_forgotten() {
        let mut recent = RecentLatencies::default();
        let at = |line: u64| Instant::ZERO + Duration::from_ms(250 * line);
        for line in 1..=25 {
            let mut sketch = Sketch::default();
            sketch.count(Duration::from_ms(line).as_ns(), 1);
            recent.add(at(line), sketch);
        }
        let told = recent.snapshot();
        assert_eq!((told.count, told.since_ns), (20, at(5).as_ns()));
        assert!(told.buckets[0].0 >= 6_000_000, "the sixth line is the first that is left");
    }
}
