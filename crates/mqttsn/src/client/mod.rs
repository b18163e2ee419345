//! A client's session with a gateway, as a machine.
//!
//! ```text
//!            Opened     Gwinfo               Connack
//!   Offline ───────► (Searching) ──► Connecting ───► Active ◄──────────┐ CONNECT, CONNACK: there is something to publish
//!      ▲                                               │ nothing to do  │
//!      └── Closed, N_retry, DISCONNECT ──              ▼ DISCONNECT     │
//!                                                    Asleep ──► Awake ──┤
//!                                                      ▲ PINGRESP │ PINGREQ, what the gateway kept
//!                                                      └──────────┘
//! ```
//!
//! The shell owns the socket and the bytes: it tells the machine what came, and sends what [`Client::poll`] says. Messages
//! are tokens and topics numbers; texts and payloads stay with the shell.
//!
//! Contract: `handle`, `publish` or `arrived`, then drain `poll` until `None`; call again at `next_deadline`, a peek.
//!
//! One exchange at a time: REGISTER, SUBSCRIBE, PUBLISH of QoS 1 and 2 and DISCONNECT of a sleeper wait for each other
//! (§6.5, §6.12 allow one of each). What is not answered within T_retry is sent again, N_retry times; then the gateway is
//! given up, and what was not acknowledged is sent to the next one with DUP and the identifier that it had.
//!
//! A topic that the gateway does not know any more is registered anew, once for each message.
//!
//! What it does not model: UNSUBSCRIBE and changes of the will, choosing between gateways.

mod exchange;
mod interface;
mod topics;

use std::collections::{BTreeSet, VecDeque};

use mqttlab_mqtt::Qos;
use mqttlab_units::Instant;

use crate::kind::{PublishQos, ReturnCode};
use crate::packet::Topic;
use exchange::{Awaited, Queued, What};
pub use interface::{
    Admission, ClientOptions, Input, Meaning, Output, Reason, Receipt, Search, Send, Sleep, Subject,
};
use topics::Topics;

/// A client's session.
#[derive(Clone, Debug)]
pub struct Client {
    options: ClientOptions,
    state: State,
    topics: Topics,
    exchange: Option<Awaited<What>>,
    ping: Option<Awaited<()>>,
    queue: VecDeque<Queued>,
    /// Identifiers of QoS 2 messages whose PUBREL has not come.
    held: BTreeSet<u16>,
    /// The next subscription to be made, while there is one.
    subscribing: Option<u32>,
    /// After "rejected: congestion" nothing is sent before this.
    congested_until: Option<Instant>,
    last_sent: Instant,
    /// The last packet of an exchange, or of a message.
    last_busy: Instant,
    last_id: u16,
    ready: VecDeque<Output>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Offline,
    /// SEARCHGW is sent at this instant.
    Searching(Instant),
    /// For the first time, or to be active after having slept.
    Connecting {
        again: bool,
    },
    Active,
    Asleep {
        wake_at: Instant,
    },
    /// It has said that it is awake, and hears what was kept for it.
    Awake {
        since: Instant,
    },
}

impl Client {
    /// A session that has never been connected.
    pub fn new(options: ClientOptions) -> Client {
        Client {
            options,
            state: State::Offline,
            topics: Topics::default(),
            exchange: None,
            ping: None,
            queue: VecDeque::new(),
            held: BTreeSet::new(),
            subscribing: None,
            congested_until: None,
            last_sent: Instant::ZERO,
            last_busy: Instant::ZERO,
            last_id: 0,
            ready: VecDeque::new(),
        }
    }

    /// Whether a gateway has accepted it, be it awake or not.
    pub fn is_online(&self) -> bool {
        matches!(self.state, State::Active | State::Asleep { .. } | State::Awake { .. })
            || self.state == State::Connecting { again: true }
    }

    /// Whether it sleeps, so that nobody hears what comes.
    pub fn is_asleep(&self) -> bool {
        matches!(self.state, State::Asleep { .. })
    }

