//! From a publisher to the broker: acknowledgements, retained messages, wills.

use expect_test::expect;
use mqttlab_mqtt::broker::BrokerOptions;

use super::script::check;

const DEFAULT: BrokerOptions = BrokerOptions::MOSQUITTO;

#[test]
fn a_qos0_message_is_forwarded_and_forgotten() {
    check(
        DEFAULT,
        "0 1 connect anna clean
         0 2 connect ben clean
         0 2 subscribe #1 t:2
         1 1 publish t 7 q0
         2 1 publish elsewhere 8 q0",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 2 connect ben clean
                2 < CONNACK accepted
            0 2 subscribe #1 t:2
                2 < SUBACK #1 [2]
            1 1 publish t 7 q0
                2 < PUBLISH t 7 q0
                7 released
            2 1 publish elsewhere 8 q0
                8 released
        "#]],
    );
}

#[test]
fn copies_of_a_qos1_message_go_out_before_its_puback() {
    check(
        DEFAULT,
        "0 1 connect anna clean
         0 1 subscribe #1 t:1
         1 1 publish t 7 q1 #9
         2 1 puback #1",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 1 subscribe #1 t:1
                1 < SUBACK #1 [1]
            1 1 publish t 7 q1 #9
                1 < PUBLISH t 7 q1 #1
                1 < PUBACK #9
            2 1 puback #1
                7 released
        "#]],
    );
}

#[test]
fn a_qos1_message_that_is_repeated_is_forwarded_again() {
    check(
        DEFAULT,
        "0 1 connect anna clean
         0 2 connect ben clean
         0 2 subscribe #1 t:1
         1 1 publish t 7 q1 #9
         2 1 publish t 7 q1 #9 dup
         3 2 puback #1
         4 2 puback #2",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 2 connect ben clean
                2 < CONNACK accepted
            0 2 subscribe #1 t:1
                2 < SUBACK #1 [1]
            1 1 publish t 7 q1 #9
                2 < PUBLISH t 7 q1 #1
                1 < PUBACK #9
            2 1 publish t 7 q1 #9 dup
                2 < PUBLISH t 7 q1 #2
                1 < PUBACK #9
            3 2 puback #1
            4 2 puback #2
                7 released
        "#]],
    );
}

#[test]
fn mqtt_4_3_3_a_qos2_message_is_forwarded_once_when_its_pubrel_comes() {
    check(
        DEFAULT,
        "0 1 connect anna clean
         0 2 connect ben clean
         0 2 subscribe #1 t:2
         1 1 publish t 7 q2 #9
         2 1 publish t 7 q2 #9 dup
         3 1 pubrel #9
         4 1 pubrel #9
         5 2 pubrec #1
         6 2 pubcomp #1",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 2 connect ben clean
                2 < CONNACK accepted
            0 2 subscribe #1 t:2
                2 < SUBACK #1 [2]
            1 1 publish t 7 q2 #9
                1 < PUBREC #9
            2 1 publish t 7 q2 #9 dup
                1 < PUBREC #9
            3 1 pubrel #9
                2 < PUBLISH t 7 q2 #1
                1 < PUBCOMP #9
            4 1 pubrel #9
                1 < PUBCOMP #9
            5 2 pubrec #1
                2 < PUBREL #1
            6 2 pubcomp #1
                7 released
        "#]],
    );
}

