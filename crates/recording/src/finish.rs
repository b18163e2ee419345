//! From spools to tables, at the end of a run or after its death.

use std::fs;
use std::io;
use std::path::Path;

use mqttlab_rows::{Ending, Event, EventKind, Gap, Layout, Reason, RunFacts};
use mqttlab_units::Instant;
use serde_json::Value;

use crate::claim::{self, Claim, HAND_SOCKET};
use crate::client_tally::ClientTally;
use crate::coverage::ChangedSubscriptions;
use crate::error::{Error, ErrorContext, Result};
use crate::fate::{Attendance, Judge, Missing};
use crate::flow::Flow;
use crate::folding;
use crate::footer::FileSize;
use crate::frames::FrameAnalyser;
use crate::identifier;
use crate::join::{self, JoinedMessages};
use crate::layout;
use crate::message_rows::for_each;
use crate::observed_rows;
use crate::packets::{self, WrittenNetwork};
use crate::payloads::payloads;
use crate::recorder::Strain;
use crate::run::{self, RunAccount};
use crate::samples;
use crate::spool::Spool;
use crate::summary::{LinkTally, Summary};
use crate::table::TableWriter;
use crate::tables::{ClientColumns, ClientRow, EventColumns, EventRow};
use crate::validity::{self, ClientEvidence, RunEvidence};
use crate::waiting::{Surroundings, Waiting};

/// What a finished recording is made of, beside its spools.
pub struct Finish<'a> {
    /// What the producer knows and the rows do not say.
    pub facts: RunFacts,
    /// How the run ended.
    pub ending: Ending,
    /// How hard the writer was pressed.
    pub strain: Strain,
    /// Whether rows are missing that others should have handed over, so that what is not there may still have been.
    pub rows_missing: bool,
    /// The directory, as the recorder had it; `None` takes it again.
    pub claim: Option<Claim>,
    /// Who reads the frames.
    pub analyser: &'a mut dyn FrameAnalyser,
    /// Whether to write `capture-<link>.pcapng`. Every link's frames must then have been pushed with their bytes.
    pub captures: bool,
}

/// Makes the tables of a recording whose [`Recorder`](crate::Recorder) is closed, writes `run.json`, or
/// `incomplete.json` when the run ended before its end, and removes the spools. When it fails the spools are
/// still there, and [`recover`] can be tried with another directory.
pub fn finalise(dir: &Path, finish: Finish<'_>) -> Result<Summary> {
    let mut layout = layout::read(dir)?;
    let _claim = finish.claim.map_or_else(|| Claim::resume(dir), Ok)?;
    refuse_finished(dir)?;
    let mut network = packets::convert(dir, dir, &layout, finish.analyser, finish.captures)?;
    network.has_seen = observed_rows::write(dir, &mut layout, finish.analyser)?;
    let missing = Missing { rows: finish.rows_missing || finish.strain.rows_lost > 0, end: false };
    let (facts, ending, strain) = (&finish.facts, &finish.ending, finish.strain);
    let run = RunAccount { facts, ending, strain, missing, running: false };
    complete(dir, dir, &layout, network, &run)
}

/// Makes the tables of a recording whose producer was killed, up to the last whole row, and writes
/// `incomplete.json`. With `out` they go to that directory, which is made if need be, and `dir` is only read:
/// for a disk that is full or read-only. [`Error::BeingWritten`] while the producer lives.
pub fn recover(dir: &Path, out: Option<&Path>, analyser: &mut dyn FrameAnalyser) -> Result<Summary> {
    let mut layout = layout::read(dir)?;
    let _claim = Claim::resume(dir)?;
    refuse_finished(dir)?;
    let to = out.unwrap_or(dir);
    if to != dir {
        fs::create_dir_all(to).on("create", to)?;
        copy_others(dir, to)?;
    }
    let mut network = packets::convert(dir, to, &layout, analyser, false)?;
    // What is found is read from where the spools are.
    if to == dir {
        network.has_seen = observed_rows::write(dir, &mut layout, analyser)?;
    }
    let ending = Ending::Incomplete(Reason::Killed);
    let (facts, strain, missing) =
        (&RunFacts::default(), Strain::default(), Missing { rows: false, end: true });
    let run = RunAccount { facts, ending: &ending, strain, missing, running: false };
    complete(dir, to, &layout, network, &run)
}

