//! The control packets of a recording, and sums over them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use mqttlab_recording::identity::SequenceEnd;
use mqttlab_recording::reading::{ABSENT, TableReader, Vocabulary, Wanted};
use mqttlab_recording::{PacketSumRow, PacketSumWriter, Result, TopicSumRow, TopicSumWriter, Towards};

use crate::partitions::Packed;
use crate::tallies::Tallies;

/// Kinds that matter to who follows a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FollowedKind {
    Publish,
    Release,
    /// PUBACK and PUBCOMP: the exchange is over.
    Over,
    /// PUBREC, and whether it refuses the message.
    Received {
        refuses: bool,
    },
    /// REGISTER and REGACK of MQTT-SN.
    Register,
    Registered,
    Connect,
    Disconnect,
    /// PINGREQ and PINGRESP.
    Ping,
    Pong,
    Other,
}

/// A control packet. Numbers that are not known are [`ABSENT`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedPacket {
    /// Its row in the table.
    pub(crate) number: u32,
    pub(crate) kind: FollowedKind,
    pub(crate) to_broker: bool,
    /// Whether it is a datagram between a client of MQTT-SN and its gateway.
    pub(crate) is_datagram: bool,
    /// Whether only the client at its connection's end has seen it. Then both times are that client's: when its socket had
    /// taken the packet, or when it had read it.
    pub(crate) is_clients: bool,
    pub(crate) dup: bool,
    pub(crate) qos: i8,
    pub(crate) packet_id: i32,
    client: u32,
    pub(crate) connection: u32,
    topic: u32,
    publisher: u32,
    sequence: u32,
    pub(crate) stream_start: i64,
    pub(crate) stream_end: i64,
    pub(crate) payload_bytes: u32,
    pub(crate) segments: u32,
    pub(crate) first_sent_ns: i64,
    pub(crate) complete_ns: i64,
}

/// Stands for a number that is not known, where a column is kept narrow.
pub(crate) const NONE: u32 = u32::MAX;

pub(crate) fn narrow(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(NONE)
}

pub(crate) fn wide(number: u32) -> i64 {
    if number == NONE { ABSENT } else { number.into() }
}

impl NamedPacket {
    /// The client at the connection's end.
    pub(crate) fn client(&self) -> i64 {
        wide(self.client)
    }

    /// The topic's number in the vocabulary.
    pub(crate) fn topic(&self) -> i64 {
        wide(self.topic)
    }

    /// Its client, and which of both ends sent it.
    pub(crate) fn connection_end(&self) -> (u32, bool) {
        (self.client, self.to_broker)
    }

    /// How its message's number ends, where a small payload says no more than that.
    pub(crate) fn sequence_end(&self) -> Option<SequenceEnd> {
        let is_known = !self.is_named() && self.sequence != NONE;
        is_known.then(|| SequenceEnd::stored(self.sequence, self.payload_bytes as usize)).flatten()
    }

    /// Publisher and number of its message.
    pub(crate) fn message(&self) -> (i64, i64) {
        (wide(self.publisher), wide(self.sequence))
    }

    /// Says which message it carries.
    pub(crate) fn name(&mut self, (publisher, sequence): (i64, i64)) {
        (self.publisher, self.sequence) = (narrow(publisher), narrow(sequence));
    }

    /// Whether it says which message it carries.
    pub(crate) fn is_named(&self) -> bool {
        self.publisher != NONE
    }
}

/// How many numbers a packed packet has.
pub(crate) const FIELDS: usize = 13;

/// PUBLISH packets alone are kept so.
impl Packed<FIELDS> for NamedPacket {
    fn fields(&self) -> [i64; FIELDS] {
        let truths = [self.to_broker, self.is_datagram, self.is_clients, self.dup];
        let truths = truths.iter().rev().fold(0, |bits, &truth| bits << 1 | i64::from(truth));
        let pair = |high: u32, low: u32| i64::from(high) << 32 | i64::from(low);
        // No time is as low as -1, which lies nearer to the others than what stands for none.
        let complete = if self.complete_ns == ABSENT { -1 } else { self.complete_ns };
        let first_sent = if self.first_sent_ns == ABSENT { -1 } else { self.first_sent_ns };
        [
            self.number.into(),
            truths << 16 | i64::from(self.qos as u8),
            self.packet_id.into(),
            self.client.into(),
            self.connection.into(),
            self.topic.into(),
            self.publisher.into(),
            self.sequence.into(),
            self.stream_start,
            self.stream_end,
            pair(self.payload_bytes, self.segments),
            first_sent,
            complete,
        ]
    }

