//! Messages without an identity, found again by their content.
//!
//! Equal topic, size and payload, by its digest, make a queue. Where contents differ every queue holds one message, and the content
//! alone decides. Of several messages with one content a receiver gets the next one that it has not had since it subscribed;
//! [`content_order`](super::content_order) says whether that is certain. What was captured in part is compared by its beginning
//! ([`content_parts`](super::content_parts)). Each server has queues of its own.
//!
//! A delivery that is certain shows, too, that earlier messages of the same publisher, topic and QoS will not come any more: they
//! are passed over from then on, in every queue.

mod cut;

use std::collections::VecDeque;

use mqttlab_capture::mqtt::{fold, folded};
use mqttlab_recording::{Identified, NumberMap, NumberSet};
use mqttlab_units::{Duration, Instant};

use super::content_order::{OrderWindow, ReceiverOrder};
use super::content_parts::{ContentParts, PayloadPart};
use super::message::{CountedMessage, SeenPublish};
use super::servers::ServerPlace;

/// Messages that may still be delivered.
#[derive(Default)]
pub struct ContentQueues {
    queues: NumberMap<u64, ContentQueue>,
    /// The messages, oldest first.
    messages: VecDeque<WaitingMessage>,
    /// How many have been forgotten: the number of the oldest one.
    forgotten: u64,
    /// `None` until a payload is met that was captured in part.
    parts: Option<ContentParts>,
    /// By receiver and flow, the number of the first message that may still come.
    passed: NumberMap<(u32, u64), u64>,
    /// Clients of which packets were not captured.
    distrusted: NumberSet<u32>,
    /// What brokers refused, which none delivers.
    refused: NumberSet<(u32, u32)>,
}

/// How a delivery was traced to its message.
#[derive(Clone, Debug)]
pub struct TracedMessage {
    /// The message.
    pub message: CountedMessage,
    /// By what.
    pub identified: Identified,
    /// What it depends on whether the order is certain; `None`: on nothing.
    pub window: Option<OrderWindow>,
    /// Whether it comes while none of several equal messages is owed, and nothing says why: it is a second copy, unless a message
    /// before it was not captured.
    pub is_unexplained: bool,
    /// How many messages with this content were owed before it, and will not come any more.
    pub passed_over: u64,
}

struct WaitingMessage {
    message: CountedMessage,
    at: Instant,
    /// The last time at which its server may have taken it: at QoS 2 with its PUBREL, or when it was published again.
    until: Instant,
    /// Its queue.
    queue: u64,
    /// Its topic and size, at its server.
    family: u64,
    /// Its publisher, topic and QoS: of a flow messages keep their order.
    flow: u64,
    part: PayloadPart,
}

#[derive(Default)]
struct ContentQueue {
    /// How many messages have left at the front.
    gone: u64,
    /// The numbers of the messages.
    numbers: VecDeque<u64>,
    /// The last place whose message is of another flow than the one before it.
    flow_changed: u64,
    /// The last of its messages that were published again at QoS 1, and when: each may be delivered again.
    again: VecDeque<(Instant, u64)>,
    /// How many of these have been forgotten.
    again_gone: u64,
    receivers: Receivers,
}

/// What each receiver has had. Most contents have one receiver, which needs no map.
#[derive(Default)]
struct Receivers {
    first: Option<(u32, ReceiverOrder)>,
    others: NumberMap<u32, ReceiverOrder>,
}

/// What a queue owes to a receiver, by places.
struct Owed {
    /// Behind the last one that it had.
    had: u64,
    /// The first one that was published since it subscribed.
    subscribed: u64,
    /// When that was.
    since: Instant,
    /// The first one that may still come.
    first: u64,
}

/// What is asked of one queue.
struct Asked<'a> {
    publish: &'a SeenPublish<'a>,
    /// Its receiver, or the shared subscription that it is a member of.
    taker: u32,
    since: Instant,
    /// How many second copies of a message the receiver's subscriptions may bring.
    copies_each: &'a dyn Fn() -> u64,
}

