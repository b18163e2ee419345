//! What reading a plan and numbering its clients and topics costs, by doubling: calls of the allocator and bytes asked for.
//!
//! These counts are the same on any machine. They show a copy or a list that is made for each pair. They do not show a
//! search that only compares: what the rules look up for each group is in sets (`lookup.rs`).

use mqttlab_counting::{asked, calls};
use mqttlab_plan::{Plan, Roster};
use serde_json::{Value, json};

use crate::check::plan;

type Shape = (&'static str, fn(&mut Value, usize));

const SHAPES: [Shape; 10] = [
    ("groups that publish", |plan, n| groups(plan, n, 0)),
    ("groups that subscribe", |plan, n| groups(plan, n, 1)),
    ("groups of hosts of their own", |plan, n| {
        hosts(plan, n);
        groups(plan, n, 0);
        (0..n).for_each(|number| plan["groups"][number]["host"] = json!(number + 1));
    }),
    ("clients", |plan, n| {
        (0..2).for_each(|group| plan["groups"][group]["count"] = json!(n));
    }),
    ("clients with a host each", |plan, n| {
        hosts(plan, n);
        for group in 0..2 {
            plan["groups"][group]["count"] = json!(n);
            plan["groups"][group]["host_step"] = json!(1);
        }
    }),
    ("links", links),
    ("topics of one client", |plan, n| {
        plan["groups"][0]["publish"]["topics"] = json!(n);
        plan["groups"][0]["publish"]["topic"] = json!("a/{topic}");
    }),
    ("filters of one client", |plan, n| {
        let filters = (0..n).map(|number| json!({ "filter": format!("a/{number}"), "qos": 1 }));
        plan["groups"][1]["subscriptions"] = filters.collect();
    }),
    ("shared subscriptions", |plan, n| {
        plan["groups"][1]["count"] = json!(n);
        plan["groups"][1]["subscriptions"][0]["filter"] = json!("$share/all/a/#");
    }),
    ("servers", |plan, n| {
        let server = plan["servers"][0].clone();
        plan["servers"] = (0..n)
            .map(|number| {
                let mut server = server.clone();
                server["name"] = json!(format!("s{number}"));
                server["endpoints"][0]["port"] = json!(1_000 + number);
                server
            })
            .collect();
    }),
];

/// As many copies of one group, with names and topics of their own.
fn groups(plan: &mut Value, n: usize, which: usize) {
    let mut group = plan["groups"][which].clone();
    if which == 0 {
        group["publish"]["topic"] = json!("{group}/{client}");
    }
    let named = |number: usize| {
        let mut group = group.clone();
        group["name"] = json!(format!("g{number}"));
        group
    };
    plan["groups"] = (0..n).map(named).collect();
}

/// As many hosts beside the broker's, each with a path to it and back.
fn hosts(plan: &mut Value, n: usize) {
    let [broker, field] = [0, 1].map(|number| plan["hosts"][number].clone());
    let named = |number: usize| {
        let mut host = field.clone();
        host["name"] = json!(format!("h{number}"));
        host["address"] = json!(format!("10.78.{}.{}", number / 250, number % 250 + 1));
        host
    };
    plan["hosts"] = std::iter::once(broker).chain((0..n).map(named)).collect();
    let path =
        |from: usize, to: usize, link: usize| json!({ "from": from, "to": to, "hops": [{ "link": link }] });
    plan["network"]["paths"] = (1..=n).flat_map(|host| [path(host, 0, 0), path(0, host, 1)]).collect();
}

/// As many links beside the two that the paths cross.
fn links(plan: &mut Value, n: usize) {
    let links = plan["network"]["links"].as_array_mut().expect("links");
    for number in 0..n {
        let mut link = links[0].clone();
        link["name"] = json!(format!("l{number}"));
        links.push(link);
    }
}

/// Calls of the allocator and bytes, while a plan of this size is read and everybody in it is numbered.
fn cost(shape: fn(&mut Value, usize), n: usize) -> [u64; 2] {
    let mut written = plan("pair.json");
    shape(&mut written, n);
    let text = written.to_string();
    let before = [calls(), asked()];
    let plan = Plan::from_json(&text).unwrap_or_else(|error| panic!("{n}: {error}"));
    let roster = Roster::of(&plan);
    let after = [calls(), asked()];
    drop(roster);
    [after[0] - before[0], after[1] - before[1]]
}

#[test]
fn a_plan_of_twice_as_much_costs_no_more_than_twice_as_much() {
    let mut found = Vec::new();
    for (name, shape) in SHAPES {
        let costs = [100, 200, 400].map(|n| cost(shape, n));
        for (what, unit) in ["calls", "bytes"].into_iter().enumerate() {
            let [few, more, most] = costs.map(|cost| cost[what]);
            // A line has a second step of twice the first; n log n, a little more; a square, four times.
            if (most - more) as f64 > 2.5 * (more - few) as f64 {
                found.push(format!("{name}: {few}, {more}, {most} {unit}"));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_host_without_a_path_is_found_among_thousands() {
    let mut plan = plan("pair.json");
    hosts(&mut plan, 2_000);
    groups(&mut plan, 2_000, 0);
    (0..2_000).for_each(|number| plan["groups"][number]["host"] = json!(number + 1));
    assert!(Plan::from_json(&plan.to_string()).is_ok());
    plan["network"]["paths"].as_array_mut().expect("paths").truncate(3_999);
    let refused = Plan::from_json(&plan.to_string()).expect_err("no way back").to_string();
    assert_eq!(refused, "`groups[1999].host` is `h1999`, which has no path to its server's host `broker`");
}
