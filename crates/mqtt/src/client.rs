//! A client's session, as a machine.
//!
//! ```text
//!            Opened            Connack(0)
//!   Offline ───────► Greeting ───────────► Online ──┐ Publish, Subscribe, packets, Tick
//!      ▲                │ refused, timeout   │  ▲   │
//!      └────────────────┴────────────────────┘  └───┘
//!                 Closed
//! ```
//!
//! The shell owns the socket and the bytes: it tells the machine when a connection is open or gone and what packets
//! came, and writes what [`Client::poll`] says. Messages are tokens; topics and payloads stay with the shell.
//!
//! Contract: `handle`, `publish` or `arrived`, then drain `poll` until `None`; call again at `next_deadline`, which is a
//! peek. What becomes of a message is the answer to the call that is about it; `poll` says what there is to send.
//!
//! After a reconnect to a broker that kept the session, what was in flight is repeated with DUP; to one that did
//! not, it is sent anew, as Paho does: an application that was promised delivery does not care why the session went.
//!
//! What it does not model: enhanced authentication, subscription identifiers. Topic aliases are the shell's
//! ([`crate::alias`]).

use std::collections::VecDeque;
use std::sync::Arc;

use mqttlab_units::{Duration, Instant};

use crate::inbox::Inbox;
use crate::kind::{Kind, Qos};
use crate::outbox::{Dispatch, Outbox, Refill};
use crate::reason::{NO_MATCHING_SUBSCRIBERS, REFUSED};

/// What a session is configured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// Keep-alive interval; zero switches it off.
    pub keep_alive: Duration,
    /// Ask the broker for a new session at every connection.
    pub clean: bool,
    /// Unacknowledged QoS 1 and 2 messages sent ahead; 0 for 65535.
    pub max_inflight: u16,
    /// Messages that wait behind these.
    pub max_queued: u32,
    /// Deliver a QoS 2 message when its PUBREL comes (method A of §4.3.3, as Paho and perez2005's model do) and not
    /// already when its PUBLISH does (method B).
    pub deliver_on_release: bool,
    /// MQTT 3.1's timed repetition.
    pub retry: Option<Duration>,
    /// What the keep-alive interval counts.
    pub ping: Ping,
    /// How long the broker may take to answer CONNECT.
    pub connect_timeout: Duration,
}

/// How often the loops of libmosquitto and paho-mqtt look at least (`mosquitto_loop_forever`, `loop_forever`). It is also
/// the grain of libmosquitto's clock (`mosquitto_time`).
const GRAIN: Duration = Duration::from_s(1);

/// What makes a client ping its broker, and leave one that does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ping {
    /// It pings when it has sent nothing for a keep-alive interval (§3.1.2.10), and leaves when no PINGRESP has come
    /// within another.
    #[default]
    Sent,
    /// It also pings when it has heard nothing for an interval, and leaves when, with a PINGREQ unanswered, another
    /// passes without anything heard or without anything sent: as libmosquitto (`mosquitto__check_keepalive`) does.
    ///
    /// Its clock has whole seconds. It looks when it sends or hears something, and whole seconds later, when it has sent
    /// nothing for an interval: until then its thread sleeps (`mosquitto_loop_start`). So a client that sends without
    /// being answered notices the silence when it next sends.
    Silence,
    /// It pings an interval after its last PINGREQ, whatever else was sent or heard, and leaves when no PINGRESP has come
    /// within another interval: as paho-mqtt 1.5 to 2.2 does, whose `_packet_write` notes no time of a packet that was
    /// sent. It looks when it sends or hears something, and a second after it looked last.
    Interval,
}

/// Something that happened to the client. Packets are what the shell has decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Input {
    /// The transport is connected.
    Opened,
    /// The transport is gone.
    Closed,
    /// The application subscribes; the shell knows to what.
    Subscribe,
    /// The application subscribes to something more, or unsubscribes from something; the shell knows from what. It waits until
    /// the change before was answered, or the connection is gone.
    ChangeSubscription {
        subscribes: bool,
    },
    /// The application says goodbye.
    Disconnect,
    /// Time has passed.
    Tick,
    Connack {
        accepted: bool,
        session_present: bool,
        receive_maximum: u16,
        keep_alive_s: Option<u16>,
    },
    Puback {
        id: u16,
        /// Reason code; 0 before MQTT 5.
        code: u8,
    },
    Pubrec {
        id: u16,
        code: u8,
    },
    Pubrel {
        id: u16,
    },
    Pubcomp {
        id: u16,
    },
    Suback {
        id: u16,
    },
    Unsuback {
        id: u16,
    },
    Pingresp,
}

