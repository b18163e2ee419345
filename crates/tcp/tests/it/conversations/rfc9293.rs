//! RFC 9293: Transmission Control Protocol.

use expect_test::expect;
use mqttlab_tcp::{KeepAlive, Profile, Role, SynPolicy};
use mqttlab_units::Duration;

use super::script::{check, check_established, plain};

#[test]
fn s3_5_the_active_side_sends_what_it_can_do() {
    check(
        crate::stacks::linux(),
        Role::Active,
        "+0 open
         +20 < S. 0:0(0) ack 1 win 65535 <mss 1460,sackOK,ts 7 0,wscale 7>
         +5 write 100",
        expect![[r#"
            0 open
                > S 0:0(0) win 65535 <mss 1460,sackOK,ts 0 0,wscale 7>
            20 < S. 0:0(0) ack 1 win 65535 <mss 1460,sackOK,ts 7 0,wscale 7>
                > . 1:1(0) ack 1 win 24576 <ts 20 7>
                ! Connected
            25 write 100
                > P. 1:101(100) ack 1 win 24576 <ts 25 7>
        "#]],
    );
}

#[test]
fn s3_5_the_passive_side_answers_only_what_was_offered() {
    check(
        crate::stacks::linux(),
        Role::Passive,
        "+0 < S 0:0(0) win 8192 <mss 536>
         +20 < . 1:1(0) ack 1 win 8192
         +5 write 600",
        expect![[r#"
            0 < S 0:0(0) win 8192 <mss 536>
                > S. 0:0(0) ack 1 win 65535 <mss 1460>
            20 < . 1:1(0) ack 1 win 8192
                ! Connected
            25 write 600
                > . 1:537(536) ack 1 win 65535
                > P. 537:601(64) ack 1 win 65535
        "#]],
    );
}

#[test]
fn s3_5_both_may_open_at_once() {
    check(
        plain(),
        Role::Active,
        "+0 open
         +5 < S 500:500(0) win 8000 <mss 1000,sackOK>
         +5 < S. 500:500(0) ack 1 win 8000 <mss 1000,sackOK>
         +1 < . 501:501(0) ack 1 win 8000",
        expect![[r#"
            0 open
                > S 0:0(0) win 65535 <mss 1000,sackOK>
            5 < S 500:500(0) win 8000 <mss 1000,sackOK>
                > S. 0:0(0) ack 501 win 65535 <mss 1000,sackOK>
            10 < S. 500:500(0) ack 1 win 8000 <mss 1000,sackOK>
                ! Connected
            11 < . 501:501(0) ack 1 win 8000
        "#]],
    );
}

#[test]
fn s3_5_2_a_segment_for_nobody_is_reset() {
    check(
        plain(),
        Role::Active,
        "+0 < . 5:105(100) ack 77 win 100
         +1 < F 5:105(100) win 100
         +1 < R 5:5(0) win 0",
        expect![[r#"
            0 < . 5:105(100) ack 77 win 100
                > R 77:77(0) win 0
            1 < F 5:105(100) win 100
                > R. 0:0(0) ack 106 win 0
            2 < R 5:5(0) win 0
        "#]],
    );
}

#[test]
fn s3_5_2_a_refused_connection_ends() {
    check(
        plain(),
        Role::Active,
        "+0 open
         +5 < R. 0:0(0) ack 1 win 0",
        expect![[r#"
            0 open
                > S 0:0(0) win 65535 <mss 1000,sackOK>
            5 < R. 0:0(0) ack 1 win 0
                ! Refused
        "#]],
    );
}

#[test]
fn s3_7_1_without_the_option_a_peer_takes_536_bytes() {
    check(
        plain(),
        Role::Active,
        "+0 open
         +5 < S. 0:0(0) ack 1 win 8000
         +1 write 1072",
        expect![[r#"
            0 open
                > S 0:0(0) win 65535 <mss 1000,sackOK>
            5 < S. 0:0(0) ack 1 win 8000
                > . 1:1(0) ack 1 win 65535
                ! Connected
            6 write 1072
                > . 1:537(536) ack 1 win 65535
                > P. 537:1073(536) ack 1 win 65535
        "#]],
    );
}

#[test]
fn s3_8_1_syns_repeat_as_linux_does_since_6_5() {
    check(
        Profile { syn: SynPolicy { retries: 6, linear_retries: 4, echoes_latest: false }, ..plain() },
        Role::Active,
        "+0 open
         +132000 wait",
        expect![[r#"
            0 open
                > S 0:0(0) win 65535 <mss 1000,sackOK>
            1000 tick
                > S 0:0(0) win 65535 <mss 1000,sackOK>
            2000 tick
                > S 0:0(0) win 65535 <mss 1000,sackOK>
            3000 tick
                > S 0:0(0) win 65535 <mss 1000,sackOK>
            4000 tick
                > S 0:0(0) win 65535 <mss 1000,sackOK>
            5000 tick
                > S 0:0(0) win 65535 <mss 1000,sackOK>
            7000 tick
                > S 0:0(0) win 65535 <mss 1000,sackOK>
            11000 tick
                > S 0:0(0) win 65535 <mss 1000,sackOK>
            19000 tick
                > S 0:0(0) win 65535 <mss 1000,sackOK>
            35000 tick
                > S 0:0(0) win 65535 <mss 1000,sackOK>
            67000 tick
                > S 0:0(0) win 65535 <mss 1000,sackOK>
            131000 tick
                ! TimedOut
            132000 wait
        "#]],
    );
}

#[test]
fn s3_8_1_syns_repeat_with_doubling_intervals() {
    check(
        Profile { syn: SynPolicy { retries: 3, linear_retries: 0, echoes_latest: false }, ..plain() },
        Role::Active,
        "+0 open
         +20000 wait",
        expect![[r#"
            0 open
                > S 0:0(0) win 65535 <mss 1000,sackOK>
            1000 tick
                > S 0:0(0) win 65535 <mss 1000,sackOK>
            3000 tick
                > S 0:0(0) win 65535 <mss 1000,sackOK>
            7000 tick
                > S 0:0(0) win 65535 <mss 1000,sackOK>
            15000 tick
                ! TimedOut
            20000 wait
        "#]],
    );
}

#[test]
fn s3_8_1_a_lost_syn_ack_is_repeated() {
    check(
        plain(),
        Role::Passive,
        "+0 < S 0:0(0) win 8000 <mss 1000>
         +500 < S 0:0(0) win 8000 <mss 1000>
         +1100 wait
         +10 < . 1:1(0) ack 1 win 8000",
        expect![[r#"
            0 < S 0:0(0) win 8000 <mss 1000>
                > S. 0:0(0) ack 1 win 65535 <mss 1000>
            500 < S 0:0(0) win 8000 <mss 1000>
                > S. 0:0(0) ack 1 win 65535 <mss 1000>
            1500 tick
                > S. 0:0(0) ack 1 win 65535 <mss 1000>
            1600 wait
            1610 < . 1:1(0) ack 1 win 8000
                ! Connected
        "#]],
    );
}

#[test]
fn s3_6_the_first_to_close_waits() {
    check_established(
        plain(),
        "+0 write 100
         +0 close
         +10 < . 1:1(0) ack 102 win 65535
         +10 < F. 1:1(0) ack 102 win 65535
         +10 < F. 1:1(0) ack 102 win 65535
         +60001 wait",
        expect![[r#"
            0 write 100
                > P. 1:101(100) ack 1 win 65535
            0 close
                > F. 101:101(0) ack 1 win 65535
            10 < . 1:1(0) ack 102 win 65535
                ! Acknowledged(100)
            20 < F. 1:1(0) ack 102 win 65535
                > . 102:102(0) ack 2 win 65535
                ! PeerClosed
                ! Closed
            30 < F. 1:1(0) ack 102 win 65535
                > . 102:102(0) ack 2 win 65535
            60030 tick
            60031 wait
        "#]],
    );
}

#[test]
fn s3_6_the_second_to_close_does_not_wait() {
    check_established(
        plain(),
        "+0 < F. 1:1(0) ack 1 win 65535
         +0 write 50
         +0 close
         +10 < . 2:2(0) ack 52 win 65535",
        expect![[r#"
            0 < F. 1:1(0) ack 1 win 65535
                > . 1:1(0) ack 2 win 65535
                ! PeerClosed
            0 write 50
                > P. 1:51(50) ack 2 win 65535
            0 close
                > F. 51:51(0) ack 2 win 65535
            10 < . 2:2(0) ack 52 win 65535
                ! Acknowledged(50)
                ! Closed
        "#]],
    );
}

#[test]
fn s3_6_both_may_close_at_once() {
    check_established(
        plain(),
        "+0 shutdown
         +5 < F. 1:1(0) ack 1 win 65535
         +5 < . 2:2(0) ack 2 win 65535",
        expect![[r#"
            0 shutdown
                > F. 1:1(0) ack 1 win 65535
            5 < F. 1:1(0) ack 1 win 65535
                > . 2:2(0) ack 2 win 65535
                ! PeerClosed
            10 < . 2:2(0) ack 2 win 65535
                ! Acknowledged(0)
                ! Closed
        "#]],
    );
}

#[test]
fn s3_6_a_half_closed_connection_still_receives() {
    check_established(
        plain(),
        "+0 shutdown
         +10 < . 1:1(0) ack 2 win 65535
         +5 < P. 1:101(100) ack 2 win 65535
         +0 read 100
         +5 < F. 101:101(0) ack 2 win 65535",
        expect![[r#"
            0 shutdown
                > F. 1:1(0) ack 1 win 65535
            10 < . 1:1(0) ack 2 win 65535
                ! Acknowledged(0)
            15 < P. 1:101(100) ack 2 win 65535
                > . 2:2(0) ack 101 win 65535
                ! Readable(100)
            15 read 100
            20 < F. 101:101(0) ack 2 win 65535
                > . 2:2(0) ack 102 win 65535
                ! PeerClosed
                ! Closed
        "#]],
    );
}

#[test]
fn s3_6_a_lost_fin_is_repeated() {
    check_established(
        plain(),
        "+0 shutdown
         +500 < . 1:1(0) ack 2 win 65535",
        expect![[r#"
            0 shutdown
                > F. 1:1(0) ack 1 win 65535
            210 tick
                > F. 1:1(0) ack 1 win 65535
            500 < . 1:1(0) ack 2 win 65535
                ! Acknowledged(0)
        "#]],
    );
}

#[test]
fn s3_8_4_a_silent_peer_is_probed_and_given_up() {
    let keep_alive = KeepAlive { idle: Duration::from_s(7200), interval: Duration::from_s(75), probes: 2 };
    check_established(
        Profile { keep_alive: Some(keep_alive), ..plain() },
        "+7200000 wait
         +10 < . 1:1(0) ack 1 win 65535
         +7400000 wait",
        expect![[r#"
            7200000 tick
                > . 0:0(0) ack 1 win 65535
            7200000 wait
            7200010 < . 1:1(0) ack 1 win 65535
            14400010 tick
                > . 0:0(0) ack 1 win 65535
            14475010 tick
                > . 0:0(0) ack 1 win 65535
            14550010 tick
                > R 1:1(0) win 0
                ! TimedOut
            14600010 wait
        "#]],
    );
}

#[test]
fn s3_8_6_1_a_closed_window_is_probed_with_growing_intervals() {
    check_established(
        plain(),
        "+0 write 1500
         +10 < . 1:1(0) ack 1501 win 0
         +0 write 300
         +700 < . 1:1(0) ack 1501 win 0
         +10 < . 1:1(0) ack 1501 win 5000",
        expect![[r#"
            0 write 1500
                > . 1:1001(1000) ack 1 win 65535
                > P. 1001:1501(500) ack 1 win 65535
            10 < . 1:1(0) ack 1501 win 0
                ! Acknowledged(1500)
            10 write 300
            220 tick
                > . 1500:1500(0) ack 1 win 65535
            640 tick
                > . 1500:1500(0) ack 1 win 65535
            710 < . 1:1(0) ack 1501 win 0
            720 < . 1:1(0) ack 1501 win 5000
                > P. 1501:1801(300) ack 1 win 65535
        "#]],
    );
}

#[test]
fn s3_8_6_1_answers_keep_the_connection_alive_but_the_intervals_grow() {
    check_established(
        plain(),
        "+0 write 1500
         +10 < . 1:1(0) ack 1501 win 0
         +0 write 300
         +220 < . 1:1(0) ack 1501 win 0
         +430 < . 1:1(0) ack 1501 win 0
         +850 < . 1:1(0) ack 1501 win 0
         +10 < . 1:1(0) ack 1501 win 5000",
        expect![[r#"
            0 write 1500
                > . 1:1001(1000) ack 1 win 65535
                > P. 1001:1501(500) ack 1 win 65535
            10 < . 1:1(0) ack 1501 win 0
                ! Acknowledged(1500)
            10 write 300
            220 tick
                > . 1500:1500(0) ack 1 win 65535
            230 < . 1:1(0) ack 1501 win 0
            640 tick
                > . 1500:1500(0) ack 1 win 65535
            660 < . 1:1(0) ack 1501 win 0
            1480 tick
                > . 1500:1500(0) ack 1 win 65535
            1510 < . 1:1(0) ack 1501 win 0
            1520 < . 1:1(0) ack 1501 win 5000
                > P. 1501:1801(300) ack 1 win 65535
        "#]],
    );
}

#[test]
fn s3_8_6_1_data_for_a_closed_window_is_answered_and_not_taken() {
    check_established(
        Profile { receive_buffer: 2000, ..plain() },
        "+0 < . 1:1001(1000) ack 1 win 65535
         +0 < . 1001:2001(1000) ack 1 win 65535
         +1 < P. 2001:2002(1) ack 1 win 65535
         +1 read 2000
         +1 < P. 2001:2002(1) ack 1 win 65535",
        expect![[r#"
            0 < . 1:1001(1000) ack 1 win 65535
                > . 1:1(0) ack 1001 win 1000
                ! Readable(1000)
            0 < . 1001:2001(1000) ack 1 win 65535
                > . 1:1(0) ack 2001 win 0
                ! Readable(2000)
            1 < P. 2001:2002(1) ack 1 win 65535
                > . 1:1(0) ack 2001 win 0
            2 read 2000
                > . 1:1(0) ack 2001 win 2000
            3 < P. 2001:2002(1) ack 1 win 65535
                > . 1:1(0) ack 2002 win 1999
                ! Readable(2001)
        "#]],
    );
}

#[test]
fn s3_10_5_an_abort_resets() {
    check_established(
        plain(),
        "+0 write 100\n+1 abort\n+1 < . 1:1(0) ack 101 win 65535",
        expect![[r#"
            0 write 100
                > P. 1:101(100) ack 1 win 65535
            1 abort
                > R 101:101(0) win 0
            2 < . 1:1(0) ack 101 win 65535
                > R 101:101(0) win 0
        "#]],
    );
}

#[test]
fn s3_10_7_4_an_acknowledgement_of_what_was_never_sent_is_answered() {
    check_established(
        plain(),
        "+0 < . 1:1(0) ack 999 win 65535",
        expect![[r#"
            0 < . 1:1(0) ack 999 win 65535
                > . 1:1(0) ack 1 win 65535
        "#]],
    );
}

#[test]
fn s3_10_7_4_only_a_reset_at_the_expected_number_counts() {
    check_established(
        plain(),
        "+0 < R 5000:5000(0) win 0
         +1 < S 1:1(0) win 100
         +1 < R 1:1(0) win 0",
        expect![[r#"
            0 < R 5000:5000(0) win 0
                > . 1:1(0) ack 1 win 65535
            1 < S 1:1(0) win 100
                > . 1:1(0) ack 1 win 65535
            2 < R 1:1(0) win 0
                ! Reset
        "#]],
    );
}

#[test]
fn s3_4_numbers_wrap() {
    let mut endpoint =
        mqttlab_tcp::Endpoint::with_initial_sequence(plain(), Role::Active, mqttlab_tcp::Seq(u32::MAX));
    endpoint.open(mqttlab_units::Instant::ZERO);
    let syn_ack = mqttlab_tcp::Segment {
        flags: mqttlab_tcp::Flags::SYN.with(mqttlab_tcp::Flags::ACK),
        seq: mqttlab_tcp::Seq(u32::MAX - 50),
        window: 8000,
        ..Default::default()
    };
    while endpoint.poll().is_some() {}
    endpoint.receive(mqttlab_units::Instant::ZERO, &syn_ack);
    endpoint.write(mqttlab_units::Instant::ZERO, 10);
    let mut transcript = String::new();
    while let Some(mqttlab_tcp::TcpOutput::Transmit(segment)) = endpoint.poll() {
        transcript += &format!("{segment}, offset {:?}\n", endpoint.sent_offset(&segment));
    }
    expect![[r#"
        P. 0:10(10) ack 4294967246 win 65535, offset Some(0)
    "#]]
    .assert_eq(&transcript);
}

#[test]
fn s3_10_4_a_fin_waits_for_the_handshake() {
    check(
        plain(),
        Role::Passive,
        "+0 < S 0:0(0) win 65535 <mss 1000>
         +1 write 50
         +1 shutdown
         +1100 wait
         +1 < . 1:1(0) ack 1 win 65535
         +10 < . 1:1(0) ack 52 win 65535
         +10 < F. 1:1(0) ack 52 win 65535",
        expect![[r#"
            0 < S 0:0(0) win 65535 <mss 1000>
                > S. 0:0(0) ack 1 win 65535 <mss 1000>
            1 write 50
            2 shutdown
            1000 tick
                > S. 0:0(0) ack 1 win 65535 <mss 1000>
            1102 wait
            1103 < . 1:1(0) ack 1 win 65535
                > FP. 1:51(50) ack 1 win 65535
                ! Connected
            1113 < . 1:1(0) ack 52 win 65535
                ! Acknowledged(50)
            1123 < F. 1:1(0) ack 52 win 65535
                > . 52:52(0) ack 2 win 65535
                ! PeerClosed
                ! Closed
        "#]],
    );
}
