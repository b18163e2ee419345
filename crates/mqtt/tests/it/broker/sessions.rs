//! How sessions begin, change hands and end.

use expect_test::expect;
use mqttlab_mqtt::broker::BrokerOptions;

use super::script::{check, transcript};

const DEFAULT: BrokerOptions = BrokerOptions::MOSQUITTO;
/// Who is silent for too long is left at once.
const PROMPT: BrokerOptions = BrokerOptions { looks_every: None, ..DEFAULT };

#[test]
fn mqtt_3_2_2_2_a_kept_session_is_present_and_a_clean_one_is_not() {
    check(
        DEFAULT,
        "0 1 connect anna kept
         1 1 disconnect
         2 1 connect anna kept
         3 1 disconnect
         4 1 connect anna clean
         5 1 disconnect
         6 1 connect anna kept",
        expect![[r#"
            0 1 connect anna kept
                1 < CONNACK accepted
            1 1 disconnect
                1 closed
            2 1 connect anna kept
                1 < CONNACK accepted session present
            3 1 disconnect
                1 closed
            4 1 connect anna clean
                1 < CONNACK accepted
            5 1 disconnect
                1 closed
            6 1 connect anna kept
                1 < CONNACK accepted
        "#]],
    );
}

#[test]
fn mqtt31_has_no_place_to_say_that_a_session_is_present() {
    check(
        DEFAULT,
        "0 1 connect anna v3.1 kept
         0 1 subscribe #1 t:0
         1 1 disconnect
         2 1 connect anna v3.1 kept
         3 1 publish t 7 q0",
        expect![[r#"
            0 1 connect anna v3.1 kept
                1 < CONNACK accepted
            0 1 subscribe #1 t:0
                1 < SUBACK #1 [0]
            1 1 disconnect
                1 closed
            2 1 connect anna v3.1 kept
                1 < CONNACK accepted
            3 1 publish t 7 q0
                1 < PUBLISH t 7 q0
                7 released
        "#]],
    );
}

#[test]
fn mqtt_3_1_4_2_a_second_connection_of_a_client_takes_over() {
    check(
        DEFAULT,
        "0 1 connect anna kept
         0 1 subscribe #1 t:1
         1 1 publish t 7 q1 #1
         2 2 connect anna kept
         3 1 closed
         4 2 puback #1
         5 3 connect anna clean",
        expect![[r#"
            0 1 connect anna kept
                1 < CONNACK accepted
            0 1 subscribe #1 t:1
                1 < SUBACK #1 [1]
            1 1 publish t 7 q1 #1
                1 < PUBLISH t 7 q1 #1
                1 < PUBACK #1
            2 2 connect anna kept
                1 closed
                2 < CONNACK accepted session present
                2 < PUBLISH t 7 q1 #1 dup
            3 1 closed
            4 2 puback #1
                7 released
            5 3 connect anna clean
                2 closed
                3 < CONNACK accepted
        "#]],
    );
}

#[test]
fn a_clean_session_is_not_taken_over() {
    check(
        DEFAULT,
        "0 1 connect anna clean
         0 1 subscribe #1 t:0
         1 2 connect anna kept
         2 2 publish t 7 q0",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            0 1 subscribe #1 t:0
                1 < SUBACK #1 [0]
            1 2 connect anna kept
                1 closed
                2 < CONNACK accepted
            2 2 publish t 7 q0
                7 released
        "#]],
    );
}

#[test]
fn mqtt_3_1_0_2_a_second_connect_on_a_connection_closes_it() {
    check(
        DEFAULT,
        "0 1 connect anna clean
         1 1 connect ben clean will=gone:7:0
         2 2 connect anna kept
         3 2 connect anna kept",
        expect![[r#"
            0 1 connect anna clean
                1 < CONNACK accepted
            1 1 connect ben clean will=gone:7:0
                1 closed
                7 released
            2 2 connect anna kept
                2 < CONNACK accepted
            3 2 connect anna kept
                2 closed
        "#]],
    );
}

#[test]
fn mqtt_3_1_0_1_a_connection_begins_with_connect() {
    check(
        DEFAULT,
        "0 1 pingreq
         1 2 publish t 7 q1 #1",
        expect![[r#"
            0 1 pingreq
                1 closed
            1 2 publish t 7 q1 #1
                2 closed
                7 released
        "#]],
    );
}

#[test]
fn mqtt_3_1_3_8_an_empty_client_identifier_needs_a_clean_session() {
    check(
        DEFAULT,
        r#"0 1 connect "" clean
         1 2 connect "" clean
         2 3 connect "" kept will=gone:7:0
         3 4 connect "" v3.1 clean
         4 5 connect "" v5 kept"#,
        expect![[r#"
            0 1 connect "" clean
                1 < CONNACK accepted
            1 2 connect "" clean
                2 < CONNACK accepted
            2 3 connect "" kept will=gone:7:0
                3 < CONNACK rejected
                3 closed
                7 released
            3 4 connect "" v3.1 clean
                4 < CONNACK rejected
                4 closed
            4 5 connect "" v5 kept
                5 < CONNACK accepted
        "#]],
    );
}

#[test]
fn mqtt_3_1_2_24_a_client_that_is_silent_for_one_and_a_half_keep_alives_is_left() {
    check(
        PROMPT,
        "0 1 connect anna clean keep-alive=1000 will=gone:7:0
         0 2 connect ben clean
         0 2 subscribe #1 gone:0
         1000 1 pingreq
         1500 tick
         2499 tick
         2500 tick
         9000 tick",
        expect![[r#"
            0 1 connect anna clean keep-alive=1000 will=gone:7:0
                1 < CONNACK accepted
            0 2 connect ben clean
                2 < CONNACK accepted
            0 2 subscribe #1 gone:0
                2 < SUBACK #1 [0]
            1000 1 pingreq
                1 < PINGRESP
            1500 tick
            2499 tick
            2500 tick
                2 < PUBLISH gone 7 q0
                7 released
                1 closed
            9000 tick
        "#]],
    );
}

#[test]
fn mosquitto_looks_every_six_seconds_for_clients_that_are_silent() {
    // It counts whole seconds: 3 of them have not passed before the look at 6 s for whoever was heard in the third.
    for (heard, left) in [(2_999, 6_000), (3_000, 12_000), (8_999, 12_000), (9_000, 18_000)] {
        let ticks = (1..=left / 1_000).map(|second| second * 1_000).filter(|at| *at > heard);
        let ticks: Vec<String> = ticks.map(|at| format!("{at} tick")).collect();
        let script = format!("{heard} 1 connect anna clean keep-alive=2000\n{}", ticks.join("\n"));
        let transcript = transcript(DEFAULT, &script);
        let lines: Vec<&str> = transcript.lines().map(str::trim).collect();
        assert_eq!(lines[lines.len() - 2..], [&format!("{left} tick"), "1 closed"], "{transcript}");
    }
}

#[test]
fn mqtt_3_1_2_23_a_session_expires_and_lets_go_of_what_it_holds() {
    check(
        DEFAULT,
        "0 1 connect anna v5 expiry=1000
         0 1 subscribe #1 t:1
         0 2 connect ben clean
         1 2 publish t 7 q1 #1
         100 1 closed
         200 2 publish t 8 q1 #2
         1099 tick
         1100 tick
         1200 1 connect anna v5 expiry=1000
         1300 1 closed
         1400 1 connect anna v5 expiry=1000
         2300 tick
         9000 1 pingreq",
        expect![[r#"
            0 1 connect anna v5 expiry=1000
                1 < CONNACK accepted
            0 1 subscribe #1 t:1
                1 < SUBACK #1 [1]
            0 2 connect ben clean
                2 < CONNACK accepted
            1 2 publish t 7 q1 #1
                1 < PUBLISH t 7 q1 #1
                2 < PUBACK #1
            100 1 closed
            200 2 publish t 8 q1 #2
                2 < PUBACK #2
            1099 tick
            1100 tick
                7 dropped for nobody: SessionEnded
                7 released
                8 dropped for nobody: SessionEnded
                8 released
            1200 1 connect anna v5 expiry=1000
                1 < CONNACK accepted
            1300 1 closed
            1400 1 connect anna v5 expiry=1000
                1 < CONNACK accepted session present
            2300 tick
            9000 1 pingreq
                1 < PINGRESP
        "#]],
    );
}

#[test]
fn a_session_that_has_ended_is_not_waited_for() {
    check(
        PROMPT,
        "0 1 connect anna clean keep-alive=1000
         100 1 closed
         200 2 connect ben clean keep-alive=4000
         1500 tick
         6199 tick
         6200 tick
         6300 1 connect anna clean keep-alive=1000
         6400 1 disconnect
         9999 tick",
        expect![[r#"
            0 1 connect anna clean keep-alive=1000
                1 < CONNACK accepted
            100 1 closed
            200 2 connect ben clean keep-alive=4000
                2 < CONNACK accepted
            1500 tick
            6199 tick
            6200 tick
                2 closed
            6300 1 connect anna clean keep-alive=1000
                1 < CONNACK accepted
            6400 1 disconnect
                1 closed
            9999 tick
        "#]],
    );
}

#[test]
fn bytes_of_an_unfinished_packet_keep_a_connection_alive() {
    check(
        PROMPT,
        "0 1 connect anna clean keep-alive=1000
         1400 1 unfinished
         2000 tick
         2900 tick",
        expect![[r#"
            0 1 connect anna clean keep-alive=1000
                1 < CONNACK accepted
            1400 1 unfinished
            2000 tick
            2900 tick
                1 closed
        "#]],
    );
}