/// Something that the shell must do or know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Output {
    SendConnect,
    SendPublish {
        token: u64,
        id: u16,
        qos: Qos,
        dup: bool,
    },
    SendPuback {
        id: u16,
    },
    SendPubrec {
        id: u16,
    },
    SendPubrel {
        id: u16,
    },
    SendPubcomp {
        id: u16,
    },
    SendSubscribe {
        id: u16,
    },
    /// SUBSCRIBE or UNSUBSCRIBE.
    SendChange {
        id: u16,
        subscribes: bool,
    },
    SendPingreq,
    SendDisconnect,
    /// The broker accepted.
    Connected {
        session_present: bool,
    },
    /// The subscription was answered.
    Subscribed,
    /// The change of subscriptions was answered.
    SubscriptionChanged,
    /// The PUBREL of a message that was held has come: it is for the application now.
    Release {
        id: u16,
    },
    /// The last acknowledgement of a published message.
    Acknowledged {
        token: u64,
    },
    /// The broker knows of no subscription to the message's topic. Its acknowledgement follows, or has its turn later.
    NoSubscribers {
        token: u64,
    },
    /// A message that the broker refused, and in which packet.
    Refused {
        token: u64,
        by: Kind,
        code: u8,
    },
    /// Close the transport.
    Close(Reason),
}

/// What a session makes of a message to be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It goes out at once.
    Sent,
    /// It waits for room in the window, or for a connection.
    Waiting,
    /// It will not be sent: no connection at QoS 0, or too many wait.
    Refused,
}

/// What a session makes of a PUBLISH that has come (§4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// It is for the application now.
    Deliver,
    /// It is for the application when its PUBREL comes: [`Output::Release`].
    Hold,
    /// It came before, and is not delivered again.
    Duplicate,
}

/// Why the machine closes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The application wanted it.
    Asked,
    /// CONNACK refused.
    Refused,
    /// CONNACK says that the broker has a session, and the client has asked for a new one.
    SessionPresent,
    /// CONNACK did not come.
    ConnectTimeout,
    /// PINGRESP did not come.
    KeepAliveTimeout,
    /// A packet that has no place here.
    ProtocolError,
}

/// A client's session.
#[derive(Clone, Debug)]
pub struct Client {
    options: Arc<ClientOptions>,
    keep_alive: Duration,
    state: ClientState,
    outbox: Outbox<u64>,
    /// Identifiers of QoS 2 messages whose PUBREL has not come.
    inbox: Inbox<()>,
    subscribing: Option<u16>,
    /// A SUBSCRIBE waits for an identifier.
    subscribe_waits: bool,
    /// The identifier of a change of subscriptions that is not answered.
    changing: Option<u16>,
    /// A change that waits for an identifier.
    change_waits: Option<bool>,
    last_sent: Instant,
    last_received: Instant,
    /// When the last PINGREQ was sent, or else CONNECT.
    last_ping: Instant,
    /// That PINGREQ is not answered.
    ping_waits: bool,
    ready: VecDeque<Output>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientState {
    Offline,
    Greeting { since: Instant },
    Online,
}

impl Input {
    /// Whether it came from the broker.
    fn is_packet(self) -> bool {
        !matches!(
            self,
            Input::Opened
                | Input::Closed
                | Input::Subscribe
                | Input::ChangeSubscription { .. }
                | Input::Disconnect
                | Input::Tick
        )
    }
}

impl Client {
    /// A session that has never been connected.
    pub fn new(options: impl Into<Arc<ClientOptions>>) -> Self {
        let options = options.into();
        Client {
            keep_alive: options.keep_alive,
            outbox: Outbox::new(options.max_inflight, options.max_queued, Refill::Bounded)
                .timed(options.retry.is_some()),
            options,
            state: ClientState::Offline,
            inbox: Inbox::default(),
            subscribing: None,
            subscribe_waits: false,
            changing: None,
            change_waits: None,
            last_sent: Instant::ZERO,
            last_received: Instant::ZERO,
            last_ping: Instant::ZERO,
            ping_waits: false,
            ready: VecDeque::new(),
        }
    }

    /// Whether the broker has accepted the connection.
    pub fn is_online(&self) -> bool {
        self.state == ClientState::Online
    }

