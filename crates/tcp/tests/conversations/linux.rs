//! Linux's acknowledgement modes, as measured: one-way streams are acknowledged on the application's read, and
//! after an answer the next acknowledgement waits 40 ms.

use expect_test::expect;
use mqttlab_tcp::{DelayedAck, Nagle, Profile};
use mqttlab_units::Duration;

use crate::script::{check_established, plain};

#[test]
fn a_one_way_stream_is_acknowledged_at_once_or_on_read() {
    check_established(
        Profile { receive_buffer: 65_535, ..plain() },
        &(0..20)
            .map(|n| format!("+5 < P. {}:{}(100) ack 1 win 65535\n+1 read 100\n", 1 + 100 * n, 101 + 100 * n))
            .collect::<String>(),
        expect![[r#"
            5 < P. 1:101(100) ack 1 win 65535
                > . 1:1(0) ack 101 win 65435
                ! Readable(100)
            6 read 100
            11 < P. 101:201(100) ack 1 win 65535
                > . 1:1(0) ack 201 win 65335
                ! Readable(200)
            12 read 100
            17 < P. 201:301(100) ack 1 win 65535
                > . 1:1(0) ack 301 win 65235
                ! Readable(300)
            18 read 100
            23 < P. 301:401(100) ack 1 win 65535
                > . 1:1(0) ack 401 win 65135
                ! Readable(400)
            24 read 100
            29 < P. 401:501(100) ack 1 win 65535
                > . 1:1(0) ack 501 win 65035
                ! Readable(500)
            30 read 100
            35 < P. 501:601(100) ack 1 win 65535
                > . 1:1(0) ack 601 win 64935
                ! Readable(600)
            36 read 100
            41 < P. 601:701(100) ack 1 win 65535
                > . 1:1(0) ack 701 win 64835
                ! Readable(700)
            42 read 100
            47 < P. 701:801(100) ack 1 win 65535
                > . 1:1(0) ack 801 win 64735
                ! Readable(800)
            48 read 100
            53 < P. 801:901(100) ack 1 win 65535
                > . 1:1(0) ack 901 win 64635
                ! Readable(900)
            54 read 100
            59 < P. 901:1001(100) ack 1 win 65535
                > . 1:1(0) ack 1001 win 64535
                ! Readable(1000)
            60 read 100
            65 < P. 1001:1101(100) ack 1 win 65535
                > . 1:1(0) ack 1101 win 65435
                ! Readable(1100)
            66 read 100
            71 < P. 1101:1201(100) ack 1 win 65535
                > . 1:1(0) ack 1201 win 65335
                ! Readable(1200)
            72 read 100
            77 < P. 1201:1301(100) ack 1 win 65535
                > . 1:1(0) ack 1301 win 65235
                ! Readable(1300)
            78 read 100
            83 < P. 1301:1401(100) ack 1 win 65535
                > . 1:1(0) ack 1401 win 65135
                ! Readable(1400)
            84 read 100
            89 < P. 1401:1501(100) ack 1 win 65535
                > . 1:1(0) ack 1501 win 65035
                ! Readable(1500)
            90 read 100
            95 < P. 1501:1601(100) ack 1 win 65535
                > . 1:1(0) ack 1601 win 64935
                ! Readable(1600)
            96 read 100
            101 < P. 1601:1701(100) ack 1 win 65535
                ! Readable(1700)
            102 read 100
                > . 1:1(0) ack 1701 win 64835
            107 < P. 1701:1801(100) ack 1 win 65535
                ! Readable(1800)
            108 read 100
                > . 1:1(0) ack 1801 win 64735
            113 < P. 1801:1901(100) ack 1 win 65535
                ! Readable(1900)
            114 read 100
                > . 1:1(0) ack 1901 win 64635
            119 < P. 1901:2001(100) ack 1 win 65535
                ! Readable(2000)
            120 read 100
                > . 1:1(0) ack 2001 win 65535
        "#]],
    );
}

#[test]
fn after_an_answer_the_acknowledgement_waits_40_ms() {
    check_established(
        plain(),
        "+0 < P. 1:101(100) ack 1 win 65535
         +0 read 100
         +1 write 4
         +9 < P. 101:201(100) ack 5 win 65535
         +0 read 100
         +100 wait",
        expect![[r#"
            0 < P. 1:101(100) ack 1 win 65535
                > . 1:1(0) ack 101 win 65535
                ! Readable(100)
            0 read 100
            1 write 4
                > P. 1:5(4) ack 101 win 65535
            10 < P. 101:201(100) ack 5 win 65535
                ! Acknowledged(4)
                ! Readable(200)
            10 read 100
            50 tick
                > . 5:5(0) ack 201 win 65535
            110 wait
        "#]],
    );
}

#[test]
fn in_ping_pong_the_second_small_segment_is_acknowledged_on_read() {
    check_established(
        plain(),
        "+0 < P. 1:101(100) ack 1 win 65535
         +0 read 100
         +1 write 4
         +9 < P. 101:201(100) ack 5 win 65535
         +0 read 100
         +5 < P. 201:301(100) ack 5 win 65535
         +0 read 100",
        expect![[r#"
            0 < P. 1:101(100) ack 1 win 65535
                > . 1:1(0) ack 101 win 65535
                ! Readable(100)
            0 read 100
            1 write 4
                > P. 1:5(4) ack 101 win 65535
            10 < P. 101:201(100) ack 5 win 65535
                ! Acknowledged(4)
                ! Readable(200)
            10 read 100
            15 < P. 201:301(100) ack 5 win 65535
                ! Readable(300)
            15 read 100
                > . 5:5(0) ack 301 win 65535
        "#]],
    );
}

#[test]
fn the_timer_leaves_ping_pong() {
    check_established(
        plain(),
        "+0 < P. 1:101(100) ack 1 win 65535
         +0 read 100
         +1 write 4
         +9 < P. 101:201(100) ack 5 win 65535
         +0 read 100
         +60 < P. 201:301(100) ack 5 win 65535
         +0 read 100",
        expect![[r#"
            0 < P. 1:101(100) ack 1 win 65535
                > . 1:1(0) ack 101 win 65535
                ! Readable(100)
            0 read 100
            1 write 4
                > P. 1:5(4) ack 101 win 65535
            10 < P. 101:201(100) ack 5 win 65535
                ! Acknowledged(4)
                ! Readable(200)
            10 read 100
            50 tick
                > . 5:5(0) ack 201 win 65535
            70 < P. 201:301(100) ack 5 win 65535
                > . 5:5(0) ack 301 win 65535
                ! Readable(300)
            70 read 100
        "#]],
    );
}

#[test]
fn a_small_minimum_timeout_shortens_the_delay() {
    let mut profile = plain();
    profile.rto.min = Duration::from_ms(20);
    check_established(
        profile,
        "+0 < P. 1:101(100) ack 1 win 65535
         +0 read 100
         +1 write 4
         +9 < P. 101:201(100) ack 5 win 65535
         +0 read 100
         +100 wait",
        expect![[r#"
            0 < P. 1:101(100) ack 1 win 65535
                > . 1:1(0) ack 101 win 65535
                ! Readable(100)
            0 read 100
            1 write 4
                > P. 1:5(4) ack 101 win 65535
            10 < P. 101:201(100) ack 5 win 65535
                ! Acknowledged(4)
                ! Readable(200)
            10 read 100
            30 tick
                > . 5:5(0) ack 201 win 65535
            110 wait
        "#]],
    );
}

#[test]
fn quickack_acknowledges_all() {
    check_established(
        Profile { delayed_ack: DelayedAck::Off, ..plain() },
        "+0 < P. 1:101(100) ack 1 win 65535
         +1 write 4
         +9 < P. 101:201(100) ack 5 win 65535",
        expect![[r#"
            0 < P. 1:101(100) ack 1 win 65535
                > . 1:1(0) ack 101 win 65535
                ! Readable(100)
            1 write 4
                > P. 1:5(4) ack 101 win 65535
            10 < P. 101:201(100) ack 5 win 65535
                > . 5:5(0) ack 201 win 65535
                ! Acknowledged(4)
                ! Readable(200)
        "#]],
    );
}

#[test]
fn a_buffer_of_17_fragments_does_not_wait_for_more() {
    let interleaved = Profile { nagle: Nagle::Minshall, ..plain() };
    let writes = "+1 write_apart 4\n".repeat(19);
    let script = format!("+0 write 4\n{writes}+50 < . 1:1(0) ack 73 win 65535");
    check_established(
        interleaved,
        &script,
        expect![[r#"
        0 write 4
            > P. 1:5(4) ack 1 win 65535
        1 write_apart 4
        2 write_apart 4
        3 write_apart 4
        4 write_apart 4
        5 write_apart 4
        6 write_apart 4
        7 write_apart 4
        8 write_apart 4
        9 write_apart 4
        10 write_apart 4
        11 write_apart 4
        12 write_apart 4
        13 write_apart 4
        14 write_apart 4
        15 write_apart 4
        16 write_apart 4
        17 write_apart 4
        18 write_apart 4
            > P. 5:73(68) ack 1 win 65535
        19 write_apart 4
        69 < . 1:1(0) ack 73 win 65535
            > P. 73:81(8) ack 1 win 65535
            ! Acknowledged(72)
    "#]],
    );
}

#[test]
fn writes_to_one_socket_alone_share_a_fragment() {
    let writes = "+1 write 4\n".repeat(19);
    let script = format!("+0 write 4\n{writes}+50 < . 1:1(0) ack 5 win 65535");
    check_established(
        Profile { nagle: Nagle::Minshall, ..plain() },
        &script,
        expect![[r#"
        0 write 4
            > P. 1:5(4) ack 1 win 65535
        1 write 4
        2 write 4
        3 write 4
        4 write 4
        5 write 4
        6 write 4
        7 write 4
        8 write 4
        9 write 4
        10 write 4
        11 write 4
        12 write 4
        13 write 4
        14 write 4
        15 write 4
        16 write 4
        17 write 4
        18 write 4
        19 write 4
        69 < . 1:1(0) ack 5 win 65535
            > P. 5:81(76) ack 1 win 65535
            ! Acknowledged(4)
    "#]],
    );
}
