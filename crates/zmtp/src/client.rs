//! The machine of a PUB or a SUB socket with one connection.
//!
//! **PUB** sends what somebody has subscribed to, and drops the rest, as libzmq does: filters are applied where messages come
//! from. What its peer subscribed to it still knows when the connection is lost, so that messages wait for the next one, up to the
//! high-water mark; what exceeds it is refused. It is *ready* when all topics that it was told to wait for have a subscription.
//!
//! **SUB** subscribes when the handshake is over. Nobody answers a subscription; a PING behind it is answered when the peer has
//! read it (peers of 3.0 know no PING: there it is ready when it has subscribed).
//!
//! What it does not model: messages that libzmq keeps when a connection breaks because its engine has not yet read them. What was
//! handed to the connection is lost with it.

use std::collections::VecDeque;

use mqttlab_units::Instant;

use crate::command::Command;
use crate::greeting::Greeting;
use crate::handshake::Handshake;
use crate::pipe::Pipe;
use crate::prefixes::Prefixes;
use crate::{Kind, Malformed, SocketType};

/// How a client is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// PUB or SUB.
    pub socket: SocketType,
    /// Messages that wait for the connection before more are refused; 0: no limit.
    pub high_water_mark: u32,
    /// How many subscriptions a SUB has.
    pub subscriptions: u32,
    /// Topics that must be subscribed to before a PUB is ready.
    pub awaited: Vec<Box<[u8]>>,
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// The connection is open.
    Opened,
    /// It is over.
    Closed,
    /// The application subscribes, or wants to know that others have.
    Subscribe,
    /// The application leaves; what was published goes out before.
    Disconnect,
    /// The connection has taken so many messages whole.
    Taken(u64),
    /// A greeting came.
    Greeting(Greeting),
    /// A command came, or a subscription of 3.0.
    Command(Command<&'a [u8]>),
}

/// A packet to be sent that carries no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Send {
    /// The greeting.
    Greeting,
    /// READY.
    Ready,
    /// A subscription, by number.
    Subscribe {
        /// Which.
        subscription: u32,
        /// The minor version of 3 that the peer speaks.
        minor: u8,
    },
    /// PING.
    Ping,
    /// PONG with a context of this length, all zeros but for what the peer sent.
    Pong(Context),
}

/// What a PONG repeats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    bytes: [u8; 16],
    len: u8,
}

impl Context {
    /// Of a PING, which has no more.
    pub fn of(bytes: &[u8]) -> Context {
        // A context has 16 octets at most (RFC 37, "Connection Heartbeating").
        let len = bytes.len().min(16);
        let mut context = Context { bytes: [0; 16], len: len as u8 };
        context.bytes[..len].copy_from_slice(&bytes[..len]);
        context
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Something to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this packet.
    Send(Send),
    /// Send this message.
    Message {
        /// Which.
        token: u32,
    },
    /// The handshake is over.
    Connected,
    /// Subscriptions are where they are to be.
    Subscribed,
    /// Close the connection: everything has been said.
    Close,
    /// Close the connection, because of what came.
    Fail(Reason),
}

/// Why a connection must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// What came has no place.
    Malformed(Malformed),
    /// The peer sent ERROR.
    Refused,
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It goes out now.
    Sent,
    /// It waits for the next connection.
    Waiting,
    /// Nobody has subscribed to its topic.
    Filtered,
    /// The high-water mark is reached.
    Full,
}

/// A socket with one connection, or none.
#[derive(Clone, Debug)]
pub struct Client {
    options: ClientOptions,
    /// `None` without a connection.
    handshake: Option<Handshake>,
    /// What the peer subscribes to. It outlives connections.
    wanted: Prefixes,
    pipe: Pipe,
    /// Messages that wait for a connection.
    waiting: VecDeque<u32>,
    awaits_ready: bool,
    awaits_pong: bool,
    leaving: bool,
    outputs: VecDeque<Output>,
}

impl Client {
    /// A socket that has never been connected.
    pub fn new(options: ClientOptions) -> Client {
        Client {
            pipe: Pipe::new(options.high_water_mark),
            options,
            handshake: None,
            wanted: Prefixes::default(),
            waiting: VecDeque::new(),
            awaits_ready: false,
            awaits_pong: false,
            leaving: false,
            outputs: VecDeque::new(),
        }
    }

