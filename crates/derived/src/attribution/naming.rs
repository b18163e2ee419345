//! PUBLISH packets without an identity, each with its message as far as the order tells.
//!
//! A payload of 1 to 8 bytes has the end of its message's number: a PUBLISH carries the next message of its topic, or, where
//! some were lost or come once more, the nearest whose number ends so. Empty ones, and those of recordings made before,
//! have nothing: there the n-th PUBLISH on a topic is the n-th message, and the n-th that a relay sends on is the n-th
//! that it has received.
//!
//! What programs send says nothing of the kind. Their messages were found in the frames, and have the times at which a PUBLISH
//! was there: the first byte's at the publisher, and the receiver's when all of it, or its PUBREL, had come.
//!
//! A stranger may publish on a run's topics, too. Only PUBLISHes that may carry one of its messages are looked at, by their topic
//! and size, and no more than several times as many as there are messages ([`PacketCandidates`]).
//!
//! What it does not model: copies of empty messages; topics with several publishers; subscribers that receive empty messages
//! both from their publisher and from a relay.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use mqttlab_recording::identity::SequenceEnd;
use mqttlab_recording::reading::{ABSENT, Vocabulary};
use mqttlab_recording::{NamedPacketRow, NamedPacketWriter, NumberMap, NumberSet, Result};

use crate::attribution::message_ranges::MessageKey as Message;
use crate::attribution::messages::{MessageOrder, Ordered};
use crate::control_packets::{FollowedKind, NamedPacket, for_each};
use crate::settings::RunSettings;

/// Names PUBLISH packets that say nothing of their messages, and writes down which message each of them is found to be. Hands
/// out those whose message is found, and returns these.
pub(crate) fn name(
    dir: &Path,
    out: &Path,
    unnamed_topics: &BTreeSet<i64>,
    settings: &RunSettings,
    words: &mut Vocabulary,
    mut take: impl FnMut(&NamedPacket) -> Result<()>,
) -> Result<BTreeMap<u32, Message>> {
    let mut table = NamedPacketWriter::create(out)?;
    let mut named = BTreeMap::new();
    let order = match unnamed_topics.is_empty() {
        true => MessageOrder::default(),
        false => MessageOrder::read(dir, words, settings)?,
    };
    if order.rows() > 0 {
        let origins = Origins::of(unnamed_topics.iter().copied(), &order, settings, words);
        let packets = packets(dir, PacketCandidates::of(&order, &origins), words)?;
        named = found(&packets, &order, &origins, settings);
        for (&number, &(publisher, sequence)) in &named {
            let place = packets.binary_search_by_key(&number, |packet| packet.number);
            let mut packet = packets[place.expect("it is one of them")];
            packet.name((publisher, sequence));
            take(&packet)?;
            table.push(&NamedPacketRow {
                packet: number.into(),
                publisher: publisher as u32,
                sequence: sequence as u32,
                identified: if settings.is_program(publisher) { "time" } else { "order" },
            })?;
        }
    }
    table.finish()?;
    Ok(named)
}

/// Which packets are looked at. What cannot be one of the run's messages is a stranger's: it is left where it is.
struct PacketCandidates<'a> {
    order: &'a MessageOrder,
    origins: &'a Origins,
    /// Who has sent what the order or the time tells.
    senders: NumberSet<i64>,
    /// How many more are taken. Each message has a few packets, with its copies; what is beyond that is no message of the run.
    room: usize,
}

impl<'a> PacketCandidates<'a> {
    fn of(order: &'a MessageOrder, origins: &'a Origins) -> PacketCandidates<'a> {
        let senders = order.sent.iter().chain(&order.sent_by_programs).map(|one| one.publisher).collect();
        PacketCandidates { order, origins, senders, room: ROOM + ROOM_FOR_ROW * order.rows() }
    }

    fn takes(&mut self, packet: &NamedPacket) -> bool {
        let has_programs = !self.order.sent_by_programs.is_empty();
        let is_one = match packet.kind {
            FollowedKind::Publish => !packet.is_named() && self.may_be_message(packet),
            FollowedKind::Release => has_programs && !packet.to_broker && packet.complete_ns != ABSENT,
            // It answers what its client has sent, and no stranger.
            FollowedKind::Over => {
                return !packet.to_broker
                    && packet.complete_ns != ABSENT
                    && self.senders.contains(&packet.client());
            }
            _ => false,
        };
        let has_room = is_one && self.room > 0;
        self.room -= usize::from(has_room);
        has_room
    }

    fn may_be_message(&self, packet: &NamedPacket) -> bool {
        let size = i64::from(packet.payload_bytes);
        let fits = |topic: i64| self.order.longest.get(&topic).is_some_and(|&longest| size <= longest);
        fits(packet.topic()) || fits(self.origins.of_topic(packet.topic()))
    }
}

