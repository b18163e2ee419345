//! The machine of an XSUB socket that publishers connect to and an XPUB socket that subscribers connect to, back to back
//! (RFC 29; libzmq's `zmq_proxy`).
//!
//! ```text
//!   publisher ──► [XSUB] ── messages ───► [XPUB] ──► subscriber 1, up to its high-water mark
//!                    ◄── subscriptions ──        ──► subscriber 2
//! ```
//!
//! The first subscription to a prefix goes to all publishers, the last cancellation too; a publisher that connects later is told
//! all of them when its handshake is over. A message goes to everyone who has subscribed to a prefix of its topic, once each; who has
//! as many waiting as the mark says loses it, and who has not subscribed has never been owed it.
//!
//! What a message consists of is the caller's: bytes, or a token.

use std::collections::{BTreeMap, VecDeque};

use mqttlab_units::Instant;

use crate::client::Context;
use crate::command::Command;
use crate::greeting::Greeting;
use crate::handshake::Handshake;
use crate::pipe::Pipe;
use crate::prefixes::Prefixes;
use crate::{Kind, Malformed, SocketType};

/// A peer, by the caller's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Peer(pub u32);

/// How a proxy is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyOptions {
    /// Messages that wait for a subscriber before more are dropped; 0: no limit.
    pub high_water_mark: u32,
}

/// Something that happened at a peer's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// It was accepted by this socket, XSUB or XPUB.
    Accepted(SocketType),
    /// It is over.
    Closed,
    /// It has taken so many messages whole.
    Taken(u64),
    /// A greeting came.
    Greeting(Greeting),
    /// A command came, or a subscription of 3.0.
    Command(Command<&'a [u8]>),
}

/// A packet to be sent that carries no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Send {
    /// The greeting.
    Greeting,
    /// READY of this socket.
    Ready(SocketType),
    /// ERROR, with a reason.
    Error(&'static str),
    /// A subscription, or its end.
    Subscribe {
        /// Whether it begins.
        begins: bool,
        /// The prefix.
        prefix: Box<[u8]>,
        /// The minor version of 3 that the peer speaks.
        minor: u8,
    },
    /// PONG.
    Pong(Context),
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<M> {
    /// Send a packet.
    Send(Peer, Send),
    /// Send a message.
    Message(Peer, M),
    /// Close a connection, behind what was said.
    Close(Peer),
    /// A message was dropped for a subscriber: as many wait for it as may.
    Dropped(Peer, M),
}

/// What has been counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages that came.
    pub messages: u64,
    /// Copies that were sent on.
    pub copies: u64,
    /// Messages that nobody had subscribed to.
    pub unmatched: u64,
    /// Copies that a high-water mark dropped.
    pub dropped: u64,
    /// Connections that were ended for what came on them.
    pub refused: u64,
}

/// The proxy.
#[derive(Clone, Debug)]
pub struct Proxy<M> {
    options: ProxyOptions,
    ends: BTreeMap<Peer, ProxyEnd>,
    /// What subscribers want, by their numbers.
    wanted: Prefixes,
    outputs: VecDeque<Output<M>>,
    counters: Counters,
}

#[derive(Clone, Debug)]
struct ProxyEnd {
    socket: SocketType,
    handshake: Handshake,
    pipe: Pipe,
}

