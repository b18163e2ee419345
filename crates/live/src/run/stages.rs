//! The stages of a live run, from connecting to the end of the cool-down, in real time.
//!
//! What begins and ends a stage is the [`RunConductor`]'s; this waits for it, keeps samples and figures coming meanwhile, and
//! notices what ends a run: a signal, the death of a server or of whoever reads the progress, a full disk, a fault.
//!
//! What it does not do: touch a message or a frame.

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use mqttlab_plan::{Event, Plan, ServerChangeKind, ServerEvent, WhenItDies};
use mqttlab_recording::{EventKind, Recorder};
use mqttlab_run::{Announcer, Holds, Interruption, Progress, RunConductor, RunStage, RunStanding};
use mqttlab_units::{Duration, Instant};

use crate::control::Control;
use crate::due_list::DueList;
use crate::host::watch::Watch;
use crate::network::emulator::Emulator;
use crate::network::testbed::Testbed;
use crate::parts::PartRole;
use crate::parts::client_share::ClientsStatus;
use crate::processes::life::{RunningServer, ServerNews, StartPlace};
use crate::processes::programs::{ProgramContext, Programs};
use crate::processes::server::named;
use crate::reception;
use crate::run::hand_desk::HandDesk;
use crate::run::progress::LiveProgress;
use crate::run::run_json;
use crate::run::sampler::Sampler;
use crate::run::{log_name, version};

/// A run whose clients have been started.
pub(crate) struct Stages<'a, 'b> {
    pub(crate) plan: &'a Plan,
    /// Where the recording is.
    pub(crate) directory: &'a Path,
    pub(crate) control: &'a Control,
    pub(crate) recorder: &'a Recorder,
    pub(crate) watch: &'a mut Watch,
    /// Who performs the run's other parts.
    pub(crate) role: &'a PartRole,
    pub(crate) servers: &'a mut Vec<RunningServer>,
    pub(crate) programs: &'a mut Programs,
    pub(crate) testbed: &'a Testbed,
    pub(crate) emulator: Option<&'a Emulator>,
    pub(crate) sampler: &'a mut Sampler,
    pub(crate) announcer: &'a mut Announcer<'b>,
    pub(crate) figures: LiveProgress,
    pub(crate) planned: DueList<&'a Event>,
    /// Where it takes events that are fired by hand.
    pub(crate) desk: Option<HandDesk>,
    /// What events have taken away.
    pub(crate) holds: Holds,
}

/// How the clients stand. They are shown out by their workers, and not told when the measurement has found enough.
struct AllClients<'a> {
    control: &'a Control,
    /// In all parts.
    count: u32,
    /// Those of other parts, where this one conducts.
    others: ClientsStatus,
    /// Programs that have gathered, and that are ready.
    programs: [u32; 2],
    /// Whether programs may still publish: what of theirs is under way nobody knows.
    may_publish: bool,
}

impl RunStanding for AllClients<'_> {
    fn clients(&self) -> u32 {
        self.count
    }

    fn gathered(&self) -> u32 {
        self.all().gathered + self.programs[0]
    }

    fn has_measured_enough(&self) -> bool {
        false
    }

    fn is_settled(&self) -> bool {
        !self.may_publish && self.all().is_settled()
    }

    fn is_gone(&self) -> bool {
        false
    }
}

impl AllClients<'_> {
    fn all(&self) -> ClientsStatus {
        self.control.figures.clients_status().and(&self.others)
    }
}

impl Stages<'_, '_> {
    /// Goes through all stages until the clients are to disconnect.
    ///
    /// # Errors
    /// What ended the run before.
    pub(crate) fn run(&mut self) -> Result<(), Interruption> {
        let count = *self.plan.client_numbers().last().expect("there is an end");
        let (control, programs) = (self.control, [0; 2]);
        let (others, may_publish) = (ClientsStatus::default(), self.programs.count() > 0);
        let mut clients = AllClients { control, count, others, programs, may_publish };
        let mut conductor = RunConductor::new(self.plan.phases, self.control.now());
        self.enter(&conductor, &clients);
        loop {
            self.wait(&conductor, &mut clients)?;
            if conductor.next(self.control.now()) == RunStage::Disconnect {
                return Ok(());
            }
            self.role.ordered_schedule().into_iter().for_each(|schedule| conductor.follow(schedule));
            self.enter(&conductor, &clients);
        }
    }

    fn enter(&mut self, conductor: &RunConductor, clients: &AllClients<'_>) {
        let now = self.control.now();
        if let Some(phase) = conductor.stage().phase() {
            self.announcer.phase(phase, now, conductor.length());
            self.sampler.event(now, EventKind::Phase, phase.name());
        }
        match conductor.stage() {
            RunStage::Notice => self.announce(conductor, clients),
            RunStage::Measurement => self.sampler.begin_measurement(),
            RunStage::CoolDown => self.sampler.end_measurement(),
            RunStage::Connect | RunStage::WarmUp | RunStage::Disconnect | RunStage::Over => {}
        }
    }

