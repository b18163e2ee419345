//! A thread with thousands of clients.
//!
//! One loop: wait until a socket is ready or somebody is due, attend to those who are ready, then to those who are
//! due, and tell the figures. A message that is due ends the wait to the nanosecond; nothing is held back to be
//! written with something else.

use std::io;
use std::sync::Arc;

use mqttlab_client::{ClientNumber, GroupNumber, Loss, Who, mqtt};
use mqttlab_plan::{Arrivals, ClientsEvent};
use mqttlab_recording::{Event, EventKind, Sink};
use mqttlab_run::Schedule;
use mqttlab_system::poller::Poller;
use mqttlab_units::{Duration, Instant};

use super::Client;
use super::buffers::WorkerBuffers;
use super::connection::ClientConnection;
use super::context::FleetContext;
use super::figure_changes::FigureChanges;
use super::layers::ClientLayers;
use super::own_packets::OwnPackets;
use super::planned;
use super::poll_pause::PollPause;
use super::timers::ClientTimers;
use super::turn::ClientTurn;
use crate::by_hand::HandAgenda;
use crate::control::Control;
use crate::due_list::DueList;

pub(super) struct Worker {
    shared: Arc<FleetContext>,
    clients: Vec<Client>,
    poller: Poller,
    timers: ClientTimers,
    sink: Sink,
    tally: FigureChanges,
    buffer: Vec<u8>,
    buffers: WorkerBuffers,
    /// Clients whose deadline has come.
    due: Vec<u32>,
    /// Events of the plan that act on clients, by their places in it.
    planned: DueList<usize>,
    by_hand: HandAgenda,
    pace: PollPause,
    /// Whether a client could have had more to do since its last turn.
    hurried: bool,
    began: bool,
    leaving: Option<Instant>,
}

impl Worker {
    /// Takes every `of`-th of the clients that are here, from `which` on.
    ///
    /// # Errors
    /// Too many open files.
    pub(super) fn new(shared: Arc<FleetContext>, sink: Sink, which: u32, of: u32) -> io::Result<Worker> {
        let (start, share) = (shared.control.now(), shared.control.share);
        let mut clients = Vec::new();
        let groups = shared.plan.groups.iter().zip((0..).zip(&shared.starts));
        for (plan, (group, &first)) in groups.filter(|(plan, _)| plan.program.is_none()) {
            let is_mine = |index: &u32| share.place(first + index).is_some_and(|place| place % of == which);
            for index in (0..plan.count).filter(is_mine) {
                let who = Who { number: ClientNumber(first + index), group: GroupNumber(group), index };
                clients.push(client(&shared, who, clients.len() as u32, start));
            }
        }
        let timers = ClientTimers::new(clients.len());
        let (pace, planned) = (PollPause::of(&shared.plan), planned::changes_of(&shared.plan));
        let tally = FigureChanges::new(shared.plan.groups.len(), shared.plan.servers.len());
        Ok(Worker {
            shared,
            poller: Poller::new(SOCKETS)?,
            timers,
            clients,
            sink,
            tally,
            buffer: vec![0; BUFFER],
            buffers: WorkerBuffers::default(),
            due: Vec::new(),
            planned,
            by_hand: HandAgenda::default(),
            pace,
            hurried: false,
            began: false,
            leaving: None,
        })
    }

    /// Works until the run is over.
    ///
    /// # Errors
    /// The kernel refuses to wait.
    pub(super) fn run(mut self) -> io::Result<()> {
        self.shared.control.enter_worker();
        if let Some(note) = self.pace.note() {
            let at = self.shared.control.now();
            self.sink.event(&Event { at, kind: EventKind::Note, client: None, took: None }, &note);
        }
        self.each_client(|client, turn| turn.wake(client));
        while !self.is_done() {
            if let Some(pause) = self.pace.next(std::mem::take(&mut self.hurried)) {
                std::thread::sleep(std::time::Duration::from_nanos(pause.as_ns()));
            }
            let ready = self.poller.wait(Some(self.idle_time()))?;
            self.look_at_control();
            self.perform_planned();
            self.attend(ready);
            self.attend_due();
            self.tally.add_to(&self.shared.control.figures);
            self.sink.tick();
        }
        // The time for graceful disconnects is over.
        self.each_client(|client, turn| client.lose(turn, &Loss::Farewell));
        self.tally.add_to(&self.shared.control.figures);
        Ok(())
    }

    fn is_done(&self) -> bool {
        let late = |since: Instant| self.shared.control.now() >= since + PATIENCE;
        self.leaving.is_some_and(|since| late(since) || self.clients.iter().all(Client::is_gone))
    }

    fn idle_time(&self) -> Duration {
        let event = self.planned.next_at(self.publish_from());
        let next = [self.timers.next(), event, self.by_hand.next_at()].into_iter().flatten().min();
        planned::until(next, self.shared.control.now(), STEP)
    }

