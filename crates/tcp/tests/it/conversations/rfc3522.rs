//! RFC 3522 and RFC 4015: taking back what was needless.

use expect_test::expect;
use mqttlab_tcp::Profile;

use super::script::{check_established, plain, run_established};

const LATE: &str = "+0 write 5000
         +250 wait
         +50 < . 1:1(0) ack 1001 win 65535 <ts 1300 10>
         +1 < . 1:1(0) ack 5001 win 65535 <ts 1301 10>";

fn stamped(undo: bool) -> Profile {
    Profile { timestamps: true, undo, mss: 1012, ..plain() }
}

#[test]
fn s3_2_an_echo_from_before_the_retransmission_shows_it_was_needless() {
    check_established(
        stamped(true),
        LATE,
        expect![[r#"
            0 write 5000
                > . 1:1001(1000) ack 1 win 65535 <ts 10 1000>
                > . 1001:2001(1000) ack 1 win 65535 <ts 10 1000>
                > . 2001:3001(1000) ack 1 win 65535 <ts 10 1000>
                > . 3001:4001(1000) ack 1 win 65535 <ts 10 1000>
                > P. 4001:5001(1000) ack 1 win 65535 <ts 10 1000>
            210 tick
                > . 1:1001(1000) ack 1 win 65535 <ts 220 1000>
            250 wait
            300 < . 1:1(0) ack 1001 win 65535 <ts 1300 10>
                ! Acknowledged(1000)
            301 < . 1:1(0) ack 5001 win 65535 <ts 1301 10>
                ! Acknowledged(5000)
        "#]],
    );
}

#[test]
fn rfc4015_s3_the_window_is_as_before() {
    let (_, with) = run_established(stamped(true), LATE);
    let (_, without) = run_established(stamped(false), LATE);
    assert_eq!((with.info().slow_start_threshold, with.counters().undone), (u64::MAX, 1));
    assert!(with.info().congestion_window >= 10);
    assert_eq!((without.info().slow_start_threshold, without.counters().undone), (5, 0));
}
