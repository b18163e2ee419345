//! Messages on their way out of a client: offered by the schedule, handed to the session, put into the stream,
//! written, acknowledged.

use mqttlab_mqtt::Qos;
use mqttlab_mqtt::client::Admission;
use mqttlab_plan::Arrivals;
use mqttlab_recording::{Acknowledged, EventKind, Sent, Unsent};
use mqttlab_units::Instant;

use crate::client::{Client, Outgoing, Unwritten};
use crate::ids::ConnectionId;
use crate::message;
use crate::small_queue;
use crate::stream::Packet;
use crate::surroundings::Surroundings;

impl Client {
    /// It is known when to publish.
    pub(crate) fn begin(&mut self, around: &mut Surroundings<'_>, arrivals: Arrivals) {
        self.arrivals = Some(arrivals);
        self.set_alarm(around);
    }

    /// Hands over every message that is due.
    pub(crate) fn publish_due(&mut self, around: &mut Surroundings<'_>) {
        let mut count = 0;
        while self.next_publish(around).is_some_and(|due| due <= around.now()) {
            let now = around.now();
            let arrivals = self.arrivals.as_mut();
            let Some((intended, sequence)) = arrivals.and_then(|arrivals| arrivals.take(now)) else { break };
            self.offer(around, intended, sequence as u32);
            count += 1;
            // A back-to-back client writes before it makes more.
            if count >= MESSAGES_A_TURN {
                break;
            }
        }
        if self.arrivals.as_ref().is_some_and(|arrivals| arrivals.peek().is_none()) {
            self.stop_publishing(around);
        }
    }

    /// When the next message is due. Of a back-to-back client whose session or socket has no room, when publishing
    /// ends.
    pub(crate) fn next_publish(&self, around: &Surroundings<'_>) -> Option<Instant> {
        let arrivals = self.arrivals.as_ref()?;
        let due = arrivals.peek()?;
        if !arrivals.waits_for_room() {
            return Some(due);
        }
        let room = match around.groups.facts_of(self.id).publish_qos {
            Qos::AtMostOnce => self.session.is_online(),
            _ => self.session.has_room(),
        };
        let waiting = self.connection().map_or(0, |connection| around.waiting(connection));
        if room && waiting < ROOM { Some(due) } else { Some(arrivals.until()) }
    }

    fn offer(&mut self, around: &mut Surroundings<'_>, intended: Instant, sequence: u32) {
        let Some(row) = self.row(around, intended, sequence) else { return };
        let deliveries = around.roster.topics()[row.topic as usize].deliveries;
        around.tally.offered += 1;
        // Taken back by `unsent` when the session does not take it.
        around.tally.sent += 1;
        around.tally.expected += u64::from(deliveries);
        around.tally.unacknowledged += i64::from(row.qos > 0);
        around.conductor.offered(self.id, sequence, intended);
        small_queue::push(&mut self.outgoing, Outgoing { row, recorded: false });
        let token = u64::from(sequence);
        if self.is_gone() || around.is_leaving() {
            return self.unsent(around, token);
        }
        let qos = around.groups.facts_of(self.id).publish_qos;
        if self.publish(around, token, qos) == Admission::Refused {
            return;
        }
        // A message that waits in the session is recorded now, because it may wait long.
        if let Some(last) = self.outgoing.back_mut()
            && last.row.sequence == sequence
            && !std::mem::replace(&mut last.recorded, true)
        {
            let row = last.row;
            around.evidence.message(|recorder| recorder.sent(&row));
        }
    }

    fn row(&self, around: &Surroundings<'_>, intended: Instant, sequence: u32) -> Option<Sent> {
        let publish = around.groups.group_of(self.id).publish.as_ref()?;
        let topics = around.roster.published(self.id.0);
        Some(Sent {
            publisher: self.id.0,
            sequence,
            topic: topics[sequence as usize % topics.len()],
            qos: publish.qos,
            retain: publish.retain,
            payload_bytes: publish.payload.size().0 as u32,
            intended,
            sent: around.now(),
            written: None,
        })
    }

    /// Publishing is over for this client. What was due and is still here was never sent.
    pub(crate) fn stop_publishing(&mut self, around: &mut Surroundings<'_>) {
        let Some(mut arrivals) = self.arrivals.take() else { return };
        if arrivals.waits_for_room() {
            return;
        }
        let now = around.now();
        while let Some((intended, sequence)) = arrivals.take(now) {
            self.offer(around, intended, sequence as u32);
        }
    }

    /// Republishes what has just arrived.
    pub(crate) fn relay(&mut self, around: &mut Surroundings<'_>, message: u64, topic: u32) {
        let Some(relay) = &around.groups.group_of(self.id).relay else { return };
        let copy = format!("{}{}", around.topics.name(topic), relay.topic_suffix);
        if copy.len() > TOPIC_BYTES_MAX {
            return;
        }
        let copy = around.topics.number(around.groups.server_of(self.id), &copy);
        let qos = around.groups.facts_of(self.id).relay_qos;
        let token = RELAYED | self.relayed.add(message, copy);
        around.tally.unacknowledged += i64::from(qos != Qos::AtMostOnce);
        self.publish(around, token, qos);
    }

