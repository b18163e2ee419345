//! What the frames sum to, over every scope, one connection after another.

use std::collections::BTreeMap;
use std::path::Path;

use mqttlab_recording::reading::ABSENT;
use mqttlab_recording::{
    CarrierRow, CarrierWriter, FrameSumRow, FrameSumWriter, GroupFrameRow, GroupFrameWriter, NumberMap,
    Result, RoundTripRow, RoundTripWriter, SentAgainRow, SentAgainWriter,
};

use crate::attribution::packet_partitions::StreamEnd;
use crate::connections::connection::{FirstLink, RoundTrips, TRIP_FIELDS, client_port, round_trips, towards};
use crate::connections::retransmissions::{Retransmission, sent_again};
use crate::network::frame_rows::{ConnectionFrames, LinkFrame, StoredFate, is_counted};
use crate::network::frame_sums::{FrameTally, TripStatistics, Trips, merged};
use crate::network::links::Slices;
use crate::partitions::Partitions;
use crate::settings::RunSettings;

/// What must be known of all frames before the first connection is looked at.
#[derive(Clone, Debug)]
pub(crate) struct FramesExtent {
    /// Of imports, Wireshark's marks by frame: the same frame on a later link belongs to no connection there.
    marks: NumberMap<u64, u8>,
    /// From the first transmission's begin to the last one's end, of all frames: slices of time cover it.
    begin: i64,
    end: i64,
    /// Whether the recording says what was sent again: imports, and recordings of schema 1, do not.
    counts_again: bool,
}

impl Default for FramesExtent {
    fn default() -> FramesExtent {
        FramesExtent { marks: NumberMap::default(), begin: i64::MAX, end: i64::MIN, counts_again: false }
    }
}

impl FramesExtent {
    pub(crate) fn note(&mut self, row: &LinkFrame, settings: &RunSettings) {
        self.counts_again |= row.repetition != ABSENT;
        if settings.is_import && row.is_first() && row.marks > 0 && is_counted(row, settings) {
            self.marks.entry(row.frame).or_insert(row.marks);
        }
        if row.sent != ABSENT {
            let start = if row.start == ABSENT { row.sent } else { row.start };
            self.begin = self.begin.min(row.sent).min(start);
            self.end = self.end.max(row.sent);
        }
    }

    fn span(&self) -> i64 {
        self.end.saturating_sub(self.begin)
    }
}

/// The direction as the tables name it.
fn direction(to_broker: bool) -> &'static str {
    if to_broker { "to_broker" } else { "to_client" }
}

/// What round trips of groups are like, by whether their data went to the broker, and group.
type OfGroups = BTreeMap<(bool, usize), Option<TripStatistics>>;

/// Sums, and what they are sums of beside.
#[derive(Default)]
struct Scope {
    tally: FrameTally,
    trips: Trips,
}

impl Scope {
    fn add(&mut self, tally: &FrameTally, trips: &[RoundTrips]) {
        self.tally.merge(tally);
        trips.iter().for_each(|trip| self.trips.add(trip.rto_ms));
    }
}

/// Round trips whose acknowledgements lie in so many rows of frames beside one another are put in order together.
const TRIP_ROWS: u64 = 1 << 20;

/// Frames at the ends of a group's clients.
#[derive(Clone, Copy, Default)]
struct AtEnds {
    sent: u64,
    sent_bytes: u64,
    received: u64,
    received_bytes: u64,
}

/// The sums so far.
pub(crate) struct NetworkSums<'a> {
    settings: &'a RunSettings,
    marks: NumberMap<u64, u8>,
    counts_again: bool,
    /// The client of each connection.
    client_of: NumberMap<i64, u32>,
    /// The group of each host whose clients are all of one.
    alone: NumberMap<i64, usize>,
    run: Scope,
    directions: [Scope; 2],
    /// Of each link up it and down it.
    links: Vec<[Scope; 2]>,
    groups: BTreeMap<(usize, bool), Scope>,
    /// Round trips in milliseconds, by whether the data went to the broker, and group. All others are sums of these.
    times: BTreeMap<(bool, Option<usize>), Vec<f64>>,
    /// The rows of connections, by number and direction.
    connections: Vec<(u32, bool, FrameSumRow<'static>)>,
    /// By the places of their acknowledgements.
    round_trips: Partitions<RoundTrips, TRIP_FIELDS>,
    again: Vec<(u64, Retransmission)>,
    carriers: BTreeMap<(Option<bool>, u16), (u64, u64)>,
    /// By group.
    at_ends: Vec<AtEnds>,
    slices: Slices,
}

