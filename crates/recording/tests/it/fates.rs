//! What became of messages that did not arrive. Publisher 0 and 1 send, clients 2 and 3 should receive.

use crate::common::*;
use expect_test::expect;
use mqttlab_recording::{
    DirectRecorder, Dropped, Ending, Event, EventKind, Gap, HeaderAnalyser, Layout, LossCause, Received,
    RunFacts, Sent, recover,
};

/// Client 2 alone receives both topics.
fn two_topics() -> Layout {
    let mut layout = layout();
    layout.topics[1].receivers = 1;
    layout.receivers[1] = vec![2];
    layout
}

#[test]
fn what_has_not_arrived_at_the_end_is_under_way_unless_a_later_message_has_arrived() {
    check_fates(
        &layout(),
        |recorder| {
            (0..4).for_each(|sequence| recorder.sent(&sent(0, sequence, 0, 1_000)).unwrap());
            recorder.received(&received(2, Some(0), 1, 2_000)).unwrap();
            recorder.received(&received(2, Some(0), 3, 2_000)).unwrap();
        },
        &expect![[r#"
            publisher sequence subscriber fate cause
            0 0 2 lost overtaken
            0 0 3 under_way null
            0 1 2 delivered null
            0 1 3 under_way null
            0 2 2 lost overtaken
            0 2 3 under_way null
            0 3 2 delivered null
            0 3 3 under_way null
        "#]],
    );
}

#[test]
fn what_a_delivery_that_nothing_traces_may_have_been_is_unknown_although_later_ones_arrived() {
    check_fates(
        &layout(),
        |recorder| {
            recorder.sent(&sent(0, 0, 0, 1_000)).unwrap();
            recorder.sent(&sent(0, 1, 0, 3_000)).unwrap();
            recorder.sent(&sent(0, 2, 0, 3_000)).unwrap();
            recorder.received(&received(2, None, 0, 2_000)).unwrap();
            recorder.received(&received(2, Some(0), 2, 4_000)).unwrap();
            recorder.received(&received(3, Some(0), 2, 4_000)).unwrap();
            // Too late for both.
            recorder.received(&received(3, None, 0, 5_000)).unwrap();
        },
        &expect![[r#"
            publisher sequence subscriber fate cause
            0 0 2 unknown untraced
            0 0 3 lost overtaken
            0 1 2 lost overtaken
            0 1 3 lost overtaken
            0 2 2 delivered null
            0 2 3 delivered null
            null null 2 foreign null
            null null 3 foreign null
        "#]],
    );
}

#[test]
fn order_is_kept_by_publisher_topic_and_qos_only_and_not_by_retained_copies() {
    check_fates(
        &two_topics(),
        |recorder| {
            recorder.sent(&sent(0, 0, 0, 1_000)).unwrap();
            // Another topic, another QoS, a retained copy, another publisher: none tells of the first.
            recorder.sent(&sent(0, 1, 1, 1_000)).unwrap();
            recorder.sent(&at_qos(2, sent(0, 2, 0, 1_000))).unwrap();
            recorder.sent(&sent(0, 3, 0, 1_000)).unwrap();
            recorder.sent(&sent(1, 4, 0, 1_000)).unwrap();
            (1..3).for_each(|sequence| recorder.received(&received(2, Some(0), sequence, 2_000)).unwrap());
            recorder.received(&Received { retained: true, ..received(2, Some(0), 3, 2_000) }).unwrap();
            recorder.received(&received(2, Some(1), 4, 2_000)).unwrap();
        },
        &expect![[r#"
            publisher sequence subscriber fate cause
            0 0 2 under_way null
            0 1 2 delivered null
            0 2 2 delivered null
            0 3 2 retained null
            1 4 2 delivered null
        "#]],
    );
}

#[test]
fn a_copy_from_the_store_is_no_delivery_of_the_flow_and_no_duplicate() {
    check_fates(
        &two_topics(),
        |recorder| {
            (0..3).for_each(|sequence| recorder.sent(&sent(0, sequence, 0, 1_000)).unwrap());
            let copy = |sequence, ns| Received { retained: true, ..received(2, Some(0), sequence, ns) };
            // 0 came when its receiver subscribed; of 2 the copy came before the message itself; 1 came twice.
            [copy(0, 2_000), copy(2, 2_000)].iter().for_each(|row| recorder.received(row).unwrap());
            recorder.received(&received(2, Some(0), 1, 2_100)).unwrap();
            recorder.received(&copy(1, 2_200)).unwrap();
            recorder.received(&received(2, Some(0), 2, 2_300)).unwrap();
        },
        &expect![[r#"
            publisher sequence subscriber fate cause
            0 0 2 retained null
            0 1 2 delivered null
            0 1 2 retained null
            0 2 2 retained null
            0 2 2 delivered null
        "#]],
    );
}

#[test]
fn what_the_broker_had_before_a_subscription_is_not_expected_of_it() {
    check_fates(
        &sessions(None),
        |recorder| {
            event(recorder, 500, EventKind::Connack, 2, "");
            event(recorder, 1_500, EventKind::Subscribe, 2, "t");
            event(recorder, 2_000, EventKind::Suback, 2, "");
            [1_000, 1_900, 2_500, 3_000].into_iter().enumerate().for_each(|(sequence, ns)| {
                recorder.sent(&sent(0, sequence as u32, 0, ns)).unwrap();
            });
            recorder.received(&received(2, Some(0), 3, 4_000)).unwrap();
        },
        &expect![[r#"
            publisher sequence subscriber fate cause
            0 0 null no_receiver null
            0 1 null no_receiver null
            0 2 2 lost overtaken
            0 3 2 delivered null
        "#]],
    );
    // Nothing later arrives: an acknowledgement tells, or at QoS 0 that it was sent before the SUBSCRIBE was.
    let nothing_later = |recorder: &mut DirectRecorder| {
        event(recorder, 500, EventKind::Connack, 2, "");
        event(recorder, 1_500, EventKind::Subscribe, 2, "t");
        event(recorder, 2_000, EventKind::Suback, 2, "");
        [1_000, 1_100, 1_200].into_iter().enumerate().for_each(|(sequence, ns)| {
            recorder.sent(&sent(0, sequence as u32, 0, ns)).unwrap();
        });
        recorder.acknowledged(&acknowledged(0, 0, 1_500)).unwrap();
        recorder.acknowledged(&acknowledged(0, 1, 1_501)).unwrap();
        recorder.sent(&at_qos(0, sent(0, 3, 0, 1_498))).unwrap();
        recorder.sent(&at_qos(0, sent(0, 4, 0, 1_499))).unwrap();
    };
    check_fates(
        &sessions(None),
        nothing_later,
        &expect![[r#"
            publisher sequence subscriber fate cause
            0 0 null no_receiver null
            0 1 2 unknown not_subscribed
            0 2 2 under_way null
            0 3 null no_receiver null
            0 4 2 under_way null
        "#]],
    );
}

#[test]
fn what_a_publisher_had_no_place_for_at_its_broker_and_reached_nobody_was_over_inflight() {
    let limited = || Layout { inflight_limits: vec![2; 4], ..sessions(None) };
    let rows = |recorder: &mut DirectRecorder| {
        join(recorder, 1, 2);
        // Four at once, of which two have a place, and one when all have been acknowledged.
        (0..4).for_each(|sequence| recorder.sent(&at_qos(2, sent(0, sequence, 0, 1_000))).unwrap());
        (0..4).for_each(|sequence| recorder.acknowledged(&acknowledged(0, sequence, 2_000)).unwrap());
        recorder.sent(&at_qos(2, sent(0, 4, 0, 3_000))).unwrap();
        recorder.sent(&at_qos(2, sent(0, 5, 0, 4_000))).unwrap();
        [0, 1, 5].into_iter().for_each(|sequence| {
            let row = received(2, Some(0), sequence, 4_500);
            recorder.received(&Received { qos: 2, ..row }).unwrap();
        });
    };
    check_fates(
        &limited(),
        rows,
        &expect![[r#"
            publisher sequence subscriber fate cause
            0 0 2 delivered null
            0 1 2 delivered null
            0 2 2 lost over_inflight
            0 3 2 lost over_inflight
            0 4 2 lost overtaken
            0 5 2 delivered null
        "#]],
    );
    // A connection that broke may be the cause as well.
    let broken = |recorder: &mut DirectRecorder| {
        rows(recorder);
        event(recorder, 3_500, EventKind::Disconnect, 0, "");
        event(recorder, 3_600, EventKind::Connack, 0, "");
    };
    check_fates(
        &limited(),
        broken,
        &expect![[r#"
            publisher sequence subscriber fate cause
            0 0 2 delivered null
            0 1 2 delivered null
            0 2 2 lost overtaken
            0 3 2 lost overtaken
            0 4 2 lost overtaken
            0 5 2 delivered null
        "#]],
    );
}

/// A second in nanoseconds.
const S: u64 = 1_000_000_000;

/// Client 2 is away from 1 s to 7 s; messages of topic 0 are good for 3 s.
fn away(recorder: &mut DirectRecorder) {
    event(recorder, 1, EventKind::Connect, 0, "");
    event(recorder, 2, EventKind::Connack, 0, "");
    event(recorder, 1, EventKind::Connect, 2, "");
    join(recorder, 2, 2);
    event(recorder, 5, EventKind::Suback, 2, "");
    event(recorder, S, EventKind::Disconnect, 2, "");
    event(recorder, 7 * S, EventKind::Connect, 2, "");
    event(recorder, 7 * S + 1, EventKind::Connack, 2, "session present");
    // 0 at QoS 0, 1 not acknowledged, 2 over for certain, 3 perhaps not.
    recorder.sent(&at_qos(0, sent(0, 0, 0, S + 1))).unwrap();
    (1..4).for_each(|sequence| recorder.sent(&sent(0, sequence, 0, S + 1)).unwrap());
    recorder.acknowledged(&acknowledged(0, 2, 2 * S)).unwrap();
    recorder.acknowledged(&acknowledged(0, 3, 2 * S + 1)).unwrap();
}

fn expiring(expiry_s: u32) -> Layout {
    Layout { expiries_s: vec![expiry_s, 0], ..sessions(None) }
}

#[test]
fn what_expired_before_its_receiver_came_back_is_lost_only_where_that_is_certain() {
    let expired = |layout: &Layout, push: &dyn Fn(&mut DirectRecorder)| {
        let scratch = Scratch::new();
        let mut recorder = DirectRecorder::create(scratch.path(), "{}", layout).unwrap();
        away(&mut recorder);
        push(&mut recorder);
        recorder.finish(None, &RunFacts::default(), &Ending::Complete).unwrap();
        let table = table(scratch.path(), "messages", &FATE_COLUMNS);
        table.lines().filter(|line| line.contains("expired")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(expired(&expiring(3), &|_| ()), ["0 2 2 lost expired"]);
    assert!(expired(&expiring(4), &|_| ()).is_empty());
    assert!(expired(&sessions(None), &|_| ()).is_empty());
    // A server that was started again may have forgotten it, its publisher's connection or a full queue may have lost it.
    let start = Event { at: at(3 * S), kind: EventKind::ServerStart, client: None, took: None };
    let others: [&dyn Fn(&mut DirectRecorder); 3] = [
        &|recorder| recorder.event(&start, "broker").unwrap(),
        &|recorder| event(recorder, 3 * S, EventKind::Disconnect, 0, ""),
        &|recorder| event(recorder, S, EventKind::QueueFull, 2, "broker"),
    ];
    others.into_iter().for_each(|other| assert!(expired(&expiring(3), other).is_empty()));
}

#[test]
fn what_expired_and_was_overtaken_is_lost_as_expired() {
    check_fates(
        &expiring(3),
        |recorder| {
            away(recorder);
            recorder.sent(&sent(0, 4, 0, 6 * S)).unwrap();
            recorder.acknowledged(&acknowledged(0, 4, 6 * S + 1)).unwrap();
            recorder.received(&received(2, Some(0), 4, 7 * S + 2)).unwrap();
        },
        &expect![[r#"
            publisher sequence subscriber fate cause
            0 0 2 under_way null
            0 1 2 lost overtaken
            0 2 2 lost expired
            0 3 2 lost overtaken
            0 4 2 delivered null
        "#]],
    );
}

#[test]
fn what_a_server_may_have_dropped_by_its_log_is_unknown_unless_a_later_message_arrived() {
    check_fates(
        &two_topics(),
        |recorder| {
            (0..4).for_each(|sequence| recorder.sent(&sent(0, sequence, 0, 1_000)).unwrap());
            recorder.sent(&sent(0, 4, 1, 1_000)).unwrap();
            recorder.sent(&at_qos(0, sent(0, 5, 0, 1_000))).unwrap();
            // 1 overtook 0; the server had 2 before it began to drop, and never had 4 for certain.
            recorder.received(&received(2, Some(0), 1, 2_000)).unwrap();
            [(0, 1_500), (1, 1_500), (2, 2_999), (3, 3_000)].into_iter().for_each(|(sequence, ns)| {
                recorder.acknowledged(&acknowledged(0, sequence, ns)).unwrap();
            });
            // The second line of the log, written first; of client 3 there is none.
            event(recorder, 9_000, EventKind::QueueFull, 2, "broker");
            event(recorder, 3_000, EventKind::QueueFull, 2, "broker");
        },
        &expect![[r#"
            publisher sequence subscriber fate cause
            0 0 2 lost overtaken
            0 1 2 delivered null
            0 2 2 under_way null
            0 3 2 unknown queue_full
            0 4 2 under_way null
            0 5 2 unknown queue_full
        "#]],
    );
}

#[test]
fn what_a_server_dropped_for_a_client_that_nobody_knows_may_have_been_for_any() {
    let row = Event { at: at(1_000), kind: EventKind::QueueFull, client: None, took: None };
    check_fates(
        &layout(),
        |recorder| {
            recorder.sent(&sent(0, 0, 0, 1_000)).unwrap();
            recorder.sent(&sent(0, 1, 0, 1_000)).unwrap();
            recorder.acknowledged(&acknowledged(0, 0, 2_000)).unwrap();
            recorder.received(&received(3, Some(0), 0, 2_000)).unwrap();
            recorder.event(&row, "broker").unwrap();
        },
        &expect![[r#"
            publisher sequence subscriber fate cause
            0 0 2 unknown queue_full
            0 0 3 delivered null
            0 1 2 under_way null
            0 1 3 under_way null
        "#]],
    );
}

#[test]
fn what_was_dropped_is_lost_and_says_why_unless_it_came_nevertheless() {
    let drop = |sequence, subscriber, cause| Dropped { publisher: 0, sequence, subscriber, cause, at: at(1) };
    check_fates(
        &layout(),
        |recorder| {
            (0..3).for_each(|sequence| recorder.sent(&sent(0, sequence, 0, 1_000)).unwrap());
            recorder.dropped(&drop(0, Some(3), LossCause::QueueFull)).unwrap();
            recorder.dropped(&drop(1, None, LossCause::ConnectionLost)).unwrap();
            recorder.dropped(&drop(2, Some(2), LossCause::SessionEnded)).unwrap();
            recorder.received(&received(2, Some(0), 2, 2_000)).unwrap();
        },
        &expect![[r#"
            publisher sequence subscriber fate cause
            0 0 2 lost overtaken
            0 0 3 lost queue_full
            0 1 2 lost connection_lost
            0 1 3 lost connection_lost
            0 2 2 delivered null
            0 2 3 under_way null
        "#]],
    );
}

#[test]
fn a_copy_from_the_store_that_a_queue_dropped_is_no_delivery_that_was_expected() {
    check_fates(
        &sessions(None),
        |recorder| {
            // The broker has the first two before client 2 subscribes, and the third one after that.
            [(0, 1_500), (1, 3_000), (2, 9_000)].into_iter().for_each(|(sequence, ns)| {
                recorder.sent(&Sent { retain: true, ..sent(0, sequence, 0, 1_000) }).unwrap();
                recorder.acknowledged(&acknowledged(0, sequence, ns)).unwrap();
            });
            join(recorder, 4_000, 2);
            for sequence in 1..3 {
                let (subscriber, cause) = (Some(2), LossCause::QueueFull);
                recorder
                    .dropped(&Dropped { publisher: 0, sequence, subscriber, cause, at: at(9_000) })
                    .unwrap();
            }
            recorder.received(&Received { retained: true, ..received(2, Some(0), 0, 9_000) }).unwrap();
        },
        &expect![[r#"
            publisher sequence subscriber fate cause
            0 0 2 retained null
            0 1 null no_receiver null
            0 2 2 lost queue_full
        "#]],
    );
}

#[test]
fn a_session_that_ended_loses_what_the_broker_had_for_it() {
    check_fates(
        &sessions(Some(0)),
        |recorder| {
            join(recorder, 1, 2);
            (0..3).for_each(|sequence| recorder.sent(&sent(0, sequence, 0, 1_000)).unwrap());
            recorder.sent(&at_qos(0, sent(0, 3, 0, 1_000))).unwrap();
            event(recorder, 2_000, EventKind::Disconnect, 2, "");
            join(recorder, 3_000, 2);
            recorder.acknowledged(&acknowledged(0, 0, 2_500)).unwrap();
            recorder.acknowledged(&acknowledged(0, 1, 3_500)).unwrap();
        },
        // 1: it may have come before or after the new subscription. 2: its publisher still has it.
        &expect![[r#"
            publisher sequence subscriber fate cause
            0 0 2 lost session_ended
            0 1 2 unknown session_ended
            0 2 2 under_way null
            0 3 2 unknown session_ended
        "#]],
    );
}

#[test]
fn what_was_sent_between_a_session_and_the_next_is_not_lost_by_what_came_later() {
    let rows = |started: Option<u64>| {
        move |recorder: &mut DirectRecorder| {
            join(recorder, 1, 2);
            recorder.sent(&sent(0, 0, 0, 1_000)).unwrap();
            event(recorder, 2_000, EventKind::Disconnect, 2, "");
            if let Some(ns) = started {
                event(recorder, ns, EventKind::ServerStart, 2, "");
            }
            recorder.sent(&sent(0, 1, 0, 2_500)).unwrap();
            recorder.sent(&sent(0, 2, 0, 5_000)).unwrap();
            recorder.acknowledged(&acknowledged(0, 1, 3_500)).unwrap();
            join(recorder, 4_000, 2);
            recorder.received(&received(2, Some(0), 2, 6_000)).unwrap();
        }
    };
    // 0 was sent on a connection that ended, and its session with it.
    for (started, cause) in
        [(None, "session_ended"), (Some(3_000), "not_subscribed"), (Some(3_900), "session_ended")]
    {
        let scratch = Scratch::new();
        let mut recorder = DirectRecorder::create(scratch.path(), "{}", &sessions(None)).unwrap();
        rows(started)(&mut recorder);
        recorder.finish(None, &RunFacts::default(), &Ending::Complete).unwrap();
        let found = table(scratch.path(), "messages", &FATE_COLUMNS);
        assert!(found.contains("0 0 2 lost session_ended"), "{found}");
        assert!(found.contains(&format!("0 1 2 lost {cause}")), "{found}");
    }
}

#[test]
fn a_receiver_that_is_away_loses_what_no_session_keeps_for_it() {
    let rows = |recorder: &mut DirectRecorder| {
        join(recorder, 1, 2);
        event(recorder, 2_000, EventKind::Disconnect, 2, "");
        recorder.sent(&sent(0, 0, 0, 3_000)).unwrap();
        recorder.acknowledged(&acknowledged(0, 0, 3_500)).unwrap();
        recorder.sent(&at_qos(0, sent(0, 1, 0, 1_500))).unwrap();
        event(recorder, 9_000, EventKind::Close, 0, "");
    };
    let gone = expect![[r#"
        publisher sequence subscriber fate cause
        0 0 2 lost session_ended
        0 1 2 lost session_ended
    "#]];
    check_fates(&sessions(Some(0)), rows, &gone);
    check_fates(&sessions(Some(7_000)), rows, &gone);
    let kept = expect![[r#"
        publisher sequence subscriber fate cause
        0 0 2 under_way null
        0 1 2 unknown connection_lost
    "#]];
    check_fates(&sessions(Some(8_000)), rows, &kept);
    check_fates(&sessions(None), rows, &kept);
}

#[test]
fn who_never_subscribed_is_owed_nothing_and_a_farewell_loses_nothing() {
    check_fates(
        &sessions(Some(0)),
        |recorder| {
            recorder.sent(&sent(0, 0, 0, 3_000)).unwrap();
            recorder.acknowledged(&acknowledged(0, 0, 3_500)).unwrap();
        },
        &expect![[r#"
            publisher sequence subscriber fate cause
            0 0 2 lost not_subscribed
        "#]],
    );
    check_fates(
        &sessions(Some(0)),
        |recorder| {
            join(recorder, 1, 2);
            recorder.sent(&sent(0, 0, 0, 3_000)).unwrap();
            recorder.acknowledged(&acknowledged(0, 0, 3_500)).unwrap();
            event(recorder, 9_000, EventKind::Close, 2, "");
        },
        &expect![[r#"
            publisher sequence subscriber fate cause
            0 0 2 under_way null
        "#]],
    );
}

#[test]
fn a_persistent_session_that_is_resumed_owes_what_it_had() {
    check_fates(
        &sessions(None),
        |recorder| {
            join(recorder, 1, 2);
            event(recorder, 2_000, EventKind::Disconnect, 2, "");
            recorder.sent(&sent(0, 0, 0, 3_000)).unwrap();
            recorder.acknowledged(&acknowledged(0, 0, 3_500)).unwrap();
            event(recorder, 4_000, EventKind::Connack, 2, "session present");
        },
        &expect![[r#"
            publisher sequence subscriber fate cause
            0 0 2 under_way null
        "#]],
    );
}

#[test]
fn where_every_drop_is_written_down_connections_need_not_tell() {
    let layout = Layout { drops_are_complete: true, ..sessions(Some(0)) };
    check_fates(
        &layout,
        |recorder| {
            join(recorder, 1, 2);
            recorder.sent(&at_qos(0, sent(0, 0, 0, 1_000))).unwrap();
            event(recorder, 2_000, EventKind::Disconnect, 0, "");
        },
        &expect![[r#"
            publisher sequence subscriber fate cause
            0 0 2 under_way null
        "#]],
    );
}

#[test]
fn what_the_evidence_has_a_gap_for_is_unknown() {
    let gap = |client, until| Gap { client, from: at(0), until: at(until) };
    check_fates(
        &layout(),
        |recorder| {
            recorder.gap(&gap(None, 1_500)).unwrap();
            recorder.gap(&gap(Some(3), 5_000)).unwrap();
            recorder.gap(&gap(Some(1), 3_500)).unwrap();
            recorder.sent(&sent(0, 0, 0, 1_000)).unwrap();
            recorder.sent(&sent(0, 1, 0, 3_000)).unwrap();
            recorder.sent(&sent(1, 2, 0, 3_000)).unwrap();
            recorder.received(&received(2, Some(0), 1, 2_000)).unwrap();
        },
        &expect![[r#"
            publisher sequence subscriber fate cause
            0 0 2 unknown not_recorded
            0 0 3 unknown not_recorded
            0 1 2 delivered null
            0 1 3 unknown not_recorded
            1 2 2 unknown not_recorded
            1 2 3 unknown not_recorded
        "#]],
    );
}

#[test]
fn a_shared_subscription_owes_one_delivery_to_nobody_in_particular() {
    let mut layout = layout();
    layout.topics[0].shares = 1;
    layout.receivers[1] = vec![];
    let drop =
        Dropped { publisher: 0, sequence: 2, subscriber: Some(3), cause: LossCause::QueueFull, at: at(1) };
    check_fates(
        &layout,
        |recorder| {
            (0..3).for_each(|sequence| recorder.sent(&sent(0, sequence, 0, 1_000)).unwrap());
            recorder.received(&received(3, Some(0), 1, 2_000)).unwrap();
            recorder.dropped(&drop).unwrap();
        },
        // A member that got a later message says nothing of what another member was to get.
        &expect![[r#"
            publisher sequence subscriber fate cause
            0 0 null under_way null
            0 1 3 delivered null
            0 2 3 lost queue_full
        "#]],
    );
}

#[test]
fn what_had_not_arrived_when_the_producer_was_killed_is_unknown() {
    let scratch = Scratch::new();
    let mut recorder = DirectRecorder::create(scratch.path(), "{}", &layout()).unwrap();
    // Enough for the spools to be written.
    (0..3_000).for_each(|sequence| recorder.sent(&sent(0, sequence, 0, 1_000)).unwrap());
    drop(recorder);
    let summary = recover(scratch.path(), None, &mut HeaderAnalyser::default()).unwrap();
    assert_eq!(summary.messages.keys().copied().collect::<Vec<_>>(), ["unknown"]);
}

#[test]
fn clients_count_what_is_lost_under_way_and_unknown_apart() {
    let scratch = Scratch::new();
    let mut recorder = DirectRecorder::create(scratch.path(), "{}", &layout()).unwrap();
    (0..3).for_each(|sequence| recorder.sent(&sent(0, sequence, 0, 1_000)).unwrap());
    recorder.received(&received(2, Some(0), 1, 2_000)).unwrap();
    recorder.gap(&Gap { client: Some(3), from: at(0), until: at(5_000) }).unwrap();
    recorder.finish(None, &RunFacts::default(), &Ending::Complete).unwrap();
    expect![[r#"
        name delivered lost under_way unknown
        pub-0 0 0 0 0
        pub-1 0 0 0 0
        sub-0 1 1 1 0
        sub-1 0 0 0 3
    "#]]
    .assert_eq(&table(scratch.path(), "clients", &["name", "delivered", "lost", "under_way", "unknown"]));
}
