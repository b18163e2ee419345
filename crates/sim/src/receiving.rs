//! Packets that come to a client.

use mqttlab_mqtt::Kind;
use mqttlab_mqtt::client::{Input, Receipt};
use mqttlab_recording::identity;
use mqttlab_recording::{Identified, Received};

use crate::client::Arriving;
use crate::message;
use crate::stream::Packet;
use crate::world::World;

impl World {
    /// A client reads a packet.
    pub(crate) fn take_packet(&mut self, number: u32, packet: &Packet) {
        if self.leaving && !self.clients[number as usize].session.is_online() {
            // Nobody is there to take what comes after a farewell.
            return;
        }
        let id = packet.id;
        let input = match packet.kind {
            Kind::Publish => return self.take_publish(number, packet),
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
        self.tell(number, input);
    }

    fn take_publish(&mut self, number: u32, packet: &Packet) {
        let arriving = Arriving {
            message: packet.message,
            topic: packet.topic,
            qos: packet.qos,
            id: packet.id,
            dup: packet.dup,
            retained: packet.retain,
        };
        let now = self.now;
        let receipt = self.clients[number as usize].session.arrived(now, packet.qos, packet.id);
        self.settle(number);
        match receipt {
            Some(Receipt::Deliver) => self.deliver(number, &arriving),
            Some(Receipt::Hold) => self.clients[number as usize].held.push(arriving),
            Some(Receipt::Duplicate) | None => {}
        }
    }

    /// What was held under this identifier is delivered now.
    pub(crate) fn release(&mut self, number: u32, id: u16) {
        let client = &mut self.clients[number as usize];
        if let Some(place) = client.held.iter().position(|held| held.id == id) {
            let held = client.held.remove(place);
            self.deliver(number, &held);
        }
    }

    fn deliver(&mut self, number: u32, arriving: &Arriving) {
        let origin = message::origin(arriving.message);
        let payload_bytes = self.payload_bytes(arriving.message);
        let identified = match origin {
            None => Identified::Unknown,
            Some(_) if payload_bytes < identity::BYTES_MIN as u32 => Identified::Order,
            Some(_) => Identified::Payload,
        };
        let row = Received {
            subscriber: number,
            publisher: origin.map(|(publisher, _)| publisher),
            sequence: origin.map_or(0, |(_, sequence)| sequence),
            qos: arriving.qos.level(),
            dup: arriving.dup,
            retained: arriving.retained,
            payload_bytes,
            received: self.now,
            identified,
        };
        self.evidence.message(|recorder| recorder.received(&row));
        // Repetitions, stored messages that come again and wills are nothing that anybody waits for.
        if let Some((publisher, sequence)) = origin.filter(|&origin| self.is_first(number, origin, arriving))
        {
            self.tally.delivered += 1;
            self.conductor.count(number);
            self.measure(publisher, sequence);
        }
        self.relay(number, arriving.message, arriving.topic);
    }

    fn is_first(&mut self, number: u32, (publisher, sequence): (u32, u32), arriving: &Arriving) -> bool {
        let arrived = self.clients[number as usize].arrived.entry(publisher).or_default();
        arrived.note(sequence, arriving.dup || arriving.retained)
    }

    /// Takes the latency of a delivery into the figures, while its message's time is still known.
    fn measure(&mut self, publisher: u32, sequence: u32) {
        let client = &self.clients[publisher as usize];
        let age = client.offered.saturating_sub(sequence) as usize;
        let place = client.intended.len().checked_sub(age);
        if let Some(&intended) = place.and_then(|place| client.intended.get(place)) {
            self.conductor.measure(intended, self.now.since(intended));
        }
    }
}
