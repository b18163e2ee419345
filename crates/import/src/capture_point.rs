//! Where a capture was taken, as far as round trips tell.
//!
//! ```text
//!   client ──────────┬──────────────── broker
//!     ◄── to client ─┼── to broker ──►            each from a segment to its acknowledgement, at the point of capture
//! ```
//!
//! What lies between the point of capture and an end cannot be told apart from what that end takes: of a capture at the clients the
//! way to the broker and the broker are one part of a latency. Only at an end its own time is known.
//!
//! A file whose frames have the times of their senders, such as a capture of both ends with the times of the first one, has the
//! round trips of a capture between the ends: from a segment to its acknowledgement is one way there. Nothing in the file tells
//! them apart, for the acknowledgement follows in both, and either side may be the slow one. Both are away from both ends.
//!
//! Captures are filtered, often by segments with payload. Without the acknowledgements that carry none, data is acknowledged by the
//! next data the other way, which comes when its sender has something to say: round trips are upper bounds, and tell no place.

use std::fmt::{self, Display};
use std::net::IpAddr;

use mqttlab_capture::metrics::MetricTally;
use mqttlab_capture::{AnalysedConnection, Analysis, ServerDirection};
use mqttlab_units::Duration;
use serde_json::{Value, json};

/// Where a capture was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturePoint {
    place: PathPlace,
    /// The least round trips to clients and to brokers, in the middle of all connections.
    ways: Option<[Duration; 2]>,
    /// Whether the user has said so.
    is_said: bool,
    /// Whether acknowledgements without data are missing.
    lacks_acks: bool,
    /// Whether there is any.
    has_acks: bool,
}

/// Places on the way from clients to broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathPlace {
    /// At the broker, or near it.
    Broker,
    /// At the clients, or near them.
    Clients,
    /// On the way, or clients and broker are near each other.
    Between,
    /// Each frame at its sender, as captures of earlier versions of mqttlab are.
    Senders,
    /// At several places, of which a frame counts where it came first.
    Several,
    /// Each frame at both ends of its link, as mqttlab's own captures are.
    BothEnds,
    /// Nothing tells.
    Unknown,
}

impl CapturePoint {
    /// What round trips say, unless the user has said it, or frames show it: those of a capture of mqttlab's own, or that were
    /// captured at several places.
    pub fn of(analysis: &Analysis, said: Option<PathPlace>, shown: Option<PathPlace>) -> CapturePoint {
        let ways = Some([
            to_end(analysis, ServerDirection::FromServer),
            to_end(analysis, ServerDirection::ToServer),
        ]);
        let lacks_acks = lacks_acks(analysis);
        let ways = ways.and_then(|[clients, broker]| Some([clients?, broker?])).filter(|_| !lacks_acks);
        let place = match (shown.filter(|shown| *shown != PathPlace::Senders).or(said).or(shown), ways) {
            (Some(known), _) => known,
            (None, Some([clients, broker])) => PathPlace::of(clients, broker),
            (None, None) => PathPlace::Unknown,
        };
        CapturePoint { place, ways, is_said: said == Some(place), lacks_acks, has_acks: has_acks(analysis) }
    }

    /// Whether the capture holds acknowledgements without data: it was not filtered for segments with payload.
    pub fn has_acks(&self) -> bool {
        self.has_acks
    }

    /// Whether it was taken at the brokers, or so near that the way there is of no weight.
    fn is_at_broker(&self) -> bool {
        self.is_at(PathPlace::Broker, 1)
    }

    /// The same of the clients.
    fn is_at_clients(&self) -> bool {
        self.is_at(PathPlace::Clients, 0)
    }

    fn is_at(&self, end: PathPlace, way: usize) -> bool {
        let is_near = || !self.is_said && self.ways.is_some_and(|ways| ways[way] < AT_END);
        match self.place {
            PathPlace::BothEnds => true,
            // What a sender waited for shows there. When the broker had a message does not.
            PathPlace::Senders => end == PathPlace::Clients,
            PathPlace::Several | PathPlace::Unknown => false,
            place => place == end || is_near(),
        }
    }

    /// Whether what a direction carries between these two has arrived at its receiver's host when it is captured.
    pub fn is_at_receiver(&self, direction: ServerDirection, client: IpAddr, broker: IpAddr) -> bool {
        let at_receiver = match direction {
            ServerDirection::FromServer => self.place == PathPlace::Clients,
            ServerDirection::ToServer => self.place == PathPlace::Broker,
        };
        at_receiver || client == broker || client.is_loopback() || broker.is_loopback()
    }

