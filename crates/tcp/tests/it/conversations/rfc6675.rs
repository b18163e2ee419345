//! RFC 6675: recovery by selective acknowledgements.

use expect_test::expect;
use mqttlab_tcp::Profile;

use super::script::{check_established, plain};

#[test]
fn s5_holes_are_filled_in_order_and_then_new_data_follows() {
    check_established(
        Profile { initial_window: 8, ..plain() },
        "+0 write 12000
         +10 < . 1:1(0) ack 1 win 65535 <sack 1001:2001>
         +1 < . 1:1(0) ack 1 win 65535 <sack 3001:4001,sack 1001:2001>
         +1 < . 1:1(0) ack 1 win 65535 <sack 3001:5001,sack 1001:2001>
         +1 < . 1:1(0) ack 1 win 65535 <sack 3001:6001,sack 1001:2001>
         +1 < . 1:1(0) ack 1 win 65535 <sack 3001:7001,sack 1001:2001>
         +1 < . 1:1(0) ack 1 win 65535 <sack 3001:8001,sack 1001:2001>
         +5 < . 1:1(0) ack 2001 win 65535 <sack 3001:8001>
         +5 < . 1:1(0) ack 10001 win 65535",
        expect![[r#"
            0 write 12000
                > . 1:1001(1000) ack 1 win 65535
                > . 1001:2001(1000) ack 1 win 65535
                > . 2001:3001(1000) ack 1 win 65535
                > . 3001:4001(1000) ack 1 win 65535
                > . 4001:5001(1000) ack 1 win 65535
                > . 5001:6001(1000) ack 1 win 65535
                > . 6001:7001(1000) ack 1 win 65535
                > . 7001:8001(1000) ack 1 win 65535
            10 < . 1:1(0) ack 1 win 65535 <sack 1001:2001>
                > . 8001:9001(1000) ack 1 win 65535
            11 < . 1:1(0) ack 1 win 65535 <sack 3001:4001,sack 1001:2001>
                > . 9001:10001(1000) ack 1 win 65535
            12 < . 1:1(0) ack 1 win 65535 <sack 3001:5001,sack 1001:2001>
                > . 1:1001(1000) ack 1 win 65535
            13 < . 1:1(0) ack 1 win 65535 <sack 3001:6001,sack 1001:2001>
            14 < . 1:1(0) ack 1 win 65535 <sack 3001:7001,sack 1001:2001>
            15 < . 1:1(0) ack 1 win 65535 <sack 3001:8001,sack 1001:2001>
                > . 2001:3001(1000) ack 1 win 65535
            20 < . 1:1(0) ack 2001 win 65535 <sack 3001:8001>
                > . 10001:11001(1000) ack 1 win 65535
                ! Acknowledged(2000)
            25 < . 1:1(0) ack 10001 win 65535
                > P. 11001:12001(1000) ack 1 win 65535
                ! Acknowledged(10000)
        "#]],
    );
}

#[test]
fn s5_1_after_a_timeout_what_was_reported_is_not_sent_again() {
    check_established(
        Profile { initial_window: 4, ..plain() },
        "+0 write 4000
         +10 < . 1:1(0) ack 1 win 65535 <sack 2001:4001>
         +240 wait
         +10 < . 1:1(0) ack 1001 win 65535 <sack 2001:4001>
         +10 < . 1:1(0) ack 4001 win 65535",
        expect![[r#"
            0 write 4000
                > . 1:1001(1000) ack 1 win 65535
                > . 1001:2001(1000) ack 1 win 65535
                > . 2001:3001(1000) ack 1 win 65535
                > P. 3001:4001(1000) ack 1 win 65535
            10 < . 1:1(0) ack 1 win 65535 <sack 2001:4001>
            210 tick
                > . 1:1001(1000) ack 1 win 65535
            250 wait
            260 < . 1:1(0) ack 1001 win 65535 <sack 2001:4001>
                > . 1001:2001(1000) ack 1 win 65535
                ! Acknowledged(1000)
            270 < . 1:1(0) ack 4001 win 65535
                ! Acknowledged(4000)
        "#]],
    );
}

#[test]
fn s6_the_timer_starts_anew_when_the_first_segment_is_sent_again() {
    check_established(
        plain(),
        "+0 write 4000
         +190 < . 1:1(0) ack 1 win 65535 <sack 1001:2001>
         +1 < . 1:1(0) ack 1 win 65535 <sack 1001:3001>
         +1 < . 1:1(0) ack 1 win 65535 <sack 1001:4001>
         +630 wait
         +10 wait",
        expect![[r#"
            0 write 4000
                > . 1:1001(1000) ack 1 win 65535
                > . 1001:2001(1000) ack 1 win 65535
                > . 2001:3001(1000) ack 1 win 65535
                > P. 3001:4001(1000) ack 1 win 65535
            190 < . 1:1(0) ack 1 win 65535 <sack 1001:2001>
            191 < . 1:1(0) ack 1 win 65535 <sack 1001:3001>
            192 < . 1:1(0) ack 1 win 65535 <sack 1001:4001>
                > . 1:1001(1000) ack 1 win 65535
            630.023437 tick
                > . 1:1001(1000) ack 1 win 65535
            822 wait
            832 wait
        "#]],
    );
}
