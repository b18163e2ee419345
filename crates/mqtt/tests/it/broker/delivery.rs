//! From the broker to a subscriber: the window, the queue behind it, repetition.

use expect_test::expect;
use mqttlab_mqtt::broker::{Broker, BrokerOptions, ConnectionId, Excess, Input, Output};
use mqttlab_mqtt::{Qos, Version};
use mqttlab_units::{Duration, Instant};

use super::script::{check, transcript};

const NARROW: BrokerOptions = BrokerOptions { max_inflight: 2, max_queued: 2, ..BrokerOptions::MOSQUITTO };

#[test]
fn messages_wait_behind_a_full_window_and_are_dropped_behind_a_full_queue() {
    check(
        NARROW,
        "0 1 connect anna clean
         0 2 connect ben clean
         0 2 subscribe #1 t:1
         1 1 publish t 1 q1 #1
         1 1 publish t 2 q1 #2
         1 1 publish t 3 q1 #3
         1 1 publish t 4 q1 #4
         1 1 publish t 5 q1 #5
         1 1 publish t 6 q0
         2 2 puback #1
         3 2 puback #1
         4 2 puback #2
         5 2 puback #3
         6 2 puback #4",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 2 connect ben clean
                2 < CONNACK accepted
            0 2 subscribe #1 t:1
                2 < SUBACK #1 [1]
            1 1 publish t 1 q1 #1
                2 < PUBLISH t 1 q1 #1
                1 < PUBACK #1
            1 1 publish t 2 q1 #2
                2 < PUBLISH t 2 q1 #2
                1 < PUBACK #2
            1 1 publish t 3 q1 #3
                1 < PUBACK #3
            1 1 publish t 4 q1 #4
                1 < PUBACK #4
            1 1 publish t 5 q1 #5
                5 dropped for ben: QueueFull
                1 < PUBACK #5
                5 released
            1 1 publish t 6 q0
                2 < PUBLISH t 6 q0
                6 released
            2 2 puback #1
                1 released
                2 < PUBLISH t 3 q1 #3
            3 2 puback #1
            4 2 puback #2
                2 released
                2 < PUBLISH t 4 q1 #4
            5 2 puback #3
                3 released
            6 2 puback #4
                4 released
        "#]],
    );
}

#[test]
fn mqtt_4_3_3_a_qos2_message_leaves_the_window_with_its_pubcomp() {
    check(
        BrokerOptions { max_inflight: 1, ..NARROW },
        "0 1 connect anna clean
         0 2 connect ben clean
         0 2 subscribe #1 t:2
         1 1 publish t 1 q2 #1
         1 1 pubrel #1
         1 1 publish t 2 q1 #2
         2 2 pubrec #1
         3 2 pubcomp #1
         4 2 puback #2",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 2 connect ben clean
                2 < CONNACK accepted
            0 2 subscribe #1 t:2
                2 < SUBACK #1 [2]
            1 1 publish t 1 q2 #1
                1 < PUBREC #1
            1 1 pubrel #1
                2 < PUBLISH t 1 q2 #1
                1 < PUBCOMP #1
            1 1 publish t 2 q1 #2
                1 < PUBACK #2
            2 2 pubrec #1
                2 < PUBREL #1
            3 2 pubcomp #1
                1 released
                2 < PUBLISH t 2 q1 #2
            4 2 puback #2
                2 released
        "#]],
    );
}

#[test]
fn mqtt_3_3_4_9_the_receive_maximum_narrows_the_window() {
    check(
        NARROW,
        "0 1 connect anna clean
         0 2 connect ben v5 clean max=1
         0 2 subscribe #1 t:1
         1 1 publish t 1 q1 #1
         1 1 publish t 2 q1 #2
         2 2 puback #1",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 2 connect ben v5 clean max=1
                2 < CONNACK accepted
            0 2 subscribe #1 t:1
                2 < SUBACK #1 [1]
            1 1 publish t 1 q1 #1
                2 < PUBLISH t 1 q1 #1
                1 < PUBACK #1
            1 1 publish t 2 q1 #2
                1 < PUBACK #2
            2 2 puback #1
                1 released
                2 < PUBLISH t 2 q1 #2
        "#]],
    );
}

