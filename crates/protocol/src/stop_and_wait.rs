//! A session that says one thing after the other: it asks to be accepted, then hands messages at QoS 1 over one at a time, and
//! repeats each until it is answered (stop and wait; with CoAP's words, NSTART = 1: RFC 7252 §4.7). At QoS 0 messages go at once.
//!
//! ```text
//!   opened ──► hello ──┐ repeated           published at QoS 1 ──► waiting ──► message ──┐ repeated
//!       accepted ◄─────┘                                            next ◄── heard ◄─────┘
//! ```
//!
//! What it does not do: give the other side up, and hold what comes. Protocols that do implement [`Session`] themselves.

use std::collections::VecDeque;
use std::fmt::Debug;

use mqttlab_mqtt::Qos;
use mqttlab_units::{Duration, Instant};

use crate::hub::Envelope;
use crate::session::{Admission, Arrived, Receipt, Session, Step, Token};

/// What a protocol's client says, and what it is answered.
pub trait Speaker: Debug + Send {
    /// The packet that asks to be accepted. The first `id` is 1.
    fn hello(&self, id: u16) -> Vec<u8>;
    /// The packet of who leaves.
    fn bye(&self) -> Vec<u8>;
    /// What a datagram without a message answers; `None`: nothing.
    fn answer(&self, datagram: &[u8]) -> Option<Answer>;
    /// After which time what was not answered is said again.
    fn repeat(&self) -> Duration;
    /// How a client says that nobody accepted it.
    fn not_accepted(&self) -> &'static str;
}

/// What an answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Who asked is accepted, and subscribed.
    Accepted,
    /// The message with this identifier has come.
    Heard(u16),
}

/// The session.
#[derive(Debug)]
pub struct StopAndWait<S> {
    speaker: S,
    online: bool,
    /// What is to be answered, with its identifier, and when it was last sent.
    exchange: Option<(What, u16)>,
    sent: Instant,
    waiting: VecDeque<Token>,
    last_id: u16,
    steps: VecDeque<Step<Vec<u8>, Envelope>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Hello,
    Message(Token),
}

impl<S: Speaker> StopAndWait<S> {
    /// Of a client that has never been connected.
    pub fn new(speaker: S) -> StopAndWait<S> {
        StopAndWait {
            speaker,
            online: false,
            exchange: None,
            sent: Instant::ZERO,
            waiting: VecDeque::new(),
            last_id: 0,
            steps: VecDeque::new(),
        }
    }

    fn next(&mut self, now: Instant) {
        if self.online && self.exchange.is_none() {
            let next = self.waiting.pop_front();
            next.into_iter().for_each(|message| self.begin(now, What::Message(message)));
        }
    }

    fn begin(&mut self, now: Instant, what: What) {
        // 0 is nobody's.
        self.last_id = self.last_id.checked_add(1).unwrap_or(1);
        self.exchange = Some((what, self.last_id));
        self.send(now, what, self.last_id, false);
    }

    fn send(&mut self, now: Instant, what: What, id: u16, dup: bool) {
        self.sent = now;
        self.steps.push_back(match what {
            What::Hello if dup => Step::Send(self.speaker.hello(id)),
            What::Hello => Step::Connect(self.speaker.hello(id)),
            What::Message(message) => {
                let envelope = Envelope { id, qos: Qos::AtLeastOnce, dup };
                Step::Publish { message, envelope, settled: false }
            }
        });
    }
}

impl<S: Speaker> Session for StopAndWait<S> {
    type Packet = Vec<u8>;
    type Envelope = Envelope;
    type Received = Box<[u8]>;

    fn not_accepted(&self) -> &'static str {
        self.speaker.not_accepted()
    }

    fn opened(&mut self, now: Instant) {
        self.begin(now, What::Hello);
    }

    fn closed(&mut self, _: Instant) {
        self.online = false;
        // Of which nobody has heard goes first when there is a hub again.
        if let Some((What::Message(message), _)) = self.exchange.take() {
            self.waiting.push_front(message);
        }
    }

    fn tick(&mut self, now: Instant) {
        if let (Some((what, id)), true) = (self.exchange, self.next_deadline().is_some_and(|at| at <= now)) {
            self.send(now, what, id, true);
        }
    }

    /// The hello has said to what.
    fn subscribe(&mut self, _: Instant) {
        self.steps.push_back(Step::Subscribed);
    }

    fn disconnect(&mut self, _: Instant) {
        self.online = false;
        self.steps.extend([Step::Send(self.speaker.bye()), Step::Close]);
    }

    fn publish(&mut self, now: Instant, message: Token, _: Option<u32>, qos: Qos) -> Admission {
        match qos {
            Qos::AtMostOnce if self.online => {
                let envelope = Envelope { id: 0, qos, dup: false };
                self.steps.push_back(Step::Publish { message, envelope, settled: true });
                Admission::Sent
            }
            Qos::AtLeastOnce if self.waiting.len() < WAITING_MAX => {
                self.waiting.push_back(message);
                self.next(now);
                if self.waiting.is_empty() { Admission::Sent } else { Admission::Waiting }
            }
            _ => Admission::Refused,
        }
    }

    fn arrived(&mut self, _: Instant, _: Arrived) -> Option<Receipt> {
        Some(Receipt::Deliver)
    }

    /// What was repeated may be answered twice.
    fn received(&mut self, now: Instant, datagram: Box<[u8]>) {
        match (self.speaker.answer(&datagram), self.exchange) {
            (Some(Answer::Accepted), Some((What::Hello, _))) => {
                self.online = true;
                self.steps.push_back(Step::Connected { resumed: false });
            }
            (Some(Answer::Heard(heard)), Some((What::Message(message), id))) if heard == id => {
                self.steps.push_back(Step::Acknowledged(message));
            }
            _ => return,
        }
        self.exchange = None;
        self.next(now);
    }

    fn poll(&mut self) -> Option<Step<Vec<u8>, Envelope>> {
        self.steps.pop_front()
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.exchange.map(|_| self.sent + self.speaker.repeat())
    }

    fn is_online(&self) -> bool {
        self.online
    }

    fn has_room(&self, qos: Qos) -> bool {
        self.online && (qos == Qos::AtMostOnce || self.exchange.is_none())
    }

    fn unacknowledged(&self) -> usize {
        self.waiting.len() + usize::from(matches!(self.exchange, Some((What::Message(_), _))))
    }
}

