//! Shadowing, fading and errors by signal to noise, against their closed forms.

use super::*;

const PERIOD: Duration = Duration::from_ms(100);
const HALF: Duration = Duration::from_ms(50);

/// One attempt a frame: what arrives at the first is delivered.
fn once(mut spec: MediumSpec) -> MediumSpec {
    spec.mac.short_retry_limit = 1;
    spec
}

fn rayleigh() -> FadingSpec {
    FadingSpec::Rayleigh { coherence: PERIOD }
}

/// Sends so many frames of an IP packet's size, one a period, and returns which were delivered.
fn delivered(spec: MediumSpec, frames: u64, bytes: u64) -> Vec<bool> {
    let mut medium = medium(spec);
    let mut outputs = Vec::new();
    for frame in 0..frames {
        // In the middle of a block.
        let now = Instant::ZERO + PERIOD * frame + HALF;
        outputs.extend(run_until(&mut medium, now));
        send(&mut medium, now, frame, 0, 1, bytes);
    }
    outputs.extend(settle(&mut medium));
    finished(&outputs).iter().map(is_delivered).collect()
}

fn share(hits: &[bool]) -> f64 {
    hits.iter().filter(|hit| **hit).count() as f64 / hits.len() as f64
}

/// Five standard deviations of a share of so many independent trials.
fn spread(chance: f64, trials: usize) -> f64 {
    5.0 * (chance * (1.0 - chance) / trials as f64).sqrt()
}

#[test]
fn rayleigh_has_the_outage_of_an_exponential_power() {
    for metres in [50_i64, 100, 150] {
        let mut spec = once(line("b-11", &[0, metres]));
        spec.radio.fading = Some(rayleigh());
        let lost = 1.0 - share(&delivered(spec, 10_000, 100));
        // 20 dBm - 40.05 dB - 30 log10(d) over a noise of -95 dBm, where 10 dB are needed: 1 - exp(-needed / mean).
        let mean_db = 20.0 - 40.05 - 30.0 * (metres as f64).log10() + 95.0;
        let expected = 1.0 - (-10_f64.powf((10.0 - mean_db) / 10.0)).exp();
        assert!((lost - expected).abs() < spread(expected, 10_000), "{metres} m: {lost} beside {expected}");
    }
}

#[test]
fn nakagami_of_shape_2_has_its_outage() {
    let mut spec = once(line("b-11", &[0, 150]));
    spec.radio.fading = Some(FadingSpec::Nakagami { m_milli: 2_000, coherence: PERIOD });
    let lost = 1.0 - share(&delivered(spec, 10_000, 100));
    // 1 - exp(-2x) (1 + 2x), x = needed / mean; the mean is 9.662 dB.
    let x = 10_f64.powf((10.0 - 9.662) / 10.0);
    let expected = 1.0 - (-2.0 * x).exp() * (1.0 + 2.0 * x);
    assert!((lost - expected).abs() < spread(expected, 10_000), "{lost} beside {expected}");
}

#[test]
fn a_faded_frame_is_lost_to_its_retries_and_not_out_of_reach() {
    let mut spec = once(line("b-11", &[0, 140]));
    spec.radio.fading = Some(rayleigh());
    let mut medium = medium(spec);
    for frame in 0..200 {
        let now = Instant::ZERO + PERIOD * frame + HALF;
        run_until(&mut medium, now);
        send(&mut medium, now, frame, 0, 1, 100);
    }
    settle(&mut medium);
    let counters = medium.counters(0);
    assert!(counters.dropped_retry_limit > 40, "{counters:?}");
    assert_eq!(counters.dropped_unreachable, 0);
}

#[test]
fn shadowing_reaches_the_share_of_stations_above_the_threshold() {
    const STATIONS: u64 = 900;
    let mut metres = vec![120; STATIONS as usize];
    metres[0] = 0;
    let mut spec = once(line("b-11", &metres));
    spec.radio.shadowing = Some(ShadowingSpec { sigma_mdb: 6_000, decorrelation_mm: None });
    let mut medium = medium(spec);
    let mut outputs = Vec::new();
    for to in 1..STATIONS {
        let now = Instant::ZERO + PERIOD * to;
        outputs.extend(run_until(&mut medium, now));
        send(&mut medium, now, to, 0, to as usize, 100);
    }
    outputs.extend(settle(&mut medium));
    let arrived: Vec<bool> = finished(&outputs).iter().map(is_delivered).collect();
    // 12.575 dB on average, 10 dB needed: F(2.575 / 6) = F(0.4292) = 0.6661.
    let got = share(&arrived);
    assert!((got - 0.6661).abs() < spread(0.6661, arrived.len()), "{got}");
}

