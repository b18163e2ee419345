//! Channels in time, moving stations, many stations, and the same again.

use mqttlab_net::Cause;
use mqttlab_net::radio::ChannelSpec;
use mqttlab_units::Ratio;

use super::*;

fn channel(mean_bad_ms: u64, loss_bad: Ratio) -> Option<ChannelSpec> {
    Some(ChannelSpec { mean_bad: Duration::from_ms(mean_bad_ms), bad: Ratio::new(1, 10).unwrap(), loss_bad })
}

/// Random traffic among stations in a square; everything that happened.
fn traffic(spec: MediumSpec, seed: u64, frames: u64, mean: Duration) -> (Medium, Vec<Output>) {
    let mut medium = Medium::new(spec, Seed(seed));
    let mut dice = Seed(99).dice();
    let (mut now, mut outputs) = (us(0), Vec::new());
    for frame in 0..frames {
        now += dice.exponential(mean);
        let from = dice.below(medium.stations() as u64) as usize;
        let to = (from + 1) % medium.stations();
        outputs.extend(run_until(&mut medium, now));
        send(&mut medium, now, frame, from, to, 200);
    }
    outputs.extend(settle(&mut medium));
    (medium, outputs)
}

fn in_a_room(stations: u32) -> MediumSpec {
    let mut spec = line("b-11", &[]);
    spec.placement = PlacementSpec::Random { stations, width_mm: 50_000, height_mm: 50_000 };
    spec
}

#[test]
fn the_channels_loss_is_its_share_at_a_station_that_only_listens() {
    let mut spec = line("b-11", &[0, 10, 20]);
    spec.channel = channel(20, Ratio::new(1, 2).unwrap());
    let (mut medium, mut dice, mut now) = (medium(spec), Seed(99).dice(), us(0));
    for frame in 0..30_000 {
        now += dice.exponential(Duration::from_ms(20));
        run_until(&mut medium, now);
        send(&mut medium, now, frame, 0, 1, 200);
    }
    let counters = medium.counters(2);
    let (lost, heard) = (counters.channel_errors, counters.overheard.total().frames);
    // 10 % bad, half of it lost. 600 s see 3000 bad states; a sum of as many exponential times has a relative
    // deviation of 1.8 %, the good ones have as much: five times 2.6 %.
    let share = lost as f64 / (lost + heard) as f64;
    assert!((share / 0.05 - 1.0).abs() < 0.13, "{share}");
    assert_eq!((counters.weak, counters.collisions), (0, 0));
    // Frames to a station in its bad state are lost every other time, so nearly all arrive.
    assert!(medium.counters(0).retries > 1000 && medium.counters(0).delivered > 29_500);
}

