//! TCP connections between clients and servers, and between servers: two endpoints and two streams each.

use std::sync::Arc;

use mqttlab_framing::Sealed;
use mqttlab_net::{Named, TcpFacts, TcpNames};
use mqttlab_tcp::{ConnectionState as State, Endpoint, Flags, Profile, Role, Segment, Seq};
use mqttlab_units::{Instant, OptionalInstant, Seed};

use crate::hosts::Reception;
use crate::hosts::layers::SimLayers;
use crate::hosts::packet_content::Waiting;
use crate::hosts::ports::Ports;
use crate::hosts::stream::{Stream, StreamPacket};
use crate::ids::{ClientId, HostId, ServerId, Side, TcpConnectionId};

/// A connection.
pub(crate) struct SimConnection {
    pub(crate) id: TcpConnectionId,
    /// As the recording numbers it: from 0 in the order of opening.
    pub(crate) number: u32,
    /// The client whose packets it carries; `None` where it carries those of many.
    pub(crate) client: Option<ClientId>,
    pub(crate) server: ServerId,
    /// The server that has opened it on clients' behalf; `None`: the client itself.
    pub(crate) opened_by: Option<ServerId>,
    /// Ports, by [`Side`].
    pub(crate) ports: [u16; 2],
    /// Endpoints, by [`Side`].
    pub(crate) ends: [Endpoint; 2],
    /// For when each end's timer is on the agenda.
    pub(crate) alarms: [OptionalInstant; 2],
    /// What each end sends, by [`Side`].
    pub(crate) streams: [Stream; 2],
    /// Where no client's plan says what its packets say, what does.
    pub(crate) said: Option<Box<Waiting>>,
    /// What lies between it and its packets.
    pub(crate) layered: Option<Box<SimLayers>>,
    /// Hosts, by [`Side`].
    pub(crate) hosts: [HostId; 2],
    /// Paths from each end, by [`Side`].
    pub(crate) paths: [usize; 2],
    /// What its frames are called.
    names: TcpNames,
    /// Up to where the program at the client's side may read, once it is awake; `None` while nothing has come.
    pub(crate) unread: Option<u64>,
    /// Up to where the program at the server's side may read, while it has enough of this connection to serve.
    pub(crate) left_in_socket: Option<u64>,
    /// Packets that the server has read and not served.
    pub(crate) unserved: u32,
    /// Frames on the network.
    pub(crate) under_way: u32,
    /// Whether the program at an end is gone, by [`Side`].
    pub(crate) orphaned: [bool; 2],
    /// Whether the client's end has lost its power.
    pub(crate) is_silent: bool,
    /// Whether the client has done with it.
    pub(crate) abandoned: bool,
    /// Whether its slot has been given back.
    retired: bool,
}

impl SimConnection {
    /// The server at a side; `None`: a client is there.
    pub(crate) fn server_at(&self, side: Side) -> Option<ServerId> {
        match side {
            Side::Client => self.opened_by,
            Side::Server => Some(self.server),
        }
    }

    /// Data up to `offset` has come to a side; says whether nothing that came before waits there to be read.
    pub(crate) fn note_readable(&mut self, side: Side, offset: u64) -> bool {
        self.readable_to(side).replace(offset).is_none()
    }

    /// Up to where the program at a side may read what has come since it last did; `None`: nothing has.
    pub(crate) fn take_readable(&mut self, side: Side) -> Option<u64> {
        self.readable_to(side).take()
    }

    /// Puts a packet behind what the program at a side has to say, and answers where it ends. Nothing is written yet.
    pub(crate) fn append(&mut self, side: Side, packet: StreamPacket, length: usize) -> u64 {
        let layered = self.layered.as_ref();
        let sealed = layered.map_or_else(Sealed::default, |layered| layered.seal(side, length));
        let packet = StreamPacket { sealed, ..packet };
        self.streams[side as usize].append(packet, length + sealed.bytes() as usize)
    }

