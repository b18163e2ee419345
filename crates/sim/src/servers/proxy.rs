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

use std::collections::{BTreeMap, VecDeque};

use mqttlab_plan::ProxyRole;
use mqttlab_tcp::Event as TcpEvent;
use mqttlab_units::{Instant, Seed};

use super::service::ServiceTimes;
use super::{End, ServerLook, ServerModel, ServerSurroundings};
use crate::agenda::Agenda;
use crate::event::Event;
use crate::ids::{Id, ServerId, Side};
use crate::stream::Packet;

/// A proxy, and what waits for it.
pub(crate) struct ProxyModel {
    id: ServerId,
    to: ServerId,
    service: ServiceTimes,
    /// The other end of each end that it has, by slot and side.
    partners: BTreeMap<(u32, bool), End>,
    inbox: VecDeque<(End, Passing)>,
    /// The end that it has written to last.
    wrote_to: Option<End>,
    /// When it has done with the head of the inbox, once it has begun.
    done: Option<Instant>,
    /// For when it is on the agenda.
    alarm: Option<Instant>,
}

/// Something to be passed on.
#[derive(Clone, Copy)]
enum Passing {
    Packet(Packet),
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
            service: ServiceTimes::new(role.service, name, seed),
            partners: BTreeMap::new(),
            inbox: VecDeque::new(),
            wrote_to: None,
            done: None,
            alarm: None,
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

    /// Data up to `offset` has come.
    fn readable(&mut self, around: &mut ServerSurroundings<'_>, end: End, offset: u64) {
        let asleep = around.transport.connection_mut(end.0).readable_to(end.1).replace(offset).is_none();
        if !around.transport.wire().has_more_at(around.now()) {
            self.read(around, end);
        } else if asleep {
            // What else comes at this very instant is there before a program can have read.
            around.agenda.add(around.now(), Event::Read { connection: end.0, side: end.1 });
        }
    }

    fn read_socket(&mut self, around: &mut ServerSurroundings<'_>, end: End) {
        let (id, side) = end;
        let Some(offset) = around.transport.connection_mut(id).readable_to(side).take() else { return };
        around.transport.read(around.agenda, around.evidence, id, side);
        while let Some(packet) = around.transport.take_packet(around.evidence, around.topics, end, offset) {
            self.take_in(around, end, Passing::Packet(packet));
        }
    }

    fn take_in(&mut self, around: &mut ServerSurroundings<'_>, from: End, what: Passing) {
        self.inbox.push_back((from, what));
        self.begin(around.now());
        self.set_alarm(around.agenda);
    }

    /// Begins with the next one.
    fn begin(&mut self, now: Instant) {
        if self.done.is_none() && !self.inbox.is_empty() {
            self.done = Some(now + self.service.per_packet());
        }
    }

    fn set_alarm(&mut self, agenda: &mut Agenda<Event>) {
        let Some(next) = self.done.map(|at| at.max(agenda.now())) else { return };
        if self.alarm.is_none_or(|alarm| next < alarm) {
            self.alarm = Some(next);
            agenda.add(next, Event::Server(self.id));
        }
    }

    fn pass_on(&mut self, around: &mut ServerSurroundings<'_>, from: End, what: Passing) {
        let Some(to) = self.partner(around, from) else { return };
        match what {
            Passing::Packet(packet) => {
                let length = (packet.end - packet.start) as usize;
                // What the recording says of a packet is said of each crossing.
                let fresh = Packet { first_sent: None, segments: 0, complete: None, ..packet };
                around.transport.append(to.0, to.1, fresh, length);
                self.write(around, to);
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

    /// Hands what waits to the socket. Before the connection stands TCP keeps it.
    fn write(&mut self, around: &mut ServerSurroundings<'_>, (id, side): End) {
        // One thread writes to all of its sockets.
        let apart = self.wrote_to.replace((id, side)) != Some((id, side));
        if around.transport.write(around.agenda.now(), id, side, apart) {
            around.transport.transmit(around.agenda, around.evidence, id, side);
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
            TcpEvent::Readable(offset) => self.readable(around, end, offset),
            // What waits for a connection that it has opened can go.
            TcpEvent::Connected | TcpEvent::Writable(_) => {
                self.write(around, end);
                if let Some(from) = self.partner(around, end) {
                    self.read(around, from);
                }
            }
            TcpEvent::PeerClosed | TcpEvent::Reset | TcpEvent::TimedOut => {
                self.read_socket(around, end);
                self.take_in(around, end, Passing::End);
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
        if self.alarm != Some(now) {
            return;
        }
        self.alarm = None;
        while self.done.is_some_and(|done| done <= now) {
            self.done = None;
            if let Some((from, what)) = self.inbox.pop_front() {
                self.pass_on(around, from, what);
            }
            self.begin(now);
        }
        self.set_alarm(around.agenda);
    }

    fn dropped(&self) -> u64 {
        0
    }

    fn look(&self) -> ServerLook<'_> {
        ServerLook { inbox: self.inbox.len(), busy_until: self.done, ..ServerLook::default() }
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
