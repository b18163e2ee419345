//! Messages on their way in: what is held until it is released, and what has come before.

use std::collections::BTreeMap;

use mqttlab_plan::ArrivedMessages;
use mqttlab_rows::Received;
use mqttlab_units::Instant;

use crate::session::PacketId;

/// A message that has come, as the recording will have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its row; `received` is the time of delivery once it is delivered.
    pub row: Received,
    /// When it was due, where the message says.
    pub intended: Option<Instant>,
    /// The number of its content, where that is known: a simulation knows it, a payload does not say it.
    pub content: Option<u8>,
    /// Whether a client of the run published it, although nothing tells which one.
    pub is_a_clients: bool,
}

/// A message that is delivered when it is released.
pub(crate) struct HeldMessage<R> {
    id: PacketId,
    pub(crate) delivery: Delivery,
    /// What to relay then.
    pub(crate) relayed: Option<R>,
}

/// What a client knows of the messages that came to it.
pub(crate) struct IncomingMessages<R> {
    /// Of each publisher, what has arrived.
    arrived: BTreeMap<u32, ArrivedMessages>,
    held: Vec<HeldMessage<R>>,
}

impl<R> Default for IncomingMessages<R> {
    fn default() -> Self {
        IncomingMessages { arrived: BTreeMap::new(), held: Vec::new() }
    }
}

impl<R> IncomingMessages<R> {
    /// Keeps a message until it is released.
    pub(crate) fn hold(&mut self, id: PacketId, delivery: Delivery, relayed: Option<R>) {
        self.held.push(HeldMessage { id, delivery, relayed });
    }

    /// What was held under an identifier.
    pub(crate) fn release(&mut self, id: PacketId) -> Option<HeldMessage<R>> {
        let place = self.held.iter().position(|held| held.id == id)?;
        Some(self.held.remove(place))
    }

    /// How many wait to be released.
    pub(crate) fn count_held(&self) -> usize {
        self.held.len()
    }

    /// The other side has forgotten the session: what is held will never be released.
    pub(crate) fn forget_held(&mut self) {
        self.held.clear();
    }

    /// Notes a delivery, and says whether somebody waits for it: repetitions, stored messages that come again, wills and
    /// messages from elsewhere are nothing that anybody waits for.
    pub(crate) fn is_first(&mut self, delivery: &Delivery) -> bool {
        let row = &delivery.row;
        match row.publisher {
            Some(publisher) => {
                self.arrived.entry(publisher).or_default().note(row.sequence, row.dup || row.retained)
            }
            None => delivery.is_a_clients,
        }
    }
}
