//! RFC 5681: congestion control.

use expect_test::expect;
use mqttlab_tcp::{Profile, WindowUnit};

use super::script::{check_established, plain};

#[test]
fn s3_1_slow_start_begins_with_the_initial_window_and_doubles() {
    check_established(
        Profile { initial_window: 2, ..plain() },
        "+0 write 10000
         +10 < . 1:1(0) ack 2001 win 65535
         +10 < . 1:1(0) ack 4001 win 65535",
        expect![[r#"
            0 write 10000
                > . 1:1001(1000) ack 1 win 65535
                > . 1001:2001(1000) ack 1 win 65535
            10 < . 1:1(0) ack 2001 win 65535
                > . 2001:3001(1000) ack 1 win 65535
                > . 3001:4001(1000) ack 1 win 65535
                > . 4001:5001(1000) ack 1 win 65535
                > . 5001:6001(1000) ack 1 win 65535
                ! Acknowledged(2000)
            20 < . 1:1(0) ack 4001 win 65535
                > . 6001:7001(1000) ack 1 win 65535
                > . 7001:8001(1000) ack 1 win 65535
                > . 8001:9001(1000) ack 1 win 65535
                > P. 9001:10001(1000) ack 1 win 65535
                ! Acknowledged(4000)
        "#]],
    );
}

#[test]
fn s3_2_three_duplicates_make_a_retransmission() {
    check_established(
        Profile { sack: false, initial_window: 5, ..plain() },
        "+0 write 5000
         +10 < . 1:1(0) ack 1 win 65535
         +1 < . 1:1(0) ack 1 win 65535
         +1 < . 1:1(0) ack 1 win 65535
         +1 < . 1:1(0) ack 1 win 65535
         +10 < . 1:1(0) ack 5001 win 65535",
        expect![[r#"
            0 write 5000
                > . 1:1001(1000) ack 1 win 65535
                > . 1001:2001(1000) ack 1 win 65535
                > . 2001:3001(1000) ack 1 win 65535
                > . 3001:4001(1000) ack 1 win 65535
                > P. 4001:5001(1000) ack 1 win 65535
            10 < . 1:1(0) ack 1 win 65535
            11 < . 1:1(0) ack 1 win 65535
            12 < . 1:1(0) ack 1 win 65535
                > . 1:1001(1000) ack 1 win 65535
            13 < . 1:1(0) ack 1 win 65535
            23 < . 1:1(0) ack 5001 win 65535
                ! Acknowledged(5000)
        "#]],
    );
}

#[test]
fn s3_2_a_change_of_window_is_no_duplicate() {
    check_established(
        Profile { sack: false, initial_window: 5, ..plain() },
        "+0 write 5000
         +10 < . 1:1(0) ack 1 win 60000
         +1 < . 1:1(0) ack 1 win 61000
         +1 < . 1:1(0) ack 1 win 62000
         +1 < . 1:1(0) ack 1 win 63000",
        expect![[r#"
            0 write 5000
                > . 1:1001(1000) ack 1 win 65535
                > . 1001:2001(1000) ack 1 win 65535
                > . 2001:3001(1000) ack 1 win 65535
                > . 3001:4001(1000) ack 1 win 65535
                > P. 4001:5001(1000) ack 1 win 65535
            10 < . 1:1(0) ack 1 win 60000
            11 < . 1:1(0) ack 1 win 61000
            12 < . 1:1(0) ack 1 win 62000
            13 < . 1:1(0) ack 1 win 63000
        "#]],
    );
}

#[test]
fn s4_1_after_idling_the_window_is_the_initial_one() {
    check_established(
        Profile { initial_window: 2, ..plain() },
        "+0 write 6000
         +10 < . 1:1(0) ack 2001 win 65535
         +10 < . 1:1(0) ack 6001 win 65535
         +9000 write 6000",
        expect![[r#"
            0 write 6000
                > . 1:1001(1000) ack 1 win 65535
                > . 1001:2001(1000) ack 1 win 65535
            10 < . 1:1(0) ack 2001 win 65535
                > . 2001:3001(1000) ack 1 win 65535
                > . 3001:4001(1000) ack 1 win 65535
                > . 4001:5001(1000) ack 1 win 65535
                > P. 5001:6001(1000) ack 1 win 65535
                ! Acknowledged(2000)
            20 < . 1:1(0) ack 6001 win 65535
                ! Acknowledged(6000)
            9020 write 6000
                > . 6001:7001(1000) ack 1 win 65535
                > . 7001:8001(1000) ack 1 win 65535
        "#]],
    );
}

#[test]
fn s4_2_gaps_and_their_ends_are_acknowledged_at_once() {
    check_established(
        Profile { sack: false, ..crate::stacks::netbsd_2005() },
        "+0 < . 525:1049(524) ack 1 win 17152
         +1 < . 1049:1573(524) ack 1 win 17152
         +1 < . 1:525(524) ack 1 win 17152",
        expect![[r#"
            0 < . 525:1049(524) ack 1 win 17152
                > . 1:1(0) ack 1 win 17152 <ts 10 1000>
            1 < . 1049:1573(524) ack 1 win 17152
                > . 1:1(0) ack 1 win 17152 <ts 11 1000>
            2 < . 1:525(524) ack 1 win 17152
                > . 1:1(0) ack 1573 win 15580 <ts 12 1000>
                ! Readable(1572)
        "#]],
    );
}

#[test]
fn s3_1_a_window_of_bytes_lets_many_small_segments_go() {
    let small = "+0 nodelay
         +0 write 100
         +0 write 100
         +0 write 100";
    check_established(
        Profile { initial_window: 2, ..plain() },
        small,
        expect![[r#"
            0 nodelay
            0 write 100
                > P. 1:101(100) ack 1 win 65535
            0 write 100
                > P. 101:201(100) ack 1 win 65535
            0 write 100
        "#]],
    );
    let bytes = Profile { initial_window: 2, window_unit: WindowUnit::Bytes, ..plain() };
    check_established(
        bytes,
        small,
        expect![[r#"
            0 nodelay
            0 write 100
                > P. 1:101(100) ack 1 win 65535
            0 write 100
                > P. 101:201(100) ack 1 win 65535
            0 write 100
                > P. 201:301(100) ack 1 win 65535
        "#]],
    );
}

#[test]
fn s4_2_a_fin_beyond_a_hole_is_answered_at_once() {
    check_established(
        Profile { sack: false, ..plain() },
        "+0 < F. 101:101(0) ack 1 win 65535
         +9 < P. 1:101(100) ack 1 win 65535",
        expect![[r#"
            0 < F. 101:101(0) ack 1 win 65535
                > . 1:1(0) ack 1 win 65535
            9 < P. 1:101(100) ack 1 win 65535
                > . 1:1(0) ack 102 win 65535
                ! Readable(100)
                ! PeerClosed
        "#]],
    );
}
