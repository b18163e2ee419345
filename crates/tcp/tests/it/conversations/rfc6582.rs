//! RFC 6582: NewReno.

use expect_test::expect;
use mqttlab_tcp::{Profile, RecoveryPhase};

use super::script::{check_established, plain, run_established};

const TWO_LOSSES: &str = "+0 write 6000
         +10 < . 1:1(0) ack 1 win 65535
         +1 < . 1:1(0) ack 1 win 65535
         +1 < . 1:1(0) ack 1 win 65535
         +1 < . 1:1(0) ack 1 win 65535
         +10 < . 1:1(0) ack 2001 win 65535
         +10 < . 1:1(0) ack 6001 win 65535";

#[test]
fn s3_2_step_3_a_partial_acknowledgement_sends_the_next_hole() {
    check_established(
        Profile { sack: false, initial_window: 6, ..plain() },
        TWO_LOSSES,
        expect![[r#"
            0 write 6000
                > . 1:1001(1000) ack 1 win 65535
                > . 1001:2001(1000) ack 1 win 65535
                > . 2001:3001(1000) ack 1 win 65535
                > . 3001:4001(1000) ack 1 win 65535
                > . 4001:5001(1000) ack 1 win 65535
                > P. 5001:6001(1000) ack 1 win 65535
            10 < . 1:1(0) ack 1 win 65535
            11 < . 1:1(0) ack 1 win 65535
            12 < . 1:1(0) ack 1 win 65535
                > . 1:1001(1000) ack 1 win 65535
            13 < . 1:1(0) ack 1 win 65535
            23 < . 1:1(0) ack 2001 win 65535
                > . 2001:3001(1000) ack 1 win 65535
                ! Acknowledged(2000)
            33 < . 1:1(0) ack 6001 win 65535
                ! Acknowledged(6000)
        "#]],
    );
}

#[test]
fn s3_2_step_3_a_full_acknowledgement_ends_the_recovery_at_the_threshold() {
    let (_, endpoint) = run_established(Profile { sack: false, initial_window: 6, ..plain() }, TWO_LOSSES);
    let info = endpoint.info();
    assert_eq!((info.phase, info.congestion_window, info.slow_start_threshold), (RecoveryPhase::Open, 3, 3));
    assert_eq!((endpoint.counters().fast_recoveries, endpoint.counters().timeouts), (1, 0));
}
