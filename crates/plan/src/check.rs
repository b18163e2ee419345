//! The rules a plan must keep beyond its syntax.
//!
//! The Python package has refused a user's mistakes long before, with the scenario's own places; this is the
//! engine's last look, so that nothing starts that cannot run.

use std::collections::{BTreeMap, BTreeSet};

use mqttlab_mqtt::topic::share;
use mqttlab_mqttsn::encode;
use mqttlab_net::radio::MediumSpec;
use mqttlab_units::Duration;

use crate::error::{PlanError, require};
use crate::lookup::Lookup;
use crate::{
    Backend, Endpoint, Group, Hop, NetworkKind, Plan, Role, SCHEMA, Server, Subscription, Transport, bounds,
    events, limits, stages,
};

pub(crate) fn check(plan: &Plan) -> Result<(), PlanError> {
    require(plan.schema == SCHEMA, "schema", || format!("is {}, but must be {SCHEMA}", plan.schema))?;
    require(!plan.hosts.is_empty(), "hosts", || "is empty, but a run needs a host".into())?;
    require(!plan.groups.is_empty(), "groups", || "is empty, but a run needs clients".into())?;
    require(!plan.phases.duration.is_zero(), "phases.duration_ns", || "is 0, but must be positive".into())?;
    bounds::check(plan)?;
    stages::check(plan)?;
    check_parts(plan)?;
    check_summary(plan)?;
    let lookup = Lookup::of(plan);
    check_servers(plan, &lookup)?;
    check_media(plan)?;
    check_link_names(plan)?;
    check_paths(plan)?;
    check_nats(plan)?;
    for (index, group) in plan.groups.iter().enumerate() {
        check_group(plan, &lookup, group, &format!("groups[{index}]"))?;
    }
    limits::check(plan)?;
    events::check(plan)
}

/// Parts of a run share nothing but servers that are there already.
fn check_parts(plan: &Plan) -> Result<(), PlanError> {
    let parts = plan.live.parts;
    if parts == 1 || plan.backend == Backend::Sim {
        return Ok(());
    }
    require(plan.network.kind == NetworkKind::External, "live.parts", || {
        format!(
            "is {parts}, but only a run on an external network can be split: each part is a machine of its own"
        )
    })?;
    let is_program = plan.groups.iter().position(|group| group.program.is_some());
    require(is_program.is_none(), "live.parts", || {
        format!("is {parts}, but the clients of groups[{}] are programs", is_program.unwrap_or_default())
    })?;
    let small = plan
        .groups
        .iter()
        .position(|group| group.contents().any(|publish| publish.payload.least().0 < IDENTITY_BYTES));
    require(small.is_none(), "live.parts", || {
        format!(
            "is {parts}, but the payloads of groups[{}] have no room for what tells messages apart ({IDENTITY_BYTES} B)",
            small.unwrap_or_default()
        )
    })
}

fn check_servers(plan: &Plan, lookup: &Lookup) -> Result<(), PlanError> {
    let mut seen = BTreeSet::new();
    let mut listening: BTreeMap<Endpoint, &str> = BTreeMap::new();
    for (index, server) in plan.servers.iter().enumerate() {
        let place = format!("servers[{index}]");
        host_exists(plan, server.host, &format!("{place}.host"))?;
        require(seen.insert(server.name.as_str()), &format!("{place}.name"), || {
            format!("is {:?}, which is the name of another server", server.name)
        })?;
        for (number, endpoint) in server.endpoints.iter().enumerate() {
            let taken = listening.get(endpoint);
            require(taken.is_none(), &format!("{place}.endpoints[{number}]"), || {
                let other = taken.copied().unwrap_or_default();
                format!("is {}, where `{other}` listens already", endpoint.socket_address())
            })?;
        }
        listening.extend(server.endpoints.iter().map(|endpoint| (*endpoint, server.name.as_str())));
        if let Some(gateway) = server.gateway() {
            let broker = plan.servers.get(gateway.broker).and_then(Server::broker);
            require(broker.is_some(), &format!("{place}.role.gateway.broker"), || {
                format!("is {}, which is the number of no broker", gateway.broker)
            })?;
        }
        check_role(plan, server, &format!("{place}.role"))?;
    }
    for (index, server) in plan.servers.iter().enumerate() {
        check_passing_on(plan, lookup, server, &format!("servers[{index}].role.proxy.to"))?;
    }
    Ok(())
}

