//! What lies between the hosts of a plan: links, radio channels, and which of them each frame crosses.
//!
//! Networks join hosts two by two. Frames cross hosts that forward (`forwards = true`: routers, switches) on their way, over
//! as few networks as possible; of ways of the same length, the first in the file. A `trunk` is one such switch: it stands
//! in front of the broker's host, and the networks that lead there lead to it instead. A host that forwards has no TCP, no
//! clients and no server: nothing of it is in the plan but its links.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use mqttlab_fields::Words;
use mqttlab_net::{LinkSpec, TraceSpec};
use mqttlab_plan::{Hop, NatPlan, Network, NetworkKind, PathPlan};
use mqttlab_units::Duration;

use crate::networks::{After, Link, LinkUse, NetworkBetween, Placed, Radio, Trace, Trunk};

/// No host has a name with a blank.
const SWITCH: &str = "switch of the trunk";

/// The plan's hosts in order, and where each name's first one is.
#[derive(Debug, Default)]
pub struct PlannedHosts {
    /// By name: the number of the first host, and how many there are.
    members: BTreeMap<String, (usize, usize)>,
    /// By number: what a host is called, and its name.
    entries: Vec<(String, String)>,
}

impl PlannedHosts {
    /// Hosts of these names, each as often as it says; several are called `name-0`, `name-1`, ...
    pub fn new<'a>(names: impl IntoIterator<Item = (&'a str, usize)>) -> PlannedHosts {
        let mut hosts = PlannedHosts::default();
        for (name, count) in names {
            hosts.members.insert(name.into(), (hosts.entries.len(), count));
            let label = |number| if count == 1 { name.to_owned() } else { format!("{name}-{number}") };
            hosts.entries.extend((0..count).map(|number| (label(number), name.to_owned())));
        }
        hosts
    }

    /// The number of a name's first host.
    pub fn first(&self, name: &str) -> Option<usize> {
        self.members.get(name).map(|(first, _)| *first)
    }

    /// How many hosts a name has.
    pub fn count(&self, name: &str) -> usize {
        self.members.get(name).map_or(0, |(_, count)| *count)
    }

    /// All hosts in order: what each is called, and its name.
    pub fn entries(&self) -> &[(String, String)] {
        &self.entries
    }

    fn labels(&self, name: &str) -> &[(String, String)] {
        self.members.get(name).map_or(&[], |(first, count)| &self.entries[*first..first + count])
    }
}

/// What routes need of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Wiring<'a> {
    /// How frames get from host to host.
    pub kind: NetworkKind,
    /// Networks between hosts.
    pub networks: &'a [NetworkBetween],
    /// A link behind all networks.
    pub trunk: Option<&'a Trunk>,
    /// A channel that joins all hosts.
    pub radio: Option<&'a Radio>,
    /// The hosts that forward.
    pub forwarding: &'a BTreeSet<String>,
    /// The hosts of the servers, each once; the first one's is the broker's, where the trunk ends.
    pub servers: &'a [String],
    /// Largest IP packet.
    pub mtu_bytes: u32,
    /// Whether an event has a queue in bandwidth-delay products.
    pub events_have_products: bool,
}

/// The links that one direction of a scenario's network has become.
#[derive(Clone, Debug)]
pub struct Laid {
    /// As the scenario has it.
    pub link: Link,
    /// In the plan; one for each client where each has links of its own.
    pub names: Vec<String>,
    /// The delays of a path over it and back; of several paths, the most. Zero where no queue depends on it.
    pub round_trip: Duration,
}

/// A network of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NetworkNumber {
    /// The trunk.
    Trunk,
    /// One of the networks.
    Between(usize),
}

/// A direction of a network as a scenario writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LaidWay {
    /// `up`.
    Up,
    /// `down`.
    Down,
    /// Both, which share one transmitter.
    Both,
}

/// Which of the plan's links are whose.
pub type LaidLinks = BTreeMap<NetworkNumber, BTreeMap<LaidWay, Laid>>;

