//! The recording of a simulation: how it is begun, and what is written down at its end.

use std::collections::BTreeMap;

use mqttlab_client::{as_published, changed_receivers, own_receivers, shares};
use mqttlab_mqtt::Version;
use mqttlab_plan::{Destination, Group, NetworkKind, Plan, Roster, RosterTopic};
use mqttlab_recording::{
    Client, DirectRecorder, Ending, Hold, Layout, RunFacts, Session, SummaryRule, Topic,
};
use mqttlab_run::{Interruption, RunOutcome, Validity};
use mqttlab_units::Instant;
use serde_json::{Value, json};

use crate::control::limits;

/// What is known at the end of a simulation.
pub(crate) struct Conclusion {
    pub(crate) warm_up_end: Instant,
    pub(crate) measurement_end: Instant,
    pub(crate) details: [(&'static str, Value); 4],
    pub(crate) warnings: Vec<String>,
    pub(crate) holds: Vec<Hold>,
}

/// Begins the recording. A recorder that goes before it is told to keep it takes it away again.
///
/// # Errors
/// A sentence: the simulator cannot perform this plan, or the recording cannot be written.
pub(crate) fn begin(
    plan: &Plan,
    destination: &Destination,
    roster: &Roster,
) -> Result<DirectRecorder, String> {
    if plan.network.kind == NetworkKind::External {
        return Err(
            "the network is external, but the simulator has no external broker; choose another network"
                .into(),
        );
    }
    limits::check(plan)?;
    let run_id = destination.run_id.clone().unwrap_or_default();
    let layout = Layout { run_id, ..layout(plan, roster) };
    let mut recorder = DirectRecorder::create(&destination.directory, &plan.to_json(), &layout)
        .map_err(|e| e.to_string())?;
    recorder.provisional();
    Ok(recorder)
}

/// What each client speaks, where its packets are written down.
pub(crate) fn versions(plan: &Plan) -> Box<[Version]> {
    let groups = plan.groups.iter().filter(|_| plan.recording.packets);
    groups.flat_map(|group| std::iter::repeat_n(group.version(), group.count as usize)).collect()
}

/// Makes the tables, and says how the run ended.
pub(crate) fn finish(
    recorder: DirectRecorder,
    conclusion: Conclusion,
    result: Result<(), Interruption>,
) -> RunOutcome {
    let Conclusion { warm_up_end, measurement_end, details, warnings, holds } = conclusion;
    let layout = recorder.layout().map(|layout| Layout {
        warm_up_end_ns: warm_up_end.as_ns(),
        measurement_end_ns: measurement_end.as_ns(),
        ..layout
    });
    let facts = RunFacts {
        versions: BTreeMap::from([("engine".into(), env!("CARGO_PKG_VERSION").into())]),
        warnings,
        validity: json!(Validity::of(Vec::new())),
        details: details.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        holds,
        is_modelled: true,
    };
    let ending = Ending::of(result.as_ref().err().map(Interruption::reason));
    match layout.and_then(|layout| recorder.finish(Some(layout), &facts, &ending)) {
        Ok(_) => RunOutcome::of(result),
        Err(error) => RunOutcome::unfinished(result, error.to_string()),
    }
}

/// What a plan says about its recording; when it was made the recorder adds.
fn layout(plan: &Plan, roster: &Roster) -> Layout {
    let client = |(group, client): (&Group, u32)| Client {
        name: group.client_id(client),
        group: group.name.clone(),
        host: group.host_of(client) as u16,
        session: Some(Session { expiry_ns: group.session_expiry().map(|expiry| expiry.as_ns()) }),
        is_program: false,
    };
    let topic = |entry: &RosterTopic| Topic {
        name: entry.name.clone(),
        receivers: entry.receivers,
        shares: entry.shares.len() as u32,
        relayed: entry.relayed,
    };
    Layout {
        producer: "simulator".into(),
        seed: plan.seed.0,
        hosts: plan.hosts.iter().map(|host| host.name.clone()).collect(),
        links: plan.link_names(),
        clients: plan.clients().map(client).collect(),
        topics: roster.topics().iter().map(topic).collect(),
        receivers: roster.receivers().to_vec(),
        changed_receivers: changed_receivers(plan, roster),
        as_published: as_published(plan),
        own_receivers: own_receivers(roster),
        shares: shares(roster),
        measurement_end_ns: u64::MAX,
        late_after_ns: plan.late_after_ns(),
        summary: plan
            .recording
            .summary
            .map(|rule| SummaryRule { fold_bytes: rule.fold_bytes, rows_most: rule.rows_most }),
        ..Layout::default()
    }
}
