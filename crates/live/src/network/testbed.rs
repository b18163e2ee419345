//! The hosts of a plan as namespaces, joined as the plan says.
//!
//! ```text
//!   emulated   each host: namespace, device, default route ──► its port, for the emulator
//!   veth       each server's namespace ══ one plain veth pair ══ each host that talks to it
//!              a server's own clients reach it over lo, in both
//!   loopback   all hosts in one namespace, their addresses on its loopback device
//!   external   no namespace: sockets of the engine's own
//! ```
//!
//! What it does not do: start anything, or move a frame.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use mqttlab_plan::{NetworkKind, Plan, PortKind, TcpPlan};
use mqttlab_system::namespaces::{Namespace, set_sysctl, sysctl};
use mqttlab_system::netlink::{self, LinkSettings, Metrics, RouteKind};
use mqttlab_system::sockets;
use rustls::ClientConfig;
use serde_json::{Value, json};

use crate::control::SocketFactory;
use crate::host::limit_groups::LimitGroups;
use crate::host::limits;
use crate::network::port::{Device, Port};
use crate::network::tcp_settings;
use crate::processes::server::HostPlace;
use crate::tls::TlsConfigs;

/// Hosts and what joins them.
pub struct Testbed {
    /// The namespace of each host, in the plan's order; empty for an external network.
    namespaces: Vec<Arc<Namespace>>,
    /// Each host's port; empty unless the network is emulated.
    ports: Vec<Port>,
    tcp: Vec<TcpPlan>,
    /// Where clients connect to, by server.
    servers: Vec<SocketAddr>,
    warnings: Vec<String>,
    /// What holds the programs of hosts with limits.
    limits: LimitGroups,
}

/// Client sockets in the hosts' namespaces.
pub struct HostSockets {
    namespaces: Vec<Arc<Namespace>>,
    tcp: Vec<TcpPlan>,
    servers: Vec<SocketAddr>,
    secured: TlsConfigs,
}

/// A testbed could not be built.
#[derive(Debug)]
pub struct BuildError {
    /// The host's name.
    pub host: String,
    /// What was being done.
    pub action: &'static str,
    /// What the system said.
    pub source: io::Error,
}

impl std::fmt::Display for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "host `{}`: cannot {}: {}", self.host, self.action, self.source)
    }
}

impl std::error::Error for BuildError {}

impl Testbed {
    /// Builds the hosts of `plan`. The process must have the right to make namespaces, unless the network is
    /// external.
    ///
    /// # Errors
    /// [`BuildError`] with the host and what was being done.
    pub fn build(plan: &Plan) -> Result<Testbed, BuildError> {
        let mut testbed = Testbed {
            namespaces: Vec::new(),
            ports: Vec::new(),
            tcp: plan.hosts.iter().map(|host| host.tcp.clone()).collect(),
            servers: plan.servers.iter().map(|server| server.endpoint().socket_address()).collect(),
            warnings: Vec::new(),
            limits: LimitGroups::new(),
        };
        match plan.network.kind {
            NetworkKind::External => {}
            NetworkKind::Loopback => testbed.build_loopback(plan)?,
            NetworkKind::Veth => testbed.build_veth(plan)?,
            NetworkKind::Emulated => testbed.build_emulated(plan)?,
        }
        testbed.try_sockets(plan)?;
        testbed.warnings.sort();
        testbed.warnings.dedup();
        Ok(testbed)
    }

    /// Its hosts are held to their limits.
    pub(crate) fn limited(mut self, limits: LimitGroups) -> Testbed {
        self.limits = limits;
        self
    }

