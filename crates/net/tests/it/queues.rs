//! Queues against a slow, obvious model: a list of all frames that have entered, each with the time when it leaves.

use mqttlab_net::{
    Cause, DelayLaw, DelaySpec, Delivery, Discipline, Fate, FrameName, Link, LinkSpec, LossPlace, LossSpec,
    QueueSpec, ReorderSpec,
};
use mqttlab_units::{BitRate, Bytes, Duration, Instant, Ratio, Seed};

/// Whether a frame finds room among those that have not left.
fn has_room(limits: &QueueSpec, entered: &[(Instant, Bytes)], now: Instant, frame: Bytes) -> bool {
    let present: Vec<Bytes> =
        entered.iter().filter(|(until, _)| *until > now).map(|(_, size)| *size).collect();
    let bytes: u64 = present.iter().map(|size| size.0).sum();
    limits.limit_packets.is_none_or(|limit| present.len() < limit as usize)
        && limits.limit_bytes.is_none_or(|limit| bytes + frame.0 <= limit)
}

/// Offers frames at random times, and compares each answer with the model's. Says how many the queue dropped, and how many
/// were lost on the air.
///
/// A frame that is lost at the exit has gone the whole way, delay line included. Its fate does not say until when: the same
/// link without loss does, because every knob throws its own dice.
fn compare(spec: &LinkSpec, seed: Seed) -> [usize; 2] {
    let (mut link, mut dice) = (Link::new(spec.clone(), seed), seed.derive("offers").dice());
    let mut without_loss = Link::new(LinkSpec { loss: LossSpec::None, ..spec.clone() }, seed);
    let (mut now, mut entered, mut drops, mut lost) = (Instant::ZERO, Vec::new(), 0, 0);
    for number in 0..400 {
        now += Duration::from_us(dice.below(4_000));
        let frame = link.frame_size(Bytes(40 + dice.below(1_460)));
        let room = has_room(&spec.queue, &entered, now, frame);
        let leaves = |delivery: &Delivery| match spec.queue.counts_delay_line {
            true => delivery.at,
            false => delivery.sent,
        };
        let whole =
            (spec.loss_at == LossPlace::Exit).then(|| without_loss.offer(now, frame, FrameName::nth(number)));
        match link.offer(now, frame, FrameName::nth(number)) {
            Fate::Delivered(delivery) => {
                assert!(room, "frame {number} was taken into a full queue: {spec:?}");
                entered.push((leaves(&delivery), frame));
            }
            Fate::Dropped { cause: Cause::QueueFull, .. } => {
                assert!(!room, "frame {number} was dropped below the limit: {spec:?}");
                drops += 1;
            }
            // At the exit a lost frame has taken its time; before the queue it takes none.
            Fate::Dropped { air: Some(times), .. } => {
                let Some(Fate::Delivered(delivery)) = whole else {
                    panic!("frame {number} is lost twice: {spec:?}")
                };
                assert_eq!(times, (delivery.start, delivery.sent));
                entered.push((leaves(&delivery), frame));
                lost += 1;
            }
            Fate::Dropped { .. } => {}
        }
    }
    [drops, lost]
}

/// Every combination of a queue's limits with what makes frames leave in another order than they came.
fn combinations() -> Vec<LinkSpec> {
    let mut specs = Vec::new();
    for bits in 0..1 << 7 {
        let is = |bit: u32| bits >> bit & 1 == 1;
        let limits = QueueSpec {
            limit_packets: is(0).then_some(14),
            limit_bytes: is(1).then_some(12_000),
            counts_delay_line: is(2),
            discipline: Discipline::TailDrop,
        };
        specs.push(LinkSpec {
            name: "wire".into(),
            rate_bit_s: BitRate::from_bit_s(2_000_000),
            overhead_bytes: 0,
            minimum_frame_bytes: 64,
            queue: limits,
            delay: DelaySpec {
                law: if is(4) { DelayLaw::Uniform } else { DelayLaw::Constant },
                mean: Duration::from_ms(30),
                jitter: Duration::from_ms(25),
                correlation: Ratio::ZERO,
                keep_order: is(3),
            },
            loss: LossSpec::Bernoulli { probability: Ratio::new(1, 10).unwrap() },
            loss_at: if is(6) { LossPlace::Exit } else { LossPlace::Entry },
            duplication: Ratio::new(1, 20).unwrap(),
            corruption: Ratio::ZERO,
            reordering: ReorderSpec {
                probability: if is(5) { Ratio::new(1, 5).unwrap() } else { Ratio::ZERO },
                gap: 1,
            },
            policer: None,
        });
    }
    specs
}

#[test]
fn a_queue_drops_where_a_list_of_what_is_in_it_is_full_and_nowhere_else() {
    for (number, spec) in combinations().iter().enumerate() {
        let limited = spec.queue.limit_packets.is_some() || spec.queue.limit_bytes.is_some();
        let found = (0..3).map(|seed| compare(spec, Seed(100 * number as u64 + seed)));
        let [drops, lost] = found.fold([0, 0], |sum, [drops, lost]| [sum[0] + drops, sum[1] + lost]);
        // The conditions were in force: 2 Mbit/s carry one such frame in 3 ms, and one comes every 2 ms.
        assert_eq!(limited, drops > 0, "{spec:?}");
        assert_eq!(spec.loss_at == LossPlace::Exit, lost > 0, "{spec:?}");
    }
}
