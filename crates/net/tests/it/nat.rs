//! A translator of addresses, held against a list of all frames that it let through.

use std::collections::BTreeSet;

use crate::changes::wire;
use mqttlab_net::{Cause, Fate, ForgottenFlow, FrameName, Link, NatSpec, Nats, Network, Output, Stage};
use mqttlab_units::{Bytes, Duration, Instant, Seed};

const OUT: usize = 0;
const IN: usize = 1;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_ms(ms)
}

/// Link 0 leads out, link 1 leads in, link 2 lies before both.
fn paths() -> Vec<Vec<Stage>> {
    vec![vec![Stage::Link(0)], vec![Stage::Link(2), Stage::Link(1)], vec![Stage::Link(2)]]
}

fn nats(forgotten: ForgottenFlow) -> Nats {
    let spec = NatSpec {
        outward: BTreeSet::from([0]),
        inward: BTreeSet::from([1]),
        timeout: Duration::from_ms(100),
        forgotten,
    };
    Nats::new(vec![spec], &paths())
}

#[test]
fn a_connection_that_is_silent_for_the_timeout_is_forgotten_and_a_syn_makes_it_anew() {
    let mut nats = nats(ForgottenFlow::Drop);
    assert_eq!(
        nats.drops(at(0), IN, 7, true),
        Some(1),
        "nobody inside has begun it; the second stage is the translator"
    );
    assert_eq!(nats.drops(at(0), OUT, 7, false), Some(0));
    assert_eq!(nats.drops(at(0), OUT, 7, true), None);
    // Each frame keeps it, whichever way it goes.
    assert_eq!(nats.drops(at(99), IN, 7, false), None);
    assert_eq!(nats.drops(at(198), OUT, 7, false), None);
    assert_eq!(nats.drops(at(200), IN, 8, false), Some(1), "another connection's");
    assert_eq!(nats.drops(at(298), IN, 7, false), Some(1), "silent for exactly the timeout");
    // What is dropped keeps nothing.
    assert_eq!(nats.drops(at(300), OUT, 7, false), Some(0));
    assert_eq!(nats.drops(at(301), OUT, 7, true), None);
    assert_eq!(nats.drops(at(302), IN, 7, false), None);
    // A path that crosses no translator.
    assert_eq!([OUT, IN, 2, 3].map(|path| nats.are_crossed_by(path)), [true, true, false, false]);
    assert_eq!(nats.drops(at(303), 2, 9, false), None);
}

#[test]
fn a_segment_from_inside_revives_a_connection_where_the_translator_does_so() {
    let mut nats = nats(ForgottenFlow::Revive);
    assert_eq!(nats.drops(at(0), IN, 7, false), Some(1));
    assert_eq!(nats.drops(at(1), OUT, 7, false), None);
    assert_eq!(nats.drops(at(100), IN, 7, false), None);
    assert_eq!(nats.drops(at(200), IN, 7, false), Some(1));
    assert_eq!(nats.drops(at(201), OUT, 7, false), None);
    assert_eq!(nats.drops(at(202), IN, 7, false), None);
}

#[test]
fn a_refused_frame_is_told_and_counted_at_its_stage_and_crosses_nothing() {
    let links = (0..3).map(|_| Link::new(wire(8_000, 5), Seed(1))).collect();
    let mut network = Network::with_media(links, Vec::new(), paths());
    network.refuse(at(10), 3, IN, 1);
    let fate = Fate::Dropped { cause: Cause::NatForgot, air: None };
    assert_eq!(
        network.poll(),
        Some(Output::Crossed { frame: 3, copy: 0, link: 1, hop: 1, entered: at(10), fate })
    );
    assert_eq!((network.poll(), network.in_transit(), network.next_deadline()), (None, 0, None));
    let drops: Vec<u64> = network.traffic(at(10)).map(|link| link.drops.of(Cause::NatForgot)).collect();
    assert_eq!(
        (drops, network.traffic(at(10)).map(|link| link.drops.total()).sum::<u64>()),
        (vec![0, 1, 0], 1)
    );
    // What follows is as if it had not been.
    network.handle(at(10), 4, FrameName::nth(0), OUT, Bytes(100));
    assert!(matches!(network.poll(), Some(Output::Crossed { fate: Fate::Delivered(_), .. })));
}

/// Held against the obvious: all that a flow's frames did before.
#[test]
fn it_does_as_a_list_of_all_frames_says() {
    for (case, forgotten) in [ForgottenFlow::Drop, ForgottenFlow::Revive].into_iter().enumerate() {
        let mut nats = nats(forgotten);
        let (mut now, mut passed, mut counts) = (0, Vec::<(u128, u64)>::new(), [0, 0]);
        let dice = Seed(case as u64).derive("frames");
        for number in 0..4_000 {
            let throw = dice.index(number).0;
            let (step, outward, begins) = (throw % 40, throw >> 8 & 1 == 0, throw >> 9 & 7 == 0);
            let flow = u128::from(throw >> 16 & 3);
            now += step;
            let last = passed.iter().rev().find(|(of, _)| *of == flow);
            let known = last.is_some_and(|(_, when)| now - when < 100);
            let passes = known || outward && (begins || forgotten == ForgottenFlow::Revive);
            let found = nats.drops(at(now), if outward { OUT } else { IN }, flow, begins);
            assert_eq!(found.is_none(), passes, "frame {number}");
            counts[usize::from(passes)] += 1;
            if passes {
                passed.push((flow, now));
            }
        }
        assert!(counts.into_iter().all(|count| count > 200), "{counts:?}");
    }
}
