//! The reference and the program say the same.

use std::fmt::Write;

use expect_test::expect_file;
use mqttlab_recording::{
    Cause, Column, DERIVED_TABLES, Description, EventKind, LossCause, MessageFate, SCHEMA_VERSION, TABLES,
};
use mqttlab_rows::Word;
use serde_json::json;

/// `UPDATE_EXPECT=1 cargo test -p mqttlab-recording` writes the tables into the page, and into what Python reads.
#[test]
fn the_reference_lists_every_column_with_its_meaning() {
    let page = include_str!("../../../../docs/reference/recording.md");
    let (prose, _) = page.split_once(HEADING).expect("the page has a heading for the tables");
    let tables: String = TABLES.iter().chain(&DERIVED_TABLES).map(section).collect();
    expect_file!["../../../../docs/reference/recording.md"].assert_eq(&format!("{prose}{HEADING}{tables}"));
}

#[test]
fn python_reads_the_same_tables() {
    let tables: Vec<String> = TABLES.iter().chain(&DERIVED_TABLES).map(declared).collect();
    let text = format!("{{\n{}\n}}\n", tables.join(",\n"));
    serde_json::from_str::<serde_json::Value>(&text).expect("names and kinds are JSON");
    expect_file!["../../../../python/mqttlab/tables.json"].assert_eq(&text);
}

#[test]
fn the_reference_has_every_word_of_fates_causes_and_events() {
    let page = include_str!("../../../../docs/reference/recording.md");
    let fates = page.split("\n## ").find(|part| part.starts_with("Fates\n")).expect("a heading");
    let cause = TABLES.iter().filter(|table| table.name == "packets").flat_map(|table| table.columns);
    let cause = cause.filter(|column| column.name == "cause").map(|column| column.meaning).next().unwrap();
    let places: [(&[&str], &str); 4] = [
        (MessageFate::WORDS, fates),
        (LossCause::WORDS, fates),
        (Cause::WORDS, cause),
        (EventKind::WORDS, page),
    ];
    for (words, text) in places {
        let missing: Vec<_> = words.iter().filter(|word| !text.contains(&format!("`{word}`"))).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}

/// A table's columns by name, a line each: kind, unit, and whether a row may leave it empty.
fn declared(table: &Description) -> String {
    let line = |column: &Column| {
        let what = json!([column.kind, unit(column.name), column.nullable]);
        format!("    {}: {what}", json!(column.name))
    };
    let columns: Vec<String> = table.columns.iter().map(line).collect();
    format!("  {}: {{\n{}\n  }}", json!(table.name), columns.join(",\n"))
}

#[test]
fn the_reference_is_of_this_version() {
    let page = include_str!("../../../../docs/reference/recording.md");
    assert!(page.contains(&format!("**schema version {SCHEMA_VERSION}**")));
}

#[test]
fn every_file_of_the_reference_s_list_is_a_table_and_the_other_way_round() {
    let page = include_str!("../../../../docs/reference/recording.md");
    let listed = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(".parquet` |"));
    let mut listed: Vec<&str> = listed.map(|(name, _)| name).collect();
    let mut tables: Vec<&str> = TABLES.iter().chain(&DERIVED_TABLES).map(|table| table.name).collect();
    listed.sort_unstable();
    tables.sort_unstable();
    assert_eq!(listed, tables);
}

fn section(table: &Description) -> String {
    let mut text = format!("\n### {}\n\n{}\n\n", table.name, table.meaning.trim());
    text += "| column | type | unit | empty? | meaning |\n|---|---|---|---|---|\n";
    for column in table.columns {
        let empty = if column.nullable { "may be" } else { "" };
        let (name, kind, meaning) = (column.name, column.kind, column.meaning.trim());
        writeln!(text, "| `{name}` | {kind} | {} | {empty} | {meaning} |", unit(name)).unwrap();
    }
    text
}

/// The last word of a name, or the one before a statistic's.
fn unit(column: &str) -> &'static str {
    let name = ["_min", "_mean", "_p95", "_max"].iter().find_map(|end| column.strip_suffix(end));
    match name.unwrap_or(column).rsplit('_').next() {
        Some("ns") => "ns",
        Some("us") => "µs",
        Some("ms") => "ms",
        Some("s") => "s",
        Some("bytes") => "B",
        Some("m") => "m",
        Some("deg") => "°",
        _ => "",
    }
}

const HEADING: &str = "## Tables\n";
