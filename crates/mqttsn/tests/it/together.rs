//! Clients, gateway and broker together: whatever is lost or restarted, what was promised is kept.

use std::collections::BTreeSet;

use crate::world::World;
use mqttlab_mqtt::Qos;
use mqttlab_mqttsn::client::{Admission, ClientOptions, Meaning, Sleep};
use mqttlab_mqttsn::gateway::{GatewayOptions, Mode};
use mqttlab_units::Duration;
use proptest::prelude::*;

const MODES: [Mode; 2] = [Mode::Transparent, Mode::Aggregating];

fn options() -> ClientOptions {
    ClientOptions {
        clean: true,
        will: false,
        without_connection: false,
        keep_alive: Duration::from_s(60),
        retry: Duration::from_s(1),
        retries: 10,
        wait: Duration::from_s(5),
        max_queued: 1000,
        subscriptions: 0,
        deliver_on_release: true,
        search: None,
        sleep: None,
    }
}

fn gateway(mode: Mode) -> GatewayOptions {
    GatewayOptions {
        retry: Duration::from_s(1),
        retries: 10,
        window: 1,
        buffer: 1000,
        clients_max: 100,
        broker_window: 20,
        broker_queue: 1000,
        ..crate::checks::options(mode)
    }
}

fn s(seconds: u64) -> Duration {
    Duration::from_s(seconds)
}

/// A publisher and a subscriber that are ready.
fn pair(world: &mut World, filter: &'static str, qos: Qos) -> [usize; 2] {
    let subscriber = world.add(options(), &[], &[(filter, qos)]);
    let publisher = world.add(options(), &["a/b", "ab"], &[]);
    world.run(s(30));
    [publisher, subscriber]
}

#[test]
fn a_message_reaches_who_has_subscribed_by_name_wild_card_or_short_topic() {
    for mode in MODES {
        for (filter, topic) in [("a/b", 0), ("a/+", 0), ("#", 0), ("ab", 1)] {
            let mut world = World::new(gateway(mode), 0, 1);
            let [publisher, subscriber] = pair(&mut world, filter, Qos::AtLeastOnce);
            assert_eq!(world.publish(publisher, topic, 7, Qos::AtLeastOnce), expected(topic));
            world.run(s(1));
            assert_eq!(world.members[subscriber].got, [7], "{mode:?} {filter}");
            assert_eq!(world.members[publisher].acknowledged, [7], "{mode:?} {filter}");
            assert_eq!(world.gateway.counters().repeated, 0);
        }
    }
}

/// A short topic needs no registration.
fn expected(topic: u32) -> Admission {
    if topic == 1 { Admission::Sent } else { Admission::Waiting }
}

#[test]
fn a_topic_is_registered_once_and_named_by_its_identifier_from_then_on() {
    let mut world = World::new(gateway(Mode::Transparent), 0, 1);
    let [publisher, subscriber] = pair(&mut world, "#", Qos::AtMostOnce);
    let before = world.datagrams;
    for message in 0..10 {
        world.publish(publisher, 0, message, Qos::AtMostOnce);
        world.run(s(1));
    }
    assert_eq!(world.members[subscriber].got, (0..10).collect::<Vec<_>>());
    // Each way a PUBLISH for each message, and REGISTER and REGACK once.
    assert_eq!(world.datagrams - before, 2 * (10 + 2));
    assert!(matches!(world.members[subscriber].meaning(1), Some(Meaning::Named(name)) if &**name == "a/b"));
}

#[test]
fn quality_of_service_minus_one_needs_no_connection_and_no_answer() {
    for mode in MODES {
        let mut world = World::new(gateway(mode), 0, 1);
        let subscriber = world.add(options(), &[], &[("ab", Qos::AtMostOnce)]);
        world.run(s(1));
        let minus_one = ClientOptions { without_connection: true, ..options() };
        let publisher = world.add(minus_one, &["a/b", "ab"], &[]);
        assert_eq!(world.publish(publisher, 1, 7, Qos::AtMostOnce), Admission::Sent);
        assert_eq!(world.publish(publisher, 0, 8, Qos::AtMostOnce), Admission::Refused, "only known topics");
        let before = world.datagrams;
        world.run(s(5));
        assert_eq!(world.members[subscriber].got, [7], "{mode:?}");
        assert_eq!(world.datagrams - before, 1, "the subscriber's copy and nothing else");
    }
}

