//! What is said about a run beside its rows: `run.json`, or `incomplete.json` when it ended before its end.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use mqttlab_rows::{Ending, Layout, RunFacts};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::checks::{self, Checks};
use crate::error::{ErrorContext, Result};
use crate::fate::Missing;
use crate::identifier::rfc3339;
use crate::recorder::Strain;
use crate::schema::SCHEMA_VERSION;
use crate::summary::Summary;

/// What is said about a run beside its rows.
pub(crate) struct RunAccount<'a> {
    pub facts: &'a RunFacts,
    pub ending: &'a Ending,
    pub strain: Strain,
    /// Which rows may be missing.
    pub missing: Missing,
    /// Whether this is only a look at a run that has not ended.
    pub running: bool,
}

/// `run.json`: how far to believe it first.
#[derive(Serialize)]
struct ToldRun<'a> {
    status: &'a str,
    reason: Value,
    validity: &'a Value,
    #[serde(flatten)]
    rest: Value,
}

/// Writes `run.json`, or `incomplete.json`: under another name first, so that it is there whole or not at all.
pub(crate) fn write(
    dir: &Path,
    layout: &Layout,
    summary: &Summary,
    said: &RunAccount<'_>,
    warnings: &[String],
) -> Result<()> {
    let RunAccount { facts, ending, strain, running, .. } = *said;
    let (name, status, reason) = match ending {
        Ending::Complete => ("run.json", "complete", Value::Null),
        Ending::Incomplete(reason) if running => ("incomplete.json", "running", json!(reason)),
        Ending::Incomplete(reason) => ("incomplete.json", "incomplete", json!(reason)),
    };
    let plan = dir.join("plan.json");
    let plan_sha256 = digest(&fs::read(&plan).on("read", &plan)?);
    let mut rest = json!({
        "schema_version": SCHEMA_VERSION,
        "run_id": Some(&layout.run_id).filter(|id| !id.is_empty()),
        "producer": layout.producer,
        "seed": layout.seed,
        "plan_sha256": plan_sha256,
        "started_at": started_at(layout),
        "machine": layout.machine,
        "versions": facts.versions,
        "warnings": facts.warnings.iter().chain(warnings).collect::<Vec<_>>(),
        "details": facts.details,
        "recorder": strain,
        "messages": summary.messages,
        "links": summary.links,
        "files": summary.files,
    });
    // A look is not kept, and what it is made of goes on.
    if !running {
        rest["checks"] = json!(own_checks(dir)?);
    }
    if let Some(sampled) = &summary.sampled {
        rest["sampled"] = json!(sampled);
    }
    let told = ToldRun { status, reason, validity: &facts.validity, rest };
    let text = serde_json::to_string_pretty(&told).expect("a JSON value can be written") + "\n";
    write_whole(dir, name, text.as_bytes())
}

/// The checks of the files that are there now: this one comes last.
fn own_checks(dir: &Path) -> Result<Checks> {
    let mut found = Checks::new();
    checks::add(&mut found, dir)?;
    found.retain(|name, _| !checks::ENDED.contains(&name.as_str()));
    Ok(found)
}

fn write_whole(dir: &Path, name: &str, text: &[u8]) -> Result<()> {
    let temporary = dir.join(format!("{name}.tmp"));
    let mut file = File::create(&temporary).on("create", &temporary)?;
    file.write_all(text).on("write", &temporary)?;
    file.sync_all().on("write", &temporary)?;
    fs::rename(&temporary, dir.join(name)).on("rename", &temporary)?;
    File::open(dir).and_then(|dir| dir.sync_all()).on("sync", dir)
}

/// SHA-256 in hexadecimal digits.
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// When the recording's time began; `None` where that is not known. Evidence of 1970 would be somebody's clock, too.
fn started_at(layout: &Layout) -> Option<String> {
    (layout.started_unix_ns > 0).then(|| rfc3339(layout.started_unix_ns))
}

/// What to read when a run cannot say when it was.
pub(crate) fn clock_warning(layout: &Layout) -> Option<String> {
    let unknown = layout.started_unix_ns == 0 && layout.producer != "import";
    let text =
        "the machine's clock gives a time before 1970 or after 2262: when the run started is not known";
    unknown.then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha256_matches_the_standards_example() {
        // FIPS 180-2, appendix B.1.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest(b"abc"), expected);
    }
}
