//! What stations do about frames that are not for them: overhear, defer, collide, capture.
//!
//! At 20 dBm, 40.05 dB at 1 m and exponent 3, the power at d metres is -20.05 - 30 log10(d) dBm.

use super::*;

/// 802.11 at 2 Mbit/s: frames reach 232 m, and energy is sensed up to 146 m.
fn hidden_pair(rts: bool) -> MediumSpec {
    // Stations 0 and 2 reach 1, but not each other.
    let mut spec = line("dsss-2", &[0, 150, 300]);
    spec.mac.rts_threshold_bytes = rts.then_some(0);
    spec
}

fn overheard(medium: &Medium, station: usize) -> (u64, u64) {
    let total = medium.counters(station).overheard.total();
    (total.frames, total.bytes)
}

#[test]
fn a_third_station_overhears_every_byte() {
    for (rts, frames, bytes) in [(None, 2, 236 + 14), (Some(0), 4, 20 + 14 + 236 + 14)] {
        let mut spec = line("dsss-2", &[0, 10, 20]);
        spec.mac.rts_threshold_bytes = rts;
        let mut medium = medium(spec);
        send(&mut medium, us(1000), 1, 0, 1, 200);
        settle(&mut medium);
        assert_eq!(overheard(&medium, 2), (frames, bytes));
        assert_eq!(medium.counters(2).received.total().frames, 0);
        // It was busy as long as they were.
        let time = medium.counters(2).time;
        assert_eq!(time.receive, medium.counters(0).time.transmit + medium.counters(0).time.receive);
        assert_eq!(time.transmit, Duration::ZERO);
    }
}

#[test]
fn a_station_that_hears_only_the_cts_defers_until_the_ack() {
    let mut medium = medium(hidden_pair(true));
    send(&mut medium, us(1000), 1, 0, 1, 200);
    // The CTS ends at 1000 + 352 + 10 + 304 = 1666 and reserves 10 + 1136 + 10 + 304 from there.
    send(&mut medium, us(2000), 2, 2, 1, 200);
    let outputs = settle(&mut medium);
    assert_eq!(arrivals(&outputs)[0], (1, us(1666 + 10 + 1136)));
    let waited = finished(&outputs)[1].start.unwrap().since(us(3126 + 50)).as_ns();
    assert!(waited.is_multiple_of(20_000) && waited <= 31 * 20_000, "{waited}");
    assert_eq!(medium.counters(0).failures, 0);
}

#[test]
fn a_hidden_station_without_rts_destroys_the_frame() {
    let mut medium = medium(hidden_pair(false));
    send(&mut medium, us(1000), 1, 0, 1, 200);
    send(&mut medium, us(2000), 2, 2, 1, 200);
    let outputs = settle(&mut medium);
    let first = |frame| finished(&outputs).into_iter().find(|finished| finished.frame == frame).unwrap();
    assert_eq!((first(1).start, first(2).start), (Some(us(1000)), Some(us(2000))));
    assert!(first(1).attempts > 1 && first(2).attempts > 1);
    // Station 1 took up the first frame, and lost it to the second.
    assert!(medium.counters(1).collisions >= 1);
}

/// Both outer stations always have a frame of 1000 B for the middle; the share of data frames that were lost, and
/// data frames delivered a second.
fn hidden_saturated(rts: bool) -> (f64, f64) {
    let mut spec = hidden_pair(rts);
    spec.mac.short_retry_limit = 1000;
    spec.mac.long_retry_limit = 1000;
    let mut medium = medium(spec);
    for station in [0, 2, 0, 2] {
        send(&mut medium, us(0), 0, station, 1, 1000);
    }
    let mut delivered = 0;
    while let Some(deadline) = medium.next_deadline().filter(|deadline| *deadline <= us(60_000_000)) {
        medium.tick(deadline);
        while let Some(output) = medium.poll() {
            let Output::Finished(finished) = output else { continue };
            delivered += 1;
            send(&mut medium, deadline, 0, finished.from, 1, 1000);
        }
    }
    let sent: u64 = [0, 2].iter().map(|station| medium.counters(*station).sent.data.frames).sum();
    (1.0 - delivered as f64 / sent as f64, delivered as f64 / 60.0)
}

#[test]
fn rts_helps_hidden_stations() {
    let (lost, per_s) = hidden_saturated(false);
    let (lost_rts, per_s_rts) = hidden_saturated(true);
    // A data frame of 4.3 ms survives only if the other station's backoff spans all of it.
    assert!(lost > 0.4, "{lost}");
    // With RTS only RTS frames collide; data does where the other station missed the CTS because it was sending.
    assert!(lost_rts < 0.05, "{lost_rts}");
    assert!(per_s_rts > 1.3 * per_s, "{per_s_rts} and {per_s}");
}

#[test]
fn a_request_that_nobody_answers_is_void_soon() {
    // Station 1 hears station 0 ask for the medium, for a station that is not there.
    let mut spec = line("dsss-2", &[0, 10, 5_000]);
    spec.mac.rts_threshold_bytes = Some(0);
    spec.mac.short_retry_limit = 1;
    let mut medium = medium(spec);
    send(&mut medium, us(1000), 1, 0, 2, 200);
    send(&mut medium, us(1400), 2, 1, 0, 200);
    let start = finished(&settle(&mut medium))[1].start.unwrap();
    // The RTS ends at 1352; two SIFS, a CTS, its preamble once more and two slots later it is void, instead of
    // 30 + 304 + 1136 + 304 later.
    let waited = start.since(us(1352 + 20 + 304 + 192 + 40 + 50)).as_ns();
    assert!(waited.is_multiple_of(20_000) && waited <= 31 * 20_000, "{start}");
}