impl ContentQueues {
    /// A message reaches a server. Answers its number here.
    pub fn put(&mut self, publish: &SeenPublish<'_>, message: CountedMessage, server: u32) -> u64 {
        let topic = topic_key(publish);
        let (key, family) = (queue(key(publish), server), queue(family_key(topic, publish), server));
        let flow = fold(fold(topic, u64::from(publish.client)), publish.qos.into());
        let number = self.forgotten + self.messages.len() as u64;
        let waiting = &mut self.queues.entry(key).or_default();
        let last = waiting.numbers.back().map(|&last| self.messages[(last - self.forgotten) as usize].flow);
        if last.is_some_and(|last| last != flow) {
            waiting.flow_changed = waiting.gone + waiting.numbers.len() as u64;
        }
        waiting.numbers.push_back(number);
        let (at, part) = (publish.complete, PayloadPart::from(publish));
        self.messages.push_back(WaitingMessage { message, at, until: at, queue: key, family, flow, part });
        if let Some(parts) = &mut self.parts {
            parts.put(family, number);
        } else if !publish.is_whole {
            self.compare_parts();
        }
        if self.messages.len() > WAITING_MAX {
            self.forget_oldest();
        }
        number
    }

    /// The server may have taken a message as late as this: the one of this number, and the same one under another topic behind it.
    pub fn taken_until(&mut self, number: u64, at: Instant) {
        let Some(first) = number.checked_sub(self.forgotten) else { return };
        let Some(message) = self.messages.get(first as usize).map(|waiting| waiting.message) else { return };
        let same = self.messages.range_mut(first as usize..).take(2).filter(|other| other.message == message);
        same.for_each(|waiting| waiting.until = waiting.until.max(at));
    }

    /// Packets of a client were not captured: its equal messages cannot be told apart by counting.
    pub fn distrust(&mut self, client: u32) {
        self.distrusted.insert(client);
    }

    /// A broker refused a message.
    pub fn refuse(&mut self, message: CountedMessage) {
        self.refused.insert((message.publisher, message.sequence));
    }

    /// A client publishes the message of this number again: its server may take it only now, and at QoS 1 it may deliver it again, as a
    /// message that is owed or later.
    pub fn publish_again(&mut self, publish: &SeenPublish<'_>, number: u64) {
        self.taken_until(number, publish.complete);
        let first = number.checked_sub(self.forgotten);
        let waiting = first.and_then(|place| self.messages.get(place as usize));
        let Some(queue) = waiting.and_then(|waiting| self.queues.get_mut(&waiting.queue)) else { return };
        if publish.qos == 1
            && let Ok(place) = queue.numbers.binary_search(&number)
        {
            queue.again.push_back((publish.complete, queue.gone + place as u64));
            if queue.again.len() > AGAIN_MAX {
                queue.again.pop_front();
                queue.again_gone += 1;
            }
        }
    }

    /// Whether equal messages from one client to another can be told apart by counting.
    pub fn trusts(&self, publisher: u32, subscriber: u32) -> bool {
        ![publisher, subscriber].iter().any(|client| self.distrusted.contains(client))
    }

    /// The message that a client publishes to a server again, and its number.
    pub fn again(&self, publish: &SeenPublish<'_>, server: u32) -> Option<(CountedMessage, u64)> {
        let last = *self.queues.get(&queue(key(publish), server))?.numbers.back()?;
        let message = self.message(last).message;
        (message.publisher == publish.client).then_some((message, last))
    }