    fn of(fields: &[i64; FIELDS]) -> NamedPacket {
        let known_at = |at: i64| if at == -1 { ABSENT } else { at };
        let is = |bit: i64| fields[1] >> (16 + bit) & 1 == 1;
        NamedPacket {
            number: fields[0] as u32,
            kind: FollowedKind::Publish,
            to_broker: is(0),
            is_datagram: is(1),
            is_clients: is(2),
            dup: is(3),
            qos: fields[1] as u8 as i8,
            packet_id: fields[2] as i32,
            client: fields[3] as u32,
            connection: fields[4] as u32,
            topic: fields[5] as u32,
            publisher: fields[6] as u32,
            sequence: fields[7] as u32,
            stream_start: fields[8],
            stream_end: fields[9],
            payload_bytes: (fields[10] >> 32) as u32,
            segments: fields[10] as u32,
            first_sent_ns: known_at(fields[11]),
            complete_ns: known_at(fields[12]),
        }
    }
}

/// What sums to over all of them, and what there is among them.
#[derive(Default)]
pub(crate) struct ControlSums {
    pub(crate) packets: u64,
    /// Whether clients have seen some that no frame shows.
    pub(crate) has_clients: bool,
    /// Topics of PUBLISHes that say nothing of their messages.
    pub(crate) unnamed_topics: BTreeSet<i64>,
    /// By direction, kind, QoS and segments.
    sums: Tallies<(bool, i64, i8, u32), Sums>,
    topics: Tallies<i64, TopicSums>,
}

#[derive(Clone, Copy, Default)]
struct Sums {
    packets: u64,
    /// Fixed header, topic, packet identifier, properties, payload, all of the stream.
    bytes: [u64; 6],
}

/// What of a packet only sums need: its kind's number, and its sizes.
type Sizes = (i64, [u64; 6]);

#[derive(Clone, Copy, Default)]
struct TopicSums {
    to_broker: u64,
    to_client: u64,
    payload_bytes: u64,
}

const COLUMNS: [(&str, Wanted); 19] = [
    ("direction", Wanted::Words),
    ("kind", Wanted::Words),
    ("qos", Wanted::Integers),
    ("dup", Wanted::Integers),
    ("packet_id", Wanted::Integers),
    ("reason", Wanted::Integers),
    ("client", Wanted::Integers),
    ("connection", Wanted::Integers),
    ("topic", Wanted::Words),
    ("publisher", Wanted::Integers),
    ("sequence", Wanted::Integers),
    ("stream_start", Wanted::Integers),
    ("stream_end", Wanted::Integers),
    ("payload_bytes", Wanted::Integers),
    ("segments", Wanted::Integers),
    ("first_sent_ns", Wanted::Integers),
    ("complete_ns", Wanted::Integers),
    ("fixed_header_bytes", Wanted::Integers),
    ("topic_bytes", Wanted::Integers),
];
/// Columns that only sums need.
const SUMMED: [(&str, Wanted); 2] =
    [("packet_id_bytes", Wanted::Integers), ("property_bytes", Wanted::Integers)];
const PROTOCOL: (&str, Wanted) = ("protocol", Wanted::Words);
/// What a client says of packets that no frame shows. Earlier recordings have none.
const OF_CLIENTS: [(&str, Wanted); 3] =
    [("seen_by", Wanted::Words), ("written_ns", Wanted::Integers), ("read_ns", Wanted::Integers)];

