//! Links against first principles, in virtual time.

use mqttlab_net::{
    BitErrors, BurstLoss, Cause, DelayLaw, DelaySpec, Discipline, Fate, FrameName, Link, LinkSpec, LossPlace,
    LossSpec, Network, Output, QueueSpec, ReorderSpec, copy_made_at,
};
use mqttlab_units::{BitRate, Bytes, Duration, Instant, Ratio, Seed};

fn link(rate_bit_s: u64, delay_ms: u64) -> LinkSpec {
    LinkSpec {
        name: "wire".into(),
        rate_bit_s: BitRate::from_bit_s(rate_bit_s),
        overhead_bytes: 0,
        minimum_frame_bytes: 0,
        queue: QueueSpec {
            limit_packets: None,
            limit_bytes: None,
            counts_delay_line: false,
            discipline: Discipline::TailDrop,
        },
        delay: DelaySpec {
            law: DelayLaw::Constant,
            mean: Duration::from_ms(delay_ms),
            jitter: Duration::ZERO,
            correlation: Ratio::ZERO,
            keep_order: true,
        },
        loss: LossSpec::None,
        loss_at: LossPlace::Entry,
        duplication: Ratio::ZERO,
        corruption: Ratio::ZERO,
        reordering: ReorderSpec { probability: Ratio::ZERO, gap: 1 },
        policer: None,
    }
}

/// The name of a frame that meets no dice.
fn any() -> FrameName {
    FrameName::nth(0)
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_ms(ms)
}

fn arrival(fate: Fate) -> Instant {
    fate.delivered_at().expect("the frame was dropped")
}

#[test]
fn a_frame_takes_its_serialization_and_the_delay() {
    // 438 B at 16 kbit/s take 219 ms: the 0.72 s of andersen2021's narrowband minimum.
    let mut wire = Link::new(link(16_000, 500), Seed(1));
    assert_eq!(arrival(wire.offer(at(0), Bytes(438), any())), at(719));
}

#[test]
fn a_second_frame_waits_for_the_first() {
    let mut wire = Link::new(link(8_000, 0), Seed(1));
    assert_eq!(arrival(wire.offer(at(0), Bytes(100), any())), at(100));
    let Fate::Delivered(second) = wire.offer(at(10), Bytes(50), any()) else { panic!("dropped") };
    assert_eq!((second.start, second.sent), (at(100), at(150)));
}

#[test]
fn a_saturated_link_carries_its_rate_to_the_nanosecond() {
    for rate in [9_600, 16_000, 250_000, 2_000_000, 100_000_000] {
        let mut wire = Link::new(link(rate, 5), Seed(1));
        let last = (0..10_000).map(|_| arrival(wire.offer(at(0), Bytes(1000), any()))).last().unwrap();
        let bits = 10_000.0 * 8000.0;
        let measured = bits / (last.since(at(5)).as_s_f64());
        assert!((measured / rate as f64 - 1.0).abs() < 1e-6, "{rate}: {measured}");
    }
}

#[test]
fn overhead_and_padding_count() {
    let mut spec = link(8_000, 0);
    spec.overhead_bytes = 38;
    spec.minimum_frame_bytes = 84;
    let mut wire = Link::new(spec, Seed(1));
    assert_eq!(arrival(wire.offer(at(0), Bytes(40), any())), at(84));
    assert_eq!(arrival(wire.offer(at(1000), Bytes(100), any())), at(1138));
}

#[test]
fn the_queue_drops_what_exceeds_it_and_opens_again() {
    let mut spec = link(8_000, 0);
    spec.queue.limit_packets = Some(2);
    let mut wire = Link::new(spec, Seed(1));
    let fates: Vec<Fate> = (0..4).map(|_| wire.offer(at(0), Bytes(100), any())).collect();
    assert!(fates[..2].iter().all(|fate| fate.delivered_at().is_some()));
    assert!(fates[2..].iter().all(|f| matches!(f, Fate::Dropped { cause: Cause::QueueFull, air: None })));
    assert_eq!(arrival(wire.offer(at(100), Bytes(100), any())), at(300));
    assert_eq!(wire.counters().dropped_queue, 2);
    assert_eq!(wire.counters().queue_frames_max, 2);
}

