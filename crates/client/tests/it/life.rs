//! A client's life, as conversations: what happens to it, and what it does, in milliseconds.

use crate::world::{
    Message, OPTIONS, World, accepted, arrivals, client, client_of, connected, every, facts, publishing,
    publishing_each, started,
};
use expect_test::expect;
use mqttlab_client::{GroupFacts, Loss, RelayFacts, State};
use mqttlab_mqtt::Qos;
use mqttlab_mqtt::client::{ClientOptions, Input};
use mqttlab_plan::{Arrival, StartPhase};
use mqttlab_units::{Duration, Instant};

#[test]
fn a_client_connects_subscribes_and_is_ready() {
    let (mut world, mut client) = (World::default(), client(GroupFacts { subscribes: true, ..facts() }));
    client.wake(&mut world);
    client.opened(world.at(10));
    client.flush(&mut world);
    client.packet(world.at(20), accepted(false)).unwrap();
    client.flush(&mut world);
    assert_eq!((world.books.connected, world.books.ready), (1, 0));
    client.packet(world.at(35), Input::Suback { id: 1 }).unwrap();
    assert_eq!((world.books.connected, world.books.ready), (1, 1));
    expect![[r#"
        +0 open
        +10 put Connect
        +10 event connect
        +20 event connack after 20 ms
        +20 put Subscribe { id: PacketId(1), changes: 0 }
        +20 event subscribe
        +35 event suback after 15 ms
    "#]]
    .assert_eq(&world.take());
}

#[test]
fn a_resumed_session_with_subscriptions_is_ready_at_once() {
    let mut world = World::default();
    let mut client = connected(GroupFacts { subscribes: true, ..facts() }, &mut world);
    client.packet(&mut world, Input::Suback { id: 1 }).unwrap();
    client.lose(&mut world, &Loss::broken("gone"));
    assert_eq!((world.books.connected, world.books.ready, world.books.disconnects), (0, 0, 1));
    world.take();
    client.wake(world.at(1_000));
    client.opened(&mut world);
    client.packet(&mut world, accepted(true)).unwrap();
    assert_eq!((world.books.connected, world.books.ready), (1, 1));
    expect![[r#"
        +1000 event reconnect
        +1000 open
        +1000 put Connect
        +1000 event connect
        +1000 event connack after 0 ns session present
    "#]]
    .assert_eq(&world.take());
}

#[test]
fn clients_of_a_group_connect_evenly_over_its_time() {
    let spread = GroupFacts { connect_over: (Duration::from_s(3), 6), ..facts() };
    let begins: Vec<_> =
        (0..6).map(|index| spread.connects_at(index, Instant::ZERO).as_ns() / 1_000_000).collect();
    assert_eq!(begins, [0, 500, 1000, 1500, 2000, 2500]);
}

#[test]
fn attempts_in_vain_are_repeated_with_longer_and_longer_pauses() {
    let (mut world, mut client) = (World { opens: false, ..World::default() }, client(facts()));
    for _ in 0..5 {
        client.wake(&mut world);
        let next = client.next_deadline(&world).unwrap();
        world.now = next;
    }
    expect![[r#"
        +0 open
        +0 close
        +0 event note there is no way
        +1000 event reconnect
        +1000 open
        +1000 close
        +1000 event note there is no way
        +3000 event reconnect
        +3000 open
        +3000 close
        +3000 event note there is no way
        +6000 event reconnect
        +6000 open
        +6000 close
        +6000 event note there is no way
        +9000 event reconnect
        +9000 open
        +9000 close
        +9000 event note there is no way
    "#]]
    .assert_eq(&world.take());
}

#[test]
fn each_wait_after_a_lost_connection_is_twice_the_last_until_the_client_is_accepted_again() {
    let mut world = World::default();
    let mut client = connected(facts(), &mut world);
    let mut waits = Vec::new();
    for succeeds in [false, false, true, false] {
        client.lose(&mut world, &Loss::broken("reset"));
        let next = client.next_deadline(&world).unwrap();
        waits.push(next.since(world.now).as_ns() / 1_000_000);
        world.now = next;
        client.wake(&mut world);
        if succeeds {
            client.opened(&mut world);
            client.packet(&mut world, accepted(false)).unwrap();
        }
    }
    assert_eq!(waits, [1000, 2000, 3000, 1000], "3 s is the maximum");
}

#[test]
fn a_connection_must_open_and_be_accepted_in_time() {
    let (mut world, mut client) = (World::default(), client(facts()));
    client.wake(&mut world);
    assert_eq!(client.next_deadline(&world), Some(Instant::ZERO + Duration::from_s(5)));
    client.wake(world.at(4_999));
    client.wake(world.at(5_000));
    client.wake(world.at(6_000));
    client.opened(world.at(7_000));
    // Opening and being accepted share one time.
    assert_eq!(client.next_deadline(&world), Some(Instant::ZERO + Duration::from_s(11)));
    client.wake(world.at(11_000));
    expect![[r#"
        +0 open
        +5000 close
        +5000 event note no connection in time
        +6000 event reconnect
        +6000 open
        +7000 put Connect
        +7000 event connect
        +11000 close
        +11000 event note no CONNACK in time
    "#]]
    .assert_eq(&world.take());
}

#[test]
fn a_refusal_for_good_ends_a_client_and_a_passing_one_does_not() {
    for (for_good, gone) in [(true, 1), (false, 0)] {
        let (mut world, mut client) = (World::default(), client(facts()));
        client.wake(&mut world);
        client.opened(&mut world);
        client.lose(&mut world, &Loss::Refused { how: "no".into(), for_good });
        assert_eq!((world.books.gone, world.books.failed, world.books.disconnects), (gone, gone, 0));
        assert_eq!(client.is_gone(), for_good);
    }
}

#[test]
fn a_client_without_a_message_due_has_nothing_left_to_offer() {
    let mut world = World::default();
    let mut client = connected(publishing(Qos::AtLeastOnce), &mut world);
    // Of a mean of an hour nothing falls into a second.
    let hourly = Arrival::Poisson { mean_interval_ns: 3_600_000_000_000 };
    client.begin(&mut world, started(hourly, StartPhase::Random));
    assert_eq!(world.books.publishing, 0);
    client.stop_publishing(&mut world);
    assert_eq!((world.books.publishing, world.books.offered), (0, 0));
}

#[test]
fn a_message_is_sent_written_and_acknowledged() {
    let mut world = World::default();
    let mut client = connected(publishing(Qos::AtLeastOnce), &mut world);
    client.begin(&mut world, every(600));
    assert_eq!(world.books.publishing, 1);
    world.take();
    client.wake(world.at(1_000));
    assert_eq!((world.books.unacknowledged, world.books.expected), (1, 2));
    client.packet(world.at(1_050), Input::Puback { id: 1, code: 0 }).unwrap();
    assert_eq!((world.books.unacknowledged, world.books.sent), (0, 1));
    client.wake(world.at(1_600));
    client.packet(world.at(1_601), Input::Puback { id: 2, code: 0x87 }).unwrap();
    assert_eq!((world.books.unacknowledged, world.books.publishing), (0, 0));
    expect![[r#"
        +1000 put own 0: id 1, QoS 1
        +1000 admitted 0
        +1000 row sent 0: due 1000, written at 1000
        +1050 row acknowledged 0
        +1600 put own 1: id 2, QoS 1
        +1600 admitted 1
        +1600 row sent 1: due 1600, written at 1600
        +1601 event refused PUBLISH to t: code 0x87 (not authorised)
        +1601 row dropped 1: refused
    "#]]
    .assert_eq(&world.take());
}

#[test]
fn what_the_session_does_not_take_is_unsent() {
    let (mut world, mut client) = (World::default(), client(publishing(Qos::AtMostOnce)));
    client.wake(&mut world);
    client.begin(&mut world, every(900));
    client.wake(world.at(1_000));
    assert_eq!((world.books.offered, world.books.sent, world.books.expected), (1, 0, 0));
    expect![[r#"
        +0 open
        +1000 row unsent 0
    "#]]
    .assert_eq(&world.take());
}

#[test]
fn messages_wait_for_a_connection_and_the_surplus_is_unsent() {
    let (mut world, mut client) = (World::default(), client(publishing(Qos::AtLeastOnce)));
    client.wake(&mut world);
    client.begin(&mut world, every(300));
    for at in [1_000, 1_300, 1_600] {
        client.wake(world.at(at));
    }
    client.opened(world.at(1_700));
    client.packet(world.at(1_750), accepted(false)).unwrap();
    client.flush(&mut world);
    expect![[r#"
        +0 open
        +1000 row sent 0: due 1000, not written
        +1000 admitted 0
        +1300 row sent 1: due 1300, not written
        +1300 admitted 1
        +1600 row unsent 2
        +1700 put Connect
        +1700 event connect
        +1750 event connack after 1.75 s
        +1750 put own 0: id 1, QoS 1
        +1750 put own 1: id 2, QoS 1
        +1750 row sent 0: due 1000, written at 1750
        +1750 row sent 1: due 1300, written at 1750
    "#]]
    .assert_eq(&world.take());
    assert_eq!((world.books.offered, world.books.sent, world.books.unacknowledged), (3, 2, 2));
}

#[test]
fn a_message_that_waits_long_for_the_transport_is_recorded_twice() {
    let mut world = World::default();
    let mut client = connected(publishing(Qos::AtMostOnce), &mut world);
    client.begin(&mut world, every(600));
    world.take();
    world.takes = 40;
    client.wake(world.at(1_000));
    client.flush(world.at(1_100));
    world.takes = 1_000;
    client.flush(world.at(1_200));
    expect![[r#"
        +1000 put own 0: id 0, QoS 0
        +1000 admitted 0
        +1100 row sent 0: due 1000, not written
        +1200 row sent 0: due 1000, written at 1200
    "#]]
    .assert_eq(&world.take());
}

#[test]
fn a_message_that_the_transport_takes_in_pieces_is_recorded_once() {
    let mut world = World::default();
    let mut client = connected(publishing(Qos::AtMostOnce), &mut world);
    client.begin(&mut world, every(600));
    world.take();
    world.takes = 40;
    client.wake(world.at(1_000));
    world.takes = 1_000;
    client.flush(world.at(1_050));
    expect![[r#"
        +1000 put own 0: id 0, QoS 0
        +1000 admitted 0
        +1050 row sent 0: due 1000, written at 1050
    "#]]
    .assert_eq(&world.take());
}

#[test]
fn what_a_lost_connection_has_not_taken_is_sent_on_the_next_one() {
    let mut world = World::default();
    let mut client = connected(publishing(Qos::AtLeastOnce), &mut world);
    client.begin(&mut world, every(900));
    world.take();
    world.takes = 0;
    client.wake(world.at(1_000));
    client.lose(world.at(1_100), &Loss::broken("cut"));
    world.takes = 1_000;
    client.wake(world.at(2_100));
    client.opened(&mut world);
    client.packet(world.at(2_150), accepted(true)).unwrap();
    client.flush(&mut world);
    expect![[r#"
        +1000 put own 0: id 1, QoS 1
        +1000 admitted 0
        +1000 row sent 0: due 1000, not written
        +1100 close
        +1100 event disconnect cut
        +2100 event reconnect
        +2100 open
        +2100 row sent 1: due 1900, not written
        +2100 admitted 1
        +2100 put Connect
        +2100 event connect
        +2150 event connack after 50 ms session present
        +2150 put own 0: id 1, QoS 1, DUP
        +2150 put own 1: id 2, QoS 1
        +2150 row sent 0: due 1000, written at 2150
        +2150 row sent 1: due 1900, written at 2150
    "#]]
    .assert_eq(&world.take());
}

#[test]
fn a_repetition_does_not_move_the_time_of_writing() {
    let mut world = World::default();
    let mut client = connected(publishing(Qos::AtLeastOnce), &mut world);
    client.begin(&mut world, every(900));
    client.wake(world.at(1_000));
    client.lose(world.at(1_100), &Loss::broken("cut"));
    world.take();
    client.wake(world.at(1_950));
    client.opened(world.at(2_100));
    client.wake(world.at(2_100));
    client.opened(&mut world);
    client.packet(world.at(2_150), accepted(true)).unwrap();
    client.flush(&mut world);
    let transcript = world.take();
    assert!(transcript.contains("put own 0: id 1, QoS 1, DUP"), "{transcript}");
    assert!(!transcript.contains("row sent 0"), "{transcript}");
}

#[test]
fn a_turn_ends_and_the_rest_is_due_at_once() {
    let mut world = World { turn: 2, ..World::default() };
    let mut client = connected(publishing(Qos::AtMostOnce), &mut world);
    client.begin(&mut world, every(100));
    assert_eq!(client.wake(world.at(1_450)).messages, 2);
    assert!(client.next_deadline(&world).unwrap() <= world.now);
    assert_eq!(client.wake(&mut world).messages, 2);
    assert_eq!(client.wake(&mut world).messages, 1);
    assert_eq!(client.next_deadline(&world), Some(Instant::ZERO + Duration::from_ms(1_500)));
}

#[test]
fn what_a_burst_takes_to_be_handed_over_is_no_lateness() {
    let mut world = World { tick: Duration::from_us(2), ..World::default() };
    let mut client = connected(publishing(Qos::AtMostOnce), &mut world);
    client.begin(&mut world, arrivals(Arrival::Burst { size: 500, interval_ns: 10_000_000, gap_ns: 0 }));
    client.wake(world.at(1_003));
    assert_eq!((world.late.len(), world.late[499]), (500, world.late[0]));
    assert!(world.now > Instant::ZERO + Duration::from_us(1_004_000), "{}", world.now);
    // What is due at times of its own is late by each.
    client.wake(world.at(1_035));
    let bursts: Vec<_> = world.late.chunks(500).map(|burst| burst[0].as_ns() / 1_000_000).collect();
    assert_eq!(bursts, [3, 25, 16, 7]);
}

#[test]
fn a_back_to_back_client_offers_while_session_and_transport_have_room() {
    let mut world = World::default();
    let mut facts = publishing(Qos::AtLeastOnce);
    facts.publications[0].back_to_back = true;
    let mut client = connected(facts, &mut world);
    client.begin(&mut world, arrivals(Arrival::BackToBack));
    // Two are in flight at most.
    assert_eq!(client.wake(world.at(1_000)).messages, 2);
    assert_eq!(client.next_deadline(&world), Some(Instant::ZERO + Duration::from_s(2)));
    client.packet(world.at(1_010), Input::Puback { id: 1, code: 0 }).unwrap();
    assert_eq!(client.publish_due(&mut world).messages, 1);
    // One that waits for room when publishing ends was never due.
    client.wake(world.at(2_000));
    assert_eq!((world.books.offered, world.books.publishing), (3, 0));
}

#[test]
fn a_back_to_back_client_of_qos_0_waits_for_the_transport() {
    let mut world = World { takes: 0, ..World::default() };
    let mut facts = publishing(Qos::AtMostOnce);
    facts.publications[0].back_to_back = true;
    let mut client = connected(facts, &mut world);
    client.begin(&mut world, arrivals(Arrival::BackToBack));
    let offered = client.wake(world.at(1_000));
    assert_eq!(offered.messages, 656, "64 KiB of 100 B each, but for the 10 B of CONNECT");
}

#[test]
fn what_was_due_is_offered_when_publishing_ends() {
    let mut world = World::default();
    let mut client = connected(publishing(Qos::AtMostOnce), &mut world);
    client.begin(&mut world, every(300));
    world.at(1_700);
    client.stop_publishing(&mut world);
    assert_eq!((world.books.offered, world.books.sent, world.books.publishing), (3, 3, 0));
    client.wake(world.at(1_900));
    assert_eq!(world.books.offered, 3);
}

#[test]
fn deliveries_count_once_whatever_is_repeated() {
    let mut world = World::default();
    let mut client = connected(facts(), &mut world);
    world.take();
    for message in [
        Message::of(1, 0, Qos::AtLeastOnce),
        Message { dup: true, ..Message::of(1, 0, Qos::AtLeastOnce) },
        Message { origin: None, ..Message::of(1, 0, Qos::AtMostOnce) },
        Message { origin: None, is_a_clients: true, ..Message::of(1, 0, Qos::AtMostOnce) },
    ] {
        client.message(&mut world, &message).unwrap();
    }
    assert_eq!((world.books.delivered, world.books.foreign), (2, 1));
    expect![[r#"
        +0 put Answer { kind: Puback, id: PacketId(7) }
        +0 row received 1/0
        +0 delivered 0, first true
        +0 put Answer { kind: Puback, id: PacketId(7) }
        +0 row received 1/0
        +0 delivered 0, first false
        +0 row received ?/0
        +0 delivered 0, first false
        +0 row received ?/0
        +0 delivered 0, first true
    "#]]
    .assert_eq(&world.take());
}

#[test]
fn a_qos2_message_is_delivered_and_relayed_when_it_is_released() {
    let relay = Some(RelayFacts { suffix: "/copy".into(), qos: Qos::AtLeastOnce });
    let mut world = World::default();
    let mut client = connected(GroupFacts { relay, ..facts() }, &mut world);
    world.take();
    let message = Message::of(1, 4, Qos::ExactlyOnce);
    client.message(world.at(10), &message).unwrap();
    client.message(world.at(20), &message).unwrap();
    assert_eq!(world.books.delivered, 0);
    client.packet(world.at(30), Input::Pubrel { id: 7 }).unwrap();
    assert_eq!((world.books.delivered, world.books.unacknowledged), (1, 1));
    client.packet(world.at(40), Input::Puback { id: 1, code: 0 }).unwrap();
    assert_eq!(world.books.unacknowledged, 0);
    expect![[r#"
        +10 put Answer { kind: Pubrec, id: PacketId(7) }
        +20 put Answer { kind: Pubrec, id: PacketId(7) }
        +30 row received 1/4
        +30 delivered 4, first true
        +30 put Answer { kind: Pubcomp, id: PacketId(7) }
        +30 put relayed t/copy: id 1, QoS 1
    "#]]
    .assert_eq(&world.take());
}

#[test]
fn a_copy_whose_topic_would_be_too_long_is_not_made() {
    let relay = Some(RelayFacts { suffix: "/of a much too long topic".into(), qos: Qos::AtLeastOnce });
    let mut world = World::default();
    let mut client = connected(GroupFacts { relay, ..facts() }, &mut world);
    client.message(&mut world, &Message::of(1, 0, Qos::AtMostOnce)).unwrap();
    assert_eq!((world.books.delivered, world.books.unacknowledged), (1, 0));
}

#[test]
fn what_is_held_is_forgotten_with_the_session() {
    let mut world = World::default();
    let mut client = connected(facts(), &mut world);
    client.message(&mut world, &Message::of(1, 4, Qos::ExactlyOnce)).unwrap();
    client.lose(&mut world, &Loss::broken("cut"));
    client.wake(world.at(1_000));
    client.opened(&mut world);
    client.packet(&mut world, accepted(false)).unwrap();
    client.packet(&mut world, Input::Pubrel { id: 7 }).unwrap();
    assert_eq!(world.books.delivered, 0);
}

#[test]
fn a_session_that_was_not_asked_for_ends_the_connection() {
    let options = ClientOptions { clean: true, ..OPTIONS };
    let (mut world, mut client) = (World::default(), client_of(facts(), options));
    client.wake(&mut world);
    client.opened(&mut world);
    let loss = client.packet(&mut world, accepted(true)).unwrap_err();
    assert_eq!(loss, Loss::broken("CONNACK: a session is present, although the client asked for a new one"));
    assert_eq!(world.books.connected, 0);
}

#[test]
fn a_message_before_the_acceptance_ends_the_connection() {
    let (mut world, mut client) = (World::default(), client(facts()));
    client.wake(&mut world);
    client.opened(&mut world);
    let loss = client.message(&mut world, &Message::of(1, 0, Qos::AtMostOnce)).unwrap_err();
    assert_eq!(loss, Loss::broken("a packet that is not allowed here"));
}

#[test]
fn a_client_that_leaves_says_so_and_offers_nothing_more() {
    let mut world = World::default();
    let mut client = connected(publishing(Qos::AtMostOnce), &mut world);
    client.begin(&mut world, every(400));
    world.take();
    world.at(1_100).leaving = true;
    client.leave(&mut world);
    assert!(!client.is_listening(&world) && client.is_open());
    client.lose(world.at(1_200), &Loss::Farewell);
    expect![[r#"
        +1100 row unsent 0
        +1100 put Bare(Disconnect)
        +1200 close
        +1200 event close
    "#]]
    .assert_eq(&world.take());
    assert_eq!((world.books.gone, world.books.failed, world.books.disconnects), (1, 0, 0));
}

#[test]
fn a_client_that_waits_leaves_without_a_word() {
    let (mut world, mut client) = (World { leaving: true, ..World::default() }, client(facts()));
    client.leave(&mut world);
    assert!(client.is_gone());
    client.lose(&mut world, &Loss::broken("again"));
    assert_eq!(world.books.gone, 1);
}

#[test]
fn nobody_waits_for_what_a_client_that_gave_up_had_sent() {
    let mut facts = publishing(Qos::AtLeastOnce);
    facts.reconnect.enabled = false;
    let mut world = World::default();
    let mut client = connected(facts, &mut world);
    client.begin(&mut world, every(300));
    client.wake(world.at(1_000));
    client.lose(world.at(1_100), &Loss::broken("cut"));
    assert_eq!((world.books.failed, world.books.unacknowledged), (1, 0));
    // The schedule goes on, and nobody takes what it offers.
    client.wake(world.at(1_300));
    assert_eq!((world.books.offered, world.books.sent), (2, 1));
}

#[test]
fn a_snapshot_counts_what_waits_where() {
    let (mut world, mut client) = (World::default(), client(publishing(Qos::AtLeastOnce)));
    client.wake(&mut world);
    client.begin(&mut world, every(300));
    client.wake(world.at(1_000));
    client.wake(world.at(1_300));
    let waiting = client.snapshot();
    assert_eq!((waiting.not_put, waiting.unacknowledged, waiting.unwritten), (2, 2, 0));
    assert_eq!(waiting.state, State::Opening { since: Instant::ZERO });
    world.takes = 0;
    client.opened(world.at(1_400));
    client.packet(&mut world, accepted(false)).unwrap();
    client.message(&mut world, &Message::of(1, 0, Qos::ExactlyOnce)).unwrap();
    let open = client.snapshot();
    assert_eq!((open.not_put, open.unacknowledged, open.unwritten, open.held), (0, 2, 2, 1));
    assert!(open.is_online);
    client.packet(&mut world, Input::Puback { id: 1, code: 0 }).unwrap();
    assert_eq!(client.snapshot().unacknowledged, 1, "its place is free, and counts no more");
}

#[test]
fn what_is_not_written_when_the_run_ends_is_recorded_as_such() {
    let mut world = World { takes: 0, ..World::default() };
    let mut client = connected(publishing(Qos::AtMostOnce), &mut world);
    client.begin(&mut world, every(900));
    world.at(1_000);
    client.publish_due(&mut world);
    world.take();
    client.end(&mut world);
    expect![[r#"
        +1000 row sent 0: due 1000, not written
    "#]]
    .assert_eq(&world.take());
}

#[test]
fn publications_side_by_side_are_counted_together_in_the_order_of_their_due_times() {
    let mut world = World::default();
    let mut client = connected(publishing_each(&[Qos::AtMostOnce, Qos::AtLeastOnce]), &mut world);
    world.take();
    client.begin(&mut world, [every(400), every(700)].concat());
    assert_eq!(client.wake(world.at(1_000)).messages, 2);
    assert_eq!(client.next_deadline(&world), Some(Instant::ZERO + Duration::from_us(1_400_000)));
    // Late: what was due meanwhile comes in the order of its due times.
    client.wake(world.at(1_900));
    let transcript = world.take();
    let rows: Vec<&str> =
        transcript.lines().filter(|line| line.contains("row sent")).map(str::trim).collect();
    expect![[r#"
        [
            "+1000 row sent 0: due 1000, written at 1000",
            "+1000 row sent 1: due 1000, written at 1000",
            "+1900 row sent 2: due 1400, written at 1900",
            "+1900 row sent 3: due 1700, written at 1900",
            "+1900 row sent 4: due 1800, written at 1900",
        ]
    "#]]
    .assert_debug_eq(&rows);
    assert_eq!((world.books.offered, world.books.unacknowledged, world.books.publishing), (5, 2, 0));
}

#[test]
fn a_publication_without_room_does_not_hold_up_another() {
    let mut world = World::default();
    let mut facts = publishing_each(&[Qos::AtLeastOnce, Qos::AtMostOnce]);
    facts.publications[0].back_to_back = true;
    let mut client = connected(facts, &mut world);
    client.begin(&mut world, [arrivals(Arrival::BackToBack), every(300)].concat());
    // Two of QoS 1 are in flight at most.
    assert_eq!(client.wake(world.at(1_000)).messages, 3);
    assert_eq!(client.next_deadline(&world), Some(Instant::ZERO + Duration::from_us(1_300_000)));
    assert_eq!(client.wake(world.at(1_300)).messages, 1);
    // One that waits for room when publishing ends was never due; what has a time of its own was.
    client.wake(world.at(2_000));
    assert_eq!((world.books.offered, world.books.publishing), (6, 0));
}