/// How many `control_packets` has.
pub(crate) fn count(dir: &Path) -> Result<u64> {
    Ok(TableReader::open(dir, "control_packets")?.map_or(0, |table| table.rows()))
}

/// Reads all of them, in the order of the table, and hands out each.
pub(crate) fn for_each(
    dir: &Path,
    words: &mut Vocabulary,
    mut take: impl FnMut(&NamedPacket, Sizes) -> Result<()>,
) -> Result<()> {
    let Some(table) = TableReader::open(dir, "control_packets")? else { return Ok(()) };
    let kinds = Kinds::new(words);
    let [to_broker, mqtt_sn, by_client] =
        [&b"to_broker"[..], b"mqtt-sn", b"client"].map(|word| i64::from(words.code(word)));
    let wanted: Vec<_> = COLUMNS.into_iter().chain(SUMMED).chain([PROTOCOL]).chain(OF_CLIENTS).collect();
    let mut number = 0;
    table.for_each_batch(&wanted, words, |columns, rows, _| {
        for row in 0..rows {
            let at = |column: usize| columns[column].integers[row];
            let is_clients = at(22) == by_client;
            // A client's own time: when its socket had taken what it sent, or when it had read what came.
            let known_at = if at(0) == to_broker { at(23) } else { at(24) };
            let [first_sent_ns, complete_ns] = if is_clients { [known_at; 2] } else { [at(15), at(16)] };
            let packet = NamedPacket {
                number,
                kind: kinds.of(at(1), at(5)),
                to_broker: at(0) == to_broker,
                is_datagram: at(21) == mqtt_sn,
                is_clients,
                dup: at(3) == 1,
                qos: if at(2) == ABSENT { -1 } else { at(2) as i8 },
                packet_id: if at(4) == ABSENT { -1 } else { at(4) as i32 },
                client: narrow(at(6)),
                connection: narrow(at(7)),
                topic: narrow(at(8)),
                publisher: narrow(at(9)),
                sequence: narrow(at(10)),
                stream_start: at(11),
                stream_end: at(12),
                payload_bytes: at(13).max(0) as u32,
                segments: at(14).max(0) as u32,
                first_sent_ns,
                complete_ns,
            };
            let sizes = [at(17), at(18), at(19), at(20), at(13), at(12) - at(11)];
            take(&packet, (at(1), sizes.map(|size| size.max(0) as u64)))?;
            number += 1;
        }
        Ok(())
    })
}

impl ControlSums {
    /// Reads the packets, sums up, and hands out each.
    pub(crate) fn read(
        dir: &Path,
        words: &mut Vocabulary,
        mut take: impl FnMut(&NamedPacket) -> Result<()>,
    ) -> Result<ControlSums> {
        let mut found = ControlSums::default();
        for_each(dir, words, |packet, (kind, sizes)| {
            found.packets += 1;
            found.has_clients |= packet.is_clients;
            if packet.kind == FollowedKind::Publish && !packet.is_named() {
                found.unnamed_topics.insert(packet.topic());
            }
            found.count(packet, kind, sizes);
            take(packet)
        })?;
        Ok(found)
    }

    fn count(&mut self, packet: &NamedPacket, kind: i64, sizes: [u64; 6]) {
        let slot = (kind as u64) << 2 ^ u64::from(packet.segments) << 1 ^ u64::from(packet.to_broker);
        let sums = self.sums.of(slot, (packet.to_broker, kind, packet.qos, packet.segments));
        sums.packets += 1;
        for (sum, size) in sums.bytes.iter_mut().zip(sizes) {
            *sum += size;
        }
        if packet.kind == FollowedKind::Publish {
            let topic = self.topics.of(packet.topic() as u64, packet.topic());
            *(if packet.to_broker { &mut topic.to_broker } else { &mut topic.to_client }) += 1;
            topic.payload_bytes += u64::from(packet.payload_bytes);
        }
    }

