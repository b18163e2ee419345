//! What a simulation writes down: every message, every frame on every link, every control packet; samples and figures.
//!
//! A row that cannot be written ends the run; what was written before stays.

pub(crate) mod figures;
pub(crate) mod recording;
pub(crate) mod sampling;

use std::fmt::Write;

use mqttlab_framing::Sealed;
use mqttlab_mqtt::{Kind, Qos, Version};
use mqttlab_net::{self as net, Fate};
use mqttlab_recording::{
    Cause, ControlPacketRow, DirectRecorder, Direction, Dropped, Error, Event, EventKind, FrameFate, Layout,
    LossCause, PacketRow, SeenBy, SeenPacket, SeenSegment, SegmentAnalyser, Towards,
};
use mqttlab_tcp::{Ecn, Flags, Segment};
use mqttlab_units::{Duration, Instant};
use mqttlab_zmtp::Kind as Frames;

use crate::hosts::connections::SimConnection;
use crate::hosts::datagrams::{DatagramConversation, SimDatagram};
use crate::hosts::stream::StreamPacket;
use crate::hosts::wire::{CarriedSegment, SimFrame};
use crate::ids::{ClientId, HostId, Side};
use crate::message_tokens;

/// The recording, being written.
pub(crate) struct Records {
    recorder: DirectRecorder,
    /// Whether frames and control packets are written down.
    packets: bool,
    /// What clients speak, by number.
    versions: Box<[Version]>,
    analyser: Box<dyn SegmentAnalyser>,
    failure: Option<Error>,
    /// Whether clients are disconnecting because the run is over.
    run_is_over: bool,
    carried: Vec<SeenPacket>,
    mqtt: String,
    sack: String,
    marks: String,
}

/// What a link did to a frame.
pub(crate) struct Crossing {
    pub(crate) link: usize,
    pub(crate) hop: usize,
    /// Which copy of the frame; 0 for the frame itself.
    pub(crate) copy: u16,
    pub(crate) frame_bytes: u32,
    pub(crate) entered: Instant,
    pub(crate) fate: Fate,
}

impl Records {
    pub(crate) fn new(
        recorder: DirectRecorder,
        (packets, versions): (bool, Box<[Version]>),
        analyser: Box<dyn SegmentAnalyser>,
    ) -> Records {
        let (mqtt, sack, marks) = Default::default();
        Records {
            recorder,
            packets,
            versions,
            analyser,
            failure: None,
            run_is_over: false,
            carried: Vec::new(),
            mqtt,
            sack,
            marks,
        }
    }

    /// What could not be written, if anything.
    pub(crate) fn failure(&self) -> Option<&Error> {
        self.failure.as_ref()
    }

    /// The recorder, for the end; with the network's metrics written.
    pub(crate) fn finish(mut self) -> (DirectRecorder, Option<Error>) {
        let Records { recorder, analyser, .. } = &mut self;
        let mut outcome = Ok(());
        analyser.network_metrics(&mut |row| {
            if outcome.is_ok() {
                outcome = recorder.network_metric(row);
            }
        });
        self.keep(outcome);
        (self.recorder, self.failure)
    }

    /// Writes a row of messages.
    pub(crate) fn message(&mut self, write: impl FnOnce(&mut DirectRecorder) -> Result<(), Error>) {
        let outcome = write(&mut self.recorder);
        self.keep(outcome);
    }

    /// From here on, what connections and sessions take with them is not lost: the run ended before it could arrive.
    pub(crate) fn set_run_over(&mut self) {
        self.run_is_over = true;
    }

    /// A message will not reach a client, or none that has not got it.
    pub(crate) fn dropped(
        &mut self,
        at: Instant,
        message: u64,
        subscriber: Option<ClientId>,
        cause: LossCause,
    ) {
        if self.run_is_over && !cause.is_dropped_by_server() && !cause.is_dropped_by_link() {
            return;
        }
        let Some((publisher, sequence)) = message_tokens::origin(message) else { return };
        let subscriber = subscriber.map(|client| client.0);
        let row = Dropped { publisher: publisher.0, sequence, subscriber, cause, at };
        self.message(|recorder| recorder.dropped(&row));
    }

    /// A packet was still in a connection that has ended: nobody will read it, and at QoS 0 it is not sent again.
    pub(crate) fn dropped_with_connection(
        &mut self,
        at: Instant,
        client: Option<ClientId>,
        from: Side,
        packet: &StreamPacket,
    ) {
        if !packet.is_packet() || !packet.kind.is_message() || packet.qos != Qos::AtMostOnce {
            return;
        }
        self.dropped_on_way(at, client, from, packet.message, LossCause::ConnectionLost);
    }

