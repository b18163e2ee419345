//! What packets prove beside deliveries: what was never released, and whose will a delivery is.

use mqttlab_recording::identity;
use mqttlab_units::Instant;

use super::super::message::{CountedMessage, SeenPublish};
use super::{Matcher, UnacknowledgedMessage};

impl Matcher {
    /// A publisher released a packet identifier at QoS 2.
    pub fn released_by(&mut self, client: u32, id: u16, at: Instant) {
        if let Some(outgoing) = self.outgoing.get(&(client, id)) {
            self.causes.released(outgoing.message);
            // A broker may pass a message on as late as this (MQTT 5 §4.3.3).
            if let Some(number) = outgoing.waiting {
                self.waiting.taken_until(number, at);
            }
        }
    }

    /// A client's session is over, except for what the connection carries that began another one: what was not released at QoS 2 in it
    /// will not be.
    pub fn end_session(&mut self, client: u32, but: Option<u32>, at: Instant) {
        let ends = |owner: u32, connection: u32| owner == client && but != Some(connection);
        let outgoing = self.outgoing.iter();
        let sent = outgoing.filter(|((owner, _), outgoing)| ends(*owner, outgoing.connection));
        let own = |outgoing: &UnacknowledgedMessage| outgoing.message.publisher == client;
        let sent = sent.filter(|(_, outgoing)| own(outgoing)).map(|(_, outgoing)| (outgoing.message, None));
        let incoming =
            self.incoming.iter().filter(|((owner, _), delivery)| ends(*owner, delivery.connection));
        let held = incoming.filter(|(_, delivery)| delivery.held.is_some());
        let held = held.filter_map(|(_, delivery)| Some((delivery.message.as_ref()?.message, Some(client))));
        // In an order that does not depend on how they are kept.
        let mut over: Vec<(CountedMessage, Option<u32>)> = sent.chain(held).collect();
        over.sort_unstable_by_key(|(message, whom)| (message.publisher, message.sequence, *whom));
        over.into_iter().for_each(|(message, whom)| self.causes.unreleased(message, whom, at));
        self.causes.session_over(client, at);
        self.settle_clocks(Some(client));
    }

    /// Whose will a delivery is, unless a message with the same content has still to come.
    pub(super) fn will_of(&mut self, publish: &SeenPublish<'_>, since: Instant) -> Option<u32> {
        let client = self.wills.may_be(publish)?;
        let taker = self.subscriptions.taker(publish.client, publish.topic);
        let owes = |server| self.waiting.owes(publish, (taker, since), server);
        if identity::find(publish.head).is_some() || self.servers.of_broker(publish.client).any(owes) {
            return None;
        }
        self.wills.delivered(publish);
        Some(client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mqttlab_mqtt::SubscriptionOptions;
    use mqttlab_recording::Identified;

    use super::super::MatchedRow;

    fn publish(client: u32, (qos, id): (u8, Option<u16>), at_ns: u64) -> SeenPublish<'static> {
        let at = Instant::from_ns(at_ns);
        SeenPublish { client, qos, id, first: at, complete: at, ..SeenPublish::example() }
    }

    fn subscribe(matcher: &mut Matcher, at_ns: u64) {
        let at = Instant::from_ns(at_ns);
        matcher.subscriptions.ask(5, "t", SubscriptionOptions::default(), at);
        matcher.subscriptions.grant(5, "t", at);
    }

    /// Which messages came, and whether that is certain.
    fn delivered(matcher: &mut Matcher, times: &[u64]) -> Vec<(u32, bool)> {
        times.iter().for_each(|&at_ns| {
            matcher.delivered(&publish(5, (0, None), at_ns));
        });
        matcher.finish();
        let rows = std::iter::from_fn(|| matcher.poll());
        let came = rows.filter_map(|row| match row {
            MatchedRow::Received(row) => Some((row.sequence, row.identified != Identified::Ambiguous)),
            _ => None,
        });
        came.collect()
    }

    #[test]
    fn a_message_at_qos_2_may_come_to_whoever_subscribed_before_its_release() {
        for (released, came) in [(true, [(0, true), (1, true)]), (false, [(1, true), (1, false)])] {
            let mut matcher = Matcher::new(true);
            matcher.published(&publish(0, (2, Some(7)), 10));
            subscribe(&mut matcher, 20);
            if released {
                matcher.released_by(0, 7, Instant::from_ns(30));
            }
            matcher.published(&publish(0, (2, Some(8)), 40));
            matcher.released_by(0, 8, Instant::from_ns(50));
            assert_eq!(delivered(&mut matcher, &[60, 61]), came);
        }
    }

    #[test]
    fn a_message_that_is_published_again_may_come_to_whoever_subscribed_in_between() {
        for qos in [1, 2] {
            let mut matcher = Matcher::new(true);
            matcher.published(&publish(0, (qos, Some(7)), 10));
            subscribe(&mut matcher, 20);
            matcher.published(&SeenPublish { dup: true, ..publish(0, (qos, Some(7)), 30) });
            matcher.published(&publish(0, (qos, Some(8)), 40));
            let came = delivered(&mut matcher, &[60, 61]);
            assert_eq!(came.iter().map(|(sequence, _)| *sequence).collect::<Vec<_>>(), [0, 1], "QoS {qos}");
        }
    }

    #[test]
    fn second_copies_are_of_the_messages_that_were_published_again() {
        let mut matcher = Matcher::new(true);
        subscribe(&mut matcher, 0);
        for (id, at_ns) in [(7, 1), (8, 2), (9, 3)] {
            matcher.published(&publish(0, (1, Some(id)), at_ns));
        }
        [10, 11, 12].into_iter().for_each(|at_ns| {
            matcher.delivered(&publish(5, (0, None), at_ns));
        });
        for (id, at_ns) in [(7, 20), (8, 21)] {
            matcher.published(&SeenPublish { dup: true, ..publish(0, (1, Some(id)), at_ns) });
        }
        let came = delivered(&mut matcher, &[30, 31, 32]);
        assert_eq!(came[3..], [(0, false), (1, false), (2, false)], "the last one is explained by nothing");
    }
}
