//! The client's session, as conversations: what happens on the left, what the machine does below it.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use mqttlab_mqtt::Qos;
use mqttlab_mqtt::client::{Admission, Client, ClientOptions, Input, Output, Ping, Reason};
use mqttlab_units::{Duration, Instant};

const OPTIONS: ClientOptions = ClientOptions {
    keep_alive: Duration::from_s(60),
    clean: false,
    max_inflight: 2,
    max_queued: 2,
    deliver_on_release: false,
    retry: None,
    ping: Ping::Sent,
    connect_timeout: Duration::from_s(10),
};

/// What happens to the session.
#[derive(Clone, Copy)]
enum Given {
    Input(Input),
    Publish { token: u64, qos: Qos },
    Arrived { qos: Qos, id: u16 },
}

fn greeting(session_present: bool) -> Input {
    Input::Connack { accepted: true, session_present, receive_maximum: u16::MAX, keep_alive_s: None }
}

fn accepted(session_present: bool) -> Given {
    Given::Input(greeting(session_present))
}

fn publish(token: u64, level: u8) -> Given {
    Given::Publish { token, qos: Qos::from_level(level).unwrap() }
}

fn check(options: ClientOptions, script: &[(u64, Given)], expected: Expect) {
    let mut client = Client::new(options);
    let mut transcript = String::new();
    for (ms, given) in script {
        let now = Instant::ZERO + Duration::from_ms(*ms);
        match *given {
            Given::Input(input) => {
                writeln!(transcript, "+{ms}ms {input:?}").unwrap();
                client.handle(now, input);
            }
            Given::Publish { token, qos } => {
                let answer = client.publish(now, token, qos);
                writeln!(transcript, "+{ms}ms publish {token} {qos:?}: {answer:?}").unwrap();
            }
            Given::Arrived { qos, id } => {
                let answer = client.arrived(now, qos, id);
                writeln!(transcript, "+{ms}ms arrived {id} {qos:?}: {answer:?}").unwrap();
            }
        }
        while let Some(output) = client.poll() {
            writeln!(transcript, "   > {output:?}").unwrap();
        }
        assert!(client.next_deadline().is_none_or(|deadline| deadline >= now), "a deadline in the past");
    }
    expected.assert_eq(&transcript);
}