    /// A link dropped the datagram with a message that is not sent again.
    pub(crate) fn dropped_with_datagram(
        &mut self,
        at: Instant,
        client: ClientId,
        datagram: &SimDatagram,
        cause: net::Cause,
    ) {
        if let Some(message) = datagram.packet.unrepeated_message() {
            let cause = LossCause::of_datagram(cause);
            self.dropped_on_way(at, Some(client), datagram.from, message, cause);
        }
    }

    /// A message was lost between a client and its server.
    fn dropped_on_way(
        &mut self,
        at: Instant,
        client: Option<ClientId>,
        from: Side,
        message: u64,
        cause: LossCause,
    ) {
        match from {
            // What comes for many clients is nobody's alone.
            Side::Server if client.is_none() => {}
            Side::Server => self.dropped(at, message, client, cause),
            // A copy that a relay makes is not for those who get the message itself.
            Side::Client if client.is_none_or(|client| message_tokens::owner(message) == client) => {
                self.dropped(at, message, None, cause);
            }
            Side::Client => {}
        }
    }

    /// The layout that the recording was begun with.
    pub(crate) fn layout(&self) -> Result<Layout, Error> {
        self.recorder.layout()
    }

    /// Something happened once.
    pub(crate) fn event(
        &mut self,
        at: Instant,
        kind: EventKind,
        client: Option<ClientId>,
        took: Option<Duration>,
        detail: &str,
    ) {
        let client = client.map(|client| client.0);
        let outcome = self.recorder.event(&Event { at, kind, client, took }, detail);
        self.keep(outcome);
    }

    /// From here on what is recorded stays, however the run ends.
    pub(crate) fn keep_from_here(&mut self) {
        self.recorder.keep();
    }

    /// Whether frames and control packets are written down.
    pub(crate) fn has_packets(&self) -> bool {
        self.packets
    }

    /// A frame with a segment met a link.
    pub(crate) fn crossed(
        &mut self,
        connection: &mut SimConnection,
        frame: &SimFrame,
        carried: &CarriedSegment,
        crossing: &Crossing,
    ) {
        self.mqtt.clear();
        self.marks.clear();
        let mut ack_rtt_ns = None;
        if crossing.hop == 0 {
            ack_rtt_ns = self.analyse(connection, frame, carried, crossing);
        }
        let segment = &carried.segment;
        describe_sack(segment, &mut self.sack);
        let words =
            [&self.sack, &self.mqtt, &self.marks].map(|text| Some(&**text).filter(|text| !text.is_empty()));
        let [sack, mqtt, marks] = words;
        let row = PacketRow {
            protocol: TCP,
            connection: Some(connection.number),
            seq: Some(segment.seq.0),
            ack: segment.flags.has(Flags::ACK).then_some(segment.ack.0),
            flags: Some(segment.flags.bits()),
            window: Some(segment.window),
            payload_bytes: u32::from(segment.length),
            tsval: segment.timestamps.map(|stamps| stamps.value),
            tsecr: segment.timestamps.map(|stamps| stamps.echo),
            sack,
            stream_offset: carried.offset,
            mqtt,
            marks,
            ack_rtt_ns,
            ecn: (segment.ecn != Ecn::NotEct).then_some(segment.ecn as u8),
            ..row(frame, crossing, connection.hosts, connection.ports)
        };
        let outcome = write_row(&mut self.recorder, &row, crossing);
        self.keep(outcome);
    }

    /// A frame with a datagram met a link.
    pub(crate) fn datagram_crossed(
        &mut self,
        conversation: &DatagramConversation,
        frame: &SimFrame,
        datagram: &SimDatagram,
        crossing: &Crossing,
    ) {
        self.mqtt.clear();
        if crossing.hop == 0 {
            write!(self.mqtt, "{}", datagram.packet.account()).expect("a string takes all");
        }
        let row = PacketRow {
            protocol: UDP,
            connection: Some(conversation.number),
            stream_offset: Some(datagram.start),
            payload_bytes: datagram.bytes,
            mqtt: Some(&*self.mqtt).filter(|text| !text.is_empty()),
            ..row(frame, crossing, conversation.hosts, conversation.ports)
        };
        let mut outcome = write_row(&mut self.recorder, &row, crossing);
        let complete = match crossing.fate {
            Fate::Delivered(delivery) if delivery.corrupted_bit.is_none() => Some(delivery.at),
            _ => None,
        };
        // A copy says nothing that the datagram itself has not said.
        let is_over = complete.is_none() || crossing.hop + 1 >= usize::from(frame.hops);
        if crossing.copy == 0 && is_over {
            let row = datagram_row(conversation, datagram, complete);
            outcome = outcome.and_then(|()| self.recorder.control_packet(&row));
        }
        self.keep(outcome);
    }

