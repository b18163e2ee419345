//! What became of messages to shared subscriptions. Client 0 publishes; 2, 3 and 4 share a subscription.

use crate::common::*;
use expect_test::{Expect, expect};
use mqttlab_recording::{
    DirectRecorder, Ending, Event, EventKind, Layout, RunFacts, Sent, Session, Share, ShareMember,
};

/// A share at this QoS whose members' sessions last so long.
fn shared(qos: u8, expiry_ns: Option<u64>) -> Layout {
    let mut layout = layout();
    layout.clients.push(layout.clients[3].clone());
    layout.clients.iter_mut().for_each(|client| client.session = Some(Session { expiry_ns }));
    layout.topics[0].shares = 1;
    layout.receivers[1] = vec![];
    layout.measurement_end_ns = 8_000;
    let members = (2..5).map(|client| ShareMember { client, qos: Some(qos) }).collect();
    layout.shares = vec![Share { filter: "$share/s/a/+".into(), topics: vec![0], members, is_final: true }];
    layout
}

fn check(layout: &Layout, push: impl FnOnce(&mut DirectRecorder), expected: &Expect) {
    let scratch = Scratch::new();
    let mut recorder = DirectRecorder::create(scratch.path(), "{}", layout).unwrap();
    (2..5).for_each(|client| come(&mut recorder, 10, client, ""));
    push(&mut recorder);
    // Everybody says goodbye in the end.
    (2..5).for_each(|client| event(&mut recorder, 9_000, EventKind::Close, client, ""));
    recorder.finish(None, &RunFacts::default(), &Ending::Complete).unwrap();
    let columns = ["sequence", "subscriber", "fate", "cause"];
    expected.assert_eq(&table(scratch.path(), "messages", &columns));
}

fn event(recorder: &mut DirectRecorder, ns: u64, kind: EventKind, client: u32, detail: &str) {
    recorder.event(&Event { at: at(ns), kind, client: Some(client), took: None }, detail).unwrap();
}

/// A member connects, and subscribes where it has no session.
fn come(recorder: &mut DirectRecorder, ns: u64, client: u32, session: &str) {
    event(recorder, ns, EventKind::Connect, client, "");
    event(recorder, ns + 10, EventKind::Connack, client, session);
    if session.is_empty() {
        event(recorder, ns + 11, EventKind::Subscribe, client, "");
        event(recorder, ns + 20, EventKind::Suback, client, "");
    }
}

/// A message, acknowledged at QoS 1, which some client gets.
fn message(recorder: &mut DirectRecorder, qos: u8, sequence: u32, ns: u64, whom: Option<u32>) {
    recorder.sent(&Sent { qos, ..sent(0, sequence, 0, ns) }).unwrap();
    if qos > 0 {
        recorder.acknowledged(&acknowledged(0, sequence, ns + 20)).unwrap();
    }
    if let Some(whom) = whom {
        recorder.received(&received(whom, Some(0), sequence, ns + 20)).unwrap();
    }
}

/// Six messages in turn, of which client 3 is away for the second.
fn in_turn(recorder: &mut DirectRecorder, qos: u8) {
    for (sequence, whom) in [(0, Some(2)), (1, None), (2, Some(4)), (3, Some(2)), (4, None), (5, Some(4))] {
        message(recorder, qos, sequence, 1_000 + 100 * u64::from(sequence), whom);
    }
    message(recorder, qos, 6, 1_700, Some(2));
}

