//! Datagrams: conversations between clients' sockets and servers', each datagram one packet. Payloads have no bytes.
//!
//! A socket takes a datagram whole, and nobody tells its sender what became of it. One whose receiver has closed its socket
//! vanishes, as under a kernel whose ICMP error nobody hears.
//!
//! What it does not model: fragments (the plan refuses what does not fit), ICMP, a receive buffer that is full.

use std::sync::Arc;

use mqttlab_mqtt::Qos;
use mqttlab_mqttsn::{Packet, PublishQos, encode};
use mqttlab_net::{DatagramNames, Named};
use mqttlab_recording::DatagramAccount;
use mqttlab_units::Instant;

use crate::hosts::ports::Ports;
use crate::ids::{ClientId, ConversationId, HostId, Id, IdTable, ServerId, Side};

/// A packet of MQTT-SN.
#[derive(Clone, Debug)]
pub(crate) struct DatagramPacket(pub(crate) SnPacket);

/// A packet of MQTT-SN with texts, whose messages are numbers and lengths.
pub(crate) type SnPacket = Packet<Arc<str>, MessageContent>;

/// A message, or a will: which, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageContent {
    pub(crate) message: u64,
    pub(crate) bytes: u32,
}

impl DatagramPacket {
    /// Its length.
    pub(crate) fn bytes(&self) -> u32 {
        encode::len(&self.0, |text| text.len(), |content| content.bytes as usize) as u32
    }

    /// What it says of itself.
    pub(crate) fn account(&self) -> DatagramAccount<'_> {
        DatagramAccount::of_packet(&self.0, self.bytes(), |content| content.bytes as usize)
    }

    /// The message in it.
    pub(crate) fn message(&self) -> Option<MessageContent> {
        match &self.0 {
            Packet::Publish { message, .. } => Some(*message),
            _ => None,
        }
    }

    /// The message in it, where nobody sends it again: at QoS 0 or -1.
    pub(crate) fn unrepeated_message(&self) -> Option<u64> {
        match &self.0 {
            Packet::Publish {
                message,
                qos: PublishQos::WithoutConnection | PublishQos::Level(Qos::AtMostOnce),
                ..
            } => Some(message.message),
            _ => None,
        }
    }
}

/// A datagram on its way.
#[derive(Debug)]
pub(crate) struct SimDatagram {
    pub(crate) conversation: ConversationId,
    pub(crate) from: Side,
    pub(crate) packet: DatagramPacket,
    /// Of the packet.
    pub(crate) bytes: u32,
    /// How many bytes this side had sent before.
    pub(crate) start: u64,
    pub(crate) sent: Instant,
}

impl SimDatagram {
    /// Size of the IP packet that carries it: IPv4 without options.
    pub(crate) fn ip_bytes(&self) -> u32 {
        IP_AND_UDP_BYTES + self.bytes
    }
}

/// Two sockets that speak to each other.
pub(crate) struct DatagramConversation {
    /// As the recording numbers it, apart from TCP's connections.
    pub(crate) number: u32,
    pub(crate) client: ClientId,
    pub(crate) server: ServerId,
    /// By [`Side`], as all that follows.
    pub(crate) hosts: [HostId; 2],
    pub(crate) paths: [usize; 2],
    pub(crate) ports: [u16; 2],
    names: DatagramNames,
    sent_bytes: [u64; 2],
}

impl DatagramConversation {
    /// Makes the next datagram of one side, and its name.
    pub(crate) fn datagram(
        &mut self,
        sent: Instant,
        (id, from): (ConversationId, Side),
        packet: DatagramPacket,
    ) -> (SimDatagram, Named) {
        let bytes = packet.bytes();
        let named = self.names.name(from as usize, packet.account().facts());
        let start = self.sent_bytes[from as usize];
        self.sent_bytes[from as usize] += u64::from(bytes);
        (SimDatagram { conversation: id, from, packet, bytes, start, sent }, named)
    }
}

/// All conversations: one for each time that a client has opened its socket.
pub(crate) struct DatagramConversations {
    table: IdTable<ConversationId, DatagramConversation>,
    /// How many each host has begun.
    begun_by: Vec<u32>,
    /// Of clients' sockets that are open.
    ports: Ports<()>,
}

impl DatagramConversations {
    /// Between so many hosts.
    pub(crate) fn new(hosts: usize) -> DatagramConversations {
        DatagramConversations {
            table: IdTable::with_capacity(0),
            begun_by: vec![0; hosts],
            ports: Ports::new(),
        }
    }

    /// A client opens a socket; `None` where its host has no port left.
    pub(crate) fn add(
        &mut self,
        (client, server): (ClientId, ServerId),
        hosts: [HostId; 2],
        paths: [usize; 2],
        server_port: u16,
    ) -> Option<ConversationId> {
        let begun = self.table.len() as u32;
        let host = hosts[Side::Client as usize];
        let port = self.ports.allocate(begun, host, ())?;
        let ordinal = &mut self.begun_by[host.0 as usize];
        let names = DatagramNames::new(host.0, *ordinal);
        *ordinal += 1;
        self.table.push(DatagramConversation {
            number: FIRST + begun,
            client,
            server,
            hosts,
            paths,
            ports: [port, server_port],
            names,
            sent_bytes: [0; 2],
        });
        Some(ConversationId::from_index(begun as usize))
    }

    /// The client closes its socket; what is under way to it vanishes.
    pub(crate) fn close(&mut self, id: ConversationId) {
        let DatagramConversation { ports: [port, _], hosts: [host, _], .. } = self.table[id];
        self.ports.give_back(port, host, ());
    }

    pub(crate) fn get(&self, id: ConversationId) -> &DatagramConversation {
        &self.table[id]
    }

    pub(crate) fn get_mut(&mut self, id: ConversationId) -> &mut DatagramConversation {
        &mut self.table[id]
    }
}

/// Headers without options.
const IP_AND_UDP_BYTES: u32 = 28;
/// TCP's connections are counted from 0.
const FIRST: u32 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::ports::{FIRST_PORT, PORTS};

    #[test]
    fn sockets_that_are_open_at_once_have_ports_of_their_own() {
        let mut all = DatagramConversations::new(2);
        let end = |client, server| (ClientId(client), ServerId(server));
        let open = |all: &mut DatagramConversations, client, server| {
            let id = all.add(end(client, server), [HostId(1), HostId(0)], [0; 2], 1_883)?;
            Some((id, all.get(id).ports[Side::Client as usize]))
        };
        let (_, lasting) = open(&mut all, 0, 0).unwrap();
        for _ in 1..PORTS {
            let (short, _) = open(&mut all, 1, 0).unwrap();
            all.close(short);
        }
        // A socket is bound to a port of its host, whomever it speaks to.
        let (next, port) = open(&mut all, 1, 1).unwrap();
        assert_eq!((lasting, port), (FIRST_PORT, FIRST_PORT + 1));
        assert_eq!(all.get(next).number, FIRST + PORTS);
        for _ in 2..PORTS {
            open(&mut all, 2, 0).unwrap();
        }
        assert!(open(&mut all, 3, 0).is_none());
        all.close(next);
        assert_eq!(open(&mut all, 3, 0).unwrap().1, port);
    }
}