/// Packets that are taken for each row that tells of a message, and beyond these.
const ROOM_FOR_ROW: usize = 8;
const ROOM: usize = 1 << 14;

/// The packets that are looked at, in the order of the table.
fn packets(
    dir: &Path,
    mut candidates: PacketCandidates<'_>,
    words: &mut Vocabulary,
) -> Result<Vec<NamedPacket>> {
    let mut packets = Vec::new();
    for_each(dir, words, |packet, _| {
        if candidates.takes(packet) {
            packets.push(*packet);
        }
        Ok(())
    })?;
    Ok(packets)
}

/// The message of each of them, by the packet's number.
fn found(
    packets: &[NamedPacket],
    messages: &MessageOrder,
    origins: &Origins,
    settings: &RunSettings,
) -> BTreeMap<u32, Message> {
    let orphans = packets.iter().filter(|packet| packet.kind == FollowedKind::Publish);
    let mut orphans: Vec<(u32, &NamedPacket)> = orphans.map(|packet| (packet.number, packet)).collect();
    let mut named = BTreeMap::new();
    // What is certain goes first: the instant, then the number's end, and the mere order for what is left.
    by_time(packets, &orphans, messages, &mut named);
    let is_programs = |packet: &NamedPacket| packet.to_broker && settings.is_program(packet.client());
    orphans.retain(|(number, packet)| !named.contains_key(number) && !is_programs(packet));
    by_end(&orphans, messages, origins, &mut named);
    orphans.retain(|(_, packet)| packet.sequence_end().is_none());
    let is_copy =
        |packet: &NamedPacket| packet.to_broker && origins.of_topic(packet.topic()) != packet.topic();
    let of_clients = |&(_, packet): &(u32, &NamedPacket)| packet.to_broker && !is_copy(packet);
    by_order_sent(packets, orphans.iter().copied().filter(of_clients).collect(), messages, &mut named);
    let down = |&(_, packet): &(u32, &NamedPacket)| !packet.to_broker && packet.complete_ns != ABSENT;
    by_order_received(orphans.iter().copied().filter(down).collect(), messages, origins, &mut named);
    // What a relay sends on it has received before, in the same order.
    let relayed = |&(_, packet): &(u32, &NamedPacket)| is_copy(packet) && !packet.dup;
    by_order_received(orphans.iter().copied().filter(relayed).collect(), messages, origins, &mut named);
    named
}

/// The message that was sent, or had been received, when frames show that it was.
fn by_time(
    packets: &[NamedPacket],
    orphans: &[(u32, &NamedPacket)],
    messages: &MessageOrder,
    named: &mut BTreeMap<u32, Message>,
) {
    if messages.sent_by_programs.is_empty() {
        return;
    }
    let releases = Releases::of(packets);
    let mut publishes: Vec<(u32, &NamedPacket)> = orphans.to_vec();
    // Of several at one instant the first of the stream is the first of its publisher.
    publishes.sort_by_key(|(_, packet)| (packet.connection, packet.stream_start));
    let by_instant = |all: &[Ordered]| {
        let mut found: NumberMap<(i64, i64, i64), VecDeque<Message>> = NumberMap::default();
        for one in all {
            let at = found.entry((one.client, one.topic, one.at_ns)).or_default();
            at.push_back((one.publisher, one.sequence));
        }
        found
    };
    let mut sent = by_instant(&messages.sent_by_programs);
    let mut received = by_instant(&messages.received_of_programs);
    let ups = publishes.iter().filter(|(_, packet)| packet.to_broker).copied().collect::<Vec<_>>();
    let exchanges = PacketExchanges::of(packets, &ups);
    let mut copies = Vec::new();
    for (number, packet) in publishes {
        let (found, at) = match packet.to_broker {
            true => (&mut sent, packet.first_sent_ns),
            false => (&mut received, releases.received(packet)),
        };
        let message = found.get_mut(&(packet.client(), packet.topic(), at)).and_then(VecDeque::pop_front);
        match message {
            Some(message) => {
                named.insert(number, message);
            }
            None => {
                // A repetition has no instant of its own: it is the message that its identifier's exchange began
                // with.
                let original = exchanges.repeated_by(packet).filter(|_| packet.to_broker);
                copies.extend(original.map(|original| (number, original)));
            }
        }
    }
    for (number, original) in copies {
        if let Some(&message) = named.get(&original) {
            named.insert(number, message);
        }
    }
}