impl<M: Clone> Proxy<M> {
    /// A proxy without peers.
    pub fn new(options: ProxyOptions) -> Proxy<M> {
        Proxy {
            options,
            ends: BTreeMap::new(),
            wanted: Prefixes::default(),
            outputs: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Something happened.
    pub fn handle(&mut self, _now: Instant, peer: Peer, input: Input<'_>) {
        let outcome = match input {
            Input::Accepted(socket) => {
                let (handshake, pipe) = (Handshake::new(socket), Pipe::new(self.options.high_water_mark));
                self.ends.insert(peer, ProxyEnd { socket, handshake, pipe });
                // At once, and not after the peer's: both sides greet without waiting (RFC 37, "Version Negotiation").
                self.outputs.push_back(Output::Send(peer, Send::Greeting));
                Ok(())
            }
            Input::Closed => {
                self.forget(peer);
                Ok(())
            }
            Input::Taken(count) => {
                self.ends.get_mut(&peer).into_iter().for_each(|end| end.pipe.take(count));
                Ok(())
            }
            Input::Greeting(greeting) => self.greeted(peer, greeting),
            Input::Command(command) => self.command(peer, command),
        };
        if let Err(malformed) = outcome {
            self.refuse(peer, malformed);
        }
    }

    /// A message came.
    pub fn message(&mut self, peer: Peer, topic: &[u8], message: M) {
        let Some(end) = self.ends.get(&peer) else { return };
        if let Err(malformed) = end.may_publish() {
            return self.refuse(peer, malformed);
        }
        self.counters.messages += 1;
        // Each once, however many of its prefixes match.
        let takers = self.wanted.takers(topic);
        self.counters.unmatched += u64::from(takers.is_empty());
        for taker in takers.into_iter().map(Peer) {
            let Some(end) = self.ends.get_mut(&taker) else { continue };
            match end.pipe.has_room() {
                true => {
                    end.pipe.put();
                    self.counters.copies += 1;
                    self.outputs.push_back(Output::Message(taker, message.clone()));
                }
                // A publishing socket drops beyond the mark and never blocks (RFC 29).
                false => {
                    self.counters.dropped += 1;
                    self.outputs.push_back(Output::Dropped(taker, message.clone()));
                }
            }
        }
    }

    /// What to do next.
    pub fn poll(&mut self) -> Option<Output<M>> {
        self.outputs.pop_front()
    }

    /// What has been counted.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// A connection cannot go on for what came on it.
    pub fn refuse(&mut self, peer: Peer, malformed: Malformed) {
        if !self.ends.contains_key(&peer) {
            return;
        }
        self.counters.refused += 1;
        // The only mistake that a peer of ZMTP can be told during the handshake (RFC 37, "The Socket-Type Property").
        if malformed == Malformed::SocketType {
            self.outputs.push_back(Output::Send(peer, Send::Error("Invalid socket type")));
        }
        self.outputs.push_back(Output::Close(peer));
        self.forget(peer);
    }

    fn greeted(&mut self, peer: Peer, greeting: Greeting) -> Result<(), Malformed> {
        let Some(end) = self.ends.get_mut(&peer) else { return Ok(()) };
        end.handshake.greeting(greeting)?;
        let ready = Send::Ready(end.socket);
        self.outputs.push_back(Output::Send(peer, ready));
        Ok(())
    }

    fn command(&mut self, peer: Peer, command: Command<&[u8]>) -> Result<(), Malformed> {
        let Some(end) = self.ends.get_mut(&peer) else { return Ok(()) };
        let kind = command.kind();
        if let Command::Ready { socket, .. } = command {
            end.handshake.ready(socket)?;
            let minor = end.handshake.minor();
            // Who publishes filters: one that connects later would send nothing before it knows all prefixes.
            // libzmq's XSUB does the same for each new connection (`xsub_t::xattach_pipe`).
            if !end.socket.publishes() {
                let all = self.wanted.iter().map(|prefix| Send::Subscribe {
                    begins: true,
                    prefix: prefix.into(),
                    minor,
                });
                self.outputs.extend(all.map(|packet| Output::Send(peer, packet)));
            }
            return Ok(());
        }
        // Fatal (RFC 37, "Error Handling").
        if matches!(command, Command::Error(_)) {
            self.outputs.push_back(Output::Close(peer));
            self.forget(peer);
            return Ok(());
        }
        end.handshake.require_open(kind)?;
        match command {
            Command::Subscribe(_) | Command::Cancel(_) if !end.socket.publishes() => {
                return Err(Malformed::OutOfPlace(kind));
            }
            // The first subscription to a prefix and the last cancellation go up, as in `xpub_t::xread_activated`.
            Command::Subscribe(prefix) if self.wanted.add(prefix, peer.0) => {
                self.tell_publishers(true, prefix);
            }
            Command::Cancel(prefix) if self.wanted.remove(prefix, peer.0) => {
                self.tell_publishers(false, prefix);
            }
            Command::Ping { context } => {
                self.outputs.push_back(Output::Send(peer, Send::Pong(Context::of(context))));
            }
            _ => {}
        }
        Ok(())
    }

    fn tell_publishers(&mut self, begins: bool, prefix: &[u8]) {
        // Where the handshake goes on all prefixes are told at its end.
        let publishers =
            self.ends.iter().filter(|(_, end)| !end.socket.publishes() && end.handshake.is_open());
        let told = publishers.map(|(peer, end)| {
            let minor = end.handshake.minor();
            Output::Send(*peer, Send::Subscribe { begins, prefix: prefix.into(), minor })
        });
        self.outputs.extend(told);
    }

    fn forget(&mut self, peer: Peer) {
        // A subscriber's queue goes with its connection (RFC 29).
        if self.ends.remove(&peer).is_none_or(|end| !end.socket.publishes()) {
            return;
        }
        // Publishers are told after the set has changed, which is borrowed until then.
        let mut last = Vec::new();
        self.wanted.forget(peer.0, |prefix| last.push(Box::<[u8]>::from(prefix)));
        // A connection that ends cancels all that came on it (RFC 29, "The XPUB Socket Type").
        last.iter().for_each(|prefix| self.tell_publishers(false, prefix));
    }
}

impl ProxyEnd {
    fn may_publish(&self) -> Result<(), Malformed> {
        self.handshake.require_open(Kind::Message)?;
        match self.socket.publishes() {
            true => Err(Malformed::OutOfPlace(Kind::Message)),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::ZERO;

    fn proxy(high_water_mark: u32) -> Proxy<u64> {
        Proxy::new(ProxyOptions { high_water_mark })
    }

    fn said(proxy: &mut Proxy<u64>) -> Vec<Output<u64>> {
        std::iter::from_fn(|| proxy.poll()).collect()
    }

    fn connect(proxy: &mut Proxy<u64>, peer: u32, own: SocketType, other: SocketType) -> Vec<Output<u64>> {
        proxy.handle(NOW, Peer(peer), Input::Accepted(own));
        proxy.handle(NOW, Peer(peer), Input::Greeting(Greeting { minor: 1 }));
        proxy.handle(NOW, Peer(peer), Input::Command(Command::Ready { socket: Some(other), client: None }));
        said(proxy)
    }

    fn subscribe(proxy: &mut Proxy<u64>, peer: u32, prefix: &[u8]) -> Vec<Output<u64>> {
        proxy.handle(NOW, Peer(peer), Input::Command(Command::Subscribe(prefix)));
        said(proxy)
    }

    fn told(peer: u32, begins: bool, prefix: &[u8]) -> Output<u64> {
        Output::Send(Peer(peer), Send::Subscribe { begins, prefix: prefix.into(), minor: 1 })
    }

    #[test]
    fn the_first_subscription_and_the_last_cancellation_reach_the_publishers() {
        let mut proxy = proxy(0);
        connect(&mut proxy, 1, SocketType::Xsub, SocketType::Pub);
        connect(&mut proxy, 2, SocketType::Xpub, SocketType::Sub);
        connect(&mut proxy, 3, SocketType::Xpub, SocketType::Sub);
        assert_eq!(subscribe(&mut proxy, 2, b"a"), [told(1, true, b"a")]);
        assert_eq!(subscribe(&mut proxy, 3, b"a"), []);
        let late = connect(&mut proxy, 4, SocketType::Xsub, SocketType::Pub);
        assert_eq!(late.last(), Some(&told(4, true, b"a")));
        proxy.handle(NOW, Peer(2), Input::Closed);
        assert_eq!(said(&mut proxy), []);
        proxy.handle(NOW, Peer(3), Input::Command(Command::Cancel(b"a")));
        assert_eq!(said(&mut proxy), [told(1, false, b"a"), told(4, false, b"a")]);
    }

    #[test]
    fn a_message_reaches_each_subscriber_once_and_nobody_else() {
        let mut proxy = proxy(0);
        connect(&mut proxy, 1, SocketType::Xsub, SocketType::Pub);
        for peer in [2, 3] {
            connect(&mut proxy, peer, SocketType::Xpub, SocketType::Sub);
        }
        subscribe(&mut proxy, 2, b"a");
        subscribe(&mut proxy, 2, b"");
        proxy.message(Peer(1), b"a/b", 7);
        assert_eq!(said(&mut proxy), [Output::Message(Peer(2), 7)]);
        proxy.handle(NOW, Peer(2), Input::Closed);
        said(&mut proxy);
        proxy.message(Peer(1), b"a/b", 8);
        assert_eq!((said(&mut proxy), proxy.counters().unmatched), (vec![], 1));
    }

    #[test]
    fn what_exceeds_the_high_water_mark_is_dropped_for_that_subscriber_alone_and_counted() {
        let mut proxy = proxy(2);
        connect(&mut proxy, 1, SocketType::Xsub, SocketType::Pub);
        for peer in [2, 3] {
            connect(&mut proxy, peer, SocketType::Xpub, SocketType::Sub);
            subscribe(&mut proxy, peer, b"");
        }
        for message in 0..3 {
            proxy.message(Peer(1), b"t", message);
            proxy.handle(NOW, Peer(3), Input::Taken(1));
        }
        let dropped: Vec<_> = said(&mut proxy);
        let dropped: Vec<_> = dropped.iter().filter(|output| matches!(output, Output::Dropped(..))).collect();
        assert_eq!(dropped, [&Output::Dropped(Peer(2), 2)]);
        let counters = proxy.counters();
        assert_eq!((counters.messages, counters.copies, counters.dropped), (3, 5, 1));
    }

    #[test]
    fn who_has_no_business_at_a_socket_is_told_and_shut_out() {
        let mut proxy = proxy(0);
        let wrong = connect(&mut proxy, 1, SocketType::Xsub, SocketType::Sub);
        let error = Output::Send(Peer(1), Send::Error("Invalid socket type"));
        assert_eq!(wrong[2..], [error, Output::Close(Peer(1))]);
        connect(&mut proxy, 2, SocketType::Xpub, SocketType::Sub);
        proxy.message(Peer(2), b"t", 1);
        assert_eq!(said(&mut proxy), [Output::Close(Peer(2))]);
        // Before its handshake is over nobody is a publisher.
        proxy.handle(NOW, Peer(3), Input::Accepted(SocketType::Xsub));
        proxy.message(Peer(3), b"t", 1);
        assert_eq!(said(&mut proxy)[1..], [Output::Close(Peer(3))]);
        assert_eq!((proxy.counters().refused, proxy.counters().messages), (3, 0));
        proxy.handle(NOW, Peer(9), Input::Command(Command::Pong));
        proxy.message(Peer(9), b"t", 1);
        assert_eq!(said(&mut proxy), []);
    }
}
