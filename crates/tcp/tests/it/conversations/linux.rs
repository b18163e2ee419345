//! Linux's acknowledgement modes, as measured: one-way streams are acknowledged on the application's read, and
//! after an answer the next acknowledgement waits 40 ms.

use expect_test::expect;
use mqttlab_tcp::{DelayedAck, Nagle, Profile};
use mqttlab_units::Duration;

use super::script::{check_established, plain};

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

#[test]
fn the_fourth_acknowledgement_of_a_gap_waits_for_more() {
    // Past the quick acknowledgements of the beginning, and with a round trip of 10 ms: a twentieth, and what the timer
    // may be late.
    let before = quick_ones();
    check_established(
        Profile { receive_buffer: 65_535, ..plain() },
        &format!(
            "{before}
             +10 < . 1701:1801(100) ack 1 win 65535
             +0.01 < . 1801:1901(100) ack 1 win 65535
             +0.01 < . 1901:2001(100) ack 1 win 65535
             +0.01 < . 2001:2101(100) ack 1 win 65535
             +0.01 < . 2101:2201(100) ack 1 win 65535
             +5 < . 2201:2301(100) ack 1 win 65535
             +0.1 < . 1601:1701(100) ack 1 win 65535
             +5 wait"
        ),
        expect![[r#"
            1 < P. 1:101(100) ack 1 win 65535
                > . 1:1(0) ack 101 win 65435
                ! Readable(100)
            1 read 100
            2 < P. 101:201(100) ack 1 win 65535
                > . 1:1(0) ack 201 win 65335
                ! Readable(200)
            2 read 100
            3 < P. 201:301(100) ack 1 win 65535
                > . 1:1(0) ack 301 win 65235
                ! Readable(300)
            3 read 100
            4 < P. 301:401(100) ack 1 win 65535
                > . 1:1(0) ack 401 win 65135
                ! Readable(400)
            4 read 100
            5 < P. 401:501(100) ack 1 win 65535
                > . 1:1(0) ack 501 win 65035
                ! Readable(500)
            5 read 100
            6 < P. 501:601(100) ack 1 win 65535
                > . 1:1(0) ack 601 win 64935
                ! Readable(600)
            6 read 100
            7 < P. 601:701(100) ack 1 win 65535
                > . 1:1(0) ack 701 win 64835
                ! Readable(700)
            7 read 100
            8 < P. 701:801(100) ack 1 win 65535
                > . 1:1(0) ack 801 win 64735
                ! Readable(800)
            8 read 100
            9 < P. 801:901(100) ack 1 win 65535
                > . 1:1(0) ack 901 win 64635
                ! Readable(900)
            9 read 100
            10 < P. 901:1001(100) ack 1 win 65535
                > . 1:1(0) ack 1001 win 64535
                ! Readable(1000)
            10 read 100
            11 < P. 1001:1101(100) ack 1 win 65535
                > . 1:1(0) ack 1101 win 65435
                ! Readable(1100)
            11 read 100
            12 < P. 1101:1201(100) ack 1 win 65535
                > . 1:1(0) ack 1201 win 65335
                ! Readable(1200)
            12 read 100
            13 < P. 1201:1301(100) ack 1 win 65535
                > . 1:1(0) ack 1301 win 65235
                ! Readable(1300)
            13 read 100
            14 < P. 1301:1401(100) ack 1 win 65535
                > . 1:1(0) ack 1401 win 65135
                ! Readable(1400)
            14 read 100
            15 < P. 1401:1501(100) ack 1 win 65535
                > . 1:1(0) ack 1501 win 65035
                ! Readable(1500)
            15 read 100
            16 < P. 1501:1601(100) ack 1 win 65535
                > . 1:1(0) ack 1601 win 64935
                ! Readable(1600)
            16 read 100
            26 < . 1701:1801(100) ack 1 win 65535
                > . 1:1(0) ack 1601 win 64935 <sack 1701:1801>
            26.01 < . 1801:1901(100) ack 1 win 65535
                > . 1:1(0) ack 1601 win 64935 <sack 1701:1901>
            26.02 < . 1901:2001(100) ack 1 win 65535
                > . 1:1(0) ack 1601 win 64935 <sack 1701:2001>
            26.03 < . 2001:2101(100) ack 1 win 65535
            26.04 < . 2101:2201(100) ack 1 win 65535
            26.63 tick
                > . 1:1(0) ack 1601 win 64935 <sack 1701:2201>
            31.04 < . 2201:2301(100) ack 1 win 65535
            31.14 < . 1601:1701(100) ack 1 win 65535
                > . 1:1(0) ack 2301 win 64235
                ! Readable(2300)
            36.14 wait
        "#]],
    );
}

#[test]
fn a_new_gap_is_told_of_at_once_again() {
    let before = quick_ones();
    check_established(
        Profile { receive_buffer: 65_535, ..plain() },
        &format!(
            "{before}
             +10 < . 1701:1801(100) ack 1 win 65535
             +0.01 < . 1801:1901(100) ack 1 win 65535
             +0.01 < . 1901:2001(100) ack 1 win 65535
             +0.01 < . 2101:2201(100) ack 1 win 65535
             +0.01 < . 1601:1701(100) ack 1 win 65535
             +0.01 < . 2201:2301(100) ack 1 win 65535
             +0.01 < . 2301:2401(100) ack 1 win 65535
             +0.01 < . 2401:2501(100) ack 1 win 65535
             +5 wait"
        ),
        expect![[r#"
            1 < P. 1:101(100) ack 1 win 65535
                > . 1:1(0) ack 101 win 65435
                ! Readable(100)
            1 read 100
            2 < P. 101:201(100) ack 1 win 65535
                > . 1:1(0) ack 201 win 65335
                ! Readable(200)
            2 read 100
            3 < P. 201:301(100) ack 1 win 65535
                > . 1:1(0) ack 301 win 65235
                ! Readable(300)
            3 read 100
            4 < P. 301:401(100) ack 1 win 65535
                > . 1:1(0) ack 401 win 65135
                ! Readable(400)
            4 read 100
            5 < P. 401:501(100) ack 1 win 65535
                > . 1:1(0) ack 501 win 65035
                ! Readable(500)
            5 read 100
            6 < P. 501:601(100) ack 1 win 65535
                > . 1:1(0) ack 601 win 64935
                ! Readable(600)
            6 read 100
            7 < P. 601:701(100) ack 1 win 65535
                > . 1:1(0) ack 701 win 64835
                ! Readable(700)
            7 read 100
            8 < P. 701:801(100) ack 1 win 65535
                > . 1:1(0) ack 801 win 64735
                ! Readable(800)
            8 read 100
            9 < P. 801:901(100) ack 1 win 65535
                > . 1:1(0) ack 901 win 64635
                ! Readable(900)
            9 read 100
            10 < P. 901:1001(100) ack 1 win 65535
                > . 1:1(0) ack 1001 win 64535
                ! Readable(1000)
            10 read 100
            11 < P. 1001:1101(100) ack 1 win 65535
                > . 1:1(0) ack 1101 win 65435
                ! Readable(1100)
            11 read 100
            12 < P. 1101:1201(100) ack 1 win 65535
                > . 1:1(0) ack 1201 win 65335
                ! Readable(1200)
            12 read 100
            13 < P. 1201:1301(100) ack 1 win 65535
                > . 1:1(0) ack 1301 win 65235
                ! Readable(1300)
            13 read 100
            14 < P. 1301:1401(100) ack 1 win 65535
                > . 1:1(0) ack 1401 win 65135
                ! Readable(1400)
            14 read 100
            15 < P. 1401:1501(100) ack 1 win 65535
                > . 1:1(0) ack 1501 win 65035
                ! Readable(1500)
            15 read 100
            16 < P. 1501:1601(100) ack 1 win 65535
                > . 1:1(0) ack 1601 win 64935
                ! Readable(1600)
            16 read 100
            26 < . 1701:1801(100) ack 1 win 65535
                > . 1:1(0) ack 1601 win 64935 <sack 1701:1801>
            26.01 < . 1801:1901(100) ack 1 win 65535
                > . 1:1(0) ack 1601 win 64935 <sack 1701:1901>
            26.02 < . 1901:2001(100) ack 1 win 65535
                > . 1:1(0) ack 1601 win 64935 <sack 1701:2001>
            26.03 < . 2101:2201(100) ack 1 win 65535
            26.04 < . 1601:1701(100) ack 1 win 65535
                > . 1:1(0) ack 2001 win 64535 <sack 2101:2201>
                ! Readable(2000)
            26.05 < . 2201:2301(100) ack 1 win 65535
                > . 1:1(0) ack 2001 win 64535 <sack 2101:2301>
            26.06 < . 2301:2401(100) ack 1 win 65535
                > . 1:1(0) ack 2001 win 64535 <sack 2101:2401>
            26.07 < . 2401:2501(100) ack 1 win 65535
            26.67 tick
                > . 1:1(0) ack 2001 win 64535 <sack 2101:2501>
            31.07 wait
        "#]],
    );
}

/// Sixteen segments, each of which is acknowledged at once.
fn quick_ones() -> String {
    (0..16)
        .map(|n| format!("+1 < P. {}:{}(100) ack 1 win 65535\n+0 read 100\n", 1 + 100 * n, 101 + 100 * n))
        .collect()
}

#[test]
fn full_segments_are_acknowledged_when_they_are_read_if_the_window_has_not_moved() {
    // RFC 1122 wants an acknowledgement of every second. Linux sends it as soon as the window it would offer is no
    // smaller than the last one, and that is so only once the program has read.
    let script: String = (0..18)
        .map(|n| format!("+1 < P. {}:{}(100) ack 1 win 65535\n+0 read 100\n", 1 + 100 * n, 101 + 100 * n))
        .collect();
    check_established(
        Profile { receive_buffer: 65_535, ..plain() },
        &format!(
            "{script}
             +10 < . 1801:2801(1000) ack 1 win 65535
             +0 < . 2801:3801(1000) ack 1 win 65535
             +0 < . 3801:4801(1000) ack 1 win 65535
             +0 < . 4801:5801(1000) ack 1 win 65535
             +0.05 read 4000
             +0 < . 5801:6801(1000) ack 1 win 65535
             +0 read 1000
             +0 < . 6801:7801(1000) ack 1 win 65535
             +0 read 1000"
        ),
        expect![[r#"
            1 < P. 1:101(100) ack 1 win 65535
                > . 1:1(0) ack 101 win 65435
                ! Readable(100)
            1 read 100
            2 < P. 101:201(100) ack 1 win 65535
                > . 1:1(0) ack 201 win 65335
                ! Readable(200)
            2 read 100
            3 < P. 201:301(100) ack 1 win 65535
                > . 1:1(0) ack 301 win 65235
                ! Readable(300)
            3 read 100
            4 < P. 301:401(100) ack 1 win 65535
                > . 1:1(0) ack 401 win 65135
                ! Readable(400)
            4 read 100
            5 < P. 401:501(100) ack 1 win 65535
                > . 1:1(0) ack 501 win 65035
                ! Readable(500)
            5 read 100
            6 < P. 501:601(100) ack 1 win 65535
                > . 1:1(0) ack 601 win 64935
                ! Readable(600)
            6 read 100
            7 < P. 601:701(100) ack 1 win 65535
                > . 1:1(0) ack 701 win 64835
                ! Readable(700)
            7 read 100
            8 < P. 701:801(100) ack 1 win 65535
                > . 1:1(0) ack 801 win 64735
                ! Readable(800)
            8 read 100
            9 < P. 801:901(100) ack 1 win 65535
                > . 1:1(0) ack 901 win 64635
                ! Readable(900)
            9 read 100
            10 < P. 901:1001(100) ack 1 win 65535
                > . 1:1(0) ack 1001 win 64535
                ! Readable(1000)
            10 read 100
            11 < P. 1001:1101(100) ack 1 win 65535
                > . 1:1(0) ack 1101 win 65435
                ! Readable(1100)
            11 read 100
            12 < P. 1101:1201(100) ack 1 win 65535
                > . 1:1(0) ack 1201 win 65335
                ! Readable(1200)
            12 read 100
            13 < P. 1201:1301(100) ack 1 win 65535
                > . 1:1(0) ack 1301 win 65235
                ! Readable(1300)
            13 read 100
            14 < P. 1301:1401(100) ack 1 win 65535
                > . 1:1(0) ack 1401 win 65135
                ! Readable(1400)
            14 read 100
            15 < P. 1401:1501(100) ack 1 win 65535
                > . 1:1(0) ack 1501 win 65035
                ! Readable(1500)
            15 read 100
            16 < P. 1501:1601(100) ack 1 win 65535
                > . 1:1(0) ack 1601 win 64935
                ! Readable(1600)
            16 read 100
            17 < P. 1601:1701(100) ack 1 win 65535
                ! Readable(1700)
            17 read 100
                > . 1:1(0) ack 1701 win 64835
            18 < P. 1701:1801(100) ack 1 win 65535
                ! Readable(1800)
            18 read 100
                > . 1:1(0) ack 1801 win 64735
            28 < . 1801:2801(1000) ack 1 win 65535
                ! Readable(2800)
            28 < . 2801:3801(1000) ack 1 win 65535
                ! Readable(3800)
            28 < . 3801:4801(1000) ack 1 win 65535
                ! Readable(4800)
            28 < . 4801:5801(1000) ack 1 win 65535
                ! Readable(5800)
            28.05 read 4000
                > . 1:1(0) ack 5801 win 65535
            28.05 < . 5801:6801(1000) ack 1 win 65535
                ! Readable(6800)
            28.05 read 1000
            28.05 < . 6801:7801(1000) ack 1 win 65535
                ! Readable(7800)
            28.05 read 1000
                > . 1:1(0) ack 7801 win 65535
        "#]],
    );
}

#[test]
fn a_repetition_leaves_before_the_data_beside_its_acknowledgement_are_taken() {
    check_established(
        Profile { nagle: Nagle::Off, rack: true, receive_buffer: 65_535, ..plain() },
        "+0 write 100
         +1 write 100
         +1 write 100
         +1 write 100
         +20 < P. 1:101(100) ack 1 win 65535 <sack 101:401>
         +1 read 100
         +1 wait",
        expect![[r#"
            0 write 100
                > P. 1:101(100) ack 1 win 65535
            1 write 100
                > P. 101:201(100) ack 1 win 65535
            2 write 100
                > P. 201:301(100) ack 1 win 65535
            3 write 100
                > P. 301:401(100) ack 1 win 65535
            23 < P. 1:101(100) ack 1 win 65535 <sack 101:401>
                > P. 1:101(100) ack 1 win 65535
                > . 401:401(0) ack 101 win 65435
                ! Readable(100)
            24 read 100
            25 wait
        "#]],
    );
}

#[test]
fn the_patience_with_what_may_come_is_the_round_trip_of_what_was_looked_at_last() {
    check_established(
        Profile { nagle: Nagle::Off, rack: true, receive_buffer: 65_535, ..plain() },
        "+0 write 100
         +20 write 100
         +20 write 100
         +46 < . 1:1(0) ack 101 win 65535 <sack 201:301>
         +100 wait",
        expect![[r#"
            0 write 100
                > P. 1:101(100) ack 1 win 65535
            20 write 100
                > P. 101:201(100) ack 1 win 65535
            40 write 100
                > P. 201:301(100) ack 1 win 65535
            86 < . 1:1(0) ack 101 win 65535 <sack 201:301>
                ! Acknowledged(100)
            110.5 tick
                > P. 101:201(100) ack 1 win 65535
            186 wait
        "#]],
    );
}

#[test]
fn a_selective_acknowledgement_measures_the_round_trip() {
    check_established(
        Profile { nagle: Nagle::Off, rack: true, receive_buffer: 65_535, ..plain() },
        "+0 write 100
         +1 write 100
         +190 < . 1:1(0) ack 1 win 65535 <sack 101:201>
         +1000 wait",
        expect![[r#"
            0 write 100
                > P. 1:101(100) ack 1 win 65535
            1 write 100
                > P. 101:201(100) ack 1 win 65535
            191 < . 1:1(0) ack 1 win 65535 <sack 101:201>
            194.5 tick
                > P. 1:101(100) ack 1 win 65535
            427 tick
                > P. 1:101(100) ack 1 win 65535
            892 tick
                > P. 1:101(100) ack 1 win 65535
            1191 wait
        "#]],
    );
}

#[test]
fn the_first_bare_acknowledgement_after_data_is_a_window_update_and_no_duplicate() {
    check_established(
        Profile {
            nagle: Nagle::Off,
            sack: false,
            fresh_is_no_duplicate: true,
            receive_buffer: 65_535,
            ..plain()
        },
        "+0 < P. 1:101(100) ack 1 win 65535
         +0 write 100
         +1 write 100
         +1 write 100
         +1 write 100
         +1 write 100
         +10 < . 101:101(0) ack 1 win 65535
         +1 < . 101:101(0) ack 1 win 65535
         +1 < . 101:101(0) ack 1 win 65535
         +1 < . 101:101(0) ack 1 win 65535",
        expect![[r#"
            0 < P. 1:101(100) ack 1 win 65535
                > . 1:1(0) ack 101 win 65435
                ! Readable(100)
            0 write 100
                > P. 1:101(100) ack 101 win 65435
            1 write 100
                > P. 101:201(100) ack 101 win 65435
            2 write 100
                > P. 201:301(100) ack 101 win 65435
            3 write 100
                > P. 301:401(100) ack 101 win 65435
            4 write 100
                > P. 401:501(100) ack 101 win 65435
            14 < . 101:101(0) ack 1 win 65535
            15 < . 101:101(0) ack 1 win 65535
            16 < . 101:101(0) ack 1 win 65535
            17 < . 101:101(0) ack 1 win 65535
                > P. 1:101(100) ack 101 win 65435
        "#]],
    );
}
