//! Clients that are programs: one process each, in its host's namespace.
//!
//! ```text
//!   start (spread over `connect_over`) ──► ready (a line of its output, or at once) ──► ended by itself, or told to
//! ```
//!
//! A program dies with the engine, as a server does ([`ServerHandle`]). Its output is kept in the recording, a file each. What it
//! sends and receives is read off the frames when the recording is finished; here it is only started, watched and ended.
//!
//! What it does not do: start a program again that has ended.

use std::path::{Path, PathBuf};
use std::time;

use mqttlab_plan::{ClientProgram, Group, Plan, Readiness, ServerProcess, Text};
use mqttlab_recording::EventKind;
use mqttlab_run::Announcer;
use mqttlab_system::priority::Priority;
use mqttlab_units::{Duration, Instant};

use crate::network::testbed::Testbed;
use crate::processes::readiness;
use crate::processes::server::{ServerError, ServerHandle};
use crate::run::sampler::Sampler;

/// The programs of a run.
pub(crate) struct Programs {
    waiting: Vec<PendingProgram>,
    running: Vec<RunningProgram>,
    /// How many have been ready, or ended before.
    gathered: u32,
    /// How many have been ready.
    ready: u32,
    count: u32,
}

/// A program that has not been started; the next one comes last.
struct PendingProgram {
    at: Instant,
    client: u32,
    group: usize,
    /// Its number in the group.
    index: u32,
}

struct RunningProgram {
    client: u32,
    name: String,
    handle: ServerHandle,
    log: PathBuf,
    ready_line: Option<String>,
    is_ready: bool,
}

impl Programs {
    /// Those of a plan, to be started from now on.
    pub(crate) fn of(plan: &Plan, now: Instant) -> Programs {
        let mut waiting = Vec::new();
        for (number, (group, first)) in plan.groups.iter().zip(plan.client_numbers()).enumerate() {
            for index in (0..group.count).filter(|_| group.program.is_some()) {
                let spread = group.connect_over.as_ns() / u64::from(group.count) * u64::from(index);
                let at = now + Duration::from_ns(spread);
                waiting.push(PendingProgram { at, client: first + index, group: number, index });
            }
        }
        waiting.sort_by_key(|program| std::cmp::Reverse((program.at, program.client)));
        let count = waiting.len() as u32;
        Programs { waiting, running: Vec::new(), gathered: 0, ready: 0, count }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// How many are ready, or have ended without ever being so.
    pub(crate) fn gathered(&self) -> u32 {
        self.gathered
    }

    /// How many are ready.
    pub(crate) fn ready(&self) -> u32 {
        self.ready
    }

    /// Whether all of them have been started and have ended.
    pub(crate) fn have_ended(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty()
    }

    /// When the next one is to be started.
    pub(crate) fn next_start(&self) -> Option<Instant> {
        self.waiting.last().map(|program| program.at)
    }

    /// Starts those that are due, and notes who has become ready and who has ended.
    ///
    /// # Errors
    /// A sentence: a program cannot be started.
    pub(crate) fn advance(
        &mut self,
        now: impl Fn() -> Instant,
        around: &ProgramContext<'_>,
        sampler: &mut Sampler,
        announcer: &mut Announcer<'_>,
    ) -> Result<(), String> {
        let begun = now();
        while let Some(due) = self.waiting.pop_if(|program| program.at <= begun) {
            let group = &around.plan.groups[due.group];
            let name = format!("{}[{}]", group.name, due.index);
            // Before it can have sent anything, as its end is noted after all that it sent.
            let at = now();
            let running = around.start(group, &due).map_err(|error| format!("client `{name}`: {error}"))?;
            sampler.event_of(at, EventKind::ProgramStart, due.client, &log_name(due.client));
            self.running.push(running);
        }
        for program in self.running.iter_mut().filter(|program| !program.is_ready) {
            program.is_ready =
                program.ready_line.as_ref().is_none_or(|line| readiness::has_line(&program.log, line));
            self.ready += u32::from(program.is_ready);
            self.gathered += u32::from(program.is_ready);
        }
        while let Some(place) = self.running.iter().position(|program| program.handle.has_exited()) {
            let RunningProgram { client, name, handle, is_ready, .. } = self.running.remove(place);
            self.gathered += u32::from(!is_ready);
            let status = handle.stop();
            // One that has done its work ends, too.
            if status != SUCCESS {
                let log = log_name(client);
                announcer.warn(format!(
                    "the program of client `{name}` ended during the run ({status}); see {log}"
                ));
            }
            sampler.event_of(now(), EventKind::ProgramExit, client, &status);
        }
        Ok(())
    }

    /// Asks all of them to end, and insists after a second.
    pub(crate) fn stop(self, now: impl Fn() -> Instant, sampler: &mut Sampler) {
        self.running.iter().for_each(|program| program.handle.terminate());
        let deadline = time::Instant::now() + GRACE;
        for program in self.running {
            let status = program.handle.stop_by(deadline);
            sampler.event_of(now(), EventKind::ProgramExit, program.client, &status);
        }
    }
}

/// Where programs are started.
pub(crate) struct ProgramContext<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) testbed: &'a Testbed,
    /// How the engine's own clients are scheduled, and programs therefore, too.
    pub(crate) priority: Priority,
    /// The recording's directory.
    pub(crate) logs: &'a Path,
}

