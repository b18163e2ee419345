//! RFC 7323: window scale and timestamps.

use expect_test::expect;
use mqttlab_tcp::{Profile, Role};

use super::script::{check, check_established, plain};

fn stamped() -> Profile {
    Profile { timestamps: true, ..plain() }
}

#[test]
fn s2_2_windows_are_scaled_by_what_each_side_said() {
    check(
        Profile { window_scale: Some(3), receive_buffer: 80_000, ..plain() },
        Role::Active,
        "+0 open
         +10 < S. 0:0(0) ack 1 win 1000 <mss 1000,wscale 2>
         +0 < P. 1:801(800) ack 1 win 400
         +0 write 3000",
        expect![[r#"
            0 open
                > S 0:0(0) win 65535 <mss 1000,sackOK,wscale 3>
            10 < S. 0:0(0) ack 1 win 1000 <mss 1000,wscale 2>
                > . 1:1(0) ack 1 win 10000
                ! Connected
            10 < P. 1:801(800) ack 1 win 400
                > . 1:1(0) ack 801 win 9900
                ! Readable(800)
            10 write 3000
                > . 1:1001(1000) ack 801 win 9900
        "#]],
    );
}

/// Linux's `tcp_bound_to_half_wnd`: a peer with a small window gets two segments of it at a time.
#[test]
fn linux_sends_no_segment_longer_than_half_of_the_largest_window() {
    check(
        Profile { window_scale: Some(3), receive_buffer: 80_000, half_window_segments: true, ..plain() },
        Role::Active,
        "+0 open
         +10 < S. 0:0(0) ack 1 win 1000 <mss 1000,wscale 2>
         +0 < P. 1:801(800) ack 1 win 400
         +0 write 3000",
        expect![[r#"
            0 open
                > S 0:0(0) win 65535 <mss 1000,sackOK,wscale 3>
            10 < S. 0:0(0) ack 1 win 1000 <mss 1000,wscale 2>
                > . 1:1(0) ack 1 win 10000
                ! Connected
            10 < P. 1:801(800) ack 1 win 400
                > . 1:1(0) ack 801 win 9900
                ! Readable(800)
            10 write 3000
                > . 1:801(800) ack 801 win 9900
                > . 801:1601(800) ack 801 win 9900
        "#]],
    );
}

#[test]
fn s2_2_there_is_no_scale_unless_both_want_it() {
    check(
        Profile { window_scale: Some(3), receive_buffer: 80_000, ..plain() },
        Role::Passive,
        "+0 < S 0:0(0) win 1000 <mss 1000>
         +10 < . 1:1(0) ack 1 win 1000",
        expect![[r#"
            0 < S 0:0(0) win 1000 <mss 1000>
                > S. 0:0(0) ack 1 win 65535 <mss 1000>
            10 < . 1:1(0) ack 1 win 1000
                ! Connected
        "#]],
    );
}

#[test]
fn s3_2_timestamps_cost_twelve_bytes_of_each_segment() {
    check_established(
        stamped(),
        "+0 write 2000",
        expect![[r#"
            0 write 2000
                > . 1:989(988) ack 1 win 65535 <ts 10 1000>
                > . 989:1977(988) ack 1 win 65535 <ts 10 1000>
                > P. 1977:2001(24) ack 1 win 65535 <ts 10 1000>
        "#]],
    );
}

#[test]
fn s4_3_the_echo_is_of_the_segment_that_the_acknowledgement_is_about() {
    check_established(
        stamped(),
        "+0 < P. 1:101(100) ack 1 win 65535 <ts 1010 10>
         +5 < P. 201:301(100) ack 1 win 65535 <ts 1020 10>
         +5 < P. 101:201(100) ack 1 win 65535 <ts 1015 10>",
        expect![[r#"
            0 < P. 1:101(100) ack 1 win 65535 <ts 1010 10>
                > . 1:1(0) ack 101 win 65535 <ts 10 1010>
                ! Readable(100)
            5 < P. 201:301(100) ack 1 win 65535 <ts 1020 10>
                > . 1:1(0) ack 101 win 65535 <ts 15 1010,sack 201:301>
            10 < P. 101:201(100) ack 1 win 65535 <ts 1015 10>
                > . 1:1(0) ack 301 win 65535 <ts 20 1015>
                ! Readable(300)
        "#]],
    );
}

#[test]
fn s5_3_old_segments_are_answered_but_not_taken() {
    check_established(
        stamped(),
        "+0 < P. 1:101(100) ack 1 win 65535 <ts 1010 10>
         +5 < P. 101:201(100) ack 1 win 65535 <ts 900 10>",
        expect![[r#"
            0 < P. 1:101(100) ack 1 win 65535 <ts 1010 10>
                > . 1:1(0) ack 101 win 65535 <ts 10 1010>
                ! Readable(100)
            5 < P. 101:201(100) ack 1 win 65535 <ts 900 10>
                > . 1:1(0) ack 101 win 65535 <ts 15 1010>
        "#]],
    );
}

#[test]
fn s4_1_a_retransmitted_segment_is_measured_by_its_echo() {
    check_established(
        stamped(),
        "+0 write 100
         +400 < . 1:1(0) ack 101 win 65535 <ts 1400 220>
         +0 write 100
         +5000 wait",
        expect![[r#"
            0 write 100
                > P. 1:101(100) ack 1 win 65535 <ts 10 1000>
            210 tick
                > P. 1:101(100) ack 1 win 65535 <ts 220 1000>
            400 < . 1:1(0) ack 101 win 65535 <ts 1400 220>
                ! Acknowledged(100)
            400 write 100
                > P. 101:201(100) ack 1 win 65535 <ts 410 1400>
            632.5 tick
                > P. 101:201(100) ack 1 win 65535 <ts 642 1400>
            1097.5 tick
                > P. 101:201(100) ack 1 win 65535 <ts 1107 1400>
            2027.5 tick
                > P. 101:201(100) ack 1 win 65535 <ts 2037 1400>
            3887.5 tick
                > P. 101:201(100) ack 1 win 65535 <ts 3897 1400>
            5400 wait
        "#]],
    );
}

#[test]
fn s4_3_which_of_two_syns_is_echoed_is_the_stacks_choice() {
    for (echoes_latest, echoed) in [(false, 1000), (true, 4000)] {
        let mut profile = stamped();
        profile.syn.echoes_latest = echoes_latest;
        let mut passive = mqttlab_tcp::Endpoint::new(profile, mqttlab_tcp::Role::Passive);
        let echo = |passive: &mut mqttlab_tcp::Endpoint, value: u32| {
            let timestamps = Some(mqttlab_tcp::Timestamps { value, echo: 0 });
            let syn =
                mqttlab_tcp::Segment { flags: mqttlab_tcp::Flags::SYN, timestamps, ..Default::default() };
            passive.receive(mqttlab_units::Instant::from_ns(u64::from(value) * 1_000_000), &syn);
            match passive.poll() {
                Some(mqttlab_tcp::TcpOutput::Transmit(answer)) => answer.timestamps.unwrap().echo,
                other => panic!("no SYN-ACK, but {other:?}"),
            }
        };
        assert_eq!(echo(&mut passive, 1000), 1000);
        assert_eq!(echo(&mut passive, 4000), echoed);
    }
}

#[test]
fn s4_3_linux_echoes_a_repetition_of_what_it_acknowledged_last() {
    let script = "+0 < P. 1:101(100) ack 1 win 65535 <ts 1010 10>
                  +300 < P. 1:101(100) ack 1 win 65535 <ts 1310 10>
                  +100 < P. 101:201(100) ack 1 win 65535 <ts 1410 10>
                  +300 < P. 1:101(100) ack 1 win 65535 <ts 1710 10>";
    check_established(
        stamped(),
        script,
        expect![[r#"
            0 < P. 1:101(100) ack 1 win 65535 <ts 1010 10>
                > . 1:1(0) ack 101 win 65535 <ts 10 1010>
                ! Readable(100)
            300 < P. 1:101(100) ack 1 win 65535 <ts 1310 10>
                > . 1:1(0) ack 101 win 65535 <ts 310 1310,sack 1:101>
            400 < P. 101:201(100) ack 1 win 65535 <ts 1410 10>
                > . 1:1(0) ack 201 win 65535 <ts 410 1410>
                ! Readable(200)
            700 < P. 1:101(100) ack 1 win 65535 <ts 1710 10>
                > . 1:1(0) ack 201 win 65535 <ts 710 1410,sack 1:101>
        "#]],
    );
    check_established(
        Profile { echoes_repetitions: false, ..stamped() },
        "+0 < P. 1:101(100) ack 1 win 65535 <ts 1010 10>
         +300 < P. 1:101(100) ack 1 win 65535 <ts 1310 10>",
        expect![[r#"
            0 < P. 1:101(100) ack 1 win 65535 <ts 1010 10>
                > . 1:1(0) ack 101 win 65535 <ts 10 1010>
                ! Readable(100)
            300 < P. 1:101(100) ack 1 win 65535 <ts 1310 10>
                > . 1:1(0) ack 101 win 65535 <ts 310 1010,sack 1:101>
        "#]],
    );
}

/// Linux's `tcp_clean_rtx_queue`: what it merged when it sent it again is one segment, and a part of it measures nothing.
#[test]
fn s4_1_linux_measures_by_the_echo_only_what_covers_a_whole_segment() {
    check_established(
        Profile { nagle: mqttlab_tcp::Nagle::Off, ..stamped() },
        "+0 write 100
         +1 write 100
         +799 < . 1:1(0) ack 101 win 65535 <ts 1800 10>
         +0 < . 1:1(0) ack 201 win 65535 <ts 1800 11>
         +0 write 100
         +1000 wait",
        expect![[r#"
            0 write 100
                > P. 1:101(100) ack 1 win 65535 <ts 10 1000>
            1 write 100
                > P. 101:201(100) ack 1 win 65535 <ts 11 1000>
            210 tick
                > P. 1:201(200) ack 1 win 65535 <ts 220 1000>
            630 tick
                > P. 1:201(200) ack 1 win 65535 <ts 640 1000>
            800 < . 1:1(0) ack 101 win 65535 <ts 1800 10>
                ! Acknowledged(100)
            800 < . 1:1(0) ack 201 win 65535 <ts 1800 11>
                ! Acknowledged(200)
            800 write 100
                > P. 201:301(100) ack 1 win 65535 <ts 810 1800>
            1712.625 tick
                > P. 201:301(100) ack 1 win 65535 <ts 1722 1800>
            1800 wait
        "#]],
    );
}
