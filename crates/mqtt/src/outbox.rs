//! Messages on their way out of one side of a session: in flight, and waiting behind the window.
//!
//! The same machine serves the client's publishing and the broker's delivering (§4.3, §4.4): packet identifiers, the
//! in-flight window, the four-way exchange of QoS 2, repetition after a reconnect in the order of first sending
//! ([MQTT-4.4.0-1], [MQTT-4.6.0-1]). `T` is what the owner knows a message by.
//!
//! Nothing here takes time in proportion to the messages in flight but [`Outbox::disconnect`]: the window may be 65535
//! wide.

use std::collections::VecDeque;

use mqttlab_units::{Duration, Instant};

use crate::in_use::InUse;
use crate::kind::Qos;

/// A message that waits for its acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InFlightMessage<T> {
    /// How often the identifiers had been through when this one was given.
    lap: u32,
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

/// How acknowledgements make room for messages that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refill {
    /// No more than the window is ever in flight (§4.9, [MQTT-3.3.4-9]).
    #[default]
    Bounded,
    /// As Mosquitto 2.0.11 does it, measured: the last acknowledgement of a message lets out as many that wait as the
    /// window has places behind this message's own among those in flight, so that the oldest one's lets out a whole
    /// window, whatever is in flight. A message that comes goes out at once, past those that wait, if a count says so
    /// that starts at the window, falls with each message sent, not below zero, and rises by one with each
    /// acknowledgement. A message is refused when as many are there as window and queue hold together, in flight or not.
    ByPlace,
}

/// Messages in flight and waiting.
#[derive(Clone, Debug)]
pub struct Outbox<T> {
    /// In the order of first sending, which is that of laps and identifiers.
    in_flight: VecDeque<InFlightMessage<T>>,
    waiting: VecDeque<(T, Qos)>,
    /// The identifiers of those in flight, while so many are that a free one was not found at once.
    in_use: Option<Box<InUse>>,
    /// How many of those in flight have been sent on this connection: the first ones.
    sent: u32,
    /// For MQTT 3.1's timer, what was sent on this connection, in the order of sending: when, lap and identifier. What has
    /// been acknowledged, or sent again since, is passed over when its time comes. `None` where there is no timer.
    // Boxed: few sessions have one, and there are millions.
    #[allow(clippy::box_collection)]
    timed: Option<Box<VecDeque<(Instant, u32, u16)>>>,
    waiting_max: u32,
    lap: u32,
    last_id: u16,
    window: u16,
    refill: Refill,
    /// By place: that count, and what the last acknowledgement, or the connection, lets out of what waits.
    free: u16,
    let_out: u16,
}

impl<T: Copy> Outbox<T> {
    /// An empty outbox with an in-flight window (0 for 65535) and a limit on what waits behind it.
    pub fn new(window: u16, waiting_max: u32, refill: Refill) -> Self {
        let window = if window == 0 { u16::MAX } else { window };
        Outbox {
            in_flight: VecDeque::new(),
            in_use: None,
            waiting: VecDeque::new(),
            sent: 0,
            timed: None,
            waiting_max,
            lap: 0,
            last_id: 0,
            window,
            refill,
            free: window,
            let_out: 0,
        }
    }

    /// With MQTT 3.1's timer, where `is_timed`: [`Outbox::next_overdue`] has something to say.
    pub fn timed(mut self, is_timed: bool) -> Self {
        self.timed = is_timed.then(Box::default);
        self
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
        self.count_free();
    }

    fn count_free(&mut self) {
        self.free = self.window.saturating_sub(self.in_flight.len().min(u16::MAX.into()) as u16);
        self.let_out = if self.refill == Refill::ByPlace { self.free } else { 0 };
    }

    /// Whether the window has room for one more.
    pub fn has_room(&self) -> bool {
        match self.refill {
            // A message has its place until PUBACK or PUBCOMP: PUBREC makes no room (§4.9).
            Refill::Bounded => self.in_flight.len() < usize::from(self.window),
            // Whatever the count says, there are 65535 identifiers.
            Refill::ByPlace => self.free > 0 && self.in_flight.len() < usize::from(u16::MAX),
        }
    }

