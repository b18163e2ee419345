//! A proxy of ZeroMQ: the machine of `crates/zmtp`, which takes its time for each packet and each copy.
//!
//! ```text
//!   packet ──► inbox ──► service (per packet) ──► machine ──► outbox (per copy) ──► socket
//! ```
//!
//! One packet is served at a time, as in `zmq_proxy`, whatever connection it came from. What came of one connection at once is served
//! in a row, and each socket is written to once for all of it, as our own proxy does. A message that a socket does not take waits for it,
//! up to the high-water mark. What comes stays in its own socket while enough waits to be served, so that TCP's windows reach through
//! to the publishers.
//!
//! What it does not model: libzmq's threads, which read and write while its proxy serves.

use std::collections::{BTreeMap, VecDeque};

use mqttlab_plan::{ZeroMqRole, zeromq};
use mqttlab_recording::LossCause;
use mqttlab_tcp::TcpEvent;
use mqttlab_units::{Duration, Instant, Seed};
use mqttlab_zmtp::command::{self, Command};
use mqttlab_zmtp::greeting::{self, Greeting};
use mqttlab_zmtp::proxy::{Input, Output, Peer, Proxy, Send};
use mqttlab_zmtp::{Kind, SocketType};

use super::service::{Alarm, ServiceQueue, ServiceTimes};
use super::{End, ServerModel, ServerSnapshot, ServerSurroundings};
use crate::hosts::stream::StreamPacket;
use crate::ids::{ServerId, Side, TcpConnectionId};

/// A proxy, and what waits for it.
pub(crate) struct ZeroMqModel {
    id: ServerId,
    proxy: Proxy<Passed>,
    /// Messages that each connection has been given and whose last byte its socket has not taken, by slot.
    untaken: BTreeMap<u32, u64>,
    inbox: ServiceQueue<(TcpConnectionId, ProxyWork)>,
    outbox: VecDeque<(Instant, TcpConnectionId, ProxyResponse)>,
    /// Connections with packets in their streams that were not handed to their sockets yet.
    unwritten: Vec<TcpConnectionId>,
    /// Whether nothing of what was read with the packet that was served last is still to be served.
    is_row_over: bool,
    /// The end that it has written to last.
    wrote_to: Option<End>,
    alarm: Alarm,
}

/// A message, as the machine passes it on.
#[derive(Clone, Debug)]
struct Passed {
    message: u64,
    topic: u32,
}

#[derive(Clone, Copy)]
enum ProxyWork {
    /// And whether it is the last of those that were read with it.
    Packet(StreamPacket, bool),
    Closed,
}

enum ProxyResponse {
    Packet(StreamPacket, usize),
    Close,
}

impl ZeroMqModel {
    pub(crate) fn new(id: ServerId, name: &str, role: &ZeroMqRole, seed: Seed) -> ZeroMqModel {
        ZeroMqModel {
            id,
            proxy: Proxy::new(role.options()),
            untaken: BTreeMap::new(),
            inbox: ServiceQueue::new(ServiceTimes::new(role.service, name, seed)),
            outbox: VecDeque::new(),
            unwritten: Vec::new(),
            is_row_over: true,
            wrote_to: None,
            alarm: Alarm::new(id),
        }
    }

    fn read_if_served(&mut self, around: &mut ServerSurroundings<'_>, id: TcpConnectionId) {
        if around.transport.connection(id).unserved < UNSERVED_MAX {
            self.read_socket(around, id);
        }
    }

    fn read_socket(&mut self, around: &mut ServerSurroundings<'_>, id: TcpConnectionId) {
        let end = (id, Side::Server);
        let Some(offset) = around.read_socket(end) else { return };
        let mut before = None;
        while let Some(packet) = around.transport.take_packet(around.evidence, around.topics, end, offset) {
            if let Some(packet) = before.replace(packet) {
                self.request(around, id, ProxyWork::Packet(packet, false));
            }
        }
        if let Some(last) = before {
            self.request(around, id, ProxyWork::Packet(last, true));
        }
    }

    fn request(&mut self, around: &mut ServerSurroundings<'_>, id: TcpConnectionId, what: ProxyWork) {
        around.transport.connection_mut(id).unserved += 1;
        self.inbox.push((id, what));
        self.begin(around.now());
        self.set_alarm(around);
    }

    /// Begins with the next packet, once everything before has been sent.
    fn begin(&mut self, now: Instant) {
        if self.outbox.is_empty() {
            self.inbox.begin(now);
        }
    }

    fn set_alarm(&mut self, around: &mut ServerSurroundings<'_>) {
        let sending = self.outbox.front().map(|(at, ..)| *at);
        self.alarm.set(sending.or(self.inbox.done()), around.agenda);
    }