fn sleeper() -> ClientOptions {
    let sleep = Sleep { duration_s: 120, every: s(30), linger: s(1), publish_when_awake: false };
    ClientOptions { sleep: Some(sleep), ..options() }
}

#[test]
fn what_comes_for_a_sleeper_is_kept_until_it_wakes_up() {
    for mode in MODES {
        let mut world = World::new(gateway(mode), 0, 1);
        let sleeper = world.add(sleeper(), &["back"], &[("#", Qos::AtLeastOnce)]);
        let publisher = world.add(options(), &["a/b"], &[]);
        world.run(s(10));
        assert_eq!(world.gateway.snapshot().asleep, 1);
        for message in 0..5 {
            world.publish(publisher, 0, message, Qos::AtLeastOnce);
            world.run(s(1));
        }
        assert!(world.members[sleeper].got.is_empty(), "it hears nothing while it sleeps");
        assert_eq!((world.gateway.snapshot().to_clients, world.gateway.counters().kept), (5, 5));
        world.run(s(30));
        assert_eq!(world.members[sleeper].got, [0, 1, 2, 3, 4], "{mode:?}");
        assert_eq!(world.gateway.snapshot().asleep, 1, "and it sleeps again");
        // It wakes up to say something, too.
        world.publish(sleeper, 0, 77, Qos::AtLeastOnce);
        world.run(s(1));
        assert_eq!(world.members[sleeper].acknowledged, [77], "{mode:?}");
        world.run(s(300));
        assert_eq!(world.members[sleeper].closed, None, "it is never given up");
    }
}

#[test]
fn a_gateway_that_was_restarted_gets_its_clients_and_their_topics_back() {
    for mode in MODES {
        let mut world = World::new(gateway(mode), 0, 1);
        let [publisher, subscriber] = pair(&mut world, "a/+", Qos::AtLeastOnce);
        world.publish(publisher, 0, 1, Qos::AtLeastOnce);
        world.run(s(1));
        world.restart_gateway();
        world.publish(publisher, 0, 2, Qos::AtLeastOnce);
        // The subscriber learns of it when it gives a sign of life.
        world.run(s(100));
        world.publish(publisher, 0, 3, Qos::AtLeastOnce);
        world.run(s(5));
        assert_eq!(world.members[publisher].acknowledged, [1, 2, 3], "{mode:?}");
        assert_eq!(world.members[subscriber].got.last(), Some(&3), "{mode:?}");
    }
}

#[test]
fn a_client_that_was_restarted_learns_topics_anew() {
    for mode in MODES {
        for clean in [true, false] {
            let mut world = World::new(gateway(mode), 0, 1);
            let [publisher, subscriber] = pair(&mut world, "a/+", Qos::AtLeastOnce);
            world.publish(publisher, 0, 1, Qos::AtLeastOnce);
            world.run(s(1));
            world.restart_client(subscriber, ClientOptions { clean, ..options() });
            world.run(s(1));
            world.publish(publisher, 0, 2, Qos::AtLeastOnce);
            world.run(s(5));
            assert_eq!(world.members[subscriber].got, [1, 2], "{mode:?} clean: {clean}");
        }
    }
}

#[test]
fn a_client_that_falls_silent_is_given_up_and_what_waits_for_it_dropped() {
    let mut world = World::new(gateway(Mode::Aggregating), 0, 1);
    let [publisher, subscriber] = pair(&mut world, "a/b", Qos::AtLeastOnce);
    // Nobody hears it any more, and it hears nobody: it is cut off for good.
    world.members.truncate(subscriber.max(publisher) + 1);
    let silent = subscriber;
    world.members[silent].client = mqttlab_mqttsn::client::Client::new(options());
    world.publish(publisher, 0, 1, Qos::AtLeastOnce);
    world.run(s(200));
    assert_eq!(world.members[publisher].acknowledged, [1], "one client's silence is not another's");
    let (snapshot, counters) = (world.gateway.snapshot(), world.gateway.counters());
    assert_eq!((snapshot.clients, counters.lost, counters.dropped), (1, 1, 1));
}

