//! The control packets, spread while they are read over those who ask for them later: by message, by connection, by client.

use std::collections::BTreeMap;
use std::path::Path;

use mqttlab_recording::reading::{ABSENT, TableReader, Vocabulary, Wanted};
use mqttlab_recording::{NumberMap, Result};

use crate::SummaryLimits;
use crate::attribution::in_flight::{
    COUNTED_FIELDS, Counted, OverOfGateways, PERMIT_FIELDS, Permit, Permitted, RELEASED_FIELDS, Released,
    releases, windows,
};
use crate::attribution::message_ranges::{MessageKey, Ranges};
use crate::control_packets::{self, FollowedKind, NamedPacket};
use crate::partitions::{Packed, Partitions, part_of};
use crate::settings::RunSettings;

/// What of a PUBLISH the sums over its connection's frames need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamEnd {
    pub(crate) connection: u32,
    pub(crate) to_broker: bool,
    pub(crate) payload_bytes: u32,
    pub(crate) stream_end: i64,
}

pub(crate) const STREAM_END_FIELDS: usize = 3;

impl Packed<STREAM_END_FIELDS> for StreamEnd {
    fn fields(&self) -> [i64; STREAM_END_FIELDS] {
        let connection = i64::from(self.connection) << 1 | i64::from(self.to_broker);
        [connection, self.payload_bytes.into(), self.stream_end]
    }

    fn of(&[connection, payload_bytes, stream_end]: &[i64; STREAM_END_FIELDS]) -> StreamEnd {
        StreamEnd {
            connection: (connection >> 1) as u32,
            to_broker: connection & 1 == 1,
            payload_bytes: payload_bytes as u32,
            stream_end,
        }
    }
}

/// Where packets go.
pub(crate) struct PacketSpread<'a> {
    settings: Option<&'a RunSettings>,
    pub(crate) ranges: Ranges,
    /// PUBLISH packets whose messages are known, by range of these.
    pub(crate) publishes: Partitions<NamedPacket, { control_packets::FIELDS }>,
    /// All PUBLISH packets, where there are frames, by connection.
    pub(crate) stream_ends: Option<Partitions<StreamEnd, STREAM_END_FIELDS>>,
    counted: Partitions<Counted, COUNTED_FIELDS>,
    released: Partitions<Released, RELEASED_FIELDS>,
    /// What else clients of MQTT-SN and their gateways say to one another.
    pub(crate) exchanges: Vec<NamedPacket>,
    /// The client of each connection, as the first packet with one says it.
    pub(crate) clients: NumberMap<i64, u32>,
    /// Connections that are among these.
    known_clients: [u32; KNOWN_CLIENTS],
}

const KNOWN_CLIENTS: usize = 64;

