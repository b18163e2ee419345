//! The bounds of a plan: what lies beyond no experiment needs, and 64 bits of nanoseconds or a machine's memory do not
//! hold.
//!
//! | what | bound |
//! |---|---|
//! | a length of time | 366 days |
//! | a link's delay and jitter, CoDel's target and interval, a service time, a TCP timer | 1 h (the longest retransmission timeout: 24 h) |
//! | hosts; links; media; servers | 65,535; 65,000; 100; 1,000 |
//! | publications of a client; stages of a rate; user properties of a message | 16; 1,000; 100 |
//! | clients; topics (clients × topics); subscriptions (clients × filters) | 1,000,000; 5,000,000; 5,000,000 |
//! | events | 100,000 |
//! | stages of a run; the name of one | 100; 40 B |
//! | traces; rows of a trace | 1,000; 1,000,000 |
//! | a message's payload; an MQTT string | 10 MB; 60,000 B as a pattern |
//! | a table that is replayed | 1,000,000 messages, 1 GB |
//! | a template | 1,000 parts, a part of 1 MB, its identity within the first 1,024 B |
//! | a socket's buffer | 64 MiB |
//! | parts of a run | 64 |
//! | a host's share of a processor; its memory; its disk's rate | 1 % to 100 %; 1 MiB to 1 TiB; 1 kB/s to 100 GB/s |
//! | MTU | 576 to 65,535 B |
//! | between two messages of a publication | 1 us at least |
//!
//! Scenarios have the same bounds (`python/mqttlab/quantity.py`, `scenario/check.py`), with words for people.

use std::collections::BTreeSet;
use std::path::{Component, Path};

use mqttlab_fields::{Broken, Limit, Part};
use mqttlab_mqtt::topic;
use mqttlab_net::radio::{DutySpec, InterfererSpec, MediumSpec, MobilitySpec, PlacementSpec, Position};
use mqttlab_net::{Discipline, LinkSpec, TraceCourse};
use mqttlab_tcp::Bound;
use mqttlab_units::Duration;

use crate::error::{PlanError, require};
use crate::{
    Arrival, Backend, Churn, GatewayRole, Group, Hop, MessageProperties, MqttPlan, MqttSnPlan, Network,
    Payload, PictureFormat, Plan, PredefinedTopic, Protocol, ProtocolVersion, Publish, Replay, RetryPlan,
    Role, Server, TemplatePart, Text, TopicPattern, Will,
};

pub(crate) fn check(plan: &Plan) -> Result<(), PlanError> {
    declared(&plan.phases, "phases")?;
    declared(&plan.recording, "recording")?;
    declared(&plan.live, "live")?;
    declared(&plan.sim, "sim")?;
    if let Some(summary) = &plan.recording.summary {
        within(summary.fold_bytes, 1, 1 << 30, "recording.summary.fold_bytes")?;
        within(summary.rows_most, 1, 10_000_000, "recording.summary.rows_most")?;
    }
    hosts(plan)?;
    network(plan)?;
    within(plan.servers.len() as u64, 1, 1_000, "servers")?;
    for (index, one) in plan.servers.iter().enumerate() {
        server(one, &format!("servers[{index}]"))?;
    }
    totals(plan)?;
    for (index, one) in plan.groups.iter().enumerate() {
        group(one, &format!("groups[{index}]"))?;
    }
    Ok(())
}

fn hosts(plan: &Plan) -> Result<(), PlanError> {
    within(plan.hosts.len() as u64, 1, 65_535, "hosts")?;
    let mut addresses = BTreeSet::new();
    for (index, host) in plan.hosts.iter().enumerate() {
        require(addresses.insert(host.address), &format!("hosts[{index}].address"), || {
            format!("is {}, which is another host's address; use another address", host.address)
        })?;
        let place = format!("hosts[{index}].tcp");
        declared(&host.tcp, &place)?;
        within(host.tcp.rto_max.as_ns(), host.tcp.rto_min.as_ns(), u64::MAX, &format!("{place}.rto_max_ns"))?;
        let stack = &host.tcp.profile;
        let known = plan.backend == Backend::Live || plan.sim.tcp_stacks.contains_key(stack);
        require(known, &format!("hosts[{index}].tcp.profile"), || {
            let names: Vec<&str> = plan.sim.tcp_stacks.keys().map(String::as_str).collect();
            format!("is `{stack}`, an unknown TCP stack; `sim.tcp_stacks` has: {}", names.join(", "))
        })?;
    }
    for (name, stack) in &plan.sim.tcp_stacks {
        tcp(stack.bounds(), &format!("sim.tcp_stacks.{name}"))?;
    }
    Ok(())
}

