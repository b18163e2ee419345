//! MQTT over TCP in captures: the rows of segments and of control packets, and what they mean for messages.

use std::fmt::Write;

use mqttlab_capture::mqtt::{CapturedPacket, Kind};
use mqttlab_capture::{Bits, CapturedFrame, Completed, Passage, SegmentPayload, ServerDirection, TcpHeader};
use mqttlab_recording::{ControlPacketRow, Direction as Way, EventKind, FrameHeaders, PacketRow};
use mqttlab_units::Instant;

use super::super::both_ends::SegmentRange;
use super::super::error::Result;
use super::super::headers;
use super::super::message::{CountedMessage, SeenPublish};
use super::super::positions;
use super::super::row_texts::{RowTexts, name, word};
use super::super::streams::StreamPlace;
use super::{FramePlace, Importer};

impl Importer<'_> {
    pub(super) fn segment(
        &mut self,
        place: FramePlace,
        frame: &CapturedFrame<'_>,
        ecn: Option<u8>,
        segment: &TcpHeader,
        payload: &[u8],
    ) -> Result<()> {
        let annotations = self.analyser.segment(segment, SegmentPayload::Bytes(payload));
        let (connection, direction) = (annotations.connection, annotations.direction);
        let named_ends = annotations.named_ends;
        let is_stale = annotations.is_stale;
        let mut verdict = annotations.verdict;
        verdict.ack_rtt = verdict.ack_rtt.filter(|_| frame.is_timed);
        self.words.clear();
        let complete = annotations.packets.iter().map(|completed| &completed.packet);
        let complete = complete.filter(|packet| packet.complete.frame == annotations.frame);
        complete.for_each(|packet| name(packet, &mut self.words.mqtt));
        self.analyser.swap_packets(&mut self.packets);
        write!(self.words.marks, "{}", verdict.marks).expect("a string takes all");
        let offset = match (is_stale, place.transit) {
            (true, _) => None,
            // The capture says when it arrives.
            (false, Some(_)) => self.streams.offset(connection, direction, segment, payload.len()),
            (false, None) => self.streams.place(connection, direction, segment, payload.len()),
        };
        if segment.bits.has(Bits::ACK) && !is_stale {
            self.acknowledged(connection as u32, direction.opposite())?;
        }
        let ends = [segment.source, segment.destination];
        if let Some(capture) = place.capture {
            self.matcher.clocks.note(ends, connection as u32, capture);
        }
        let client_first = if direction == ServerDirection::ToServer { ends } else { [ends[1], ends[0]] };
        let at = self.clock.at(frame.time);
        self.conversations.seen(connection as u32, direction, client_first, at, &mut self.matcher);
        if named_ends != [None; 2] {
            self.conversations.name_ends(connection as u32, named_ends);
        }
        self.note_gaps();
        if let Some((_, transit)) = place.transit {
            let (start, bytes) = offset.map_or((0, 0), |start| (start, segment.payload_len));
            let carried =
                SegmentRange { connection: connection as u32, direction, start, bytes, bits: segment.bits };
            self.enter_first_link(carried, &transit, at);
        } else {
            self.take_packets()?;
            self.note_gaps();
            if !is_stale {
                self.conversations.closing(connection as u32, direction, segment.bits, at, &mut self.matcher);
            }
            self.push_events()?;
        }
        let hosts = ends.map(|end| self.participants.host(end.address));
        let way = if direction == ServerDirection::ToServer { Way::Up } else { Way::Down };
        let row = self.row(place, frame, way, hosts);
        let RowTexts { sack, mqtt, marks } = &mut self.words;
        let headers = FrameHeaders {
            connection: Some(connection as u32),
            stream_offset: offset,
            mqtt: word(mqtt),
            marks: word(marks),
            ack_rtt_ns: verdict.ack_rtt.filter(|_| !verdict.ack_rtt_ambiguous).map(|rtt| rtt.as_ns()),
            ecn,
            ..headers::of_segment(segment, sack)
        };
        Ok(self.output.recorder.packet(&PacketRow::new(&row, &headers))?)
    }

    /// The receiver of a direction may have acknowledged more.
    fn acknowledged(&mut self, connection: u32, direction: ServerDirection) -> Result<()> {
        let recorder = &mut self.output.recorder;
        self.unproven.acknowledged(connection, direction, &self.streams, self.clock, recorder)
    }

    /// Rows of the control packets that were completed last, and of what they mean.
    pub(super) fn take_packets(&mut self) -> Result<()> {
        let mut packets = std::mem::take(&mut self.packets);
        for completed in &packets {
            self.control_packet(completed)?;
        }
        packets.clear();
        self.packets = packets;
        self.take_rows()
    }

    fn control_packet(&mut self, completed: &Completed) -> Result<()> {
        let Completed { connection, direction, packet } = completed;
        let segments = self.streams.carriers(*connection, *direction, packet.start..packet.end);
        let complete = Some(self.clock.at(packet.complete.time));
        let place = StreamPlace { connection: *connection as u32, direction: *direction, end: packet.end };
        let is_answer = *direction == ServerDirection::FromServer;
        self.matcher.carried_at(Some(place).filter(|_| is_answer));
        self.packet(*connection as u32, *direction, packet, complete, segments)?;
        self.matcher.carried_at(None);
        self.gather_events(Some(place));
        Ok(())
    }

    /// What a packet means that is complete at that time, or never, and its row.
    pub(super) fn packet(
        &mut self,
        number: u32,
        direction: ServerDirection,
        packet: &CapturedPacket,
        complete: Option<Instant>,
        segments: u32,
    ) -> Result<()> {
        let first_sent = self.clock.at(packet.first.time);
        let times = complete.map(|complete| [first_sent, complete]);
        self.seen.control_packets += 1;
        self.seen.damaged += u64::from(packet.damaged);
        let (client, message) = match (self.passed_on(number, packet), times) {
            (Some(passed_on), _) => passed_on,
            (None, Some(times)) => self.own_packet(number, direction, packet, times),
            (None, None) => self.lost_packet(number, direction, packet),
        };
        let ends = client.zip(message).map(|(client, message)| [client, message.publisher]);
        if let Some(row) = ends.and_then(|ends| positions::position_of(packet, direction, ends, first_sent)) {
            self.output.recorder.position(&row)?;
        }
        let passage = Passage {
            connection: number,
            direction,
            client,
            first_sent,
            complete: complete.filter(|_| !packet.damaged),
            segments,
        };
        let row = ControlPacketRow {
            publisher: message.map(|message| message.publisher),
            sequence: message.map(|message| message.sequence),
            ..passage.row_of(packet)
        };
        Ok(self.output.recorder.control_packet(&row)?)
    }

    /// A packet of a client of its own: that client, and the message of a PUBLISH.
    fn own_packet(
        &mut self,
        connection: u32,
        direction: ServerDirection,
        packet: &CapturedPacket,
        times: [Instant; 2],
    ) -> (Option<u32>, Option<CountedMessage>) {
        let (participants, matcher) = (&mut self.participants, &mut self.matcher);
        let client = self.conversations.packet(connection, direction, packet, times, participants, matcher);
        (client, client.and_then(|client| self.message(client, connection, direction, packet, times)))
    }

    /// Whether a gateway of MQTT-SN passes this packet on, to its broker or from it; and for which of its clients, where it
    /// has a connection for each, and which message. What was a gateway's before its first datagram was seen is taken for a
    /// client's.
    fn passed_on(
        &mut self,
        connection: u32,
        packet: &CapturedPacket,
    ) -> Option<(Option<u32>, Option<CountedMessage>)> {
        let (client, broker) = self.conversations.ends(connection)?;
        if !self.datagrams.is_gateway(client.address) {
            return None;
        }
        if let Some(connect) = &packet.connect {
            self.datagrams.passes_on_for(connection, client.address, &connect.client_id);
        }
        let behind = self.datagrams.client_behind(connection);
        if let Some((client, connect)) = behind.zip(packet.connect.as_deref()) {
            self.matcher.wills.announce(client, connection, connect, self.clock.at(packet.first.time));
        }
        // On the broker's own host there may be clients of its own beside the gateway.
        let message = self.matcher.passed_on(packet.payload_head.as_slice());
        let is_known = packet.kind == Kind::Publish && message.is_some();
        let is_gateways = behind.is_some() || client.address != broker.address || is_known;
        if is_gateways {
            let gateways = self.datagrams.at(client.address);
            gateways.for_each(|gateway| self.matcher.servers.join(gateway, broker));
        }
        is_gateways.then_some((behind, message))
    }

    /// Tells the matcher; returns the message of a PUBLISH. A damaged packet is one whose bytes were not all captured:
    /// it went its way all the same.
    pub(super) fn message(
        &mut self,
        client: u32,
        connection: u32,
        direction: ServerDirection,
        packet: &CapturedPacket,
        [first, complete]: [Instant; 2],
    ) -> Option<CountedMessage> {
        match (packet.kind.mqtt()?, direction) {
            (Kind::Publish, _) => {
                let topic = packet.topic.as_ref().unwrap_or(&self.no_topic);
                self.seen.without_topic += u64::from(packet.topic.is_none());
                self.seen.alias_unknown += u64::from(packet.topic.is_none() && packet.topic_alias.is_some());
                if packet.damaged {
                    self.matcher.distrust_order(client);
                }
                let since = self.conversations.since(connection);
                let publish = SeenPublish {
                    since,
                    ..SeenPublish::of(packet, client, connection, topic, [first, complete])
                };
                return match direction {
                    ServerDirection::ToServer => {
                        // Its delivery cannot be told by its content.
                        if !publish.is_whole {
                            self.gaps.note(Some(client), first, complete);
                        }
                        let message = self.matcher.published(&publish);
                        let (qos, end) = (packet.qos, packet.end);
                        let place = StreamPlace { connection, direction, end };
                        if self.both_ends.is_none() {
                            self.unproven.published(message, qos, place, &self.streams);
                        }
                        Some(message)
                    }
                    ServerDirection::FromServer => {
                        let message = self.matcher.delivered(&publish);
                        // It may have been any message that was sent before.
                        if message.is_none() && (packet.damaged || packet.topic.is_none()) {
                            self.gaps.note(Some(client), first, complete);
                        }
                        message
                    }
                };
            }
            (Kind::Puback | Kind::Pubrec | Kind::Pubcomp, _) => {
                let refusal = match direction {
                    ServerDirection::FromServer => self.matcher.answered(client, packet, complete),
                    ServerDirection::ToServer => self.matcher.delivery_answered(client, packet),
                };
                if let Some(words) = refusal {
                    self.conversations.push_event(complete, EventKind::Refused, Some(client), None, words);
                }
            }
            (Kind::Pubrel, ServerDirection::FromServer) => {
                self.matcher.released(client, packet.id?, complete)
            }
            (Kind::Pubrel, ServerDirection::ToServer) => {
                self.matcher.released_by(client, packet.id?, complete)
            }
            _ => {}
        }
        // Who subscribed to what may have been in the bytes that are missing.
        if packet.damaged {
            self.gaps.note(Some(client), first, complete);
            self.subscriptions_unknown(first);
        }
        None
    }
}
