//! Packets on their way out: encoded into the connection's outbox, and written to its socket.
//!
//! A payload is made when its packet is, and made again when the packet is repeated, so that a session in flight
//! costs a few dozen bytes a message whatever its payload is.

use std::os::fd::{AsFd, OwnedFd};

use mqttlab_client::datagram;
use mqttlab_client::mqtt;
use mqttlab_client::protocol::{AnySession, Envelope, Packet};
use mqttlab_client::zeromq;
use mqttlab_client::{Body, Loss, Transport, Who, sign};
use mqttlab_mqtt::alias::TopicNaming;
use mqttlab_mqtt::encode::{self, PublishFields};
use mqttlab_mqtt::{Kind, Qos, Version};
use mqttlab_plan::{MessageNumber, PayloadMaker};
use mqttlab_recording::identity::{self, Identity};
use mqttlab_recording::{EventKind, Sent};
use mqttlab_system::sockets::{self, TcpInfo};

use super::buffers::WorkerBuffers;
use super::connection::{ClientConnection, RelayedBytes};
use super::context::FleetContext;
use super::outbox::SocketOutbox;
use super::own_packets::{self, OwnPackets};
use super::turn::ClientTurn;

impl ClientTurn<'_> {
    /// How long a message of a client's own is as a PUBLISH that names its topic.
    fn publish_bytes(&self, client: Who, row: &Sent, content: u8) -> u64 {
        let said = self.shared.group(client.group);
        let mut properties = Vec::new();
        said.content(usize::from(content)).properties.put(&said.name, client.index, &mut properties);
        let fields = PublishFields {
            topic: self.shared.directory.layout().topic_name(row.topic),
            qos: Qos::from_level(row.qos).unwrap_or_default(),
            dup: false,
            retain: row.retain,
            id: 1,
            properties: &properties,
            payload_len: row.payload_bytes as usize,
        };
        let mut head = Vec::new();
        encode::publish_head(&fields, self.shared.facts(client.group).version, &mut head);
        head.len() as u64 + u64::from(row.payload_bytes)
    }
}

