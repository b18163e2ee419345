//! Sums over frames: of the run, of a direction, of a link, of a group, of a connection.

use mqttlab_recording::FrameSumRow;
use mqttlab_recording::reading::ABSENT;

use crate::connections::retransmissions::Retransmission;
use crate::network::frame_rows::{CWR, LinkFrame, MARKS, RST, SYN};

/// What frames sum to.
#[derive(Clone, Debug)]
pub(crate) struct FrameTally {
    frames: u64,
    bytes: u64,
    ip_bytes: u64,
    payload_bytes: u64,
    sent_bytes: u64,
    first: i64,
    last: i64,
    frame_bytes: SizeRange,
    publish_segments: u64,
    publish_bytes: u64,
    publish_frame_bytes: SizeRange,
    /// Of a sum over connections: those with a frame in it.
    pub(crate) connections: u64,
    resets: u64,
    window_reductions: u64,
    segments_with_payload: u64,
    segments_with_data: u64,
    again: [u64; 4],
    marks: [u64; MARKS.len()],
    packets: u64,
    publishes: u64,
}

/// The least and the greatest of some sizes.
#[derive(Clone, Copy, Debug)]
struct SizeRange {
    least: u32,
    most: u32,
}

impl Default for SizeRange {
    /// Of none.
    fn default() -> SizeRange {
        SizeRange { least: u32::MAX, most: 0 }
    }
}

impl SizeRange {
    fn add(&mut self, size: u32) {
        self.merge(SizeRange { least: size, most: size });
    }

    fn merge(&mut self, other: SizeRange) {
        *self = SizeRange { least: self.least.min(other.least), most: self.most.max(other.most) };
    }

    /// The least and the greatest, of one size at least.
    fn known(self) -> Option<(u32, u32)> {
        (self.least <= self.most).then_some((self.least, self.most))
    }
}

impl Default for FrameTally {
    fn default() -> FrameTally {
        FrameTally {
            frames: 0,
            bytes: 0,
            ip_bytes: 0,
            payload_bytes: 0,
            sent_bytes: 0,
            first: i64::MAX,
            last: i64::MIN,
            frame_bytes: SizeRange::default(),
            publish_segments: 0,
            publish_bytes: 0,
            publish_frame_bytes: SizeRange::default(),
            connections: 0,
            resets: 0,
            window_reductions: 0,
            segments_with_payload: 0,
            segments_with_data: 0,
            again: [0; 4],
            marks: [0; MARKS.len()],
            packets: 0,
            publishes: 0,
        }
    }
}

impl FrameTally {
    /// Counts a frame. Its marks are those of its first link, and `again` says why it was sent again, if it was.
    pub(crate) fn count(&mut self, row: &LinkFrame, marks: u8, again: Option<Retransmission>) {
        let size = u64::from(row.frame_bytes);
        self.frames += 1;
        self.bytes += size;
        self.ip_bytes += u64::from(row.ip_bytes);
        self.payload_bytes += u64::from(row.payload_bytes);
        self.first = self.first.min(row.entered);
        self.last = self.last.max(row.entered);
        if row.sent != ABSENT {
            self.sent_bytes += size;
            self.last = self.last.max(row.sent);
        }
        self.frame_bytes.add(row.frame_bytes);
        if row.publishes > 0 {
            self.publish_segments += 1;
            self.publish_bytes += size;
            self.publish_frame_bytes.add(row.frame_bytes);
        }
        self.resets += u64::from(row.has_flag(RST));
        // In a SYN it asks for ECN (RFC 3168 §6.1.1).
        self.window_reductions += u64::from(row.has_flag(CWR) && !row.has_flag(SYN));
        self.segments_with_payload += u64::from(row.connection != ABSENT && row.payload_bytes > 0);
        self.segments_with_data += u64::from(row.repetition != ABSENT);
        if let Some(kind) = again {
            self.again[kind as usize] += 1;
        }
        if marks > 0 {
            for (bit, count) in self.marks.iter_mut().enumerate() {
                *count += u64::from(marks >> bit & 1);
            }
        }
        self.packets += u64::from(row.packets);
        self.publishes += u64::from(row.publishes);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames == 0
    }

    /// Adds another sum to this one.
    pub(crate) fn merge(&mut self, other: &FrameTally) {
        self.frames += other.frames;
        self.bytes += other.bytes;
        self.ip_bytes += other.ip_bytes;
        self.payload_bytes += other.payload_bytes;
        self.sent_bytes += other.sent_bytes;
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.frame_bytes.merge(other.frame_bytes);
        self.publish_segments += other.publish_segments;
        self.publish_bytes += other.publish_bytes;
        self.publish_frame_bytes.merge(other.publish_frame_bytes);
        self.connections += other.connections;
        self.resets += other.resets;
        self.window_reductions += other.window_reductions;
        self.segments_with_payload += other.segments_with_payload;
        self.segments_with_data += other.segments_with_data;
        self.again.iter_mut().zip(other.again).for_each(|(sum, count)| *sum += count);
        self.marks.iter_mut().zip(other.marks).for_each(|(sum, count)| *sum += count);
        self.packets += other.packets;
        self.publishes += other.publishes;
    }