    /// Puts a PUBLISH into the stream.
    pub(crate) fn send_publish(
        &mut self,
        around: &mut Surroundings<'_>,
        token: u64,
        id: u16,
        qos: Qos,
        dup: bool,
    ) {
        let (message, topic, retain) = if token & RELAYED != 0 {
            let (message, topic) = self.relayed.get(token & !RELAYED);
            (message, topic, false)
        } else {
            let sequence = token as u32;
            let topics = around.roster.published(self.id.0);
            let publish = around.groups.group_of(self.id).publish.as_ref();
            let retain = publish.is_some_and(|publish| publish.retain);
            (message::token(self.id, sequence), topics[sequence as usize % topics.len()], retain)
        };
        let version = around.groups.facts_of(self.id).version;
        let (packet, length) = around.groups.publication(around.topics, (message, topic), qos, id, version);
        let packet = Packet { dup, retain, ..packet };
        let Some(end) = self.append(around, packet, length) else { return };
        if token & RELAYED == 0 {
            self.note_dispatched(token as u32, end);
        } else if qos == Qos::AtMostOnce {
            self.relayed.remove(token & !RELAYED);
        }
    }

    /// The message has left the session for the first time: its time of writing will be known.
    fn note_dispatched(&mut self, sequence: u32, end: u64) {
        let Some(place) = self.outgoing.iter().position(|outgoing| outgoing.row.sequence == sequence) else {
            return;
        };
        if let Some(Outgoing { row, .. }) = self.outgoing.remove(place) {
            small_queue::push(&mut self.unwritten, Unwritten { end, row, recorded: false });
        }
    }

    /// Writes what there is to say to the socket.
    pub(crate) fn flush(&mut self, around: &mut Surroundings<'_>) {
        let Some(connection) = self.connection() else { return };
        if around.write(connection) {
            self.note_written(around, connection);
            around.transmit(connection);
        }
    }

    fn note_written(&mut self, around: &mut Surroundings<'_>, connection: ConnectionId) {
        let accepted = around.accepted(connection);
        let now = around.now();
        while let Some(message) = self.unwritten.pop_front_if(|message| message.end <= accepted) {
            let row = Sent { written: Some(now), ..message.row };
            around.evidence.message(|recorder| recorder.sent(&row));
        }
        for message in self.unwritten.iter_mut().rev().take_while(|message| !message.recorded) {
            around.evidence.message(|recorder| recorder.sent(&message.row));
            message.recorded = true;
        }
    }

    /// The connection's stream has ended: what the socket has not taken will never be written.
    pub(crate) fn forget_stream(&mut self, around: &mut Surroundings<'_>) {
        for message in self.unwritten.drain(..) {
            if !message.recorded {
                around.evidence.message(|recorder| recorder.sent(&message.row));
            }
            if message.row.qos > 0 {
                self.outgoing.push_back(Outgoing { row: message.row, recorded: true });
            }
        }
    }

    /// The last acknowledgement is here.
    pub(crate) fn acknowledged(&mut self, around: &mut Surroundings<'_>, token: u64) {
        if token & RELAYED == 0 {
            let row = Acknowledged { publisher: self.id.0, sequence: token as u32, at: around.now() };
            around.evidence.message(|recorder| recorder.acknowledged(&row));
        } else {
            self.relayed.remove(token & !RELAYED);
        }
        around.tally.unacknowledged -= 1;
    }

    /// The broker will not have it.
    pub(crate) fn refused(&mut self, around: &mut Surroundings<'_>, token: u64) {
        if token & RELAYED != 0 {
            self.relayed.remove(token & !RELAYED);
        }
        around.event(EventKind::Refused, self.id, None, "PUBLISH");
        around.tally.unacknowledged -= 1;
    }

    /// The session did not take it.
    pub(crate) fn unsent(&mut self, around: &mut Surroundings<'_>, token: u64) {
        if token & RELAYED != 0 {
            let qos = around.groups.facts_of(self.id).relay_qos;
            around.tally.unacknowledged -= i64::from(qos != Qos::AtMostOnce);
            self.relayed.remove(token & !RELAYED);
            return;
        }
        let newest = self.outgoing.iter().rposition(|outgoing| u64::from(outgoing.row.sequence) == token);
        let Some(Outgoing { row, .. }) = newest.and_then(|place| self.outgoing.remove(place)) else { return };
        around.tally.sent -= 1;
        around.tally.expected -= u64::from(around.roster.topics()[row.topic as usize].deliveries);
        around.tally.unacknowledged -= i64::from(row.qos > 0);
        around.evidence.message(|recorder| recorder.unsent(&Unsent::from(&row)));
    }
}

/// Marks the token of a message that came from somebody else.
const RELAYED: u64 = 1 << 63;
/// A back-to-back client has room for more while less than this waits for its socket, in bytes.
const ROOM: u64 = 64 << 10;
const MESSAGES_A_TURN: u32 = 1024;

/// The longest topic (MQTT 5 §1.5.4): where copies of copies, each with a longer topic, end.
const TOPIC_BYTES_MAX: usize = 65_535;
