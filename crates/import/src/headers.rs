//! Frames as rows: what link, network and transport headers say.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use mqttlab_capture::{CapturedFrame, FrameContent, NetworkPacket, TcpHeader, UdpHeader};
use mqttlab_recording::FrameHeaders;

/// An IP packet's header, as far as frames without TCP and UDP need it.
pub struct IpHeader {
    /// Sender.
    pub source: IpAddr,
    /// Receiver.
    pub destination: IpAddr,
    /// What it carries.
    pub protocol: u8,
    /// Its ECN field (RFC 3168 §5), where the sender understands marks.
    pub ecn: Option<u8>,
    /// Size with its header.
    pub bytes: u32,
}

/// The IP header of a frame; `None` when it carries none, or a cut one.
pub fn ip(frame: &CapturedFrame<'_>, content: &FrameContent) -> Option<IpHeader> {
    let &FrameContent { network, offset, .. } = content;
    let packet = frame.data.get(offset..)?;
    let on_link = frame.original_len.saturating_sub(offset as u32);
    let length = |at: usize| u32::from(u16::from_be_bytes([packet[at], packet[at + 1]]));
    match network {
        NetworkPacket::Ipv4 => {
            let address =
                |at: usize| Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3]);
            packet.get(..20)?;
            // Segmentation offload leaves the length at zero; the frame's own length stands in.
            let bytes = if length(2) == 0 { on_link } else { length(2) };
            Some(IpHeader {
                source: address(12).into(),
                destination: address(16).into(),
                protocol: packet[9],
                ecn: ecn(packet[1]),
                bytes,
            })
        }
        NetworkPacket::Ipv6 => {
            let address = |at: usize| <[u8; 16]>::try_from(&packet[at..at + 16]).ok().map(Ipv6Addr::from);
            packet.get(..40)?;
            let bytes = if length(4) == 0 { on_link } else { 40 + length(4) };
            Some(IpHeader {
                source: address(8)?.into(),
                destination: address(24)?.into(),
                protocol: packet[6],
                // Of the traffic class, which begins in the first byte.
                ecn: ecn(packet[1] >> 4),
                bytes,
            })
        }
        NetworkPacket::Other | NetworkPacket::Macsec => None,
    }
}

fn ecn(bits: u8) -> Option<u8> {
    Some(bits & 3).filter(|&ecn| ecn != 0)
}

/// A segment's columns. Selective acknowledgements are written into `sack`.
pub fn of_segment<'a>(segment: &TcpHeader, sack: &'a mut String) -> FrameHeaders<'a> {
    sack.clear();
    for (index, (left, right)) in
        segment.options.sack[..usize::from(segment.options.sack_blocks)].iter().enumerate()
    {
        let blank = if index == 0 { "" } else { " " };
        write!(sack, "{blank}{left}-{right}").expect("a string takes all");
    }
    FrameHeaders {
        ip_bytes: segment.ip_len,
        protocol: TCP,
        source_port: Some(segment.source.port),
        destination_port: Some(segment.destination.port),
        seq: Some(segment.sequence),
        ack: segment.bits.has(mqttlab_capture::Bits::ACK).then_some(segment.acknowledgment),
        flags: Some(segment.bits.0),
        window: Some(segment.window),
        payload_bytes: segment.payload_len,
        tsval: segment.options.timestamps.map(|(value, _)| value),
        tsecr: segment.options.timestamps.map(|(_, echo)| echo),
        sack: Some(sack.as_str()).filter(|sack| !sack.is_empty()),
        ..FrameHeaders::default()
    }
}

/// A datagram's columns.
pub fn of_datagram(datagram: &UdpHeader, ip: &IpHeader) -> FrameHeaders<'static> {
    FrameHeaders {
        ip_bytes: ip.bytes,
        protocol: ip.protocol,
        source_port: Some(datagram.source.port),
        destination_port: Some(datagram.destination.port),
        payload_bytes: datagram.payload_len,
        ecn: ip.ecn,
        ..FrameHeaders::default()
    }
}

/// The IP protocol number of TCP.
const TCP: u8 = 6;