/// When PUBREL packets had come to clients, by client and packet identifier, in order.
struct Releases(NumberMap<(i64, i32), Vec<i64>>);

impl Releases {
    fn of(packets: &[NamedPacket]) -> Releases {
        let mut found: NumberMap<_, Vec<_>> = NumberMap::default();
        for packet in packets {
            if packet.kind == FollowedKind::Release && !packet.to_broker && packet.complete_ns != ABSENT {
                found.entry((packet.client(), packet.packet_id)).or_default().push(packet.complete_ns);
            }
        }
        // The table has the order of the connections, and a client may have had several.
        found.values_mut().for_each(|times| times.sort_unstable());
        Releases(found)
    }

    /// When the receiver of a PUBLISH had it: at QoS 2 that is with the next PUBREL of its identifier.
    fn received(&self, packet: &NamedPacket) -> i64 {
        if packet.qos != 2 || packet.complete_ns == ABSENT {
            return packet.complete_ns;
        }
        let times = self.0.get(&(packet.client(), packet.packet_id)).map_or(&[][..], Vec::as_slice);
        let next = times.partition_point(|&at| at < packet.complete_ns);
        times.get(next).copied().unwrap_or(ABSENT)
    }
}

/// For each topic the one that its messages were first published to: relays append something to it.
struct Origins(NumberMap<i64, i64>);

impl Origins {
    fn of(
        topics: impl Iterator<Item = i64>,
        messages: &MessageOrder,
        settings: &RunSettings,
        words: &mut Vocabulary,
    ) -> Origins {
        let mut known = NumberMap::default();
        for one in topics.filter(|&topic| topic != ABSENT) {
            let mut topic = one;
            while !messages.topics.contains(&topic) {
                let name = words.word(topic as u32).into_owned();
                let shorter = settings.suffixes.iter().find_map(|suffix| name.strip_suffix(suffix.as_str()));
                match shorter {
                    Some(shorter) if shorter.len() < name.len() => {
                        topic = words.code(shorter.as_bytes()).into();
                    }
                    _ => break,
                }
            }
            known.insert(one, topic);
        }
        Origins(known)
    }

    fn of_topic(&self, topic: i64) -> i64 {
        self.0.get(&topic).copied().unwrap_or(ABSENT)
    }
}

/// What the end of its number says, beside the message that is expected next.
fn by_end(
    orphans: &[(u32, &NamedPacket)],
    messages: &MessageOrder,
    origins: &Origins,
    named: &mut BTreeMap<u32, Message>,
) {
    // By topic, with its one publisher; `None` where there are several.
    let mut sent: NumberMap<i64, Option<(i64, Vec<i64>)>> = NumberMap::default();
    for one in &messages.sent {
        let topic = sent.entry(one.topic).or_insert_with(|| Some((one.publisher, Vec::new())));
        match topic {
            Some((publisher, sequences)) if *publisher == one.publisher => sequences.push(one.sequence),
            _ => *topic = None,
        }
    }
    let ends = orphans.iter().filter_map(|&(number, packet)| Some((number, packet, packet.sequence_end()?)));
    let mut ends: Vec<(u32, &NamedPacket, SequenceEnd)> = ends.collect();
    ends.sort_by_key(|(_, packet, _)| (packet.first_sent_ns, packet.connection, packet.stream_start));
    let mut next = NumberMap::default();
    for (number, packet, end) in ends {
        let Some(Some((publisher, sequences))) = sent.get(&origins.of_topic(packet.topic())) else {
            continue;
        };
        let expected = next.entry((packet.connection_end(), packet.topic())).or_default();
        let sequence = |place: usize| sequences[place] as u32;
        if let Some(place) = end.place(*expected, sequences.len(), sequence) {
            named.insert(number, (*publisher, sequences[place]));
            // A message that was lost is skipped: numbers go up on a topic, and its receiver sees gaps.
            *expected = place + 1;
        }
    }
}

