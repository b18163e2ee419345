//! How sessions begin, lose their connections, and end.

use mqttlab_units::Instant;

use super::expiry::Expiry;
use super::receive_quota::ReceiveQuota;
use super::session::ReceivedPublish;
use super::subscriptions::Overlap;
use super::{Broker, Cause, ConnectionId, Excess, Input, Output, Will};
use crate::kind::Version;

impl Broker {
    /// A connection is gone: its session stays for as long as was agreed, its will is published.
    pub fn closed(&mut self, now: Instant, connection: ConnectionId) {
        let Some(number) = self.sessions.unbind(connection) else { return };
        let session = self.sessions.get(number);
        // The expiry interval counts from the end of the connection (§3.1.2.11.2).
        (session.connection, session.heard) = (None, now);
        if let Some(exchanges) = &mut session.exchanges {
            // The send quota is counted anew on each connection (§4.9).
            exchanges.outbox.disconnect();
        }
        let will = session.will.take();
        // Expiry 0 ends the session with its connection (§3.1.2.11.2), as clean session did ([MQTT-3.1.2-6] of 3.1.1).
        if session.expiry.is_some_and(|expiry| expiry.is_zero()) {
            self.forget(number);
        } else {
            self.sessions.schedule(number, &self.options);
        }
        // Last: a session that ends here does not receive its own will.
        self.publish_will(now, number, will);
    }

    pub(super) fn publish_will(&mut self, now: Instant, number: u32, will: Option<Will>) {
        if let Some(Will { topic, message, qos, retain, empty }) = will {
            self.publish(
                now,
                number,
                ReceivedPublish { topic, message, qos, retain, empty, came: now, expires: Expiry::NEVER },
            );
            self.out.let_go(message);
        }
    }

    pub(super) fn connect(&mut self, now: Instant, connection: ConnectionId, input: Input<'_>) {
        let Input::Connect { client, version, clean, keep_alive, session_expiry, receive_maximum, will } =
            input
        else {
            return;
        };
        if let Some(will) = will {
            self.out.hold(will.message, 1);
        }
        let Some(client) = self.sessions.name(client, version, clean) else {
            return self.reject(connection, will);
        };
        // Clean start comes before CONNACK, which says whether a session goes on ([MQTT-3.1.4-4], [MQTT-3.2.2-3]).
        let known = self.resume(now, &client, clean);
        let number = known.unwrap_or_else(|| self.sessions.begin(client, &self.options));
        let window = self.options.window();
        let session = self.sessions.get(number);
        (session.connection, session.expiry, session.backlog) = (Some(connection), session_expiry, 0);
        (session.keep_alive, session.heard, session.will) = (keep_alive, now, will);
        session.overlap = if version == Version::V5 { Overlap::Each } else { Overlap::Once };
        // Mosquitto takes the client's word in the place of its own limit, also where it is larger (measured with 2.0.11).
        session.window = if receive_maximum == u16::MAX { window } else { receive_maximum.max(1) };
        let unreleased = session.exchanges.as_ref().map_or(0, |exchanges| exchanges.inbox.len());
        session.receive_quota = match self.options.excess {
            Excess::Dropped if version != Version::V5 => ReceiveQuota::new(window, unreleased),
            _ => ReceiveQuota::NONE,
        };
        // Receive maximum is the connection's, and no part of the session (§4.9).
        if let Some(exchanges) = &mut session.exchanges {
            exchanges.outbox.set_window(session.window);
        }
        let is_stored = session.is_stored();
        if is_stored {
            self.write_all(now);
        }
        self.sessions.bind(connection, number);
        // MQTT 3.1's CONNACK has no place for it.
        let session_present = known.is_some() && version != Version::V31;
        self.out.say(self.options.connack(connection, session_present, true));
        // Nothing may go before CONNACK ([MQTT-3.2.0-1]).
        self.send_within_window(now, number);
        self.sessions.schedule(number, &self.options);
    }

    fn reject(&mut self, connection: ConnectionId, will: Option<Will>) {
        // Session Present is 0 in a refusal ([MQTT-3.2.2-6]), and the connection is closed behind it ([MQTT-3.2.2-7]).
        self.out.say(self.options.connack(connection, false, false));
        self.out.say(Output::Close { connection });
        if let Some(will) = will {
            self.out.let_go(will.message);
        }
    }

    /// The session that a client has left here and wants to go on with.
    fn resume(&mut self, now: Instant, client: &str, clean: bool) -> Option<u32> {
        let number = self.sessions.of(client)?;
        let session = self.sessions.get(number);
        if let Some(older) = session.connection {
            // Mosquitto publishes the will only where the session ends, too (`connect__on_authorised` of its `handle_connect.c`),
            // although [MQTT-3.1.2-8] wants it whenever a connection ends without DISCONNECT.
            let goes_on = !clean && session.expiry.is_none_or(|expiry| !expiry.is_zero());
            let will = session.will.take_if(|_| goes_on);
            // A second connection of the same client ends the first ([MQTT-3.1.4-3]), and with it maybe the session.
            self.hang_up(now, older);
            will.into_iter().for_each(|will| self.out.let_go(will.message));
        }
        let number = self.sessions.of(client)?;
        // Whatever was there is discarded ([MQTT-3.1.2-4]).
        if clean {
            self.forget(number);
            return None;
        }
        Some(number)
    }

    /// Ends a session without a connection.
    pub(super) fn forget(&mut self, number: u32) {
        let Some(mut session) = self.sessions.end(number) else { return };
        session
            .subscriptions
            .iter()
            .for_each(|subscription| self.subscriptions.withdraw(*subscription, number));
        let Some(exchanges) = &mut session.exchanges else { return };
        let sent = exchanges.outbox.drain().map(|delivery| delivery.message);
        sent.for_each(|message| {
            self.out.drop(number, message, Cause::SessionEnded);
            self.out.let_go(message);
        });
        // Without PUBREL they were forwarded to nobody, and are not now.
        let held = exchanges.inbox.drain().map(|publication| publication.message);
        held.for_each(|message| self.out.let_go(message));
    }

    /// The time has come to look at a session.
    pub(super) fn look(&mut self, now: Instant, number: u32) {
        let session = self.sessions.get(number);
        session.look = None;
        if session.expires().is_some_and(|at| at <= now) {
            return self.forget(number);
        }
        if let Some(connection) = session.connection {
            // As if the network had failed, so that the will is published ([MQTT-3.1.2-22], §3.1.2.5).
            if session.silence_ends(&self.options).is_some_and(|at| at <= now) {
                return self.hang_up(now, connection);
            }
            self.repeat_overdue(now, number);
        }
        // A look may come too early: whoever was heard since is not scheduled anew before.
        self.sessions.schedule(number, &self.options);
    }
}
