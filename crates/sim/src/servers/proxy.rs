//! A proxy: for each connection that it accepts it opens one to the server behind it, and passes packets on, both ways.
//!
//! ```text
//!   client ──► connection it has accepted ──► queue, service time for each packet ──► connection it has opened ──► server
//!          ◄──                            ◄──                                     ◄──                          ◄──
//! ```
//!
//! One packet is passed on at a time, as by a program of one thread, whatever connection it came from. What the other
//! connection's socket does not take waits here; while much waits, what comes stays in its own socket, so that TCP's windows
//! reach through. When one connection ends, the other is closed behind what was to be passed on.
//!
//! What it does not model: bytes that are passed on before the packet is complete, and programs with several threads.

use std::collections::BTreeMap;

use mqttlab_plan::ProxyRole;
use mqttlab_tcp::TcpEvent;
use mqttlab_units::{Duration, OptionalInstant, Seed};

use super::service::{Alarm, ServiceQueue, ServiceTimes};
use super::{End, ServerModel, ServerSnapshot, ServerSurroundings};
use crate::hosts::stream::StreamPacket;
use crate::ids::{Id, ServerId, Side};

/// A proxy, and what waits for it.
pub(crate) struct ProxyModel {
    id: ServerId,
    to: ServerId,
    /// The other end of each end that it has, by slot and side.
    partners: BTreeMap<(u32, bool), End>,
    inbox: ServiceQueue<(End, Passing)>,
    /// The end that it has written to last.
    wrote_to: Option<End>,
    alarm: Alarm,
}

/// Something to be passed on.
#[derive(Clone, Copy)]
enum Passing {
    Packet(StreamPacket),
    /// The other side has closed.
    End,
}

impl ProxyModel {
    /// # Errors
    /// A sentence: the plan does not say where to.
    pub(crate) fn new(id: ServerId, name: &str, role: &ProxyRole, seed: Seed) -> Result<ProxyModel, String> {
        let to = role.to.ok_or_else(|| {
            format!("the proxy `{name}` passes packets on to nobody knows whom: say `passes_to`")
        })?;
        Ok(ProxyModel {
            id,
            to: ServerId::from_index(to),
            partners: BTreeMap::new(),
            inbox: ServiceQueue::new(ServiceTimes::new(role.service, name, seed)),
            wrote_to: None,
            alarm: Alarm::new(id),
        })
    }

    /// Somebody has connected: opens the other connection, or closes this one where nothing leads there.
    fn accept(&mut self, around: &mut ServerSurroundings<'_>, end: End) {
        match around.connect(self.id, around.client_at(end.0), self.to) {
            Some(other) => {
                let other = (other, Side::Client);
                self.partners.insert(key(end), other);
                self.partners.insert(key(other), end);
            }
            None => around.close(end),
        }
    }

    /// The other end, if it is still there.
    fn partner(&self, around: &ServerSurroundings<'_>, end: End) -> Option<End> {
        let partner = self.partners.get(&key(end)).copied()?;
        around.transport.connections().is_current(partner.0).then_some(partner)
    }

    fn read_socket(&mut self, around: &mut ServerSurroundings<'_>, end: End) {
        let Some(offset) = around.read_socket(end) else { return };
        while let Some(packet) = around.transport.take_packet(around.evidence, around.topics, end, offset) {
            self.enqueue(around, end, Passing::Packet(packet));
        }
    }

    fn enqueue(&mut self, around: &mut ServerSurroundings<'_>, from: End, what: Passing) {
        self.inbox.push((from, what));
        self.inbox.begin(around.now());
        self.alarm.set(self.inbox.done(), around.agenda);
    }

    fn forward(&mut self, around: &mut ServerSurroundings<'_>, from: End, what: Passing) {
        let Some(to) = self.partner(around, from) else { return };
        match what {
            Passing::Packet(packet) => {
                let length = (packet.end - packet.start) as usize;
                // What the recording says of a packet is said of each crossing.
                let [first_sent, complete] = [OptionalInstant::NONE; 2];
                let fresh = StreamPacket { first_sent, segments: 0, complete, ..packet };
                around.transport.connection_mut(to.0).append(to.1, fresh, length);
                around.write(to, &mut self.wrote_to);
            }
            Passing::End => {
                self.forget(from);
                around.close(to);
            }
        }
        // There may be room again.
        if around.transport.connections().is_current(from.0) {
            self.read(around, from);
        }
    }

    fn forget(&mut self, end: End) {
        if let Some(other) = self.partners.remove(&key(end)) {
            self.partners.remove(&key(other));
        }
    }
}

impl ServerModel for ProxyModel {
    fn on_tcp(&mut self, around: &mut ServerSurroundings<'_>, end: End, event: TcpEvent) {
        match event {
            TcpEvent::Connected if end.1 == Side::Server => self.accept(around, end),
            TcpEvent::Readable(offset) => {
                if around.reads_now(end, offset) {
                    self.read(around, end);
                }
            }
            // What waits for a connection that it has opened can go.
            TcpEvent::Connected | TcpEvent::Writable(_) => {
                around.write(end, &mut self.wrote_to);
                if let Some(from) = self.partner(around, end) {
                    self.read(around, from);
                }
            }
            TcpEvent::PeerClosed | TcpEvent::Refused | TcpEvent::Reset | TcpEvent::TimedOut => {
                self.read_socket(around, end);
                self.enqueue(around, end, Passing::End);
                around.close(end);
            }
            TcpEvent::Acknowledged(_) | TcpEvent::Closed => {}
        }
    }

    /// Reads what has come, unless enough waits to be taken by the other connection.
    fn read(&mut self, around: &mut ServerSurroundings<'_>, end: End) {
        let waiting = self
            .partner(around, end)
            .map_or(0, |(id, side)| around.transport.connection(id).streams[side as usize].waiting());
        if waiting < WAITING_MAX && self.inbox.len() < INBOX_MAX {
            self.read_socket(around, end);
        }
    }

    fn on_timer(&mut self, around: &mut ServerSurroundings<'_>) {
        let now = around.now();
        if !self.alarm.is_due(now) {
            return;
        }
        while let Some((from, what)) = self.inbox.served(now) {
            self.forward(around, from, what);
            self.inbox.begin(now);
        }
        self.alarm.set(self.inbox.done(), around.agenda);
    }

    fn resume(&mut self, around: &mut ServerSurroundings<'_>, stood: Duration, _: &[End]) {
        self.inbox.delay(stood);
        self.alarm.forget();
        self.alarm.set(self.inbox.done(), around.agenda);
    }

    fn dropped(&self) -> u64 {
        0
    }

    fn snapshot(&self) -> ServerSnapshot<'_> {
        ServerSnapshot { inbox: self.inbox.len(), busy_until: self.inbox.done(), ..ServerSnapshot::default() }
    }
}

/// An end as the map's key: slots are used again only when a connection is over, and its entries with it.
fn key((id, side): End) -> (u32, bool) {
    (id.slot, side == Side::Client)
}

/// What a program of the kind keeps for a socket that takes nothing.
const WAITING_MAX: u64 = 64 << 10;
/// Packets that wait to be passed on, of all connections.
const INBOX_MAX: usize = 1_024;
