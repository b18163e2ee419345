//! The stages of a run in its plan.

use mqttlab_plan::Plan;
use serde_json::{Value, json};

use crate::check::plan;

fn stage(name: &str, from_s: u64, until_s: u64, measured: bool) -> Value {
    let [from_ns, until_ns] = [from_s, until_s].map(|seconds| seconds * 1_000_000_000);
    json!({ "name": name, "from_ns": from_ns, "until_ns": until_ns, "measured": measured })
}

/// A plan with these stages, after 2 s of warm-up and over 10 s of measurement.
fn with(stages: &[Value]) -> Value {
    let mut plan = plan("pair.json");
    plan["phases"]["warm_up_ns"] = json!(2_000_000_000_u64);
    plan["phases"]["duration_ns"] = json!(10_000_000_000_u64);
    plan["stages"] = json!(stages);
    plan
}

fn problem(plan: &Value) -> String {
    Plan::from_json(&plan.to_string()).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn stages_cover_the_measurement_without_a_gap() {
    let [a, b, c] = [stage("a", 2, 5, true), stage("b", 5, 6, false), stage("c", 6, 12, true)];
    assert_eq!(problem(&with(&[])), "");
    assert_eq!(problem(&with(&[a.clone(), b.clone(), c.clone()])), "");
    let cases = [
        (vec![a.clone(), c], "`stages[1].from_ns` is 6000000000, but must be 5000000000"),
        (vec![a.clone()], "`stages[0].until_ns` is 5000000000, but must be 12000000000, the end of the"),
        (vec![stage("a", 0, 12, true)], "`stages[0].from_ns` is 0, but must be 2000000000"),
        (vec![a.clone(), stage("a", 5, 12, true)], "`stages[1].name` is \"a\", which is the name of another"),
        (vec![a.clone(), stage("b", 5, 5, true)], "`stages[1].until_ns` is 5000000000, but must be later"),
        (vec![a, stage("b", 5, 12, false)], "`stages` are not measured in the last of them"),
        (vec![stage("a", 2, 12, false)], "`stages` are not measured in the first of them"),
        (vec![stage("", 2, 12, true)], "`stages[0].name` is 0, but must be 1 or more"),
        (vec![stage(&"a".repeat(41), 2, 12, true)], "`stages[0].name` is 41, but must be 40 or less"),
        (vec![stage("a", 2, 12, true); 101], "`stages` is 101, but must be 100 or less"),
    ];
    for (stages, words) in cases {
        let told = problem(&with(&stages));
        assert!(told.starts_with(words), "{told}");
    }
}

#[test]
fn nothing_else_moves_the_ends_of_stages() {
    let mut plan = with(&[stage("a", 2, 12, true)]);
    plan["sim"]["detect_transient"] = json!(true);
    assert_eq!(problem(&plan), "`sim.detect_transient` is true, but there are stages");
    plan["sim"]["detect_transient"] = json!(false);
    plan["sim"]["stop"] = json!({
        "relative_accuracy_ppm": null, "messages_per_subscriber": 5, "deliveries_outstanding": null,
    });
    assert_eq!(problem(&plan), "`sim.stop` is set, but there are stages");
}

#[test]
fn a_plan_without_stages_says_nothing_of_them() {
    let stored = |stages: &[Value]| -> Value {
        let plan = Plan::from_json(&with(stages).to_string()).expect("a plan");
        serde_json::from_str(&plan.to_json()).expect("JSON")
    };
    assert_eq!(stored(&[]).get("stages"), None);
    let one = stage("a", 2, 12, true);
    assert_eq!(stored(std::slice::from_ref(&one))["stages"], json!([one]));
}
