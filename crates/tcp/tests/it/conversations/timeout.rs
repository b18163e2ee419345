//! Timeouts and late acknowledgements as Linux takes them (`tcp_enter_loss`, `tcp_timeout_mark_lost`, `tcp_try_undo_partial`,
//! `FLAG_LOST_RETRANS`), where RFC 5681 and RFC 6298 leave it free or ask for less.

use mqttlab_tcp::{CongestionControl, Profile};

use super::script::{plain, run_established};

fn timed() -> Profile {
    Profile { rack: true, ..plain() }
}

#[test]
fn what_was_sent_within_the_last_round_trip_is_not_lost_by_a_timeout() {
    // The timeout comes after 210 ms, 5 ms after the last two segments have left.
    let script = "+0 write 1000
         +10 < . 1:1(0) ack 1001 win 65535
         +0 write 1000
         +205 write 2000
         +10 < . 1:1(0) ack 2001 win 65535
         +1 < . 1:1(0) ack 4001 win 65535";
    let (transcript, endpoint) = run_established(timed(), script);
    let counters = endpoint.counters();
    assert_eq!((counters.timeouts, counters.retransmissions), (1, 1), "{transcript}");
    let (_, other) = run_established(plain(), script);
    assert!(other.counters().retransmissions > 1, "without RACK all is sent again");
}

#[test]
fn a_timeout_within_a_fast_recovery_does_not_reduce_again() {
    let script = "+0 write 10000
         +10 < . 1:1(0) ack 1 win 65535 <sack 1001:5001>
         +300 wait";
    let cubic = |undo| Profile { congestion_control: CongestionControl::Cubic, undo, ..timed() };
    let (transcript, endpoint) = run_established(cubic(true), script);
    let counters = endpoint.counters();
    assert_eq!((counters.fast_recoveries, counters.timeouts), (1, 1), "{transcript}");
    assert_eq!(endpoint.info().slow_start_threshold, 7, "0.7 of 10, once");
    assert_eq!(run_established(cubic(false), script).1.info().slow_start_threshold, 4, "twice");
}

#[test]
fn a_repetition_that_is_lost_after_a_timeout_is_congestion_again() {
    // The first is acknowledged; of the second and the third, which are repeated together, only the third comes.
    let script = "+0 write 5000
         +220 < . 1:1(0) ack 1001 win 65535
         +10 < . 1:1(0) ack 1001 win 65535 <sack 2001:3001>";
    let (transcript, endpoint) = run_established(timed(), script);
    let counters = endpoint.counters();
    assert_eq!((counters.timeouts, counters.fast_recoveries), (1, 1), "{transcript}");
    assert_eq!(run_established(plain(), script).1.counters().fast_recoveries, 0);
}

#[test]
fn a_late_original_holds_repetitions_while_some_are_under_way_and_then_takes_the_recovery_back() {
    let profile = Profile { timestamps: true, mss: 1012, ..timed() };
    let late = "+0 write 10000
         +10 < . 1:1(0) ack 1 win 65535 <sack 2001:9001,ts 1010 10>
         +1 < . 1:1(0) ack 1001 win 65535 <sack 2001:9001,ts 1011 10>\n";
    let (transcript, endpoint) = run_established(profile.clone(), late);
    let counters = endpoint.counters();
    assert_eq!((counters.undone, counters.retransmissions), (0, 2), "{transcript}");
    assert_ne!(endpoint.info().slow_start_threshold, u64::MAX);
    let all = format!("{late}+1 < . 1:1(0) ack 10001 win 65535 <ts 1012 10>");
    let (transcript, endpoint) = run_established(profile, &all);
    assert_eq!(endpoint.counters().undone, 1, "{transcript}");
    assert_eq!(endpoint.info().slow_start_threshold, u64::MAX);
}
