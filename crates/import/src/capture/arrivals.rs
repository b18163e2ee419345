//! What happens at receivers, in captures that say when each frame arrived: see [`both_ends`](super::both_ends).

use mqttlab_capture::mqtt::{Kind, Packet};
use mqttlab_capture::{Direction, Joined};
use mqttlab_recording::Transit;
use mqttlab_units::Instant;

use super::super::both_ends::{self, Arrived, Carried};
use super::super::error::Result;
use super::super::message::Message;
use super::{FramePlace, Importer};

impl Importer<'_> {
    /// A segment comes to its first link: its packets will arrive with it, or with a later one.
    pub(super) fn set_out(&mut self, carried: Carried, transit: &Transit, at: Instant) {
        let Some(both_ends) = &mut self.both_ends else { return };
        for completed in self.packets.drain(..) {
            both_ends.expect(&completed, both_ends::arrival(transit, at));
        }
        both_ends.set_out(carried, transit, at);
    }

    /// A frame comes to a further link of its path. Answers what it carries.
    pub(super) fn pass_on(&mut self, place: FramePlace, at: Instant) -> Option<Carried> {
        let (_, transit) = place.transit?;
        self.both_ends.as_mut()?.pass_on(&transit, at)
    }

    /// What has arrived by now.
    pub(super) fn settle(&mut self, now: Instant) -> Result<()> {
        while let Some(arrived) = self.both_ends.as_mut().and_then(|both_ends| both_ends.next(now)) {
            match arrived {
                Arrived::Packet(joined) => self.joined(&joined)?,
                Arrived::Closing(closing) => {
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
        self.settle(Instant::from_ns(u64::MAX))
    }

    fn joined(&mut self, joined: &Joined) -> Result<()> {
        let Joined { connection, direction, ref packet, complete, segments } = *joined;
        self.packet(connection, direction, packet, complete, segments)
    }

    /// A packet that never arrived, of a client that is known: nobody learns of it, and what its publisher sent is a message.
    pub(super) fn lost_packet(
        &mut self,
        connection: u32,
        direction: Direction,
        packet: &Packet,
    ) -> (Option<u32>, Option<Message>) {
        let Some(client) = self.conversations.client(connection) else { return (None, None) };
        let is_publish = packet.kind.mqtt() == Some(Kind::Publish);
        let message = match direction {
            Direction::ToServer if is_publish => {
                let times = [packet.first.time, packet.complete.time].map(|time| self.clock.at(time));
                self.message(client, connection, direction, packet, times)
            }
            Direction::FromServer if is_publish => self.matcher.passed_on(packet.payload_head.as_slice()),
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