    /// The message that a client receives, which has been subscribed since then: one that was published to its server, the
    /// first of these, else one of another server's: of the same broker any, but which of several is never certain; of any other
    /// one whose content tells it apart and which was published a moment ago.
    ///
    /// `taker` has had what it was matched before: the client, or the members of a shared subscription together
    /// ([`taker_of_share`]).
    pub fn match_delivery(
        &mut self,
        publish: &SeenPublish<'_>,
        (taker, since): (u32, Instant),
        copies_each: &dyn Fn() -> u64,
        mut servers: impl Iterator<Item = (u32, ServerPlace)>,
    ) -> Option<TracedMessage> {
        let key = key(publish);
        let asked = Asked { publish, taker, since, copies_each };
        let mut again = None;
        while let Some((server, at)) = servers.next() {
            let whole = publish.is_whole;
            let part = if whole { None } else { self.match_part(&asked, (server, at)) };
            let found = part.or_else(|| self.match_at(&asked, (queue(key, server), at)));
            match found.or_else(|| if whole { self.match_part(&asked, (server, at)) } else { None }) {
                // Another listener of the broker may have got the same one, and which one comes first is the broker's affair.
                Some((traced, false)) => {
                    let mut others = servers.filter(|(_, at)| *at == ServerPlace::SameBroker);
                    let is_told = !others.any(|(server, _)| self.owes(publish, (taker, since), server));
                    let identified = if is_told { traced.identified } else { Identified::Ambiguous };
                    return Some(TracedMessage { identified, ..traced });
                }
                Some((traced, true)) => again = again.or(Some(traced)),
                None => {}
            }
        }
        again
    }

    /// Whether a client has still to get a message with this content from its server; of the store any may come.
    pub fn owes(&self, publish: &SeenPublish<'_>, (taker, since): (u32, Instant), server: u32) -> bool {
        let Some(queue) = self.queues.get(&queue(key(publish), server)) else { return false };
        publish.retain || self.owed_by(queue, taker, since).first < queue.end()
    }

    /// How many messages with a content a client has still to get from a server.
    pub fn count_owed(&self, content: u64, (taker, since): (u32, Instant), server: u32) -> u64 {
        let Some(queue) = self.queues.get(&queue(content, server)) else { return 0 };
        let owed = self.owed_by(queue, taker, since);
        (owed.first..queue.end()).filter(|&place| !self.is_before(queue, place, &owed)).count() as u64
    }

    /// What a queue owes to a receiver.
    fn owed_by(&self, queue: &ContentQueue, taker: u32, since: Instant) -> Owed {
        let had = queue.receivers.next(taker);
        let subscribed =
            queue.gone + queue.numbers.partition_point(|&number| self.message(number).at < since) as u64;
        let mut owed = Owed { had, subscribed, since, first: had.max(subscribed) };
        // Those that the server may have taken later than they were first published.
        let from = had.max(queue.gone).max(subscribed.saturating_sub(TAKEN_LATE_MAX));
        if let Some(late) = (from..subscribed).find(|&place| !self.is_before(queue, place, &owed)) {
            owed.first = late;
        }
        owed
    }

    /// Whether the server had the message at a place for certain before its receiver subscribed.
    fn is_before(&self, queue: &ContentQueue, place: u64, owed: &Owed) -> bool {
        place < owed.subscribed && self.at_place(queue, place).1.until < owed.since
    }

    /// The number and the message at a place of a queue.
    fn at_place(&self, queue: &ContentQueue, place: u64) -> (u64, &WaitingMessage) {
        let number = queue.numbers[(place - queue.gone) as usize];
        (number, self.message(number))
    }