fn server(server: &Server, place: &str) -> Result<(), PlanError> {
    within(server.name.len() as u64, 1, NAME_BYTES_MAX as u64, &format!("{place}.name"))?;
    // Its log is called so.
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
    require(
        server.name.chars().all(is_plain) && !server.name.starts_with('.'),
        &format!("{place}.name"),
        || format!("is {:?}, but must consist of letters, digits, `_`, `.` and `-`", server.name),
    )?;
    within(server.endpoints.len() as u64, 1, 16, &format!("{place}.endpoints"))?;
    for (index, endpoint) in server.endpoints.iter().enumerate() {
        within(endpoint.port.into(), 1, 65_535, &format!("{place}.endpoints[{index}].port"))?;
    }
    let (role, service) = server.service();
    at_most(service.per_packet, HOUR, &format!("{place}.role.{role}.service.per_packet_ns"))?;
    at_most(service.per_copy, HOUR, &format!("{place}.role.{role}.service.per_copy_ns"))?;
    if let Role::Broker(broker) = &server.role {
        retries(broker.settings.retry, &format!("{place}.role.broker.settings"))?;
    }
    if let Role::ZeroMq(_) = &server.role {
        within(server.endpoints.len() as u64, 2, 2, &format!("{place}.endpoints"))?;
    }
    if let Role::Gateway(role) = &server.role {
        gateway(role, &format!("{place}.role.gateway"))?;
    }
    let Some(process) = &server.process else { return Ok(()) };
    at_most(process.start_timeout, HOUR, &format!("{place}.process.start_timeout_ns"))?;
    within(process.command.len() as u64, 1, 10_000, &format!("{place}.process.command"))?;
    for (index, file) in process.files.iter().enumerate() {
        // Files stay below the scratch directory.
        let is_below = Path::new(&file.path).components().all(|part| matches!(part, Component::Normal(_)));
        require(is_below && !file.path.is_empty(), &format!("{place}.process.files[{index}].path"), || {
            format!("is {:?}, but must be a path below the server's directory, without `..`", file.path)
        })?;
    }
    Ok(())
}

/// What a type declares of its fields holds.
pub(crate) fn declared(part: &impl Part, place: &str) -> Result<(), PlanError> {
    let Some(Broken { place: below, amount, limit }) = part.broken() else { return Ok(()) };
    let problem = match limit {
        Limit::Least(least) => format!("is {amount}, but must be {least} or more"),
        Limit::Most(most) => format!("is {amount}, but must be {most} or less"),
        Limit::Below(below) => format!("is {amount}, but must be less than {below}"),
    };
    Err(PlanError::Value { place: format!("{place}.{below}"), problem })
}

/// Numbers of a TCP stack lie within the bounds that its own crate says.
fn tcp(bounds: impl Iterator<Item = Bound>, place: &str) -> Result<(), PlanError> {
    for (field, value, least, greatest) in bounds {
        within(value, least, greatest, &format!("{place}.{field}"))?;
    }
    Ok(())
}

fn network(plan: &Plan) -> Result<(), PlanError> {
    let network = &plan.network;
    within(network.mtu_bytes.into(), 576, 65_535, "network.mtu_bytes")?;
    within(network.links.len() as u64, 0, 65_000, "network.links")?;
    within(network.media.len() as u64, 0, 100, "network.media")?;
    for (index, spec) in network.links.iter().enumerate() {
        link(spec, network.mtu_bytes, &format!("network.links[{index}]"))?;
    }
    traces(network)?;
    for (index, spec) in network.media.iter().enumerate() {
        medium(spec, &format!("network.media[{index}]"))?;
    }
    for (index, path) in network.paths.iter().enumerate() {
        within(path.hops.len() as u64, 0, 16, &format!("network.paths[{index}].hops"))?;
        // Each stage of a path has a queue and a random stream of its own; once is enough.
        let crossed: BTreeSet<String> = path.hops.iter().map(|hop: &Hop| format!("{hop:?}")).collect();
        require(crossed.len() == path.hops.len(), &format!("network.paths[{index}].hops"), || {
            "crosses one link or medium twice".into()
        })?;
    }
    Ok(())
}

