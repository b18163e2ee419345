//! Messages that carry mqttlab's identity in their payload.
//!
//! The identity names publisher and sequence as the run counted them, and the intended time since the run's start.
//! Here publishers become clients of this recording, and sequences of several runs in one capture stay apart. When a
//! run started is not in its messages: the message that was sent most promptly is taken to have been sent at its
//! intended time.

use mqttlab_recording::identity::Identity;
use mqttlab_recording::{NumberMap, NumberSet};
use mqttlab_units::{Instant, RangeSet};

use super::message::{CountedMessage, SeenPublish};

/// Publishers by the numbers of their run.
#[derive(Default)]
pub struct Identities {
    publishers: NumberMap<u32, Publisher>,
    clients: NumberSet<u32>,
    /// Clients that have received messages of this run: only they can be relays.
    heard: NumberSet<u32>,
    /// What the sequences of earlier runs take, by client.
    bases: NumberMap<u32, u32>,
    /// The start of the run on this recording's clock; it may be before its zero.
    start_ns: Option<i128>,
    /// Whether the recording's clock is the run's, so that its zero is the start.
    is_run_s_clock: bool,
}

struct Publisher {
    client: u32,
    connection: u32,
    /// What the sequences of its earlier runs take.
    base: u32,
    highest: u32,
    /// Sequences that were published, from the first one on.
    published: RangeSet,
}

/// What a PUBLISH to the broker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishOrigin {
    /// A message, and when it was intended.
    New(CountedMessage, Instant),
    /// A message that was published before: sent again, or another client's, passed on by a relay.
    Known(CountedMessage),
    /// Not one of ours.
    Foreign,
}

impl Identities {
    /// The recording's clock is the run's: times in messages are right as they are.
    pub fn trust_clock(&mut self) {
        self.is_run_s_clock = true;
    }

    /// Whether a client publishes messages with an identity.
    pub fn knows(&self, client: u32) -> bool {
        self.clients.contains(&client)
    }

    /// A PUBLISH reaches the broker with this identity.
    pub fn published(&mut self, identity: &Identity, publish: &SeenPublish<'_>) -> PublishOrigin {
        let Some(known) = self.publishers.get_mut(&identity.publisher) else {
            return self.first(identity, publish);
        };
        let Some(message) = known.message(identity) else { return PublishOrigin::Foreign };
        let own = known.client == publish.client;
        if own && known.is_next(identity, publish) {
            known.highest = known.highest.max(identity.sequence);
            known.connection = publish.connection;
            known.note(identity.sequence);
            return PublishOrigin::New(message, self.intended(identity, publish.first));
        }
        let another_run =
            if own { known.begins_again(identity, publish) } else { !self.heard.contains(&publish.client) };
        if publish.dup || !another_run {
            return PublishOrigin::Known(message);
        }
        self.begin_again();
        self.add(identity, publish)
    }

    /// Another run: every publisher's count begins again.
    fn begin_again(&mut self) {
        for (_, publisher) in self.publishers.drain() {
            let base = self.bases.entry(publisher.client).or_default();
            *base = publisher.base.saturating_add(publisher.highest).saturating_add(1).max(*base);
        }
        self.heard.clear();
        self.start_ns = None;
    }

    /// The message of an identity.
    pub fn known(&self, identity: &Identity) -> Option<CountedMessage> {
        self.publishers.get(&identity.publisher)?.message(identity)
    }

    /// The message that a PUBLISH from the broker carries to a client.
    pub fn delivered(&mut self, identity: &Identity, client: u32) -> Option<CountedMessage> {
        let message = self.known(identity)?;
        self.heard.insert(client);
        Some(message)
    }

    /// A publisher is believed when its numbers are small: in a foreign binary payload one in 2^15 passes the check of
    /// the identity, and then both numbers are random.
    fn first(&mut self, identity: &Identity, publish: &SeenPublish<'_>) -> PublishOrigin {
        if identity.publisher > PUBLISHER_MAX || identity.sequence > STEP_MAX {
            return PublishOrigin::Foreign;
        }
        self.add(identity, publish)
    }

    fn add(&mut self, identity: &Identity, publish: &SeenPublish<'_>) -> PublishOrigin {
        let SeenPublish { client, connection, .. } = *publish;
        let base = self.bases.get(&client).copied().unwrap_or_default();
        self.clients.insert(client);
        let (highest, published) = (identity.sequence, RangeSet::default());
        let mut publisher = Publisher { client, connection, base, highest, published };
        publisher.note(identity.sequence);
        let message = CountedMessage { publisher: client, sequence: base.saturating_add(identity.sequence) };
        self.publishers.insert(identity.publisher, publisher);
        PublishOrigin::New(message, self.intended(identity, publish.first))
    }

    /// The intended time on this recording's clock: never later than the sending.
    fn intended(&mut self, identity: &Identity, sent: Instant) -> Instant {
        let Some(intended) = identity.intended else { return sent };
        if self.is_run_s_clock {
            return intended.min(sent);
        }
        let since_start = i128::from(intended.as_ns());
        let start = i128::from(sent.as_ns()) - since_start;
        let start = self.start_ns.map_or(start, |known| known.min(start));
        self.start_ns = Some(start);
        Instant::from_ns(u64::try_from(start + since_start).unwrap_or_default())
    }
}

