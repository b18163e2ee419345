//! Which packets' ways are looked for in the frames, and what is found: handed from messages to connections, and back.

use mqttlab_recording::Result;

use crate::attribution::legs::{FollowedLegs, Leg};
use crate::connections::segment_flight::{SegmentFlight, WaitEnd};
use crate::connections::streams::CarriedPacket;
use crate::control_packets::NamedPacket;
use crate::instants::{MaybeInstant, PackedInstant, known};
use crate::partitions::Packed;
use crate::settings::RunSettings;

/// A PUBLISH whose way is looked for among the frames of its connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedFlight {
    pub(crate) connection: u32,
    pub(crate) number: u32,
    /// The range of its message.
    pub(crate) range: u32,
    pub(crate) to_broker: bool,
    pub(crate) carried: CarriedPacket,
}

/// The way of a PUBLISH.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketFlight {
    /// Its row in the table.
    pub(crate) number: u32,
    pub(crate) flight: SegmentFlight,
}

/// Hands out the packets of a range whose ways are looked for, each once, as the first leg that asks needs to know it.
pub(crate) fn wanted(
    followed: &FollowedLegs,
    packets: &[NamedPacket],
    range: u32,
    settings: &RunSettings,
    mut take: impl FnMut(&WantedFlight) -> Result<()>,
) -> Result<()> {
    let mut is_wanted = vec![false; packets.len()];
    for leg in &followed.legs {
        let hops = [leg.hop_up, leg.hop_down].map(|place| followed.hop(place).map(|hop| hop.packet));
        for place in [leg.up.packet, leg.down.packet].into_iter().chain(hops).flatten() {
            // A PUBLISH to a shared broker has many legs, and one way.
            if std::mem::replace(&mut is_wanted[place as usize], true) {
                continue;
            }
            let packet = &packets[place as usize];
            take(&WantedFlight {
                connection: packet.connection,
                number: packet.number,
                range,
                to_broker: packet.to_broker,
                carried: carried(packet, leg, settings),
            })?;
        }
    }
    Ok(())
}

/// What is to be known of a packet whose way is looked for.
fn carried(packet: &NamedPacket, leg: &Leg, settings: &RunSettings) -> CarriedPacket {
    let of = |client: i64| usize::try_from(client).ok().and_then(|client| settings.clients.get(client));
    let first_sent = known(packet.first_sent_ns);
    let (tried, ready, nagle) = if packet.is_datagram {
        // Nothing holds a datagram, and each of its copies is a packet of its own.
        (first_sent, None, None)
    } else if packet.to_broker {
        // How a gateway's sockets are set is not known.
        let nagle = of(leg.up_client).map(|sender| sender.nagle).filter(|_| leg.hop_up.is_none());
        (leg.up.tried.get(), leg.up.ready.get(), nagle)
    } else {
        let nagle = of(leg.delivery.subscriber).map(|receiver| receiver.broker_nagle);
        (leg.down.tried.get(), leg.down.ready.get(), nagle)
    };
    CarriedPacket {
        stream_start: packet.stream_start,
        stream_end: packet.stream_end,
        first_sent,
        complete: known(packet.complete_ns),
        tried,
        ready,
        nagle,
    }
}

/// An instant as its distance from another one, near which it lies; 0 where it is not known.
fn since(at: MaybeInstant, base: i64) -> i64 {
    match at.map(|at| at.wrapping_sub(base)) {
        None => 0,
        Some(later @ 0..) => later + 1,
        Some(earlier) => earlier,
    }
}

fn at(since: i64, base: i64) -> MaybeInstant {
    match since {
        0 => None,
        1.. => Some(base.wrapping_add(since - 1)),
        _ => Some(base.wrapping_add(since)),
    }
}

pub(crate) const WANTED_FIELDS: usize = 9;

impl Packed<WANTED_FIELDS> for WantedFlight {
    fn fields(&self) -> [i64; WANTED_FIELDS] {
        let carried = &self.carried;
        let base = carried.first_sent.unwrap_or(0);
        let nagle = carried.nagle.map_or(0, |nagle| 1 + i64::from(nagle));
        let truths = i64::from(self.to_broker) | i64::from(carried.first_sent.is_some()) << 1 | nagle << 2;
        [
            i64::from(self.connection) << 4 | truths,
            self.number.into(),
            self.range.into(),
            carried.stream_start,
            carried.stream_end,
            base,
            since(carried.complete, base),
            since(carried.tried, base),
            since(carried.ready, base),
        ]
    }

