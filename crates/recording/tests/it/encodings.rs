//! What the encoders of this crate write, an independent decoder reads back.

use std::fs::File;
use std::path::Path;

use crate::common::*;
use mqttlab_recording::{
    Cause, DirectRecorder, Direction, Ending, Event, EventKind, FrameFate, HeaderAnalyser, Layout, PacketRow,
    RunFacts, recover,
};
use mqttlab_units::{Dice, Instant, Seed};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};

#[test]
fn packets_of_every_shape_come_back() {
    for (seed, shape) in SHAPES.iter().enumerate() {
        for rows in [1, 2, 129, 4096, 4097, 9000] {
            check(shape, Seed(seed as u64), rows);
        }
    }
}

#[test]
fn words_come_back_when_there_are_too_many_for_a_dictionary() {
    let scratch = Scratch::new();
    let mut recorder = DirectRecorder::create(scratch.path(), "{}", &Layout::default()).unwrap();
    let detail = |number: u64| format!("{}{number:060}", if number.is_multiple_of(3) { "" } else { "ü" });
    for number in 0..20_000 {
        let event = Event { at: Instant::from_ns(number), kind: EventKind::Note, client: None, took: None };
        recorder
            .event(&event, &if number.is_multiple_of(5) { String::new() } else { detail(number) })
            .unwrap();
    }
    recorder.finish(None, &RunFacts::default(), &Ending::Complete).unwrap();
    let rows = read(&scratch, "events");
    assert_eq!(rows.len(), 20_000);
    for (number, row) in rows.iter().enumerate() {
        let expected = if number.is_multiple_of(5) { Field::Null } else { Field::Str(detail(number as u64)) };
        assert_eq!(*cell(row, "detail"), expected, "row {number}");
    }
}

/// Empty pages, then few numbers, then many: a column chunk's form changes from page to page.
#[test]
fn numbers_come_back_when_there_are_few_of_them_for_a_while() {
    let scratch = Scratch::new();
    let mut recorder = DirectRecorder::create(scratch.path(), "{}", &Layout::default()).unwrap();
    let shape = Shape { bits: 63, runs: false, gaps: 0 };
    let mut values = Values { shape: &shape, dice: Seed(8).dice(), last: 0 };
    let made: Vec<PacketRow<'_>> = (0..24_000)
        .map(|number| {
            let row = packet(&mut values, &["1-2", "", "10-20 30-40", "PUBLISH"]);
            let few = (number >= 5_000).then_some(row.hop % 16);
            let (seq, frame_bytes) = (few.map(u32::from), u32::from(few.unwrap_or(7)));
            let ack_rtt_ns = if number < 15_000 { few.map(u64::from) } else { row.ack_rtt_ns };
            PacketRow { seq, frame_bytes, ack_rtt_ns, window: None, ..row }
        })
        .collect();
    made.iter().for_each(|row| recorder.packet(row).unwrap());
    recorder.finish(None, &RunFacts::default(), &Ending::Complete).unwrap();
    for (made, back) in made.iter().zip(&read(&scratch, "packets")) {
        compare(made, back);
    }
}

