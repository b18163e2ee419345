//! RFC 1337: TIME-WAIT assassination.

use expect_test::expect;

use super::script::{check_established, plain};

#[test]
fn s3_a_late_reset_does_not_cut_time_wait_short() {
    check_established(
        plain(),
        "+0 shutdown
         +10 < F. 1:1(0) ack 2 win 65535
         +1000 < R 2:2(0) win 0
         +1000 < F. 1:1(0) ack 2 win 65535
         +60000 wait
         +1 < . 2:2(0) ack 2 win 65535",
        expect![[r#"
            0 shutdown
                > F. 1:1(0) ack 1 win 65535
            10 < F. 1:1(0) ack 2 win 65535
                > . 2:2(0) ack 2 win 65535
                ! Acknowledged(0)
                ! PeerClosed
                ! Closed
            1010 < R 2:2(0) win 0
            2010 < F. 1:1(0) ack 2 win 65535
                > . 2:2(0) ack 2 win 65535
            62010 tick
            62010 wait
            62011 < . 2:2(0) ack 2 win 65535
                > R 2:2(0) win 0
        "#]],
    );
}