pub(crate) fn link(link: &LinkSpec, mtu_bytes: u32, place: &str) -> Result<(), PlanError> {
    declared(link, place)?;
    within(
        link.queue.limit_packets.unwrap_or(1).into(),
        1,
        u64::MAX,
        &format!("{place}.queue.limit_packets"),
    )?;
    let largest = u64::from(link.largest_frame_bytes(mtu_bytes));
    within(
        link.queue.limit_bytes.unwrap_or(largest),
        largest,
        u64::MAX,
        &format!("{place}.queue.limit_bytes"),
    )?;
    if let Some(policer) = &link.policer {
        // A larger frame than the burst could never pass.
        within(policer.burst_bytes, largest, u64::MAX, &format!("{place}.policer.burst_bytes"))?;
    }
    discipline(&link.queue.discipline, &format!("{place}.queue.discipline"))
}

fn discipline(discipline: &Discipline, place: &str) -> Result<(), PlanError> {
    let (target, interval, largest) = match *discipline {
        Discipline::TailDrop => return Ok(()),
        Discipline::Codel { target, interval, largest_frame_bytes, ecn: _ } => {
            (target, interval, largest_frame_bytes)
        }
        Discipline::FqCodel { target, interval, largest_frame_bytes, ecn: _, flows, quantum_bytes } => {
            within(flows.into(), 1, 65_536, &format!("{place}.flows"))?;
            within(quantum_bytes.into(), 64, 10_000_000, &format!("{place}.quantum_bytes"))?;
            (target, interval, largest_frame_bytes)
        }
    };
    within(interval.as_ns(), 1_000, HOUR.as_ns(), &format!("{place}.interval_ns"))?;
    within(target.as_ns(), 1_000, interval.as_ns(), &format!("{place}.target_ns"))?;
    within(largest.into(), 1, 10_000_000, &format!("{place}.largest_frame_bytes"))
}

/// Traces are whole, and a link follows one at most.
fn traces(network: &Network) -> Result<(), PlanError> {
    within(network.traces.len() as u64, 0, 1_000, "network.traces")?;
    let links: BTreeSet<&str> = network.links.iter().map(|link| link.name.as_str()).collect();
    let mut following = BTreeSet::new();
    for (index, trace) in network.traces.iter().enumerate() {
        let place = format!("network.traces[{index}]");
        within(trace.name.len() as u64, 1, NAME_BYTES_MAX as u64, &format!("{place}.name"))?;
        for name in &trace.links {
            require(links.contains(name.as_str()), &format!("{place}.links"), || {
                format!("has {name:?}, which is the name of no link")
            })?;
            require(following.insert(name), &format!("{place}.links"), || {
                format!("has {name:?}, which follows another trace, or is named twice")
            })?;
        }
        let rows = match &trace.course {
            TraceCourse::Opportunities { at_ms, .. } => at_ms.len(),
            TraceCourse::Values(values) => values.at.len(),
        };
        within(rows as u64, 1, TRACE_ROWS_MAX, &format!("{place}.course"))?;
        at_most(trace.period.unwrap_or_default(), LONGEST, &format!("{place}.period_ns"))?;
        trace
            .check()
            .map_err(|(field, problem)| PlanError::Value { place: format!("{place}.{field}"), problem })?;
    }
    Ok(())
}