#[test]
fn a_qos2_message_is_released_over_another_connection_of_the_session() {
    check(
        DEFAULT,
        "0 1 connect anna kept
         0 2 connect ben clean
         0 2 subscribe #1 t:0
         1 1 publish t 7 q2 #9
         2 1 closed
         3 3 connect anna kept
         4 3 pubrel #9",
        expect![[r#"
            0 1 connect anna kept
                1 < CONNACK accepted
            0 2 connect ben clean
                2 < CONNACK accepted
            0 2 subscribe #1 t:0
                2 < SUBACK #1 [0]
            1 1 publish t 7 q2 #9
                1 < PUBREC #9
            2 1 closed
            3 3 connect anna kept
                3 < CONNACK accepted session present
            4 3 pubrel #9
                2 < PUBLISH t 7 q0
                3 < PUBCOMP #9
                7 released
        "#]],
    );
}

#[test]
fn a_qos2_message_that_is_never_released_goes_with_its_session() {
    check(
        DEFAULT,
        "0 1 connect anna clean
         1 1 publish t 7 q2 #9
         2 1 closed",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            1 1 publish t 7 q2 #9
                1 < PUBREC #9
            2 1 closed
                7 released
        "#]],
    );
}

#[test]
fn mqtt_3_3_1_5_the_last_retained_message_is_sent_to_whoever_subscribes_after_the_suback() {
    check(
        DEFAULT,
        "0 1 connect anna clean
         0 1 publish r/0 7 q0 retain
         0 1 publish r/1 8 q1 #1 retain
         0 1 publish r/1 9 q1 #2 retain
         0 1 publish other 10 q0 retain
         1 2 connect ben clean
         1 2 subscribe #1 r/+:1
         2 2 subscribe #2 r/1:2
         3 2 subscribe #3 $share/g/r/0:1",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 1 publish r/0 7 q0 retain
            0 1 publish r/1 8 q1 #1 retain
                1 < PUBACK #1
            0 1 publish r/1 9 q1 #2 retain
                8 released
                1 < PUBACK #2
            0 1 publish other 10 q0 retain
            1 2 connect ben clean
                2 < CONNACK accepted
            1 2 subscribe #1 r/+:1
                2 < SUBACK #1 [1]
                2 < PUBLISH r/0 7 q0 retain
                2 < PUBLISH r/1 9 q1 #1 retain
            2 2 subscribe #2 r/1:2
                2 < SUBACK #2 [2]
                2 < PUBLISH r/1 9 q1 #2 retain
            3 2 subscribe #3 $share/g/r/0:1
                2 < SUBACK #3 [1]
        "#]],
    );
}

#[test]
fn mqtt_3_3_1_10_and_11_what_is_retained_is_sent_for_a_new_subscription_alone_or_never() {
    check(
        DEFAULT,
        "0 1 connect anna clean
         0 1 publish r 7 q0 retain
         1 2 connect ben clean
         1 2 subscribe #1 r:1 retained=new
         2 2 subscribe #2 r:1 retained=new
         3 2 unsubscribe #3 r
         4 2 subscribe #4 r:0 retained=new
         5 2 unsubscribe #5 r
         6 2 subscribe #6 r:1 retained=never",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 1 publish r 7 q0 retain
            1 2 connect ben clean
                2 < CONNACK accepted
            1 2 subscribe #1 r:1 retained=new
                2 < SUBACK #1 [1]
                2 < PUBLISH r 7 q0 retain
            2 2 subscribe #2 r:1 retained=new
                2 < SUBACK #2 [1]
            3 2 unsubscribe #3 r
                2 < UNSUBACK #3
            4 2 subscribe #4 r:0 retained=new
                2 < SUBACK #4 [0]
                2 < PUBLISH r 7 q0 retain
            5 2 unsubscribe #5 r
                2 < UNSUBACK #5
            6 2 subscribe #6 r:1 retained=never
                2 < SUBACK #6 [1]
        "#]],
    );
}

#[test]
fn mqtt_3_3_1_12_and_13_retain_is_as_published_where_a_subscription_asks_for_it() {
    check(
        DEFAULT,
        "0 1 connect anna clean
         0 2 connect ben clean
         0 3 connect cara clean
         1 2 subscribe #1 r:0 as-published
         1 3 subscribe #1 $share/s/r:0 as-published
         2 1 publish r 7 q0 retain
         3 1 publish r 8 q0
         4 2 subscribe #2 r:0
         5 1 publish r 9 q0 retain",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 2 connect ben clean
                2 < CONNACK accepted
            0 3 connect cara clean
                3 < CONNACK accepted
            1 2 subscribe #1 r:0 as-published
                2 < SUBACK #1 [0]
            1 3 subscribe #1 $share/s/r:0 as-published
                3 < SUBACK #1 [0]
            2 1 publish r 7 q0 retain
                3 < PUBLISH r 7 q0 retain
                2 < PUBLISH r 7 q0 retain
            3 1 publish r 8 q0
                3 < PUBLISH r 8 q0
                2 < PUBLISH r 8 q0
                8 released
            4 2 subscribe #2 r:0
                2 < SUBACK #2 [0]
                2 < PUBLISH r 7 q0 retain
            5 1 publish r 9 q0 retain
                7 released
                3 < PUBLISH r 9 q0 retain
                2 < PUBLISH r 9 q0 retain
        "#]],
    );
}

#[test]
fn mqtt_3_8_3_3_a_client_does_not_get_its_own_messages_where_it_asks_for_no_local() {
    check(
        DEFAULT,
        "0 1 connect anna clean v5
         0 2 connect ben clean
         1 1 subscribe #1 a:2 no-local
         1 2 subscribe #1 a:0
         2 1 publish a 7 q0
         2 2 publish a 8 q0
         3 1 publish a 9 #2 q2
         3 1 pubrel #2
         4 1 subscribe #3 +:1
         5 1 publish a 10 q0
         6 1 subscribe #4 a:1
         6 1 unsubscribe #5 +
         7 1 publish a 11 q0",
        expect![[r#"
            0 1 connect anna clean v5
                1 < CONNACK accepted
            0 2 connect ben clean
                2 < CONNACK accepted
            1 1 subscribe #1 a:2 no-local
                1 < SUBACK #1 [2]
            1 2 subscribe #1 a:0
                2 < SUBACK #1 [0]
            2 1 publish a 7 q0
                2 < PUBLISH a 7 q0
                7 released
            2 2 publish a 8 q0
                1 < PUBLISH a 8 q0
                2 < PUBLISH a 8 q0
                8 released
            3 1 publish a 9 #2 q2
                1 < PUBREC #2
            3 1 pubrel #2
                2 < PUBLISH a 9 q0
                1 < PUBCOMP #2
                9 released
            4 1 subscribe #3 +:1
                1 < SUBACK #3 [1]
            5 1 publish a 10 q0
                2 < PUBLISH a 10 q0
                1 < PUBLISH a 10 q0
                10 released
            6 1 subscribe #4 a:1
                1 < SUBACK #4 [1]
            6 1 unsubscribe #5 +
                1 < UNSUBACK #5
            7 1 publish a 11 q0
                2 < PUBLISH a 11 q0
                11 released
        "#]],
    );
}

#[test]
fn mqtt_3_8_3_3_what_is_retained_and_wills_of_a_client_with_no_local() {
    check(
        DEFAULT,
        "0 1 connect anna kept v5 will=w:6:1
         0 2 connect ben clean
         1 1 publish r 7 q0 retain
         2 1 subscribe #1 r:0 w:1 no-local
         2 2 subscribe #1 w:0
         3 1 closed
         4 1 connect anna kept v5",
        expect![[r#"
            0 1 connect anna kept v5 will=w:6:1
                1 < CONNACK accepted
            0 2 connect ben clean
                2 < CONNACK accepted
            1 1 publish r 7 q0 retain
            2 1 subscribe #1 r:0 w:1 no-local
                1 < SUBACK #1 [0, 1]
                1 < PUBLISH r 7 q0 retain
            2 2 subscribe #1 w:0
                2 < SUBACK #1 [0]
            3 1 closed
                2 < PUBLISH w 6 q0
                6 released
            4 1 connect anna kept v5
                1 < CONNACK accepted session present
        "#]],
    );
}

#[test]
fn mqtt_3_3_1_9_a_message_to_present_subscribers_is_not_marked_retained() {
    check(
        DEFAULT,
        "0 1 connect anna clean
         0 1 subscribe #1 t:0
         1 1 publish t 7 q0 retain",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 1 subscribe #1 t:0
                1 < SUBACK #1 [0]
            1 1 publish t 7 q0 retain
                1 < PUBLISH t 7 q0
        "#]],
    );
}

#[test]
fn mqtt_3_3_1_10_an_empty_retained_message_clears_the_one_before_and_is_forwarded() {
    check(
        DEFAULT,
        "0 1 connect anna clean
         0 2 connect ben clean
         0 2 subscribe #1 t:0
         1 1 publish t 7 q0 retain
         2 1 publish t 8 q0 retain empty
         3 2 subscribe #2 t:0",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 2 connect ben clean
                2 < CONNACK accepted
            0 2 subscribe #1 t:0
                2 < SUBACK #1 [0]
            1 1 publish t 7 q0 retain
                2 < PUBLISH t 7 q0
            2 1 publish t 8 q0 retain empty
                7 released
                2 < PUBLISH t 8 q0
                8 released
            3 2 subscribe #2 t:0
                2 < SUBACK #2 [0]
        "#]],
    );
}

#[test]
fn mqtt_3_3_1_12_a_message_that_is_not_retained_leaves_the_retained_one_in_place() {
    check(
        DEFAULT,
        "0 1 connect anna clean
         1 1 publish t 7 q0 retain
         2 1 publish t 8 q0 empty
         3 1 subscribe #2 t:0",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            1 1 publish t 7 q0 retain
            2 1 publish t 8 q0 empty
                8 released
            3 1 subscribe #2 t:0
                1 < SUBACK #2 [0]
                1 < PUBLISH t 7 q0 retain
        "#]],
    );
}

#[test]
fn mqtt_3_1_2_8_a_will_is_published_when_the_connection_is_lost() {
    check(
        DEFAULT,
        "0 1 connect anna clean will=gone:7:1:retain
         0 2 connect ben clean
         0 2 subscribe #1 gone:1
         1 1 closed
         2 2 puback #1
         3 2 subscribe #2 gone:1",
        expect![[r#"
            0 1 connect anna clean will=gone:7:1:retain
                1 < CONNACK accepted
            0 2 connect ben clean
                2 < CONNACK accepted
            0 2 subscribe #1 gone:1
                2 < SUBACK #1 [1]
            1 1 closed
                2 < PUBLISH gone 7 q1 #1
            2 2 puback #1
            3 2 subscribe #2 gone:1
                2 < SUBACK #2 [1]
                2 < PUBLISH gone 7 q1 #2 retain
        "#]],
    );
}

#[test]
fn mqtt_3_3_1_6_a_retained_will_without_a_payload_clears_the_topic() {
    check(
        DEFAULT,
        "0 1 connect anna clean will=gone:7:0:retain:empty
         0 2 connect ben clean
         0 2 publish gone 5 q0 retain
         0 2 subscribe #1 gone:1
         1 1 closed
         2 2 subscribe #2 gone:1",
        expect![[r#"
            0 1 connect anna clean will=gone:7:0:retain:empty
                1 < CONNACK accepted
            0 2 connect ben clean
                2 < CONNACK accepted
            0 2 publish gone 5 q0 retain
            0 2 subscribe #1 gone:1
                2 < SUBACK #1 [1]
                2 < PUBLISH gone 5 q0 retain
            1 1 closed
                5 released
                2 < PUBLISH gone 7 q0
                7 released
            2 2 subscribe #2 gone:1
                2 < SUBACK #2 [1]
        "#]],
    );
}

#[test]
fn mqtt_3_14_4_3_a_disconnect_discards_the_will() {
    check(
        DEFAULT,
        "0 1 connect anna clean will=gone:7:1
         0 2 connect ben clean
         0 2 subscribe #1 gone:1
         1 1 disconnect
         2 1 connect anna v5 clean will=gone:8:0
         3 1 disconnect with-will",
        expect![[r#"
            0 1 connect anna clean will=gone:7:1
                1 < CONNACK accepted
            0 2 connect ben clean
                2 < CONNACK accepted
            0 2 subscribe #1 gone:1
                2 < SUBACK #1 [1]
            1 1 disconnect
                7 released
                1 closed
            2 1 connect anna v5 clean will=gone:8:0
                1 < CONNACK accepted
            3 1 disconnect with-will
                2 < PUBLISH gone 8 q0
                8 released
                1 closed
        "#]],
    );
}

#[test]
fn a_will_is_published_when_another_connection_ends_the_session_and_not_when_it_goes_on_with_it() {
    check(
        DEFAULT,
        "0 2 connect ben clean
         0 2 subscribe #1 gone:0
         0 1 connect anna kept will=gone:7:0
         1 3 connect anna kept will=gone:8:0
         2 4 connect anna clean will=gone:9:0
         3 5 connect anna clean
         4 5 closed",
        expect![[r#"
            0 2 connect ben clean
                2 < CONNACK accepted
            0 2 subscribe #1 gone:0
                2 < SUBACK #1 [0]
            0 1 connect anna kept will=gone:7:0
                1 < CONNACK accepted
            1 3 connect anna kept will=gone:8:0
                1 closed
                7 released
                3 < CONNACK accepted session present
            2 4 connect anna clean will=gone:9:0
                2 < PUBLISH gone 8 q0
                8 released
                3 closed
                4 < CONNACK accepted
            3 5 connect anna clean
                2 < PUBLISH gone 9 q0
                9 released
                4 closed
                5 < CONNACK accepted
            4 5 closed
        "#]],
    );
}

#[test]
fn a_client_that_is_gone_with_its_session_does_not_hear_its_own_will() {
    check(
        DEFAULT,
        "0 1 connect anna clean will=gone:7:2
         0 1 subscribe #1 #:2
         1 1 closed",
        expect![[r#"
            0 1 connect anna clean will=gone:7:2
                1 < CONNACK accepted
            0 1 subscribe #1 #:2
                1 < SUBACK #1 [2]
            1 1 closed
                7 released
        "#]],
    );
}