#[test]
fn a_queue_in_bytes_counts_bytes() {
    let mut spec = link(8_000, 0);
    spec.queue.limit_bytes = Some(250);
    let mut wire = Link::new(spec, Seed(1));
    assert!(wire.offer(at(0), Bytes(200), any()).delivered_at().is_some());
    assert!(wire.offer(at(0), Bytes(51), any()).delivered_at().is_none());
    assert!(wire.offer(at(0), Bytes(50), any()).delivered_at().is_some());
}

#[test]
fn netems_limit_counts_the_delay_line() {
    let mut spec = link(8_000_000, 1000);
    spec.queue.limit_packets = Some(10);
    let mut physical = Link::new(spec.clone(), Seed(1));
    spec.queue.counts_delay_line = true;
    let mut netem = Link::new(spec, Seed(1));
    let arrived = |wire: &mut Link| {
        (0..100)
            .filter(|i| wire.offer(at(*i), Bytes(100), FrameName::nth(*i)).delivered_at().is_some())
            .count()
    };
    assert_eq!(arrived(&mut physical), 100);
    assert_eq!(arrived(&mut netem), 10);
}

#[test]
fn loss_on_the_air_uses_the_links_time_and_loss_at_entry_does_not() {
    let mut spec = link(8_000, 0);
    spec.loss = LossSpec::Bernoulli { probability: Ratio::ONE };
    let mut entry = Link::new(spec.clone(), Seed(1));
    assert_eq!(entry.offer(at(0), Bytes(100), any()), Fate::Dropped { cause: Cause::RandomLoss, air: None });
    spec.loss_at = LossPlace::Exit;
    let mut exit = Link::new(spec, Seed(1));
    let air = Some((at(0), at(100)));
    assert_eq!(exit.offer(at(0), Bytes(100), any()), Fate::Dropped { cause: Cause::RandomLoss, air });
    assert_eq!(entry.counters().busy, Duration::ZERO);
    assert_eq!(exit.counters().busy, Duration::from_ms(100));
}

#[test]
fn jitter_reorders_only_where_order_is_not_kept() {
    let mut spec = link(1_000_000_000, 20);
    spec.delay.law = DelayLaw::Normal;
    spec.delay.jitter = Duration::from_ms(5);
    let reordered = |spec: LinkSpec| {
        let mut wire = Link::new(spec, Seed(4));
        let arrivals: Vec<Instant> =
            (0..2000).map(|i| arrival(wire.offer(at(4 * i), Bytes(100), FrameName::nth(i)))).collect();
        arrivals.windows(2).filter(|pair| pair[1] < pair[0]).count()
    };
    assert_eq!(reordered(spec.clone()), 0);
    spec.delay.keep_order = false;
    // P(N(4, 5 sqrt 2) < 0) = 0.2858 of 1999 neighbours: 571, neighbours being dependent.
    assert!((450..700).contains(&reordered(spec)));
}

#[test]
fn a_reordered_frame_overtakes_the_delay_line() {
    let mut spec = link(1_000_000_000, 20);
    spec.reordering = ReorderSpec { probability: Ratio::ONE, gap: 5 };
    let mut wire = Link::new(spec, Seed(1));
    let early = (0..100)
        .filter(|&i| arrival(wire.offer(at(100 * i), Bytes(100), FrameName::nth(i))) < at(100 * i + 20))
        .count();
    assert_eq!(early, 20);
}

#[test]
fn duplication_and_corruption_happen_as_often_as_they_should() {
    let mut spec = link(1_000_000_000, 1);
    spec.duplication = Ratio::new(1, 10).unwrap();
    spec.corruption = Ratio::new(1, 20).unwrap();
    let mut wire = Link::new(spec, Seed(9));
    for i in 0..50_000 {
        if let Fate::Delivered(delivery) = wire.offer(at(i), Bytes(100), FrameName::nth(i)) {
            assert!(delivery.corrupted_bit.is_none_or(|bit| bit < 800));
            assert!(delivery.duplicate_at.is_none_or(|copy| copy >= delivery.at));
        }
    }
    let counters = wire.counters();
    assert!((4_650..5_350).contains(&counters.duplicated), "{}", counters.duplicated);
    assert!((2_250..2_750).contains(&counters.corrupted), "{}", counters.corrupted);
}