/// Makes a recording in `out` of what a run that is still going on has written, up to the last whole row, and only
/// reads `dir`. Its `incomplete.json` has the status `running`. [`Error::Finished`] when the run has ended meanwhile:
/// then `dir` can be read as it is.
pub fn snapshot(dir: &Path, out: &Path, analyser: &mut dyn FrameAnalyser) -> Result<Summary> {
    let outcome = copy_and_complete(dir, out, analyser);
    // A run that ends meanwhile takes its spools away, so that rows or files may be missing.
    if is_finished(dir) { Err(Error::Finished(dir.to_owned())) } else { outcome }
}

fn copy_and_complete(dir: &Path, out: &Path, analyser: &mut dyn FrameAnalyser) -> Result<Summary> {
    let mut layout = layout::read(dir)?;
    if out.join("plan.json").exists() {
        return Err(Error::Occupied(out.to_owned()));
    }
    let running = claim::is_held(dir);
    fs::create_dir_all(out).on("create", out)?;
    copy_others(dir, out)?;
    // What is read more than once must not grow meanwhile; deliveries before what was sent, so that it is there, too.
    let copied =
        |spool: Spool| fs::copy(spool.path(dir), spool.path(out)).on("copy", &spool.path(dir)).map(drop);
    [Spool::Received, Spool::Acknowledged, Spool::Sent, Spool::Unsent].into_iter().try_for_each(copied)?;
    // What was added up before comes in the place of these: it is copied behind them, so that no fold comes between.
    folding::copy(dir, out)?;
    [Spool::Resources, Spool::Events].into_iter().try_for_each(copied)?;
    // Older runs have none.
    let later = [Spool::Dropped, Spool::Gaps, Spool::TcpSamples, Spool::Positions, Spool::Payloads];
    for spool in later.into_iter().filter(|spool| spool.path(dir).exists()) {
        fs::copy(spool.path(dir), spool.path(out)).on("copy", &spool.path(dir))?;
    }
    let mut network = packets::convert(dir, out, &layout, analyser, false)?;
    network.has_seen = observed_rows::write(out, &mut layout, analyser)?;
    let now = identifier::unix_now_ns().map_or_else(|| "an unknown time".into(), identifier::rfc3339);
    let ending = Ending::Incomplete(if running { Reason::GoingOn { until: now } } else { Reason::Killed });
    // What is not there of a run that goes on is under way, as far as anybody knows.
    let missing = Missing { rows: false, end: !running };
    let (facts, strain) = (&RunFacts::default(), Strain::default());
    let run = RunAccount { facts, ending: &ending, strain, missing, running };
    complete(out, out, &layout, network, &run)
}

fn is_finished(dir: &Path) -> bool {
    let recovered = dir.join("incomplete.json").exists() && !Spool::Sent.path(dir).exists();
    dir.join("run.json").exists() || recovered
}

/// A finished recording has no spools to make tables from, and its tables must not be made again from nothing.
fn refuse_finished(dir: &Path) -> Result<()> {
    if !is_finished(dir) {
        return Ok(());
    }
    // Whoever finished it may have been killed before the last spool was gone. What stays is only in the way.
    let _ = remove_spools(dir);
    Err(Error::Finished(dir.to_owned()))
}

/// The end of a recording whose packets are in their tables already.
pub(crate) fn complete_direct(
    dir: &Path,
    layout: &Layout,
    network: WrittenNetwork,
    facts: &RunFacts,
    ending: &Ending,
) -> Result<Summary> {
    let (strain, missing) = (Strain::default(), Missing::default());
    complete(dir, dir, layout, network, &RunAccount { facts, ending, strain, missing, running: false })
}

