//! What finishing a recording costs, by doubling: calls of the allocator and bytes asked for, the same on any machine.

use crate::common::*;
use mqttlab_counting::{asked, calls};
use mqttlab_recording::{Client, Direction, Event, EventKind, Frame, Layout, Recorder, Sink, Topic};

type Shape = (&'static str, fn(usize) -> Layout, fn(&mut Sink, u32));

const SHAPES: [Shape; 8] = [
    ("messages", |_| layout(), |sink, n| (0..n).for_each(|sequence| message(sink, 0, sequence, 0, 2))),
    (
        "messages that are lost",
        |_| layout(),
        |sink, n| {
            (0..n).for_each(|sequence| sink.sent(&sent(0, sequence, 0, 2_000 + u64::from(sequence))));
        },
    ),
    (
        "messages out of order",
        |_| layout(),
        |sink, n| {
            (0..n).for_each(|sequence| message(sink, 0, n - 1 - sequence, 0, 2));
        },
    ),
    (
        "foreign messages",
        |_| layout(),
        |sink, n| {
            (0..n).for_each(|sequence| sink.received(&received(2, None, 0, 2_000 + u64::from(sequence))));
        },
    ),
    ("clients and topics", pairs, |sink, n| {
        (0..n).for_each(|pair| message(sink, pair, 0, pair, n + pair));
    }),
    ("clients of one topic", audience, |sink, n| {
        (0..n).for_each(|number| message(sink, 0, 0, 0, 1 + number))
    }),
    (
        "events",
        |_| layout(),
        |sink, n| {
            for number in 0..n {
                let kind = if number % 2 == 0 { EventKind::Disconnect } else { EventKind::Reconnect };
                sink.event(
                    &Event { at: at(u64::from(number)), kind, client: Some(0), took: None },
                    "keep-alive",
                );
            }
        },
    ),
    ("links with a frame each", links, |sink, n| {
        for number in 0..n {
            let frame = Frame { link: number as u16, ..frame(u64::from(number), 50, Direction::Up) };
            sink.frame(&frame, &segment(true, number, 24, b"mqtt"));
        }
    }),
];

fn message(sink: &mut Sink, publisher: u32, sequence: u32, topic: u32, subscriber: u32) {
    let at_ns = 2_000 + u64::from(sequence);
    sink.sent(&sent(publisher, sequence, topic, at_ns));
    sink.received(&received(subscriber, Some(publisher), sequence, at_ns + 100));
}

/// Publishers, and a subscriber to the topic of each.
fn pairs(n: usize) -> Layout {
    let topic = |number: usize| Topic {
        name: format!("t/{number}"),
        receivers: number as u32,
        shares: 0,
        relayed: false,
    };
    Layout {
        clients: cast(2 * n),
        topics: (0..n).map(topic).collect(),
        receivers: (0..n).map(|number| vec![(n + number) as u32]).collect(),
        ..layout()
    }
}

/// A publisher, and as many subscribers to its topic.
fn audience(n: usize) -> Layout {
    let topic = Topic { name: "t".into(), receivers: 0, shares: 0, relayed: false };
    Layout {
        clients: cast(n + 1),
        topics: vec![topic],
        receivers: vec![(1..=n as u32).collect()],
        ..layout()
    }
}

fn cast(n: usize) -> Vec<Client> {
    let model = layout().clients[0].clone();
    (0..n).map(|number| Client { name: format!("c-{number}"), ..model.clone() }).collect()
}

fn links(n: usize) -> Layout {
    Layout { links: (0..n).map(|number| format!("l{number}")).collect(), ..layout() }
}

/// Calls of the allocator and bytes, while a recording of this size is finished.
fn cost(layout: fn(usize) -> Layout, push: fn(&mut Sink, u32), n: usize) -> [u64; 2] {
    let scratch = Scratch::new();
    let recorder = Recorder::create(scratch.path(), "{}", &layout(n)).unwrap();
    let mut sink = recorder.sink();
    push(&mut sink, n as u32);
    drop(sink);
    drop(recorder.close());
    let before = [calls(), asked()];
    finish(scratch.path(), false);
    [calls() - before[0], asked() - before[1]]
}

#[test]
fn a_recording_of_twice_as_much_costs_no_more_than_twice_as_much() {
    let mut found = Vec::new();
    for (name, layout, push) in SHAPES {
        let costs = [SMALLEST, 2 * SMALLEST, 4 * SMALLEST].map(|n| cost(layout, push, n));
        // What a batch more or less costs is no growth.
        for (what, unit, grain) in [(0, "calls", SMALLEST as f64), (1, "bytes", 256.0 * SMALLEST as f64)] {
            let [few, more, most] = costs.map(|cost| cost[what] as f64);
            if most - more > 2.5 * (more - few) + grain {
                found.push(format!("{name}: {few}, {more}, {most} {unit}"));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

const SMALLEST: usize = 500;