/// Two nodes and the links between them, for each host of the far end, or one for all.
#[derive(Debug)]
struct Joint {
    far: String,
    near: String,
    is_flipped: bool,
    up: Vec<Vec<usize>>,
    down: Vec<Vec<usize>>,
}

impl Joint {
    /// The links from one of the ends to the other; `member` counts the hosts of the far end.
    fn crossed_from(&self, name: &str, member: usize) -> &[usize] {
        let links = if name == self.far { &self.up } else { &self.down };
        &links[if links.len() > 1 { member } else { 0 }]
    }

    fn other(&self, name: &str) -> &str {
        if name == self.far { &self.near } else { &self.far }
    }
}

/// The number of the first network on the way from each node; none from where the way leads to. In the order in which the
/// nodes were found, from the nearest on.
#[derive(Debug, Default)]
struct Way {
    first: HashMap<String, Option<usize>>,
    found: Vec<String>,
}

impl Way {
    /// The nodes on the way from a node, each with the network that it leaves by.
    fn steps<'a>(&self, from: &str, joints: &'a [Joint]) -> Vec<(String, &'a Joint)> {
        let (mut steps, mut name) = (Vec::new(), from.to_owned());
        while let Some(Some(number)) = self.first.get(&name) {
            let joint = &joints[*number];
            let next = joint.other(&name).to_owned();
            steps.push((name, joint));
            name = next;
        }
        steps
    }

    /// How many networks each node is away.
    fn lengths(&self, joints: &[Joint]) -> HashMap<String, usize> {
        let mut lengths = HashMap::new();
        for name in &self.found {
            let length = match self.first[name] {
                None => 0,
                Some(number) => 1 + lengths[joints[number].other(name)],
            };
            lengths.insert(name.clone(), length);
        }
        lengths
    }
}

/// The plan's network with its traces, `warm_up` after publishing begins, and which of its links are whose.
///
/// # Errors
/// A queue's limit needs a rate; in words that follow the link's name.
pub fn network(
    wiring: &Wiring<'_>,
    hosts: &PlannedHosts,
    warm_up: Duration,
) -> Result<(Network, LaidLinks), String> {
    let mut laying = Laying::new(wiring, hosts);
    laying.lay_trunk()?;
    laying.lay_radio();
    laying.lay_networks()?;
    let mut paths = laying.paths;
    for name in laying.joints.iter().map(|joint| joint.far.as_str()).collect::<UniqueNames<'_>>().0 {
        if hosts.first(name).is_some() {
            paths.extend(paths_of(name, wiring.servers, hosts, &laying.joints, &laying.ways));
        }
    }
    let (mut links, mut laid) = (laying.links, laying.laid);
    if asks_for_round_trips(wiring, &laid) {
        measure(&mut laid, &mut links, &paths, wiring.mtu_bytes)?;
    }
    let description = laying.described.join("; ");
    let kind = kind_in_words(wiring.kind);
    let network = Network {
        kind: wiring.kind,
        description: if description.is_empty() { kind.into() } else { description },
        mtu_bytes: wiring.mtu_bytes,
        traces: planned_traces(&laid, warm_up),
        links,
        media: laying.media,
        paths,
        nats: laying.nats,
    };
    Ok((network, laid))
}

/// As a scenario calls it.
fn kind_in_words(kind: NetworkKind) -> &'static str {
    match kind {
        NetworkKind::Emulated => "emulated",
        NetworkKind::Veth => "direct",
        NetworkKind::Loopback => "loopback",
        NetworkKind::External => "external",
    }
}

/// Names in order, each once.
struct UniqueNames<'a>(Vec<&'a str>);

impl<'a> FromIterator<&'a str> for UniqueNames<'a> {
    fn from_iter<I: IntoIterator<Item = &'a str>>(names: I) -> UniqueNames<'a> {
        let mut seen = BTreeSet::new();
        UniqueNames(names.into_iter().filter(|name| seen.insert(*name)).collect())
    }
}

