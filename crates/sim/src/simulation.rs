//! A simulation: its parts, and the loop that moves them.
//!
//! ```text
//!              ┌──────────── agenda (clock) ────────────┐
//!   clients ──► surroundings ──► transport ◄── surroundings ◄── servers
//!      │                  (connections, hosts, wire)              │
//!      └──────────► evidence · conductor · books ◄────────────────┘
//! ```
//!
//! Each part owns its state and is told what it may touch. Only this file knows them all. Frames move on the wire, all
//! else is on the agenda. The earlier one goes first; at equal times the wire does, because what arrives at an instant
//! is there for whoever acts at it.
//!
//! Nothing is entered twice: a program that acts lets TCP send, and what TCP has to tell programs in turn is drained
//! here, one thing after the other ([`Simulation::run_connection`]).

use mqttlab_client::{Books, Rests};
use std::rc::Rc;

use mqttlab_plan::{Destination, Event, Plan, Roster, SubscriptionChanges};
use mqttlab_recording::{EventKind, SegmentAnalyser};
use mqttlab_run::{
    Holds, Interruption, Progress, RunObserver, RunOutcome, RunPhase, RunStage, SimulationPace, Stations,
    Warnings,
};
use mqttlab_units::Instant;

use crate::clients::SimClients;
use crate::clients::groups::Groups;
use crate::clients::surroundings::SimSurroundings;
use crate::control::conductor::SimConductor;
use crate::control::event::SimEvent;
use crate::control::event_queue::EventQueue;
use crate::hosts::Hosts;
use crate::hosts::connections::Connections;
use crate::hosts::transport::{HostArrival, SimTransport};
use crate::hosts::wire::SimWire;
use crate::ids::{Id, ServerId, Side, TcpConnectionId};
use crate::records::Records;
use crate::records::figures::SimFigures;
use crate::records::recording;
use crate::records::sampling::Sampling;
use crate::servers::{ServerDeath, ServerSurroundings, SimServers};
use crate::topics::SimTopics;

/// A plan in virtual time, which can be run through or stepped.
pub struct Simulation {
    pub(crate) agenda: EventQueue<SimEvent>,
    pub(crate) transport: SimTransport,
    pub(crate) clients: SimClients,
    pub(crate) servers: SimServers,
    pub(crate) evidence: Records,
    pub(crate) conductor: SimConductor,
    pub(crate) books: Books,
    figures: SimFigures,
    topics: SimTopics,
    pub(crate) groups: Groups,
    roster: Roster,
    /// What the plan changes while the run goes on.
    planned: Rc<[Event]>,
    holds: Holds,
    /// What the plan says about its network, for the recording.
    description: String,
    warnings: Warnings,
    scratch: Vec<u8>,
    sampling: Sampling,
    pub(crate) events: u64,
}

impl Simulation {
    /// Everything at rest at time zero; the recording is begun at `destination`.
    ///
    /// # Errors
    /// A sentence, when the plan asks for what the simulator does not know, or the recording cannot be begun. Then there is
    /// none.
    pub fn new(
        plan: Plan,
        destination: &Destination,
        analyser: Box<dyn SegmentAnalyser>,
        observer: &mut dyn RunObserver,
    ) -> Result<Simulation, String> {
        let roster = Roster::of(&plan);
        let recorder = recording::begin(&plan, destination, &roster)?;
        let evidence = Records::new(recorder, (plan.recording.packets, recording::versions(&plan)), analyser);
        let sampling = Sampling::new(plan.recording.tcp_state_interval, Stations::of(&plan));
        let hosts = Hosts::new(&plan)?;
        let bare_links = [plan.direct_link(), plan.loopback_link()];
        let servers = SimServers::new(&plan.servers, &plan.hosts, plan.seed)?;
        let there = |group| (ServerId::from_index(plan.serving(group)), *plan.endpoint_of(group));
        let there: Vec<_> = plan.groups.iter().map(there).collect();
        let (rests, holds) = (Rests::new(&plan), Holds::of(&plan));
        // The hosts of the plan, of which there may be thousands, are not kept.
        let Plan { seed, groups, network, phases, sim, recording, events, .. } = plan;
        let description = network.description.clone();
        let subscriptions = SubscriptionChanges::of(&events);
        let mut groups = Groups::new(groups, &there, roster.topics(), subscriptions, seed);
        if recording.payloads {
            groups.keep_payloads(seed).map_err(|error| error.to_string())?;
        }
        let client_wake_up = sim.client_wake_up;
        let mut conductor = SimConductor::new(phases, sim, groups.subscriber_count(), groups.client_count());
        if recording.payloads {
            conductor.remember_long();
        }
        let connections = Connections::new(seed, groups.client_count(), hosts.len());
        let wire = SimWire::new(network, &events, seed, bare_links);
        let mut simulation = Simulation {
            agenda: EventQueue::default(),
            transport: SimTransport::new(hosts, connections, wire, rests),
            clients: SimClients::new(&groups, client_wake_up, seed),
            servers,
            evidence,
            conductor,
            books: Books::default(),
            figures: SimFigures::new(&groups),
            topics: SimTopics::of(&roster),
            groups,
            roster,
            planned: events.into(),
            holds,
            description,
            warnings: Warnings::default(),
            scratch: Vec::new(),
            sampling,
            events: 0,
        };
        simulation.evidence.keep_from_here();
        let (servers, mut around) = simulation.servers();
        servers.start(&mut around);
        let (clients, mut around) = simulation.clients();
        clients.start(&mut around);
        let replaced = simulation.servers.replaced_programs();
        replaced.into_iter().for_each(|warning| simulation.warnings.warn(observer, warning));
        simulation.enter(observer);
        Ok(simulation)
    }

