//! Everything that exists in a simulation, and the loop that moves it.
//!
//! Frames move on the [`Wire`], everything else is on the [`Agenda`]. The earlier one goes first; at equal times the
//! wire does, because what arrives at an instant is there for whoever acts at it.

use std::sync::Arc;

use mqttlab_mqtt::client::Input;
use mqttlab_mqtt::{Kind, Qos, Version, encode};
use mqttlab_net::{Delivery, Fate};
use mqttlab_plan::{Arrivals, Group, Plan, Progress, Roster};
use mqttlab_recording::EventKind;
use mqttlab_tcp::{Event as TcpEvent, Output, Profile, Segment};
use mqttlab_units::Instant;

use crate::agenda::Agenda;
use crate::client::{Client, GroupFacts, Link, Loss};
use crate::conductor::{Conductor, Phase};
use crate::connection::{Connections, Side};
use crate::evidence::{Crossing, Evidence};
use crate::message;
use crate::server::Server;
use crate::stream::Packet;
use crate::topics::Topics;
use crate::wire::{Happened, Wire};
use crate::{Audience, stack};

/// What is on the agenda.
pub(crate) enum Event {
    /// A client's deadline.
    Client(u32),
    /// A TCP timer. Places are used again, numbers are not.
    End { place: u32, number: u32, side: Side },
    /// A program reads from its connection.
    Read { place: u32, number: u32, side: Side },
    /// The broker.
    Broker,
    /// The present phase is over.
    Phase(Phase),
}

/// What has been counted.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) connected: i32,
    pub(crate) ready: i32,
    pub(crate) failed: u32,
    /// Clients that have nothing left to do.
    pub(crate) gone: u32,
    pub(crate) offered: u64,
    pub(crate) sent: u64,
    pub(crate) delivered: u64,
    pub(crate) expected: u64,
    pub(crate) unacknowledged: i64,
    pub(crate) disconnects: u64,
    pub(crate) dropped_by_broker: u64,
}

/// A simulation.
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) roster: Roster,
    pub(crate) now: Instant,
    pub(crate) agenda: Agenda<Event>,
    pub(crate) wire: Wire,
    pub(crate) connections: Connections,
    pub(crate) clients: Vec<Client>,
    pub(crate) groups: Vec<GroupFacts>,
    /// Each host's TCP.
    pub(crate) profiles: Vec<Arc<Profile>>,
    /// The TCP of the broker's host over its loopback device.
    pub(crate) loopback_profile: Arc<Profile>,
    pub(crate) topics: Topics,
    pub(crate) server: Server,
    pub(crate) evidence: Evidence,
    pub(crate) conductor: Conductor,
    pub(crate) tally: Tally,
    /// Whether clients are saying goodbye.
    pub(crate) leaving: bool,
    /// How many of a publisher's messages have their times remembered.
    pub(crate) remembered: usize,
    pub(crate) scratch: Vec<u8>,
    events: u64,
}

impl World {
    /// Everything at rest at time zero.
    ///
    /// # Errors
    /// A sentence, when the plan asks for what the simulator does not know.
    pub(crate) fn new(mut plan: Plan, roster: Roster, evidence: Evidence) -> Result<World, String> {
        let groups: Vec<GroupFacts> = plan.groups.iter().map(GroupFacts::of).collect();
        let count = plan.groups.iter().map(|group| group.count as usize).sum();
        let mut clients = Vec::with_capacity(count);
        for (number, group) in plan.groups.iter().enumerate() {
            for index in 0..group.count {
                let client = clients.len() as u32;
                clients.push(Client::new(client, number as u32, index, group, &groups[number], plan.seed));
            }
        }
        let profiles = stack::profiles(&plan)?;
        let loopback_profile = stack::profile(&plan, plan.broker.host, stack::LOOPBACK_MTU_BYTES)?;
        // Nobody asks for the hosts again, of which there may be thousands.
        plan.hosts = Vec::new();
        let subscribers = plan.groups.iter().filter(|group| !group.subscriptions.is_empty());
        let subscribers = subscribers.map(|group| group.count as usize).sum();
        Ok(World {
            now: Instant::ZERO,
            agenda: Agenda::default(),
            wire: Wire::new(&mut plan),
            connections: Connections::new(plan.seed, count, profiles.len()),
            profiles,
            loopback_profile,
            topics: Topics::of(&roster),
            server: Server::new(&plan, plan.seed),
            evidence,
            conductor: Conductor::new(&plan, subscribers, clients.len()),
            tally: Tally::default(),
            leaving: false,
            remembered: if plan.sim.stop.is_some() { REMEMBERED_FOR_STOPPING } else { REMEMBERED },
            scratch: Vec::new(),
            events: 0,
            clients,
            groups,
            roster,
            plan,
        })
    }

