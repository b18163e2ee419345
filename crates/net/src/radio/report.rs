//! What stations have done, as recordings have it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::medium::Medium;

/// A station's counters as a recording has them. Bytes are those of MAC frames of all kinds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct StationReport {
    /// The host that the station belongs to.
    pub host: usize,
    pub frames_sent: u64,
    pub bytes_sent: u64,
    pub frames_received: u64,
    pub bytes_received: u64,
    pub frames_overheard: u64,
    pub bytes_overheard: u64,
    pub data_sent: u64,
    pub rts_sent: u64,
    pub cts_sent: u64,
    pub ack_sent: u64,
    pub collisions: u64,
    pub channel_errors: u64,
    pub retries: u64,
    pub dropped_retry_limit: u64,
    pub dropped_unreachable: u64,
    pub dropped_queue: u64,
    pub transmit_s: f64,
    pub receive_s: f64,
    pub idle_s: f64,
    pub sleep_s: f64,
    pub wake_ups: u64,
    pub energy_j: f64,
}

impl StationReport {
    /// Of these stations, given as the hosts of a medium's number and its station's, up to the media's last call.
    pub fn all(media: &[Medium], stations: &BTreeMap<(usize, usize), usize>) -> Vec<StationReport> {
        let of = |(&(medium, station), &host): (&(usize, usize), &usize)| {
            StationReport::of(&media[medium], station, host)
        };
        stations.iter().map(of).collect()
    }

    fn of(medium: &Medium, station: usize, host: usize) -> StationReport {
        let counters = medium.counters(station);
        let (sent, received, overheard) =
            (counters.sent.total(), counters.received.total(), counters.overheard.total());
        StationReport {
            host,
            frames_sent: sent.frames,
            bytes_sent: sent.bytes,
            frames_received: received.frames,
            bytes_received: received.bytes,
            frames_overheard: overheard.frames,
            bytes_overheard: overheard.bytes,
            data_sent: counters.sent.data.frames,
            rts_sent: counters.sent.rts.frames,
            cts_sent: counters.sent.cts.frames,
            ack_sent: counters.sent.ack.frames,
            collisions: counters.collisions,
            channel_errors: counters.channel_errors,
            retries: counters.retries,
            dropped_retry_limit: counters.dropped_retry_limit,
            dropped_unreachable: counters.dropped_unreachable,
            dropped_queue: counters.dropped_queue,
            transmit_s: counters.time.transmit.as_s_f64(),
            receive_s: counters.time.receive.as_s_f64(),
            idle_s: counters.time.idle.as_s_f64(),
            sleep_s: counters.time.sleep.as_s_f64(),
            wake_ups: counters.time.wake_ups,
            energy_j: medium.energy_j(station),
        }
    }
}