#[test]
fn turning_one_knob_leaves_the_others_dice_alone() {
    let mut spec = link(1_000_000, 20);
    spec.loss = LossSpec::Bernoulli { probability: Ratio::new(1, 10).unwrap() };
    spec.delay.law = DelayLaw::Normal;
    spec.delay.jitter = Duration::from_ms(2);
    spec.delay.keep_order = false;
    let losses = |spec: &LinkSpec| -> Vec<bool> {
        let mut wire = Link::new(spec.clone(), Seed(3));
        (0..1000)
            .map(|i| wire.offer(at(10 * i), Bytes(100), FrameName::nth(i)).delivered_at().is_none())
            .collect()
    };
    let before = losses(&spec);
    spec.delay.jitter = Duration::from_ms(5);
    spec.corruption = Ratio::new(1, 2).unwrap();
    assert_eq!(losses(&spec), before);
}

#[test]
fn a_frame_more_does_not_change_what_befalls_the_others() {
    let mut spec = link(1_000_000, 20);
    spec.loss = LossSpec::Bernoulli { probability: Ratio::new(1, 10).unwrap() };
    let lost = |frames: &[u64]| -> Vec<u64> {
        let mut wire = Link::new(spec.clone(), Seed(3));
        let lost = |&&n: &&u64| wire.offer(at(n), Bytes(100), FrameName::nth(n)).delivered_at().is_none();
        frames.iter().filter(lost).copied().collect()
    };
    let all: Vec<u64> = (0..1000).collect();
    let mut fewer = all.clone();
    fewer.retain(|n| n % 7 != 3);
    let mut expected = lost(&all);
    expected.retain(|n| n % 7 != 3);
    assert_eq!(lost(&fewer), expected);
    assert!(expected.len() > 50, "{}", expected.len());
}

#[test]
fn delays_do_not_depend_on_losses() {
    let mut spec = link(1_000_000_000, 20);
    spec.delay.law = DelayLaw::Uniform;
    spec.delay.jitter = Duration::from_ms(2);
    spec.delay.keep_order = false;
    let delays = |spec: &LinkSpec| -> Vec<Option<Instant>> {
        let mut wire = Link::new(spec.clone(), Seed(3));
        (0..500).map(|i| wire.offer(at(10 * i), Bytes(100), FrameName::nth(i)).delivered_at()).collect()
    };
    let clean = delays(&spec);
    spec.loss = LossSpec::Bernoulli { probability: Ratio::new(3, 10).unwrap() };
    let lossy = delays(&spec);
    assert!(lossy.iter().any(Option::is_none));
    assert!(lossy.iter().zip(&clean).all(|(lossy, clean)| lossy.is_none() || lossy == clean));
}

fn crossings(network: &mut Network) -> Vec<Output> {
    std::iter::from_fn(|| network.poll()).collect()
}

#[test]
fn a_frame_enters_the_next_link_at_its_ideal_time_however_late_the_shell_calls() {
    let links = vec![Link::new(link(8_000, 5), Seed(1)), Link::new(link(8_000, 5), Seed(2))];
    let mut network = Network::new(links, vec![vec![0, 1]]);
    network.handle(at(0), 7, any(), 0, Bytes(100));
    assert_eq!(network.next_deadline(), Some(at(105)));
    network.tick(at(5000));
    let last = crossings(&mut network).pop().unwrap();
    assert_eq!(last, Output::Arrived { frame: 7, at: at(210), corrupted_bit: None, copy: 0 });
    assert_eq!(network.next_deadline(), None);
}

#[test]
fn two_flows_share_a_link_in_the_order_of_their_arrival_there() {
    // Flow 0 has 50 ms before the shared link, flow 1 has none and is offered later.
    let links = vec![Link::new(link(8_000_000, 50), Seed(1)), Link::new(link(8_000, 0), Seed(2))];
    let mut network = Network::new(links, vec![vec![0, 1], vec![1]]);
    network.handle(at(0), 0, any(), 0, Bytes(100));
    network.handle(at(10), 1, any(), 1, Bytes(100));
    network.tick(at(1000));
    let arrivals: Vec<(u64, Instant)> = crossings(&mut network)
        .iter()
        .filter_map(|output| match output {
            Output::Arrived { frame, at, .. } => Some((*frame, *at)),
            Output::Crossed { .. } => None,
        })
        .collect();
    // Flow 1 has the shared link from 10 ms to 110 ms; flow 0 comes at 50.1 ms, goes out at 110 ms.
    assert_eq!(arrivals, vec![(1, at(110)), (0, at(210))]);
}

