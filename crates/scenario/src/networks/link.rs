//! One direction of a link, as a scenario writes it.

use std::borrow::Cow;

use mqttlab_fields::{
    AsPart, Delay, Flat, Kind, Maybe, Node, PositiveShortTime, Products, Reader, Rule, Rules, SIZE, Shape,
    Size, Table, Unread, Value, fields, plain, shown,
};
use mqttlab_net::{LinkSpec, QueueDiscipline};
use mqttlab_units::{BitRate, Duration};

use super::trace::{After, Trace, TraceFile, read_trace};
use crate::overlay::{TableAsWritten, overlaid};

const HOUR_NS: u64 = 3_600_000_000_000;
const TIME_UNITS: [&str; 7] = ["ns", "us", "µs", "ms", "s", "min", "h"];

fields! {
    /// Limits of a queue; of several, what is reached first.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Queue with rules {
        /// Frames that wait or are in service.
        packets: Option<u32> [1..=10_000_000],
        /// Bytes that wait or are in service.
        bytes: Option<u64> as Maybe<Size> [1..],
        /// The bytes that the link sends in this time at its `rate`.
        time: Option<Duration> as Maybe<PositiveShortTime> [..=HOUR_NS],
        /// The bytes that the link sends at its `rate` in so many round trips (bandwidth-delay products). A round trip is
        /// the `delay` of all links on a path and back; of several paths over the link, the longest counts. Events that
        /// change a delay leave it as it was.
        bdp: Option<u64> as Maybe<Products>,
    }
}

impl Rules for Queue {
    fn before<'n>(node: &'n Node, _reader: &mut Reader) -> Result<Cow<'n, Node>, String> {
        match &node.value {
            Value::Whole(_) | Value::Huge(_) | Value::Real(_) => {
                let near = nearest_number(node);
                let right = format!("write \"{near} packets\" or \"{near} B\"");
                Err(format!("is {}, which has no unit; {right}", shown(node)))
            }
            Value::Text(text) => limit(node, text).map(Cow::Owned),
            _ => Ok(Cow::Borrowed(node)),
        }
    }

    fn short_form() -> Option<Shape> {
        Some(Shape::Text(Some("1000 packets")))
    }
}

/// A queue of less than nothing is a slip of the pen.
fn nearest_number(node: &Node) -> String {
    let near = match node.value {
        Value::Whole(whole) if whole != 0 => return whole.unsigned_abs().to_string(),
        Value::Real(real) if real.is_finite() && real != 0.0 => Node::new(Value::Real(real.abs())),
        _ => Node::new(Value::Whole(100)),
    };
    shown(&near)
}

/// A limit from `"1000 packets"`, `"64 kB"`, `"100 ms"` or `"1 BDP"`.
fn limit(node: &Node, text: &str) -> Result<Node, String> {
    let trimmed = text.trim();
    let packets =
        trimmed.strip_suffix("packets").or_else(|| trimmed.strip_suffix("packet")).map(str::trim_end);
    let is_number =
        |digits: &&str| (1..=18).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(number) = packets.filter(is_number).and_then(|digits| digits.parse().ok()) {
        return Ok(node.short_for("packets", Node { value: Value::Whole(number), at: node.at }));
    }
    let unit = trimmed.trim_start_matches(|letter: char| !letter.is_ascii_alphabetic() && letter != 'µ');
    if TIME_UNITS.contains(&unit) {
        return Ok(node.short_for("time", node.clone()));
    }
    if unit.eq_ignore_ascii_case("BDP") {
        return Ok(node.short_for("bdp", node.clone()));
    }
    let size: &Kind = &SIZE;
    let is_size = size.read_exactly(node).is_ok_and(|bytes| bytes.is_integer());
    if is_size {
        return Ok(node.short_for("bytes", node.clone()));
    }
    let right = "write it as \"1000 packets\", \"64 kB\", \"100 ms\" or \"1 BDP\"";
    Err(format!("is {}, which is not a queue limit; {right}", shown(node)))
}