    /// Waits until the present stage is over.
    fn wait(&mut self, conductor: &RunConductor, clients: &mut AllClients<'_>) -> Result<(), Interruption> {
        loop {
            let now = self.control.now();
            self.advance_programs(clients)?;
            self.perform_events(conductor);
            clients.others = self.role.exchange_status(|| self.control.figures.clients_status())?;
            let is_over = self.is_over(conductor, now, clients);
            if conductor.stage() == RunStage::Connect {
                self.find_unserved(now, is_over)?;
            }
            if is_over {
                // Whoever watches has the counts of the whole run then.
                if conductor.stage() == RunStage::CoolDown {
                    self.tell_figures(clients);
                }
                return Ok(());
            }
            let thread = self.emulator.map(|emulator| emulator.shared().thread.load(Relaxed));
            self.sampler.sample_if_due(now, thread);
            self.sampler.listen(now, &self.control.figures);
            if self.sampler.tick_is_due(now) {
                self.tell_figures(clients);
            }
            let event = self.planned.next_at(conductor.schedule().map(|schedule| schedule.publish_from));
            let by_hand = self.desk.as_ref().and_then(HandDesk::next_at);
            let next = [conductor.deadline(), self.programs.next_start(), event, by_hand];
            let next = next.into_iter().flatten().min();
            let left = next.and_then(|next| next.checked_since(now));
            self.watch.wait(left.unwrap_or(STEP).min(STEP))?;
            self.find_faults()?;
        }
    }

    /// Ends a run whose clients a server elsewhere does not accept: all that follows would wait for nothing.
    fn find_unserved(&self, now: Instant, is_over: bool) -> Result<(), Interruption> {
        for (index, counters) in self.control.figures.receptions.iter().enumerate() {
            let reception = counters.reception();
            // Asked in each turn: what follows is worked out only where there may be something to say.
            if reception.accepted > 0 || reception.since.is_none() && !is_over {
                continue;
            }
            let clients = reception::clients_of(self.plan, index, self.control.share);
            let place = reception::place_of(self.plan, index);
            if let Some(words) = reception.problem(place, clients, now, is_over) {
                return Err(Interruption::Server(words));
            }
        }
        Ok(())
    }

    fn tell_figures(&mut self, clients: &AllClients<'_>) {
        let shared = self.emulator.map(|emulator| &**emulator.shared());
        let figures = self.figures.tick(self.control, &clients.others, shared, self.sampler.servers());
        self.announcer.say(&Progress::Tick(Box::new(figures)));
    }

    /// Whether the present stage is over: as the part says that conducts the run, or by its time.
    fn is_over(&self, conductor: &RunConductor, now: Instant, clients: &AllClients<'_>) -> bool {
        match conductor.stage() {
            RunStage::Connect if self.role.is_follower() => self.role.ordered_schedule().is_some(),
            RunStage::CoolDown if self.role.is_follower() => {
                self.role.may_leave() || conductor.deadline().is_some_and(|deadline| now >= deadline + STEP)
            }
            _ => conductor.is_over(now, clients),
        }
    }

    /// Starts programs that are due, and notes how they stand.
    fn advance_programs(&mut self, clients: &mut AllClients<'_>) -> Result<(), Interruption> {
        if self.programs.count() == 0 {
            return Ok(());
        }
        let priority = self.control.worker_priority;
        let place = ProgramContext { plan: self.plan, testbed: self.testbed, priority, logs: self.directory };
        let tended = self.programs.advance(|| self.control.now(), &place, self.sampler, self.announcer);
        tended.map_err(Interruption::Program)?;
        clients.programs = [self.programs.gathered(), self.programs.ready()];
        clients.may_publish = !self.programs.have_ended();
        Ok(())
    }

    fn find_faults(&mut self) -> Result<(), Interruption> {
        if let Some(error) = self.recorder.failure() {
            return Err(Interruption::Disk(error.to_string()));
        }
        self.tend_servers()?;
        if self.emulator.is_some_and(Emulator::has_ended) {
            return Err(Interruption::Fault("the emulator ended during the run".into()));
        }
        self.announcer.cancelled().map_or(Ok(()), Err)
    }

    /// Lets the plan's events take place that are due. Clients see to theirs by themselves.
    fn perform_events(&mut self, conductor: &RunConductor) {
        let Some(schedule) = conductor.schedule() else { return };
        if let Some(emulator) = self.emulator {
            // It changes links and channels by itself.
            let _ = emulator.shared().publish_from.set(schedule.publish_from);
        }
        self.sampler.begin_events(schedule.publish_from);
        while let Some(&event) = self.planned.take_due(Some(schedule.publish_from), self.control.now()) {
            // Before it acts: a broker that is killed has closed its connections within a millisecond.
            let at = self.control.now();
            if let Event::Server(event) = event {
                self.change_server(event);
            }
            self.holds.take(event);
            self.sampler.event(at, EventKind::Change, event.name());
            self.say_change(at, event, false);
        }
        self.perform_by_hand(conductor);
    }

