//! The clients, and their programs' sockets: when a program wakes up and reads, and which client TCP speaks to.

use mqttlab_plan::Arrivals;
use mqttlab_tcp::Event as TcpEvent;
use mqttlab_units::{Duration, Instant, Seed};

use crate::client::{Client, Loss};
use crate::event::Event;
use crate::groups::Groups;
use crate::ids::{ClientId, ConnectionId, Side, Table};
use crate::surroundings::Surroundings;

/// All clients of a simulation.
pub(crate) struct Clients {
    table: Table<ClientId, Client>,
    /// From the arrival of data to the moment that a program reads it.
    wake_up: Duration,
    seed: Seed,
}

impl Clients {
    pub(crate) fn new(groups: &Groups, wake_up: Duration, seed: Seed) -> Clients {
        let client = |id| Client::new(id, groups, seed);
        Clients { table: groups.clients().map(client).collect(), wake_up, seed }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ClientId, &Client)> {
        self.table.iter()
    }

    /// Sees to it that everybody is woken for the first time.
    pub(crate) fn start(&mut self, around: &mut Surroundings<'_>) {
        self.each(|client| client.set_alarm(around));
    }

    /// It is known when to publish.
    pub(crate) fn begin_publishing(&mut self, around: &mut Surroundings<'_>, from: Instant, until: Instant) {
        for id in self.table.ids() {
            let group = around.groups.group_of(id);
            if let Some(publish) = &group.publish {
                let index = around.groups.index_of(id);
                self.table[id].begin(around, Arrivals::new(group, publish, index, self.seed, from, until));
            }
        }
    }

    /// Publishing is over.
    pub(crate) fn stop_publishing(&mut self, around: &mut Surroundings<'_>) {
        self.each(|client| client.stop_publishing(around));
    }

    /// Everybody disconnects.
    pub(crate) fn leave(&mut self, around: &mut Surroundings<'_>) {
        self.each(|client| client.leave(around));
    }

    /// The simulation is over.
    pub(crate) fn end(&mut self, around: &mut Surroundings<'_>) {
        self.each(|client| client.end(around));
    }

    /// A client's time may have come.
    pub(crate) fn on_timer(&mut self, around: &mut Surroundings<'_>, id: ClientId) {
        self.table[id].on_timer(around);
    }

    /// TCP has something to tell the program at the client's end.
    pub(crate) fn on_tcp(&mut self, around: &mut Surroundings<'_>, id: ConnectionId, event: TcpEvent) {
        let client = &mut self.table[around.transport.connection(id).client];
        let linked = client.is_linked(id);
        match event {
            TcpEvent::Connected if linked => client.opened(around),
            TcpEvent::Readable(offset) => self.schedule_read(around, id, offset),
            TcpEvent::Writable(_) if linked => client.writable(around),
            // Its program has done with it; what it has written still goes out.
            TcpEvent::Writable(_) => {
                around.write(id);
            }
            TcpEvent::PeerClosed if linked => {
                self.read(around, id);
                let broken = Loss::Broken("the broker closed the connection");
                let loss = if around.is_leaving() { Loss::Graceful } else { broken };
                self.client_of(around, id).lose(around, loss);
            }
            TcpEvent::Reset if linked => client.lose(around, Loss::Broken("the connection was reset")),
            TcpEvent::TimedOut if linked => client.lose(around, Loss::Broken("the connection timed out")),
            _ => {}
        }
    }

    /// Data up to `offset` has come to a client, whose program needs a moment to wake up.
    fn schedule_read(&mut self, around: &mut Surroundings<'_>, id: ConnectionId, offset: u64) {
        let asleep = around.transport.connection_mut(id).unread.replace(offset).is_none();
        if self.wake_up.is_zero() {
            self.read(around, id);
        } else if asleep {
            let at = around.now() + self.wake_up;
            around.agenda.add(at, Event::Read { connection: id, side: Side::Client });
        }
    }

    /// A client's program reads whatever has come.
    pub(crate) fn read(&mut self, around: &mut Surroundings<'_>, id: ConnectionId) {
        let Some(offset) = around.transport.connection_mut(id).unread.take() else { return };
        around.transport.read(around.agenda, around.evidence, id, Side::Client);
        let client = self.client_of(around, id);
        while let Some(packet) =
            around.transport.take_packet(around.evidence, around.topics, (id, Side::Client), offset)
        {
            if client.is_linked(id) {
                client.take_packet(around, &packet);
            } else {
                // Its program has left.
                let now = around.now();
                around.evidence.dropped_with_connection(now, client.id, Side::Server, &packet);
            }
        }
        if client.is_linked(id) {
            client.after_reading(around);
        }
    }

    fn client_of(&mut self, around: &Surroundings<'_>, id: ConnectionId) -> &mut Client {
        &mut self.table[around.transport.connection(id).client]
    }

    fn each(&mut self, mut act: impl FnMut(&mut Client)) {
        for id in self.table.ids() {
            act(&mut self.table[id]);
        }
    }
}