/// Everything but the network: the other tables, the word on the whole, and the end of the spools.
fn complete(
    from: &Path,
    to: &Path,
    layout: &Layout,
    mut network: WrittenNetwork,
    said: &RunAccount<'_>,
) -> Result<Summary> {
    let mut files = std::mem::take(&mut network.files);
    let NotedEvents { size, contacts, end, changes } = events(from, to, layout)?;
    files.insert("events.parquet".into(), size);
    files.insert("resources.parquet".into(), samples::resources(from, to)?);
    files.insert("tcp_state.parquet".into(), samples::tcp_states(from, to)?);
    files.insert("positions.parquet".into(), samples::positions(from, to, layout)?);
    payloads(from, to, &mut files)?;
    let attendances: Vec<Attendance> = contacts.iter().map(|contact| contact.attendance).collect();
    let judge = Judge::new(layout, &attendances, gaps(from)?, said.missing, end, &changes);
    let JoinedMessages { size, tallies, fates: messages, flow, waiting, warning, summed } =
        join::messages(&folding::message_dir(from), to, layout, &judge, join::RANGE_ROWS)?;
    network.warnings.extend(warning);
    files.insert("messages.parquet".into(), size);
    let sampled = summed.map(|summed| summed.write(to, layout, &mut files)).transpose()?;
    files.insert("clients.parquet".into(), clients(to, layout, &contacts, &tallies)?);
    if network.has_seen {
        layout::replace(to, layout)?;
    }
    let summary = Summary { dir: to.to_owned(), files, messages, sampled, links: network.links };
    network.warnings.extend(run::clock_warning(layout));
    // Whoever made the evidence of an import asked for nothing.
    if !said.facts.validity.is_null() && layout.producer != "import" {
        network.warnings.extend(flow.warning());
    }
    let facts = RunFacts {
        validity: validity(layout, &contacts, (flow, &waiting), &summary.links, said),
        ..said.facts.clone()
    };
    let said = RunAccount { facts: &facts, ..*said };
    run::write(to, layout, &summary, &said, &network.warnings)?;
    if from == to {
        remove_spools(from)?;
    }
    Ok(summary)
}

/// What is to be said of the run's validity: of one that came to its end, for others say why they did not.
fn validity(
    layout: &Layout,
    contacts: &[Contact],
    (flow, waiting): (Flow, &Waiting),
    links: &[LinkTally],
    said: &RunAccount<'_>,
) -> Value {
    let RunFacts { validity, holds, is_modelled, .. } = said.facts;
    let measured_until_ns = Some(layout.measurement_end_ns).filter(|&until_ns| until_ns < u64::MAX);
    let has_left = |contact: &Contact| {
        measured_until_ns
            .is_some_and(|until_ns| contact.attendance.has_left_before(Instant::from_ns(until_ns)))
    };
    let left: Vec<bool> = contacts.iter().map(has_left).collect();
    let around = Surroundings { layout, holds, links, left: &left, is_modelled: *is_modelled };
    let explanation = waiting.explained(&flow, &around);
    let known =
        (0..).zip(layout.clients.iter().zip(contacts)).filter(|(_, (client, _))| client.session.is_some());
    let known = known.map(|(number, (_, contact))| ClientEvidence {
        number,
        attendance: &contact.attendance,
        is_subscribed: contact.suback_ns.is_some(),
        failure: contact.failure.as_deref(),
    });
    let seen = RunEvidence {
        rows_lost: said.strain.rows_lost,
        is_modelled: *is_modelled,
        ..RunEvidence::of(known, flow, explanation)
    };
    validity::judged(validity, &seen)
}

/// What the events say about a client.
#[derive(Clone, Default)]
struct Contact {
    connect_ns: Option<u64>,
    suback_ns: Option<u64>,
    disconnects: u64,
    reconnects: u64,
    attendance: Attendance,
    /// Why its last attempt to connect failed, as long as none has succeeded.
    failure: Option<Box<str>>,
}

impl Contact {
    fn count(&mut self, event: &Event, detail: &[u8]) {
        self.attendance.note(event, detail);
        let took_ns = event.took.map(|took| took.as_ns());
        // What ends before a client is accepted is no disconnect, and has a note (a port that nobody listens at).
        let ends = matches!(event.kind, EventKind::Refused | EventKind::Disconnect | EventKind::Note);
        let says_why = ends && !detail.is_empty();
        if says_why && !self.attendance.ever_connected() {
            self.failure = Some(String::from_utf8_lossy(detail).into());
        }
        match event.kind {
            EventKind::Connack => self.connect_ns = self.connect_ns.or(took_ns),
            EventKind::Suback => self.suback_ns = self.suback_ns.or(took_ns),
            EventKind::Disconnect => self.disconnects += 1,
            EventKind::Reconnect => self.reconnects += 1,
            _ => {}
        }
    }
}

