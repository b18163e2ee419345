//! What is summed and judged of one connection at a time: its frames, its round trips, what was sent again.

use mqttlab_recording::NumberMap;
use mqttlab_recording::reading::ABSENT;

use crate::connections::retransmissions::Retransmission;
use crate::network::frame_rows::{ACK, ConnectionFrames, LinkFrame, SYN, StoredFate, is_counted};
use crate::partitions::Packed;
use crate::settings::RunSettings;

const NS_PER_MS: f64 = 1e6;
const NEVER: i64 = i64::MAX;

/// A round trip as the sender of data saw it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RoundTrips {
    /// The place of the acknowledgement in the table.
    pub(crate) place: u64,
    pub(crate) connection: u32,
    /// Whether the data went to the broker.
    pub(crate) to_broker: bool,
    /// When the acknowledgement had arrived.
    pub(crate) at: i64,
    pub(crate) rtt: i64,
    pub(crate) rto_ms: f64,
}

pub(crate) const TRIP_FIELDS: usize = 6;

impl Packed<TRIP_FIELDS> for RoundTrips {
    fn fields(&self) -> [i64; TRIP_FIELDS] {
        let RoundTrips { place, connection, to_broker, at, rtt, rto_ms } = *self;
        [place as i64, connection.into(), to_broker.into(), at, rtt, rto_ms.to_bits() as i64]
    }

    fn of(&[place, connection, to_broker, at, rtt, rto_ms]: &[i64; TRIP_FIELDS]) -> RoundTrips {
        let (place, connection, to_broker) = (place as u64, connection as u32, to_broker == 1);
        RoundTrips { place, connection, to_broker, at, rtt, rto_ms: f64::from_bits(rto_ms as u64) }
    }
}

impl RoundTrips {
    pub(crate) fn rtt_ms(&self) -> f64 {
        self.rtt as f64 / NS_PER_MS
    }
}

/// The port of the client's end: who sent the SYN; where no SYN was captured, the end with the higher port.
pub(crate) fn client_port(rows: &[LinkFrame]) -> Option<i32> {
    let copies_left_out = || rows.iter().filter(|row| row.fate != StoredFate::Duplicated);
    // Whoever sent the SYN without ACK is the client; a link's copy of it may come from elsewhere.
    let opening = copies_left_out().find(|row| row.flags >= 0 && row.flags & (SYN | ACK) == SYN);
    let port = match opening {
        Some(row) if row.source_port >= 0 => row.source_port,
        _ => copies_left_out().next().map(|row| row.source_port.max(row.destination_port))?,
    };
    (port >= 0).then_some(port)
}

/// Where a frame goes; `None` without TCP.
pub(crate) fn towards(row: &LinkFrame, client_port: Option<i32>) -> Option<bool> {
    client_port.map(|port| row.source_port == port)
}

/// From a data segment's coming to its first link until its exact acknowledgement has arrived; none for a segment that was
/// sent more than once (Karn), nor where the acknowledgement was lost.
pub(crate) fn round_trips(
    connection: &ConnectionFrames<'_>,
    client_port: Option<i32>,
    settings: &RunSettings,
) -> Vec<RoundTrips> {
    let counted = || connection.rows.iter().filter(|row| is_counted(row, settings));
    let mut arrivals = vec![NEVER; connection.frames];
    for row in counted() {
        if row.hop + 1 == row.hops && row.fate == StoredFate::Delivered && row.delivered != ABSENT {
            // A frame that a link has doubled arrives twice.
            let first = &mut arrivals[row.nth as usize];
            *first = row.delivered.min(*first);
        }
    }
    let mut timers = [Timer::default(), Timer::default()];
    let mut found = Vec::new();
    for row in counted().filter(|row| row.is_first() && row.ack_rtt != ABSENT) {
        let at = arrivals[row.nth as usize];
        if at == NEVER {
            continue;
        }
        // An acknowledgement to the broker is of data from it.
        let to_broker = towards(row, client_port) != Some(true);
        let rtt = row.ack_rtt + at - row.entered;
        // The host that is acknowledged is the one whose timer it is.
        let least_ms = settings.rto_min_ms(row.to_host.into());
        let rto_ms = timers[usize::from(to_broker)].rto_ms(rtt as f64 / NS_PER_MS, least_ms);
        let connection = row.connection as u32;
        found.push(RoundTrips { place: row.place, connection, to_broker, at, rtt, rto_ms });
    }
    found
}

/// RFC 6298 §2 over a connection's round trips; Linux bounds four variations, not the whole, from below.
#[derive(Default)]
struct Timer {
    /// The smoothed round trip and its variation.
    known: Option<(f64, f64)>,
}

impl Timer {
    fn rto_ms(&mut self, rtt: f64, least: f64) -> f64 {
        let (smoothed, variation) = match self.known {
            // The first sample sets the variation to half of itself.
            None => (rtt, rtt / 2.0),
            Some((smoothed, variation)) => {
                (smoothed * 0.875 + rtt * 0.125, variation * 0.75 + (smoothed - rtt).abs() * 0.25)
            }
        };
        self.known = Some((smoothed, variation));
        // Linux (`tcp_set_rto` after `tcp_rtt_estimator`): the least bounds the variation's share.
        smoothed + (4.0 * variation).max(least)
    }
}

/// What a frame's first link says of it on all of them: its marks, and why it was sent again.
pub(crate) struct FirstLink {
    /// By the frame's number on its connection; none where no frame has any.
    marks: Vec<u8>,
    again: NumberMap<u64, Retransmission>,
}

impl FirstLink {
    /// `known`: marks of frames on their first links, as far as they are gathered beforehand.
    pub(crate) fn of(
        connection: &ConnectionFrames<'_>,
        again: NumberMap<u64, Retransmission>,
        known: &NumberMap<u64, u8>,
        settings: &RunSettings,
    ) -> FirstLink {
        let mut marks = Vec::new();
        for row in connection.rows.iter().filter(|row| is_counted(row, settings)) {
            let own = if row.is_first() { row.marks } else { 0 };
            let of_first = known.get(&row.frame).copied().unwrap_or(own);
            if of_first > 0 {
                marks.resize(connection.frames, 0);
                let first = &mut marks[row.nth as usize];
                *first = if *first > 0 { *first } else { of_first };
            }
        }
        FirstLink { marks, again }
    }

    #[inline]
    pub(crate) fn of_frame(&self, row: &LinkFrame) -> (u8, Option<Retransmission>) {
        let marks = self.marks.get(row.nth as usize).copied().unwrap_or(0);
        (marks, self.again.get(&row.frame).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_out_follows_the_round_trips_and_has_a_least_variation() {
        let mut timer = Timer::default();
        assert_eq!(timer.rto_ms(100.0, 200.0), 300.0);
        assert_eq!(timer.rto_ms(100.0, 20.0), 100.0 + 4.0 * 37.5);
    }
}