fn medium(medium: &MediumSpec, place: &str) -> Result<(), PlanError> {
    let phy = &medium.phy;
    for (name, length) in [("preamble_ns", phy.preamble), ("slot_ns", phy.slot), ("sifs_ns", phy.sifs)] {
        at_most(length, Duration::from_s(1), &format!("{place}.phy.{name}"))?;
    }
    if let Some(channel) = &medium.channel {
        within(channel.mean_bad.as_ns(), 1_000, LONGEST.as_ns(), &format!("{place}.channel.mean_bad_ns"))?;
    }
    if let Some(fading) = &medium.radio.fading {
        let field = format!("{place}.radio.fading.coherence_ns");
        within(fading.coherence().as_ns(), 1_000, LONGEST.as_ns(), &field)?;
    }
    if let Some(distance) = medium.radio.shadowing.as_ref().and_then(|spec| spec.decorrelation_mm) {
        // A pair's recursion takes ten steps on this way.
        within(distance, 100, FAR_MM, &format!("{place}.radio.shadowing.decorrelation_mm"))?;
    }
    interferers(&medium.interferers, &format!("{place}.interferers"))?;
    let field = format!("{place}.placement");
    match &medium.placement {
        PlacementSpec::Explicit { positions } => {
            within(positions.len() as u64, 1, 65_535, &field)?;
            for place in positions {
                position(*place, &field)?;
            }
        }
        PlacementSpec::Grid { stations, spacing_mm } => {
            within(u64::from(*stations), 1, 65_535, &field)?;
            within(*spacing_mm, 0, FAR_MM, &field)?;
        }
        PlacementSpec::Random { stations, width_mm, height_mm } => {
            within(u64::from(*stations), 1, 65_535, &field)?;
            within(*width_mm.max(height_mm), 1, FAR_MM, &field)?;
            within(*width_mm.min(height_mm), 1, FAR_MM, &field)?;
        }
    }
    if let MobilitySpec::RandomWaypoint { width_mm, height_mm, speed_max_mm_s, pause, refresh, .. } =
        &medium.mobility
    {
        let field = format!("{place}.mobility");
        // In a smaller field a walk has more turns than a second has microseconds.
        within(*width_mm, 1_000, FAR_MM, &field)?;
        within(*height_mm, 1_000, FAR_MM, &field)?;
        within(*speed_max_mm_s, 1, 1_000_000, &field)?;
        at_most(*pause, LONGEST, &field)?;
        within(refresh.as_ns(), 1_000, LONGEST.as_ns(), &field)?;
    }
    Ok(())
}

pub(crate) fn position(position: Position, place: &str) -> Result<(), PlanError> {
    within(position.x_mm.unsigned_abs().max(position.y_mm.unsigned_abs()), 0, FAR_MM, place)
}

fn interferers(interferers: &[InterfererSpec], place: &str) -> Result<(), PlanError> {
    within(interferers.len() as u64, 0, 1_000, place)?;
    for (index, InterfererSpec { name, position: stands, duty, .. }) in interferers.iter().enumerate() {
        let field = format!("{place}[{index}]");
        within(name.len() as u64, 1, NAME_BYTES_MAX as u64, &format!("{field}.name"))?;
        position(*stands, &format!("{field}.position"))?;
        if let DutySpec::Regular { on, off } | DutySpec::Exponential { on, off } = duty {
            // Each turn is a visit to every station.
            within(on.as_ns(), 100_000, LONGEST.as_ns(), &format!("{field}.duty.on_ns"))?;
            within(off.as_ns(), 100_000, LONGEST.as_ns(), &format!("{field}.duty.off_ns"))?;
        }
    }
    Ok(())
}

/// What takes memory before anything starts.
fn totals(plan: &Plan) -> Result<(), PlanError> {
    let (mut clients, mut topics, mut filters) = (0_u64, 0_u64, 0_u64);
    for group in &plan.groups {
        let count = u64::from(group.count);
        let published: u64 = group.publications.iter().map(|publish| u64::from(publish.topics)).sum();
        clients += count;
        topics = topics.saturating_add(count.saturating_mul(published));
        filters = filters.saturating_add(count.saturating_mul(group.subscriptions.len() as u64));
        // Before anything walks over the clients.
        require(clients <= 1_000_000, "groups", || {
            format!("have {clients} clients, but must have at most 1000000")
        })?;
    }
    require(topics <= 5_000_000, "groups", || {
        format!("publish to {topics} topics (clients × topics), but may publish to at most 5000000")
    })?;
    require(filters <= 5_000_000, "groups", || {
        format!("have {filters} subscriptions (clients × filters), but may have at most 5000000")
    })
}