/// The n-th message that a client began to send on a topic is its n-th message there.
fn by_order_sent(
    packets: &[NamedPacket],
    mut publishes: Vec<(u32, &NamedPacket)>,
    messages: &MessageOrder,
    named: &mut BTreeMap<u32, Message>,
) {
    let mut nth = NumberMap::default();
    let mut sent = NumberMap::default();
    for one in &messages.sent {
        let count = nth.entry((one.client, one.topic)).or_insert(0_u64);
        sent.insert((one.client, one.topic, *count), one.sequence);
        *count += 1;
    }
    publishes.sort_by_key(|(_, packet)| (packet.first_sent_ns, packet.connection, packet.stream_start));
    let exchanges = PacketExchanges::of(packets, &publishes);
    let mut copies = Vec::new();
    nth.clear();
    for (number, packet) in publishes {
        if let Some(original) = exchanges.repeated_by(packet) {
            copies.push((number, original));
            continue;
        }
        let count = nth.entry((packet.client(), packet.topic())).or_insert(0);
        if let Some(&sequence) = sent.get(&(packet.client(), packet.topic(), *count)) {
            named.entry(number).or_insert((packet.client(), sequence));
        }
        *count += 1;
    }
    for (number, original) in copies {
        if let Some(&message) = named.get(&original) {
            named.entry(number).or_insert(message);
        }
    }
}

/// When clients began exchanges, and when they were over, by client and packet identifier.
struct PacketExchanges {
    begun: NumberMap<(i64, i32), Vec<(i64, u32)>>,
    over: NumberMap<(i64, i32), Vec<i64>>,
}

impl PacketExchanges {
    fn of(packets: &[NamedPacket], publishes: &[(u32, &NamedPacket)]) -> PacketExchanges {
        let (mut begun, mut over) = (NumberMap::<_, Vec<_>>::default(), NumberMap::<_, Vec<_>>::default());
        for &(number, packet) in publishes.iter().filter(|(_, packet)| !packet.dup) {
            begun
                .entry((packet.client(), packet.packet_id))
                .or_default()
                .push((packet.first_sent_ns, number));
        }
        for packet in packets {
            if packet.kind == FollowedKind::Over && !packet.to_broker && packet.complete_ns != ABSENT {
                over.entry((packet.client(), packet.packet_id)).or_default().push(packet.complete_ns);
            }
        }
        begun.values_mut().for_each(|times| times.sort_by_key(|&(at, _)| at));
        over.values_mut().for_each(|times| times.sort_unstable());
        PacketExchanges { begun, over }
    }

    /// The packet that one with DUP repeats: the last one with its identifier, unless that had been acknowledged. One that
    /// had never left its socket repeats nothing seen.
    fn repeated_by(&self, packet: &NamedPacket) -> Option<u32> {
        if !packet.dup {
            return None;
        }
        let key = (packet.client(), packet.packet_id);
        let begun = self.begun.get(&key)?;
        let last = begun.partition_point(|&(at, _)| at < packet.first_sent_ns).checked_sub(1)?;
        let (first_ns, original) = begun[last];
        let over = self.over.get(&key).map_or(&[][..], Vec::as_slice);
        let acknowledged = over.partition_point(|&at| at < packet.first_sent_ns).checked_sub(1);
        acknowledged.is_none_or(|place| over[place] < first_ns).then_some(original)
    }
}

/// The n-th of a client's PUBLISHes on a topic is the n-th message of that origin that it received.
fn by_order_received(
    mut publishes: Vec<(u32, &NamedPacket)>,
    messages: &MessageOrder,
    origins: &Origins,
    named: &mut BTreeMap<u32, Message>,
) {
    let mut nth = NumberMap::default();
    let mut received = NumberMap::default();
    for one in &messages.received {
        let count = nth.entry((one.client, one.topic)).or_insert(0_u64);
        received.insert((one.client, one.topic, *count), (one.publisher, one.sequence));
        *count += 1;
    }
    let at = |packet: &NamedPacket| {
        if packet.complete_ns == ABSENT { packet.first_sent_ns } else { packet.complete_ns }
    };
    publishes.sort_by_key(|(_, packet)| (at(packet), packet.connection, packet.stream_start));
    nth.clear();
    for (number, packet) in publishes {
        let count = nth.entry((packet.client(), packet.topic())).or_insert(0);
        if let Some(&message) = received.get(&(packet.client(), origins.of_topic(packet.topic()), *count)) {
            named.entry(number).or_insert(message);
        }
        *count += 1;
    }
}
