//! Whether the times of captures can be right, as deliveries tell that were seen before their messages were published.
//!
//! Where the publisher is in one capture and the receiver in another, no connection is in both that could compare the
//! clocks. But a message that arrives has been sent: where topic, size and content of a delivery are those of a message that
//! comes later, the clocks differ by that much or more. In one capture that holds both, frames that pass at nearly the same time may have
//! times in another order than they had: those of a mirror port that queues each way, or of several queues of a card.
//!
//! Contents may repeat, so that a delivery is an earlier message's that was not captured. Then the message has a delivery of its own,
//! later, and the earlier one proves nothing.
//!
//! Where contents repeat, a time that is behind shifts the deliveries: each is matched to the message before its own, and the last
//! message has none. So in the end as many messages must have come as were published, or the later deliveries contradict nothing.

use std::collections::HashMap;
use std::sync::Arc;

use mqttlab_capture::SocketEndpoint;
use mqttlab_recording::{FoldedHash, NumberMap};
use mqttlab_units::{Duration, Instant};

use super::message::CountedMessage;

/// Deliveries before their publication.
#[derive(Default)]
pub struct ClockEvidence {
    /// The captures that connections were seen in, one a bit.
    captures: NumberMap<u32, u64>,
    /// The latest connection between two ends.
    between: NumberMap<[SocketEndpoint; 2], u32>,
    /// Between connections that no capture holds both.
    apart: EarlyDeliveries,
    /// Between others.
    together: EarlyDeliveries,
    /// Deliveries that could wait no longer, by content: receiver's connection, receiver, time.
    given_up: NumberMap<u64, (u32, Instant)>,
}

/// Deliveries that have the content of a message that was published later.
#[derive(Default)]
struct EarlyDeliveries {
    /// Messages and receivers of which the only delivery came before.
    early: HashMap<(u32, u32, u32), RepeatedContent, FoldedHash>,
    /// Messages that were delivered again, when they had been published.
    contradicted: u64,
    /// The same by content and receiver.
    later: NumberMap<(u64, u32), (RepeatedContent, u64)>,
    /// Of these, those that prove nothing: another message has no delivery instead.
    shifted: u64,
    /// Those that could wait no longer, and whose content was published after that.
    unmatched: u64,
    /// How long before, at most.
    lead: Duration,
}

/// A content that a receiver gets, and where and since when.
#[derive(Clone)]
pub struct RepeatedContent {
    /// See [`content_queues::key`](super::content_queues::key).
    pub content: u64,
    /// Its topic.
    pub topic: Arc<str>,
    /// The receiver.
    pub receiver: u32,
    /// The server that it was published to.
    pub server: u32,
    /// Since when the receiver has been subscribed.
    pub since: Instant,
}

impl ClockEvidence {
    /// A segment of a connection was seen in this capture of several, for the first time.
    pub fn note(&mut self, ends: [SocketEndpoint; 2], connection: u32, capture: u16) {
        self.between.insert(ends, connection);
        *self.captures.entry(connection).or_default() |= 1 << (capture % 64);
    }

    /// It was seen in this one, too. Answers the connection.
    pub fn note_again(&mut self, ends: [SocketEndpoint; 2], capture: u16) -> Option<u32> {
        let connection = *self.between.get(&ends)?;
        *self.captures.entry(connection).or_default() |= 1 << (capture % 64);
        Some(connection)
    }

    /// Whether there are several captures.
    pub fn are_several(&self) -> bool {
        !self.captures.is_empty()
    }

    /// Whether no capture holds both connections.
    pub fn are_apart(&self, one: u32, other: u32) -> bool {
        let of = |connection: u32| self.captures.get(&connection).copied().unwrap_or_default();
        of(one) != 0 && of(other) != 0 && of(one) & of(other) == 0
    }

    /// A delivery has the content of a message that was published so much later, on these connections. Says whether it is the first, and
    /// whether it may be the message's.
    pub fn note_early(
        &mut self,
        message: CountedMessage,
        [delivered, published]: [u32; 2],
        content: RepeatedContent,
        lead: Duration,
    ) -> bool {
        if self.are_apart(delivered, published) {
            return self.apart.note(message, content, lead);
        }
        (self.are_several() || lead < DISORDER_MAX) && self.together.note(message, content, lead)
    }

    /// A message was delivered after its publication.
    pub fn note_regular(&mut self, message: CountedMessage, receiver: u32) {
        self.apart.note_regular(message, receiver);
        self.together.note_regular(message, receiver);
    }

    /// No more messages come to a receiver, or to any, of those that were published. `owed`: how many of these with a content have not
    /// come to it.
    pub fn settle(&mut self, receiver: Option<u32>, mut owed: impl FnMut(&RepeatedContent) -> u64) {
        self.apart.settle(receiver, &mut owed);
        self.together.settle(receiver, &mut owed);
    }

    /// A receiver got a message with a content, and so many before it will not come any more.
    pub fn note_passed_over(&mut self, content: u64, receiver: u32, count: u64) {
        self.apart.note_without_delivery(content, receiver, count);
        self.together.note_without_delivery(content, receiver, count);
    }

