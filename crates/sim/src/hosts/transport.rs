//! The transport: what carries packets between clients and servers. Hosts with their TCP, connections, and the wire.
//!
//! ```text
//!   append ──► stream ──► write ──► TCP endpoint ──► wire ──► TCP endpoint ──► next_event ──► read, take_packet
//! ```
//!
//! Datagrams go over the same wire: [`SimTransport::send_datagram`], and [`HostArrival::Datagram`] where they come out.
//!
//! Contract: a verb (`open`, `read`, `close`) lets TCP send at once, so that an acknowledgement leaves before
//! the program that has read can answer, and does nothing else: it never calls a program. What TCP has to tell a program
//! comes out of [`SimTransport::next_event`], which whoever drives the simulation drains after every frame, timer and read.
//!
//! What it does not model: the time that a host takes to handle a segment or a datagram.

use std::rc::Rc;

use mqttlab_client::Rests;
use mqttlab_net::{Cause, Delivery, Fate};
use mqttlab_plan::{LinksEvent, MediumEvent};
use mqttlab_tcp::{Segment, TcpEvent, TcpOutput as Output};
use mqttlab_units::{Instant, OptionalInstant};

use crate::control::event::SimEvent;
use crate::control::event_queue::EventQueue;
use crate::hosts::connections::{ConnectionRequest, Connections, SimConnection};
use crate::hosts::datagrams::{DatagramConversation, DatagramConversations, DatagramPacket, SimDatagram};
use crate::hosts::layers::SimLayers;
use crate::hosts::stream::StreamPacket;
use crate::hosts::wire::{Cargo, CarriedSegment, FrameEvent, SimWire};
use crate::hosts::{Hosts, Reception};
use crate::ids::{ClientId, ConversationId, HostId, ServerId, Side, TcpConnectionId};
use crate::records::{Crossing, Records};
use crate::topics::SimTopics;

/// Hosts, connections, and what is between them.
pub(crate) struct SimTransport {
    hosts: Hosts,
    connections: Connections,
    conversations: DatagramConversations,
    wire: SimWire,
    rests: Rests,
}

/// Who opens a connection.
pub(crate) struct Caller {
    /// The client whose packets it is to carry; `None`: those of many.
    pub(crate) client: Option<ClientId>,
    pub(crate) host: HostId,
    /// Whether Nagle's algorithm is off.
    pub(crate) nodelay: bool,
    /// The server's port, where it is not its first one.
    pub(crate) port: Option<u16>,
    /// What is to lie on it.
    pub(crate) layered: Option<Box<SimLayers>>,
}

/// What has come to a host.
pub(crate) enum HostArrival {
    /// TCP has it, and may have something to tell the program on this side.
    Segment(TcpConnectionId, Side),
    /// It is for the program on the other side than its sender's.
    Datagram(Rc<SimDatagram>),
}

impl SimTransport {
    pub(crate) fn new(hosts: Hosts, connections: Connections, wire: SimWire, rests: Rests) -> SimTransport {
        let conversations = DatagramConversations::new(hosts.len());
        SimTransport { hosts, connections, conversations, wire, rests }
    }

    pub(crate) fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// Whether what has come at this instant [comes alone](SimWire::comes_alone).
    pub(crate) fn comes_alone(&mut self, now: Instant) -> bool {
        self.wire.comes_alone(now)
    }

    pub(crate) fn wire(&self) -> &SimWire {
        &self.wire
    }

    pub(crate) fn connections(&self) -> &Connections {
        &self.connections
    }

    pub(crate) fn connection(&self, id: TcpConnectionId) -> &SimConnection {
        self.connections.get(id)
    }

    pub(crate) fn connection_mut(&mut self, id: TcpConnectionId) -> &mut SimConnection {
        self.connections.get_mut(id)
    }

    pub(crate) fn conversation(&self, id: ConversationId) -> &DatagramConversation {
        self.conversations.get(id)
    }