    /// Hands what waits at a side to the socket, by a program that has written to another one since if `apart`; `false` when it
    /// took nothing. To be followed by [`SimTransport::transmit`](super::transport::SimTransport::transmit), and to be called
    /// again where what waits is [written in parts](SimLayers::write_max).
    pub(crate) fn write(&mut self, now: Instant, side: Side, apart: bool) -> bool {
        let part_max = self.layered.as_ref().and_then(|layered| layered.write_max(side));
        let stream = &mut self.streams[side as usize];
        let waiting = part_max.map_or(stream.waiting(), |part_max| stream.part(part_max));
        if waiting == 0 {
            return false;
        }
        let end = &mut self.ends[side as usize];
        let accepted = if apart { end.write_apart(now, waiting) } else { end.write(now, waiting) };
        stream.accept(accepted);
        accepted > 0
    }

    /// Of the packet of which the program at a side has read the first bytes, up to `offset`: those, and those to come; 0 where
    /// it has none.
    pub(crate) fn begun(&self, side: Side, offset: u64) -> (u64, u64) {
        let stream = &self.streams[side.other() as usize];
        let begun = stream.unread().next().filter(|packet| packet.start < offset);
        begun.map_or((0, 0), |packet| (offset - packet.start, packet.end.saturating_sub(offset)))
    }

    /// Of the bytes up to `offset`, those that the program at a side never reads. Mosquitto reads TLS record by record, and closes
    /// at a DISCONNECT. The close alert behind it stays in the socket, so that its kernel closes with a reset (RFC 1122
    /// §4.2.2.13).
    pub(crate) fn left_unread(&self, side: Side, offset: u64) -> u64 {
        let reads_records =
            self.layered.as_ref().is_some_and(|layers| layers.has_tls() && !layers.has_websocket());
        match side {
            Side::Server if reads_records => self.streams[Side::Client as usize].farewell_bytes(offset),
            _ => 0,
        }
    }

    /// The client's end has lost its power: it sends nothing more, and what comes finds nobody.
    pub(crate) fn silence(&mut self, now: Instant) {
        (self.is_silent, self.abandoned, self.unread) = (true, true, None);
        let end = &mut self.ends[Side::Client as usize];
        end.abort(now);
        while end.poll().is_some() {}
    }

    /// A segment has come to the port of a server that does not accept now. Says whether TCP takes it.
    pub(crate) fn meets(&mut self, reception: &mut Reception, now: Instant) -> bool {
        let end = &mut self.ends[Side::Server as usize];
        if end.state() != State::Listen {
            return true;
        }
        match reception.take() {
            Some(true) => true,
            Some(false) => {
                // TCP answers it with a reset then.
                self.orphaned[Side::Server as usize] = true;
                end.abort(now);
                true
            }
            None => false,
        }
    }

    fn readable_to(&mut self, side: Side) -> &mut Option<u64> {
        match side {
            Side::Client => &mut self.unread,
            Side::Server => &mut self.left_in_socket,
        }
    }

    /// The name of the next segment from this side.
    pub(crate) fn name(&mut self, from: Side, segment: &Segment) -> Named {
        self.names.name(
            from as usize,
            &TcpFacts {
                seq: segment.seq.0,
                ack: segment.ack.0,
                length: segment.length.into(),
                syn: segment.flags.has(Flags::SYN),
                fin: segment.flags.has(Flags::FIN),
            },
        )
    }
}

/// What a connection is made from.
pub(crate) struct ConnectionRequest {
    pub(crate) client: Option<ClientId>,
    pub(crate) server: ServerId,
    /// By [`Side`], as all that follows.
    pub(crate) profiles: [Arc<Profile>; 2],
    pub(crate) nodelay: [bool; 2],
    pub(crate) hosts: [HostId; 2],
    pub(crate) paths: [usize; 2],
    pub(crate) server_port: u16,
}

/// All connections. Slots are used again once nothing can arrive for them.
pub(crate) struct Connections {
    slots: Vec<SimConnection>,
    free: Vec<u32>,
    opened: u32,
    /// How many each host has opened.
    opened_by: Vec<u32>,
    /// Of those whose slots have not been given back.
    ports: Ports<ServerId>,
    seed: Seed,
}

impl Connections {
    /// With room for `expected` at once, between so many hosts.
    pub(crate) fn new(seed: Seed, expected: usize, hosts: usize) -> Connections {
        let seed = seed.derive("sequence numbers");
        let (slots, free) = (Vec::with_capacity(expected), Vec::new());
        Connections { slots, free, opened: 0, opened_by: vec![0; hosts], ports: Ports::new(), seed }
    }

