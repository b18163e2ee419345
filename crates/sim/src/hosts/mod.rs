//! Hosts, and what lies between them: TCP, the connections with their streams, datagrams, and frames on the network.
//!
//! ```text
//!   transport ──► connections ──► stream (packets), layers (TLS, WebSocket), tcp_profiles ──► wire (frames)
//!             ──► datagrams ───────────────────────────────────────────────────────────────► wire
//! ```

pub(crate) mod connections;
pub(crate) mod datagrams;
pub(crate) mod layers;
pub(crate) mod packet_content;
pub(crate) mod ports;
pub(crate) mod small_queue;
pub(crate) mod stream;
pub(crate) mod tcp_profiles;
pub(crate) mod transport;
pub(crate) mod wire;

use std::sync::Arc;

use mqttlab_plan::{Plan, Server};
use mqttlab_tcp::Profile;

use crate::ids::{HostId, IdTable, ServerId};

/// Each host's TCP, and the addresses of the servers.
pub(crate) struct Hosts {
    profiles: IdTable<HostId, Arc<Profile>>,
    listeners: IdTable<ServerId, ServerListener>,
}

/// Where a server listens.
pub(crate) struct ServerListener {
    pub(crate) host: HostId,
    pub(crate) port: u16,
    /// Whether Nagle's algorithm is off on accepted sockets.
    pub(crate) nodelay: bool,
    pub(crate) reception: Reception,
    /// The TCP of its host over the loopback device, with the device's large packets.
    loopback: Arc<Profile>,
}

/// What becomes of a SYN that comes to a server's port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reception {
    /// The program accepts the connection.
    Open,
    /// The program stands still: connections wait in the queue of its listening socket, as many as this.
    Queueing(u32),
    /// Nobody listens.
    Closed,
}

impl Reception {
    /// A SYN has come: whether its connection is accepted, now or later; `None`: it is dropped.
    pub(crate) fn take(&mut self) -> Option<bool> {
        match self {
            Reception::Open => Some(true),
            Reception::Queueing(waiting) if *waiting > BACKLOG => None,
            Reception::Queueing(waiting) => {
                *waiting += 1;
                Some(true)
            }
            Reception::Closed => Some(false),
        }
    }
}

/// As Mosquitto says it to `listen(2)`. Linux lets one more wait (`sk_acceptq_is_full`).
const BACKLOG: u32 = 100;

impl Hosts {
    /// The hosts of a plan.
    ///
    /// # Errors
    /// A sentence, when the plan asks for what the simulator does not know.
    pub(crate) fn new(plan: &Plan) -> Result<Hosts, String> {
        let profiles = tcp_profiles::profiles(plan)?.into_iter().collect();
        let listeners = plan.servers.iter().map(|server| ServerListener::of(plan, server));
        Ok(Hosts { profiles, listeners: listeners.collect::<Result<_, String>>()? })
    }

    pub(crate) fn len(&self) -> usize {
        self.profiles.len()
    }

    pub(crate) fn listener(&self, server: ServerId) -> &ServerListener {
        &self.listeners[server]
    }

    pub(crate) fn listener_mut(&mut self, server: ServerId) -> &mut ServerListener {
        &mut self.listeners[server]
    }

    /// The TCP of both ends of a connection from this host. Over a loopback device both are the server's host's.
    pub(crate) fn profiles(&self, from: HostId, server: ServerId, over_loopback: bool) -> [Arc<Profile>; 2] {
        let listener = &self.listeners[server];
        if over_loopback {
            return [(); 2].map(|()| Arc::clone(&listener.loopback));
        }
        [from, listener.host].map(|host| Arc::clone(&self.profiles[host]))
    }
}

impl ServerListener {
    fn of(plan: &Plan, server: &Server) -> Result<ServerListener, String> {
        Ok(ServerListener {
            host: HostId(server.host as u32),
            port: server.endpoint().port,
            reception: Reception::Open,
            // A gateway of ours sets it towards the broker, and accepts no connections itself.
            // libzmq sets it on all of its sockets.
            nodelay: server.gateway().is_some()
                || server.zeromq().is_some()
                || server.broker().is_some_and(|broker| broker.settings.tcp_nodelay),
            loopback: tcp_profiles::profile(plan, server.host, tcp_profiles::LOOPBACK_MTU_BYTES)?,
        })
    }
}
