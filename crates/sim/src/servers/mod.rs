//! Servers: what runs inside hosts beside the clients, a model for each role.
//!
//! ```text
//!   simulation ──► SimServers ──► ServerModel: BrokerModel · GatewayModel · ProxyModel · ZeroMqModel
//!                                 └── ServerSurroundings: agenda, transport, evidence, topics, groups
//! ```
//!
//! A model is told what happens at its ends of connections and when its time has come, and acts through its surroundings;
//! nothing that it does calls it back. It is at the server's side of connections that it has accepted, and at the client's
//! side of those that it has opened itself ([`ServerSurroundings::connect`]).
//!
//! A role is added as a file here that implements [`ServerModel`], and a line in [`model`].

mod broker;
mod broker_answers;
mod broker_limits;
mod broker_topics;
mod gateway;
mod life;
mod mosquitto_loop;
mod proxy;
mod service;
mod zeromq;

use std::rc::Rc;

use mqttlab_mqtt::Version;
use mqttlab_mqtt::broker::SessionInfo;
use mqttlab_plan::{Host, HostLimits, Role, ServerChange, WhenItDies};
use mqttlab_recording::EventKind;
use mqttlab_tcp::TcpEvent;
use mqttlab_units::{Duration, Instant, Seed};

use crate::clients::groups::Groups;
use crate::control::event::SimEvent;
use crate::control::event_queue::EventQueue;
use crate::hosts::datagrams::{DatagramPacket, SimDatagram};
use crate::hosts::transport::{Caller, SimTransport};
use crate::ids::{ClientId, ConversationId, Id, IdTable, ServerId, Side, TcpConnectionId};
use crate::records::Records;
use crate::topics::SimTopics;
use broker::BrokerModel;
use gateway::GatewayModel;
use life::SimServer;
use proxy::ProxyModel;
use zeromq::ZeroMqModel;

/// One end of a connection.
pub(crate) type End = (TcpConnectionId, Side);