    fn attend(&mut self, around: &mut ServerSurroundings<'_>, id: TcpConnectionId, what: ProxyWork) {
        self.is_row_over = !matches!(what, ProxyWork::Packet(_, false));
        // The slot may have been given to another connection since.
        if !around.transport.connections().is_current(id) {
            return;
        }
        around.transport.connection_mut(id).unserved -= 1;
        match what {
            ProxyWork::Packet(packet, _) => self.attend_packet(around, id, &packet),
            ProxyWork::Closed => {
                self.proxy.handle(around.now(), Peer(id.slot), Input::Closed);
                self.untaken.remove(&id.slot);
                around.close((id, Side::Server));
            }
        }
        self.gather(around);
        if around.transport.connection(id).unserved == 0 {
            self.read_socket(around, id);
        }
    }

    fn attend_packet(
        &mut self,
        around: &mut ServerSurroundings<'_>,
        id: TcpConnectionId,
        packet: &StreamPacket,
    ) {
        let (now, peer) = (around.now(), Peer(id.slot));
        // Only these two name a topic; where nobody publishes there may be none.
        let kind = packet.kind.zeromq();
        let named = match kind {
            Some(Kind::Message | Kind::Subscribe) => around.topics.name(packet.topic).as_bytes(),
            _ => b"",
        };
        let command = match kind {
            Some(Kind::Message) => {
                let unmatched = self.proxy.counters().unmatched;
                let copy = Passed { message: packet.message, topic: packet.topic };
                self.proxy.message(peer, named, copy);
                if self.proxy.counters().unmatched > unmatched {
                    around.evidence.dropped(now, packet.message, None, LossCause::NotSubscribed);
                }
                return;
            }
            Some(Kind::Greeting) => {
                let greeting = Greeting { minor: greeting::MINOR };
                return self.proxy.handle(now, peer, Input::Greeting(greeting));
            }
            Some(Kind::Ready) => {
                Command::Ready { socket: own_socket(around, id).map(opposite), client: None }
            }
            Some(Kind::Subscribe) => Command::Subscribe(named),
            Some(Kind::Ping) => Command::Ping { context: &b""[..] },
            _ => Command::Other,
        };
        self.proxy.handle(now, peer, Input::Command(command));
    }

    /// Takes what the machine says into the outbox; each copy of a message takes its time.
    fn gather(&mut self, around: &mut ServerSurroundings<'_>) {
        let now = around.now();
        let mut at = self.outbox.back().map_or(now, |(at, ..)| (*at).max(now));
        while let Some(output) = self.proxy.poll() {
            let (to, response) = match output {
                Output::Message(to, copy) => {
                    // As a broker's.
                    at = at.saturating_add(self.inbox.per_copy());
                    *self.untaken.entry(to.0).or_default() += 1;
                    let (packet, length) = around.groups.frames(around.topics, (copy.message, copy.topic));
                    (to, ProxyResponse::Packet(packet, length))
                }
                Output::Send(to, packet) => {
                    let (packet, length) = self.packet(around, &packet);
                    (to, ProxyResponse::Packet(packet, length))
                }
                Output::Close(to) => (to, ProxyResponse::Close),
                Output::Dropped(to, copy) => {
                    let client = around.client_at(around.transport.connections().at(to.0));
                    around.evidence.dropped(now, copy.message, client, LossCause::QueueFull);
                    continue;
                }
            };
            self.outbox.push_back((at, around.transport.connections().at(to.0), response));
        }
    }

    /// A packet that is no message, and its length.
    fn packet(&self, around: &mut ServerSurroundings<'_>, packet: &Send) -> (StreamPacket, usize) {
        let bare = |kind: Kind| StreamPacket::bare(kind, 0);
        match packet {
            Send::Greeting => (bare(Kind::Greeting), greeting::BYTES),
            Send::Ready(socket) => (bare(Kind::Ready), command::ready_len(*socket)),
            Send::Error(reason) => (bare(Kind::Error), mqttlab_zmtp::frame::len(7 + reason.len())),
            Send::Subscribe { begins, prefix, .. } => {
                // Prefixes are the simulation's own texts.
                let topic = around.topics.number(self.id, std::str::from_utf8(prefix).unwrap_or_default());
                let (kind, length) = match begins {
                    true => (Kind::Subscribe, command::subscribe_len(prefix.len())),
                    false => (Kind::Cancel, command::cancel_len(prefix.len())),
                };
                (StreamPacket { topic, ..bare(kind) }, length)
            }
            Send::Pong(_) => (bare(Kind::Pong), command::PONG_LEN),
        }
    }