#[test]
fn what_a_member_that_is_away_does_not_get_at_qos_0_is_lost() {
    check(
        &shared(0, None),
        |recorder| {
            event(recorder, 500, EventKind::Close, 3, "");
            in_turn(recorder, 0);
        },
        &expect![[r#"
            sequence subscriber fate cause
            0 2 delivered null
            1 3 lost connection_lost
            2 4 delivered null
            3 2 delivered null
            4 3 lost connection_lost
            5 4 delivered null
            6 2 delivered null
        "#]],
    );
}

#[test]
fn what_waits_in_its_session_is_under_way() {
    check(
        &shared(1, None),
        |recorder| {
            event(recorder, 500, EventKind::Close, 3, "");
            in_turn(recorder, 1);
        },
        &expect![[r#"
            sequence subscriber fate cause
            0 2 delivered null
            1 null under_way null
            2 4 delivered null
            3 2 delivered null
            4 null under_way null
            5 4 delivered null
            6 2 delivered null
        "#]],
    );
}

#[test]
fn what_waited_in_a_session_that_began_anew_is_lost() {
    check(
        &shared(1, Some(0)),
        |recorder| {
            event(recorder, 500, EventKind::Note, 3, "vanished");
            in_turn(recorder, 1);
            come(recorder, 2_000, 3, "");
            message(recorder, 1, 7, 3_000, Some(3));
        },
        &expect![[r#"
            sequence subscriber fate cause
            0 2 delivered null
            1 3 lost session_ended
            2 4 delivered null
            3 2 delivered null
            4 3 lost session_ended
            5 4 delivered null
            6 2 delivered null
            7 3 delivered null
        "#]],
    );
}

/// A change that leaves open what became of the message whose turn was client 3's.
fn left_open(layout: &Layout, push: impl FnOnce(&mut DirectRecorder)) {
    let open = expect![[r#"
        sequence subscriber fate cause
        0 2 delivered null
        1 null under_way null
        2 4 delivered null
        3 2 delivered null
        4 null under_way null
        5 4 delivered null
        6 2 delivered null
    "#]];
    check(layout, push, &open);
}

#[test]
fn nothing_is_lost_by_assumption() {
    // It is there until the end: the message may be on its way.
    left_open(&shared(0, None), |recorder| in_turn(recorder, 0));
    // It comes back, and nobody knows when the broker had the message.
    left_open(&shared(0, None), |recorder| {
        event(recorder, 500, EventKind::Close, 3, "");
        in_turn(recorder, 0);
        come(recorder, 1_010, 3, "session present");
    });
    // Another broker may hold it, or give it to another member later.
    let mut other = shared(0, None);
    other.shares[0].is_final = false;
    left_open(&other, |recorder| {
        event(recorder, 500, EventKind::Close, 3, "");
        in_turn(recorder, 0);
    });
    // A member of which events tell nothing.
    let mut program = shared(0, None);
    program.clients[4].session = None;
    left_open(&program, |recorder| {
        event(recorder, 500, EventKind::Close, 3, "");
        in_turn(recorder, 0);
    });
}

#[test]
fn the_last_message_may_still_be_on_its_way_to_the_broker() {
    check(
        &shared(0, None),
        |recorder| {
            event(recorder, 500, EventKind::Close, 3, "");
            message(recorder, 0, 0, 1_000, Some(2));
            message(recorder, 0, 1, 1_100, None);
        },
        &expect![[r#"
            sequence subscriber fate cause
            0 2 delivered null
            1 null under_way null
        "#]],
    );
}

#[test]
fn of_two_members_that_were_away_nobody_knows_which_was_to_have_it() {
    check(
        &shared(0, None),
        |recorder| {
            event(recorder, 500, EventKind::Close, 3, "");
            event(recorder, 500, EventKind::Disconnect, 4, "");
            message(recorder, 0, 0, 1_000, None);
            message(recorder, 0, 1, 1_100, Some(2));
        },
        &expect![[r#"
            sequence subscriber fate cause
            0 null lost connection_lost
            1 2 delivered null
        "#]],
    );
}

#[test]
fn of_two_shares_the_one_is_missed_whose_members_have_nothing() {
    let mut layout = shared(0, None);
    let first = layout.shares[0].clone();
    let members = |range: std::ops::Range<usize>| first.members[range].to_vec();
    let second = Share { filter: "$share/t/a/+".into(), members: members(2..3), ..first.clone() };
    layout.shares = vec![Share { members: members(0..2), ..first.clone() }, second];
    layout.topics[0].shares = 2;
    check(
        &layout,
        |recorder| {
            event(recorder, 500, EventKind::Close, 3, "");
            message(recorder, 0, 0, 1_000, Some(2));
            recorder.received(&received(4, Some(0), 0, 1_020)).unwrap();
            message(recorder, 0, 1, 1_100, Some(4));
            message(recorder, 0, 2, 1_200, Some(2));
            recorder.received(&received(4, Some(0), 2, 1_220)).unwrap();
        },
        &expect![[r#"
            sequence subscriber fate cause
            0 2 delivered null
            0 4 delivered null
            1 4 delivered null
            1 3 lost connection_lost
            2 2 delivered null
            2 4 delivered null
        "#]],
    );
}