/// What a server does, by its role.
pub(crate) trait ServerModel {
    /// The simulation begins.
    fn start(&mut self, _: &mut ServerSurroundings<'_>) {}

    /// A datagram has come. Who listens for none does not hear it.
    fn on_datagram(&mut self, _: &mut ServerSurroundings<'_>, _: Rc<SimDatagram>) {}

    /// TCP has something to tell the program at this end.
    fn on_tcp(&mut self, around: &mut ServerSurroundings<'_>, end: End, event: TcpEvent);

    /// The program at this end is awake, and may read.
    fn read(&mut self, around: &mut ServerSurroundings<'_>, end: End);

    /// Its time may have come: it had itself put on the agenda for now, and may have been put off since.
    fn on_timer(&mut self, around: &mut ServerSurroundings<'_>);

    /// It goes on after it stood still for so long; at these ends something waits to be read, which it is told of next.
    fn resume(&mut self, around: &mut ServerSurroundings<'_>, stood: Duration, readable: &[End]);

    /// Whether it works on a packet of this connection.
    fn is_serving(&self, _: TcpConnectionId) -> bool {
        false
    }

    /// It was asked to end: does what it does before.
    fn say_farewell(&mut self, _: &mut ServerSurroundings<'_>) {}

    /// Its program is gone, in order or killed. Its disk stays, if there is `persistence`; its connections are closed next.
    fn end(&mut self, _: &mut ServerSurroundings<'_>, _in_order: bool, _persistence: bool) {}

    /// Its program starts again, with its disk or an empty one. `false` where it keeps nothing, and a new model takes its place.
    fn start_again(&mut self, _: &mut ServerSurroundings<'_>, _persistence: bool) -> bool {
        false
    }

    /// Messages that full queues and sockets made it drop.
    fn dropped(&self) -> u64;

    /// Whether it has come to need more memory than its host has since it was last asked.
    fn exceeds_memory(&mut self) -> bool {
        false
    }

    /// What it is like now.
    fn snapshot(&self) -> ServerSnapshot<'_>;
}

/// What a server is like at an instant.
#[derive(Default)]
pub(crate) struct ServerSnapshot<'a> {
    /// Packets read and not served.
    pub(crate) inbox: usize,
    /// Packets served and not written.
    pub(crate) outbox: usize,
    /// When the packet being served is done.
    pub(crate) busy_until: Option<Instant>,
    /// A broker's sessions.
    pub(crate) sessions: Vec<SessionInfo<'a>>,
}

/// What a server may touch.
pub(crate) struct ServerSurroundings<'a> {
    pub(crate) agenda: &'a mut EventQueue<SimEvent>,
    pub(crate) transport: &'a mut SimTransport,
    pub(crate) evidence: &'a mut Records,
    pub(crate) topics: &'a mut SimTopics,
    pub(crate) groups: &'a Groups,
}

impl ServerSurroundings<'_> {
    /// The time of the simulation.
    pub(crate) fn now(&self) -> Instant {
        self.agenda.now()
    }

    /// The client whose packets a connection carries; `None` where it carries those of many.
    pub(crate) fn client_at(&self, id: TcpConnectionId) -> Option<ClientId> {
        self.transport.connection(id).client
    }

    /// The protocol version that is spoken on a connection.
    pub(crate) fn version_at(&self, id: TcpConnectionId) -> Version {
        // Gateways speak for many, and all speak this one.
        self.client_at(id).map_or(Version::V311, |client| self.groups.facts_of(client).version)
    }

    /// A server begins to connect to another one, to carry a client's packets, or those of many; `None` where it
    /// cannot. What TCP has to tell it of this connection comes to its model, at [`Side::Client`].
    pub(crate) fn connect(
        &mut self,
        from: ServerId,
        client: Option<ClientId>,
        to: ServerId,
    ) -> Option<TcpConnectionId> {
        let listener = self.transport.hosts().listener(from);
        let (host, nodelay) = (listener.host, listener.nodelay);
        let end = Caller { client, host, nodelay, port: None, layered: None };
        let id = self.transport.open(self.agenda, self.evidence, end, to).ok()?;
        self.transport.connection_mut(id).opened_by = Some(from);
        Some(id)
    }

    /// A server sends a packet to a client as a datagram.
    pub(crate) fn answer(&mut self, conversation: ConversationId, packet: DatagramPacket) {
        let from = (conversation, Side::Server);
        self.transport.send_datagram(self.agenda.now(), self.evidence, from, packet);
    }

    /// Data up to `offset` has come to this end. Says whether the program reads it now: what else comes at this very instant
    /// is there before a program can have read. Then it reads in the order of coming, as of Linux's list of ready sockets
    /// (`epoll_wait`).
    pub(crate) fn reads_now(&mut self, (id, side): End, offset: u64) -> bool {
        let asleep = self.transport.connection_mut(id).note_readable(side, offset);
        let now = self.transport.comes_alone(self.now());
        if !now && asleep {
            self.agenda.add(self.now(), SimEvent::Read { connection: id, side });
        }
        now
    }

    /// The program at this end reads its socket: up to where packets may be taken, if anything has come.
    pub(crate) fn read_socket(&mut self, end: End) -> Option<u64> {
        self.transport.read(self.agenda, self.evidence, end)
    }

    /// Hands what waits at this end to the socket; before the connection stands TCP keeps it. `wrote_to` is the end that the
    /// program has written to last: one thread writes to all of its sockets.
    pub(crate) fn write(&mut self, end: End, wrote_to: &mut Option<End>) {
        let apart = wrote_to.replace(end) != Some(end);
        let (id, side) = end;
        if self.transport.connection_mut(id).write(self.agenda.now(), side, apart) {
            self.transport.transmit(self.agenda, self.evidence, id, side);
        }
    }

    /// The program at this end wants no more of its connection.
    pub(crate) fn close(&mut self, (id, side): End) {
        self.transport.close(self.agenda, self.evidence, id, side);
    }
}

/// All servers of a simulation.
pub(crate) struct SimServers {
    table: IdTable<ServerId, SimServer>,
    plans: Vec<mqttlab_plan::Server>,
    seed: Seed,
    /// What models dropped in whose place others are.
    dropped_before: u64,
    /// The limits of each one's host.
    limits: Vec<Option<HostLimits>>,
    /// One that has come to need more memory than its host has.
    exhausted: Option<ServerId>,
}

/// A server that has ended by itself.
pub(crate) struct ServerDeath {
    pub(crate) name: String,
    pub(crate) status: String,
    /// Whether the run ends with it.
    pub(crate) ends_run: bool,
}

/// A server of the user's own, which no simulator knows.
const PROGRAM: &str = "program";

impl SimServers {
    /// What is to be said of each server that is a program in a live run: another one is simulated in its place.
    pub(crate) fn replaced_programs(&self) -> Vec<String> {
        let programs = self.plans.iter().filter(|server| server.kind == PROGRAM);
        let said = programs.map(|server| {
            let model = match server.role {
                Role::Broker(_) => "a model of Mosquitto",
                Role::Gateway(_) => "a model of mqttlab's own gateway",
                Role::Proxy(_) => "a model of a proxy that passes everything on",
                Role::ZeroMq(_) => "a model of mqttlab's own proxy of ZeroMQ",
            };
            format!(
                "`{}` is a program: {model} is in its place, and how the program differs from that is not known",
                server.name
            )
        });
        said.collect()
    }

    /// # Errors
    /// A sentence: there is no model of one of them.
    pub(crate) fn new(
        servers: &[mqttlab_plan::Server],
        hosts: &[Host],
        seed: Seed,
    ) -> Result<SimServers, String> {
        let limits: Vec<_> = servers.iter().map(|server| hosts[server.host].limits).collect();
        let slowed = |(server, limits): (&mqttlab_plan::Server, &Option<HostLimits>)| {
            let share = limits.and_then(|limits| limits.processor);
            share.map_or_else(|| server.clone(), |share| server.slowed(share))
        };
        let plans: Vec<_> = servers.iter().zip(&limits).map(slowed).collect();
        let server = |(index, plan)| {
            let id = ServerId::from_index(index);
            Ok(SimServer::new(id, model(id, plan, limits[index], seed)?))
        };
        let table = plans.iter().enumerate().map(server).collect::<Result<_, String>>()?;
        Ok(SimServers { table, plans, seed, dropped_before: 0, limits, exhausted: None })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ServerId, &dyn ServerModel)> {
        self.table.iter().map(|(id, server)| (id, &*server.model))
    }

    /// Messages that full queues and sockets made them drop.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped_before + self.iter().map(|(_, model)| model.dropped()).sum::<u64>()
    }

    /// The simulation begins.
    pub(crate) fn start(&mut self, around: &mut ServerSurroundings<'_>) {
        for id in self.table.ids() {
            self.table[id].model.start(around);
        }
    }

    /// Something happens to the server of this name.
    pub(crate) fn change(&mut self, around: &mut ServerSurroundings<'_>, name: &str, change: ServerChange) {
        let Some(index) = self.plans.iter().position(|plan| plan.name == name) else { return };
        let id = ServerId::from_index(index);
        let takes_place = self.table[id].change(around, change);
        self.look_at_memory(id);
        if !takes_place {
            return;
        }
        let fresh =
            model(id, &self.plans[index], self.limits[index], self.seed).expect("there was a model of it");
        let before = std::mem::replace(&mut self.table[id].model, fresh);
        self.dropped_before += before.dropped();
        self.table[id].model.start(around);
    }

    /// A datagram of a client has come to its server's host.
    pub(crate) fn on_datagram(&mut self, around: &mut ServerSurroundings<'_>, datagram: Rc<SimDatagram>) {
        let server = around.transport.conversation(datagram.conversation).server;
        self.table[server].on_datagram(around, datagram);
        self.look_at_memory(server);
    }

    /// A server's time may have come.
    pub(crate) fn on_timer(&mut self, around: &mut ServerSurroundings<'_>, id: ServerId) {
        self.table[id].on_timer(around);
        self.look_at_memory(id);
    }

    /// TCP has something to tell the server at this end.
    pub(crate) fn on_tcp(&mut self, around: &mut ServerSurroundings<'_>, end: End, event: TcpEvent) {
        let id = at(around, end);
        self.table[id].on_tcp(around, end, event);
        self.look_at_memory(id);
    }

    /// The server at this end is awake.
    pub(crate) fn read(&mut self, around: &mut ServerSurroundings<'_>, end: End) {
        let id = at(around, end);
        self.table[id].read(around, end);
        self.look_at_memory(id);
    }

    /// Whether [`SimServers::kill_exhausted`] has something to do.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.exhausted.is_some()
    }

    /// Kills the server that has come to need more memory than its host has, as the kernel does.
    pub(crate) fn kill_exhausted(&mut self, around: &mut ServerSurroundings<'_>) -> Option<ServerDeath> {
        let id = self.exhausted.take()?;
        let plan = &self.plans[id.index()];
        let memory = self.limits[id.index()].and_then(|limits| limits.memory_bytes).unwrap_or_default();
        let status = mqttlab_plan::out_of_memory(memory);
        self.table[id].die(around);
        let detail = format!("{}: {status}", plan.name);
        around.evidence.event(around.now(), EventKind::ServerExit, None, None, &detail);
        Some(ServerDeath {
            name: plan.name.clone(),
            status,
            ends_run: plan.when_it_dies == WhenItDies::EndRun,
        })
    }

    fn look_at_memory(&mut self, id: ServerId) {
        if self.table[id].exceeds_memory() {
            self.exhausted = Some(id);
        }
    }
}

/// The server at this end of a connection.
fn at(around: &ServerSurroundings<'_>, (id, side): End) -> ServerId {
    around.transport.connection(id).server_at(side).expect("only a server's ends come here")
}

/// The model of a server.
fn model(
    id: ServerId,
    plan: &mqttlab_plan::Server,
    limits: Option<HostLimits>,
    seed: Seed,
) -> Result<Box<dyn ServerModel>, String> {
    match &plan.role {
        Role::Broker(role) => Ok(Box::new(BrokerModel::new(id, &plan.name, role, limits, seed))),
        Role::Proxy(role) => Ok(Box::new(ProxyModel::new(id, &plan.name, role, seed)?)),
        Role::ZeroMq(role) => Ok(Box::new(ZeroMqModel::new(id, &plan.name, role, seed))),
        Role::Gateway(role) => Ok(Box::new(GatewayModel::new(id, &plan.name, role, seed))),
    }
}