    /// Writes the sums.
    pub(crate) fn write(&self, out: &Path, words: &Vocabulary) -> Result<()> {
        let mut table = PacketSumWriter::create(out)?;
        // In the order of the keys, since a table of numbers has none that two runs share.
        let sums: BTreeMap<_, _> = self.sums.iter().collect();
        for (&(to_broker, kind, qos, segments), sums) in sums {
            let [
                fixed_header_bytes,
                topic_bytes,
                packet_id_bytes,
                property_bytes,
                payload_bytes,
                stream_bytes,
            ] = sums.bytes;
            table.push(&PacketSumRow {
                direction: if to_broker { Towards::Broker } else { Towards::Client },
                kind: &words.word(kind as u32),
                qos: u8::try_from(qos).ok(),
                segments,
                packets: sums.packets,
                fixed_header_bytes,
                topic_bytes,
                packet_id_bytes,
                property_bytes,
                payload_bytes,
                stream_bytes,
            })?;
        }
        table.finish()?;
        let mut table = TopicSumWriter::create(out)?;
        let topics: BTreeMap<_, _> = self.topics.iter().collect();
        for (&topic, sums) in topics {
            let name = (topic != ABSENT).then(|| words.word(topic as u32));
            table.push(&TopicSumRow {
                topic: name.as_deref(),
                publish_to_broker: sums.to_broker,
                publish_to_client: sums.to_client,
                payload_bytes: sums.payload_bytes,
            })?;
        }
        table.finish()?;
        Ok(())
    }
}

/// The numbers of the kinds' names.
struct Kinds {
    /// MQTT's, MQTT-SN's, and ZeroMQ's.
    publishes: [i64; 2],
    release: i64,
    received: i64,
    over: [i64; 2],
    /// What only MQTT-SN's clients and gateways are followed by.
    others: [(i64, FollowedKind); 6],
}

impl Kinds {
    fn new(words: &mut Vocabulary) -> Kinds {
        let mut code = |name: &str| i64::from(words.code(name.as_bytes()));
        Kinds {
            publishes: [code("PUBLISH"), code("MESSAGE")],
            release: code("PUBREL"),
            received: code("PUBREC"),
            over: [code("PUBACK"), code("PUBCOMP")],
            others: [
                (code("REGISTER"), FollowedKind::Register),
                (code("REGACK"), FollowedKind::Registered),
                (code("CONNECT"), FollowedKind::Connect),
                (code("DISCONNECT"), FollowedKind::Disconnect),
                (code("PINGREQ"), FollowedKind::Ping),
                (code("PINGRESP"), FollowedKind::Pong),
            ],
        }
    }

    fn of(&self, kind: i64, reason: i64) -> FollowedKind {
        match kind {
            _ if self.publishes.contains(&kind) => FollowedKind::Publish,
            _ if kind == self.release => FollowedKind::Release,
            // MQTT 5 §3.5.2.1: reason codes from 0x80 on are errors.
            _ if kind == self.received => FollowedKind::Received { refuses: reason >= 0x80 },
            _ if self.over.contains(&kind) => FollowedKind::Over,
            _ => {
                let other = self.others.iter().find(|(code, _)| *code == kind);
                other.map_or(FollowedKind::Other, |&(_, kind)| kind)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_publish_comes_back_with_what_was_absent() {
        let one = NamedPacket {
            number: 3,
            kind: FollowedKind::Publish,
            to_broker: true,
            is_datagram: false,
            is_clients: true,
            dup: true,
            qos: -1,
            packet_id: -1,
            client: NONE,
            connection: 7,
            topic: 2,
            publisher: NONE,
            sequence: u32::MAX - 1,
            stream_start: ABSENT,
            stream_end: 1 << 40,
            payload_bytes: u32::MAX,
            segments: u32::MAX,
            first_sent_ns: ABSENT,
            complete_ns: 0,
        };
        let other = NamedPacket {
            to_broker: false,
            is_datagram: true,
            is_clients: false,
            dup: false,
            qos: 2,
            packet_id: 65_535,
            first_sent_ns: 0,
            complete_ns: ABSENT,
            ..one
        };
        for packet in [one, other] {
            assert_eq!(format!("{:?}", NamedPacket::of(&packet.fields())), format!("{packet:?}"));
        }
    }
}
