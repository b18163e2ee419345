//! The stages of a run: stretches of its measurement with names, so that each can be looked at by itself.
//!
//! Clients do not know them: they publish as their group says, and events change that. A message's stage follows from
//! when it was intended, so that no row of a recording names one.

use std::collections::BTreeSet;

use mqttlab_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{PlanError, require};
use crate::{Plan, bounds};

const STAGES_MAX: u64 = 100;
const NAME_BYTES_MAX: u64 = 40;

/// A stretch of the measurement with a name. Times count from when publishing begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Unique among the stages.
    pub name: String,
    /// Its begin; of the first one the end of the warm-up.
    #[serde(rename = "from_ns")]
    pub from: Duration,
    /// Its end, where the next one begins, and after the last one the cool-down.
    #[serde(rename = "until_ns")]
    pub until: Duration,
    /// Whether its messages count.
    pub measured: bool,
}

/// Stages follow each other from the end of the warm-up to the cool-down, and the first and the last are measured:
/// what is not measured before and after them are these.
pub(crate) fn check(plan: &Plan) -> Result<(), PlanError> {
    let (Some(first), Some(last)) = (plan.stages.first(), plan.stages.last()) else { return Ok(()) };
    bounds::within(plan.stages.len() as u64, 1, STAGES_MAX, "stages")?;
    let mut names = BTreeSet::new();
    let mut end = plan.phases.warm_up;
    for (index, stage) in plan.stages.iter().enumerate() {
        let place = format!("stages[{index}]");
        bounds::within(stage.name.len() as u64, 1, NAME_BYTES_MAX, &format!("{place}.name"))?;
        require(names.insert(stage.name.as_str()), &format!("{place}.name"), || {
            format!("is {:?}, which is the name of another stage", stage.name)
        })?;
        require(stage.from == end, &format!("{place}.from_ns"), || {
            format!("is {}, but must be {}, where the one before it ends", stage.from.as_ns(), end.as_ns())
        })?;
        require(stage.until > stage.from, &format!("{place}.until_ns"), || {
            format!("is {}, but must be later than its begin", stage.until.as_ns())
        })?;
        end = stage.until;
    }
    let over = plan.phases.warm_up.saturating_add(plan.phases.duration);
    require(end == over, &format!("stages[{}].until_ns", plan.stages.len() - 1), || {
        format!("is {}, but must be {}, the end of the measurement", end.as_ns(), over.as_ns())
    })?;
    for (stage, which) in [(first, "first"), (last, "last")] {
        require(stage.measured, "stages", || format!("are not measured in the {which} of them"))?;
    }
    // Both move the ends of the measurement.
    require(!plan.sim.detect_transient, "sim.detect_transient", || "is true, but there are stages".into())?;
    require(plan.sim.stop.is_none(), "sim.stop", || "is set, but there are stages".into())
}