    /// What one queue has for a client, and whether it had it before.
    fn match_at(
        &mut self,
        asked: &Asked<'_>,
        (key, at): (u64, ServerPlace),
    ) -> Option<(TracedMessage, bool)> {
        let (publish, taker) = (asked.publish, asked.taker);
        let queue = self.queues.get(&key)?;
        let end = queue.end();
        let (_, last) = self.at_place(queue, end - 1);
        let only = end == 1 && publish.is_whole;
        let identified = if only { Identified::Payload } else { Identified::Order };
        let is_distrusted =
            [publish.client, last.message.publisher].iter().any(|client| self.distrusted.contains(client));
        if !only && is_distrusted {
            return None;
        }
        if at == ServerPlace::Elsewhere && !(only && publish.is_told_by_content(last)) {
            return None;
        }
        // How a broker orders the messages of its listeners nobody can tell.
        let is_across = at != ServerPlace::Own && !only;
        // A retained message is the last of its topic, whoever has had it.
        if publish.retain {
            let identified = if is_across { Identified::Ambiguous } else { identified };
            return Some((TracedMessage::certain(last.message, identified), false));
        }
        let mut owed = self.owed_by(queue, taker, asked.since);
        // The server takes messages and subscriptions in an order of its own. A content that came once tells the message.
        if only && owed.had == 0 && !is_distrusted && publish.is_told_by_content(last) {
            owed.first = 0;
        }
        if owed.first >= end {
            return self.match_again(asked, key, &owed).map(|traced| (traced, true));
        }
        let passed = |place: &u64| {
            let (number, waiting) = self.at_place(queue, *place);
            let CountedMessage { publisher, sequence } = waiting.message;
            self.is_before(queue, *place, &owed)
                || self.passed.get(&(publish.client, waiting.flow)).is_some_and(|&first| number < first)
                || self.refused.contains(&(publisher, sequence))
        };
        // What comes although it was passed over was not.
        let place = (owed.first..end).find(|place| !passed(place)).unwrap_or(owed.first);
        let before =
            (place..owed.subscribed).filter(|&place| self.is_before(queue, place, &owed)).count() as u64;
        let left = end - place - before;
        let skipped = (owed.first..place).filter(|&place| !self.is_before(queue, place, &owed));
        let passed_over = skipped.count() as u64;
        let (number, found) = self.at_place(queue, place);
        let (message, flow) = (found.message, found.flow);
        // Members of a shared subscription get messages in no order that is promised.
        let is_shared = taker != publish.client;
        let is_mixed = is_across || queue.flow_changed > place || (is_shared && left > 1);
        // What comes may be a second copy, where there are several messages.
        let is_again = !only && queue.again.back().is_some_and(|(again, _)| publish.is_soon_after(*again));
        let queue = self.queues.get_mut(&key)?;
        let window = queue.receivers.of(taker).take(place, left, is_mixed || is_again);
        if window.is_none() && !publish.dup && !is_shared {
            self.pass_over(publish.client, flow, number);
        }
        Some((TracedMessage { window, passed_over, ..TracedMessage::certain(message, identified) }, false))
    }

    /// What comes while nothing is owed: a message for the second time.
    fn match_again(&mut self, asked: &Asked<'_>, key: u64, owed: &Owed) -> Option<TracedMessage> {
        let publish = asked.publish;
        let queue = self.queues.get_mut(&key)?;
        let only = queue.end() == 1;
        if !publish.is_whole || owed.had <= owed.subscribed {
            return None;
        }
        let order = queue.receivers.of(asked.taker);
        // One that was published again, in the order of that; else the last one that came.
        let from = order.repeats.max(queue.again_gone);
        let again = (queue.again_gone..).zip(&queue.again).skip((from - queue.again_gone) as usize);
        let had = queue.gone..owed.had;
        let mut again = again
            .filter(|(_, (at, place))| publish.is_soon_after(*at) && had.contains(place) && !publish.dup);
        let repeated = again.next().map(|(nth, &(_, place))| (nth, place));
        order.repeats = repeated.map_or(order.repeats, |(nth, _)| nth + 1);
        let place = repeated.map_or(owed.had - 1, |(_, place)| place);
        let copies_each = (asked.copies_each)();
        let window = order.copy(copies_each);
        let number = *queue.numbers.get(place.checked_sub(queue.gone)? as usize)?;
        // Of several which one it is nobody can tell.
        let identified = match only {
            true => Identified::Payload,
            false if copies_each > 0 => Identified::Order,
            false => Identified::Ambiguous,
        };
        let is_unexplained = copies_each == 0 && !publish.dup && repeated.is_none();
        let message = self.message(number).message;
        Some(TracedMessage { is_unexplained, window, ..TracedMessage::certain(message, identified) })
    }

