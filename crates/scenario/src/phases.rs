//! The phases of a run, and the stages of its measurement.

use std::borrow::Cow;

use mqttlab_fields::{
    Flat, Kind, Name, Node, PositiveTime, Reader, Rules, Table, Value, did_you_mean, fields, plain, shown,
};
use mqttlab_plan as plan;
use mqttlab_units::Duration;

const S: i128 = 1_000_000_000;
/// How a stage's end is called.
const END_OF: &str = "end of ";

fields! {
    /// A stretch of the measurement with a name. Stages follow each other; reports have a column for each. The guide is
    /// [Look at a run stage by stage](../how-to/stages.md).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Stage {
        /// What reports and events call it; unique among the stages.
        name: String as Name,
        /// How long it lasts.
        r#for: Duration as PositiveTime,
        /// Whether its messages count. The first and the last stage are measured: `warm_up` and `cool_down` are not.
        measured: bool = true,
    }
}

fields! {
    /// When the run warms up, measures and cools down.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Phases with rules {
        /// What the plan has of it.
        lengths: plan::Phases as Flat<plan::Phases>,
        /// The measurement in parts with names, instead of `duration`.
        stages: Vec<Stage> [..=100] = Vec::new(),
    }
}

impl Rules for Phases {
    /// The measurement lasts as long as its stages.
    fn before<'n>(node: &'n Node, _reader: &mut Reader) -> Result<Cow<'n, Node>, String> {
        let Some((table, stages)) = node.as_table().and_then(|table| Some((table, table.get("stages")?)))
        else {
            return Ok(Cow::Borrowed(node));
        };
        if stages.as_array().is_some_and(<[Node]>::is_empty) {
            return Err("has `stages` without a stage; add one, such as { name = \"busy\", for = \"30 s\" }, or leave \
                        `stages` out and say the `duration`"
                .into());
        }
        if table.has("duration") {
            return Err(
                "has both `duration` and `stages`; keep one: the measurement lasts as long as its stages"
                    .into(),
            );
        }
        let all: i128 = stages.as_array().unwrap_or_default().iter().filter_map(length_of).sum();
        let longest: &Kind = &mqttlab_fields::DURATION;
        if all > longest.most.0.into() {
            let hours = all / (3600 * S);
            return Err(format!("has `stages` of {hours} h in all, but must be 8784 h (366 days) or less"));
        }
        let mut table = table.clone();
        // Where no length can be read, that is what is told.
        table.put("duration", Node::text(format!("{} ns", if all == 0 { S } else { all })));
        Ok(Cow::Owned(Node { value: Value::Table(table), at: node.at }))
    }

    fn check(&mut self, _table: &Table) -> Result<(), String> {
        let names: Vec<&str> = self.stages.iter().map(|stage| stage.name.as_str()).collect();
        let twice = names.iter().enumerate().find(|(place, name)| names[..*place].contains(name));
        if let Some((_, name)) = twice {
            let name = shown(&Node::text(*name));
            return Err(format!("has two stages called {name}; give each its own `name`"));
        }
        let (Some(first), Some(last)) = (self.stages.first(), self.stages.last()) else { return Ok(()) };
        if !self.stages.iter().any(|stage| stage.measured) {
            return Err("has no stage that is measured; leave `measured = false` out of one".into());
        }
        if !first.measured {
            return Err(format!(
                "has a first stage, `{}`, that is not measured; write `warm_up = \"{}\"` instead of it",
                first.name,
                seconds(first.r#for.as_ns())
            ));
        }
        if !last.measured {
            return Err(format!(
                "has a last stage, `{}`, that is not measured; leave it out: publishing ends with the last stage, and \
                 `cool_down` follows",
                last.name
            ));
        }
        Ok(())
    }
}

/// The length of a stage in ns, where it can be read.
fn length_of(stage: &Node) -> Option<i128> {
    mqttlab_fields::DURATION.read(stage.as_table()?.get("for")?).ok()
}

impl Phases {
    /// Each stage with its begin and end, in ns of the measurement.
    pub fn spans(&self) -> impl Iterator<Item = (&Stage, u64, u64)> {
        let mut begin = 0;
        self.stages.iter().map(move |stage| {
            let from = begin;
            begin += stage.r#for.as_ns();
            (stage, from, begin)
        })
    }

    /// The plan's stages, since publishing began.
    pub fn planned_stages(&self) -> Vec<plan::Stage> {
        let before = self.lengths.warm_up;
        let stage = |(stage, from, until): (&Stage, u64, u64)| plan::Stage {
            name: stage.name.clone(),
            from: before + Duration::from_ns(from),
            until: before + Duration::from_ns(until),
            measured: stage.measured,
        };
        self.spans().map(stage).collect()
    }

    /// When a stage begins, by its name, or ends (`end of NAME`), in ns of the measurement; none that there is not.
    pub fn instant(&self, words: &str) -> Option<u64> {
        self.spans().find_map(|(stage, begin, end)| {
            if stage.name == words {
                return Some(begin);
            }
            words.strip_prefix(END_OF).is_some_and(|name| name == stage.name).then_some(end)
        })
    }

    /// What somebody may mean who writes the name of no stage and no event.
    pub fn near(&self, words: &str, events: &[&str]) -> String {
        let names = self.stages.iter().map(|stage| stage.name.as_str());
        did_you_mean(words, names.chain(events.iter().copied()), 0.5)
    }

    /// How long is measured: of stages those that count.
    pub fn measured(&self) -> Duration {
        let stages = self.stages.iter().filter(|stage| stage.measured).map(|stage| stage.r#for.as_ns()).sum();
        if stages == 0 { self.lengths.duration } else { Duration::from_ns(stages) }
    }

    /// The stages in a line; empty without.
    pub fn words(&self) -> String {
        let each = self.spans().map(|(stage, begin, end)| {
            let aside = if stage.measured { "" } else { " (not measured)" };
            format!("{} from {} to {}{aside}", stage.name, seconds(begin), seconds(end))
        });
        each.collect::<Vec<_>>().join(", ")
    }
}

fn seconds(ns: u64) -> String {
    if ns == 0 || i128::from(ns) >= S {
        format!("{} s", plain(ns as f64 / 1e9, 6))
    } else {
        format!("{} ms", plain(ns as f64 / 1e6, 6))
    }
}
