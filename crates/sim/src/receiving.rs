//! Packets that come to a client.

use mqttlab_mqtt::Kind;
use mqttlab_mqtt::client::Input;
use mqttlab_recording::identity;
use mqttlab_recording::{Identified, Received};

use crate::client::{Arriving, Reception};
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
        self.clients[number as usize].arriving = Some(Arriving {
            message: packet.message,
            topic: packet.topic,
            qos: packet.qos,
            id: packet.id,
            dup: packet.dup,
            retained: packet.retain,
            outcome: Reception::Ignored,
        });
        self.tell(number, Input::Arrived { token: packet.id.into(), qos: packet.qos, id: packet.id });
        let Some(arriving) = self.clients[number as usize].arriving.take() else { return };
        match arriving.outcome {
            Reception::Ignored => {}
            Reception::Held => self.clients[number as usize].held.push(arriving),
            Reception::Delivered => self.deliver(number, &arriving),
        }
    }

    pub(crate) fn note_reception(&mut self, number: u32, outcome: Reception) {
        if let Some(arriving) = &mut self.clients[number as usize].arriving {
            arriving.outcome = outcome;
        }
    }

    /// The session delivers what has just arrived, or what was held under this identifier.
    pub(crate) fn deliver_or_release(&mut self, number: u32, id: u64) {
        let client = &mut self.clients[number as usize];
        if client.arriving.is_some() {
            return self.note_reception(number, Reception::Delivered);
        }
        if let Some(place) = client.held.iter().position(|held| u64::from(held.id) == id) {
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
