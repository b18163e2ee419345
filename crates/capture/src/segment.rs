//! Headers of IP, TCP and UDP, and the [`TcpHeader`] that the analysis works on.
//!
//! IP fragments after the first carry no ports and count as [`TransportHeader::Other`]; a first fragment counts as a
//! segment whose tail was not captured. Neither is put together again. Checksums are not verified: offloading
//! leaves them wrong in captures taken on the sending host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use mqttlab_units::Instant;

use crate::frame_content::FrameContent;
use crate::link::NetworkPacket;
use crate::reader::CapturedFrame;

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketEndpoint {
    /// Its address.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
}

/// The flag bits of a TCP header (RFC 9293 §3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bits(pub u8);

impl Bits {
    /// No more data from sender.
    pub const FIN: Bits = Bits(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: Bits = Bits(0x02);
    /// Reset the connection.
    pub const RST: Bits = Bits(0x04);
    /// Push: hand the data to the application.
    pub const PSH: Bits = Bits(0x08);
    /// The acknowledgment number is valid.
    pub const ACK: Bits = Bits(0x10);

    /// Whether all of `others` are set.
    pub const fn has(self, others: Bits) -> bool {
        self.0 & others.0 == others.0
    }

    /// Whether any of `others` is set.
    pub const fn any(self, others: Bits) -> bool {
        self.0 & others.0 != 0
    }

    /// Both sets together.
    pub const fn and(self, others: Bits) -> Bits {
        Bits(self.0 | others.0)
    }
}

/// The TCP options that the analysis reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size in bytes (RFC 9293 §3.7.1).
    pub mss: Option<u16>,
    /// Window scale, a shift (RFC 7323 §2).
    pub window_scale: Option<u8>,
    /// Timestamp value and echo reply (RFC 7323 §3).
    pub timestamps: Option<(u32, u32)>,
    /// Selective acknowledgments, left and right edges (RFC 2018).
    pub sack: [(u32, u32); 4],
    /// How many of `sack` are in use.
    pub sack_blocks: u8,
}

/// The header of a TCP segment with the sizes of what carried it.
#[derive(Clone, Copy, Debug)]
pub struct TcpHeader {
    /// When it was seen.
    pub time: Instant,
    /// Sender.
    pub source: SocketEndpoint,
    /// Receiver.
    pub destination: SocketEndpoint,
    /// Sequence number of the first payload byte (of the SYN, if set).
    pub sequence: u32,
    /// Acknowledgment number; meaningful with [`Bits::ACK`].
    pub acknowledgment: u32,
    /// Flags.
    pub bits: Bits,
    /// Window as in the header, before scaling.
    pub window: u16,
    /// Options.
    pub options: Options,
    /// Bytes of payload on the wire, captured or not.
    pub payload_len: u32,
    /// Bytes of TCP header and options.
    pub header_len: u32,
    /// Bytes of the IP packet, headers included.
    pub ip_len: u32,
    /// Bytes of the frame on its link.
    pub frame_len: u32,
}

/// A UDP datagram's header.
#[derive(Clone, Copy, Debug)]
pub struct UdpHeader {
    /// Sender.
    pub source: SocketEndpoint,
    /// Receiver.
    pub destination: SocketEndpoint,
    /// Bytes of payload.
    pub payload_len: u32,
}

/// What a frame carries above the network layer.
#[derive(Clone, Copy, Debug)]
pub enum TransportHeader<'a> {
    /// A TCP segment and the captured part of its payload.
    Tcp(TcpHeader, &'a [u8]),
    /// A UDP datagram and the captured part of its payload.
    Udp(UdpHeader, &'a [u8]),
    /// Anything else, or a header that was cut or contradicts itself.
    Other,
}

const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
const IPV6_HEADER_LEN: usize = 40;

/// An IP packet with its header read.
struct IpPacket<'a> {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    ip_len: u32,
    header_len: u32,
    /// As captured, without link padding.
    payload: &'a [u8],
}

/// Reads the headers of a frame.
pub fn dissect<'a>(frame: &CapturedFrame<'a>) -> TransportHeader<'a> {
    dissect_content(frame, &frame.carried())
}

/// Reads the headers of a frame of which is known what it carries.
pub fn dissect_content<'a>(frame: &CapturedFrame<'a>, content: &FrameContent) -> TransportHeader<'a> {
    let &FrameContent { network, offset, .. } = content;
    let Some(bytes) = frame.data.get(offset..) else { return TransportHeader::Other };
    let wire_len = frame.original_len.saturating_sub(offset as u32);
    let packet = match network {
        NetworkPacket::Ipv4 => ipv4(bytes, wire_len),
        NetworkPacket::Ipv6 => ipv6(bytes, wire_len),
        NetworkPacket::Other | NetworkPacket::Macsec => None,
    };
    let Some(packet) = packet else { return TransportHeader::Other };
    match packet.protocol {
        PROTOCOL_TCP => tcp(frame, &packet),
        PROTOCOL_UDP => udp(&packet),
        _ => None,
    }
    .unwrap_or(TransportHeader::Other)
}