    /// Runs until the end, or until the audience has had enough.
    ///
    /// # Errors
    /// Why it ended before its end.
    pub(crate) fn run(&mut self, audience: &mut dyn Audience) -> Result<(), String> {
        (0..self.clients.len() as u32).for_each(|number| self.set_alarm(number));
        self.enter(Phase::Connect, audience);
        while self.conductor.phase != Phase::Over {
            self.step(audience)?;
            self.events += 1;
            if self.events.is_multiple_of(EVENTS_A_LOOK) {
                self.look_up(audience)?;
            }
        }
        self.evidence.failure().map_or(Ok(()), |error| Err(error.to_string()))
    }

    /// The next thing that happens.
    fn step(&mut self, audience: &mut dyn Audience) -> Result<(), String> {
        if let Some(frame) = self.wire.arrival() {
            self.arrive(frame);
        } else {
            let (wire, agenda) = (self.wire.next_deadline(), self.agenda.next_deadline());
            match (wire, agenda) {
                (Some(at), agenda) if agenda.is_none_or(|other| at <= other) => {
                    self.advance(at);
                    self.wire.tick(at);
                    self.observe();
                }
                (_, Some(_)) => self.happen(audience),
                _ => return Err("nothing is left to happen before the run's end".into()),
            }
        }
        self.conduct(audience);
        Ok(())
    }

    fn happen(&mut self, audience: &mut dyn Audience) {
        let Some((at, event)) = self.agenda.take() else { return };
        self.advance(at);
        match event {
            Event::Client(number) => {
                if self.clients[number as usize].alarm == Some(at) {
                    self.clients[number as usize].alarm = None;
                    self.wake(number);
                }
            }
            Event::End { place, number, side } => self.ring(place, number, side, at),
            Event::Read { place, number, side } if self.connections.peek(place).number == number => {
                match side {
                    Side::Client => self.read_at_client(place),
                    Side::Broker => self.read_once_served(place),
                }
                self.drain(place, side);
                self.retire(place);
            }
            Event::Read { .. } => {}
            Event::Broker => self.serve(at),
            Event::Phase(phase) => {
                // A phase that ended early is another one by now; none comes twice.
                if self.conductor.phase == phase {
                    self.leave_phase(audience);
                }
            }
        }
    }

    fn advance(&mut self, at: Instant) {
        assert!(at >= self.now, "time ran back from {} to {at}", self.now);
        self.now = at;
    }

    /// Ends phases that need not last as long as they may.
    fn conduct(&mut self, audience: &mut dyn Audience) {
        let over = match self.conductor.phase {
            Phase::Connect => self.tally.ready as u32 + self.tally.failed >= self.clients.len() as u32,
            Phase::Measurement => self.conductor.wants_to_stop(),
            Phase::CoolDown => self.now >= self.conductor.settled_from() && self.is_settled(),
            Phase::Farewell => {
                self.tally.gone as usize >= self.clients.len() && self.wire.next_deadline().is_none()
            }
            Phase::Notice | Phase::WarmUp | Phase::Over => false,
        };
        if over {
            self.leave_phase(audience);
        }
    }

    fn is_settled(&self) -> bool {
        self.tally.delivered >= self.tally.expected && self.tally.unacknowledged <= 0
    }

