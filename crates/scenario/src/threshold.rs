//! A threshold: what a metric may be, in scenarios and in experiments.

use std::collections::BTreeMap;

use mqttlab_fields::{
    Map, Maybe, Node, Reader, Rule, Rules, Shape, Table, Text, Value, fields, shown, words,
};
use mqttlab_units::Ratio;

/// What the engine tells while a run goes on, four times a second.
const PROGRESS_METRICS: [&str; 3] = ["latency_ms_p50", "latency_ms_p99", "disconnects"];

words! {
    /// What a metric is measured of.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Scope {
        /// The whole run.
        Run = "run",
        /// Messages of one quality of service.
        Qos = "qos",
        /// All groups, each.
        Groups = "groups",
        /// A group.
        Group = "group",
        /// A direction of a network.
        Direction = "direction",
        /// A link.
        Link = "link",
        /// A station of a radio channel.
        Station = "station",
        /// An event.
        Event = "event",
    }
}

/// A number in the metric's unit, or a text with a unit.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricBound {
    /// In the metric's unit.
    Number(f64),
    /// With its unit.
    Text(String),
}

/// The rule of a bound.
#[derive(Debug)]
pub struct AsBound;

impl Rule for AsBound {
    type Target = MetricBound;

    fn read(node: &Node, reader: &mut Reader) -> Option<MetricBound> {
        match &node.value {
            Value::Whole(whole) => Some(MetricBound::Number(*whole as f64)),
            Value::Real(real) => Some(MetricBound::Number(*real)),
            Value::Text(text) => Some(MetricBound::Text(text.clone())),
            _ => {
                let right = "text with a unit, such as \"250 ms\"";
                reader.wrong(format!(
                    "is {}, but must be a number in the metric's unit, or {right}",
                    shown(node)
                ))
            }
        }
    }

    fn shape() -> Shape {
        Shape::Either(vec![Shape::Number, Shape::Text(Some("250 ms"))])
    }
}

/// The rule of a level: what an experiment's factor has there.
#[derive(Debug)]
pub struct AnyValue;

impl Rule for AnyValue {
    type Target = Node;

    fn read(node: &Node, _reader: &mut Reader) -> Option<Node> {
        Some(node.clone())
    }

    fn shape() -> Shape {
        Shape::Either(vec![Shape::Text(None), Shape::Number, Shape::Truth])
    }
}

fields! {
    /// What a threshold compares with.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Baseline {
        /// A recording or an experiment's directory (`DIRECTORY#3` for its point 3), or the name of a baseline in the catalog.
        baseline: String as Text [1..],
        /// How much worse it may be, relative to the baseline's mean.
        by: Ratio = Ratio::ZERO,
    }
}

fields! {
    /// A bound on a metric, judged on the confidence limit: held, broken or undecided.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Threshold with rules {
        /// Name of a metric; docs/reference/metrics.md lists them.
        metric: String,
        /// What it is measured of.
        scope: Scope = Scope::Run,
        /// Which of that scope, such as "1" for `qos`, or the name of a group or an event; needed unless the scope is `run`.
        name: Option<String>,
        /// Upper bound: a number in the metric's unit, or text with a unit.
        below: Option<MetricBound> as Maybe<AsBound>,
        /// Lower bound.
        above: Option<MetricBound> as Maybe<AsBound>,
        /// Bound relative to earlier runs.
        not_worse_than: Option<Baseline>,
        /// Only of this stage of the measurement (`phases.stages`); of all that are measured when left out.
        stage: Option<String>,
        /// In experiments: only at points with these levels, such as { loss = "0 %" }.
        at: BTreeMap<String, Node> as Map<Text, AnyValue> = BTreeMap::new(),
        /// End a run when its progress figure has been beyond the bound for 2 s of the measurement; for `latency_ms_p50`,
        /// `latency_ms_p99` and `disconnects`.
        abort: bool = false,
    }
}

impl Rules for Threshold {
    fn check(&mut self, _table: &Table) -> Result<(), String> {
        let given = [
            ("below", self.below.is_some()),
            ("above", self.above.is_some()),
            ("not_worse_than", self.not_worse_than.is_some()),
        ];
        let given: Vec<_> =
            given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect();
        match given[..] {
            [] => return Err("needs one of `below`, `above` and `not_worse_than`".into()),
            [_] => {}
            _ => return Err(format!("has `{}`; keep one", given.join("` and `"))),
        }
        if !self.abort {
            return Ok(());
        }
        let is_progress = PROGRESS_METRICS.contains(&self.metric.as_str());
        if self.below.is_none() || !is_progress || self.scope != Scope::Run {
            let metrics = PROGRESS_METRICS.join(", ");
            return Err(format!("has `abort`, which needs `below`, the scope `run`, and one of {metrics}"));
        }
        if self.stage.is_some() {
            return Err("has `abort` and `stage`; keep one: a run is ended by its progress figures, which are of the whole \
                        measurement"
                .into());
        }
        Ok(())
    }
}
