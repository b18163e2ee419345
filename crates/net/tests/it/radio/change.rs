//! Interferers that are switched, and radios that go off and on.

use super::*;
use mqttlab_net::radio::{DutySpec, InterfererSpec, MediumChange};

fn ms(ms: u64) -> Instant {
    us(ms * 1_000)
}

fn off(station: usize) -> MediumChange {
    MediumChange::StationsOff { stations: vec![station] }
}

fn on(station: usize) -> MediumChange {
    MediumChange::StationsOn { stations: vec![station] }
}

#[test]
fn an_interferer_keeps_stations_silent_from_its_switching_on_to_its_switching_off() {
    let mut spec = line("b-11", &[0, 10]);
    let position = Position { x_mm: 5_000, y_mm: 0 };
    spec.interferers = vec![InterfererSpec {
        name: "oven".into(),
        position,
        power_mdbm: 20_000,
        duty: DutySpec::Constant,
        on: false,
    }];
    let mut medium = medium(spec);
    send(&mut medium, ms(1), 1, 0, 1, 200);
    assert_eq!(arrivals(&run_until(&mut medium, ms(9))).len(), 1);
    medium.change(ms(10), &MediumChange::InterfererOn { interferer: "oven".into() });
    send(&mut medium, ms(11), 2, 0, 1, 200);
    assert_eq!(run_until(&mut medium, ms(499)), []);
    medium.change(ms(500), &MediumChange::InterfererOff { interferer: "oven".into() });
    let outputs = settle(&mut medium);
    let [(2, at)] = arrivals(&outputs)[..] else { panic!("{outputs:?}") };
    assert!(at >= ms(500) && at < ms(502), "{at}");
}

#[test]
fn a_radio_that_is_off_hears_nothing_and_its_frames_wait() {
    let mut medium = medium(line("b-11", &[0, 10]));
    medium.change(ms(1), &off(1));
    // To it: lost after seven attempts, as to one that is not there.
    send(&mut medium, ms(2), 1, 0, 1, 200);
    let outputs = run_until(&mut medium, ms(99));
    assert!(!is_delivered(&finished(&outputs)[0]));
    assert_eq!(medium.counters(1).received.total().frames, 0);
    // From it: it waits until the radio is on.
    send(&mut medium, ms(100), 2, 1, 0, 200);
    send(&mut medium, ms(101), 3, 1, 0, 200);
    assert_eq!(run_until(&mut medium, ms(199)), []);
    medium.change(ms(200), &on(1));
    let outputs = settle(&mut medium);
    let arrived = arrivals(&outputs);
    assert_eq!(arrived.iter().map(|(frame, _)| *frame).collect::<Vec<_>>(), [2, 3]);
    assert!(arrived[0].1 >= ms(200) && arrived[1].1 < ms(205), "{arrived:?}");
    assert!(medium.counters(1).time.sleep >= Duration::from_ms(199));
}

#[test]
fn a_radio_that_goes_off_while_it_sends_finishes_its_frame_and_hears_no_answer() {
    let mut medium = medium(line("dsss-2", &[0, 10]));
    send(&mut medium, ms(1), 1, 0, 1, 1_000);
    medium.change(ms(2), &off(0));
    let outputs = run_until(&mut medium, ms(99));
    // 192 us and 1036 B at 2 Mbit/s: it has arrived once.
    assert_eq!(arrivals(&outputs), [(1, ms(1) + Duration::from_us(192 + 4_144))]);
    assert_eq!(medium.counters(1).sent.ack.frames, 1);
    assert_eq!(medium.counters(0).received.total().frames, 0);
    medium.change(ms(100), &on(0));
    let outputs = settle(&mut medium);
    // The copy is acknowledged, and no second message.
    assert!(is_delivered(&finished(&outputs)[0]));
    assert_eq!(arrivals(&outputs), []);
    assert_eq!(medium.counters(1).duplicates, 1);
}

#[test]
fn a_radio_that_goes_off_within_an_exchange_takes_it_up_again() {
    // At every instant of an exchange with RTS, and for any time: nothing is stuck, and nothing is said twice.
    for off_us in (1_000..4_000).step_by(37) {
        for lasts_us in [1, 100, 1_000, 20_000] {
            for station in [0, 1] {
                let mut spec = line("b-11", &[0, 10, 20]);
                spec.mac.rts_threshold_bytes = Some(0);
                spec.mac.short_retry_limit = 20;
                spec.mac.long_retry_limit = 20;
                let mut medium = medium(spec);
                let mut outputs = Vec::new();
                for frame in 0..3 {
                    send(&mut medium, us(1_000), frame, 0, 1, 300);
                    send(&mut medium, us(1_000), 10 + frame, 2, 0, 300);
                }
                outputs.extend(run_until(&mut medium, us(off_us)));
                medium.change(us(off_us), &off(station));
                outputs.extend(run_until(&mut medium, us(off_us + lasts_us)));
                medium.change(us(off_us + lasts_us), &on(station));
                outputs.extend(settle(&mut medium));
                assert_eq!(
                    finished(&outputs).len(),
                    6,
                    "station {station} off at {off_us} for {lasts_us} us"
                );
                let mut arrived: Vec<u64> = arrivals(&outputs).iter().map(|(frame, _)| *frame).collect();
                arrived.sort_unstable();
                assert_eq!(
                    arrived,
                    [0, 1, 2, 10, 11, 12],
                    "station {station} off at {off_us} for {lasts_us} us"
                );
            }
        }
    }
}

#[test]
fn changes_that_change_nothing_change_nothing() {
    let run = |changed: bool| {
        let mut medium = medium(line("b-11", &[0, 10]));
        let mut outputs = Vec::new();
        for frame in 0..100 {
            outputs.extend(run_until(&mut medium, ms(frame)));
            send(&mut medium, ms(frame), frame, 0, 1, 300);
            if changed {
                medium.change(ms(frame), &on(0));
                medium.change(ms(frame), &on(1));
            }
        }
        outputs.extend(settle(&mut medium));
        outputs
    };
    assert_eq!(run(false), run(true));
}

#[test]
fn a_station_that_is_moved_is_heard_from_where_it_is_then() {
    let mut spec = line("b-11", &[0, 400]);
    spec.interferers = vec![InterfererSpec {
        name: "oven".into(),
        position: Position { x_mm: 0, y_mm: 300_000 },
        power_mdbm: 20_000,
        duty: DutySpec::Constant,
        on: true,
    }];
    let mut medium = medium(spec);
    // 400 m: -98 dBm.
    send(&mut medium, ms(1), 1, 0, 1, 100);
    assert!(!is_delivered(&finished(&run_until(&mut medium, ms(99)))[0]));
    let there = Position { x_mm: 20_000, y_mm: 0 };
    medium.change(ms(100), &MediumChange::StationMoved { station: 1, position: there });
    assert_eq!(medium.position(1), there);
    send(&mut medium, ms(101), 2, 0, 1, 100);
    assert_eq!(arrivals(&run_until(&mut medium, ms(110))).len(), 1);
    // Beside the interferer it senses a busy medium, and keeps its frame.
    let beside = Position { x_mm: 0, y_mm: 290_000 };
    medium.change(ms(120), &MediumChange::StationMoved { station: 1, position: beside });
    send(&mut medium, ms(121), 3, 1, 0, 100);
    assert_eq!(run_until(&mut medium, ms(500)), []);
    medium.change(ms(501), &MediumChange::StationMoved { station: 1, position: there });
    assert_eq!(arrivals(&settle(&mut medium)).len(), 1);
}