    /// The sums as a row of nobody. `counts_again`: whether it is recorded what was sent again.
    pub(crate) fn row(
        &self,
        scope: &'static str,
        counts_again: bool,
        trips: &Trips,
        round_trip: Option<TripStatistics>,
    ) -> FrameSumRow<'static> {
        FrameSumRow {
            frames: self.frames,
            bytes: self.bytes,
            ip_bytes: self.ip_bytes,
            tcp_payload_bytes: self.payload_bytes,
            sent_bytes: self.sent_bytes,
            first_ns: self.first as u64,
            last_ns: self.last as u64,
            frame_bytes_min: self.frame_bytes.known().map(|(least, _)| least),
            frame_bytes_max: self.frame_bytes.known().map(|(_, most)| most),
            publish_segments: self.publish_segments,
            publish_frame_bytes: self.publish_bytes,
            publish_frame_bytes_min: self.publish_frame_bytes.known().map(|(least, _)| least),
            publish_frame_bytes_max: self.publish_frame_bytes.known().map(|(_, most)| most),
            connections: self.connections,
            resets: self.resets,
            window_reductions: self.window_reductions,
            segments_with_payload: self.segments_with_payload,
            tcp_analysis_retransmissions: self.marks[0],
            tcp_analysis_fast_retransmissions: self.marks[1],
            tcp_analysis_spurious_retransmissions: self.marks[2],
            tcp_analysis_out_of_order: self.marks[3],
            tcp_analysis_duplicate_acks: self.marks[4],
            tcp_analysis_zero_windows: self.marks[5],
            mqtt_packets: self.packets,
            publish_packets: self.publishes,
            round_trips: trips.count,
            rtt_ms_min: round_trip.map(|found| found.least),
            rtt_ms_mean: round_trip.map(|found| found.mean),
            rtt_ms_p95: round_trip.map(|found| found.p95),
            rtt_ms_max: round_trip.map(|found| found.most),
            rto_ms_mean: round_trip.map(|_| trips.rto_ms_sum / trips.count as f64),
            ..self.sent_again(scope, counts_again)
        }
    }

    /// What of the row was sent again. Nothing else is in it.
    fn sent_again(&self, scope: &'static str, counts_again: bool) -> FrameSumRow<'static> {
        let again = |kind: Retransmission| counts_again.then_some(self.again[kind as usize]);
        FrameSumRow {
            scope,
            segments_with_data: counts_again.then_some(self.segments_with_data),
            retransmissions: counts_again.then(|| self.again.iter().sum()),
            retransmissions_fast: again(Retransmission::Fast),
            retransmissions_timer_or_probe: again(Retransmission::TimerOrProbe),
            retransmissions_spurious: again(Retransmission::Spurious),
            retransmissions_unknown: again(Retransmission::Unknown),
            ..FrameSumRow::default()
        }
    }
}

/// Round trips of one scope, but for the times themselves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trips {
    count: u64,
    rto_ms_sum: f64,
}

impl Trips {
    pub(crate) fn add(&mut self, rto_ms: f64) {
        self.count += 1;
        self.rto_ms_sum += rto_ms;
    }
}

/// What round trips are like, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TripStatistics {
    least: f64,
    mean: f64,
    p95: f64,
    most: f64,
}

impl TripStatistics {
    /// Of times that are in order.
    pub(crate) fn of(sorted: &[f64]) -> Option<TripStatistics> {
        let (&least, &most) = (sorted.first()?, sorted.last()?);
        let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
        Some(TripStatistics { least, mean, p95: quantile(sorted, 0.95), most })
    }
}

/// Both together, in order, as each of them is.
pub(crate) fn merged(mut one: Vec<f64>, other: Vec<f64>) -> Vec<f64> {
    if one.is_empty() {
        return other;
    }
    one.extend(other);
    // It finds the two that are in order, and merges them.
    one.sort_by(f64::total_cmp);
    one
}

/// A quantile of sorted values, between the two values nearest to it (Hyndman and Fan's type 7).
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = part * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    if below == above { below } else { below + (place - place.floor()) * (above - below) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_lies_between_the_two_nearest_values() {
        assert_eq!(quantile(&[1.0], 0.95), 1.0);
        assert_eq!(quantile(&[1.0, 2.0, 3.0], 0.5), 2.0);
        assert!((quantile(&[0.0, 10.0], 0.95) - 9.5).abs() < 1e-12);
    }
}