    /// What to know before round trips and the parts of latencies are read.
    pub fn warnings(&self) -> Vec<String> {
        let filtered = self.lacks_acks.then(|| {
            "No acknowledgement without data is in the capture: it was filtered. Data counts as acknowledged by the next data the \
             other way: round trips are upper bounds, and say nothing about where the capture was taken. Capture whole \
             connections."
                .into()
        });
        filtered.into_iter().chain(self.contradiction()).chain(self.place_warning()).collect()
    }

    fn place_warning(&self) -> Option<String> {
        if self.is_at_broker() {
            return None;
        }
        let place = self.in_words(" (", ")");
        let away = match (self.place, self.ways) {
            (PathPlace::Clients, ways) => ways.map(|[_, broker]| broker),
            (PathPlace::Senders, _) => {
                return Some(
                    "The capture was written by mqttlab: each frame has the time at which it came to its sender's link. The way \
                     to the broker and the broker are one part, and the last way to a subscriber is in no latency. The recording \
                     that it comes from has the parts of the way."
                        .into(),
                );
            }
            (PathPlace::Several, _) => {
                return Some(
                    "The capture was taken at several places, and each frame counts where it came first: the way to the broker and \
                     the broker are one part. A capture at the broker, imported alone, has the broker's own time."
                        .into(),
                );
            }
            (PathPlace::Between, _) => {
                return Some(format!(
                    "The capture was taken {place}: the way on to the broker and back and the broker's own time cannot be told \
                     apart, and the ways of messages to and from the capture's place are in no latency. A capture at the broker \
                     has the broker's own time."
                ));
            }
            _ => return None,
        };
        let away = away.map_or(String::new(), |away| format!(", {away} there and back"));
        Some(format!(
            "The capture was taken {place}: the way to the broker{away}, and what its socket and its processor take, cannot be told \
             apart. A capture at the broker has the broker's own time."
        ))
    }

    /// Where the user has said at which end it was taken, and round trips say that this end is far.
    fn contradiction(&self) -> Option<String> {
        let [clients, broker] = self.ways.filter(|_| self.is_said)?;
        let (end, way) = match self.place {
            PathPlace::Broker => ("the broker", broker),
            PathPlace::Clients => ("the clients", clients),
            _ => return None,
        };
        (way >= NEAR).then(|| {
            format!(
                "The capture was said to be taken at {end}, but no round trip to {end} takes less than {way}: what counts as the \
                 time of {end} may be the way there."
            )
        })
    }

    /// For `run.json`.
    pub fn as_json(&self) -> Value {
        let ms = |way: usize| self.ways.map(|ways| ways[way].as_s_f64() * 1e3);
        json!({"place": self.place.name(), "said": self.is_said, "in_words": self.to_string(), "has_acknowledgements": self.has_acks,
               "at_clients": self.is_at_clients(), "at_broker": self.is_at_broker(),
               "round_trip_to_clients_ms": ms(0), "round_trip_to_broker_ms": ms(1)})
    }
}

impl CapturePoint {
    /// The place, and the round trips between two words.
    fn in_words(&self, before: &str, behind: &str) -> String {
        let place = match self.place {
            PathPlace::Broker => "at the broker",
            PathPlace::Clients => "at the clients",
            PathPlace::Between if self.is_said => "between clients and broker",
            PathPlace::Between if self.is_at_broker() || self.is_at_clients() => "near clients and broker",
            PathPlace::Between => "away from both ends, or each frame at its sender",
            PathPlace::Several => return "at several places, each frame where it came first".into(),
            PathPlace::Senders => "at the sender of each frame, by mqttlab",
            PathPlace::BothEnds => "at both ends of each link, by mqttlab",
            PathPlace::Unknown if self.lacks_acks => {
                return "not known: acknowledgements without data are missing".into();
            }
            PathPlace::Unknown => return "not known: there are no acknowledgements of both ends".into(),
        };
        let by = if self.is_said { ", as was said" } else { "" };
        let trips = self.ways.map_or(String::new(), |[clients, broker]| {
            format!("{before}least round trips: {clients} to clients, {broker} to the broker{behind}")
        });
        format!("{place}{by}{trips}")
    }
}

