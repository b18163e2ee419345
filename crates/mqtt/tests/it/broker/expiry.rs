//! Message expiry (MQTT 5 §3.3.2.3.3). What the specification leaves open is as Mosquitto 2.0.11 has it.

use expect_test::expect;
use mqttlab_mqtt::broker::BrokerOptions;
use mqttlab_mqtt::outbox::Refill;

use super::script::check;

const NARROW: BrokerOptions = BrokerOptions { max_inflight: 2, max_queued: 9, ..BrokerOptions::MOSQUITTO };

#[test]
fn mqtt_3_3_2_5_a_message_that_waits_for_longer_than_its_interval_is_not_sent() {
    check(
        BrokerOptions::MOSQUITTO,
        "0 1 connect anna clean
         0 2 connect ben kept v5
         0 2 subscribe #1 t:1
         1 2 closed
         1900 1 publish t 1 q1 #1 expiry=1
         1900 1 publish t 2 q1 #2 expiry=3
         2900 1 publish t 3 q1 #3
         3000 2 connect ben kept v5",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 2 connect ben kept v5
                2 < CONNACK accepted
            0 2 subscribe #1 t:1
                2 < SUBACK #1 [1]
            1 2 closed
            1900 1 publish t 1 q1 #1 expiry=1
                1 < PUBACK #1
            1900 1 publish t 2 q1 #2 expiry=3
                1 < PUBACK #2
            2900 1 publish t 3 q1 #3
                1 < PUBACK #3
            3000 2 connect ben kept v5
                2 < CONNACK accepted session present
                1 dropped for ben: Expired
                1 released
                2 < PUBLISH t 2 q1 #2 1 s
                2 < PUBLISH t 3 q1 #3
        "#]],
    );
}

#[test]
fn mqtt_3_3_2_6_what_is_left_of_the_interval_is_handed_on() {
    check(
        BrokerOptions::MOSQUITTO,
        "0 1 connect anna clean
         0 2 connect ben kept v5
         0 2 subscribe #1 t:2
         1 1 publish t 1 q1 #1 expiry=10
         1 1 publish t 2 q0 expiry=4294967295
         2 2 closed
         5 1 publish t 3 q2 #2 expiry=10
         4999 1 pubrel #2
         8000 2 connect ben kept v5",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 2 connect ben kept v5
                2 < CONNACK accepted
            0 2 subscribe #1 t:2
                2 < SUBACK #1 [2]
            1 1 publish t 1 q1 #1 expiry=10
                2 < PUBLISH t 1 q1 #1 10 s
                1 < PUBACK #1
            1 1 publish t 2 q0 expiry=4294967295
                2 < PUBLISH t 2 q0 4294967294 s
                2 released
            2 2 closed
            5 1 publish t 3 q2 #2 expiry=10
                1 < PUBREC #2
            4999 1 pubrel #2
                1 < PUBCOMP #2
            8000 2 connect ben kept v5
                2 < CONNACK accepted session present
                2 < PUBLISH t 1 q1 #1 dup 2 s
                2 < PUBLISH t 3 q2 #2 2 s
        "#]],
    );
}

/// As Mosquitto 2.0.11 counts (measured).
#[test]
fn in_the_second_in_which_its_interval_ends_a_message_is_sent_without_it() {
    check(
        BrokerOptions::MOSQUITTO,
        "0 1 connect anna clean
         0 2 connect ben kept v5
         0 2 subscribe #1 t:1
         1 2 closed
         1999 1 publish t 1 q1 #1 expiry=1
         2999 2 connect ben kept v5
         2999 2 puback #1
         2999 2 closed
         2999 1 publish t 2 q1 #2 expiry=1
         4000 2 connect ben kept v5",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 2 connect ben kept v5
                2 < CONNACK accepted
            0 2 subscribe #1 t:1
                2 < SUBACK #1 [1]
            1 2 closed
            1999 1 publish t 1 q1 #1 expiry=1
                1 < PUBACK #1
            2999 2 connect ben kept v5
                2 < CONNACK accepted session present
                2 < PUBLISH t 1 q1 #1
            2999 2 puback #1
                1 released
            2999 2 closed
            2999 1 publish t 2 q1 #2 expiry=1
                1 < PUBACK #2
            4000 2 connect ben kept v5
                2 < CONNACK accepted session present
                2 dropped for ben: Expired
                2 released
        "#]],
    );
}

#[test]
fn a_message_behind_the_window_expires_while_its_client_is_connected() {
    check(
        NARROW,
        "0 1 connect anna clean
         0 2 connect ben clean v5
         0 2 subscribe #1 t:1
         1 1 publish t 1 q1 #1
         1 1 publish t 2 q1 #2
         1 1 publish t 3 q1 #3 expiry=2
         1 1 publish t 4 q1 #4 expiry=60
         3001 2 puback #1
         3002 2 puback #2",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 2 connect ben clean v5
                2 < CONNACK accepted
            0 2 subscribe #1 t:1
                2 < SUBACK #1 [1]
            1 1 publish t 1 q1 #1
                2 < PUBLISH t 1 q1 #1
                1 < PUBACK #1
            1 1 publish t 2 q1 #2
                2 < PUBLISH t 2 q1 #2
                1 < PUBACK #2
            1 1 publish t 3 q1 #3 expiry=2
                1 < PUBACK #3
            1 1 publish t 4 q1 #4 expiry=60
                1 < PUBACK #4
            3001 2 puback #1
                1 released
                3 dropped for ben: Expired
                3 released
                2 < PUBLISH t 4 q1 #4 57 s
            3002 2 puback #2
                2 released
        "#]],
    );
}