fn group(group: &Group, place: &str) -> Result<(), PlanError> {
    match &group.protocol {
        Protocol::Mqtt(mqtt) => session(mqtt, &format!("{place}.protocol.mqtt"))?,
        Protocol::MqttSn(mqtt_sn) => mqtt_sn_session(mqtt_sn, &format!("{place}.protocol.mqtt_sn"))?,
        Protocol::ZeroMq(zeromq) => text(&zeromq.client_id, &format!("{place}.protocol.zeromq.client_id"))?,
    }
    if let Some(websocket) = group.tcp().and_then(|tcp| tcp.websocket.as_ref()) {
        resource(&websocket.path, &format!("{place}.transport.tcp.websocket.path"))?;
    }
    within(group.name.len() as u64, 1, NAME_BYTES_MAX as u64, &format!("{place}.name"))?;
    let reconnect = &group.reconnect;
    for (name, length) in [
        ("reconnect.initial_ns", reconnect.initial),
        ("reconnect.maximum_ns", reconnect.maximum),
        ("reconnect.connect_timeout_ns", reconnect.connect_timeout),
        ("connect_over_ns", group.connect_over),
        ("late_after_ns", group.late_after.unwrap_or_default()),
    ] {
        at_most(length, LONGEST, &format!("{place}.{name}"))?;
    }
    within(reconnect.connect_timeout.as_ns(), 1, u64::MAX, &format!("{place}.reconnect.connect_timeout_ns"))?;
    if let Some(churn) = &group.churn {
        comes_and_goes(group, churn, &format!("{place}.churn"))?;
    }
    for (index, subscription) in group.subscriptions.iter().enumerate() {
        filter(&subscription.filter, &group.name, &format!("{place}.subscriptions[{index}].filter"))?;
    }
    if let Some(relay) = &group.relay {
        let place = format!("{place}.relay.topic_suffix");
        text(&relay.topic_suffix, &place)?;
        within(relay.topic_suffix.len() as u64, 1, 1_000, &place)?;
        require(topic::is_name(&relay.topic_suffix), &place, || "cannot be part of a topic".into())?;
    }
    within(group.publications.len() as u64, 0, PUBLICATIONS_MAX, &format!("{place}.publications"))?;
    for (index, publish) in group.publications.iter().enumerate() {
        published(group, publish, &format!("{place}.publications[{index}]"))?;
    }
    let contents = (group.publications.len() + group.changed_publications.len()) as u64;
    within(contents, 0, CONTENTS_MAX, &format!("{place}.changed_publications"))?;
    for (index, changed) in group.changed_publications.iter().enumerate() {
        let place = format!("{place}.changed_publications[{index}]");
        published(group, &changed.publish, &format!("{place}.publish"))?;
        let publish = group.publications.get(changed.publication);
        let same = |publish: &Publish| {
            (&publish.topic, publish.topics, publish.arrival)
                == (&changed.publish.topic, changed.publish.topics, changed.publish.arrival)
        };
        require(publish.is_some_and(same), &format!("{place}.publication"), || {
            format!("is {}, which is no publication of these topics and this arrival", changed.publication)
        })?;
    }
    Ok(())
}

/// Only MQTT closes a connection of a client that leaves, and messages without an instant are due whenever there is room.
fn comes_and_goes(group: &Group, churn: &Churn, place: &str) -> Result<(), PlanError> {
    within(churn.hold.as_ns(), MS, LONGEST.as_ns(), &format!("{place}.hold_ns"))?;
    within(churn.away.as_ns(), MS, LONGEST.as_ns(), &format!("{place}.away_ns"))?;
    let is_possible = group.mqtt().is_some() && group.program.is_none();
    require(is_possible, place, || "is only of clients of MQTT that the engine performs".into())?;
    let waits = group.publications.iter().any(|publish| publish.arrival == Arrival::BackToBack);
    require(!waits, place, || "does not go with back-to-back messages".into())
}

/// A topic filter once its places are filled in.
pub(crate) fn filter(pattern: &TopicPattern, group: &str, place: &str) -> Result<(), PlanError> {
    text(&pattern.0, place)?;
    let filled = pattern.fill(group, 0, 0);
    require(topic::is_filter(&filled), place, || format!("is {filled:?}, which is not a topic filter"))
}

fn session(mqtt: &MqttPlan, place: &str) -> Result<(), PlanError> {
    text(&mqtt.client_id, &format!("{place}.client_id"))?;
    text(mqtt.username.as_ref().map_or("", Text::as_str), &format!("{place}.username"))?;
    text(mqtt.password.as_ref().map_or("", Text::as_str), &format!("{place}.password"))?;
    within(mqtt.max_inflight.into(), 1, 65_535, &format!("{place}.max_inflight"))?;
    within(mqtt.receive_maximum.into(), 1, 65_535, &format!("{place}.receive_maximum"))?;
    retries(mqtt.retry, place)?;
    mqtt.will.as_ref().map_or(Ok(()), |one| will(one, place))
}

/// A resource of an HTTP request, which ends at the first blank (RFC 9112 §3).
fn resource(text: &Text, place: &str) -> Result<(), PlanError> {
    if text.is_secret() && text.as_str() == text.shown() {
        return Ok(());
    }
    let path = text.as_str();
    within(path.len() as u64, 1, 1_000, place)?;
    require(path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic()), place, || {
        format!("is {text:?}, but must begin with `/` and consist of printable ASCII without blanks")
    })
}

