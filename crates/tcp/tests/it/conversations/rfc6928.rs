//! RFC 6928: a larger initial window.

use expect_test::expect;
use mqttlab_tcp::{Profile, Role};

use super::script::{check, check_established, plain};

#[test]
fn s2_ten_segments_leave_before_the_first_acknowledgement() {
    check_established(
        plain(),
        "+0 write 20000",
        expect![[r#"
        0 write 20000
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
    "#]],
    );
}

#[test]
fn s2_after_two_lost_syns_it_is_one_segment() {
    check(
        Profile { initial_window: 3, sack: false, ..plain() },
        Role::Active,
        "+0 open
         +2500 < S. 0:0(0) ack 1 win 65535 <mss 1000>
         +0 write 3000",
        expect![[r#"
            0 open
                > S 0:0(0) win 65535 <mss 1000>
            1000 tick
                > S 0:0(0) win 65535 <mss 1000>
            2000 tick
                > S 0:0(0) win 65535 <mss 1000>
            2500 < S. 0:0(0) ack 1 win 65535 <mss 1000>
                > . 1:1(0) ack 1 win 65535
                ! Connected
            2500 write 3000
                > . 1:1001(1000) ack 1 win 65535
        "#]],
    );
}

#[test]
fn s2_one_lost_syn_is_forgiven_as_linux_does() {
    check(
        Profile { initial_window: 3, sack: false, ..plain() },
        Role::Active,
        "+0 open
         +1500 < S. 0:0(0) ack 1 win 65535 <mss 1000>
         +0 write 3000",
        expect![[r#"
            0 open
                > S 0:0(0) win 65535 <mss 1000>
            1000 tick
                > S 0:0(0) win 65535 <mss 1000>
            1500 < S. 0:0(0) ack 1 win 65535 <mss 1000>
                > . 1:1(0) ack 1 win 65535
                ! Connected
            1500 write 3000
                > . 1:1001(1000) ack 1 win 65535
                > . 1001:2001(1000) ack 1 win 65535
                > P. 2001:3001(1000) ack 1 win 65535
        "#]],
    );
}
