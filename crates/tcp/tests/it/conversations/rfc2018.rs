//! RFC 2018: selective acknowledgements, the receiver's part.

use expect_test::expect;
use mqttlab_tcp::Profile;

use super::script::{check_established, plain};

#[test]
fn s4_blocks_report_the_latest_first() {
    check_established(
        plain(),
        "+0 < . 1001:2001(1000) ack 1 win 65535
         +1 < . 3001:4001(1000) ack 1 win 65535
         +1 < . 5001:6001(1000) ack 1 win 65535
         +1 < . 2001:3001(1000) ack 1 win 65535
         +1 < . 1:1001(1000) ack 1 win 65535
         +1 < . 4001:5001(1000) ack 1 win 65535",
        expect![[r#"
            0 < . 1001:2001(1000) ack 1 win 65535
                > . 1:1(0) ack 1 win 65535 <sack 1001:2001>
            1 < . 3001:4001(1000) ack 1 win 65535
                > . 1:1(0) ack 1 win 65535 <sack 3001:4001,sack 1001:2001>
            2 < . 5001:6001(1000) ack 1 win 65535
                > . 1:1(0) ack 1 win 65535 <sack 5001:6001,sack 3001:4001,sack 1001:2001>
            3 < . 2001:3001(1000) ack 1 win 65535
            3.6 tick
                > . 1:1(0) ack 1 win 65535 <sack 1001:4001,sack 5001:6001>
            4 < . 1:1001(1000) ack 1 win 65535
                > . 1:1(0) ack 4001 win 65535 <sack 5001:6001>
                ! Readable(4000)
            5 < . 4001:5001(1000) ack 1 win 65535
                > . 1:1(0) ack 6001 win 65535
                ! Readable(6000)
        "#]],
    );
}

#[test]
fn s3_beside_timestamps_there_is_room_for_three_blocks() {
    check_established(
        Profile { timestamps: true, ..plain() },
        "+0 < . 1001:2001(1000) ack 1 win 65535 <ts 1010 10>
         +1 < . 3001:4001(1000) ack 1 win 65535 <ts 1010 10>
         +1 < . 5001:6001(1000) ack 1 win 65535 <ts 1010 10>
         +1 < . 7001:8001(1000) ack 1 win 65535 <ts 1010 10>
         +1 wait",
        expect![[r#"
            0 < . 1001:2001(1000) ack 1 win 65535 <ts 1010 10>
                > . 1:1(0) ack 1 win 65535 <ts 10 1000,sack 1001:2001>
            1 < . 3001:4001(1000) ack 1 win 65535 <ts 1010 10>
                > . 1:1(0) ack 1 win 65535 <ts 11 1000,sack 3001:4001,sack 1001:2001>
            2 < . 5001:6001(1000) ack 1 win 65535 <ts 1010 10>
                > . 1:1(0) ack 1 win 65535 <ts 12 1000,sack 5001:6001,sack 3001:4001,sack 1001:2001>
            3 < . 7001:8001(1000) ack 1 win 65535 <ts 1010 10>
            3.6 tick
                > . 1:1(0) ack 1 win 65535 <ts 13 1000,sack 7001:8001,sack 5001:6001,sack 3001:4001>
            4 wait
        "#]],
    );
}

#[test]
fn s2_nothing_is_reported_to_a_peer_that_did_not_ask() {
    check_established(
        Profile { sack: false, ..plain() },
        "+0 < . 1001:2001(1000) ack 1 win 65535",
        expect![[r#"
            0 < . 1001:2001(1000) ack 1 win 65535
                > . 1:1(0) ack 1 win 65535
        "#]],
    );
}

#[test]
fn s3_a_fin_beyond_a_hole_is_acknowledged_selectively_at_once() {
    check_established(
        plain(),
        "+0 < . 101:201(100) ack 1 win 65535
         +1 < F. 301:301(0) ack 1 win 65535
         +1 < . 201:301(100) ack 1 win 65535
         +1 < P. 1:101(100) ack 1 win 65535",
        expect![[r#"
            0 < . 101:201(100) ack 1 win 65535
                > . 1:1(0) ack 1 win 65535 <sack 101:201>
            1 < F. 301:301(0) ack 1 win 65535
                > . 1:1(0) ack 1 win 65535 <sack 301:302,sack 101:201>
            2 < . 201:301(100) ack 1 win 65535
                > . 1:1(0) ack 1 win 65535 <sack 101:302>
            3 < P. 1:101(100) ack 1 win 65535
                > . 1:1(0) ack 302 win 65535
                ! Readable(300)
                ! PeerClosed
        "#]],
    );
}

#[test]
fn s3_a_fin_that_comes_with_data_beyond_a_hole_is_in_its_block() {
    check_established(
        plain(),
        "+0 < FP. 101:201(100) ack 1 win 65535
         +1 < F. 201:201(0) ack 1 win 65535
         +1 < P. 1:101(100) ack 1 win 65535
         +1 read 200",
        expect![[r#"
            0 < FP. 101:201(100) ack 1 win 65535
                > . 1:1(0) ack 1 win 65535 <sack 101:202>
            1 < F. 201:201(0) ack 1 win 65535
                > . 1:1(0) ack 1 win 65535 <sack 201:202,sack 101:202>
            2 < P. 1:101(100) ack 1 win 65535
                > . 1:1(0) ack 202 win 65535
                ! Readable(200)
                ! PeerClosed
            3 read 200
        "#]],
    );
}

#[test]
fn s3_a_selectively_acknowledged_fin_shows_what_was_lost_before_it() {
    check_established(
        Profile { rack: true, tail_loss_probe: true, ..plain() },
        "+0 write 100
         +50 shutdown
         +10 < . 1:1(0) ack 1 win 65535 <sack 101:102>
         +10 wait",
        expect![[r#"
            0 write 100
                > P. 1:101(100) ack 1 win 65535
            50 shutdown
                > F. 101:101(0) ack 1 win 65535
            60 < . 1:1(0) ack 1 win 65535 <sack 101:102>
                > P. 1:101(100) ack 1 win 65535
            70 wait
        "#]],
    );
}

#[test]
fn rfc2883_what_came_twice_is_told_once() {
    check_established(
        plain(),
        "+0 < P. 1:101(100) ack 1 win 65535
         +5 < P. 1:101(100) ack 1 win 65535
         +1 < . 201:301(100) ack 1 win 65535
         +1 < . 201:301(100) ack 1 win 65535
         +1 < . 101:201(100) ack 1 win 65535",
        expect![[r#"
            0 < P. 1:101(100) ack 1 win 65535
                > . 1:1(0) ack 101 win 65535
                ! Readable(100)
            5 < P. 1:101(100) ack 1 win 65535
                > . 1:1(0) ack 101 win 65535 <sack 1:101>
            6 < . 201:301(100) ack 1 win 65535
                > . 1:1(0) ack 101 win 65535 <sack 201:301>
            7 < . 201:301(100) ack 1 win 65535
                > . 1:1(0) ack 101 win 65535 <sack 201:301,sack 201:301>
            8 < . 101:201(100) ack 1 win 65535
                > . 1:1(0) ack 301 win 65535
                ! Readable(300)
        "#]],
    );
}
