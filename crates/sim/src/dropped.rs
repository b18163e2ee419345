//! Messages that will not arrive: who dropped them, and to whom they are lost.

use mqttlab_mqtt::broker::{Cause, SessionId};
use mqttlab_recording::{Dropped, LossCause};

use crate::message;
use crate::world::World;

impl World {
    /// The broker has dropped a message for a session.
    pub(crate) fn dropped_by_broker(&mut self, session: SessionId, message: u64, cause: Cause) {
        let cause = match cause {
            Cause::QueueFull => LossCause::QueueFull,
            Cause::SocketFull => LossCause::SocketFull,
        };
        self.tally.dropped_by_broker += 1;
        let client = self.server.session_clients[session.0 as usize];
        self.drop_message(message, Some(client), cause);
    }

    /// A message will not reach a client, or nobody who has not got it.
    pub(crate) fn drop_message(&mut self, message: u64, subscriber: Option<u32>, cause: LossCause) {
        let Some((publisher, sequence)) = message::origin(message) else { return };
        let row = Dropped { publisher, sequence, subscriber, cause, at: self.now };
        self.evidence.message(|recorder| recorder.dropped(&row));
    }
}