    /// The quality of service of what is in flight under an identifier.
    pub fn qos_of(&self, id: u16) -> Option<Qos> {
        Some(self.in_flight[self.place(id)?].qos)
    }

    /// Takes a message to be sent as soon as [`Outbox::next`] finds room; `false` when too many wait. QoS 0 messages
    /// are for owners that make them wait for a connection: they need no room.
    pub fn push(&mut self, message: T, qos: Qos) -> bool {
        if self.is_full() {
            return false;
        }
        self.waiting.push_back((message, qos));
        true
    }

    fn is_full(&self) -> bool {
        match self.refill {
            // Only what cannot be sent at once counts as waiting.
            Refill::Bounded => {
                let surplus = self.waiting.len() as u64 + 1 > u64::from(self.waiting_max);
                surplus && (!self.has_room() || !self.waiting.is_empty())
            }
            // What is in flight beyond the window takes places of those that wait.
            Refill::ByPlace => {
                let places = u64::from(self.window) + u64::from(self.waiting_max);
                (self.in_flight.len() + self.waiting.len()) as u64 >= places
            }
        }
    }

    /// Sends a QoS 1 or 2 message at once, if the window has room and no other comes first.
    pub fn launch(&mut self, now: Instant, message: T, qos: Qos) -> Option<Dispatch<T>> {
        // Not past what waits, for an ordered topic keeps its order (§4.6).
        let first = (self.waiting.is_empty() || self.refill == Refill::ByPlace) && self.all_sent();
        (first && self.has_room()).then(|| self.fly(now, message, qos))
    }

    /// The next message that the window lets out. What the last connection left unacknowledged comes first.
    pub fn next(&mut self, now: Instant) -> Option<Dispatch<T>> {
        if !self.all_sent() {
            return self.next_repeat(now);
        }
        let Some(&(message, qos)) = self.waiting.front() else {
            self.let_out = 0;
            return None;
        };
        // The receive maximum counts QoS 1 and 2 only (§3.3.4), and QoS 0 needs no identifier.
        if qos == Qos::AtMostOnce {
            self.waiting.pop_front();
            return Some(Dispatch::Publish { message, id: 0, qos, dup: false });
        }
        let is_let_out = match self.refill {
            Refill::Bounded => self.has_room(),
            Refill::ByPlace => self.let_out > 0 && self.in_flight.len() < usize::from(u16::MAX),
        };
        if !is_let_out {
            return None;
        }
        self.let_out = self.let_out.saturating_sub(1);
        self.waiting.pop_front();
        Some(self.fly(now, message, qos))
    }

    fn fly(&mut self, now: Instant, message: T, qos: Qos) -> Dispatch<T> {
        let id = self.next_id();
        self.free = self.free.saturating_sub(1);
        if let Some(in_use) = &mut self.in_use {
            in_use.insert(self.lap, id);
        }
        self.in_flight.push_back(InFlightMessage {
            lap: self.lap,
            id,
            qos,
            released: false,
            sent: Some(now),
            message,
        });
        self.count_sent(now, self.lap, id);
        // A first attempt has DUP 0 ([MQTT-4.3.2-2], [MQTT-4.3.3-2]).
        Dispatch::Publish { message, id, qos, dup: false }
    }

    fn count_sent(&mut self, now: Instant, lap: u32, id: u16) {
        if self.sent == 0 {
            self.forget_times();
        }
        self.sent += 1;
        self.time(now, lap, id);
    }

    fn time(&mut self, now: Instant, lap: u32, id: u16) {
        if let Some(timed) = &mut self.timed {
            timed.push_back((now, lap, id));
        }
    }

    fn forget_times(&mut self) {
        if let Some(timed) = &mut self.timed {
            timed.clear();
        }
    }

    fn all_sent(&self) -> bool {
        self.sent as usize == self.in_flight.len()
    }

    /// PUBACK came, or a PUBREC that refuses: the message, if it was in flight.
    pub fn acknowledge(&mut self, id: u16) -> Option<T> {
        // Once PUBREL was sent only a PUBCOMP ends the exchange ([MQTT-4.3.3-5]).
        self.take(id, |flight| flight.qos == Qos::AtLeastOnce || !flight.released)
    }

