//! Topic identifiers, as the gateway gives them to one client.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::packet::Topic;

/// What one client knows topics by.
#[derive(Debug, Default)]
pub(super) struct Registry {
    /// The name of each identifier, and whether the client has confirmed to know it.
    names: BTreeMap<u16, (Arc<str>, bool)>,
    ids: BTreeMap<Arc<str>, u16>,
    /// Predefined identifiers that the client has used.
    predefined: BTreeSet<u16>,
    last: u16,
}

impl Registry {
    /// The identifier of a topic, a new one where it has none; `None` when all are in use.
    pub(super) fn assign(&mut self, name: &Arc<str>) -> Option<u16> {
        if let Some(id) = self.ids.get(name) {
            return Some(*id);
        }
        // 0x0000 and 0xFFFF are reserved (§5.3.11).
        if self.names.len() >= usize::from(u16::MAX) - 1 {
            return None;
        }
        loop {
            // Round and round, so that an identifier that a client still knows is not given again soon.
            self.last = if self.last >= u16::MAX - 1 { 1 } else { self.last + 1 };
            if !self.names.contains_key(&self.last) {
                break;
            }
        }
        self.names.insert(self.last, (Arc::clone(name), false));
        self.ids.insert(Arc::clone(name), self.last);
        Some(self.last)
    }

    /// The client knows an identifier: it has asked for it, or has said so.
    pub(super) fn confirm(&mut self, id: u16) {
        if let Some((_, confirmed)) = self.names.get_mut(&id) {
            *confirmed = true;
        }
    }

    /// The client does not know an identifier.
    pub(super) fn doubt(&mut self, id: u16) {
        if let Some((_, confirmed)) = self.names.get_mut(&id) {
            *confirmed = false;
        }
    }

    pub(super) fn note_predefined(&mut self, id: u16) {
        self.predefined.insert(id);
    }

    /// What a PUBLISH to the client calls a topic; `None` where the client must be told first.
    pub(super) fn topic(&self, name: &str, predefined: &[(u16, Arc<str>)]) -> Option<Topic> {
        // A name of two octets needs no registration (§6.7).
        if let Some(short) = Topic::short(name) {
            return Some(short);
        }
        // Only identifiers that the client has used itself: it may not know of others.
        let known = predefined.iter().find(|(id, topic)| &**topic == name && self.predefined.contains(id));
        if let Some((id, _)) = known {
            return Some(Topic::Predefined(*id));
        }
        let id = *self.ids.get(name)?;
        self.names[&id].1.then_some(Topic::Registered(id))
    }

    /// The name of a registered topic.
    pub(super) fn name(&self, id: u16) -> Option<&Arc<str>> {
        self.names.get(&id).map(|(name, _)| name)
    }
}