    /// The clients, and what they may touch.
    fn clients(&mut self) -> (&mut SimClients, SimSurroundings<'_>) {
        let around = SimSurroundings {
            agenda: &mut self.agenda,
            transport: &mut self.transport,
            evidence: &mut self.evidence,
            conductor: &mut self.conductor,
            books: &mut self.books,
            figures: &mut self.figures,
            topics: &mut self.topics,
            groups: &self.groups,
            roster: &self.roster,
            scratch: &mut self.scratch,
        };
        (&mut self.clients, around)
    }

    /// The servers, and what they may touch.
    fn servers(&mut self) -> (&mut SimServers, ServerSurroundings<'_>) {
        let around = ServerSurroundings {
            agenda: &mut self.agenda,
            transport: &mut self.transport,
            evidence: &mut self.evidence,
            topics: &mut self.topics,
            groups: &self.groups,
        };
        (&mut self.servers, around)
    }

    /// The time in the simulation: that of the last event.
    pub fn now(&self) -> Instant {
        self.agenda.now()
    }

    /// Whether the plan has been carried out to its end.
    pub fn is_over(&self) -> bool {
        self.conductor.stage() == RunStage::Over
    }

    /// When the next event is, which is now while frames are at the ends of their paths. `None`: nothing is left to happen.
    pub fn next_event_at(&self) -> Option<Instant> {
        if self.transport.wire().has_arrivals() {
            return Some(self.now());
        }
        [self.transport.next_deadline(), self.agenda.next_deadline()].into_iter().flatten().min()
    }

    /// Runs to the plan's end.
    ///
    /// # Errors
    /// Why it ended before: nothing was left to happen, a row could not be written, or the observer has had enough.
    pub fn run(&mut self, observer: &mut dyn RunObserver) -> Result<(), Interruption> {
        while !self.is_over() {
            self.step(observer)?;
        }
        self.evidence.failure().map_or(Ok(()), |error| Err(Interruption::Disk(error.to_string())))
    }

    /// Runs until everything up to an instant has happened, or to the plan's end where that is earlier.
    ///
    /// # Errors
    /// As [`Simulation::run`].
    pub fn run_until(&mut self, until: Instant, observer: &mut dyn RunObserver) -> Result<(), Interruption> {
        while !self.is_over() && self.next_event_at().is_some_and(|at| at <= until) {
            self.step(observer)?;
        }
        if !self.is_over() {
            self.agenda.advance(until.max(self.now()));
        }
        Ok(())
    }

    /// Lets the next thing happen: a frame arrives, something happens on the network, or what is first on the agenda.
    ///
    /// # Errors
    /// As [`Simulation::run`].
    pub fn step(&mut self, observer: &mut dyn RunObserver) -> Result<(), Interruption> {
        let now = self.agenda.now();
        if let Some(arrival) = self.transport.arrive(now) {
            self.attend_arrival(arrival);
        } else {
            match (self.transport.next_deadline(), self.agenda.next_deadline()) {
                (Some(at), due) if due.is_none_or(|due| at <= due) => {
                    self.agenda.advance(at);
                    self.transport.tick(at, &mut self.evidence);
                }
                (_, Some(_)) => self.dispatch(observer),
                _ => {
                    let what = "nothing is left to happen before the run's end";
                    return Err(Interruption::Fault(what.into()));
                }
            }
        }
        if self.servers.is_exhausted() {
            self.end_exhausted(observer)?;
        }
        let idle = || self.transport.next_deadline().is_none();
        if self.conductor.is_phase_over(self.agenda.now(), &self.books, self.groups.client_count(), idle) {
            self.leave_stage(observer);
        }
        if self.sampling.is_due(self.agenda.now()) {
            self.sampling.sample(self.agenda.now(), self.transport.connections(), &mut self.evidence);
        }
        self.events += 1;
        if self.events.is_multiple_of(EVENTS_A_LOOK) { self.look_up(observer) } else { Ok(()) }
    }