    fn respond(
        &mut self,
        around: &mut ServerSurroundings<'_>,
        id: TcpConnectionId,
        response: &ProxyResponse,
    ) {
        if !around.transport.connections().is_current(id) {
            return;
        }
        match response {
            ProxyResponse::Packet(packet, length) => {
                around.transport.connection_mut(id).append(Side::Server, *packet, *length);
                if !self.unwritten.contains(&id) {
                    self.unwritten.push(id);
                }
            }
            ProxyResponse::Close => around.close((id, Side::Server)),
        }
    }

    /// Hands to sockets what has come together, once all of it has.
    fn write_row(&mut self, around: &mut ServerSurroundings<'_>) {
        if !self.is_row_over || !self.outbox.is_empty() {
            return;
        }
        for id in std::mem::take(&mut self.unwritten) {
            if around.transport.connections().is_current(id) {
                self.write(around, id);
            }
        }
    }

    /// Hands what waits to a socket, and tells the machine what it has taken.
    fn write(&mut self, around: &mut ServerSurroundings<'_>, id: TcpConnectionId) {
        around.write((id, Side::Server), &mut self.wrote_to);
        let waiting = around.transport.connection(id).streams[Side::Server as usize].packets_waiting() as u64;
        if let Some(untaken) = self.untaken.get_mut(&id.slot) {
            let taken = untaken.saturating_sub(waiting);
            // What is served and not sent yet is not in the socket's stream.
            let served = self.outbox.iter().filter(|(_, to, _)| *to == id).count() as u64;
            let taken = taken.saturating_sub(served);
            *untaken -= taken;
            self.proxy.handle(around.agenda.now(), Peer(id.slot), Input::Taken(taken));
        }
    }
}

impl ServerModel for ZeroMqModel {
    fn on_tcp(&mut self, around: &mut ServerSurroundings<'_>, end: End, event: TcpEvent) {
        let (id, _) = end;
        match event {
            TcpEvent::Connected => {
                if let Some(socket) = own_socket(around, id) {
                    self.proxy.handle(around.now(), Peer(id.slot), Input::Accepted(socket));
                    self.untaken.insert(id.slot, 0);
                    self.gather(around);
                    self.set_alarm(around);
                }
            }
            TcpEvent::Readable(offset) => {
                if around.reads_now(end, offset) {
                    self.read_if_served(around, id);
                }
            }
            TcpEvent::Writable(_) => self.write(around, id),
            TcpEvent::PeerClosed | TcpEvent::Refused | TcpEvent::Reset | TcpEvent::TimedOut => {
                self.read_socket(around, id);
                self.request(around, id, ProxyWork::Closed);
            }
            TcpEvent::Acknowledged(_) | TcpEvent::Closed => {}
        }
    }

    fn read(&mut self, around: &mut ServerSurroundings<'_>, (id, _): End) {
        self.read_if_served(around, id);
    }

    fn on_timer(&mut self, around: &mut ServerSurroundings<'_>) {
        let now = around.now();
        if !self.alarm.is_due(now) {
            return;
        }
        loop {
            if let Some((_, id, response)) = self.outbox.pop_front_if(|(due, ..)| *due <= now) {
                self.respond(around, id, &response);
            } else if let Some((id, what)) = self.inbox.served(now) {
                self.attend(around, id, what);
            } else {
                break;
            }
            self.write_row(around);
            self.begin(now);
        }
        self.set_alarm(around);
    }

    fn resume(&mut self, around: &mut ServerSurroundings<'_>, stood: Duration, _: &[End]) {
        self.inbox.delay(stood);
        self.outbox.iter_mut().for_each(|(at, ..)| *at = at.saturating_add(stood));
        self.alarm.forget();
        self.set_alarm(around);
    }

    fn is_serving(&self, id: TcpConnectionId) -> bool {
        self.inbox.in_service().is_some_and(|(of, _)| *of == id)
    }

    fn dropped(&self) -> u64 {
        self.proxy.counters().dropped
    }

    fn snapshot(&self) -> ServerSnapshot<'_> {
        ServerSnapshot {
            inbox: self.inbox.len(),
            outbox: self.outbox.len(),
            busy_until: self.inbox.done(),
            ..ServerSnapshot::default()
        }
    }
}

/// The proxy's socket that a client has connected to.
fn own_socket(around: &ServerSurroundings<'_>, id: TcpConnectionId) -> Option<SocketType> {
    let client = around.client_at(id)?;
    Some(match zeromq::socket_type(around.groups.group_of(client)) {
        SocketType::Pub | SocketType::Xpub => SocketType::Xsub,
        SocketType::Sub | SocketType::Xsub => SocketType::Xpub,
    })
}

fn opposite(own: SocketType) -> SocketType {
    if own.publishes() { SocketType::Sub } else { SocketType::Pub }
}

/// As for a broker.
const UNSERVED_MAX: u32 = 256;