    /// Where programs of a host are started, and what holds them there.
    pub(crate) fn place(&self, host: usize) -> HostPlace<'_> {
        let namespace = self.namespace(host).map(|namespace| &**namespace);
        HostPlace { namespace, limits: self.limits.get(&host) }
    }

    /// Where clients of a server connect to.
    pub fn server_address(&self, server: usize) -> SocketAddr {
        self.servers[server]
    }

    /// Takes the ports away, for the emulator.
    pub fn take_ports(&mut self) -> Vec<Port> {
        std::mem::take(&mut self.ports)
    }

    /// The namespace of a host, unless the network is external.
    pub fn namespace(&self, host: usize) -> Option<&Arc<Namespace>> {
        self.namespaces.get(host)
    }

    /// What makes the clients' sockets.
    pub fn sockets(&self) -> HostSockets {
        HostSockets {
            namespaces: self.namespaces.clone(),
            tcp: self.tcp.clone(),
            servers: self.servers.clone(),
            secured: TlsConfigs::default(),
        }
    }

    /// What is not in force although the plan wants it.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The TCP sysctls of each host as they are now, for the recording.
    pub fn tcp_in_force(&self, plan: &Plan) -> Value {
        let hosts = plan.hosts.iter().enumerate().map(|(index, host)| {
            let read = || {
                let found = REPORTED.iter().map(|name| (*name, sysctl(&format!("net/ipv4/{name}"))));
                Ok(found.collect::<std::collections::BTreeMap<_, _>>())
            };
            let sysctls = match self.namespaces.get(index) {
                Some(namespace) => namespace.run(read),
                None => read(),
            };
            let route = format!("{:?}", tcp_settings::route_metrics(&host.tcp));
            (host.name.clone(), json!({ "sysctls": sysctls.unwrap_or_default(), "route": route }))
        });
        hosts.collect::<serde_json::Map<_, _>>().into()
    }

    fn build_loopback(&mut self, plan: &Plan) -> Result<(), BuildError> {
        let first = &plan.hosts[plan.servers[0].host];
        let (name, tcp) = (&first.name, &first.tcp);
        let shared = Arc::new(at(name, "make its network namespace", Namespace::new())?);
        self.configure_tcp(name, &shared, tcp)?;
        if plan.hosts.iter().any(|host| host.tcp != *tcp) {
            self.warnings.push(format!("all hosts share the TCP settings of `{name}` on a loopback network"));
        }
        let metrics = tcp_settings::route_metrics(tcp);
        for host in &plan.hosts {
            let added = shared.run(|| add_loopback_address(host.address, &metrics));
            at(&host.name, "give the loopback device its address", added)?;
            self.namespaces.push(Arc::clone(&shared));
        }
        Ok(())
    }

    fn build_veth(&mut self, plan: &Plan) -> Result<(), BuildError> {
        self.make_namespaces(plan)?;
        self.join_servers_to_themselves(plan)?;
        for (server, other) in talking(plan) {
            let (near, far) = (format!("veth{other}"), format!("veth{server}"));
            let (here, there) = (&plan.hosts[server], &plan.hosts[other]);
            let namespaces = [&self.namespaces[server], &self.namespaces[other]];
            let made = namespaces[0].run(|| netlink::add_veth(&near, &far, namespaces[1].as_fd()));
            at(&there.name, "make a veth pair", made)?;
            for (namespace, device, here, there) in
                [(namespaces[0], near, here, there), (namespaces[1], far, there, here)]
            {
                let end = || join(&device, plan.network.mtu_bytes, here.address, there.address, &here.tcp);
                at(&there.name, "configure a veth device", namespace.run(end))?;
            }
        }
        Ok(())
    }

    fn build_emulated(&mut self, plan: &Plan) -> Result<(), BuildError> {
        self.make_namespaces(plan)?;
        let wire = at(&plan.hosts[0].name, "make the wire's namespace", Namespace::new())?;
        for (host, namespace) in plan.hosts.iter().zip(&self.namespaces) {
            let device = Device {
                address: host.address,
                mtu: plan.network.mtu_bytes,
                metrics: tcp_settings::route_metrics(&host.tcp),
            };
            let opened = Port::open(namespace, &wire, plan.live.port, &device);
            self.ports.push(at(&host.name, "open its port (is /dev/net/tun there and permitted?)", opened)?);
        }
        if plan.live.port == PortKind::Auto && self.ports.iter().any(|port| !port.is_tun()) {
            self.warnings.push("TUN cannot be opened here; packet sockets on veth are used instead".into());
        }
        self.join_servers_to_themselves(plan)
    }

    /// Lets clients on a server's host reach it, with the host's TCP settings, over its loopback device.
    fn join_servers_to_themselves(&mut self, plan: &Plan) -> Result<(), BuildError> {
        let beside = (0..plan.servers.len()).filter(|server| plan.has_clients_beside(*server));
        let hosts: BTreeSet<usize> = beside.map(|server| plan.servers[server].host).collect();
        for index in hosts {
            let host = &plan.hosts[index];
            let metrics = tcp_settings::route_metrics(&host.tcp);
            let added = self.namespaces[index].run(|| add_loopback_address(host.address, &metrics));
            at(&host.name, "give the loopback device its address", added)?;
        }
        Ok(())
    }

    fn make_namespaces(&mut self, plan: &Plan) -> Result<(), BuildError> {
        for host in &plan.hosts {
            let namespace = Arc::new(at(&host.name, "make its network namespace", Namespace::new())?);
            self.configure_tcp(&host.name, &namespace, &host.tcp)?;
            let up = || netlink::set_link_up(netlink::link_index("lo")?, LinkSettings::default());
            at(&host.name, "bring its loopback device up", namespace.run(up))?;
            self.namespaces.push(namespace);
        }
        Ok(())
    }

    fn configure_tcp(&mut self, host: &str, namespace: &Namespace, tcp: &TcpPlan) -> Result<(), BuildError> {
        let warnings = namespace.run(|| {
            // Thousands of connections from one address to one port need more than the default 28 232.
            let (from, to) = limits::OWN_PORTS;
            set_sysctl("net/ipv4/ip_local_port_range", &format!("{from} {to}"))?;
            tcp_settings::configure_namespace(tcp)
        });
        let warnings = at(host, "set its TCP sysctls (is /proc/sys writable?)", warnings)?;
        self.warnings.extend(warnings.into_iter().map(|warning| format!("host `{host}`: {warning}")));
        Ok(())
    }

    /// A socket for each host, so that what the kernel refuses is known before the first client needs one.
    fn try_sockets(&mut self, plan: &Plan) -> Result<(), BuildError> {
        let sockets = self.sockets();
        for (index, host) in plan.hosts.iter().enumerate() {
            let tried = std::thread::scope(|scope| scope.spawn(|| sockets.socket(index, 0)).join());
            let socket = at(&host.name, "make a socket", tried.expect("making a socket does not panic"))?;
            let warnings = tcp_settings::socket_warnings(socket.as_fd(), &host.tcp);
            self.warnings
                .extend(warnings.into_iter().map(|warning| format!("host `{}`: {warning}", host.name)));
        }
        Ok(())
    }
}

