//! Messages that were captured in part, found again by the beginning of their payload.

use mqttlab_recording::Identified;

use super::super::content_parts::{ContentParts, PayloadPart};
use super::super::servers::ServerPlace;
use super::{Asked, ContentQueues, TracedMessage, family_key, queue, topic_key};

impl ContentQueues {
    /// The only message that a part of a payload fits, and whether its receiver had it before.
    pub(super) fn match_part(
        &mut self,
        asked: &Asked<'_>,
        (server, at): (u32, ServerPlace),
    ) -> Option<(TracedMessage, bool)> {
        let publish = asked.publish;
        // What stands for a topic that was not captured is none, and a few bytes tell nothing.
        if publish.topic.is_empty() || publish.rest.captured < PART_LEAST {
            return None;
        }
        if self.parts.is_none() {
            if publish.is_whole {
                return None;
            }
            self.compare_parts();
        }
        let family = queue(family_key(topic_key(publish), publish), server);
        let known = |number: u64| {
            let message = self.message(number);
            (message.at >= asked.since || publish.retain).then_some(&message.part)
        };
        let part = PayloadPart::from(publish);
        let number = self.parts.as_ref()?.find(family, &part, publish.retain, known)?;
        let found = self.message(number);
        if at == ServerPlace::Elsewhere && !publish.is_told_by_content(found) {
            return None;
        }
        let (message, key) = (found.message, found.queue);
        let queue = self.queues.get_mut(&key)?;
        let place = queue.gone + queue.numbers.binary_search(&number).ok()? as u64;
        let order = queue.receivers.of(asked.taker);
        let again = order.next > place && !publish.retain;
        order.next = order.next.max(place + u64::from(!publish.retain));
        Some((TracedMessage::certain(message, Identified::Payload), again))
    }

    /// Payloads are compared by their beginnings from now on.
    pub(super) fn compare_parts(&mut self) {
        let mut parts = ContentParts::default();
        for (number, message) in (self.forgotten..).zip(&self.messages) {
            parts.put(message.family, number);
        }
        self.parts = Some(parts);
    }
}

/// The least that must be captured of a payload to tell its message by.
const PART_LEAST: u32 = 16;

#[cfg(test)]
mod tests {
    use super::super::super::message::SeenPublish;
    use super::super::tests::{copy, matched, message};
    use super::*;

    #[test]
    fn what_was_cut_tells_nothing_by_its_content_and_is_not_counted_where_more_may_be_missing() {
        let mut waiting = ContentQueues::default();
        let cut = |client| SeenPublish { is_whole: false, ..copy(client, b"", 1) };
        waiting.put(&cut(0), message(0), 0);
        waiting.distrust(5);
        assert_eq!(matched(&mut waiting, &cut(5), 0), None);
        assert_eq!(matched(&mut waiting, &cut(6), 0), Some((0, Identified::Order)));
        assert_eq!(matched(&mut waiting, &cut(6), 0), None, "nobody knows that it came twice");
    }

    #[test]
    fn a_part_is_the_only_message_that_it_fits_whichever_of_both_was_cut() {
        let whole = |head: &'static [u8]| SeenPublish { payload_bytes: 60, ..copy(0, head, 1) };
        let cut = |head| SeenPublish { is_whole: false, ..whole(head) };
        let (first, second) =
            (b"the same beginning, then 1 and more", b"the same beginning, then 2 and more");
        let mut waiting = ContentQueues::default();
        waiting.put(&whole(first), message(0), 0);
        waiting.put(&cut(&second[..30]), message(1), 0);
        assert_eq!(matched(&mut waiting, &cut(&first[..28]), 0), Some((0, Identified::Payload)));
        assert_eq!(matched(&mut waiting, &whole(second), 0), Some((1, Identified::Payload)));
        assert_eq!(matched(&mut waiting, &cut(&first[..20]), 0), None, "both begin so");
        assert_eq!(matched(&mut waiting, &cut(&first[..10]), 0), None, "too short");
    }
}