    /// A control packet has been read by its receiver, or never will be.
    pub(crate) fn control_packet(
        &mut self,
        connection: &SimConnection,
        from: Side,
        packet: &StreamPacket,
        topic: &str,
    ) {
        // Without frames it is not known when it was sent.
        let is_wanted = self.packets && packet.is_packet();
        let Some(first_sent) = packet.first_sent.get().filter(|_| is_wanted) else { return };
        let is_message = packet.kind.is_message();
        let parts = PacketSizes::of(packet);
        let client = connection.client.map(|client| client.0);
        let version = client.and_then(|client| self.versions.get(client as usize)).copied();
        let origin = is_message.then(|| message_tokens::origin(packet.message)).flatten();
        let outcome = self.recorder.control_packet(&ControlPacketRow {
            connection: connection.number,
            seen_by: SeenBy::Capture,
            transport: packet.kind.protocol().transport(),
            protocol: packet.kind.protocol().as_str(),
            direction: if from == Side::Client { Towards::Broker } else { Towards::Client },
            client,
            kind: packet.kind.name(),
            qos: is_message.then(|| packet.qos.level()),
            dup: packet.dup,
            retain: packet.retain,
            packet_id: Some(packet.id).filter(|&id| id != 0),
            reason: packet.kind.mqtt().and_then(|kind| reason_of(kind, packet.qos, version)),
            topic: is_message.then_some(topic),
            publisher: origin.map(|(publisher, _)| publisher.0),
            sequence: origin.map(|(_, sequence)| sequence),
            stream_start: packet.start,
            stream_end: packet.end,
            fixed_header_bytes: parts.fixed_header,
            topic_bytes: packet.topic_bytes.into(),
            packet_id_bytes: parts.id,
            property_bytes: packet.property_bytes,
            payload_bytes: parts.payload,
            first_sent_ns: Some(first_sent.as_ns()),
            complete_ns: packet.complete.get().map(Instant::as_ns),
            segments: Some(packet.segments),
            written_ns: None,
            read_ns: None,
        });
        self.keep(outcome);
    }

    /// Notes which packets a segment carries, and asks what the segment is. Returns the round trip it shows.
    fn analyse(
        &mut self,
        connection: &mut SimConnection,
        frame: &SimFrame,
        carried: &CarriedSegment,
        crossing: &Crossing,
    ) -> Option<u64> {
        let segment = &carried.segment;
        let stream = &mut connection.streams[frame.from as usize];
        let (mqtt, packets) = (&mut self.mqtt, &mut self.carried);
        packets.clear();
        let mut sealed = Sealed::default();
        if let Some(start) = carried.offset {
            let end = start + u64::from(segment.length);
            if connection.layered.is_some() {
                sealed = stream.layer_bytes(start, end);
            }
            stream.sent(crossing.entered, start, end, |packet, ends| {
                if !packet.is_packet() {
                    return;
                }
                if ends {
                    name(packet, mqtt);
                }
                // With its frame's header in the segment before it belongs here. What the analyser counts are packets of MQTT.
                if packet.body() >= start && packet.body() < end && packet.kind.mqtt().is_some() {
                    packets.push(seen(packet));
                }
            });
        }
        let mut sack = [(0, 0); 4];
        let blocks =
            segment.sack.iter().zip(&mut sack).map(|((start, end), block)| *block = (start.0, end.0)).count();
        let [client, server] = connection.hosts.map(|host| host.0 as u16);
        let to_server = frame.from == Side::Client;
        let judgement = self.analyser.segment(&SeenSegment {
            at: crossing.entered,
            connection: connection.number,
            client: connection.client.map(|client| client.0),
            to_broker: to_server,
            hosts: if to_server { [client, server] } else { [server, client] },
            ports: ports(connection.ports, frame.from),
            seq: segment.seq.0,
            ack: segment.ack.0,
            flags: segment.flags.bits(),
            window: segment.window,
            mss: segment.mss,
            window_scale: segment.window_scale,
            timestamps: segment.timestamps.map(|stamps| (stamps.value, stamps.echo)),
            sack: &sack[..blocks],
            header_bytes: u32::from(segment.header_bytes()),
            payload_bytes: u32::from(segment.length),
            frame_bytes: crossing.frame_bytes,
            websocket_bytes: sealed.websocket,
            tls_bytes: sealed.tls,
            packets: &self.carried,
        });
        self.marks.push_str(judgement.marks.unwrap_or_default());
        judgement.ack_rtt.map(Duration::as_ns)
    }

