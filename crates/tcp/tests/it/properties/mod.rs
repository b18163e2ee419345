//! What must hold whatever the network does: bytes arrive once and in order, connections end, nothing is faster
//! than the link or than what loss allows.

mod pipe;

use mqttlab_tcp::{
    CongestionControl, DelayedAck, Granularity, Nagle, Profile, RtoFloor, RtoPolicy, SynPolicy, WindowUnit,
};
use mqttlab_units::{BitRate, Duration, Instant, Ratio};
use proptest::prelude::*;

use pipe::{Load, Path, Run};

fn any_profile() -> impl Strategy<Value = Profile> {
    let base = prop_oneof![
        Just(crate::stacks::linux()),
        Just(crate::stacks::netbsd_2005()),
        Just(crate::stacks::microcontroller())
    ];
    let flags = proptest::array::uniform6(any::<bool>());
    let choices = (0..3usize, 0..3usize, 100u16..1460, 1u32..12, 1_000u32..100_000);
    (base, flags, choices).prop_map(|(base, flags, choices)| {
        let [sack, timestamps, limited_transmit, rack, probes, cubic] = flags;
        let (ack, nagle, mss, initial_window, receive_buffer) = choices;
        let timeout = Duration::from_ms(200);
        let max = Duration::from_ms(200);
        Profile {
            sack,
            timestamps,
            limited_transmit,
            rack,
            tail_loss_probe: probes,
            rate_reduction: rack,
            congestion_control: if cubic { CongestionControl::Cubic } else { CongestionControl::Reno },
            delayed_ack: [
                DelayedAck::Off,
                DelayedAck::EverySecond { timeout },
                DelayedAck::Adaptive { min: Duration::from_ms(40), max },
            ][ack],
            nagle: [Nagle::Off, Nagle::Classic, Nagle::Minshall][nagle],
            mss,
            initial_window,
            receive_buffer,
            retries: 60,
            syn: SynPolicy { retries: 30, linear_retries: 2, echoes_latest: false },
            ..base
        }
    })
}

fn any_path() -> impl Strategy<Value = Path> {
    (0..100u64, 9_600..10_000_000u64, 0..15u64, 0..10u64, 0..60u64, 3..100usize).prop_map(
        |(delay, rate, loss, duplication, jitter, queue)| Path {
            delay: Duration::from_ms(delay),
            rate: BitRate::from_bit_s(rate).unwrap(),
            loss: Ratio::new(loss, 100).unwrap(),
            duplication: Ratio::new(duplication, 100).unwrap(),
            jitter: Duration::from_ms(jitter),
            queue,
        },
    )
}

