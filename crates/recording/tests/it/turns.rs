//! What a message is lost by that later ones overtook, where a connection ended in between. Publisher 0 sends, client 2 receives.

use crate::common::*;
use expect_test::expect;
use mqttlab_recording::{DirectRecorder, Dropped, EventKind, Layout, LossCause, Received, Sent};

/// A client connects, subscribes, and is granted its subscription.
fn come(recorder: &mut DirectRecorder, ns: u64, client: u32, session: &str) {
    event(recorder, ns, EventKind::Connect, client, "");
    event(recorder, ns + 1, EventKind::Connack, client, session);
    event(recorder, ns + 2, EventKind::Subscribe, client, "");
    event(recorder, ns + 3, EventKind::Suback, client, "");
}

fn send(recorder: &mut DirectRecorder, qos: u8, (sequence, ns): (u32, u64)) {
    recorder.sent(&Sent { qos, ..sent(0, sequence, 0, ns) }).unwrap();
    if qos > 0 {
        recorder.acknowledged(&acknowledged(0, sequence, ns + 50)).unwrap();
    }
}

fn take(recorder: &mut DirectRecorder, qos: u8, (sequence, ns): (u32, u64)) {
    recorder.received(&Received { qos, ..received(2, Some(0), sequence, ns) }).unwrap();
}

/// Six messages, one each thousand, of which 0 and 5 arrive; 1 to 3 are lost as told.
fn six(recorder: &mut DirectRecorder, qos: [u8; 2]) {
    (0..6).for_each(|number| send(recorder, qos[0], (number, 1_000 * u64::from(number + 1))));
    take(recorder, qos[1], (0, 1_100));
    take(recorder, qos[1], (5, 6_100));
}

