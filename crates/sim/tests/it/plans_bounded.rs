//! Tries the committed corpus again, and changes valid plans at random, with a fixed seed: what is accepted is simulated, and no
//! plan makes the engine panic. `make fuzz TARGETS=plan` does the same without bounds, see `fuzz/`. `MQTTLAB_PLANS=20000` tries so many.

use std::fs;
use std::time::{Duration, Instant};

use mqttlab_units::Seed;
use serde_json::Value;

#[path = "../../../../fuzz/corpus.rs"]
mod committed;
#[path = "../fuzzing/plans.rs"]
mod plans;

use plans::{Fate, check, mutate};

/// Rounds of an ordinary test, and the time after which it is enough on a slow machine.
const ROUNDS: u64 = 1_500;
const ENOUGH: Duration = Duration::from_secs(15);

fn corpus() -> Vec<Value> {
    committed::made("plan").iter().map(|bytes| serde_json::from_slice(bytes).expect("JSON")).collect()
}

fn scratch(name: &str) -> std::path::PathBuf {
    let scratch = std::env::temp_dir().join(format!("mqttlab-plans-{name}-{}", std::process::id()));
    fs::create_dir_all(&scratch).expect("a scratch directory");
    scratch
}

#[test]
fn every_plan_of_the_corpus_is_simulated() {
    let scratch = scratch("corpus");
    for plan in corpus() {
        assert_eq!(check(&plan.to_string(), &scratch), Fate::Simulated, "{}", plan["name"]);
    }
    fs::remove_dir_all(scratch).expect("an empty directory");
}

/// Among them a plan whose proxy takes 2^64 - 1 ns for a packet, which the simulator once accepted.
#[test]
fn what_a_campaign_has_found_makes_the_engine_panic_no_more() {
    let scratch = scratch("found");
    for bytes in committed::found("plan") {
        if let Ok(text) = std::str::from_utf8(&bytes) {
            check(text, &scratch);
        }
    }
    fs::remove_dir_all(scratch).expect("an empty directory");
}

#[test]
fn no_plan_makes_the_engine_panic() {
    let (corpus, scratch) = (corpus(), scratch("mutants"));
    let campaign: Option<u64> = std::env::var("MQTTLAB_PLANS").ok().and_then(|rounds| rounds.parse().ok());
    let seed = std::env::var("MQTTLAB_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut dice = Seed(seed).derive("plans").dice();
    let (began, mut fates) = (Instant::now(), [0_u64; 3]);
    for round in 0..campaign.unwrap_or(ROUNDS) {
        if campaign.is_none() && began.elapsed() > ENOUGH {
            break;
        }
        let mut plan = corpus[dice.below(corpus.len() as u64) as usize].clone();
        for _ in 0..1 + dice.below(3) {
            mutate(&mut plan, &mut dice);
        }
        let text = plan.to_string();
        let outcome = std::panic::catch_unwind(|| check(&text, &scratch));
        match outcome {
            Ok(fate) => fates[fate as usize] += 1,
            Err(_) => {
                let kept = std::env::temp_dir().join(format!("mqttlab-plan-{seed}-{round}.json"));
                fs::write(&kept, &text).expect("a place for the plan");
                panic!("round {round} fails; its plan is in {}", kept.display());
            }
        }
    }
    println!("refused, large, simulated: {fates:?}");
    assert!(fates[Fate::Refused as usize] > 0 && fates[Fate::Simulated as usize] > 0, "{fates:?}");
    fs::remove_dir_all(scratch).expect("an empty directory");
}
