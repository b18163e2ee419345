//! The first seam: what a protocol is to a client's life.
//!
//! A session knows no bytes and no topics. It says which packets to send and what became of messages that it was given;
//! transports make bytes, or lengths, of its packets. After each call its steps are taken by [`Session::poll`] until there
//! are none.

use mqttlab_mqtt::{Kind, Qos};
use mqttlab_units::Instant;

pub use mqttlab_mqtt::client::{Admission, Receipt};

/// What a client knows one of its outgoing messages by, from hand-over to the last acknowledgement. Used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(pub u32);

/// What the other side knows a message by while it is being acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketId(pub u16);

/// A message that came, as far as a session must know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Quality of service.
    pub qos: Qos,
    /// What its sender knows it by.
    pub id: PacketId,
    /// What it calls its topic, where that is not its name.
    pub alias: Option<mqttlab_mqttsn::Topic>,
}

/// A protocol's session.
pub trait Session {
    /// A packet that it sends and that carries no message.
    type Packet;
    /// What it says about a message beside the message itself: identifier, flags.
    type Envelope;
    /// A packet that came and carries no message.
    type Received;

    /// Why a connection is ended whose other side does not say whether it accepts.
    fn not_accepted(&self) -> &'static str;

    /// The transport is open.
    fn opened(&mut self, now: Instant);
    /// The transport is gone.
    fn closed(&mut self, now: Instant);
    /// A deadline may have come.
    fn tick(&mut self, now: Instant);
    /// The application subscribes to what the plan says.
    fn subscribe(&mut self, now: Instant);
    /// The application subscribes to something more, or unsubscribes from something: the change of this number among those of
    /// the client. Asked only once the change before was answered.
    fn change_subscription(&mut self, _now: Instant, _change: u32, _subscribes: bool) {}
    /// The application wants to leave.
    fn disconnect(&mut self, now: Instant);
    /// The application publishes. The topic by the run's number, which messages that are repeated do not have.
    fn publish(&mut self, now: Instant, message: Token, topic: Option<u32>, qos: Qos) -> Admission;
    /// A message came. `None` where it has no place, or where the protocol discards it.
    fn arrived(&mut self, now: Instant, message: Arrived) -> Option<Receipt>;
    /// Another packet came.
    fn received(&mut self, now: Instant, packet: Self::Received);
    /// The transport has taken so many more messages whole.
    fn written(&mut self, _: Instant, _: usize) {}
    /// The next thing to do.
    fn poll(&mut self) -> Option<Step<Self::Packet, Self::Envelope>>;
    /// When to call [`Session::tick`] at the latest; a peek.
    fn next_deadline(&self) -> Option<Instant>;
    /// Whether the other side has accepted.
    fn is_online(&self) -> bool;
    /// Whether the next message of this quality of service would go out at once.
    fn has_room(&self, qos: Qos) -> bool;
    /// Messages that wait for an acknowledgement or to be sent.
    fn unacknowledged(&self) -> usize;
}

/// Something that a client must do or know for its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<P, E> {
    /// Send the packet that asks to be accepted.
    Connect(P),
    /// Send the packet that subscribes.
    Subscribe(P),
    /// Send the packet that changes a subscription.
    ChangeSubscription(P),
    /// Send a message, or send it again.
    Publish {
        /// Which.
        message: Token,
        /// What to say about it.
        envelope: E,
        /// Whether nothing will be heard of it any more.
        settled: bool,
    },
    /// Send any other packet.
    Send(P),
    /// The other side accepts, and still has the session or not.
    Connected {
        /// Whether it has.
        resumed: bool,
    },
    /// The subscription was answered.
    Subscribed,
    /// The change of a subscription was answered.
    SubscriptionChanged,
    /// The other side will not have a subscription, and says why.
    SubscriptionRefused(&'static str),
    /// A message that was held is for the application now.
    Release(PacketId),
    /// The last acknowledgement of a message has come.
    Acknowledged(Token),
    /// The other side knows of no receiver of a message.
    NoSubscribers(Token),
    /// The other side will not have a message, and says in which packet and with which code of MQTT 5.
    Refused(Token, Option<(Kind, u8)>),
    /// It sleeps from now on, or no longer.
    Asleep(bool),
    /// Everything has been said: the connection ends as planned.
    Close,
    /// The connection must end.
    Fail(&'static str),
}

impl<P, E> Step<P, E> {
    /// The same with other packets and envelopes.
    pub fn map<Q, F>(self, packet: impl FnOnce(P) -> Q, said: impl FnOnce(E) -> F) -> Step<Q, F> {
        match self {
            Step::Connect(sent) => Step::Connect(packet(sent)),
            Step::Subscribe(sent) => Step::Subscribe(packet(sent)),
            Step::ChangeSubscription(sent) => Step::ChangeSubscription(packet(sent)),
            Step::Publish { message, envelope, settled } => {
                Step::Publish { message, envelope: said(envelope), settled }
            }
            Step::Send(sent) => Step::Send(packet(sent)),
            Step::Connected { resumed } => Step::Connected { resumed },
            Step::Subscribed => Step::Subscribed,
            Step::SubscriptionChanged => Step::SubscriptionChanged,
            Step::SubscriptionRefused(why) => Step::SubscriptionRefused(why),
            Step::Release(id) => Step::Release(id),
            Step::Acknowledged(message) => Step::Acknowledged(message),
            Step::NoSubscribers(message) => Step::NoSubscribers(message),
            Step::Refused(message, code) => Step::Refused(message, code),
            Step::Asleep(asleep) => Step::Asleep(asleep),
            Step::Close => Step::Close,
            Step::Fail(why) => Step::Fail(why),
        }
    }
}
