//! A client that leaves in the course of a run and comes back, as conversations.

use crate::world::{World, connected, every, facts, publishing};
use expect_test::expect;
use mqttlab_client::{Loss, State};
use mqttlab_mqtt::Qos;

#[test]
fn a_client_that_disconnects_waits_for_the_other_side_and_stays_away_until_it_comes_back() {
    let mut world = World::default();
    let mut client = connected(facts(), &mut world);
    world.take();
    client.disconnect(world.at(100));
    assert_eq!((client.is_open(), client.is_listening(&world)), (true, false));
    client.lose(world.at(110), &Loss::broken("the broker closed the connection"));
    assert_eq!((client.snapshot().state, client.next_deadline(&world)), (State::Away, None));
    client.disconnect(world.at(120));
    client.come_back(world.at(500));
    client.come_back(&mut world);
    client.wake(&mut world);
    assert_eq!((world.books.disconnects, world.books.failed, world.books.gone), (0, 0, 0));
    expect![[r#"
        +100 put Bare(Disconnect)
        +110 close
        +110 event close
        +500 event reconnect
        +500 open
    "#]]
    .assert_eq(&world.take());
}

#[test]
fn a_client_that_vanishes_offers_in_vain_and_one_that_comes_back_at_once_closes_first() {
    let mut world = World::default();
    let mut client = connected(publishing(Qos::AtLeastOnce), &mut world);
    client.begin(&mut world, every(400));
    world.take();
    client.wake(world.at(1_000));
    client.vanish(world.at(1_100));
    client.wake(world.at(1_400));
    client.come_back(world.at(1_500));
    client.wake(&mut world);
    client.disconnect(world.at(1_600));
    client.come_back(world.at(1_700));
    client.wake(world.at(1_800));
    assert_eq!((world.books.offered, world.books.sent, world.books.connected), (3, 2, 0));
    expect![[r#"
        +1000 put own 0: id 1, QoS 1
        +1000 admitted 0
        +1000 row sent 0: due 1000, written at 1000
        +1100 vanish
        +1100 event note vanished
        +1400 row unsent 1
        +1500 event reconnect
        +1500 open
        +1600 close
        +1800 event reconnect
        +1800 open
        +1800 row sent 2: due 1800, not written
        +1800 admitted 2
    "#]]
    .assert_eq(&world.take());
}

#[test]
fn a_client_that_is_away_at_the_end_is_gone() {
    let mut world = World::default();
    let mut client = connected(facts(), &mut world);
    client.vanish(&mut world);
    world.leaving = true;
    client.leave(&mut world);
    assert_eq!((client.is_gone(), world.books.gone, world.books.connected), (true, 1, 0));
    client.come_back(&mut world);
    assert!(client.is_gone());
}
