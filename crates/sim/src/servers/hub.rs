//! A hub: the machine of its protocol, over datagrams, which takes its time for each datagram and each copy.
//!
//! ```text
//!   datagram ──► inbox ──► service (per packet) ──► Hub ──► outbox (per copy) ──► datagrams
//! ```
//!
//! One datagram is served at a time, as by our own program; what follows from it leaves one behind the other.
//!
//! What it does not model: a receive buffer that is full.

use std::collections::VecDeque;
use std::rc::Rc;

use mqttlab_plan::HubRole;
use mqttlab_protocol::{Hub, HubProtocol, Message, Of, Settings, ToClient, hub_protocol};
use mqttlab_tcp::Event as TcpEvent;
use mqttlab_units::{Instant, Seed};

use super::service::{Alarm, Inbox, ServiceTimes};
use super::{End, ServerLook, ServerModel, ServerSurroundings};
use crate::datagrams::{Content, Datagram, DatagramPacket, HubPacket};
use crate::ids::{ConversationId, ServerId};

/// A hub, and what waits for it.
pub(crate) struct HubModel {
    protocol: &'static dyn HubProtocol,
    hub: Box<dyn Hub>,
    inbox: Inbox<Rc<Datagram>>,
    outbox: VecDeque<(Instant, ToClient)>,
    alarm: Alarm,
}

impl HubModel {
    /// # Errors
    /// There is no such protocol, or it cannot be set so; a plan that was checked has neither.
    pub(crate) fn new(id: ServerId, name: &str, role: &HubRole, seed: Seed) -> Result<HubModel, String> {
        let protocol =
            hub_protocol(&role.protocol).ok_or_else(|| format!("no protocol {}", role.protocol))?;
        let settings = Settings::new(protocol.settings(), Of::Hub, &role.settings);
        Ok(HubModel {
            protocol,
            hub: protocol.hub(&settings.map_err(|problem| problem.to_string())?),
            inbox: Inbox::new(ServiceTimes::new(role.service, name, seed)),
            outbox: VecDeque::new(),
            alarm: Alarm::new(id),
        })
    }

    /// Begins with the next datagram, once everything before has been sent.
    fn begin(&mut self, around: &mut ServerSurroundings<'_>) {
        if self.outbox.is_empty() {
            self.inbox.begin(around.now());
        }
        let next = self.outbox.front().map(|(at, _)| *at).or(self.inbox.done());
        let next = [next, self.hub.next_deadline()].into_iter().flatten().min();
        self.alarm.set(next, around.agenda);
    }

    fn serve(&mut self, now: Instant, datagram: &Datagram) {
        let (ConversationId(peer), DatagramPacket::Hub(packet)) = (datagram.conversation, &datagram.packet)
        else {
            return;
        };
        let message = packet.content.map(|Content { message, bytes }| Message::Numbered { message, bytes });
        self.hub.handle(now, peer, &packet.said(), message.as_ref());
        self.drain(now);
    }

    /// Takes what the machine sends. A copy of a message takes its time.
    fn drain(&mut self, now: Instant) {
        let mut at = self.outbox.back().map_or(now, |(at, _)| *at).max(now);
        while let Some(sent) = self.hub.poll() {
            if sent.message.is_some() {
                at += self.inbox.per_copy();
            }
            self.outbox.push_back((at, sent));
        }
    }

    fn send(&self, around: &mut ServerSurroundings<'_>, sent: ToClient) {
        let content = sent.message.and_then(|message| match message {
            Message::Numbered { message, bytes } => Some(Content { message, bytes }),
            Message::Payload(_) => None,
        });
        let packet = HubPacket { protocol: self.protocol, head: sent.head, content };
        around.answer(ConversationId(sent.to), DatagramPacket::Hub(packet));
    }
}

impl ServerModel for HubModel {
    fn on_datagram(&mut self, around: &mut ServerSurroundings<'_>, datagram: Rc<Datagram>) {
        self.inbox.push(datagram);
        self.begin(around);
    }

    /// Nobody connects to a hub over TCP.
    fn on_tcp(&mut self, _: &mut ServerSurroundings<'_>, _: End, _: TcpEvent) {}

    fn read(&mut self, _: &mut ServerSurroundings<'_>, _: End) {}

    fn on_timer(&mut self, around: &mut ServerSurroundings<'_>) {
        let now = around.now();
        if !self.alarm.rings(now) {
            return;
        }
        loop {
            while self.outbox.front().is_some_and(|(at, _)| *at <= now) {
                let (_, sent) = self.outbox.pop_front().expect("it was just seen");
                self.send(around, sent);
            }
            let Some(datagram) = self.inbox.served(now) else { break };
            self.serve(now, &datagram);
            if self.outbox.is_empty() {
                self.inbox.begin(now);
            }
        }
        if self.hub.next_deadline().is_some_and(|at| at <= now) {
            self.hub.tick(now);
            self.drain(now);
        }
        self.begin(around);
    }

    fn dropped(&self) -> u64 {
        0
    }

    fn look(&self) -> ServerLook<'_> {
        let (inbox, outbox) = (self.inbox.len(), self.outbox.len());
        ServerLook { inbox, outbox, busy_until: self.inbox.done(), ..ServerLook::default() }
    }
}