    fn attend_arrival(&mut self, arrival: HostArrival) {
        match arrival {
            HostArrival::Segment(connection, side) => {
                self.run_connection(connection, side);
                self.retire(connection);
            }
            HostArrival::Datagram(datagram) if datagram.from == Side::Server => {
                let (clients, mut around) = self.clients();
                clients.on_datagram(&mut around, datagram);
            }
            HostArrival::Datagram(datagram) => {
                let (servers, mut around) = self.servers();
                servers.on_datagram(&mut around, datagram);
            }
        }
    }

    /// What is first on the agenda happens.
    fn dispatch(&mut self, observer: &mut dyn RunObserver) {
        let Some(event) = self.agenda.pop() else { return };
        match event {
            SimEvent::Client(id) => {
                let (clients, mut around) = self.clients();
                clients.on_timer(&mut around, id);
            }
            SimEvent::Timer { connection, side } => {
                if self.transport.on_timer(self.agenda.now(), connection, side) {
                    self.run_connection(connection, side);
                    self.retire(connection);
                }
            }
            SimEvent::Read { connection, side } if self.transport.connections().is_current(connection) => {
                self.read(connection, side);
                self.run_connection(connection, side);
                self.retire(connection);
            }
            SimEvent::Read { .. } => {}
            SimEvent::ReadDatagrams(id) => {
                let (clients, mut around) = self.clients();
                clients.read_datagrams(&mut around, id);
            }
            SimEvent::Server(id) => {
                let (servers, mut around) = self.servers();
                servers.on_timer(&mut around, id);
            }
            SimEvent::Planned(place) => self.perform(place as usize, observer),
            SimEvent::Stage(stage) => {
                // A stage that ended early is another one by now; none comes twice.
                if self.conductor.stage() == stage {
                    self.leave_stage(observer);
                }
            }
        }
    }

    /// A server needs more memory than its host has, and is killed.
    fn end_exhausted(&mut self, observer: &mut dyn RunObserver) -> Result<(), Interruption> {
        let (servers, mut around) = self.servers();
        let Some(ServerDeath { name, status, ends_run }) = servers.kill_exhausted(&mut around) else {
            return Ok(());
        };
        if ends_run {
            return Err(Interruption::ServerExit { server: name, status, log: String::new() });
        }
        let words = format!("the server `{name}` ended during the run ({status})");
        self.warnings.warn(observer, words);
        Ok(())
    }

    /// Lets TCP send, and tells the program on its side what it has to tell, until both are silent.
    fn run_connection(&mut self, connection: TcpConnectionId, side: Side) {
        while let Some(event) =
            self.transport.next_event(&mut self.agenda, &mut self.evidence, connection, side)
        {
            if self.is_a_servers(connection, side) {
                let (servers, mut around) = self.servers();
                servers.on_tcp(&mut around, (connection, side), event);
            } else {
                let (clients, mut around) = self.clients();
                clients.on_tcp(&mut around, connection, event);
            }
        }
    }

    fn read(&mut self, connection: TcpConnectionId, side: Side) {
        if self.is_a_servers(connection, side) {
            let (servers, mut around) = self.servers();
            servers.read(&mut around, (connection, side));
        } else {
            let (clients, mut around) = self.clients();
            clients.read(&mut around, connection);
        }
    }

    /// Whether a server is at this side of a connection: it has accepted it, or opened it.
    fn is_a_servers(&self, connection: TcpConnectionId, side: Side) -> bool {
        self.transport.connection(connection).server_at(side).is_some()
    }

    fn retire(&mut self, connection: TcpConnectionId) {
        self.transport.retire(self.agenda.now(), &mut self.evidence, &self.topics, connection);
    }

    fn leave_stage(&mut self, observer: &mut dyn RunObserver) {
        let now = self.now();
        let is_stopped = self.conductor.wants_to_stop();
        match self.conductor.next(now) {
            RunStage::Notice => self.announce(observer),
            RunStage::CoolDown if is_stopped => {
                let (clients, mut around) = self.clients();
                clients.stop_publishing(&mut around);
            }
            RunStage::Disconnect => {
                self.evidence.set_run_over();
                let (clients, mut around) = self.clients();
                clients.disconnect_all(&mut around);
            }
            _ => {}
        }
        self.enter(observer);
    }

