//! The reference and the program say the same.

use std::fmt::Write;

use expect_test::expect_file;
use mqttlab_recording::{DERIVED_TABLES, Description, SCHEMA_VERSION, TABLES};

/// `UPDATE_EXPECT=1 cargo test -p mqttlab-recording` writes the tables into the page.
#[test]
fn the_reference_lists_every_column_with_its_meaning() {
    let page = include_str!("../../../../docs/reference/recording.md");
    let (prose, _) = page.split_once(HEADING).expect("the page has a heading for the tables");
    let tables: String = TABLES.iter().chain(&DERIVED_TABLES).map(section).collect();
    expect_file!["../../../../docs/reference/recording.md"].assert_eq(&format!("{prose}{HEADING}{tables}"));
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

fn unit(column: &str) -> &'static str {
    match column.rsplit('_').next() {
        Some("ns") => "ns",
        Some("us") => "µs",
        Some("s") => "s",
        Some("bytes") => "B",
        _ => "",
    }
}

const HEADING: &str = "## Tables\n";
