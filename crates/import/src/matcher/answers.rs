//! What acknowledgements of MQTT 5 say beside that a packet came (§3.4.2.1, §3.5.2.1): a refusal ends the exchange, and a
//! broker may say that it knows of no subscriber.

use mqttlab_capture::mqtt::CapturedPacket;
use mqttlab_mqtt::{Kind, Version, reason};
use mqttlab_recording::{Dropped, LossCause};
use mqttlab_units::Instant;

use super::{CountedMessage, MatchedRow, Matcher, Slot};

impl Matcher {
    /// The broker answered what a client published. Returns the words of a refusal.
    pub fn answered(&mut self, client: u32, packet: &CapturedPacket, at: Instant) -> Option<String> {
        let (kind, id) = (packet.kind.mqtt()?, packet.id?);
        let code = packet.reason.unwrap_or(0);
        match (kind, code) {
            // No PUBREL follows a PUBREC that refuses ([MQTT-4.3.3-4]).
            (Kind::Puback | Kind::Pubrec, reason::REFUSED..) => {
                return Some(self.refused(client, (kind, id, code), at));
            }
            (Kind::Puback | Kind::Pubrec, reason::NO_MATCHING_SUBSCRIBERS) => {
                let outgoing = self.outgoing.get(&(client, id)).map(|outgoing| outgoing.message);
                outgoing.into_iter().for_each(|message| {
                    self.drop(client, message, LossCause::NoMatchingSubscribers, at);
                });
            }
            _ => {}
        }
        // A PUBCOMP ends the exchange whatever its code says: the broker had the message by its PUBREC.
        if matches!(kind, Kind::Puback | Kind::Pubcomp) {
            self.acknowledged(client, id, at);
        }
        None
    }

    /// A client answered what the broker delivered. Returns the words of a refusal: its host had the message, and the
    /// client did not take it.
    pub fn delivery_answered(&mut self, client: u32, packet: &CapturedPacket) -> Option<String> {
        let (kind, id) = (packet.kind.mqtt()?, packet.id?);
        let refusal = packet.reason.filter(|&code| code >= reason::REFUSED && kind != Kind::Pubcomp);
        if refusal.is_some() || matches!(kind, Kind::Puback | Kind::Pubcomp) {
            self.completed(client, id);
        }
        refusal.map(|code| format!("delivery, {kind}: {}", reason::in_words(kind, Version::V5, code)))
    }

    fn refused(&mut self, client: u32, (kind, id, code): (Kind, u16, u8), at: Instant) -> String {
        let outgoing = self.outgoing.remove(&(client, id));
        let topic = outgoing.as_ref().and_then(|outgoing| outgoing.topic);
        if let Some(outgoing) = outgoing {
            self.drop(client, outgoing.message, LossCause::Refused, at);
        }
        match topic.map(|topic| self.subscriptions.topic_name(topic)).filter(|name| !name.is_empty()) {
            Some(name) => format!("PUBLISH to {name}: {}", reason::in_words(kind, Version::V5, code)),
            None => format!("PUBLISH: {}", reason::in_words(kind, Version::V5, code)),
        }
    }

    /// No receiver gets a message of a client's own; what a relay passes on was another broker's to answer.
    fn drop(&mut self, client: u32, message: CountedMessage, cause: LossCause, at: Instant) {
        let CountedMessage { publisher, sequence } = message;
        if publisher != client {
            return;
        }
        if cause == LossCause::Refused {
            self.waiting.refuse(message);
        }
        let row = Dropped { publisher, sequence, subscriber: None, cause, at };
        self.push(Slot::Row(MatchedRow::Dropped(row)));
    }
}
