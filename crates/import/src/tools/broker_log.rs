//! A broker's log becomes a recording, read front to back.
//!
//! Files are taken in the order of their first times, as rotated logs may be named in any.

use std::collections::BTreeMap;

use mqttlab_recording::{Ending, Layout};
use mqttlab_units::Instant;
use serde_json::json;

use super::broker_clock::BrokerClock;
use super::broker_events::BrokerEvent;
use super::broker_state::{BrokerState, LogCounts};
use super::lines::{TextEnd, TextLines, by_first_time};
use super::stamps::{Stamp, stamp};
use super::{emqx, mosquitto};
use crate::clock::CaptureClock;
use crate::error::{ImportError, Result};
use crate::options::ImportOrder;
use crate::output::{Findings, ImportOutput};
use crate::plan::Facts;
use crate::progress::{ImportObserver, ProgressWatch};
use crate::servers::ObservedServers;
use crate::source::{Meter, labels};

/// Brokers whose logs are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoggingBroker {
    /// Eclipse Mosquitto.
    Mosquitto,
    /// EMQX, with its packets at level debug or in a trace.
    Emqx,
}

impl LoggingBroker {
    /// As reports call it.
    pub fn name(self) -> &'static str {
        match self {
            LoggingBroker::Mosquitto => "Mosquitto",
            LoggingBroker::Emqx => "EMQX",
        }
    }

    /// How its log gets its messages.
    fn verbosity(self) -> &'static str {
        match self {
            LoggingBroker::Mosquitto => "set log_type all in its configuration, or start it with -v",
            LoggingBroker::Emqx => "set the log's level to debug, or trace a client or a topic",
        }
    }

    /// How its log gets dates.
    fn dates(self) -> &'static str {
        match self {
            LoggingBroker::Mosquitto => {
                "Set log_timestamp true and log_timestamp_format %Y-%m-%dT%H:%M:%S in its configuration."
            }
            LoggingBroker::Emqx => "Set time_format = auto for the log.",
        }
    }

    /// How its log gets finer times.
    fn finer_times(self) -> &'static str {
        match self {
            LoggingBroker::Mosquitto => {
                "log_timestamp_format has no fractions of a second: import the lines as journalctl -o short-iso-precise, \
                 docker logs -t or ts '%Y-%m-%dT%H:%M:%.S' write them, or capture the broker's connections."
            }
            LoggingBroker::Emqx => "Set time_format = auto for the log.",
        }
    }

    /// The time of a line and what it says.
    fn read<'l>(self, line: &'l str, utc_offset_s: i64) -> Option<(Option<Stamp>, LogLine<'l>)> {
        match self {
            LoggingBroker::Mosquitto => {
                let (prefix, message) = mosquitto::split(line).unwrap_or((line, ""));
                let event = mosquitto::event(message);
                // Other lines matter where one may note a subscription, and for their times.
                let said = match event {
                    Some(event) => LogLine::Event(event),
                    None if mosquitto::is_packet(message) => LogLine::Damaged,
                    None => LogLine::Other(line),
                };
                Some((stamp(prefix, utc_offset_s), said))
            }
            LoggingBroker::Emqx => {
                emqx::read(line, utc_offset_s).map(|(at, events)| (at, LogLine::Several(events)))
            }
        }
    }
}

/// What a line is.
enum LogLine<'l> {
    Event(BrokerEvent),
    Several(Vec<BrokerEvent>),
    /// Of a packet, and it cannot be read.
    Damaged,
    Other(&'l str),
}

/// A log on its way into a recording.
struct LogImport<'a> {
    order: &'a ImportOrder,
    broker: LoggingBroker,
    clock: BrokerClock,
    /// Begun with the first line.
    state: Option<BrokerState<'a>>,
    start: Instant,
    end: Instant,
    version: Option<String>,
    /// Lines of packets that cannot be read.
    damaged: u64,
}

/// Imports the logs of a broker.
///
/// # Errors
/// [`ImportError::Evidence`] where no line tells of a message.
pub fn import(
    order: &ImportOrder,
    broker: LoggingBroker,
    observer: &mut dyn ImportObserver,
) -> Result<Ending> {
    let meter = Meter::of(&order.files).unpacking(order.unpacked_max);
    let mut watch = ProgressWatch::new(meter.clone(), observer);
    let first = |line: &str| {
        let (at, _) = broker.read(line, order.utc_offset_s)?;
        at.map(|stamp| stamp.at.as_ns())
    };
    let names = labels(&order.files);
    let mut log = LogImport {
        order,
        broker,
        clock: BrokerClock::of(broker != LoggingBroker::Mosquitto),
        state: None,
        start: Instant::ZERO,
        end: Instant::ZERO,
        version: None,
        damaged: 0,
    };
    let mut faults = Vec::new();
    for place in by_first_time(&order.files, order.unpacked_max, first) {
        let mut lines = TextLines::open(&order.files[place], &meter)?;
        log.clock.begin(&names[place]);
        let end = lines.for_each(|_, line| {
            watch.add(1);
            log.line(line)
        })?;
        match end {
            TextEnd::Whole => {}
            TextEnd::Cut(line) => faults.push(format!("{} ends in the middle of line {line}", names[place])),
            TextEnd::Unreadable(error) => {
                faults.push(format!("{} cannot be read to its end: {error}", names[place]));
            }
        }
    }
    log.write(faults, watch)
}