impl HostSockets {
    /// The same, for clients who open TLS.
    #[must_use]
    pub fn secured(self, secured: TlsConfigs) -> HostSockets {
        HostSockets { secured, ..self }
    }

    fn enter(&self, host: usize) -> io::Result<()> {
        self.namespaces.get(host).map_or(Ok(()), |namespace| namespace.enter())
    }
}

impl SocketFactory for HostSockets {
    fn socket(&self, host: usize, server: usize) -> io::Result<OwnedFd> {
        self.enter(host)?;
        let socket = sockets::stream(self.servers[server])?;
        tcp_settings::configure_socket(socket.as_fd(), &self.tcp[host])?;
        Ok(socket)
    }

    fn datagram_socket(&self, host: usize, server: usize) -> io::Result<OwnedFd> {
        self.enter(host)?;
        sockets::datagrams(self.servers[server])
    }

    fn server_address(&self, server: usize) -> SocketAddr {
        self.servers[server]
    }

    fn tls(&self, group: usize) -> Option<Arc<ClientConfig>> {
        self.secured.config(group)
    }
}

/// Each server's host with each host that talks to it, once: its clients' hosts, and those of other servers, of which a
/// gateway may be one.
fn talking(plan: &Plan) -> BTreeSet<(usize, usize)> {
    let mut pairs = BTreeSet::new();
    let mut add = |server: usize, other: usize| {
        if server != other && !pairs.contains(&(other, server)) {
            pairs.insert((server, other));
        }
    };
    for (group, client) in plan.clients() {
        add(plan.server_of(group).host, group.host_of(client));
    }
    for server in &plan.servers {
        plan.servers.iter().for_each(|other| add(server.host, other.host));
    }
    pairs
}

/// Runs in the namespace.
fn add_loopback_address(address: Ipv4Addr, metrics: &Metrics) -> io::Result<()> {
    let link = netlink::link_index("lo")?;
    netlink::set_link_up(link, LinkSettings::default())?;
    netlink::add_address(link, address)?;
    netlink::add_route(RouteKind::Local, Some(address), link, address, metrics)
}

/// Runs in the namespace of one end.
fn join(device: &str, mtu: u32, here: Ipv4Addr, there: Ipv4Addr, tcp: &TcpPlan) -> io::Result<()> {
    let link = netlink::link_index(device)?;
    netlink::set_link_up(link, LinkSettings { mtu: Some(mtu), ..LinkSettings::default() })?;
    netlink::add_address(link, here)?;
    netlink::add_route(RouteKind::Unicast, Some(there), link, here, &tcp_settings::route_metrics(tcp))
}

fn at<T>(host: &str, action: &'static str, result: io::Result<T>) -> Result<T, BuildError> {
    result.map_err(|source| BuildError { host: host.to_owned(), action, source })
}

const REPORTED: [&str; 13] = [
    "tcp_sack",
    "tcp_timestamps",
    "tcp_window_scaling",
    "tcp_rto_min_us",
    "tcp_rto_max_ms",
    "tcp_early_retrans",
    "tcp_recovery",
    "tcp_syn_retries",
    "tcp_syn_linear_timeouts",
    "tcp_wmem",
    "tcp_rmem",
    "tcp_congestion_control",
    "tcp_available_congestion_control",
];
