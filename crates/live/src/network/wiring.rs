//! What lies between the hosts of a run, as its plan says: links, channels, paths, and how links change.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use mqttlab_net::radio::MediumSpec;
use mqttlab_net::{LinkChange, LinkSpec, NatSpec, TraceSpec};
use mqttlab_plan::{Event, LinksEvent, PathPlan, Plan};
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

/// Links that change at once.
#[derive(Clone, Debug)]
pub struct WiringChange {
    /// Since publishing began.
    pub at: Duration,
    /// Their numbers.
    pub links: Vec<usize>,
    /// What happens to each of them.
    pub change: LinkChange,
}

impl Wiring {
    /// As the plan says.
    pub fn of(plan: &Plan) -> Wiring {
        let clients: BTreeSet<usize> = plan.clients().map(|(group, client)| group.host_of(client)).collect();
        let servers: BTreeSet<usize> = plan.servers.iter().map(|server| server.host).collect();
        let numbers = plan.network.link_numbers();
        let change = |LinksEvent { at, links, change, .. }: &LinksEvent| WiringChange {
            at: *at,
            links: links.iter().filter_map(|name| numbers.get(name.as_str()).copied()).collect(),
            change: change.clone(),
        };
        let changes = plan.events.iter().filter_map(|event| match event {
            Event::Links(event) => Some(change(event)),
            Event::Server(_) | Event::Clients(_) => None,
        });
        Wiring {
            clients_beside_servers: servers.intersection(&clients).copied().collect(),
            server_hosts: servers,
            addresses: plan.hosts.iter().map(|host| host.address).collect(),
            links: plan.network.links.clone(),
            media: plan.network.media.clone(),
            paths: plan.network.paths.clone(),
            stations: plan.network.stations(),
            seed: plan.seed,
            changes: changes.collect(),
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
