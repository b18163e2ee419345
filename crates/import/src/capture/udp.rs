//! Packets of MQTT-SN in captures: the rows of them and of their frames, and what they mean for messages.

use std::fmt::Write;

use mqttlab_capture::mqtt::{PAYLOAD_HEAD_MAX, PayloadRest};
use mqttlab_capture::{CapturedFrame, ServerDirection, UdpHeader};
use mqttlab_mqttsn::{Packet as SnPacket, ReturnCode};
use mqttlab_plan::find_place;
use mqttlab_recording::{Direction as Way, FrameHeaders, PacketRow, PositionSample};
use mqttlab_units::Instant;

use super::super::error::Result;
use super::super::headers::{self, IpHeader};
use super::super::message::{CountedMessage, ForwardedSize, SeenPublish};
use super::super::mqttsn::SeenSnPacket;
use super::super::row_texts::word;
use super::{FramePlace, Importer};

impl Importer<'_> {
    /// A packet of MQTT-SN: what it means, and the rows of it and its frame.
    pub(super) fn datagram(
        &mut self,
        place: FramePlace,
        frame: &CapturedFrame<'_>,
        (ip, datagram): (&IpHeader, &UdpHeader),
        seen: &SeenSnPacket<'_>,
    ) -> Result<()> {
        let at = self.clock.at(frame.time);
        let complete = place.arrives(at);
        self.seen.control_packets += 1;
        if let Some(client) = seen.client {
            self.matcher.servers.assign(client, seen.gateway);
        }
        if let Some(complete) = complete {
            self.datagrams.on_packet(seen, complete, &mut self.matcher);
        }
        let message = self.datagram_message(seen, at, complete)?;
        self.output.recorder.control_packet(&seen.row(at, complete, message))?;
        self.push_events()?;
        self.take_rows()?;
        let hosts = [ip.source, ip.destination].map(|address| self.participants.host(address));
        let way = if seen.direction == ServerDirection::ToServer { Way::Up } else { Way::Down };
        let row = self.row(place, frame, way, hosts);
        self.words.clear();
        write!(self.words.mqtt, "{}", seen.account()).expect("a string takes all");
        let headers = FrameHeaders {
            connection: Some(seen.connection),
            stream_offset: Some(seen.start),
            mqtt: word(&self.words.mqtt),
            ..headers::of_datagram(datagram, ip)
        };
        Ok(self.output.recorder.packet(&PacketRow::new(&row, &headers))?)
    }

    /// Tells the matcher of a packet of MQTT-SN; returns the message of a PUBLISH.
    fn datagram_message(
        &mut self,
        seen: &SeenSnPacket<'_>,
        sent: Instant,
        arrives: Option<Instant>,
    ) -> Result<Option<CountedMessage>> {
        let Some(client) = seen.client else { return Ok(None) };
        let at = match (&seen.packet, seen.direction, arrives) {
            (.., Some(at)) => at,
            // What its publisher sent is a message, whether it arrives or not.
            (SnPacket::Publish { .. }, ServerDirection::ToServer, None) => sent,
            (SnPacket::Publish { message, .. }, ServerDirection::FromServer, None) => {
                return Ok(self.matcher.passed_on(message));
            }
            _ => return Ok(None),
        };
        match (&seen.packet, seen.direction) {
            (SnPacket::Publish { dup, qos, retain, id, message, .. }, direction) => {
                self.seen.without_topic += u64::from(seen.topic.is_none());
                let publish = SeenPublish {
                    client,
                    connection: seen.connection,
                    since: Instant::ZERO,
                    topic: seen.topic.as_ref().unwrap_or(&self.no_topic),
                    qos: qos.level().level(),
                    dup: *dup,
                    retain: *retain,
                    id: Some(*id).filter(|id| *id != 0),
                    payload_bytes: message.len() as u32,
                    head: &message[..message.len().min(PAYLOAD_HEAD_MAX)],
                    rest: PayloadRest::of(message),
                    is_whole: seen.topic.is_some(),
                    first: sent,
                    complete: at,
                    packet_bytes: 0,
                    forwarded: ForwardedSize::of("", 0, 0),
                    expiry_s: None,
                };
                if direction == ServerDirection::FromServer {
                    return Ok(self.matcher.delivered(&publish));
                }
                let own = self.matcher.published(&publish);
                if let Some(place) = find_place(message).filter(|_| own.publisher == client && !dup) {
                    self.output.recorder.position(&PositionSample::said(at, client, place))?;
                }
                return Ok(Some(own));
            }
            (SnPacket::Puback { id, code, .. }, ServerDirection::FromServer)
                if *code == ReturnCode::Accepted =>
            {
                self.matcher.acknowledged(client, *id, at);
            }
            (SnPacket::Pubcomp { id }, ServerDirection::FromServer) => {
                self.matcher.acknowledged(client, *id, at)
            }
            (SnPacket::Puback { id, .. } | SnPacket::Pubcomp { id }, ServerDirection::ToServer) => {
                self.matcher.completed(client, *id);
            }
            (SnPacket::Pubrel { id }, ServerDirection::FromServer) => self.matcher.released(client, *id, at),
            (SnPacket::Pubrel { id }, ServerDirection::ToServer) => self.matcher.released_by(client, *id, at),
            _ => {}
        }
        Ok(None)
    }
}
