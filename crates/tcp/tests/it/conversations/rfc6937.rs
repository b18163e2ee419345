//! RFC 6937: proportional rate reduction.

use expect_test::expect;
use mqttlab_tcp::Profile;

use super::script::{check_established, plain};

#[test]
fn s3_every_second_delivery_lets_one_segment_go() {
    check_established(
        Profile { initial_window: 10, rate_reduction: true, ..plain() },
        "+0 write 30000
         +10 < . 1:1(0) ack 1 win 65535 <sack 1001:2001>
         +1 < . 1:1(0) ack 1 win 65535 <sack 1001:3001>
         +1 < . 1:1(0) ack 1 win 65535 <sack 1001:4001>
         +1 < . 1:1(0) ack 1 win 65535 <sack 1001:5001>
         +1 < . 1:1(0) ack 1 win 65535 <sack 1001:6001>
         +1 < . 1:1(0) ack 1 win 65535 <sack 1001:7001>
         +1 < . 1:1(0) ack 1 win 65535 <sack 1001:8001>",
        expect![[r#"
            0 write 30000
                > . 1:1001(1000) ack 1 win 65535
                > . 1001:2001(1000) ack 1 win 65535
                > . 2001:3001(1000) ack 1 win 65535
                > . 3001:4001(1000) ack 1 win 65535
                > . 4001:5001(1000) ack 1 win 65535
                > . 5001:6001(1000) ack 1 win 65535
                > . 6001:7001(1000) ack 1 win 65535
                > . 7001:8001(1000) ack 1 win 65535
                > . 8001:9001(1000) ack 1 win 65535
                > . 9001:10001(1000) ack 1 win 65535
            10 < . 1:1(0) ack 1 win 65535 <sack 1001:2001>
                > . 10001:11001(1000) ack 1 win 65535
            11 < . 1:1(0) ack 1 win 65535 <sack 1001:3001>
                > . 11001:12001(1000) ack 1 win 65535
            12 < . 1:1(0) ack 1 win 65535 <sack 1001:4001>
                > . 1:1001(1000) ack 1 win 65535
            13 < . 1:1(0) ack 1 win 65535 <sack 1001:5001>
            14 < . 1:1(0) ack 1 win 65535 <sack 1001:6001>
                > . 12001:13001(1000) ack 1 win 65535
            15 < . 1:1(0) ack 1 win 65535 <sack 1001:7001>
            16 < . 1:1(0) ack 1 win 65535 <sack 1001:8001>
                > . 13001:14001(1000) ack 1 win 65535
        "#]],
    );
}

#[test]
fn s3_without_progress_or_with_further_loss_the_window_follows_deliveries_alone() {
    check_established(
        Profile { initial_window: 10, rate_reduction: true, ..plain() },
        "+0 write 4000
         +10 < . 1:1(0) ack 1 win 65535 <sack 1001:2001>
         +1 < . 1:1(0) ack 1 win 65535 <sack 1001:3001>
         +1 < . 1:1(0) ack 1 win 65535 <sack 1001:4001>
         +1 write 2000
         +7 < . 1:1(0) ack 4001 win 65535",
        expect![[r#"
            0 write 4000
                > . 1:1001(1000) ack 1 win 65535
                > . 1001:2001(1000) ack 1 win 65535
                > . 2001:3001(1000) ack 1 win 65535
                > P. 3001:4001(1000) ack 1 win 65535
            10 < . 1:1(0) ack 1 win 65535 <sack 1001:2001>
            11 < . 1:1(0) ack 1 win 65535 <sack 1001:3001>
            12 < . 1:1(0) ack 1 win 65535 <sack 1001:4001>
                > . 1:1001(1000) ack 1 win 65535
            13 write 2000
            20 < . 1:1(0) ack 4001 win 65535
                > . 4001:5001(1000) ack 1 win 65535
                > P. 5001:6001(1000) ack 1 win 65535
                ! Acknowledged(4000)
        "#]],
    );
}