    /// Whether the next message of this quality of service would go out at once.
    pub fn has_room(&self, qos: Qos) -> bool {
        let free = self.queue.is_empty() && self.state == State::Active && self.congested_until.is_none();
        free && (qos == Qos::AtMostOnce || self.exchange.is_none())
    }

    /// Messages of QoS 1 and 2 that are not acknowledged, under way or waiting.
    pub fn unacknowledged(&self) -> usize {
        let sent = self
            .exchange
            .is_some_and(|exchange| matches!(exchange.what, What::Publish { .. } | What::Release { .. }));
        let waiting = self.queue.iter().filter(|message| message.qos != Qos::AtMostOnce).count();
        waiting + usize::from(sent)
    }

    /// What a topic identifier stands for.
    pub fn meaning(&self, topic_id: u16) -> Option<&Meaning> {
        self.topics.meaning(topic_id)
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Output> {
        self.ready.pop_front()
    }

    /// When to call [`Client::handle`] with [`Input::Tick`] at the latest.
    pub fn next_deadline(&self) -> Option<Instant> {
        let retry = self.options.retry;
        let exchange = self.exchange.map(|exchange| exchange.overdue_at(retry));
        let ping = self.ping.map(|ping| ping.overdue_at(retry)).or(self.ping_at());
        let state = match self.state {
            State::Searching(at) if self.exchange.is_none() => Some(at),
            State::Asleep { wake_at } => Some(wake_at),
            State::Active => self.sleep_at(),
            _ => None,
        };
        [exchange, ping, state, self.congested_until].into_iter().flatten().min()
    }

    /// Something happened.
    pub fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Opened => self.open(now),
            Input::Closed => self.close(),
            Input::Tick => self.tick(now),
            Input::Disconnect => self.disconnect(now),
            // A sleeper's radio is off.
            _ if self.is_asleep() => {}
            Input::Subscribe => {
                self.subscribing = Some(0);
                self.pump(now);
            }
            _ if self.state == State::Offline => {}
            Input::Advertise | Input::Gwinfo => self.found(now),
            Input::Connack { code } => self.connack(now, code),
            Input::Willtopicreq => self.will(now, What::Willtopic, Send::Willtopic),
            Input::Willmsgreq => self.will(now, What::Willmsg, Send::Willmsg),
            Input::Disconnected => self.disconnected(now),
            Input::Pingresp => self.pingresp(now),
            Input::Pingreq => self.send(now, Send::Pingresp),
            _ => self.packet(now, input),
        }
    }

    /// The application publishes a message, which it knows by `token`.
    pub fn publish(&mut self, now: Instant, token: u32, subject: Subject, qos: Qos) -> Admission {
        if self.options.without_connection {
            return self.publish_without_connection(now, token, subject);
        }
        let online = self.is_online();
        let full = self.queue.len() >= self.options.max_queued as usize;
        if qos == Qos::AtMostOnce && !online || full {
            return Admission::Refused;
        }
        self.queue.push_back(Queued { token, subject, qos, sent_as: None, unknown: 0 });
        if let (State::Asleep { wake_at }, Some(sleep)) = (&mut self.state, self.options.sleep)
            && !sleep.publish_when_awake
        {
            *wake_at = now;
        }
        self.pump(now);
        let waits = self.queue.iter().any(|message| message.token == token);
        if waits { Admission::Waiting } else { Admission::Sent }
    }

    /// A PUBLISH came. `None` where it has no place: nobody is there, or its topic is not known.
    pub fn arrived(&mut self, now: Instant, topic: Topic, qos: PublishQos, id: u16) -> Option<Receipt> {
        if !self.is_online() || self.is_asleep() {
            return None;
        }
        self.heard(now);
        self.last_busy = now;
        if !self.topics.is_known(topic) {
            let code = ReturnCode::InvalidTopic;
            self.send(now, Send::Puback { topic_id: topic.number(), id, code });
            return None;
        }
        let first = match qos.level() {
            Qos::AtMostOnce => true,
            Qos::AtLeastOnce => {
                let code = ReturnCode::Accepted;
                self.send(now, Send::Puback { topic_id: topic.number(), id, code });
                true
            }
            Qos::ExactlyOnce => {
                self.send(now, Send::Pubrec { id });
                self.held.insert(id)
            }
        };
        let held = qos.level() == Qos::ExactlyOnce && self.options.deliver_on_release;
        Some(match (first, held) {
            (true, false) => Receipt::Deliver,
            (true, true) => Receipt::Hold,
            (false, _) => Receipt::Duplicate,
        })
    }

    fn publish_without_connection(&mut self, now: Instant, token: u32, subject: Subject) -> Admission {
        match (self.topics.named(subject), self.state) {
            (Some(topic), State::Active) => {
                let qos = PublishQos::WithoutConnection;
                self.last_sent = now;
                self.ready.push_back(Output::Publish { token, qos, dup: false, topic, id: 0 });
                Admission::Sent
            }
            _ => Admission::Refused,
        }
    }

    fn open(&mut self, now: Instant) {
        self.ping = None;
        self.exchange = None;
        if self.options.without_connection {
            self.state = State::Active;
            self.ready.push_back(Output::Connected);
        } else if let Some(search) = self.options.search {
            self.state = State::Searching(now + search.delay);
        } else {
            self.connect(now, false);
        }
    }

    fn found(&mut self, now: Instant) {
        if let State::Searching(_) = self.state {
            self.connect(now, false);
        }
    }

    fn connect(&mut self, now: Instant, again: bool) {
        self.state = State::Connecting { again };
        self.await_answer(now, What::Connect);
        self.send_connect(now, again);
    }

    /// Who has slept still has its session and its will.
    fn send_connect(&mut self, now: Instant, again: bool) {
        let (clean, will) = (self.options.clean && !again, self.options.will && !again);
        self.send(now, Send::Connect { clean, will });
    }

    fn will(&mut self, now: Instant, what: What, packet: Send) {
        if let State::Connecting { .. } = self.state {
            self.await_answer(now, what);
            self.send(now, packet);
        }
    }

    fn connack(&mut self, now: Instant, code: ReturnCode) {
        let State::Connecting { again } = self.state else { return };
        self.exchange = None;
        if code != ReturnCode::Accepted {
            return self.close_for(Reason::Refused(code));
        }
        self.state = State::Active;
        self.last_busy = now;
        if !again {
            if self.options.clean {
                self.topics.clear();
                self.held.clear();
            }
            self.ready.push_back(Output::Connected);
        }
        self.pump(now);
    }

    fn close(&mut self) {
        self.state = State::Offline;
        self.ping = None;
        self.subscribing = None;
        self.congested_until = None;
        match self.exchange.take().map(|exchange| exchange.what) {
            Some(What::Publish { message, id, .. }) => {
                self.queue.push_front(Queued { sent_as: Some(id), ..message });
            }
            // The gateway has the message; the application need not wait for what will not come.
            Some(What::Release { message, .. }) => {
                self.ready.push_back(Output::Acknowledged { token: message.token });
            }
            _ => {}
        }
    }

    fn close_for(&mut self, reason: Reason) {
        self.close();
        self.ready.push_back(Output::Close(reason));
    }

    fn disconnect(&mut self, now: Instant) {
        if self.is_online() && !self.options.without_connection {
            self.send(now, Send::Disconnect { duration_s: None });
        }
        self.close_for(Reason::Asked);
    }

    /// DISCONNECT: the answer to one of its own, or the gateway does not know it (§5.4.21).
    fn disconnected(&mut self, now: Instant) {
        match self.exchange {
            Some(Awaited { what: What::Sleep, .. }) => {
                self.exchange = None;
                self.fall_asleep(now);
            }
            _ => self.close_for(Reason::Forgotten),
        }
    }

    fn fall_asleep(&mut self, now: Instant) {
        let Some(sleep) = self.options.sleep else { return };
        self.ping = None;
        let waits = !self.queue.is_empty() && !sleep.publish_when_awake;
        self.state = State::Asleep { wake_at: if waits { now } else { now + sleep.every } };
        self.ready.push_back(Output::Asleep(true));
    }

    fn wake_up(&mut self, now: Instant) {
        self.ready.push_back(Output::Asleep(false));
        if self.queue.is_empty() {
            self.state = State::Awake { since: now };
            self.ping = Some(Awaited::new((), now));
            self.send(now, Send::Pingreq { awake: true });
        } else {
            self.connect(now, true);
        }
    }

    fn pingresp(&mut self, now: Instant) {
        self.ping = None;
        if let State::Awake { since } = self.state {
            self.fall_asleep(now);
            // Awakenings are evenly spaced, however long each of them takes.
            if let (State::Asleep { wake_at }, Some(sleep)) = (&mut self.state, self.options.sleep) {
                *wake_at = (*wake_at).min((since + sleep.every).max(now));
            }
        }
    }

    fn packet(&mut self, now: Instant, input: Input<'_>) {
        if !self.is_online() {
            return;
        }
        self.heard(now);
        let what = self.exchange.map(|exchange| exchange.what);
        match (input, what) {
            (Input::Register { topic_id, id, name }, _) => {
                self.topics.learn(topic_id, Meaning::Named(name.into()));
                self.send(now, Send::Regack { topic_id, id });
            }
            (Input::Regack { topic_id, id, code }, Some(What::Register { topic, id: asked }))
                if id == asked =>
            {
                self.exchange = None;
                self.registered(now, topic, topic_id, code);
            }
            (Input::Suback { topic_id, id, code }, Some(What::Subscribe { subscription, id: asked }))
                if id == asked =>
            {
                self.exchange = None;
                self.subscribed(now, subscription, topic_id, code);
            }
            (Input::Puback { id, topic_id, code }, Some(What::Publish { message, id: sent, .. }))
                if id == sent =>
            {
                self.exchange = None;
                self.acknowledged(now, message, (topic_id, sent), code);
            }
            // The answer to a message of QoS 0, which has no identifier.
            (Input::Puback { id: 0, topic_id, code: ReturnCode::InvalidTopic }, _) => {
                self.topics.forget(topic_id);
            }
            (Input::Pubrec { id }, Some(What::Publish { message, id: sent, .. })) if id == sent => {
                self.await_answer(now, What::Release { message, id });
                self.send(now, Send::Pubrel { id });
            }
            // What was repeated may be answered twice.
            (Input::Pubrec { id }, _) => self.send(now, Send::Pubrel { id }),
            (Input::Pubcomp { id }, Some(What::Release { message, id: sent })) if id == sent => {
                self.exchange = None;
                self.ready.push_back(Output::Acknowledged { token: message.token });
            }
            (Input::Pubrel { id }, _) => {
                if self.held.remove(&id) && self.options.deliver_on_release {
                    self.ready.push_back(Output::Release { id });
                }
                self.send(now, Send::Pubcomp { id });
            }
            _ => return,
        }
        self.last_busy = now;
        self.pump(now);
    }

    fn registered(&mut self, now: Instant, topic: u32, topic_id: u16, code: ReturnCode) {
        match code {
            ReturnCode::Accepted => self.topics.register(topic, topic_id),
            ReturnCode::Congestion => self.congested_until = Some(now + self.options.wait),
            // The gateway has no identifier for it: whatever waits for one goes.
            _ => {
                let (refused, kept) =
                    self.queue.drain(..).partition(|message| message.subject == Subject::Named(topic));
                self.queue = kept;
                self.refuse(refused);
            }
        }
    }

    fn refuse(&mut self, messages: VecDeque<Queued>) {
        let outputs =
            messages.into_iter().map(|message| Output::Refused { token: message.token, qos: message.qos });
        self.ready.extend(outputs);
    }

    fn subscribed(&mut self, now: Instant, subscription: u32, topic_id: u16, code: ReturnCode) {
        if code == ReturnCode::Congestion {
            self.congested_until = Some(now + self.options.wait);
            return;
        }
        if code != ReturnCode::Accepted {
            self.ready.push_back(Output::SubscriptionRefused { subscription, code });
        } else if topic_id != 0 {
            // Zero stands for a filter with wild cards: topics are registered when messages come (§6.10).
            self.topics.learn(topic_id, Meaning::Subscription(subscription));
        }
        self.subscribing = Some(subscription + 1);
    }

    fn acknowledged(&mut self, now: Instant, message: Queued, (topic_id, id): (u16, u16), code: ReturnCode) {
        match code {
            ReturnCode::Accepted => self.ready.push_back(Output::Acknowledged { token: message.token }),
            ReturnCode::Congestion => {
                self.congested_until = Some(now + self.options.wait);
                self.queue.push_front(Queued { sent_as: Some(id), ..message });
            }
            ReturnCode::InvalidTopic
                if message.unknown == 0 && matches!(message.subject, Subject::Named(_)) =>
            {
                self.topics.forget(topic_id);
                self.queue.push_front(Queued { unknown: message.unknown + 1, ..message });
            }
            _ => self.refuse(VecDeque::from([message])),
        }
    }

    /// Begins whatever can be begun.
    fn pump(&mut self, now: Instant) {
        while self.state == State::Active && self.exchange.is_none() && self.congested_until.is_none() {
            if let Some(subscription) = self.subscribing {
                self.subscribe(now, subscription);
                continue;
            }
            let Some(message) = self.queue.front().copied() else { return };
            match (self.topics.named(message.subject), message.subject) {
                (Some(topic), _) => {
                    self.queue.pop_front();
                    self.send_message(now, message, topic);
                }
                (None, Subject::Named(topic)) => {
                    let id = self.next_id();
                    self.await_answer(now, What::Register { topic, id });
                    self.send(now, Send::Register { topic, id });
                }
                (None, Subject::Known(_)) => unreachable!("a known topic needs no registration"),
            }
        }
    }

    fn subscribe(&mut self, now: Instant, subscription: u32) {
        if subscription >= self.options.subscriptions {
            self.subscribing = None;
            self.ready.push_back(Output::Subscribed);
            return;
        }
        let id = self.next_id();
        self.await_answer(now, What::Subscribe { subscription, id });
        self.send(now, Send::Subscribe { subscription, id, dup: false });
    }

    fn send_message(&mut self, now: Instant, message: Queued, topic: Topic) {
        let dup = message.sent_as.is_some();
        let id = match (message.qos, message.sent_as) {
            (Qos::AtMostOnce, _) => 0,
            (_, Some(id)) => id,
            (_, None) => self.next_id(),
        };
        if message.qos != Qos::AtMostOnce {
            self.await_answer(now, What::Publish { message, topic, id });
        }
        self.put_message(now, message, topic, id, dup);
    }

    fn put_message(&mut self, now: Instant, message: Queued, topic: Topic, id: u16, dup: bool) {
        (self.last_sent, self.last_busy) = (now, now);
        let qos = PublishQos::Level(message.qos);
        self.ready.push_back(Output::Publish { token: message.token, qos, dup, topic, id });
    }

    fn tick(&mut self, now: Instant) {
        if self.congested_until.is_some_and(|until| until <= now) {
            self.congested_until = None;
            self.pump(now);
        }
        match self.state {
            State::Searching(at) if at <= now && self.exchange.is_none() => {
                self.await_answer(now, What::Search);
                self.send(
                    now,
                    Send::Searchgw { radius: self.options.search.map_or(0, |search| search.radius) },
                );
            }
            State::Asleep { wake_at } if wake_at <= now => self.wake_up(now),
            State::Active if self.sleep_at().is_some_and(|at| at <= now) => {
                let duration_s = self.options.sleep.map(|sleep| sleep.duration_s);
                self.await_answer(now, What::Sleep);
                self.send(now, Send::Disconnect { duration_s });
            }
            _ => {}
        }
        self.repeat(now);
        self.ping(now);
    }

    /// Sends again what was not answered.
    fn repeat(&mut self, now: Instant) {
        let Some(mut exchange) =
            self.exchange.filter(|exchange| exchange.overdue_at(self.options.retry) <= now)
        else {
            return;
        };
        if !exchange.repeat(now, self.options.retries) {
            return self.close_for(Reason::Unanswered(exchange.what.name()));
        }
        self.exchange = Some(exchange);
        let again = self.state == State::Connecting { again: true };
        match exchange.what {
            What::Search => {
                self.send(
                    now,
                    Send::Searchgw { radius: self.options.search.map_or(0, |search| search.radius) },
                );
            }
            What::Connect => self.send_connect(now, again),
            What::Willtopic => self.send(now, Send::Willtopic),
            What::Willmsg => self.send(now, Send::Willmsg),
            What::Register { topic, id } => self.send(now, Send::Register { topic, id }),
            What::Subscribe { subscription, id } => {
                self.send(now, Send::Subscribe { subscription, id, dup: true });
            }
            What::Publish { message, topic, id } => self.put_message(now, message, topic, id, true),
            What::Release { id, .. } => self.send(now, Send::Pubrel { id }),
            What::Sleep => {
                let duration_s = self.options.sleep.map(|sleep| sleep.duration_s);
                self.send(now, Send::Disconnect { duration_s });
            }
        }
    }

    fn ping(&mut self, now: Instant) {
        let awake = matches!(self.state, State::Awake { .. });
        match self.ping {
            Some(mut ping) if ping.overdue_at(self.options.retry) <= now => {
                if !ping.repeat(now, self.options.retries) {
                    let why = "no PINGRESP after N_retry repetitions of PINGREQ";
                    return self.close_for(Reason::Unanswered(why));
                }
                self.ping = Some(ping);
                self.send(now, Send::Pingreq { awake });
            }
            None if self.ping_at().is_some_and(|at| at <= now) => {
                self.ping = Some(Awaited::new((), now));
                self.send(now, Send::Pingreq { awake: false });
            }
            _ => {}
        }
    }

    /// When to give a sign of life.
    fn ping_at(&self) -> Option<Instant> {
        let alive = self.state == State::Active && self.ping.is_none();
        let needed = alive && !self.options.keep_alive.is_zero() && !self.options.without_connection;
        needed.then(|| self.last_sent + self.options.keep_alive)
    }

    /// When to sleep, if nothing happens.
    fn sleep_at(&self) -> Option<Instant> {
        let idle = self.exchange.is_none() && self.queue.is_empty() && self.subscribing.is_none();
        let sleep = self.options.sleep.filter(|_| idle && self.state == State::Active)?;
        Some(self.last_busy + sleep.linger)
    }

    /// While messages come to a client that has just woken up, its PINGREQ is not lost.
    fn heard(&mut self, now: Instant) {
        if let (State::Awake { .. }, Some(ping)) = (self.state, &mut self.ping) {
            *ping = Awaited::new((), now);
        }
    }

    fn await_answer(&mut self, now: Instant, what: What) {
        self.last_busy = now;
        self.exchange = Some(Awaited::new(what, now));
    }

    fn next_id(&mut self) -> u16 {
        // Zero is not an identifier (§5.3.9).
        self.last_id = self.last_id.wrapping_add(1).max(1);
        self.last_id
    }

    fn send(&mut self, now: Instant, packet: Send) {
        self.last_sent = now;
        self.ready.push_back(Output::Send(packet));
    }
}
