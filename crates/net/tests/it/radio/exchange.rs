//! Two stations without errors: every time by hand from the standard's numbers.

use mqttlab_net::Cause;

use super::*;

/// A frame long after the start, so that the medium has been idle for long enough.
fn alone(preset: &str, rts_threshold_bytes: Option<u32>, bytes: u64) -> (Medium, Vec<Output>) {
    let mut spec = line(preset, &[0, 10]);
    spec.mac.rts_threshold_bytes = rts_threshold_bytes;
    let mut medium = medium(spec);
    send(&mut medium, us(1000), 7, 0, 1, bytes);
    let outputs = settle(&mut medium);
    (medium, outputs)
}

/// Start of the data, its end, and when the ACK is in.
fn assert_exchange(preset: &str, rts: Option<u32>, bytes: u64, start: u64, sent: u64, done: u64) {
    let (medium, outputs) = alone(preset, rts, bytes);
    assert_eq!(arrivals(&outputs), [(7, us(sent))], "{preset}");
    let finished = finished(&outputs)[0];
    assert_eq!(finished.start, Some(us(start)));
    assert_eq!(finished.sent, Some(us(sent)));
    assert_eq!(finished.fate, Outcome::Delivered { at: us(sent) });
    assert_eq!(finished.attempts, 1);
    // The sender's radio was busy from the first bit to the ACK's last, but for the spaces.
    let spaces = if rts.is_some() { 3 } else { 1 };
    let time = medium.counters(0).time;
    assert_eq!(time.transmit + time.receive + Duration::from_us(10 * spaces), us(done).since(us(start)));
    // Each space is a silence, after which it begins anew.
    assert_eq!(time.wake_ups, 1 + spaces);
}

#[test]
fn dsss_2_takes_1136_us_for_200_bytes_and_314_for_the_ack() {
    // (200 + 36) * 8 / 2 = 944 µs after 192 µs; ACK 192 + 112.
    assert_exchange("dsss-2", None, 200, 1000, 1000 + 1136, 1000 + 1136 + 10 + 304);
}

#[test]
fn dsss_2_with_rts_takes_676_us_more() {
    // RTS 192 + 160, SIFS, CTS 192 + 112, SIFS: 352 + 10 + 304 + 10.
    assert_exchange("dsss-2", Some(0), 200, 1000, 1000 + 676 + 1136, 1000 + 676 + 1136 + 10 + 304);
}

#[test]
fn b_11_takes_364_us_for_200_bytes_and_258_for_the_ack() {
    // 236 * 8 / 11 = 171.6, so 172 µs after 192; ACK at 2 Mbit/s 192 + 56.
    assert_exchange("b-11", None, 200, 1000, 1000 + 364, 1000 + 364 + 10 + 248);
}

#[test]
fn b_11_with_rts_takes_540_us_more() {
    // RTS 192 + 80, SIFS, CTS 192 + 56, SIFS.
    assert_exchange("b-11", Some(0), 200, 1000, 1000 + 540 + 364, 1000 + 540 + 364 + 10 + 248);
}

#[test]
fn g_54_takes_62_us_for_200_bytes_and_44_for_the_ack() {
    // (16 + 236 * 8 + 6) / 216 = 8.8, 9 symbols: 20 + 36 + 6; ACK at 24 Mbit/s 20 + 8 + 6.
    assert_exchange("g-54", None, 200, 1000, 1000 + 62, 1000 + 62 + 10 + 34);
}

#[test]
fn rts_is_for_frames_longer_than_the_threshold() {
    for (bytes, rts) in [(464, 0), (465, 1)] {
        let (medium, _) = alone("b-11", Some(500), bytes);
        assert_eq!(medium.counters(0).sent.rts.frames, rts, "{bytes}");
    }
}

#[test]
fn counters_know_every_frame_of_an_exchange() {
    let (medium, outputs) = alone("dsss-2", Some(0), 200);
    let (sender, receiver) = (medium.counters(0), medium.counters(1));
    let tally = |tally: mqttlab_net::radio::Tally| (tally.frames, tally.bytes);
    assert_eq!((tally(sender.sent.rts), tally(sender.sent.data)), ((1, 20), (1, 236)));
    assert_eq!((tally(receiver.sent.cts), tally(receiver.sent.ack)), ((1, 14), (1, 14)));
    assert_eq!(sender.received.total(), receiver.sent.total());
    assert_eq!(receiver.received.total(), sender.sent.total());
    assert_eq!(finished(&outputs)[0].air_bytes, Bytes(256));
    assert_eq!((sender.delivered, sender.failures, sender.retries), (1, 0, 0));
    assert_eq!((sender.overheard.total(), receiver.overheard.total()), Default::default());
}

#[test]
fn a_frame_that_comes_soon_after_the_start_waits_for_a_whole_difs() {
    let mut medium = medium(line("dsss-2", &[0, 10]));
    send(&mut medium, us(20), 1, 0, 1, 200);
    assert_eq!(finished(&settle(&mut medium))[0].start, Some(us(50)));
}

#[test]
fn an_idle_medium_may_be_waited_for_from_queueing_on() {
    let mut spec = line("dsss-2", &[0, 10]);
    spec.mac.difs_from_queueing = true;
    let mut medium = medium(spec);
    send(&mut medium, us(1000), 1, 0, 1, 200);
    assert_eq!(finished(&settle(&mut medium))[0].start, Some(us(1050)));
}

