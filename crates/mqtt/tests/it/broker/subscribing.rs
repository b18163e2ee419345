//! Who gets what.

use expect_test::expect;
use mqttlab_mqtt::broker::BrokerOptions;

use super::script::check;

const DEFAULT: BrokerOptions = BrokerOptions::MOSQUITTO;

#[test]
fn a_delivery_has_the_lower_qos_of_publication_and_subscription() {
    check(
        DEFAULT,
        "0 1 connect anna clean
         0 1 subscribe #1 zero:0 one:1 two:2
         1 1 publish zero 1 q1 #1
         2 1 publish one 2 q0
         3 1 publish two 3 q1 #2
         4 1 publish one 4 q2 #3
         5 1 pubrel #3",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 1 subscribe #1 zero:0 one:1 two:2
                1 < SUBACK #1 [0, 1, 2]
            1 1 publish zero 1 q1 #1
                1 < PUBLISH zero 1 q0
                1 < PUBACK #1
                1 released
            2 1 publish one 2 q0
                1 < PUBLISH one 2 q0
                2 released
            3 1 publish two 3 q1 #2
                1 < PUBLISH two 3 q1 #1
                1 < PUBACK #2
            4 1 publish one 4 q2 #3
                1 < PUBREC #3
            5 1 pubrel #3
                1 < PUBLISH one 4 q1 #2
                1 < PUBCOMP #3
        "#]],
    );
}

#[test]
fn before_mqtt_5_overlapping_subscriptions_cause_one_copy_at_the_qos_of_the_narrowest() {
    check(
        DEFAULT,
        "0 1 connect anna clean
         0 1 subscribe #1 a/#:0 a/+:2 a/b:1
         1 1 publish a/b 7 q2 #1
         2 1 pubrel #1
         3 1 unsubscribe #2 a/+
         4 1 publish a/b 8 q2 #2
         5 1 pubrel #2",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 1 subscribe #1 a/#:0 a/+:2 a/b:1
                1 < SUBACK #1 [0, 2, 1]
            1 1 publish a/b 7 q2 #1
                1 < PUBREC #1
            2 1 pubrel #1
                1 < PUBLISH a/b 7 q1 #1
                1 < PUBCOMP #1
            3 1 unsubscribe #2 a/+
                1 < UNSUBACK #2
            4 1 publish a/b 8 q2 #2
                1 < PUBREC #2
            5 1 pubrel #2
                1 < PUBLISH a/b 8 q1 #2
                1 < PUBCOMP #2
        "#]],
    );
}

