//! What clients send, on its way to the broker.

use std::sync::Arc;

use mqttlab_mqtt::{Kind, Qos, topic};
use mqttlab_units::Instant;

use super::interface::{BrokerPacket, Cause, Mode, Will};
use super::member::{MemberState, Up};
use super::own_link::OwnLinkEvent;
use super::{Gateway, invalid_topic, predefined};
use crate::kind::ReturnCode;
use crate::packet::{Filter, Packet, Topic};

/// A PUBLISH of a client.
struct ClientPublish<M> {
    dup: bool,
    qos: Qos,
    retain: bool,
    topic: Topic,
    id: u16,
    message: M,
}

impl<M: Clone> Gateway<M> {
    /// A packet of a client that is known.
    pub(super) fn hear_client(&mut self, now: Instant, number: u32, packet: Packet<Arc<str>, M>) {
        let Some(client) = self.members.get_mut(number) else { return };
        (client.heard, client.fresh) = (now, false);
        let connecting = matches!(client.state, MemberState::Connecting(_));
        match packet {
            Packet::Willtopic { .. }
            | Packet::Willmsg { .. }
            | Packet::Willtopicupd { .. }
            | Packet::Willmsgupd { .. } => self.will(now, number, packet),
            // A client may leave before it was let in.
            Packet::Disconnect { duration_s: None } => self.leave(now, number),
            // Nothing else has a place before CONNACK (§6.2).
            _ if connecting => {}
            Packet::Disconnect { duration_s: Some(seconds) } => {
                self.with(now, number, |client, around| client.sleep_for(around, seconds));
            }
            Packet::Register { id, name, .. } => {
                self.with(now, number, |client, around| client.name_topic(around, id, &name));
            }
            Packet::Publish { dup, qos, retain, topic, id, message } => {
                let qos = qos.level();
                self.publish(now, number, ClientPublish { dup, qos, retain, topic, id, message });
            }
            Packet::Pubrel { id } => self.pubrel(now, number, id),
            Packet::Subscribe { qos, id, filter, .. } => self.subscribe(now, number, (qos, id), filter),
            Packet::Unsubscribe { id, filter } => self.unsubscribe(now, number, id, filter),
            Packet::Pingreq { client_id } => {
                self.with(now, number, |client, around| client.pingreq(around, client_id.is_some()));
            }
            Packet::Regack { id, code, .. } => {
                self.with(now, number, |client, around| client.regack(around, id, code));
            }
            Packet::Puback { topic_id, id, code } => {
                self.with(now, number, |client, around| client.puback(around, topic_id, id, code));
            }
            Packet::Pubrec { id } => {
                self.with(now, number, |client, around| client.pubrec(around, id));
            }
            Packet::Pubcomp { id } => {
                self.with(now, number, |client, around| client.pubcomp(around, id));
            }
            // What only gateways say.
            _ => {}
        }
        self.with(now, number, |_, _| ());
    }

    /// QoS −1: there is no client, and no answer.
    pub(super) fn publish_without_connection(
        &mut self,
        now: Instant,
        topic: Topic,
        retain: bool,
        message: M,
    ) {
        let name = match topic {
            // Such an identifier has a meaning for one client, and there is none (§6.8).
            Topic::Registered(_) => None,
            Topic::Predefined(id) => predefined(&self.options, id),
            Topic::Short(_) => topic.short_name().map(Arc::from),
        };
        let followed = self.with_own(now, |own, around| match name {
            Some(topic) => {
                own.publish(around, Will { topic, qos: Qos::AtMostOnce, retain, message }, None);
                own.drain(around)
            }
            None => {
                around.drop(None, message, Cause::UnknownTopic);
                Vec::new()
            }
        });
        self.follow(now, followed);
    }

    fn publish(&mut self, now: Instant, number: u32, publication: ClientPublish<M>) {
        let ClientPublish { dup, qos, retain, topic, id, message } = publication;
        let Some(name) = self.name(number, topic).filter(|name| topic::is_name(name)) else {
            self.answer(number, invalid_topic(topic, id));
            self.with(now, number, |_, around| around.drop(None, message, Cause::UnknownTopic));
            return;
        };
        // Before it is remembered as the last one, which it would be compared with.
        if self.is_duplicate(number, dup, qos, id) {
            self.counters.duplicates += 1;
            return;
        }
        if qos != Qos::AtMostOnce
            && let Some(client) = self.members.get_mut(number)
        {
            client.up = Some(Up { id, topic_id: topic.number(), qos, answered: false });
        }
        match self.options.mode {
            Mode::Transparent => {
                let packet = BrokerPacket::Publish { dup, qos, retain, topic: name, id, message };
                self.with(now, number, |client, around| client.send_to_broker(around, packet));
            }
            Mode::Aggregating => {
                let waiter = (qos != Qos::AtMostOnce).then_some((number, id));
                let content = Will { topic: name, qos, retain, message };
                let (taken, followed) = self.with_own(now, |own, around| {
                    let taken = own.publish(around, content, waiter);
                    (taken, own.drain(around))
                });
                if !taken && qos != Qos::AtMostOnce {
                    let code = ReturnCode::Congestion;
                    self.answer(number, Packet::Puback { topic_id: topic.number(), id, code });
                    // The client sends it again after T_WAIT, and it is no duplicate then.
                    self.with(now, number, |client, _| client.up = None);
                }
                self.follow(now, followed);
            }
        }
    }

