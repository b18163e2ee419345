//! Packets that come to a client.

use mqttlab_mqtt::Kind;
use mqttlab_mqtt::client::{Input, Receipt};
use mqttlab_recording::identity;
use mqttlab_recording::{Identified, Received};

use crate::client::{Arriving, Client};
use crate::ids::ClientId;
use crate::message;
use crate::stream::Packet;
use crate::surroundings::Surroundings;

impl Client {
    /// A client reads a packet.
    pub(crate) fn take_packet(&mut self, around: &mut Surroundings<'_>, packet: &Packet) {
        if around.is_leaving() && !self.session.is_online() {
            // What comes after a DISCONNECT is not read any more.
            return;
        }
        let id = packet.id;
        let input = match packet.kind {
            Kind::Publish => return self.take_publish(around, packet),
            Kind::Connack => Input::Connack {
                accepted: true,
                session_present: packet.session_present,
                receive_maximum: packet.receive_maximum,
                keep_alive_s: None,
            },
            Kind::Puback => Input::Puback { id, refused: false },
            Kind::Pubrec => Input::Pubrec { id, refused: false },
            Kind::Pubrel => Input::Pubrel { id },
            Kind::Pubcomp => Input::Pubcomp { id },
            Kind::Suback => Input::Suback { id },
            Kind::Pingresp => Input::Pingresp,
            // A broker sends nothing else but UNSUBACK and DISCONNECT, which no client here waits for.
            _ => return,
        };
        self.tell(around, input);
    }

    fn take_publish(&mut self, around: &mut Surroundings<'_>, packet: &Packet) {
        let arriving = Arriving {
            message: packet.message,
            topic: packet.topic,
            qos: packet.qos,
            id: packet.id,
            dup: packet.dup,
            retained: packet.retain,
        };
        let receipt = self.session.arrived(around.now(), packet.qos, packet.id);
        self.settle(around);
        match receipt {
            Some(Receipt::Deliver) => self.deliver(around, &arriving),
            Some(Receipt::Hold) => self.held.push(arriving),
            Some(Receipt::Duplicate) | None => {}
        }
    }

    /// What was held under this identifier is delivered now.
    pub(crate) fn release(&mut self, around: &mut Surroundings<'_>, id: u16) {
        if let Some(place) = self.held.iter().position(|held| held.id == id) {
            let held = self.held.remove(place);
            self.deliver(around, &held);
        }
    }

    fn deliver(&mut self, around: &mut Surroundings<'_>, arriving: &Arriving) {
        let origin = message::origin(arriving.message);
        let payload_bytes = around.groups.payload_bytes(arriving.message);
        let identified = match origin {
            None => Identified::Unknown,
            Some(_) if payload_bytes < identity::BYTES_MIN as u32 => Identified::Order,
            Some(_) => Identified::Payload,
        };
        let row = Received {
            subscriber: self.id.0,
            publisher: origin.map(|(publisher, _)| publisher.0),
            sequence: origin.map_or(0, |(_, sequence)| sequence),
            qos: arriving.qos.level(),
            dup: arriving.dup,
            retained: arriving.retained,
            payload_bytes,
            received: around.now(),
            identified,
        };
        around.evidence.message(|recorder| recorder.received(&row));
        // Repetitions, stored messages that come again and wills are not waited for.
        if let Some((publisher, sequence)) = origin.filter(|&origin| self.is_first(origin, arriving)) {
            around.tally.delivered += 1;
            around.conductor.delivered(around.agenda.now(), self.id, (publisher, sequence));
        }
        self.relay(around, arriving.message, arriving.topic);
    }

    fn is_first(&mut self, (publisher, sequence): (ClientId, u32), arriving: &Arriving) -> bool {
        let arrived = self.arrived.entry(publisher).or_default();
        arrived.note(sequence, arriving.dup || arriving.retained)
    }
}