/// What the simulator has no model of, it cannot run.
fn check_role(plan: &Plan, server: &Server, place: &str) -> Result<(), PlanError> {
    if plan.backend == Backend::Live {
        return Ok(());
    }
    let leads_nowhere = matches!(server.role, Role::Proxy(_)) && server.passes_to().is_none();
    require(!leads_nowhere, &format!("{place}.proxy.to"), || {
        "is null, but a simulated proxy must know which server it passes packets on to".into()
    })
}

/// A proxy passes packets on to another server that it can reach, and in the end to one that keeps them.
fn check_passing_on(plan: &Plan, lookup: &Lookup, server: &Server, place: &str) -> Result<(), PlanError> {
    let (mut next, mut passed) = (server.passes_to(), 0);
    while let Some(to) = next {
        require(to < plan.servers.len(), place, || {
            format!("is server {to}, but there are {} servers", plan.servers.len())
        })?;
        passed += 1;
        require(passed <= plan.servers.len(), place, || {
            format!("leads from `{}` through `{}` in a circle", server.name, plan.servers[to].name)
        })?;
        next = plan.servers[to].passes_to();
    }
    let Some(to) = server.passes_to() else { return Ok(()) };
    let there = &plan.servers[to];
    require(lookup.has_route(server.host, there.host), place, || {
        let [from, to] = [server.host, there.host].map(|host| &plan.hosts[host].name);
        format!("names `{}`, but no path leads from `{from}` to `{to}` and back", there.name)
    })
}

/// A link's random streams, its rows and its capture are called by its name.
fn check_link_names(plan: &Plan) -> Result<(), PlanError> {
    let mut seen = BTreeSet::new();
    let links = plan.network.links.iter().map(|link| ("links", &link.name)).enumerate();
    let media = plan.network.media.iter().map(|medium| ("media", &medium.name)).enumerate();
    for (index, (kind, name)) in links.chain(media) {
        require(seen.insert(name), &format!("network.{kind}[{index}].name"), || {
            format!("is {name:?}, which is the name of another link or medium")
        })?;
    }
    Ok(())
}

fn check_paths(plan: &Plan) -> Result<(), PlanError> {
    for (index, path) in plan.network.paths.iter().enumerate() {
        let place = format!("network.paths[{index}]");
        host_exists(plan, path.from, &place)?;
        host_exists(plan, path.to, &place)?;
        for hop in &path.hops {
            check_hop(plan, *hop, &place)?;
        }
    }
    Ok(())
}

/// A translator stands between links, and knows no datagrams.
fn check_nats(plan: &Plan) -> Result<(), PlanError> {
    let links: BTreeSet<&String> = plan.network.links.iter().map(|link| &link.name).collect();
    for (index, nat) in plan.network.nats.iter().enumerate() {
        let place = format!("network.nats[{index}]");
        for (field, names) in [("outward", &nat.outward), ("inward", &nat.inward)] {
            require(!names.is_empty(), &format!("{place}.{field}"), || "names no link".into())?;
            for name in names {
                require(links.contains(name), &format!("{place}.{field}"), || {
                    format!("names the link {name:?}, which is not there")
                })?;
            }
        }
        require(nat.timeout > Duration::ZERO, &format!("{place}.timeout_ns"), || "is 0".into())?;
    }
    Ok(())
}

fn check_hop(plan: &Plan, hop: Hop, place: &str) -> Result<(), PlanError> {
    match hop {
        Hop::Link(link) => require(link < plan.network.links.len(), place, || {
            format!("names link {link}, but there are {} links", plan.network.links.len())
        }),
        Hop::Radio { medium, from, to } => {
            let stations = plan.network.media.get(medium).map(MediumSpec::stations);
            require(stations.is_some(), place, || {
                format!("names medium {medium}, but there are {} media", plan.network.media.len())
            })?;
            require(stations.is_some_and(|stations| from.max(to) < stations), place, || {
                format!(
                    "goes from station {from} to {to} of medium {medium}, which has {}",
                    stations.unwrap_or(0)
                )
            })?;
            require(from != to, place, || format!("goes from station {from} of medium {medium} to itself"))
        }
    }
}