    /// PUBREC came: whether to answer with PUBREL. Unknown identifiers are answered too (§4.3.3).
    pub fn release(&mut self, now: Instant, id: u16) {
        let Some(place) = self.place(id) else { return };
        let flight = &mut self.in_flight[place];
        if flight.qos == Qos::ExactlyOnce {
            // From here on the PUBLISH must not be repeated ([MQTT-4.3.3-6]), and the timer watches the PUBREL.
            flight.released = true;
            flight.sent = Some(now);
            let lap = flight.lap;
            self.time(now, lap, id);
        }
    }

    /// The message in flight under an identifier.
    pub fn message(&self, id: u16) -> Option<&T> {
        self.place(id).map(|place| &self.in_flight[place].message)
    }

    /// PUBCOMP came: the message, if it was in flight.
    pub fn complete(&mut self, id: u16) -> Option<T> {
        self.take(id, |flight| flight.qos == Qos::ExactlyOnce && flight.released)
    }

    /// A message that was let out is not to be sent. Mosquitto lets out no other in its place (measured), so that what waits stays
    /// where it is until the next acknowledgement.
    pub fn give_up(&mut self, id: u16) {
        let let_out = self.let_out;
        self.take(id, |flight| !flight.released);
        self.let_out = let_out;
    }

    fn take(&mut self, id: u16, fits: impl Fn(&InFlightMessage<T>) -> bool) -> Option<T> {
        let place = self.place(id).filter(|&place| fits(&self.in_flight[place]))?;
        self.sent -= u32::from(place < self.sent as usize);
        // One place for each acknowledgement, and never more than there were (§4.9).
        self.free = self.free.saturating_add(1).min(self.window);
        if self.refill == Refill::ByPlace {
            // `db__message_delete_outgoing` counts from the place of the message that it removes.
            self.let_out = self.window.saturating_sub(place.min(u16::MAX.into()) as u16);
        }
        if let Some(in_use) = &mut self.in_use {
            in_use.remove(id);
        }
        // So few in use that a look at each finds a free one in time.
        if self.in_flight.len() < PATIENCE {
            self.in_use = None;
        }
        self.in_flight.remove(place).map(|flight| flight.message)
    }

    /// Where an identifier is in flight.
    fn place(&self, id: u16) -> Option<usize> {
        // Acknowledgements come in order nearly always, so that the first is the one.
        let front = self.in_flight.front()?;
        if front.id == id {
            return Some(0);
        }
        if let Some(in_use) = &self.in_use {
            let lap = in_use.lap_of(id)?;
            return self.in_flight.binary_search_by_key(&(lap, id), |flight| (flight.lap, flight.id)).ok();
        }
        // All others lie on this lap, unless a message has been in flight for more than 65535.
        let mut lap = self.lap;
        loop {
            let gap = match self.in_flight.binary_search_by_key(&(lap, id), |flight| (flight.lap, flight.id))
            {
                Ok(place) => return Some(place),
                Err(gap) => gap,
            };
            let earlier = self.in_flight.get(gap.checked_sub(1)?)?;
            lap = if earlier.lap < lap { earlier.lap } else { lap.checked_sub(1)? };
        }
    }

    /// The connection is gone: nothing in flight has been sent on the next one.
    pub fn disconnect(&mut self) {
        self.sent = 0;
        for flight in &mut self.in_flight {
            flight.sent = None;
        }
        self.count_free();
    }

    /// What a resumed session repeats next: PUBLISH with DUP and PUBREL, in the order of first sending, and where the
    /// window bounds it no more of the former than that ([MQTT-3.3.4-9]).
    pub fn next_repeat(&mut self, now: Instant) -> Option<Dispatch<T>> {
        while let Some(flight) = self.in_flight.get_mut(self.sent as usize) {
            // The receive maximum holds back PUBLISH alone, and no PUBREL ([MQTT-3.3.4-8], [MQTT-3.3.4-10]).
            let bounded = self.refill == Refill::Bounded;
            if bounded && !flight.released && self.sent >= u32::from(self.window) {
                return None;
            }
            // A PUBREC may have come, and been answered, before the repetition of its PUBLISH.
            let answered = flight.sent.replace(now).is_some();
            let (dispatch, lap, id) = (flight.repeat(), flight.lap, flight.id);
            self.count_sent(now, lap, id);
            if !answered {
                return Some(dispatch);
            }
        }
        None
    }

