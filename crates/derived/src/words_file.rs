//! `words.json`, which Python reads: the words of all crates, as they declare them. `UPDATE_EXPECT=1` rewrites it.

use expect_test::expect_file;
use mqttlab_plan::ChangeKind;
use mqttlab_recording::{Cause, Column, DERIVED_TABLES, LossCause, MessageFate};
use mqttlab_units::{Entry, Word};
use serde_json::{Map, Value, json};

use crate::attribution::latency_parts::LatencyPart;

/// A vocabulary's words in their order: what each means, and how pages say it.
fn vocabulary<W: Word>(meaning: impl Fn(&Entry) -> &'static str) -> Value {
    let described = |entry: &Entry| {
        let first = [("word", entry.word), ("meaning", meaning(entry).trim())];
        let all = first.into_iter().chain(entry.phrases.iter().copied());
        all.map(|(way, words)| (way.to_owned(), json!(words))).collect::<Map<_, _>>()
    };
    W::ENTRIES.iter().map(described).collect::<Vec<_>>().into()
}

/// The columns of `attribution`, which say what the parts are.
fn columns() -> impl Iterator<Item = &'static Column> {
    DERIVED_TABLES.iter().filter(|table| table.name == "attribution").flat_map(|table| table.columns)
}

#[test]
fn python_reads_the_words_that_are_declared() {
    let of_part = |entry: &Entry| {
        columns().find(|column| column.name == entry.word).expect("a part is a column").meaning
    };
    let words = json!({
        "change_kind": vocabulary::<ChangeKind>(|entry| entry.meaning),
        "frame_cause": vocabulary::<Cause>(|entry| entry.meaning),
        "latency_part": vocabulary::<LatencyPart>(of_part),
        "loss_cause": vocabulary::<LossCause>(|entry| entry.meaning),
        "message_fate": vocabulary::<MessageFate>(|entry| entry.meaning),
    });
    let text = serde_json::to_string_pretty(&words).expect("words are JSON") + "\n";
    expect_file!["../../../python/mqttlab/words.json"].assert_eq(&text);
}

#[test]
fn every_part_is_a_column_of_the_attribution_in_its_order() {
    let parts: Vec<&str> =
        columns().map(|column| column.name).filter(|name| LatencyPart::WORDS.contains(name)).collect();
    assert_eq!(parts, LatencyPart::WORDS);
}