    /// A client opens a socket for datagrams to a server.
    ///
    /// # Errors
    /// Why it cannot.
    pub(crate) fn open_conversation(
        &mut self,
        (client, host): (ClientId, HostId),
        server: ServerId,
    ) -> Result<ConversationId, &'static str> {
        let listener = self.hosts.listener(server);
        let hosts = [host, listener.host];
        let paths = self.paths(hosts).ok_or("no path leads to the gateway")?;
        let id = self.conversations.add((client, server), hosts, paths, listener.port);
        id.ok_or("no port is left")
    }

    /// A client on this host falls asleep, or wakes up.
    pub(crate) fn set_asleep(&mut self, now: Instant, host: HostId, asleep: bool) {
        if let Some(rests) = self.rests.change(host.0 as usize, asleep) {
            self.wire.set_asleep(now, host, rests);
        }
    }

    /// A client closes its socket for datagrams.
    pub(crate) fn close_conversation(&mut self, id: ConversationId) {
        self.conversations.close(id);
    }

    /// A socket sends a packet as a datagram.
    pub(crate) fn send_datagram(
        &mut self,
        now: Instant,
        evidence: &mut Records,
        (id, from): (ConversationId, Side),
        packet: DatagramPacket,
    ) {
        let conversation = self.conversations.get_mut(id);
        let (datagram, named) = conversation.datagram(now, (id, from), packet);
        let path = conversation.paths[from as usize];
        self.wire.send(now, path, named, from, Cargo::Datagram(Rc::new(datagram)));
        self.poll_network(evidence);
    }

    /// A client begins to connect to a server.
    ///
    /// # Errors
    /// Why it cannot.
    pub(crate) fn open(
        &mut self,
        agenda: &mut EventQueue<SimEvent>,
        evidence: &mut Records,
        caller: Caller,
        server: ServerId,
    ) -> Result<TcpConnectionId, &'static str> {
        let Caller { client, host, nodelay, port, layered } = caller;
        let listener = self.hosts.listener(server);
        let hosts = [host, listener.host];
        let paths = self.paths(hosts).ok_or("no path leads to the broker")?;
        let id = self.connections.add(ConnectionRequest {
            client,
            server,
            profiles: self.hosts.profiles(host, server, self.wire.is_loopback(paths[Side::Client as usize])),
            // libwebsockets, Mosquitto's end of WebSocket, sets TCP_NODELAY whatever Mosquitto is told.
            nodelay: [
                nodelay,
                listener.nodelay || layered.as_ref().is_some_and(|layered| layered.has_websocket()),
            ],
            hosts,
            paths,
            server_port: port.unwrap_or(listener.port),
        });
        let id = id.ok_or("no port is left towards the broker")?;
        let connection = self.connections.get_mut(id);
        connection.layered = layered;
        connection.ends[Side::Client as usize].open(agenda.now());
        self.transmit(agenda, evidence, id, Side::Client);
        Ok(id)
    }

    /// From each of two hosts to the other, by [`Side`]; `None` where none leads there.
    fn paths(&self, [client, server]: [HostId; 2]) -> Option<[usize; 2]> {
        Some([self.wire.path(client, server)?, self.wire.path(server, client)?])
    }

    /// A program reads all bytes that there are, and learns up to where packets may be taken out of them by
    /// [`SimTransport::take_packet`]; `None`: nothing has come since it last read.
    pub(crate) fn read(
        &mut self,
        agenda: &mut EventQueue<SimEvent>,
        evidence: &mut Records,
        (id, side): (TcpConnectionId, Side),
    ) -> Option<u64> {
        let connection = self.connections.get_mut(id);
        let offset = connection.take_readable(side)?;
        let left = connection.left_unread(side, offset);
        let end = &mut connection.ends[side as usize];
        end.read(agenda.now(), end.readable().saturating_sub(left));
        self.transmit(agenda, evidence, id, side);
        Some(offset)
    }

    /// The next packet that ends at or before `offset` of what was read.
    pub(crate) fn take_packet(
        &mut self,
        evidence: &mut Records,
        topics: &SimTopics,
        (id, side): (TcpConnectionId, Side),
        offset: u64,
    ) -> Option<StreamPacket> {
        let connection = self.connections.get_mut(id);
        let packet = connection.streams[side.other() as usize].read(offset)?;
        evidence.control_packet(connection, side.other(), &packet, topics.name_of(&packet));
        Some(packet)
    }

    /// A program wants no more of a connection.
    pub(crate) fn close(
        &mut self,
        agenda: &mut EventQueue<SimEvent>,
        evidence: &mut Records,
        id: TcpConnectionId,
        side: Side,
    ) {
        let connection = self.connections.get_mut(id);
        connection.abandoned |= side == Side::Client;
        connection.ends[side as usize].close(agenda.now());
        self.transmit(agenda, evidence, id, side);
    }

    /// From now on this becomes of SYNs to a server.
    pub(crate) fn set_reception(&mut self, server: ServerId, reception: Reception) {
        self.hosts.listener_mut(server).reception = reception;
    }

    /// The program at this end has ended, and its kernel closes the socket: as [`SimTransport::close`] does, or with a reset.
    pub(crate) fn leave(
        &mut self,
        agenda: &mut EventQueue<SimEvent>,
        evidence: &mut Records,
        (id, side): (TcpConnectionId, Side),
        is_reset: bool,
    ) {
        if is_reset {
            self.connections.get_mut(id).ends[side as usize].abort(agenda.now());
        }
        self.close(agenda, evidence, id, side);
    }

    /// Sends what TCP may send, and sees to its timer. What it has to tell its program waits.
    pub(crate) fn transmit(
        &mut self,
        agenda: &mut EventQueue<SimEvent>,
        evidence: &mut Records,
        id: TcpConnectionId,
        side: Side,
    ) {
        while let Some(segment) = self.connections.get_mut(id).ends[side as usize].poll_transmit() {
            self.send(agenda.now(), evidence, id, side, &segment);
        }
        self.set_timer(agenda, id, side);
    }

    /// What TCP has to tell the program on this side. `None` once all is sent and told; then its timer is set.
    pub(crate) fn next_event(
        &mut self,
        agenda: &mut EventQueue<SimEvent>,
        evidence: &mut Records,
        id: TcpConnectionId,
        side: Side,
    ) -> Option<TcpEvent> {
        let now = agenda.now();
        while let Some(output) = self.connections.get_mut(id).ends[side as usize].poll() {
            let streams = &mut self.connections.get_mut(id).streams;
            match output {
                Output::Transmit(segment) => self.send(now, evidence, id, side, &segment),
                Output::Event(TcpEvent::Acknowledged(offset)) => streams[side as usize].acknowledge(offset),
                Output::Event(event) => {
                    if let TcpEvent::Readable(offset) = event {
                        streams[side.other() as usize].arrived(now, offset);
                    }
                    return Some(event);
                }
            }
        }
        self.set_timer(agenda, id, side);
        None
    }

    fn set_timer(&mut self, agenda: &mut EventQueue<SimEvent>, id: TcpConnectionId, side: Side) {
        let connection = self.connections.get_mut(id);
        let Some(deadline) = connection.ends[side as usize].next_deadline() else { return };
        let alarm = &mut connection.alarms[side as usize];
        if alarm.get().is_none_or(|alarm| deadline < alarm) {
            *alarm = deadline.into();
            agenda.add(deadline, SimEvent::Timer { connection: id, side });
        }
    }

    fn send(
        &mut self,
        now: Instant,
        evidence: &mut Records,
        id: TcpConnectionId,
        side: Side,
        segment: &Segment,
    ) {
        let connection = self.connections.get_mut(id);
        let end = &connection.ends[side as usize];
        let offset = (segment.length > 0).then(|| end.sent_offset(segment)).flatten();
        connection.under_way += 1;
        let path = connection.paths[side as usize];
        let named = connection.name(side, segment);
        let carried = CarriedSegment { connection: id, segment: *segment, offset };
        self.wire.send(now, path, named, side, Cargo::Segment(carried));
        self.poll_network(evidence);
    }

    /// Lets a timer of TCP fire that is due now; `false` when it was set anew since, or belonged to another connection.
    pub(crate) fn on_timer(&mut self, now: Instant, id: TcpConnectionId, side: Side) -> bool {
        let connection = self.connections.get_mut(id);
        if connection.id != id || connection.alarms[side as usize] != now.into() {
            return false;
        }
        connection.alarms[side as usize] = OptionalInstant::NONE;
        connection.ends[side as usize].tick(now);
        true
    }

    /// Takes the next frame that is at the end of its path: hands a segment to TCP.
    pub(crate) fn arrive(&mut self, now: Instant) -> Option<HostArrival> {
        let slot = self.wire.arrival()?;
        let frame = self.wire.frame(slot);
        let side = frame.from.other();
        let arrival = match &frame.cargo {
            Cargo::Segment(carried) => {
                let connection = self.connections.get_mut(carried.connection);
                connection.under_way -= 1;
                let reception = &mut self.hosts.listener_mut(connection.server).reception;
                let is_taken = match side {
                    Side::Client => !connection.is_silent,
                    Side::Server => *reception == Reception::Open || connection.meets(reception, now),
                };
                if is_taken {
                    connection.ends[side as usize].receive(now, &carried.segment);
                }
                HostArrival::Segment(carried.connection, side)
            }
            Cargo::Datagram(datagram) => HostArrival::Datagram(Rc::clone(datagram)),
        };
        self.wire.release(slot);
        Some(arrival)
    }

    /// When something happens on the network next.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.wire.next_deadline()
    }

    /// Time has passed on the network.
    pub(crate) fn tick(&mut self, now: Instant, evidence: &mut Records) {
        self.wire.tick(now);
        self.poll_network(evidence);
    }

    /// Publishing begins at `at`: the links' traces count from then.
    pub(crate) fn begin_traces(&mut self, at: Instant) {
        self.wire.begin_traces(at);
    }

    /// Links change.
    pub(crate) fn change_links(&mut self, now: Instant, event: &LinksEvent, evidence: &mut Records) {
        self.wire.change(now, event);
        self.poll_network(evidence);
    }

    /// A radio channel changes.
    pub(crate) fn change_medium(&mut self, now: Instant, event: &MediumEvent, evidence: &mut Records) {
        self.wire.change_medium(now, event);
        self.poll_network(evidence);
    }

    /// Takes note of what happened to frames.
    fn poll_network(&mut self, evidence: &mut Records) {
        while let Some(event) = self.wire.poll() {
            match event {
                FrameEvent::Crossed { frame: slot, copy, link, hop, entered, fate } => {
                    self.record_crossing(evidence, (slot, copy), (link, hop), entered, fate);
                    match (fate, self.connection_of(slot)) {
                        (Fate::Dropped { .. }, Some(connection)) => connection.under_way -= 1,
                        (Fate::Delivered(Delivery { duplicate_at: Some(_), .. }), Some(connection)) => {
                            connection.under_way += 1;
                        }
                        _ => {}
                    }
                    if let Fate::Dropped { cause, .. } = fate {
                        self.note_lost_datagram(evidence, slot, Some(entered), cause);
                    }
                    self.wire.note_fate(slot, &fate);
                }
                FrameEvent::Bare { frame: slot, link, at } => {
                    let (corrupted_bit, duplicate_at) = (None, None);
                    let delivery =
                        Delivery { start: at, sent: at, at, corrupted_bit, duplicate_at, is_marked: false };
                    self.record_crossing(evidence, (slot, 0), (link, 0), at, Fate::Delivered(delivery));
                }
                FrameEvent::Corrupted { frame: slot } => {
                    if let Some(connection) = self.connection_of(slot) {
                        connection.under_way -= 1;
                    }
                    self.note_lost_datagram(evidence, slot, None, Cause::BitError);
                    self.wire.release(slot);
                }
            }
        }
    }

    /// A frame is lost: so is the message of a datagram that nobody repeats.
    fn note_lost_datagram(&self, evidence: &mut Records, slot: u32, at: Option<Instant>, cause: Cause) {
        if let Cargo::Datagram(datagram) = &self.wire.frame(slot).cargo {
            let client = self.conversations.get(datagram.conversation).client;
            evidence.dropped_with_datagram(at.unwrap_or(datagram.sent), client, datagram, cause);
        }
    }

    /// The connection whose segment a frame carries.
    fn connection_of(&mut self, slot: u32) -> Option<&mut SimConnection> {
        match &self.wire.frame(slot).cargo {
            Cargo::Segment(carried) => Some(self.connections.get_mut(carried.connection)),
            Cargo::Datagram(_) => None,
        }
    }

    fn record_crossing(
        &mut self,
        evidence: &mut Records,
        (slot, copy): (u32, u16),
        (link, hop): (usize, usize),
        entered: Instant,
        fate: Fate,
    ) {
        if !evidence.has_packets() {
            return;
        }
        let frame = self.wire.frame(slot);
        let frame_bytes = self.wire.frame_bytes(link, frame.cargo.ip_bytes());
        let crossing = Crossing { link, hop, copy, frame_bytes, entered, fate };
        match &frame.cargo {
            Cargo::Segment(carried) => {
                let connection = self.connections.get_mut(carried.connection);
                evidence.crossed(connection, frame, carried, &crossing);
            }
            Cargo::Datagram(datagram) => {
                let conversation = self.conversations.get(datagram.conversation);
                evidence.datagram_crossed(conversation, frame, datagram, &crossing);
            }
        }
    }

    /// Gives a connection's slot back if nothing can happen to it any more. What it still held is lost.
    pub(crate) fn retire(
        &mut self,
        now: Instant,
        evidence: &mut Records,
        topics: &SimTopics,
        id: TcpConnectionId,
    ) {
        if !self.connections.is_over(id) {
            return;
        }
        let connection = self.connections.get(id);
        record_unread(connection, evidence, topics);
        for from in Side::BOTH {
            for packet in connection.streams[from as usize].unread() {
                evidence.dropped_with_connection(now, connection.client, from, packet);
            }
        }
        self.connections.retire(id);
    }

    /// The simulation is over: writes down what was sent and never read.
    pub(crate) fn end(&self, evidence: &mut Records, topics: &SimTopics) {
        self.connections.iter().for_each(|connection| record_unread(connection, evidence, topics));
    }
}

