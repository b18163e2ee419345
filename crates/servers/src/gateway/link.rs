//! A TCP connection to the broker: control packets of MQTT 3.1.1 in and out.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use mqttlab_mqtt::encode::{self, ConnectFields, PublishFields};
use mqttlab_mqtt::packet::{self, Packet};
use mqttlab_mqtt::{FixedHeader, Kind, Malformed, Version};
use mqttlab_mqttsn::gateway::BrokerPacket;
use mqttlab_system::sockets;

/// A control packet as the gateway's machine has it.
pub(crate) type Control = BrokerPacket<Arc<[u8]>>;

/// A connection.
pub(crate) struct Link {
    stream: TcpStream,
    /// Whether it is still being opened.
    opening: bool,
    incoming: Vec<u8>,
    out: Vec<u8>,
    /// It is closed as soon as everything is written.
    ending: bool,
    /// Whether the poller tells of room.
    pub(crate) waited_for_room: bool,
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Why a connection is over.
#[derive(Debug)]
pub(crate) struct Over;

impl Link {
    /// Begins to connect.
    ///
    /// # Errors
    /// The kernel has no socket.
    pub(crate) fn open(broker: SocketAddr) -> io::Result<Link> {
        let socket = sockets::stream(broker)?;
        sockets::connect(&socket, broker)?;
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        Ok(Link {
            stream,
            opening: true,
            waited_for_room: true,
            incoming: Vec::new(),
            out: Vec::new(),
            ending: false,
        })
    }

    /// Whether it waits for room in the socket, or to be open.
    pub(crate) fn wants_to_write(&self) -> bool {
        self.opening || !self.out.is_empty()
    }

    /// Whether it is open now, and was not before.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn finish_opening(&mut self) -> Result<bool, Over> {
        if !self.opening {
            return Ok(false);
        }
        match self.stream.take_error() {
            Ok(None) if self.stream.peer_addr().is_ok() => {
                self.opening = false;
                Ok(true)
            }
            Ok(None) => Ok(false),
            Ok(Some(_)) | Err(_) => Err(Over),
        }
    }

    /// Says something as soon as there is room.
    pub(crate) fn put(&mut self, packet: &Control) {
        write(packet, &mut self.out);
    }

    /// Wants no more of the connection once everything is written.
    pub(crate) fn end(&mut self) {
        self.ending = true;
    }

    /// Writes what can be written. `true` when it is at an end.
    ///
    /// # Errors
    /// It is broken.
    pub(crate) fn flush(&mut self) -> Result<bool, Over> {
        while !self.opening && !self.out.is_empty() {
            match self.stream.write(&self.out) {
                Ok(0) => return Err(Over),
                Ok(count) => drop(self.out.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Over),
            }
        }
        Ok(self.ending)
    }

    /// Reads what has come, and hands every packet to `each`.
    ///
    /// # Errors
    /// The broker has closed it, or says what is no packet.
    pub(crate) fn receive(&mut self, mut each: impl FnMut(Control)) -> Result<(), Over> {
        let mut buffer = [0; 16 << 10];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(Over),
                Ok(count) => self.incoming.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Over),
            }
        }
        let mut at = 0;
        while let Some(header) = FixedHeader::peek(&self.incoming[at..]).map_err(|_| Over)? {
            let Some(whole) = self.incoming.get(at..at + header.packet_len()) else { break };
            if let Some(packet) = read(header, &whole[header.header_len..]).map_err(|_| Over)? {
                each(packet);
            }
            at += header.packet_len();
        }
        self.incoming.drain(..at);
        Ok(())
    }
}

fn write(packet: &Control, out: &mut Vec<u8>) {
    match packet {
        BrokerPacket::Connect { client_id, clean, keep_alive_s, will } => {
            let will = will.as_ref().map(|will| (&*will.topic, &*will.message, will.qos, will.retain));
            let fields = ConnectFields {
                version: Version::V311,
                client_id,
                clean: *clean,
                keep_alive_s: *keep_alive_s,
                session_expiry_s: 0,
                receive_maximum: u16::MAX,
                topic_alias_maximum: 0,
                will,
                username: None,
                password: None,
            };
            encode::connect(&fields, out);
        }
        BrokerPacket::Publish { dup, qos, retain, topic, id, message } => {
            let payload_len = message.len();
            let fields = PublishFields {
                topic,
                qos: *qos,
                dup: *dup,
                retain: *retain,
                id: *id,
                properties: &[],
                payload_len,
            };
            encode::publish_head(&fields, Version::V311, out);
            out.extend_from_slice(message);
        }
        BrokerPacket::Acknowledgement { kind, id } => encode::acknowledgement(*kind, *id, out),
        BrokerPacket::Subscribe { id, filter, qos } => {
            encode::subscribe(*id, std::iter::once((&**filter, *qos)), Version::V311, out);
        }
        BrokerPacket::Unsubscribe { id, filter } => {
            encode::unsubscribe(*id, std::iter::once(&**filter), Version::V311, out);
        }
        BrokerPacket::Pingreq => encode::bare(Kind::Pingreq, out),
        BrokerPacket::Disconnect => encode::bare(Kind::Disconnect, out),
        // What only brokers say.
        BrokerPacket::Connack { .. } | BrokerPacket::Suback { .. } | BrokerPacket::Pingresp => {}
    }
}

/// A packet of the broker; `None` for one that says nothing to a gateway.
fn read(header: FixedHeader, body: &[u8]) -> Result<Option<Control>, Malformed> {
    let acknowledgement = |id| BrokerPacket::Acknowledgement { kind: header.kind, id };
    Ok(Some(match packet::decode(header, body, Version::V311)? {
        Packet::Connack(connack) => {
            BrokerPacket::Connack { code: connack.code, session_present: connack.session_present }
        }
        Packet::Publish(publish) => BrokerPacket::Publish {
            dup: publish.dup,
            qos: publish.qos,
            retain: publish.retain,
            topic: publish.topic.into(),
            id: publish.id,
            message: publish.payload.into(),
        },
        Packet::Puback(answer)
        | Packet::Pubrec(answer)
        | Packet::Pubrel(answer)
        | Packet::Pubcomp(answer) => acknowledgement(answer.id),
        Packet::Suback(answer) => {
            BrokerPacket::Suback { id: answer.id, code: answer.codes.first().copied().unwrap_or(0x80) }
        }
        Packet::Unsuback(answer) => acknowledgement(answer.id),
        Packet::Pingresp => BrokerPacket::Pingresp,
        _ => return Ok(None),
    }))
}