#[test]
fn a_receive_maximum_takes_the_place_of_the_brokers_own_limit_as_in_mosquitto() {
    check(
        NARROW,
        "0 1 connect anna clean
         0 2 connect ben v5 clean max=3
         0 2 subscribe #1 t:1
         1 1 publish t 1 q1 #1
         1 1 publish t 2 q1 #2
         1 1 publish t 3 q1 #3
         1 1 publish t 4 q1 #4",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 2 connect ben v5 clean max=3
                2 < CONNACK accepted
            0 2 subscribe #1 t:1
                2 < SUBACK #1 [1]
            1 1 publish t 1 q1 #1
                2 < PUBLISH t 1 q1 #1
                1 < PUBACK #1
            1 1 publish t 2 q1 #2
                2 < PUBLISH t 2 q1 #2
                1 < PUBACK #2
            1 1 publish t 3 q1 #3
                2 < PUBLISH t 3 q1 #3
                1 < PUBACK #3
            1 1 publish t 4 q1 #4
                1 < PUBACK #4
        "#]],
    );
}

/// Message for message what Mosquitto 2.0.11 does with `max_inflight_messages 2`.
#[test]
fn what_exceeds_the_window_of_a_3_1_1_client_is_acknowledged_and_dropped() {
    let script = "0 1 connect anna clean VERSION
         0 2 connect ben clean
         0 2 subscribe #1 t:0
         1 1 publish t 1 q2 #1
         1 1 publish t 2 q2 #2
         1 1 publish t 3 q2 #3
         1 1 publish t 4 q0
         1 1 publish t 5 q2 #2 dup
         2 1 pubrel #3
         3 1 publish t 6 q2 #4
         3 1 publish t 7 q1 #5
         3 1 publish t 8 q2 #6
         4 1 pubrel #1
         4 1 pubrel #2
         4 1 pubrel #4
         4 1 pubrel #6";
    let options = BrokerOptions { excess: Excess::Dropped, ..NARROW };
    let expected = expect![[r#"
        0 1 connect anna clean
            1 < CONNACK accepted
        0 2 connect ben clean
            2 < CONNACK accepted
        0 2 subscribe #1 t:0
            2 < SUBACK #1 [0]
        1 1 publish t 1 q2 #1
            1 < PUBREC #1
        1 1 publish t 2 q2 #2
            1 < PUBREC #2
        1 1 publish t 3 q2 #3
            3 acknowledged and dropped
            1 < PUBREC #3
            3 released
        1 1 publish t 4 q0
            2 < PUBLISH t 4 q0
            4 released
        1 1 publish t 5 q2 #2 dup
            1 < PUBREC #2
            5 released
        2 1 pubrel #3
            1 < PUBCOMP #3
        3 1 publish t 6 q2 #4
            1 < PUBREC #4
        3 1 publish t 7 q1 #5
            7 acknowledged and dropped
            1 < PUBACK #5
            7 released
        3 1 publish t 8 q2 #6
            1 < PUBREC #6
        4 1 pubrel #1
            2 < PUBLISH t 1 q0
            1 < PUBCOMP #1
            1 released
        4 1 pubrel #2
            2 < PUBLISH t 2 q0
            1 < PUBCOMP #2
            2 released
        4 1 pubrel #4
            2 < PUBLISH t 6 q0
            1 < PUBCOMP #4
            6 released
        4 1 pubrel #6
            2 < PUBLISH t 8 q0
            1 < PUBCOMP #6
            8 released
    "#]];
    check(options, &script.replace(" VERSION", ""), expected);
    for (version, excess) in [("v5", Excess::Dropped), ("v3.1", Excess::Taken)] {
        let script = script.replace("VERSION", version);
        let dropped = transcript(BrokerOptions { excess, ..NARROW }, &script);
        assert!(!dropped.contains("and dropped"), "{version} {excess:?}: {dropped}");
    }
}

#[test]
fn mqtt_4_4_0_1_what_is_unacknowledged_is_repeated_with_dup_in_order_and_before_what_waits() {
    check(
        BrokerOptions { max_queued: 9, ..NARROW },
        "0 1 connect anna clean
         0 2 connect ben kept
         0 2 subscribe #1 t:2
         1 1 publish t 1 q2 #1
         1 1 pubrel #1
         1 1 publish t 2 q1 #2
         1 1 publish t 3 q1 #3
         2 2 pubrec #1
         3 2 closed
         4 1 publish t 4 q1 #4
         4 1 publish t 5 q0
         5 3 connect ben kept
         6 3 pubcomp #1
         7 3 puback #2",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 2 connect ben kept
                2 < CONNACK accepted
            0 2 subscribe #1 t:2
                2 < SUBACK #1 [2]
            1 1 publish t 1 q2 #1
                1 < PUBREC #1
            1 1 pubrel #1
                2 < PUBLISH t 1 q2 #1
                1 < PUBCOMP #1
            1 1 publish t 2 q1 #2
                2 < PUBLISH t 2 q1 #2
                1 < PUBACK #2
            1 1 publish t 3 q1 #3
                1 < PUBACK #3
            2 2 pubrec #1
                2 < PUBREL #1
            3 2 closed
            4 1 publish t 4 q1 #4
                1 < PUBACK #4
            4 1 publish t 5 q0
                5 dropped for ben: Away
                5 released
            5 3 connect ben kept
                3 < CONNACK accepted session present
                3 < PUBREL #1
                3 < PUBLISH t 2 q1 #2 dup
            6 3 pubcomp #1
                1 released
                3 < PUBLISH t 3 q1 #3
            7 3 puback #2
                2 released
                3 < PUBLISH t 4 q1 #4
        "#]],
    );
}

#[test]
fn mqtt_3_3_4_9_repetition_keeps_to_a_receive_maximum_that_has_become_smaller() {
    check(
        BrokerOptions { max_inflight: 3, ..NARROW },
        "0 1 connect anna clean
         0 2 connect ben v5 expiry=1000
         0 2 subscribe #1 t:1
         1 1 publish t 1 q1 #1
         1 1 publish t 2 q1 #2
         1 1 publish t 3 q1 #3
         2 2 closed
         3 2 connect ben v5 expiry=1000 max=1
         4 1 publish t 4 q1 #4
         5 2 puback #1
         6 2 puback #2
         7 2 puback #3",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 2 connect ben v5 expiry=1000
                2 < CONNACK accepted
            0 2 subscribe #1 t:1
                2 < SUBACK #1 [1]
            1 1 publish t 1 q1 #1
                2 < PUBLISH t 1 q1 #1
                1 < PUBACK #1
            1 1 publish t 2 q1 #2
                2 < PUBLISH t 2 q1 #2
                1 < PUBACK #2
            1 1 publish t 3 q1 #3
                2 < PUBLISH t 3 q1 #3
                1 < PUBACK #3
            2 2 closed
            3 2 connect ben v5 expiry=1000 max=1
                2 < CONNACK accepted session present
                2 < PUBLISH t 1 q1 #1 dup
            4 1 publish t 4 q1 #4
                1 < PUBACK #4
            5 2 puback #1
                1 released
                2 < PUBLISH t 2 q1 #2 dup
            6 2 puback #2
                2 released
                2 < PUBLISH t 3 q1 #3 dup
            7 2 puback #3
                3 released
                2 < PUBLISH t 4 q1 #4
        "#]],
    );
}

#[test]
fn while_a_client_is_away_what_is_in_flight_counts_as_queued() {
    check(
        NARROW,
        "0 1 connect anna clean
         0 2 connect ben kept
         0 2 subscribe #1 t:1
         1 1 publish t 1 q1 #1
         2 2 closed
         3 1 publish t 2 q1 #2
         3 1 publish t 3 q1 #3
         4 2 connect ben kept",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 2 connect ben kept
                2 < CONNACK accepted
            0 2 subscribe #1 t:1
                2 < SUBACK #1 [1]
            1 1 publish t 1 q1 #1
                2 < PUBLISH t 1 q1 #1
                1 < PUBACK #1
            2 2 closed
            3 1 publish t 2 q1 #2
                1 < PUBACK #2
            3 1 publish t 3 q1 #3
                3 dropped for ben: QueueFull
                1 < PUBACK #3
                3 released
            4 2 connect ben kept
                2 < CONNACK accepted session present
                2 < PUBLISH t 1 q1 #1 dup
                2 < PUBLISH t 2 q1 #2
        "#]],
    );
}

#[test]
fn without_limits_everything_waits_and_65535_messages_are_in_flight() {
    let options = BrokerOptions { max_inflight: 0, max_queued: 0, ..NARROW };
    let mut broker = Broker::new(options);
    let (anna, ben, topic) = (ConnectionId(1), ConnectionId(2), broker.topic("t"));
    let mut tell = |connection, input| -> Vec<Output> {
        broker.handle(Instant::ZERO, connection, input);
        std::iter::from_fn(|| broker.poll()).collect()
    };
    let connect = |client| Input::Connect {
        client,
        version: Version::V311,
        clean: false,
        keep_alive: Duration::ZERO,
        session_expiry: None,
        receive_maximum: u16::MAX,
        will: None,
    };
    tell(anna, connect("anna"));
    tell(ben, connect("ben"));
    let filters = [("t", Qos::AtLeastOnce.into())];
    tell(ben, Input::Subscribe { id: 1, filters: &filters });
    tell(ben, Input::Disconnect { with_will: false });
    for message in 0..70_000 {
        let (id, qos) = (1, Qos::AtLeastOnce);
        let outputs = tell(
            anna,
            Input::Publish {
                topic,
                message,
                qos,
                id,
                dup: false,
                retain: false,
                empty: false,
                expiry_s: None,
            },
        );
        assert_eq!(outputs, [Output::Puback { connection: anna, id }]);
    }
    let sent = |output: &Output| match output {
        Output::Publish { message, id, .. } => Some((*message, *id)),
        _ => None,
    };
    let first: Vec<(u64, u16)> = tell(ben, connect("ben")).iter().filter_map(sent).collect();
    assert_eq!(first, (0..65_535).map(|n| (n, n as u16 + 1)).collect::<Vec<_>>());
    // Acknowledgements out of order: the identifiers that they free are given again in the order of the numbers.
    for (n, id) in (1..=4465).map(|n| (n, (n * 14) as u16)) {
        let next: Vec<(u64, u16)> = tell(ben, Input::Puback { id }).iter().filter_map(sent).collect();
        assert_eq!(next, [(65_534 + n, id)]);
    }
}

#[test]
fn qos0_messages_for_clients_that_are_away_are_kept_where_that_is_wanted() {
    check(
        BrokerOptions { queue_qos0: true, max_queued: 3, ..NARROW },
        "0 1 connect anna clean
         0 2 connect ben kept
         0 2 subscribe #1 t:2
         1 2 closed
         2 1 publish t 1 q0
         2 1 publish t 2 q1 #1
         2 1 publish t 3 q0
         2 1 publish t 4 q0
         3 2 connect ben kept
         4 1 publish t 5 q0",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 2 connect ben kept
                2 < CONNACK accepted
            0 2 subscribe #1 t:2
                2 < SUBACK #1 [2]
            1 2 closed
            2 1 publish t 1 q0
            2 1 publish t 2 q1 #1
                1 < PUBACK #1
            2 1 publish t 3 q0
            2 1 publish t 4 q0
                4 dropped for ben: QueueFull
                4 released
            3 2 connect ben kept
                2 < CONNACK accepted session present
                2 < PUBLISH t 1 q0
                1 released
                2 < PUBLISH t 2 q1 #1
                2 < PUBLISH t 3 q0
                3 released
            4 1 publish t 5 q0
                2 < PUBLISH t 5 q0
                5 released
        "#]],
    );
}

#[test]
fn qos0_messages_are_dropped_when_too_much_waits_at_the_socket() {
    check(
        NARROW,
        "0 1 connect anna clean
         0 1 subscribe #1 t:1
         1 1 backlog 1
         1 1 publish t 1 q0
         2 1 backlog 2
         2 1 publish t 2 q0
         2 1 publish t 3 q1 #1
         3 1 closed
         4 1 connect anna clean
         4 1 subscribe #1 t:1
         5 1 publish t 4 q0",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 1 subscribe #1 t:1
                1 < SUBACK #1 [1]
            1 1 backlog 1
            1 1 publish t 1 q0
                1 < PUBLISH t 1 q0
                1 released
            2 1 backlog 2
            2 1 publish t 2 q0
                2 dropped for anna: SocketFull
                2 released
            2 1 publish t 3 q1 #1
                1 < PUBLISH t 3 q1 #1
                1 < PUBACK #1
            3 1 closed
                3 dropped for nobody: SessionEnded
                3 released
            4 1 connect anna clean
                1 < CONNACK accepted
            4 1 subscribe #1 t:1
                1 < SUBACK #1 [1]
            5 1 publish t 4 q0
                1 < PUBLISH t 4 q0
                4 released
        "#]],
    );
}

#[test]
fn mqtt31_repeats_by_the_clock() {
    check(
        BrokerOptions { retry: Some(Duration::from_s(20)), ..NARROW },
        "0 1 connect anna v3.1 kept
         0 1 subscribe #1 t:2
         1000 1 publish t 1 q1 #1
         2000 1 publish t 2 q2 #2
         2000 1 pubrel #2
         20999 tick
         21000 tick
         21500 1 pubrec #2
         22000 tick
         30000 1 puback #1
         41000 tick
         41500 tick
         42000 1 pubcomp #2
         99999 tick",
        expect![[r#"
            0 1 connect anna v3.1 kept
                1 < CONNACK accepted
            0 1 subscribe #1 t:2
                1 < SUBACK #1 [2]
            1000 1 publish t 1 q1 #1
                1 < PUBLISH t 1 q1 #1
                1 < PUBACK #1
            2000 1 publish t 2 q2 #2
                1 < PUBREC #2
            2000 1 pubrel #2
                1 < PUBLISH t 2 q2 #2
                1 < PUBCOMP #2
            20999 tick
            21000 tick
                1 < PUBLISH t 1 q1 #1 dup
            21500 1 pubrec #2
                1 < PUBREL #2
            22000 tick
            30000 1 puback #1
                1 released
            41000 tick
            41500 tick
                1 < PUBREL #2
            42000 1 pubcomp #2
                2 released
            99999 tick
        "#]],
    );
}

#[test]
fn an_acknowledgement_of_the_wrong_kind_closes_the_connection() {
    check(
        NARROW,
        "0 1 connect anna kept
         0 1 subscribe #1 t:2
         1 1 publish t 1 q1 #1
         2 1 pubrec #1
         3 1 connect anna clean
         3 1 subscribe #1 t:2
         4 1 publish t 2 q2 #1
         4 1 pubrel #1
         5 1 puback #1",
        expect![[r#"
            0 1 connect anna kept
                1 < CONNACK accepted
            0 1 subscribe #1 t:2
                1 < SUBACK #1 [2]
            1 1 publish t 1 q1 #1
                1 < PUBLISH t 1 q1 #1
                1 < PUBACK #1
            2 1 pubrec #1
                1 closed
            3 1 connect anna clean
                1 dropped for anna: SessionEnded
                1 released
                1 < CONNACK accepted
            3 1 subscribe #1 t:2
                1 < SUBACK #1 [2]
            4 1 publish t 2 q2 #1
                1 < PUBREC #1
            4 1 pubrel #1
                1 < PUBLISH t 2 q2 #1
                1 < PUBCOMP #1
            5 1 puback #1
                2 dropped for nobody: SessionEnded
                2 released
                1 closed
        "#]],
    );
}

#[test]
fn acknowledgements_of_what_is_not_in_flight_change_nothing() {
    check(
        NARROW,
        "0 1 connect anna kept
         1 1 puback #7
         2 1 pubrec #7
         3 1 pubrel #7
         4 1 pubcomp #7",
        expect![[r#"
            0 1 connect anna kept
                1 < CONNACK accepted
            1 1 puback #7
            2 1 pubrec #7
                1 < PUBREL #7
            3 1 pubrel #7
                1 < PUBCOMP #7
            4 1 pubcomp #7
        "#]],
    );
}
