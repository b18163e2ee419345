//! Clients that come and go all the time, as conversations.

use crate::world::{World, accepted, connected, every, facts, publishing};
use expect_test::expect;
use mqttlab_client::{GroupFacts, Loss, State};
use mqttlab_mqtt::Qos;
use mqttlab_plan::{Churn, HoldLaw, PublishingTime};
use mqttlab_units::{Duration, Instant, Seed};

fn churn(law: HoldLaw) -> Option<Churn> {
    Some(Churn { hold: Duration::from_ms(1_000), law, away: Duration::from_ms(500) })
}

fn time(from_ms: u64, until_ms: u64) -> PublishingTime {
    let [from, until] = [from_ms, until_ms].map(|ms| Instant::ZERO + Duration::from_ms(ms));
    PublishingTime { from, measured_from: from, until }
}

#[test]
fn a_client_leaves_and_comes_at_its_times_and_publishes_while_it_is_there() {
    let mut world = World::default();
    let facts = GroupFacts { churn: churn(HoldLaw::Constant), ..publishing(Qos::AtLeastOnce) };
    let mut client = connected(facts, &mut world);
    client.begin(&mut world, every(400));
    client.begin_churn(time(500, 9_000), Seed(1));
    world.take();
    client.wake(world.at(400));
    assert_eq!(client.next_deadline(&world), Some(Instant::ZERO + Duration::from_ms(500)));
    client.wake(world.at(500));
    client.lose(world.at(505), &Loss::broken("the broker closed the connection"));
    // What is due while it is away is not offered, and counts as nothing.
    client.wake(world.at(800));
    client.wake(world.at(1_000));
    client.wake(&mut world);
    client.opened(world.at(1_010));
    client.wake(world.at(1_200));
    client.packet(world.at(1_220), accepted(false)).unwrap();
    client.wake(world.at(1_600));
    client.wake(world.at(2_000));
    assert_eq!((world.books.offered, world.books.disconnects, world.books.failed), (2, 0, 0));
    expect![[r#"
        +500 put Bare(Disconnect)
        +505 close
        +505 event close
        +1000 event reconnect
        +1000 open
        +1010 put Connect
        +1010 event connect
        +1220 event connack after 220 ms
        +1600 put own 1: id 1, QoS 1
        +1600 admitted 1
        +1600 row sent 1: due 1400, written at 1600
        +2000 put own 2: id 2, QoS 1
        +2000 admitted 2
        +2000 put Bare(Disconnect)
        +2000 row sent 2: due 1800, written at 2000
    "#]]
    .assert_eq(&world.take());
}

#[test]
fn a_client_that_was_not_accepted_while_it_was_to_be_there_comes_again() {
    let mut world = World::default();
    let mut client = connected(GroupFacts { churn: churn(HoldLaw::Constant), ..facts() }, &mut world);
    client.begin_churn(time(500, 9_000), Seed(1));
    client.wake(world.at(500));
    client.lose(world.at(505), &Loss::broken("the broker closed the connection"));
    client.wake(world.at(1_000));
    client.wake(&mut world);
    world.take();
    client.wake(world.at(2_000));
    assert_eq!(client.snapshot().state, State::Away);
    client.wake(world.at(2_500));
    client.wake(&mut world);
    assert!(client.is_opening());
    // The run ends as it has just come, which is no failure.
    client.leave(world.at(2_510));
    expect![[r#"
        +2000 event note no connection in time
        +2000 close
        +2500 event reconnect
        +2500 open
        +2510 close
    "#]]
    .assert_eq(&world.take());
}

#[test]
fn nobody_leaves_from_the_end_of_publishing_on_and_who_is_away_comes() {
    let mut world = World::default();
    let mut client = connected(GroupFacts { churn: churn(HoldLaw::Constant), ..facts() }, &mut world);
    client.begin_churn(time(500, 600), Seed(1));
    client.wake(world.at(500));
    client.wake(world.at(1_000));
    client.wake(&mut world);
    client.opened(&mut world);
    client.packet(&mut world, accepted(false)).unwrap();
    let deadline = client.next_deadline(&world).expect("a keep-alive");
    assert!(deadline > Instant::ZERO + Duration::from_ms(2_000), "{deadline:?}");
}
