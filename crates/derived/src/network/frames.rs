//! The frames of a recording, brought together by their connections, and what is asked of each connection.
//!
//! What is to be said of a connection needs all its frames at once, and the table has those of all connections in the order
//! of time. They go into as many heaps as it takes for one to be small, each connection into one; heaps of large recordings
//! go into a file. So memory is bounded by [`SummaryLimits`], or by the largest connection where that has more.

use std::path::Path;

use mqttlab_recording::reading::Vocabulary;
use mqttlab_recording::{NumberMap, Result};

use crate::SummaryLimits;
use crate::attribution::flights::{PacketFlight, WANTED_FIELDS, WantedFlight};
use crate::attribution::packet_partitions::{STREAM_END_FIELDS, StreamEnd};
use crate::connections::streams;
use crate::network::frame_rows::{self, ConnectionFrames, FIELDS, LinkFrame};
use crate::network::links::Links;
use crate::network::scopes::{FramesExtent, NetworkSums};
use crate::partitions::{ByNumber, Packed, Partitions, bring_together, part_of};
use crate::settings::RunSettings;

/// The table of frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameTable {
    pub(crate) rows: u64,
    limits: SummaryLimits,
}

/// What is asked of the frames of each connection, in as many parts as there are heaps.
pub(crate) struct AskedFrames {
    pub(crate) stream_ends: Partitions<StreamEnd, STREAM_END_FIELDS>,
    pub(crate) wanted: Partitions<WantedFlight, WANTED_FIELDS>,
    pub(crate) clients: NumberMap<i64, u32>,
}

impl FrameTable {
    pub(crate) fn of(dir: &Path, limits: SummaryLimits) -> Result<FrameTable> {
        Ok(FrameTable { rows: frame_rows::count(dir)?, limits })
    }

    /// Into how many heaps they go.
    fn heaps(self) -> usize {
        self.rows.div_ceil(self.limits.heap_rows).max(1) as usize
    }

    /// Parts for what belongs to the connections of each heap.
    pub(crate) fn parts<T: Packed<N>, const N: usize>(
        self,
        out: &Path,
        name: &str,
    ) -> Result<Partitions<T, N>> {
        Partitions::new(self.heaps(), self.rows > self.limits.memory_rows, out, name)
    }

    /// Reads them once, writes what they sum to, and hands out the ways of the packets that are asked for, with the range of each.
    pub(crate) fn sum_up(
        self,
        dir: &Path,
        out: &Path,
        mut asked: AskedFrames,
        settings: &RunSettings,
        words: &mut Vocabulary,
        mut take: impl FnMut(usize, &PacketFlight) -> Result<()>,
    ) -> Result<()> {
        let mut heaps = self.parts::<LinkFrame, FIELDS>(out, "summary-frames")?;
        // Once for all: growth by doubling would hold half as much again at its end.
        heaps.make_room(self.rows as usize);
        let (mut links, mut extent, count) = (Links::default(), FramesExtent::default(), heaps.count());
        frame_rows::for_each(dir, words, |row, cause| {
            links.count(row, cause);
            extent.note(row, settings);
            heaps.push(part_of(row.connection, count), row)
        })?;
        links.write(out, words)?;
        let mut network = NetworkSums::new(out, self.rows, asked.clients, settings, extent)?;
        let (mut own, mut seen) = (Vec::new(), Vec::new());
        for heap in 0..count {
            let rows = heaps.read_part(heap)?;
            let mut stream_ends = asked.stream_ends.read_part(heap)?;
            let mut wanted = asked.wanted.read_part(heap)?;
            // A heap has several connections, each of which is judged by itself.
            let by_connection = ByNumber::of(&rows, |row| row.connection);
            bring_together(&mut stream_ends, |end| end.connection.into());
            bring_together(&mut wanted, |one| one.connection.into());
            for places in by_connection.each() {
                // Only one connection's rows are copied, for memory's sake.
                own.clear();
                own.extend(places.iter().map(|&place| rows[place as usize]));
                let rows = ConnectionFrames::of(&mut own, &mut seen);
                let connection = rows.rows[0].connection;
                network.count(&rows, of_connection(&stream_ends, connection, |end| end.connection))?;
                let wanted = of_connection(&wanted, connection, |one| one.connection);
                if wanted.is_empty() {
                    continue;
                }
                let ways = streams::ways(&rows, settings);
                for one in wanted {
                    let flight = ways[usize::from(one.to_broker)].flight(&one.carried);
                    take(one.range as usize, &PacketFlight { number: one.number, flight })?;
                }
            }
        }
        network.write(out)
    }
}

/// Those of a connection, among records in the order of connections.
fn of_connection<T>(records: &[T], connection: i64, number_of: impl Fn(&T) -> u32) -> &[T] {
    let from = records.partition_point(|record| i64::from(number_of(record)) < connection);
    let count = records[from..].partition_point(|record| i64::from(number_of(record)) == connection);
    &records[from..from + count]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_heap_has_whole_connections_and_those_of_none_come_first() {
        let dir = std::env::temp_dir().join(format!("mqttlab-heaps-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let limits = SummaryLimits::default();
        for rows in [60_000, limits.memory_rows + 1] {
            let mut heaps = FrameTable { rows, limits }.parts::<LinkFrame, FIELDS>(&dir, "heaps").unwrap();
            assert_eq!(std::fs::read_dir(&dir).unwrap().count(), usize::from(rows > limits.memory_rows));
            let count = heaps.count();
            for place in 0..60_000 {
                let connection = if place % 600 == 0 { i64::MIN } else { (place % 600) as i64 };
                heaps
                    .push(
                        part_of(connection, count),
                        &LinkFrame { place, connection, ..LinkFrame::default() },
                    )
                    .unwrap();
            }
            let mut connections = Vec::new();
            for heap in 0..count {
                let rows = heaps.read_part(heap).unwrap();
                for places in ByNumber::of(&rows, |row| row.connection).each() {
                    assert!(places.len() == 100 && places.is_sorted());
                    connections.push((heap, rows[places[0] as usize].connection));
                }
            }
            assert!(connections.is_sorted());
            let mut numbers: Vec<i64> = connections.iter().map(|&(_, connection)| connection).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, [i64::MIN].into_iter().chain(1..600).collect::<Vec<_>>());
        }
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