impl Publisher {
    /// The message of an identity whose count is near what has been seen.
    fn message(&self, identity: &Identity) -> Option<CountedMessage> {
        let near = identity.sequence <= self.highest.saturating_add(STEP_MAX);
        let sequence = self.base.saturating_add(identity.sequence);
        near.then_some(CountedMessage { publisher: self.client, sequence })
    }

    /// Whether it is a message that was not published before: the next one, or one that later ones have overtaken. A client
    /// whose window is full holds a message at QoS 1 or 2 back, and sends those at QoS 0.
    fn is_next(&self, identity: &Identity, publish: &SeenPublish<'_>) -> bool {
        let sequence = u64::from(identity.sequence);
        let was_left_out = || {
            let begins = self.published.iter().next().map_or(0, |range| range.start);
            sequence > begins && !self.published.contains(&(sequence..sequence + 1))
        };
        identity.sequence > self.highest || was_left_out() && !self.begins_again(identity, publish)
    }

    fn note(&mut self, sequence: u32) {
        let sequence = u64::from(sequence);
        self.published.insert(sequence..sequence + 1);
        if self.published.len() > LEFT_OUT_MAX {
            // The oldest ones are not expected any more.
            let mut oldest = self.published.iter();
            if let (Some(first), Some(second)) = (oldest.next(), oldest.next()) {
                drop(oldest);
                self.published.insert(first.start..second.end);
            }
        }
    }

    /// Whether a count that was passed before is another run's, and not a message that is sent again.
    fn begins_again(&self, identity: &Identity, publish: &SeenPublish<'_>) -> bool {
        self.connection != publish.connection
            && (identity.sequence == 0 || identity.sequence < self.highest / 2)
    }
}

/// Publishers of a run that are recognised.
const PUBLISHER_MAX: u32 = 1 << 16;
/// So many ranges of sequences are kept apart.
const LEFT_OUT_MAX: usize = 1 << 12;
/// A count begins below this, and advances by less.
const STEP_MAX: u32 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn publish(client: u32, connection: u32, first_ns: u64, dup: bool) -> SeenPublish<'static> {
        let first = Instant::from_ns(first_ns);
        SeenPublish { client, connection, first, dup, ..SeenPublish::example() }
    }

    fn identity(publisher: u32, sequence: u32, intended_ns: u64) -> Identity {
        Identity { publisher, sequence, intended: Some(Instant::from_ns(intended_ns)) }
    }

    #[test]
    fn the_most_prompt_message_says_when_the_run_started() {
        let mut identities = Identities::default();
        let mut intended = |sequence, intended_ns, sent_ns| match identities
            .published(&identity(4, sequence, intended_ns), &publish(0, 0, sent_ns, false))
        {
            PublishOrigin::New(_, at) => at.as_ns(),
            other => panic!("{other:?}"),
        };
        assert_eq!(intended(0, 1_000, 7_000), 7_000);
        assert_eq!(intended(1, 2_000, 7_500), 7_500, "more prompt: the run started at 5500");
        assert_eq!(intended(2, 3_000, 20_000), 8_500);
    }

    #[test]
    fn a_relayed_copy_and_a_repetition_are_the_message_they_carry() {
        let mut identities = Identities::default();
        let message = CountedMessage { publisher: 7, sequence: 3 };
        let first = identities.published(&identity(1, 3, 0), &publish(7, 0, 50, false));
        assert_eq!(first, PublishOrigin::New(message, Instant::from_ns(50)));
        assert_eq!(identities.delivered(&identity(1, 3, 0), 8), Some(message));
        let relayed = identities.published(&identity(1, 3, 0), &publish(8, 1, 60, false));
        let again = identities.published(&identity(1, 3, 0), &publish(7, 2, 70, true));
        assert_eq!([relayed, again], [PublishOrigin::Known(message); 2]);
    }

    #[test]
    fn a_count_that_begins_again_on_another_connection_is_another_run() {
        let mut identities = Identities::default();
        identities.published(&identity(1, 9, 0), &publish(7, 0, 50, false));
        let second = identities.published(&identity(1, 0, 0), &publish(7, 1, 90, false));
        assert_eq!(
            second,
            PublishOrigin::New(CountedMessage { publisher: 7, sequence: 10 }, Instant::from_ns(90))
        );
        let third = identities.published(&identity(1, 0, 0), &publish(9, 2, 95, false));
        assert_eq!(
            third,
            PublishOrigin::New(CountedMessage { publisher: 9, sequence: 0 }, Instant::from_ns(95)),
            "no relay"
        );
    }

    #[test]
    fn a_message_that_later_ones_have_overtaken_is_new() {
        let mut identities = Identities::default();
        let mut is_new = |sequence, connection| {
            let origin = identities.published(&identity(1, sequence, 0), &publish(7, connection, 50, false));
            matches!(origin, PublishOrigin::New(..))
        };
        assert_eq!([265, 267, 266, 266].map(|sequence| is_new(sequence, 0)), [true, true, true, false]);
        assert_eq!([270, 269, 264].map(|sequence| is_new(sequence, 1)), [true, true, false]);
    }

    #[test]
    fn numbers_that_no_run_would_have_are_not_believed() {
        let mut identities = Identities::default();
        let foreign = identity(1 << 20, 5, 0);
        assert_eq!(identities.published(&foreign, &publish(0, 0, 0, false)), PublishOrigin::Foreign);
        identities.published(&identity(1, 0, 0), &publish(0, 0, 0, false));
        assert_eq!(identities.delivered(&identity(1, 1 << 30, 0), 3), None);
    }
}
