//! Messages on their way out of a client: offered by the schedule, handed to the session, put into the stream,
//! written, acknowledged.

use mqttlab_mqtt::Qos;
use mqttlab_mqtt::client::Admission;
use mqttlab_recording::{Acknowledged, EventKind, Sent, Unsent};
use mqttlab_units::Instant;

use crate::client::{Outgoing, Unwritten};
use crate::connection::Side;
use crate::few;
use crate::message;
use crate::stream::Packet;
use crate::world::World;

impl World {
    /// Hands over every message that is due.
    pub(crate) fn publish_due(&mut self, number: u32) {
        let mut count = 0;
        while self.next_publish(number).is_some_and(|due| due <= self.now) {
            let now = self.now;
            let arrivals = self.clients[number as usize].arrivals.as_mut();
            let Some((intended, sequence)) = arrivals.and_then(|arrivals| arrivals.take(now)) else { break };
            self.offer(number, intended, sequence as u32);
            count += 1;
            // A back-to-back client writes before it makes more.
            if count >= MESSAGES_A_TURN {
                break;
            }
        }
        let arrivals = self.clients[number as usize].arrivals.as_ref();
        if arrivals.is_some_and(|arrivals| arrivals.peek().is_none()) {
            self.stop_publishing(number);
        }
    }

    /// When the next message is due. Of a back-to-back client whose session or socket has no room, when publishing
    /// ends.
    pub(crate) fn next_publish(&self, number: u32) -> Option<Instant> {
        let client = &self.clients[number as usize];
        let arrivals = client.arrivals.as_ref()?;
        let due = arrivals.peek()?;
        if !arrivals.waits_for_room() {
            return Some(due);
        }
        let room = match self.groups[client.group as usize].publish_qos {
            Qos::AtMostOnce => client.session.is_online(),
            _ => client.session.has_room(),
        };
        let waiting = client.connection().map_or(0, |connection| {
            self.connections.peek(connection).streams[Side::Client as usize].waiting()
        });
        if room && waiting < ROOM { Some(due) } else { Some(arrivals.until()) }
    }

    fn offer(&mut self, number: u32, intended: Instant, sequence: u32) {
        let Some(row) = self.row(number, intended, sequence) else { return };
        let deliveries = self.roster.topics()[row.topic as usize].deliveries;
        self.tally.offered += 1;
        // Taken back by `unsent` when the session does not take it.
        self.tally.sent += 1;
        self.tally.expected += u64::from(deliveries);
        self.tally.unacknowledged += i64::from(row.qos > 0);
        let remembered = self.remembered;
        let client = &mut self.clients[number as usize];
        client.offered = sequence + 1;
        client.intended.push_back(intended);
        if client.intended.len() > remembered {
            client.intended.pop_front();
        }
        few::push(&mut client.outgoing, Outgoing { row, said: false });
        let token = u64::from(sequence);
        if client.is_gone() || self.leaving {
            return self.unsent(number, token);
        }
        let qos = self.groups[client.group as usize].publish_qos;
        if self.publish(number, token, qos) == Admission::Refused {
            return;
        }
        // A message that waits in the session is recorded now, because it may wait long.
        if let Some(last) = self.clients[number as usize].outgoing.back_mut()
            && last.row.sequence == sequence
            && !std::mem::replace(&mut last.said, true)
        {
            let row = last.row;
            self.evidence.message(|recorder| recorder.sent(&row));
        }
    }

    fn row(&self, number: u32, intended: Instant, sequence: u32) -> Option<Sent> {
        let group = self.group_of(number);
        let publish = group.publish.as_ref()?;
        let topics = self.roster.published(number);
        Some(Sent {
            publisher: number,
            sequence,
            topic: topics[sequence as usize % topics.len()],
            qos: publish.qos,
            retain: publish.retain,
            payload_bytes: publish.payload.size().0 as u32,
            intended,
            sent: self.now,
            written: None,
        })
    }

    /// Publishing is over for this client. What was due and is still here was offered in vain.
    pub(crate) fn stop_publishing(&mut self, number: u32) {
        let Some(mut arrivals) = self.clients[number as usize].arrivals.take() else { return };
        if arrivals.waits_for_room() {
            return;
        }
        let now = self.now;
        while let Some((intended, sequence)) = arrivals.take(now) {
            self.offer(number, intended, sequence as u32);
        }
    }

    /// Republishes what has just arrived.
    pub(crate) fn relay(&mut self, number: u32, message: u64, topic: u32) {
        let group = self.group_of(number);
        let Some(relay) = &group.relay else { return };
        let copy = format!("{}{}", self.topics.name(topic), relay.topic_suffix);
        if copy.len() > TOPIC_BYTES_MAX {
            return;
        }
        let copy = self.topics.number(&copy);
        let client = &mut self.clients[number as usize];
        let qos = self.groups[client.group as usize].relay_qos;
        let token = RELAYED | client.relayed.add(message, copy);
        self.tally.unacknowledged += i64::from(qos != Qos::AtMostOnce);
        self.publish(number, token, qos);
    }

