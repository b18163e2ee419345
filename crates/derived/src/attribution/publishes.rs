//! The PUBLISH packets of a range of messages, and what other packets did for them.

use mqttlab_recording::Result;

use crate::attribution::in_flight::{PERMIT_FIELDS, Permit, Permitted};
use crate::control_packets::NamedPacket;
use crate::instants::PackedInstant;
use crate::partitions::Partitions;

/// What other packets did for a PUBLISH.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Permits {
    /// When the in-flight window let it through, and which acknowledgement made room.
    pub(crate) window: PackedInstant,
    pub(crate) window_packet: Option<u32>,
    /// When its PUBREL had come, and which that is.
    pub(crate) release: PackedInstant,
    pub(crate) release_packet: Option<u32>,
    /// On connections of nobody, how many of QoS 1 and 2 were before it.
    pub(crate) before: Option<u32>,
}

/// Packets in the order of their numbers. Places among them are what legs know them by.
#[derive(Default)]
pub(crate) struct RangePackets {
    pub(crate) packets: Vec<NamedPacket>,
    permits: Vec<Permits>,
}

impl RangePackets {
    pub(crate) fn read_range<const N: usize>(
        publishes: &mut Partitions<NamedPacket, N>,
        permits: &mut Partitions<Permit, PERMIT_FIELDS>,
        range: usize,
    ) -> Result<RangePackets>
    where
        NamedPacket: crate::partitions::Packed<N>,
    {
        let (mut packets, permits) = (publishes.read_part(range)?, permits.read_part(range)?);
        // Those that had to be named came behind the others.
        if !packets.is_sorted_by_key(|packet| packet.number) {
            packets.sort_unstable_by_key(|packet| packet.number);
        }
        let mut of_packets = Vec::new();
        if !permits.is_empty() {
            of_packets.resize(packets.len(), Permits::default());
        }
        for permit in permits {
            let Ok(place) = packets.binary_search_by_key(&permit.number, |packet| packet.number) else {
                continue;
            };
            let one: &mut Permits = &mut of_packets[place];
            match permit.what {
                Permitted::Window { by, at } => {
                    (one.window_packet, one.window) = (Some(by), Some(at).into());
                }
                Permitted::Place { before } => one.before = Some(before),
                Permitted::Release { by, at } => {
                    (one.release_packet, one.release) = (Some(by), Some(at).into());
                }
            }
        }
        Ok(RangePackets { packets, permits: of_packets })
    }

    pub(crate) fn permits(&self, place: u32) -> Permits {
        self.permits.get(place as usize).copied().unwrap_or_default()
    }
}
