//! The client's session, as conversations: what happens on the left, what the machine does below it.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use mqttlab_mqtt::Qos;
use mqttlab_mqtt::client::{Client, ClientOptions, Input, Output};
use mqttlab_units::{Duration, Instant};

const OPTIONS: ClientOptions = ClientOptions {
    keep_alive: Duration::from_s(60),
    clean: false,
    max_inflight: 2,
    max_queued: 2,
    deliver_on_release: false,
    retry: None,
    connect_timeout: Duration::from_s(10),
};

fn accepted(session_present: bool) -> Input {
    Input::Connack { accepted: true, session_present, receive_maximum: u16::MAX, keep_alive_s: None }
}

fn publish(token: u64, level: u8) -> Input {
    Input::Publish { token, qos: Qos::from_level(level).unwrap() }
}

fn check(options: ClientOptions, script: &[(u64, Input)], expected: Expect) {
    let mut client = Client::new(options);
    let mut transcript = String::new();
    for (ms, input) in script {
        let now = Instant::ZERO + Duration::from_ms(*ms);
        writeln!(transcript, "+{ms}ms {input:?}").unwrap();
        client.handle(now, *input);
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
            (0, Input::Opened),
            (1, accepted(false)),
            (2, publish(7, 1)),
            (3, Input::Puback { id: 1, refused: false }),
        ],
        expect![[r#"
            +0ms Opened
               > SendConnect
            +1ms Connack { accepted: true, session_present: false, receive_maximum: 65535, keep_alive_s: None }
               > Connected { session_present: false }
            +2ms Publish { token: 7, qos: AtLeastOnce }
               > SendPublish { token: 7, id: 1, qos: AtLeastOnce, dup: false }
            +3ms Puback { id: 1, refused: false }
               > Acknowledged { token: 7 }
        "#]],
    );
}

#[test]
fn a_qos2_message_takes_four_packets() {
    check(
        OPTIONS,
        &[
            (0, Input::Opened),
            (1, accepted(false)),
            (2, publish(7, 2)),
            (3, Input::Pubrec { id: 1, refused: false }),
            (4, Input::Pubcomp { id: 1 }),
        ],
        expect![[r#"
            +0ms Opened
               > SendConnect
            +1ms Connack { accepted: true, session_present: false, receive_maximum: 65535, keep_alive_s: None }
               > Connected { session_present: false }
            +2ms Publish { token: 7, qos: ExactlyOnce }
               > SendPublish { token: 7, id: 1, qos: ExactlyOnce, dup: false }
            +3ms Pubrec { id: 1, refused: false }
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
            (0, Input::Opened),
            (1, accepted(false)),
            (2, publish(1, 1)),
            (2, publish(2, 1)),
            (2, publish(3, 1)),
            (2, publish(4, 1)),
            (2, publish(5, 1)),
            (9, Input::Puback { id: 1, refused: false }),
        ],
        expect![[r#"
            +0ms Opened
               > SendConnect
            +1ms Connack { accepted: true, session_present: false, receive_maximum: 65535, keep_alive_s: None }
               > Connected { session_present: false }
            +2ms Publish { token: 1, qos: AtLeastOnce }
               > SendPublish { token: 1, id: 1, qos: AtLeastOnce, dup: false }
            +2ms Publish { token: 2, qos: AtLeastOnce }
               > SendPublish { token: 2, id: 2, qos: AtLeastOnce, dup: false }
            +2ms Publish { token: 3, qos: AtLeastOnce }
            +2ms Publish { token: 4, qos: AtLeastOnce }
            +2ms Publish { token: 5, qos: AtLeastOnce }
               > Unsent { token: 5 }
            +9ms Puback { id: 1, refused: false }
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
            (0, Input::Opened),
            (1, accepted(false)),
            (2, publish(1, 2)),
            (2, publish(2, 1)),
            (3, Input::Pubrec { id: 1, refused: false }),
            (4, Input::Closed),
            (5, publish(3, 1)),
            (6, publish(4, 0)),
            (7, Input::Opened),
            (8, accepted(true)),
            (9, Input::Pubcomp { id: 1 }),
        ],
        expect![[r#"
            +0ms Opened
               > SendConnect
            +1ms Connack { accepted: true, session_present: false, receive_maximum: 65535, keep_alive_s: None }
               > Connected { session_present: false }
            +2ms Publish { token: 1, qos: ExactlyOnce }
               > SendPublish { token: 1, id: 1, qos: ExactlyOnce, dup: false }
            +2ms Publish { token: 2, qos: AtLeastOnce }
               > SendPublish { token: 2, id: 2, qos: AtLeastOnce, dup: false }
            +3ms Pubrec { id: 1, refused: false }
               > SendPubrel { id: 1 }
            +4ms Closed
            +5ms Publish { token: 3, qos: AtLeastOnce }
            +6ms Publish { token: 4, qos: AtMostOnce }
               > Unsent { token: 4 }
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
            (0, Input::Opened),
            (1, accepted(false)),
            (2, publish(1, 1)),
            (4, Input::Closed),
            (7, Input::Opened),
            (8, accepted(false)),
        ],
        expect![[r#"
            +0ms Opened
               > SendConnect
            +1ms Connack { accepted: true, session_present: false, receive_maximum: 65535, keep_alive_s: None }
               > Connected { session_present: false }
            +2ms Publish { token: 1, qos: AtLeastOnce }
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
    let arrived = |token| Input::Arrived { token, qos: Qos::ExactlyOnce, id: 9 };
    check(
        OPTIONS,
        &[
            (0, Input::Opened),
            (1, accepted(false)),
            (2, arrived(1)),
            (3, arrived(2)),
            (4, Input::Pubrel { id: 9 }),
            (5, arrived(3)),
        ],
        expect![[r#"
            +0ms Opened
               > SendConnect
            +1ms Connack { accepted: true, session_present: false, receive_maximum: 65535, keep_alive_s: None }
               > Connected { session_present: false }
            +2ms Arrived { token: 1, qos: ExactlyOnce, id: 9 }
               > Deliver { token: 1 }
               > SendPubrec { id: 9 }
            +3ms Arrived { token: 2, qos: ExactlyOnce, id: 9 }
               > Suppressed { token: 2 }
               > SendPubrec { id: 9 }
            +4ms Pubrel { id: 9 }
               > SendPubcomp { id: 9 }
            +5ms Arrived { token: 3, qos: ExactlyOnce, id: 9 }
               > Deliver { token: 3 }
               > SendPubrec { id: 9 }
        "#]],
    );
}

#[test]
fn a_qos2_message_is_held_until_its_pubrel_where_the_application_waits_for_it() {
    let arrived = |token| Input::Arrived { token, qos: Qos::ExactlyOnce, id: 9 };
    check(
        ClientOptions { deliver_on_release: true, ..OPTIONS },
        &[
            (0, Input::Opened),
            (1, accepted(false)),
            (2, arrived(1)),
            (3, arrived(2)),
            (4, Input::Pubrel { id: 9 }),
            (5, Input::Pubrel { id: 9 }),
        ],
        expect![[r#"
            +0ms Opened
               > SendConnect
            +1ms Connack { accepted: true, session_present: false, receive_maximum: 65535, keep_alive_s: None }
               > Connected { session_present: false }
            +2ms Arrived { token: 1, qos: ExactlyOnce, id: 9 }
               > Held { token: 1 }
               > SendPubrec { id: 9 }
            +3ms Arrived { token: 2, qos: ExactlyOnce, id: 9 }
               > Suppressed { token: 2 }
               > SendPubrec { id: 9 }
            +4ms Pubrel { id: 9 }
               > Deliver { token: 1 }
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
            (0, Input::Opened),
            (1, accepted(false)),
            (59_999, Input::Tick),
            (60_000, Input::Tick),
            (120_000, Input::Tick),
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
fn a_connack_that_does_not_come_or_refuses_ends_the_attempt() {
    let refused =
        Input::Connack { accepted: false, session_present: false, receive_maximum: 1, keep_alive_s: None };
    check(
        OPTIONS,
        &[(0, Input::Opened), (10_000, Input::Tick), (11_000, Input::Opened), (11_001, refused)],
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
            (0, Input::Opened),
            (0, accepted(false)),
            (1000, publish(1, 2)),
            (21_000, Input::Tick),
            (22_000, Input::Pubrec { id: 1, refused: false }),
            (42_000, Input::Tick),
        ],
        expect![[r#"
            +0ms Opened
               > SendConnect
            +0ms Connack { accepted: true, session_present: false, receive_maximum: 65535, keep_alive_s: None }
               > Connected { session_present: false }
            +1000ms Publish { token: 1, qos: ExactlyOnce }
               > SendPublish { token: 1, id: 1, qos: ExactlyOnce, dup: false }
            +21000ms Tick
               > SendPublish { token: 1, id: 1, qos: ExactlyOnce, dup: true }
            +22000ms Pubrec { id: 1, refused: false }
               > SendPubrel { id: 1 }
            +42000ms Tick
               > SendPubrel { id: 1 }
        "#]],
    );
}

#[test]
fn the_brokers_receive_maximum_narrows_the_window() {
    let narrow =
        Input::Connack { accepted: true, session_present: false, receive_maximum: 1, keep_alive_s: Some(5) };
    check(
        OPTIONS,
        &[(0, Input::Opened), (0, narrow), (1, publish(1, 1)), (1, publish(2, 1)), (5001, Input::Tick)],
        expect![[r#"
            +0ms Opened
               > SendConnect
            +0ms Connack { accepted: true, session_present: false, receive_maximum: 1, keep_alive_s: Some(5) }
               > Connected { session_present: false }
            +1ms Publish { token: 1, qos: AtLeastOnce }
               > SendPublish { token: 1, id: 1, qos: AtLeastOnce, dup: false }
            +1ms Publish { token: 2, qos: AtLeastOnce }
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
    tell(&mut client, accepted(false));
    (0..65_535).for_each(|token| client.handle(now, publish(token, 1)));
    tell(&mut client, Input::Closed);
    tell(&mut client, Input::Opened);
    tell(&mut client, accepted(true));
    assert_eq!(tell(&mut client, Input::Subscribe), [], "no identifier is free");
    assert_eq!(
        tell(&mut client, Input::Puback { id: 7, refused: false }),
        [Output::Acknowledged { token: 6 }, Output::SendSubscribe { id: 7 }]
    );
}
