//! Passes of Mosquitto's loop, in which alone its WebSocket connections are written to (Mosquitto 2.0.11 over libwebsockets).
//!
//! ```text
//!   wait for data, 100 ms at most ──► read: a packet of a socket,   ──► lws_service: packets to each WebSocket connection
//!                                     4 KiB or a record of WebSocket     that has some, then 4 KiB or a record from each
//! ```
//!
//! All packets that wait for a connection are written in a pass, each with a call of its own, up to one of which a part is left:
//! libwebsockets writes 4,116 B at once, and Mosquitto ends its turn with a packet that was not written whole. What is left waits
//! for the next pass, and so does the answer to what `lws_service` has read. Data on a socket begin a pass at once, so that a busy
//! broker hardly lets anything wait; an idle one lets it wait for 100 ms. Measured: 140 ms for 5 kB to a client over WebSocket,
//! 40 ms away; 240 ms from one to the other; 40 messages of 100 B that come at once leave at once.
//!
//! A new connection begins no pass by what it says, before it is open: Mosquitto waits for the sockets that it knows, and
//! libwebsockets tells it of one with the first packet. `lws_service` accepts it in one pass, with a ClientHello that is there, and
//! hears one thing a pass from then on. Measured, 5 ms away, with an idle broker: TLS is open after 18 to 104 ms, WebSocket
//! 200.7 ms later; without TLS after 117 to 185 ms.
//!
//! What it does not model: the race for data that come between read and `lws_service`.

use std::collections::VecDeque;

use mqttlab_units::{Duration, Instant};

use crate::ids::TcpConnectionId;

/// What waits for the next pass, and when that is if nothing comes.
#[derive(Default)]
pub(super) struct LoopPasses {
    /// Connections that have something to be written, in the order in which they came to have it.
    waiting: VecDeque<TcpConnectionId>,
    /// What connections that are being opened have said.
    opening: Vec<OpeningStep>,
    /// When the last pass ended.
    ended_at: Instant,
    due: Option<Instant>,
    /// The read that goes on has left data in its socket: another pass follows at once.
    more: bool,
}

/// A step of a connection's opening that waits for a pass.
struct OpeningStep {
    connection: TcpConnectionId,
    step: u8,
    /// The connection is accepted in a pass before.
    is_unaccepted: bool,
}

/// What a read is to the pass in which it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadKind {
    /// Another packet follows in the same read.
    Goes,
    /// The pass's writes follow.
    Ends,
    /// `lws_service` reads it, when it has written.
    Late,
}

/// How packets come to a program that reads a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketReading {
    /// Mosquitto reads one packet.
    Packets,
    /// libwebsockets reads 4 KiB.
    Bytes,
    /// libwebsockets reads a record, or 4 KiB of it.
    Records,
}

/// The reads of what has come at once, packet by packet.
pub(super) struct SocketReads {
    reading: PacketReading,
    /// Where it begins, and where the last packet has ended.
    begin: u64,
    at: u64,
    /// The read that has completed the last packet, from 1, and the one before it.
    reads: u64,
    before: u64,
}

impl SocketReads {
    /// Of what begins at this position.
    pub(super) fn new(reading: PacketReading, begin: u64) -> SocketReads {
        SocketReads { reading, begin, at: begin, reads: 0, before: 0 }
    }

    /// What the next packet is, which ends here, if no other one comes with the same read.
    pub(super) fn next(&mut self, end: u64) -> ReadKind {
        self.before = self.reads;
        self.reads = match self.reading {
            PacketReading::Packets => return ReadKind::Ends,
            PacketReading::Bytes => end.saturating_sub(self.begin).div_ceil(READ_MAX),
            PacketReading::Records => self.reads + end.saturating_sub(self.at).div_ceil(READ_MAX),
        };
        self.at = end;
        if self.reads.is_multiple_of(2) { ReadKind::Late } else { ReadKind::Ends }
    }

    /// Whether the last two packets came with one read before the pass's writes.
    pub(super) fn is_same_read(&self) -> bool {
        self.reads == self.before && !self.reads.is_multiple_of(2)
    }
}

impl LoopPasses {
    /// A connection has something to be written.
    pub(super) fn queue_write(&mut self, id: TcpConnectionId, now: Instant) {
        if !self.waiting.contains(&id) {
            self.waiting.push_back(id);
        }
        self.wait(now);
    }

    /// A connection that is being opened has said a step.
    pub(super) fn queue_step(&mut self, id: TcpConnectionId, step: u8, has_tls: bool, now: Instant) {
        let is_unaccepted = step == 0 && !has_tls;
        self.opening.push(OpeningStep { connection: id, step, is_unaccepted });
        self.wait(now);
    }

    /// A connection is gone.
    pub(super) fn forget_steps(&mut self, id: TcpConnectionId) {
        self.opening.retain(|said| said.connection != id);
    }

