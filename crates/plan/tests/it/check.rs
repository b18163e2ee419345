//! The plan's last check: each bound, by the field that a plan beyond it is refused for.

use std::path::Path;

use mqttlab_plan::Plan;
use serde_json::{Value, json};

fn proxy(to: Value) -> Value {
    let service = json!({ "per_packet_ns": 0, "per_copy_ns": 0, "jitter": [0, 1] });
    json!({ "proxy": { "to": to, "service": service } })
}

/// A gateway's role with one field replaced.
fn gateway(field: &str, value: Value) -> Value {
    let mut role = json!({
        "broker": 0, "mode": "transparent", "id": 1, "client_id": "gateway", "keep_alive_s": 60,
        "retry_ns": 10_000_000_000_u64, "retries": 3, "window": 0, "buffer": 100, "clients_max": 100,
        "broker_window": 20, "broker_queue": 1000, "filter_duplicates": false, "advertise_ns": null,
        "predefined_topics": [], "service": { "per_packet_ns": 0, "per_copy_ns": 0, "jitter": [0, 1] },
    });
    role[field] = value;
    json!({ "gateway": role })
}

pub fn plan(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/plan").join(name);
    serde_json::from_slice(&std::fs::read(path).expect("a corpus file")).expect("JSON")
}

/// What a plan with one field replaced is refused with.
fn refusal(name: &str, place: &str, value: Value) -> String {
    let mut plan = plan(name);
    *plan.pointer_mut(place).unwrap_or_else(|| panic!("{place} is not in {name}")) = value;
    match Plan::from_json(&plan.to_string()) {
        Ok(_) => "accepted".into(),
        Err(error) => error.to_string(),
    }
}

fn queue(discipline: Value) -> Value {
    json!({ "limit_packets": null, "limit_bytes": null, "counts_delay_line": false, "discipline": discipline })
}

