//! What a message costs a live client in calls of the allocator, from its schedule to the row of its reception.

#[path = "it/fleet_support/mod.rs"]
mod fleet_support;

use fleet_support::{Mosquitto, Performance, plan, publisher, subscriber};
use mqttlab_counting::{Counting, calls_of_all_threads};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Calls while the clients publish for so long, a message every 200 µs.
fn calls(broker: &Mosquitto, qos: u8, duration_ms: u64) -> u64 {
    let groups = [publisher("p", 1, "t", qos, 200), subscriber("s", 1, "t", qos)];
    let performance = Performance::start(plan(broker.port, duration_ms, &groups));
    performance.wait_until_ready();
    let schedule = performance.begin();
    let before = calls_of_all_threads();
    performance.wait_until_settled(schedule);
    let spent = calls_of_all_threads() - before;
    assert_eq!(performance.end().fates()["delivered"] as u64, duration_ms * 5);
    spent
}

#[test]
fn a_live_message_costs_no_call_of_the_allocator() {
    let Some(broker) = Mosquitto::start("") else { return };
    for qos in [0, 1, 2] {
        let [short, long] = [500, 2000].map(|duration_ms| calls(&broker, qos, duration_ms));
        let messages = 1500 * 5;
        // Buffers grow while a busy machine lets messages pile up, which is a call for many.
        let calls_a_message = long.saturating_sub(short) as f64 / f64::from(messages);
        assert!(calls_a_message < 0.1, "QoS {qos}: {short} calls in 0.5 s, {long} in 2 s");
        println!("QoS {qos}: {calls_a_message:.4} calls a message");
    }
}
