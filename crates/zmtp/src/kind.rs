//! Kinds of packets, socket types, and what is refused.

use std::fmt;

/// What is said at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The first 64 bytes of each side.
    Greeting,
    /// The command that ends the handshake.
    Ready,
    /// The command that refuses it.
    Error,
    /// A subscription: a command in 3.1, a message of one frame in 3.0.
    Subscribe,
    /// The end of one.
    Cancel,
    /// A message, with all of its frames.
    Message,
    /// A command that asks whether the other side is there.
    Ping,
    /// The answer.
    Pong,
    /// A command that nobody here knows.
    Command,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 9] = [
        Kind::Greeting,
        Kind::Ready,
        Kind::Error,
        Kind::Subscribe,
        Kind::Cancel,
        Kind::Message,
        Kind::Ping,
        Kind::Pong,
        Kind::Command,
    ];

    /// As it is called in recordings.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Greeting => "GREETING",
            Kind::Ready => "READY",
            Kind::Error => "ERROR",
            Kind::Subscribe => "SUBSCRIBE",
            Kind::Cancel => "CANCEL",
            Kind::Message => "MESSAGE",
            Kind::Ping => "PING",
            Kind::Pong => "PONG",
            Kind::Command => "COMMAND",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The sockets of publish and subscribe (RFC 29).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SocketType {
    /// Publishes, and drops what nobody has subscribed to.
    Pub,
    /// Subscribes.
    Sub,
    /// As PUB, and hands subscriptions to its application.
    Xpub,
    /// As SUB, and subscribes as its application says.
    Xsub,
}

impl SocketType {
    /// As READY says it.
    pub const fn name(self) -> &'static str {
        match self {
            SocketType::Pub => "PUB",
            SocketType::Sub => "SUB",
            SocketType::Xpub => "XPUB",
            SocketType::Xsub => "XSUB",
        }
    }

    /// The type of this name.
    pub fn from_name(name: &[u8]) -> Option<SocketType> {
        use SocketType::{Pub, Sub, Xpub, Xsub};
        [Pub, Sub, Xpub, Xsub].into_iter().find(|socket| socket.name().as_bytes() == name)
    }

    /// Whether it takes subscriptions and sends messages.
    pub const fn publishes(self) -> bool {
        matches!(self, SocketType::Pub | SocketType::Xpub)
    }

    /// Whether two sockets may speak to each other (RFC 29, "compatible socket types").
    pub const fn suits(self, other: SocketType) -> bool {
        self.publishes() != other.publishes()
    }
}

/// Why bytes, or what they say, have no place here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The first byte is not that of a greeting.
    NotZmtp,
    /// A greeting of ZMTP 1.0 or 2.0.
    OldVersion(u8),
    /// A mechanism other than NULL.
    Mechanism,
    /// Flags that mean nothing.
    Flags(u8),
    /// A frame that is larger than what is taken, in bytes.
    TooLong(u64),
    /// A message with more frames than are taken.
    TooManyFrames,
    /// A command whose fields do not fill it.
    Command,
    /// A packet before the handshake lets it be said, or after.
    OutOfPlace(Kind),
    /// READY names a socket that this one does not speak to, or none.
    SocketType,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::NotZmtp => {
                f.write_str("the peer does not speak ZMTP: its first bytes are no greeting")
            }
            Malformed::OldVersion(version) => {
                write!(f, "the peer speaks ZMTP {version}.0, but 3.0 or later is needed")
            }
            Malformed::Mechanism => f.write_str("the peer wants a security mechanism other than NULL"),
            Malformed::Flags(flags) => write!(f, "a frame has flags 0x{flags:02x}, which mean nothing"),
            Malformed::TooLong(length) => write!(f, "a frame of {length} bytes is longer than is taken"),
            Malformed::TooManyFrames => f.write_str("a message has more frames than are taken"),
            Malformed::Command => f.write_str("a command whose fields do not fill it"),
            Malformed::OutOfPlace(kind) => write!(f, "a {kind} that is not allowed here"),
            Malformed::SocketType => f.write_str("the peer's socket is of a type that does not suit"),
        }
    }
}

impl std::error::Error for Malformed {}