#[test]
fn a_policer_lets_a_packet_pass() {
    let mut plan = plan("pair.json");
    let mut refused = |rate_bit_s: u64, burst_bytes: u64| {
        plan["network"]["links"][0]["policer"] =
            json!({ "rate_bit_s": rate_bit_s, "burst_bytes": burst_bytes });
        Plan::from_json(&plan.to_string()).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(refused(1_000_000, 15_000), "");
    let words = refused(1_000_000, 100);
    assert!(words.starts_with("`network.links[0].policer.burst_bytes` is 100, but must be "), "{words}");
    assert!(refused(u64::MAX, 15_000).contains("`network.links[0].policer.rate_bit_s` is"));
}

#[test]
fn clients_sit_on_hosts_in_turn() {
    let mut plan = plan("pair.json");
    let (first, last) = (plan["groups"][0]["host"].clone(), plan["hosts"].as_array().map_or(0, Vec::len) - 1);
    assert_eq!((first.as_u64(), last), (Some(1), 1));
    // Two hosts, of which the second follows the first.
    plan["groups"][0]["host"] = json!(0);
    plan["groups"][0]["host_step"] = json!(1);
    plan["groups"][0]["count"] = json!(5);
    let mut read = |turn: Value| {
        plan["groups"][0]["hosts_in_turn"] = turn;
        Plan::from_json(&plan.to_string()).map_err(|error| error.to_string())
    };
    assert!(read(Value::Null).unwrap_err().starts_with("`groups[0].host` is host 4, but there are 2 hosts"));
    assert!(read(json!(0)).unwrap_err().starts_with("`groups[0].hosts_in_turn` is 0"));
    assert!(read(json!(3)).unwrap_err().starts_with("`groups[0].host` is host 2, but"));
    let plan = read(json!(2)).expect("two hosts are enough");
    let hosts: Vec<usize> = (0..5).map(|client| plan.groups[0].host_of(client)).collect();
    assert_eq!((hosts, plan.groups[0].host_count()), (vec![0, 1, 0, 1, 0], 2));
    // An address has the ports of those who sit there: the second host also has the other group.
    assert_eq!(plan.most_crowded_address().1, 4);
    assert!(plan.check_addresses(3, "ports").is_err());
    assert!(plan.check_addresses(4, "ports").is_ok());
}

#[test]
fn the_corpus_is_right() {
    for name in ["pair.json", "radio.json", "shared.json", "bursts.json"] {
        assert!(Plan::from_json(&plan(name).to_string()).is_ok(), "{name}");
    }
}

#[test]
fn each_field_has_a_bound_that_names_it() {
    let year = 40_000_000_000_000_000_u64;
    let cases = [
        ("/schema", json!(99), "`schema` is 99"),
        ("/phases/duration_ns", json!(0), "`phases.duration_ns` is 0"),
        ("/phases/duration_ns", json!(u64::MAX), "`phases.duration_ns` is"),
        ("/phases/warm_up_ns", json!(year), "`phases.warm_up_ns` is"),
        ("/phases/cool_down_ns", json!(year), "`phases.cool_down_ns` is"),
        ("/phases/connect_timeout_ns", json!(year), "`phases.connect_timeout_ns` is"),
        ("/live/workers", json!(0), "`live.workers` is 0, but must be 1 or more"),
        ("/live/workers", json!(65), "`live.workers` is 65, but must be 64 or less"),
        ("/recording/resource_interval_ns", json!(0), "`recording.resource_interval_ns` is 0"),
        ("/sim/client_wake_up_ns", json!(year), "`sim.client_wake_up_ns` is"),
        ("/network/mtu_bytes", json!(100), "`network.mtu_bytes` is 100, but must be 576 or more"),
        ("/network/links/0/delay/mean_ns", json!(u64::MAX), "`network.links[0].delay.mean_ns` is"),
        ("/network/links/0/overhead_bytes", json!(u32::MAX), "`network.links[0].overhead_bytes` is"),
        ("/network/links/0/queue/limit_bytes", json!(10), "`network.links[0].queue.limit_bytes` is 10"),
        (
            "/network/links/0/queue",
            queue(
                json!({ "kind": "codel", "target_ns": 9_000, "interval_ns": 8_000, "largest_frame_bytes": 1 }),
            ),
            "`network.links[0].queue.discipline.target_ns` is 9000, but must be 8000 or less",
        ),
        (
            "/network/links/0/queue",
            queue(json!({
                "kind": "fq_codel", "target_ns": 9_000, "interval_ns": 9_000, "largest_frame_bytes": 1,
                "flows": 0, "quantum_bytes": 64,
            })),
            "`network.links[0].queue.discipline.flows` is 0",
        ),
        ("/network/links/0/rate_bit_s", json!(u64::MAX), "`network.links[0].rate_bit_s` is"),
        (
            "/hosts/1/address",
            json!("10.77.0.1"),
            "`hosts[1].address` is 10.77.0.1, which is another host's address",
        ),
        ("/hosts/0/tcp/rto_max_ns", json!(1), "`hosts[0].tcp.rto_max_ns` is 1"),
        ("/hosts/0/tcp/send_buffer_bytes", json!(u32::MAX), "`hosts[0].tcp.send_buffer_bytes` is"),
        ("/hosts/0/tcp/initial_window_segments", json!(0), "`hosts[0].tcp.initial_window_segments` is 0"),
        ("/servers", json!([]), "`servers` is 0, but must be 1 or more"),
        ("/servers/0/host", json!(7), "`servers[0].host` is host 7"),
        ("/servers/0/name", json!("a/b"), "`servers[0].name` is \"a/b\""),
        ("/servers/0/endpoints", json!([]), "`servers[0].endpoints` is 0"),
        (
            "/servers/0/role",
            gateway("broker", json!(7)),
            "`servers[0].role.gateway.broker` is 7, which is the number of no broker",
        ),
        (
            "/servers/0/role",
            gateway("clients_max", json!(0)),
            "`servers[0].role.gateway.clients_max` is 0, but must be 1 or more",
        ),
        ("/servers/0/role", gateway("retry_ns", json!(u64::MAX)), "`servers[0].role.gateway.retry_ns` is"),
        ("/servers/0/role", proxy(json!(null)), "`servers[0].role.proxy.to` is null"),
        (
            "/servers/0/role",
            proxy(json!(7)),
            "`servers[0].role.proxy.to` is server 7, but there are 1 servers",
        ),
        (
            "/servers/0/role",
            proxy(json!(0)),
            "`servers[0].role.proxy.to` leads from `broker` through `broker` in a circle",
        ),
        (
            "/servers/0/role/broker/service/per_copy_ns",
            json!(u64::MAX),
            "`servers[0].role.broker.service.per_copy_ns` is",
        ),
        (
            "/groups/0/connects_to",
            json!(1),
            "`groups[0].connects_to` is server 1, but the last one is 0 (`broker`)",
        ),
        ("/groups/0/count", json!(0), "`groups[0].count` is 0"),
        ("/groups/0/count", json!(10_000_000), "`groups` have 10000000 clients"),
        ("/groups/0/count", json!(2_147_483_648_u64), "`groups` have 2147483648 clients"),
        ("/groups/0/host_step", json!(1_u64 << 63), "`groups[0].host` is host"),
        ("/groups/0/publish/topics", json!(u32::MAX), "`groups` publish to 8589934590 topics"),
        ("/groups/0/publish/topic", json!("a/+"), "`groups[0].publications[0].topic` is \"a/+\""),
        (
            "/groups/0/publish/topic",
            json!("x".repeat(70_000)),
            "`groups[0].publications[0].topic` has 70000 B",
        ),
        (
            "/groups/0/publish/payload/bytes",
            json!(300_000_000),
            "`groups[0].publications[0].payload.bytes` is",
        ),
        ("/groups/0/publish/arrival/interval_ns", json!(0), "`groups[0].publications[0].arrival` is 0"),
        ("/groups/0/publish/qos", json!(3), "`groups[0].publications[0].qos` is QoS 3"),
        ("/groups/1/subscriptions/0/filter", json!("#/a"), "`groups[1].subscriptions[0].filter` is \"#/a\""),
        ("/groups/1/subscriptions/0/filter", json!("$share/pool"), "`groups[1].subscriptions[0].filter` is"),
        (
            "/groups/0/protocol/mqtt/client_id",
            json!("x".repeat(70_000)),
            "`groups[0].protocol.mqtt.client_id` has 70000 B",
        ),
        (
            "/groups/0/protocol/mqtt/username",
            json!("a\0"),
            "`groups[0].protocol.mqtt.username` has the character NUL",
        ),
        ("/groups/0/protocol/mqtt/max_inflight", json!(0), "`groups[0].protocol.mqtt.max_inflight` is 0"),
        ("/groups/0/reconnect/maximum_ns", json!(u64::MAX), "`groups[0].reconnect.maximum_ns` is"),
    ];
    for (place, value, expected) in cases {
        let refused = refusal("pair.json", place, value);
        assert!(refused.starts_with(expected), "{place}: {refused}");
    }
}

#[test]
fn a_service_time_has_the_same_bound_in_every_role() {
    let long = |per_packet_ns: u64, per_copy_ns: u64| json!({ "per_packet_ns": per_packet_ns, "per_copy_ns": per_copy_ns, "jitter": [0, 1] });
    for (name, server, role) in [
        ("pair.json", 0, "broker"),
        ("gateway.json", 1, "gateway"),
        ("proxy.json", 1, "proxy"),
        ("zeromq.json", 0, "zeromq"),
    ] {
        let place = format!("/servers/{server}/role/{role}/service");
        let field = format!("`servers[{server}].role.{role}.service.");
        let hour = 3_600_000_000_000;
        assert_eq!(refusal(name, &place, long(hour, hour)), "accepted", "{name}");
        for (service, ending) in [(long(u64::MAX, 0), "per_packet_ns"), (long(0, hour + 1), "per_copy_ns")] {
            let refused = refusal(name, &place, service);
            assert!(refused.starts_with(&format!("{field}{ending}` is ")), "{name}: {refused}");
            assert!(refused.ends_with(", but must be 3600 s or less"), "{name}: {refused}");
        }
    }
}

#[test]
fn clients_come_and_go_at_times_that_there_are() {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut plan = plan("pair.json");
        plan["groups"][0]["churn"] = json!({ "hold_ns": 1_000_000, "law": "constant", "away_ns": 1_000_000 });
        change(&mut plan);
        Plan::from_json(&plan.to_string()).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(with(&|_| ()), Ok(()));
    type Change = (&'static str, Value, &'static str);
    let cases: [Change; 3] = [
        ("/groups/0/churn/hold_ns", json!(0), "`groups[0].churn.hold_ns` is 0"),
        ("/groups/0/churn/away_ns", json!(u64::MAX), "`groups[0].churn.away_ns` is"),
        (
            "/groups/0/publish/arrival",
            json!({ "kind": "back_to_back" }),
            "`groups[0].churn` does not go with back-to-back messages",
        ),
    ];
    for (place, value, expected) in cases {
        let refused = with(&|plan| *plan.pointer_mut(place).unwrap() = value.clone()).unwrap_err();
        assert!(refused.starts_with(expected), "{place}: {refused}");
    }
}

#[test]
fn a_text_that_is_no_plan_is_refused_with_place_value_and_nearest_right_value() {
    let refused = refusal("pair.json", "/backend", json!("simm"));
    assert!(refused.contains("`backend`: unknown variant `simm`"), "{refused}");
    assert!(refused.ends_with("did you mean `sim`?"), "{refused}");
    let refused = refusal("pair.json", "/groups/1/host", json!("field"));
    assert!(refused.contains("`groups[1].host`: invalid type: string \"field\""), "{refused}");
    let mut plan = plan("pair.json");
    plan["groups"][0]["conects_to"] = json!(0);
    let refused = Plan::from_json(&plan.to_string()).unwrap_err().to_string();
    assert!(refused.contains("did you mean `connects_to`?"), "{refused}");
}

#[test]
fn publications_are_a_list_and_older_plans_have_one_or_none() {
    let mut several = plan("pair.json");
    let publish = several["groups"][0]["publish"].clone();
    let of =
        |value: &Value| Plan::from_json(&value.to_string()).map(|plan| plan.groups[0].publications.len());
    assert_eq!(of(&several).unwrap(), 1);
    several["groups"][0].as_object_mut().unwrap().remove("publish");
    let missing = of(&several).unwrap_err().to_string();
    assert!(missing.contains("missing field `publications`"), "{missing}");
    several["groups"][0]["publications"] = json!([publish, publish]);
    assert_eq!(of(&several).unwrap(), 2);
    several["groups"][0]["publications"][1]["qos"] = json!(3);
    let refused = of(&several).unwrap_err().to_string();
    assert!(refused.starts_with("`groups[0].publications[1].qos` is QoS 3"), "{refused}");
    several["groups"][0]["publications"] = vec![publish; 17].into();
    let refused = of(&several).unwrap_err().to_string();
    assert!(refused.starts_with("`groups[0].publications` is 17"), "{refused}");
}

#[test]
fn stages_of_rates_have_bounds_and_a_rate() {
    let refusal = |arrival: Value, stages: Value| {
        let mut plan = plan("pair.json");
        plan["groups"][0]["publish"]["arrival"] = arrival;
        plan["groups"][0]["publish"]["stages"] = stages;
        Plan::from_json(&plan.to_string()).map(drop).map_err(|error| error.to_string())
    };
    let stage = |length: u64, from: Value| json!({ "length_ns": length, "from_interval_ns": from, "to_interval_ns": 1_000_000 });
    let constant = json!({ "kind": "constant", "interval_ns": 1_000_000 });
    assert_eq!(refusal(constant.clone(), json!([stage(1, Value::Null), stage(5, json!(1_000))])), Ok(()));
    for (arrival, stages, expected) in [
        (
            json!({ "kind": "back_to_back" }),
            json!([stage(1, Value::Null)]),
            "stages` are rates, but back-to-back",
        ),
        (constant.clone(), json!([stage(0, Value::Null)]), "stages[0].length_ns` is 0"),
        (constant.clone(), json!([stage(1, json!(999))]), "stages[0]` is 999"),
        (constant, vec![stage(1, Value::Null); 1_001].into(), "stages` is 1001"),
    ] {
        let refused = refusal(arrival, stages).unwrap_err();
        assert!(refused.starts_with(&format!("`groups[0].publications[0].{expected}")), "{refused}");
    }
}

#[test]
fn a_template_has_one_identity_near_its_begin() {
    let refusal = |parts: Value, bytes: Value| {
        let mut plan = plan("pair.json");
        plan["groups"][0]["publish"]["payload"] =
            json!({ "kind": "template", "name": "template", "parts": parts, "bytes": bytes });
        Plan::from_json(&plan.to_string()).map(drop).map_err(|error| error.to_string())
    };
    let text = |bytes: usize| json!({ "kind": "text", "text": "x".repeat(bytes) });
    let identity = json!({ "kind": "identity" });
    let number = |low: i64, high: i64, decimals: u8| json!({ "kind": "number", "low": low, "high": high, "decimals": decimals });
    assert_eq!(refusal(json!([text(1024), identity, number(1, 1, 0)]), Value::Null), Ok(()));
    for (parts, bytes, expected) in [
        (json!([]), Value::Null, "parts` is 0"),
        (json!([text(9)]), Value::Null, "parts` has 0 identities"),
        (json!([identity, identity]), Value::Null, "parts` has 2 identities"),
        (json!([text(1025), identity]), Value::Null, "parts: bytes before the identity` is 1025"),
        (json!([identity]), json!(10_000_001), "bytes` is 10000001"),
        (json!([identity, number(2, 1, 0)]), Value::Null, "parts[1].high` is 1"),
        (json!([identity, number(1, 2, 10)]), Value::Null, "parts[1].decimals` is 10"),
        (json!([identity, { "kind": "choice", "choices": [] }]), Value::Null, "parts[1].choices` is 0"),
        (json!([identity, { "kind": "client", "width": 21 }]), Value::Null, "parts[1].width` is 21"),
        (json!([identity, { "kind": "hex", "digits": 0 }]), Value::Null, "parts[1].digits` is 0"),
    ] {
        let refused = refusal(parts, bytes).unwrap_err();
        let expected = format!("`groups[0].publications[0].payload.{expected}");
        assert!(refused.starts_with(&expected), "{refused}");
    }
}

#[test]
fn a_plan_of_another_schema_is_refused_for_that_alone() {
    let old = json!({ "schema": 1, "broker": { "port": 1883 } }).to_string();
    let refused = Plan::from_json(&old).unwrap_err().to_string();
    assert_eq!(refused, "`schema` is 1, but must be 2; make the plan anew from its scenario");
}

#[test]
fn wills_bursts_and_fields_of_stations_have_bounds() {
    let cases = [
        (
            "shared.json",
            "/groups/1/protocol/mqtt/will/topic",
            json!("w/#"),
            "`groups[1].protocol.mqtt.will.topic` is",
        ),
        (
            "shared.json",
            "/groups/1/protocol/mqtt/will/payload",
            json!("x".repeat(70_000)),
            "`groups[1].protocol.mqtt.will.payload` is",
        ),
        (
            "bursts.json",
            "/groups/0/publish/arrival/gap_ns",
            json!(u64::MAX),
            "`groups[0].publications[0].arrival` is",
        ),
        (
            "radio.json",
            "/network/media/0/placement/stations",
            json!(u32::MAX),
            "`network.media[0].placement` is",
        ),
        ("radio.json", "/network/media/0/mobility/width_mm", json!(0), "`network.media[0].mobility` is 0"),
        (
            "radio.json",
            "/network/media/0/channel/mean_bad_ns",
            json!(1),
            "`network.media[0].channel.mean_bad_ns` is 1",
        ),
        (
            "relay.json",
            "/groups/1/relay/topic_suffix",
            json!("#"),
            "`groups[1].relay.topic_suffix` cannot be",
        ),
    ];
    for (name, place, value, expected) in cases {
        let refused = refusal(name, place, value);
        assert!(refused.starts_with(expected), "{place}: {refused}");
    }
}

#[test]
fn an_unknown_field_and_what_is_no_json_are_syntax() {
    let mut unknown = plan("pair.json");
    unknown["unheard_of"] = json!(1);
    for text in [unknown.to_string(), String::new(), "[".repeat(100_000)] {
        let refused = Plan::from_json(&text).expect_err("wrong").to_string();
        assert!(refused.starts_with("the plan cannot be read: "), "{refused}");
    }
}

/// Stands for a secret.
const MARK: &str = "***0123456789abcdef";

/// A plan of which a password, a variable and a file are secrets.
fn secretive() -> Value {
    let mut plan = plan("pair.json");
    plan["groups"][0]["protocol"]["mqtt"]["username"] = json!("alice");
    plan["groups"][0]["protocol"]["mqtt"]["password"] = json!(MARK);
    plan["servers"][0]["process"] = json!({
        "command": ["serve"], "environment": { "TOKEN": MARK }, "files": [{ "path": "a", "text": MARK }],
        "ready": "tcp_accept", "start_timeout_ns": 1_000_000_000_u64,
    });
    plan
}

#[test]
fn values_of_secrets_stand_behind_the_plan_and_are_not_written_again() {
    let mut read = Plan::with_secrets(&format!("{}\n{{\"{MARK}\": \"hunter22\"}}\n", secretive())).unwrap();
    read.need_secrets().unwrap();
    let process = read.servers[0].process.as_ref().unwrap();
    assert_eq!(process.environment["TOKEN"].as_str(), "hunter22");
    assert_eq!(process.files[0].text.as_str(), "hunter22");
    let written = format!("{} {read:?}", read.to_json());
    assert!(written.contains(MARK) && !written.contains("hunter22"));
}

#[test]
fn properties_of_messages_are_those_of_mqtt_5_and_have_bounds() {
    let said = |version: &str, field: &str, value: Value| {
        let mut plan = plan("pair.json");
        let mut properties = json!({ "user": [], "content_type": null, "payload_is_text": null,
            "response_topic": null, "correlation_data": null });
        properties[field] = value;
        let group =
            plan["groups"].as_array_mut().unwrap().iter_mut().find(|group| group["publish"].is_object());
        let group = group.unwrap();
        group["protocol"]["mqtt"]["version"] = json!(version);
        group["publish"]["properties"] = properties;
        Plan::from_json(&plan.to_string()).map_or_else(|error| error.to_string(), |_| "accepted".into())
    };
    assert_eq!(said("5", "content_type", json!("text/plain")), "accepted");
    assert_eq!(said("3.1.1", "content_type", json!(null)), "accepted");
    let cases = [
        (
            "3.1.1",
            "content_type",
            json!("text/plain"),
            "publications[0].properties` are set, but only MQTT 5",
        ),
        ("5", "response_topic", json!("a/#"), "properties.response_topic` is \"a/#\", which is not a topic"),
        ("5", "user", json!(vec![json!({ "name": "a", "value": "b" }); 101]), "properties.user` is 101"),
        ("5", "content_type", json!("x".repeat(60_001)), "properties.content_type`"),
    ];
    for (version, field, value, problem) in cases {
        let told = said(version, field, value);
        assert!(told.contains(problem), "{told}");
    }
}

#[test]
fn no_local_is_of_mqtt_5_and_neither_shared_nor_beside_a_relay() {
    let said = |version: &str, filter: &str, relay: Value| {
        let mut plan = plan("pair.json");
        for group in plan["groups"].as_array_mut().unwrap() {
            group["protocol"]["mqtt"]["version"] = json!(version);
        }
        let group = &mut plan["groups"][1];
        group["subscriptions"] = json!([{ "filter": filter, "qos": 1, "no_local": true }]);
        group["relay"] = relay;
        Plan::from_json(&plan.to_string()).map_or_else(|error| error.to_string(), |_| "accepted".into())
    };
    assert_eq!(said("5", "a/#", json!(null)), "accepted");
    let relay = json!({ "topic_suffix": "/copy", "qos": 0 });
    for (version, filter, relay, problem) in [
        ("3.1.1", "a/#", json!(null), "has `no_local`, which only MQTT 5 can say"),
        (
            "5",
            "$share/s/a",
            json!(null),
            "has `no_local` on a shared subscription, which is a protocol error",
        ),
        ("5", "a/#", relay, "relays: of its copies nobody knows"),
    ] {
        let told = said(version, filter, relay);
        assert!(told.contains(problem), "{told}");
    }
}

#[test]
fn who_should_have_a_message_depends_on_its_publisher_where_a_subscription_has_no_local() {
    let roster = |subscriptions: Value, events: Value| {
        let mut plan = plan("pair.json");
        let mut group = plan["groups"].as_array().unwrap().iter().find(|group| group["publish"].is_object());
        let mut group = group.take().unwrap().clone();
        group["protocol"]["mqtt"]["version"] = json!("5");
        group["count"] = json!(2);
        group["publish"]["topic"] = json!("a/b");
        group["publish"]["topics"] = json!(1);
        group["subscriptions"] = subscriptions;
        plan["groups"] = json!([group]);
        plan["events"] = events;
        let plan = Plan::from_json(&plan.to_string()).unwrap();
        let roster = mqttlab_plan::Roster::of(&plan);
        let own = roster.own_receivers().iter();
        let own: Vec<_> = own.map(|own| (own.client, own.at_first, own.flips.clone())).collect();
        ([0, 1].map(|publisher| roster.deliveries(0, publisher)), own)
    };
    let silent = json!({ "filter": "a/#", "qos": 1, "no_local": true });
    let plain = json!({ "filter": "+/b", "qos": 0 });
    let never = |client| (client, false, vec![]);
    assert_eq!(roster(json!([silent]), json!([])), ([1, 1], vec![never(0), never(1)]));
    assert_eq!(roster(json!([silent, plain]), json!([])), ([2, 2], vec![]), "another filter brings it");
    assert_eq!(roster(json!([plain]), json!([])), ([2, 2], vec![]));
    let shared = json!({ "filter": "$share/s/a/b", "qos": 0 });
    assert_eq!(roster(json!([silent, shared]), json!([])), ([2, 2], vec![never(0), never(1)]));
    let event = |at_ns: u64, change: Value| json!({ "at_ns": at_ns, "name": "changes", "clients": [1], "change": change });
    let events = json!([
        event(1, json!({ "kind": "subscribe", "filter": "+/b", "qos": 0 })),
        event(2, json!({ "kind": "unsubscribe", "filter": "+/b" })),
    ]);
    assert_eq!(roster(json!([silent]), events), ([1, 2], vec![never(0), (1, false, vec![0, 1])]));
    let again = json!([event(1, json!({ "kind": "subscribe", "filter": "a/#", "qos": 0 }))]);
    assert_eq!(
        roster(json!([silent]), again),
        ([1, 1], vec![never(0), never(1)]),
        "with the group's options"
    );
}

#[test]
fn a_secret_without_its_value_is_refused_with_its_place_and_can_be_checked() {
    let mut read = Plan::with_secrets(&secretive().to_string()).unwrap();
    let refused = read.need_secrets().unwrap_err().to_string();
    assert!(refused.starts_with("`servers[0].process.environment.TOKEN` is a secret"), "{refused}");
    let refused =
        Plan::with_secrets(&format!("{} {{\"a\": hunter22}}", secretive())).unwrap_err().to_string();
    assert!(!refused.contains("hunter22"), "{refused}");
}

/// A plan of the corpus with these events.
fn with_events(name: &str, events: Value) -> Result<Plan, String> {
    let mut plan = plan(name);
    plan["events"] = events;
    Plan::from_json(&plan.to_string()).map_err(|error| error.to_string())
}

#[test]
fn a_plan_without_events_has_none_and_says_so() {
    let plan = Plan::from_json(&plan("pair.json").to_string()).unwrap();
    assert_eq!(plan.events, []);
    assert!(plan.to_json().contains("\"events\": []"));
}

#[test]
fn a_wrong_event_is_refused_with_its_place() {
    let link = &plan("pair.json")["network"]["links"][0];
    let server = &plan("pair.json")["servers"][0]["name"];
    let down = |at: u64, links: Value| json!({ "at_ns": at, "name": "down", "links": links, "change": { "kind": "down", "queue": "drop" } });
    let of_clients = |clients: Value, change: Value| json!({ "at_ns": 0, "name": "gone", "clients": clients, "change": change });
    let vanish = json!({ "kind": "vanish" });
    let mut spec = link.clone();
    spec["delay"]["mean_ns"] = json!(u64::MAX);
    let cases = [
        (
            json!([{ "at_ns": 0, "name": "x" }]),
            "`events[0]`: an event needs one of `links`, `medium`, `server`, `clients`",
        ),
        (
            json!([{ "at_ns": 0, "name": "x", "server": server, "change": { "kind": "die", "persistence": true } }]),
            "`events[0]`: unknown variant `die`",
        ),
        (
            json!([{ "at_ns": 0, "name": "x", "server": "x", "change": { "kind": "kill", "persistence": true } }]),
            "`events[0].server` is \"x\", an unknown server; known: ",
        ),
        (
            json!([down(2, json!([link["name"]])), down(1, json!([link["name"]]))]),
            "`events[1].at_ns` is 1, before",
        ),
        (json!([down(u64::MAX / 2, json!([link["name"]]))]), "`events[0].at_ns` is "),
        (
            json!([{ "at_ns": 0, "name": "x", "links": [link["name"]], "change": { "kind": "up" }, "ends": [3] }]),
            "`events[0].ends` has 3, but no event before it begins that change",
        ),
        (
            json!([{ "at_ns": 0, "name": "x", "links": [link["name"]], "change": { "kind": "up" }, "begins": 3, "ends": [3] }]),
            "`events[0].ends` has 3, but no event before it begins that change",
        ),
        (json!([down(0, json!([]))]), "`events[0].links` is empty"),
        (json!([down(0, json!(["x"]))]), "`events[0].links` has \"x\", which is the name of no link"),
        (json!([down(0, json!([link["name"], link["name"]]))]), "`events[0].links` has"),
        (
            json!([{ "at_ns": 0, "name": "x", "links": [link["name"]], "change": { "kind": "spec", "spec": spec } }]),
            "`events[0].change.spec.delay.mean_ns` is ",
        ),
        (json!([of_clients(json!([]), vanish.clone())]), "`events[0].clients` is empty"),
        (json!([of_clients(json!([1, 0]), vanish.clone())]), "`events[0].clients` is not ascending"),
        (
            json!([of_clients(json!([9_999_999]), vanish)]),
            "`events[0].clients` has client 9999999, but there are",
        ),
        (
            json!([of_clients(json!([0]), json!({ "kind": "subscribe", "filter": "a/#/b", "qos": 0 }))]),
            "`events[0].change.filter` is \"a/#/b\", which is not a topic filter",
        ),
        (
            json!([of_clients(json!([0]), json!({ "kind": "subscribe", "filter": "a", "qos": 3 }))]),
            "`events[0].change.qos` is 3",
        ),
    ];
    for (events, expected) in cases {
        let refused = with_events("pair.json", events.clone()).expect_err("wrong");
        assert!(refused.contains(expected), "{events}: {refused}");
    }
}

#[test]
fn a_change_of_publications_is_of_one_group_and_of_what_it_publishes() {
    let change = |publications: Value| json!({ "kind": "publish", "publications": publications });
    let one = |publication: u32, content: u32, rate: Value| json!([{ "publication": publication, "content": content, "rate": rate }]);
    let burst = |publications: Value, messages: u32| json!({ "kind": "burst", "publications": publications, "messages": messages });
    let (silent, fast) = (json!({ "interval_ns": null }), json!({ "interval_ns": 1 }));
    let groups = plan("pair.json")["groups"].clone();
    let first = 0;
    let cases = [
        (
            json!([0, groups[0]["count"]]),
            change(one(0, 0, json!(null))),
            "`events[0].clients` are of 2 groups",
        ),
        (json!([first]), change(json!([])), "`events[0].change.publications` is empty"),
        (json!([first]), change(one(1, 1, json!(null))), "has publication 1, but `"),
        (json!([first]), change(one(0, 1, silent)), "`events[0].change.publications[0]` has content 1"),
        (json!([first]), change(one(0, 0, fast)), "`events[0].change.publications[0].rate.interval_ns` is 1"),
        (json!([first]), burst(json!([0, 0]), 1), "has publication 0 twice"),
        (json!([first]), burst(json!([0]), 0), "`events[0].change.messages` is 0"),
    ];
    for (clients, change, expected) in cases {
        let event = json!([{ "at_ns": 0, "name": "other", "clients": clients, "change": change }]);
        let refused = with_events("pair.json", event.clone()).expect_err("wrong");
        assert!(refused.contains(expected), "{event}: {refused}");
    }
    let mut wrong = plan("pair.json");
    let mut publish = groups[0]["publish"].clone();
    publish["topic"] = json!("elsewhere");
    wrong["groups"][0]["changed_publications"] = json!([{ "publication": 0, "publish": publish }]);
    let refused = Plan::from_json(&wrong.to_string()).expect_err("another topic").to_string();
    assert!(refused.contains("changed_publications[0].publication` is 0"), "{refused}");
}

#[test]
fn an_event_that_no_backend_performs_is_refused_and_never_passed_over() {
    let event = |filter: &str| {
        json!([{ "at_ns": 0, "name": "new filter", "clients": [0],
                 "change": { "kind": "unsubscribe", "filter": filter } }])
    };
    with_events("pair.json", event("a")).expect("a filter of its own");
    let refused = with_events("pair.json", event("$share/a/b")).expect_err("a share");
    assert!(
        refused.ends_with("`events[0]` changes a shared subscription, which no backend does yet"),
        "{refused}"
    );
}

#[test]
fn events_by_hand_are_checked_as_the_plans_are_and_change_nothing_that_is_fixed_before() {
    let mut plan = plan("pair.json");
    plan["backend"] = json!("live");
    let plan = Plan::from_json(&plan.to_string()).unwrap();
    let said = |event: Value| {
        let event = serde_json::from_value(event).unwrap();
        plan.check_by_hand(&event).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let clients = |number: u32, change: Value| json!({ "at_ns": 0, "name": "x", "clients": [number], "change": change });
    assert_eq!(said(clients(0, json!({ "kind": "vanish" }))), "");
    assert!(said(clients(99, json!({ "kind": "vanish" }))).contains("`event.clients` has client 99"));
    let fixed = said(clients(0, json!({ "kind": "unsubscribe", "filter": "a" })));
    assert!(fixed.starts_with("`event` is `clients_unsubscribe`, which cannot be fired by hand"), "{fixed}");
    let kill = json!({ "at_ns": 0, "name": "x", "server": "broker", "change": { "kind": "kill", "persistence": true } });
    assert!(said(kill).contains("`broker`, which somebody else runs"));
    let link = json!({ "at_ns": 0, "name": "x", "links": ["nowhere"], "change": { "kind": "up" } });
    assert!(said(link).contains("`event.links` has \"nowhere\", which is the name of no link"));
}

#[test]
fn a_wrong_event_of_a_radio_channel_is_refused_with_its_place() {
    let name = &plan("radio.json")["network"]["media"][0]["name"];
    let of = |change: Value| json!([{ "at_ns": 0, "name": "x", "medium": name, "change": change }]);
    let there = json!({ "x_mm": 1, "y_mm": 2 });
    let cases = [
        (
            json!([{ "at_ns": 0, "name": "x", "medium": "air", "change": { "kind": "stations_on", "stations": [0] } }]),
            "`events[0].medium` is \"air\", which is the name of no radio channel",
        ),
        (
            of(json!({ "kind": "interferer_on", "interferer": "oven" })),
            "`events[0].change.interferer` is \"oven\", which is the name of no interferer",
        ),
        (of(json!({ "kind": "stations_off", "stations": [] })), "`events[0].change.stations` is empty"),
        (
            of(json!({ "kind": "stations_off", "stations": [1, 0] })),
            "`events[0].change.stations` is not ascending",
        ),
        (
            of(json!({ "kind": "stations_off", "stations": [70_000] })),
            "`events[0].change.stations` has station 70000",
        ),
        (
            of(json!({ "kind": "station_moved", "station": 70_000, "position": there })),
            "`events[0].change.station` is 70000",
        ),
        (
            of(json!({ "kind": "station_moved", "station": 0, "position": there })),
            "`events[0].change.station` moves by itself",
        ),
    ];
    for (events, expected) in cases {
        let refused = with_events("radio.json", events.clone()).unwrap_err();
        assert!(refused.starts_with(expected), "{events}: {refused}");
    }
}

#[test]
fn the_live_testbed_changes_only_what_it_runs_and_lets_clients_vanish_only_behind_its_emulator() {
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut plan = plan("pair.json");
        plan["backend"] = json!("live");
        change(&mut plan);
        Plan::from_json(&plan.to_string()).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let vanish = json!([{ "at_ns": 0, "name": "x", "clients": [0], "change": { "kind": "vanish" } }]);
    let kill = json!([{ "at_ns": 0, "name": "x", "server": "broker",
                        "change": { "kind": "kill", "persistence": true } }]);
    assert!(refused(&|plan| plan["events"] = kill.clone()).contains("`broker`, which somebody else runs"));
    assert_eq!(refused(&|plan| plan["events"] = vanish.clone()), "");
    let beside = refused(&|plan| (plan["events"], plan["groups"][0]["host"]) = (vanish.clone(), json!(0)));
    assert!(beside.contains("lets client 0 vanish, whose frames cross no emulated network"), "{beside}");
}

#[test]
fn traces_are_whole_and_a_link_follows_one_at_most() {
    let plan = plan("pair.json");
    let link = plan["network"]["links"][0]["name"].clone();
    let opportunities = |links: Value, period: Value, at_ms: Value| {
        json!({
            "name": "t", "links": links, "begins_at_ns": 0, "period_ns": period,
            "course": { "kind": "opportunities", "at_ms": at_ms, "bytes": 1500 },
        })
    };
    let values = |at: Value, rates: Value, losses: Value| {
        json!({
            "name": "t", "links": [link], "begins_at_ns": 0, "period_ns": 100,
            "course": {
                "kind": "values", "at_ns": at, "rate_bit_s": rates, "delay_ns": null, "jitter_ns": null,
                "loss_ppb": losses,
            },
        })
    };
    let right = opportunities(json!([link]), json!(3_000_000), json!([1, 3]));
    let cases = [
        (json!([right]), "accepted"),
        (json!([values(json!([0, 50]), json!([0, 5]), Value::Null)]), "accepted"),
        (json!([right, right]), "`network.traces[1].links` has"),
        (json!([opportunities(json!(["nobody"]), json!(3_000_000), json!([1]))]), "is the name of no link"),
        (
            json!([opportunities(json!([]), json!(10), json!([1]))]),
            "`network.traces[0].period_ns` ends before",
        ),
        (json!([opportunities(json!([]), json!(0), json!([0]))]), "`network.traces[0].begins_at_ns` lies"),
        (
            json!([opportunities(json!([]), Value::Null, json!([2, 1]))]),
            "`network.traces[0].course.at_ms` is",
        ),
        (json!([values(json!([0, 50]), json!([0, 0]), Value::Null)]), "is 0 all the time"),
        (json!([values(json!([5, 50]), json!([1, 1]), Value::Null)]), "does not ascend from 0"),
        (json!([values(json!([0, 100]), json!([1, 1]), Value::Null)]), "is over before the last row"),
        (json!([values(json!([0]), Value::Null, json!([u32::MAX]))]), "has a chance above 1000000000"),
        (json!([values(json!([0]), json!([1, 2]), Value::Null)]), "has 2 values, but there are 1 times"),
    ];
    for (traces, expected) in cases {
        let mut plan = plan.clone();
        plan["network"]["traces"] = traces.clone();
        let said =
            Plan::from_json(&plan.to_string()).map_or_else(|error| error.to_string(), |_| "accepted".into());
        assert!(said.contains(expected), "{traces}: {said}");
    }
}

#[test]
fn limits_hold_servers_and_not_our_own_clients() {
    let refusal = |host: usize, limits: Value| {
        let mut plan = plan("pair.json");
        plan["hosts"][host]["limits"] = limits;
        match Plan::from_json(&plan.to_string()) {
            Ok(_) => "accepted".into(),
            Err(error) => error.to_string(),
        }
    };
    let limits = |processor: Value, memory: Value, disk: Value| json!({ "processor": processor, "memory_bytes": memory, "disk_bytes_s": disk });
    let server = plan("pair.json")["servers"][0]["host"].as_u64().unwrap() as usize;
    let all = limits(json!([1, 4]), json!(64_000_000), json!(1_000_000));
    assert_eq!(refusal(server, all.clone()), "accepted");
    let cases = [
        (limits(json!([1, 101]), Value::Null, Value::Null), "limits.processor` is"),
        (
            limits(Value::Null, json!(1000), Value::Null),
            "limits.memory_bytes` is 1000, but must be 1048576 or more",
        ),
        (limits(Value::Null, Value::Null, json!(1)), "limits.disk_bytes_s` is 1, but must be 1000 or more"),
    ];
    for (limits, problem) in cases {
        let said = refusal(server, limits);
        assert!(said.contains(problem), "{said}");
    }
    let said = refusal(1 - server.min(1), all);
    assert!(said.contains("the engine's own; move them to another host"), "{said}");
}
