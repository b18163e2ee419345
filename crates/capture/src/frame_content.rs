//! The network packet that counts in a frame: the innermost one, where tunnels carry packets in packets.
//!
//! GRE (RFC 2784, 2890), VXLAN (RFC 7348) and IP in IP (RFC 2003, 4213) are opened. What is encrypted or not understood
//! is named, so that it can be counted.

use crate::link::{self, LinkType, NetworkPacket};
use crate::reader::CapturedFrame;

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameContent {
    /// What its innermost packet is.
    pub network: NetworkPacket,
    /// At which byte of the frame that packet starts.
    pub offset: usize,
    /// Whether the packet is a part of a fragmented one.
    pub is_fragment: bool,
    /// What keeps more from being read.
    pub closed: Option<UnreadReason>,
}

/// Why what a frame carries is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnreadReason {
    /// Its link is not understood.
    Link(u16),
    /// Encryption, or a tunnel that is not opened.
    Tunnel(&'static str),
}

impl std::fmt::Display for UnreadReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            UnreadReason::Link(number) => write!(f, "link type {number} ({})", LinkType(*number).name()),
            UnreadReason::Tunnel(name) => f.write_str(name),
        }
    }
}

impl CapturedFrame<'_> {
    /// The innermost network packet.
    pub fn carried(&self) -> FrameContent {
        let (mut network, mut offset) = self.link_type.network(self.data);
        if !self.link_type.is_known() {
            return closed(network, offset, UnreadReason::Link(self.link_type.0));
        }
        for _ in 0..TUNNELS_MAX {
            match next(network, offset, self.data) {
                Next::Inside(inner, at) => (network, offset) = (inner, at),
                Next::Closed(why) => return closed(network, offset, why),
                Next::Here { is_fragment } => {
                    return FrameContent { network, offset, is_fragment, closed: None };
                }
            }
        }
        closed(network, offset, UnreadReason::Tunnel("tunnels nested too deep"))
    }
}

fn closed(network: NetworkPacket, offset: usize, why: UnreadReason) -> FrameContent {
    FrameContent { network, offset, is_fragment: false, closed: Some(why) }
}

/// What a packet leads to.
enum Next {
    /// Another packet lies in it.
    Inside(NetworkPacket, usize),
    Closed(UnreadReason),
    Here {
        is_fragment: bool,
    },
}

fn next(network: NetworkPacket, offset: usize, frame: &[u8]) -> Next {
    let here = Next::Here { is_fragment: false };
    let Some(packet) = frame.get(offset..) else { return here };
    let (protocol, payload_at) = match network {
        NetworkPacket::Macsec => return Next::Closed(UnreadReason::Tunnel("MACsec")),
        NetworkPacket::Other => return here,
        NetworkPacket::Ipv4 => {
            let Some(header) = packet.get(..20) else { return here };
            // Behind the first fragment there are no headers, and in it they may be cut.
            if u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0 {
                return Next::Here { is_fragment: true };
            }
            (header[9], offset + usize::from(header[0] & 0x0f) * 4)
        }
        NetworkPacket::Ipv6 => match packet.get(6) {
            Some(44) => return Next::Here { is_fragment: true },
            Some(&protocol) => (protocol, offset + 40),
            None => return here,
        },
    };
    let inside = match protocol {
        4 => Some((NetworkPacket::Ipv4, payload_at)),
        41 => Some((NetworkPacket::Ipv6, payload_at)),
        17 => return udp(frame, payload_at),
        47 => gre(frame, payload_at),
        50 => return Next::Closed(UnreadReason::Tunnel("IPsec ESP")),
        51 => return Next::Closed(UnreadReason::Tunnel("IPsec AH")),
        115 => return Next::Closed(UnreadReason::Tunnel("L2TP")),
        _ => return here,
    };
    match inside {
        Some((NetworkPacket::Other, _)) | None => {
            Next::Closed(UnreadReason::Tunnel("GRE that carries neither IP nor Ethernet"))
        }
        Some((network, at)) => Next::Inside(network, at),
    }
}