/// Messages that wait for the one before them.
const WAITING_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Numbers;

    impl Speaker for Numbers {
        fn hello(&self, id: u16) -> Vec<u8> {
            vec![1, id as u8]
        }

        fn bye(&self) -> Vec<u8> {
            vec![9]
        }

        fn answer(&self, datagram: &[u8]) -> Option<Answer> {
            match *datagram {
                [1] => Some(Answer::Accepted),
                [2, id] => Some(Answer::Heard(id.into())),
                _ => None,
            }
        }

        fn repeat(&self) -> Duration {
            Duration::from_ms(100)
        }

        fn not_accepted(&self) -> &'static str {
            "nobody accepts"
        }
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(ms)
    }

    fn hear(session: &mut StopAndWait<Numbers>, ms: u64, datagram: &[u8]) {
        session.received(at(ms), datagram.into());
    }

    /// What it says next, in short: packets as they are, messages by number, identifier and whether they are repeated.
    fn said(session: &mut StopAndWait<Numbers>) -> Vec<String> {
        let in_short = |step: Step<Vec<u8>, Envelope>| match step {
            Step::Connect(packet) => format!("connect {packet:?}"),
            Step::Send(packet) => format!("send {packet:?}"),
            Step::Publish { message: Token(message), envelope, .. } => {
                let again = if envelope.dup { " again" } else { "" };
                format!("message {message} as {}{again}", envelope.id)
            }
            Step::Acknowledged(Token(message)) => format!("heard {message}"),
            step => format!("{step:?}"),
        };
        std::iter::from_fn(|| session.poll()).map(in_short).collect()
    }

    fn online() -> StopAndWait<Numbers> {
        let mut session = StopAndWait::new(Numbers);
        session.opened(at(0));
        hear(&mut session, 10, &[1]);
        assert_eq!(said(&mut session), ["connect [1, 1]", "Connected { resumed: false }"]);
        session
    }

    #[test]
    fn a_hello_is_repeated_until_it_is_answered() {
        let mut session = StopAndWait::new(Numbers);
        session.opened(at(0));
        session.tick(at(99));
        assert_eq!(
            (said(&mut session), session.next_deadline()),
            (vec!["connect [1, 1]".into()], Some(at(100)))
        );
        session.tick(at(100));
        hear(&mut session, 150, &[2, 1]);
        assert!(!session.is_online(), "that answers no hello");
        hear(&mut session, 151, &[1]);
        assert_eq!(said(&mut session), ["send [1, 1]", "Connected { resumed: false }"]);
        assert_eq!(session.next_deadline(), None);
    }

    #[test]
    fn messages_wait_for_the_one_before_them_and_those_at_qos_0_do_not() {
        let mut session = online();
        let mut publish = |message, qos| session.publish(at(20), Token(message), None, qos);
        assert_eq!(publish(1, Qos::AtLeastOnce), Admission::Sent);
        assert_eq!(publish(2, Qos::AtLeastOnce), Admission::Waiting);
        assert_eq!(publish(3, Qos::AtMostOnce), Admission::Sent);
        assert_eq!(said(&mut session), ["message 1 as 2", "message 3 as 0"]);
        session.tick(at(120));
        hear(&mut session, 130, &[2, 7]);
        assert_eq!(said(&mut session), ["message 1 as 2 again"], "7 is no message of ours");
        assert_eq!((session.unacknowledged(), session.has_room(Qos::AtLeastOnce)), (2, false));
        hear(&mut session, 140, &[2, 2]);
        // What was repeated is answered twice.
        hear(&mut session, 141, &[2, 2]);
        assert_eq!(said(&mut session), ["heard 1", "message 2 as 3"]);
    }

    #[test]
    fn what_nobody_heard_goes_first_over_the_next_connection() {
        let mut session = online();
        for message in [1, 2] {
            session.publish(at(20), Token(message), None, Qos::AtLeastOnce);
        }
        session.closed(at(30));
        assert_eq!(session.publish(at(31), Token(3), None, Qos::AtMostOnce), Admission::Refused);
        session.opened(at(40));
        said(&mut session);
        hear(&mut session, 50, &[1]);
        hear(&mut session, 60, &[2, 4]);
        assert_eq!(
            said(&mut session),
            ["Connected { resumed: false }", "message 1 as 4", "heard 1", "message 2 as 5"]
        );
        session.disconnect(at(70));
        assert_eq!(said(&mut session), ["send [9]", "Close"]);
    }

    #[test]
    fn no_identifier_is_0_and_what_waits_is_bounded() {
        let mut session = online();
        session.last_id = u16::MAX;
        let admitted =
            (0..2_000).map(|message| session.publish(at(20), Token(message), None, Qos::AtLeastOnce));
        assert_eq!(admitted.filter(|admission| *admission != Admission::Refused).count(), 1 + WAITING_MAX);
        assert_eq!(said(&mut session), ["message 0 as 1"]);
    }
}
