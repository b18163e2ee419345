//! Names of frames on the emulated network, read off their headers, so that they meet the dice that the simulator's
//! meet.

use std::collections::HashMap;

use mqttlab_net::{DatagramNames, FrameName, Named, TcpFacts, TcpNames};
use mqttlab_recording::DatagramAccount;

/// The connections that have been seen.
#[derive(Debug, Default)]
pub(crate) struct FrameNames {
    connections: HashMap<[Endpoint; 2], NamedConnection>,
    /// How many connections each host has opened.
    opened: HashMap<u32, u32>,
    conversations: HashMap<[Endpoint; 2], NamedConversation>,
    /// How many conversations each host has begun.
    begun: HashMap<u32, u32>,
}

/// Address and port.
type Endpoint = (u32, u16);

#[derive(Debug)]
struct NamedConnection {
    opener: Endpoint,
    names: TcpNames,
}

/// Datagrams between two sockets.
#[derive(Debug)]
struct NamedConversation {
    opener: Endpoint,
    names: DatagramNames,
}

impl FrameNames {
    /// The name of a frame that `host` has sent: of a segment that of its place in its connection, of a datagram that of its
    /// packet, of anything else its number.
    pub(crate) fn name(&mut self, host: u32, packet: &[u8], number: u64) -> Named {
        let named = self.segment(host, packet).or_else(|| self.datagram(host, packet));
        named.unwrap_or(FrameName::nth(number).into())
    }

    fn datagram(&mut self, host: u32, packet: &[u8]) -> Option<Named> {
        let ip = InternetHeader::read(packet).filter(|ip| ip.protocol == UDP)?;
        let [source, destination] = ip.endpoints(packet)?;
        let (said, _) = DatagramAccount::read(packet.get(ip.length + UDP_HEADER_BYTES..)?)?;
        let key = [source.min(destination), source.max(destination)];
        let conversation = self.conversations.entry(key).or_insert_with(|| {
            let ordinal = self.begun.entry(host).or_default();
            let names = DatagramNames::new(host, *ordinal);
            *ordinal += 1;
            NamedConversation { opener: source, names }
        });
        Some(conversation.names.name(usize::from(source != conversation.opener), said.facts()))
    }

    fn segment(&mut self, host: u32, packet: &[u8]) -> Option<Named> {
        let SegmentHeaders { source, destination, facts, opens } = SegmentHeaders::read(packet)?;
        let key = [source.min(destination), source.max(destination)];
        let known = self.connections.get_mut(&key);
        if opens && known.is_none_or(|known| !known.names.is_opened_by(0, facts.seq)) {
            let ordinal = self.opened.entry(host).or_default();
            let names = TcpNames::new(host, *ordinal);
            *ordinal += 1;
            self.connections.insert(key, NamedConnection { opener: source, names });
        }
        let connection = self.connections.get_mut(&key)?;
        Some(connection.names.name(usize::from(source != connection.opener), &facts))
    }
}

/// What a name is made of.
struct SegmentHeaders {
    source: Endpoint,
    destination: Endpoint,
    facts: TcpFacts,
    /// SYN without ACK.
    opens: bool,
}

impl SegmentHeaders {
    /// Of an IPv4 packet with a TCP segment that is not a later fragment (RFC 791 §3.1, RFC 9293 §3.1).
    fn read(packet: &[u8]) -> Option<SegmentHeaders> {
        let ip = InternetHeader::read(packet).filter(|ip| ip.protocol == TCP)?;
        let [source, destination] = ip.endpoints(packet)?;
        let tcp = ip.length;
        let header = usize::from(packet.get(tcp + 12)? >> 4) * 4;
        let flags = packet.get(tcp + 13)?;
        let length = usize::from(half(packet, 2)?).checked_sub(tcp + header)? as u32;
        let (fin, syn, ack) = (flags & 1 != 0, flags & 2 != 0, flags & 16 != 0);
        Some(SegmentHeaders {
            source,
            destination,
            facts: TcpFacts { seq: word(packet, tcp + 4)?, ack: word(packet, tcp + 8)?, length, syn, fin },
            opens: syn && !ack,
        })
    }
}

/// The TCP connection of a packet, as a number that both of its directions have, and whether the packet is a SYN without ACK.
pub(crate) fn tcp_flow(packet: &[u8]) -> Option<(u128, bool)> {
    const SYN_AND_ACK: u8 = 0x12;
    let ip = InternetHeader::read(packet).filter(|ip| ip.protocol == TCP)?;
    let ends = ip.endpoints(packet)?.map(|(address, port)| u128::from(address) << 16 | u128::from(port));
    let flags = packet.get(ip.length + 13)? & SYN_AND_ACK;
    Some((ends[0].min(ends[1]) << 48 | ends[0].max(ends[1]), flags == 0x02))
}

