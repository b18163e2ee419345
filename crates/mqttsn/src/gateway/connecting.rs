//! How a gateway gets clients, and loses them.

use std::sync::Arc;

use mqttlab_units::{Duration, Instant};

use super::interface::{Address, BrokerPacket, Link, Mode, Output};
use super::member::{ConnectStage, MemberState};
use super::{Gateway, Packet};
use crate::kind::ReturnCode;

impl<M: Clone> Gateway<M> {
    /// CONNECT: `(will, clean, duration_s)`.
    pub(super) fn connect(
        &mut self,
        now: Instant,
        from: Address,
        (will, clean, duration_s): (bool, bool, u16),
        client_id: Arc<str>,
    ) {
        let known = self.members.named(&client_id);
        // Another client at this address has taken the place of the one that was there.
        if let Some(other) = self.members.at(&from).filter(|other| Some(*other) != known) {
            self.lose(now, other);
        }
        let number = match known {
            Some(number) => {
                if self.with(now, number, |client, around| client.hears_again(around, &from)) == Some(true) {
                    return;
                }
                // The identifier counts, and not the address: a client that has moved keeps its session.
                self.members.move_to(number, &from);
                number
            }
            None if self.members.len() >= self.options.clients_max as usize => {
                let packet = Packet::Connack { code: ReturnCode::Congestion };
                return self.out.push_back(Output::Send { to: from, packet });
            }
            None => self.members.add(now, from, client_id),
        };
        // A will must be asked for first; a clean session has nothing to go on with (§6.3).
        let resumes = known.is_some() && !clean && !will && self.has_session(number);
        if clean && known.is_some() {
            self.own.forget(number);
            self.with(now, number, |client, around| client.forget(around));
            self.close_link(number, true);
        }
        let duration = Duration::from_s(duration_s.into());
        let stage = if will { ConnectStage::WillTopic } else { ConnectStage::Broker };
        self.with(now, number, |client, around| {
            // What it has not acknowledged is sent again.
            client.sleep(around);
            // Whatever duration it slept with before, its keep-alive counts again.
            (client.heard, client.clean, client.fresh) = (now, clean, true);
            (client.duration, client.keep_alive) = (duration, duration);
            client.state = MemberState::Connecting(stage);
        });
        match (will, resumes) {
            (true, _) => self.answer(number, Packet::Willtopicreq),
            (false, true) => self.accept(now, number, ReturnCode::Accepted),
            (false, false) => self.open(now, number),
        }
    }

    /// Whether the client's way to the broker is still there.
    fn has_session(&self, number: u32) -> bool {
        match self.options.mode {
            Mode::Aggregating => self.own.is_online(),
            Mode::Transparent => self.members.get(number).is_some_and(|client| client.link.is_some()),
        }
    }

    /// WILLTOPIC and WILLMSG came; when the will is whole, or there is none, the client goes on.
    pub(super) fn will(&mut self, now: Instant, number: u32, packet: Packet<Arc<str>, M>) {
        if self.with(now, number, |client, around| client.take_will(around, packet)) == Some(true) {
            self.open(now, number);
        }
    }

    /// Lets the client have its way to the broker.
    fn open(&mut self, now: Instant, number: u32) {
        let Some(client) = self.members.get_mut(number) else { return };
        client.state = MemberState::Connecting(ConnectStage::Broker);
        match (self.options.mode, client.link) {
            (Mode::Aggregating, _) if self.own.is_online() => self.accept(now, number, ReturnCode::Accepted),
            (Mode::Aggregating, _) => self.with_own(now, |own, around| own.need(around)),
            // A will can only be said in another CONNECT.
            (Mode::Transparent, Some(_)) => {
                self.close_link(number, true);
                self.open(now, number);
            }
            (Mode::Transparent, None) => {
                client.link = Some(Link(number));
                self.out.push_back(Output::Open(Link(number)));
            }
        }
    }

    /// A connection to the broker is open.
    pub(super) fn opened(&mut self, now: Instant, link: Link) {
        if link == Link::OWN {
            let followed = self.with_own(now, |own, around| own.opened(around));
            return self.follow(now, followed);
        }
        self.with(now, link.0, |client, around| {
            let packet = BrokerPacket::Connect {
                client_id: Arc::clone(&client.client_id),
                clean: client.clean,
                // The client's own: while it sleeps the gateway speaks for it (`link_ping_at`).
                keep_alive_s: (client.keep_alive.as_ns() / 1_000_000_000).min(u64::from(u16::MAX)) as u16,
                will: client.will.clone(),
            };
            client.send_to_broker(around, packet);
        });
    }

    /// Answers CONNECT.
    pub(super) fn accept(&mut self, now: Instant, number: u32, code: ReturnCode) {
        self.answer(number, Packet::Connack { code });
        // Who is refused is not known any more: its next packet is answered with DISCONNECT.
        if code != ReturnCode::Accepted {
            return self.remove(number);
        }
        self.with(now, number, |client, around| {
            client.wake_up(around, MemberState::Active);
        });
    }

    /// A connection to the broker is over.
    pub(super) fn closed(&mut self, now: Instant, link: Link) {
        if link == Link::OWN {
            self.own.closed(now);
            return;
        }
        let Some(client) = self.members.get_mut(link.0).filter(|client| client.link == Some(link)) else {
            return;
        };
        client.link = None;
        match client.state {
            MemberState::Connecting(_) => self.accept(now, link.0, ReturnCode::Congestion),
            // It has no session any more, and shall know it. A sleeper is told when it asks.
            MemberState::Active | MemberState::Awake => {
                self.answer(link.0, Packet::Disconnect { duration_s: None });
                self.drop_client(now, link.0);
            }
            MemberState::Asleep => self.drop_client(now, link.0),
        }
    }

    /// The client does not answer any more: its will is published.
    pub(super) fn lose(&mut self, now: Instant, number: u32) {
        // Without DISCONNECT the broker publishes the will itself; an aggregating gateway must do it, below.
        self.close_link(number, false);
        let will = self.members.get_mut(number).and_then(|client| client.will.take());
        if let (Mode::Aggregating, Some(will)) = (self.options.mode, will) {
            let followed = self.with_own(now, |own, around| {
                own.publish(around, will, None);
                own.drain(around)
            });
            self.follow(now, followed);
        }
        self.drop_client(now, number);
    }

    /// The client leaves.
    pub(super) fn leave(&mut self, now: Instant, number: u32) {
        // A DISCONNECT is answered by one (§6.12), before the client is forgotten with its address.
        self.answer(number, Packet::Disconnect { duration_s: None });
        self.close_link(number, true);
        self.drop_client(now, number);
    }

    fn drop_client(&mut self, now: Instant, number: u32) {
        self.with(now, number, |client, around| client.forget(around));
        self.remove(number);
    }

    fn remove(&mut self, number: u32) {
        self.own.forget(number);
        self.members.remove(number);
    }

    /// Closes a client's connection to the broker, with DISCONNECT or without.
    fn close_link(&mut self, number: u32, gracefully: bool) {
        let Some(link) = self.members.get_mut(number).and_then(|client| client.link.take()) else { return };
        if gracefully {
            self.out.push_back(Output::Broker(link, BrokerPacket::Disconnect));
        }
        self.out.push_back(Output::Close(link));
    }
}
