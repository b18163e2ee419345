//! Paths that reorder: what Linux takes for lost, and what it learns from late originals, overtaken acknowledgements and probes
//! (`tcp_recovery.c`, `tcp_ack`). The reordering here is far: a segment overtakes others by most of a round trip, so that the least
//! round trip says little of the path.

use expect_test::expect;
use mqttlab_tcp::{Endpoint, Profile};

use super::script::{check_established, plain, run_established};

/// Loss detection by time and timestamps in milliseconds; the first data leaves at 10.
fn stamped() -> Profile {
    Profile {
        mss: 1012,
        timestamps: true,
        rack: true,
        rate_reduction: true,
        tail_loss_probe: true,
        ..plain()
    }
}

fn end_of(profile: Profile, script: &str) -> Endpoint {
    run_established(profile, script).1
}

#[test]
fn a_late_original_says_nothing_of_what_was_sent_before_its_repetition() {
    // The second segment comes after 2 ms, the first one's repetition leaves at 4.5, its original is acknowledged at 10. A round trip
    // of the repetition would be 5.5 ms, and the third segment, of 3, would be overdue (RFC 8985 §6.2 step 2). With the fourth's
    // round trip of 7 it is not, before 12.5.
    check_established(
        stamped(),
        "+0 write 2000
         +2 < . 1:1(0) ack 1 win 65535 <ts 1002 0,sack 1001:2001>
         +1 write 2000
         +7 < . 1:1(0) ack 2001 win 65535 <ts 1010 10,sack 3001:4001>
         +2 < . 1:1(0) ack 4001 win 65535 <ts 1012 13>",
        expect![[r#"
            0 write 2000
                > . 1:1001(1000) ack 1 win 65535 <ts 10 1000>
                > P. 1001:2001(1000) ack 1 win 65535 <ts 10 1000>
            2 < . 1:1(0) ack 1 win 65535 <ts 1002 0,sack 1001:2001>
            3 write 2000
                > . 2001:3001(1000) ack 1 win 65535 <ts 13 1002>
                > P. 3001:4001(1000) ack 1 win 65535 <ts 13 1002>
            4.5 tick
                > . 1:1001(1000) ack 1 win 65535 <ts 14 1002>
            10 < . 1:1(0) ack 2001 win 65535 <ts 1010 10,sack 3001:4001>
                ! Acknowledged(2000)
            12 < . 1:1(0) ack 4001 win 65535 <ts 1012 13>
                ! Acknowledged(4000)
        "#]],
    );
}

#[test]
fn what_was_taken_for_lost_and_was_not_is_not_taken_for_lost_again() {
    // The first two are marked when the third has come; the first one's original takes the mark of the second away.
    let endpoint = end_of(
        stamped(),
        "+0 write 3000
         +2 < . 1:1(0) ack 1 win 65535 <ts 1002 0,sack 2001:3001>
         +8 < . 1:1(0) ack 1001 win 65535 <ts 1010 10,sack 2001:3001>
         +1 < . 1:1(0) ack 3001 win 65535 <ts 1011 10>",
    );
    assert_eq!((endpoint.counters().fast_recoveries, endpoint.counters().undone), (1, 1));
    assert_eq!(endpoint.counters().retransmissions, 1, "the first");
}

#[test]
fn what_comes_after_the_recovery_of_what_was_not_lost_is_looked_for_by_the_timeout() {
    // As before, but the second was lost.
    let endpoint = end_of(
        stamped(),
        "+0 write 3000
         +2 < . 1:1(0) ack 1 win 65535 <ts 1002 0,sack 2001:3001>
         +8 < . 1:1(0) ack 1001 win 65535 <ts 1010 10,sack 2001:3001>
         +400 < . 1:1(0) ack 3001 win 65535 <ts 1410 230>",
    );
    assert_eq!((endpoint.counters().timeouts, endpoint.counters().retransmissions), (1, 2));
}

#[test]
fn an_acknowledgement_that_was_overtaken_still_reports_what_has_come() {
    let repeated = |overtaken: &str| {
        let script = format!(
            "+0 write 4000
             +10 < . 1:1(0) ack 2001 win 65535
             {overtaken}
             +8 wait"
        );
        let profile = Profile { rack: true, tail_loss_probe: true, ..plain() };
        end_of(profile, &script).counters().retransmissions
    };
    assert_eq!(repeated(""), 0);
    assert_eq!(repeated("+1 < . 1:1(0) ack 1001 win 65535 <sack 3001:4001>"), 1, "the third is missing");
}

#[test]
fn an_acknowledgement_that_was_overtaken_still_says_that_a_repetition_was_needless() {
    let endpoint = end_of(
        Profile { rack: true, ..plain() },
        "+0 write 5000
         +10 < . 1:1(0) ack 1 win 65535 <sack 1001:4001>
         +1 < . 1:1(0) ack 5001 win 65535
         +1 write 1000
         +9 < . 1:1(0) ack 6001 win 65535
         +1 < . 1:1(0) ack 5001 win 65535 <sack 1:1001>",
    );
    assert_eq!((endpoint.counters().retransmissions, endpoint.counters().undone), (1, 1));
}

#[test]
fn where_segments_come_far_out_of_order_the_window_grows_by_what_is_reported() {
    let grown = |reordered_by: u32| {
        let end = 2001 + 1000 * reordered_by;
        let before = format!(
            "+0 write 9000
             +10 < . 1:1(0) ack 1 win 65535 <sack 1001:2001>
             +1 < . 1:1(0) ack 2001 win 65535
             +0 < . 1:1(0) ack 2001 win 65535 <sack 3001:{end}>
             +1 < . 1:1(0) ack {end} win 65535
             +10 < . 1:1(0) ack 9001 win 65535
             +1 write 30000"
        );
        let after = format!("{before}\n+10 < . 1:1(0) ack 9001 win 65535 <sack 11001:12001>");
        let window = |script: &str| {
            let endpoint = end_of(Profile { rack: true, ..plain() }, script);
            assert_eq!(endpoint.counters().retransmissions, 0, "{reordered_by}");
            endpoint.info().congestion_window
        };
        window(&after) - window(&before)
    };
    assert_eq!(grown(3), 0, "by three segments");
    assert_eq!(grown(7), 1, "by seven");
}

#[test]
fn a_tail_loss_probe_is_not_in_flight_twice() {
    let endpoint = end_of(stamped(), "+0 write 1000\n+230 wait");
    assert_eq!((endpoint.counters().tail_probes, endpoint.info().in_flight), (1, 1));
}

#[test]
fn the_timeout_begins_anew_while_reports_are_older_than_the_repetition() {
    // Reports of what was sent with the first segment come until 30; its repetition, of 12, is lost. 200 ms and a round trip later is
    // the timeout.
    let timeouts = |until_ms: u32| {
        let script = format!(
            "+0 write 6000
             +12 < . 1:1(0) ack 1 win 65535 <sack 1001:4001>
             +18 < . 1:1(0) ack 1 win 65535 <sack 1001:5001>
             +{} wait",
            until_ms - 30
        );
        end_of(Profile { rack: true, ..plain() }, &script).counters().timeouts
    };
    assert_eq!((timeouts(225), timeouts(260)), (0, 1));
}

/// Linux 6.18, 100 B at QoS 2 over a path that reorders 20 %: the client's last 4 bytes were acknowledged by the broker's needless
/// repetition alone. The client answered with a D-SACK, and sent what waited behind them 204 ms later.
#[test]
fn linux_discards_a_needless_repetition_with_the_news_in_it() {
    check_established(
        plain(),
        "+0 < P. 1:101(100) ack 1 win 65535
         +0 read 100
         +1 < P. 101:201(100) ack 1 win 65535
         +0 read 100
         +1 write 50
         +5 < P. 1:101(100) ack 51 win 65535
         +5 < P. 101:201(100) ack 51 win 65535",
        expect![[r#"
            0 < P. 1:101(100) ack 1 win 65535
                > . 1:1(0) ack 101 win 65535
                ! Readable(100)
            0 read 100
            1 < P. 101:201(100) ack 1 win 65535
                > . 1:1(0) ack 201 win 65535
                ! Readable(200)
            1 read 100
            2 write 50
                > P. 1:51(50) ack 201 win 65535
            7 < P. 1:101(100) ack 51 win 65535
                > . 51:51(0) ack 201 win 65535 <sack 1:101>
            12 < P. 101:201(100) ack 51 win 65535
                > . 51:51(0) ack 201 win 65535 <sack 101:201>
                ! Acknowledged(50)
        "#]],
    );
}