#[test]
fn frames_are_lost_by_their_length_and_the_modulations_bit_errors() {
    for bytes in [50_u64, 500, 1500] {
        let mut spec = once(line("dsss-2", &[0, 315]));
        // The preamble is not to be what decides.
        spec.radio.snir_preamble_mdb = -10_000;
        spec.radio.sensitivity_mdbm = -100_000;
        spec.radio.errors = ErrorModel::Snr;
        let lost = 1.0 - share(&delivered(spec, 8_000, bytes));
        // -20.05 - 30 log10(315) + 95 = 0.00 dB: x = 11 g, DQPSK.
        let g = 10_f64.powf((74.9475 - 30.0 * 315_f64.log10()) / 10.0);
        let x = 11.0 * g;
        let root = 2_f64.sqrt();
        let bit = (root + 1.0) / (8.0 * std::f64::consts::PI * root * x).sqrt() * (-(2.0 - root) * x).exp();
        let expected = 1.0 - (1.0 - bit).powi(8 * (bytes as i32 + 36));
        assert!((lost - expected).abs() < spread(expected, 8_000), "{bytes} B: {lost} beside {expected}");
    }
}

#[test]
fn one_seed_gives_one_run_and_another_seed_another() {
    let spec = || {
        let mut spec = once(line("b-11", &[0, 110]));
        spec.radio.fading = Some(rayleigh());
        spec.radio.shadowing = Some(ShadowingSpec { sigma_mdb: 3_000, decorrelation_mm: Some(20_000) });
        spec.radio.errors = ErrorModel::Snr;
        spec
    };
    let first = delivered(spec(), 500, 500);
    assert_eq!(first, delivered(spec(), 500, 500));
    let other = MediumSpec { name: "other air".into(), ..spec() };
    assert_ne!(first, delivered(other, 500, 500));
}

#[test]
fn what_others_send_in_between_changes_no_frames_fate() {
    let fates = |others_too: bool| {
        let mut spec = once(line("b-11", &[0, 110, 60, 20]));
        spec.radio.fading = Some(rayleigh());
        spec.radio.errors = ErrorModel::Snr;
        let mut medium = medium(spec);
        let mut outputs = Vec::new();
        for frame in 0..1_000 {
            let now = Instant::ZERO + PERIOD * frame + HALF;
            outputs.extend(run_until(&mut medium, now));
            send(&mut medium, now, frame, 0, 1, 500);
            if others_too {
                let later = now + Duration::from_ms(25);
                outputs.extend(run_until(&mut medium, later));
                send(&mut medium, later, 10_000 + frame, 2, 3, 700);
            }
        }
        outputs.extend(settle(&mut medium));
        let theirs = finished(&outputs).into_iter().filter(|done| done.from == 0);
        theirs.map(|done| is_delivered(&done)).collect::<Vec<bool>>()
    };
    let alone = fates(false);
    assert!((0.5..0.95).contains(&share(&alone)), "{}", share(&alone));
    assert_eq!(alone, fates(true));
}

#[test]
fn stations_that_move_walk_through_shadows() {
    let spec = |decorrelation_mm| {
        let mut spec = once(line("b-11", &[0, 100]));
        spec.mobility = MobilitySpec::RandomWaypoint {
            width_mm: 60_000,
            height_mm: 60_000,
            speed_min_mm_s: 5_000,
            speed_max_mm_s: 10_000,
            pause: Duration::ZERO,
            refresh: PERIOD,
        };
        spec.radio.shadowing = Some(ShadowingSpec { sigma_mdb: 12_000, decorrelation_mm });
        spec
    };
    let changes = |fates: Vec<bool>| fates.windows(2).filter(|pair| pair[0] != pair[1]).count();
    // Within 85 m all frames of a pair that keeps a gain near the mean arrive; in shadows of 20 m they come and go.
    let (kept, walked) =
        (changes(delivered(spec(None), 3_000, 100)), changes(delivered(spec(Some(20_000)), 3_000, 100)));
    assert!(walked > 20 && walked > 4 * kept, "{kept} {walked}");
}