fn check_media(plan: &Plan) -> Result<(), PlanError> {
    for (index, medium) in plan.network.media.iter().enumerate() {
        medium.check().map_err(|error| PlanError::Value {
            place: format!("network.media[{index}].{}", error.field),
            problem: error.problem,
        })?;
    }
    Ok(())
}

fn check_group(plan: &Plan, lookup: &Lookup, group: &Group, place: &str) -> Result<(), PlanError> {
    require(group.count > 0, &format!("{place}.count"), || "is 0, but must be at least 1".into())?;
    require(group.hosts_in_turn != Some(0), &format!("{place}.hosts_in_turn"), || {
        "is 0, but must be at least 1".into()
    })?;
    let hosts = group.host_count();
    let last = group.host_step.checked_mul(hosts as usize - 1).and_then(|all| all.checked_add(group.host));
    host_exists(plan, last.unwrap_or(usize::MAX), &format!("{place}.host"))?;
    require(group.connects_to < plan.servers.len(), &format!("{place}.connects_to"), || {
        let last = plan.servers.len() - 1;
        format!("is server {}, but the last one is {last} (`{}`)", group.connects_to, plan.servers[last].name)
    })?;
    check_protocol(plan, group, place)?;
    for host in (0..hosts).map(|client| group.host_of(client)) {
        check_route(plan, lookup, host, plan.server_of(group).host, place)?;
    }
    for subscription in &group.subscriptions {
        qos(subscription.qos, &format!("{place}.subscriptions"))?;
        let is_v5 = group.mqtt().is_some_and(|mqtt| mqtt.version == crate::ProtocolVersion::V5);
        require(subscription.retain_handling.is_none() || is_v5, &format!("{place}.subscriptions"), || {
            "has `retain_handling`, which only MQTT 5 can say".into()
        })?;
        require(!subscription.retain_as_published || is_v5, &format!("{place}.subscriptions"), || {
            "has `retain_as_published`, which only MQTT 5 can say".into()
        })?;
        check_no_local(plan, group, subscription, &format!("{place}.subscriptions"))?;
    }
    if let Some(relay) = &group.relay {
        qos(relay.qos, &format!("{place}.relay.qos"))?;
    }
    check_program(plan, lookup, group, place)?;
    for (index, publish) in group.contents().enumerate() {
        let place = content_place(group, index, place);
        qos(publish.qos, &format!("{place}.qos"))?;
        require(publish.topics > 0, &format!("{place}.topics"), || "is 0, but must be at least 1".into())?;
    }
    Ok(())
}

/// Whoever gets a copy by a relay gets it from the relay, whoever published the message.
fn check_no_local(
    plan: &Plan,
    group: &Group,
    subscription: &Subscription,
    place: &str,
) -> Result<(), PlanError> {
    if !subscription.no_local {
        return Ok(());
    }
    let is_v5 = group.mqtt().is_some_and(|mqtt| mqtt.version == crate::ProtocolVersion::V5);
    require(is_v5, place, || "has `no_local`, which only MQTT 5 can say".into())?;
    require(share(&subscription.filter.0).is_none(), place, || {
        "has `no_local` on a shared subscription, which is a protocol error [MQTT-3.8.3-4]".into()
    })?;
    let relay =
        plan.groups.iter().find(|other| other.relay.is_some() && plan.serving(other) == plan.serving(group));
    require(relay.is_none(), place, || {
        format!(
            "has `no_local`, but `{}` relays: of its copies nobody knows who should have them",
            relay.map_or("", |relay| &relay.name)
        )
    })
}

/// Where the plan has what messages may be, by its number.
fn content_place(group: &Group, index: usize, place: &str) -> String {
    match index.checked_sub(group.publications.len()) {
        None => format!("{place}.publications[{index}]"),
        Some(changed) => format!("{place}.changed_publications[{changed}].publish"),
    }
}

/// Rows that are gone when the run ends can be in no capture, and cannot change their phase; and those of several engines are
/// joined at the end.
fn check_summary(plan: &Plan) -> Result<(), PlanError> {
    let recording = &plan.recording;
    let place = "recording.summary";
    if recording.summary.is_none() {
        return Ok(());
    }
    require(!recording.packets && !recording.pcapng && !recording.payloads, place, || {
        "keeps sums of messages, without frames and payloads; leave out `packets`, `pcapng` and `payloads`"
            .into()
    })?;
    require(plan.backend != Backend::Sim || !plan.sim.detect_transient, place, || {
        "keeps sums by phase, but `sim.detect_transient` finds out afterwards when the measurement began; leave one of \
         them out"
            .into()
    })?;
    require(plan.live.parts == 1, place, || {
        format!("keeps sums of one engine's rows, but `live.parts` is {}; use 1", plan.live.parts)
    })
}

