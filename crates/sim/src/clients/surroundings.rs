//! What a simulated client may touch: the time, its connection, what is written down, and what is counted.
//!
//! A verb here never calls a client back: TCP sends while a client works, and what TCP has to tell comes to the
//! client's shell after the verb that caused it has returned.

use mqttlab_client::Books;
use mqttlab_plan::Roster;
use mqttlab_units::Instant;

use crate::clients::groups::Groups;
use crate::control::conductor::SimConductor;
use crate::control::event::SimEvent;
use crate::control::event_queue::EventQueue;
use crate::hosts::datagrams::DatagramPacket;
use crate::hosts::layers::{SimLayers, Tickets};
use crate::hosts::stream::{Stream, StreamPacket};
use crate::hosts::transport::{Caller, SimTransport};
use crate::ids::{ClientId, ConversationId, Side, TcpConnectionId};
use crate::records::Records;
use crate::records::figures::{GroupCounts, SimFigures};
use crate::topics::SimTopics;

/// What a client may touch.
pub(crate) struct SimSurroundings<'a> {
    pub(crate) agenda: &'a mut EventQueue<SimEvent>,
    pub(crate) transport: &'a mut SimTransport,
    pub(crate) evidence: &'a mut Records,
    pub(crate) conductor: &'a mut SimConductor,
    pub(crate) books: &'a mut Books,
    pub(crate) figures: &'a mut SimFigures,
    pub(crate) topics: &'a mut SimTopics,
    pub(crate) groups: &'a Groups,
    pub(crate) roster: &'a Roster,
    /// For packets whose length only their encoding tells.
    pub(crate) scratch: &'a mut Vec<u8>,
}

impl SimSurroundings<'_> {
    /// The client is to be woken then.
    pub(crate) fn wake_at(&mut self, client: ClientId, at: Instant) {
        self.agenda.add(at, SimEvent::Client(client));
    }

    /// What the client's group has done, for the figures.
    pub(crate) fn group_counts(&mut self, client: ClientId) -> &mut GroupCounts {
        self.figures.group(self.groups.number_of(client))
    }

    /// Begins to connect to the client's server, with what it can resume a session of TLS with.
    ///
    /// # Errors
    /// Why it cannot.
    pub(crate) fn connect(
        &mut self,
        client: ClientId,
        tickets: Tickets,
    ) -> Result<TcpConnectionId, &'static str> {
        let (group, facts) = (self.groups.group_of(client), self.groups.facts_of(client));
        let path = group
            .tcp()
            .and_then(|tcp| tcp.websocket.as_ref())
            .map_or("/", |websocket| websocket.path.as_str());
        let resource = (&*facts.address, path);
        let caller = Caller {
            client: Some(client),
            host: self.groups.host_of(client),
            nodelay: group.nodelay(),
            port: Some(facts.port),
            layered: SimLayers::new(group.layers(), tickets, resource, self.agenda.now()),
        };
        self.transport.open(self.agenda, self.evidence, caller, self.groups.server_of(client))
    }

    /// Opens a socket for datagrams to the client's server.
    ///
    /// # Errors
    /// Why it cannot.
    pub(crate) fn open_conversation(&mut self, client: ClientId) -> Result<ConversationId, &'static str> {
        let end = (client, self.groups.host_of(client));
        self.transport.open_conversation(end, self.groups.server_of(client))
    }

    /// Sends a packet as a datagram.
    pub(crate) fn send_datagram(&mut self, conversation: ConversationId, packet: DatagramPacket) {
        let from = (conversation, Side::Client);
        self.transport.send_datagram(self.agenda.now(), self.evidence, from, packet);
    }

    /// Puts a packet into the client's stream, and says where it ends there.
    pub(crate) fn append(&mut self, connection: TcpConnectionId, packet: StreamPacket, length: usize) -> u64 {
        self.transport.connection_mut(connection).append(Side::Client, packet, length)
    }

    /// Hands what waits to the socket; `false` when it took nothing. To be followed by [`SimSurroundings::transmit`].
    pub(crate) fn write(&mut self, connection: TcpConnectionId) -> bool {
        self.transport.connection_mut(connection).write(self.agenda.now(), Side::Client, false)
    }

    /// Lets TCP send what was written.
    pub(crate) fn transmit(&mut self, connection: TcpConnectionId) {
        self.transport.transmit(self.agenda, self.evidence, connection, Side::Client);
    }

    /// What the client puts into its connection.
    pub(crate) fn stream(&self, connection: TcpConnectionId) -> &Stream {
        &self.transport.connection(connection).streams[Side::Client as usize]
    }

    /// The client has done with a connection.
    pub(crate) fn close(&mut self, connection: TcpConnectionId) {
        self.transport.close(self.agenda, self.evidence, connection, Side::Client);
    }
}
