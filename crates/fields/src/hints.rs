//! What is meant by an unknown field: what other tools call it, the table that has it, or the nearest name.

use crate::declaration::{FieldDeclaration, PartDeclaration};
use crate::nearest::did_you_mean;

/// Tables below tables that are looked through.
const DEPTH_MAX: usize = 3;
/// Tables that a message names.
const HOLDERS_MAX: usize = 5;
/// What other tools call a field.
const SYNONYMS: &[(&str, &[&str])] = &[
    ("delay", &["latency", "lag"]),
    ("rate", &["bandwidth", "throughput", "speed", "bitrate", "frequency"]),
    ("loss", &["packet_loss", "loss_rate"]),
    ("queue", &["buffer", "limit"]),
    ("count", &["clients"]),
    ("interval", &["period"]),
    ("payload", &["size", "message"]),
    ("topic", &["topics"]),
    ("duration", &["time"]),
    ("up", &["uplink", "upload"]),
    ("down", &["downlink", "download"]),
    ("between", &["hosts"]),
    ("link", &["shared"]),
    ("for", &["duration"]),
    ("do", &["action"]),
    ("at", &["start"]),
    ("network", &["target"]),
    ("below", &["max", "maximum"]),
    ("above", &["min", "minimum"]),
    ("client_id", &["identifier", "client_identifier", "clientid"]),
    ("keep_alive", &["keepalive"]),
];
/// What a field may be called only in a table that has it: elsewhere the word means something else.
const SYNONYMS_HERE: &[(&str, &[&str])] = &[
    ("to", &["until", "end"]),
    ("network", &["link", "target"]),
    ("group", &["clients"]),
    ("do", &["kind", "type", "event"]),
    ("interval", &["every"]),
];
/// What other tools say by a field of its own.
const WRITTEN: &[(&str, &[&str])] = &[("backend = \"sim\"", &["simulate", "simulated", "simulation"])];

/// What stands behind an unknown field of a table: the tables that have a field of this name, or the nearest name here.
pub fn instead_of(given: &str, here: &PartDeclaration, top: Option<&PartDeclaration>) -> String {
    let lower = given.to_lowercase();
    let named = |words: &[(&'static str, &[&str])]| {
        words.iter().find(|(_, others)| others.contains(&lower.as_str())).map(|(right, _)| *right)
    };
    let known_here = |name: Option<&'static str>| name.filter(|name| here.field(name).is_some());
    if let Some(known) = known_here(named(SYNONYMS_HERE)) {
        return format!("; did you mean `{known}`?");
    }
    if let Some(holders) = holders_in_words(given, here) {
        return format!("; `{given}` is a field of {holders}");
    }
    let synonym = named(SYNONYMS);
    if let Some(known) = known_here(synonym) {
        return format!("; did you mean `{known}`?");
    }
    if let Some(written) =
        named(WRITTEN).filter(|written| here.field(written.split(" = ").next().unwrap_or("")).is_some())
    {
        return format!("; write `{written}`");
    }
    if let Some(field) = here.fields.iter().find(|field| field.shape.words().contains(&given)) {
        return format!("; write `{} = \"{given}\"`", field.name);
    }
    if let Some((known, holders)) = synonym.and_then(|known| Some((known, holders_in_words(known, here)?))) {
        return format!("; did you mean `{known}`, a field of {holders}?");
    }
    if let Some(holders) =
        top.filter(|top| top.name != here.name).and_then(|top| holders_in_words(given, top))
    {
        return format!("; `{given}` is a field of {holders}");
    }
    if here.fields.is_empty() {
        String::new()
    } else {
        format!("; {}", did_you_mean(given, here.names(), 0.6))
    }
}

/// The tables below a table that have a field of this name, in words.
fn holders_in_words(field: &str, part: &PartDeclaration) -> Option<String> {
    let mut found: Vec<_> = holders(field, part).into_iter().map(|place| format!("`{place}`")).collect();
    let last = found.pop()?;
    Some(if found.is_empty() { last } else { format!("{} and {last}", found.join(", ")) })
}

/// The tables below a table that have a field of this name: those of the least depth, two of a kind.
pub fn holders(field: &str, part: &PartDeclaration) -> Vec<String> {
    let tables = |place: &str, part: &PartDeclaration| -> Vec<(String, &'static PartDeclaration)> {
        let below = |field: &FieldDeclaration| {
            let at = if place.is_empty() { field.name.to_owned() } else { format!("{place}.{}", field.name) };
            field.shape.table().map(|table| (at, table))
        };
        part.fields.iter().filter_map(below).collect()
    };
    let mut level = tables("", part);
    for _ in 0..DEPTH_MAX {
        let mut kinds: Vec<(&str, Vec<&str>)> = Vec::new();
        for (place, table) in level.iter().filter(|(_, table)| table.field(field).is_some()) {
            match kinds.iter_mut().find(|(name, _)| *name == table.name) {
                Some((_, places)) => places.push(place),
                None => kinds.push((table.name, vec![place])),
            }
        }
        let found = kinds.iter().flat_map(|(_, places)| places.iter().take(2)).take(HOLDERS_MAX);
        let found: Vec<_> = found.map(|place| (*place).to_owned()).collect();
        if !found.is_empty() {
            return found;
        }
        level = level.iter().flat_map(|(place, table)| tables(place, table)).collect();
    }
    Vec::new()
}