    /// A message came to a receiver: those of its flow before it will not come any more.
    fn pass_over(&mut self, client: u32, flow: u64, number: u64) {
        if self.passed.len() > FLOWS_MAX {
            self.passed.clear();
        }
        let first = self.passed.entry((client, flow)).or_default();
        *first = (*first).max(number);
    }

    fn message(&self, number: u64) -> &WaitingMessage {
        &self.messages[(number - self.forgotten) as usize]
    }

    fn forget_oldest(&mut self) {
        let Some(oldest) = self.messages.pop_front() else { return };
        self.forgotten += 1;
        if let Some(parts) = &mut self.parts {
            parts.forget_oldest(oldest.family);
        }
        if let Some(queue) = self.queues.get_mut(&oldest.queue) {
            queue.numbers.pop_front();
            queue.gone += 1;
            if queue.numbers.is_empty() {
                self.queues.remove(&oldest.queue);
            }
        }
    }
}

impl TracedMessage {
    /// A message that is certain.
    pub fn certain(message: CountedMessage, identified: Identified) -> TracedMessage {
        TracedMessage { message, identified, window: None, is_unexplained: false, passed_over: 0 }
    }
}

impl SeenPublish<'_> {
    /// Whether its content tells that it is this message, of another server or of before its subscription.
    fn is_told_by_content(&self, waiting: &WaitingMessage) -> bool {
        self.retain || [waiting.at, waiting.until].iter().any(|&at| self.is_soon_after(at))
    }

    /// Whether it came a moment after this.
    fn is_soon_after(&self, at: Instant) -> bool {
        self.complete.checked_since(at).is_some_and(|passed| passed < PASSED_ON_WITHIN)
    }
}

impl Receivers {
    fn of(&mut self, client: u32) -> &mut ReceiverOrder {
        let (first, order) = self.first.get_or_insert_with(|| (client, ReceiverOrder::default()));
        if *first == client { order } else { self.others.entry(client).or_default() }
    }

    /// The place of a receiver's next message.
    fn next(&self, client: u32) -> u64 {
        match &self.first {
            Some((first, order)) if *first == client => order.next,
            _ => self.others.get(&client).map_or(0, |order| order.next),
        }
    }
}

impl ContentQueue {
    /// The place of the next message, counted from the first ever.
    fn end(&self) -> u64 {
        self.gone + self.numbers.len() as u64
    }
}

/// Who takes the messages of a shared subscription: numbers of clients count from the other end.
pub fn taker_of_share(share: u32) -> u32 {
    u32::MAX - share
}

/// What copies of a message have in common.
pub fn key(publish: &SeenPublish<'_>) -> u64 {
    let family = family_key(topic_key(publish), publish);
    // What was captured in part is no whole payload.
    let whole = fold(publish.rest.digest, u64::from(publish.rest.captured));
    fold(folded(family, publish.head), whole)
}

fn topic_key(publish: &SeenPublish<'_>) -> u64 {
    folded(0, publish.topic.as_bytes())
}

fn family_key(topic: u64, publish: &SeenPublish<'_>) -> u64 {
    fold(topic, publish.payload_bytes.into())
}