/// What the events come to.
struct NotedEvents {
    size: FileSize,
    /// What they say about clients.
    contacts: Vec<Contact>,
    /// When the last one was.
    end: Instant,
    /// What they say about subscriptions that change.
    changes: ChangedSubscriptions,
}

/// Writes the events' table.
fn events(from: &Path, to: &Path, layout: &Layout) -> Result<NotedEvents> {
    let (mut end, mut changes) = (Instant::ZERO, ChangedSubscriptions::of_layout(layout));
    let mut contacts = vec![Contact::default(); layout.clients.len()];
    let mut table = TableWriter::<EventColumns<'static>>::create(to)?;
    for_each(from, Spool::Events, |event: Event, detail| {
        if let Some(contact) = event.client.and_then(|client| contacts.get_mut(client as usize)) {
            contact.count(&event, detail);
        } else if matches!(event.kind, EventKind::QueueFull | EventKind::ServerStart) {
            // Of a client that the layout does not know, as a gateway's: any message may have been for it. So may a server be anybody's.
            contacts.iter_mut().for_each(|contact| contact.count(&event, detail));
        }
        changes.note(&event, detail);
        end = end.max(event.at);
        let detail = String::from_utf8_lossy(detail);
        let row = EventRow {
            at_ns: event.at.as_ns(),
            kind: event.kind,
            client: event.client,
            took_ns: event.took.map(|took| took.as_ns()),
            detail: Some(&*detail).filter(|detail| !detail.is_empty()),
        };
        table.push(|columns, place| columns.set(place, &row))
    })?;
    Ok(NotedEvents { size: table.finish()?, contacts, end, changes })
}

/// The times of which the evidence is not whole.
fn gaps(from: &Path) -> Result<Vec<Gap>> {
    let mut gaps = Vec::new();
    for_each(from, Spool::Gaps, |gap: Gap, _| {
        gaps.push(gap);
        Ok(())
    })?;
    Ok(gaps)
}

fn clients(to: &Path, layout: &Layout, contacts: &[Contact], tallies: &[ClientTally]) -> Result<FileSize> {
    let mut table = TableWriter::<ClientColumns<'static>>::create(to)?;
    for (number, client) in layout.clients.iter().enumerate() {
        let (contact, tally) = (&contacts[number], &tallies[number]);
        let row = ClientRow {
            client: number as u32,
            name: &client.name,
            group: &client.group,
            host: layout.hosts.get(usize::from(client.host)).map_or("", String::as_str),
            connect_ns: contact.connect_ns,
            suback_ns: contact.suback_ns,
            sent: tally.sent,
            unsent: tally.unsent,
            acknowledged: tally.acknowledged,
            acknowledged_mean_ns: (tally.acknowledged > 0)
                .then(|| tally.acknowledged_ns as f64 / tally.acknowledged as f64),
            delivered: tally.delivered,
            lost: tally.lost,
            under_way: tally.under_way,
            unknown: tally.unknown,
            duplicates: tally.duplicates,
            out_of_order: tally.out_of_order,
            late: tally.late,
            foreign: tally.foreign,
            disconnects: contact.disconnects,
            reconnects: contact.reconnects,
        };
        table.push(|columns, place| columns.set(place, &row))?;
    }
    table.finish()
}

/// Copies what is neither spool nor table, so that the recovered recording stands alone.
fn copy_others(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from).on("read", from)? {
        let path = entry.on("read", from)?.path();
        let extension = path.extension().unwrap_or_default();
        let other = path.is_file() && !["spool", "parquet", "tmp"].iter().any(|known| extension == *known);
        if let (true, Some(name)) = (other, path.file_name()) {
            fs::copy(&path, to.join(name)).on("copy", &path)?;
        }
    }
    Ok(())
}

fn remove_spools(dir: &Path) -> Result<()> {
    packets::remove_journals(dir);
    // Nobody is behind it any more.
    let _ = fs::remove_file(dir.join(HAND_SOCKET));
    folding::remove(dir)?;
    for spool in Spool::ALL {
        for path in [spool.path(dir), spool.seen_path(dir)] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::Disk { action: "remove", path, source: error });
                }
                _ => {}
            }
        }
    }
    Ok(())
}
