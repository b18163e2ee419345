//! What packets mean that have passed the capture point and that their receiver has not acknowledged yet.
//!
//! ```text
//!   PUBLISH to a client ──► its delivery waits ──ACK──► a row, with the time of the copy that arrived
//!                                   └──connection over, sent again in vain──► lost, where nothing sends it once more
//!   PUBACK, CONNACK, SUBACK to a client ──► their rows and events wait alike
//!   PUBLISH to the broker ──► is a message; without an ACK it may be lost
//! ```
//!
//! A packet that has only passed the capture point is not delivered: its receiver may be gone. What is captured at the receiver's own
//! host has arrived. Where a capture lacks acknowledgements, passing is all that it shows.

use std::collections::VecDeque;

use mqttlab_capture::ServerDirection;
use mqttlab_recording::{Acknowledged, DirectRecorder, Dropped, Event, LossCause, NumberMap, Received};
use mqttlab_units::Instant;
use serde_json::{Value, json};

use super::clock::CaptureClock;
use super::error::Result;
use super::matcher::MatchedRow;
use super::message::CountedMessage;
use super::streams::{Arrival, CapturedStreams, StreamPlace};

/// Rows and events that wait for acknowledgements.
#[derive(Default)]
pub struct UnprovenRows {
    /// By connection and direction. Most wait for a moment, so that the room is kept.
    rows: NumberMap<(u32, ServerDirection), VecDeque<(u64, UnprovenRow)>>,
    waiting: usize,
    /// Events are written in their order: those behind one that waits wait, too.
    events: VecDeque<(Event, String, Option<StreamPlace>)>,
    /// Rows of connections of whose receivers nothing is captured.
    as_seen: u64,
    /// Packets that were never acknowledged: deliveries, of these lost, and messages that did not reach the broker.
    deliveries: u64,
    lost: u64,
    unsent: u64,
}

/// What waits.
enum UnprovenRow {
    /// What was to be recorded of a packet to a client.
    Matched(MatchedRow),
    /// A PUBLISH to the broker: its message, and its quality of service.
    Published(CountedMessage, u8),
}

/// What is known of an end of a connection when the capture is over.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverEnd {
    /// Whether the capture shows what has arrived: it was taken at the receiver's host, or has no acknowledgements.
    pub shows_arrivals: bool,
    /// When the connection ended, as far as it did.
    pub ended: Option<Instant>,
    /// Whether the client's session ended with it.
    pub is_session_over: bool,
}

impl UnprovenRows {
    /// A row of the matcher: written, when its packet has arrived, else kept.
    pub fn put(
        &mut self,
        row: MatchedRow,
        place: Option<StreamPlace>,
        streams: &CapturedStreams,
        clock: CaptureClock,
        recorder: &mut DirectRecorder,
    ) -> Result<()> {
        // That the broker refused a message holds whether its publisher learns of it or not.
        let place = place.filter(|_| !matches!(row, MatchedRow::Dropped(_)));
        let Some(place) = place else { return write(recorder, row) };
        match streams.arrival(place) {
            Arrival::Unknown => {
                self.as_seen += 1;
                write(recorder, row)
            }
            Arrival::Awaited => {
                self.keep(place, UnprovenRow::Matched(row));
                Ok(())
            }
            Arrival::Acknowledged(at) => write(recorder, not_before(row, at.map(|at| clock.at(at)))),
        }
    }

    /// A PUBLISH goes to the broker.
    pub fn published(
        &mut self,
        message: CountedMessage,
        qos: u8,
        place: StreamPlace,
        streams: &CapturedStreams,
    ) {
        if streams.arrival(place) == Arrival::Awaited {
            self.keep(place, UnprovenRow::Published(message, qos));
        }
    }

    fn keep(&mut self, place: StreamPlace, row: UnprovenRow) {
        // Behind so many nothing more is known than that the packet has passed.
        if self.waiting < WAITING_MAX {
            self.waiting += 1;
            self.rows.entry((place.connection, place.direction)).or_default().push_back((place.end, row));
        }
    }

    /// The receiver of a direction may have acknowledged more.
    pub fn acknowledged(
        &mut self,
        connection: u32,
        direction: ServerDirection,
        streams: &CapturedStreams,
        clock: CaptureClock,
        recorder: &mut DirectRecorder,
    ) -> Result<()> {
        if self.waiting == 0 {
            return Ok(());
        }
        let Some(waiting) = self.rows.get_mut(&(connection, direction)) else { return Ok(()) };
        while let Some(&(end, _)) = waiting.front()
            && let Arrival::Acknowledged(at) = streams.arrival(StreamPlace { connection, direction, end })
            && let Some((_, row)) = waiting.pop_front()
        {
            self.waiting -= 1;
            if let UnprovenRow::Matched(row) = row {
                write(recorder, not_before(row, at.map(|at| clock.at(at))))?;
            }
        }
        Ok(())
    }

    /// An event, of the packet at a place where it has one.
    pub fn event(&mut self, event: Event, words: String, place: Option<StreamPlace>) {
        self.events.push_back((event, words, place));
    }

    /// Writes the events that nothing holds up.
    pub fn take_events(&mut self, streams: &CapturedStreams, recorder: &mut DirectRecorder) -> Result<()> {
        while let Some((_, _, place)) = self.events.front() {
            let waits = place.is_some_and(|place| streams.arrival(place) == Arrival::Awaited);
            if waits && self.events.len() < EVENTS_MAX {
                return Ok(());
            }
            if let Some((event, words, _)) = self.events.pop_front() {
                recorder.event(&event, &words)?;
            }
        }
        Ok(())
    }

