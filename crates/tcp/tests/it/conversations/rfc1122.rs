//! RFC 1122 §4.2: requirements on hosts.

use expect_test::expect;
use mqttlab_tcp::{DelayedAck, Profile};
use mqttlab_units::Duration;

use super::script::{check_established, plain, run_established};

fn every_second() -> Profile {
    Profile { delayed_ack: DelayedAck::EverySecond { timeout: Duration::from_ms(200) }, ..plain() }
}

#[test]
fn s4_2_3_2_every_second_segment_is_acknowledged_and_none_waits_for_long() {
    check_established(
        every_second(),
        "+0 < P. 1:101(100) ack 1 win 65535
         +0 read 100
         +50 < P. 101:201(100) ack 1 win 65535
         +0 read 100
         +50 < P. 201:301(100) ack 1 win 65535
         +300 wait",
        expect![[r#"
            0 < P. 1:101(100) ack 1 win 65535
                ! Readable(100)
            0 read 100
            50 < P. 101:201(100) ack 1 win 65535
                > . 1:1(0) ack 201 win 65535
                ! Readable(200)
            50 read 100
            100 < P. 201:301(100) ack 1 win 65535
                ! Readable(300)
            300 tick
                > . 1:1(0) ack 301 win 65535
            400 wait
        "#]],
    );
}

#[test]
fn s4_2_3_2_an_acknowledgement_rides_on_data() {
    check_established(
        every_second(),
        "+0 < P. 1:101(100) ack 1 win 65535
         +10 write 4
         +300 < . 101:101(0) ack 5 win 65535",
        expect![[r#"
            0 < P. 1:101(100) ack 1 win 65535
                ! Readable(100)
            10 write 4
                > P. 1:5(4) ack 101 win 65535
            220 tick
                > P. 1:5(4) ack 101 win 65535
            310 < . 101:101(0) ack 5 win 65535
                ! Acknowledged(4)
        "#]],
    );
}

#[test]
fn s4_2_3_2_without_delay_each_is_acknowledged() {
    check_established(
        Profile { delayed_ack: DelayedAck::Off, ..plain() },
        "+0 < P. 1:101(100) ack 1 win 65535\n+1 < P. 101:201(100) ack 1 win 65535",
        expect![[r#"
            0 < P. 1:101(100) ack 1 win 65535
                > . 1:1(0) ack 101 win 65535
                ! Readable(100)
            1 < P. 101:201(100) ack 1 win 65535
                > . 1:1(0) ack 201 win 65535
                ! Readable(200)
        "#]],
    );
}

#[test]
fn s4_2_3_3_the_window_closes_and_opens_by_segments() {
    check_established(
        Profile { receive_buffer: 3000, ..every_second() },
        "+0 < . 1:1001(1000) ack 1 win 65535
         +1 < . 1001:2001(1000) ack 1 win 65535
         +1 < P. 2001:3001(1000) ack 1 win 65535
         +200 < . 3001:3001(0) ack 1 win 65535
         +1 read 500
         +1 read 1000",
        expect![[r#"
            0 < . 1:1001(1000) ack 1 win 65535
                ! Readable(1000)
            1 < . 1001:2001(1000) ack 1 win 65535
                > . 1:1(0) ack 2001 win 1000
                ! Readable(2000)
            2 < P. 2001:3001(1000) ack 1 win 65535
                ! Readable(3000)
            202 tick
                > . 1:1(0) ack 3001 win 0
            202 < . 3001:3001(0) ack 1 win 65535
            203 read 500
            204 read 1000
                > . 1:1(0) ack 3001 win 1500
        "#]],
    );
}

#[test]
fn s4_2_3_4_a_small_window_is_not_filled_at_once() {
    check_established(
        plain(),
        "+0 write 1000
         +10 < . 1:1(0) ack 1001 win 300
         +0 write 2000
         +300 < . 1:1(0) ack 1301 win 4000",
        expect![[r#"
            0 write 1000
                > P. 1:1001(1000) ack 1 win 65535
            10 < . 1:1(0) ack 1001 win 300
                ! Acknowledged(1000)
            10 write 2000
            220 tick
                > . 1001:1301(300) ack 1 win 65535
            310 < . 1:1(0) ack 1301 win 4000
                > . 1301:2301(1000) ack 1 win 65535
                > P. 2301:3001(700) ack 1 win 65535
                ! Acknowledged(1300)
        "#]],
    );
}

#[test]
fn s4_2_2_13_data_after_the_application_has_gone_is_reset() {
    check_established(
        plain(),
        "+0 close
         +10 < P. 1:101(100) ack 2 win 65535",
        expect![[r#"
            0 close
                > F. 1:1(0) ack 1 win 65535
            10 < P. 1:101(100) ack 2 win 65535
                > R 2:2(0) win 0
                ! Acknowledged(0)
                ! Reset
        "#]],
    );
    check_established(
        plain(),
        "+0 < P. 1:101(100) ack 1 win 65535\n+1 close",
        expect![[r#"
            0 < P. 1:101(100) ack 1 win 65535
                > . 1:1(0) ack 101 win 65535
                ! Readable(100)
            1 close
                > R 1:1(0) win 0
        "#]],
    );
}

#[test]
fn s4_2_2_a_full_send_buffer_pushes_back() {
    check_established(
        Profile {
            send_buffer: 2500,
            send_buffer_max: None,
            send_truesize: false,
            initial_window: 4,
            ..plain()
        },
        "+0 write 4000
         +10 < . 1:1(0) ack 1001 win 65535
         +1 write 1500",
        expect![[r#"
            0 write 4000
                = 2500
                > . 1:1001(1000) ack 1 win 65535
                > . 1001:2001(1000) ack 1 win 65535
                > P. 2001:2501(500) ack 1 win 65535
            10 < . 1:1(0) ack 1001 win 65535
                ! Acknowledged(1000)
                ! Writable(1000)
            11 write 1500
                = 1000
                > P. 2501:3501(1000) ack 1 win 65535
        "#]],
    );
}

/// A buffer that is not set has room for two congestion windows (Linux `tcp_sndbuf_expand`): of ten segments at first, later of
/// the present one, when a writer waits and what it has written does not fill the window.
#[test]
fn linux_makes_room_for_the_congestion_window_when_the_buffer_is_what_stops_the_sender() {
    let script = "+0 write 1000000
         +10 < . 1:1(0) ack 10001 win 65535
         +0 write 1000000
         +10 < . 1:1(0) ack 30001 win 65535
         +0 write 1000000";
    let (transcript, _) = run_established(
        Profile { send_buffer: 16_384, send_buffer_max: Some(4 << 20), initial_window: 10, ..plain() },
        script,
    );
    let taken = transcript.lines().filter_map(|line| line.trim().strip_prefix("= "));
    // Skbs of half the peer's window: one is begun while less than 46,080 bytes of memory are taken, then 184,320.
    assert_eq!(taken.collect::<Vec<_>>(), ["64000", "0", "160000"]);
}