    /// Something happened.
    pub fn handle(&mut self, _now: Instant, input: Input<'_>) {
        let outcome = match input {
            Input::Opened => {
                // Both sides greet at once, and neither waits for the other (RFC 37).
                self.handshake = Some(Handshake::new(self.options.socket));
                self.send(Send::Greeting);
                Ok(())
            }
            Input::Closed => {
                self.closed();
                Ok(())
            }
            Input::Subscribe => {
                self.subscribe();
                Ok(())
            }
            Input::Disconnect => {
                self.leaving = true;
                self.close_when_empty();
                Ok(())
            }
            Input::Taken(count) => {
                self.pipe.take(count);
                self.close_when_empty();
                Ok(())
            }
            Input::Greeting(greeting) => self.greeted(greeting),
            Input::Command(command) => self.command(command),
        };
        if let Err(malformed) = outcome {
            self.outputs.push_back(Output::Fail(Reason::Malformed(malformed)));
        }
    }

    /// The application publishes.
    pub fn publish(&mut self, token: u32, topic: &[u8]) -> Admission {
        // Before the mark: what nobody wants takes no place (libzmq's `dist_t` sends to matching pipes only).
        if !self.wanted.matches(topic) {
            return Admission::Filtered;
        }
        // A publisher drops at the mark and never waits (RFC 29).
        if !self.pipe.has_room() {
            return Admission::Full;
        }
        self.pipe.put();
        match self.is_online() {
            true => {
                self.outputs.push_back(Output::Message { token });
                Admission::Sent
            }
            false => {
                // The queue of a connection that a PUB makes lasts while the connection is down (RFC 29).
                self.waiting.push_back(token);
                Admission::Waiting
            }
        }
    }

    /// What to do next.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Whether the handshake is over.
    pub fn is_online(&self) -> bool {
        self.handshake.is_some_and(|handshake| handshake.is_open()) && !self.leaving
    }

    /// Whether another message would have room.
    pub fn has_room(&self) -> bool {
        self.is_online() && self.pipe.has_room()
    }

    /// A message came: whether it is for the application. A PUB silently discards what subscribers send it (RFC 29, "The PUB
    /// Socket Type").
    ///
    /// # Errors
    /// It is not allowed before the end of the handshake.
    pub fn arrived(&self) -> Result<bool, Malformed> {
        match self.handshake.is_some_and(|handshake| handshake.is_open()) {
            true => Ok(!self.options.socket.publishes()),
            false => Err(Malformed::OutOfPlace(Kind::Message)),
        }
    }

    fn send(&mut self, packet: Send) {
        self.outputs.push_back(Output::Send(packet));
    }

    /// What the connection held is lost; what waits for one goes on waiting.
    fn closed(&mut self) {
        self.handshake = None;
        // Only what waits keeps its place; what the connection had is lost with it.
        self.pipe.take(self.pipe.len() - self.waiting.len() as u64);
        (self.awaits_ready, self.awaits_pong) = (false, false);
        self.outputs.clear();
    }

    fn greeted(&mut self, greeting: Greeting) -> Result<(), Malformed> {
        let handshake = self.handshake.as_mut().ok_or(Malformed::OutOfPlace(Kind::Greeting))?;
        handshake.greeting(greeting)?;
        // Without waiting for the peer's READY, or each would wait for the other's (RFC 23).
        self.send(Send::Ready);
        Ok(())
    }

