//! How sessions begin, lose their connections, and end.

use std::sync::Arc;

use mqttlab_units::Instant;

use super::session::{Publication, Session};
use super::{Broker, Cause, ConnectionId, Input, Output, Will};
use crate::kind::Version;

impl Broker {
    /// A connection is gone: its session stays for as long as was agreed, its will is published.
    pub fn closed(&mut self, now: Instant, connection: ConnectionId) {
        let Some(number) = self.session_at(connection) else { return };
        self.by_connection[connection.0 as usize] = None;
        let session = self.session(number);
        (session.connection, session.heard) = (None, now);
        if let Some(exchanges) = &mut session.exchanges {
            exchanges.outbox.disconnect();
        }
        let will = session.will.take();
        if session.expiry.is_some_and(|expiry| expiry.is_zero()) {
            self.forget(number);
        } else {
            self.schedule(number);
        }
        if let Some(Will { topic, message, qos, retain }) = will {
            self.publish(now, Publication { topic, message, qos, retain, empty: false });
            self.let_go(message);
        }
    }

    pub(super) fn connect(&mut self, now: Instant, connection: ConnectionId, input: Input<'_>) {
        let Input::Connect { client, version, clean, keep_alive, session_expiry, receive_maximum, will } =
            input
        else {
            return;
        };
        if let Some(will) = will {
            self.holds.hold(will.message, 1);
        }
        let Some(client) = self.name(client, version, clean) else {
            return self.reject(connection, will);
        };
        let known = self.resume(now, &client, clean);
        let number = known.unwrap_or_else(|| self.begin(client));
        let window = self.options.window();
        let session = self.session(number);
        (session.connection, session.expiry, session.backlog) = (Some(connection), session_expiry, 0);
        (session.keep_alive, session.heard, session.will) = (keep_alive, now, will);
        session.window = window.min(receive_maximum.max(1));
        if let Some(exchanges) = &mut session.exchanges {
            exchanges.outbox.set_window(session.window);
        }
        let place = connection.0 as usize;
        if self.by_connection.len() <= place {
            self.by_connection.resize(place + 1, None);
        }
        self.by_connection[place] = Some(number);
        // MQTT 3.1's CONNACK has no place for it.
        let session_present = known.is_some() && version != Version::V31;
        self.answer(connection, session_present, true);
        self.pump(now, number);
        self.schedule(number);
    }

    /// The client identifier, made up if need be; `None` where an empty one is not allowed ([MQTT-3.1.3-8], and
    /// MQTT 3.1 §3.1).
    fn name(&mut self, client: &str, version: Version, clean: bool) -> Option<Arc<str>> {
        if !client.is_empty() {
            return Some(client.into());
        }
        let allowed = match version {
            Version::V31 => false,
            Version::V311 => clean,
            Version::V5 => true,
        };
        allowed.then(|| self.invent_name())
    }

    fn invent_name(&mut self) -> Arc<str> {
        loop {
            self.anonymous += 1;
            let name = format!("auto-{}", self.anonymous);
            if !self.by_client.contains_key(name.as_str()) {
                return name.into();
            }
        }
    }

    fn reject(&mut self, connection: ConnectionId, will: Option<Will>) {
        self.answer(connection, false, false);
        self.ready.push_back(Output::Close { connection });
        if let Some(will) = will {
            self.let_go(will.message);
        }
    }

    fn answer(&mut self, connection: ConnectionId, session_present: bool, accepted: bool) {
        let receive_maximum = self.options.window();
        self.ready.push_back(Output::Connack { connection, session_present, accepted, receive_maximum });
    }

    /// The session that a client has left here and wants to go on with.
    fn resume(&mut self, now: Instant, client: &str, clean: bool) -> Option<u32> {
        let number = *self.by_client.get(client)?;
        if let Some(older) = self.session(number).connection {
            // A second connection of the same client ends the first ([MQTT-3.1.4-2]), and with it maybe the session.
            self.hang_up(now, older);
        }
        let number = *self.by_client.get(client)?;
        if clean {
            self.forget(number);
            return None;
        }
        Some(number)
    }

    fn begin(&mut self, client: Arc<str>) -> u32 {
        let session = Some(Box::new(Session::new(Arc::clone(&client), &self.options)));
        let number = match self.vacant.pop() {
            Some(number) => {
                self.sessions[number as usize] = session;
                number
            }
            None => {
                self.sessions.push(session);
                self.sessions.len() as u32 - 1
            }
        };
        self.by_client.insert(client, number);
        number
    }

    /// Ends a session without a connection.
    fn forget(&mut self, number: u32) {
        let Some(mut session) = self.sessions[number as usize].take() else { return };
        if let Some(at) = session.look {
            self.looks.remove(&(at, number));
        }
        self.by_client.remove(&session.client);
        session
            .subscriptions
            .iter()
            .for_each(|subscription| self.subscriptions.withdraw(*subscription, number));
        self.vacant.push(number);
        let Some(exchanges) = &mut session.exchanges else { return };
        let sent = exchanges.outbox.drain().map(|delivery| delivery.message);
        sent.for_each(|message| {
            self.drop(number, message, Cause::SessionEnded);
            self.let_go(message);
        });
        let held = exchanges.inbox.drain().map(|publication| publication.message);
        held.for_each(|message| self.let_go(message));
    }

    /// Sees to it that a session is looked at in time.
    pub(super) fn schedule(&mut self, number: u32) {
        let retry = self.options.retry;
        let session = self.sessions[number as usize].as_mut().expect("a session that is scheduled is there");
        let Some(at) = session.next_look(retry) else { return };
        // What is put off is noticed when the time comes: a client that talks is not scheduled anew at every word.
        if session.look.is_some_and(|look| look <= at) {
            return;
        }
        if let Some(before) = session.look.replace(at) {
            self.looks.remove(&(before, number));
        }
        self.looks.insert((at, number));
    }

    /// The time has come to look at a session.
    pub(super) fn look(&mut self, now: Instant, number: u32) {
        let session = self.session(number);
        session.look = None;
        if session.expires().is_some_and(|at| at <= now) {
            return self.forget(number);
        }
        if let Some(connection) = session.connection {
            if session.silence_ends().is_some_and(|at| at <= now) {
                return self.hang_up(now, connection);
            }
            self.repeat_overdue(now, number);
        }
        self.schedule(number);
    }
}