impl<'a> PacketSpread<'a> {
    /// For the packets of a recording; `stream_ends`: parts for these where it has frames.
    pub(crate) fn new(
        dir: &Path,
        out: &Path,
        stream_ends: Option<Partitions<StreamEnd, STREAM_END_FIELDS>>,
        settings: Option<&'a RunSettings>,
        limits: SummaryLimits,
    ) -> Result<PacketSpread<'a>> {
        let packets = control_packets::count(dir)?;
        let ranges = if packets > 0 { Ranges::read(dir, limits.range_rows)? } else { Ranges::default() };
        let parts = packets.div_ceil(limits.heap_rows).max(1) as usize;
        let stored = packets > limits.memory_rows;
        Ok(PacketSpread {
            settings,
            publishes: Partitions::new(ranges.count(), ranges.count() > 1, out, "summary-publishes")?,
            ranges,
            stream_ends,
            counted: Partitions::new(parts, stored, out, "summary-windows")?,
            released: Partitions::new(parts, stored, out, "summary-releases")?,
            exchanges: Vec::new(),
            clients: NumberMap::default(),
            known_clients: [control_packets::NONE; KNOWN_CLIENTS],
        })
    }

    /// Takes a packet.
    pub(crate) fn add(&mut self, packet: &NamedPacket) -> Result<()> {
        let connection = i64::from(packet.connection);
        if packet.connection != control_packets::NONE && packet.client() != ABSENT {
            // Every packet says it: asked once is enough.
            let known = &mut self.known_clients[packet.connection as usize % KNOWN_CLIENTS];
            if *known != packet.connection {
                *known = packet.connection;
                self.clients.entry(connection).or_insert(packet.client() as u32);
            }
        }
        if packet.kind == FollowedKind::Publish {
            if packet.is_named() {
                self.publish(packet)?;
            }
            if let Some(ends) = &mut self.stream_ends {
                let end = StreamEnd {
                    connection: packet.connection,
                    to_broker: packet.to_broker,
                    payload_bytes: packet.payload_bytes,
                    stream_end: packet.stream_end,
                };
                ends.push(part_of(connection, ends.count()), &end)?;
            }
        } else if packet.is_datagram {
            self.exchanges.push(*packet);
        }
        if let Some(one) = Counted::of(packet).filter(|_| self.has_window(packet)) {
            self.counted.push(part_of(connection, self.counted.count()), &one)?;
        }
        if let Some(one) = Released::of(packet) {
            self.released.push(part_of(one.whose, self.released.count()), &one)?;
        }
        Ok(())
    }

    /// Takes a PUBLISH whose message is known.
    pub(crate) fn publish(&mut self, packet: &NamedPacket) -> Result<()> {
        self.publishes.push(self.ranges.of(packet.message()), packet)
    }

    /// Whether there is a window on the connection of a packet; of gateways' it is not known whose.
    fn has_window(&self, packet: &NamedPacket) -> bool {
        let Some(settings) = self.settings else { return false };
        let client = packet.client();
        client == ABSENT
            || [false, true].iter().any(|&to_broker| settings.window(client, to_broker).is_some())
    }

    /// What let PUBLISH packets go, and what lets their receivers hand them on, by range of messages; and what it takes to tell
    /// the former of gateways' packets. `named`: the messages of packets that do not say them.
    pub(crate) fn permits(
        &mut self,
        out: &Path,
        named: &BTreeMap<u32, MessageKey>,
    ) -> Result<(Partitions<Permit, PERMIT_FIELDS>, OverOfGateways)> {
        let (count, mut gateways) = (self.ranges.count(), OverOfGateways::default());
        let mut permits = Partitions::new(count, count > 1, out, "summary-permits")?;
        let ranges = &self.ranges;
        let mut permit = |number: u32, message: MessageKey, what: Permitted| {
            let message = if message.0 == ABSENT { named.get(&number).copied() } else { Some(message) };
            let Some(message) = message else { return Ok(()) };
            permits.push(ranges.of(message), &Permit { number, what })
        };
        for part in 0..self.counted.count() {
            let Some(settings) = self.settings else { break };
            let mut counted = self.counted.read_part(part)?;
            windows(&mut counted, settings, &mut gateways, |one, what| {
                permit(one.number, one.message(), what)
            })?;
        }
        for part in 0..self.released.count() {
            let mut released = self.released.read_part(part)?;
            releases(&mut released, |one, what| permit(one.number, one.message(), what))?;
        }
        Ok((permits, gateways))
    }
}

/// The client of each connection, as the analyser of frames knows it, else as control packets do.
pub(crate) fn clients(dir: &Path, of_packets: NumberMap<i64, u32>) -> Result<NumberMap<i64, u32>> {
    let mut found = NumberMap::default();
    if let Some(table) = TableReader::open(dir, "network_metrics")? {
        let wanted = [("connection", Wanted::Integers), ("client", Wanted::Integers)];
        table.for_each_batch(&wanted, &mut Vocabulary::default(), |columns, rows, _| {
            for (&connection, &client) in columns[0].integers[..rows].iter().zip(&columns[1].integers) {
                if let (true, Ok(client)) = (connection != ABSENT, u32::try_from(client)) {
                    found.entry(connection).or_insert(client);
                }
            }
            Ok(())
        })?;
    }
    for (connection, client) in of_packets {
        found.entry(connection).or_insert(client);
    }
    Ok(found)
}