impl Queue {
    /// Of netem and of Linux's interfaces.
    pub const USUAL: Queue = Queue { packets: Some(1000), bytes: None, time: None, bdp: None };

    /// The least of its limits in bytes, on a link of this rate.
    ///
    /// # Errors
    /// A limit needs a rate, and there is none; in words that follow the link's name.
    pub fn limit_bytes(&self, rate: Option<BitRate>, round_trip: Duration) -> Result<Option<u64>, String> {
        let products =
            self.bdp.map(|thousandths| u128::from(thousandths) * u128::from(round_trip.as_ns()) / 1000);
        let times = [self.time.map(|time| u128::from(time.as_ns())), products];
        let mut least = self.bytes;
        for ns in times.into_iter().flatten() {
            let Some(rate) = rate else {
                let other = "write the queue as \"1000 packets\" or \"64 kB\"";
                return Err(format!(
                    "has the queue {}, which needs a `rate`; add one, or {other}",
                    self.words()
                ));
            };
            let bytes = (u128::from(rate.as_bit_s()) * ns / 8_000_000_000) as u64;
            least = Some(least.map_or(bytes, |other| other.min(bytes)));
        }
        Ok(least)
    }

    /// As a scenario writes it.
    pub fn words(&self) -> String {
        let Queue { packets, bytes, time, bdp } = self;
        let parts = [
            packets.map(|packets| format!("{packets} packets")),
            bytes.map(|bytes| format!("{bytes} B")),
            time.map(|time| format!("{} ms", plain(time.as_ns() as f64 / 1e6, 6))),
            bdp.map(|thousandths| format!("{} BDP", plain(thousandths as f64 / 1000.0, 6))),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        if parts.is_empty() { "without a limit".into() } else { parts.join(" or ") }
    }

    /// Whether a limit depends on the link's rate.
    pub fn is_by_rate(&self) -> bool {
        self.time.is_some() || self.bdp.is_some()
    }
}

fields! {
    /// One direction: a queue, a transmitter, a channel.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Link with rules {
        /// What the plan has of it.
        spec: LinkSpec as Flat<LinkSpec>,
        /// What may wait: `"1000 packets"`, `"64 kB"`, `"100 ms"` at the link's rate, or `"1 BDP"`, its rate times the
        /// round trip of its path.
        queue: Queue = Queue::USUAL,
        /// Which frame leaves the queue next, and which is dropped: `"tail-drop"`, `"codel"` or `"fq-codel"`.
        discipline: QueueDiscipline = QueueDiscipline::TAIL_DROP,
        /// Rate, delay, jitter and loss over time: a file beside the scenario, Mahimahi's or CSV, or a trace of mqttlab such
        /// as `"starlink"` (`mqttlab networks`). The guide is [Follow a trace](../how-to/traces.md).
        trace: Option<Trace> as Maybe<TraceFile>,
        /// After the last line of the trace: it begins again (`loop`, the default), or its last values stay (`hold`).
        trace_end: Option<After>,
        /// What it was read from, with the means of its trace.
        written: TableAsWritten as Unread<TableAsWritten>,
    }
}