/// A network that is being laid, link by link.
struct Laying<'a> {
    wiring: &'a Wiring<'a>,
    hosts: &'a PlannedHosts,
    joints: Vec<Joint>,
    ways: Vec<Way>,
    links: Vec<LinkSpec>,
    media: Vec<mqttlab_net::radio::MediumSpec>,
    nats: Vec<NatPlan>,
    described: Vec<String>,
    paths: Vec<PathPlan>,
    laid: LaidLinks,
}

impl<'a> Laying<'a> {
    fn new(wiring: &'a Wiring<'a>, hosts: &'a PlannedHosts) -> Laying<'a> {
        let joints = joints(wiring, &wiring.servers[0]);
        let forwarding = forwarding(wiring);
        let ways = wiring.servers.iter().map(|server| towards(server, &joints, &forwarding)).collect();
        Laying {
            wiring,
            hosts,
            joints,
            ways,
            links: Vec::new(),
            media: Vec::new(),
            nats: Vec::new(),
            described: Vec::new(),
            paths: Vec::new(),
            laid: LaidLinks::new(),
        }
    }

    fn lay_trunk(&mut self) -> Result<(), String> {
        let Some(trunk) = self.wiring.trunk else { return Ok(()) };
        let placed = Placed { up: Some(trunk.up.clone()), down: Some(trunk.down.clone()), is_shared: false };
        self.lay(0, &["trunk".into()], &placed)?;
        let laid = self.laid_of(0, placed, false);
        self.laid.insert(NetworkNumber::Trunk, laid);
        Ok(())
    }

    fn lay_radio(&mut self) {
        let Some(radio) = self.wiring.radio else { return };
        self.media.push(radio.planned(self.hosts.entries().len() as u32));
        self.described.push(format!("802.11 ({})", radio.standard.word()));
        let trunk = self.wiring.trunk.map(|_| &self.joints[0]);
        self.paths = radio_paths(self.hosts, self.wiring.servers, trunk);
    }

    fn lay_networks(&mut self) -> Result<(), String> {
        let used = self.used();
        let before = self.joints.len() - self.wiring.networks.len();
        let mut networks_of: HashMap<String, usize> = HashMap::new();
        for number in &used {
            *networks_of.entry(self.joints[*number].far.clone()).or_default() += 1;
        }
        for (index, between) in self.wiring.networks.iter().enumerate() {
            let number = before + index;
            if !used.contains(&number) {
                continue;
            }
            self.described.push(described(between));
            let joint = &self.joints[number];
            let labels = self.labels(joint, between, networks_of[&joint.far] > 1);
            let (is_flipped, by_hand) = (joint.is_flipped, between.named().is_none());
            let placed = between.placed(!is_flipped);
            self.lay(number, &labels, &placed)?;
            // A model's directions are towards the server and away from it, whichever host is named first.
            if let Some(nat) = &between.nat {
                let named = |ways: &[Vec<usize>]| {
                    ways.iter().flatten().map(|link| self.links[*link].name.clone()).collect::<Vec<_>>()
                };
                let joint = &self.joints[number];
                self.nats.push(NatPlan {
                    outward: named(&joint.up),
                    inward: named(&joint.down),
                    timeout: nat.timeout,
                    forgotten: nat.forgotten,
                });
            }
            let laid = self.laid_of(number, placed, is_flipped && by_hand);
            self.laid.insert(NetworkNumber::Between(index), laid);
        }
        Ok(())
    }

    /// What a network's links are called: as the hosts of its far end where each has links of its own. Names are what
    /// random streams are derived from: two networks of one host need two.
    fn labels(&self, joint: &Joint, between: &NetworkBetween, has_others: bool) -> Vec<String> {
        let broker = &self.wiring.servers[0];
        let other =
            if has_others { format!("-{}", joint.near.replace(SWITCH, broker)) } else { String::new() };
        let members = self.hosts.labels(&joint.far);
        if members.is_empty() || between.link != Some(LinkUse::Each) {
            return vec![format!("{}{other}", joint.far)];
        }
        members.iter().map(|(label, _)| format!("{label}{other}")).collect()
    }

    /// The numbers of the networks that frames cross.
    fn used(&self) -> BTreeSet<usize> {
        let mut used = BTreeSet::new();
        for way in &self.ways {
            for name in self.hosts.members.keys() {
                let mut here = name.clone();
                while let Some(Some(number)) = way.first.get(&here) {
                    used.insert(*number);
                    here = self.joints[*number].other(&here).to_owned();
                }
            }
        }
        used
    }

    /// Makes the links of a network, once for each of these names.
    fn lay(&mut self, number: usize, labels: &[String], placed: &Placed) -> Result<(), String> {
        for label in labels {
            if let (true, Some(down)) = (placed.is_shared, &placed.down) {
                let links = self.add(label, Some(down))?;
                self.joints[number].up.push(links.clone());
                self.joints[number].down.push(links);
                continue;
            }
            let up = self.add(&format!("{label}/up"), placed.up.as_ref())?;
            let down = self.add(&format!("{label}/down"), placed.down.as_ref())?;
            self.joints[number].up.push(up);
            self.joints[number].down.push(down);
        }
        Ok(())
    }

    fn add(&mut self, name: &str, link: Option<&Link>) -> Result<Vec<usize>, String> {
        let Some(link) = link else { return Ok(Vec::new()) };
        self.links.push(link.planned(name, self.wiring.mtu_bytes, Duration::ZERO)?);
        Ok(vec![self.links.len() - 1])
    }

    /// A network's links by their directions in the scenario.
    fn laid_of(&self, number: usize, placed: Placed, is_flipped: bool) -> BTreeMap<LaidWay, Laid> {
        let joint = &self.joints[number];
        let named = |links: &[Vec<usize>]| {
            links.iter().flatten().map(|link| self.links[*link].name.clone()).collect()
        };
        let laid = |link: Option<Link>, links: &[Vec<usize>]| {
            link.map(|link| Laid { link, names: named(links), round_trip: Duration::ZERO })
        };
        if placed.is_shared {
            return laid(placed.down, &joint.up).map(|laid| (LaidWay::Both, laid)).into_iter().collect();
        }
        let (up, down) = if is_flipped { (LaidWay::Down, LaidWay::Up) } else { (LaidWay::Up, LaidWay::Down) };
        let found = [(up, laid(placed.up, &joint.up)), (down, laid(placed.down, &joint.down))];
        found.into_iter().filter_map(|(way, laid)| Some((way, laid?))).collect()
    }
}

fn forwarding(wiring: &Wiring<'_>) -> BTreeSet<String> {
    wiring.forwarding.iter().cloned().chain([SWITCH.to_owned()]).collect()
}

/// The trunk, if there is one, and all networks, each with the end first that is farther from the server.
fn joints(wiring: &Wiring<'_>, server: &str) -> Vec<Joint> {
    let broker = &wiring.servers[0];
    // With a trunk, what leads to the broker leads to its switch.
    let end = |name: &String| {
        let behind = wiring.trunk.is_some() && name == broker;
        if behind { SWITCH.to_owned() } else { name.clone() }
    };
    let joint = |far, near| Joint { far, near, is_flipped: false, up: Vec::new(), down: Vec::new() };
    let trunk = wiring.trunk.map(|_| joint(SWITCH.to_owned(), broker.clone()));
    let networks =
        wiring.networks.iter().map(|network| joint(end(&network.between[0]), end(&network.between[1])));
    let mut joints: Vec<Joint> = trunk.into_iter().chain(networks).collect();
    let way = towards(server, &joints, &forwarding(wiring));
    let depth = way.lengths(&joints);
    let beyond = joints.len();
    let depth_of = |name: &str| depth.get(name).copied().unwrap_or(beyond);
    for joint in &mut joints {
        // The trunk's directions are the scenario's.
        if joint.far != SWITCH && depth_of(&joint.far) < depth_of(&joint.near) {
            std::mem::swap(&mut joint.far, &mut joint.near);
            joint.is_flipped = true;
        }
    }
    joints
}

/// For each node with a way to the server: the number of the first network on it.
fn towards(server: &str, joints: &[Joint], forwarding: &BTreeSet<String>) -> Way {
    let mut joined: HashMap<&str, Vec<(usize, &str)>> = HashMap::new();
    for (number, joint) in joints.iter().enumerate() {
        joined.entry(&joint.far).or_default().push((number, &joint.near));
        joined.entry(&joint.near).or_default().push((number, &joint.far));
    }
    let mut way = Way::default();
    way.first.insert(server.to_owned(), None);
    way.found.push(server.to_owned());
    let mut queue = VecDeque::from([server]);
    while let Some(name) = queue.pop_front() {
        if name != server && !forwarding.contains(name) {
            continue;
        }
        for (number, other) in joined.get(name).into_iter().flatten() {
            if !way.first.contains_key(*other) {
                way.first.insert((*other).to_owned(), Some(*number));
                way.found.push((*other).to_owned());
                queue.push_back(other);
            }
        }
    }
    way
}

/// From every host of a name to each server and back; between two servers only once.
fn paths_of(
    name: &str,
    servers: &[String],
    hosts: &PlannedHosts,
    joints: &[Joint],
    ways: &[Way],
) -> Vec<PathPlan> {
    let mut there = Vec::new();
    for (server, way) in servers.iter().zip(ways) {
        if name == server {
            // Those behind it have the paths between them and this one.
            break;
        }
        if way.first.contains_key(name) {
            let steps = way.steps(name, joints);
            let turned = |(node, joint): &(String, &Joint)| joint.other(node).to_owned();
            let back: Vec<_> = steps.iter().rev().map(|step| (turned(step), step.1)).collect();
            there.push((hosts.first(server).unwrap_or_default(), steps, back));
        }
    }
    let crossed = |nodes: &[(String, &Joint)], number: usize| -> Vec<Hop> {
        nodes
            .iter()
            .flat_map(|(node, joint)| joint.crossed_from(node, number))
            .map(|link| Hop::Link(*link))
            .collect()
    };
    let (first, count) = (hosts.first(name).unwrap_or_default(), hosts.count(name));
    let mut paths = Vec::with_capacity(2 * count * there.len());
    for number in 0..count {
        for (server, steps, back) in &there {
            paths.push(PathPlan { from: first + number, to: *server, hops: crossed(steps, number) });
            paths.push(PathPlan { from: *server, to: first + number, hops: crossed(back, number) });
        }
    }
    paths
}

/// Between every station and the servers', and over the trunk behind the broker's where there is one.
fn radio_paths(hosts: &PlannedHosts, servers: &[String], trunk: Option<&Joint>) -> Vec<PathPlan> {
    let stations = hosts.entries().len();
    let behind = trunk.and_then(|trunk| hosts.first(&trunk.near));
    let over = |links: Option<&[Vec<usize>]>| -> Vec<Hop> {
        links.and_then(<[_]>::first).into_iter().flatten().map(|link| Hop::Link(*link)).collect()
    };
    let (mut paths, mut passed) = (Vec::new(), BTreeSet::new());
    for server in servers.iter().filter_map(|server| hosts.first(server)) {
        passed.insert(server);
        for station in (0..stations).filter(|station| !passed.contains(station)) {
            for (from, to) in [(station, server), (server, station)] {
                let before = over(trunk.filter(|_| behind == Some(from)).map(|trunk| trunk.down.as_slice()));
                let after = over(trunk.filter(|_| behind == Some(to)).map(|trunk| trunk.up.as_slice()));
                let air = Hop::Radio { medium: 0, from, to };
                let hops = before.into_iter().chain([air]).chain(after).collect();
                paths.push(PathPlan { from, to, hops });
            }
        }
    }
    paths
}

/// Whether a queue is as long as bandwidth-delay products are. Large networks have many paths.
fn asks_for_round_trips(wiring: &Wiring<'_>, laid: &LaidLinks) -> bool {
    let has_product = |one: &Laid| one.link.queue.bdp.is_some();
    wiring.events_have_products || laid.values().flat_map(BTreeMap::values).any(has_product)
}

/// Gives queues in bandwidth-delay products their bytes: only a path has a round trip.
fn measure(
    laid: &mut LaidLinks,
    links: &mut [LinkSpec],
    paths: &[PathPlan],
    mtu_bytes: u32,
) -> Result<(), String> {
    let trips = round_trips(links, paths);
    let numbers: HashMap<String, usize> =
        links.iter().enumerate().map(|(number, link)| (link.name.clone(), number)).collect();
    for one in laid.values_mut().flat_map(BTreeMap::values_mut) {
        let first = one.names.first().and_then(|name| numbers.get(name));
        one.round_trip = first.map_or(Duration::ZERO, |number| trips[*number]);
        if one.link.queue.bdp.is_some() {
            for name in &one.names {
                links[numbers[name]] = one.link.planned(name, mtu_bytes, one.round_trip)?;
            }
        }
    }
    Ok(())
}

/// For each link the delays of a path over it and of the way back; of several paths, the most. Radio channels have no delay
/// of their own.
pub fn round_trips(links: &[LinkSpec], paths: &[PathPlan]) -> Vec<Duration> {
    let crossed = |path: &PathPlan| -> Vec<usize> {
        let link = |hop: &Hop| if let Hop::Link(link) = hop { Some(*link) } else { None };
        path.hops.iter().filter_map(link).collect()
    };
    let takes: HashMap<(usize, usize), u64> = paths
        .iter()
        .map(|path| {
            let delays = crossed(path).into_iter().map(|link| links[link].delay.mean.as_ns());
            ((path.from, path.to), delays.sum())
        })
        .collect();
    let mut longest = vec![Duration::ZERO; links.len()];
    for path in paths {
        let back = takes.get(&(path.to, path.from)).copied().unwrap_or(0);
        let trip = Duration::from_ns(takes[&(path.from, path.to)] + back);
        for link in crossed(path) {
            longest[link] = longest[link].max(trip);
        }
    }
    longest
}

/// What the plan's links follow; its place 0 is so long after publishing begins. Links of one trace follow one.
fn planned_traces(laid: &LaidLinks, before: Duration) -> Vec<TraceSpec> {
    let mut following: Vec<(&Trace, After, Vec<String>)> = Vec::new();
    for one in laid.values().flat_map(BTreeMap::values) {
        let Some(trace) = &one.link.trace else { continue };
        let end = one.link.trace_end.unwrap_or(After::Loop);
        match following.iter_mut().find(|(other, after, _)| *other == trace && *after == end) {
            Some((_, _, names)) => names.extend(one.names.iter().cloned()),
            None => following.push((trace, end, one.names.clone())),
        }
    }
    following.into_iter().map(|(trace, end, names)| trace.planned(names, before, end)).collect()
}

/// A network in words, for the report.
fn described(network: &NetworkBetween) -> String {
    let Some(model) = network.named() else { return network.between.join(" – ") };
    let adjusted = if network.up.is_some() || network.down.is_some() { ", adjusted" } else { "" };
    format!("{}, {}{adjusted}", model.title, network.placement.unwrap_or(model.placement).word())
}

/// The networks on the way from each host to a server's.
#[derive(Debug)]
pub struct Crossed {
    joints: Vec<Joint>,
    way: Way,
    /// Networks before those of the scenario: the trunk.
    before: usize,
}

impl Crossed {
    /// The ways to the host of a server.
    pub fn new(wiring: &Wiring<'_>, server: &str) -> Crossed {
        let joints = joints(wiring, server);
        let way = towards(server, &joints, &forwarding(wiring));
        Crossed { before: joints.len() - wiring.networks.len(), joints, way }
    }