/// A program is a real one, does as it likes, and is observed by recorded frames.
fn check_program(plan: &Plan, lookup: &Lookup, group: &Group, place: &str) -> Result<(), PlanError> {
    let Some(program) = &group.program else { return Ok(()) };
    let place = &format!("{place}.program");
    require(plan.backend == Backend::Live, place, || {
        "is a program, which cannot be simulated; use `backend = \"live\"`, or `publications` and `subscriptions`"
            .into()
    })?;
    require(plan.network.kind == NetworkKind::Emulated && plan.recording.packets, place, || {
        "is observed by recorded frames; use an emulated network, and `recording.packets`".into()
    })?;
    let brokers = lookup.brokers();
    require(brokers == 1, place, || {
        format!(
            "is observed by the topics of its messages, which {brokers} brokers would have apart; use one broker"
        )
    })?;
    require(!program.command.is_empty(), &format!("{place}.command"), || {
        "is empty, but must name a program".into()
    })?;
    let does_nothing_else =
        group.publications.is_empty() && group.subscriptions.is_empty() && group.relay.is_none();
    require(does_nothing_else, place, || {
        "publishes and subscribes by itself; leave `publications`, `subscriptions` and `relay` out".into()
    })?;
    require(group.count <= PROGRAMS_MAX, &format!("{place}.count"), || {
        format!("is {}, but at most {PROGRAMS_MAX} processes perform a group", group.count)
    })
}

/// Certificates are made for a run, by the engine that starts its servers; of a server that runs elsewhere somebody vouches.
fn check_tls(plan: &Plan, group: &Group, place: &str) -> Result<(), PlanError> {
    if group.tls().is_none() || plan.backend != Backend::Live {
        return Ok(());
    }
    let (place, server) = (&format!("{place}.transport.tcp.tls"), plan.server_of(group));
    if server.trust.is_some() {
        let shows = group.tls().is_some_and(|tls| tls.client_certificate);
        return require(!shows, &format!("{place}.client_certificate"), || {
            format!("is set, but `{}` runs elsewhere and does not know this run's certificates", server.name)
        });
    }
    require(server.process.is_some(), place, || {
        format!("is set, but `{}` runs elsewhere, and `trust` does not say who vouches for it", server.name)
    })?;
    require(plan.live.parts <= 1, place, || {
        "is set, but the parts of a run would not know each other's certificates; use one part".into()
    })
}

/// A protocol is spoken over its transport, and to a server that knows it.
fn check_protocol(plan: &Plan, group: &Group, place: &str) -> Result<(), PlanError> {
    let server = plan.server_of(group);
    let speaks_sn = group.mqtt_sn().is_some();
    check_zeromq(server, group, place)?;
    require(speaks_sn == (group.transport == Transport::Udp), &format!("{place}.transport"), || {
        "does not carry the group's protocol: MQTT-SN goes over UDP, MQTT and ZeroMQ over TCP".into()
    })?;
    require(
        group.layers().is_bare() || server.broker().is_some(),
        &format!("{place}.transport.tcp"),
        || format!("has layers above TCP, but `{}` is no broker, and others have none", server.name),
    )?;
    check_tls(plan, group, place)?;
    require(speaks_sn == server.gateway().is_some(), &format!("{place}.connects_to"), || {
        format!("is `{}`, but MQTT-SN clients connect to gateways, and others do not", server.name)
    })?;
    require(server.endpoint_for(&group.transport).is_some(), &format!("{place}.transport"), || {
        format!("asks for an endpoint that `{}` does not have", server.name)
    })?;
    let Some(mqtt_sn) = group.mqtt_sn() else { return Ok(()) };
    require(group.relay.is_none(), &format!("{place}.relay"), || "is not possible with MQTT-SN".into())?;
    if mqtt_sn.without_connection {
        let publishes = !group.publications.is_empty() && group.publish_qos() == 0;
        require(publishes && group.subscriptions.is_empty(), &format!("{place}.protocol.mqtt_sn"), || {
            "is without a connection, so that it must publish at QoS 0 and subscribe to nothing".into()
        })?;
    }
    check_datagrams(plan, group, place)
}