#[test]
fn copies_on_a_connection_that_ended_are_lost_with_it_at_qos_0() {
    // With a subscription at QoS 0 those of QoS 1, too; the receiver is back before 4 is sent.
    for qos in [[0, 0], [1, 0]] {
        check_fates(
            &sessions(Some(0)),
            |recorder| {
                come(recorder, 10, 0, "");
                come(recorder, 100, 2, "");
                six(recorder, qos);
                event(recorder, 3_500, EventKind::Note, 2, "vanished");
                come(recorder, 4_500, 2, "");
            },
            &expect![[r#"
                publisher sequence subscriber fate cause
                0 0 2 delivered null
                0 1 2 lost connection_lost
                0 2 2 lost connection_lost
                0 3 2 lost connection_lost
                0 4 2 lost overtaken
                0 5 2 delivered null
            "#]],
        );
    }
}

#[test]
fn at_qos_1_the_session_that_ended_has_them_and_one_that_goes_on_explains_nothing() {
    let rows = |session: &'static str, start: Option<u64>| {
        move |recorder: &mut DirectRecorder| {
            come(recorder, 10, 0, "");
            come(recorder, 100, 2, "");
            six(recorder, [1, 1]);
            event(recorder, 2_500, EventKind::Disconnect, 2, "");
            if let Some(ns) = start {
                event(recorder, ns, EventKind::ServerStart, 2, "");
            }
            come(recorder, 3_500, 2, session);
        }
    };
    let ended = expect![[r#"
        publisher sequence subscriber fate cause
        0 0 2 delivered null
        0 1 2 lost session_ended
        0 2 2 lost session_ended
        0 3 2 lost overtaken
        0 4 2 lost overtaken
        0 5 2 delivered null
    "#]];
    check_fates(&sessions(Some(0)), rows("", None), &ended);
    // A server that started before it acknowledged the message never had the session.
    let never = expect![[r#"
        publisher sequence subscriber fate cause
        0 0 2 delivered null
        0 1 2 lost session_ended
        0 2 2 lost not_subscribed
        0 3 2 lost overtaken
        0 4 2 lost overtaken
        0 5 2 delivered null
    "#]];
    check_fates(&sessions(None), rows("", Some(2_600)), &never);
    let resumed = expect![[r#"
        publisher sequence subscriber fate cause
        0 0 2 delivered null
        0 1 2 lost overtaken
        0 2 2 lost overtaken
        0 3 2 lost overtaken
        0 4 2 lost overtaken
        0 5 2 delivered null
    "#]];
    check_fates(&sessions(None), rows("session present", None), &resumed);
}

#[test]
fn a_connection_that_ended_before_or_after_both_neighbours_has_lost_nothing() {
    // 0 and 2 arrive, 1 does not; the connection ends after 2 had come, and 3 is the one that it takes with it.
    check_fates(
        &sessions(Some(0)),
        |recorder| {
            come(recorder, 10, 0, "");
            come(recorder, 100, 2, "");
            (0..5).for_each(|number| send(recorder, 0, (number, 1_000 * u64::from(number + 1))));
            [(0, 1_100), (2, 3_100), (4, 5_100)].into_iter().for_each(|copy| take(recorder, 0, copy));
            event(recorder, 4_100, EventKind::Disconnect, 2, "");
            come(recorder, 4_200, 2, "");
        },
        &expect![[r#"
            publisher sequence subscriber fate cause
            0 0 2 delivered null
            0 1 2 lost overtaken
            0 2 2 delivered null
            0 3 2 lost connection_lost
            0 4 2 delivered null
        "#]],
    );
}

#[test]
fn a_publisher_s_connection_takes_its_messages_at_qos_0_along() {
    for (qos, cause) in [(0, "connection_lost"), (1, "overtaken")] {
        let scratch = Scratch::new();
        let mut recorder = DirectRecorder::create(scratch.path(), "{}", &sessions(Some(0))).unwrap();
        come(&mut recorder, 10, 0, "");
        come(&mut recorder, 100, 2, "");
        six(&mut recorder, [qos, qos]);
        event(&mut recorder, 2_500, EventKind::Disconnect, 0, "");
        come(&mut recorder, 2_600, 0, "");
        let found = fates_of(recorder, scratch.path());
        assert!(found.contains(&format!("0 1 2 lost {cause}")), "{found}");
        assert!(found.contains("0 3 2 lost overtaken"), "it was sent on the next connection: {found}");
    }
}

#[test]
fn what_was_lost_on_the_way_to_a_relay_is_lost_by_that_behind_it() {
    let mut layout: Layout = sessions(Some(0));
    layout.topics[0].relayed = true;
    layout.receivers[1] = vec![2, 3];
    layout.topics[0].receivers = 1;
    let rows = |recorder: &mut DirectRecorder| {
        [0, 2, 3].into_iter().for_each(|client| come(recorder, 10, client, ""));
        (0..4).for_each(|number| send(recorder, 1, (number, 1_000 * u64::from(number + 1))));
        let (subscriber, cause, at) = (Some(3), LossCause::QueueFull, at(2_000));
        recorder.dropped(&Dropped { publisher: 0, sequence: 1, subscriber, cause, at }).unwrap();
        for (sequence, ns) in [(0, 1_100), (3, 4_100)] {
            take(recorder, 0, (sequence, ns));
            recorder.received(&received(3, Some(0), sequence, ns - 50)).unwrap();
        }
        // The relay's own connection takes 2 along.
        event(recorder, 3_100, EventKind::Disconnect, 3, "");
        come(recorder, 3_200, 3, "");
    };
    check_fates(
        &layout,
        rows,
        &expect![[r#"
            publisher sequence subscriber fate cause
            0 0 2 delivered null
            0 0 3 delivered null
            0 1 2 lost queue_full
            0 1 3 lost queue_full
            0 2 2 lost connection_lost
            0 2 3 lost session_ended
            0 3 2 delivered null
            0 3 3 delivered null
        "#]],
    );
}

#[test]
fn a_server_that_says_it_drops_messages_for_the_receiver_has_dropped_what_no_connection_explains() {
    for (qos, cause) in [(0, "socket_full"), (1, "queue_full")] {
        let scratch = Scratch::new();
        let mut recorder = DirectRecorder::create(scratch.path(), "{}", &sessions(Some(0))).unwrap();
        come(&mut recorder, 10, 0, "");
        come(&mut recorder, 100, 2, "");
        six(&mut recorder, [qos, qos]);
        event(&mut recorder, 500, EventKind::QueueFull, 2, "broker");
        let found = fates_of(recorder, scratch.path());
        assert!(found.contains(&format!("0 4 2 lost {cause}")), "{found}");
    }
}