    /// Makes a connection whose endpoints have done nothing yet; `None` where its host has no port left.
    pub(crate) fn add(&mut self, opening: ConnectionRequest) -> Option<TcpConnectionId> {
        let number = self.opened;
        let host = opening.hosts[Side::Client as usize];
        let port = self.ports.allocate(number, host, opening.server)?;
        self.opened += 1;
        let ordinal = &mut self.opened_by[host.0 as usize];
        let names = TcpNames::new(host.0, *ordinal);
        *ordinal += 1;
        let ends = self.endpoints(number, &opening);
        let fresh = |id, streams| SimConnection {
            id,
            number,
            client: opening.client,
            server: opening.server,
            opened_by: None,
            ports: [port, opening.server_port],
            ends,
            alarms: [OptionalInstant::NONE; 2],
            streams,
            said: None,
            layered: None,
            hosts: opening.hosts,
            paths: opening.paths,
            names,
            unread: None,
            left_in_socket: None,
            unserved: 0,
            under_way: 0,
            orphaned: [false; 2],
            is_silent: false,
            abandoned: false,
            retired: false,
        };
        let Some(slot) = self.free.pop() else {
            let id = TcpConnectionId { slot: self.slots.len() as u32, generation: 0 };
            self.slots.push(fresh(id, Default::default()));
            return Some(id);
        };
        let old = &mut self.slots[slot as usize];
        let id = TcpConnectionId { slot, generation: old.id.generation + 1 };
        // The streams' room is used again.
        let mut streams = std::mem::take(&mut old.streams);
        streams.iter_mut().for_each(Stream::clear);
        *old = fresh(id, streams);
        Some(id)
    }

    fn endpoints(&self, number: u32, opening: &ConnectionRequest) -> [Endpoint; 2] {
        let mut dice = self.seed.index(u64::from(number)).dice();
        Side::BOTH.map(|side| {
            let role = if side == Side::Client { Role::Active } else { Role::Passive };
            let profile = Arc::clone(&opening.profiles[side as usize]);
            let mut end = Endpoint::with_initial_sequence(profile, role, Seq(dice.bits() as u32));
            end.set_nodelay(opening.nodelay[side as usize]);
            end
        })
    }

    pub(crate) fn get(&self, id: TcpConnectionId) -> &SimConnection {
        &self.slots[id.slot as usize]
    }

    pub(crate) fn get_mut(&mut self, id: TcpConnectionId) -> &mut SimConnection {
        &mut self.slots[id.slot as usize]
    }

    /// The connection that a slot belongs to now.
    pub(crate) fn at(&self, slot: u32) -> TcpConnectionId {
        self.slots[slot as usize].id
    }

    /// Whether it has not been replaced by another one since.
    pub(crate) fn is_current(&self, id: TcpConnectionId) -> bool {
        self.at(id.slot) == id
    }

    /// Whether both ends are done and nothing is under way, so that the slot can be given back.
    pub(crate) fn is_over(&self, id: TcpConnectionId) -> bool {
        let connection = self.get(id);
        let idle = connection.under_way == 0 && connection.unread.is_none();
        let done = connection.abandoned && idle && !connection.retired;
        done && connection.ends.iter().all(is_over)
    }

    /// Gives slot and port back.
    pub(crate) fn retire(&mut self, id: TcpConnectionId) {
        let connection = &mut self.slots[id.slot as usize];
        connection.retired = true;
        let [port, _] = connection.ports;
        self.ports.give_back(port, connection.hosts[Side::Client as usize], connection.server);
        self.free.push(id.slot);
    }

    /// Those whose slots have not been given back.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &SimConnection> {
        self.slots.iter().filter(|connection| !connection.retired)
    }
}

/// Whether an endpoint has nothing to do with what may still come. TIME-WAIT is not waited for: a port's turn comes again
/// only after all others, and a SYN with another sequence number opens another connection.
fn is_over(end: &Endpoint) -> bool {
    matches!(end.state(), State::Closed | State::TimeWait | State::Listen)
}