    fn of(fields: &[i64; WANTED_FIELDS]) -> WantedFlight {
        let base = fields[5];
        WantedFlight {
            connection: (fields[0] >> 4) as u32,
            number: fields[1] as u32,
            range: fields[2] as u32,
            to_broker: fields[0] & 1 == 1,
            carried: CarriedPacket {
                stream_start: fields[3],
                stream_end: fields[4],
                first_sent: (fields[0] & 2 == 2).then_some(base),
                complete: at(fields[6], base),
                tried: at(fields[7], base),
                ready: at(fields[8], base),
                nagle: match fields[0] >> 2 & 3 {
                    0 => None,
                    nagle => Some(nagle == 2),
                },
            },
        }
    }
}

pub(crate) const FLIGHT_FIELDS: usize = 14;

impl Packed<FLIGHT_FIELDS> for PacketFlight {
    fn fields(&self) -> [i64; FLIGHT_FIELDS] {
        let flight = &self.flight;
        let base = flight.went.get().unwrap_or(0);
        let near = |at: PackedInstant| since(at.get(), base);
        // Frames and queues count from elsewhere.
        let small = |number: PackedInstant| number.get().map_or(0, |number| number + 1);
        let [first, tail] = [&flight.first, &flight.tail];
        [
            i64::from(self.number) << 1 | i64::from(flight.went.get().is_some()),
            small(flight.frame),
            base,
            small(flight.queue),
            near(flight.arrived),
            near(flight.resumed),
            near(first.nagle_until),
            near(first.socket_until),
            near(first.held_until),
            small(first.frame),
            near(tail.nagle_until),
            near(tail.socket_until),
            near(tail.held_until),
            small(tail.frame),
        ]
    }

    fn of(fields: &[i64; FLIGHT_FIELDS]) -> PacketFlight {
        let base = fields[2];
        let near = |field: usize| PackedInstant::from(at(fields[field], base));
        let small = |field: usize| PackedInstant::from((fields[field] > 0).then(|| fields[field] - 1));
        let release = |field: usize| WaitEnd {
            nagle_until: near(field),
            socket_until: near(field + 1),
            held_until: near(field + 2),
            frame: small(field + 3),
        };
        PacketFlight {
            number: (fields[0] >> 1) as u32,
            flight: SegmentFlight {
                frame: small(1),
                went: Some(base).filter(|_| fields[0] & 1 == 1).into(),
                queue: small(3),
                arrived: near(4),
                resumed: near(5),
                first: release(6),
                tail: release(10),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_flights_come_back_with_what_was_absent() {
        let at = |at: i64| PackedInstant::from(Some(at));
        let release = WaitEnd {
            nagle_until: at(5),
            socket_until: PackedInstant::default(),
            held_until: at(100),
            frame: at(0),
        };
        let flight = SegmentFlight {
            frame: at(9),
            went: at(50),
            queue: at(0),
            arrived: at(50),
            resumed: at(49),
            first: release,
            tail: WaitEnd::default(),
        };
        for flight in
            [flight, SegmentFlight { went: PackedInstant::default(), ..flight }, SegmentFlight::default()]
        {
            let one = PacketFlight { number: u32::MAX, flight };
            assert_eq!(format!("{:?}", PacketFlight::of(&one.fields())), format!("{one:?}"));
        }
    }

    #[test]
    fn a_packed_wanted_flight_comes_back_with_what_was_absent() {
        let carried = CarriedPacket {
            stream_start: 0,
            stream_end: 1 << 40,
            first_sent: Some(0),
            complete: None,
            tried: Some(0),
            ready: Some(-1),
            nagle: None,
        };
        for (first_sent, nagle) in [(Some(7), None), (None, Some(true)), (Some(0), Some(false))] {
            let one = WantedFlight {
                connection: u32::MAX,
                number: u32::MAX,
                range: 3,
                to_broker: true,
                carried: CarriedPacket { first_sent, nagle, ..carried },
            };
            assert_eq!(format!("{:?}", WantedFlight::of(&one.fields())), format!("{one:?}"));
        }
    }
}
