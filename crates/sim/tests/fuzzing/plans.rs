//! What the fuzz target for plans and its bounded stand-in do: change a valid plan somewhere, and simulate what the
//! engine accepts of it for one virtual second.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use mqttlab_capture::SegmentWitness;
use mqttlab_plan::{Destination, Plan};
use mqttlab_run::{Interruption, Progress, RunObserver};
use mqttlab_sim::Simulation;
use mqttlab_units::{Dice, Duration, Instant};
use serde_json::{Number, Value};

/// What has become of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The engine refuses it, with a place and a reason.
    Refused,
    /// It is right, and too large for a test.
    Large,
    /// It was simulated.
    Simulated,
}

/// Reads a plan, and simulates it where it is right and small. Panics where the engine would.
pub fn check(text: &str, scratch: &Path) -> Fate {
    let plan = match Plan::from_json(text) {
        Ok(plan) => plan,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return Fate::Refused;
        }
    };
    if !is_small(&plan) {
        return Fate::Large;
    }
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let directory = scratch.join(NUMBER.fetch_add(1, Ordering::Relaxed).to_string());
    let ports = plan.server_ports();
    let mut observer = Impatient { looks: LOOKS_MAX };
    let analyser = Box::new(SegmentWitness::new(ports));
    if let Ok(mut simulation) = Simulation::new(plan, &Destination::new(&directory), analyser, &mut observer)
    {
        let ran = simulation.run_until(Instant::ZERO + SIMULATED, &mut observer);
        let enough = || Interruption::Fault("enough".into());
        let result = ran.and_then(|()| if simulation.is_over() { Ok(()) } else { Err(enough()) });
        let _ = simulation.finish(result, &mut observer);
    }
    let _ = std::fs::remove_dir_all(directory);
    Fate::Simulated
}

/// Whether it is set up in milliseconds; the bounds of larger ones are the same.
fn is_small(plan: &Plan) -> bool {
    let clients: u64 = plan.groups.iter().map(|group| u64::from(group.count)).sum();
    let topics: u64 = plan
        .groups
        .iter()
        .map(|group| {
            u64::from(group.count)
                * group.publications.iter().map(|publish| u64::from(publish.topics)).sum::<u64>()
        })
        .sum();
    let stations: usize = plan.network.media.iter().map(|medium| medium.stations()).sum();
    clients <= 200 && topics <= 2_000 && stations <= 200
}

/// Ends a run in whose second too much happens, after so many looks.
struct Impatient {
    looks: u32,
}

impl RunObserver for Impatient {
    fn on_progress(&mut self, _progress: &Progress) {}

    fn cancelled(&mut self) -> Option<Interruption> {
        self.looks = self.looks.saturating_sub(1);
        (self.looks == 0).then(|| Interruption::Fault("enough".into()))
    }
}

/// Changes one thing: a number, a truth value, a text, the members of an array, or what is null.
pub fn mutate(plan: &mut Value, dice: &mut Dice) {
    let mut places = Vec::new();
    collect(plan, &mut String::new(), &mut places);
    let place = &places[dice.below(places.len() as u64) as usize];
    let other = plan.pointer(&places[dice.below(places.len() as u64) as usize]).cloned();
    let Some(value) = plan.pointer_mut(place) else { return };
    *value = match value.take() {
        Value::Number(number) => Value::Number(changed(&number, dice)),
        Value::Bool(truth) => Value::Bool(!truth),
        Value::String(text) => text_for(text, dice),
        Value::Array(mut items) => {
            let at = dice.below(items.len().max(1) as u64) as usize;
            match dice.below(3) {
                0 if !items.is_empty() => drop(items.remove(at)),
                1 if !items.is_empty() => items.push(items[at].clone()),
                _ => items.clear(),
            }
            Value::Array(items)
        }
        Value::Null => Value::Number(Number::from(dice.below(1 << 20))),
        Value::Object(fields) => {
            if dice.below(8) == 0 {
                Value::Null
            } else {
                other.unwrap_or(Value::Object(fields))
            }
        }
    };
}

fn changed(number: &Number, dice: &mut Dice) -> Number {
    let value = number.as_u64().unwrap_or(0);
    let shift = dice.below(64) as u32;
    let candidates = [
        0,
        1,
        value.wrapping_add(1),
        value.wrapping_sub(1),
        value.saturating_mul(2),
        value / 2,
        value.saturating_mul(1_000),
        1 << shift,
        (1 << shift) - 1,
        dice.below(1 << 16),
        u64::MAX,
        u64::MAX / 2,
    ];
    Number::from(candidates[dice.below(candidates.len() as u64) as usize])
}

fn text_for(text: String, dice: &mut Dice) -> Value {
    Value::String(match dice.below(8) {
        0 => String::new(),
        1 => "x".repeat(70_000),
        2 => "{client}".repeat(1 + dice.below(8_000) as usize),
        3 => format!("{text}\0"),
        4 => "#".into(),
        5 => format!("{text}/{{topic}}/+"),
        6 => ["constant", "uniform", "sim", "linux", "reno", "bbr", "even", "$share/a/#"]
            [dice.below(8) as usize]
            .into(),
        _ => return Value::Null,
    })
}

fn collect(value: &Value, place: &mut String, places: &mut Vec<String>) {
    places.push(place.clone());
    let length = place.len();
    let members: Vec<(String, &Value)> = match value {
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect()
        }
        Value::Object(fields) => fields.iter().map(|(name, field)| (name.clone(), field)).collect(),
        _ => Vec::new(),
    };
    for (name, member) in members {
        place.push('/');
        place.push_str(&name);
        collect(member, place, places);
        place.truncate(length);
    }
}

/// How much of each plan is simulated.
const SIMULATED: Duration = Duration::from_s(1);
/// Of 256 events each.
const LOOKS_MAX: u32 = 100;