    fn keep(&mut self, outcome: Result<(), Error>) {
        if let Err(error) = outcome {
            self.failure.get_or_insert(error);
        }
    }
}

/// Writes a frame's row down with what became of it on the link, and that of the copy which the link made.
fn write_row(recorder: &mut DirectRecorder, row: &PacketRow<'_>, crossing: &Crossing) -> Result<(), Error> {
    let mut row = PacketRow { ..*row };
    match crossing.fate {
        Fate::Delivered(delivery) => {
            row.start_ns = Some(delivery.start.as_ns());
            row.sent_ns = Some(delivery.sent.as_ns());
            row.delivered_ns = Some(delivery.at.as_ns());
            if delivery.is_marked {
                row.ecn = Some(Ecn::Ce as u8);
            }
            if delivery.corrupted_bit.is_some() {
                (row.fate, row.cause) = (FrameFate::Corrupted, Some(Cause::BitError));
            }
        }
        Fate::Dropped { cause, air } => {
            row.start_ns = air.map(|air| air.0.as_ns());
            row.sent_ns = air.map(|air| air.1.as_ns());
            (row.fate, row.cause) = (FrameFate::Dropped, Some(cause));
        }
    }
    recorder.packet(&row)?;
    if let Fate::Delivered(net::Delivery { duplicate_at: Some(copy_at), .. }) = crossing.fate {
        let delivered_ns = Some(copy_at.as_ns());
        let copy = PacketRow { delivered_ns, fate: FrameFate::Duplicated, cause: None, ..row };
        recorder.packet(&copy)?;
    }
    Ok(())
}

/// A frame on a link, whatever it carries and whatever becomes of it.
fn row<'a>(frame: &SimFrame, crossing: &Crossing, hosts: [HostId; 2], by_side: [u16; 2]) -> PacketRow<'a> {
    let (from, to) = (frame.from as usize, frame.from.other() as usize);
    let [source, destination] = ports(by_side, frame.from);
    PacketRow {
        link: crossing.link as u16,
        direction: if frame.from == Side::Client { Direction::Up } else { Direction::Down },
        hop: crossing.hop as u8,
        hops: frame.hops,
        frame: frame.number,
        from_host: hosts[from].0 as u16,
        to_host: hosts[to].0 as u16,
        entered_ns: crossing.entered.as_ns(),
        start_ns: None,
        sent_ns: None,
        delivered_ns: None,
        fate: FrameFate::Delivered,
        cause: None,
        frame_bytes: crossing.frame_bytes,
        ip_bytes: frame.cargo.ip_bytes(),
        protocol: 0,
        source_port: Some(source),
        destination_port: Some(destination),
        connection: None,
        seq: None,
        ack: None,
        flags: None,
        window: None,
        payload_bytes: 0,
        tsval: None,
        tsecr: None,
        sack: None,
        stream_offset: None,
        mqtt: None,
        marks: None,
        ack_rtt_ns: None,
        repetition: frame.repetition,
        ecn: None,
    }
}

/// A packet in a datagram that has arrived, or will not.
fn datagram_row<'a>(
    conversation: &DatagramConversation,
    datagram: &'a SimDatagram,
    complete: Option<Instant>,
) -> ControlPacketRow<'a> {
    let account = datagram.packet.account();
    let origin = datagram.packet.message().and_then(|content| message_tokens::origin(content.message));
    let publisher = origin.map(|(publisher, _)| publisher.0);
    ControlPacketRow {
        connection: conversation.number,
        seen_by: SeenBy::Capture,
        transport: account.kind.protocol().transport(),
        protocol: account.kind.protocol().as_str(),
        direction: if datagram.from == Side::Client { Towards::Broker } else { Towards::Client },
        // QoS -1 has no connection that could have said whose it is, but the message does.
        client: if account.without_connection { publisher } else { Some(conversation.client.0) },
        kind: account.kind.name(),
        qos: account.qos,
        dup: account.dup,
        retain: account.retain,
        packet_id: Some(account.id).filter(|&id| id != 0),
        reason: account.reason,
        topic: account.topic,
        publisher,
        sequence: origin.map(|(_, sequence)| sequence),
        stream_start: datagram.start,
        stream_end: datagram.start + u64::from(datagram.bytes),
        fixed_header_bytes: account.fixed_header_bytes,
        topic_bytes: account.topic_bytes,
        packet_id_bytes: account.packet_id_bytes,
        property_bytes: 0,
        payload_bytes: account.payload_bytes,
        first_sent_ns: Some(datagram.sent.as_ns()),
        complete_ns: complete.map(Instant::as_ns),
        segments: Some(1),
        written_ns: None,
        read_ns: None,
    }
}