    /// Whether the next QoS 1 or 2 message would go out at once.
    pub fn has_room(&self) -> bool {
        self.is_online() && self.outbox.has_room() && self.outbox.waiting() == 0
    }

    /// Messages of QoS 1 and 2 that are not acknowledged, in flight or waiting.
    pub fn unacknowledged(&self) -> usize {
        self.outbox.in_flight() + self.outbox.waiting()
    }

    /// Something happened.
    pub fn handle(&mut self, now: Instant, input: Input) {
        if input.is_packet() {
            // Not for `Ping::Sent`: MQTT's own interval counts what is sent (§3.1.2.10).
            self.last_received = now;
        }
        match input {
            Input::Opened => self.open(now),
            Input::Closed => self.close(),
            Input::Subscribe => self.subscribe(now),
            Input::ChangeSubscription { subscribes } => self.change(now, subscribes),
            Input::Disconnect => self.disconnect(now),
            Input::Tick => self.tick(now),
            Input::Connack { .. } => self.connack(now, input),
            // Nothing but CONNACK may come first ([MQTT-3.2.0-1]).
            _ if self.state != ClientState::Online => self.close_for(Reason::ProtocolError),
            _ => self.packet(now, input),
        }
    }

    /// The application publishes a message, which it knows by `token`.
    pub fn publish(&mut self, now: Instant, token: u64, qos: Qos) -> Admission {
        let is_online = self.is_online();
        if qos == Qos::AtMostOnce {
            if !is_online {
                // QoS 0 has no acknowledgement that a later connection could make good for (§4.3.1).
                return Admission::Refused;
            }
            self.send(now, Output::SendPublish { token, id: 0, qos, dup: false });
            return Admission::Sent;
        }
        if !self.outbox.push(token, qos) {
            return Admission::Refused;
        }
        if is_online {
            self.send_waiting(now);
        }
        // Messages go out in the order in which they came: this one has gone if none waits.
        if self.outbox.waiting() == 0 { Admission::Sent } else { Admission::Waiting }
    }