    /// Puts a PUBLISH into the stream.
    pub(crate) fn send_publish(&mut self, number: u32, token: u64, id: u16, qos: Qos, dup: bool) {
        let client = &self.clients[number as usize];
        let facts = &self.groups[client.group as usize];
        let (message, topic, retain) = if token & RELAYED != 0 {
            let (message, topic) = client.relayed.get(token & !RELAYED);
            (message, topic, false)
        } else {
            let sequence = token as u32;
            let topics = self.roster.published(number);
            let retain = self.plan.groups[client.group as usize].publish.as_ref().is_some_and(|p| p.retain);
            (message::token(number, sequence), topics[sequence as usize % topics.len()], retain)
        };
        let (packet, length) = self.publication(message, topic, qos, id, facts.version);
        let packet = Packet { dup, retain, ..packet };
        let Some(connection) = client.connection() else { return };
        let end = self.connections.get(connection).streams[Side::Client as usize].append(packet, length);
        if token & RELAYED == 0 {
            self.note_dispatched(number, token as u32, end);
        } else if qos == Qos::AtMostOnce {
            self.clients[number as usize].relayed.remove(token & !RELAYED);
        }
    }

    /// The message has left the session for the first time: its time of writing will be known.
    fn note_dispatched(&mut self, number: u32, sequence: u32, end: u64) {
        let client = &mut self.clients[number as usize];
        let Some(place) = client.outgoing.iter().position(|outgoing| outgoing.row.sequence == sequence)
        else {
            return;
        };
        if let Some(Outgoing { row, .. }) = client.outgoing.remove(place) {
            few::push(&mut client.unwritten, Unwritten { end, row, said: false });
        }
    }

    /// Writes what there is to say to the socket.
    pub(crate) fn flush(&mut self, number: u32) {
        let Some(place) = self.clients[number as usize].connection() else { return };
        if self.write(place, Side::Client) {
            self.note_written(number, place);
            self.drain(place, Side::Client);
        }
    }

    fn note_written(&mut self, number: u32, place: u32) {
        let accepted = self.connections.peek(place).streams[Side::Client as usize].accepted();
        let client = &mut self.clients[number as usize];
        let now = self.now;
        while let Some(message) = client.unwritten.pop_front_if(|message| message.end <= accepted) {
            let row = Sent { written: Some(now), ..message.row };
            self.evidence.message(|recorder| recorder.sent(&row));
        }
        for message in client.unwritten.iter_mut().rev().take_while(|message| !message.said) {
            self.evidence.message(|recorder| recorder.sent(&message.row));
            message.said = true;
        }
    }

    /// The connection's stream has ended: what the socket has not taken will never be written.
    pub(crate) fn forget_stream(&mut self, number: u32) {
        let client = &mut self.clients[number as usize];
        for message in client.unwritten.drain(..) {
            if !message.said {
                self.evidence.message(|recorder| recorder.sent(&message.row));
            }
            if message.row.qos > 0 {
                client.outgoing.push_back(Outgoing { row: message.row, said: true });
            }
        }
    }

    /// The last acknowledgement is here.
    pub(crate) fn acknowledged(&mut self, number: u32, token: u64) {
        if token & RELAYED == 0 {
            let row = Acknowledged { publisher: number, sequence: token as u32, at: self.now };
            self.evidence.message(|recorder| recorder.acknowledged(&row));
        } else {
            self.clients[number as usize].relayed.remove(token & !RELAYED);
        }
        self.tally.unacknowledged -= 1;
    }

    /// The broker will not have it.
    pub(crate) fn refused(&mut self, number: u32, token: u64) {
        if token & RELAYED != 0 {
            self.clients[number as usize].relayed.remove(token & !RELAYED);
        }
        self.evidence.event(self.now, EventKind::Refused, Some(number), None, "PUBLISH");
        self.tally.unacknowledged -= 1;
    }

    /// The session did not take it.
    pub(crate) fn unsent(&mut self, number: u32, token: u64) {
        if token & RELAYED != 0 {
            let qos = self.groups[self.clients[number as usize].group as usize].relay_qos;
            self.tally.unacknowledged -= i64::from(qos != Qos::AtMostOnce);
            self.clients[number as usize].relayed.remove(token & !RELAYED);
            return;
        }
        let outgoing = &mut self.clients[number as usize].outgoing;
        let Some(place) = outgoing.iter().rposition(|outgoing| u64::from(outgoing.row.sequence) == token)
        else {
            return;
        };
        let Some(Outgoing { row, .. }) = outgoing.remove(place) else { return };
        self.tally.sent -= 1;
        self.tally.expected -= u64::from(self.roster.topics()[row.topic as usize].deliveries);
        self.tally.unacknowledged -= i64::from(row.qos > 0);
        self.evidence.message(|recorder| recorder.unsent(&Unsent::from(&row)));
    }
}

/// Marks the token of a message that came from somebody else.
const RELAYED: u64 = 1 << 63;
/// A back-to-back client has room for more while less than this waits for its socket, in bytes.
const ROOM: u64 = 64 << 10;
const MESSAGES_A_TURN: u32 = 1024;

/// The longest topic (MQTT 5 §1.5.4): where copies of copies, each with a longer topic, end.
const TOPIC_BYTES_MAX: usize = 65_535;