    /// The other side has forgotten the session: what was in flight is sent anew, first.
    pub fn requeue(&mut self) {
        self.sent = 0;
        self.in_use = None;
        // From the back to the front, which keeps the order of first sending ([MQTT-4.6.0-1]).
        while let Some(flight) = self.in_flight.pop_back() {
            self.waiting.push_front((flight.message, flight.qos));
        }
        self.count_free();
    }

    /// What MQTT 3.1's timer repeats next: sent `interval` ago or earlier.
    pub fn next_overdue(&mut self, now: Instant, interval: Duration) -> Option<Dispatch<T>> {
        if self.overdue_at(interval)? > now {
            return None;
        }
        while let Some(&(sent, lap, id)) = self.timed.as_ref()?.front() {
            let place = self.in_flight.binary_search_by_key(&(lap, id), |flight| (flight.lap, flight.id));
            let flight = place.ok().and_then(|place| self.in_flight.get_mut(place));
            // Of a message that was sent again only the last time counts.
            let flight = flight.filter(|flight| flight.sent == Some(sent));
            if flight.is_some() && sent + interval > now {
                return None;
            }
            self.timed.as_mut()?.pop_front();
            if let Some(flight) = flight {
                flight.sent = Some(now);
                let dispatch = flight.repeat();
                self.time(now, lap, id);
                return Some(dispatch);
            }
        }
        None
    }

    /// When that timer rings next, at the earliest: acknowledgements that come in the meantime do not stop it.
    pub fn overdue_at(&self, interval: Duration) -> Option<Instant> {
        let (sent, ..) = self.timed.as_ref()?.front()?;
        (self.sent > 0).then(|| *sent + interval)
    }

    /// Forgets what was sent after an instant and is in its first half, before a PUBREC, and hands it out. To be followed by
    /// [`Outbox::disconnect`].
    pub fn take_sent_after(&mut self, written: Instant) -> Vec<T> {
        let is_new =
            |flight: &InFlightMessage<T>| !flight.released && flight.sent.is_some_and(|sent| sent > written);
        let (taken, left): (VecDeque<_>, VecDeque<_>) = self.in_flight.drain(..).partition(is_new);
        self.in_flight = left;
        self.in_use = None;
        taken.into_iter().map(|flight| flight.message).collect()
    }

    /// Forgets everything, and hands it out: in flight first, then waiting.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.sent = 0;
        self.in_use = None;
        (self.free, self.let_out) = (self.window, 0);
        let flights = self.in_flight.drain(..).map(|flight| flight.message);
        flights.chain(self.waiting.drain(..).map(|(message, _)| message))
    }

    /// Zero is not a packet identifier ([MQTT-2.2.1-3]), and one in use must not be given again (the same clause).
    /// To be called only while one is free.
    fn next_id(&mut self) -> u16 {
        if self.in_use.is_none() {
            for _ in 0..PATIENCE {
                self.last_id = self.last_id.wrapping_add(1).max(1);
                self.lap += u32::from(self.last_id == 1);
                // Only an earlier lap can have left one in use.
                let fresh = self.in_flight.front().is_none_or(|front| front.lap == self.lap);
                if fresh || self.place(self.last_id).is_none() {
                    return self.last_id;
                }
            }
        }
        let flights = || self.in_flight.iter().map(|flight| (flight.lap, flight.id));
        let in_use = self.in_use.get_or_insert_with(|| Box::new(InUse::of(flights())));
        let id = in_use.free_behind(self.last_id).expect("an identifier is asked for while one is free");
        self.lap += u32::from(id <= self.last_id);
        self.last_id = id;
        id
    }

    /// An identifier for a SUBSCRIBE or UNSUBSCRIBE, which share the numbers with PUBLISH ([MQTT-2.2.1-3]); `None`
    /// while messages in flight have all of them.
    pub fn borrow_id(&mut self) -> Option<u16> {
        (self.in_flight.len() < usize::from(u16::MAX)).then(|| self.next_id())
    }
}

