//! RFC 896: Nagle's algorithm, and Minshall's variant.

use expect_test::expect;
use mqttlab_tcp::{Nagle, Profile};

use super::script::{check_established, plain};

const SMALL_WRITES: &str = "+0 write 20
         +1 write 20
         +1 write 20
         +8 < . 1:1(0) ack 21 win 65535";

#[test]
fn small_segments_wait_for_each_other() {
    check_established(
        plain(),
        SMALL_WRITES,
        expect![[r#"
            0 write 20
                > P. 1:21(20) ack 1 win 65535
            1 write 20
            2 write 20
            10 < . 1:1(0) ack 21 win 65535
                > P. 21:61(40) ack 1 win 65535
                ! Acknowledged(20)
        "#]],
    );
}

#[test]
fn with_nodelay_none_waits() {
    check_established(
        plain(),
        &format!("+0 nodelay\n{SMALL_WRITES}"),
        expect![[r#"
            0 nodelay
            0 write 20
                > P. 1:21(20) ack 1 win 65535
            1 write 20
                > P. 21:41(20) ack 1 win 65535
            2 write 20
                > P. 41:61(20) ack 1 win 65535
            10 < . 1:1(0) ack 21 win 65535
                ! Acknowledged(20)
        "#]],
    );
}

#[test]
fn a_small_segment_waits_behind_a_full_one_only_in_the_classic_algorithm() {
    check_established(
        plain(),
        "+0 write 1000\n+1 write 20",
        expect![[r#"
            0 write 1000
                > P. 1:1001(1000) ack 1 win 65535
            1 write 20
                > P. 1001:1021(20) ack 1 win 65535
        "#]],
    );
    let classic = Profile { nagle: Nagle::Classic, ..plain() };
    check_established(
        classic,
        "+0 write 1000\n+1 write 20",
        expect![[r#"
            0 write 1000
                > P. 1:1001(1000) ack 1 win 65535
            1 write 20
        "#]],
    );
}

#[test]
fn the_last_segment_before_a_fin_does_not_wait() {
    check_established(
        plain(),
        "+0 write 20\n+1 write 20\n+1 shutdown",
        expect![[r#"
            0 write 20
                > P. 1:21(20) ack 1 win 65535
            1 write 20
            2 shutdown
                > FP. 21:41(20) ack 1 win 65535
        "#]],
    );
}
