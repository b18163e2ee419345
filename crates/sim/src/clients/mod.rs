//! The clients, and their programs' sockets: when a program wakes up and reads, and which client TCP speaks to.

pub(crate) mod client;
pub(crate) mod groups;
pub(crate) mod opening;
pub(crate) mod surroundings;

use std::rc::Rc;
use std::sync::Arc;

use mqttlab_client::{Loss, Surroundings as _, mqtt};
use mqttlab_mqtt::Kind;
use mqttlab_plan::{Arrivals, ClientsChange, ClientsEvent, Event, PublishingChanges, PublishingTime};
use mqttlab_tcp::TcpEvent;
use mqttlab_units::{Duration, Instant, OptionalInstant, Seed};

use crate::clients::client::{Client, ClientSocket};
use crate::clients::groups::Groups;
use crate::clients::surroundings::SimSurroundings;
use crate::control::event::SimEvent;
use crate::hosts::datagrams::SimDatagram;
use crate::hosts::stream::{StreamContent, StreamPacket};
use crate::ids::{ClientId, IdTable, Side, TcpConnectionId};

/// All clients of a simulation.
pub(crate) struct SimClients {
    table: IdTable<ClientId, Client>,
    /// From the arrival of data to the moment that a program reads it.
    wake_up: Duration,
    seed: Seed,
}

impl SimClients {
    pub(crate) fn new(groups: &Groups, wake_up: Duration, seed: Seed) -> SimClients {
        let client = |id| {
            let group = groups.facts_of(id);
            let over_datagrams = groups.group_of(id).transport == mqttlab_plan::Transport::Udp;
            let socket = ClientSocket::new(over_datagrams, mqtt::topic_aliases(groups.group_of(id)));
            let session = group.sessions.session(groups.who(id), seed);
            Client::new(groups.who(id), Arc::clone(&group.facts), session, socket, seed, Instant::ZERO)
        };
        SimClients { table: groups.clients().map(client).collect(), wake_up, seed }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ClientId, &Client)> {
        self.table.iter()
    }

    /// Sees to it that everybody is woken for the first time.
    pub(crate) fn start(&mut self, around: &mut SimSurroundings<'_>) {
        self.each(|client| set_alarm(client, around));
    }

    /// It is known when to publish.
    pub(crate) fn begin_publishing(
        &mut self,
        around: &mut SimSurroundings<'_>,
        time: PublishingTime,
        events: &[Event],
    ) {
        let changes = PublishingChanges::of(events);
        for id in self.table.ids() {
            let group = around.groups.group_of(id);
            if !group.publications.is_empty() {
                let who = (around.groups.index_of(id), id.0);
                let arrivals = Arrivals::of(group, who, self.seed, time, &changes);
                self.table[id].begin(around, arrivals);
            }
            self.table[id].begin_churn(time, self.seed);
            if !group.publications.is_empty() || group.churn.is_some() {
                set_alarm(&mut self.table[id], around);
            }
        }
    }

    /// Publishing is over.
    pub(crate) fn stop_publishing(&mut self, around: &mut SimSurroundings<'_>) {
        self.each(|client| client.stop_publishing(around));
    }

    /// Everybody disconnects.
    pub(crate) fn disconnect_all(&mut self, around: &mut SimSurroundings<'_>) {
        self.each(|client| {
            client.leave(around);
            // Nobody closes what is no connection.
            if client.connection().is_datagrams() {
                client.lose(around, &Loss::Farewell);
            }
            set_alarm(client, around);
        });
    }

    /// Something happens to some of them.
    pub(crate) fn change(&mut self, around: &mut SimSurroundings<'_>, event: &ClientsEvent) {
        for id in event.clients.iter().map(|number| ClientId(*number)) {
            let client = &mut self.table[id];
            match event.change {
                ClientsChange::Disconnect => {
                    client.disconnect(around);
                    if client.connection().is_datagrams() {
                        client.lose(around, &Loss::Farewell);
                    }
                }
                ClientsChange::Vanish => client.vanish(around),
                ClientsChange::Return => client.come_back(around),
                ClientsChange::StopReading => client.connection_mut().is_reading = false,
                ClientsChange::ContinueReading => self.read_on(around, id),
                // The schedule has it.
                ClientsChange::Publish { .. } | ClientsChange::Burst { .. } => {}
                ClientsChange::Subscribe { .. } | ClientsChange::Unsubscribe { .. } => {
                    client.change_subscriptions(around);
                }
            }
            set_alarm(&mut self.table[id], around);
        }
    }

