//! Messages on their way out: offered, handed to the session, put into the connection, written, acknowledged.
//!
//! A place is used again, with the room that it has, so that a message costs no allocation once as many have been under
//! way. Whoever takes a message counts it in the books, and its end takes back what does not stay. Only what is put for the first time is waited for to be written: a repetition does not move the time of writing.

use std::collections::{BTreeSet, VecDeque};

use mqttlab_mqtt::{Kind, Qos, Version, reason};
use mqttlab_rows::{Acknowledged, Dropped, EventKind, LossCause, Sent, Unsent};
use mqttlab_units::{Duration, Instant};

use crate::facts::ClientNumber;
use crate::rows::Rows;
use crate::session::Token;
use crate::surroundings::Surroundings;
use crate::transport::Body;

/// The messages that a client's session holds, and those that its connection has not taken.
pub(crate) struct OutgoingMessages<R> {
    places: Vec<MessagePlace<R>>,
    free: Vec<Token>,
    /// In the order of the stream.
    unwritten: VecDeque<Unwritten>,
}

/// A message from hand-over to its last acknowledgement.
struct MessagePlace<R> {
    /// What the recording knows of it; `None` of a relayed one.
    row: Option<Sent>,
    /// The number of its content, as in [`Body::Own`].
    content: u8,
    relayed: R,
    /// Whether the books count it as unacknowledged until it is settled: above QoS 0.
    is_awaited: bool,
    /// Whether it has been put into the connection, so that the time of writing is, or will be, known.
    is_put: bool,
}

/// A message of the client's own that the transport has not taken whole.
struct Unwritten {
    end: u64,
    token: Token,
    row: Sent,
    /// Whether the recording already has it, without the time of writing.
    is_recorded: bool,
}

impl<R> Default for OutgoingMessages<R> {
    fn default() -> Self {
        OutgoingMessages { places: Vec::new(), free: Vec::new(), unwritten: VecDeque::new() }
    }
}

impl<R: Default> OutgoingMessages<R> {
    /// Takes a message of the client's own. It counts as sent until its session does not take it.
    pub(crate) fn add(&mut self, around: &mut impl Surroundings, row: Sent, content: u8) -> Token {
        let deliveries = around.deliveries(&row);
        let books = around.books();
        books.offered += 1;
        books.sent += 1;
        books.expected += u64::from(deliveries);
        books.unacknowledged += i64::from(row.qos > 0);
        let token = self.place();
        let place = self.at(token);
        (place.row, place.content, place.is_awaited) = (Some(row), content, row.qos > 0);
        token
    }

    /// Takes a message to be relayed. What it consists of is written over what its place holds. It is to be counted once that
    /// is done.
    pub(crate) fn add_relayed(&mut self, qos: Qos) -> (Token, &mut R) {
        let token = self.place();
        let place = self.at(token);
        (place.row, place.is_awaited) = (None, qos != Qos::AtMostOnce);
        (token, &mut place.relayed)
    }

    /// The last acknowledgement of a message came.
    pub(crate) fn acknowledged(&mut self, around: &mut impl Surroundings, token: Token) {
        if let Some(Sent { publisher, sequence, .. }) = self.at(token).row {
            around.acknowledged(&Acknowledged { publisher, sequence, at: around.now() });
        }
        self.settle(around, token);
    }

    /// The other side refuses a message of this client, and no receiver will get it.
    pub(crate) fn refused(
        &mut self,
        around: &mut impl Surroundings,
        client: ClientNumber,
        token: Token,
        code: Option<(Kind, u8)>,
    ) {
        let row = self.at(token).row;
        let mut words = String::from("PUBLISH");
        if let Some(row) = row {
            words = format!("PUBLISH to {}", around.topic_name(row.topic));
        }
        if let Some((kind, code)) = code {
            words = format!("{words}: {}", reason::in_words(kind, Version::V5, code));
        }
        around.event(EventKind::Refused, client, None, &words);
        if let (Some(row), Some(_)) = (row, code) {
            let deliveries = around.deliveries(&row);
            around.books().expected -= u64::from(deliveries);
            self.drop(around, token, LossCause::Refused);
        }
        self.settle(around, token);
    }

    /// The other side knows of no receiver of a message of this client.
    pub(crate) fn unmatched(&mut self, around: &mut impl Surroundings, token: Token) {
        self.drop(around, token, LossCause::NoMatchingSubscribers);
    }

    fn drop(&mut self, around: &mut impl Surroundings, token: Token, cause: LossCause) {
        if let Some(Sent { publisher, sequence, .. }) = self.at(token).row {
            around.dropped(&Dropped { publisher, sequence, subscriber: None, cause, at: around.now() });
        }
    }

    /// The session does not take a message.
    pub(crate) fn unsent(&mut self, around: &mut impl Surroundings, token: Token) {
        if let Some(row) = self.at(token).row {
            let deliveries = around.deliveries(&row);
            let books = around.books();
            books.sent -= 1;
            books.expected -= u64::from(deliveries);
            around.unsent(&Unsent::from(&row));
        }
        self.settle(around, token);
    }

