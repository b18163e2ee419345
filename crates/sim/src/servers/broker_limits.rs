//! What a simulated broker has of its host's memory and disk.
//!
//! *Memory*: the broker's own (measured of Mosquitto 2.0.11, below), a part for each session, each message that somebody
//! holds, the packets that wait for sockets, and what has been read of packets that are not complete. Above the host's memory the
//! broker is killed, as by the kernel.
//!
//! A packet is one block of memory (`packet__read`, `packet__alloc`). It is filled while it is read, and free when its message has
//! been copied and handed to all. One that is sent is free when the socket has taken its last byte. So the most is needed while a
//! message is handled: packet, message, and a packet for each receiver.
//!
//! *Disk*: Mosquitto writes its whole store at the end of a pass in which something changed (`broker/persistence.rs`), waits
//! until it is on the disk (fsync), and serves nobody meanwhile. So a write takes the bytes of the store, by the disk's rate. In a
//! pass it reads a packet from each socket: of who sends a lot no more is taken than of others.
//!
//! What it does not model: memory that is free and not given back, what the allocator rounds up, buffers of the kernel, wills,
//! the state of further copies of a message, and the time that a disk without a limit takes. Sessions that end with their
//! connection are stored here, too.

use std::collections::{BTreeMap, BTreeSet};

use mqttlab_mqtt::broker::Broker;
use mqttlab_plan::HostLimits;
use mqttlab_units::{Duration, Instant};

use super::ServerSurroundings;
use super::service::ServiceQueue;
use crate::hosts::stream::StreamPacket;
use crate::ids::TcpConnectionId;

/// What is counted of a broker; nothing where its host has no limits.
pub(super) struct BrokerLimits {
    memory_bytes: Option<u64>,
    disk_bytes_s: Option<u64>,
    /// Messages that somebody holds, with their bytes.
    messages: BTreeMap<u64, u64>,
    message_bytes: u64,
    /// The packets that wait for the socket in each slot.
    waiting: BytesBySlot,
    /// What has been read of an incomplete packet in each slot.
    begun: BytesBySlot,
    /// The packet that is handled, or was last: its slot and its bytes.
    handled: (u32, u64),
    /// The most that was needed for messages and packets since this was last asked.
    peak_bytes: u64,
    /// When the broker had last written its store.
    written: Instant,
    /// The slots of connections that were served in this pass.
    served: BTreeSet<u32>,
}

impl BrokerLimits {
    /// Of a broker that stores sessions, or not.
    pub(super) fn new(limits: Option<HostLimits>, persistence: bool) -> BrokerLimits {
        let disk_bytes_s = limits.and_then(|limits| limits.disk_bytes_s).filter(|_| persistence);
        BrokerLimits {
            memory_bytes: limits.and_then(|limits| limits.memory_bytes),
            disk_bytes_s,
            messages: BTreeMap::new(),
            message_bytes: 0,
            waiting: BytesBySlot::default(),
            begun: BytesBySlot::default(),
            handled: (0, 0),
            peak_bytes: 0,
            written: Instant::ZERO,
            served: BTreeSet::new(),
        }
    }

    fn counts(&self) -> bool {
        self.memory_bytes.is_some() || self.disk_bytes_s.is_some()
    }

    /// A message has come; until it is released it takes memory.
    pub(super) fn hold(&mut self, around: &ServerSurroundings<'_>, packet: &StreamPacket) {
        if !self.counts() || !packet.kind.is_message() {
            return;
        }
        let topic = around.topics.name(packet.topic).len() as u64;
        let bytes = MESSAGE_BYTES + topic + u64::from(around.groups.payload_bytes(packet.message));
        self.message_bytes += bytes;
        self.message_bytes -= self.messages.insert(packet.message, bytes).unwrap_or(0);
    }

    /// Nobody holds a message any more.
    pub(super) fn release(&mut self, message: u64) {
        self.message_bytes -= self.messages.remove(&message).unwrap_or(0);
    }

    /// So many packets wait for a socket, of so many bytes: of all that it has not taken whole.
    pub(super) fn set_waiting(&mut self, socket: TcpConnectionId, packets: u32, bytes: u64) {
        if self.counts() {
            self.waiting.set(socket.slot, bytes + u64::from(packets) * PACKET_BYTES);
        }
    }

    /// So much has been read of a packet that is not complete.
    pub(super) fn set_begun(&mut self, socket: TcpConnectionId, bytes: u64) {
        if self.counts() {
            self.begun.set(socket.slot, bytes);
        }
    }

    /// A packet of so many bytes is handled now.
    pub(super) fn set_handled(&mut self, socket: TcpConnectionId, bytes: u64) {
        self.handled = (socket.slot, bytes);
    }

    /// So much is copied for receivers of what is handled.
    pub(super) fn note_peak(&mut self, copied: u64) {
        let (slot, bytes) = self.handled;
        // What comes behind that packet Mosquitto has not read yet.
        let packets = self.waiting.sum + self.begun.sum - self.begun.of(slot) + bytes + copied;
        self.peak_bytes = self.peak_bytes.max(self.message_bytes + packets);
    }

    /// A connection is gone.
    pub(super) fn forget_socket(&mut self, socket: TcpConnectionId) {
        self.set_waiting(socket, 0, 0);
        self.set_begun(socket, 0);
    }

    /// The program has ended, and its memory is free; what it has on its disk comes back when it starts again.
    pub(super) fn forget_sockets(&mut self) {
        (self.waiting, self.begun) = (BytesBySlot::default(), BytesBySlot::default());
        self.peak_bytes = 0;
    }