    fn command(&mut self, command: Command<&[u8]>) -> Result<(), Malformed> {
        let kind = command.kind();
        let handshake = self.handshake.as_mut().ok_or(Malformed::OutOfPlace(kind))?;
        match command {
            Command::Ready { socket, .. } => {
                handshake.ready(socket)?;
                self.outputs.push_back(Output::Connected);
                // Behind READY, which must be the first command.
                let waiting = self.waiting.drain(..).map(|token| Output::Message { token });
                self.outputs.extend(waiting);
                return Ok(());
            }
            // An ERROR is fatal (RFC 37, "Error Handling").
            Command::Error(_) => {
                self.outputs.push_back(Output::Fail(Reason::Refused));
                return Ok(());
            }
            _ => handshake.require_open(kind)?,
        }
        match command {
            Command::Subscribe(_) | Command::Cancel(_) if !self.options.socket.publishes() => {
                return Err(Malformed::OutOfPlace(kind));
            }
            Command::Subscribe(prefix) => {
                self.wanted.add(prefix, PEER);
                self.find_ready();
            }
            Command::Cancel(prefix) => drop(self.wanted.remove(prefix, PEER)),
            // The same context goes back (RFC 37, "Connection Heartbeating").
            Command::Ping { context } => self.send(Send::Pong(Context::of(context))),
            // A PONG that answers no PING of this socket tells nothing.
            Command::Pong if std::mem::take(&mut self.awaits_pong) => {
                self.outputs.push_back(Output::Subscribed);
            }
            _ => {}
        }
        Ok(())
    }

    fn subscribe(&mut self) {
        let Some(handshake) = self.handshake.filter(Handshake::is_open) else { return };
        if self.options.socket.publishes() {
            self.awaits_ready = true;
            return self.find_ready();
        }
        // 3.1 has commands for subscriptions; in 3.0 they are messages (RFC 23).
        let minor = handshake.minor();
        for subscription in 0..self.options.subscriptions {
            self.send(Send::Subscribe { subscription, minor });
        }
        match minor {
            // A peer of 3.0 knows no PING that could tell when it has read them.
            0 => self.outputs.push_back(Output::Subscribed),
            _ => {
                self.send(Send::Ping);
                self.awaits_pong = true;
            }
        }
    }

    /// A PUB is ready once, when all of its topics have somebody.
    fn find_ready(&mut self) {
        if self.awaits_ready && self.options.awaited.iter().all(|topic| self.wanted.matches(topic)) {
            self.awaits_ready = false;
            self.outputs.push_back(Output::Subscribed);
        }
    }

    fn close_when_empty(&mut self) {
        // What waits for a connection is not waited for.
        if self.leaving && self.handshake.is_some() && self.pipe.len() == self.waiting.len() as u64 {
            self.outputs.push_back(Output::Close);
        }
    }
}