impl<'a> LogImport<'a> {
    fn line(&mut self, line: &str) -> Result<()> {
        let Some((stamp, said)) = self.broker.read(line, self.order.utc_offset_s) else { return Ok(()) };
        if line.trim().is_empty() {
            return Ok(());
        }
        if let Some((_, rest)) = line.split_once("mosquitto version ") {
            self.version = rest.split(' ').next().map(str::to_owned);
        }
        let at = self.clock.at(stamp);
        self.end = self.end.max(at);
        let events = match said {
            LogLine::Event(event) => vec![event],
            LogLine::Several(events) => events,
            LogLine::Damaged => {
                self.damaged += 1;
                return Ok(());
            }
            LogLine::Other(line) => self.granted(line).into_iter().collect(),
        };
        for event in events {
            self.state(at)?.event(at, event)?;
        }
        Ok(())
    }

    /// What was said so far; with the first line the recording begins.
    fn state(&mut self, at: Instant) -> Result<&mut BrokerState<'a>> {
        if self.state.is_none() {
            self.start = at;
            let clock = CaptureClock::starting(at);
            let output = ImportOutput::open(self.order, clock)?;
            let is_causal = self.broker == LoggingBroker::Mosquitto;
            self.state = Some(BrokerState::new(output, clock, is_causal));
        }
        Ok(self.state.as_mut().expect("it was made"))
    }

    /// The subscription that a line notes, if one is awaited.
    fn granted(&self, line: &str) -> Option<BrokerEvent> {
        let (client, filters) = self.state.as_ref()?.awaited()?;
        let filter = filters.iter().find(|filter| mosquitto::granted(line, client, filter))?;
        Some(BrokerEvent::Granted { client: client.to_owned(), filter: filter.clone() })
    }

    fn write(self, faults: Vec<String>, watch: ProgressWatch<'_>) -> Result<Ending> {
        let name = self.broker.name();
        let silent = || {
            let words = format!(
                "is a log of {name} without messages: no line tells of a PUBLISH; {}",
                self.broker.verbosity()
            );
            ImportError::in_file(&self.order.files[0], words)
        };
        let Some(mut state) = self.state else { return Err(silent()) };
        state.finish();
        if state.counts.published + state.counts.copies == 0 {
            return Err(silent());
        }
        let length = Instant::from_ns(self.end.as_ns().saturating_sub(self.start.as_ns()));
        let observer = watch.end(length);
        let (mut reasons, mut warnings) = self.clock.findings(self.broker.dates(), self.broker.finer_times());
        let (more, others) = findings(&state.counts, self.broker);
        if self.damaged > 0 {
            reasons.push(format!(
                "{} lines of packets are damaged and cannot be read: what became of their messages is unknown.",
                self.damaged
            ));
        }
        reasons.extend(more);
        warnings.extend(others);
        let version = self.version.map_or(String::new(), |version| format!(" {version}"));
        let facts = Facts {
            length_ns: length.as_ns().max(1),
            broker: format!("{name}{version}, as its log says"),
            broker_port: None,
            broker_ports: Vec::new(),
            gateways: Vec::new(),
            gateway_ports: Vec::new(),
            network: "not recorded: times are those of the broker's lines".into(),
        };
        let counts = &state.counts;
        let told = json!({
            "log_of": name,
            "messages": counts.published,
            "deliveries": counts.copies,
            "deliveries_matched_by_order": counts.by_order,
            "deliveries_foreign": counts.foreign,
            "publications_refused": counts.denied,
            "clients_connected_before": counts.joined,
            "broker_starts": counts.starts,
        });
        let details = BTreeMap::from([("import".into(), told)]);
        let BrokerState { output, participants, subscriptions, .. } = state;
        let servers = ObservedServers::default();
        let (given_up, shares) = (subscriptions.given_up(), subscriptions.shares(&servers));
        let (topics, receivers) = subscriptions.into_layout(&servers);
        let layout = Layout {
            hosts: participants.hosts().to_vec(),
            clients: participants.clients().to_vec(),
            topics,
            receivers,
            is_untimed: self.clock.is_untimed(),
            given_up,
            shares,
            ..Layout::default()
        };
        output.close(layout, &facts, Findings { faults, reasons, warnings }, details, observer)
    }
}

/// What the log does not say, by what there was.
fn findings(counts: &LogCounts, broker: LoggingBroker) -> (Vec<String>, Vec<String>) {
    let (mut reasons, mut warnings) = (Vec::new(), Vec::new());
    if counts.joined > 0 {
        reasons.push(format!(
            "{} clients were connected before the log began: their subscriptions and what waited for them are not known. \
             Begin the log before the clients connect, or import the rotated files too.",
            counts.joined
        ));
    }
    if counts.unsure > 0 {
        reasons.push(format!(
            "{} clients of MQTT 5 were away while messages came for them, and did not come back to their sessions: the log \
             has no session expiry, so that it cannot be told which of these messages were for them.",
            counts.unsure
        ));
    }
    warnings.push(format!(
        "Times are those of the broker's lines: a latency is from reading a message to sending the copy, without the \
         network. At QoS 1 and 2 a copy counts as delivered when its receiver has acknowledged it, at QoS 0 when {} sent it.",
        broker.name()
    ));
    let mut warn = |count: u64, words: &str| {
        if count > 0 {
            warnings.push(format!("{count} {words}"));
        }
    };
    warn(
        counts.by_order,
        "copies had waited for their receivers; a log has no content, so they are told by topic, size and order.",
    );
    warn(counts.foreign, "copies belong to no message in the log: wills, $SYS, or messages of before.");
    warn(counts.denied, "messages were refused by the broker.");
    warn(counts.starts.saturating_sub(1), "times the broker began anew: the log is of several runs.");
    (reasons, warnings)
}
