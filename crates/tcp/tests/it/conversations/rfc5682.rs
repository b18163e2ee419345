//! RFC 5682 (F-RTO): a timeout that was needless, told without timestamps.

use expect_test::expect;
use mqttlab_tcp::Profile;

use super::script::{check_established, plain, run_established};

/// A timeout with two segments out, more to send, and an acknowledgement of the first.
const TIMEOUT: &str = "+0 write 2000
         +250 write 3000
         +50 < . 1:1(0) ack 1001 win 65535\n";
const LATE: &str = "+10 < . 1:1(0) ack 2001 win 65535\n+1 wait";
const LOST: &str = "+10 < . 1:1(0) ack 1001 win 65535 <sack 2001:3001>\n+1 wait";

#[test]
fn s3_1_new_data_goes_first_and_what_was_sent_once_shows_that_the_timeout_was_needless() {
    check_established(
        plain(),
        &format!("{TIMEOUT}{LATE}"),
        expect![[r#"
        0 write 2000
            > . 1:1001(1000) ack 1 win 65535
            > P. 1001:2001(1000) ack 1 win 65535
        210 tick
            > . 1:1001(1000) ack 1 win 65535
        250 write 3000
        300 < . 1:1(0) ack 1001 win 65535
            > . 2001:3001(1000) ack 1 win 65535
            > . 3001:4001(1000) ack 1 win 65535
            ! Acknowledged(1000)
        310 < . 1:1(0) ack 2001 win 65535
            > P. 4001:5001(1000) ack 1 win 65535
            ! Acknowledged(2000)
        311 wait
    "#]],
    );
    let (_, endpoint) = run_established(plain(), &format!("{TIMEOUT}{LATE}"));
    assert_eq!((endpoint.counters().undone, endpoint.info().slow_start_threshold), (1, u64::MAX));
    assert_eq!(endpoint.counters().retransmissions, 1);
}

#[test]
fn s3_1_step_3a_a_report_beyond_the_hole_shows_a_real_loss() {
    check_established(
        plain(),
        &format!("{TIMEOUT}{LOST}"),
        expect![[r#"
        0 write 2000
            > . 1:1001(1000) ack 1 win 65535
            > P. 1001:2001(1000) ack 1 win 65535
        210 tick
            > . 1:1001(1000) ack 1 win 65535
        250 write 3000
        300 < . 1:1(0) ack 1001 win 65535
            > . 2001:3001(1000) ack 1 win 65535
            > . 3001:4001(1000) ack 1 win 65535
            ! Acknowledged(1000)
        310 < . 1:1(0) ack 1001 win 65535 <sack 2001:3001>
            > P. 1001:2001(1000) ack 1 win 65535
        311 wait
    "#]],
    );
    let (_, endpoint) = run_established(plain(), &format!("{TIMEOUT}{LOST}"));
    assert_eq!((endpoint.counters().undone, endpoint.counters().retransmissions), (0, 2));
}

#[test]
fn other_stacks_repeat_at_once() {
    let (_, endpoint) = run_established(Profile { undo: false, ..plain() }, &format!("{TIMEOUT}{LATE}"));
    assert_eq!(endpoint.counters().retransmissions, 2);
}