fn retries(retry: Option<RetryPlan>, place: &str) -> Result<(), PlanError> {
    let Some(retry) = retry else { return Ok(()) };
    within(retry.interval.as_ns(), MS, LONGEST.as_ns(), &format!("{place}.retry.interval_ns"))
}

fn mqtt_sn_session(mqtt_sn: &MqttSnPlan, place: &str) -> Result<(), PlanError> {
    text(&mqtt_sn.client_id, &format!("{place}.client_id"))?;
    within(mqtt_sn.retry.as_ns(), MS, HOUR.as_ns(), &format!("{place}.retry_ns"))?;
    within(mqtt_sn.retries.into(), 0, 1_000, &format!("{place}.retries"))?;
    within(mqtt_sn.wait.as_ns(), MS, HOUR.as_ns(), &format!("{place}.wait_ns"))?;
    predefined(&mqtt_sn.predefined_topics, &format!("{place}.predefined_topics"))?;
    if let Some(sleep) = &mqtt_sn.sleep {
        let longest = u64::from(sleep.duration_s) * 1_000_000_000;
        within(sleep.wake_every.as_ns(), MS, longest, &format!("{place}.sleep.wake_every_ns"))?;
        at_most(sleep.linger, HOUR, &format!("{place}.sleep.linger_ns"))?;
    }
    mqtt_sn.will.as_ref().map_or(Ok(()), |one| will(one, place))
}

fn predefined(topics: &[PredefinedTopic], place: &str) -> Result<(), PlanError> {
    let mut seen = BTreeSet::new();
    for (index, one) in topics.iter().enumerate() {
        let place = format!("{place}[{index}]");
        within(one.id.into(), 1, 0xfffe, &format!("{place}.id"))?;
        require(seen.insert(one.id), &format!("{place}.id"), || {
            format!("is {}, as another topic's", one.id)
        })?;
        text(&one.name, &format!("{place}.name"))?;
        require(topic::is_name(&one.name), &format!("{place}.name"), || {
            format!("is {:?}, which is not a topic", one.name)
        })?;
    }
    Ok(())
}

fn gateway(gateway: &GatewayRole, place: &str) -> Result<(), PlanError> {
    text(&gateway.client_id, &format!("{place}.client_id"))?;
    within(gateway.retry.as_ns(), MS, HOUR.as_ns(), &format!("{place}.retry_ns"))?;
    within(gateway.retries.into(), 0, 1_000, &format!("{place}.retries"))?;
    within(gateway.clients_max.into(), 1, 1_000_000, &format!("{place}.clients_max"))?;
    within(
        gateway.advertise.map_or(MS, Duration::as_ns),
        MS,
        LONGEST.as_ns(),
        &format!("{place}.advertise_ns"),
    )?;
    predefined(&gateway.predefined_topics, &format!("{place}.predefined_topics"))
}

fn will(will: &Will, place: &str) -> Result<(), PlanError> {
    text(&will.topic, &format!("{place}.will.topic"))?;
    require(topic::is_name(&will.topic), &format!("{place}.will.topic"), || {
        format!("is {:?}, which is not a topic", will.topic)
    })?;
    within(will.payload.len() as u64, 0, 65_535, &format!("{place}.will.payload"))?;
    within(will.qos.into(), 0, 2, &format!("{place}.will.qos"))
}

fn replayed(group: &Group, replay: &Replay, place: &str) -> Result<(), PlanError> {
    require(group.publications.len() == 1 && matches!(group.protocol, Protocol::Mqtt(_)), place, || {
        "is a table, but tables are replayed by MQTT clients that publish nothing else".into()
    })?;
    let delimiter = format!("{place}.delimiter");
    require(replay.delimiter.is_ascii(), &delimiter, || {
        format!("is {:?}, but must be ASCII", replay.delimiter)
    })?;
    within(replay.bytes, 0, TABLE_BYTES_MAX, &format!("{place}.bytes"))?;
    within(replay.rows, 1, TABLE_ROWS_MAX, &format!("{place}.rows"))?;
    within(replay.clients.len() as u64, 0, group.count.into(), &format!("{place}.clients"))?;
    within(replay.second_us, 1, 1_000_000_000, &format!("{place}.second_us"))?;
    within(replay.period_ns.unwrap_or(1), 1, LONGEST.as_ns(), &format!("{place}.period_ns"))
}