    fn leave_phase(&mut self, audience: &mut dyn Audience) {
        match self.conductor.phase {
            Phase::Connect => {
                self.warn_of_missing(audience);
                self.announce();
                self.enter(Phase::Notice, audience);
            }
            Phase::Notice => self.enter(Phase::WarmUp, audience),
            Phase::WarmUp => self.enter(Phase::Measurement, audience),
            Phase::Measurement => {
                if self.conductor.wants_to_stop() {
                    self.conductor.measure_until = self.now;
                    (0..self.clients.len() as u32).for_each(|number| self.stop_publishing(number));
                }
                self.enter(Phase::CoolDown, audience);
            }
            Phase::CoolDown => {
                self.leaving = true;
                (0..self.clients.len() as u32).for_each(|number| self.leave(number));
                self.enter(Phase::Farewell, audience);
            }
            Phase::Farewell | Phase::Over => self.conductor.phase = Phase::Over,
        }
    }

    fn enter(&mut self, phase: Phase, audience: &mut dyn Audience) {
        self.conductor.phase = phase;
        let ends = self.conductor.phase_ends(self.now);
        self.agenda.add(ends.max(self.now), Event::Phase(phase));
        let Some((name, said)) = named(phase) else { return };
        let length_ns = ends.since(self.now.min(ends)).as_ns();
        audience.hear(&Progress::Phase { phase: said, at_ns: self.now.as_ns(), length_ns });
        self.evidence.event(self.now, EventKind::Phase, None, None, name);
    }

    /// Fixes when to publish, and tells the clients.
    fn announce(&mut self) {
        let from = self.conductor.announce(self.now);
        let until = self.conductor.measure_until;
        for number in 0..self.clients.len() as u32 {
            let client = &self.clients[number as usize];
            let group = &self.plan.groups[client.group as usize];
            if let Some(publish) = &group.publish {
                let arrivals = Arrivals::new(group, publish, client.index, self.plan.seed, from, until);
                self.clients[number as usize].arrivals = Some(arrivals);
                self.set_alarm(number);
            }
        }
    }

    fn warn_of_missing(&mut self, audience: &mut dyn Audience) {
        let (ready, everybody) = (self.tally.ready as usize, self.clients.len());
        if ready < everybody {
            let missing = everybody - ready;
            let waited = self.plan.phases.connect_timeout;
            audience.warn(format!(
                "{missing} of {everybody} clients had not connected and subscribed when publishing began \
                 (phases.connect_timeout is {waited})"
            ));
        }
    }

    /// What happened on the links.
    fn observe(&mut self) {
        while let Some(happened) = self.wire.poll() {
            match happened {
                Happened::Crossed { frame: place, link, hop, entered, fate } => {
                    self.note_crossing(place, link, hop, entered, fate);
                    let connection = self.connections.get(self.wire.frame(place).connection);
                    match fate {
                        Fate::Dropped { .. } => connection.under_way -= 1,
                        Fate::Delivered(Delivery { duplicate_at: Some(_), .. }) => connection.under_way += 1,
                        Fate::Delivered(_) => {}
                    }
                    self.wire.settle(place, &fate);
                }
                Happened::Bare { frame: place, link, at } => {
                    let delivery =
                        Delivery { start: at, sent: at, at, corrupted_bit: None, duplicate_at: None };
                    self.note_crossing(place, link, 0, at, Fate::Delivered(delivery));
                }
                Happened::Spoilt { frame: place } => {
                    self.connections.get(self.wire.frame(place).connection).under_way -= 1;
                    self.wire.release(place);
                }
            }
        }
    }

    fn note_crossing(&mut self, place: u32, link: usize, hop: usize, entered: Instant, fate: Fate) {
        if !self.evidence.has_packets() {
            return;
        }
        let frame = self.wire.frame(place);
        let ip_bytes = crate::wire::ip_bytes(&frame.segment);
        let frame_bytes = self.wire.frame_bytes(link, ip_bytes);
        let crossing = Crossing { link, hop, frame_bytes, entered, fate };
        self.evidence.crossed(self.connections.get(frame.connection), frame, &crossing);
    }

