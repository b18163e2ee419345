//! The network layer's metrics, as rows.

use std::collections::HashMap;

use mqttlab_recording::{NetworkMetricRow, Towards};

use crate::analysis::{Analysis, Direction};
use crate::metrics::{METRICS, Tally};

/// Every metric with a value: of the run, of its directions, of each direction of each connection.
pub(super) fn emit(
    analysis: &Analysis,
    client_of: &HashMap<u32, u32>,
    emit: &mut dyn FnMut(&NetworkMetricRow<'_>),
) {
    let blank = NetworkMetricRow {
        scope: "run",
        connection: None,
        client: None,
        direction: None,
        metric: "",
        value: 0.0,
    };
    values(&analysis.total, true, blank, emit);
    for direction in Direction::BOTH {
        let of = NetworkMetricRow { scope: "direction", direction: Some(towards(direction)), ..blank };
        values(&analysis.directions[direction as usize], true, of, emit);
    }
    for connection in &analysis.connections {
        let number = connection.number as u32;
        for direction in Direction::BOTH {
            let of = NetworkMetricRow {
                scope: "connection",
                connection: Some(number),
                client: client_of.get(&number).copied(),
                direction: Some(towards(direction)),
                ..blank
            };
            values(&connection.directions[direction as usize], false, of, emit);
        }
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

pub(super) fn towards(direction: Direction) -> Towards {
    match direction {
        Direction::ToServer => Towards::Broker,
        Direction::FromServer => Towards::Client,
    }
}