fn payload(payload: &Payload, clients: u32, place: &str) -> Result<(), PlanError> {
    let Payload::Template { parts, .. } = payload else {
        let least = match payload {
            Payload::Picture { format: PictureFormat::Jpeg, .. } => JPEG_MIN,
            Payload::Picture { format: PictureFormat::Png, .. } => PNG_MIN,
            _ => 0,
        };
        return within(payload.least().0, least, PAYLOAD_MAX, &format!("{place}.bytes"));
    };
    let parts_place = format!("{place}.parts");
    within(parts.len() as u64, 1, TEMPLATE_PARTS_MAX, &parts_place)?;
    for (index, part) in parts.iter().enumerate() {
        template_part(part, &format!("{parts_place}[{index}]"))?;
    }
    within(payload.most(clients).0, 0, PAYLOAD_MAX, &format!("{place}.bytes"))?;
    let identities = parts.iter().filter(|part| **part == TemplatePart::Identity).count();
    require(identities == 1, &parts_place, || format!("has {identities} identities, but must have one"))?;
    let before: Vec<_> = parts.iter().take_while(|part| **part != TemplatePart::Identity).cloned().collect();
    // Readers of payloads look no further.
    let before = Payload::Template { name: String::new(), parts: before, bytes: None }.most(clients);
    within(before.0, 0, IDENTITY_WITHIN, &format!("{parts_place}: bytes before the identity"))
}

fn template_part(part: &TemplatePart, place: &str) -> Result<(), PlanError> {
    match part {
        TemplatePart::Text { text } => within(text.len() as u64, 0, TEMPLATE_TEXT_MAX, place),
        TemplatePart::Client { width } | TemplatePart::Sequence { width } => {
            within(u64::from(*width), 0, 20, &format!("{place}.width"))
        }
        TemplatePart::Number { low, high, decimals } => {
            within(u64::from(*decimals), 0, 9, &format!("{place}.decimals"))?;
            require(low <= high, &format!("{place}.high"), || format!("is {high}, but `low` is {low}"))
        }
        TemplatePart::Hex { digits } => within(u64::from(*digits), 1, 100_000, &format!("{place}.digits")),
        TemplatePart::Choice { choices } => {
            within(choices.len() as u64, 1, TEMPLATE_PARTS_MAX, &format!("{place}.choices"))?;
            let longest = choices.iter().map(String::len).max().unwrap_or(0);
            within(longest as u64, 0, TEMPLATE_TEXT_MAX, &format!("{place}.choices"))
        }
        TemplatePart::Identity | TemplatePart::Time { .. } | TemplatePart::Uuid => Ok(()),
    }
}

fn published(group: &Group, publish: &Publish, place: &str) -> Result<(), PlanError> {
    let field = format!("{place}.topic");
    text(&publish.topic.0, &field)?;
    let filled = publish.topic.fill(&group.name, 0, 0);
    require(topic::is_name(&filled), &field, || format!("is {filled:?}, which is not a topic"))?;
    payload(&publish.payload, group.count, &format!("{place}.payload"))?;
    properties(group, &publish.properties, &format!("{place}.properties"))?;
    rate_stages(publish, place)?;
    if let Some(replay) = &publish.replay {
        replayed(group, replay, &format!("{place}.replay"))?;
    }
    let field = format!("{place}.arrival");
    match publish.arrival {
        Arrival::Constant { interval_ns } | Arrival::Poisson { mean_interval_ns: interval_ns } => {
            within(interval_ns, 1_000, LONGEST.as_ns(), &field)
        }
        Arrival::Burst { size, interval_ns, gap_ns } => {
            within(size.into(), 1, 1_000_000, &field)?;
            within(interval_ns, 1_000, LONGEST.as_ns(), &field)?;
            within(u64::from(size).saturating_mul(gap_ns), 0, LONGEST.as_ns(), &field)
        }
        Arrival::BackToBack => Ok(()),
    }
}