impl<'a> NetworkSums<'a> {
    /// For so many rows of frames.
    pub(crate) fn new(
        out: &Path,
        rows: u64,
        client_of: NumberMap<i64, u32>,
        settings: &'a RunSettings,
        extent: FramesExtent,
    ) -> Result<NetworkSums<'a>> {
        let parts = rows.div_ceil(TRIP_ROWS).max(1) as usize;
        let slices = Slices::new(extent.span());
        Ok(NetworkSums {
            settings,
            marks: extent.marks,
            counts_again: extent.counts_again,
            client_of,
            alone: alone(settings),
            run: Scope::default(),
            directions: Default::default(),
            links: Vec::new(),
            groups: BTreeMap::new(),
            times: BTreeMap::new(),
            connections: Vec::new(),
            round_trips: Partitions::new(parts, parts > 1, out, "summary-round-trips")?,
            again: Vec::new(),
            carriers: BTreeMap::new(),
            at_ends: vec![AtEnds::default(); settings.groups.len()],
            slices,
        })
    }

    /// Counts the frames of a connection, or those of none; `publishes`: where its PUBLISH packets end.
    pub(crate) fn count(&mut self, frames: &ConnectionFrames<'_>, publishes: &[StreamEnd]) -> Result<()> {
        let rows = frames.rows;
        let connection = rows[0].connection;
        let port = if connection == ABSENT { None } else { client_port(rows) };
        let client = self.client_of.get(&connection).copied();
        let again = sent_again(rows, self.settings.early_ns);
        self.again.extend(again.iter().map(|(&frame, &kind)| (frame, kind)));
        let first_link = FirstLink::of(frames, again, &self.marks, self.settings);
        let trips = round_trips(frames, port, self.settings);
        self.count_frames(rows, port, &first_link);
        self.sum_up(rows, port, client, &trips, &first_link);
        self.count_ends(rows, port, client);
        self.complete_payloads(rows, port, publishes);
        let place = |trip: &RoundTrips| (trip.place / TRIP_ROWS) as usize;
        trips.iter().try_for_each(|trip| self.round_trips.push(place(trip), trip))
    }

    /// Counts frames on each link, and what their first links carried.
    fn count_frames(&mut self, rows: &[LinkFrame], port: Option<i32>, first_link: &FirstLink) {
        let mut touched = Vec::new();
        for row in rows {
            let counted = is_counted(row, self.settings);
            self.slices.count(row, counted);
            if !counted {
                continue;
            }
            let (marks, again) = first_link.of_frame(row);
            let link = usize::from(row.link);
            if link >= self.links.len() {
                self.links.resize_with(link + 1, Default::default);
            }
            let scope = &mut self.links[link][usize::from(row.down)];
            scope.tally.count(row, marks, again);
            if row.connection != ABSENT && !touched.contains(&(row.link, row.down)) {
                touched.push((row.link, row.down));
                scope.tally.connections += 1;
            }
            if row.is_first() && row.publishes > 0 {
                let count = self.carriers.entry((towards(row, port), row.publishes)).or_default();
                count.0 += 1;
                count.1 += u64::from(self.settings.is_measured(row.entered));
            }
        }
    }

    /// Adds a connection's sums to those of everything that it belongs to.
    fn sum_up(
        &mut self,
        rows: &[LinkFrame],
        port: Option<i32>,
        client: Option<u32>,
        trips: &[RoundTrips],
        first_link: &FirstLink,
    ) {
        let mut ways = [FrameTally::default(), FrameTally::default()];
        let mut rest = FrameTally::default();
        for row in rows.iter().filter(|row| row.is_first() && is_counted(row, self.settings)) {
            let (marks, again) = first_link.of_frame(row);
            let tally = towards(row, port).map_or(&mut rest, |to_broker| &mut ways[usize::from(to_broker)]);
            tally.count(row, marks, again);
        }
        // No mean is of round trips towards either side of where a capture was made.
        let of_run = if self.settings.is_import { &[] } else { trips };
        self.run.add(&rest, of_run);
        let is_one =
            rows[0].connection != ABSENT && (!rest.is_empty() || ways.iter().any(|way| !way.is_empty()));
        self.run.tally.connections += u64::from(is_one);
        let group = client.and_then(|client| self.settings.group_of.get(client as usize)).copied();
        for (mut tally, to_broker) in ways.into_iter().zip([false, true]) {
            self.run.tally.merge(&tally);
            let trips: Vec<RoundTrips> =
                trips.iter().filter(|trip| trip.to_broker == to_broker).copied().collect();
            tally.connections = u64::from(!tally.is_empty());
            self.directions[usize::from(to_broker)].add(&tally, &trips);
            if let Some(group) = group {
                self.groups.entry((group, to_broker)).or_default().add(&tally, &trips);
            }
            let mut times: Vec<f64> = trips.iter().map(RoundTrips::rtt_ms).collect();
            times.sort_unstable_by(f64::total_cmp);
            if !times.is_empty() {
                self.times.entry((to_broker, group)).or_default().extend_from_slice(&times);
            }
            if !tally.is_empty() {
                let statistics = TripStatistics::of(&times);
                let mut scope = Scope::default();
                scope.add(&tally, &trips);
                let connection = rows[0].connection as u32;
                let row = FrameSumRow {
                    connection: Some(connection),
                    client,
                    direction: Some(direction(to_broker)),
                    ..scope.tally.row("connection", self.counts_again, &scope.trips, statistics)
                };
                self.connections.push((connection, to_broker, row));
            }
        }
    }

    /// Frames at the clients' own ends, during the measurement, by group: that of the connection's client, where it is known,
    /// else that of the host whose clients are all of one.
    fn count_ends(&mut self, rows: &[LinkFrame], port: Option<i32>, client: Option<u32>) {
        let group = client.and_then(|client| self.settings.group_of.get(client as usize)).copied();
        // What the broker's host sends is not all of the clients there: the connection tells, where it is known.
        let of = |row: &LinkFrame, host: i32, to_broker: bool| match group {
            Some(group) => (towards(row, port) == Some(to_broker)).then_some(group),
            None => self.alone.get(&host.into()).copied(),
        };
        for row in rows {
            let is_original = row.is_first() && row.fate != StoredFate::Duplicated;
            let size = u64::from(row.frame_bytes);
            if is_original
                && self.settings.is_measured(row.entered)
                && let Some(group) = of(row, row.from_host, true)
            {
                let ends = &mut self.at_ends[group];
                ends.sent += 1;
                ends.sent_bytes += size;
            }
            if row.has_arrived()
                && row.delivered != ABSENT
                && self.settings.is_measured(row.delivered)
                && let Some(group) = of(row, row.to_host, false)
            {
                let ends = &mut self.at_ends[group];
                ends.received += 1;
                ends.received_bytes += size;
            }
        }
    }

    /// Counts application payload once on each link: in the first frame with which all bytes up to the message's end had
    /// crossed it.
    fn complete_payloads(&mut self, rows: &[LinkFrame], port: Option<i32>, publishes: &[StreamEnd]) {
        if publishes.is_empty() {
            return;
        }
        let mut ways = BTreeMap::<(u16, bool), Vec<&LinkFrame>>::new();
        for row in rows {
            if is_counted(row, self.settings) && row.has_data() && row.sent != ABSENT {
                let Some(to_broker) = towards(row, port) else { continue };
                ways.entry((row.link, to_broker)).or_default().push(row);
            }
        }
        for ((_, to_broker), mut crossed) in ways {
            crossed.sort_by_key(|row| row.sent);
            // A copy that brings nothing new completes nothing.
            let mut end = i64::MIN;
            crossed.retain(|row| {
                let before = end;
                end = before.max(row.end());
                row.end() > before
            });
            for packet in publishes {
                if packet.to_broker == to_broker {
                    let place = crossed.partition_point(|row| row.end() < packet.stream_end);
                    if let Some(row) = crossed.get(place) {
                        self.slices.complete(row, packet.payload_bytes.into());
                    }
                }
            }
        }
    }

    /// Writes all of it.
    pub(crate) fn write(mut self, out: &Path) -> Result<()> {
        self.slices.write(out)?;
        self.write_sums(out)?;
        self.write_trips(out)?;
        let mut table = SentAgainWriter::create(out)?;
        self.again.sort_unstable();
        for &(frame, kind) in &self.again {
            table.push(&SentAgainRow { frame, sent_again: kind.name() })?;
        }
        table.finish()?;
        let mut table = CarrierWriter::create(out)?;
        for (&(to_broker, packets), &(segments, segments_measured)) in &self.carriers {
            let direction = to_broker.map(direction);
            table.push(&CarrierRow { direction, packets: packets.into(), segments, segments_measured })?;
        }
        table.finish()?;
        let mut table = GroupFrameWriter::create(out)?;
        let seen = self.settings.groups.iter().zip(&self.at_ends);
        for (group, ends) in seen.filter(|(_, ends)| ends.sent + ends.received > 0) {
            table.push(&GroupFrameRow {
                group,
                frames_sent: ends.sent,
                frames_sent_bytes: ends.sent_bytes,
                frames_received: ends.received,
                frames_received_bytes: ends.received_bytes,
            })?;
        }
        table.finish()?;
        Ok(())
    }

    fn write_sums(&mut self, out: &Path) -> Result<()> {
        let mut table = FrameSumWriter::create(out)?;
        let again = self.counts_again;
        let row = |scope: &Scope, name: &'static str, statistics| {
            scope.tally.row(name, again, &scope.trips, statistics)
        };
        let (of_run, of_directions, of_groups) = self.statistics();
        if !self.run.tally.is_empty() {
            table.push(&row(&self.run, "run", of_run))?;
        }
        for (number, scope) in self.directions.iter().enumerate().filter(|(_, one)| !one.tally.is_empty()) {
            let direction = Some(direction(number == 1));
            table.push(&FrameSumRow { direction, ..row(scope, "direction", of_directions[number]) })?;
        }
        for (link, ways) in (0..).zip(&self.links) {
            for (scope, way) in ways.iter().zip(["up", "down"]).filter(|(scope, _)| !scope.tally.is_empty()) {
                table.push(&FrameSumRow {
                    link: Some(link),
                    direction: Some(way),
                    ..row(scope, "link", None)
                })?;
            }
        }
        for (&(group_number, to_broker), scope) in
            self.groups.iter().filter(|(_, scope)| !scope.tally.is_empty())
        {
            let (group, direction) = (Some(&*self.settings.groups[group_number]), Some(direction(to_broker)));
            let statistics = of_groups.get(&(to_broker, group_number)).copied().flatten();
            table.push(&FrameSumRow { group, direction, ..row(scope, "group", statistics) })?;
        }
        self.connections.sort_by_key(|&(connection, to_broker, _)| (connection, to_broker));
        for (_, _, row) in &self.connections {
            table.push(row)?;
        }
        table.finish()?;
        Ok(())
    }

    /// What round trips are like: of the run, of its directions, of groups in each direction.
    fn statistics(&mut self) -> (Option<TripStatistics>, [Option<TripStatistics>; 2], OfGroups) {
        let (mut of_directions, mut of_groups, mut run) = ([None; 2], OfGroups::new(), Vec::new());
        let mut directions: [Vec<f64>; 2] = Default::default();
        for ((to_broker, group), mut times) in std::mem::take(&mut self.times) {
            // Each connection's are in order: it finds these, and merges them.
            times.sort_by(f64::total_cmp);
            if let Some(group) = group {
                of_groups.insert((to_broker, group), TripStatistics::of(&times));
            }
            let direction = &mut directions[usize::from(to_broker)];
            *direction = merged(std::mem::take(direction), times);
        }
        for (times, found) in directions.into_iter().zip(&mut of_directions) {
            *found = TripStatistics::of(&times);
            run = merged(run, times);
        }
        // No mean is of round trips towards either side of where a capture was made.
        let of_run = TripStatistics::of(&run).filter(|_| !self.settings.is_import);
        (of_run, of_directions, of_groups)
    }

    fn write_trips(&mut self, out: &Path) -> Result<()> {
        let mut table = RoundTripWriter::create(out)?;
        for part in 0..self.round_trips.count() {
            let mut trips = self.round_trips.read_part(part)?;
            trips.sort_by_key(|trip| trip.place);
            for trip in &trips {
                table.push(&RoundTripRow {
                    connection: trip.connection,
                    client: self.client_of.get(&trip.connection.into()).copied(),
                    towards: direction(trip.to_broker),
                    at_ns: trip.at as u64,
                    rtt_ns: trip.rtt as u64,
                    rto_ms: trip.rto_ms,
                })?;
            }
        }
        table.finish()?;
        Ok(())
    }
}

/// The group of each host whose clients are all of one.
fn alone(settings: &RunSettings) -> NumberMap<i64, usize> {
    let mut groups = NumberMap::<i64, Option<usize>>::default();
    for (&host, &group) in settings.host_of.iter().zip(&settings.group_of) {
        let of_host = groups.entry(host).or_insert(Some(group));
        *of_host = of_host.filter(|&known| known == group);
    }
    groups.into_iter().filter_map(|(host, group)| Some((host, group?))).collect()
}
