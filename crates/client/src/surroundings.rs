//! The third seam: who performs a client: a live worker, or a simulated world.

use mqttlab_mqtt::Qos;
use mqttlab_rows::Sent;
use mqttlab_units::{Duration, Instant};

use crate::books::Books;
use crate::facts::Who;
use crate::incoming::Delivery;
use crate::rows::Rows;
use crate::session::PacketId;
use crate::transport::Connection;

/// Who performs a client, while it has its turn.
pub trait Surroundings: Rows {
    /// The time as it was last read.
    fn now(&self) -> Instant;
    /// Reads the clock. Simulated time stands still during a turn.
    fn read_clock(&mut self) -> Instant {
        self.now()
    }
    /// Whether the run is over, so that clients leave.
    fn is_leaving(&self) -> bool;
    /// Where clients count.
    fn books(&mut self) -> &mut Books;

    /// What the plan says of a client's message, by the number of its content (its publication, or what an event makes of that), its
    /// place in its publication, and the client's own count of messages; `None` where it has none.
    fn message(&self, client: Who, content: usize, index: u64, sequence: u64) -> Option<MessageFacts>;
    /// The name of a topic, by its number in the recording.
    fn topic_name(&self, topic: u32) -> &str;
    /// A change of a client's subscriptions by its number, if there is one: the filter, and whether it subscribes.
    fn subscription_change(&self, client: Who, number: u32) -> Option<(String, bool)>;
    /// Whether it subscribes to anything after so many changes.
    fn has_subscriptions(&self, client: Who, changes: u32) -> bool;
    /// How many deliveries a message causes.
    fn deliveries(&self, row: &Sent) -> u32;
    /// Whether a client has offered so much that it is others' turn.
    fn is_turn_over(&self, offered: Offered) -> bool;

    /// A message is about to be handed to its session. `late` is how late the client is with it, without what handing
    /// over others of the same intended time took.
    fn offered(&mut self, row: &Sent, late: Duration);
    /// The session has taken a message with this content; nothing of it is written yet.
    fn admitted(&mut self, row: &Sent, content: usize);
    /// A client sleeps from now on, or no longer.
    fn rest(&mut self, client: Who, asleep: bool);
    /// A message was delivered; `first` says whether it is no repetition, and one of the run's own.
    fn delivered(&mut self, delivery: &Delivery, first: bool);
}

/// What the plan says of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageFacts {
    /// The topic, by its number in the recording.
    pub topic: u32,
    /// Size of the application message.
    pub payload_bytes: u32,
    /// Its own quality of service, and whether RETAIN is set; `None`: as all of its publication.
    pub quality: Option<(u8, bool)>,
}

/// What a client has offered in its turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    /// Messages.
    pub messages: u32,
    /// Bytes put into the connection for them.
    pub bytes: u64,
}

/// A message that has just come, as the transport knows it. Nothing of it is copied unless it must be kept.
pub trait Arriving<C: Connection, A> {
    /// Quality of service.
    fn qos(&self) -> Qos;
    /// What its sender knows it by.
    fn id(&self) -> PacketId;
    /// What it calls its topic, where that is not its name.
    fn alias(&self) -> Option<mqttlab_mqttsn::Topic> {
        None
    }
    /// Finds out whose message it is. Asked once, and not of what was received before.
    fn identify(&self, client: Who, connection: &mut C, around: &mut A) -> Delivery;
    /// Copies topic and payload, to be relayed.
    fn copy_to(&self, relayed: &mut C::Relayed);
}