/// Mosquitto 2.0.11 takes it out of what is in flight (measured).
#[test]
fn what_was_sent_and_not_acknowledged_is_not_repeated_once_it_is_expired() {
    check(
        NARROW,
        "0 1 connect anna clean
         0 2 connect ben kept v5
         0 2 subscribe #1 t:1
         1 1 publish t 1 q1 #1 expiry=2
         1 1 publish t 2 q1 #2 expiry=60
         2 2 closed
         4000 2 connect ben kept v5",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 2 connect ben kept v5
                2 < CONNACK accepted
            0 2 subscribe #1 t:1
                2 < SUBACK #1 [1]
            1 1 publish t 1 q1 #1 expiry=2
                2 < PUBLISH t 1 q1 #1 2 s
                1 < PUBACK #1
            1 1 publish t 2 q1 #2 expiry=60
                2 < PUBLISH t 2 q1 #2 60 s
                1 < PUBACK #2
            2 2 closed
            4000 2 connect ben kept v5
                2 < CONNACK accepted session present
                1 dropped for ben: Expired
                1 released
                2 < PUBLISH t 2 q1 #2 dup 56 s
        "#]],
    );
}

/// Mosquitto 2.0.11 lets out no other in place of an expired one (measured).
#[test]
fn expired_messages_at_the_front_let_out_nobody_until_the_next_message_comes() {
    check(
        BrokerOptions { refill: Refill::ByPlace, ..NARROW },
        "0 1 connect anna clean
         0 2 connect ben kept v5
         0 2 subscribe #1 t:1
         1 2 closed
         2 1 publish t 1 q1 #1 expiry=1
         2 1 publish t 2 q1 #2 expiry=1
         2 1 publish t 3 q1 #3 expiry=60
         5000 2 connect ben kept v5
         6000 1 publish t 4 q1 #4",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 2 connect ben kept v5
                2 < CONNACK accepted
            0 2 subscribe #1 t:1
                2 < SUBACK #1 [1]
            1 2 closed
            2 1 publish t 1 q1 #1 expiry=1
                1 < PUBACK #1
            2 1 publish t 2 q1 #2 expiry=1
                1 < PUBACK #2
            2 1 publish t 3 q1 #3 expiry=60
                1 < PUBACK #3
            5000 2 connect ben kept v5
                2 < CONNACK accepted session present
                1 dropped for ben: Expired
                1 released
                2 dropped for ben: Expired
                2 released
            6000 1 publish t 4 q1 #4
                2 < PUBLISH t 4 q1 #3
                1 < PUBACK #4
        "#]],
    );
}

/// A new subscription gets what is left, and nothing from the second on in which the interval ends.
#[test]
fn a_retained_copy_expires() {
    check(
        BrokerOptions::MOSQUITTO,
        "0 1 connect anna clean
         0 1 publish t 1 q1 #1 retain expiry=5
         0 1 publish u 2 q1 #2 retain
         4000 2 connect ben clean v5
         4000 2 subscribe #1 t:1 u:1
         5000 3 connect cora clean v5
         5000 3 subscribe #1 t:1 u:1
         5001 3 subscribe #2 t:1",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 1 publish t 1 q1 #1 retain expiry=5
                1 < PUBACK #1
            0 1 publish u 2 q1 #2 retain
                1 < PUBACK #2
            4000 2 connect ben clean v5
                2 < CONNACK accepted
            4000 2 subscribe #1 t:1 u:1
                2 < SUBACK #1 [1, 1]
                2 < PUBLISH t 1 q1 #1 retain 1 s
                2 < PUBLISH u 2 q1 #2 retain
            5000 3 connect cora clean v5
                3 < CONNACK accepted
            5000 3 subscribe #1 t:1 u:1
                3 < SUBACK #1 [1, 1]
                3 < PUBLISH u 2 q1 #1 retain
            5001 3 subscribe #2 t:1
                3 < SUBACK #2 [1]
        "#]],
    );
}

#[test]
fn a_message_at_qos_2_may_expire_before_it_is_released() {
    check(
        BrokerOptions::MOSQUITTO,
        "0 1 connect anna clean
         0 2 connect ben clean v5
         0 2 subscribe #1 t:2
         0 1 publish t 1 q2 #1 expiry=1
         3000 1 pubrel #1",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 2 connect ben clean v5
                2 < CONNACK accepted
            0 2 subscribe #1 t:2
                2 < SUBACK #1 [2]
            0 1 publish t 1 q2 #1 expiry=1
                1 < PUBREC #1
            3000 1 pubrel #1
                1 dropped for ben: Expired
                1 < PUBCOMP #1
                1 released
        "#]],
    );
}