/// What of an IPv4 header matters here.
struct InternetHeader {
    protocol: u8,
    length: usize,
}

impl InternetHeader {
    /// Of a packet that is not a later fragment, which has no ports.
    fn read(packet: &[u8]) -> Option<InternetHeader> {
        let later_fragment = half(packet, 6)? & 0x1fff != 0;
        if packet.first()? >> 4 != 4 || later_fragment {
            return None;
        }
        Some(InternetHeader { protocol: *packet.get(9)?, length: usize::from(packet[0] & 15) * 4 })
    }

    /// Addresses and ports of sender and receiver, which TCP and UDP have at the same place.
    fn endpoints(&self, packet: &[u8]) -> Option<[Endpoint; 2]> {
        let ports = self.length;
        Some([(word(packet, 12)?, half(packet, ports)?), (word(packet, 16)?, half(packet, ports + 2)?)])
    }
}

fn word(packet: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(packet.get(at..at + 4)?.try_into().ok()?))
}

fn half(packet: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(packet.get(at..at + 2)?.try_into().ok()?))
}

/// IP protocol numbers.
const TCP: u8 = 6;
const UDP: u8 = 17;
const UDP_HEADER_BYTES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const SYN: u8 = 2;
    const ACK: u8 = 16;

    /// A packet from 10.0.0.`from` to 10.0.0.`to`, ports 1000 + host.
    fn packet(from: u8, to: u8, seq: u32, ack: u32, flags: u8, length: u16) -> Vec<u8> {
        let mut packet = vec![0; 40 + usize::from(length)];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&(40 + length).to_be_bytes());
        packet[9] = TCP;
        packet[12..16].copy_from_slice(&[10, 0, 0, from]);
        packet[16..20].copy_from_slice(&[10, 0, 0, to]);
        packet[20..22].copy_from_slice(&(1000 + u16::from(from)).to_be_bytes());
        packet[22..24].copy_from_slice(&(1000 + u16::from(to)).to_be_bytes());
        packet[24..28].copy_from_slice(&seq.to_be_bytes());
        packet[28..32].copy_from_slice(&ack.to_be_bytes());
        (packet[32], packet[33]) = (5 << 4, flags);
        packet
    }

    #[test]
    fn a_segment_is_named_as_the_simulator_names_it() {
        let mut names = FrameNames::default();
        let mut simulated = TcpNames::new(3, 0);
        let facts = |seq, ack, length, syn| TcpFacts { seq, ack, length, syn, fin: false };
        let seen = [
            names.name(3, &packet(1, 2, 100, 0, SYN, 0), 0),
            names.name(0, &packet(2, 1, 500, 101, SYN | ACK, 0), 1),
            names.name(3, &packet(1, 2, 101, 501, ACK, 20), 2),
            names.name(0, &packet(2, 1, 501, 121, ACK, 0), 3),
        ];
        // The simulator's stacks begin elsewhere.
        let expected = [
            simulated.name(0, &facts(9, 0, 0, true)),
            simulated.name(1, &facts(77, 10, 0, true)),
            simulated.name(0, &facts(10, 78, 20, false)),
            simulated.name(1, &facts(78, 30, 0, false)),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn the_next_connection_between_the_same_ports_is_another() {
        let mut names = FrameNames::default();
        let first = names.name(3, &packet(1, 2, 100, 0, SYN, 0), 0);
        let again = names.name(3, &packet(1, 2, 100, 0, SYN, 0), 1);
        let second = names.name(3, &packet(1, 2, 7_000, 0, SYN, 0), 2);
        assert_ne!(first, again, "a repetition has dice of its own");
        assert_eq!(
            second,
            TcpNames::new(3, 1).name(0, &TcpFacts { seq: 1, ack: 0, length: 0, syn: true, fin: false })
        );
    }

    #[test]
    fn what_is_no_segment_goes_by_its_number() {
        let mut names = FrameNames::default();
        for bytes in [&[][..], &[0x45; 12], &[0x60; 60], &packet(1, 2, 100, 0, ACK, 0)[..30]] {
            assert_eq!(names.name(0, bytes, 9), FrameName::nth(9).into());
        }
        assert_eq!(
            names.name(0, &packet(1, 2, 100, 0, ACK, 5), 4),
            FrameName::nth(4).into(),
            "its SYN was not seen"
        );
    }
}