    fn publish_from(&self) -> Option<Instant> {
        self.shared.control.schedule().map(|schedule| schedule.publish_from)
    }

    /// Lets events take place that are due, the plan's and those that were fired by hand. When clients leave, none does any
    /// more.
    fn perform_planned(&mut self) {
        let (shared, from) = (Arc::clone(&self.shared), self.publish_from());
        while self.leaving.is_none()
            && let Some(&place) = self.planned.take_due(from, shared.control.now())
            && let mqttlab_plan::Event::Clients(event) = &shared.plan.events[place]
        {
            self.change(event);
        }
        self.by_hand.look(&shared.control.by_hand);
        while self.leaving.is_none()
            && let Some(event) = self.by_hand.take_due(shared.control.now())
        {
            if let mqttlab_plan::Event::Clients(event) = &*event {
                self.change(event);
            }
        }
    }

    fn change(&mut self, event: &ClientsEvent) {
        let (clients, mut turn) = self.split();
        // Both are in the order of their numbers.
        for number in &event.clients {
            if let Ok(place) = clients.binary_search_by_key(number, |client| client.who().number.0) {
                turn.change(&mut clients[place], &event.change);
            }
        }
    }

    fn look_at_control(&mut self) {
        if let (false, Some(schedule)) = (self.began, self.shared.control.schedule()) {
            self.began = true;
            self.each_client(|client, turn| begin(client, turn, &schedule));
        }
        if self.leaving.is_none() && self.shared.control.is_stopped() {
            self.leaving = Some(self.shared.control.now());
            self.each_client(|client, turn| {
                client.leave(turn);
                // Nobody closes what is no connection.
                if client.connection().is_datagrams() {
                    client.lose(turn, &Loss::Farewell);
                }
                turn.set_timer(client);
            });
        }
    }

    fn attend(&mut self, ready: usize) {
        let (clients, mut turn) = self.split();
        for index in 0..ready {
            let ready = turn.poller.ready(index);
            turn.react(&mut clients[ready.number as usize], ready);
        }
    }

    fn attend_due(&mut self) {
        // Gathered first: a client that has more to do is due again at once, but after the others.
        let mut due = std::mem::take(&mut self.due);
        let (clients, mut turn) = self.split();
        let now = turn.now;
        due.extend(std::iter::from_fn(|| turn.timers.pop_due(now)));
        for client in due.drain(..) {
            turn.wake(&mut clients[client as usize]);
        }
        self.due = due;
    }

    fn each_client(&mut self, mut act: impl FnMut(&mut Client, &mut ClientTurn<'_>)) {
        let (clients, mut turn) = self.split();
        clients.iter_mut().for_each(|client| act(client, &mut turn));
    }

    fn split(&mut self) -> (&mut Vec<Client>, ClientTurn<'_>) {
        let turn = ClientTurn {
            shared: &self.shared,
            poller: &self.poller,
            timers: &mut self.timers,
            sink: &mut self.sink,
            tally: &mut self.tally,
            buffer: &mut self.buffer,
            buffers: &mut self.buffers,
            now: self.shared.control.now(),
            leaving: self.leaving.is_some(),
            hurried: &mut self.hurried,
        };
        (&mut self.clients, turn)
    }
}

fn client(shared: &FleetContext, who: Who, slot: u32, start: Instant) -> Client {
    let group = shared.facts(who.group);
    let over_datagrams = shared.group(who.group).mqtt_sn().is_some();
    let session = group.sessions.session(who, shared.plan.seed);
    let layered = ClientLayers::of(shared, who);
    let is_unseen = shared.unrecorded.holds(&shared.plan, shared.group(who.group), who.index);
    let own_packets = is_unseen.then(|| OwnPackets::new(who.number.0));
    let connection = ClientConnection::new(slot, over_datagrams, layered)
        .with_own_packets(own_packets)
        .with_aliases(mqtt::topic_aliases(shared.group(who.group)));
    Client::new(who, Arc::clone(&group.facts), session, connection, shared.plan.seed, start)
}

/// Tells a client when to publish, if it publishes.
fn begin(client: &mut Client, turn: &mut ClientTurn<'_>, schedule: &Schedule) {
    let (who, shared) = (client.who(), turn.shared);
    let group = shared.group(who.group);
    let (numbers, seed) = ((who.index, who.number.0), shared.plan.seed);
    client.begin(turn, Arrivals::of(group, numbers, seed, schedule.publishing(), &shared.publishing));
    client.begin_churn(schedule.publishing(), seed);
    turn.set_timer(client);
}

const BUFFER: usize = 256 << 10;
/// So many sockets are attended to before those who are due.
const SOCKETS: usize = 1024;
/// Half of the notice that the conductor gives.
const STEP: Duration = Duration::from_ns(Control::NOTICE.as_ns() / 2);
/// Farewells that take longer are cut short.
const PATIENCE: Duration = Duration::from_ns(Control::FAREWELL.as_ns() / 2);