    fn wait(&mut self, now: Instant) {
        if self.due.is_none() {
            // The broker has waited in vain since the last pass, as often as that fits.
            let waits = now.since(self.ended_at).as_ns() / WAIT_MAX.as_ns() + 1;
            self.due = Some(self.ended_at + WAIT_MAX * waits);
        }
    }

    /// The program stands still for so long.
    pub(super) fn delay(&mut self, by: Duration) {
        self.ended_at += by;
        self.due = self.due.map(|due| due + by);
    }

    /// Whether something waits.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty() || !self.opening.is_empty()
    }

    /// When the next pass is, if nothing comes before.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The read that goes on leaves data in its socket.
    pub(super) fn leave_data(&mut self) {
        self.more = true;
    }

    /// What is heard in this pass: a step of each connection that is being opened.
    pub(super) fn begin_opening(&mut self) -> Vec<(TcpConnectionId, u8)> {
        let mut heard: Vec<(TcpConnectionId, u8)> = Vec::new();
        let mut had: Vec<TcpConnectionId> = Vec::new();
        self.opening.retain_mut(|said| {
            let is_next = !had.contains(&said.connection);
            had.push(said.connection);
            if !is_next || std::mem::take(&mut said.is_unaccepted) {
                return true;
            }
            heard.push((said.connection, said.step));
            false
        });
        heard
    }

    /// What is written in this pass.
    pub(super) fn begin_writing(&mut self) -> VecDeque<TcpConnectionId> {
        self.due = None;
        std::mem::take(&mut self.waiting)
    }

    /// The pass is over, at this time; another one takes so long.
    pub(super) fn end(&mut self, now: Instant, takes: Duration) {
        self.ended_at = now;
        let more = std::mem::take(&mut self.more);
        self.due = self.is_waiting().then(|| now.saturating_add(if more { takes } else { WAIT_MAX }));
    }
}

/// For so long the broker waits for data.
const WAIT_MAX: Duration = Duration::from_ms(100);
/// So much libwebsockets reads at once.
const READ_MAX: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::ReadKind::{Ends, Goes, Late};
    use super::*;

    fn reads(reading: PacketReading, packets: &[u64]) -> Vec<ReadKind> {
        let (mut turns, mut end) = (SocketReads::new(reading, 7), 7);
        let mut found: Vec<ReadKind> = Vec::new();
        for length in packets {
            end += length;
            let turn = turns.next(end);
            if let Some(last) = found.last_mut().filter(|_| turns.is_same_read()) {
                *last = Goes;
            }
            found.push(turn);
        }
        found
    }

    #[test]
    fn a_pass_reads_a_packet_of_a_socket_and_two_reads_of_a_websocket() {
        assert_eq!(reads(PacketReading::Packets, &[10, 5_000, 10]), [Ends, Ends, Ends]);
        assert_eq!(reads(PacketReading::Bytes, &[10, 10, 10]), [Goes, Goes, Ends]);
        assert_eq!(reads(PacketReading::Bytes, &[3_000, 3_000, 1_000]), [Ends, Late, Late]);
        assert_eq!(reads(PacketReading::Bytes, &[5_000]), [Late]);
        assert_eq!(reads(PacketReading::Records, &[10, 10, 10]), [Ends, Late, Ends]);
        assert_eq!(reads(PacketReading::Records, &[5_000, 10]), [Late, Ends]);
    }

    #[test]
    fn a_pass_hears_one_step_of_each_connection_and_one_without_tls_is_accepted_before() {
        let [plain, secured] = [1, 2].map(|slot| TcpConnectionId { slot, generation: 0 });
        let mut passes = LoopPasses::default();
        passes.queue_step(plain, 0, false, Instant::from_ns(30_000_000));
        passes.queue_step(secured, 0, true, Instant::from_ns(40_000_000));
        passes.queue_step(secured, 2, true, Instant::from_ns(40_000_000));
        assert_eq!(passes.due(), Some(Instant::from_ns(100_000_000)));
        assert_eq!(passes.begin_opening(), [(secured, 0)]);
        passes.end(Instant::from_ns(100_000_000), Duration::from_us(10));
        assert_eq!(passes.due(), Some(Instant::from_ns(200_000_000)));
        assert_eq!(passes.begin_opening(), [(plain, 0), (secured, 2)]);
        assert!(!passes.is_waiting());
    }

    #[test]
    fn what_is_left_waits_for_data_or_for_100_ms_since_the_last_pass() {
        let id = TcpConnectionId { slot: 0, generation: 0 };
        let mut passes = LoopPasses::default();
        passes.queue_write(id, Instant::from_ns(250_000_000));
        assert_eq!(passes.due(), Some(Instant::from_ns(300_000_000)), "it has waited twice in vain");
        let mut end = |more: bool| {
            if more {
                passes.leave_data();
            }
            assert_eq!(passes.begin_writing(), [id]);
            passes.waiting.push_back(id);
            passes.end(Instant::from_ns(1_000_000_000), Duration::from_us(10));
            passes.due().unwrap().as_ns() - 1_000_000_000
        };
        assert_eq!((end(true), end(false)), (10_000, 100_000_000));
    }
}