impl<T: Copy> InFlightMessage<T> {
    fn repeat(&self) -> Dispatch<T> {
        // DUP marks every attempt but the first ([MQTT-3.3.1-1]); a PUBREL has no such flag ([MQTT-3.6.1-1]).
        if self.released {
            Dispatch::Pubrel { id: self.id }
        } else {
            Dispatch::Publish { message: self.message, id: self.id, qos: self.qos, dup: true }
        }
    }
}

/// Identifiers in use, one behind the other, that are looked at singly.
const PATIENCE: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::ZERO;
    const Q1: Qos = Qos::AtLeastOnce;

    fn after(seconds: u64) -> Instant {
        NOW + Duration::from_s(seconds)
    }

    fn publish(message: u32, id: u16, dup: bool) -> Option<Dispatch<u32>> {
        Some(Dispatch::Publish { message, id, qos: Q1, dup })
    }

    #[test]
    fn nothing_is_launched_before_what_waits_or_is_to_be_repeated() {
        let mut outbox = Outbox::new(2, 10, Refill::Bounded);
        assert!(outbox.push(1, Q1));
        assert_eq!(outbox.launch(NOW, 2, Q1), None);
        assert_eq!(outbox.next(NOW), publish(1, 1, false));
        assert_eq!(outbox.launch(NOW, 2, Q1), publish(2, 2, false));
        assert_eq!(outbox.launch(NOW, 3, Q1), None, "the window is full");
        outbox.disconnect();
        outbox.set_window(9);
        assert_eq!(outbox.launch(NOW, 3, Q1), None);
        assert_eq!(outbox.next(NOW), publish(1, 1, true));
        assert_eq!(outbox.launch(NOW, 3, Q1), None);
        assert_eq!(outbox.next(NOW), publish(2, 2, true));
        assert_eq!(outbox.launch(NOW, 3, Q1), publish(3, 3, false));
    }

    #[test]
    fn mqtt_2_2_1_2_identifiers_in_use_are_passed_over_lap_after_lap() {
        let mut outbox = Outbox::new(10, 10, Refill::Bounded);
        let mut stuck = Vec::new();
        for n in 0..400_000_u32 {
            let Some(Dispatch::Publish { id, .. }) = outbox.launch(NOW, n, Q1) else {
                panic!("there is room")
            };
            assert!(!stuck.contains(&(id, n)) && stuck.iter().all(|(used, _)| *used != id), "{id} is in use");
            if n % 70_000 == 5 {
                stuck.push((id, n));
            } else {
                assert_eq!(outbox.acknowledge(id), Some(n));
            }
        }
        assert_eq!(stuck.len(), 6);
        assert_eq!(outbox.acknowledge(5), None);
        stuck.rotate_left(2);
        for (id, n) in stuck {
            assert_eq!((outbox.qos_of(id), outbox.acknowledge(id)), (Some(Q1), Some(n)));
        }
        assert_eq!(outbox.in_flight(), 0);
    }

    #[test]
    fn a_full_window_gives_the_next_free_identifier_whatever_was_acknowledged() {
        let mut outbox = Outbox::new(0, 10, Refill::Bounded);
        let mut dice = mqttlab_units::Seed(3).dice();
        // By identifier, the message in flight.
        let mut in_flight: Vec<Option<u32>> = vec![None; 65_536];
        let mut last = 0_usize;
        for n in 0..80_000 {
            let acknowledged = if n < 65_535 { 0 } else { 1 + dice.below(3) };
            for id in (0..acknowledged).map(|_| 1 + dice.below(65_535) as u16) {
                let message = in_flight[usize::from(id)].take();
                assert_eq!(outbox.qos_of(id), message.map(|_| Q1));
                assert_eq!(outbox.acknowledge(id), message);
            }
            // Looked for here one by one; each identifier in use may have a lap of its own.
            last = (1..=65_535)
                .map(|step| (last + step - 1) % 65_535 + 1)
                .find(|&id| in_flight[id].is_none())
                .unwrap();
            assert_eq!(outbox.launch(NOW, n, Q1), publish(n, last as u16, false));
            in_flight[last] = Some(n);
        }
        // In the order of sending, and nothing else.
        outbox.disconnect();
        let again: Vec<u32> = std::iter::from_fn(|| match outbox.next(NOW)? {
            Dispatch::Publish { message, dup: true, .. } => Some(message),
            other => panic!("{other:?}"),
        })
        .collect();
        let mut expected: Vec<u32> = in_flight.into_iter().flatten().collect();
        expected.sort_unstable();
        assert_eq!(again, expected);
    }

    #[test]
    fn a_full_window_costs_no_more_than_a_narrow_one() {
        // Beside a search through 65 534 identifiers in use, each on a lap of its own, this would take minutes.
        let mut outbox = Outbox::new(0, 10, Refill::Bounded);
        (0..65_535).for_each(|n| assert!(outbox.launch(NOW, n, Q1).is_some()));
        let mut dice = mqttlab_units::Seed(4).dice();
        for n in 65_535..90_000 {
            let id = 1 + dice.below(65_535) as u16;
            assert!(outbox.acknowledge(id).is_some());
            assert_eq!(outbox.launch(NOW, n, Q1), publish(n, id, false));
        }
        // What is in flight no more leaves no room behind.
        (0..65_500).for_each(|id| assert!(outbox.acknowledge(id + 1).is_some()));
        assert!(outbox.in_use.is_none());
    }

    #[test]
    fn no_identifier_is_lent_while_messages_have_all_of_them() {
        let mut outbox = Outbox::new(0, 10, Refill::Bounded);
        (0..65_535).for_each(|n| assert!(outbox.launch(NOW, n, Q1).is_some()));
        outbox.disconnect();
        assert_eq!(outbox.borrow_id(), None);
        assert_eq!(outbox.acknowledge(700), Some(699));
        assert_eq!(outbox.borrow_id(), Some(700));
    }

    /// What goes out in answer to a PUBACK.
    fn after_puback(outbox: &mut Outbox<u32>, id: u16) -> Vec<u16> {
        assert!(outbox.acknowledge(id).is_some());
        sent(outbox)
    }

    /// As a broker does it.
    fn offer(outbox: &mut Outbox<u32>, message: u32) {
        assert!(outbox.launch(NOW, message, Q1).is_some() || outbox.push(message, Q1));
    }

    fn sent(outbox: &mut Outbox<u32>) -> Vec<u16> {
        let ids = std::iter::from_fn(|| match outbox.next(NOW)? {
            Dispatch::Publish { id, .. } | Dispatch::Pubrel { id } => Some(id),
        });
        ids.collect()
    }

    #[test]
    fn by_place_an_acknowledgement_lets_out_what_mosquitto_2_0_11_was_seen_to_let_out() {
        let mut outbox = Outbox::new(4, 100, Refill::ByPlace);
        (0..40).for_each(|n| offer(&mut outbox, n));
        assert_eq!(outbox.in_flight(), 4);
        let answers = [1, 3, 2, 4, 5, 12].map(|id| after_puback(&mut outbox, id));
        let expected: [&[u16]; 6] =
            [&[5, 6, 7, 8], &[9, 10, 11], &[12, 13, 14, 15], &[16, 17, 18, 19], &[20, 21, 22, 23], &[]];
        assert_eq!(answers.each_ref().map(Vec::as_slice), expected);
        assert!(outbox.launch(NOW, 40, Q1).is_some(), "it overtakes those that wait");
        assert_eq!(outbox.launch(NOW, 41, Q1), None);
        // A client that comes back gets all of them again, and no other.
        outbox.disconnect();
        assert_eq!(sent(&mut outbox), (6..=24).filter(|id| *id != 12).collect::<Vec<_>>());
        assert_eq!(after_puback(&mut outbox, 6), [25, 26, 27, 28]);
    }

    #[test]
    fn by_place_a_message_takes_a_slot_once_none_waits_however_many_are_in_flight() {
        let mut outbox = Outbox::new(2, 100, Refill::ByPlace);
        (0..5).for_each(|n| offer(&mut outbox, n));
        assert_eq!(after_puback(&mut outbox, 1), [3, 4]);
        assert_eq!(after_puback(&mut outbox, 2), [5]);
        assert_eq!(outbox.launch(NOW, 5, Q1), None, "3, 4 and 5 are in flight");
        assert_eq!(after_puback(&mut outbox, 3), [0_u16; 0]);
        assert!(outbox.launch(NOW, 5, Q1).is_some(), "one slot is free");
        assert_eq!((outbox.in_flight(), outbox.has_room()), (3, false));
    }

    #[test]
    fn by_place_what_is_in_flight_beyond_the_window_takes_places_of_those_that_wait() {
        let mut outbox = Outbox::new(2, 3, Refill::ByPlace);
        (0..5).for_each(|n| offer(&mut outbox, n));
        assert!(!outbox.push(5, Q1), "two in flight, three wait");
        assert_eq!(after_puback(&mut outbox, 1), [3, 4]);
        assert!(outbox.push(6, Q1), "one has left, and gave its place");
        assert_eq!((outbox.in_flight(), outbox.waiting()), (3, 2));
        assert!(!outbox.push(7, Q1), "only two wait, but three are in flight");
    }

    #[test]
    fn the_timer_repeats_what_is_overdue_once_and_then_names_the_next() {
        let interval = Duration::from_s(20);
        let mut outbox = Outbox::new(10, 10, Refill::Bounded).timed(true);
        for n in 1..=3 {
            outbox.launch(after(n), n as u32, Q1);
        }
        assert_eq!(outbox.next_overdue(after(20), interval), None);
        assert_eq!(outbox.next_overdue(after(22), interval), publish(1, 1, true));
        assert_eq!(outbox.next_overdue(after(22), interval), publish(2, 2, true));
        assert_eq!(outbox.next_overdue(after(22), interval), None);
        assert_eq!(outbox.overdue_at(interval), Some(after(23)));
        outbox.acknowledge(3);
        assert_eq!(outbox.overdue_at(interval), Some(after(23)), "no later than when it rings");
        assert_eq!(outbox.next_overdue(after(23), interval), None);
        assert_eq!(outbox.overdue_at(interval), Some(after(42)));
        outbox.disconnect();
        assert_eq!(outbox.overdue_at(interval), None);
    }

    #[test]
    fn the_timer_of_a_wide_window_looks_at_each_message_once_in_its_interval() {
        let interval = Duration::from_ms(65_535);
        let at = |ms| Instant::ZERO + Duration::from_ms(ms);
        let mut outbox = Outbox::new(0, 0, Refill::Bounded).timed(true);
        for n in 0..65_535 {
            outbox.launch(at(n), n as u32, Q1).unwrap();
        }
        // One is due every millisecond; to sweep all of them each time would take minutes.
        for n in 0..3 * 65_535 {
            assert_eq!(outbox.overdue_at(interval), Some(at(65_535 + n)));
            assert!(outbox.next_overdue(at(65_535 + n), interval).is_some());
            assert_eq!(outbox.next_overdue(at(65_535 + n), interval), None);
        }
    }

    #[test]
    fn what_pubrec_released_and_what_was_acknowledged_is_not_repeated_at_its_first_time() {
        let interval = Duration::from_s(20);
        let mut outbox = Outbox::new(10, 10, Refill::Bounded).timed(true);
        outbox.launch(after(1), 1, Qos::ExactlyOnce);
        outbox.launch(after(2), 2, Q1);
        outbox.launch(after(3), 3, Q1);
        outbox.release(after(4), 1);
        outbox.acknowledge(2);
        assert_eq!(outbox.next_overdue(after(22), interval), None);
        assert_eq!(outbox.overdue_at(interval), Some(after(23)));
        assert_eq!(outbox.next_overdue(after(23), interval), publish(3, 3, true));
        assert_eq!(outbox.next_overdue(after(24), interval), Some(Dispatch::Pubrel { id: 1 }));
        assert_eq!(outbox.next_overdue(after(24), interval), None);
    }
}
