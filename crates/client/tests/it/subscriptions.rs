//! A client whose subscriptions change, as conversations.

use crate::world::{World, accepted, connected, facts};
use expect_test::expect;
use mqttlab_client::{GroupFacts, Loss};
use mqttlab_mqtt::client::Input;

#[test]
fn a_client_asks_for_one_change_at_a_time_and_for_what_was_not_answered_again() {
    let mut world = World { changes: vec![("a", false), ("b", true), ("b", false)], ..World::default() };
    let mut client = connected(GroupFacts { subscribes: true, ..facts() }, &mut world);
    // Before it is subscribed at all.
    client.change_subscriptions(world.at(5));
    client.change_subscriptions(world.at(6));
    client.packet(world.at(10), Input::Suback { id: 1 }).unwrap();
    client.packet(world.at(20), Input::Unsuback { id: 2 }).unwrap();
    client.lose(world.at(25), &Loss::broken("gone"));
    client.change_subscriptions(world.at(30));
    client.wake(world.at(1_100));
    client.opened(&mut world);
    // Its session is lost: it has unsubscribed from the only filter, and not subscribed to the other one.
    client.packet(world.at(1_110), accepted(false)).unwrap();
    client.packet(world.at(1_120), Input::Suback { id: 4 }).unwrap();
    client.packet(world.at(1_130), Input::Unsuback { id: 5 }).unwrap();
    assert_eq!((world.books.connected, world.books.ready), (1, 1));
    expect![[r#"
        +0 open
        +0 put Connect
        +0 event connect
        +0 event connack after 0 ns
        +0 put Subscribe { id: PacketId(1), changes: 0 }
        +0 event subscribe
        +10 event suback after 10 ms
        +10 put ChangeSubscription { id: PacketId(2), change: 0, subscribes: false }
        +10 event unsubscribe a
        +20 event unsuback after 10 ms a
        +20 put ChangeSubscription { id: PacketId(3), change: 1, subscribes: true }
        +20 event subscribe b
        +25 close
        +25 event disconnect gone
        +1100 event reconnect
        +1100 open
        +1100 put Connect
        +1100 event connect
        +1110 event connack after 10 ms
        +1110 put ChangeSubscription { id: PacketId(4), change: 1, subscribes: true }
        +1110 event subscribe b
        +1120 event suback after 10 ms b
        +1120 put ChangeSubscription { id: PacketId(5), change: 2, subscribes: false }
        +1120 event unsubscribe b
        +1130 event unsuback after 10 ms b
    "#]]
    .assert_eq(&world.take());
}

#[test]
fn a_new_session_gets_what_the_client_had_after_its_changes() {
    let mut world = World { changes: vec![("b", true)], ..World::default() };
    let mut client = connected(GroupFacts { subscribes: true, ..facts() }, &mut world);
    client.packet(&mut world, Input::Suback { id: 1 }).unwrap();
    client.change_subscriptions(world.at(5));
    client.packet(world.at(6), Input::Suback { id: 2 }).unwrap();
    client.lose(world.at(25), &Loss::broken("gone"));
    world.take();
    client.wake(world.at(1_100));
    client.opened(&mut world);
    client.packet(world.at(1_110), accepted(false)).unwrap();
    expect![[r#"
        +1100 event reconnect
        +1100 open
        +1100 put Connect
        +1100 event connect
        +1110 event connack after 10 ms
        +1110 put Subscribe { id: PacketId(3), changes: 1 }
        +1110 event subscribe
    "#]]
    .assert_eq(&world.take());
}