#[test]
fn a_full_buffer_drops_what_is_new_and_the_broker_is_told_that_it_is_done_with() {
    let options_of_gateway = GatewayOptions { buffer: 2, ..gateway(Mode::Transparent) };
    let mut world = World::new(options_of_gateway, 0, 1);
    let sleeper = world.add(sleeper(), &[], &[("#", Qos::ExactlyOnce)]);
    let publisher = world.add(options(), &["a/b"], &[]);
    world.run(s(5));
    for message in 0..5 {
        world.publish(publisher, 0, message, Qos::ExactlyOnce);
    }
    world.run(s(60));
    assert_eq!(world.members[sleeper].got, [0, 1]);
    assert_eq!(world.gateway.counters().dropped, 3);
    assert_eq!(world.members[publisher].acknowledged.len(), 5);
}

#[test]
fn what_is_lost_on_the_air_is_sent_again_and_delivered_exactly_once() {
    for mode in MODES {
        let mut world = World::new(gateway(mode), 20, 7);
        let [publisher, subscriber] = pair(&mut world, "#", Qos::ExactlyOnce);
        for message in 0..50 {
            world.publish(publisher, 0, message, Qos::ExactlyOnce);
        }
        world.run(s(900));
        assert!(world.lost > 50 && world.gateway.counters().repeated > 10, "{} lost", world.lost);
        assert_eq!(world.members[subscriber].got, (0..50).collect::<Vec<_>>(), "{mode:?}, in order, too");
        assert_eq!(world.members[publisher].acknowledged.len(), 50, "{mode:?}");
    }
}

#[test]
fn a_sleeper_that_missed_the_end_of_an_exchange_is_not_given_the_message_again() {
    // Every PUBCOMP for message 23 was lost until the gateway took it for asleep again, one by this seed.
    let mut world = World::new(gateway(Mode::Transparent), 33, 15_399_989_640_085_241_220);
    let subscriber = world.add(sleeper(), &[], &[("#", Qos::ExactlyOnce)]);
    let publisher = world.add(options(), &["a/b", "ab", "c"], &[]);
    world.run(s(60));
    for message in 0..30 {
        world.publish(publisher, message % 3, message, Qos::ExactlyOnce);
        world.run(Duration::from_ms(500));
    }
    world.run(s(600));
    assert_eq!(world.members[subscriber].got, (0..30).collect::<Vec<_>>());
}

fn counted(got: &[u32]) -> BTreeSet<u32> {
    got.iter().copied().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn promises_are_kept_on_a_bad_network(
        seed in any::<u64>(), loss in 0u64..35, aggregating in any::<bool>(), asleep in any::<bool>(),
        level in 0u8..3,
    ) {
        let qos = Qos::from_level(level).unwrap();
        let mode = MODES[usize::from(aggregating)];
        let mut world = World::new(gateway(mode), loss, seed);
        let kind = if asleep { sleeper() } else { options() };
        let subscriber = world.add(kind, &[], &[("#", qos)]);
        let publisher = world.add(options(), &["a/b", "ab", "c"], &[]);
        world.run(s(60));
        let connections = [publisher, subscriber].map(|member| world.members[member].closed);
        for message in 0..30 {
            world.publish(publisher, message % 3, message, qos);
            world.run(Duration::from_ms(500));
        }
        world.run(s(600));
        let Member { got, .. } = &world.members[subscriber];
        let all: BTreeSet<u32> = (0..30).collect();
        // Who was given up on the way, which 10 repetitions make rare, may have missed something.
        let kept = [publisher, subscriber].map(|member| world.members[member].closed) == connections
            && connections == [None; 2] && world.gateway.counters().lost == 0;
        prop_assert!(counted(got).is_subset(&all));
        match qos {
            Qos::AtMostOnce => prop_assert_eq!(counted(got).len(), got.len(), "no message twice"),
            Qos::AtLeastOnce if kept => prop_assert_eq!(counted(got), all),
            Qos::ExactlyOnce if kept => {
                prop_assert_eq!(counted(got), all);
                prop_assert_eq!(got.len(), 30, "exactly once");
            }
            _ => {}
        }
        if qos > Qos::AtMostOnce && kept {
            prop_assert_eq!(world.members[publisher].acknowledged.len(), 30);
        }
    }
}

use crate::world::Member;
