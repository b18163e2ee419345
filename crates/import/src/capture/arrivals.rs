//! What happens at receivers, in captures that say when each frame arrived: see [`both_ends`](super::both_ends).

use mqttlab_capture::mqtt::{CapturedPacket, Kind};
use mqttlab_capture::{JoinedPacket, ServerDirection};
use mqttlab_recording::Transit;
use mqttlab_units::Instant;

use super::super::both_ends::{self, ReceiverEvent, SegmentRange};
use super::super::error::Result;
use super::super::message::CountedMessage;
use super::{FramePlace, Importer};

impl Importer<'_> {
    /// A segment comes to its first link: its packets will arrive with it, or with a later one.
    pub(super) fn enter_first_link(&mut self, carried: SegmentRange, transit: &Transit, at: Instant) {
        let Some(both_ends) = &mut self.both_ends else { return };
        for completed in self.packets.drain(..) {
            both_ends.expect(&completed, both_ends::arrival(transit, at));
        }
        both_ends.enter_first_link(carried, transit, at);
    }

    /// A frame comes to a further link of its path. Answers what it carries.
    pub(super) fn enter_next_link(&mut self, place: FramePlace, at: Instant) -> Option<SegmentRange> {
        let (_, transit) = place.transit?;
        self.both_ends.as_mut()?.enter_next_link(&transit, at)
    }

    /// What has arrived by now.
    pub(super) fn process_arrivals(&mut self, now: Instant) -> Result<()> {
        while let Some(arrived) = self.both_ends.as_mut().and_then(|both_ends| both_ends.next(now)) {
            match arrived {
                ReceiverEvent::Packet(joined) => self.joined(&joined)?,
                ReceiverEvent::Closing(closing) => {
                    let (connection, direction, at) = (closing.connection, closing.direction, closing.at);
                    self.conversations.closing(connection, direction, closing.bits(), at, &mut self.matcher);
                }
            }
            self.note_gaps();
            self.push_events()?;
            self.take_rows()?;
        }
        Ok(())
    }

    /// Nothing more comes.
    pub(super) fn end_arrivals(&mut self) -> Result<()> {
        let Some(both_ends) = &mut self.both_ends else { return Ok(()) };
        for completed in self.packets.drain(..) {
            both_ends.expect(&completed, None);
        }
        both_ends.end();
        self.process_arrivals(Instant::from_ns(u64::MAX))
    }

    fn joined(&mut self, joined: &JoinedPacket) -> Result<()> {
        let JoinedPacket { connection, direction, ref packet, complete, segments } = *joined;
        self.packet(connection, direction, packet, complete, segments)
    }

    /// A packet that never arrived, of a client that is known: nobody learns of it, and what its publisher sent is a message.
    pub(super) fn lost_packet(
        &mut self,
        connection: u32,
        direction: ServerDirection,
        packet: &CapturedPacket,
    ) -> (Option<u32>, Option<CountedMessage>) {
        let Some(client) = self.conversations.client(connection) else { return (None, None) };
        let is_publish = packet.kind.mqtt() == Some(Kind::Publish);
        let message = match direction {
            ServerDirection::ToServer if is_publish => {
                let times = [packet.first.time, packet.complete.time].map(|time| self.clock.at(time));
                self.message(client, connection, direction, packet, times)
            }
            ServerDirection::FromServer if is_publish => {
                self.matcher.passed_on(packet.payload_head.as_slice())
            }
            _ => None,
        };
        (Some(client), message)
    }
}

impl FramePlace {
    /// When a frame that came to this place arrives; where nothing says so, at once.
    pub(super) fn arrives(&self, at: Instant) -> Option<Instant> {
        match &self.transit {
            Some((_, transit)) => both_ends::arrival(transit, at),
            None => Some(at),
        }
    }
}
