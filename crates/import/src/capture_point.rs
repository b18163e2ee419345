//! Where a capture was taken, as far as round trips tell.
//!
//! ```text
//!   client ──────────┬──────────────── broker
//!     ◄── to client ─┼── to broker ──►            each from a segment to its acknowledgement, at the point of capture
//! ```
//!
//! What lies between the point of capture and an end cannot be told apart from what that end takes: of a capture at the clients the
//! way to the broker counts as the broker's time.
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
    /// Each frame at both ends of its link, as mqttlab's own captures are.
    BothEnds,
    /// Nothing tells.
    Unknown,
}

impl CapturePoint {
    /// What round trips say, unless the user has said it, or the capture is one of mqttlab's own.
    pub fn of(analysis: &Analysis, said: Option<PathPlace>, own: Option<PathPlace>) -> CapturePoint {
        let ways = Some([
            to_end(analysis, ServerDirection::FromServer),
            to_end(analysis, ServerDirection::ToServer),
        ]);
        let lacks_acks = lacks_acks(analysis);
        let ways = ways.and_then(|[clients, broker]| Some([clients?, broker?])).filter(|_| !lacks_acks);
        let place = match (own.filter(|own| *own == PathPlace::BothEnds).or(said).or(own), ways) {
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
        filtered.into_iter().chain(self.place_warning()).collect()
    }

    fn place_warning(&self) -> Option<String> {
        let away = match (self.place, self.ways) {
            (PathPlace::Clients, ways) => ways.map(|[_, broker]| broker),
            (PathPlace::Senders, _) => {
                return Some(
                    "The capture was written by mqttlab: each frame has the time at which it came to its sender's link. The way \
                     to the broker counts as the broker's time, and the last way to a subscriber is in no latency. The recording \
                     that it comes from has the parts of the way."
                        .into(),
                );
            }
            (PathPlace::Between, Some([clients, broker])) if clients.max(broker) >= NEAR => {
                return Some(format!(
                    "The capture was taken between clients and broker ({self}): the way on to the broker and back counts as the \
                 broker's time, and the ways of messages to and from the capture's place are in no latency."
                ));
            }
            _ => return None,
        };
        let away = away.map_or(String::new(), |away| format!(", {away} there and back"));
        Some(format!(
            "The capture was taken at the clients ({self}): the way to the broker{away}, and what its socket and its processor take, \
             cannot be told apart. The report calls all of it the broker's. Capture at the broker, too, to divide it."
        ))
    }

    /// For `run.json`.
    pub fn as_json(&self) -> Value {
        let ms = |way: usize| self.ways.map(|ways| ways[way].as_s_f64() * 1e3);
        json!({"place": self.place.name(), "said": self.is_said, "in_words": self.to_string(), "has_acknowledgements": self.has_acks,
               "round_trip_to_clients_ms": ms(0), "round_trip_to_broker_ms": ms(1)})
    }
}

impl Display for CapturePoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.place {
            PathPlace::Broker => "at the broker",
            PathPlace::Clients => "at the clients",
            PathPlace::Between => "between clients and broker",
            PathPlace::Senders => "at the sender of each frame, by mqttlab",
            PathPlace::BothEnds => "at both ends of each link, by mqttlab",
            PathPlace::Unknown if self.lacks_acks => {
                return f.write_str("not known: acknowledgements without data are missing");
            }
            PathPlace::Unknown => {
                return f.write_str("not known: there are no acknowledgements of both ends");
            }
        };
        let by = if self.is_said { ", as was said" } else { "" };
        write!(f, "{place}{by}")?;
        match self.ways {
            Some([clients, broker]) => {
                write!(f, "; least round trips: {clients} to clients, {broker} to the broker")
            }
            None => Ok(()),
        }
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
        if broker.saturating_mul(APART) <= clients {
            PathPlace::Broker
        } else if clients.saturating_mul(APART) <= broker {
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
        ] {
            assert_eq!(PathPlace::of(us(clients), us(broker)), place);
        }
        assert_eq!(PathPlace::parse("clients"), Some(PathPlace::Clients));
        assert_eq!(PathPlace::parse("unknown"), None);
    }
}