#[test]
fn the_packets_of_a_producer_that_was_killed_come_back_up_to_the_last_row_group() {
    let scratch = Scratch::new();
    let mut recorder = DirectRecorder::create(scratch.path(), "{}", &Layout::default()).unwrap();
    let shape = Shape { bits: 20, runs: true, gaps: 3 };
    let mut values = Values { shape: &shape, dice: Seed(8).dice(), last: 0 };
    let made: Vec<PacketRow<'_>> =
        (0..40_000).map(|_| packet(&mut values, &["1-2", "", "10-20 30-40", "PUBLISH"])).collect();
    made.iter().for_each(|row| recorder.packet(row).unwrap());
    // Nothing more is written, as after SIGKILL.
    std::mem::drop(recorder);
    let files = ["packets.groups.spool", "packets.parquet.tmp"].map(|name| scratch.join(name));
    let whole = files.each_ref().map(|path| std::fs::read(path).unwrap());
    // Torn at any place, of journal or table, there are fewer row groups, and never a wrong row.
    for eighths in [8, 7, 5, 3, 0] {
        for torn in [0, 1] {
            let kept = whole[torn].len() * eighths / 8;
            std::fs::write(&files[torn], &whole[torn][..kept]).unwrap();
            let saved = Scratch::new();
            recover(scratch.path(), Some(&saved.join("out")), &mut HeaderAnalyser::default()).unwrap();
            let back = read_in(&saved.join("out"), "packets");
            assert_eq!(back.len(), 40_000 / 16_384 * 16_384 * eighths / 8 / 16_384 * 16_384);
            made.iter().zip(&back).for_each(|(made, back)| compare(made, back));
            std::fs::write(&files[torn], &whole[torn]).unwrap();
        }
    }
    recover(scratch.path(), None, &mut HeaderAnalyser::default()).unwrap();
    assert_eq!(read(&scratch, "packets").len(), 40_000 / 16_384 * 16_384);
    let left = std::fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(left.filter(|path| path.extension().unwrap() == "spool").count(), 0);
}

/// How values and gaps are spread over a column.
struct Shape {
    /// Each value is a draw of so many bits, added to the last one if it `runs`.
    bits: u32,
    runs: bool,
    /// One row in so many is empty; 0: none, 1: all.
    gaps: u64,
}

const SHAPES: [Shape; 7] = [
    Shape { bits: 0, runs: false, gaps: 0 },
    Shape { bits: 0, runs: false, gaps: 1 },
    Shape { bits: 1, runs: false, gaps: 2 },
    Shape { bits: 10, runs: true, gaps: 0 },
    Shape { bits: 32, runs: false, gaps: 3 },
    Shape { bits: 63, runs: false, gaps: 100 },
    Shape { bits: 63, runs: true, gaps: 2 },
];

struct Values<'a> {
    shape: &'a Shape,
    dice: Dice,
    last: u64,
}

impl Values<'_> {
    fn next(&mut self) -> u64 {
        let draw = self.dice.bits() & ((1_u64 << self.shape.bits) - 1);
        self.last = if self.shape.runs { self.last.wrapping_add(draw) } else { draw };
        self.last & (u64::MAX >> 1)
    }

    fn some(&mut self) -> Option<u64> {
        let value = self.next();
        let gap = self.shape.gaps > 0 && self.dice.below(self.shape.gaps) == 0;
        (!gap).then_some(value)
    }
}

fn check(shape: &Shape, seed: Seed, rows: usize) {
    let scratch = Scratch::new();
    let mut recorder = DirectRecorder::create(scratch.path(), "{}", &Layout::default()).unwrap();
    let mut values = Values { shape, dice: seed.dice(), last: 0 };
    let words = ["1-2", "", "10-20 30-40", "PUBLISH"];
    let made: Vec<PacketRow<'_>> = (0..rows).map(|_| packet(&mut values, &words)).collect();
    made.iter().for_each(|row| recorder.packet(row).unwrap());
    recorder.finish(None, &RunFacts::default(), &Ending::Complete).unwrap();
    let back = read(&scratch, "packets");
    assert_eq!(back.len(), rows);
    for (made, back) in made.iter().zip(&back) {
        compare(made, back);
    }
}