    /// Whether the broker has come to need more memory than there is, since this was last asked.
    pub(super) fn exceeds_memory(&mut self, broker: &Broker) -> bool {
        let Some(limit) = self.memory_bytes else { return false };
        let sessions = broker.sessions() as u64 * SESSION_BYTES;
        let now = self.message_bytes + self.waiting.sum + self.begun.sum;
        BROKER_BYTES + sessions + now.max(std::mem::take(&mut self.peak_bytes)) > limit
    }

    /// What the broker serves next: in a pass of its loop Mosquitto reads a packet from each socket that has one. When it is over,
    /// the broker writes its store, and waits for its disk.
    pub(super) fn choose<W>(
        &mut self,
        now: Instant,
        broker: &Broker,
        inbox: &mut ServiceQueue<W>,
        slot: impl Fn(&W) -> u32,
    ) {
        if self.disk_bytes_s.is_none() || inbox.done().is_some() {
            return;
        }
        let served = &self.served;
        if !inbox.promote(|work| !served.contains(&slot(work))) {
            self.served.clear();
            if let Some(takes) = self.writing_time(broker) {
                inbox.rest_until(now.saturating_add(takes));
            }
        }
        self.served.extend(inbox.first().map(slot));
    }

    /// How long the broker waits for its disk, where it has written since this was last asked.
    fn writing_time(&mut self, broker: &Broker) -> Option<Duration> {
        let rate = self.disk_bytes_s?;
        if std::mem::replace(&mut self.written, broker.written()) == broker.written() {
            return None;
        }
        let messages = self.messages.len() as u64;
        let contents = self.message_bytes - messages * MESSAGE_BYTES;
        let copies: usize = broker.session_infos().map(|session| session.in_flight + session.waiting).sum();
        let bytes = contents
            + messages * STORED_MESSAGE_BYTES
            + copies as u64 * STORED_COPY_BYTES
            + broker.sessions() as u64 * STORED_SESSION_BYTES;
        let takes_ns = u128::from(bytes) * 1_000_000_000 / u128::from(rate);
        Some(Duration::from_ns(takes_ns.try_into().unwrap_or(u64::MAX)))
    }
}

/// Bytes of each connection's slot, and of all.
#[derive(Default)]
struct BytesBySlot {
    slots: Vec<u64>,
    sum: u64,
}

impl BytesBySlot {
    fn of(&self, slot: u32) -> u64 {
        self.slots.get(slot as usize).copied().unwrap_or(0)
    }

    fn set(&mut self, slot: u32, bytes: u64) {
        let place = slot as usize;
        if self.slots.len() <= place {
            self.slots.resize(place + 1, 0);
        }
        self.sum += bytes;
        self.sum -= std::mem::replace(&mut self.slots[place], bytes);
    }
}

// Measured with Mosquitto 2.0.11 on Linux 6.18, 64 bits: the memory that its control group counts, and the length of its store.

/// Without clients: 1.21 to 1.56 MB in four runs.
const BROKER_BYTES: u64 = 1_350_000;
/// A session with its connection.
const SESSION_BYTES: u64 = 2_600;
/// A message beside its payload and its topic, with one copy: 347 B at 10 B, 363 B at 1000 B, 486 B at 10 kB.
const MESSAGE_BYTES: u64 = 360;
/// A packet that waits for a socket, beside its bytes.
const PACKET_BYTES: u64 = 80;
/// A message in the store, beside its payload and its topic, and each copy of it that waits for a session.
const STORED_MESSAGE_BYTES: u64 = 43;
const STORED_COPY_BYTES: u64 = 30;
/// A session in the store, with a subscription.
const STORED_SESSION_BYTES: u64 = 65;

#[cfg(test)]
mod tests {
    use mqttlab_mqtt::broker::BrokerOptions;

    use super::*;

    const MB: u64 = 1_000_000;

    fn socket(slot: u32) -> TcpConnectionId {
        TcpConnectionId { slot, generation: 0 }
    }

    /// A broker's limits with room for so much beside what the broker takes itself.
    fn with_room(bytes: u64) -> (BrokerLimits, Broker) {
        let limits =
            HostLimits { processor: None, memory_bytes: Some(BROKER_BYTES + bytes), disk_bytes_s: None };
        (BrokerLimits::new(Some(limits), false), Broker::new(BrokerOptions::default()))
    }

    #[test]
    fn a_message_that_is_handled_needs_its_packet_itself_and_a_packet_for_each_receiver() {
        let (mut limits, broker) = with_room(4 * MB);
        let mut needs_more = |receivers: u64, extra: u64| {
            limits.set_handled(socket(0), MB);
            limits.message_bytes = MB;
            limits.note_peak(receivers * MB + extra);
            limits.message_bytes = 0;
            limits.exceeds_memory(&broker)
        };
        assert!(!needs_more(2, 0));
        assert!(needs_more(2, 1));
        assert!(!needs_more(0, 0), "the peak was before");
    }

    #[test]
    fn packets_that_are_being_read_need_as_much_as_has_come_of_them() {
        let (mut limits, broker) = with_room(2 * MB);
        limits.set_begun(socket(0), MB);
        limits.set_begun(socket(3), MB);
        assert!(!limits.exceeds_memory(&broker));
        limits.set_begun(socket(3), MB + 1);
        assert!(limits.exceeds_memory(&broker));
        // What has come behind the packet that is handled is still in the socket.
        limits.set_begun(socket(3), MB);
        limits.set_handled(socket(3), MB);
        limits.note_peak(0);
        assert!(!limits.exceeds_memory(&broker));
        limits.forget_socket(socket(0));
        assert_eq!(limits.begun.sum, MB);
    }
}
