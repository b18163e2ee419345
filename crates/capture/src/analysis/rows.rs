//! Metrics as rows of a recording.

use mqttlab_recording::{NetworkMetricRow, Towards};

use super::{Analysis, ServerDirection};
use crate::metrics::{METRICS, MetricTally};

/// Hands out every metric with a value: of the run, of its directions, and of each direction of each connection,
/// of which `who` tells number and client by the analyser's number. Zeros are left out where there are many tallies.
pub fn rows(
    analysis: &Analysis,
    who: impl Fn(u32) -> (u32, Option<u32>),
    emit: &mut dyn FnMut(&NetworkMetricRow<'_>),
) {
    let names: Vec<Vec<String>> = METRICS.iter().map(|metric| metric.names().collect()).collect();
    let mut values = |tally: &MetricTally, zeros: bool, of: NetworkMetricRow<'_>| {
        for (metric, names) in METRICS.iter().zip(&names) {
            for (name, value) in names.iter().zip(metric.read(tally)) {
                if let Some(value) = value.filter(|&value| zeros || value != 0.0) {
                    emit(&NetworkMetricRow { metric: name, value, ..of });
                }
            }
        }
    };
    let run = NetworkMetricRow {
        scope: "run",
        connection: None,
        client: None,
        direction: None,
        metric: "",
        value: 0.0,
    };
    values(&analysis.total, true, run);
    for direction in ServerDirection::BOTH {
        let of = NetworkMetricRow { scope: "direction", direction: Some(towards(direction)), ..run };
        values(&analysis.directions[direction as usize], true, of);
    }
    for connection in &analysis.connections {
        let (number, client) = who(connection.number as u32);
        for direction in ServerDirection::BOTH {
            let of = NetworkMetricRow {
                scope: "connection",
                connection: Some(number),
                client,
                direction: Some(towards(direction)),
                ..run
            };
            values(&connection.directions[direction as usize], false, of);
        }
    }
}

/// The direction as the tables name it.
pub fn towards(direction: ServerDirection) -> Towards {
    match direction {
        ServerDirection::ToServer => Towards::Broker,
        ServerDirection::FromServer => Towards::Client,
    }
}