    /// A client's program reads what has come since it stopped.
    fn read_on(&mut self, around: &mut SimSurroundings<'_>, id: ClientId) {
        let socket = self.table[id].connection_mut();
        socket.is_reading = true;
        let has_ended = std::mem::take(&mut socket.has_unread_end);
        if let Some(connection) = socket.id {
            self.read(around, connection);
            if has_ended && self.table[id].connection().id == Some(connection) {
                self.on_tcp(around, connection, TcpEvent::PeerClosed);
            }
        }
        self.read_datagrams(around, id);
    }

    /// The simulation is over.
    pub(crate) fn end(&mut self, around: &mut SimSurroundings<'_>) {
        self.each(|client| client.end(around));
    }

    /// A client's time may have come.
    pub(crate) fn on_timer(&mut self, around: &mut SimSurroundings<'_>, id: ClientId) {
        let client = &mut self.table[id];
        // It may have been put off since.
        if client.connection().alarm == around.now().into() {
            client.connection_mut().alarm = OptionalInstant::NONE;
            client.wake(around);
            // Datagrams need no opening.
            if client.is_opening() && client.connection().is_datagrams() {
                client.opened(around);
                client.flush(around);
            }
            set_alarm(client, around);
        }
    }

    /// A datagram has come to a client's host, whose program needs a moment to wake up. Where its socket is closed, nobody
    /// hears it.
    pub(crate) fn on_datagram(&mut self, around: &mut SimSurroundings<'_>, datagram: Rc<SimDatagram>) {
        let id = around.transport.conversation(datagram.conversation).client;
        let Some(socket) = &mut self.table[id].connection_mut().datagrams else { return };
        if socket.conversation != Some(datagram.conversation) {
            return;
        }
        let asleep = socket.come.is_empty();
        socket.come.push_back(datagram);
        if self.wake_up.is_zero() {
            self.read_datagrams(around, id);
        } else if asleep {
            around.agenda.add(around.now() + self.wake_up, SimEvent::ReadDatagrams(id));
        }
    }

    /// A client's program reads whatever has come.
    pub(crate) fn read_datagrams(&mut self, around: &mut SimSurroundings<'_>, id: ClientId) {
        let client = &mut self.table[id];
        if !client.connection().is_reading {
            return;
        }
        let next = |client: &mut Client| client.connection_mut().datagrams.as_mut()?.come.pop_front();
        while let Some(datagram) = next(client) {
            if !client.is_listening(around) {
                continue;
            }
            if let Err(loss) = client::take_datagram(client, around, &datagram) {
                client.lose(around, &loss);
            }
        }
        if client.facts().is_back_to_back() {
            client.publish_due(around);
        }
        client.flush(around);
        set_alarm(client, around);
    }

    /// TCP has something to tell the program at the client's end.
    pub(crate) fn on_tcp(&mut self, around: &mut SimSurroundings<'_>, id: TcpConnectionId, event: TcpEvent) {
        let client = self.client_of(around, id);
        if client.connection().id != Some(id) {
            return self.on_tcp_of_old(around, id, event);
        }
        match event {
            // The client is told when what lies on it is open, too.
            TcpEvent::Connected if around.open_layers(client.who().into(), id) => {}
            TcpEvent::Connected => {
                client.opened(around);
                client.flush(around);
            }
            TcpEvent::Readable(offset) => return self.schedule_read(around, id, offset),
            TcpEvent::Writable(_) => {
                client.publish_due(around);
                client.flush(around);
            }
            TcpEvent::PeerClosed if !client.connection().is_reading => {
                client.connection_mut().has_unread_end = true;
            }
            TcpEvent::PeerClosed => {
                self.read(around, id);
                let loss = ended(around, "the broker closed the connection");
                self.client_of(around, id).lose(around, &loss);
            }
            TcpEvent::Refused => client.lose(around, &Loss::broken("cannot connect: connection refused")),
            TcpEvent::Reset => {
                let loss = ended(around, "the connection was reset");
                client.lose(around, &loss);
            }
            TcpEvent::TimedOut => client.lose(around, &Loss::broken("the connection timed out")),
            _ => return,
        }
        set_alarm(self.client_of(around, id), around);
    }

