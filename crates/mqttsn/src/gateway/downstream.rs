//! What the broker sends, on its way to clients.

use std::sync::Arc;

use mqttlab_mqtt::{Kind, Qos};
use mqttlab_units::Instant;

use super::Gateway;
use super::interface::{BrokerPacket, Link, Mode};
use super::member::{ConnectStage, Down, MemberState};
use crate::kind::ReturnCode;
use crate::packet::Packet;

impl<M: Clone> Gateway<M> {
    /// A packet of the broker.
    pub(super) fn hear_broker(&mut self, now: Instant, link: Link, packet: BrokerPacket<M>) {
        if link == Link::OWN {
            return self.hear_for_all(now, packet);
        }
        let number = link.0;
        let Some(client) = self.members.get_mut(number).filter(|client| client.link == Some(link)) else {
            return;
        };
        match packet {
            BrokerPacket::Connack { code, .. } => {
                // Of MQTT's six codes two are left: to be tried again, or not (§5.3.10).
                let code = match code {
                    0 => ReturnCode::Accepted,
                    // The server is unavailable (MQTT 3.1.1 §3.2.2.3).
                    3 => ReturnCode::Congestion,
                    _ => ReturnCode::NotSupported,
                };
                self.accept(now, number, code);
            }
            BrokerPacket::Publish { dup, qos, retain, topic, id, message } => {
                let down = Down { topic, qos, retain, dup, id, message };
                self.with(now, number, |client, around| client.deliver(around, down));
            }
            BrokerPacket::Acknowledgement { kind: Kind::Puback | Kind::Pubrec, id } => {
                // It is remembered, so that a repetition of the client need not go to the broker.
                self.acknowledge_up(number, id);
            }
            BrokerPacket::Acknowledgement { kind: Kind::Pubcomp, id } => {
                self.answer(number, Packet::Pubcomp { id });
            }
            BrokerPacket::Acknowledgement { kind: Kind::Pubrel, id } => {
                self.with(now, number, |client, around| client.release(around, id));
            }
            BrokerPacket::Acknowledgement { kind: Kind::Unsuback, id } => {
                self.answer(number, Packet::Unsuback { id });
            }
            // 0x80 is no level, and refuses (MQTT 3.1.1 §3.9.3).
            BrokerPacket::Suback { id, code } => self.suback(number, id, Qos::from_level(code)),
            // Those of the gateway itself are nobody else's.
            BrokerPacket::Pingresp if client.pings > 0 => {
                client.pings -= 1;
                self.answer(number, Packet::Pingresp);
            }
            _ => {}
        }
    }

    fn hear_for_all(&mut self, now: Instant, packet: BrokerPacket<M>) {
        if let BrokerPacket::Publish { qos, retain, topic, id, message, .. } = packet {
            // The session acknowledges it to the broker whether or not clients get it: it is the gateway's.
            if self.own.arrived(now, qos, id) {
                self.distribute(now, &topic, (qos, retain), &message);
            }
            let followed = self.with_own(now, |own, around| own.drain(around));
            return self.follow(now, followed);
        }
        let followed = self.with_own(now, |own, around| own.received(around, packet));
        self.follow(now, followed);
    }

    /// A message for everybody behind an aggregating gateway who has subscribed to it.
    fn distribute(&mut self, now: Instant, topic: &Arc<str>, (qos, retain): (Qos, bool), message: &M) {
        for (number, granted) in self.own.audience(topic) {
            self.with(now, number, |client, around| {
                // An identifier of its own for each client: the broker's is that of the shared session.
                let (id, topic, message) = (client.next_id(), Arc::clone(topic), message.clone());
                client
                    .deliver(around, Down { topic, qos: qos.min(granted), retain, dup: false, id, message });
            });
        }
    }

    /// The aggregating gateway has reached the broker: those who have waited for it are let in.
    pub(super) fn accept_waiting(&mut self, now: Instant) {
        if self.options.mode == Mode::Transparent {
            return;
        }
        let waiting = |state| state == MemberState::Connecting(ConnectStage::Broker);
        let waiting = self.members.iter().filter(|(_, client)| waiting(client.state));
        let numbers: Vec<u32> = waiting.map(|(number, _)| number).collect();
        for number in numbers {
            self.accept(now, number, ReturnCode::Accepted);
        }
    }
}
