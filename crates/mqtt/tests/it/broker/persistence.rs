//! What outlives the broker's program, as measured with Mosquitto 2.0.11.

use expect_test::expect;
use mqttlab_mqtt::broker::BrokerOptions;

use super::script::check;

#[test]
fn a_broker_that_ends_in_order_publishes_wills_and_keeps_sessions_queues_and_retained_messages() {
    check(
        BrokerOptions::default(),
        "0 1 connect anna kept
         0 1 subscribe #1 #:1
         0 2 connect bert kept will=w:9:1
         0 3 connect carl clean
         0 3 subscribe #1 #:1
         1 2 publish t 7 q1 #5 retain
         2 stopped
         9 1 connect anna kept
         9 3 connect carl kept
         9 3 subscribe #1 t:1",
        expect![[r#"
            0 1 connect anna kept
                1 < CONNACK accepted
            0 1 subscribe #1 #:1
                1 < SUBACK #1 [1]
            0 2 connect bert kept will=w:9:1
                2 < CONNACK accepted
            0 3 connect carl clean
                3 < CONNACK accepted
            0 3 subscribe #1 #:1
                3 < SUBACK #1 [1]
            1 2 publish t 7 q1 #5 retain
                1 < PUBLISH t 7 q1 #1
                3 < PUBLISH t 7 q1 #1
                2 < PUBACK #5
            2 stopped
                1 < PUBLISH w 9 q1 #2
                3 < PUBLISH w 9 q1 #2
                7 dropped for nobody: SessionEnded
                9 dropped for nobody: SessionEnded
            9 1 connect anna kept
                1 < CONNACK accepted session present
                1 < PUBLISH t 7 q1 #1 dup
                1 < PUBLISH w 9 q1 #2 dup
            9 3 connect carl kept
                3 < CONNACK accepted
            9 3 subscribe #1 t:1
                3 < SUBACK #1 [1]
                3 < PUBLISH t 7 q1 #1 retain
        "#]],
    );
}

#[test]
fn a_broker_that_is_killed_has_what_it_wrote_last() {
    check(
        BrokerOptions::default(),
        "0 1 connect anna kept
         0 1 subscribe #1 t:1
         0 2 connect bert kept will=w:9:1
         1 2 publish t 7 q1 #5
         2 1 puback #1
         3 2 publish t 8 q1 #6
         4 2 publish r 3 q0 retain
         5 2 publish t 10 q1 #7
         6 2 publish u 11 q2 #8
         7 killed
         8 1 connect anna kept
         8 2 connect bert kept
         8 2 pubrel #8
         8 2 subscribe #9 r:0",
        expect![[r#"
            0 1 connect anna kept
                1 < CONNACK accepted
            0 1 subscribe #1 t:1
                1 < SUBACK #1 [1]
            0 2 connect bert kept will=w:9:1
                2 < CONNACK accepted
            1 2 publish t 7 q1 #5
                1 < PUBLISH t 7 q1 #1
                2 < PUBACK #5
            2 1 puback #1
                7 released
            3 2 publish t 8 q1 #6
                1 < PUBLISH t 8 q1 #2
                2 < PUBACK #6
            4 2 publish r 3 q0 retain
            5 2 publish t 10 q1 #7
                1 < PUBLISH t 10 q1 #3
                2 < PUBACK #7
            6 2 publish u 11 q2 #8
                2 < PUBREC #8
            7 killed
                10 dropped for anna: SessionEnded
                10 released
                9 released
                11 released
            8 1 connect anna kept
                1 < CONNACK accepted session present
                1 < PUBLISH t 8 q1 #2 dup
            8 2 connect bert kept
                2 < CONNACK accepted session present
            8 2 pubrel #8
                2 < PUBCOMP #8
            8 2 subscribe #9 r:0
                2 < SUBACK #9 [0]
                2 < PUBLISH r 3 q0 retain
        "#]],
    );
}

#[test]
fn a_message_that_waits_for_an_absent_client_survives_a_kill_and_no_empty_disk() {
    let script = |end: &str| {
        format!(
            "0 1 connect anna kept
             0 1 subscribe #1 t:1
             1 1 closed
             1 2 connect bert clean
             2 2 publish t 7 q1 #5
             3 {end}
             4 1 connect anna kept"
        )
    };
    check(
        BrokerOptions::default(),
        &script("killed"),
        expect![[r#"
        0 1 connect anna kept
            1 < CONNACK accepted
        0 1 subscribe #1 t:1
            1 < SUBACK #1 [1]
        1 1 closed
        1 2 connect bert clean
            2 < CONNACK accepted
        2 2 publish t 7 q1 #5
            2 < PUBACK #5
        3 killed
        4 1 connect anna kept
            1 < CONNACK accepted session present
            1 < PUBLISH t 7 q1 #1
    "#]],
    );
    check(
        BrokerOptions::default(),
        &script("emptied"),
        expect![[r#"
        0 1 connect anna kept
            1 < CONNACK accepted
        0 1 subscribe #1 t:1
            1 < SUBACK #1 [1]
        1 1 closed
        1 2 connect bert clean
            2 < CONNACK accepted
        2 2 publish t 7 q1 #5
            2 < PUBACK #5
        3 emptied
            7 dropped for nobody: SessionEnded
            7 released
        4 1 connect anna kept
            1 < CONNACK accepted
    "#]],
    );
}
