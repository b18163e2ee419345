//! Packets on their way out: encoded into the connection's outbox, and written to its socket.
//!
//! A payload is made when its packet is, and made again when the packet is repeated, so that a session in flight
//! costs a few dozen bytes a message whatever its payload is.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use mqttlab_client::mqtt::{self, Envelope, Mqtt, Packet};
use mqttlab_client::{Body, Loss, Transport, Who};
use mqttlab_mqtt::encode::{self, PublishFields};
use mqttlab_plan::{IdentityPlace, PayloadMaker};
use mqttlab_recording::identity::{self, Identity};
use mqttlab_recording::{EventKind, Sent};

use crate::socket_states;

use super::connection::{RelayedMessage, StreamConnection};
use super::outbox::Outbox;
use super::socket;
use super::turn::Turn;

impl Transport<Mqtt, StreamConnection> for Turn<'_> {
    const NOT_OPENED: &'static str = "no TCP connection in time";

    fn open(&mut self, client: Who, connection: &mut StreamConnection) -> Result<(), Loss> {
        match self.open_socket(client, connection.slot) {
            Ok(socket) => connection.socket = Some(socket),
            Err(error) => {
                let no_descriptor = matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE));
                self.tally.no_descriptor += u64::from(no_descriptor);
                return Err(Loss::broken(format!("cannot connect: {error}")));
            }
        }
        Ok(())
    }

    fn put(&mut self, client: Who, connection: &mut StreamConnection, packet: Packet) {
        let (group, out) = (self.shared.group(client.group), connection.outbox.bytes());
        match packet {
            Packet::Connect => mqtt::encode_connect(group, client.index, out),
            Packet::Subscribe { id } => mqtt::encode_subscribe(group, client.index, id, out),
            Packet::Answer { kind, id } => encode::acknowledgement(kind, id.0, out),
            Packet::Bare(kind) => encode::bare(kind, out),
        }
    }

    fn put_message(
        &mut self,
        client: Who,
        connection: &mut StreamConnection,
        Envelope { id, qos, dup }: Envelope,
        body: Body<'_, RelayedMessage>,
    ) -> u64 {
        let group = self.shared.facts(client.group);
        let outbox = &mut connection.outbox;
        let head = |topic, retain, payload_len, outbox: &mut Outbox| {
            let fields = PublishFields { topic, qos, dup, retain, id: id.0, payload_len };
            encode::publish_head(&fields, group.version, outbox.bytes());
        };
        match body {
            Body::Own(row) => {
                let topic = self.shared.directory.layout().topic_name(row.topic);
                head(topic, row.retain, row.payload_bytes as usize, outbox);
                if let Some(payloads) = &group.payloads {
                    write_payload(payloads, client.index, row, outbox);
                }
            }
            Body::Relayed(message) => {
                head(&message.topic, false, message.payload.len(), outbox);
                outbox.bytes().extend_from_slice(&message.payload);
            }
        }
        outbox.end()
    }

    fn end(&self, connection: &StreamConnection) -> u64 {
        connection.outbox.end()
    }

    fn written(&self, connection: &StreamConnection) -> u64 {
        connection.outbox.written()
    }

    fn write(&mut self, connection: &mut StreamConnection) -> Result<(), Loss> {
        let Some(socket) = &connection.socket else { return Ok(()) };
        // What is left waits until the socket says that it has room.
        match connection.outbox.write(socket.as_fd()) {
            Ok(_) => Ok(()),
            Err(error) => Err(Loss::broken(error.to_string())),
        }
    }

    fn close(&mut self, client: Who, connection: &mut StreamConnection) {
        if let Some(socket) = connection.socket.take() {
            self.note_tcp_info(client, &socket);
        }
        connection.outbox.clear();
        connection.incoming.clear();
    }

    fn rename(&mut self, _: Who, relayed: &mut RelayedMessage, suffix: &str) -> bool {
        // Copies of copies, each with a longer topic, end with the longest topic (MQTT 5 §1.5.4).
        let fits = relayed.topic.len() + suffix.len() <= usize::from(u16::MAX);
        if fits {
            relayed.topic.push_str(suffix);
        }
        fits
    }
}

impl Turn<'_> {
    fn open_socket(&self, client: Who, slot: u32) -> io::Result<OwnedFd> {
        let group = self.shared.group(client.group);
        let server = group.connects_to;
        let socket = self.shared.sockets.socket(group.host_of(client.index), server)?;
        socket::set_nodelay(socket.as_fd(), group.nodelay())?;
        // Where marks are forbidden, the connection is not in `tcp_state`.
        let _ = socket_states::mark(socket.as_fd(), client.number.0);
        socket::connect(socket.as_fd(), self.shared.sockets.server_address(server))?;
        self.epoll.add(&socket, slot)?;
        Ok(socket)
    }

    /// Records what the kernel has counted of the connection, while its socket is there to be asked.
    fn note_tcp_info(&mut self, client: Who, socket: &OwnedFd) {
        // A kernel that does not say leaves no event; nothing of the run depends on it.
        if let Ok(info) = socket::tcp_info(socket.as_fd()) {
            self.now = self.shared.control.now();
            self.record(EventKind::TcpInfo, client.number, None, &info.to_string());
        }
    }
}

/// Appends a payload with its identity. Only the beginning of a large one is copied, if all messages share it.
fn write_payload(payloads: &PayloadMaker, client: u32, row: &Sent, outbox: &mut Outbox) {
    let start = outbox.bytes().len();
    let shared = payloads.shared().filter(|content| content.len() >= SHARED_FROM);
    match shared {
        Some(content) => outbox.bytes().extend_from_slice(&content[..identity::BYTES_WITH_TIME]),
        None => payloads.write(client, u64::from(row.sequence), outbox.bytes()),
    }
    let identity =
        Identity { publisher: row.publisher, sequence: row.sequence, intended: Some(row.intended) };
    let payload = &mut outbox.bytes()[start..];
    match payloads.identity_place() {
        // Too small a payload stays as it is: it is told apart by its order.
        IdentityPlace::Start => drop(identity.write(payload)),
        IdentityPlace::Text(at) => identity.write_text(&mut payload[at..at + identity::TEXT_BYTES]),
    }
    if let Some(content) = shared {
        outbox.share(content, identity::BYTES_WITH_TIME);
    }
}

/// From this size on, copying a payload costs more than keeping track of one more piece.
const SHARED_FROM: usize = 16 << 10;
