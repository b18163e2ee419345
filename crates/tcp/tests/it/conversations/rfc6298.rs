//! RFC 6298: the retransmission timer.

use expect_test::expect;
use mqttlab_tcp::{Profile, Role, RtoFloor, RtoPolicy};
use mqttlab_units::Duration;

use super::script::{check, check_established, plain, run, run_established};

fn with_floor(floor: RtoFloor) -> Profile {
    let ms = Duration::from_ms;
    Profile {
        rto: RtoPolicy { initial: ms(1000), min: ms(100), max: ms(1000), floor },
        retries: 6,
        ..plain()
    }
}

#[test]
fn s2_4_the_minimum_holds_and_s5_5_the_timeout_doubles_and_s2_5_the_maximum_caps_it() {
    check_established(
        with_floor(RtoFloor::Timeout),
        "+0 write 100\n+5000 wait",
        expect![[r#"
            0 write 100
                > P. 1:101(100) ack 1 win 65535
            100 tick
                > P. 1:101(100) ack 1 win 65535
            300 tick
                > P. 1:101(100) ack 1 win 65535
            700 tick
                > P. 1:101(100) ack 1 win 65535
            1500 tick
                > P. 1:101(100) ack 1 win 65535
            2500 tick
                > P. 1:101(100) ack 1 win 65535
            3500 tick
                > P. 1:101(100) ack 1 win 65535
            4500 tick
                ! TimedOut
            5000 wait
        "#]],
    );
}

#[test]
fn s2_4_linux_adds_the_minimum_to_the_round_trip() {
    check_established(
        with_floor(RtoFloor::Variance),
        "+0 write 100\n+300 wait",
        expect![[r#"
            0 write 100
                > P. 1:101(100) ack 1 win 65535
            110 tick
                > P. 1:101(100) ack 1 win 65535
            300 wait
        "#]],
    );
}

#[test]
fn s3_karn_an_acknowledgement_of_what_was_sent_twice_is_no_measure() {
    check_established(
        with_floor(RtoFloor::Timeout),
        "+0 write 100
         +350 < . 1:1(0) ack 101 win 65535
         +0 write 100
         +450 wait",
        expect![[r#"
            0 write 100
                > P. 1:101(100) ack 1 win 65535
            100 tick
                > P. 1:101(100) ack 1 win 65535
            300 tick
                > P. 1:101(100) ack 1 win 65535
            350 < . 1:1(0) ack 101 win 65535
                ! Acknowledged(100)
            350 write 100
                > P. 101:201(100) ack 1 win 65535
            750 tick
                > P. 101:201(100) ack 1 win 65535
            800 wait
        "#]],
    );
}

#[test]
fn s5_3_an_acknowledgement_of_new_data_restarts_the_timer() {
    check_established(
        with_floor(RtoFloor::Timeout),
        "+0 write 2000
         +90 < . 1:1(0) ack 1001 win 65535
         +1000 wait",
        expect![[r#"
            0 write 2000
                > . 1:1001(1000) ack 1 win 65535
                > P. 1001:2001(1000) ack 1 win 65535
            90 < . 1:1(0) ack 1001 win 65535
                ! Acknowledged(1000)
            205 tick
                > P. 1001:2001(1000) ack 1 win 65535
            435 tick
                > P. 1001:2001(1000) ack 1 win 65535
            895 tick
                > P. 1001:2001(1000) ack 1 win 65535
            1090 wait
        "#]],
    );
}

#[test]
fn s5_4_after_a_timeout_all_is_sent_again_from_one_segment_on() {
    check_established(
        with_floor(RtoFloor::Timeout),
        "+0 write 4000
         +100 wait
         +10 < . 1:1(0) ack 1001 win 65535
         +10 < . 1:1(0) ack 3001 win 65535
         +10 < . 1:1(0) ack 4001 win 65535",
        expect![[r#"
            0 write 4000
                > . 1:1001(1000) ack 1 win 65535
                > . 1001:2001(1000) ack 1 win 65535
                > . 2001:3001(1000) ack 1 win 65535
                > P. 3001:4001(1000) ack 1 win 65535
            100 tick
                > . 1:1001(1000) ack 1 win 65535
            100 wait
            110 < . 1:1(0) ack 1001 win 65535
                > . 1001:2001(1000) ack 1 win 65535
                > . 2001:3001(1000) ack 1 win 65535
                ! Acknowledged(1000)
            120 < . 1:1(0) ack 3001 win 65535
                > P. 3001:4001(1000) ack 1 win 65535
                ! Acknowledged(3000)
            130 < . 1:1(0) ack 4001 win 65535
                ! Acknowledged(4000)
        "#]],
    );
}

#[test]
fn s5_small_lost_segments_are_sent_again_as_one() {
    check_established(
        with_floor(RtoFloor::Timeout),
        "+0 nodelay
         +0 write 100
         +0 write 200
         +0 write 300
         +100 wait
         +10 < . 1:1(0) ack 601 win 65535",
        expect![[r#"
            0 nodelay
            0 write 100
                > P. 1:101(100) ack 1 win 65535
            0 write 200
                > P. 101:301(200) ack 1 win 65535
            0 write 300
                > P. 301:601(300) ack 1 win 65535
            100 tick
                > P. 1:601(600) ack 1 win 65535
            100 wait
            110 < . 1:1(0) ack 601 win 65535
                ! Acknowledged(600)
        "#]],
    );
}

#[test]
fn s2_1_the_initial_timeout_is_settable_and_s5_7_becomes_three_seconds_after_a_lost_syn() {
    let mut profile = with_floor(RtoFloor::Timeout);
    profile.rto.initial = Duration::from_ms(700);
    profile.rto.max = Duration::from_s(60);
    profile.sack = false;
    check(
        profile,
        Role::Active,
        "+0 open
         +1000 < S. 0:0(0) ack 1 win 65535 <mss 1000>
         +0 write 100
         +3500 wait",
        expect![[r#"
            0 open
                > S 0:0(0) win 65535 <mss 1000>
            700 tick
                > S 0:0(0) win 65535 <mss 1000>
            1000 < S. 0:0(0) ack 1 win 65535 <mss 1000>
                > . 1:1(0) ack 1 win 65535
                ! Connected
            1000 write 100
                > P. 1:101(100) ack 1 win 65535
            4000 tick
                > P. 1:101(100) ack 1 win 65535
            4500 wait
        "#]],
    );
}

#[test]
fn s3_what_waited_behind_a_repeated_segment_is_no_measure() {
    let profile = Profile { sack: false, ..with_floor(RtoFloor::Timeout) };
    // The first is lost; the second comes after 10 ms and waits for the first's repetition to be acknowledged.
    let (_, endpoint) = run_established(
        profile,
        "+0 write 2000
         +100 wait
         +50 < . 1:1(0) ack 2001 win 65535",
    );
    assert_eq!(endpoint.info().unacknowledged_bytes, 0);
    assert_eq!(endpoint.info().srtt, Some(Duration::from_ms(10)), "as the handshake measured");
}

#[test]
fn s3_a_syn_ack_that_was_asked_for_again_is_no_measure() {
    // The first SYN-ACK is lost, the peer repeats its SYN after a second, and the second SYN-ACK is answered within 40 ms.
    let script = "+0 < S 0:0(0) win 65535 <mss 1000STAMP>
                  +1000 < S 0:0(0) win 65535 <mss 1000STAMP>
                  +40 < . 1:1(0) ack 1 win 65535ECHO";
    for (timestamps, srtt) in [(false, None), (true, Some(Duration::from_ms(40)))] {
        let profile = Profile { timestamps, timestamp_tick: Duration::from_ms(1), ..plain() };
        let script = script.replace("STAMP", if timestamps { ",ts 1 0" } else { "" });
        let script = script.replace("ECHO", if timestamps { " <ts 41 1000>" } else { "" });
        assert_eq!(run(profile, Role::Passive, &script).info().srtt, srtt);
    }
}
