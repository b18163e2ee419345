//! ECN: what CoDel would drop is marked where its sender understands that (RFC 3168 §5; Linux, `codel_dequeue`).

use mqttlab_net::{Cause, Discipline, Fate, FrameName, Link, LinkSpec, QueueSpec};
use mqttlab_units::{Bytes, Duration, Instant, Seed};

use crate::changes::wire;

/// A link that takes 10 ms for 1000 B, under one queue, or one for each flow.
fn spec(by_flow: bool, ecn: bool, limit_packets: Option<u32>) -> LinkSpec {
    let (target, interval, largest_frame_bytes) = (Duration::from_ms(5), Duration::from_ms(100), 1_000);
    let discipline = match by_flow {
        false => Discipline::Codel { target, interval, largest_frame_bytes, ecn },
        true => {
            let (flows, quantum_bytes) = (1_024, 1_000);
            Discipline::FqCodel { target, interval, largest_frame_bytes, ecn, flows, quantum_bytes }
        }
    };
    let queue = QueueSpec { limit_packets, limit_bytes: None, counts_delay_line: false, discipline };
    LinkSpec { queue, ..wire(800_000, 1) }
}

/// What became of so many frames of one flow that come at once: marked, sent without a mark, or why dropped.
fn fates(spec: LinkSpec, frames: u32, is_ect: bool) -> (Vec<Result<bool, Cause>>, u64) {
    let mut link = Link::new(spec, Seed(1));
    for frame in 0..frames {
        let name = FrameName::nth_of(7, frame.into()).with_ect(is_ect);
        link.enter(Instant::ZERO, frame, Bytes(1_000), name);
    }
    link.tick(Instant::ZERO + Duration::from_s(100));
    let mut settled: Vec<_> = std::iter::from_fn(|| link.poll()).collect();
    settled.sort_by_key(|settled| settled.frame);
    let fate = |fate: Fate| match fate {
        Fate::Delivered(delivery) => Ok(delivery.is_marked),
        Fate::Dropped { cause, .. } => Err(cause),
    };
    let marked = link.traffic(Instant::ZERO + Duration::from_s(100)).marked;
    (settled.iter().map(|settled| fate(settled.fate)).collect(), marked)
}

fn count(fates: &[Result<bool, Cause>], wanted: Result<bool, Cause>) -> usize {
    fates.iter().filter(|fate| **fate == wanted).count()
}

#[test]
fn what_would_be_dropped_is_marked_and_arrives() {
    for by_flow in [false, true] {
        let (plain, none) = fates(spec(by_flow, true, None), 60, false);
        let (found, marked) = fates(spec(by_flow, true, None), 60, true);
        let dropped = count(&plain, Err(Cause::Codel));
        assert!(dropped > 3 && none == 0, "a transport that does not understand marks");
        assert_eq!((count(&found, Err(Cause::Codel)), count(&found, Ok(true)) as u64), (0, marked));
        // The first one is the same: later ones are further behind, because the marked ones take their time.
        let first = |fates: &[_], wanted| fates.iter().position(|fate| *fate == wanted);
        assert_eq!(first(&found, Ok(true)), first(&plain, Err(Cause::Codel)));
        assert!(marked as usize >= dropped);
    }
}

#[test]
fn without_ecn_nothing_is_marked() {
    for by_flow in [false, true] {
        let (found, marked) = fates(spec(by_flow, false, None), 60, true);
        assert_eq!((marked, count(&found, Ok(true))), (0, 0));
        assert!(count(&found, Err(Cause::Codel)) > 3);
    }
}

/// The first mark is made an interval after frames began to stay too long, the next ones by the control law: 110, 210, 280.7,
/// 338.4, 388.4 ms, each at the next frame that begins (10 ms each).
#[test]
fn marks_come_as_often_as_the_control_law_says() {
    let (found, _) = fates(spec(false, true, None), 45, true);
    let marked: Vec<_> = found.iter().enumerate().filter(|(_, fate)| **fate == Ok(true)).collect();
    let begins: Vec<usize> = marked.iter().map(|(frame, _)| frame * 10).collect();
    assert_eq!(begins, [110, 210, 290, 340, 390]);
}

#[test]
fn what_finds_no_room_is_dropped_all_the_same() {
    for by_flow in [false, true] {
        let (found, _) = fates(spec(by_flow, true, Some(20)), 60, true);
        assert!(count(&found, Err(Cause::QueueFull)) >= 40);
        assert_eq!(count(&found, Err(Cause::Codel)), 0);
    }
}