    /// Takes events that are asked for by hand, and lets those take place that are due.
    fn perform_by_hand(&mut self, conductor: &RunConductor) {
        let Some(desk) = &mut self.desk else { return };
        desk.attend(self.plan, self.control, conductor);
        while let Some(event) = self.desk.as_mut().and_then(|desk| desk.take_due(self.control.now())) {
            let at = self.control.now();
            if let Event::Server(event) = &*event {
                self.change_server(event);
            }
            self.holds.take(&event);
            self.sampler.event(at, EventKind::ChangeByHand, event.name());
            self.say_change(at, &event, true);
            if let Some(Err(error)) = self.desk.as_mut().map(|desk| desk.note(at, &event)) {
                self.announcer
                    .warn(format!("events by hand cannot be stored, and reports miss them: {error}"));
            }
        }
    }

    fn say_change(&mut self, at: Instant, event: &Event, by_hand: bool) {
        let by_hand = by_hand.then(|| Box::new(event.clone()));
        self.announcer.say(&Progress::Change { at_ns: at.as_ns(), name: event.name().to_owned(), by_hand });
    }

    fn change_server(&mut self, event: &ServerEvent) {
        let Some(index) = self.plan.servers.iter().position(|server| server.name == event.server) else {
            return;
        };
        let Some(server) = self.servers.iter_mut().find(|server| server.index == index) else { return };
        // Before anybody can be refused.
        if matches!(event.change.kind, ServerChangeKind::Stop | ServerChangeKind::Kill) {
            self.control.set_server_down(index, true);
        }
        server.change(event.change);
        self.sampler.expect_pause(index, server.is_paused());
    }

    /// Sees what has become of servers. One that has ended by itself ends the run, or is written down, as the plan says; one that
    /// ended by an event does neither, and may start again.
    fn tend_servers(&mut self) -> Result<(), Interruption> {
        for place in 0..self.servers.len() {
            self.tend_server(place)?;
        }
        self.servers.retain(|server| !server.is_lost());
        Ok(())
    }

    fn tend_server(&mut self, place: usize) -> Result<(), Interruption> {
        let running = &mut self.servers[place];
        let index = running.index;
        let server = &self.plan.servers[index];
        let Some(process) = &server.process else { return Ok(()) };
        let log = self.directory.join(log_name(server));
        let start = StartPlace {
            process,
            address: server.endpoint().socket_address(),
            host: self.testbed.place(server.host),
            log: &log,
        };
        let news = running.look(&start);
        let now = self.control.now();
        match news.map_err(|error| Interruption::Server(format!("server `{}`: {error}", server.name)))? {
            None => {}
            Some(ServerNews::Ended(status)) => {
                self.sampler.event(now, EventKind::ServerExit, &named(server, &status));
            }
            Some(ServerNews::Died) if server.when_it_dies == WhenItDies::EndRun => {
                return Err(Interruption::ServerEnded(index));
            }
            Some(ServerNews::Died) => {
                let status = running.lose();
                let words = format!("the server `{}` ended during the run ({status})", server.name);
                self.announcer.warn(words);
                self.sampler.event(now, EventKind::ServerExit, &named(server, &status));
            }
            Some(ServerNews::Ready) => {
                if let Some(handle) = running.handle() {
                    handle.prioritise(self.control.worker_priority);
                    let watched = self.watch.add_server(handle);
                    watched.map_err(|error| Interruption::fault("cannot watch a server", &error))?;
                    self.sampler.follow_server(index, handle);
                }
                self.control.set_server_down(index, false);
                self.sampler.event(now, EventKind::ServerStart, &named(server, &version(server)));
            }
        }
        Ok(())
    }

    /// Tells the clients when to publish, and stores it with the recording.
    fn announce(&mut self, conductor: &RunConductor, clients: &AllClients<'_>) {
        let schedule = conductor.schedule().expect("a notice has a schedule");
        self.role.publish(&schedule);
        if !self.role.is_follower() {
            let ready = clients.all().ready + clients.programs[1];
            let missing = conductor.warning_of_missing(ready, clients.count);
            missing.into_iter().for_each(|warning| self.announcer.warn(warning));
        } else if let Some(late) = self.control.now().checked_since(schedule.publish_from) {
            self.announcer.warn(format!("this part learned {late} after it had begun when to publish"));
        }
        if let Err(error) = run_json::store_schedule(self.directory, &schedule) {
            self.announcer.warn(format!("the recording's phases could not be stored: {error}"));
        }
        self.control.announce(schedule);
    }
}

/// How long the conductor sleeps at most; what ends a stage early is seen this late.
const STEP: Duration = Duration::from_ms(50);