/// The sender's port and the receiver's, of those by side.
fn ports(by_side: [u16; 2], from: Side) -> [u16; 2] {
    [from, from.other()].map(|side| by_side[side as usize])
}

fn describe_sack(segment: &Segment, text: &mut String) {
    text.clear();
    for (start, end) in segment.sack.iter() {
        let blank = if text.is_empty() { "" } else { " " };
        write!(text, "{blank}{}-{}", start.0, end.0).expect("a string takes all");
    }
}

/// The code of an answer. The simulated broker refuses nothing, and no client refuses what is delivered.
fn reason_of(kind: Kind, granted: Qos, version: Option<Version>) -> Option<u8> {
    use Kind::{Connack, Disconnect, Puback, Pubcomp, Pubrec, Pubrel, Suback, Unsuback};
    match kind {
        Connack => Some(0),
        Suback => Some(granted.level()),
        Puback | Pubrec | Pubrel | Pubcomp | Unsuback | Disconnect => {
            version.filter(|version| *version == Version::V5).map(|_| 0)
        }
        _ => None,
    }
}

/// A packet as the `mqtt` column names it.
fn name(packet: &StreamPacket, text: &mut String) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(packet.kind.name());
    let Some(kind) = packet.kind.mqtt() else { return };
    let written = match (kind == Kind::Publish, packet.id) {
        (true, 0) => {
            text.push_str(["(0)", "(1)", "(2)"][usize::from(packet.qos.level())]);
            Ok(())
        }
        (true, id) => write!(text, "({},{id})", packet.qos.level()),
        (false, 0) => Ok(()),
        (false, id) => write!(text, "({id})"),
    };
    written.expect("a string takes all");
}

/// A packet as the analyser sees it.
fn seen(packet: &StreamPacket) -> SeenPacket {
    let parts = PacketSizes::of(packet);
    SeenPacket {
        offset: packet.body(),
        kind: packet.kind,
        qos: packet.qos.level(),
        dup: packet.dup,
        retain: packet.retain,
        id: Some(packet.id).filter(|&id| id != 0),
        fixed_header_bytes: parts.fixed_header,
        topic_bytes: packet.topic_bytes.into(),
        packet_id_bytes: parts.id,
        property_bytes: packet.property_bytes,
        payload_bytes: parts.payload,
    }
}

/// Sizes that follow from the packet's whole.
struct PacketSizes {
    fixed_header: u32,
    id: u32,
    /// Of packets other than PUBLISH everything else.
    payload: u32,
}

impl PacketSizes {
    fn of(packet: &StreamPacket) -> PacketSizes {
        let total = (packet.end - packet.start) as u32 - packet.sealed.bytes();
        if let Some(kind) = packet.kind.zeromq() {
            let content = packet.payload_bytes + u32::from(packet.topic_bytes);
            return match kind {
                Frames::Message => {
                    PacketSizes { fixed_header: total - content, id: 0, payload: packet.payload_bytes }
                }
                Frames::Greeting => PacketSizes { fixed_header: 0, id: 0, payload: total },
                _ => {
                    let fixed_header = if total > 257 { 9 } else { 2 };
                    PacketSizes { fixed_header, id: 0, payload: total - fixed_header }
                }
            };
        }
        // One byte, and the remaining length in groups of seven bits (MQTT 3.1.1 §2.2.3).
        let fixed_header = [(128, 2), (16_384, 3), (2_097_152, 4)]
            .into_iter()
            .find(|(limit, bytes)| total - bytes < *limit)
            .map_or(5, |(_, bytes)| bytes);
        let id = if packet.id != 0 { 2 } else { 0 };
        let payload = if packet.kind.is_message() { packet.payload_bytes } else { total - fixed_header - id };
        PacketSizes { fixed_header, id, payload }
    }
}

/// The IP protocol number.
const TCP: u8 = 6;
const UDP: u8 = 17;
