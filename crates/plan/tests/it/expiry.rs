//! Until when the messages of a topic are good (MQTT 5 §3.3.2.3.3), as a plan says it.

use mqttlab_plan::{Plan, Roster};
use serde_json::{Value, json};

use crate::check::plan;

/// A publication with this expiry interval in seconds; `null`: for ever.
fn publish(topic: &str, expiry_s: Value) -> Value {
    let mut publish = plan("pair.json")["groups"][0]["publish"].clone();
    publish["topic"] = json!(topic);
    publish["properties"] = json!({ "expiry_s": expiry_s, "user": [] });
    publish
}

/// A plan in which one client of MQTT 5 has these publications, and two others subscribe to everything at QoS 1.
fn publishing(publications: &[Value]) -> Value {
    let mut plan = plan("pair.json");
    let publisher = &mut plan["groups"][0];
    publisher["count"] = json!(1);
    publisher["protocol"]["mqtt"]["version"] = json!("5");
    publisher["publish"] = json!(publications);
    plan["groups"][1]["subscriptions"] = json!([{ "filter": "#", "qos": 1 }]);
    plan
}

/// By topic, how long messages are good for; or why the plan is refused.
fn expiries(plan: &Value) -> Result<Vec<(String, u32)>, String> {
    let plan = Plan::from_json(&plan.to_string()).map_err(|error| error.to_string())?;
    let roster = Roster::of(&plan);
    let names = roster.topics().iter().map(|topic| topic.name.clone());
    Ok(names.zip(plan.expiries_s(&roster)).collect())
}

fn each(expected: &[(&str, u32)]) -> Result<Vec<(String, u32)>, String> {
    Ok(expected.iter().map(|(topic, expiry_s)| (topic.to_string(), *expiry_s)).collect())
}

#[test]
fn a_topic_has_the_longest_interval_of_its_messages() {
    let both = [publish("a", json!(3)), publish("b", json!(5)), publish("a", json!(9))];
    assert_eq!(expiries(&publishing(&both)), each(&[("a", 9), ("b", 5)]));
}

#[test]
fn a_topic_is_good_for_ever_once_one_of_its_messages_is() {
    for order in [[0, 1], [1, 0]] {
        let two = [publish("a", json!(3)), publish("a", Value::Null)];
        let mixed = [two[order[0]].clone(), two[order[1]].clone(), publish("b", json!(5))];
        assert_eq!(expiries(&publishing(&mixed)), each(&[("a", 0), ("b", 5)]));
    }
}

#[test]
fn each_of_a_publications_topics_has_its_interval() {
    let mut several = publish("a/{topic}", json!(3));
    several["topics"] = json!(2);
    assert_eq!(
        expiries(&publishing(&[several, publish("b", json!(5))])),
        each(&[("a/0", 3), ("a/1", 3), ("b", 5)])
    );
}

#[test]
fn a_publisher_of_mqtt_3_1_1_makes_its_topics_good_for_ever() {
    let mut plan = publishing(&[publish("a", json!(3)), publish("b", json!(5))]);
    let mut older = plan["groups"][0].clone();
    older["name"] = json!("older");
    older["protocol"]["mqtt"]["version"] = json!("3.1.1");
    older["publish"] = json!([publish("a", Value::Null)]);
    plan["groups"].as_array_mut().expect("groups").push(older);
    assert_eq!(expiries(&plan), each(&[("a", 0), ("b", 5)]));
}

#[test]
fn what_an_event_makes_of_a_publication_counts() {
    for (changed, expected) in [(json!(9), 9), (json!(1), 3), (Value::Null, 0)] {
        let mut plan = publishing(&[publish("a", json!(3)), publish("b", json!(5))]);
        plan["groups"][0]["changed_publications"] =
            json!([{ "publication": 0, "publish": publish("a", changed) }]);
        assert_eq!(expiries(&plan), each(&[("a", expected), ("b", 5)]));
    }
}

#[test]
fn nothing_is_certain_where_nothing_expires_or_mosquitto_may_lose_it_for_another_reason() {
    let expiring = publishing(&[publish("a", json!(3))]);
    assert_eq!(expiries(&expiring), each(&[("a", 3)]));
    assert_eq!(expiries(&publishing(&[publish("a", Value::Null)])), each(&[]));

    let mut at_qos_0 = expiring.clone();
    at_qos_0["groups"][1]["subscriptions"] =
        json!([{ "filter": "#", "qos": 1 }, { "filter": "b", "qos": 0 }]);
    assert_eq!(expiries(&at_qos_0), each(&[]));

    let mut subscribed_later = expiring.clone();
    for (qos, expected) in [(1, each(&[("a", 3)])), (0, each(&[]))] {
        subscribed_later["events"] = json!([{ "at_ns": 0, "name": "more", "clients": [1],
            "change": { "kind": "subscribe", "filter": "c", "qos": qos } }]);
        assert_eq!(expiries(&subscribed_later), expected, "QoS {qos}");
    }

    let mut another_broker = expiring;
    another_broker["servers"][0]["kind"] = json!("program");
    assert_eq!(expiries(&another_broker), each(&[]));
}

#[test]
fn an_interval_is_a_second_or_more_in_32_bits_and_of_mqtt_5() {
    let topmost = u64::from(u32::MAX);
    assert_eq!(expiries(&publishing(&[publish("a", json!(1))])), each(&[("a", 1)]));
    assert_eq!(expiries(&publishing(&[publish("a", json!(topmost))])), each(&[("a", u32::MAX)]));
    let refused = |plan: Value| expiries(&plan).expect_err("a plan that is refused");
    let none = refused(publishing(&[publish("a", json!(3)), publish("b", json!(0))]));
    assert!(none.contains("publications[1].properties.expiry_s` is 0, but must be 1 or more"), "{none}");
    let too_long = refused(publishing(&[publish("a", json!(topmost + 1))]));
    assert!(too_long.contains("4294967296"), "{too_long}");
    let mut older = publishing(&[publish("a", json!(3))]);
    older["groups"][0]["protocol"]["mqtt"]["version"] = json!("3.1.1");
    let older = refused(older);
    assert!(older.contains("are set, but only MQTT 5 has properties"), "{older}");
}