impl Transport<AnySession, ClientConnection> for ClientTurn<'_> {
    fn open(&mut self, client: Who, connection: &mut ClientConnection) -> Result<(), Loss> {
        match self.shared.open_socket(self.poller, client, connection.slot) {
            Ok(socket) => {
                connection.socket = Some(socket);
                connection.layered.iter_mut().for_each(|layered| layered.begin(self.now));
                connection.own_packets.iter_mut().for_each(|own| own.begin());
            }
            Err(error) => {
                let no_descriptor = matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE));
                self.tally.no_descriptor += u64::from(no_descriptor);
                return Err(Loss::broken(format!("cannot connect: {error}")));
            }
        }
        Ok(())
    }

    fn not_opened(&self, connection: &ClientConnection) -> &'static str {
        connection.not_opened()
    }

    fn put(&mut self, client: Who, connection: &mut ClientConnection, packet: Packet) {
        let group = self.shared.group(client.group);
        let packet = match packet {
            packet if connection.is_datagrams() => {
                let name = |topic| self.shared.directory.layout().topic_name(topic).to_owned();
                return connection
                    .put_datagram(None, |out| datagram::encode(group, client.index, packet, name, out));
            }
            Packet::Mqtt(packet) => packet,
            Packet::ZeroMq(packet) => {
                let start = connection.outbox.bytes().len();
                zeromq::encode(group, client.index, packet, connection.outbox.bytes());
                let bytes = connection.outbox.bytes().len() - start;
                if let Some(own) = &mut connection.own_packets {
                    let facts = own_packets::zeromq::of_command(zeromq::kind(packet), bytes);
                    own.put(Some(facts), connection.outbox.end());
                }
                return;
            }
            Packet::MqttSn(_) => unreachable!("they go over datagrams"),
        };
        let ClientConnection { layered, outbox, own_packets: own, .. } = connection;
        let Some(layered) = layered else {
            let start = outbox.bytes().len();
            encode_packet(self.shared, client, packet, outbox.bytes());
            return note_put(own, outbox, start, group.version(), "");
        };
        let sealed = &mut self.buffers.bytes;
        sealed.clear();
        encode_packet(self.shared, client, packet, sealed);
        layered.seal(sealed, outbox);
        if let Some(own) = own {
            own.put(own_packets::mqtt::of_bytes(sealed, group.version(), ""), outbox.end());
        }
        if packet == mqtt::Packet::Bare(Kind::Disconnect) {
            layered.write_close(outbox);
        }
    }

    fn declines(
        &self,
        client: Who,
        connection: &ClientConnection,
        row: &Sent,
        content: u8,
    ) -> Option<String> {
        let terms = connection.terms.as_deref()?;
        let qos = Qos::from_level(row.qos)?;
        if !terms.takes_qos(qos) {
            let most = terms.maximum_qos.unwrap_or_default();
            return Some(format!("QoS {} is above the broker's maximum QoS of {most}", row.qos));
        }
        if row.retain && !terms.takes_retain() {
            return Some("the broker does not take RETAIN".into());
        }
        let bytes = self.publish_bytes(client, row, content);
        (!terms.takes_bytes(bytes)).then(|| {
            let most = terms.maximum_packet_bytes.unwrap_or_default();
            format!("its packet has more than the broker's maximum of {most} B")
        })
    }

    fn put_message(
        &mut self,
        client: Who,
        connection: &mut ClientConnection,
        envelope: Envelope,
        body: Body<'_, RelayedBytes>,
    ) -> u64 {
        let mqtt::Envelope { id, qos, dup } = match envelope {
            envelope if connection.is_datagrams() => {
                return put_datagram(self.shared, client, connection, envelope, body);
            }
            Envelope::Mqtt(envelope) => envelope,
            Envelope::ZeroMq => return self.put_frames(client, connection, body),
            Envelope::MqttSn(_) => unreachable!("they go over datagrams"),
        };
        let group = self.shared.facts(client.group);
        let ClientConnection { layered, outbox: way, own_packets: own, aliases, .. } = connection;
        // What is sealed is first made whole.
        let outbox = if layered.is_some() { &mut self.buffers.message } else { &mut *way };
        let start = outbox.bytes().len();
        let head = |topic, properties: &[u8], retain, payload_len, outbox: &mut SocketOutbox| {
            let fields = PublishFields { topic, qos, dup, retain, id: id.0, properties, payload_len };
            encode::publish_head(&fields, group.version, outbox.bytes());
        };
        let topic = match body {
            Body::Own { row, content } => {
                let topic = self.shared.directory.layout().topic_name(row.topic);
                let naming = aliases.as_mut().map_or(TopicNaming::Name, |aliases| aliases.name(row.topic));
                let mut properties = Vec::new();
                naming.put(&mut properties);
                let said = self.shared.group(client.group);
                said.content(usize::from(content)).properties.put(&said.name, client.index, &mut properties);
                head(naming.name(topic), &properties, row.retain, row.payload_bytes as usize, outbox);
                write_payload(&group.payloads[usize::from(content)], client.index, row, outbox);
                topic
            }
            Body::Relayed(message) => {
                head(&message.topic, &[], false, message.payload.len(), outbox);
                outbox.bytes().extend_from_slice(&message.payload);
                &message.topic
            }
        };
        let Some(layered) = layered else {
            note_put(own, way, start, group.version, topic);
            return way.end();
        };
        let WorkerBuffers { message: whole, bytes, .. } = &mut *self.buffers;
        bytes.clear();
        whole.copy_to(bytes);
        whole.clear();
        layered.seal(bytes, way);
        if let Some(own) = own {
            own.put(own_packets::mqtt::of_bytes(bytes, group.version, topic), way.end());
        }
        way.end()
    }

    fn end(&self, connection: &ClientConnection) -> u64 {
        connection.end()
    }

    fn written(&self, connection: &ClientConnection) -> u64 {
        connection.written()
    }

    fn write(&mut self, connection: &mut ClientConnection) -> Result<(), Loss> {
        let Some(socket) = &connection.socket else { return Ok(()) };
        let own = &mut connection.own_packets;
        // What is left waits until the socket says that it has room.
        let outcome = match &mut connection.datagrams {
            Some(datagrams) => datagrams.write(socket.as_fd(), |end| {
                own.iter_mut().for_each(|own| own.refused(end));
            }),
            None => connection.outbox.write(socket.as_fd()).map(|_| ()),
        };
        let written = connection.written();
        if let Some(own) = connection.own_packets.as_mut().filter(|own| own.is_waiting()) {
            own.written(written, self.shared.control.now(), self.sink);
        }
        outcome.map_err(|error| Loss::broken(error.to_string()))
    }

    fn close(&mut self, client: Who, connection: &mut ClientConnection) {
        if let Some(socket) = connection.socket.take()
            && !connection.is_datagrams()
        {
            self.note_tcp_info(client, &socket);
        }
        connection.forget();
    }

    fn vanish(&mut self, client: Who, connection: &mut ClientConnection) {
        if let Some(socket) = connection.socket.take() {
            self.poller.remove(&socket);
            let host = self.shared.group(client.group).host_of(client.index);
            // One that is not bound has sent nothing, and never will.
            if let Ok(port) = sockets::local_port(socket.as_fd()) {
                self.shared.control.silent.add(host, port);
            }
            connection.vanished.push(socket);
        }
        connection.forget();
    }

    fn rename(&mut self, _: Who, relayed: &mut RelayedBytes, suffix: &str) -> bool {
        // Copies of copies, each with a longer topic, end with the longest topic (MQTT 5 §1.5.4).
        let fits = relayed.topic.len() + suffix.len() <= usize::from(u16::MAX);
        if fits {
            relayed.topic.push_str(suffix);
        }
        fits
    }
}

