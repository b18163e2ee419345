//! Messages that wait in a client for their turn, and the identifiers of what it sends.

use std::collections::VecDeque;

use mqttlab_mqtt::Qos;

use super::exchange::Queued;
use super::interface::Subject;

/// What waits.
#[derive(Clone, Debug, Default)]
pub(super) struct OutgoingQueue {
    queue: VecDeque<Queued>,
    last_id: u16,
}

impl OutgoingQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Messages that the application waits for.
    pub(super) fn unacknowledged(&self) -> usize {
        self.queue.iter().filter(|message| message.qos != Qos::AtMostOnce).count()
    }

    /// Whether the message that the application knows by this token waits.
    pub(super) fn waits(&self, token: u32) -> bool {
        self.queue.iter().any(|message| message.token == token)
    }

    pub(super) fn push(&mut self, message: Queued) {
        self.queue.push_back(message);
    }

    /// A message that was sent has to be sent again, before the others.
    pub(super) fn put_back(&mut self, message: Queued) {
        self.queue.push_front(message);
    }

    pub(super) fn next(&self) -> Option<Queued> {
        self.queue.front().copied()
    }

    pub(super) fn take(&mut self) {
        self.queue.pop_front();
    }

    /// Takes out all messages of a topic that has no identifier.
    pub(super) fn take_of(&mut self, topic: u32) -> VecDeque<Queued> {
        let of_it = |message: &Queued| message.subject == Subject::Named(topic);
        let (taken, kept) = self.queue.drain(..).partition(of_it);
        self.queue = kept;
        taken
    }

    pub(super) fn next_id(&mut self) -> u16 {
        // Zero is what a PUBLISH has that nobody acknowledges (§5.4.12).
        self.last_id = self.last_id.wrapping_add(1).max(1);
        self.last_id
    }
}