/// The queue of a content at a server.
fn queue(key: u64, server: u32) -> u64 {
    // Of one server the key stays as it is; those of others are spread by the golden ratio.
    key.wrapping_add(u64::from(server).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// The members of a cluster pass a message on within this.
const PASSED_ON_WITHIN: Duration = Duration::from_s(10);
/// Messages before a subscription that are looked through for those that the server took late.
const TAKEN_LATE_MAX: u64 = 1 << 10;
/// Repetitions of a content that are remembered.
const AGAIN_MAX: usize = 1 << 10;
/// Messages that are remembered, some 50 MiB of them; the oldest is forgotten first.
const WAITING_MAX: usize = 1 << 16;
/// Flows to receivers of which is remembered what was passed over.
const FLOWS_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;
    use mqttlab_capture::mqtt::PayloadRest;

    pub(super) fn copy(client: u32, head: &'static [u8], complete_ns: u64) -> SeenPublish<'static> {
        let (complete, rest) = (Instant::from_ns(complete_ns), PayloadRest::of(head));
        SeenPublish { client, head, rest, complete, ..SeenPublish::example() }
    }

    pub(super) fn message(sequence: u32) -> CountedMessage {
        CountedMessage { publisher: 0, sequence }
    }

    fn own_server() -> impl Iterator<Item = (u32, ServerPlace)> {
        std::iter::once((0, ServerPlace::Own))
    }

    fn taken(
        waiting: &mut ContentQueues,
        client: u32,
        head: &'static [u8],
        since_ns: u64,
    ) -> Option<(u32, Identified)> {
        matched(waiting, &copy(client, head, 99), since_ns)
    }

    pub(super) fn matched(
        waiting: &mut ContentQueues,
        publish: &SeenPublish<'_>,
        since_ns: u64,
    ) -> Option<(u32, Identified)> {
        let asked = (publish.client, Instant::from_ns(since_ns));
        let taken = waiting.match_delivery(publish, asked, &|| 0, own_server());
        taken.map(|taken| (taken.message.sequence, taken.identified))
    }

    #[test]
    fn different_contents_are_found_in_any_order_and_a_second_copy_is_the_same_message() {
        let mut waiting = ContentQueues::default();
        waiting.put(&copy(0, b"a", 1), message(0), 0);
        waiting.put(&copy(0, b"b", 2), message(1), 0);
        assert_eq!(taken(&mut waiting, 5, b"b", 0), Some((1, Identified::Payload)));
        assert_eq!(taken(&mut waiting, 5, b"a", 0), Some((0, Identified::Payload)));
        assert_eq!(taken(&mut waiting, 5, b"a", 0), Some((0, Identified::Payload)));
        assert_eq!(taken(&mut waiting, 5, b"c", 0), None);
    }

    #[test]
    fn a_message_before_a_subscription_is_delivered_once_where_its_content_tells_it() {
        let mut waiting = ContentQueues::default();
        for (sequence, head, at_ns) in [(0, b"a", 1), (1, b"x", 2), (2, b"x", 3)] {
            waiting.put(&copy(0, head, at_ns), message(sequence), 0);
        }
        assert_eq!(
            taken(&mut waiting, 5, b"a", 50),
            Some((0, Identified::Payload)),
            "at QoS 2, released later"
        );
        assert_eq!(taken(&mut waiting, 5, b"a", 50), None, "no second copy");
        assert_eq!(taken(&mut waiting, 5, b"x", 50), None, "one of two");
        waiting.put(&copy(0, b"b", 1), message(3), 0);
        let late = copy(5, b"b", 11_000_000_000);
        assert_eq!(matched(&mut waiting, &late, 10_000_000_000), None, "long ago");
        waiting.distrust(6);
        assert_eq!(taken(&mut waiting, 6, b"a", 50), None, "another one may be missing");
    }

    #[test]
    fn equal_contents_are_told_apart_by_their_order_since_the_receiver_subscribed() {
        let mut waiting = ContentQueues::default();
        for sequence in 0..4 {
            waiting.put(&copy(0, b"x", u64::from(sequence)), message(sequence), 0);
        }
        let mut next = |client, since| taken(&mut waiting, client, b"x", since).map(|(sequence, _)| sequence);
        assert_eq!(
            [next(5, 0), next(5, 0), next(6, 3), next(6, 3)],
            [Some(0), Some(1), Some(3), Some(3)],
            "the last one twice"
        );
        assert_eq!(next(5, 3), Some(3), "it has subscribed again");
    }

    #[test]
    fn a_message_that_came_shows_that_those_before_it_will_not() {
        let mut waiting = ContentQueues::default();
        for (sequence, head) in [(0, b"x"), (1, b"y"), (2, b"x"), (3, b"x")] {
            waiting.put(&copy(0, head, u64::from(sequence)), message(sequence), 0);
        }
        assert_eq!(taken(&mut waiting, 5, b"y", 0), Some((1, Identified::Payload)));
        assert_eq!(taken(&mut waiting, 5, b"x", 0), Some((2, Identified::Order)), "the first one is lost");
        assert_eq!(taken(&mut waiting, 6, b"x", 0), Some((0, Identified::Order)), "not for another receiver");
    }

    #[test]
    fn members_of_a_shared_subscription_have_one_of_equal_messages_between_them() {
        let mut waiting = ContentQueues::default();
        let share = taker_of_share(0);
        let take = |waiting: &mut ContentQueues, client| {
            let traced =
                waiting.match_delivery(&copy(client, b"x", 9), (share, Instant::ZERO), &|| 0, own_server());
            traced.map(|traced| {
                (traced.message.sequence, traced.window.is_none_or(|window| window.is_certain()))
            })
        };
        waiting.put(&copy(0, b"x", 1), message(0), 0);
        assert_eq!(take(&mut waiting, 5), Some((0, true)));
        waiting.put(&copy(0, b"x", 2), message(1), 0);
        assert_eq!(take(&mut waiting, 6), Some((1, true)), "not the first one again");
        waiting.put(&copy(0, b"x", 3), message(2), 0);
        waiting.put(&copy(0, b"x", 4), message(3), 0);
        assert_eq!(take(&mut waiting, 6), Some((2, false)), "it may be the one or the other");
        assert_eq!(take(&mut waiting, 5), Some((3, false)));
        waiting.put(&copy(0, b"x", 5), message(4), 0);
        assert_eq!(take(&mut waiting, 5), Some((4, true)));
    }

    #[test]
    fn after_a_repetition_at_qos_1_what_comes_may_be_a_second_copy() {
        let mut waiting = ContentQueues::default();
        let put = |waiting: &mut ContentQueues, sequence: u32| {
            waiting.put(&copy(0, b"x", sequence.into()), message(sequence), 0);
        };
        let take = |waiting: &mut ContentQueues, at_ns| {
            let asked = (5, Instant::ZERO);
            let traced = waiting.match_delivery(&copy(5, b"x", at_ns), asked, &|| 0, own_server());
            traced.is_some_and(|traced| traced.window.is_none_or(|window| window.is_certain()))
        };
        put(&mut waiting, 0);
        assert!(take(&mut waiting, 5));
        waiting.publish_again(&SeenPublish { dup: true, qos: 1, ..copy(0, b"x", 6) }, 0);
        put(&mut waiting, 1);
        assert!(!take(&mut waiting, 7), "message 0 again, or message 1");
        put(&mut waiting, 2);
        assert!(take(&mut waiting, 11_000_000_000), "long after");
    }

    #[test]
    fn a_retained_message_is_the_last_one() {
        let mut waiting = ContentQueues::default();
        waiting.put(&copy(0, b"x", 1), message(0), 0);
        waiting.put(&copy(0, b"x", 2), message(1), 0);
        let retained = SeenPublish { retain: true, ..copy(5, b"x", 9) };
        assert_eq!(matched(&mut waiting, &retained, 0), Some((1, Identified::Order)));
    }

    #[test]
    fn a_message_of_another_server_is_one_only_where_its_content_tells_it_apart() {
        let mut waiting = ContentQueues::default();
        let take = |waiting: &mut ContentQueues, publish: SeenPublish<'_>| {
            let asked = (publish.client, Instant::ZERO);
            let taken = waiting.match_delivery(
                &publish,
                asked,
                &|| 0,
                [(1, ServerPlace::Own), (0, ServerPlace::Elsewhere)].into_iter(),
            );
            taken.map(|taken| (taken.message.sequence, taken.identified))
        };
        waiting.put(&copy(0, b"x", 1), message(0), 0);
        waiting.put(&copy(0, b"x", 1), message(1), 1);
        assert_eq!(
            take(&mut waiting, copy(5, b"x", 9)),
            Some((1, Identified::Payload)),
            "its own server first"
        );
        assert_eq!(take(&mut waiting, copy(5, b"x", 9)), Some((0, Identified::Payload)));
        assert_eq!(take(&mut waiting, copy(5, b"x", 9)), Some((1, Identified::Payload)), "a second copy");
        waiting.put(&copy(0, b"x", 1), message(2), 0);
        assert_eq!(take(&mut waiting, copy(6, b"x", 9)), Some((1, Identified::Payload)));
        assert_eq!(
            take(&mut waiting, copy(6, b"x", 9)),
            Some((1, Identified::Payload)),
            "not the first of two"
        );
        waiting.put(&copy(0, b"y", 1), message(3), 0);
        let late = SeenPublish { complete: Instant::from_ns(11_000_000_000), ..copy(5, b"y", 9) };
        assert_eq!(take(&mut waiting, late), None);
        assert_eq!(take(&mut waiting, SeenPublish { retain: true, ..late }), Some((3, Identified::Payload)));
    }

    #[test]
    fn a_message_of_another_listener_of_the_broker_is_found_and_of_several_alike_which_one_is_not_certain() {
        let mut waiting = ContentQueues::default();
        let take = |waiting: &mut ContentQueues, publish: SeenPublish<'_>| {
            let servers = [(1, ServerPlace::Own), (0, ServerPlace::SameBroker)];
            let asked = (publish.client, Instant::ZERO);
            let traced = waiting.match_delivery(&publish, asked, &|| 0, servers.into_iter())?;
            let is_certain = traced.window.is_none_or(|window| window.is_certain());
            Some((traced.message.sequence, is_certain && traced.identified != Identified::Ambiguous))
        };
        waiting.put(&copy(0, b"x", 1), message(0), 0);
        let late = SeenPublish { complete: Instant::from_ns(11_000_000_000), ..copy(5, b"x", 9) };
        assert_eq!(take(&mut waiting, late), Some((0, true)), "however late");
        waiting.put(&copy(0, b"x", 20), message(1), 0);
        assert_eq!(take(&mut waiting, copy(5, b"x", 29)), Some((1, false)));
        waiting.put(&copy(0, b"x", 30), message(2), 0);
        waiting.put(&copy(0, b"x", 31), message(3), 0);
        assert_eq!(take(&mut waiting, copy(5, b"x", 39)), Some((2, false)));
        assert_eq!(take(&mut waiting, copy(5, b"x", 39)), Some((3, false)));
        let retained = SeenPublish { retain: true, ..copy(6, b"x", 39) };
        assert_eq!(take(&mut waiting, retained), Some((3, false)));
        waiting.put(&copy(0, b"x", 40), message(4), 1);
        assert_eq!(
            take(&mut waiting, copy(5, b"x", 49)),
            Some((4, true)),
            "its own listener's, and nothing else is owed"
        );
        assert_eq!(
            take(&mut waiting, copy(6, b"x", 49)),
            Some((4, false)),
            "of both listeners some are owed"
        );
        waiting.distrust(7);
        assert_eq!(take(&mut waiting, copy(7, b"x", 49)), Some((4, false)));
        assert_eq!(take(&mut waiting, copy(8, b"y", 49)), None);
    }
}