impl ClientTurn<'_> {
    /// Records what the kernel has counted of the connection, while its socket is there to be asked.
    fn note_tcp_info(&mut self, client: Who, socket: &OwnedFd) {
        // A kernel that does not say leaves no event; nothing of the run depends on it.
        if let (Ok(info), Ok(port)) = (sockets::tcp_info(socket), sockets::local_port(socket)) {
            self.now = self.shared.control.now();
            let TcpInfo { retransmissions, rtt_us, rto_us } = info;
            let words = serde_json::json!({
                "port": port, "total_retrans": retransmissions, "rtt_us": rtt_us, "rto_us": rto_us,
            });
            self.record(EventKind::TcpInfo, client.number, None, &words.to_string());
        }
    }
}

/// A message as a datagram of its own. Payloads are small: the plan was checked.
fn put_datagram(
    shared: &FleetContext,
    client: Who,
    connection: &mut ClientConnection,
    envelope: Envelope,
    body: Body<'_, RelayedBytes>,
) -> u64 {
    let group = shared.facts(client.group);
    let Body::Own { row, content } = body else {
        unreachable!("the plan was checked: nothing is relayed over datagrams")
    };
    let mut outbox = SocketOutbox::default();
    write_payload(&group.payloads[usize::from(content)], client.index, row, &mut outbox);
    let topic = shared.directory.layout().topic_name(row.topic);
    let payload = outbox.whole();
    connection.put_datagram(Some(topic), |out| datagram::encode_message(envelope, row, &payload, out));
    connection.end()
}

fn encode_packet(shared: &FleetContext, client: Who, packet: mqtt::Packet, out: &mut Vec<u8>) {
    let (group, subscribed) = (shared.group(client.group), shared.subscribed(client));
    match packet {
        mqtt::Packet::Connect => mqtt::encode_connect(group, client.index, out),
        mqtt::Packet::Subscribe { id, changes } => {
            mqtt::encode_subscribe(group, &subscribed, id, changes, out);
        }
        mqtt::Packet::ChangeSubscription { id, change, .. } => {
            mqtt::encode_change(group, &subscribed, id, change, out);
        }
        mqtt::Packet::Answer { kind, id } => encode::acknowledgement(kind, id.0, out),
        mqtt::Packet::Bare(kind) => encode::bare(kind, out),
    }
}

/// Notes a packet of MQTT that was put from this place of the outbox's own bytes on, where that is wanted; of a message with its
/// topic.
fn note_put(
    own: &mut Option<Box<OwnPackets>>,
    outbox: &mut SocketOutbox,
    start: usize,
    version: Version,
    topic: &str,
) {
    if let Some(own) = own {
        let end = outbox.end();
        own.put(own_packets::mqtt::of_bytes(&outbox.bytes()[start..], version, topic), end);
    }
}

/// Appends a payload with its identity. Only the beginning of a large one is copied, if all messages share it.
pub(super) fn write_payload(payloads: &PayloadMaker, client: u32, row: &Sent, outbox: &mut SocketOutbox) {
    let start = outbox.bytes().len();
    let message = MessageNumber { client, sequence: u64::from(row.sequence) };
    let shared = payloads.shared().filter(|content| content.len() >= SHARED_FROM);
    match shared {
        Some(content) => outbox.bytes().extend_from_slice(&content[..identity::BYTES_WITH_TIME]),
        None => payloads.write(message, row.intended, outbox.bytes()),
    }
    let identity =
        Identity { publisher: row.publisher, sequence: row.sequence, intended: Some(row.intended) };
    let payload = &mut outbox.bytes()[start..];
    sign(payloads, message, &identity, payload);
    if let Some(content) = shared {
        outbox.share(content, identity::BYTES_WITH_TIME);
    }
}

/// From this size on, copying a payload costs more than keeping track of one more piece.
const SHARED_FROM: usize = 16 << 10;