impl Display for CapturePoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words("; ", ""))
    }
}

impl PathPlace {
    /// Reads what the user says.
    pub fn parse(word: &str) -> Option<PathPlace> {
        [PathPlace::Broker, PathPlace::Clients, PathPlace::Between]
            .into_iter()
            .find(|place| place.name() == word)
    }

    fn of(clients: Duration, broker: Duration) -> PathPlace {
        let [clients, broker] = [clients, broker].map(Duration::as_ns);
        let is_at = |way: u64, other: u64| way < AT_END.as_ns() && way.saturating_mul(APART) <= other;
        if is_at(broker, clients) {
            PathPlace::Broker
        } else if is_at(clients, broker) {
            PathPlace::Clients
        } else {
            PathPlace::Between
        }
    }

    fn name(self) -> &'static str {
        match self {
            PathPlace::Broker => "broker",
            PathPlace::Clients => "clients",
            PathPlace::Between => "between",
            PathPlace::Several => "several",
            PathPlace::Senders => "senders",
            PathPlace::BothEnds => "both ends",
            PathPlace::Unknown => "unknown",
        }
    }
}

/// The least time from a segment of this direction to its acknowledgement, in the middle of the brokers' connections. Delayed
/// acknowledgements make others longer.
fn to_end(analysis: &Analysis, direction: ServerDirection) -> Option<Duration> {
    let ours = analysis.connections.iter().filter(|connection| connection.is_broker_s);
    let times = ours.map(|connection| &connection.directions[direction as usize].ack_rtt_ns);
    let mut least: Vec<u64> =
        times.filter(|times| times.count() > 0).map(|times| times.summary().min).collect();
    least.sort_unstable();
    least.get(least.len() / 2).map(|ns| Duration::from_ns(*ns))
}

/// Whether there is no acknowledgement without data, though data went both ways for longer than an acknowledgement may wait. The
/// handshake has one, and so has every pause.
fn lacks_acks(analysis: &Analysis) -> bool {
    let lasted = |connection: &AnalysedConnection| {
        let [up, down] = connection.directions.each_ref().map(|tally| tally.span);
        let (Some((first, _)), Some((_, last))) = (up, down) else { return false };
        last.checked_since(first).is_some_and(|lasted| lasted > ACKNOWLEDGED_WITHIN)
    };
    let talked = |connection: &&AnalysedConnection| {
        let both = connection.directions.iter().all(|tally| tally.segments_with_payload > 0);
        connection.is_broker_s && both && lasted(connection)
    };
    let mut found = analysis.connections.iter().filter(talked).peekable();
    found.peek().is_some() && !found.any(|connection| connection.directions.iter().any(has_bare_acks))
}

/// Whether any broker's connection has acknowledgements without data.
fn has_acks(analysis: &Analysis) -> bool {
    let mut ours = analysis.connections.iter().filter(|connection| connection.is_broker_s);
    ours.any(|connection| connection.directions.iter().any(has_bare_acks))
}

fn has_bare_acks(tally: &MetricTally) -> bool {
    tally.segments > tally.segments_with_payload + tally.syn + tally.syn_ack + tally.fin + tally.rst
}

/// An acknowledgement is delayed by less than this (RFC 1122 §4.2.3.2).
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_ms(500);
/// One end is near where the other is so many times as far.
const APART: u64 = 5;
/// An end's own host acknowledges within this. A way that is not longer there and back is one of a local network: a link without
/// delay would have to be faster than 2 Mbit/s for it.
pub const AT_END: Duration = Duration::from_us(500);
/// Ways that are shorter than this are of no weight.
const NEAR: Duration = Duration::from_ms(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearer_end_says_where_the_capture_was_taken() {
        let us = Duration::from_us;
        for (clients, broker, place) in [
            (20_000, 30, PathPlace::Broker),
            (30, 20_000, PathPlace::Clients),
            (10_000, 10_000, PathPlace::Between),
            (40, 30, PathPlace::Between),
            // Each frame at its sender: a fast way up and a slow one down are no capture at the broker.
            (20_000, 2_000, PathPlace::Between),
            (2_000, 20_000, PathPlace::Between),
        ] {
            assert_eq!(PathPlace::of(us(clients), us(broker)), place);
        }
        assert_eq!(PathPlace::parse("clients"), Some(PathPlace::Clients));
        assert_eq!(PathPlace::parse("unknown"), None);
    }
}
