//! Who has a session: by number, by client, by connection; and when which one is to be looked at.
//!
//! What it does not know: what a session's beginning, its end, or a look at it means for messages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mqttlab_units::Instant;

use super::session::{BrokerSession, Exchanges};
use super::{BrokerOptions, ConnectionId, SessionInfo};
use crate::kind::Version;

/// All sessions.
#[derive(Clone, Debug, Default)]
pub(super) struct BrokerSessions {
    table: Vec<Option<Box<BrokerSession>>>,
    vacant: Vec<u32>,
    by_client: BTreeMap<Arc<str>, u32>,
    by_connection: Vec<Option<u32>>,
    /// When which session is to be looked at: its client may have been silent too long, or gone too long, or owe an
    /// acknowledgement.
    looks: BTreeSet<(Instant, u32)>,
    /// Client identifiers made up so far.
    anonymous: u64,
}

impl BrokerSessions {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.by_client.len()
    }

    /// The numbers of all.
    pub(super) fn numbers(&self) -> Vec<u32> {
        let numbered = (0..).zip(&self.table);
        numbered.filter(|(_, session)| session.is_some()).map(|(number, _)| number).collect()
    }

    /// A look into each, in the order of their numbers.
    pub(super) fn infos(&self) -> impl Iterator<Item = SessionInfo<'_>> {
        self.table.iter().flatten().map(|session| session.info())
    }

    /// The client of a session, if that is there still.
    pub(super) fn client(&self, number: u32) -> Option<&str> {
        self.table.get(number as usize)?.as_ref().map(|session| &*session.client)
    }

    /// The session that a connection belongs to.
    pub(super) fn at(&self, connection: ConnectionId) -> Option<u32> {
        self.by_connection.get(connection.0 as usize).copied().flatten()
    }

    /// The session of a client.
    pub(super) fn of(&self, client: &str) -> Option<u32> {
        self.by_client.get(client).copied()
    }

    /// A session that is referred to.
    pub(super) fn get(&mut self, number: u32) -> &mut BrokerSession {
        self.table[number as usize].as_mut().expect("a session that is referred to is there")
    }

    /// What it exchanges with its client.
    pub(super) fn exchanges(&mut self, number: u32, options: &BrokerOptions) -> &mut Exchanges {
        self.get(number).exchanges(options)
    }

    /// A connection belongs to a session from now on.
    pub(super) fn bind(&mut self, connection: ConnectionId, number: u32) {
        let place = connection.0 as usize;
        if self.by_connection.len() <= place {
            self.by_connection.resize(place + 1, None);
        }
        self.by_connection[place] = Some(number);
    }

    /// A connection is gone; the session that it belonged to.
    pub(super) fn unbind(&mut self, connection: ConnectionId) -> Option<u32> {
        self.by_connection.get_mut(connection.0 as usize)?.take()
    }

    /// A session begins.
    pub(super) fn begin(&mut self, client: Arc<str>, options: &BrokerOptions) -> u32 {
        let session = Some(Box::new(BrokerSession::new(Arc::clone(&client), options)));
        let number = match self.vacant.pop() {
            Some(number) => {
                self.table[number as usize] = session;
                number
            }
            None => {
                self.table.push(session);
                self.table.len() as u32 - 1
            }
        };
        self.by_client.insert(client, number);
        number
    }

    /// A session without a connection ends; what is left of it.
    pub(super) fn end(&mut self, number: u32) -> Option<Box<BrokerSession>> {
        let session = self.table[number as usize].take()?;
        if let Some(at) = session.look {
            self.looks.remove(&(at, number));
        }
        self.by_client.remove(&session.client);
        self.vacant.push(number);
        Some(session)
    }

    /// The client identifier, made up if need be; `None` where an empty one is not allowed ([MQTT-3.1.3-8] of 3.1.1, and
    /// MQTT 3.1 §3.1).
    pub(super) fn name(&mut self, client: &str, version: Version, clean: bool) -> Option<Arc<str>> {
        if !client.is_empty() {
            return Some(client.into());
        }
        let allowed = match version {
            Version::V31 => false,
            // A session that is kept must be found again by its name ([MQTT-3.1.3-7] of 3.1.1).
            Version::V311 => clean,
            // The server assigns one then ([MQTT-3.1.3-6]).
            Version::V5 => true,
        };
        allowed.then(|| self.invent_name())
    }

    fn invent_name(&mut self) -> Arc<str> {
        loop {
            self.anonymous += 1;
            let name = format!("auto-{}", self.anonymous);
            // No other session has it ([MQTT-3.2.2-16]).
            if !self.by_client.contains_key(name.as_str()) {
                return name.into();
            }
        }
    }

    /// Sees to it that a session is looked at in time.
    pub(super) fn schedule(&mut self, number: u32, options: &BrokerOptions) {
        let session = self.get(number);
        let Some(at) = session.next_look(options) else { return };
        // What is put off is noticed when the time comes: a client that talks is not scheduled anew at every word.
        if session.look.is_some_and(|look| look <= at) {
            return;
        }
        if let Some(before) = session.look.replace(at) {
            self.looks.remove(&(before, number));
        }
        self.looks.insert((at, number));
    }

    /// When the next one is to be looked at.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.looks.first().map(|(at, _)| *at)
    }

    /// One that is to be looked at by now.
    pub(super) fn take_look(&mut self, now: Instant) -> Option<u32> {
        let &(at, number) = self.looks.first()?;
        if at > now {
            return None;
        }
        self.looks.pop_first();
        Some(number)
    }
}
