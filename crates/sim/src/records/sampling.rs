//! What is sampled while a simulation goes on: what both ends of TCP connections know, and where radio stations are.
//!
//! Nothing of it is on the agenda, so that sampling changes nothing: a sample that is due is taken after the next event. An
//! end of which nothing has changed since it was told last makes no row. What looking costs is bounded: the interval doubles
//! after every so many looks, and after every so many rows.

use mqttlab_recording::{End, TcpSample};
use mqttlab_run::Stations;
use mqttlab_tcp::TcpState;
use mqttlab_units::{Duration, Instant};

use crate::hosts::connections::{Connections, SimConnection};
use crate::records::Records;

/// Samples at regular times.
pub(crate) struct Sampling {
    interval: Duration,
    next: Instant,
    /// What was last told of each end, by the connection's slot, and which connection that was.
    told: Vec<(u32, [Option<TcpState>; 2])>,
    looks_left: u64,
    rows_left: u64,
    stations: Stations,
}

impl Sampling {
    /// A sample every so often; the first at the start.
    pub(crate) fn new(interval: Duration, stations: Stations) -> Sampling {
        let (next, told) = (Instant::ZERO, Vec::new());
        Sampling { interval, next, told, looks_left: LOOKS, rows_left: ROWS, stations }
    }

    /// Publishing begins at `at`: events that move stations count from then.
    pub(crate) fn begin(&mut self, at: Instant) {
        self.stations.begin(at);
    }

    /// Whether a sample is due.
    #[inline]
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.next <= now
    }

    /// Takes a sample.
    pub(crate) fn sample(&mut self, now: Instant, connections: &Connections, evidence: &mut Records) {
        for connection in connections.iter() {
            self.sample_connection(now, connection, evidence);
        }
        self.stations.take(now, |row| evidence.message(|recorder| recorder.position(row)));
        if self.looks_left == 0 || self.rows_left == 0 {
            self.interval = self.interval * 2;
            (self.looks_left, self.rows_left) = (LOOKS, ROWS);
        }
        let interval_ns = self.interval.as_ns();
        self.next = Instant::from_ns((now.as_ns() / interval_ns + 1) * interval_ns);
    }

    fn sample_connection(&mut self, at: Instant, connection: &SimConnection, evidence: &mut Records) {
        let slot = connection.id.slot as usize;
        if slot >= self.told.len() {
            self.told.resize(slot + 1, (connection.number, [None, None]));
        }
        let (number, told) = &mut self.told[slot];
        if *number != connection.number {
            (*number, *told) = (connection.number, [None, None]);
        }
        for (side, endpoint) in connection.ends.iter().enumerate() {
            self.looks_left = self.looks_left.saturating_sub(1);
            let state = endpoint.tcp_state();
            if told[side].replace(state) == Some(state) {
                continue;
            }
            self.rows_left = self.rows_left.saturating_sub(1);
            let row = TcpSample {
                at,
                client: connection.client.map(|client| client.0),
                connection: Some(connection.number),
                end: [End::Client, End::Server][side],
                rto: state.rto,
                srtt: state.srtt,
                congestion_window_bytes: state.congestion_window_bytes,
                slow_start_threshold_bytes: state.slow_start_threshold_bytes,
                unsent_bytes: state.unsent_bytes,
                unacknowledged_bytes: state.unacknowledged_bytes,
            };
            evidence.message(|recorder| recorder.tcp_sample(&row));
        }
    }
}

/// Ends that are looked at before the interval doubles: some tens of milliseconds' work.
const LOOKS: u64 = 1 << 20;
/// Rows that are written before the interval doubles.
const ROWS: u64 = 200_000;
