//! RFC 3042: limited transmit.

use expect_test::expect;
use mqttlab_tcp::Profile;

use super::script::{check_established, plain};

const TWO_DUPLICATES: &str = "+0 write 5000
         +10 < . 1:1(0) ack 1 win 65535
         +1 < . 1:1(0) ack 1 win 65535";

#[test]
fn s2_the_first_two_duplicates_each_let_a_new_segment_go() {
    check_established(
        Profile { sack: false, initial_window: 3, ..plain() },
        TWO_DUPLICATES,
        expect![[r#"
            0 write 5000
                > . 1:1001(1000) ack 1 win 65535
                > . 1001:2001(1000) ack 1 win 65535
                > . 2001:3001(1000) ack 1 win 65535
            10 < . 1:1(0) ack 1 win 65535
                > . 3001:4001(1000) ack 1 win 65535
            11 < . 1:1(0) ack 1 win 65535
                > P. 4001:5001(1000) ack 1 win 65535
        "#]],
    );
}

#[test]
fn s2_without_it_they_let_nothing_go() {
    let profile = Profile { sack: false, initial_window: 3, limited_transmit: false, ..plain() };
    check_established(
        profile,
        TWO_DUPLICATES,
        expect![[r#"
            0 write 5000
                > . 1:1001(1000) ack 1 win 65535
                > . 1001:2001(1000) ack 1 win 65535
                > . 2001:3001(1000) ack 1 win 65535
            10 < . 1:1(0) ack 1 win 65535
            11 < . 1:1(0) ack 1 win 65535
        "#]],
    );
}
