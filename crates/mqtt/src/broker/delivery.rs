//! How messages come in, who gets them, and what becomes of them.

use mqttlab_units::Instant;

use super::session::{PendingDelivery, ReceivedPublish};
use super::topics::Retained;
use super::{Broker, Cause, ConnectionId, Output};
use crate::kind::{Qos, RetainHandling, SubscriptionOptions};
use crate::outbox::Dispatch;
use crate::topic::is_filter;

impl Broker {
    pub(super) fn subscribe(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        id: u16,
        filters: &[(&str, SubscriptionOptions)],
    ) {
        let Some(number) = self.sessions.at(connection) else { return };
        // A malformed packet closes the connection (§4.13).
        if filters.is_empty() || !filters.iter().all(|(filter, _)| is_filter(filter)) {
            return self.hang_up(now, connection);
        }
        let session = self.sessions.get(number);
        let (own, who) = (&mut session.subscriptions, (number, session.overlap));
        // One packet with several filters is as good as several packets ([MQTT-3.8.4-5]).
        let mut add = |filter: &str, wanted| self.subscriptions.add(own, filter, who, wanted);
        let are_new: Vec<bool> = filters.iter().map(|(filter, wanted)| add(filter, *wanted)).collect();
        // In the order of the filters ([MQTT-3.9.3-1]), and each as it was asked for, as Mosquitto grants it.
        self.write_all(now);
        let granted = filters.iter().map(|(_, wanted)| wanted.qos).collect();
        self.out.say(Output::Suback { connection, id, granted });
        // Behind SUBACK, as Mosquitto sends them; and again where a subscription is replaced ([MQTT-3.8.4-4]).
        for ((filter, wanted), is_new) in filters.iter().zip(are_new) {
            // Unless the client asks otherwise ([MQTT-3.3.1-10], [MQTT-3.3.1-11]).
            match wanted.retain_handling {
                RetainHandling::Send => {}
                RetainHandling::New if is_new => {}
                RetainHandling::New | RetainHandling::Never => continue,
            }
            // A shared subscription matches no name, and gets nothing that is retained (MQTT 5 §4.8.2).
            for (topic, Retained { message, qos, expires }) in self.topics.retained(filter) {
                if expires.is_over_retained(now) {
                    self.topics.retain(topic, None);
                    self.out.let_go(message);
                    continue;
                }
                // RETAIN tells a new subscriber that the message was kept ([MQTT-3.3.1-8] of 3.1.1).
                let delivery = PendingDelivery { topic, message, retain: true, expires };
                // At the lower of what the publisher sent and what was granted ([MQTT-3.8.4-8]).
                let kept = self.deliver(now, number, delivery, qos.min(wanted.qos));
                self.out.hold(message, kept.into());
            }
        }
    }

    pub(super) fn unsubscribe(&mut self, now: Instant, connection: ConnectionId, id: u16, filters: &[&str]) {
        let Some(number) = self.sessions.at(connection) else { return };
        let own = &mut self.sessions.get(number).subscriptions;
        // What is in flight is still delivered ([MQTT-3.10.4-3]); here what waits behind it is, too.
        filters.iter().for_each(|filter| self.subscriptions.remove(own, filter, number));
        self.write_all(now);
        // Also where nothing was subscribed to ([MQTT-3.10.4-5]).
        self.out.say(Output::Unsuback { connection, id });
    }