impl Rules for Link {
    /// What the trace has values of is its mean for all that looks at one number.
    fn before<'n>(node: &'n Node, reader: &mut Reader) -> Result<Cow<'n, Node>, String> {
        let Some(table) = node.as_table() else { return Ok(Cow::Borrowed(node)) };
        let Some(written) = table.get("trace") else {
            return if table.has("trace_end") {
                Err("has `trace_end` without `trace`; add a `trace`, or leave `trace_end` out".into())
            } else {
                Ok(Cow::Borrowed(node))
            };
        };
        // What is wrong with the file is told by the field.
        let Ok(trace) = read_trace(written, reader.directory()) else { return Ok(Cow::Borrowed(node)) };
        let mut table = table.clone();
        let columns = trace.course.sets();
        for member in &table.members {
            let column = if matches!(member.name.as_str(), "burst_loss" | "bit_errors") {
                "loss"
            } else {
                &member.name
            };
            if columns.iter().any(|has| has.name() == column) {
                let name = &member.name;
                return Err(format!(
                    "has `{name}` and a `trace` with a column of `{column}`; leave `{name}` out, or the column"
                ));
            }
        }
        for column in columns {
            table.put(column.name(), trace.course.written(column));
        }
        Ok(Cow::Owned(Node { value: Value::Table(table), at: node.at }))
    }

    fn check(&mut self, table: &Table) -> Result<(), String> {
        self.written = TableAsWritten(table.clone());
        let opportunities = self.trace.as_ref().is_some_and(|trace| trace.course.is_opportunities());
        if opportunities && self.trace_end == Some(After::Hold) {
            return Err("has `trace_end = \"hold\"`, but a packet-delivery trace has no last value to hold; leave it out, \
                        or use a CSV with a rate"
                .into());
        }
        let is_fair = self.discipline.kind == mqttlab_net::DisciplineKind::FqCodel;
        if self.spec.queue.counts_delay_line && is_fair {
            return Err("has `queue_counts_delay_line` with the discipline \"fq-codel\", which has no queue that a frame \
                        on its way could wait in; leave one of them out"
                .into());
        }
        Ok(())
    }
}

/// The ways of losing frames, of which a link has one.
pub const LOSSES: [&str; 3] = ["loss", "burst_loss", "bit_errors"];

impl Link {
    /// The link with other values of some fields.
    ///
    /// # Errors
    /// They do not go with the link's own; in words that follow the link's name.
    pub fn adjusted(&self, fields: &Table) -> Result<Link, String> {
        if fields.members.is_empty() {
            return Ok(self.clone());
        }
        let mut own = self.written.0.clone();
        // The trace was read already, from beside the scenario, and its columns have their means.
        own.members.retain(|member| !matches!(member.name.as_str(), "trace" | "trace_end"));
        let link = read_adjusted(own, fields)?;
        Ok(Link { trace: self.trace.clone(), trace_end: self.trace_end, ..link })
    }

    /// Half the delay, and half of what it varies by.
    #[must_use]
    pub fn halved(mut self) -> Link {
        let delay = &mut self.spec.delay;
        for (name, time) in [("delay", &mut delay.mean), ("jitter", &mut delay.jitter)] {
            *time = Duration::from_ns(time.as_ns() / 2);
            self.written.0.put(name, Node::text(format!("{} ns", time.as_ns())));
        }
        self
    }

    /// The link as the plan has it; MTU and round trip are for its queue.
    ///
    /// # Errors
    /// Its queue's limit needs a rate; in words that follow the link's name.
    pub fn planned(&self, name: &str, mtu_bytes: u32, round_trip: Duration) -> Result<LinkSpec, String> {
        let mut spec = LinkSpec { name: name.into(), ..self.spec.clone() };
        spec.queue.limit_packets = self.queue.packets;
        spec.queue.limit_bytes = self.queue.limit_bytes(spec.rate_bit_s, round_trip)?;
        spec.queue.discipline = self.discipline.spec(spec.largest_frame_bytes(mtu_bytes));
        Ok(spec)
    }
}

/// A link whose fields are others in some places.
///
/// # Errors
/// They do not go together; in words that follow the link's name.
pub fn read_adjusted(mut own: Table, fields: &Table) -> Result<Link, String> {
    // One way of losing frames takes the place of another.
    if LOSSES.iter().any(|name| fields.has(name)) {
        own.members.retain(|member| !LOSSES.contains(&member.name.as_str()));
    }
    let is_none = |node: &Node| Delay::read(node, &mut Reader::default()) == Some(Duration::ZERO);
    if fields.get("jitter").is_some_and(is_none) {
        own.members.retain(|member| member.name != "distribution");
    }
    let mut reader = Reader::default();
    let link = AsPart::<Link>::read(&Node::new(Value::Table(overlaid(&own, fields))), &mut reader);
    link.ok_or_else(|| {
        reader.into_problems().into_iter().next().map_or_else(String::new, |problem| problem.what)
    })
}