fn packet<'a>(values: &mut Values<'_>, words: &[&'a str; 4]) -> PacketRow<'a> {
    let word = |value: Option<u64>| value.map(|value| words[value as usize % 4]);
    PacketRow {
        link: values.next() as u16,
        direction: Direction::ALL[values.next() as usize % 2],
        hop: values.next() as u8,
        hops: 3,
        frame: values.next(),
        from_host: values.next() as u16,
        to_host: values.next() as u16,
        entered_ns: values.next(),
        start_ns: values.some(),
        sent_ns: values.some(),
        delivered_ns: values.some(),
        fate: FrameFate::ALL[values.next() as usize % 4],
        cause: values.some().map(|value| Cause::ALL[1 + value as usize % (Cause::ALL.len() - 1)]),
        frame_bytes: values.next() as u32,
        ip_bytes: values.next() as u32,
        protocol: 6,
        source_port: values.some().map(|value| value as u16),
        destination_port: values.some().map(|value| value as u16),
        connection: values.some().map(|value| value as u32),
        seq: values.some().map(|value| value as u32),
        ack: values.some().map(|value| value as u32),
        flags: values.some().map(|value| value as u8),
        window: values.some().map(|value| value as u16),
        payload_bytes: values.next() as u32,
        tsval: values.some().map(|value| value as u32),
        tsecr: values.some().map(|value| value as u32),
        sack: word(values.some()),
        stream_offset: values.some(),
        mqtt: word(values.some()),
        marks: word(values.some()),
        ack_rtt_ns: values.some(),
        repetition: values.some().map(|value| value as u32),
        ecn: values.some().map(|value| value as u8),
    }
}

fn compare(made: &PacketRow<'_>, back: &Row) {
    let long = |value: Option<u64>| value.map_or(Field::Null, |value| Field::Long(value as i64));
    let int = |value: Option<u32>| value.map_or(Field::Null, Field::UInt);
    let short = |value: Option<u16>| value.map_or(Field::Null, Field::UShort);
    let byte = |value: Option<u8>| value.map_or(Field::Null, Field::UByte);
    let word = |value: Option<&str>| value.map_or(Field::Null, |value| Field::Str(value.into()));
    let expected = [
        ("link", short(Some(made.link))),
        ("direction", word(Some(made.direction.as_str()))),
        ("hop", byte(Some(made.hop))),
        ("hops", byte(Some(made.hops))),
        ("frame", long(Some(made.frame))),
        ("from_host", short(Some(made.from_host))),
        ("to_host", short(Some(made.to_host))),
        ("entered_ns", long(Some(made.entered_ns))),
        ("start_ns", long(made.start_ns)),
        ("sent_ns", long(made.sent_ns)),
        ("delivered_ns", long(made.delivered_ns)),
        ("fate", word(Some(made.fate.as_str()))),
        ("cause", word(made.cause.map(Cause::as_str))),
        ("frame_bytes", int(Some(made.frame_bytes))),
        ("ip_bytes", int(Some(made.ip_bytes))),
        ("protocol", byte(Some(made.protocol))),
        ("source_port", short(made.source_port)),
        ("destination_port", short(made.destination_port)),
        ("connection", int(made.connection)),
        ("seq", int(made.seq)),
        ("ack", int(made.ack)),
        ("flags", byte(made.flags)),
        ("window", short(made.window)),
        ("payload_bytes", int(Some(made.payload_bytes))),
        ("tsval", int(made.tsval)),
        ("tsecr", int(made.tsecr)),
        ("sack", word(made.sack)),
        ("stream_offset", long(made.stream_offset)),
        ("mqtt", word(made.mqtt)),
        ("marks", word(made.marks)),
        ("ack_rtt_ns", long(made.ack_rtt_ns)),
        ("repetition", int(made.repetition)),
        ("ecn", byte(made.ecn)),
    ];
    assert_eq!(back.len(), expected.len());
    for (name, expected) in expected {
        assert_eq!(*cell(back, name), expected, "{name}");
    }
}

fn read(scratch: &Scratch, name: &str) -> Vec<Row> {
    read_in(scratch.path(), name)
}

fn read_in(dir: &Path, name: &str) -> Vec<Row> {
    let file = File::open(dir.join(format!("{name}.parquet"))).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    reader.get_row_iter(None).unwrap().map(|row| row.unwrap()).collect()
}

fn cell<'a>(row: &'a Row, column: &str) -> &'a Field {
    row.get_column_iter().find(|(name, _)| *name == column).expect("the column is there").1
}