fn properties(group: &Group, said: &MessageProperties, place: &str) -> Result<(), PlanError> {
    let is_v5 = group.mqtt().is_some_and(|mqtt| mqtt.version == ProtocolVersion::V5);
    require(said.is_empty() || is_v5, place, || "are set, but only MQTT 5 has properties".into())?;
    within(said.expiry_s.unwrap_or(1).into(), 1, u32::MAX.into(), &format!("{place}.expiry_s"))?;
    within(said.user.len() as u64, 0, USER_PROPERTIES_MAX, &format!("{place}.user"))?;
    for (index, one) in said.user.iter().enumerate() {
        text(&one.name, &format!("{place}.user[{index}].name"))?;
        text(&one.value, &format!("{place}.user[{index}].value"))?;
    }
    text(said.content_type.as_deref().unwrap_or(""), &format!("{place}.content_type"))?;
    let patterns = [("response_topic", &said.response_topic), ("correlation_data", &said.correlation_data)];
    for (field, pattern) in patterns {
        text(pattern.as_ref().map_or("", |pattern| &pattern.0), &format!("{place}.{field}"))?;
    }
    let Some(response) = &said.response_topic else { return Ok(()) };
    let filled = response.fill(&group.name, 0, 0);
    require(topic::is_name(&filled), &format!("{place}.response_topic"), || {
        format!("is {filled:?}, which is not a topic")
    })
}

fn rate_stages(publish: &Publish, place: &str) -> Result<(), PlanError> {
    let field = format!("{place}.stages");
    within(publish.stages.len() as u64, 0, STAGES_MAX, &field)?;
    let has_rate = publish.arrival != Arrival::BackToBack;
    require(publish.stages.is_empty() || has_rate, &field, || {
        "are rates, but back-to-back messages have none".into()
    })?;
    for (index, stage) in publish.stages.iter().enumerate() {
        within(stage.length.as_ns(), 1, LONGEST.as_ns(), &format!("{field}[{index}].length_ns"))?;
        for interval_ns in [stage.from_interval_ns, stage.to_interval_ns].into_iter().flatten() {
            within(interval_ns, 1_000, LONGEST.as_ns(), &format!("{field}[{index}]"))?;
        }
    }
    Ok(())
}

/// A string that MQTT can carry with its placeholders filled in: a group's name, a client's number, a topic's number.
fn text(text: &str, place: &str) -> Result<(), PlanError> {
    require(!text.contains('\0'), place, || "has the character NUL, which MQTT does not allow".into())?;
    let filled = text.len() + NAME_BYTES_MAX * text.matches('{').count();
    require(filled <= TEXT_BYTES_MAX, place, || {
        format!("has {filled} B with its placeholders filled in, but may have at most {TEXT_BYTES_MAX} B")
    })
}

fn at_most(length: Duration, longest: Duration, place: &str) -> Result<(), PlanError> {
    require(length <= longest, place, || format!("is {length}, but must be {longest} or less"))
}

pub(crate) fn within(value: u64, least: u64, most: u64, place: &str) -> Result<(), PlanError> {
    require((least..=most).contains(&value), place, || {
        if value < least {
            format!("is {value}, but must be {least} or more")
        } else {
            format!("is {value}, but must be {most} or less")
        }
    })
}

const MS: u64 = 1_000_000;
const HOUR: Duration = Duration::from_s(3600);
pub(crate) const LONGEST: Duration = Duration::from_s(8784 * 3600);
const PUBLICATIONS_MAX: u64 = 16;
/// A message's content has a byte for its number.
const CONTENTS_MAX: u64 = 256;
const STAGES_MAX: u64 = 1_000;
const PAYLOAD_MAX: u64 = 10_000_000;
/// Smaller files have no room for their tables, an identity and a few pixels.
const JPEG_MIN: u64 = 800;
const PNG_MIN: u64 = 200;
const TABLE_BYTES_MAX: u64 = 1_000_000_000;
const TABLE_ROWS_MAX: u64 = 1_000_000;
const TEMPLATE_PARTS_MAX: u64 = 1_000;
const TEMPLATE_TEXT_MAX: u64 = 1_000_000;
/// Who reads a payload looks for an identity as text so far (`crates/rows`, `identity.rs`).
const IDENTITY_WITHIN: u64 = 1_024;
const USER_PROPERTIES_MAX: u64 = 100;
const TEXT_BYTES_MAX: usize = 60_000;
pub(crate) const NAME_BYTES_MAX: usize = 255;
/// 1000 km.
const FAR_MM: u64 = 1_000_000_000;
/// A minute of a fast link in opportunities, or a day in rows of 0.1 s.
const TRACE_ROWS_MAX: u64 = 1_000_000;