    /// Whether an early delivery is taken for the message's.
    pub fn holds(&self, message: CountedMessage, receiver: u32) -> bool {
        self.apart.holds(message, receiver) || self.together.holds(message, receiver)
    }

    /// A delivery waits for its message no longer.
    pub fn give_up(&mut self, content: u64, connection: u32, at: Instant) {
        if self.are_several() && self.given_up.len() < GIVEN_UP_MAX {
            self.given_up.entry(content).or_insert((connection, at));
        }
    }

    /// A message was published: deliveries of it may have been given up.
    pub fn published(&mut self, content: u64, connection: u32, at: Instant) {
        let Some(&(receiver, received)) = self.given_up.get(&content) else { return };
        if let Some(lead) = at.checked_since(received).filter(|_| self.are_apart(connection, receiver)) {
            self.given_up.remove(&content);
            self.apart.lead = self.apart.lead.max(lead);
            self.apart.unmatched += 1;
        }
    }

    /// Whether they differ for certain.
    pub fn differ(&self) -> bool {
        self.apart.are_proved() || (self.are_several() && self.together.are_proved())
    }

    /// Why the numbers are not the whole truth.
    pub fn reasons(&self) -> Vec<String> {
        let clocks_differ = [
            "the clocks of the captures differ by at least",
            "The others are off by the same difference. Set the clocks right (editcap -t) and import again.",
        ];
        let out_of_order = [
            "the times are out of order by at least",
            if self.are_several() {
                "Either the clocks of the captures differ, or one of them does not have the times of its frames. Others may be off by as \
                 much."
            } else {
                "The capture does not have the times of its frames: a mirror port may delay one way. Others may be off by as much."
            },
        ];
        let reasons = [self.apart.reason(clocks_differ), self.together.reason(out_of_order)];
        reasons.into_iter().flatten().collect()
    }
}

impl EarlyDeliveries {
    fn note(&mut self, message: CountedMessage, content: RepeatedContent, lead: Duration) -> bool {
        let key = (content.receiver, message.publisher, message.sequence);
        let is_new = self.early.insert(key, content).is_none();
        if is_new {
            self.lead = self.lead.max(lead);
        }
        is_new
    }

    fn note_regular(&mut self, message: CountedMessage, receiver: u32) {
        if self.early.is_empty() {
            return;
        }
        let Some(content) = self.early.remove(&(receiver, message.publisher, message.sequence)) else {
            return;
        };
        self.contradicted += 1;
        self.later.entry((content.content, receiver)).or_insert_with(|| (content, 0)).1 += 1;
    }

    fn settle(&mut self, receiver: Option<u32>, owed: &mut impl FnMut(&RepeatedContent) -> u64) {
        let is_over = |&(_, own): &(u64, u32)| receiver.is_none_or(|receiver| receiver == own);
        let over: Vec<_> = self.later.keys().filter(|key| is_over(key)).copied().collect();
        for (content, receiver) in over {
            let count = self.later.get(&(content, receiver)).map_or(0, |(content, _)| owed(content));
            self.note_without_delivery(content, receiver, count);
            self.later.remove(&(content, receiver));
        }
    }

    /// So many messages with a content have no delivery to a receiver.
    fn note_without_delivery(&mut self, content: u64, receiver: u32, count: u64) {
        let Some((_, later)) = self.later.get_mut(&(content, receiver)) else { return };
        let shifted = count.min(*later);
        *later -= shifted;
        self.shifted += shifted;
        self.contradicted -= shifted;
    }

    fn holds(&self, message: CountedMessage, receiver: u32) -> bool {
        self.are_proved() && self.early.contains_key(&(receiver, message.publisher, message.sequence))
    }

    fn are_proved(&self) -> bool {
        self.count() > self.contradicted
    }

    fn count(&self) -> u64 {
        self.early.len() as u64 + self.unmatched + self.shifted
    }

    /// What is wrong with the times, by how much, and what to do, where something is.
    fn reason(&self, [fault, remedy]: [&str; 2]) -> Option<String> {
        let (count, lead) = (self.count(), seconds(self.lead));
        if !self.are_proved() {
            return None;
        }
        Some(if self.shifted > 0 {
            format!(
                "{count} deliveries come before a message with their content was published, and as many such messages have no \
                 delivery: either {fault} {lead} s, or messages are in no capture. Which delivery is of which message \
                 cannot be told."
            )
        } else {
            format!(
                "{count} deliveries are earlier than the sending of their messages: {fault} {lead} s. They have no latency. \
                 {remedy}"
            )
        })
    }
}

/// Three digits or more of a number of seconds.
pub fn seconds(length: Duration) -> String {
    let seconds = length.as_ns() as f64 / 1e9;
    let digits = if seconds >= 10.0 {
        1
    } else if seconds >= 0.1 {
        3
    } else {
        6
    };
    let text = format!("{seconds:.digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// In one capture the order of frames that are this near each other may be another one than that of their times. A mirror port and
/// the queues of a card hold frames for less.
pub const DISORDER_MAX: Duration = Duration::from_ms(10);
/// Contents that are remembered.
const GIVEN_UP_MAX: usize = 1 << 16;