fn any_load() -> impl Strategy<Value = Load> {
    (0..60_000u64, 0..20_000u64, 1..3000u64, 1..3000u64, 0..50u64).prop_map(
        |(up, down, write, read, pause)| Load {
            bytes: [up, down],
            write,
            read,
            read_pause: Duration::from_ms(pause),
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_arrives_once_and_in_order_and_the_connection_ends(
        client in any_profile(),
        server in any_profile(),
        path in any_path(),
        load in any_load(),
        seed in any::<u64>(),
    ) {
        let rate = path.rate;
        let bytes = load.bytes;
        let mut run = Run::new([client, server], path, load, seed);
        // Hours of virtual time: nothing that works slowly may pass for a deadlock.
        run.until(Instant::ZERO + Duration::from_s(1_000_000));
        run.assert_complete();
        let finished = run.finished_at.expect("the connection was closed");
        for sent in bytes {
            let least = rate.serialization_time(mqttlab_units::Bytes(sent));
            prop_assert!(finished.since(Instant::ZERO) >= least, "faster than the link");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_run(path in any_path(), seed in any::<u64>()) {
        let load = Load { bytes: [20_000, 500], write: 700, read: 1, read_pause: Duration::ZERO };
        let run = || {
            let profile = Profile { retries: 60, syn: SynPolicy { retries: 30, linear_retries: 0, echoes_latest: false }, ..crate::stacks::linux() };
            let mut run = Run::new([profile.clone(), profile], path.clone(), load.clone(), seed);
            run.until(Instant::ZERO + Duration::from_s(1_000_000));
            (run.finished_at, run.ends[0].counters(), run.ends[1].counters())
        };
        prop_assert_eq!(run(), run());
    }
}

/// Bytes per second that a bulk transfer gets in `seconds`.
fn goodput(profile: Profile, path: Path, seconds: u64) -> f64 {
    let load = Load { bytes: [u64::MAX / 4, 0], write: 100_000, read: 0, read_pause: Duration::ZERO };
    let mut run = Run::new([profile.clone(), profile], path, load, 7);
    run.until(Instant::ZERO + Duration::from_s(seconds));
    assert!(!run.failed);
    run.read[1] as f64 / seconds as f64
}

fn path(delay: Duration, rate: u64, loss: (u64, u64), queue: usize) -> Path {
    Path {
        delay,
        rate: BitRate::from_bit_s(rate).unwrap(),
        loss: Ratio::new(loss.0, loss.1).unwrap(),
        duplication: Ratio::ZERO,
        jitter: Duration::ZERO,
        queue,
    }
}

fn reno() -> Profile {
    Profile {
        congestion_control: CongestionControl::Reno,
        delayed_ack: DelayedAck::Off,
        timestamps: false,
        granularity: Granularity::Exact,
        ..crate::stacks::linux()
    }
}

#[test]
fn random_loss_bounds_throughput_as_mathis_et_al_1997_found() {
    // B = MSS / RTT * C / sqrt(p) with C = 1.31 for random losses and an acknowledgement of every segment (table 1
    // there); losses are in both directions, of which only those of data matter much.
    let rtt_s: f64 = 0.1;
    for (loss, probability) in [((1, 1000), 1e-3), ((1, 100), 1e-2)] {
        let bound = 1460.0 / rtt_s * 1.31 / f64::sqrt(probability);
        for (name, profile) in [
            ("time", reno()),
            ("sack", Profile { rack: false, tail_loss_probe: false, ..reno() }),
            ("newreno", Profile { sack: false, ..reno() }),
            ("bytes", Profile { sack: false, window_unit: WindowUnit::Bytes, ..reno() }),
        ] {
            let measured = goodput(profile, path(Duration::from_ms(50), 1_000_000_000, loss, 10_000), 600);
            let share = measured / bound;
            assert!((0.55..1.15).contains(&share), "{name}, loss {probability}: {share:.2} of the bound");
        }
    }
}

#[test]
fn a_bulk_transfer_fills_a_link_without_loss_and_never_more() {
    for profile in [crate::stacks::linux(), reno()] {
        let link = path(Duration::from_ms(10), 10_000_000, (0, 1), 50);
        let payload = if profile.timestamps { 1448.0 } else { 1460.0 };
        let headers = payload / 1500.0;
        let measured = goodput(profile, link, 30) * 8.0 / 1e7 / headers;
        assert!((0.93..1.0).contains(&measured), "{measured}");
    }
}

#[test]
fn a_receiver_that_pauses_holds_the_sender_back() {
    // 1000 bytes every 50 ms are 20 kB/s, whatever the link could carry.
    let load = Load { bytes: [200_000, 0], write: 100_000, read: 1000, read_pause: Duration::from_ms(50) };
    let profile = Profile { receive_buffer: 8_000, ..crate::stacks::linux() };
    let mut run =
        Run::new([profile.clone(), profile], path(Duration::from_ms(5), 10_000_000, (0, 1), 100), load, 1);
    run.until(Instant::ZERO + Duration::from_s(1_000_000));
    run.assert_complete();
    let seconds = run.finished_at.unwrap().since(Instant::ZERO).as_s_f64();
    // A reader that found nothing reads as soon as something comes, which may be a little before its next turn.
    assert!((9.0..12.0).contains(&seconds), "{seconds}");
}

#[test]
fn a_shorter_minimum_timeout_repairs_sooner() {
    let finished = |min, seed| {
        let rto = RtoPolicy { min, floor: RtoFloor::Timeout, ..crate::stacks::linux().rto };
        let profile = Profile { rto, sack: false, ..reno() };
        let load = Load { bytes: [100_000, 0], write: 100, read: 0, read_pause: Duration::ZERO };
        let mut run = Run::new(
            [profile.clone(), profile],
            path(Duration::from_ms(5), 1_000_000, (5, 100), 100),
            load,
            seed,
        );
        run.until(Instant::ZERO + Duration::from_s(100_000));
        run.assert_complete();
        run.finished_at.unwrap().since(Instant::ZERO).as_s_f64()
    };
    // One transfer may be lucky; forty are not.
    let mean = |min| (0..40).map(|seed| finished(min, seed)).sum::<f64>() / 40.0;
    let (soon, late) = (mean(Duration::from_ms(30)), mean(Duration::from_s(1)));
    assert!(soon < 0.9 * late, "{soon} s and {late} s");
}
