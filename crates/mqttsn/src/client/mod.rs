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
//! Parts own their state: `TopicIds` what identifiers mean, `OutgoingQueue` what waits to be sent, `HeldMessages` what came at QoS 2
//! and has no PUBREL yet, `Alive` signs of life; the one exchange under way and its repetitions are this machine's.
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

mod alive;
mod exchange;
mod incoming;
mod interface;
mod outgoing;
mod topics;

use std::collections::VecDeque;

use mqttlab_mqtt::Qos;
use mqttlab_units::{Duration, Instant};

use crate::kind::{PublishQos, ReturnCode};
use crate::packet::Topic;
use alive::{Alive, Sign};
use exchange::{Awaited, PendingExchange, Queued};
use incoming::HeldMessages;
pub use interface::{
    Admission, ClientOptions, Input, Meaning, Output, Reason, Receipt, Search, Send, Sleep, Subject,
};
use outgoing::OutgoingQueue;
use topics::TopicIds;

/// A client's session.
#[derive(Clone, Debug)]
pub struct Client {
    options: ClientOptions,
    state: SnClientState,
    topics: TopicIds,
    exchange: Option<Awaited<PendingExchange>>,
    alive: Alive,
    outgoing: OutgoingQueue,
    incoming: HeldMessages,
    /// The next subscription to be made, while there is one.
    subscribing: Option<u32>,
    /// After "rejected: congestion" nothing is sent before this.
    congested_until: Option<Instant>,
    ready: VecDeque<Output>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SnClientState {
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
            state: SnClientState::Offline,
            topics: TopicIds::default(),
            exchange: None,
            alive: Alive::new(),
            outgoing: OutgoingQueue::default(),
            incoming: HeldMessages::default(),
            subscribing: None,
            congested_until: None,
            ready: VecDeque::new(),
        }
    }

    /// Whether a gateway has accepted it, be it awake or not.
    pub fn is_online(&self) -> bool {
        matches!(self.state, SnClientState::Active | SnClientState::Asleep { .. } | SnClientState::Awake { .. })
            // A sleeper's session goes on while it connects to be active again.
            || self.state == SnClientState::Connecting { again: true }
    }

    /// Whether it sleeps, so that nobody hears what comes.
    pub fn is_asleep(&self) -> bool {
        matches!(self.state, SnClientState::Asleep { .. })
    }

    /// Whether the next message of this quality of service would go out at once.
    pub fn has_room(&self, qos: Qos) -> bool {
        let free =
            self.outgoing.is_empty() && self.state == SnClientState::Active && self.congested_until.is_none();
        free && (qos == Qos::AtMostOnce || self.exchange.is_none())
    }

    /// Messages of QoS 1 and 2 that are not acknowledged, under way or waiting.
    pub fn unacknowledged(&self) -> usize {
        let sent = self.exchange.is_some_and(|exchange| {
            matches!(exchange.what, PendingExchange::Publish { .. } | PendingExchange::Release { .. })
        });
        self.outgoing.unacknowledged() + usize::from(sent)
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
        let ping = self.alive.next_deadline(self.keep_alive(), retry);
        let state = match self.state {
            SnClientState::Searching(at) if self.exchange.is_none() => Some(at),
            SnClientState::Asleep { wake_at } => Some(wake_at),
            SnClientState::Active => self.sleep_at(),
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
                self.begin_next(now);
            }
            // Late answers of a gateway that was given up.
            _ if self.state == SnClientState::Offline => {}
            // The first gateway that is heard of is taken (§6.1).
            Input::Advertise | Input::Gwinfo if matches!(self.state, SnClientState::Searching(_)) => {
                self.connect(now, false);
            }
            Input::Advertise | Input::Gwinfo => {}
            Input::Connack { code } => self.connack(now, code),
            Input::Willtopicreq => self.will(now, PendingExchange::Willtopic, Send::Willtopic),
            Input::Willmsgreq => self.will(now, PendingExchange::Willmsg, Send::Willmsg),
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
        let full = self.outgoing.len() >= self.options.max_queued as usize;
        // QoS 0 does not wait for a gateway, as in MQTT.
        if qos == Qos::AtMostOnce && !online || full {
            return Admission::Refused;
        }
        self.outgoing.push(Queued { token, subject, qos, sent_as: None, unknown: 0 });
        if let (SnClientState::Asleep { wake_at }, Some(sleep)) = (&mut self.state, self.options.sleep)
            && !sleep.publish_when_awake
        {
            // A sleeper publishes only after it has become active by CONNECT (§6.14).
            *wake_at = now;
        }
        self.begin_next(now);
        if self.outgoing.waits(token) { Admission::Waiting } else { Admission::Sent }
    }

    /// A PUBLISH came. `None` where it has no place: nobody is there, or its topic is not known.
    pub fn arrived(&mut self, now: Instant, topic: Topic, qos: PublishQos, id: u16) -> Option<Receipt> {
        if !self.is_online() || self.is_asleep() {
            return None;
        }
        if let SnClientState::Awake { .. } = self.state {
            self.alive.heard_awake(now);
        }
        self.alive.last_busy = now;
        // The answer makes the gateway register the topic anew (§6.10).
        if !self.topics.is_known(topic) {
            // PUBACK tells an error of any PUBLISH, of QoS 0 and 2 too (§5.4.13).
            let code = ReturnCode::InvalidTopic;
            self.send(now, Send::Puback { topic_id: topic.number(), id, code });
            return None;
        }
        // A repetition is answered, too: the first answer may have been lost.
        match qos.level() {
            Qos::AtMostOnce => {}
            Qos::AtLeastOnce => {
                let code = ReturnCode::Accepted;
                self.send(now, Send::Puback { topic_id: topic.number(), id, code });
            }
            Qos::ExactlyOnce => self.send(now, Send::Pubrec { id }),
        }
        Some(self.incoming.arrived(qos.level(), id, self.options.deliver_on_release))
    }

    fn publish_without_connection(&mut self, now: Instant, token: u32, subject: Subject) -> Admission {
        match (self.topics.named(subject), self.state) {
            (Some(topic), SnClientState::Active) => {
                let qos = PublishQos::WithoutConnection;
                self.alive.sent(now);
                // Nothing acknowledges it, so that its identifier is 0 (§5.4.12).
                self.ready.push_back(Output::Publish { token, qos, dup: false, topic, id: 0 });
                Admission::Sent
            }
            _ => Admission::Refused,
        }
    }

    fn open(&mut self, now: Instant) {
        self.alive.stop_waiting();
        self.exchange = None;
        // QoS −1 needs no gateway that knows the client (§6.8).
        if self.options.without_connection {
            self.state = SnClientState::Active;
            self.ready.push_back(Output::Connected);
        } else if let Some(search) = self.options.search {
            self.state = SnClientState::Searching(now + search.delay);
        } else {
            self.connect(now, false);
        }
    }

    fn connect(&mut self, now: Instant, again: bool) {
        self.state = SnClientState::Connecting { again };
        self.await_answer(now, PendingExchange::Connect);
        self.send_connect(now, again);
    }

    /// Who has slept still has its session and its will.
    fn send_connect(&mut self, now: Instant, again: bool) {
        let (clean, will) = (self.options.clean && !again, self.options.will && !again);
        self.send(now, Send::Connect { clean, will });
    }

    fn will(&mut self, now: Instant, what: PendingExchange, packet: Send) {
        // The gateway asks for the will between CONNECT and CONNACK (§6.2).
        if let SnClientState::Connecting { .. } = self.state {
            self.await_answer(now, what);
            self.send(now, packet);
        }
    }

    fn connack(&mut self, now: Instant, code: ReturnCode) {
        // A CONNECT that was repeated may be answered twice.
        let SnClientState::Connecting { again } = self.state else { return };
        self.exchange = None;
        if code != ReturnCode::Accepted {
            return self.close_for(Reason::Refused(code));
        }
        self.state = SnClientState::Active;
        self.alive.last_busy = now;
        if !again {
            // The gateway has begun anew, too: its identifiers mean nothing any more.
            if self.options.clean {
                self.topics.clear();
                self.incoming.clear();
            }
            self.ready.push_back(Output::Connected);
        }
        self.begin_next(now);
    }

    fn close(&mut self) {
        self.state = SnClientState::Offline;
        self.alive.stop_waiting();
        self.subscribing = None;
        self.congested_until = None;
        match self.exchange.take().map(|exchange| exchange.what) {
            Some(PendingExchange::Publish { message, id, .. }) => {
                self.outgoing.put_back(Queued { sent_as: Some(id), ..message });
            }
            // The gateway has the message; the application need not wait for what will not come.
            Some(PendingExchange::Release { message, .. }) => {
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
        // At QoS −1 no gateway knows of the client (§6.8).
        if self.is_online() && !self.options.without_connection {
            self.send(now, Send::Disconnect { duration_s: None });
        }
        self.close_for(Reason::Asked);
    }

    /// DISCONNECT: the answer to one of its own, or the gateway does not know it (§5.4.21).
    fn disconnected(&mut self, now: Instant) {
        match self.exchange {
            Some(Awaited { what: PendingExchange::Sleep, .. }) => {
                self.exchange = None;
                self.fall_asleep(now);
            }
            // The client is to connect again (§5.4.21).
            _ => self.close_for(Reason::Forgotten),
        }
    }

    fn fall_asleep(&mut self, now: Instant) {
        let Some(sleep) = self.options.sleep else { return };
        self.alive.stop_waiting();
        // What was published while DISCONNECT was under way need not wait for the next awakening.
        let waits = !self.outgoing.is_empty() && !sleep.publish_when_awake;
        self.state = SnClientState::Asleep { wake_at: if waits { now } else { now + sleep.every } };
        self.ready.push_back(Output::Asleep(true));
    }

    fn wake_up(&mut self, now: Instant) {
        self.ready.push_back(Output::Asleep(false));
        // PINGREQ with its identifier fetches what was kept; to publish it must be active (§6.14).
        if self.outgoing.is_empty() {
            self.state = SnClientState::Awake { since: now };
            self.alive.ping(now);
            self.send(now, Send::Pingreq { awake: true });
        } else {
            self.connect(now, true);
        }
    }

    fn pingresp(&mut self, now: Instant) {
        self.alive.stop_waiting();
        // To a sleeper PINGRESP says that nothing more is kept for it (§5.4.20).
        if let SnClientState::Awake { since } = self.state {
            self.fall_asleep(now);
            // Awakenings are evenly spaced, however long each of them takes.
            if let (SnClientState::Asleep { wake_at }, Some(sleep)) = (&mut self.state, self.options.sleep) {
                *wake_at = (*wake_at).min((since + sleep.every).max(now));
            }
        }
    }

    fn packet(&mut self, now: Instant, input: Input<'_>) {
        if !self.is_online() {
            return;
        }
        if let SnClientState::Awake { .. } = self.state {
            self.alive.heard_awake(now);
        }
        let what = self.exchange.map(|exchange| exchange.what);
        match (input, what) {
            // A topic that a wild card has matched is named before its first message (§6.10).
            (Input::Register { topic_id, id, name }, _) => {
                self.topics.learn(topic_id, Meaning::Named(name.into()));
                self.send(now, Send::Regack { topic_id, id });
            }
            // By the identifier: the answer may be that of an exchange that is over.
            (Input::Regack { topic_id, id, code }, Some(PendingExchange::Register { topic, id: asked }))
                if id == asked =>
            {
                self.exchange = None;
                self.registered(now, topic, topic_id, code);
            }
            (
                Input::Suback { topic_id, id, code },
                Some(PendingExchange::Subscribe { subscription, id: asked }),
            ) if id == asked => {
                self.exchange = None;
                self.subscribed(now, subscription, topic_id, code);
            }
            (
                Input::Puback { id, topic_id, code },
                Some(PendingExchange::Publish { message, id: sent, .. }),
            ) if id == sent => {
                self.exchange = None;
                self.acknowledged(now, message, (topic_id, sent), code);
            }
            // The answer to a message of QoS 0, which has no identifier.
            (Input::Puback { id: 0, topic_id, code: ReturnCode::InvalidTopic }, _) => {
                self.topics.forget(topic_id);
            }
            (Input::Pubrec { id }, Some(PendingExchange::Publish { message, id: sent, .. }))
                if id == sent =>
            {
                // The gateway has the message: from here on PUBREL is repeated, and not PUBLISH.
                self.await_answer(now, PendingExchange::Release { message, id });
                self.send(now, Send::Pubrel { id });
            }
            // What was repeated may be answered twice.
            (Input::Pubrec { id }, _) => self.send(now, Send::Pubrel { id }),
            (Input::Pubcomp { id }, Some(PendingExchange::Release { message, id: sent })) if id == sent => {
                self.exchange = None;
                self.ready.push_back(Output::Acknowledged { token: message.token });
            }
            (Input::Pubrel { id }, _) => {
                if self.incoming.release(id) && self.options.deliver_on_release {
                    self.ready.push_back(Output::Release { id });
                }
                // Also where nothing is held: the gateway repeats its PUBREL until it is answered.
                self.send(now, Send::Pubcomp { id });
            }
            // A late answer does not keep the client from falling asleep.
            _ => return,
        }
        self.alive.last_busy = now;
        self.begin_next(now);
    }

    fn registered(&mut self, now: Instant, topic: u32, topic_id: u16, code: ReturnCode) {
        match code {
            ReturnCode::Accepted => self.topics.register(topic, topic_id),
            // After T_WAIT the same message asks again: it still waits for an identifier.
            ReturnCode::Congestion => self.congested_until = Some(now + self.options.wait),
            // The gateway has no identifier for it: whatever waits for one goes.
            _ => {
                let refused = self.outgoing.take_of(topic);
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
                self.outgoing.put_back(Queued { sent_as: Some(id), ..message });
            }
            // Once for each message; and a predefined or short topic has nothing to register.
            ReturnCode::InvalidTopic
                if message.unknown == 0 && matches!(message.subject, Subject::Named(_)) =>
            {
                self.topics.forget(topic_id);
                self.outgoing.put_back(Queued { unknown: message.unknown + 1, ..message });
            }
            _ => self.refuse(VecDeque::from([message])),
        }
    }

    /// Begins whatever can be begun.
    fn begin_next(&mut self, now: Instant) {
        // QoS 0 leaves no exchange behind, so that several messages may go out here.
        while self.state == SnClientState::Active && self.exchange.is_none() && self.congested_until.is_none()
        {
            if let Some(subscription) = self.subscribing {
                self.subscribe(now, subscription);
                continue;
            }
            let Some(message) = self.outgoing.next() else { return };
            match (self.topics.named(message.subject), message.subject) {
                (Some(topic), _) => {
                    self.outgoing.take();
                    self.send_message(now, message, topic);
                }
                // Before the first PUBLISH that is to name it (§6.5). The message stays in the queue.
                (None, Subject::Named(topic)) => {
                    let id = self.outgoing.next_id();
                    self.await_answer(now, PendingExchange::Register { topic, id });
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
        let id = self.outgoing.next_id();
        self.await_answer(now, PendingExchange::Subscribe { subscription, id });
        self.send(now, Send::Subscribe { subscription, id, dup: false });
    }

    fn send_message(&mut self, now: Instant, message: Queued, topic: Topic) {
        let dup = message.sent_as.is_some();
        let id = match (message.qos, message.sent_as) {
            (Qos::AtMostOnce, _) => 0,
            // By its identifier the gateway knows the message for one that it may have.
            (_, Some(id)) => id,
            (_, None) => self.outgoing.next_id(),
        };
        if message.qos != Qos::AtMostOnce {
            self.await_answer(now, PendingExchange::Publish { message, topic, id });
        }
        self.put_message(now, message, topic, id, dup);
    }

    fn put_message(&mut self, now: Instant, message: Queued, topic: Topic, id: u16, dup: bool) {
        self.alive.sent(now);
        self.alive.last_busy = now;
        let qos = PublishQos::Level(message.qos);
        self.ready.push_back(Output::Publish { token: message.token, qos, dup, topic, id });
    }

    fn tick(&mut self, now: Instant) {
        if self.congested_until.is_some_and(|until| until <= now) {
            self.congested_until = None;
            self.begin_next(now);
        }
        match self.state {
            SnClientState::Searching(at) if at <= now && self.exchange.is_none() => {
                self.await_answer(now, PendingExchange::Search);
                self.send(
                    now,
                    Send::Searchgw { radius: self.options.search.map_or(0, |search| search.radius) },
                );
            }
            SnClientState::Asleep { wake_at } if wake_at <= now => self.wake_up(now),
            SnClientState::Active if self.sleep_at().is_some_and(|at| at <= now) => {
                let duration_s = self.options.sleep.map(|sleep| sleep.duration_s);
                self.await_answer(now, PendingExchange::Sleep);
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
        // After N_retry repetitions the gateway is taken for gone (§6.13).
        if !exchange.repeat(now, self.options.retries) {
            return self.close_for(Reason::Unanswered(exchange.what.name()));
        }
        self.exchange = Some(exchange);
        let again = self.state == SnClientState::Connecting { again: true };
        // DUP marks repetitions of SUBSCRIBE and PUBLISH; other packets have no such flag (§5.4.12, §5.4.15).
        match exchange.what {
            PendingExchange::Search => {
                self.send(
                    now,
                    Send::Searchgw { radius: self.options.search.map_or(0, |search| search.radius) },
                );
            }
            PendingExchange::Connect => self.send_connect(now, again),
            PendingExchange::Willtopic => self.send(now, Send::Willtopic),
            PendingExchange::Willmsg => self.send(now, Send::Willmsg),
            PendingExchange::Register { topic, id } => self.send(now, Send::Register { topic, id }),
            PendingExchange::Subscribe { subscription, id } => {
                self.send(now, Send::Subscribe { subscription, id, dup: true });
            }
            PendingExchange::Publish { message, topic, id } => {
                self.put_message(now, message, topic, id, true)
            }
            PendingExchange::Release { id, .. } => self.send(now, Send::Pubrel { id }),
            PendingExchange::Sleep => {
                let duration_s = self.options.sleep.map(|sleep| sleep.duration_s);
                self.send(now, Send::Disconnect { duration_s });
            }
        }
    }

    fn ping(&mut self, now: Instant) {
        let (keep_alive, patience) = (self.keep_alive(), (self.options.retry, self.options.retries));
        match self.alive.tick(now, keep_alive, patience) {
            Sign::None => {}
            Sign::Ping => {
                self.send(now, Send::Pingreq { awake: matches!(self.state, SnClientState::Awake { .. }) })
            }
            Sign::Unanswered => {
                let why = "no PINGRESP after N_retry repetitions of PINGREQ";
                self.close_for(Reason::Unanswered(why));
            }
        }
    }

    /// How long it may be silent, where the gateway waits for signs of life.
    fn keep_alive(&self) -> Option<Duration> {
        // A sleeper is watched by its sleep duration (§6.14), and a client of QoS −1 by nobody (§6.8).
        let active = self.state == SnClientState::Active && !self.options.without_connection;
        Some(self.options.keep_alive).filter(|keep_alive| active && !keep_alive.is_zero())
    }

    /// When to sleep, if nothing happens.
    fn sleep_at(&self) -> Option<Instant> {
        let idle = self.exchange.is_none() && self.outgoing.is_empty() && self.subscribing.is_none();
        let sleep = self.options.sleep.filter(|_| idle && self.state == SnClientState::Active)?;
        Some(self.alive.last_busy + sleep.linger)
    }

    fn await_answer(&mut self, now: Instant, what: PendingExchange) {
        self.alive.last_busy = now;
        self.exchange = Some(Awaited::new(what, now));
    }

    fn send(&mut self, now: Instant, packet: Send) {
        self.alive.sent(now);
        self.ready.push_back(Output::Send(packet));
    }
}
