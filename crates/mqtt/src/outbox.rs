//! Messages on their way out of one side of a session: in flight, and waiting behind the window.
//!
//! The same machine serves the client's publishing and the broker's delivering (§4.3, §4.4): packet identifiers, the
//! in-flight window, the four-way exchange of QoS 2, repetition after a reconnect in the order of first sending
//! ([MQTT-4.4.0-1], [MQTT-4.6.0-1]). `T` is what the owner knows a message by.

use std::collections::VecDeque;

use mqttlab_units::{Duration, Instant};

use crate::kind::Qos;

/// A message that waits for its acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Flight<T> {
    id: u16,
    qos: Qos,
    /// PUBREC has come: what is repeated is the PUBREL.
    released: bool,
    /// When it was last sent on this connection; `None` when it was not.
    sent: Option<Instant>,
    message: T,
}

/// What the owner of an outbox must send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatch<T> {
    /// A PUBLISH.
    Publish {
        /// The message.
        message: T,
        /// Packet identifier, 0 at QoS 0.
        id: u16,
        /// Quality of service.
        qos: Qos,
        /// A copy of an earlier attempt.
        dup: bool,
    },
    /// A PUBREL.
    Pubrel {
        /// Packet identifier.
        id: u16,
    },
}

/// Messages in flight and waiting.
#[derive(Clone, Debug)]
pub struct Outbox<T> {
    in_flight: VecDeque<Flight<T>>,
    waiting: VecDeque<(T, Qos)>,
    last_id: u16,
    window: u16,
    waiting_max: u32,
}

impl<T: Copy> Outbox<T> {
    /// An empty outbox with an in-flight window (0 for 65535) and a limit on what waits behind it.
    pub fn new(window: u16, waiting_max: u32) -> Self {
        let window = if window == 0 { u16::MAX } else { window };
        Outbox { in_flight: VecDeque::new(), waiting: VecDeque::new(), last_id: 0, window, waiting_max }
    }

    /// Messages that wait for an acknowledgement.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Messages that wait for room in the window, or for a connection.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Narrows or widens the window, as a receive maximum asks.
    pub fn set_window(&mut self, window: u16) {
        self.window = window.max(1);
    }

    /// Whether the window has room for one more.
    pub fn has_room(&self) -> bool {
        self.in_flight.len() < usize::from(self.window)
    }

    /// Takes a QoS 1 or 2 message to be sent as soon as [`Outbox::next`] finds room; `false` when too many wait.
    pub fn push(&mut self, message: T, qos: Qos) -> bool {
        debug_assert!(qos != Qos::AtMostOnce, "QoS 0 is never in flight");
        // Only what cannot be sent at once counts as waiting.
        let surplus = self.waiting.len() as u64 + 1 > u64::from(self.waiting_max);
        if surplus && (!self.has_room() || !self.waiting.is_empty()) {
            return false;
        }
        self.waiting.push_back((message, qos));
        true
    }

    /// The next message that the window lets out.
    pub fn next(&mut self, now: Instant) -> Option<Dispatch<T>> {
        if !self.has_room() {
            return None;
        }
        let (message, qos) = self.waiting.pop_front()?;
        let id = self.next_id();
        self.in_flight.push_back(Flight { id, qos, released: false, sent: Some(now), message });
        Some(Dispatch::Publish { message, id, qos, dup: false })
    }

    /// PUBACK came, or a PUBREC that refuses: the message, if it was in flight.
    pub fn acknowledge(&mut self, id: u16) -> Option<T> {
        self.take(id, |flight| flight.qos == Qos::AtLeastOnce || !flight.released)
    }

    /// PUBREC came: whether to answer with PUBREL. Unknown identifiers are answered too (§4.3.3).
    pub fn release(&mut self, now: Instant, id: u16) {
        if let Some(flight) = self.in_flight.iter_mut().find(|f| f.id == id && f.qos == Qos::ExactlyOnce) {
            flight.released = true;
            flight.sent = Some(now);
        }
    }

    /// PUBCOMP came: the message, if it was in flight.
    pub fn complete(&mut self, id: u16) -> Option<T> {
        self.take(id, |flight| flight.qos == Qos::ExactlyOnce && flight.released)
    }

