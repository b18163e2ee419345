//! RFC 3168 §6.1: explicit congestion notification.

use expect_test::expect;
use mqttlab_tcp::{CongestionControl, DelayedAck, Profile, Role};

use super::script::{check, check_established, plain, run_established};

fn capable() -> Profile {
    Profile { ecn: true, initial_window: 4, ..plain() }
}

/// A peer opens a connection by a SYN with these flags, and is sent a segment of data.
fn opened_with(flags: &str) -> String {
    format!("+0 < {flags} 0:0(0) win 65535 <mss 1000>\n+1 < . 1:1(0) ack 1 win 65535\n+0 write 100")
}

#[test]
fn s6_1_1_a_syn_asks_with_ece_and_cwr_and_one_that_is_repeated_does_not() {
    check(
        capable(),
        Role::Active,
        "+0 open\n+1000 wait\n+10 < SE. 0:0(0) ack 1 win 65535 <mss 1000>\n+0 write 100",
        expect![[r#"
            0 open
                > SEW 0:0(0) win 65535 <mss 1000,sackOK>
            1000 tick
                > S 0:0(0) win 65535 <mss 1000,sackOK>
            1000 wait
            1010 < SE. 0:0(0) ack 1 win 65535 <mss 1000>
                > . 1:1(0) ack 1 win 65535
                ! Connected
            1010 write 100
                > [ect0] P. 1:101(100) ack 1 win 65535
        "#]],
    );
}

#[test]
fn s6_1_1_a_syn_ack_answers_with_ece_alone() {
    check(
        capable(),
        Role::Passive,
        &opened_with("SEW"),
        expect![[r#"
            0 < SEW 0:0(0) win 65535 <mss 1000>
                > SE. 0:0(0) ack 1 win 65535 <mss 1000>
            1 < . 1:1(0) ack 1 win 65535
                ! Connected
            1 write 100
                > [ect0] P. 1:101(100) ack 1 win 65535
        "#]],
    );
}

#[test]
fn s6_1_1_without_both_flags_in_the_syn_or_ece_alone_in_the_answer_there_is_none() {
    check(
        capable(),
        Role::Passive,
        &opened_with("SE"),
        expect![[r#"
            0 < SE 0:0(0) win 65535 <mss 1000>
                > S. 0:0(0) ack 1 win 65535 <mss 1000>
            1 < . 1:1(0) ack 1 win 65535
                ! Connected
            1 write 100
                > P. 1:101(100) ack 1 win 65535
        "#]],
    );
    check(
        capable(),
        Role::Active,
        "+0 open\n+10 < SEW. 0:0(0) ack 1 win 65535 <mss 1000>\n+0 write 100",
        expect![[r#"
            0 open
                > SEW 0:0(0) win 65535 <mss 1000,sackOK>
            10 < SEW. 0:0(0) ack 1 win 65535 <mss 1000>
                > . 1:1(0) ack 1 win 65535
                ! Connected
            10 write 100
                > P. 1:101(100) ack 1 win 65535
        "#]],
    );
    let deaf = Profile { ecn: false, ..capable() };
    check(
        deaf,
        Role::Passive,
        &opened_with("SEW"),
        expect![[r#"
            0 < SEW 0:0(0) win 65535 <mss 1000>
                > S. 0:0(0) ack 1 win 65535 <mss 1000>
            1 < . 1:1(0) ack 1 win 65535
                ! Connected
            1 write 100
                > P. 1:101(100) ack 1 win 65535
        "#]],
    );
}

#[test]
fn s6_1_2_an_echo_halves_the_window_once_and_the_next_new_data_says_cwr() {
    check_established(
        Profile { initial_window: 8, ..capable() },
        "+0 write 20000
         +10 < E. 1:1(0) ack 1001 win 65535
         +1 < E. 1:1(0) ack 2001 win 65535
         +1 < E. 1:1(0) ack 6001 win 65535
         +1 < E. 1:1(0) ack 8001 win 65535
         +9 < . 1:1(0) ack 10001 win 65535",
        expect![[r#"
            0 write 20000
                > [ect0] . 1:1001(1000) ack 1 win 65535
                > [ect0] . 1001:2001(1000) ack 1 win 65535
                > [ect0] . 2001:3001(1000) ack 1 win 65535
                > [ect0] . 3001:4001(1000) ack 1 win 65535
                > [ect0] . 4001:5001(1000) ack 1 win 65535
                > [ect0] . 5001:6001(1000) ack 1 win 65535
                > [ect0] . 6001:7001(1000) ack 1 win 65535
                > [ect0] . 7001:8001(1000) ack 1 win 65535
            10 < E. 1:1(0) ack 1001 win 65535
                ! Acknowledged(1000)
            11 < E. 1:1(0) ack 2001 win 65535
                ! Acknowledged(2000)
            12 < E. 1:1(0) ack 6001 win 65535
                > [ect0] W. 8001:9001(1000) ack 1 win 65535
                > [ect0] . 9001:10001(1000) ack 1 win 65535
                ! Acknowledged(6000)
            13 < E. 1:1(0) ack 8001 win 65535
                > [ect0] . 10001:11001(1000) ack 1 win 65535
                > [ect0] . 11001:12001(1000) ack 1 win 65535
                ! Acknowledged(8000)
            22 < . 1:1(0) ack 10001 win 65535
                > [ect0] . 12001:13001(1000) ack 1 win 65535
                > [ect0] . 13001:14001(1000) ack 1 win 65535
                ! Acknowledged(10000)
        "#]],
    );
}

#[test]
fn s6_1_2_a_window_is_reduced_by_the_algorithm_once_for_a_window_of_data() {
    let script = "+0 write 90000
         +10 < E. 1:1(0) ack 1001 win 65535
         +1 < E. 1:1(0) ack 2001 win 65535";
    for (algorithm, threshold) in [(CongestionControl::Reno, 10), (CongestionControl::Cubic, 14)] {
        let profile = Profile { congestion_control: algorithm, initial_window: 20, ..capable() };
        let (_, endpoint) = run_established(profile, script);
        assert_eq!(endpoint.info().slow_start_threshold, threshold);
        assert_eq!(endpoint.counters().retransmissions, 0);
    }
}

#[test]
fn s6_1_2_where_a_mark_has_reduced_the_window_a_loss_in_it_does_not_again() {
    let (_, endpoint) = run_established(
        Profile { initial_window: 20, rate_reduction: true, ..capable() },
        "+0 write 90000
         +10 < E. 1:1(0) ack 1001 win 65535
         +1 < E. 1:1(0) ack 1001 win 65535 <sack 2001:3001>
         +1 < E. 1:1(0) ack 1001 win 65535 <sack 2001:4001>
         +1 < E. 1:1(0) ack 1001 win 65535 <sack 2001:5001>",
    );
    assert_eq!(endpoint.info().slow_start_threshold, 10);
    assert_eq!(endpoint.counters().fast_recoveries, 1);
}

#[test]
fn s6_1_3_a_mark_is_echoed_on_all_that_leaves_until_cwr() {
    check_established(
        Profile { delayed_ack: DelayedAck::Off, ..capable() },
        "+0 < [ect0] P. 1:101(100) ack 1 win 65535
         +1 < [ce] P. 101:201(100) ack 1 win 65535
         +1 < [ect0] P. 201:301(100) ack 1 win 65535
         +1 write 100
         +1 < [ect0] PW. 301:401(100) ack 101 win 65535",
        expect![[r#"
            0 < [ect0] P. 1:101(100) ack 1 win 65535
                > . 1:1(0) ack 101 win 65535
                ! Readable(100)
            1 < [ce] P. 101:201(100) ack 1 win 65535
                > E. 1:1(0) ack 201 win 65535
                ! Readable(200)
            2 < [ect0] P. 201:301(100) ack 1 win 65535
                > E. 1:1(0) ack 301 win 65535
                ! Readable(300)
            3 write 100
                > [ect0] PE. 1:101(100) ack 301 win 65535
            4 < [ect0] PW. 301:401(100) ack 101 win 65535
                > . 101:101(0) ack 401 win 65535
                ! Acknowledged(100)
                ! Readable(400)
        "#]],
    );
}

#[test]
fn s6_1_5_what_is_sent_again_is_not_ect() {
    check_established(
        capable(),
        "+0 write 4000
         +10 < . 1:1(0) ack 1 win 65535 <sack 1001:4001>",
        expect![[r#"
            0 write 4000
                > [ect0] . 1:1001(1000) ack 1 win 65535
                > [ect0] . 1001:2001(1000) ack 1 win 65535
                > [ect0] . 2001:3001(1000) ack 1 win 65535
                > [ect0] P. 3001:4001(1000) ack 1 win 65535
            10 < . 1:1(0) ack 1 win 65535 <sack 1001:4001>
                > . 1:1001(1000) ack 1 win 65535
        "#]],
    );
}