    /// A frame is at its receiver.
    fn arrive(&mut self, place: u32) {
        let frame = self.wire.frame(place);
        let (number, side) = (frame.connection, frame.from.other());
        let connection = self.connections.get(number);
        connection.under_way -= 1;
        connection.ends[side as usize].receive(self.now, &frame.segment);
        self.wire.release(place);
        self.drain(number, side);
        self.retire(number);
    }

    /// A TCP timer may be due.
    fn ring(&mut self, place: u32, number: u32, side: Side, at: Instant) {
        let connection = self.connections.get(place);
        if connection.number != number || connection.alarms[side as usize] != Some(at) {
            return;
        }
        connection.alarms[side as usize] = None;
        connection.ends[side as usize].tick(at);
        self.drain(place, side);
        self.retire(place);
    }

    /// Carries out what an endpoint has to say, and makes sure that its timer is heard.
    pub(crate) fn drain(&mut self, place: u32, side: Side) {
        while let Some(output) = self.connections.get(place).ends[side as usize].poll() {
            match output {
                Output::Transmit(segment) => self.transmit(place, side, &segment),
                Output::Event(event) => self.react(place, side, event),
            }
        }
        let connection = self.connections.get(place);
        let Some(deadline) = connection.ends[side as usize].next_deadline() else { return };
        let alarm = &mut connection.alarms[side as usize];
        if alarm.is_none_or(|alarm| deadline < alarm) {
            *alarm = Some(deadline);
            let number = connection.number;
            self.agenda.add(deadline, Event::End { place, number, side });
        }
    }

    fn transmit(&mut self, place: u32, side: Side, segment: &Segment) {
        let connection = self.connections.get(place);
        let end = &connection.ends[side as usize];
        let offset = (segment.length > 0).then(|| end.sent_offset(segment)).flatten();
        connection.under_way += 1;
        let path = connection.paths[side as usize];
        let named = connection.name(side, segment);
        self.wire.send(self.now, path, named, (place, side), segment, offset);
        self.observe();
    }

    /// What TCP tells the application.
    fn react(&mut self, place: u32, side: Side, event: TcpEvent) {
        let client = self.connections.peek(place).client;
        let linked = side == Side::Client && self.is_linked(client, place);
        match event {
            TcpEvent::Connected if linked => self.opened(client),
            TcpEvent::Readable(offset) => {
                self.connections.get(place).streams[side.other() as usize].arrived(self.now, offset);
                match side {
                    Side::Client => self.rouse(place, offset),
                    Side::Broker => self.read_at_broker(place, offset),
                }
            }
            TcpEvent::Writable(_) if linked => {
                self.publish_due(client);
                self.flush(client);
                self.set_alarm(client);
            }
            TcpEvent::Writable(_) => {
                self.write(place, side);
                self.tell_backlog(place);
            }
            TcpEvent::Acknowledged(offset) => {
                self.connections.get(place).streams[side as usize].acknowledge(offset);
            }
            TcpEvent::PeerClosed if linked => {
                self.read_at_client(place);
                let broken = Loss::Broken("the broker closed the connection");
                self.lose(client, if self.leaving { Loss::Farewell } else { broken });
            }
            TcpEvent::Reset if linked => self.lose(client, Loss::Broken("the connection was reset")),
            TcpEvent::TimedOut if linked => self.lose(client, Loss::Broken("the connection timed out")),
            TcpEvent::PeerClosed | TcpEvent::Reset | TcpEvent::TimedOut if side == Side::Broker => {
                self.read_left_in_socket(place);
                self.request_closed(place);
            }
            _ => {}
        }
    }

    fn is_linked(&self, client: u32, place: u32) -> bool {
        match self.clients[client as usize].link {
            Link::Opening { connection, .. } | Link::Open { connection, .. } => connection == place,
            Link::Waiting(_) | Link::Gone => false,
        }
    }