#[test]
fn a_qos1_message_is_acknowledged() {
    check(
        OPTIONS,
        &[
            (0, Given::Input(Input::Opened)),
            (1, accepted(false)),
            (2, publish(7, 1)),
            (3, Given::Input(Input::Puback { id: 1, code: 0 })),
        ],
        expect![[r#"
            +0ms Opened
               > SendConnect
            +1ms Connack { accepted: true, session_present: false, receive_maximum: 65535, keep_alive_s: None }
               > Connected { session_present: false }
            +2ms publish 7 AtLeastOnce: Sent
               > SendPublish { token: 7, id: 1, qos: AtLeastOnce, dup: false }
            +3ms Puback { id: 1, code: 0 }
               > Acknowledged { token: 7 }
        "#]],
    );
}

#[test]
fn a_qos2_message_takes_four_packets() {
    check(
        OPTIONS,
        &[
            (0, Given::Input(Input::Opened)),
            (1, accepted(false)),
            (2, publish(7, 2)),
            (3, Given::Input(Input::Pubrec { id: 1, code: 0 })),
            (4, Given::Input(Input::Pubcomp { id: 1 })),
        ],
        expect![[r#"
            +0ms Opened
               > SendConnect
            +1ms Connack { accepted: true, session_present: false, receive_maximum: 65535, keep_alive_s: None }
               > Connected { session_present: false }
            +2ms publish 7 ExactlyOnce: Sent
               > SendPublish { token: 7, id: 1, qos: ExactlyOnce, dup: false }
            +3ms Pubrec { id: 1, code: 0 }
               > SendPubrel { id: 1 }
            +4ms Pubcomp { id: 1 }
               > Acknowledged { token: 7 }
        "#]],
    );
}

#[test]
fn a_full_window_makes_messages_wait_and_a_full_queue_refuses_them() {
    check(
        OPTIONS,
        &[
            (0, Given::Input(Input::Opened)),
            (1, accepted(false)),
            (2, publish(1, 1)),
            (2, publish(2, 1)),
            (2, publish(3, 1)),
            (2, publish(4, 1)),
            (2, publish(5, 1)),
            (9, Given::Input(Input::Puback { id: 1, code: 0 })),
        ],
        expect![[r#"
            +0ms Opened
               > SendConnect
            +1ms Connack { accepted: true, session_present: false, receive_maximum: 65535, keep_alive_s: None }
               > Connected { session_present: false }
            +2ms publish 1 AtLeastOnce: Sent
               > SendPublish { token: 1, id: 1, qos: AtLeastOnce, dup: false }
            +2ms publish 2 AtLeastOnce: Sent
               > SendPublish { token: 2, id: 2, qos: AtLeastOnce, dup: false }
            +2ms publish 3 AtLeastOnce: Waiting
            +2ms publish 4 AtLeastOnce: Waiting
            +2ms publish 5 AtLeastOnce: Refused
            +9ms Puback { id: 1, code: 0 }
               > Acknowledged { token: 1 }
               > SendPublish { token: 3, id: 3, qos: AtLeastOnce, dup: false }
        "#]],
    );
}

#[test]
fn unacknowledged_messages_are_resent_with_dup_in_order_on_reconnect() {
    check(
        OPTIONS,
        &[
            (0, Given::Input(Input::Opened)),
            (1, accepted(false)),
            (2, publish(1, 2)),
            (2, publish(2, 1)),
            (3, Given::Input(Input::Pubrec { id: 1, code: 0 })),
            (4, Given::Input(Input::Closed)),
            (5, publish(3, 1)),
            (6, publish(4, 0)),
            (7, Given::Input(Input::Opened)),
            (8, accepted(true)),
            (9, Given::Input(Input::Pubcomp { id: 1 })),
        ],
        expect![[r#"
            +0ms Opened
               > SendConnect
            +1ms Connack { accepted: true, session_present: false, receive_maximum: 65535, keep_alive_s: None }
               > Connected { session_present: false }
            +2ms publish 1 ExactlyOnce: Sent
               > SendPublish { token: 1, id: 1, qos: ExactlyOnce, dup: false }
            +2ms publish 2 AtLeastOnce: Sent
               > SendPublish { token: 2, id: 2, qos: AtLeastOnce, dup: false }
            +3ms Pubrec { id: 1, code: 0 }
               > SendPubrel { id: 1 }
            +4ms Closed
            +5ms publish 3 AtLeastOnce: Waiting
            +6ms publish 4 AtMostOnce: Refused
            +7ms Opened
               > SendConnect
            +8ms Connack { accepted: true, session_present: true, receive_maximum: 65535, keep_alive_s: None }
               > Connected { session_present: true }
               > SendPubrel { id: 1 }
               > SendPublish { token: 2, id: 2, qos: AtLeastOnce, dup: true }
            +9ms Pubcomp { id: 1 }
               > Acknowledged { token: 1 }
               > SendPublish { token: 3, id: 3, qos: AtLeastOnce, dup: false }
        "#]],
    );
}

#[test]
fn a_broker_that_forgot_the_session_gets_the_messages_anew() {
    check(
        OPTIONS,
        &[
            (0, Given::Input(Input::Opened)),
            (1, accepted(false)),
            (2, publish(1, 1)),
            (4, Given::Input(Input::Closed)),
            (7, Given::Input(Input::Opened)),
            (8, accepted(false)),
        ],
        expect![[r#"
            +0ms Opened
               > SendConnect
            +1ms Connack { accepted: true, session_present: false, receive_maximum: 65535, keep_alive_s: None }
               > Connected { session_present: false }
            +2ms publish 1 AtLeastOnce: Sent
               > SendPublish { token: 1, id: 1, qos: AtLeastOnce, dup: false }
            +4ms Closed
            +7ms Opened
               > SendConnect
            +8ms Connack { accepted: true, session_present: false, receive_maximum: 65535, keep_alive_s: None }
               > Connected { session_present: false }
               > SendPublish { token: 1, id: 2, qos: AtLeastOnce, dup: false }
        "#]],
    );
}

#[test]
fn a_qos2_message_that_comes_twice_is_delivered_once_until_released() {
    let arrived = Given::Arrived { qos: Qos::ExactlyOnce, id: 9 };
    check(
        OPTIONS,
        &[
            (0, Given::Input(Input::Opened)),
            (1, accepted(false)),
            (2, arrived),
            (3, arrived),
            (4, Given::Input(Input::Pubrel { id: 9 })),
            (5, arrived),
        ],
        expect![[r#"
            +0ms Opened
               > SendConnect
            +1ms Connack { accepted: true, session_present: false, receive_maximum: 65535, keep_alive_s: None }
               > Connected { session_present: false }
            +2ms arrived 9 ExactlyOnce: Some(Deliver)
               > SendPubrec { id: 9 }
            +3ms arrived 9 ExactlyOnce: Some(Duplicate)
               > SendPubrec { id: 9 }
            +4ms Pubrel { id: 9 }
               > SendPubcomp { id: 9 }
            +5ms arrived 9 ExactlyOnce: Some(Deliver)
               > SendPubrec { id: 9 }
        "#]],
    );
}

#[test]
fn a_qos2_message_is_held_until_its_pubrel_where_the_application_waits_for_it() {
    let arrived = Given::Arrived { qos: Qos::ExactlyOnce, id: 9 };
    check(
        ClientOptions { deliver_on_release: true, ..OPTIONS },
        &[
            (0, Given::Input(Input::Opened)),
            (1, accepted(false)),
            (2, arrived),
            (3, arrived),
            (4, Given::Input(Input::Pubrel { id: 9 })),
            (5, Given::Input(Input::Pubrel { id: 9 })),
        ],
        expect![[r#"
            +0ms Opened
               > SendConnect
            +1ms Connack { accepted: true, session_present: false, receive_maximum: 65535, keep_alive_s: None }
               > Connected { session_present: false }
            +2ms arrived 9 ExactlyOnce: Some(Hold)
               > SendPubrec { id: 9 }
            +3ms arrived 9 ExactlyOnce: Some(Duplicate)
               > SendPubrec { id: 9 }
            +4ms Pubrel { id: 9 }
               > Release { id: 9 }
               > SendPubcomp { id: 9 }
            +5ms Pubrel { id: 9 }
               > SendPubcomp { id: 9 }
        "#]],
    );
}

#[test]
fn silence_is_pinged_and_a_silent_broker_is_left() {
    check(
        OPTIONS,
        &[
            (0, Given::Input(Input::Opened)),
            (1, accepted(false)),
            (59_999, Given::Input(Input::Tick)),
            (60_000, Given::Input(Input::Tick)),
            (120_000, Given::Input(Input::Tick)),
        ],
        expect![[r#"
            +0ms Opened
               > SendConnect
            +1ms Connack { accepted: true, session_present: false, receive_maximum: 65535, keep_alive_s: None }
               > Connected { session_present: false }
            +59999ms Tick
            +60000ms Tick
               > SendPingreq
            +120000ms Tick
               > Close(KeepAliveTimeout)
        "#]],
    );
}

#[test]
fn a_client_that_counts_silence_pings_although_it_sends_and_gives_a_silent_broker_up() {
    // As libmosquitto's: it looks whenever it sends, and what is sent does not keep it from asking, nor from giving up.
    check(
        ClientOptions { ping: Ping::Silence, ..OPTIONS },
        &[
            (0, Given::Input(Input::Opened)),
            (1000, accepted(false)),
            (31_000, publish(1, 0)),
            (60_999, publish(2, 0)),
            (60_999, Given::Input(Input::Tick)),
            (61_000, publish(3, 0)),
            (61_000, Given::Input(Input::Tick)),
            (91_000, publish(4, 0)),
            (121_000, publish(5, 0)),
            (121_000, Given::Input(Input::Tick)),
        ],
        expect![[r#"
            +0ms Opened
               > SendConnect
            +1000ms Connack { accepted: true, session_present: false, receive_maximum: 65535, keep_alive_s: None }
               > Connected { session_present: false }
            +31000ms publish 1 AtMostOnce: Sent
               > SendPublish { token: 1, id: 0, qos: AtMostOnce, dup: false }
            +60999ms publish 2 AtMostOnce: Sent
               > SendPublish { token: 2, id: 0, qos: AtMostOnce, dup: false }
            +60999ms Tick
            +61000ms publish 3 AtMostOnce: Sent
               > SendPublish { token: 3, id: 0, qos: AtMostOnce, dup: false }
            +61000ms Tick
               > SendPingreq
            +91000ms publish 4 AtMostOnce: Sent
               > SendPublish { token: 4, id: 0, qos: AtMostOnce, dup: false }
            +121000ms publish 5 AtMostOnce: Sent
               > SendPublish { token: 5, id: 0, qos: AtMostOnce, dup: false }
            +121000ms Tick
               > Close(KeepAliveTimeout)
        "#]],
    );
}

#[test]
fn a_client_that_counts_silence_counts_whole_seconds() {
    // Nothing was heard since 1.9 s, which its clock has as 1 s; nor was anything sent since 31.4 s.
    check(
        ClientOptions { ping: Ping::Silence, ..OPTIONS },
        &[
            (0, Given::Input(Input::Opened)),
            (1900, accepted(false)),
            (31_400, publish(1, 0)),
            (60_999, Given::Input(Input::Tick)),
            (61_000, publish(2, 0)),
            (61_000, Given::Input(Input::Tick)),
            (61_100, Given::Input(Input::Pingresp)),
            // Looks are whole seconds after the last, when something was heard.
            (121_099, Given::Input(Input::Tick)),
            (121_100, Given::Input(Input::Tick)),
        ],
        expect![[r#"
            +0ms Opened
               > SendConnect
            +1900ms Connack { accepted: true, session_present: false, receive_maximum: 65535, keep_alive_s: None }
               > Connected { session_present: false }
            +31400ms publish 1 AtMostOnce: Sent
               > SendPublish { token: 1, id: 0, qos: AtMostOnce, dup: false }
            +60999ms Tick
            +61000ms publish 2 AtMostOnce: Sent
               > SendPublish { token: 2, id: 0, qos: AtMostOnce, dup: false }
            +61000ms Tick
               > SendPingreq
            +61100ms Pingresp
            +121099ms Tick
            +121100ms Tick
               > SendPingreq
        "#]],
    );
}

#[test]
fn a_client_that_counts_intervals_pings_although_it_sends_and_hears_and_leaves_without_pingresp() {
    // As paho-mqtt's: 60 s after CONNECT, and after each PINGREQ, when it next looks.
    check(
        ClientOptions { ping: Ping::Interval, ..OPTIONS },
        &[
            (0, Given::Input(Input::Opened)),
            (1, accepted(false)),
            (40_400, publish(1, 1)),
            (40_500, Given::Input(Input::Puback { id: 1, code: 0 })),
            (60_499, Given::Input(Input::Tick)),
            (60_500, Given::Input(Input::Tick)),
            (60_600, Given::Input(Input::Pingresp)),
            (120_000, publish(2, 1)),
            (120_100, Given::Input(Input::Puback { id: 2, code: 0 })),
            (121_099, Given::Input(Input::Tick)),
            (121_100, Given::Input(Input::Tick)),
            (180_000, Given::Arrived { qos: Qos::AtMostOnce, id: 0 }),
            (181_999, Given::Input(Input::Tick)),
            (182_000, Given::Input(Input::Tick)),
        ],
        expect![[r#"
            +0ms Opened
               > SendConnect
            +1ms Connack { accepted: true, session_present: false, receive_maximum: 65535, keep_alive_s: None }
               > Connected { session_present: false }
            +40400ms publish 1 AtLeastOnce: Sent
               > SendPublish { token: 1, id: 1, qos: AtLeastOnce, dup: false }
            +40500ms Puback { id: 1, code: 0 }
               > Acknowledged { token: 1 }
            +60499ms Tick
            +60500ms Tick
               > SendPingreq
            +60600ms Pingresp
            +120000ms publish 2 AtLeastOnce: Sent
               > SendPublish { token: 2, id: 2, qos: AtLeastOnce, dup: false }
            +120100ms Puback { id: 2, code: 0 }
               > Acknowledged { token: 2 }
            +121099ms Tick
            +121100ms Tick
               > SendPingreq
            +180000ms arrived 0 AtMostOnce: Some(Deliver)
            +181999ms Tick
            +182000ms Tick
               > Close(KeepAliveTimeout)
        "#]],
    );
}

#[test]
fn a_client_that_counts_silence_stays_while_packets_come_and_go() {
    // The PINGRESP of 61 s waits behind other packets; a client that counts what it sent would have left at 121 s.
    check(
        ClientOptions { ping: Ping::Silence, ..OPTIONS },
        &[
            (0, Given::Input(Input::Opened)),
            (1000, accepted(false)),
            (61_000, Given::Input(Input::Tick)),
            (61_000, publish(1, 1)),
            (100_000, Given::Input(Input::Puback { id: 1, code: 0 })),
            (110_000, publish(2, 1)),
            (121_000, Given::Input(Input::Tick)),
            (130_000, Given::Arrived { qos: Qos::AtMostOnce, id: 0 }),
            (160_000, Given::Input(Input::Pingresp)),
            (170_000, Given::Input(Input::Tick)),
        ],
        expect![[r#"
            +0ms Opened
               > SendConnect
            +1000ms Connack { accepted: true, session_present: false, receive_maximum: 65535, keep_alive_s: None }
               > Connected { session_present: false }
            +61000ms Tick
               > SendPingreq
            +61000ms publish 1 AtLeastOnce: Sent
               > SendPublish { token: 1, id: 1, qos: AtLeastOnce, dup: false }
            +100000ms Puback { id: 1, code: 0 }
               > Acknowledged { token: 1 }
            +110000ms publish 2 AtLeastOnce: Sent
               > SendPublish { token: 2, id: 2, qos: AtLeastOnce, dup: false }
            +121000ms Tick
            +130000ms arrived 0 AtMostOnce: Some(Deliver)
            +160000ms Pingresp
            +170000ms Tick
               > SendPingreq
        "#]],
    );
}

#[test]
fn a_connack_that_does_not_come_or_refuses_ends_the_attempt() {
    let refused = Given::Input(Input::Connack {
        accepted: false,
        session_present: false,
        receive_maximum: 1,
        keep_alive_s: None,
    });
    check(
        OPTIONS,
        &[
            (0, Given::Input(Input::Opened)),
            (10_000, Given::Input(Input::Tick)),
            (11_000, Given::Input(Input::Opened)),
            (11_001, refused),
        ],
        expect![[r#"
            +0ms Opened
               > SendConnect
            +10000ms Tick
               > Close(ConnectTimeout)
            +11000ms Opened
               > SendConnect
            +11001ms Connack { accepted: false, session_present: false, receive_maximum: 1, keep_alive_s: None }
               > Close(Refused)
        "#]],
    );
}

#[test]
fn mqtt31_repeats_by_the_clock() {
    let options = ClientOptions { retry: Some(Duration::from_s(20)), ..OPTIONS };
    check(
        options,
        &[
            (0, Given::Input(Input::Opened)),
            (0, accepted(false)),
            (1000, publish(1, 2)),
            (21_000, Given::Input(Input::Tick)),
            (22_000, Given::Input(Input::Pubrec { id: 1, code: 0 })),
            (42_000, Given::Input(Input::Tick)),
        ],
        expect![[r#"
            +0ms Opened
               > SendConnect
            +0ms Connack { accepted: true, session_present: false, receive_maximum: 65535, keep_alive_s: None }
               > Connected { session_present: false }
            +1000ms publish 1 ExactlyOnce: Sent
               > SendPublish { token: 1, id: 1, qos: ExactlyOnce, dup: false }
            +21000ms Tick
               > SendPublish { token: 1, id: 1, qos: ExactlyOnce, dup: true }
            +22000ms Pubrec { id: 1, code: 0 }
               > SendPubrel { id: 1 }
            +42000ms Tick
               > SendPubrel { id: 1 }
        "#]],
    );
}

#[test]
fn the_brokers_receive_maximum_narrows_the_window() {
    let narrow = Given::Input(Input::Connack {
        accepted: true,
        session_present: false,
        receive_maximum: 1,
        keep_alive_s: Some(5),
    });
    check(
        OPTIONS,
        &[
            (0, Given::Input(Input::Opened)),
            (0, narrow),
            (1, publish(1, 1)),
            (1, publish(2, 1)),
            (5001, Given::Input(Input::Tick)),
        ],
        expect![[r#"
            +0ms Opened
               > SendConnect
            +0ms Connack { accepted: true, session_present: false, receive_maximum: 1, keep_alive_s: Some(5) }
               > Connected { session_present: false }
            +1ms publish 1 AtLeastOnce: Sent
               > SendPublish { token: 1, id: 1, qos: AtLeastOnce, dup: false }
            +1ms publish 2 AtLeastOnce: Waiting
            +5001ms Tick
               > SendPingreq
        "#]],
    );
}

#[test]
fn a_subscription_waits_for_an_identifier_while_messages_in_flight_have_all_of_them() {
    let mut client = Client::new(ClientOptions { max_inflight: 0, max_queued: u32::MAX, ..OPTIONS });
    let now = Instant::ZERO;
    let tell = |client: &mut Client, input| {
        client.handle(now, input);
        std::iter::from_fn(|| client.poll()).collect::<Vec<_>>()
    };
    tell(&mut client, Input::Opened);
    tell(&mut client, greeting(false));
    for token in 0..65_535 {
        assert_eq!(client.publish(now, token, Qos::AtLeastOnce), Admission::Sent);
    }
    while client.poll().is_some() {}
    tell(&mut client, Input::Closed);
    tell(&mut client, Input::Opened);
    tell(&mut client, greeting(true));
    assert_eq!(tell(&mut client, Input::Subscribe), [], "no identifier is free");
    assert_eq!(
        tell(&mut client, Input::Puback { id: 7, code: 0 }),
        [Output::Acknowledged { token: 6 }, Output::SendSubscribe { id: 7 }]
    );
}

#[test]
fn mqtt_3_2_2_4_a_client_without_a_session_leaves_a_broker_that_says_it_has_one() {
    let connect = |clean| {
        let mut client = Client::new(ClientOptions { clean, ..OPTIONS });
        client.handle(Instant::ZERO, Input::Opened);
        client.handle(Instant::ZERO, greeting(true));
        let said: Vec<_> = std::iter::from_fn(|| client.poll()).collect();
        (client.is_online(), said[1..].to_vec())
    };
    assert_eq!(connect(true), (false, vec![Output::Close(Reason::SessionPresent)]));
    // A session of an earlier run goes on.
    assert_eq!(connect(false), (true, vec![Output::Connected { session_present: true }]));
}
