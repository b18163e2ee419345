//! Messages on their way out: offered by the schedule, handed to the session, put into the outbox, written,
//! acknowledged.
//!
//! A payload is made when its packet is, and made again when the packet is repeated, so that a session in flight
//! costs a few dozen bytes a message whatever its payload is.

use mqttlab_mqtt::Qos;
use mqttlab_mqtt::client::Input;
use mqttlab_mqtt::encode::{self, PublishFields};
use mqttlab_plan::{IdentityPlace, PayloadMaker};
use mqttlab_recording::identity::{self, Identity};
use mqttlab_recording::{Acknowledged, EventKind, Sent, Unsent};
use mqttlab_units::Instant;

use super::client::{Client, Unwritten};
use super::outbox::Outbox;
use super::pace;
use super::turn::Turn;

impl Client {
    /// Hands over every message that is due. A late one is not skipped.
    pub(super) fn publish_due(&mut self, turn: &mut Turn<'_>) {
        let (mut bytes, mut count) = (0, 0);
        while let Some(due) = self.next_publish(turn) {
            if due > turn.now {
                turn.now = turn.shared.control.now();
                if due > turn.now {
                    break;
                }
            }
            let Some((intended, sequence)) =
                self.arrivals.as_mut().and_then(|arrivals| arrivals.take(turn.now))
            else {
                break;
            };
            let before = self.outbox.end();
            self.offer(turn, intended, sequence);
            bytes += self.outbox.end() - before;
            count += 1;
            // Other clients have their turn; what is left is due already, so that this one comes right again.
            if bytes > BYTES_A_TURN {
                break;
            }
        }
        if self.arrivals.as_ref().is_some_and(|arrivals| arrivals.peek().is_none()) {
            self.stop_publishing(turn);
        }
        let facts = self.facts(turn.shared);
        let window = u32::from(self.plan(turn.shared).mqtt.max_inflight);
        *turn.hurried |= bytes > BYTES_A_TURN || pace::strains(facts.publish_qos, count, window);
    }

    /// When the next message is due. Of a back-to-back client whose session or socket has no room, when publishing
    /// ends.
    pub(super) fn next_publish(&self, turn: &Turn<'_>) -> Option<Instant> {
        let arrivals = self.arrivals.as_ref()?;
        let due = arrivals.peek()?;
        if !arrivals.waits_for_room() {
            return Some(due);
        }
        let room = match self.facts(turn.shared).publish_qos {
            Qos::AtMostOnce => self.session.is_online(),
            _ => self.session.has_room(),
        };
        if room && self.outbox.len() < ROOM { Some(due) } else { Some(arrivals.until()) }
    }

    fn offer(&mut self, turn: &mut Turn<'_>, intended: Instant, sequence: u64) {
        turn.now = turn.shared.control.now();
        let Some(row) = self.row(turn, intended, sequence) else { return };
        turn.shared.control.figures.sender_lateness.count(turn.now.since(intended));
        turn.tally.offered += 1;
        // Taken back by `unsent` when the session does not take it.
        turn.tally.sent += 1;
        turn.tally.expected += u64::from(turn.shared.directory.deliveries(row.topic));
        turn.tally.unacknowledged += i64::from(row.qos > 0);
        let token = self.messages.add(row);
        // The schedule goes on when the client has given up, or is late; nobody takes what it offers then.
        if self.is_gone() || turn.leaving {
            return self.unsent(turn, token);
        }
        self.handle(turn, Input::Publish { token, qos: self.facts(turn.shared).publish_qos });
        // The place is not used again before the next message comes, whatever has become of this one.
        let message = self.messages.get(token);
        if message.refused {
            return;
        }
        // A message that waits in the session is recorded now, because it may wait long.
        if !message.dispatched {
            turn.sink.sent(&message.row);
        }
        // Before the socket gets it, so that nobody can receive what is not yet known.
        if u64::from(row.payload_bytes) < identity::BYTES_MIN as u64 {
            let name = turn.shared.directory.layout().topic_name(row.topic);
            turn.shared.order.sent(name, row.sequence, intended);
        }
    }

    fn row(&self, turn: &Turn<'_>, intended: Instant, sequence: u64) -> Option<Sent> {
        let publish = self.plan(turn.shared).publish.as_ref()?;
        let payloads = self.facts(turn.shared).payloads.as_ref()?;
        let topics = turn.shared.directory.published(self.number);
        Some(Sent {
            publisher: self.number,
            // The recording counts 2^32 messages of one client; at a million a second that is over an hour.
            sequence: sequence as u32,
            topic: topics[(sequence % topics.len() as u64) as usize],
            qos: publish.qos,
            retain: publish.retain,
            payload_bytes: payloads.len(sequence).0 as u32,
            intended,
            sent: turn.now,
            written: None,
        })
    }

    /// Publishing is over for this client. What was due and is still here was offered in vain.
    pub(super) fn stop_publishing(&mut self, turn: &mut Turn<'_>) {
        let Some(mut arrivals) = self.arrivals.take() else { return };
        turn.tally.publishing -= 1;
        if arrivals.waits_for_room() {
            return;
        }
        let now = turn.shared.control.now();
        while let Some((intended, sequence)) = arrivals.take(now) {
            self.offer(turn, intended, sequence);
        }
    }

