//! What packets prove beside deliveries: what was never released, and whose will a delivery is.

use mqttlab_recording::identity;
use mqttlab_units::Instant;

use super::super::message::{CountedMessage, SeenPublish};
use super::{Matcher, UnacknowledgedMessage};

impl Matcher {
    /// A publisher released a packet identifier at QoS 2.
    pub fn released_by(&mut self, client: u32, id: u16) {
        if let Some(outgoing) = self.outgoing.get(&(client, id)) {
            self.causes.released(outgoing.message);
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
    }

    /// Whose will a delivery is, unless a message with the same content has still to come.
    pub(super) fn will_of(&mut self, publish: &SeenPublish<'_>, since: Instant) -> Option<u32> {
        let client = self.wills.may_be(publish)?;
        let server = self.servers.of(publish.client);
        let taker = self.subscriptions.taker(publish.client, publish.topic);
        if identity::find(publish.head).is_some() || self.waiting.owes(publish, (taker, since), server) {
            return None;
        }
        self.wills.delivered(publish);
        Some(client)
    }
}
