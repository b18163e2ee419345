//! Names of frames, which are what a channel's dice are thrown for.
//!
//! Were dice thrown frame after frame, one acknowledgement more would change what befalls every frame behind it, and
//! two runs of one scenario (live and simulated, or on two brokers) would have no loss in common. So a draw is a hash
//! of the knob's seed and of the frame's *name*: which connection, which direction, which place in the stream, and
//! which time it is sent. The same segment then meets the same luck wherever it is sent: common random numbers.
//!
//! Names of different frames differ (but for collisions of a 64-bit hash), so that draws stay independent.

use std::collections::BTreeMap;

use mqttlab_units::Seed;

/// What a frame is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrameName {
    /// What dice are thrown for.
    pub(crate) dice: u64,
    /// One direction of a connection or conversation, which the frame belongs to.
    pub(crate) flow: u64,
    /// Its sender understands a mark of congestion: ECN-capable transport (RFC 3168 §5).
    pub(crate) is_ect: bool,
}

/// A frame's name, and whether what it carries is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    /// The name.
    pub name: FrameName,
    /// For a segment with data, SYN or FIN, and for a datagram whose packet has an identifier: 0 when it is sent for the first
    /// time, else which repetition it is among all of its end's of the connection. `None` for everything else.
    pub repetition: Option<u32>,
}

/// Names the frames of one TCP connection.
///
/// A segment with data, SYN or FIN is named by its place in the stream; one that is sent again by how many were, too. A
/// bare acknowledgement is named by what it acknowledges, and by how often that was acknowledged before.
#[derive(Clone, Copy, Debug)]
pub struct TcpNames {
    connection: Seed,
    ends: [TcpEnd; 2],
}

/// What of a TCP segment its name depends on.
#[derive(Clone, Copy, Debug)]
pub struct TcpFacts {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Payload in bytes.
    pub length: u32,
    /// Whether SYN is set.
    pub syn: bool,
    /// Whether FIN is set.
    pub fin: bool,
}

/// What one end has sent so far. Positions count from its SYN.
#[derive(Clone, Copy, Debug, Default)]
struct TcpEnd {
    first: Option<u32>,
    /// Where what has never been sent begins.
    fresh: u32,
    /// How often something was sent again.
    repetitions: u32,
    acknowledged: u32,
    /// How often that was acknowledged before, in succession.
    times_acknowledged: u32,
}

/// Names the datagrams between one client's socket and a server's, each of which is one packet.
///
/// A datagram is named by its packet's type and identifier, and by how many of the same were sent before, so that one more
/// retry of one packet does not change what befalls the others.
#[derive(Clone, Debug)]
pub struct DatagramNames {
    connection: Seed,
    ends: [DatagramEnd; 2],
}

/// What of a datagram's packet its name depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramFacts {
    /// The packet's type, as its protocol numbers it.
    pub kind: u8,
    /// Its identifier; 0 for none.
    pub id: u16,
}

/// What one end has sent so far.
#[derive(Clone, Debug, Default)]
struct DatagramEnd {
    sent: BTreeMap<(u8, u16), DatagramSendings>,
    /// Datagrams so far.
    count: u32,
    repetitions: u32,
}

/// What was sent of one type and identifier.
#[derive(Clone, Copy, Debug)]
struct DatagramSendings {
    times: u32,
    /// Which of all datagrams the last one was.
    last: u32,
}

impl FrameName {
    /// The n-th of frames that have no better name.
    pub fn nth(n: u64) -> FrameName {
        FrameName::nth_of(0, n)
    }

    /// The n-th of frames of a flow that have no better name.
    pub fn nth_of(flow: u64, n: u64) -> FrameName {
        FrameName { dice: NUMBERED.index(n).0, flow, is_ect: false }
    }

    /// The same frame, which a link may mark instead of dropping it, or may not.
    #[must_use]
    pub fn with_ect(self, is_ect: bool) -> FrameName {
        FrameName { is_ect, ..self }
    }

    /// The frame at this place of what one end (0 or 1) of a connection sends.
    fn of(connection: Seed, from: usize, place: u64) -> FrameName {
        FrameName {
            dice: connection.index(place).0,
            flow: connection.0.wrapping_add(from as u64),
            is_ect: false,
        }
    }

    /// The name of the copy that a link makes of the frame.
    #[must_use]
    pub fn copy(self) -> FrameName {
        FrameName { dice: Seed(self.dice).index(COPY).0, ..self }
    }
}

impl TcpNames {
    /// For the connection that is the `ordinal`-th, from 0, which `host` has opened.
    pub fn new(host: u32, ordinal: u32) -> TcpNames {
        let connection = CONNECTIONS.index(u64::from(host) << 32 | u64::from(ordinal));
        TcpNames { connection, ends: [TcpEnd::default(); 2] }
    }

