//! Radio hops as stages of a network's paths.

use mqttlab_net::{
    self as net, Cause, DelayLaw, DelaySpec, Delivery, Discipline, Fate, FrameName, Link, LinkSpec,
    LossPlace, LossSpec, Network, QueueSpec, ReorderSpec, Stage,
};
use mqttlab_units::{BitRate, Ratio};

use super::*;

/// 100 Mbit/s, 1 ms, no overhead.
fn link() -> Link {
    let spec = LinkSpec {
        name: "wire".into(),
        rate_bit_s: BitRate::from_bit_s(100_000_000),
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
            mean: Duration::from_ms(1),
            jitter: Duration::ZERO,
            correlation: Ratio::ZERO,
            keep_order: true,
        },
        loss: LossSpec::None,
        loss_at: LossPlace::Exit,
        duplication: Ratio::ZERO,
        corruption: Ratio::ZERO,
        reordering: ReorderSpec { probability: Ratio::ZERO, gap: 1 },
        policer: None,
    };
    Link::new(spec, Seed(1))
}

fn settle_network(network: &mut Network) -> Vec<net::Output> {
    let mut outputs = Vec::new();
    loop {
        outputs.extend(std::iter::from_fn(|| network.poll()));
        match network.next_deadline() {
            Some(deadline) => network.tick(deadline),
            None => return outputs,
        }
    }
}

const RADIO: Stage = Stage::Radio { medium: 0, from: 0, to: 1 };

#[test]
fn a_frame_crosses_air_and_wire_at_the_sum_of_their_times() {
    let medium = medium(line("dsss-2", &[0, 10]));
    let mut network = Network::with_media(vec![link()], vec![medium], vec![vec![RADIO, Stage::Link(0)]]);
    network.handle(us(1000), 5, FrameName::nth(0), 0, Bytes(200));
    let (air, wire) = (us(1000 + 1136), us(1000 + 1136 + 16 + 1000));
    let delivery = |start, sent, at| {
        Fate::Delivered(Delivery {
            start,
            sent,
            at,
            corrupted_bit: None,
            duplicate_at: None,
            is_marked: false,
        })
    };
    let crossed =
        |link, hop, entered, fate| net::Output::Crossed { frame: 5, copy: 0, link, hop, entered, fate };
    assert_eq!(
        settle_network(&mut network),
        [
            // Media are counted on after the links: this is medium 0 of a network with one link.
            crossed(1, 0, us(1000), delivery(us(1000), air, air)),
            crossed(0, 1, air, delivery(air, us(1000 + 1136 + 16), wire)),
            net::Output::Arrived { frame: 5, at: wire, corrupted_bit: None, copy: 0 },
        ]
    );
    assert_eq!(network.in_transit(), 0);
    assert_eq!(
        (network.frame_size(0, Bytes(200)), network.frame_size(1, Bytes(200))),
        (Bytes(200), Bytes(236))
    );
}

#[test]
fn a_frame_from_a_wire_enters_the_air_when_it_arrives() {
    let medium = medium(line("dsss-2", &[0, 10]));
    let mut network = Network::with_media(vec![link()], vec![medium], vec![vec![Stage::Link(0), RADIO]]);
    network.handle(us(0), 5, FrameName::nth(0), 0, Bytes(200));
    let outputs = settle_network(&mut network);
    let at = us(1016 + 1136);
    assert_eq!(outputs.last(), Some(&net::Output::Arrived { frame: 5, at, corrupted_bit: None, copy: 0 }));
}

#[test]
fn a_frame_lost_on_the_air_is_told_with_its_cause_and_time() {
    let medium = medium(line("dsss-2", &[0, 2_000]));
    let mut network = Network::with_media(vec![], vec![medium], vec![vec![RADIO]]);
    network.handle(us(1000), 5, FrameName::nth(0), 0, Bytes(200));
    assert_eq!(network.in_transit(), 1);
    let outputs = settle_network(&mut network);
    let [net::Output::Crossed { frame: 5, link: 0, hop: 0, entered, fate, .. }] = outputs[..] else {
        panic!("{outputs:?}");
    };
    assert_eq!(entered, us(1000));
    let Fate::Dropped { cause: Cause::Unreachable, air: Some((start, sent)) } = fate else {
        panic!("{fate:?}")
    };
    assert!(start == us(1000) && sent > us(1000 + 7 * 1136));
    assert_eq!(network.in_transit(), 0);
}

#[test]
fn a_relay_takes_the_same_air_twice() {
    let medium = medium(line("dsss-2", &[0, 10, 20]));
    let second = Stage::Radio { medium: 0, from: 1, to: 2 };
    let mut network = Network::with_media(vec![], vec![medium], vec![vec![RADIO, second]]);
    network.handle(us(1000), 5, FrameName::nth(0), 0, Bytes(200));
    let outputs = settle_network(&mut network);
    let Some(&net::Output::Arrived { at, .. }) = outputs.last() else { panic!("{outputs:?}") };
    // The relay has the frame at 2136 and acknowledges it until 2450; the medium was idle when it queued the frame,
    // but did not stay so, so it backs off from 2500 on.
    let backoff = at.since(us(2500 + 1136)).as_ns();
    assert!(backoff.is_multiple_of(20_000) && backoff <= 31 * 20_000, "{at}");
}

#[test]
fn every_frame_of_a_busy_network_is_told_once() {
    let medium = medium(line("b-11", &[0, 10, 20, 30]));
    let stage = |from, to| Stage::Radio { medium: 0, from, to };
    let paths = vec![
        vec![stage(0, 3), Stage::Link(0)],
        vec![Stage::Link(0), stage(3, 1)],
        vec![stage(1, 2), stage(2, 0)],
    ];
    let mut network = Network::with_media(vec![link()], vec![medium], paths);
    let mut outputs = Vec::new();
    for frame in 0..3000_u64 {
        network.handle(us(frame * 700), frame, FrameName::nth(0), (frame % 3) as usize, Bytes(300));
        outputs.extend(std::iter::from_fn(|| network.poll()));
    }
    outputs.extend(settle_network(&mut network));
    let mut told = vec![0; 3000];
    for output in outputs {
        match output {
            net::Output::Arrived { frame, .. } => told[frame as usize] += 1,
            net::Output::Crossed { frame, fate: Fate::Dropped { .. }, .. } => told[frame as usize] += 1,
            net::Output::Crossed { .. } => {}
        }
    }
    assert_eq!(told, vec![1; 3000]);
    assert_eq!(network.in_transit(), 0);
}
