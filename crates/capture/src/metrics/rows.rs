//! Metrics as rows of a recording.

use mqttlab_recording::{NetworkMetricRow, Towards};

use super::{METRICS, Tally};
use crate::analysis::{Analysis, Direction};

/// Hands out every metric with a value: of the run, of its directions, and of each direction of each connection,
/// whose client `client` tells.
pub fn rows(
    analysis: &Analysis,
    client: impl Fn(u32) -> Option<u32>,
    emit: &mut dyn FnMut(&NetworkMetricRow<'_>),
) {
    let run = NetworkMetricRow {
        scope: "run",
        connection: None,
        client: None,
        direction: None,
        metric: "",
        value: 0.0,
    };
    values(&analysis.total, true, run, emit);
    for direction in Direction::BOTH {
        let of = NetworkMetricRow { scope: "direction", direction: Some(towards(direction)), ..run };
        values(&analysis.directions[direction as usize], true, of, emit);
    }
    for connection in &analysis.connections {
        let number = connection.number as u32;
        for direction in Direction::BOTH {
            let of = NetworkMetricRow {
                scope: "connection",
                connection: Some(number),
                client: client(number),
                direction: Some(towards(direction)),
                ..run
            };
            values(&connection.directions[direction as usize], false, of, emit);
        }
    }
}

/// The direction as the tables name it.
pub fn towards(direction: Direction) -> Towards {
    match direction {
        Direction::ToServer => Towards::Broker,
        Direction::FromServer => Towards::Client,
    }
}

/// Every metric's values in a tally. Zeros are left out where there are many tallies.
fn values(tally: &Tally, zeros: bool, of: NetworkMetricRow<'_>, emit: &mut dyn FnMut(&NetworkMetricRow<'_>)) {
    for value in METRICS.iter().flat_map(|metric| metric.values(tally)) {
        if let Some(number) = value.value.filter(|&number| zeros || number != 0.0) {
            emit(&NetworkMetricRow { metric: &value.name, value: number, ..of });
        }
    }
}