impl ProgramContext<'_> {
    fn start(&self, group: &Group, due: &PendingProgram) -> Result<RunningProgram, ServerError> {
        let program = group.program.as_ref().expect("only programs are started here");
        let host = self.testbed.place(group.host_of(due.index));
        let log = self.logs.join(log_name(due.client));
        let handle = ServerHandle::start(&self.process(group, program, due), host, &log)?;
        handle.prioritise(self.priority);
        Ok(RunningProgram {
            client: due.client,
            name: format!("{}[{}]", group.name, due.index),
            handle,
            log,
            ready_line: program.ready_line.clone(),
            is_ready: false,
        })
    }

    /// The program as it is started, everything but its directory filled in.
    fn process(&self, group: &Group, program: &ClientProgram, due: &PendingProgram) -> ServerProcess {
        let server = self.testbed.server_address(group.connects_to);
        let filled = |text: &str| {
            let known = [
                ("{address}", server.ip().to_string()),
                ("{port}", server.port().to_string()),
                ("{group}", group.name.clone()),
                ("{client}", due.index.to_string()),
                ("{client_id}", group.client_id(due.index)),
            ];
            known.into_iter().fold(text.to_owned(), |text, (place, value)| text.replace(place, &value))
        };
        let mut files = program.files.clone();
        files.iter_mut().for_each(|file| file.text = file.text.with(filled));
        let text_of = |text: &Text| if text.is_secret() { text.clone() } else { text.with(filled) };
        ServerProcess {
            command: program.command.iter().map(text_of).collect(),
            environment: program
                .environment
                .iter()
                .map(|(name, value)| (name.clone(), text_of(value)))
                .collect(),
            files,
            ready: Readiness::TcpAccept,
            start_timeout: Duration::ZERO,
        }
    }
}

/// What is to be said of the numbers of groups that programs perform.
pub(crate) fn warnings(plan: &Plan) -> impl Iterator<Item = String> + use<'_> {
    let performed = plan.groups.iter().filter(|group| group.program.is_some());
    performed.map(|group| {
        format!(
            "the clients of group `{}` are programs, known by their frames alone: a message is sent when it comes to the first \
             link and received when it comes to the client's host, so that latencies lack the program's own time; when it was \
             meant to be sent, and what was never written, is not known",
            group.name
        )
    })
}

/// The file that a program's output goes to, in the recording's directory.
fn log_name(client: u32) -> String {
    format!("program-{client}.log")
}

/// As [`ServerHandle::stop`] says it.
const SUCCESS: &str = "exit status 0";
/// As long as servers have.
const GRACE: time::Duration = time::Duration::from_secs(1);