    fn take(&mut self, id: u16, fits: impl Fn(&Flight<T>) -> bool) -> Option<T> {
        // Acknowledgements come in order nearly always, so that the first is the one.
        let index = self.in_flight.iter().position(|flight| flight.id == id && fits(flight))?;
        self.in_flight.remove(index).map(|flight| flight.message)
    }

    /// The connection is gone: nothing in flight has been sent on the next one.
    pub fn disconnect(&mut self) {
        for flight in &mut self.in_flight {
            flight.sent = None;
        }
    }

    /// What a resumed session repeats next: PUBLISH with DUP and PUBREL, in the order of first sending.
    pub fn next_repeat(&mut self, now: Instant) -> Option<Dispatch<T>> {
        let flight = self.in_flight.iter_mut().find(|flight| flight.sent.is_none())?;
        flight.sent = Some(now);
        Some(flight.repeat())
    }

    /// The other side has forgotten the session: what was in flight is sent anew, first.
    pub fn requeue(&mut self) {
        while let Some(flight) = self.in_flight.pop_back() {
            self.waiting.push_front((flight.message, flight.qos));
        }
    }

    /// What MQTT 3.1's timer repeats next: sent `interval` ago or earlier.
    pub fn next_overdue(&mut self, now: Instant, interval: Duration) -> Option<Dispatch<T>> {
        let overdue = |sent: Instant| now.checked_since(sent).is_some_and(|since| since >= interval);
        let flight = self.in_flight.iter_mut().find(|flight| flight.sent.is_some_and(overdue))?;
        flight.sent = Some(now);
        Some(flight.repeat())
    }

    /// When that timer rings next.
    pub fn overdue_at(&self, interval: Duration) -> Option<Instant> {
        self.in_flight.iter().filter_map(|flight| flight.sent).min().map(|sent| sent + interval)
    }

    /// Forgets everything, and hands it out: in flight first, then waiting.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        let flights = self.in_flight.drain(..).map(|flight| flight.message);
        flights.chain(self.waiting.drain(..).map(|(message, _)| message))
    }

    /// Zero is not a packet identifier ([MQTT-2.2.1-3]), and one in use must not be given again ([MQTT-2.2.1-2]).
    fn next_id(&mut self) -> u16 {
        loop {
            self.last_id = self.last_id.wrapping_add(1).max(1);
            let id = self.last_id;
            if !self.in_flight.iter().any(|flight| flight.id == id) {
                return id;
            }
        }
    }

    /// An identifier for a SUBSCRIBE or UNSUBSCRIBE, which share the numbers with PUBLISH ([MQTT-2.2.1-3]).
    pub fn borrow_id(&mut self) -> u16 {
        self.next_id()
    }
}

impl<T: Copy> Flight<T> {
    fn repeat(&self) -> Dispatch<T> {
        if self.released {
            Dispatch::Pubrel { id: self.id }
        } else {
            Dispatch::Publish { message: self.message, id: self.id, qos: self.qos, dup: true }
        }
    }
}

/// QoS 2 messages that have come and whose PUBREL has not: what comes again under these identifiers is a duplicate.
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    unreleased: Vec<(u16, u64)>,
}

impl Inbox {
    /// A QoS 2 PUBLISH came: whether it is the first under its identifier. The token is kept with it.
    pub fn receive(&mut self, id: u16, token: u64) -> bool {
        let first = !self.unreleased.iter().any(|(unreleased, _)| *unreleased == id);
        if first {
            self.unreleased.push((id, token));
        }
        first
    }

    /// PUBREL came: the identifier is free again. The token of its message, if there was one.
    pub fn release(&mut self, id: u16) -> Option<u64> {
        let index = self.unreleased.iter().position(|(unreleased, _)| *unreleased == id)?;
        Some(self.unreleased.remove(index).1)
    }

    /// The session is new.
    pub fn clear(&mut self) {
        self.unreleased.clear();
    }

    /// Messages that have come and are not released.
    pub fn len(&self) -> usize {
        self.unreleased.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.unreleased.is_empty()
    }
}