#[test]
fn a_path_without_links_arrives_at_once() {
    let mut network = Network::new(vec![], vec![vec![]]);
    network.handle(at(3), 1, any(), 0, Bytes(10));
    assert_eq!(
        crossings(&mut network),
        vec![Output::Arrived { frame: 1, at: at(3), corrupted_bit: None, copy: 0 }]
    );
}

#[test]
fn hand_over_brings_frames_forward_but_not_before_their_last_link() {
    for (handover, due) in [(0, 210), (3, 207), (500, 105)] {
        let links = vec![Link::new(link(8_000, 5), Seed(1)), Link::new(link(8_000, 5), Seed(2))];
        let mut network = Network::new(links, vec![vec![0, 1]]).with_handover(Duration::from_ms(handover));
        network.handle(at(0), 7, any(), 0, Bytes(100));
        network.tick(at(5000));
        let outputs = crossings(&mut network);
        assert_eq!(
            outputs.last(),
            Some(&Output::Arrived { frame: 7, at: at(due), corrupted_bit: None, copy: 0 })
        );
        let Some(Output::Crossed { fate, .. }) = outputs.get(1) else { panic!("{outputs:?}") };
        assert_eq!(fate.delivered_at(), Some(at(210)), "what is recorded is the link's own time");
    }
}

#[test]
fn every_copy_of_a_frame_has_a_number_that_says_which_links_made_it() {
    let doubling = LinkSpec { duplication: Ratio::ONE, ..link(8_000, 5) };
    let links = vec![Link::new(doubling.clone(), Seed(1)), Link::new(doubling, Seed(2))];
    let mut network = Network::new(links, vec![vec![0, 1]]);
    network.handle(at(0), 7, any(), 0, Bytes(100));
    network.tick(at(5000));
    let (mut crossed, mut arrived) = (Vec::new(), Vec::new());
    for output in crossings(&mut network) {
        match output {
            Output::Crossed { frame: 7, copy, hop, .. } => crossed.push((hop, copy)),
            Output::Arrived { frame: 7, copy, .. } => arrived.push(copy),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(crossed, [(0, 0), (1, 0), (1, copy_made_at(0, 0))]);
    arrived.sort_unstable();
    assert_eq!(arrived, [0, copy_made_at(0, 0), copy_made_at(0, 1), copy_made_at(copy_made_at(0, 0), 1)]);
}

#[test]
fn frames_that_the_queue_drops_do_not_move_the_channel() {
    let permille = |n| Ratio::new(n, 1000).unwrap();
    let chains = [
        LossSpec::BitGilbertElliott(BitErrors {
            good_to_bad: permille(1),
            bad_to_bad: permille(999),
            error_good: Ratio::ZERO,
            error_bad: permille(10),
        }),
        LossSpec::GilbertElliott(BurstLoss {
            good_to_bad: permille(100),
            bad_to_good: permille(200),
            loss_good: Ratio::ZERO,
            loss_bad: permille(800),
        }),
    ];
    for loss in chains {
        // One frame at a time, and either nothing or five more while it is being sent, which find no room.
        let fates = |refused: u64| {
            let mut spec = link(8_000, 1);
            spec.loss = loss.clone();
            spec.loss_at = LossPlace::Exit;
            spec.queue.limit_packets = Some(1);
            let mut wire = Link::new(spec, Seed(3));
            let mut frame = |n: u64| {
                let fate = wire.offer(at(200 * n), Bytes(100), FrameName::nth(n));
                for extra in 0..refused {
                    let fate = wire.offer(at(200 * n + 1), Bytes(100), FrameName::nth(1000 + 5 * n + extra));
                    assert!(matches!(fate, Fate::Dropped { cause: Cause::QueueFull, .. }));
                }
                fate.delivered_at()
            };
            (0..200).map(&mut frame).collect::<Vec<_>>()
        };
        let alone = fates(0);
        let lost = alone.iter().filter(|arrival| arrival.is_none()).count();
        assert!((10..190).contains(&lost), "{lost} of 200");
        assert_eq!(alone, fates(5));
    }
}
