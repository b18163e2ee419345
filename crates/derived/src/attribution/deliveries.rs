//! Every message followed: from its packets to its legs, from these to the frames, and back into the tables.

use std::path::Path;

use mqttlab_recording::reading::Vocabulary;
use mqttlab_recording::{AttributionWriter, HoldRow, HoldWriter, LegWriter, Result};

use crate::attribution::chain::{Chains, PublishFlights};
use crate::attribution::flights::{PacketFlight, wanted};
use crate::attribution::gateway_hops::DatagramWaits;
use crate::attribution::holds::Holds;
use crate::attribution::in_flight::{OverOfGateways, PERMIT_FIELDS, Permit};
use crate::attribution::legs::{FollowedLegs, legs};
use crate::attribution::message_ranges::Ranges;
use crate::attribution::messages::for_each_range;
use crate::attribution::naming;
use crate::attribution::packet_partitions::{PacketSpread, clients};
use crate::attribution::publishes::RangePackets;
use crate::control_packets::{self, ControlSums, NamedPacket};
use crate::network::frames::{AskedFrames, FrameTable};
use crate::partitions::{Partitions, part_of};
use crate::settings::RunSettings;

/// What messages are followed by.
struct DeliveryFollower<'a> {
    dir: &'a Path,
    settings: &'a RunSettings,
    ranges: Ranges,
    publishes: Partitions<NamedPacket, { control_packets::FIELDS }>,
    permits: Partitions<Permit, PERMIT_FIELDS>,
    gateways: OverOfGateways,
    waits: DatagramWaits,
}

impl DeliveryFollower<'_> {
    /// Hands out each range's packets and legs.
    fn for_each(
        &mut self,
        words: &mut Vocabulary,
        mut take: impl FnMut(usize, RangePackets, FollowedLegs, &Vocabulary) -> Result<()>,
    ) -> Result<()> {
        for_each_range(self.dir, words, &self.ranges, |range, deliveries, words| {
            let packets = RangePackets::read_range(&mut self.publishes, &mut self.permits, range)?;
            let followed = legs(&deliveries, &packets, &self.waits, &self.gateways, self.settings);
            drop(deliveries);
            take(range, packets, followed, words)
        })
    }
}

/// Follows the messages of a recording, and writes what is derived of them and of the frames. Returns how many deliveries were
/// followed.
pub(crate) fn follow(
    dir: &Path,
    out: &Path,
    control: &ControlSums,
    mut spread: PacketSpread<'_>,
    frames: FrameTable,
    settings: &RunSettings,
    words: &mut Vocabulary,
) -> Result<u64> {
    let clients = clients(dir, std::mem::take(&mut spread.clients))?;
    // Frames of no MQTT, or none that could be read: their sums are wanted all the same.
    if control.packets == 0 {
        let asked = AskedFrames {
            stream_ends: frames.parts(out, "summary-stream-ends")?,
            wanted: frames.parts(out, "summary-wanted")?,
            clients,
        };
        frames.sum_up(dir, out, asked, settings, words, |_, _| Ok(()))?;
        return Ok(0);
    }
    let named =
        naming::name(dir, out, &control.unnamed_topics, settings, words, |packet| spread.publish(packet))?;
    let (permits, gateways) = spread.permits(out, &named)?;
    // Each table goes as soon as the next is made of it, for memory's sake.
    drop(named);
    let PacketSpread { ranges, publishes, stream_ends, exchanges, .. } = spread;
    let waits = DatagramWaits::of(&exchanges);
    drop(exchanges);
    let count = ranges.count();
    let mut follower = DeliveryFollower { dir, settings, ranges, publishes, permits, gateways, waits };
    let mut flights = Partitions::new(count, count > 1, out, "summary-flights")?;
    let holds = Holds::read(dir, settings, &clients)?;
    let mut tables = Tables::create(out, settings, &holds)?;
    let Some(stream_ends) = stream_ends else {
        follower.for_each(words, |_, packets, followed, words| {
            tables.write(&packets, &followed, Vec::new(), words)
        })?;
        return tables.finish();
    };
    let mut asked = AskedFrames { stream_ends, wanted: frames.parts(out, "summary-wanted")?, clients };
    // A range that is the only one is not followed twice.
    let (heaps, mut kept) = (asked.wanted.count(), None);
    follower.for_each(words, |range, packets, followed, _| {
        if count == 1 {
            asked.wanted.make_room(packets.packets.len());
            flights.make_room(packets.packets.len());
        }
        wanted(&followed, &packets.packets, range as u32, settings, |one| {
            asked.wanted.push(part_of(one.connection.into(), heaps), one)
        })?;
        kept = (count == 1).then_some((packets, followed));
        Ok(())
    })?;
    frames.sum_up(dir, out, asked, settings, words, |range, flight| flights.push(range, flight))?;
    match kept {
        Some((packets, followed)) => tables.write(&packets, &followed, flights.read_part(0)?, words)?,
        None => follower.for_each(words, |range, packets, followed, words| {
            tables.write(&packets, &followed, flights.read_part(range)?, words)
        })?,
    }
    tables.finish()
}

/// Puts flights in the order of packets, and says where that of each packet is, counted from 1; 0 where it has none.
fn places(packets: &[NamedPacket], flights: &mut [PacketFlight]) -> Vec<u32> {
    // They come back connection by connection, and packets are in the table's order.
    flights.sort_unstable_by_key(|flight| flight.number);
    let (mut next, mut places) = (0, vec![0; packets.len()]);
    for (packet, place) in packets.iter().zip(&mut places) {
        if flights.get(next).is_some_and(|flight| flight.number == packet.number) {
            next += 1;
            *place = next as u32;
        }
    }
    places
}

/// The tables of where each delivery's time went.
struct Tables<'a> {
    settings: &'a RunSettings,
    holds: &'a Holds,
    attribution: AttributionWriter,
    legs: LegWriter,
    held: HoldWriter,
    topic: String,
    written: u64,
}

impl<'a> Tables<'a> {
    fn create(out: &Path, settings: &'a RunSettings, holds: &'a Holds) -> Result<Tables<'a>> {
        let (attribution, legs) = (AttributionWriter::create(out)?, LegWriter::create(out)?);
        let held = HoldWriter::create(out)?;
        Ok(Tables { settings, holds, attribution, legs, held, topic: String::new(), written: 0 })
    }

    /// Writes the legs of a range.
    fn write(
        &mut self,
        packets: &RangePackets,
        followed: &FollowedLegs,
        mut flights: Vec<PacketFlight>,
        words: &Vocabulary,
    ) -> Result<()> {
        let (packets, before) = (&packets.packets[..], self.written);
        let places = places(packets, &mut flights);
        let flights = PublishFlights { flights, places };
        let (settings, holds) = (self.settings, self.holds);
        let chains = Chains { followed, packets, flights, settings, holds, before };
        let mut held = Vec::new();
        for (number, leg) in (before..).zip(&followed.legs) {
            let instants = chains.instants_of(leg);
            held.clear();
            self.attribution.push(&chains.attribution(leg, &instants, &mut held).row(leg.delivery.row))?;
            for span in &held {
                let (from_ns, until_ns) = (span.from as u64, span.until as u64);
                self.held.push(&HoldRow { leg: number, part: span.part.as_str(), from_ns, until_ns })?;
            }
            self.legs.push(&chains.row(leg, &instants, words, &mut self.topic))?;
        }
        self.written += followed.legs.len() as u64;
        Ok(())
    }

    fn finish(self) -> Result<u64> {
        self.attribution.finish()?;
        self.legs.finish()?;
        self.held.finish()?;
        Ok(self.written)
    }
}