    /// Tells the clients when to publish.
    fn announce(&mut self, observer: &mut dyn RunObserver) {
        let (ready, all) = (self.books.ready as u32, self.groups.client_count() as u32);
        let missing = self.conductor.stages().warning_of_missing(ready, all);
        missing.into_iter().for_each(|warning| self.warnings.warn(observer, warning));
        let schedule = self.conductor.stages().schedule().expect("a notice has a schedule");
        let planned = Rc::clone(&self.planned);
        let (clients, mut around) = self.clients();
        clients.begin_publishing(&mut around, schedule.publishing(), &planned);
        self.transport.begin_traces(schedule.publish_from);
        self.sampling.begin(schedule.publish_from);
        for (place, event) in (0..).zip(&*self.planned) {
            self.agenda.add(schedule.publish_from + event.at(), SimEvent::Planned(place));
        }
    }

    /// An event of the plan takes place. After the run's end nothing does.
    fn perform(&mut self, place: usize, observer: &mut dyn RunObserver) {
        if self.conductor.is_leaving() {
            return;
        }
        let planned = Rc::clone(&self.planned);
        let event = &planned[place];
        let (at, name) = (self.now(), event.name());
        self.holds.take(event);
        self.evidence.event(at, EventKind::Change, None, None, name);
        observer.on_progress(&Progress::Change { at_ns: at.as_ns(), name: name.to_owned(), by_hand: None });
        match event {
            Event::Server(event) => {
                let (servers, mut around) = self.servers();
                servers.change(&mut around, &event.server, event.change);
            }
            Event::Clients(event) => {
                let (clients, mut around) = self.clients();
                clients.change(&mut around, event);
            }
            Event::Links(event) => {
                self.transport.change_links(self.agenda.now(), event, &mut self.evidence);
            }
            Event::Medium(event) => {
                self.transport.change_medium(self.agenda.now(), event, &mut self.evidence);
            }
        }
    }

    /// The present stage has begun.
    fn enter(&mut self, observer: &mut dyn RunObserver) {
        let (now, stage) = (self.now(), self.conductor.stage());
        let Some(deadline) = self.conductor.stages().deadline() else { return };
        self.agenda.add(deadline.max(now), SimEvent::Stage(stage));
        if self.conductor.stages().schedule().is_some() {
            let [measure_from, measure_until] = self.conductor.measurement();
            self.evidence.message(|recorder| recorder.phases(measure_from, measure_until));
        }
        if let Some(phase) = stage.phase() {
            observer.on_progress(&Progress::begin(phase, now, self.conductor.stages().length()));
            self.evidence.event(now, EventKind::Phase, None, None, phase.name());
        }
    }

    fn look_up(&mut self, observer: &mut dyn RunObserver) -> Result<(), Interruption> {
        if let Some(error) = self.evidence.failure() {
            return Err(Interruption::Disk(error.to_string()));
        }
        if let Some(interruption) = observer.cancelled() {
            return Err(interruption);
        }
        let pace = observer.figures_due(self.events, self.now());
        self.tell_figures(pace, observer);
        Ok(())
    }

    fn tell_figures(&mut self, pace: Option<SimulationPace>, observer: &mut dyn RunObserver) {
        let Some(pace) = pace else { return };
        let (now, wire) = (self.now(), self.transport.wire());
        let figures = self.figures.snapshot(now, pace, &self.books, &self.groups, wire);
        observer.on_progress(&Progress::Tick(Box::new(figures)));
    }

    /// Ends the simulation, be it at the plan's end or not, and makes the recording of it.
    pub fn finish(mut self, result: Result<(), Interruption>, observer: &mut dyn RunObserver) -> RunOutcome {
        // Whoever watches has the counts of the whole run then.
        let pace = observer.last_figures(self.events, self.now());
        self.tell_figures(pace, observer);
        let at_ns = self.now().as_ns();
        observer.on_progress(&Progress::Phase { phase: RunPhase::Finalise, at_ns, length_ns: 0 });
        self.transport.end(&mut self.evidence, &self.topics);
        let (clients, mut around) = self.clients();
        clients.end(&mut around);
        let [measure_from, measure_until] = self.conductor.measurement();
        let conclusion = recording::Conclusion {
            warm_up_end: self.conductor.steady_from().unwrap_or(measure_from),
            measurement_end: measure_until,
            details: [
                ("phases", self.conductor.facts()),
                ("network", std::mem::take(&mut self.description).into()),
                ("dropped_by_broker", self.servers.dropped().into()),
                ("stations", self.transport.wire().stations()),
            ],
            warnings: self.warnings.all().to_vec(),
            holds: self.holds.now(),
        };
        let (recorder, failure) = self.into_evidence().finish();
        let failure = failure.map_or(Ok(()), |error| Err(Interruption::Disk(error.to_string())));
        recording::finish(recorder, conclusion, result.and(failure))
    }
}

impl Simulation {
    /// All else goes, and its memory with it: the tables are made without.
    fn into_evidence(self) -> Records {
        self.evidence
    }
}

/// Events between two looks at the clock on the wall.
const EVENTS_A_LOOK: u64 = 256;
