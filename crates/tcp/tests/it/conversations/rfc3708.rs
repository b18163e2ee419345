//! RFC 3708: D-SACKs show that a recovery was needless.

use mqttlab_tcp::{Endpoint, Profile};

use super::script::{plain, run_established};

/// Two segments are sent again although they only come late; nobody has timestamps.
fn after(answers: &str, undo: bool) -> Endpoint {
    let script = format!(
        "+0 write 6000
         +10 < . 1:1(0) ack 1 win 65535 <sack 2001:5001>
         +1 < . 1:1(0) ack 1 win 65535 <sack 2001:6001>
         +1 < . 1:1(0) ack 6001 win 65535
         {answers}"
    );
    run_established(Profile { undo, ..plain() }, &script).1
}

const FIRST: &str = "+10 < . 1:1(0) ack 6001 win 65535 <sack 1:1001>\n";
const SECOND: &str = "+1 < . 1:1(0) ack 6001 win 65535 <sack 1001:2001>";

#[test]
fn s3_2_d_sacks_for_all_repetitions_take_the_reduction_back_also_after_the_recovery() {
    let endpoint = after(&format!("{FIRST}{SECOND}"), true);
    assert_eq!(endpoint.counters().retransmissions, 2, "the condition was in force");
    assert_eq!((endpoint.counters().undone, endpoint.info().slow_start_threshold), (1, u64::MAX));
    assert!(endpoint.info().congestion_window >= 10);
}

#[test]
fn s3_2_d_sacks_for_some_repetitions_take_nothing_back() {
    for (answers, undo) in [("", true), (FIRST, true), (SECOND, true), (&*format!("{FIRST}{SECOND}"), false)]
    {
        let endpoint = after(answers, undo);
        assert_eq!(endpoint.counters().undone, 0, "{answers} {undo}");
        assert!(endpoint.info().slow_start_threshold < 10, "{answers} {undo}");
    }
}

#[test]
fn a_copy_that_the_network_made_is_no_d_sack_of_ours() {
    let (_, endpoint) = run_established(
        plain(),
        "+0 write 3000
         +10 < . 1:1(0) ack 3001 win 65535
         +1 < . 1:1(0) ack 3001 win 65535 <sack 1:1001>",
    );
    assert_eq!((endpoint.counters().retransmissions, endpoint.counters().undone), (0, 0));
}