    /// Data up to `offset` has come to a client, whose program needs a moment to wake up.
    fn rouse(&mut self, place: u32, offset: u64) {
        let wake_up = self.plan.sim.client_wake_up;
        let connection = self.connections.get(place);
        let asleep = connection.unread.replace(offset).is_none();
        if wake_up.is_zero() {
            self.read_at_client(place);
        } else if asleep {
            let number = connection.number;
            self.agenda.add(self.now + wake_up, Event::Read { place, number, side: Side::Client });
        }
    }

    /// A client's program reads whatever has come.
    fn read_at_client(&mut self, place: u32) {
        if let Some(offset) = self.connections.get(place).unread.take() {
            self.read(place, Side::Client, offset);
        }
    }

    /// Data up to `offset` has come to the broker, which leaves it in the socket while it has enough to serve: a
    /// client that sends faster than that finds the window closed.
    fn read_at_broker(&mut self, place: u32, offset: u64) {
        let connection = self.connections.get(place);
        let asleep = connection.left_in_socket.replace(offset).is_none();
        if !self.wire.has_more_at(self.now) {
            self.read_once_served(place);
        } else if asleep {
            // What else comes at this very instant is there before a program can have read.
            let number = connection.number;
            self.agenda.add(self.now, Event::Read { place, number, side: Side::Broker });
        }
    }

    /// The broker reads what has come, if it has not enough to serve.
    fn read_once_served(&mut self, place: u32) {
        if self.connections.get(place).unserved < UNSERVED_MAX {
            self.read_left_in_socket(place);
        }
    }

    /// The broker reads what it had left.
    pub(crate) fn read_left_in_socket(&mut self, place: u32) {
        if let Some(offset) = self.connections.get(place).left_in_socket.take() {
            self.read(place, Side::Broker, offset);
        }
    }

    /// The application reads everything up to `offset`.
    fn read(&mut self, place: u32, side: Side, offset: u64) {
        let now = self.now;
        let from = side.other();
        let connection = self.connections.get(place);
        let client = connection.client;
        let end = &mut connection.ends[side as usize];
        end.read(now, end.readable());
        // An acknowledgement that reading calls for leaves before the program can answer.
        self.drain(place, side);
        while let Some(packet) = self.connections.get(place).streams[from as usize].read(offset) {
            self.note_packet(place, from, &packet);
            match side {
                Side::Broker => self.request(place, packet),
                Side::Client if self.is_linked(client, place) => self.take_packet(client, &packet),
                // Its program has left.
                Side::Client => self.dropped_with_connection(place, from, &packet),
            }
        }
        if side == Side::Client && self.is_linked(client, place) {
            let group = self.clients[client as usize].group;
            if self.groups[group as usize].back_to_back {
                self.publish_due(client);
            }
            self.flush(client);
            self.set_alarm(client);
        }
    }

    fn note_packet(&mut self, place: u32, from: Side, packet: &Packet) {
        let topic = if packet.kind == Kind::Publish { self.topics.name(packet.topic) } else { "" };
        self.evidence.control_packet(self.connections.peek(place), from, packet, topic);
    }

    /// A PUBLISH to be given its place in a stream, and its length.
    pub(crate) fn publication(
        &self,
        message: u64,
        topic: u32,
        qos: Qos,
        id: u16,
        version: Version,
    ) -> (Packet, usize) {
        let payload_bytes = self.payload_bytes(message);
        let name = self.topics.name(topic).len();
        let packet = Packet {
            qos,
            topic,
            message,
            topic_bytes: 2 + name as u16,
            property_bytes: u8::from(version == Version::V5),
            payload_bytes,
            ..Packet::bare(Kind::Publish, id)
        };
        (packet, encode::publish_len(name, payload_bytes as usize, qos, version))
    }

    /// Hands what waits to a socket; `false` when it took nothing.
    pub(crate) fn write(&mut self, place: u32, side: Side) -> bool {
        let now = self.now;
        let connection = self.connections.get(place);
        let stream = &mut connection.streams[side as usize];
        let waiting = stream.waiting();
        if waiting == 0 {
            return false;
        }
        let end = &mut connection.ends[side as usize];
        // The broker has one thread for all of its sockets.
        let apart = side == Side::Broker && self.server.wrote_to.replace(place) != Some(place);
        let accepted = if apart { end.write_apart(now, waiting) } else { end.write(now, waiting) };
        stream.accept(accepted);
        accepted > 0
    }