/// Mosquitto 2.0.11, asked with `a/+` and `a/#`, `a/b` and both, and the same filter shared.
#[test]
fn mqtt_3_3_4_with_mqtt_5_each_overlapping_subscription_causes_a_copy() {
    check(
        DEFAULT,
        "0 1 connect anna clean v5
         0 2 connect ben clean
         0 1 subscribe #1 a/#:0 a/+:2 a/b:1 $share/g/a/b:0
         0 2 subscribe #1 a/#:1 a/+:0
         1 2 publish a/b 7 q1 #1
         2 1 puback #1
         2 1 puback #2
         3 1 unsubscribe #2 a/+
         4 2 publish a/b 8 q0",
        expect![[r#"
            0 1 connect anna clean v5
                1 < CONNACK accepted
            0 2 connect ben clean
                2 < CONNACK accepted
            0 1 subscribe #1 a/#:0 a/+:2 a/b:1 $share/g/a/b:0
                1 < SUBACK #1 [0, 2, 1, 0]
            0 2 subscribe #1 a/#:1 a/+:0
                2 < SUBACK #1 [1, 0]
            1 2 publish a/b 7 q1 #1
                1 < PUBLISH a/b 7 q0
                1 < PUBLISH a/b 7 q1 #1
                1 < PUBLISH a/b 7 q1 #2
                2 < PUBLISH a/b 7 q0
                1 < PUBLISH a/b 7 q0
                2 < PUBACK #1
            2 1 puback #1
            2 1 puback #2
                7 released
            3 1 unsubscribe #2 a/+
                1 < UNSUBACK #2
            4 2 publish a/b 8 q0
                1 < PUBLISH a/b 8 q0
                1 < PUBLISH a/b 8 q0
                2 < PUBLISH a/b 8 q0
                1 < PUBLISH a/b 8 q0
                8 released
        "#]],
    );
}

#[test]
fn mqtt_3_8_4_3_subscribing_again_replaces_the_qos() {
    check(
        DEFAULT,
        "0 1 connect anna clean
         0 1 subscribe #1 t:1
         1 1 publish t 7 q1 #1
         2 1 subscribe #2 t:0
         3 1 publish t 8 q1 #2
         4 1 unsubscribe #3 t
         5 1 publish t 9 q1 #3",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 1 subscribe #1 t:1
                1 < SUBACK #1 [1]
            1 1 publish t 7 q1 #1
                1 < PUBLISH t 7 q1 #1
                1 < PUBACK #1
            2 1 subscribe #2 t:0
                1 < SUBACK #2 [0]
            3 1 publish t 8 q1 #2
                1 < PUBLISH t 8 q0
                1 < PUBACK #2
                8 released
            4 1 unsubscribe #3 t
                1 < UNSUBACK #3
            5 1 publish t 9 q1 #3
                1 < PUBACK #3
                9 released
        "#]],
    );
}

#[test]
fn mqtt_3_10_4_4_unsubscribing_from_what_was_never_subscribed_is_answered() {
    check(
        DEFAULT,
        "0 1 connect anna clean
         0 2 connect ben clean
         0 2 subscribe #1 t:0
         1 1 unsubscribe #5 t never $share/g/t
         2 1 publish t 7 q0",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 2 connect ben clean
                2 < CONNACK accepted
            0 2 subscribe #1 t:0
                2 < SUBACK #1 [0]
            1 1 unsubscribe #5 t never $share/g/t
                1 < UNSUBACK #5
            2 1 publish t 7 q0
                2 < PUBLISH t 7 q0
                7 released
        "#]],
    );
}

#[test]
fn subscribers_are_served_in_the_order_of_their_subscriptions() {
    check(
        DEFAULT,
        "0 1 connect anna clean
         0 2 connect ben clean
         0 3 connect carl clean
         1 3 subscribe #1 t:0
         1 1 subscribe #1 #:0
         1 2 subscribe #1 t:0
         2 1 publish t 7 q0",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 2 connect ben clean
                2 < CONNACK accepted
            0 3 connect carl clean
                3 < CONNACK accepted
            1 3 subscribe #1 t:0
                3 < SUBACK #1 [0]
            1 1 subscribe #1 #:0
                1 < SUBACK #1 [0]
            1 2 subscribe #1 t:0
                2 < SUBACK #1 [0]
            2 1 publish t 7 q0
                3 < PUBLISH t 7 q0
                2 < PUBLISH t 7 q0
                1 < PUBLISH t 7 q0
                7 released
        "#]],
    );
}

#[test]
fn mqtt_4_7_2_1_wildcards_do_not_match_names_that_begin_with_a_dollar() {
    check(
        DEFAULT,
        "0 1 connect anna clean
         0 1 subscribe #1 #:0 +/uptime:0
         1 1 publish $SYS/uptime 7 q0 retain
         2 1 subscribe #2 +/uptime:0
         3 1 subscribe #3 $SYS/#:0
         4 1 publish $SYS/uptime 8 q0",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 1 subscribe #1 #:0 +/uptime:0
                1 < SUBACK #1 [0, 0]
            1 1 publish $SYS/uptime 7 q0 retain
            2 1 subscribe #2 +/uptime:0
                1 < SUBACK #2 [0]
            3 1 subscribe #3 $SYS/#:0
                1 < SUBACK #3 [0]
                1 < PUBLISH $SYS/uptime 7 q0 retain
            4 1 publish $SYS/uptime 8 q0
                1 < PUBLISH $SYS/uptime 8 q0
                8 released
        "#]],
    );
}

#[test]
fn members_of_a_shared_subscription_take_turns_also_while_one_is_away() {
    check(
        DEFAULT,
        "0 1 connect anna kept
         0 2 connect ben kept
         0 1 subscribe #1 $share/g/t:1
         0 2 subscribe #1 $share/g/t:0
         0 3 connect carl clean
         0 3 subscribe #1 $share/other/t:0
         1 3 publish t 1 q1 #1
         2 3 publish t 2 q1 #2
         3 1 closed
         4 3 publish t 3 q1 #3
         5 3 publish t 4 q1 #4
         6 1 connect anna kept",
        expect![[r#"
            0 1 connect anna kept
                1 < CONNACK accepted
            0 2 connect ben kept
                2 < CONNACK accepted
            0 1 subscribe #1 $share/g/t:1
                1 < SUBACK #1 [1]
            0 2 subscribe #1 $share/g/t:0
                2 < SUBACK #1 [0]
            0 3 connect carl clean
                3 < CONNACK accepted
            0 3 subscribe #1 $share/other/t:0
                3 < SUBACK #1 [0]
            1 3 publish t 1 q1 #1
                1 < PUBLISH t 1 q1 #1
                3 < PUBLISH t 1 q0
                3 < PUBACK #1
            2 3 publish t 2 q1 #2
                2 < PUBLISH t 2 q0
                3 < PUBLISH t 2 q0
                3 < PUBACK #2
                2 released
            3 1 closed
            4 3 publish t 3 q1 #3
                3 < PUBLISH t 3 q0
                3 < PUBACK #3
            5 3 publish t 4 q1 #4
                2 < PUBLISH t 4 q0
                3 < PUBLISH t 4 q0
                3 < PUBACK #4
                4 released
            6 1 connect anna kept
                1 < CONNACK accepted session present
                1 < PUBLISH t 1 q1 #1 dup
                1 < PUBLISH t 3 q1 #2
        "#]],
    );
}

#[test]
fn a_new_member_of_a_shared_subscription_comes_behind_all_others() {
    // Who received the messages 1 to 6 of Mosquitto 2.0.11.
    check(
        DEFAULT,
        "0 1 connect anna clean
         0 2 connect ben clean
         0 3 connect carl clean
         0 1 subscribe #1 $share/g/t:0
         0 2 subscribe #1 $share/g/t:0
         1 1 publish t 1 q0
         2 3 subscribe #1 $share/g/t:0
         3 1 publish t 2 q0
         4 1 publish t 3 q0
         5 1 publish t 4 q0
         6 1 publish t 5 q0
         7 1 publish t 6 q0",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 2 connect ben clean
                2 < CONNACK accepted
            0 3 connect carl clean
                3 < CONNACK accepted
            0 1 subscribe #1 $share/g/t:0
                1 < SUBACK #1 [0]
            0 2 subscribe #1 $share/g/t:0
                2 < SUBACK #1 [0]
            1 1 publish t 1 q0
                1 < PUBLISH t 1 q0
                1 released
            2 3 subscribe #1 $share/g/t:0
                3 < SUBACK #1 [0]
            3 1 publish t 2 q0
                2 < PUBLISH t 2 q0
                2 released
            4 1 publish t 3 q0
                1 < PUBLISH t 3 q0
                3 released
            5 1 publish t 4 q0
                3 < PUBLISH t 4 q0
                4 released
            6 1 publish t 5 q0
                2 < PUBLISH t 5 q0
                5 released
            7 1 publish t 6 q0
                1 < PUBLISH t 6 q0
                6 released
        "#]],
    );
}

#[test]
fn the_turn_passes_on_when_a_member_leaves_and_the_last_one_ends_the_share() {
    check(
        DEFAULT,
        "0 1 connect anna clean
         0 2 connect ben clean
         0 3 connect carl clean
         0 1 subscribe #1 $share/g/t:0
         0 2 subscribe #1 $share/g/t:0
         0 3 subscribe #1 $share/g/t:0
         1 1 publish t 1 q0
         2 1 closed
         3 2 publish t 2 q0
         4 2 unsubscribe #2 $share/g/t
         5 2 publish t 3 q0
         6 3 closed
         7 2 publish t 4 q0
         8 2 subscribe #3 $share/g/t:0
         9 2 publish t 5 q0",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 2 connect ben clean
                2 < CONNACK accepted
            0 3 connect carl clean
                3 < CONNACK accepted
            0 1 subscribe #1 $share/g/t:0
                1 < SUBACK #1 [0]
            0 2 subscribe #1 $share/g/t:0
                2 < SUBACK #1 [0]
            0 3 subscribe #1 $share/g/t:0
                3 < SUBACK #1 [0]
            1 1 publish t 1 q0
                1 < PUBLISH t 1 q0
                1 released
            2 1 closed
            3 2 publish t 2 q0
                2 < PUBLISH t 2 q0
                2 released
            4 2 unsubscribe #2 $share/g/t
                2 < UNSUBACK #2
            5 2 publish t 3 q0
                3 < PUBLISH t 3 q0
                3 released
            6 3 closed
            7 2 publish t 4 q0
                4 released
            8 2 subscribe #3 $share/g/t:0
                2 < SUBACK #3 [0]
            9 2 publish t 5 q0
                2 < PUBLISH t 5 q0
                5 released
        "#]],
    );
}

#[test]
fn mqtt_3_8_3_a_filter_that_is_none_closes_the_connection() {
    check(
        DEFAULT,
        "0 1 connect anna clean
         1 1 subscribe #1 t:0 a#:0
         2 1 connect anna clean
         3 1 subscribe #1",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            1 1 subscribe #1 t:0 a#:0
                1 closed
            2 1 connect anna clean
                1 < CONNACK accepted
            3 1 subscribe #1
                1 closed
        "#]],
    );
}

#[test]
fn subscriptions_go_with_a_clean_session_and_stay_with_a_kept_one() {
    check(
        DEFAULT,
        "0 1 connect anna clean
         0 1 subscribe #1 t:0
         1 1 closed
         2 1 connect anna kept
         3 1 publish t 7 q0
         4 1 subscribe #1 t:0
         5 1 closed
         6 1 connect anna kept
         7 1 publish t 8 q0
         8 1 closed
         9 1 connect anna clean
         9 1 publish t 9 q0",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 1 subscribe #1 t:0
                1 < SUBACK #1 [0]
            1 1 closed
            2 1 connect anna kept
                1 < CONNACK accepted
            3 1 publish t 7 q0
                7 released
            4 1 subscribe #1 t:0
                1 < SUBACK #1 [0]
            5 1 closed
            6 1 connect anna kept
                1 < CONNACK accepted session present
            7 1 publish t 8 q0
                1 < PUBLISH t 8 q0
                8 released
            8 1 closed
            9 1 connect anna clean
                1 < CONNACK accepted
            9 1 publish t 9 q0
                9 released
        "#]],
    );
}
