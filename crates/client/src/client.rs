//! One client: its state, its session, its schedule.

mod absence;
mod losses;
mod rows;
mod subscriptions;

use std::sync::Arc;

use mqttlab_mqtt::Qos;
use mqttlab_plan::{Arrivals, qos};
use mqttlab_rows::{EventKind, Identified, Received};
use mqttlab_units::{Instant, Seed};

use crate::acceptance::{Acceptance, Rank};
use crate::churn::Churning;
use crate::facts::{GroupFacts, Who};
use crate::incoming::{Delivery, IncomingMessages};
use crate::outgoing::OutgoingMessages;
use crate::punctuality::Punctuality;
use crate::retries::Retries;
use crate::schedule::{DueMessage, Schedule};
use crate::session::{Admission, Arrived, PacketId, Receipt, Session, Step};
use crate::surroundings::{Arriving, Offered, Surroundings};
use crate::transport::{Connection, Loss, Transport};
use absence::Presence;
use losses::record_loss;
use rows::row;
use subscriptions::SubscriptionProgress;

/// A client with a session of `S` over connections of `C`.
pub struct Client<S: Session, C: Connection> {
    who: Who,
    facts: Arc<GroupFacts>,
    state: State,
    presence: Presence,
    session: S,
    connection: C,
    outgoing: OutgoingMessages<C::Relayed>,
    incoming: IncomingMessages<C::Relayed>,
    schedule: Option<Schedule>,
    punctuality: Punctuality,
    retries: Retries,
    acceptance: Acceptance,
    subscriptions: SubscriptionProgress,
    /// Boxed: most never do.
    churning: Option<Box<Churning>>,
    /// While it sleeps.
    asleep_since: Option<Instant>,
}

/// Where a client is with its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It opens one, but not before this instant.
    Waiting(Instant),
    /// It is being opened.
    Opening {
        /// When that began.
        since: Instant,
    },
    /// It is open.
    Open {
        /// When it began to open.
        since: Instant,
    },
    /// It has none, and opens none until it comes back.
    Away,
    /// It has done with connections.
    Gone,
}

/// What a client looks like at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Where it is with its connection.
    pub state: State,
    /// Whether the other side has accepted it.
    pub is_online: bool,
    /// Messages that wait for an acknowledgement or to be sent.
    pub unacknowledged: usize,
    /// Messages of its own that wait for their first sending.
    pub not_put: usize,
    /// Messages of its own that the transport has not taken whole.
    pub unwritten: usize,
    /// Messages that wait to be released.
    pub held: usize,
}

impl<S: Session, C: Connection> Client<S, C> {
    /// A client whose group begins to connect at `start`. `seed` is the run's.
    pub fn new(
        who: Who,
        facts: Arc<GroupFacts>,
        session: S,
        connection: C,
        seed: Seed,
        start: Instant,
    ) -> Self {
        Client {
            who,
            state: State::Waiting(facts.connects_at(who.index, start)),
            presence: Presence::Here,
            facts,
            session,
            connection,
            outgoing: OutgoingMessages::default(),
            incoming: IncomingMessages::default(),
            schedule: None,
            punctuality: Punctuality::default(),
            // By its number, so that one client more changes nobody else's back-off.
            retries: Retries::new(seed.derive("reconnect").index(u64::from(who.number.0)).dice()),
            acceptance: Acceptance::new(),
            subscriptions: SubscriptionProgress::default(),
            churning: None,
            asleep_since: None,
        }
    }

    /// Who it is.
    pub fn who(&self) -> Who {
        self.who
    }

    /// What its group's plan means for it.
    pub fn facts(&self) -> &Arc<GroupFacts> {
        &self.facts
    }

    /// Its session.
    pub fn session(&self) -> &S {
        &self.session
    }

    /// What its transport keeps for it.
    pub fn connection(&self) -> &C {
        &self.connection
    }