    /// The client has done with a connection.
    pub(crate) fn abandon(&mut self, place: u32) {
        let now = self.now;
        let connection = self.connections.get(place);
        connection.abandoned = true;
        connection.ends[Side::Client as usize].close(now);
        self.drain(place, Side::Client);
    }

    fn retire(&mut self, place: u32) {
        if self.connections.is_over(place) {
            for (from, packet) in self.note_unread(place) {
                self.dropped_with_connection(place, from, &packet);
            }
            self.connections.retire(place);
        }
    }

    /// Writes down the packets that were sent and never read.
    fn note_unread(&mut self, place: u32) -> Vec<(Side, Packet)> {
        let mut unread = Vec::new();
        for from in [Side::Client, Side::Broker] {
            let packets = self.connections.peek(place).streams[from as usize].unread();
            unread.extend(packets.map(|packet| (from, *packet)));
        }
        unread.iter().for_each(|(from, packet)| self.note_packet(place, *from, packet));
        unread
    }

    /// Ends everything, for the recording.
    pub(crate) fn end(&mut self) {
        for place in self.connections.places() {
            self.note_unread(place);
        }
        for number in 0..self.clients.len() as u32 {
            self.clients[number as usize].session.handle(self.now, Input::Closed);
            self.forget_stream(number);
        }
    }

    fn look_up(&mut self, audience: &mut dyn Audience) -> Result<(), String> {
        if let Some(error) = self.evidence.failure() {
            return Err(error.to_string());
        }
        if let Some(interruption) = audience.interruption() {
            return Err(interruption);
        }
        if let Some(events_per_s) = audience.wants_figures(self.events) {
            let [latency_p50_ns, latency_p99_ns] = self.conductor.take_recent();
            audience.hear(&Progress::Tick {
                at_ns: self.now.as_ns(),
                connected: self.tally.connected.max(0) as u32,
                offered: self.tally.offered,
                sent: self.tally.sent,
                delivered: self.tally.delivered,
                disconnects: self.tally.disconnects,
                latency_p50_ns,
                latency_p99_ns,
                sender_lateness_p99_ns: None,
                emulator_lateness_p99_ns: None,
                events_per_s: Some(events_per_s),
            });
        }
        Ok(())
    }

    pub(crate) fn group_of(&self, number: u32) -> &Group {
        &self.plan.groups[self.clients[number as usize].group as usize]
    }

    /// Size of a message.
    pub(crate) fn payload_bytes(&self, message: u64) -> u32 {
        let owner = &self.clients[message::owner(message) as usize];
        if message::origin(message).is_some() {
            return self.groups[owner.group as usize].payload_bytes;
        }
        let will = self.plan.groups[owner.group as usize].mqtt.will.as_ref();
        will.map_or(0, |will| will.payload.len() as u32)
    }
}

fn named(phase: Phase) -> Option<(&'static str, mqttlab_plan::Phase)> {
    match phase {
        Phase::Connect => Some(("connect", mqttlab_plan::Phase::Connect)),
        Phase::WarmUp => Some(("warm_up", mqttlab_plan::Phase::WarmUp)),
        Phase::Measurement => Some(("measurement", mqttlab_plan::Phase::Measurement)),
        Phase::CoolDown => Some(("cool_down", mqttlab_plan::Phase::CoolDown)),
        Phase::Notice | Phase::Farewell | Phase::Over => None,
    }
}

/// A few milliseconds of the broker's time. Mosquitto itself reads one packet at a time.
const UNSERVED_MAX: u32 = 256;
/// Events between two looks at the clock on the wall.
const EVENTS_A_LOOK: u64 = 256;
/// The live figures do not need the latency of messages that are very old.
const REMEMBERED: usize = 256;
/// The rule that ends a run must not miss the long ones.
const REMEMBERED_FOR_STOPPING: usize = 1 << 16;