    /// A PUBLISH from a client.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        id: u16,
        publication: ReceivedPublish,
    ) {
        let Some(number) = self.sessions.at(connection) else { return };
        let message = publication.message;
        // While it is looked at: a copy that ends at once must not release it.
        self.out.hold(message, 1);
        match publication.qos {
            Qos::AtMostOnce => self.publish(now, number, publication),
            Qos::AtLeastOnce => {
                match self.sessions.get(number).receive_quota.has_room() {
                    true => self.publish(now, number, publication),
                    false => self.out.say(Output::Discarded { message }),
                }
                self.sessions.get(number).receive_quota.give_back();
                // Behind the copies, as Mosquitto sends it.
                self.out.say(Output::Puback { connection, id });
            }
            Qos::ExactlyOnce => {
                // Forwarded at PUBREL, as by Mosquitto.
                let kept = self.receive_once(number, id, publication);
                self.out.say(Output::Pubrec { connection, id });
                if kept {
                    return;
                }
            }
        }
        self.out.let_go(message);
    }

    /// A QoS 2 message that waits for its PUBREL from now on, unless it does already: whether it was kept.
    fn receive_once(&mut self, number: u32, id: u16, publication: ReceivedPublish) -> bool {
        let is_known = self.sessions.exchanges(number, &self.options).inbox.has(id);
        let session = self.sessions.get(number);
        if !is_known && !session.receive_quota.has_room() {
            self.out.say(Output::Discarded { message: publication.message });
            return false;
        }
        // A repetition is acknowledged again, and takes no second place ([MQTT-4.3.3-10]).
        if !is_known {
            session.receive_quota.take();
        }
        self.sessions.exchanges(number, &self.options).inbox.receive(id, publication)
    }

    /// A PUBREL: the client will not repeat the message any more, and it is forwarded. Unknown identifiers are
    /// answered too (§4.3.3).
    pub(super) fn released(&mut self, now: Instant, connection: ConnectionId, id: u16) {
        let Some(number) = self.sessions.at(connection) else { return };
        // Once PUBCOMP is sent, the same identifier stands for a new message ([MQTT-4.3.3-12]).
        let publication = self.sessions.exchanges(number, &self.options).inbox.release(id);
        if let Some(publication) = publication {
            self.publish(now, number, publication);
        }
        self.sessions.get(number).receive_quota.give_back();
        self.out.say(Output::Pubcomp { connection, id });
        if let Some(publication) = publication {
            self.out.let_go(publication.message);
        }
    }

    /// A PUBACK, which only a QoS 1 message has.
    pub(super) fn acknowledged(&mut self, now: Instant, connection: ConnectionId, id: u16) {
        let Some(number) = self.sessions.at(connection) else { return };
        let outbox = &mut self.sessions.exchanges(number, &self.options).outbox;
        // Mosquitto takes it for a protocol error (`db__message_delete_outgoing`).
        if outbox.qos_of(id) == Some(Qos::ExactlyOnce) {
            return self.hang_up(now, connection);
        }
        let delivery = outbox.acknowledge(id);
        self.finish_delivery(now, number, delivery);
    }

    /// A PUBREC, which only a QoS 2 message has.
    pub(super) fn recorded(&mut self, now: Instant, connection: ConnectionId, id: u16) {
        let Some(number) = self.sessions.at(connection) else { return };
        let outbox = &mut self.sessions.exchanges(number, &self.options).outbox;
        // As above (`db__message_update_outgoing`).
        if outbox.qos_of(id) == Some(Qos::AtLeastOnce) {
            return self.hang_up(now, connection);
        }
        outbox.release(now, id);
        // Also for an identifier that is not known: the client repeats its PUBREC until a PUBREL comes.
        self.out.say(Output::Pubrel { connection, id });
    }

    /// A PUBCOMP.
    pub(super) fn completed(&mut self, now: Instant, connection: ConnectionId, id: u16) {
        let Some(number) = self.sessions.at(connection) else { return };
        let delivery = self.sessions.exchanges(number, &self.options).outbox.complete(id);
        self.finish_delivery(now, number, delivery);
    }

    fn finish_delivery(&mut self, now: Instant, number: u32, delivery: Option<PendingDelivery>) {
        let Some(delivery) = delivery else { return };
        self.write_all(now);
        self.out.let_go(delivery.message);
        self.send_within_window(now, number);
    }

    /// Forwards a session's message, which the caller holds, to everyone who wants it.
    pub(super) fn publish(&mut self, now: Instant, publisher: u32, publication: ReceivedPublish) {
        // An empty payload clears what is retained, and is forwarded like any other ([MQTT-3.3.1-6], [MQTT-3.3.1-7]).
        let ReceivedPublish { topic, message, qos, retain, empty, expires, .. } = publication;
        if retain {
            self.write_all(now);
            self.retain(publication, !empty);
        }
        let audience = self.subscriptions.take_audience(topic, self.topics.name(topic));
        // RETAIN is for what a new subscription is sent ([MQTT-3.3.1-12]), unless one asks for it ([MQTT-3.3.1-13]).
        let copy = |granted: SubscriptionOptions| PendingDelivery {
            topic,
            message,
            retain: retain && granted.retain_as_published,
            expires,
        };
        let mut kept = 0;
        // Shared subscriptions first, as in Mosquitto's `subs__process`.
        for &share in &audience.shares {
            let (receiver, granted) = self.subscriptions.next_of_share(share);
            kept += u32::from(self.deliver(now, receiver, copy(granted), qos.min(granted.qos)));
        }
        for &(receiver, granted) in &audience.receivers {
            // A subscription without No Local brings a session its own messages, whatever its others say.
            if granted.no_local && receiver == publisher {
                continue;
            }
            kept += u32::from(self.deliver(now, receiver, copy(granted), qos.min(granted.qos)));
        }
        self.subscriptions.put_audience_back(topic, audience);
        self.out.hold(message, kept);
    }

    fn retain(&mut self, ReceivedPublish { topic, message, qos, expires, .. }: ReceivedPublish, stays: bool) {
        self.out.hold(message, stays.into());
        if let Some(before) = self.topics.retain(topic, stays.then_some(Retained { message, qos, expires })) {
            self.out.let_go(before.message);
        }
    }

    /// Sends a message to a session or lets it wait: whether it is kept until it is acknowledged.
    fn deliver(&mut self, now: Instant, number: u32, delivery: PendingDelivery, qos: Qos) -> bool {
        let queue = self.options.queue();
        let session = self.sessions.get(number);
        // A QoS 2 message may have waited for its PUBREL.
        if session.connection.is_some() && delivery.expires.is_over(now) {
            self.out.drop(number, delivery.message, Cause::Expired);
            return false;
        }
        // Without an acknowledgement nothing waits, but for clients that are away (Mosquitto's
        // `queue_qos0_messages`).
        if qos == Qos::AtMostOnce && (session.connection.is_some() || !self.options.queue_qos0) {
            self.deliver_at_once(now, number, delivery);
            return false;
        }
        if let Some(connection) = session.connection
            && let Some(dispatch) = session.exchanges(&self.options).outbox.launch(now, delivery, qos)
        {
            self.out.say(packet(now, connection, dispatch));
            if self.options.retry.is_some() {
                self.sessions.schedule(number, &self.options);
            }
            return true;
        }
        // The newest is dropped: Mosquitto refuses what comes to a full queue (`db__ready_for_queue`).
        let kept = !session.is_full(queue) && session.exchanges(&self.options).outbox.push(delivery, qos);
        match kept {
            true => self.write_all(now),
            false => self.out.drop(number, delivery.message, Cause::QueueFull),
        }
        kept
    }

    /// Sends a QoS 0 message, if there is anybody to send it to.
    fn deliver_at_once(&mut self, now: Instant, number: u32, delivery: PendingDelivery) {
        let message = delivery.message;
        let queue = self.options.queue();
        let session = self.sessions.get(number);
        let Some(connection) = session.connection else { return self.out.drop(number, message, Cause::Away) };
        // `db__ready_for_flight` compares the packets at the socket with `max_queued_messages`.
        if session.backlog >= queue {
            return self.out.drop(number, message, Cause::SocketFull);
        }
        let qos = Qos::AtMostOnce;
        let dispatch = Dispatch::Publish { message: delivery, id: 0, qos, dup: false };
        self.out.say(packet(now, connection, dispatch));
    }

    /// Sends what the window of a session lets out.
    pub(super) fn send_within_window(&mut self, now: Instant, number: u32) {
        let Some(connection) = self.sessions.get(number).connection else { return };
        while let Some(dispatch) = self.sessions.get(number).next_dispatch(now) {
            self.send(now, number, connection, dispatch);
        }
        if self.options.retry.is_some() {
            self.sessions.schedule(number, &self.options);
        }
    }

    /// Repeats what MQTT 3.1's timer has run out for.
    pub(super) fn repeat_overdue(&mut self, now: Instant, number: u32) {
        let session = self.sessions.get(number);
        // Only where it is configured: MQTT 5 repeats on a new connection alone ([MQTT-4.4.0-1]).
        let (Some(connection), Some(interval)) = (session.connection, self.options.retry) else { return };
        while let Some(dispatch) =
            self.sessions.exchanges(number, &self.options).outbox.next_overdue(now, interval)
        {
            self.send(now, number, connection, dispatch);
        }
    }

    /// Sends, and lets go of what will not be acknowledged.
    fn send(
        &mut self,
        now: Instant,
        number: u32,
        connection: ConnectionId,
        dispatch: Dispatch<PendingDelivery>,
    ) {
        // Also what was sent on an earlier connection: Mosquitto does not repeat it (measured).
        if let Dispatch::Publish { message: delivery, id, .. } = dispatch
            && delivery.expires.is_over(now)
        {
            self.sessions.exchanges(number, &self.options).outbox.give_up(id);
            self.out.drop(number, delivery.message, Cause::Expired);
            return self.out.let_go(delivery.message);
        }
        self.out.say(packet(now, connection, dispatch));
        if let Dispatch::Publish { message, qos: Qos::AtMostOnce, .. } = dispatch {
            self.out.let_go(message.message);
        }
    }
}

fn packet(now: Instant, connection: ConnectionId, dispatch: Dispatch<PendingDelivery>) -> Output {
    match dispatch {
        Dispatch::Publish { message: PendingDelivery { topic, message, retain, expires }, id, qos, dup } => {
            let expiry_s = expires.left_s(now);
            Output::Publish { connection, topic, message, qos, id, dup, retain, expiry_s }
        }
        Dispatch::Pubrel { id } => Output::Pubrel { connection, id },
    }
}