#[test]
fn a_spoilt_frame_is_followed_by_a_longer_space() {
    // At 180 m (-87.7 dBm) station 2 finds the preamble (4 dB over -95 dBm of noise) of data for which it would need
    // 10 dB. It does not hear station 1's ACK.
    let mut medium = medium(line("b-11", &[0, -60, 180, 190]));
    send(&mut medium, us(1000), 1, 0, 1, 200);
    send(&mut medium, us(1100), 2, 2, 3, 200);
    let outputs = settle(&mut medium);
    let start = finished(&outputs).iter().find(|finished| finished.frame == 2).unwrap().start.unwrap();
    // The data ends at 1364, EIFS is 10 + 304 + 50. From the end of DIFS it would not be a whole number of slots.
    let waited = start.since(us(1364 + 364)).as_ns();
    assert!(waited.is_multiple_of(20_000) && waited <= 31 * 20_000, "{start}");
    assert_eq!(medium.counters(2).weak, 1);
}

/// Station 0 is 10 m from station 1, station 2 is 140 m on the other side and does not hear station 0.
fn near_and_far(capture_mdb: Option<i32>) -> Medium {
    let mut spec = line("dsss-2", &[0, 10, 150]);
    // Between the powers at 140 m (-84.4 dBm) and at 150 m (-85.3 dBm).
    spec.radio.sensitivity_mdbm = -85_000;
    spec.radio.carrier_sense_mdbm = -85_000;
    spec.radio.capture_mdb = capture_mdb;
    medium(spec)
}

fn attempts(outputs: &[Output], frame: u64) -> u32 {
    finished(outputs).iter().find(|finished| finished.frame == frame).unwrap().attempts
}

#[test]
fn a_near_station_captures_the_receiver_from_a_far_one() {
    for (capture_mdb, expected) in [(Some(10_000), 1), (None, 2)] {
        let mut medium = near_and_far(capture_mdb);
        send(&mut medium, us(1000), 1, 2, 1, 1000);
        send(&mut medium, us(1500), 2, 0, 1, 200);
        let outputs = settle(&mut medium);
        assert_eq!(attempts(&outputs, 2).min(2), expected, "{capture_mdb:?}");
        assert!(attempts(&outputs, 1) > 1, "the far station's frame is lost either way");
    }
}

#[test]
fn a_near_stations_frame_survives_a_far_ones() {
    for capture_mdb in [Some(10_000), None] {
        let mut medium = near_and_far(capture_mdb);
        send(&mut medium, us(1000), 1, 0, 1, 1000);
        send(&mut medium, us(1500), 2, 2, 1, 200);
        let outputs = settle(&mut medium);
        assert_eq!(attempts(&outputs, 1), 1);
        assert!(attempts(&outputs, 2) > 1);
    }
}

#[test]
fn interference_of_several_stations_adds_up() {
    // The frame comes over 20 m (-59.1 dBm) and needs 4 dB. Stations 34 m off (-66.0 dBm) interfere: one of them
    // leaves 6.9 dB, two leave 3.9 dB.
    for (interferers, lost) in [(1, false), (2, true)] {
        let mut spec = line("dsss-2", &[]);
        let positions = [(-20, 0), (0, 0), (0, 34), (0, -34)];
        let positions = positions.map(|(x, y)| Position { x_mm: x * 1000, y_mm: y * 1000 }).to_vec();
        spec.placement = PlacementSpec::Explicit { positions };
        // Nobody senses energy, and nobody receives over more than 21 m.
        spec.radio.carrier_sense_mdbm = 40_000;
        spec.radio.sensitivity_mdbm = -60_000;
        let mut medium = medium(spec);
        send(&mut medium, us(1000), 1, 0, 1, 1000);
        for interferer in 0..interferers {
            send(&mut medium, us(1500 + interferer), 2, 2 + interferer as usize, 0, 100);
        }
        let arrived = arrivals(&settle(&mut medium));
        let first_end = us(1000 + 192 + 1036 * 4);
        assert_eq!(!arrived.contains(&(1, first_end)), lost, "{interferers}");
    }
}

#[test]
fn stations_that_begin_in_the_same_instant_collide() {
    let mut medium = medium(line("dsss-2", &[0, 10, 20]));
    send(&mut medium, us(1000), 1, 0, 1, 200);
    send(&mut medium, us(1000), 2, 2, 1, 200);
    let outputs = settle(&mut medium);
    assert!(
        finished(&outputs).iter().all(|f| is_delivered(f) && f.attempts > 1 && f.start == Some(us(1000)))
    );
    assert!(medium.counters(1).collisions >= 1);
}

#[test]
fn a_frame_whose_ack_was_lost_is_sent_again_and_delivered_once() {
    // Receivers take frames up to 10.3 m; station 2 is 11 m behind the sender, hears nothing, and covers the ACK.
    let mut spec = line("dsss-2", &[0, 10, -11]);
    spec.radio.carrier_sense_mdbm = 40_000;
    spec.radio.sensitivity_mdbm = -50_500;
    let mut medium = medium(spec);
    send(&mut medium, us(1000), 1, 0, 1, 200);
    run_until(&mut medium, us(2147));
    // The data was in at 2136, and the ACK began at 2146.
    assert_eq!(medium.counters(1).received.data.frames, 1);
    send(&mut medium, us(2147), 2, 2, 1, 100);
    let outputs = settle(&mut medium);
    assert!(!arrivals(&outputs).iter().any(|(frame, _)| *frame == 1), "it had arrived before");
    let first = finished(&outputs).into_iter().find(|finished| finished.frame == 1).unwrap();
    assert_eq!(first.fate, Outcome::Delivered { at: us(2136) });
    assert!(first.attempts > 1 && first.sent > Some(us(2136)));
    assert_eq!(medium.counters(1).duplicates, u64::from(first.attempts) - 1);
}