/// Writes down the packets that were sent and never read.
fn record_unread(connection: &SimConnection, evidence: &mut Records, topics: &SimTopics) {
    for from in Side::BOTH {
        for packet in connection.streams[from as usize].unread() {
            evidence.control_packet(connection, from, packet, topics.name_of(packet));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use mqttlab_mqtt::Kind;
    use mqttlab_plan::{Destination, Plan, Roster};

    use super::*;
    use crate::hosts::connections::Connections;
    use crate::ids::{HostId, ServerId};
    use crate::records::recording;

    /// A transport without clients and servers: the test is both.
    struct Bench {
        agenda: EventQueue<SimEvent>,
        evidence: Records,
        topics: SimTopics,
        transport: SimTransport,
    }

    struct Blind;

    impl mqttlab_recording::SegmentAnalyser for Blind {
        fn segment(&mut self, _: &mqttlab_recording::SeenSegment<'_>) -> mqttlab_recording::Judgement<'_> {
            mqttlab_recording::Judgement::default()
        }

        fn network_metrics(&mut self, _: &mut dyn FnMut(&mqttlab_recording::NetworkMetricRow<'_>)) {}
    }

    fn caller(host: HostId) -> Caller {
        Caller { client: Some(ClientId(0)), host, nodelay: true, port: None, layered: None }
    }

    impl Bench {
        fn new(name: &str, corpus: &str) -> Bench {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/plan").join(corpus);
            let plan = Plan::from_json(&std::fs::read_to_string(path).unwrap()).unwrap();
            let directory =
                std::env::temp_dir().join(format!("mqttlab-transport-{name}-{}", std::process::id()));
            let destination = Destination::new(&directory);
            let recorder = recording::begin(&plan, &destination, &Roster::of(&plan)).unwrap();
            let hosts = Hosts::new(&plan).unwrap();
            let connections = Connections::new(plan.seed, 1, hosts.len());
            let (links, rests) = ([plan.direct_link(), plan.loopback_link()], Rests::new(&plan));
            let wire = SimWire::new(plan.network, &[], plan.seed, links);
            Bench {
                agenda: EventQueue::default(),
                evidence: Records::new(recorder, (true, Box::default()), Box::new(Blind)),
                topics: SimTopics::default(),
                transport: SimTransport::new(hosts, connections, wire, rests),
            }
        }

        fn open(&mut self) -> TcpConnectionId {
            let end = caller(HostId(1));
            self.transport.open(&mut self.agenda, &mut self.evidence, end, ServerId(0)).unwrap()
        }

        fn append_packet(&mut self, id: TcpConnectionId, side: Side, packet: u16, length: usize) {
            self.transport.connection_mut(id).append(side, StreamPacket::bare(Kind::Puback, packet), length);
            assert!(self.transport.connection_mut(id).write(self.agenda.now(), side, false));
            self.transport.transmit(&mut self.agenda, &mut self.evidence, id, side);
        }

        fn close(&mut self, id: TcpConnectionId, side: Side) {
            self.transport.close(&mut self.agenda, &mut self.evidence, id, side);
        }

        /// Lets things happen until nothing is left, and returns what TCP had to tell.
        fn run(&mut self) -> Vec<(Side, TcpEvent)> {
            let mut told = Vec::new();
            loop {
                let due = if let Some(arrival) = self.transport.arrive(self.agenda.now()) {
                    match arrival {
                        HostArrival::Segment(id, side) => Some((id, side)),
                        HostArrival::Datagram(_) => None,
                    }
                } else if let Some(at) = self.transport.next_deadline()
                    && self.agenda.next_deadline().is_none_or(|due| at <= due)
                {
                    self.agenda.advance(at);
                    self.transport.tick(at, &mut self.evidence);
                    None
                } else {
                    match self.agenda.pop() {
                        Some(SimEvent::Timer { connection, side }) => {
                            let rang = self.transport.on_timer(self.agenda.now(), connection, side);
                            rang.then_some((connection, side))
                        }
                        Some(_) => None,
                        None => return told,
                    }
                };
                let Some((id, side)) = due else { continue };
                while let Some(event) =
                    self.transport.next_event(&mut self.agenda, &mut self.evidence, id, side)
                {
                    told.push((side, event));
                }
                self.transport.retire(self.agenda.now(), &mut self.evidence, &self.topics, id);
            }
        }

        fn read(&mut self, id: TcpConnectionId, side: Side, offset: u64) -> Vec<u16> {
            self.transport.connection_mut(id).note_readable(side, offset);
            assert_eq!(self.transport.read(&mut self.agenda, &mut self.evidence, (id, side)), Some(offset));
            assert_eq!(self.transport.read(&mut self.agenda, &mut self.evidence, (id, side)), None);
            let Bench { transport, evidence, topics, .. } = self;
            let packets = std::iter::from_fn(|| transport.take_packet(evidence, topics, (id, side), offset));
            packets.map(|packet| packet.id).collect()
        }
    }

    #[test]
    fn packets_arrive_whole_and_in_order_and_are_read_once() {
        let mut bench = Bench::new("whole", "pair.json");
        let id = bench.open();
        let told = bench.run();
        assert_eq!(told, [(Side::Client, TcpEvent::Connected), (Side::Server, TcpEvent::Connected)]);
        bench.append_packet(id, Side::Client, 1, 5_000);
        bench.append_packet(id, Side::Client, 2, 10);
        let told = bench.run();
        assert_eq!(told.last(), Some(&(Side::Server, TcpEvent::Readable(5_010))), "{told:?}");
        assert_eq!(bench.read(id, Side::Server, 5_009), [1], "the second one is not there to its last byte");
        assert_eq!(bench.read(id, Side::Server, 5_010), [2]);
        assert!(bench.read(id, Side::Server, 5_010).is_empty());
    }

    #[test]
    fn what_tcp_has_to_tell_waits_for_whoever_drives() {
        let mut bench = Bench::new("waits", "direct.json");
        let id = bench.open();
        bench.run();
        bench.append_packet(id, Side::Client, 1, 10);
        // The frame is there in no time, and yet its receiver has not been told.
        assert!(bench.transport.wire().has_arrivals());
        assert_eq!(bench.transport.connection(id).ends[Side::Server as usize].readable(), 0);
        assert_eq!(bench.run(), [(Side::Server, TcpEvent::Readable(10))]);
    }

    #[test]
    fn a_slot_is_used_again_and_old_timers_do_not_fire_in_it() {
        let mut bench = Bench::new("slots", "pair.json");
        let first = bench.open();
        bench.run();
        bench.close(first, Side::Client);
        bench.run();
        bench.close(first, Side::Server);
        bench.run();
        let second = bench.open();
        assert_eq!((second.slot, second.generation), (first.slot, first.generation + 1));
        assert!(!bench.transport.connections().is_current(first));
        let [old, new] = [first, second].map(|id| {
            let at = bench.transport.connection(second).alarms[Side::Client as usize].get().unwrap();
            bench.transport.on_timer(at, id, Side::Client)
        });
        assert!(!old && new, "the SYN's timer is the second connection's");
    }

    #[test]
    fn nowhere_is_a_path_that_the_plan_does_not_have() {
        let mut bench = Bench::new("nowhere", "hosts.json");
        let end = caller(HostId(99));
        assert!(bench.transport.open(&mut bench.agenda, &mut bench.evidence, end, ServerId(0)).is_err());
    }
}
