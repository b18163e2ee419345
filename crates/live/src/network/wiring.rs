//! What lies between the hosts of a live run, with the numbers of hosts, links and channels.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use mqttlab_net::radio::{MediumChange, MediumSpec};
use mqttlab_net::{LinkChange, LinkSpec, NatSpec, TraceSpec};
use mqttlab_plan::{Event, LinksEvent, MediumEvent, PathPlan, Plan};
use mqttlab_units::{Duration, Seed};

/// What lies between the hosts.
#[derive(Clone, Debug)]
pub struct Wiring {
    /// The address of each host.
    pub addresses: Vec<Ipv4Addr>,
    /// The hosts that frames go up to, for the direction that is recorded.
    pub server_hosts: BTreeSet<usize>,
    /// Those of them that clients run on, too.
    pub clients_beside_servers: BTreeSet<usize>,
    /// The links.
    pub links: Vec<LinkSpec>,
    /// The radio channels.
    pub media: Vec<MediumSpec>,
    /// The links and channels from one host to another.
    pub paths: Vec<PathPlan>,
    /// The host of each station, by medium and number.
    pub stations: BTreeMap<(usize, usize), usize>,
    /// What the random streams of links and channels are derived from.
    pub seed: Seed,
    /// How links change, in the order of time.
    pub changes: Vec<WiringChange>,
    /// What forgets connections.
    pub nats: Vec<NatSpec>,
    /// What they follow.
    pub traces: Vec<TraceSpec>,
}

/// Something changes.
#[derive(Clone, Debug)]
pub struct WiringChange {
    /// Since publishing began.
    pub at: Duration,
    /// What.
    pub change: Change,
}

/// What may change.
#[derive(Clone, Debug)]
pub enum Change {
    /// Some links at once.
    Links {
        /// Their numbers.
        links: Vec<usize>,
        /// What happens to each of them.
        change: LinkChange,
    },
    /// A radio channel.
    Medium {
        /// Its number.
        medium: usize,
        /// What happens on it.
        change: MediumChange,
    },
}

impl WiringChange {
    /// The links that it changes.
    pub fn links(&self) -> &[usize] {
        match &self.change {
            Change::Links { links, .. } => links,
            Change::Medium { .. } => &[],
        }
    }
}

impl Wiring {
    /// As the plan says.
    pub fn of(plan: &Plan) -> Wiring {
        let clients: BTreeSet<usize> = plan.clients().map(|(group, client)| group.host_of(client)).collect();
        let servers: BTreeSet<usize> = plan.servers.iter().map(|server| server.host).collect();
        Wiring {
            clients_beside_servers: servers.intersection(&clients).copied().collect(),
            server_hosts: servers,
            addresses: plan.hosts.iter().map(|host| host.address).collect(),
            links: plan.network.links.clone(),
            media: plan.network.media.clone(),
            paths: plan.network.paths.clone(),
            stations: plan.network.stations(),
            seed: plan.seed,
            changes: changes(plan),
            nats: plan.network.translators(),
            traces: plan.network.traces.clone(),
        }
    }

    /// Two hosts, the second of them a server's, with links between them.
    pub fn of_pair(
        addresses: [Ipv4Addr; 2],
        links: Vec<LinkSpec>,
        paths: Vec<PathPlan>,
        seed: Seed,
    ) -> Wiring {
        let (media, stations, server_hosts) = (Vec::new(), BTreeMap::new(), BTreeSet::from([1]));
        let (addresses, clients_beside_servers) = (addresses.to_vec(), BTreeSet::new());
        let (changes, nats) = (Vec::new(), Vec::new());
        Wiring {
            addresses,
            server_hosts,
            clients_beside_servers,
            links,
            media,
            paths,
            stations,
            seed,
            changes,
            nats,
            traces: Vec::new(),
        }
    }
}

/// What changes between the hosts, with the numbers of links and channels.
fn changes(plan: &Plan) -> Vec<WiringChange> {
    let network = &plan.network;
    let links = network.link_numbers();
    let change = |event: &Event| match event {
        Event::Links(LinksEvent { at, links: names, change, .. }) => {
            let links = names.iter().filter_map(|name| links.get(name.as_str()).copied()).collect();
            Some(WiringChange { at: *at, change: Change::Links { links, change: change.clone() } })
        }
        Event::Medium(MediumEvent { at, medium, change, .. }) => {
            let medium = network.media.iter().position(|spec| spec.name == *medium)?;
            Some(WiringChange { at: *at, change: Change::Medium { medium, change: change.clone() } })
        }
        Event::Server(_) | Event::Clients(_) => None,
    };
    plan.events.iter().filter_map(change).collect()
}