    /// A PUBLISH came. `None` where it has no place: before CONNACK.
    pub fn arrived(&mut self, now: Instant, qos: Qos, id: u16) -> Option<Receipt> {
        if !self.is_online() {
            self.close_for(Reason::ProtocolError);
            return None;
        }
        self.last_received = now;
        // At QoS 1 a repetition is a new message, whatever its DUP says ([MQTT-4.3.2-5]).
        let first = qos != Qos::ExactlyOnce || self.inbox.receive(id, ());
        // Whatever the application makes of the message, it is acknowledged ([MQTT-4.5.0-2]).
        match qos {
            Qos::AtMostOnce => {}
            Qos::AtLeastOnce => self.send(now, Output::SendPuback { id }),
            // A repetition is acknowledged, too: the answer to the first may be lost ([MQTT-4.3.3-10]).
            Qos::ExactlyOnce => self.send(now, Output::SendPubrec { id }),
        }
        let held = qos == Qos::ExactlyOnce && self.options.deliver_on_release;
        Some(match (first, held) {
            (true, false) => Receipt::Deliver,
            (true, true) => Receipt::Hold,
            (false, _) => Receipt::Duplicate,
        })
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Output> {
        self.ready.pop_front()
    }

    /// When to call [`Client::handle`] with [`Input::Tick`] at the latest.
    pub fn next_deadline(&self) -> Option<Instant> {
        match self.state {
            ClientState::Offline => None,
            ClientState::Greeting { since } => Some(since + self.options.connect_timeout),
            ClientState::Online => [self.ping_deadline(), self.retry_deadline()].into_iter().flatten().min(),
        }
    }

    fn ping_deadline(&self) -> Option<Instant> {
        // Zero switches keep-alive off (§3.1.2.10).
        if self.keep_alive.is_zero() {
            return None;
        }
        let looked = self.last_sent.max(self.last_received);
        Some(match self.options.ping {
            Ping::Sent if self.ping_waits => self.last_ping + self.keep_alive,
            Ping::Sent => self.last_sent + self.keep_alive,
            Ping::Silence => {
                let now = whole_seconds(looked);
                if whole_seconds(self.last_received) + self.keep_alive <= now {
                    looked
                } else {
                    let due = whole_seconds(self.last_sent) + self.keep_alive;
                    next_look(looked, due.checked_since(now))
                }
            }
            Ping::Interval => next_look(looked, (self.last_ping + self.keep_alive).checked_since(looked)),
        })
    }

    fn retry_deadline(&self) -> Option<Instant> {
        self.outbox.overdue_at(self.options.retry?)
    }

    fn open(&mut self, now: Instant) {
        self.state = ClientState::Greeting { since: now };
        (self.last_ping, self.ping_waits) = (now, false);
        self.send(now, Output::SendConnect);
    }

    fn close(&mut self) {
        self.state = ClientState::Offline;
        self.ping_waits = false;
        // A SUBSCRIBE is not repeated on the next connection (§4.4): the application subscribes again.
        self.subscribing = None;
        self.subscribe_waits = false;
        (self.changing, self.change_waits) = (None, None);
        // What came at QoS 2 stays known: it belongs to the session, not to the connection (§4.1).
        self.outbox.disconnect();
    }

    fn connack(&mut self, now: Instant, input: Input) {
        let Input::Connack { accepted, session_present, receive_maximum, keep_alive_s } = input else {
            return;
        };
        // A connection has one CONNACK ([MQTT-3.2.0-2]).
        if !matches!(self.state, ClientState::Greeting { .. }) {
            return self.close_for(Reason::ProtocolError);
        }
        if !accepted {
            return self.close_for(Reason::Refused);
        }
        // After a clean start this client has none ([MQTT-3.2.2-4]). A client that keeps its session takes one that an
        // earlier run or a lost CONNACK has left.
        if session_present && self.options.clean {
            return self.close_for(Reason::SessionPresent);
        }
        self.state = ClientState::Online;
        // The server's word replaces the client's ([MQTT-3.2.2-21]).
        self.keep_alive = keep_alive_s.map_or(self.options.keep_alive, |s| Duration::from_s(s.into()));
        // No more than the broker takes ([MQTT-3.3.4-7]), and no more than is configured.
        let own = if self.options.max_inflight == 0 { u16::MAX } else { self.options.max_inflight };
        self.outbox.set_window(own.min(receive_maximum.max(1)));
        self.ready.push_back(Output::Connected { session_present });
        // First what was in flight ([MQTT-4.4.0-1], [MQTT-4.6.0-1]), then what waits.
        if session_present {
            self.resume(now);
        } else {
            // The session's state is void ([MQTT-3.2.2-5]): identifiers start anew, messages are sent as if for the
            // first time.
            self.inbox.clear();
            self.outbox.requeue();
        }
        self.send_waiting(now);
    }

    fn resume(&mut self, now: Instant) {
        while let Some(dispatch) = self.outbox.next_repeat(now) {
            self.dispatch(now, dispatch);
        }
    }

    fn subscribe(&mut self, now: Instant) {
        if self.state != ClientState::Online {
            return;
        }
        let id = self.outbox.borrow_id();
        // Messages in flight may have all identifiers: the next that is acknowledged leaves its own.
        self.subscribe_waits = id.is_none();
        if let Some(id) = id {
            self.subscribing = Some(id);
            self.send(now, Output::SendSubscribe { id });
        }
    }

    fn change(&mut self, now: Instant, subscribes: bool) {
        if self.state != ClientState::Online {
            return;
        }
        let id = self.outbox.borrow_id();
        self.change_waits = id.is_none().then_some(subscribes);
        if let Some(id) = id {
            self.changing = Some(id);
            self.send(now, Output::SendChange { id, subscribes });
        }
    }

    fn disconnect(&mut self, now: Instant) {
        if self.state == ClientState::Online {
            self.send(now, Output::SendDisconnect);
        }
        // Nothing follows a DISCONNECT, and it is the client who closes ([MQTT-3.14.4-1], [MQTT-3.14.4-2]).
        self.close_for(Reason::Asked);
    }

    fn packet(&mut self, now: Instant, input: Input) {
        match input {
            Input::Puback { id, code } => {
                self.note_subscribers(id, code);
                // From 0x80 on a PUBACK refuses, and acknowledges all the same ([MQTT-4.4.0-2]).
                let token = self.outbox.acknowledge(id);
                self.finish_message(now, token, (Kind::Puback, code));
            }
            // From 0x80 on, a PUBREC ends the exchange: no PUBREL follows (§4.3.3, [MQTT-4.4.0-2]).
            Input::Pubrec { id, code: code @ REFUSED.. } => {
                let token = self.outbox.acknowledge(id);
                self.finish_message(now, token, (Kind::Pubrec, code));
            }
            Input::Pubrec { id, code } => {
                self.note_subscribers(id, code);
                // PUBREL follows even where the identifier is not known: the broker waits for one.
                self.outbox.release(now, id);
                self.send(now, Output::SendPubrel { id });
            }
            Input::Pubcomp { id } => {
                let token = self.outbox.complete(id);
                self.finish_message(now, token, (Kind::Pubcomp, 0));
            }
            Input::Pubrel { id } => {
                let known = self.inbox.release(id).is_some();
                if known && self.options.deliver_on_release {
                    self.ready.push_back(Output::Release { id });
                }
                // Also for an identifier that is not known ([MQTT-4.3.3-11]), or the broker would repeat its PUBREL.
                self.send(now, Output::SendPubcomp { id });
            }
            Input::Suback { id } if self.subscribing == Some(id) => {
                self.subscribing = None;
                self.ready.push_back(Output::Subscribed);
            }
            Input::Suback { id } | Input::Unsuback { id } if self.changing == Some(id) => {
                self.changing = None;
                self.ready.push_back(Output::SubscriptionChanged);
            }
            Input::Suback { .. } | Input::Unsuback { .. } => {}
            Input::Pingresp => self.ping_waits = false,
            _ => self.close_for(Reason::ProtocolError),
        }
    }

    fn note_subscribers(&mut self, id: u16, code: u8) {
        if code == NO_MATCHING_SUBSCRIBERS
            && let Some(&token) = self.outbox.message(id)
        {
            self.ready.push_back(Output::NoSubscribers { token });
        }
    }

    fn finish_message(&mut self, now: Instant, token: Option<u64>, (by, code): (Kind, u8)) {
        let Some(token) = token else { return };
        self.ready.push_back(if code >= REFUSED {
            Output::Refused { token, by, code }
        } else {
            Output::Acknowledged { token }
        });
        // Before the messages that wait: they would take the identifier that has just become free.
        if self.subscribe_waits {
            self.subscribe(now);
        } else if let Some(subscribes) = self.change_waits {
            self.change(now, subscribes);
        }
        self.send_waiting(now);
    }

    fn send_waiting(&mut self, now: Instant) {
        while let Some(dispatch) = self.outbox.next(now) {
            self.dispatch(now, dispatch);
        }
    }

    fn dispatch(&mut self, now: Instant, dispatch: Dispatch<u64>) {
        self.send(
            now,
            match dispatch {
                Dispatch::Publish { message, id, qos, dup } => {
                    Output::SendPublish { token: message, id, qos, dup }
                }
                Dispatch::Pubrel { id } => Output::SendPubrel { id },
            },
        );
    }

    fn tick(&mut self, now: Instant) {
        match self.state {
            ClientState::Greeting { since } if now >= since + self.options.connect_timeout => {
                self.close_for(Reason::ConnectTimeout);
            }
            ClientState::Online => {
                self.keep_alive(now);
                self.retry(now);
            }
            _ => {}
        }
    }

    fn keep_alive(&mut self, now: Instant) {
        if self.ping_deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        // Without PINGRESP in a reasonable time the client should close (§3.1.2.10).
        if self.ping_waits {
            return self.close_for(Reason::KeepAliveTimeout);
        }
        (self.last_ping, self.ping_waits) = (now, true);
        // The answer has a whole interval.
        self.last_received = now;
        self.send(now, Output::SendPingreq);
    }

    fn retry(&mut self, now: Instant) {
        // Only where it is configured: MQTT 5 repeats on a new connection alone ([MQTT-4.4.0-1]).
        let Some(interval) = self.options.retry else { return };
        while let Some(dispatch) = self.outbox.next_overdue(now, interval) {
            self.dispatch(now, dispatch);
        }
    }

    fn send(&mut self, now: Instant, output: Output) {
        self.last_sent = now;
        self.ready.push_back(output);
    }

    fn close_for(&mut self, reason: Reason) {
        self.close();
        self.ready.push_back(Output::Close(reason));
    }
}

/// An instant on a clock of whole seconds.
fn whole_seconds(at: Instant) -> Instant {
    Instant::ZERO + GRAIN * (at.as_ns() / GRAIN.as_ns())
}

/// The first look when so much time has passed, or none is left: looks are whole seconds after the last.
fn next_look(looked: Instant, left: Option<Duration>) -> Instant {
    left.map_or(looked, |left| looked + GRAIN * left.as_ns().div_ceil(GRAIN.as_ns()))
}