/// A datagram has room for a message, and for a topic's name.
fn check_datagrams(plan: &Plan, group: &Group, place: &str) -> Result<(), PlanError> {
    let room = encode::payload_max((plan.network.mtu_bytes as usize).saturating_sub(IP_AND_UDP_BYTES));
    for (index, publish) in group.contents().enumerate() {
        let payload = publish.payload.most(group.count).0 as usize;
        require(payload <= room, &format!("{}.payload", content_place(group, index, place)), || {
            format!(
                "has {payload} B, but a datagram of this MTU has room for {room} B, and MQTT-SN does not fragment"
            )
        })?;
    }
    let last = group.count.saturating_sub(1);
    let publish = group
        .publications
        .iter()
        .enumerate()
        .map(|(index, publish)| (format!("publications[{index}].topic"), &publish.topic, publish.topics));
    let filters =
        group.subscriptions.iter().map(|subscription| ("subscriptions".into(), &subscription.filter, 1));
    for (field, name, topics) in publish.chain(filters) {
        // REGISTER and SUBSCRIBE have no more room for a name than PUBLISH for a message.
        let bytes = name.fill(&group.name, last, topics.saturating_sub(1)).len();
        require(bytes <= room, &format!("{place}.{field}"), || {
            format!("has {bytes} B, but a datagram of this MTU has room for a name of {room} B")
        })?;
    }
    Ok(())
}

/// A socket of ZeroMQ publishes or subscribes, and knows neither acknowledgements nor wild cards.
fn check_zeromq(server: &Server, group: &Group, place: &str) -> Result<(), PlanError> {
    require(group.zeromq().is_some() == server.zeromq().is_some(), &format!("{place}.connects_to"), || {
        format!("is `{}`, but ZeroMQ clients connect to proxies of ZeroMQ, and others do not", server.name)
    })?;
    if group.zeromq().is_none() {
        return Ok(());
    }
    let does = [!group.publications.is_empty(), !group.subscriptions.is_empty()];
    require(group.relay.is_none() && does != [true, true], place, || {
        "publishes and subscribes, but a socket of ZeroMQ does one of these".into()
    })?;
    for (index, publish) in group.contents().enumerate() {
        require(publish.qos == 0 && !publish.retain, &content_place(group, index, place), || {
            "has a QoS above 0 or is retained, which ZeroMQ does not know".into()
        })?;
    }
    for (index, subscription) in group.subscriptions.iter().enumerate() {
        let filter = &subscription.filter.0;
        let wild = filter.contains('+') || filter.starts_with("$share/");
        require(subscription.qos == 0 && !wild, &format!("{place}.subscriptions[{index}]"), || {
            format!("is {filter:?} at QoS {}, but a subscription of ZeroMQ is a prefix", subscription.qos)
        })?;
    }
    Ok(())
}

/// On an emulated network every client host needs a way to its server and back.
fn check_route(
    plan: &Plan,
    lookup: &Lookup,
    host: usize,
    server: usize,
    place: &str,
) -> Result<(), PlanError> {
    require(lookup.has_route(host, server), &format!("{place}.host"), || {
        format!(
            "is `{}`, which has no path to its server's host `{}`",
            plan.hosts[host].name, plan.hosts[server].name
        )
    })
}

fn host_exists(plan: &Plan, host: usize, place: &str) -> Result<(), PlanError> {
    require(host < plan.hosts.len(), place, || {
        let last = plan.hosts.len() - 1;
        format!("is host {host}, but there are {} hosts; the last one is {last}", plan.hosts.len())
    })
}

fn qos(level: u8, place: &str) -> Result<(), PlanError> {
    require(level <= 2, place, || format!("is QoS {level}, but must be 0, 1 or 2"))
}

/// A process, its init and a thread each.
const PROGRAMS_MAX: u32 = 1_000;

/// What a payload says of its message at least: publisher and number.
const IDENTITY_BYTES: u64 = 9;
/// Headers without options.
const IP_AND_UDP_BYTES: usize = 28;
