//! A policer in front of a link: what it drops, and what it leaves alone.

use mqttlab_net::{Cause, Fate, FrameName, Link, LinkChange, LinkSpec, LossPlace, LossSpec, PolicerSpec};
use mqttlab_units::{BitRate, Bytes, Duration, Instant, Ratio, Seed};

use crate::changes::wire;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_ms(ms)
}

/// One byte in a millisecond.
fn policed(spec: LinkSpec, burst_bytes: u64) -> LinkSpec {
    let rate_bit_s = BitRate::from_bit_s(8_000).unwrap();
    LinkSpec { policer: Some(PolicerSpec { rate_bit_s, burst_bytes }), ..spec }
}

fn cause(fate: &Fate) -> Option<Cause> {
    match fate {
        Fate::Delivered(_) => None,
        Fate::Dropped { cause, .. } => Some(*cause),
    }
}

/// Fates of frames of 100 B that come at these times.
fn fates(link: &mut Link, times: &[u64]) -> Vec<Fate> {
    let offers = times.iter().enumerate();
    offers.map(|(number, ms)| link.offer(at(*ms), Bytes(100), FrameName::nth(number as u64))).collect()
}

#[test]
fn what_exceeds_rate_and_burst_is_dropped_with_its_own_cause_and_takes_no_time_of_the_link() {
    let mut link = Link::new(policed(wire(1_000_000, 5), 250), Seed(1));
    let found = fates(&mut link, &[0, 0, 0, 49, 50, 1_000, 1_000, 1_000]);
    let causes: Vec<_> = found.iter().map(cause).collect();
    let exceeds = Some(Cause::Policer);
    assert_eq!(causes, [None, None, exceeds, exceeds, None, None, None, exceeds]);
    assert!(matches!(found[2], Fate::Dropped { air: None, .. }));
    // 100 B take 0.8 ms; nothing waits behind what was dropped.
    assert_eq!(found[4].delivered_at(), Some(Instant::from_ns(55_800_000)));
    let traffic = link.traffic(at(2_000));
    assert_eq!((traffic.frames, traffic.drops.of(Cause::Policer), traffic.drops.total()), (5, 3, 3));
}

#[test]
fn the_links_overhead_counts() {
    let spec = LinkSpec { overhead_bytes: 150, ..wire(1_000_000, 5) };
    let mut link = Link::new(policed(spec, 499), Seed(1));
    let causes: Vec<_> = fates(&mut link, &[0, 0]).iter().map(cause).collect();
    assert_eq!(causes, [None, Some(Cause::Policer)]);
}

/// Over a long time as much passes as the rate says, and the burst: RFC 2697's committed rate and burst size.
#[test]
fn what_passes_is_the_rate_and_one_burst() {
    for seed in 0..50 {
        let mut dice = Seed(seed).dice();
        let burst = 1_500 + dice.below(20_000);
        let mut link = Link::new(policed(wire(100_000_000, 1), burst), Seed(1));
        let (mut now, mut passed) = (0, 0);
        for number in 0..2_000 {
            now += dice.below(100_000_000);
            let size = 40 + dice.below(1_461);
            let fate = link.offer(Instant::from_ns(now), Bytes(size), FrameName::nth(number));
            passed += if cause(&fate).is_none() { size } else { 0 };
            assert!(passed <= burst + now / 1_000_000, "more than the rate and a burst");
        }
        // Frames come faster than the rate: all but the last few tokens are used.
        assert!(passed + 1_500 >= now / 1_000_000, "{passed} of {}", now / 1_000_000);
    }
}

#[test]
fn what_the_policer_drops_does_not_move_the_dice_of_others() {
    let half = LossSpec::Bernoulli { probability: Ratio::new(1, 2).unwrap() };
    for loss_at in [LossPlace::Entry, LossPlace::Exit] {
        let spec = LinkSpec { loss: half.clone(), loss_at, ..wire(1_000_000, 5) };
        let times: Vec<u64> = (0..200).map(|number| 30 * number).collect();
        let plain = fates(&mut Link::new(spec.clone(), Seed(7)), &times);
        let dropping = fates(&mut Link::new(policed(spec, 250), Seed(7)), &times);
        let lost = dropping.iter().filter(|fate| cause(fate) == Some(Cause::RandomLoss)).count();
        let kept = plain.iter().zip(&dropping).filter(|(_, fate)| cause(fate) != Some(Cause::Policer));
        assert!(kept.clone().all(|(one, other)| cause(one) == cause(other)));
        assert!(kept.count() < 150 && lost > 10);
    }
}

#[test]
fn a_link_that_takes_each_step_in_its_time_drops_the_same() {
    let spec = policed(wire(1_000_000, 5), 250);
    let times = [0, 0, 0, 49, 50, 1_000, 1_000, 1_000];
    let expected: Vec<_> = fates(&mut Link::new(spec.clone(), Seed(1)), &times).iter().map(cause).collect();
    let mut link = Link::changeable(spec, Seed(1));
    for (number, ms) in times.iter().enumerate() {
        link.enter(at(*ms), number as u32, Bytes(100), FrameName::nth(number as u64));
    }
    link.tick(at(5_000));
    let mut found: Vec<_> = std::iter::from_fn(|| link.poll()).collect();
    found.sort_by_key(|settled| settled.frame);
    assert_eq!(found.iter().map(|settled| cause(&settled.fate)).collect::<Vec<_>>(), expected);
}

#[test]
fn an_event_changes_its_rate_and_takes_it_away() {
    let plain = wire(1_000_000, 5);
    let mut link = Link::changeable(policed(plain.clone(), 1_000), Seed(1));
    let offer = |link: &mut Link, ms: u64, bytes: u64| {
        link.enter(at(ms), 0, Bytes(bytes), FrameName::nth(ms));
        link.tick(at(ms + 20));
        cause(&link.poll().expect("its fate is known").fate)
    };
    assert_eq!(offer(&mut link, 0, 1_000), None);
    assert_eq!(offer(&mut link, 30, 100), Some(Cause::Policer), "30 tokens");
    let faster = PolicerSpec { rate_bit_s: BitRate::from_bit_s(80_000).unwrap(), burst_bytes: 1_000 };
    let change = |policer| LinkChange::Spec { spec: Box::new(LinkSpec { policer, ..plain.clone() }) };
    link.change(at(100), &change(Some(faster)));
    assert_eq!(offer(&mut link, 100, 101), Some(Cause::Policer), "100 tokens at the rate before");
    assert_eq!(offer(&mut link, 130, 400), None, "and 300 of 30 ms");
    link.change(at(200), &change(None));
    assert_eq!(offer(&mut link, 200, 1_400), None);
    link.change(at(300), &change(Some(faster)));
    assert_eq!(offer(&mut link, 300, 1_000), None, "a new one is full");
    assert_eq!(offer(&mut link, 321, 400), Some(Cause::Policer));
}