    /// Whether this SYN belongs to the connection: none was seen from this end, or the same one.
    pub fn is_opened_by(&self, from: usize, seq: u32) -> bool {
        self.ends[from].first.is_none_or(|first| first == seq)
    }

    /// The name of the next segment, sent by the end that opened the connection (0) or by the other (1).
    pub fn name(&mut self, from: usize, segment: &TcpFacts) -> Named {
        // Counted from the SYN: live initial sequence numbers are random, simulated ones are not.
        let acknowledges = segment.ack.wrapping_sub(self.ends[1 - from].first.unwrap_or_default());
        let end = &mut self.ends[from];
        if segment.syn {
            end.first = Some(segment.seq);
        }
        let takes = segment.length + u32::from(segment.syn) + u32::from(segment.fin);
        let (kind, position, times) = if takes == 0 {
            (NameKind::Acknowledgement, acknowledges, end.count_acknowledgement(acknowledges))
        } else {
            let start = segment.seq.wrapping_sub(end.first.unwrap_or_default());
            (NameKind::Data, start, end.count_repetition(start, takes))
        };
        // 32 bits of position, 30 of repetitions, one each for end and kind: no two frames share a place.
        let place = u64::from(position) << 32 | u64::from(times) << 2 | kind as u64 | (from as u64) << 1;
        let repetition = (takes > 0).then_some(times);
        Named { name: FrameName::of(self.connection, from, place), repetition }
    }
}

impl DatagramNames {
    /// For the conversation that is the `ordinal`-th, from 0, which `host` has begun.
    pub fn new(host: u32, ordinal: u32) -> DatagramNames {
        let connection = CONVERSATIONS.index(u64::from(host) << 32 | u64::from(ordinal));
        DatagramNames { connection, ends: Default::default() }
    }

    /// The name of the next datagram, sent by the end that began (0) or by the other (1).
    pub fn name(&mut self, from: usize, facts: DatagramFacts) -> Named {
        let (times, repetition) = self.ends[from].count(facts);
        let place = (from as u64) << 63 | u64::from(facts.kind) << 48 | u64::from(facts.id) << 32;
        let name = FrameName::of(self.connection, from, place | u64::from(times));
        Named { name, repetition }
    }
}

impl DatagramEnd {
    /// How often the same was sent before, and whether that makes it a repetition.
    fn count(&mut self, DatagramFacts { kind, id }: DatagramFacts) -> (u32, Option<u32>) {
        self.count = self.count.wrapping_add(1);
        let now = self.count;
        let before = self.sent.get(&(kind, id)).copied();
        let times = before.map_or(0, |before| before.times.wrapping_add(1));
        self.sent.insert((kind, id), DatagramSendings { times, last: now });
        if id == 0 {
            return (times, None);
        }
        // Identifiers come round again: what was sent long ago is another packet.
        if before.is_none_or(|before| now.wrapping_sub(before.last) > IDENTIFIERS_APART) {
            return (times, Some(0));
        }
        self.repetitions = self.repetitions.wrapping_add(1) & REPETITIONS_MAX;
        (times, Some(self.repetitions))
    }
}

impl From<FrameName> for Named {
    /// Of a frame that is no TCP segment.
    fn from(name: FrameName) -> Named {
        Named { name, repetition: None }
    }
}

impl TcpEnd {
    /// How many repetitions there have been with this one, or zero when it is none. Counted over all of the stream:
    /// a place that is sent again and again, others in between, must never meet the same dice twice.
    fn count_repetition(&mut self, start: u32, takes: u32) -> u32 {
        let end = start.wrapping_add(takes);
        // By the difference's sign, since sequence numbers wrap (RFC 9293 §3.4).
        let is_fresh = start.wrapping_sub(self.fresh) as i32 >= 0;
        if end.wrapping_sub(self.fresh) as i32 > 0 {
            self.fresh = end;
        }
        if is_fresh {
            return 0;
        }
        self.repetitions = self.repetitions.wrapping_add(1) & REPETITIONS_MAX;
        self.repetitions
    }

    fn count_acknowledgement(&mut self, position: u32) -> u32 {
        // Each duplicate has dice of its own, or all that a fast retransmission needs would be lost together.
        let again = self.acknowledged == position;
        self.times_acknowledged = if again { (self.times_acknowledged + 1) & REPETITIONS_MAX } else { 0 };
        self.acknowledged = position;
        self.times_acknowledged
    }
}

#[derive(Clone, Copy)]
enum NameKind {
    Data = 0,
    Acknowledgement = 1,
}

