//! Messages that will not arrive: who dropped them, and to whom they are lost.
//!
//! What clients that say goodbye leave behind is not lost: the run is over before it could have arrived.

use mqttlab_mqtt::broker::{Cause, SessionId};
use mqttlab_mqtt::{Kind, Qos};
use mqttlab_recording::{Dropped, LossCause};

use crate::connection::Side;
use crate::message;
use crate::stream::Packet;
use crate::world::World;

impl World {
    /// The broker has dropped a message for a session.
    pub(crate) fn dropped_by_broker(&mut self, session: SessionId, message: u64, cause: Cause) {
        let cause = match cause {
            Cause::QueueFull => LossCause::QueueFull,
            Cause::SocketFull => LossCause::SocketFull,
            Cause::Away => LossCause::ConnectionLost,
            Cause::SessionEnded => LossCause::SessionEnded,
        };
        self.tally.dropped_by_broker +=
            u64::from(matches!(cause, LossCause::QueueFull | LossCause::SocketFull));
        let client = self.server.session_clients[session.0 as usize];
        self.drop_message(message, Some(client), cause);
    }

    /// A connection has ended with a packet in it that was never read, and at QoS 0 nobody repeats it.
    pub(crate) fn dropped_with_connection(&mut self, place: u32, from: Side, packet: &Packet) {
        if packet.kind != Kind::Publish || packet.qos != Qos::AtMostOnce {
            return;
        }
        let client = self.connections.peek(place).client;
        match from {
            Side::Broker => self.drop_message(packet.message, Some(client), LossCause::ConnectionLost),
            // A copy that a relay makes is not for those who get the message itself.
            Side::Client if message::owner(packet.message) == client => {
                self.drop_message(packet.message, None, LossCause::ConnectionLost);
            }
            Side::Client => {}
        }
    }

    /// A message will not reach a client, or nobody who has not got it.
    fn drop_message(&mut self, message: u64, subscriber: Option<u32>, cause: LossCause) {
        if self.leaving && !matches!(cause, LossCause::QueueFull | LossCause::SocketFull) {
            return;
        }
        let Some((publisher, sequence)) = message::origin(message) else { return };
        let row = Dropped { publisher, sequence, subscriber, cause, at: self.now };
        self.evidence.message(|recorder| recorder.dropped(&row));
    }
}
