//! RFC 8985: loss detection by time and tail loss probes.

use expect_test::expect;
use mqttlab_tcp::{Nagle, Profile};

use super::script::{check_established, plain, run_established};

fn timed() -> Profile {
    Profile { rack: true, tail_loss_probe: true, ..plain() }
}

#[test]
fn s7_2_a_lone_segment_is_probed_after_the_peers_delay_and_before_the_timeout_backs_off() {
    check_established(
        timed(),
        "+0 write 100\n+1000 wait",
        expect![[r#"
            0 write 100
                > P. 1:101(100) ack 1 win 65535
            210 tick
                > P. 1:101(100) ack 1 win 65535
            420 tick
                > P. 1:101(100) ack 1 win 65535
            840 tick
                > P. 1:101(100) ack 1 win 65535
            1000 wait
        "#]],
    );
}

#[test]
fn s7_3_a_probe_prefers_new_data() {
    check_established(
        Profile { initial_window: 2, ..timed() },
        "+0 write 3000
         +30 wait
         +10 < . 1:1(0) ack 1 win 65535 <sack 1001:3001>",
        expect![[r#"
            0 write 3000
                > . 1:1001(1000) ack 1 win 65535
                > . 1001:2001(1000) ack 1 win 65535
            22 tick
                > P. 2001:3001(1000) ack 1 win 65535
            30 wait
            40 < . 1:1(0) ack 1 win 65535 <sack 1001:3001>
                > . 1:1001(1000) ack 1 win 65535
        "#]],
    );
}

#[test]
fn s7_3_a_probe_carries_what_nagles_algorithm_holds_back() {
    check_established(
        Profile { nagle: Nagle::Minshall, ..timed() },
        "+0 write 100
         +10 write 100
         +240 wait",
        expect![[r#"
            0 write 100
                > P. 1:101(100) ack 1 win 65535
            10 write 100
            210 tick
                > P. 101:201(100) ack 1 win 65535
            250 wait
        "#]],
    );
}

#[test]
fn s7_a_lost_tail_is_repaired_without_a_timeout() {
    check_established(
        timed(),
        "+0 write 3000
         +10 < . 1:1(0) ack 1001 win 65535
         +40 wait
         +10 < . 1:1(0) ack 1001 win 65535 <sack 2001:3001>
         +10 < . 1:1(0) ack 3001 win 65535",
        expect![[r#"
            0 write 3000
                > . 1:1001(1000) ack 1 win 65535
                > . 1001:2001(1000) ack 1 win 65535
                > P. 2001:3001(1000) ack 1 win 65535
            10 < . 1:1(0) ack 1001 win 65535
                ! Acknowledged(1000)
            32 tick
                > P. 2001:3001(1000) ack 1 win 65535
            50 wait
            60 < . 1:1(0) ack 1001 win 65535 <sack 2001:3001>
                > . 1001:2001(1000) ack 1 win 65535
            70 < . 1:1(0) ack 3001 win 65535
                ! Acknowledged(3000)
        "#]],
    );
}

#[test]
fn s6_2_one_reported_segment_and_a_quarter_of_a_round_trip_make_a_loss() {
    // Linux adds 2 ms to the quarter.
    check_established(
        timed(),
        "+0 write 2000
         +10 < . 1:1(0) ack 1 win 65535 <sack 1001:2001>
         +10 wait",
        expect![[r#"
            0 write 2000
                > . 1:1001(1000) ack 1 win 65535
                > P. 1001:2001(1000) ack 1 win 65535
            10 < . 1:1(0) ack 1 win 65535 <sack 1001:2001>
            14.5 tick
                > . 1:1001(1000) ack 1 win 65535
            20 wait
        "#]],
    );
}

#[test]
fn s6_2_reordering_within_that_time_is_no_loss() {
    check_established(
        timed(),
        "+0 write 2000
         +10 < . 1:1(0) ack 1 win 65535 <sack 1001:2001>
         +2 < . 1:1(0) ack 2001 win 65535
         +500 wait",
        expect![[r#"
            0 write 2000
                > . 1:1001(1000) ack 1 win 65535
                > P. 1001:2001(1000) ack 1 win 65535
            10 < . 1:1(0) ack 1 win 65535 <sack 1001:2001>
            12 < . 1:1(0) ack 2001 win 65535
                ! Acknowledged(2000)
            512 wait
        "#]],
    );
}

#[test]
fn s6_2_once_reordering_was_seen_three_reported_segments_are_waited_for_too() {
    let repeated = |before: &str| {
        let script = format!(
            "+0 write 8000
             {before}
             +1 < . 1:1(0) ack 2001 win 65535 <sack 3001:6001>
             +2 < . 1:1(0) ack 6001 win 65535
             +100 wait"
        );
        run_established(timed(), &script).1.counters().fast_recoveries
    };
    assert_eq!(repeated("+12 < . 1:1(0) ack 2001 win 65535"), 1);
    // The first segment comes after the second, although it was never sent again.
    let seen = "+10 < . 1:1(0) ack 1 win 65535 <sack 1001:2001>
                +2 < . 1:1(0) ack 2001 win 65535";
    assert_eq!(repeated(seen), 0);
}

#[test]
fn s6_2_a_lost_retransmission_is_found_without_a_timeout() {
    check_established(
        Profile { initial_window: 5, ..timed() },
        "+0 write 8000
         +10 < . 1:1(0) ack 1 win 65535 <sack 1001:4001>
         +10 < . 1:1(0) ack 1 win 65535 <sack 1001:5001>
         +1 < . 1:1(0) ack 1 win 65535 <sack 1001:6001>
         +10 < . 1:1(0) ack 1 win 65535 <sack 1001:7001>",
        expect![[r#"
            0 write 8000
                > . 1:1001(1000) ack 1 win 65535
                > . 1001:2001(1000) ack 1 win 65535
                > . 2001:3001(1000) ack 1 win 65535
                > . 3001:4001(1000) ack 1 win 65535
                > . 4001:5001(1000) ack 1 win 65535
            10 < . 1:1(0) ack 1 win 65535 <sack 1001:4001>
                > . 1:1001(1000) ack 1 win 65535
            20 < . 1:1(0) ack 1 win 65535 <sack 1001:5001>
                > . 5001:6001(1000) ack 1 win 65535
            21 < . 1:1(0) ack 1 win 65535 <sack 1001:6001>
                > . 1:1001(1000) ack 1 win 65535
                > . 6001:7001(1000) ack 1 win 65535
            31 < . 1:1(0) ack 1 win 65535 <sack 1001:7001>
                > . 1:1001(1000) ack 1 win 65535
                > P. 7001:8001(1000) ack 1 win 65535
        "#]],
    );
}

#[test]
fn s7_4_2_a_probe_that_came_twice_is_no_loss() {
    // The acknowledgement was lost, not the segment.
    let threshold = |told: &str| {
        let script = format!(
            "+0 write 100
             +300 < . 1:1(0) ack 101 win 65535{told}
             +10 write 1000
             +10 < . 1:1(0) ack 1101 win 65535"
        );
        let profile = Profile { rack: true, tail_loss_probe: true, ..plain() };
        run_established(profile, &script).1.info().slow_start_threshold
    };
    assert!(threshold("") < u64::MAX, "the probe repaired a loss");
    assert_eq!(threshold(" <sack 1:101>"), u64::MAX);
}

#[test]
fn s7_2_whether_a_probe_is_out_is_asked_when_the_next_ones_timer_fires() {
    // The acknowledgement of a segment that was probed needlessly was late; a D-SACK says so while the next one is timed.
    check_established(
        timed(),
        "+0 write 100
         +300 < . 1:1(0) ack 101 win 65535
         +10 write 50
         +10 < . 1:1(0) ack 101 win 65535 <sack 1:101>
         +1000 wait",
        expect![[r#"
            0 write 100
                > P. 1:101(100) ack 1 win 65535
            210 tick
                > P. 1:101(100) ack 1 win 65535
            300 < . 1:1(0) ack 101 win 65535
                ! Acknowledged(100)
            310 write 50
                > P. 101:151(50) ack 1 win 65535
            320 < . 1:1(0) ack 101 win 65535 <sack 1:101>
            520 tick
                > P. 101:151(50) ack 1 win 65535
            730 tick
                > P. 101:151(50) ack 1 win 65535
            1150 tick
                > P. 101:151(50) ack 1 win 65535
            1320 wait
        "#]],
    );
}
