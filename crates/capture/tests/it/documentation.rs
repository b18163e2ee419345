//! The catalogue of metrics has what this crate counts. `MQTTLAB_BLESS=1` rewrites its part of the catalogue.

use std::fs;
use std::path::Path;

use mqttlab_capture::metrics::{METRICS, Metric};
use serde_json::{Value, json};

/// The table as the catalogue reads it, which is the Python package's.
fn declared() -> String {
    let entry = |metric: &Metric| {
        json!({
            "name": metric.name,
            "unit": metric.unit.symbol(),
            "statistics": metric.suffixes(),
            "definition": metric.definition,
            "source": metric.source,
        })
    };
    let entries: Vec<Value> = METRICS.iter().map(entry).collect();
    serde_json::to_string_pretty(&entries).expect("names and sentences are JSON") + "\n"
}

#[test]
fn the_catalogue_has_every_metric_that_is_counted_here() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/mqttlab/metrics/counted.json");
    if std::env::var_os("MQTTLAB_BLESS").is_some() {
        fs::write(&path, declared()).expect("the catalogue can be written");
        return;
    }
    let committed = fs::read_to_string(&path).expect("the catalogue");
    assert!(committed == declared(), "counted.json is out of date; run this test with MQTTLAB_BLESS=1");
}