/// The only peer of a socket with one connection.
const PEER: u32 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::ZERO;

    fn socket(socket: SocketType, high_water_mark: u32, awaited: &[&str]) -> Client {
        let awaited = awaited.iter().map(|topic| topic.as_bytes().into()).collect();
        Client::new(ClientOptions { socket, high_water_mark, subscriptions: 2, awaited })
    }

    fn said(client: &mut Client) -> Vec<Output> {
        std::iter::from_fn(|| client.poll()).collect()
    }

    fn connect(client: &mut Client, minor: u8, peer: SocketType) -> Vec<Output> {
        client.handle(NOW, Input::Opened);
        client.handle(NOW, Input::Greeting(Greeting { minor }));
        client.handle(NOW, Input::Command(Command::Ready { socket: Some(peer), client: None }));
        said(client)
    }

    fn subscribed(client: &mut Client, prefix: &[u8]) {
        client.handle(NOW, Input::Command(Command::Subscribe(prefix)));
    }

    #[test]
    fn a_sub_is_ready_when_a_ping_behind_its_subscriptions_was_answered() {
        let mut client = socket(SocketType::Sub, 0, &[]);
        let expected = [Output::Send(Send::Greeting), Output::Send(Send::Ready), Output::Connected];
        assert_eq!(connect(&mut client, 1, SocketType::Xpub), expected);
        client.handle(NOW, Input::Subscribe);
        let subscribe = |subscription| Output::Send(Send::Subscribe { subscription, minor: 1 });
        assert_eq!(said(&mut client), [subscribe(0), subscribe(1), Output::Send(Send::Ping)]);
        client.handle(NOW, Input::Command(Command::Pong));
        assert_eq!(said(&mut client), [Output::Subscribed]);
        client.handle(NOW, Input::Command(Command::Pong));
        assert_eq!(said(&mut client), []);
        assert_eq!(client.arrived(), Ok(true));
    }

    #[test]
    fn a_peer_of_3_0_is_asked_nothing() {
        let mut client = socket(SocketType::Sub, 0, &[]);
        connect(&mut client, 0, SocketType::Pub);
        client.handle(NOW, Input::Subscribe);
        let subscribe = |subscription| Output::Send(Send::Subscribe { subscription, minor: 0 });
        assert_eq!(said(&mut client), [subscribe(0), subscribe(1), Output::Subscribed]);
    }

    #[test]
    fn a_pub_is_ready_when_all_of_its_topics_have_somebody_and_drops_what_nobody_wants() {
        let mut client = socket(SocketType::Pub, 0, &["a/1", "b"]);
        connect(&mut client, 1, SocketType::Xsub);
        client.handle(NOW, Input::Subscribe);
        assert_eq!(client.publish(1, b"a/1"), Admission::Filtered);
        subscribed(&mut client, b"a/");
        assert_eq!(said(&mut client), []);
        subscribed(&mut client, b"b");
        assert_eq!(said(&mut client), [Output::Subscribed]);
        assert_eq!(
            [client.publish(1, b"a/1"), client.publish(2, b"c")],
            [Admission::Sent, Admission::Filtered]
        );
        client.handle(NOW, Input::Command(Command::Cancel(b"a/")));
        assert_eq!(client.publish(3, b"a/1"), Admission::Filtered);
    }

    #[test]
    fn a_pub_discards_messages_of_subscribers_and_keeps_the_connection() {
        let mut client = socket(SocketType::Pub, 0, &[]);
        client.handle(NOW, Input::Opened);
        assert!(client.arrived().is_err(), "before the handshake");
        client.handle(NOW, Input::Greeting(Greeting { minor: 1 }));
        client.handle(NOW, Input::Command(Command::Ready { socket: Some(SocketType::Xsub), client: None }));
        subscribed(&mut client, b"a");
        said(&mut client);
        assert_eq!((client.arrived(), said(&mut client)), (Ok(false), vec![]));
        assert_eq!(client.publish(1, b"a"), Admission::Sent);
    }

    #[test]
    fn what_is_published_between_two_connections_waits_up_to_the_mark() {
        let mut client = socket(SocketType::Pub, 2, &[]);
        connect(&mut client, 1, SocketType::Xsub);
        subscribed(&mut client, b"");
        assert_eq!(client.publish(1, b"t"), Admission::Sent);
        client.handle(NOW, Input::Closed);
        assert_eq!([2, 3, 4].map(|token| client.publish(token, b"t")), {
            use Admission::{Full, Waiting};
            [Waiting, Waiting, Full]
        });
        let again = connect(&mut client, 1, SocketType::Xsub);
        assert_eq!(again[3..], [Output::Message { token: 2 }, Output::Message { token: 3 }]);
        client.handle(NOW, Input::Taken(2));
        assert_eq!(client.publish(5, b"t"), Admission::Sent);
    }

    #[test]
    fn it_leaves_when_what_it_published_was_taken() {
        let mut client = socket(SocketType::Pub, 0, &[]);
        connect(&mut client, 1, SocketType::Xsub);
        subscribed(&mut client, b"");
        client.publish(1, b"t");
        said(&mut client);
        client.handle(NOW, Input::Disconnect);
        assert_eq!(said(&mut client), []);
        client.handle(NOW, Input::Taken(1));
        assert_eq!(said(&mut client), [Output::Close]);
    }

    #[test]
    fn what_has_no_place_ends_the_connection() {
        let fail = |kind| Output::Fail(Reason::Malformed(Malformed::OutOfPlace(kind)));
        let mut client = socket(SocketType::Sub, 0, &[]);
        client.handle(NOW, Input::Opened);
        client.handle(NOW, Input::Command(Command::Ping { context: b"" }));
        assert_eq!(said(&mut client)[1..], [fail(Kind::Ping)]);
        let mut client = socket(SocketType::Sub, 0, &[]);
        connect(&mut client, 1, SocketType::Xpub);
        subscribed(&mut client, b"x");
        assert_eq!(said(&mut client), [fail(Kind::Subscribe)]);
        client.handle(NOW, Input::Command(Command::Ping { context: b"42" }));
        assert_eq!(said(&mut client), [Output::Send(Send::Pong(Context::of(b"42")))]);
        client.handle(NOW, Input::Command(Command::Error(b"no")));
        assert_eq!(said(&mut client), [Output::Fail(Reason::Refused)]);
    }
}
