//! What a simulated broker has of its host's memory and disk.
//!
//! *Memory*: the broker's own (measured of Mosquitto 2.0.11, below), a part for each session, each message that somebody
//! holds, and what waits for sockets. Above the host's memory the broker is killed, as by the kernel.
//!
//! *Disk*: Mosquitto writes its whole store at the end of a pass in which something changed (`broker/persistence.rs`), waits
//! until it is on the disk (fsync), and serves nobody meanwhile. So a write takes the bytes of the store, by the disk's rate. In a
//! pass it reads a packet from each socket: of who sends a lot no more is taken than of others.
//!
//! What it does not model: memory that is free and not given back, what the allocator rounds up, buffers of the kernel, wills,
//! further copies of a message, and the time that a disk without a limit takes. Sessions that end with their connection are stored
//! here, too.

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
    /// What waits for the socket in each slot.
    sockets: Vec<u64>,
    socket_bytes: u64,
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
            sockets: Vec::new(),
            socket_bytes: 0,
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

    /// So much waits for a socket.
    pub(super) fn set_waiting(&mut self, socket: TcpConnectionId, packets: u32, bytes: u64) {
        if !self.counts() {
            return;
        }
        let place = socket.slot as usize;
        if self.sockets.len() <= place {
            self.sockets.resize(place + 1, 0);
        }
        let bytes = bytes + u64::from(packets) * PACKET_BYTES;
        self.socket_bytes += bytes;
        self.socket_bytes -= std::mem::replace(&mut self.sockets[place], bytes);
    }

    /// The program has ended, and its memory is free; what it has on its disk comes back when it starts again.
    pub(super) fn forget_sockets(&mut self) {
        self.sockets.clear();
        self.socket_bytes = 0;
    }

    /// Whether the broker has come to need more memory than there is.
    pub(super) fn exceeds_memory(&self, broker: &Broker) -> bool {
        let Some(limit) = self.memory_bytes else { return false };
        let sessions = broker.sessions() as u64 * SESSION_BYTES;
        BROKER_BYTES + sessions + self.message_bytes + self.socket_bytes > limit
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
                inbox.rest_until(now + takes);
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
        Some(Duration::from_ns((u128::from(bytes) * 1_000_000_000 / u128::from(rate)) as u64))
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