    /// The capture is over: what nothing has acknowledged is judged by what became of its connection.
    pub fn finish(
        &mut self,
        streams: &CapturedStreams,
        end: impl Fn(StreamPlace) -> ReceiverEnd,
        recorder: &mut DirectRecorder,
    ) -> Result<()> {
        for (event, words, place) in std::mem::take(&mut self.events) {
            let is_missing = place.is_some_and(|place| {
                streams.arrival(place) == Arrival::Awaited && !end(place).shows_arrivals
            });
            if !is_missing {
                recorder.event(&event, &words)?;
            }
        }
        let mut rows: Vec<_> = self.rows.drain().filter(|(_, rows)| !rows.is_empty()).collect();
        rows.sort_unstable_by_key(|(key, _)| *key);
        for ((connection, direction), rows) in rows {
            for (place_end, row) in rows {
                let place = StreamPlace { connection, direction, end: place_end };
                let (known, is_stalled) = (end(place), streams.is_stalled_before(place));
                // An end that is alive acknowledges what it has: a copy sent in vain says that it is not, wherever the capture was taken.
                if known.shows_arrivals && !is_stalled {
                    if let UnprovenRow::Matched(row) = row {
                        self.as_seen += 1;
                        write(recorder, row)?;
                    }
                    continue;
                }
                self.unacknowledged(row, known, is_stalled, recorder)?;
            }
        }
        Ok(())
    }

    /// A packet that its receiver never acknowledged.
    fn unacknowledged(
        &mut self,
        row: UnprovenRow,
        known: ReceiverEnd,
        is_stalled: bool,
        recorder: &mut DirectRecorder,
    ) -> Result<()> {
        let (message, subscriber, qos) = match row {
            UnprovenRow::Matched(MatchedRow::Received(row)) => {
                self.deliveries += 1;
                let Some(publisher) = row.publisher else { return Ok(()) };
                let message = CountedMessage { publisher, sequence: row.sequence };
                // A copy of the store is no delivery that anybody waits for.
                if row.retained {
                    return Ok(());
                }
                (message, Some(row.subscriber), row.qos)
            }
            UnprovenRow::Published(message, qos) => {
                self.unsent += 1;
                (message, None, qos)
            }
            UnprovenRow::Matched(_) => return Ok(()),
        };
        let Some(at) = known.ended else { return Ok(()) };
        // At QoS 0 nothing sends it again; at QoS 1 and 2 its session does, as long as there is one.
        if qos > 0 && !known.is_session_over {
            return Ok(());
        }
        let CountedMessage { publisher, sequence } = message;
        // Without a repetition its acknowledgement may have crossed the end, or be missing from the capture.
        let cause = if is_stalled { LossCause::NotAcknowledged } else { LossCause::NoAcknowledgement };
        self.lost += u64::from(is_stalled && subscriber.is_some());
        Ok(recorder.dropped(&Dropped { publisher, sequence, subscriber, cause, at })?)
    }

    /// What there is to know of it.
    pub fn warnings(&self, streams: &CapturedStreams) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut warn = |count: u64, words: &str| {
            if count > 0 {
                warnings.push(words.replace("{}", &count.to_string()));
            }
        };
        warn(
            self.deliveries,
            "{} PUBLISH packets to clients were never acknowledged by the clients' hosts (TCP). They are no deliveries.",
        );
        warn(self.unsent, "{} PUBLISH packets to the broker were never acknowledged by its host (TCP).");
        warn(
            streams.arrived().by_round_trip,
            "Of {} segments that were sent again time stamps do not say which copy arrived. The last one with a plausible round trip \
             is taken.",
        );
        warnings
    }

    /// Why times are not right for all messages.
    pub fn reasons(&self, streams: &CapturedStreams) -> Vec<String> {
        let lacking = streams.arrived().lacking;
        let words = || {
            format!(
                "{lacking} segments are in one capture only, between others that a second one holds, too: it has lost them. Their messages \
                 have the times of the other place."
            )
        };
        (lacking > 0).then(words).into_iter().collect()
    }

    /// The numbers behind it, for `run.json`.
    pub fn as_json(&self, streams: &CapturedStreams) -> Value {
        json!({
            "deliveries_never_acknowledged": self.deliveries,
            "deliveries_lost": self.lost,
            "publishes_never_acknowledged": self.unsent,
            "packets_without_acknowledgements": self.as_seen,
            "copies_by_time_stamp": streams.arrived().by_time_stamp,
            "copies_by_round_trip": streams.arrived().by_round_trip,
        })
    }
}

/// A row that happened no earlier than the copy of its packet that arrived.
fn not_before(row: MatchedRow, at: Option<Instant>) -> MatchedRow {
    let Some(at) = at else { return row };
    match row {
        MatchedRow::Received(row) => MatchedRow::Received(Received { received: row.received.max(at), ..row }),
        MatchedRow::Acknowledged(row) => MatchedRow::Acknowledged(Acknowledged { at: row.at.max(at), ..row }),
        row => row,
    }
}

fn write(recorder: &mut DirectRecorder, row: MatchedRow) -> Result<()> {
    match row {
        MatchedRow::Sent(row) => recorder.sent(&row)?,
        MatchedRow::Acknowledged(row) => recorder.acknowledged(&row)?,
        MatchedRow::Received(row) => recorder.received(&row)?,
        MatchedRow::Dropped(row) => recorder.dropped(&row)?,
    }
    Ok(())
}

/// Rows that wait, some 100 MiB of them.
const WAITING_MAX: usize = 1 << 20;
/// Events that wait; beyond them none does.
const EVENTS_MAX: usize = 1 << 16;
