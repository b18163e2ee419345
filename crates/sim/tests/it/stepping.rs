//! A simulation can be run through, stepped, stopped and looked at: it is the same one each time.

use crate::support::{Quiet, Scratch, corpus, finish, recorded, simulation, tables};
use mqttlab_units::{Duration, Instant};

const PLANS: [&str; 6] =
    ["lossy.json", "relay.json", "stop.json", "radio.json", "back-to-back.json", "direct.json"];

#[test]
fn the_same_plan_leaves_the_same_bytes_twice() {
    let scratch = Scratch::new("twice");
    for name in PLANS {
        let plan = corpus(name);
        let once = recorded(&plan, scratch.run(&format!("{name}-1")));
        let twice = recorded(&plan, scratch.run(&format!("{name}-2")));
        assert!(once.len() > 5 && once == twice, "{name}");
    }
}

#[test]
fn another_seed_leaves_other_bytes() {
    let scratch = Scratch::new("seeds");
    let mut plan = corpus("lossy.json");
    let once = recorded(&plan, scratch.run("1"));
    plan["seed"] = serde_json::json!(plan["seed"].as_u64().expect("a seed") + 1);
    assert_ne!(once, recorded(&plan, scratch.run("2")));
}

#[test]
fn stepping_and_stopping_equal_running_through() {
    let scratch = Scratch::new("steps");
    for name in PLANS {
        let plan = corpus(name);
        let whole = recorded(&plan, scratch.run(&format!("{name}-whole")));

        let directory = scratch.run(&format!("{name}-stepped"));
        let mut stepped = simulation(&plan, directory.clone());
        while !stepped.is_over() {
            stepped.step(&mut Quiet).expect("a step");
        }
        finish(stepped);
        assert!(tables(&directory) == whole, "{name}, stepped");

        let directory = scratch.run(&format!("{name}-stopped"));
        let mut stopped = simulation(&plan, directory.clone());
        let mut until = Instant::ZERO;
        while !stopped.is_over() {
            until += Duration::from_ms(7);
            stopped.run_until(until, &mut Quiet).expect("a run");
            assert!(stopped.is_over() || stopped.now() == until, "{name}");
        }
        finish(stopped);
        assert!(tables(&directory) == whole, "{name}, stopped and gone on");
    }
}

#[test]
fn looking_changes_nothing() {
    let scratch = Scratch::new("looks");
    let plan = corpus("lossy.json");
    let directory = scratch.run("looked-at");
    let mut simulation = simulation(&plan, directory.clone());
    while !simulation.is_over() {
        simulation.step(&mut Quiet).expect("a step");
        assert_eq!(simulation.state().expect("a state"), simulation.state().expect("a state"));
    }
    finish(simulation);
    assert!(tables(&directory) == recorded(&plan, scratch.run("unseen")));
}

#[test]
fn time_never_runs_back_and_nothing_is_due_in_the_past() {
    let scratch = Scratch::new("time");
    for name in PLANS {
        let mut simulation = simulation(&corpus(name), scratch.run(name));
        while !simulation.is_over() {
            let (now, next) = (simulation.now(), simulation.next_event_at().expect("a next event"));
            assert!(next >= now, "{name}: {next} is before {now}");
            simulation.step(&mut Quiet).expect("a step");
            assert_eq!(simulation.now(), next, "{name}: a step goes to the next event");
        }
        finish(simulation);
    }
}

#[test]
fn a_stopped_simulation_says_what_is_where() {
    let scratch = Scratch::new("state");
    let mut simulation = simulation(&corpus("back-to-back.json"), scratch.run("run"));
    simulation.run_until(Instant::ZERO + Duration::from_ms(700), &mut Quiet).expect("a run");
    let state = simulation.state().expect("a state");
    assert_eq!((state.at_ns, state.phase), (700_000_000, "measurement"));
    let [server, others] = [0, 1].map(|host| &state.hosts[host]);
    assert_eq!((server.servers.len(), server.clients.len(), others.clients.len()), (1, 0, 4));
    let sockets: Vec<_> = others.sockets.iter().map(|socket| (socket.side, socket.state)).collect();
    assert_eq!(sockets, [("client", "ESTABLISHED"); 4]);
    assert_eq!(server.sockets.len(), 4, "the other ends of the same connections");
    let session = |client: &str| {
        let sessions = &server.servers[0].sessions;
        sessions.iter().find(|session| session.client.contains(client)).expect("a session")
    };
    assert!(session("s").subscriptions == 1 && session("s").connected, "{:?}", session("s"));
    // Its publishers always have something to say: a window is in flight, or waits for the wire.
    let busy = others.clients.iter().filter(|client| client.unacknowledged > 0).count();
    assert_eq!(busy, 2, "{:?}", others.clients);
    let json = serde_json::to_value(&state).expect("JSON");
    assert_eq!(json["hosts"][1]["sockets"][0]["state"], "ESTABLISHED");
    assert_eq!(json["links"].as_array().map(Vec::len), Some(2));
}