    /// What its transport keeps for it.
    pub fn connection_mut(&mut self) -> &mut C {
        &mut self.connection
    }

    /// Whether a connection is being opened.
    pub fn is_opening(&self) -> bool {
        matches!(self.state, State::Opening { .. })
    }

    /// Whether its connection is open.
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open { .. })
    }

    /// Whether it has nothing left to do.
    pub fn is_gone(&self) -> bool {
        self.state == State::Gone
    }

    /// What it looks like now.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            state: self.state,
            is_online: self.session.is_online(),
            unacknowledged: self.session.unacknowledged(),
            not_put: self.outgoing.count_not_put(),
            unwritten: self.outgoing.count_unwritten(),
            held: self.incoming.count_held(),
        }
    }

    /// Whether it takes what comes. After a graceful disconnect nobody is there to take it; it is read so that the end
    /// behind it is seen.
    pub fn is_listening(&self, around: &impl Surroundings) -> bool {
        !around.is_leaving() && self.presence == Presence::Here || self.session.is_online()
    }

    /// When to call [`Client::wake`] at the latest; a peek.
    pub fn next_deadline<A: Surroundings + Transport<S, C>>(&self, around: &A) -> Option<Instant> {
        let timeout = self.facts.reconnect.connect_timeout;
        let connection = match self.state {
            State::Waiting(at) => Some(at),
            State::Opening { since } => Some(since + timeout),
            State::Open { since } if self.awaits_acceptance(around) => {
                [Some(since + timeout), self.session.next_deadline()].into_iter().flatten().min()
            }
            State::Open { .. } => self.session.next_deadline(),
            State::Away | State::Gone => None,
        };
        let publish = self.next_publish(around).map(|(due, _)| due);
        [connection, publish, self.next_churn(around)].into_iter().flatten().min()
    }

    /// A deadline may have come. What it has offered is said for shells that give turns.
    pub fn wake<A: Surroundings + Transport<S, C>>(&mut self, around: &mut A) -> Offered {
        let outcome = self.attend_deadline(around);
        self.lose_unless(around, outcome);
        let offered = self.publish_due(around);
        self.attend_churn(around);
        // Last, so that what the session and the schedule have put leaves in one write.
        self.flush(around);
        offered
    }

    /// The transport is open.
    pub fn opened<A: Surroundings + Transport<S, C>>(&mut self, around: &mut A) {
        let State::Opening { since } = self.state else { return };
        self.state = State::Open { since };
        self.session.opened(around.now());
        let outcome = self.perform_steps(around);
        self.lose_unless(around, outcome);
    }

    /// The schedule of each publication is known. Where no message is due, publishing is over at once: nothing will be waited
    /// for.
    pub fn begin(&mut self, around: &mut impl Surroundings, arrivals: Vec<Arrivals>) {
        self.schedule = Schedule::of(arrivals);
        around.books().publishing += i32::from(self.schedule.is_some());
    }

    /// A packet came that carries no message.
    ///
    /// # Errors
    /// The connection must end.
    pub fn packet<A: Surroundings + Transport<S, C>>(
        &mut self,
        around: &mut A,
        packet: S::Received,
    ) -> Result<(), Loss> {
        self.session.received(around.now(), packet);
        self.perform_steps(around)
    }

    /// A message came.
    ///
    /// # Errors
    /// The connection must end.
    pub fn message<A: Surroundings + Transport<S, C>>(
        &mut self,
        around: &mut A,
        message: &impl Arriving<C, A>,
    ) -> Result<(), Loss> {
        let came = Arrived { qos: message.qos(), id: message.id(), alias: message.alias() };
        let receipt = self.session.arrived(around.now(), came);
        // Its acknowledgement leaves before what a relay makes of it.
        let outcome = self.perform_steps(around);
        match receipt {
            Some(Receipt::Deliver) => {
                let delivery = message.identify(self.who, &mut self.connection, around);
                self.deliver(around, delivery);
                self.relay(around, |relayed| message.copy_to(relayed))?;
            }
            Some(Receipt::Hold) => {
                let delivery = message.identify(self.who, &mut self.connection, around);
                let relayed = self.facts.relay.as_ref().map(|_| {
                    let mut relayed = C::Relayed::default();
                    message.copy_to(&mut relayed);
                    relayed
                });
                self.incoming.hold(message.id(), delivery, relayed);
            }
            Some(Receipt::Duplicate) | None => {}
        }
        outcome
    }

    /// Writes what there is to write.
    pub fn flush<A: Surroundings + Transport<S, C>>(&mut self, around: &mut A) {
        if !self.is_open() {
            return;
        }
        let before = around.written(&self.connection);
        let outcome = around.write(&mut self.connection);
        let mut ended = Ok(());
        if self.outgoing.has_unwritten() {
            let (written, now) = (around.written(&self.connection), around.read_clock());
            let messages = self.outgoing.written(written, written == before, now, around);
            self.session.written(now, messages);
            ended = self.perform_steps(around);
        }
        // What was written before the connection broke is noted all the same.
        self.lose_unless(around, outcome.and(ended));
    }

    /// Disconnects gracefully; what was put into the connection still goes out.
    pub fn leave<A: Surroundings + Transport<S, C>>(&mut self, around: &mut A) {
        // Before DISCONNECT, behind which nothing may be sent ([MQTT-3.14.4-1]).
        self.stop_publishing(around);
        // Who has just come is about to be accepted.
        if !self.churning.as_ref().is_some_and(|churning| churning.is_coming()) {
            self.note_unaccepted(around);
        }
        if !self.is_open() {
            return self.lose(around, &Loss::Farewell);
        }
        self.session.disconnect(around.now());
        let outcome = self.perform_steps(around);
        self.lose_unless(around, outcome);
        self.flush(around);
    }

    /// The run ends before its attempt to connect does: how far that came is all that tells why.
    fn note_unaccepted<A: Surroundings + Transport<S, C>>(&mut self, around: &mut A) {
        if self.presence != Presence::Here {
            return;
        }
        let how = match self.state {
            State::Opening { .. } => around.not_opened(&self.connection),
            State::Open { .. } if !self.session.is_online() => self.session.not_accepted(),
            _ => return,
        };
        around.event(EventKind::Note, self.who.number, None, how);
    }

    /// The connection is over, or was never there.
    pub fn lose<A: Surroundings + Transport<S, C>>(&mut self, around: &mut A, loss: &Loss) {
        if self.is_gone() {
            return;
        }
        // Who looks for a gateway is awake.
        self.rest(around, false);
        // Then, while the transport can still be asked what it knows of the connection.
        around.close(self.who, &mut self.connection);
        let was_open = self.is_open();
        let was = self.forget_connection(around);
        let for_good = matches!(loss, Loss::Farewell | Loss::Refused { for_good: true, .. });
        let policy = &self.facts.reconnect;
        let stays_away = self.presence != Presence::Here && !around.is_leaving();
        self.state = match for_good || around.is_leaving() || !policy.enabled {
            _ if stays_away => State::Away,
            true => State::Gone,
            false => State::Waiting(around.now() + self.retries.wait(policy)),
        };
        if stays_away {
            // Whatever ended it, it was to end.
            self.presence = Presence::Away;
            return record_loss(around, self.who.number, &Loss::Farewell, (was, was_open));
        }
        record_loss(around, self.who.number, loss, (was, was_open));
        if self.is_gone() {
            self.give_up(around, loss);
        }
    }

    /// There is no connection any more; what it was.
    fn forget_connection(&mut self, around: &mut impl Surroundings) -> Rank {
        let was = self.acceptance.lost(around.books());
        self.outgoing.forget_connection(around);
        self.session.closed(around.now());
        self.subscriptions.forget_connection();
        was
    }

    /// The run is over, whatever is still open. What has not been written never will be.
    pub fn end(&mut self, around: &mut impl Surroundings) {
        self.session.closed(around.now());
        self.outgoing.forget_connection(around);
    }

    /// Hands over every message that is due. A late one is not skipped.
    pub fn publish_due<A: Surroundings + Transport<S, C>>(&mut self, around: &mut A) -> Offered {
        let mut offered = Offered::default();
        while let Some((due, publication)) = self.next_publish(around) {
            // The clock is read only where its last reading says no.
            if due > around.now() && due > around.read_clock() {
                break;
            }
            let schedule = self.schedule.as_mut();
            let Some(message) = schedule.and_then(|schedule| schedule.take(publication, around.now())) else {
                break;
            };
            if !self.is_running_at(message.intended) {
                continue;
            }
            let before = around.end(&self.connection);
            let outcome = self.offer(around, message);
            offered.messages += 1;
            offered.bytes += around.end(&self.connection) - before;
            if let Err(loss) = outcome {
                self.lose(around, &loss);
                break;
            }
            // What is left is due already, so that this client comes right again.
            if around.is_turn_over(offered) {
                break;
            }
        }
        if self.schedule.as_ref().is_some_and(Schedule::is_over) {
            self.stop_publishing(around);
        }
        offered
    }

    /// Publishing is over for this client. What was due and is still here is offered, though nobody may take it.
    pub fn stop_publishing<A: Surroundings + Transport<S, C>>(&mut self, around: &mut A) {
        let Some(mut schedule) = self.schedule.take() else { return };
        around.books().publishing -= 1;
        let now = around.read_clock();
        // What was due when there was room was never due.
        while let Some(message) = schedule.take_due(now) {
            if !self.is_running_at(message.intended) {
                continue;
            }
            let outcome = self.offer(around, message);
            self.lose_unless(around, outcome);
        }
    }

    fn attend_deadline<A: Surroundings + Transport<S, C>>(&mut self, around: &mut A) -> Result<(), Loss> {
        let (now, timeout) = (around.now(), self.facts.reconnect.connect_timeout);
        match self.state {
            State::Waiting(at) if at <= now => self.connect(around),
            State::Opening { since } if now >= since + timeout => {
                Err(Loss::broken(around.not_opened(&self.connection)))
            }
            // One time for opening and being accepted.
            State::Open { since } if self.awaits_acceptance(around) && now >= since + timeout => {
                Err(Loss::broken(self.session.not_accepted()))
            }
            State::Open { .. } if self.session.next_deadline().is_some_and(|deadline| deadline <= now) => {
                self.session.tick(now);
                self.perform_steps(around)
            }
            _ => Ok(()),
        }
    }

    /// After a graceful disconnect the session is offline, too, and nothing is awaited any more.
    fn awaits_acceptance(&self, around: &impl Surroundings) -> bool {
        !self.session.is_online() && !around.is_leaving() && self.presence == Presence::Here
    }

    fn connect<A: Surroundings + Transport<S, C>>(&mut self, around: &mut A) -> Result<(), Loss> {
        if self.retries.begin() {
            around.event(EventKind::Reconnect, self.who.number, None, "");
        }
        around.open(self.who, &mut self.connection)?;
        self.state = State::Opening { since: around.now() };
        Ok(())
    }

    /// Does what the session says.
    fn perform_steps<A: Surroundings + Transport<S, C>>(&mut self, around: &mut A) -> Result<(), Loss> {
        while let Some(step) = self.session.poll() {
            self.perform(around, step)?;
        }
        Ok(())
    }

    fn perform<A: Surroundings + Transport<S, C>>(
        &mut self,
        around: &mut A,
        step: Step<S::Packet, S::Envelope>,
    ) -> Result<(), Loss> {
        match step {
            Step::Connect(packet) => {
                around.put(self.who, &mut self.connection, packet);
                around.event(EventKind::Connect, self.who.number, None, "");
            }
            Step::Subscribe(packet) => {
                around.put(self.who, &mut self.connection, packet);
                self.acceptance.subscribes(around.now());
                around.event(EventKind::Subscribe, self.who.number, None, "");
            }
            Step::Publish { message, envelope, settled } => {
                let body = self.outgoing.body(message);
                let end = around.put_message(self.who, &mut self.connection, envelope, body);
                self.outgoing.put(message, end);
                // At QoS 0 no packet follows: its place is free at once.
                if settled {
                    self.outgoing.remove(message);
                }
            }
            Step::Send(packet) => around.put(self.who, &mut self.connection, packet),
            Step::ChangeSubscription(packet) => {
                around.put(self.who, &mut self.connection, packet);
                self.subscriptions.record_request(self.who, around);
            }
            Step::Connected { resumed } => {
                self.connected(around, resumed);
                return self.ask_for_changes(around);
            }
            Step::Subscribed => {
                let now = around.now();
                let took = self.acceptance.subscribed(around.books(), now);
                around.event(EventKind::Suback, self.who.number, Some(took), "");
                return self.ask_for_changes(around);
            }
            Step::SubscriptionChanged => {
                if self.subscriptions.answer(self.who, around) {
                    return self.ask_for_changes(around);
                }
            }
            Step::SubscriptionRefused(why) => {
                around.event(EventKind::Refused, self.who.number, None, &format!("SUBSCRIBE: {why}"));
            }
            Step::Release(id) => return self.release(around, id),
            Step::Acknowledged(message) => self.outgoing.acknowledged(around, message),
            Step::NoSubscribers(message) => self.outgoing.unmatched(around, message),
            Step::Refused(message, code) => {
                self.outgoing.refused(around, self.who.number, message, code);
            }
            Step::Asleep(asleep) => self.rest(around, asleep),
            Step::Close => return Err(Loss::Farewell),
            Step::Fail(why) => return Err(Loss::broken(why)),
        }
        Ok(())
    }

    /// It sleeps from now on, or no longer.
    fn rest(&mut self, around: &mut impl Surroundings, asleep: bool) {
        if asleep == self.asleep_since.is_some() {
            return;
        }
        let slept = self.asleep_since.take().map(|since| around.now().since(since));
        if asleep {
            self.asleep_since = Some(around.now());
        }
        let kind = if asleep { EventKind::Asleep } else { EventKind::Awake };
        around.event(kind, self.who.number, slept, "");
        around.rest(self.who, asleep);
    }

    fn connected(&mut self, around: &mut impl Surroundings, resumed: bool) {
        let State::Open { since } = self.state else { return };
        // Only now: a server that opens connections and refuses clients must not be asked in quick succession.
        self.retries.succeed();
        if let Some(churning) = &mut self.churning {
            churning.accepted();
        }
        if !resumed {
            // The other side knows nothing of it any more, and will not release it.
            self.incoming.forget_held();
        }
        let took = Some(around.now().since(since));
        let detail = if resumed { "session present" } else { "" };
        around.event(EventKind::Connack, self.who.number, took, detail);
        let subscribes = match self.subscriptions.answered {
            0 => self.facts.subscribes,
            changes => around.has_subscriptions(self.who, changes),
        };
        if self.acceptance.connected(around.books(), subscribes, resumed) {
            self.acceptance.subscribes(around.now());
            self.session.subscribe(around.now());
        }
    }

    fn release<A: Surroundings + Transport<S, C>>(
        &mut self,
        around: &mut A,
        id: PacketId,
    ) -> Result<(), Loss> {
        let Some(held) = self.incoming.release(id) else { return Ok(()) };
        self.deliver(around, held.delivery);
        match held.relayed {
            Some(relayed) => self.relay(around, |place| *place = relayed),
            None => Ok(()),
        }
    }

    fn deliver(&mut self, around: &mut impl Surroundings, delivery: Delivery) {
        let first = self.incoming.is_first(&delivery);
        let row = Received { received: around.now(), ..delivery.row };
        let is_will = row.identified == Identified::Will;
        let foreign = row.publisher.is_none() && !delivery.is_a_clients && !is_will;
        let books = around.books();
        books.delivered += u64::from(first);
        books.foreign += u64::from(foreign);
        around.received(&row);
        around.delivered(&Delivery { row, ..delivery }, first);
    }

    /// Publishes what has come once more, under the topic of a copy.
    fn relay<A: Surroundings + Transport<S, C>>(
        &mut self,
        around: &mut A,
        copy: impl FnOnce(&mut C::Relayed),
    ) -> Result<(), Loss> {
        let Some(relay) = &self.facts.relay else { return Ok(()) };
        let (token, relayed) = self.outgoing.add_relayed(relay.qos);
        copy(relayed);
        if !around.rename(self.who, relayed, &relay.suffix) {
            self.outgoing.remove(token);
            return Ok(());
        }
        let qos = relay.qos;
        around.books().unacknowledged += i64::from(qos != Qos::AtMostOnce);
        match self.session.publish(around.now(), token, None, qos) {
            Admission::Refused => {
                self.outgoing.unsent(around, token);
                Ok(())
            }
            Admission::Sent | Admission::Waiting => self.perform_steps(around),
        }
    }

    /// When the next message is due, and of which publication it is. Of a back-to-back one for which session or transport has no
    /// room, when publishing ends.
    fn next_publish<A: Surroundings + Transport<S, C>>(&self, around: &A) -> Option<(Instant, usize)> {
        self.schedule.as_ref()?.next(around.now(), |content| {
            self.session.has_room(self.facts.publications[content].qos)
                && around.end(&self.connection) - around.written(&self.connection) < ROOM
        })
    }

    fn offer<A: Surroundings + Transport<S, C>>(
        &mut self,
        around: &mut A,
        message: DueMessage,
    ) -> Result<(), Loss> {
        let now = around.read_clock();
        let Some(row) = row(self.who, &self.facts, around, message) else { return Ok(()) };
        around.offered(&row, self.punctuality.handed(message.intended, now));
        let token = self.outgoing.add(around, row, message.content as u8);
        // The schedule goes on when the client has given up, or is late; nobody takes what it offers then.
        let is_off = self.is_gone() || self.presence == Presence::Silent;
        let declined = around.declines(self.who, &self.connection, &row, message.content as u8);
        if let Some(why) = &declined {
            let words = format!("PUBLISH to {}: not sent, {why}", around.topic_name(row.topic));
            around.event(EventKind::Refused, self.who.number, None, &words);
        }
        let admission = match is_off || around.is_leaving() || declined.is_some() {
            true => Admission::Refused,
            false => self.session.publish(now, token, Some(row.topic), qos(row.qos)),
        };
        if admission == Admission::Refused {
            self.outgoing.unsent(around, token);
            return Ok(());
        }
        self.perform_steps(around)?;
        // A message that waits in the session is recorded now, because it may wait long.
        if admission == Admission::Waiting {
            around.sent(&row);
        }
        around.admitted(&row, message.content);
        Ok(())
    }

    fn lose_unless<A: Surroundings + Transport<S, C>>(&mut self, around: &mut A, outcome: Result<(), Loss>) {
        if let Err(loss) = outcome {
            self.lose(around, &loss);
        }
    }

    fn give_up(&mut self, around: &mut impl Surroundings, loss: &Loss) {
        let books = around.books();
        books.gone += 1;
        if *loss != Loss::Farewell {
            books.failed += 1;
            // Nobody will acknowledge what this session holds, so that nobody need wait for it.
            books.unacknowledged -= self.session.unacknowledged() as i64;
        }
    }
}

/// A back-to-back client has room for more while less than this waits to be written, in bytes.
const ROOM: u64 = 64 << 10;
