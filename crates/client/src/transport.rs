//! The second seam: what carries packets, a stream or datagrams, in bytes or in lengths.
//!
//! Positions count the bytes that were put into a connection since it was opened, so that a message is known to be
//! written when the transport has taken everything up to its end. A datagram transport counts the same way.

use std::borrow::Cow;

use mqttlab_framing::{Layer, frame};
use mqttlab_rows::Sent;

use crate::facts::Who;
use crate::session::Session;

/// What a transport keeps of one client's connection, and between two of them.
pub trait Connection {
    /// What a relayed message consists of: topic and payload, or what stands for them. Its room is used again.
    type Relayed: Default;
}

/// What carries the packets of a session. Implemented by the one who performs clients, over a [`Connection`] of each.
pub trait Transport<S: Session, C: Connection> {
    /// Begins to open a connection; the shell says [`Client::opened`](crate::Client::opened) when it is.
    ///
    /// # Errors
    /// It cannot even begin.
    fn open(&mut self, client: Who, connection: &mut C) -> Result<(), Loss>;
    /// Why an attempt to open a connection is ended that takes too long: how far it has come.
    fn not_opened(&self, connection: &C) -> &'static str;
    /// Puts a packet behind what is to be written.
    fn put(&mut self, client: Who, connection: &mut C, packet: S::Packet);
    /// Puts a message behind what is to be written, and says where it ends.
    fn put_message(
        &mut self,
        client: Who,
        connection: &mut C,
        envelope: S::Envelope,
        body: Body<'_, C::Relayed>,
    ) -> u64;
    /// Why the other side will not take a message, where it has said so when it accepted the client ([MQTT-3.2.2-11],
    /// [MQTT-3.2.2-14], [MQTT-3.2.2-15]); `None`: it has not.
    fn declines(&self, _client: Who, _connection: &C, _row: &Sent, _content: u8) -> Option<String> {
        None
    }
    /// Where everything that was put ends.
    fn end(&self, connection: &C) -> u64;
    /// How far it is written.
    fn written(&self, connection: &C) -> u64;
    /// Writes as much as can be written now.
    ///
    /// # Errors
    /// The connection is broken.
    fn write(&mut self, connection: &mut C) -> Result<(), Loss>;
    /// Closes the connection, if there is one, and forgets what was to be written and what was read of a packet.
    fn close(&mut self, client: Who, connection: &mut C);
    /// As [`Transport::close`], but without a word: nothing more is sent on the connection, and nobody answers what comes. Where
    /// there is none, nothing happens.
    fn vanish(&mut self, client: Who, connection: &mut C);
    /// Gives a relayed message the topic of its copy. `false` where there can be no such topic.
    fn rename(&mut self, client: Who, relayed: &mut C::Relayed, suffix: &str) -> bool;
}

/// What a message consists of.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a, R> {
    /// One of the client's own, as the plan makes it.
    Own {
        /// Its row.
        row: &'a Sent,
        /// The number of its content: its publication, or what an event makes of that.
        content: u8,
    },
    /// One that came and is repeated.
    Relayed(&'a R),
}

/// Why a connection ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The transport broke, or the other side sent what has no place.
    Broken(Cow<'static, str>),
    /// The other side does not accept the client.
    Refused {
        /// What it says.
        how: Cow<'static, str>,
        /// Whether trying again is of no use.
        for_good: bool,
    },
    /// As planned.
    Farewell,
}

/// How far a connection has come that is not open in time: to TCP, or to its layers.
pub fn not_opened(waits_for: Option<Layer>) -> &'static str {
    match waits_for {
        None => "no TCP connection in time",
        Some(Layer::Tls) => "no TLS in time",
        Some(Layer::WebSocket) => "no WebSocket in time",
    }
}

impl From<frame::Malformed> for Loss {
    fn from(malformed: frame::Malformed) -> Loss {
        Loss::broken(format!("the broker sent {malformed}"))
    }
}

impl Loss {
    /// A connection that broke.
    pub fn broken(how: impl Into<Cow<'static, str>>) -> Loss {
        Loss::Broken(how.into())
    }
}