    /// Republishes what has just arrived.
    pub(super) fn relay(&mut self, turn: &mut Turn<'_>, topic: &str, payload: &[u8]) {
        let Some(relay) = &self.plan(turn.shared).relay else { return };
        // Copies of copies, each with a longer topic, end with the longest topic (MQTT 5 §1.5.4).
        if topic.len() + relay.topic_suffix.len() > usize::from(u16::MAX) {
            return;
        }
        let qos = self.facts(turn.shared).relay_qos;
        let token = self.messages.add_relayed(topic, &relay.topic_suffix, payload);
        turn.tally.unacknowledged += i64::from(qos != Qos::AtMostOnce);
        self.handle(turn, Input::Publish { token, qos });
    }

    /// Puts a PUBLISH into the outbox.
    pub(super) fn send_publish(&mut self, turn: &mut Turn<'_>, token: u64, id: u16, qos: Qos, dup: bool) {
        let facts = self.facts(turn.shared);
        let message = self.messages.get(token);
        let own = (!message.relayed).then_some(()).and(facts.payloads.as_ref());
        let topic = match own {
            Some(_) => turn.shared.directory.layout().topic_name(message.row.topic),
            None => &message.topic,
        };
        let payload_len = own.map_or(message.payload.len(), |_| message.row.payload_bytes as usize);
        let retain = message.row.retain;
        let fields = PublishFields { topic, qos, dup, retain, id, payload_len };
        encode::publish_head(&fields, facts.version, self.outbox.bytes());
        match own {
            Some(payloads) => write_payload(payloads, self.index, &message.row, &mut self.outbox),
            None => self.outbox.bytes().extend_from_slice(&message.payload),
        }
        if own.is_some() && !message.dispatched {
            let row = message.row;
            // What was said when it had to wait is said again, with the time of writing.
            self.unwritten.push_back(Unwritten { end: self.outbox.end(), token, row, said: false });
        }
        message.dispatched = true;
        if qos == Qos::AtMostOnce {
            self.messages.remove(token);
        }
    }

    /// Notes what the socket has taken.
    pub(super) fn note_written(&mut self, turn: &mut Turn<'_>) {
        if self.unwritten.is_empty() {
            return;
        }
        let written = self.outbox.written();
        turn.now = turn.shared.control.now();
        while let Some(message) = self.unwritten.pop_front_if(|message| message.end <= written) {
            turn.sink.sent(&Sent { written: Some(turn.now), ..message.row });
        }
        for message in self.unwritten.iter_mut().rev().take_while(|message| !message.said) {
            turn.sink.sent(&message.row);
            message.said = true;
        }
    }

    /// The connection's stream has ended: what is in the outbox will never be written.
    pub(super) fn forget_stream(&mut self, turn: &mut Turn<'_>) {
        for message in self.unwritten.drain(..) {
            if !message.said {
                turn.sink.sent(&message.row);
            }
            if message.row.qos > 0 {
                self.messages.get(message.token).dispatched = false;
            }
        }
        self.outbox.clear();
        self.incoming.clear();
    }

    /// The last acknowledgement is here.
    pub(super) fn acknowledged(&mut self, turn: &mut Turn<'_>, token: u64) {
        let message = self.messages.get(token);
        if !message.relayed {
            let (publisher, sequence) = (message.row.publisher, message.row.sequence);
            turn.sink.acknowledged(&Acknowledged { publisher, sequence, at: turn.now });
        }
        turn.tally.unacknowledged -= 1;
        self.messages.remove(token);
    }

    /// The broker will not have it.
    pub(super) fn publish_refused(&mut self, turn: &mut Turn<'_>, token: u64) {
        turn.event(EventKind::Refused, self.number, None, "PUBLISH");
        turn.tally.unacknowledged -= 1;
        self.messages.remove(token);
    }

    /// The session did not take it.
    pub(super) fn unsent(&mut self, turn: &mut Turn<'_>, token: u64) {
        let message = self.messages.get(token);
        message.refused = true;
        if message.relayed {
            let qos = self.facts(turn.shared).relay_qos;
            turn.tally.unacknowledged -= i64::from(qos != Qos::AtMostOnce);
        } else {
            let row = message.row;
            turn.tally.sent -= 1;
            turn.tally.expected -= u64::from(turn.shared.directory.deliveries(row.topic));
            turn.tally.unacknowledged -= i64::from(row.qos > 0);
            turn.sink.unsent(&Unsent::from(&row));
        }
        self.messages.remove(token);
    }
}

/// Appends a payload with its identity. Only the beginning of a large one is copied, if all messages share it.
fn write_payload(payloads: &PayloadMaker, client: u32, row: &Sent, outbox: &mut Outbox) {
    let start = outbox.bytes().len();
    let shared = payloads.shared().filter(|content| content.len() >= SHARED_FROM);
    match shared {
        Some(content) => outbox.bytes().extend_from_slice(&content[..identity::BYTES_WITH_TIME]),
        None => payloads.write(client, u64::from(row.sequence), outbox.bytes()),
    }
    let identity =
        Identity { publisher: row.publisher, sequence: row.sequence, intended: Some(row.intended) };
    let payload = &mut outbox.bytes()[start..];
    match payloads.identity_place() {
        // Too small a payload stays as it is: it is told apart by its order.
        IdentityPlace::Start => drop(identity.write(payload)),
        IdentityPlace::Text(at) => identity.write_text(&mut payload[at..at + identity::TEXT_BYTES]),
    }
    if let Some(content) = shared {
        outbox.share(content, identity::BYTES_WITH_TIME);
    }
}

/// A back-to-back client has room for more while less than this waits for its socket.
const ROOM: usize = 64 << 10;
/// A client hands over about this much before others have their turn.
const BYTES_A_TURN: u64 = 64 << 10;
/// From this size on, copying a payload costs more than keeping track of one more piece.
const SHARED_FROM: usize = 16 << 10;