#[test]
fn a_frame_queued_before_an_ack_backs_off_by_the_standard_but_not_in_ns3() {
    let starts = |difs_from_queueing| -> Vec<_> {
        let mut spec = line("dsss-2", &[0, 10]);
        spec.mac.difs_from_queueing = difs_from_queueing;
        let start = |seed| {
            let mut medium = Medium::new(spec.clone(), Seed(seed));
            send(&mut medium, us(1000), 1, 0, 1, 200);
            // Between the data's end (192 + 944 after DIFS) and the ACK.
            send(&mut medium, us(if difs_from_queueing { 2190 } else { 2140 }), 2, 1, 0, 200);
            finished(&settle(&mut medium))[1].start.unwrap()
        };
        (0..20).map(start).collect()
    };
    // ACK from 2196 to 2500, DIFS.
    assert_eq!(starts(true), vec![us(2550); 20]);
    assert!(starts(false).iter().any(|start| *start > us(2500)), "no seed has drawn a slot");
}

#[test]
fn acks_have_a_rate_of_their_own() {
    let mut spec = line("b-11", &[0, 10]);
    spec.phy.ack_rate_bit_s = Some(spec.phy.data_rate_bit_s);
    spec.mac.rts_threshold_bytes = Some(0);
    let mut medium = medium(spec);
    send(&mut medium, us(1000), 1, 0, 1, 200);
    settle(&mut medium);
    // CTS at 2 Mbit/s 192 + 56, ACK at 11 Mbit/s 192 + 11.
    assert_eq!(medium.counters(1).time.transmit, Duration::from_us(248 + 203));
}

#[test]
fn the_next_frame_of_a_queue_backs_off_after_difs() {
    for seed in 0..50 {
        let mut medium = Medium::new(line("dsss-2", &[0, 10]), Seed(seed));
        send(&mut medium, us(1000), 1, 0, 1, 200);
        send(&mut medium, us(1000), 2, 0, 1, 200);
        let second = finished(&settle(&mut medium))[1];
        let waited = second.start.unwrap().since(us(2450 + 50)).as_ns();
        assert_eq!(waited % 20_000, 0, "whole slots");
        assert!(waited / 20_000 <= 31);
    }
}

#[test]
fn a_frame_that_comes_during_the_post_backoff_waits_for_its_rest_only() {
    let starts = |second_at: u64| {
        let mut medium = medium(line("dsss-2", &[0, 10]));
        send(&mut medium, us(1000), 1, 0, 1, 200);
        let mut outputs = run_until(&mut medium, us(second_at));
        send(&mut medium, us(second_at), 2, 0, 1, 200);
        outputs.extend(settle(&mut medium));
        finished(&outputs)[1].start.unwrap()
    };
    let queued = starts(1000);
    assert!(queued > us(2500), "this seed draws a backoff of some slots");
    assert_eq!(starts(2460), queued);
    // Long after it has run down, nothing is left to wait for.
    assert_eq!(starts(9000), us(9000));
}

#[test]
fn a_station_out_of_reach_is_tried_seven_times_and_called_unreachable() {
    let mut medium = medium(line("dsss-2", &[0, 2_000]));
    send(&mut medium, us(1000), 1, 0, 1, 200);
    let outputs = settle(&mut medium);
    let finished = finished(&outputs)[0];
    assert_eq!(finished.fate, Outcome::Dropped { cause: Cause::Unreachable });
    assert_eq!((finished.attempts, finished.air_bytes), (7, Bytes(7 * 236)));
    assert_eq!(medium.counters(0).dropped_unreachable, 1);
    // Each attempt: 1136 µs, 222 µs until it is known to have failed, DIFS, backoff of at most
    // 63 + 127 + 255 + 511 + 1023 + 1023 slots; the last one's failure is not known before 222 µs either.
    let last = finished.sent.unwrap().since(us(1000)).as_ns() / 1000;
    let least = 7 * 1136 + 6 * (222 + 50);
    assert!((least..=least + 20 * 3002).contains(&last), "{last}");
    assert_eq!((last - least) % 20, 0);
}

#[test]
fn an_unanswered_rts_costs_only_itself() {
    let mut spec = line("dsss-2", &[0, 2_000]);
    spec.mac.rts_threshold_bytes = Some(0);
    let mut medium = medium(spec);
    send(&mut medium, us(1000), 1, 0, 1, 200);
    let finished = finished(&settle(&mut medium))[0];
    assert_eq!((finished.attempts, finished.air_bytes, finished.sent), (7, Bytes(7 * 20), None));
}

#[test]
fn a_full_queue_drops_at_once() {
    let mut spec = line("dsss-2", &[0, 10]);
    spec.mac.queue_limit_frames = Some(2);
    let mut medium = medium(spec);
    for frame in 0..3 {
        send(&mut medium, us(1000), frame, 0, 1, 200);
    }
    let outputs = settle(&mut medium);
    let finished = finished(&outputs);
    assert_eq!((finished[0].frame, finished[0].fate), (2, Outcome::Dropped { cause: Cause::QueueFull }));
    assert_eq!((finished[0].start, finished[0].attempts), (None, 0));
    assert!(finished[1..].iter().all(is_delivered));
    assert_eq!(medium.counters(0).dropped_queue, 1);
    assert_eq!(medium.counters(0).queue_frames_max, 2);
}