fn ipv4(bytes: &[u8], wire_len: u32) -> Option<IpPacket<'_>> {
    let header = bytes.get(..20)?;
    let header_len = usize::from(header[0] & 0x0f) * 4;
    let fragment_offset = be16(header, 6) & 0x1fff;
    if header[0] >> 4 != 4 || header_len < 20 || fragment_offset != 0 {
        return None;
    }
    // Segmentation offload leaves the length at zero; the frame's own length stands in.
    let total = match be16(header, 2) {
        0 => wire_len,
        length => u32::from(length),
    };
    if (total as usize) < header_len {
        return None;
    }
    Some(IpPacket {
        source: Ipv4Addr::new(header[12], header[13], header[14], header[15]).into(),
        destination: Ipv4Addr::new(header[16], header[17], header[18], header[19]).into(),
        protocol: header[9],
        ip_len: total,
        header_len: header_len as u32,
        payload: bytes.get(header_len..bytes.len().min(total as usize))?,
    })
}

fn ipv6(bytes: &[u8], wire_len: u32) -> Option<IpPacket<'_>> {
    let header = bytes.get(..IPV6_HEADER_LEN)?;
    if header[0] >> 4 != 6 {
        return None;
    }
    let total = match be16(header, 4) {
        0 => wire_len,
        length => u32::from(length) + IPV6_HEADER_LEN as u32,
    };
    let (protocol, header_len) = ipv6_extensions(bytes, header[6])?;
    if (total as usize) < header_len {
        return None;
    }
    let address = |at: usize| {
        let octets: [u8; 16] = header[at..at + 16].try_into().expect("sixteen bytes of a checked header");
        IpAddr::from(Ipv6Addr::from(octets))
    };
    Some(IpPacket {
        source: address(8),
        destination: address(24),
        protocol,
        ip_len: total,
        header_len: header_len as u32,
        payload: bytes.get(header_len..bytes.len().min(total as usize))?,
    })
}

/// Walks the extension headers (RFC 8200 §4) to the transport protocol and where it starts.
fn ipv6_extensions(bytes: &[u8], first: u8) -> Option<(u8, usize)> {
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const FRAGMENT: u8 = 44;
    const DESTINATION: u8 = 60;
    let (mut next, mut at) = (first, IPV6_HEADER_LEN);
    loop {
        match next {
            HOP_BY_HOP | ROUTING | DESTINATION => {
                let extension = bytes.get(at..at + 2)?;
                next = extension[0];
                at += (usize::from(extension[1]) + 1) * 8;
            }
            FRAGMENT => {
                let extension = bytes.get(at..at + 8)?;
                if be16(extension, 2) & 0xfff8 != 0 {
                    return None;
                }
                next = extension[0];
                at += 8;
            }
            protocol => return Some((protocol, at)),
        }
    }
}

fn tcp<'a>(frame: &CapturedFrame<'a>, packet: &IpPacket<'a>) -> Option<TransportHeader<'a>> {
    let bytes = packet.payload;
    let header = bytes.get(..20)?;
    let header_len = usize::from(header[12] >> 4) * 4;
    let transport_len = packet.ip_len - packet.header_len;
    if header_len < 20 || header_len > transport_len as usize {
        return None;
    }
    let options = bytes.get(20..header_len.min(bytes.len())).unwrap_or_default();
    let segment = TcpHeader {
        time: frame.time,
        source: SocketEndpoint { address: packet.source, port: be16(header, 0) },
        destination: SocketEndpoint { address: packet.destination, port: be16(header, 2) },
        sequence: be32(header, 4),
        acknowledgment: be32(header, 8),
        bits: Bits(header[13]),
        window: be16(header, 14),
        options: tcp_options(options),
        payload_len: transport_len - header_len as u32,
        header_len: header_len as u32,
        ip_len: packet.ip_len,
        frame_len: frame.original_len,
    };
    Some(TransportHeader::Tcp(segment, bytes.get(header_len..).unwrap_or_default()))
}

fn udp<'a>(packet: &IpPacket<'a>) -> Option<TransportHeader<'a>> {
    let header = packet.payload.get(..8)?;
    let datagram = UdpHeader {
        source: SocketEndpoint { address: packet.source, port: be16(header, 0) },
        destination: SocketEndpoint { address: packet.destination, port: be16(header, 2) },
        payload_len: u32::from(be16(header, 4)).saturating_sub(8),
    };
    Some(TransportHeader::Udp(datagram, &packet.payload[8..]))
}

fn tcp_options(mut bytes: &[u8]) -> Options {
    let mut options = Options::default();
    while let Some(&kind) = bytes.first() {
        let length = match kind {
            0 => break,
            1 => 1,
            _ => bytes.get(1).map_or(0, |&length| usize::from(length)),
        };
        let Some(option) = bytes.get(..length).filter(|option| !option.is_empty()) else { break };
        match (kind, length) {
            (2, 4) => options.mss = Some(be16(option, 2)),
            (3, 3) => options.window_scale = Some(option[2].min(14)),
            (5, 10 | 18 | 26 | 34) => {
                for (block, at) in options.sack.iter_mut().zip((2..length).step_by(8)) {
                    *block = (be32(option, at), be32(option, at + 4));
                }
                options.sack_blocks = ((length - 2) / 8) as u8;
            }
            (8, 10) => options.timestamps = Some((be32(option, 2), be32(option, 6))),
            // A length of one on an option that has a length byte would never advance past it properly.
            (2.., 1) => break,
            _ => {}
        }
        bytes = &bytes[length..];
    }
    options
}

impl Options {
    /// The selective acknowledgments in use.
    pub fn sack(&self) -> &[(u32, u32)] {
        &self.sack[..usize::from(self.sack_blocks)]
    }
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
