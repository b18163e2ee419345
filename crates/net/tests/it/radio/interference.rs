//! Interferers: who hears them, who waits for them, and what they spoil.

use super::*;
use mqttlab_net::radio::{DutySpec, InterfererSpec};

fn interferer(x_m: i64, power_dbm: i32, duty: DutySpec) -> InterfererSpec {
    InterfererSpec {
        name: "oven".into(),
        position: Position { x_mm: x_m * 1_000, y_mm: 0 },
        power_mdbm: power_dbm * 1_000,
        duty,
        on: true,
    }
}

fn regular(on_ms: u64, off_ms: u64) -> DutySpec {
    DutySpec::Regular { on: Duration::from_ms(on_ms), off: Duration::from_ms(off_ms) }
}

fn ms(ms: u64) -> Instant {
    us(ms * 1_000)
}

#[test]
fn a_station_that_senses_an_interferer_waits_for_its_silence() {
    let mut spec = line("b-11", &[0, 10]);
    // -20.05 dBm - 30 log10(50) = -71 dBm at the sender: above -85 dBm.
    spec.interferers = vec![interferer(-50, 20, regular(30, 70))];
    let mut medium = medium(spec);
    run_until(&mut medium, ms(10));
    send(&mut medium, ms(10), 1, 0, 1, 200);
    let outputs = run_until(&mut medium, ms(99));
    let [(1, at)] = arrivals(&outputs)[..] else { panic!("{outputs:?}") };
    // The silence begins at 30 ms; then DIFS, up to 31 slots, and 364 µs for the frame.
    let waited = at.since(ms(30)).as_ns() / 1_000;
    assert!((50 + 364..=50 + 31 * 20 + 364).contains(&waited), "{waited} us");
    // The radio counted the interferer as a busy medium.
    assert!(medium.counters(0).time.receive >= Duration::from_ms(30));
}

#[test]
fn a_station_that_does_not_sense_an_interferer_sends_and_is_not_understood() {
    let mut spec = line("b-11", &[0, 60]);
    // -20.05 - 30 log10(110) = -81.3 dBm at the sender, below its -75 dBm; 50 m behind the receiver -71 dBm, where the frame
    // has -73.4 dBm.
    spec.radio.carrier_sense_mdbm = -75_000;
    spec.interferers = vec![interferer(110, 20, regular(150, 50))];
    let mut medium = medium(spec);
    run_until(&mut medium, ms(1));
    send(&mut medium, ms(1), 1, 0, 1, 200);
    let outputs = run_until(&mut medium, ms(149));
    let done = finished(&outputs);
    // Seven attempts, with at most 31 + 63 + … + 1023 slots of 20 us between them, and none arrives.
    assert_eq!(done.len(), 1);
    assert!(!is_delivered(&done[0]), "{done:?}");
    assert_eq!(done[0].attempts, 7);
    // In its pause a frame arrives at once.
    run_until(&mut medium, ms(160));
    send(&mut medium, ms(160), 2, 0, 1, 100);
    assert_eq!(arrivals(&run_until(&mut medium, ms(165))).len(), 1);
}

#[test]
fn an_interferer_that_begins_within_a_frame_spoils_it() {
    let mut spec = line("b-11", &[0, 60]);
    spec.mac.short_retry_limit = 1;
    spec.radio.carrier_sense_mdbm = -75_000;
    spec.interferers = vec![interferer(110, 20, regular(100, 100))];
    let mut medium = medium(spec);
    // It pauses from 100 to 200 ms. A frame of 1536 B takes 1310 µs, and is cut at its last 310.
    run_until(&mut medium, ms(199));
    send(&mut medium, ms(199), 1, 0, 1, 1_500);
    let outputs = run_until(&mut medium, ms(250));
    assert!(!is_delivered(&finished(&outputs)[0]));
    assert_eq!(medium.counters(1).collisions, 1);
}

#[test]
fn one_that_is_switched_off_changes_nothing_but_what_comes_of_its_numbers() {
    let run = |interferers: Vec<InterfererSpec>| {
        let mut spec = line("b-11", &[0, 110]);
        spec.radio.fading = Some(FadingSpec::Rayleigh { coherence: Duration::from_ms(20) });
        spec.interferers = interferers;
        let mut medium = medium(spec);
        let mut outputs = Vec::new();
        for frame in 0..500 {
            outputs.extend(run_until(&mut medium, ms(10 * frame + 5)));
            send(&mut medium, ms(10 * frame + 5), frame, 0, 1, 300);
        }
        outputs.extend(run_until(&mut medium, ms(6_000)));
        outputs
    };
    let silent = InterfererSpec { on: false, ..interferer(20, 20, regular(5, 5)) };
    assert_eq!(run(Vec::new()), run(vec![silent]));
    assert_ne!(run(Vec::new()), run(vec![interferer(20, 20, regular(5, 5))]));
}

#[test]
fn its_power_fades_and_follows_stations_that_move() {
    let mut spec = line("b-11", &[0, 30, 60]);
    spec.mobility = MobilitySpec::RandomWaypoint {
        width_mm: 150_000,
        height_mm: 150_000,
        speed_min_mm_s: 5_000,
        speed_max_mm_s: 10_000,
        pause: Duration::ZERO,
        refresh: Duration::from_ms(100),
    };
    spec.radio.fading = Some(FadingSpec::Nakagami { m_milli: 2_000, coherence: Duration::from_ms(30) });
    spec.radio.shadowing = Some(ShadowingSpec { sigma_mdb: 6_000, decorrelation_mm: Some(10_000) });
    spec.radio.errors = ErrorModel::Snr;
    let duty = DutySpec::Exponential { on: Duration::from_ms(7), off: Duration::from_ms(9) };
    spec.interferers = vec![
        interferer(75, 0, duty),
        InterfererSpec { name: "weak".into(), ..interferer(0, -20, DutySpec::Constant) },
    ];
    let run = || {
        let mut medium = medium(spec.clone());
        let mut outputs = Vec::new();
        for frame in 0..3_000 {
            outputs.extend(run_until(&mut medium, ms(10 * frame + 5)));
            send(&mut medium, ms(10 * frame + 5), frame, (frame % 2) as usize, 2, 300);
        }
        outputs.extend(run_until(&mut medium, ms(40_000)));
        (finished(&outputs), (0..3).map(|station| medium.counters(station)).collect::<Vec<_>>())
    };
    let (done, counters) = run();
    assert_eq!(done.len(), 3_000);
    let arrived = done.iter().filter(|done| is_delivered(done)).count();
    assert!((300..3_000).contains(&arrived), "{arrived}");
    assert!(counters[2].collisions > 0 && counters[2].weak > 0, "{:?}", counters[2]);
    assert_eq!(run(), (done, counters));
}