#[test]
fn the_same_seed_gives_the_same_air_and_another_another() {
    let run = |seed| traffic(in_a_room(10), seed, 2000, Duration::from_ms(1)).1;
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_channel_without_losses_leaves_the_backoffs_dice_alone() {
    let mut quiet = in_a_room(10);
    quiet.channel = channel(20, Ratio::ZERO);
    let run = |spec| traffic(spec, 1, 2000, Duration::from_ms(1)).1;
    assert_eq!(run(quiet), run(in_a_room(10)));
}

#[test]
fn times_and_energy_add_up() {
    let mut spec = line("dsss-2", &[0, 10]);
    spec.energy = EnergyProfile {
        name: "made up".into(),
        voltage_mv: 3_000,
        transmit_ua: 200_000,
        receive_ua: 100_000,
        idle_ua: 10_000,
        sleep_na: 0,
    };
    let mut medium = medium(spec);
    send(&mut medium, us(1000), 1, 0, 1, 200);
    settle(&mut medium);
    medium.tick(us(10_000));
    let time = medium.counters(0).time;
    assert_eq!((time.transmit, time.receive), (Duration::from_us(1136), Duration::from_us(304)));
    assert_eq!(time.transmit + time.receive + time.idle, Duration::from_us(10_000));
    // 3 V (0.2 A * 1.136 ms + 0.1 A * 0.304 ms + 0.01 A * 8.56 ms).
    assert!((medium.energy_j(0) - 3.0 * (0.2 * 1.136e-3 + 0.1 * 0.304e-3 + 0.01 * 8.56e-3)).abs() < 1e-12);
    assert!((medium.energy_j(1) - 3.0 * (0.2 * 0.304e-3 + 0.1 * 1.136e-3 + 0.01 * 8.56e-3)).abs() < 1e-12);
}

#[test]
fn a_station_that_rests_draws_its_sleep_current_and_hears_nothing() {
    let mut spec = line("dsss-2", &[0, 10, 20]);
    spec.energy = EnergyProfile {
        name: "made up".into(),
        voltage_mv: 3_000,
        transmit_ua: 0,
        receive_ua: 0,
        idle_ua: 10_000,
        sleep_na: 500,
    };
    let mut medium = medium(spec);
    let everything = |medium: &Medium, station| {
        let time = medium.counters(station).time;
        time.transmit + time.receive + time.idle + time.sleep
    };
    medium.rest(us(1_000), 1, true);
    // Others' frames are no concern of its; what is sent to it is lost.
    send(&mut medium, us(2_000), 1, 0, 2, 200);
    assert!(finished(&run_until(&mut medium, us(10_000))).iter().all(is_delivered));
    assert_eq!(overheard(&medium, 1), 0);
    send(&mut medium, us(10_000), 2, 0, 1, 200);
    let lost = finished(&run_until(&mut medium, us(200_000)));
    assert!(matches!(lost[..], [Finished { fate: Outcome::Dropped { .. }, .. }]), "{lost:?}");
    medium.tick(us(1_001_000));
    let time = medium.counters(1).time;
    assert_eq!((time.sleep, time.idle), (Duration::from_s(1), Duration::from_ms(1)));
    // 3 V (0.5 uA * 1 s + 10 mA * 1 ms).
    assert!((medium.energy_j(1) - 3.0 * (0.5e-6 + 10e-3 * 1e-3)).abs() < 1e-12);
    // For a frame of its own it is awake, and for as long as that takes alone.
    send(&mut medium, us(1_001_000), 3, 1, 0, 200);
    assert!(finished(&run_until(&mut medium, us(1_050_000))).iter().all(is_delivered));
    medium.tick(us(1_101_000));
    let awake = everything(&medium, 1) - medium.counters(1).time.sleep;
    assert!(awake < Duration::from_ms(4), "{awake}");
    // Awake again it hears, from then on.
    medium.rest(us(1_101_000), 1, false);
    send(&mut medium, us(1_102_000), 4, 0, 1, 200);
    assert!(finished(&run_until(&mut medium, us(1_200_000))).iter().all(is_delivered));
    medium.tick(us(1_200_000));
    assert_eq!(everything(&medium, 1), Duration::from_us(1_200_000));
    // Told late, it does as of then: nothing has happened at it since.
    let before = medium.counters(1).time.sleep;
    medium.rest(us(1_150_000), 1, true);
    medium.tick(us(1_300_000));
    assert_eq!(medium.counters(1).time.sleep - before, Duration::from_ms(150));
    assert_eq!(everything(&medium, 1), Duration::from_us(1_300_000));
}

#[test]
fn a_station_falls_asleep_when_its_exchange_is_over_and_not_before() {
    let mut medium = medium(line("dsss-2", &[0, 10]));
    send(&mut medium, us(1_000), 1, 0, 1, 200);
    // In the middle of the data frame, which it receives and acknowledges.
    run_until(&mut medium, us(1_500));
    medium.rest(us(1_500), 1, true);
    assert_eq!(medium.counters(1).time.sleep, Duration::ZERO);
    assert!(finished(&run_until(&mut medium, us(50_000))).iter().all(is_delivered));
    medium.tick(us(50_000));
    assert!(medium.counters(1).time.sleep > Duration::from_ms(45));
}

fn overheard(medium: &Medium, station: usize) -> u64 {
    medium.counters(station).overheard.total().frames
}

#[test]
fn walking_stations_lose_each_other_and_meet_again() {
    let mut spec = line("dsss-2", &[0, 10]);
    spec.mac.short_retry_limit = 1;
    spec.mobility = MobilitySpec::RandomWaypoint {
        width_mm: 400_000,
        height_mm: 400_000,
        speed_min_mm_s: 1_000,
        speed_max_mm_s: 5_000,
        pause: Duration::from_s(1),
        refresh: Duration::from_ms(100),
    };
    let mut medium = medium(spec);
    let (mut met, mut lost) = (0, 0);
    for second in 0..3000 {
        let now = us(second * 1_000_000 + 500);
        send(&mut medium, now, second, 0, 1, 200);
        let (a, b) = (medium.position(0), medium.position(1));
        let metres = ((a.x_mm - b.x_mm) as f64).hypot((a.y_mm - b.y_mm) as f64) / 1e3;
        let fate = finished(&settle(&mut medium))[0].fate;
        // Frames reach 231.8 m. Positions are up to 100 ms old, in which two stations come 1 m closer.
        match fate {
            Outcome::Delivered { .. } => assert!(metres < 232.9, "{metres}"),
            Outcome::Dropped { cause } => assert!(cause == Cause::Unreachable && metres > 230.7, "{metres}"),
        }
        if is_delivered_fate(fate) { met += 1 } else { lost += 1 }
    }
    assert!(met > 500 && lost > 500, "{met} {lost}");
}

fn is_delivered_fate(fate: Outcome) -> bool {
    matches!(fate, Outcome::Delivered { .. })
}

#[test]
fn a_thousand_stations_on_a_grid_tell_the_fate_of_every_frame() {
    let mut spec = line("b-11", &[]);
    spec.placement = PlacementSpec::Grid { stations: 1000, spacing_mm: 50_000 };
    // 32 in a row; the next one is 50 m away, but for those at the ends of rows, which are 1551 m off.
    let (medium, outputs) = traffic(spec, 1, 3000, Duration::from_us(500));
    let finished = finished(&outputs);
    let mut frames: Vec<u64> = finished.iter().map(|finished| finished.frame).collect();
    frames.sort_unstable();
    assert!(frames.into_iter().eq(0..3000), "each frame has one fate");
    for finished in &finished {
        let at_the_end = finished.from % 32 == 31 || finished.from == 999;
        let unreachable = finished.fate == Outcome::Dropped { cause: Cause::Unreachable };
        assert_eq!(unreachable, at_the_end, "{finished:?}");
    }
    let delivered = finished.iter().filter(|finished| is_delivered(finished)).count();
    assert_eq!(arrivals(&outputs).len(), delivered);
    assert!(delivered > 2700, "{delivered}");
    let total: Duration = (0..1000)
        .map(|station| medium.counters(station).time)
        .fold(Duration::ZERO, |sum, time| sum + time.transmit + time.receive + time.idle);
    let last = medium.counters(0).time;
    assert_eq!(total, (last.transmit + last.receive + last.idle) * 1000);
}
