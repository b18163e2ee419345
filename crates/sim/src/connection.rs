//! A TCP connection between a client and the broker: two endpoints, two streams.

use std::sync::Arc;

use mqttlab_net::{Named, TcpFacts, TcpNames};
use mqttlab_tcp::{Endpoint, Flags, Profile, Role, Segment, Seq, State};
use mqttlab_units::{Instant, Seed};

use crate::stream::Stream;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client = 0,
    Broker = 1,
}

impl Side {
    pub(crate) const fn other(self) -> Side {
        match self {
            Side::Client => Side::Broker,
            Side::Broker => Side::Client,
        }
    }
}

/// A connection.
pub(crate) struct Connection {
    /// Numbered from 0 in the order of opening, never again.
    pub(crate) number: u32,
    pub(crate) client: u32,
    /// The client's port.
    pub(crate) port: u16,
    pub(crate) broker_port: u16,
    /// Endpoints, by [`Side`].
    pub(crate) ends: [Endpoint; 2],
    /// For when each end's timer is on the agenda.
    pub(crate) alarms: [Option<Instant>; 2],
    /// What each end sends, by [`Side`].
    pub(crate) streams: [Stream; 2],
    /// Hosts, by [`Side`].
    pub(crate) hosts: [u16; 2],
    /// Paths from each end, by [`Side`].
    pub(crate) paths: [usize; 2],
    /// What its frames are called.
    names: TcpNames,
    /// Up to where the client may read, once its program is awake; `None` while nothing has come.
    pub(crate) unread: Option<u64>,
    /// Up to where the broker may read, while it has enough of this connection to serve.
    pub(crate) left_in_socket: Option<u64>,
    /// Packets that the broker has read and not served.
    pub(crate) unserved: u32,
    /// Frames on the network.
    pub(crate) under_way: u32,
    /// Whether the client has done with it.
    pub(crate) abandoned: bool,
    /// Whether its place has been given back.
    retired: bool,
}

impl Connection {
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
pub(crate) struct Opening {
    pub(crate) client: u32,
    pub(crate) profiles: [Arc<Profile>; 2],
    pub(crate) broker_port: u16,
    pub(crate) nodelay: [bool; 2],
    pub(crate) hosts: [u16; 2],
    pub(crate) paths: [usize; 2],
}

/// All connections. Places are used again once nothing can arrive for them.
pub(crate) struct Connections {
    places: Vec<Connection>,
    free: Vec<u32>,
    opened: u32,
    /// How many each host has opened.
    opened_by: Vec<u32>,
    seed: Seed,
}

impl Connections {
    /// With room for `expected` at once, between so many hosts.
    pub(crate) fn new(seed: Seed, expected: usize, hosts: usize) -> Connections {
        let seed = seed.derive("sequence numbers");
        let (places, free) = (Vec::with_capacity(expected), Vec::new());
        Connections { places, free, opened: 0, opened_by: vec![0; hosts], seed }
    }

    /// Makes a connection that nobody has opened yet.
    pub(crate) fn add(&mut self, opening: Opening) -> u32 {
        let number = self.opened;
        self.opened += 1;
        let host = opening.hosts[Side::Client as usize];
        let ordinal = &mut self.opened_by[usize::from(host)];
        let names = TcpNames::new(host.into(), *ordinal);
        *ordinal += 1;
        let mut dice = self.seed.index(u64::from(number)).dice();
        let [client, broker] = opening.profiles;
        let mut end = |profile, role, nodelay| {
            let mut end = Endpoint::with_initial_sequence(profile, role, Seq(dice.bits() as u32));
            end.set_nodelay(nodelay);
            end
        };
        let ends =
            [end(client, Role::Active, opening.nodelay[0]), end(broker, Role::Passive, opening.nodelay[1])];
        let fresh = |streams| Connection {
            number,
            client: opening.client,
            port: FIRST_PORT + (number % PORTS) as u16,
            broker_port: opening.broker_port,
            ends,
            alarms: [None; 2],
            streams,
            hosts: opening.hosts,
            paths: opening.paths,
            names,
            unread: None,
            left_in_socket: None,
            unserved: 0,
            under_way: 0,
            abandoned: false,
            retired: false,
        };
        match self.free.pop() {
            Some(place) => {
                let old = &mut self.places[place as usize];
                let mut streams = std::mem::take(&mut old.streams);
                streams.iter_mut().for_each(Stream::clear);
                *old = fresh(streams);
                place
            }
            None => {
                self.places.push(fresh(Default::default()));
                self.places.len() as u32 - 1
            }
        }
    }

    pub(crate) fn get(&mut self, place: u32) -> &mut Connection {
        &mut self.places[place as usize]
    }

    pub(crate) fn peek(&self, place: u32) -> &Connection {
        &self.places[place as usize]
    }

    /// Whether both ends are done and nothing is under way, so that the place can be given back.
    pub(crate) fn is_over(&self, place: u32) -> bool {
        let connection = self.peek(place);
        let idle = connection.under_way == 0 && connection.unread.is_none();
        let done = connection.abandoned && idle && !connection.retired;
        done && connection.ends.iter().all(is_over)
    }

    /// Gives the place back.
    pub(crate) fn retire(&mut self, place: u32) {
        self.places[place as usize].retired = true;
        self.free.push(place);
    }

    /// The places that have not been given back.
    pub(crate) fn places(&self) -> Vec<u32> {
        let places = self.places.iter().zip(0..).filter(|(connection, _)| !connection.retired);
        places.map(|(_, place)| place).collect()
    }
}

/// Whether an endpoint has nothing to do with what may still come. TIME-WAIT is not waited for: ports are not
/// scarce here.
fn is_over(end: &Endpoint) -> bool {
    matches!(end.state(), State::Closed | State::TimeWait | State::Listen)
}

/// Linux's first ephemeral port, and how many there are.
pub(crate) const FIRST_PORT: u16 = 32_768;
pub(crate) const PORTS: u32 = 28_232;