    /// How many networks each host is away; hosts without a way are left out.
    pub fn lengths(&self) -> HashMap<String, usize> {
        self.way.lengths(&self.joints)
    }

    /// The networks from a host on, and whether the way leaves them by their second host.
    pub fn of(&self, host: &str) -> Vec<(NetworkNumber, bool)> {
        let (mut found, mut name) = (Vec::new(), host.to_owned());
        while let Some(Some(number)) = self.way.first.get(&name) {
            let joint = &self.joints[*number];
            let network = match number.checked_sub(self.before) {
                Some(index) => NetworkNumber::Between(index),
                None => NetworkNumber::Trunk,
            };
            found.push((network, (name == joint.far) != joint.is_flipped));
            name = joint.other(&name).to_owned();
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use mqttlab_fields::{Field, Reader, Rule};

    use super::*;
    use crate::document;

    fn networks(text: &str) -> Vec<NetworkBetween> {
        let tree = document::parse(text).expect("a test's TOML");
        let node = tree.as_table().and_then(|table| table.get("networks")).expect("it has networks");
        <Vec<NetworkBetween> as Field>::Rule::read(node, &mut Reader::default()).expect("they are right")
    }

    fn wired(networks: &[NetworkBetween], hosts: &PlannedHosts, forwarding: &[&str]) -> Network {
        let forwarding = forwarding.iter().map(|name| (*name).to_owned()).collect();
        let wiring = Wiring {
            kind: NetworkKind::Emulated,
            networks,
            trunk: None,
            radio: None,
            forwarding: &forwarding,
            servers: &["broker".into()],
            mtu_bytes: 1500,
            events_have_products: false,
        };
        network(&wiring, hosts, Duration::ZERO).expect("it can be laid").0
    }

    #[test]
    fn each_client_has_links_of_its_own_and_the_first_host_is_the_far_one() {
        let networks = networks(
            "[[networks]]\nbetween = [\"broker\", \"field\"]\nlink = \"each\"\nup = { delay = \"1 ms\" }\n\
             down = { delay = \"2 ms\" }",
        );
        let hosts = PlannedHosts::new([("broker", 1), ("field", 2)]);
        let network = wired(&networks, &hosts, &[]);
        let names: Vec<_> = network.links.iter().map(|link| link.name.as_str()).collect();
        assert_eq!(names, ["field-0/up", "field-0/down", "field-1/up", "field-1/down"]);
        // `up` of the scenario leads from the broker.
        assert_eq!(network.links[0].delay.mean, Duration::from_ms(2));
        assert_eq!((network.paths[0].from, network.paths[0].to), (1, 0));
        assert_eq!(network.paths[2].hops, [Hop::Link(2)]);
        assert_eq!(network.description, "broker – field");
    }

    #[test]
    fn frames_cross_hosts_that_forward_and_a_queue_has_the_longest_round_trip() {
        let networks = networks(
            "[[networks]]\nbetween = [\"field\", \"router\"]\nup = { rate = \"8 Mbit/s\", delay = \"10 ms\", queue = \"1 \
             BDP\" }\ndown = { delay = \"10 ms\" }\n[[networks]]\nbetween = [\"router\", \"broker\"]\nup = { delay = \
             \"5 ms\" }\ndown = { delay = \"5 ms\" }",
        );
        let hosts = PlannedHosts::new([("broker", 1), ("field", 1)]);
        let network = wired(&networks, &hosts, &["router"]);
        assert_eq!(network.paths[0].hops, [Hop::Link(0), Hop::Link(2)]);
        assert_eq!(network.paths[1].hops, [Hop::Link(3), Hop::Link(1)]);
        // 30 ms at 8 Mbit/s.
        assert_eq!(network.links[0].queue.limit_bytes, Some(30_000));
    }
}