const NUMBERED: Seed = Seed(0x6e75_6d62_6572_6564);
const CONNECTIONS: Seed = Seed(0x636f_6e6e_6563_7473);
const CONVERSATIONS: Seed = Seed(0x636f_6e76_6572_7365);
const COPY: u64 = 1;
/// After so many datagrams the same identifier is another packet's: half of all identifiers.
const IDENTIFIERS_APART: u32 = 1 << 15;
/// What a name has room for.
const REPETITIONS_MAX: u32 = (1 << 30) - 1;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn data(seq: u32, length: u32) -> TcpFacts {
        TcpFacts { seq, ack: 501, length, syn: false, fin: false }
    }

    /// A connection whose ends begin at 100 and 500.
    fn opened(host: u32, first: [u32; 2]) -> TcpNames {
        let mut names = TcpNames::new(host, 0);
        names.name(0, &TcpFacts { seq: first[0], ack: 0, length: 0, syn: true, fin: false });
        names.name(1, &TcpFacts { seq: first[1], ack: first[0] + 1, length: 0, syn: true, fin: false });
        names
    }

    #[test]
    fn a_segment_has_its_name_whatever_numbers_the_stacks_have_drawn() {
        let (mut one, mut other) = (opened(1, [100, 500]), opened(1, [u32::MAX - 5, 7]));
        assert_eq!(one.name(0, &data(101, 50)), other.name(0, &data(u32::MAX - 4, 50)));
        let ack = |seq, ack| TcpFacts { ack, ..data(seq, 0) };
        assert_eq!(one.name(1, &ack(501, 151)), other.name(1, &ack(8, 45)));
    }

    #[test]
    fn an_acknowledgement_more_does_not_rename_what_follows() {
        let (mut one, mut other) = (opened(1, [100, 500]), opened(1, [100, 500]));
        one.name(0, &data(101, 0));
        assert_eq!(one.name(0, &data(101, 50)), other.name(0, &data(101, 50)));
        assert_eq!(one.name(0, &data(151, 50)), other.name(0, &data(151, 50)));
    }

    #[test]
    fn what_is_sent_again_is_counted_and_bare_acknowledgements_are_not() {
        let mut names = TcpNames::new(1, 0);
        let syn = TcpFacts { seq: 100, ack: 0, length: 0, syn: true, fin: false };
        let fin = TcpFacts { fin: true, ..data(201, 0) };
        let sent = [
            syn,
            syn,
            data(101, 50),
            data(101, 0),
            data(151, 50),
            data(101, 50),
            data(101, 0),
            data(151, 50),
        ];
        let counted = sent.map(|segment| names.name(0, &segment).repetition);
        assert_eq!(counted, [Some(0), Some(1), Some(0), None, Some(0), Some(2), None, Some(3)]);
        assert_eq!([fin, fin].map(|segment| names.name(0, &segment).repetition), [Some(0), Some(4)]);
    }

    #[test]
    fn one_more_retry_of_a_datagram_does_not_rename_the_others() {
        let publish = |id| DatagramFacts { kind: 0x0c, id };
        let (mut one, mut other) = (DatagramNames::new(1, 0), DatagramNames::new(1, 0));
        assert_eq!(one.name(0, publish(1)), other.name(0, publish(1)));
        let again = one.name(0, publish(1));
        assert_eq!(again.repetition, Some(1));
        assert_ne!(again.name, other.name(1, publish(1)).name, "the other end's");
        assert_eq!(one.name(0, publish(2)), other.name(0, publish(2)));
        let ping = DatagramFacts { kind: 0x16, id: 0 };
        let pings = [(); 3].map(|()| one.name(0, ping));
        assert_eq!(
            pings.map(|ping| ping.repetition),
            [None; 3],
            "nobody can tell whether it is the same one"
        );
        assert_eq!(pings.iter().map(|ping| ping.name).collect::<BTreeSet<_>>().len(), 3);
    }

    #[test]
    fn an_identifier_that_comes_round_again_is_another_packet() {
        let mut names = DatagramNames::new(1, 0);
        let repeated = (1..=u16::MAX).chain(1..=10).map(|id| names.name(0, DatagramFacts { kind: 0x0c, id }));
        assert!(repeated.map(|named| named.repetition).all(|repetition| repetition == Some(0)));
        let first = DatagramNames::new(1, 0).name(0, DatagramFacts { kind: 0x0c, id: 1 });
        assert_ne!(names.name(0, DatagramFacts { kind: 0x0c, id: 1 }).name, first.name);
    }

    #[test]
    fn every_sending_has_a_name_of_its_own() {
        let mut names = opened(1, [100, 500]);
        let mut seen = BTreeSet::new();
        for times in 0..4 {
            for seq in [101, 151, 201] {
                assert!(seen.insert(names.name(0, &data(seq, 50))), "{seq}, sent {times} times before");
                assert!(seen.insert(names.name(1, &data(seq + 400, 50))), "the other end");
            }
        }
        for ack in [501, 501, 501, 551] {
            assert!(seen.insert(names.name(0, &TcpFacts { ack, ..data(251, 0) })), "ack {ack}");
        }
        assert!(seen.insert(opened(2, [100, 500]).name(0, &data(101, 50))), "another host");
    }
}