    /// Nothing more becomes of a message.
    fn settle(&mut self, around: &mut impl Surroundings, token: Token) {
        // A message that waited for its topic's registration may be of QoS 0.
        around.books().unacknowledged -= i64::from(self.at(token).is_awaited);
        self.remove(token);
    }

    /// What a message consists of.
    pub(crate) fn body(&self, token: Token) -> Body<'_, R> {
        let place = &self.places[token.0 as usize];
        match &place.row {
            Some(row) => Body::Own { row, content: place.content },
            None => Body::Relayed(&place.relayed),
        }
    }

    /// The message is done with.
    pub(crate) fn remove(&mut self, token: Token) {
        self.free.push(token);
    }

    /// A message was put into the connection, which it leaves at `end`.
    pub(crate) fn put(&mut self, token: Token, end: u64) {
        let place = &mut self.places[token.0 as usize];
        if std::mem::replace(&mut place.is_put, true) {
            return;
        }
        if let Some(row) = place.row {
            // What was recorded when it had to wait is recorded again, with the time of writing.
            if self.unwritten.capacity() == 0 {
                // Most queues hold one thing or none, and a simulation has tens of thousands.
                self.unwritten.reserve_exact(1);
            }
            self.unwritten.push_back(Unwritten { end, token, row, is_recorded: false });
        }
    }

    /// How many of the client's own wait for their first sending.
    pub(crate) fn count_not_put(&self) -> usize {
        let free: BTreeSet<Token> = self.free.iter().copied().collect();
        let tokens = (0..).map(Token);
        let held = self.places.iter().zip(tokens).filter(|(_, token)| !free.contains(token));
        held.filter(|(place, _)| place.row.is_some() && !place.is_put).count()
    }

    /// How many of the client's own the transport has not taken whole.
    pub(crate) fn count_unwritten(&self) -> usize {
        self.unwritten.len()
    }

    /// Whether something is not written.
    pub(crate) fn has_unwritten(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// The transport has taken everything up to `position` by `now`.
    ///
    /// A message has one row, with the time of writing. Only where the transport is stuck, having taken nothing this time,
    /// or where a message has waited for [`RECORDED_AFTER`], it is recorded before, without that time: it may wait long,
    /// and who looks at a killed run should know of it.
    /// Says how many messages it has taken whole since it was last asked.
    pub(crate) fn written(
        &mut self,
        position: u64,
        is_stuck: bool,
        now: Instant,
        rows: &mut impl Rows,
    ) -> usize {
        let mut taken = 0;
        while let Some(message) = self.unwritten.pop_front_if(|message| message.end <= position) {
            rows.sent(&Sent { written: Some(now), ..message.row });
            taken += 1;
        }
        let waits = |message: &Unwritten| {
            is_stuck || now.checked_since(message.row.sent).is_some_and(|wait| wait >= RECORDED_AFTER)
        };
        // Those behind one that is recorded already are newer; those before it are recorded, too.
        let recorded = self.unwritten.partition_point(|message| message.is_recorded);
        for message in self.unwritten.range_mut(recorded..) {
            if !waits(message) {
                break;
            }
            rows.sent(&message.row);
            message.is_recorded = true;
        }
        taken
    }

    /// The connection has ended: what it has not taken will never be written.
    pub(crate) fn forget_connection(&mut self, rows: &mut impl Rows) {
        for message in self.unwritten.drain(..) {
            if !message.is_recorded {
                rows.sent(&message.row);
            }
            // At QoS 0 its place is free, and may be another's.
            if message.row.qos > 0 {
                self.places[message.token.0 as usize].is_put = false;
            }
        }
    }

    fn at(&mut self, token: Token) -> &mut MessagePlace<R> {
        &mut self.places[token.0 as usize]
    }

    fn place(&mut self) -> Token {
        if let Some(token) = self.free.pop() {
            self.at(token).is_put = false;
            return token;
        }
        if self.places.capacity() == 0 {
            self.places.reserve_exact(1);
        }
        self.places.push(MessagePlace {
            row: None,
            content: 0,
            relayed: R::default(),
            is_awaited: false,
            is_put: false,
        });
        Token(self.places.len() as u32 - 1)
    }
}

/// What has waited this long for its connection to take it is recorded without the time of writing.
const RECORDED_AFTER: Duration = Duration::from_ms(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_relayed_leaves_nothing_behind() {
        let mut outgoing = OutgoingMessages::<Vec<u8>>::default();
        let mut waiting = VecDeque::new();
        for message in 0..1_000 {
            let (token, relayed) = outgoing.add_relayed(Qos::AtMostOnce);
            relayed.clear();
            relayed.extend_from_slice(b"topic and payload");
            outgoing.put(token, message);
            waiting.push_back(token);
            if waiting.len() == 3 {
                waiting.pop_front().into_iter().for_each(|token| outgoing.remove(token));
            }
        }
        assert_eq!((outgoing.places.len(), outgoing.count_unwritten()), (3, 0));
    }
}
