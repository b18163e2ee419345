//! The messages of one client that its session holds, by token.

use mqttlab_recording::Sent;
use mqttlab_units::Instant;

/// Messages by token. A place is used again, with the room that it has.
#[derive(Default)]
pub(super) struct Messages {
    places: Vec<Message>,
    free: Vec<u32>,
}

/// A message from hand-over to its last acknowledgement.
pub(super) struct Message {
    /// What the recording knows of it. Of a relayed message, nothing.
    pub(super) row: Sent,
    /// Topic and payload of a relayed message; both are empty for one of the client's own.
    pub(super) topic: String,
    pub(super) payload: Vec<u8>,
    pub(super) relayed: bool,
    /// Whether it has been put into the outbox, so that the time of writing is, or will be, known.
    pub(super) dispatched: bool,
    /// Whether the session did not take it.
    pub(super) refused: bool,
}

impl Messages {
    /// Takes a message of the client's own, and returns its token.
    pub(super) fn add(&mut self, row: Sent) -> u64 {
        let (token, place) = self.place();
        (place.row, place.relayed) = (row, false);
        token
    }

    /// Takes a message to be relayed.
    pub(super) fn add_relayed(&mut self, topic: &str, suffix: &str, payload: &[u8]) -> u64 {
        let (token, place) = self.place();
        (place.row, place.relayed) = (NO_ROW, true);
        place.topic.clear();
        place.topic.push_str(topic);
        place.topic.push_str(suffix);
        place.payload.clear();
        place.payload.extend_from_slice(payload);
        token
    }

    pub(super) fn get(&mut self, token: u64) -> &mut Message {
        &mut self.places[token as usize]
    }

    /// The message is done with.
    pub(super) fn remove(&mut self, token: u64) {
        self.free.push(token as u32);
    }

    fn place(&mut self) -> (u64, &mut Message) {
        let token = self.free.pop().unwrap_or_else(|| {
            self.places.push(Message {
                row: NO_ROW,
                topic: String::new(),
                payload: Vec::new(),
                relayed: false,
                dispatched: false,
                refused: false,
            });
            self.places.len() as u32 - 1
        });
        let place = &mut self.places[token as usize];
        (place.dispatched, place.refused) = (false, false);
        (u64::from(token), place)
    }
}

const NO_ROW: Sent = Sent {
    publisher: 0,
    sequence: 0,
    topic: 0,
    qos: 0,
    retain: false,
    payload_bytes: 0,
    intended: Instant::ZERO,
    sent: Instant::ZERO,
    written: None,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_used_again() {
        let mut messages = Messages::default();
        let (first, second) = (messages.add(NO_ROW), messages.add_relayed("a", "/b", &[1, 2]));
        assert_eq!((first, second), (0, 1));
        let relayed = messages.get(second);
        assert_eq!((relayed.topic.as_str(), relayed.payload.as_slice()), ("a/b", &[1, 2][..]));
        messages.remove(first);
        assert_eq!(messages.add(Sent { sequence: 5, ..NO_ROW }), first);
        assert_eq!(messages.get(first).row.sequence, 5);
    }
}