fn udp(frame: &[u8], at: usize) -> Next {
    let here = Next::Here { is_fragment: false };
    let Some(header) = frame.get(at..at + 8) else { return here };
    match u16::from_be_bytes([header[2], header[3]]) {
        VXLAN | VXLAN_LINUX => match frame.get(at + 8) {
            // The flag that says that there is a network identifier.
            Some(flags) if flags & 0x08 != 0 => {
                let (network, inner) = link::ethernet(frame, at + 16);
                Next::Inside(network, inner)
            }
            _ => here,
        },
        6081 => Next::Closed(UnreadReason::Tunnel("GENEVE")),
        2152 => Next::Closed(UnreadReason::Tunnel("GTP-U")),
        1701 => Next::Closed(UnreadReason::Tunnel("L2TP")),
        51_820 => Next::Closed(UnreadReason::Tunnel("WireGuard")),
        _ => here,
    }
}

/// Checksum, key and sequence number are there or not (RFC 2890 §2).
fn gre(frame: &[u8], at: usize) -> Option<(NetworkPacket, usize)> {
    let header = frame.get(at..at + 4)?;
    let optional = [0x80, 0x20, 0x10].iter().filter(|&&flag| header[0] & flag != 0).count();
    let payload_at = at + 4 + 4 * optional;
    match u16::from_be_bytes([header[2], header[3]]) {
        TRANSPARENT_ETHERNET => Some(link::ethernet(frame, payload_at)),
        _ => Some((link::by_ethertype(frame, at + 2), payload_at)),
    }
}

const VXLAN: u16 = 4789;
/// What Linux used before the number was assigned, and still does where nobody says otherwise.
const VXLAN_LINUX: u16 = 8472;
const TRANSPARENT_ETHERNET: u16 = 0x6558;
/// Tunnels in tunnels that are opened.
const TUNNELS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use mqttlab_units::Instant;

    fn carried(link_type: LinkType, data: &[u8]) -> FrameContent {
        let original_len = data.len() as u32;
        CapturedFrame { time: Instant::ZERO, is_timed: true, interface: 0, link_type, original_len, data }
            .carried()
    }

    fn ip(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 20 + payload.len() as u8, 0, 0, 0, 0, 64, protocol, 0, 0];
        packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend(payload);
        packet
    }

    fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
        [&[0; 12][..], &kind.to_be_bytes(), payload].concat()
    }

    #[test]
    fn tunnels_are_opened_to_the_innermost_packet() {
        let inner = ip(6, &[7; 20]);
        let gre = ip(47, &[&[0x30, 0, 8, 0][..], &[0; 8], &inner].concat());
        let framed = ethernet(0x800, &inner);
        let vxlan =
            ip(17, &[&[0, 9, 0x12, 0xb5, 0, 0, 0, 0][..], &[8, 0, 0, 0, 0, 0, 5, 0], &framed].concat());
        let mpls = [&[0, 1, 0, 64, 0, 2, 1, 64][..], &inner].concat();
        let pppoe = [&[0x11, 0, 0, 1, 0, 42, 0, 0x21][..], &inner].concat();
        for (link_type, frame) in [
            (LinkType::RAW, gre),
            (LinkType::RAW, vxlan),
            (LinkType::RAW, ip(4, &inner)),
            (LinkType::ETHERNET, ethernet(0x8847, &mpls)),
            (LinkType::ETHERNET, ethernet(0x8864, &pppoe)),
            (LinkType::PPP, [&[0xff, 3, 0, 0x21][..], &inner].concat()),
            (LinkType::PPP, [&[0x21][..], &inner].concat()),
        ] {
            let found = carried(link_type, &frame);
            assert_eq!((found.network, found.closed), (NetworkPacket::Ipv4, None), "{link_type:?}");
            assert_eq!(frame[found.offset..], inner, "{link_type:?}");
        }
    }

    #[test]
    fn what_is_not_opened_is_named_and_fragments_are_told() {
        assert_eq!(
            carried(LinkType(105), &[0; 40]).closed.unwrap().to_string(),
            "link type 105 (IEEE 802.11)"
        );
        assert_eq!(carried(LinkType::RAW, &ip(50, &[0; 9])).closed, Some(UnreadReason::Tunnel("IPsec ESP")));
        let mut fragment = ip(6, &[0; 20]);
        fragment[6] = 0x20;
        assert!(carried(LinkType::RAW, &fragment).is_fragment);
    }

    #[test]
    fn frames_that_end_anywhere_carry_what_is_left() {
        let inner = ip(6, &[7; 20]);
        let whole = ip(47, &[&[0x30, 0, 8, 0][..], &[0; 8], &inner].concat());
        for end in 0..whole.len() {
            carried(LinkType::RAW, &whole[..end]);
            carried(LinkType::ETHERNET, &ethernet(0x8864, &whole[..end]));
        }
    }
}