    /// Whether a PUBLISH repeats one that was passed on. If that was answered, it is answered again.
    fn is_duplicate(&mut self, number: u32, dup: bool, qos: Qos, id: u16) -> bool {
        let up = self.members.get(number).and_then(|client| client.up);
        // Without DUP it is a new message: identifiers come round again.
        let Some(up) = up.filter(|up| dup && up.id == id && up.qos == qos && qos != Qos::AtMostOnce) else {
            return false;
        };
        // At QoS 1 duplicates are allowed; at QoS 2 they are not ([MQTT-4.3.3-10]).
        if up.qos == Qos::AtLeastOnce && !self.options.filter_duplicates {
            return false;
        }
        // The answer was lost; otherwise the broker's is still to come, and will be passed on.
        if up.answered {
            self.answer(number, up.answer());
        }
        true
    }

    /// The broker has the message.
    pub(super) fn acknowledge_up(&mut self, number: u32, id: u16) {
        let up = self.members.get_mut(number).and_then(|client| client.up.as_mut());
        let Some(up) = up.filter(|up| up.id == id) else { return };
        up.answered = true;
        let answer = up.answer();
        self.answer(number, answer);
    }

    fn pubrel(&mut self, now: Instant, number: u32, id: u16) {
        match self.options.mode {
            Mode::Transparent => {
                let packet = BrokerPacket::Acknowledgement { kind: Kind::Pubrel, id };
                self.with(now, number, |client, around| client.send_to_broker(around, packet));
            }
            // Towards the broker the shared session has an exchange of its own.
            Mode::Aggregating => self.answer(number, Packet::Pubcomp { id }),
        }
    }

    fn subscribe(&mut self, now: Instant, number: u32, (qos, id): (Qos, u16), filter: Filter<Arc<str>>) {
        let predefined = match filter {
            Filter::Predefined(id) => Some(id),
            Filter::Name(_) | Filter::Short(_) => None,
        };
        let short = matches!(filter, Filter::Short(_));
        let Some(filter) = self.filter(number, filter) else {
            // An identifier that is not known is an invalid topic; a filter that is none is not supported.
            let code = if predefined.is_some() { ReturnCode::InvalidTopic } else { ReturnCode::NotSupported };
            return self.answer(number, Packet::Suback { qos, topic_id: 0, id, code });
        };
        let Some(client) = self.members.get_mut(number) else { return };
        // With wild cards, and for short topics, the identifier has no meaning (§5.4.16).
        let named = !short && predefined.is_none() && topic::is_name(&filter);
        let assigned = if named { client.topics.assign(&filter) } else { predefined };
        client.subscribing.insert(id, assigned.unwrap_or(0));
        if self.options.mode == Mode::Transparent {
            let packet = BrokerPacket::Subscribe { id, filter, qos };
            self.with(now, number, |client, around| client.send_to_broker(around, packet));
            return;
        }
        let (known, followed) = self.with_own(now, |own, around| {
            let known = own.subscribe(around, (number, id), &filter, qos);
            (known, own.drain(around))
        });
        if known {
            self.suback(number, id, Some(qos));
        }
        self.follow(now, followed);
    }

    /// A SUBSCRIBE is answered; `None` refuses it.
    pub(super) fn suback(&mut self, number: u32, id: u16, granted: Option<Qos>) {
        let Some(client) = self.members.get_mut(number) else { return };
        let Some(topic_id) = client.subscribing.remove(&id) else { return };
        if granted.is_some() {
            // SUBACK names the topic (§5.4.16): no REGISTER need come before its messages.
            client.topics.confirm(topic_id);
        }
        let code = if granted.is_some() { ReturnCode::Accepted } else { ReturnCode::NotSupported };
        let packet = Packet::Suback { qos: granted.unwrap_or_default(), topic_id, id, code };
        self.answer(number, packet);
    }

    fn unsubscribe(&mut self, now: Instant, number: u32, id: u16, filter: Filter<Arc<str>>) {
        let filter = self.filter(number, filter);
        match (self.options.mode, filter) {
            (Mode::Transparent, Some(filter)) => {
                let packet = BrokerPacket::Unsubscribe { id, filter };
                self.with(now, number, |client, around| client.send_to_broker(around, packet));
            }
            // UNSUBACK has no return code (§5.4.18): it comes even where nothing was subscribed to.
            (_, filter) => {
                if let Some(filter) = filter {
                    self.own.unsubscribe(number, &filter);
                }
                self.answer(number, Packet::Unsuback { id });
            }
        }
    }

    /// Lets clients know what the gateway's own connection has brought.
    pub(super) fn follow(&mut self, now: Instant, followed: Vec<OwnLinkEvent>) {
        for what in followed {
            match what {
                OwnLinkEvent::Online => self.accept_waiting(now),
                OwnLinkEvent::Acknowledged { client, id } => self.acknowledge_up(client, id),
                OwnLinkEvent::Subscribed { client, id, granted } => self.suback(client, id, granted),
            }
        }
    }
}
