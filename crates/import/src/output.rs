//! The recording that an import writes, from its first row to its last word.

use std::collections::BTreeMap;
use std::fs;

use mqttlab_recording::{DirectRecorder, Ending, Layout, Reason, RunFacts};
use serde_json::{Value, json};

use super::clock::CaptureClock;
use super::error::Result;
use super::options::ImportOrder;
use super::plan::{self, Facts};
use super::progress::ImportObserver;

/// What is said about the evidence.
#[derive(Default)]
pub struct Findings {
    /// Why evidence is missing at an end.
    pub faults: Vec<String>,
    /// Why the numbers are not the whole truth.
    pub reasons: Vec<String>,
    /// What to know besides.
    pub warnings: Vec<String>,
}

/// A recording being written.
pub struct ImportOutput<'a> {
    order: &'a ImportOrder,
    clock: CaptureClock,
    /// Takes the rows.
    pub recorder: DirectRecorder,
}

impl<'a> ImportOutput<'a> {
    /// Starts a recording whose time is counted on `clock`.
    ///
    /// # Errors
    /// [`ImportError::Recording`](super::error::ImportError::Recording) when the directory cannot be written, or holds one already.
    pub fn open(order: &'a ImportOrder, clock: CaptureClock) -> Result<ImportOutput<'a>> {
        let layout = stamped(Layout::default(), clock);
        let facts = Facts {
            length_ns: 0,
            broker: String::new(),
            broker_port: None,
            broker_ports: Vec::new(),
            gateways: Vec::new(),
            gateway_ports: Vec::new(),
            network: String::new(),
        };
        let plan = written(&plan::plan(order, &layout, &facts));
        let mut recorder = DirectRecorder::create(&order.output, &plan, &layout)?;
        // The evidence is still there, so that half a recording is of no use.
        recorder.provisional();
        Ok(ImportOutput { order, clock, recorder })
    }

    /// Ends the recording: who is who is known now.
    pub fn close(
        self,
        layout: Layout,
        facts: &Facts,
        findings: Findings,
        details: BTreeMap<String, Value>,
        observer: &mut dyn ImportObserver,
    ) -> Result<Ending> {
        let layout = stamped(layout, self.clock);
        let path = self.order.output.join("plan.json");
        fs::write(&path, written(&plan::plan(self.order, &layout, facts)))
            .map_err(|source| mqttlab_recording::Error::Disk { action: "write", path, source })?;
        let mut details = details;
        if let Some(told) = details.get_mut("import") {
            told["rules"] = RULES.into();
        }
        let Findings { faults, reasons, warnings } = findings;
        for words in reasons.iter().chain(&warnings) {
            observer.on_warning(words);
        }
        let said = RunFacts {
            versions: BTreeMap::from([("engine".into(), env!("CARGO_PKG_VERSION").into())]),
            warnings,
            validity: json!({"valid": reasons.is_empty(), "reasons": reasons}),
            details,
            ..RunFacts::default()
        };
        let ending = Ending::of((!faults.is_empty()).then_some(Reason::Evidence { problems: faults }));
        self.recorder.finish(Some(layout), &said, &ending)?;
        Ok(ending)
    }
}

/// What every import's layout says: the machine is unknown, and nothing is warm-up or cool-down unless the evidence says so.
fn stamped(layout: Layout, clock: CaptureClock) -> Layout {
    let is_told = layout.warm_up_end_ns < layout.measurement_end_ns;
    Layout {
        producer: "import".into(),
        machine: json!({}),
        started_unix_ns: clock.start_unix_ns(),
        measurement_end_ns: if is_told { layout.measurement_end_ns } else { u64::MAX },
        ..layout
    }
}

/// Which rules evidence is read by. Another number: importing it again may give other fates, latencies or reasons.
const RULES: u32 = 3;

fn written(plan: &Value) -> String {
    serde_json::to_string_pretty(plan).expect("a JSON value can be written")
}