    /// The client has done with the connection; what it has written still goes out.
    fn on_tcp_of_old(&mut self, around: &mut SimSurroundings<'_>, id: TcpConnectionId, event: TcpEvent) {
        match event {
            TcpEvent::Readable(offset) => self.schedule_read(around, id, offset),
            TcpEvent::Writable(_) => {
                around.write(id);
            }
            _ => {}
        }
    }

    /// Data up to `offset` has come to a client, whose program needs a moment to wake up.
    fn schedule_read(&mut self, around: &mut SimSurroundings<'_>, id: TcpConnectionId, offset: u64) {
        let asleep = around.transport.connection_mut(id).note_readable(Side::Client, offset);
        if self.wake_up.is_zero() {
            self.read(around, id);
        } else if asleep {
            let at = around.now() + self.wake_up;
            around.agenda.add(at, SimEvent::Read { connection: id, side: Side::Client });
        }
    }

    /// A client's program reads whatever has come.
    pub(crate) fn read(&mut self, around: &mut SimSurroundings<'_>, id: TcpConnectionId) {
        let client = self.client_of(around, id);
        if client.connection().id == Some(id) && !client.connection().is_reading {
            return;
        }
        let end = (id, Side::Client);
        let Some(offset) = around.transport.read(around.agenda, around.evidence, end) else { return };
        let client = self.client_of(around, id);
        while let Some(packet) = around.transport.take_packet(around.evidence, around.topics, end, offset) {
            if client.connection().id == Some(id) {
                take_packet(client, around, id, &packet);
            } else {
                // Its program has left.
                let (now, client) = (around.now(), client.who().into());
                around.evidence.dropped_with_connection(now, Some(client), Side::Server, &packet);
            }
        }
        if client.connection().id == Some(id) {
            if client.facts().is_back_to_back() {
                client.publish_due(around);
            }
            client.flush(around);
            set_alarm(client, around);
        }
    }

    fn client_of(&mut self, around: &SimSurroundings<'_>, id: TcpConnectionId) -> &mut Client {
        let client = around.transport.connection(id).client;
        &mut self.table[client.expect("a client has opened it")]
    }

    fn each(&mut self, mut act: impl FnMut(&mut Client)) {
        for id in self.table.ids() {
            act(&mut self.table[id]);
        }
    }
}

/// A client's program reads a packet.
fn take_packet(
    client: &mut Client,
    around: &mut SimSurroundings<'_>,
    id: TcpConnectionId,
    packet: &StreamPacket,
) {
    if !client.is_listening(around) {
        return;
    }
    if let StreamContent::Step(step) = packet.carries
        && around.proceed(client.who().into(), id, Some(step))
    {
        client.opened(around);
    }
    if !packet.is_packet() {
        return;
    }
    // Before the session hears of it: it repeats messages at once.
    if packet.kind == Kind::Connack
        && let Some(aliases) = &mut client.connection_mut().aliases
    {
        aliases.begin(packet.topic_alias_maximum);
    }
    let outcome = match client::input(around, client.who().into(), packet) {
        _ if packet.kind.is_message() => client.message(around, packet),
        Some(input) => client.packet(around, input),
        None => Ok(()),
    };
    if let Err(loss) = outcome {
        client.lose(around, &loss);
        set_alarm(client, around);
    }
}

/// Makes sure that a client is woken in time.
fn set_alarm(client: &mut Client, around: &mut SimSurroundings<'_>) {
    let Some(next) = client.next_deadline(around).map(|at| at.max(around.now())) else { return };
    let alarm = &mut client.connection_mut().alarm;
    if alarm.get().is_none_or(|alarm| next < alarm) {
        *alarm = next.into();
        around.wake_at(client.who().into(), next);
    }
}

/// What the end of a connection by its broker is to a client: at the end of the run the answer to its DISCONNECT.
fn ended(around: &SimSurroundings<'_>, how: &'static str) -> Loss {
    if around.is_leaving() { Loss::Farewell } else { Loss::broken(how) }
}
