//! The network packet that counts in a frame: the innermost one, where tunnels carry packets in packets.
//!
//! What is encrypted or not understood is named, so that it can be counted.

use crate::link::{LinkType, NetworkPacket};
use crate::reader::CapturedFrame;
use crate::tunnels::{self, Carried, HERE};
use crate::wifi;

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameContent {
    /// What its innermost packet is.
    pub network: NetworkPacket,
    /// At which byte of the frame that packet starts.
    pub offset: usize,
    /// Whether the packet is a part of a fragmented one.
    pub is_fragment: bool,
    /// How many tunnels were opened on the way to it.
    pub tunnels: u8,
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
        let opened = open(self.link_type, self.data);
        let (mut network, mut offset) = opened.unwrap_or((NetworkPacket::Other, 0));
        if let Err(why) = opened {
            return closed(network, offset, UnreadReason::Tunnel(why));
        }
        if !self.link_type.is_known() {
            return closed(network, offset, UnreadReason::Link(self.link_type.0));
        }
        for tunnels in 0..TUNNELS_MAX {
            match next(network, offset, self.data) {
                Carried::Inside(inner, at) => (network, offset) = (inner, at),
                Carried::Closed(name) => {
                    return FrameContent { tunnels, ..closed(network, offset, UnreadReason::Tunnel(name)) };
                }
                Carried::Here { is_fragment } => {
                    return FrameContent { network, offset, is_fragment, tunnels, closed: None };
                }
            }
        }
        closed(network, offset, UnreadReason::Tunnel("tunnels nested too deep"))
    }
}

/// The packet behind a link's header, or what keeps it from being read.
fn open(link_type: LinkType, frame: &[u8]) -> wifi::Opened {
    match link_type {
        LinkType::IEEE802_11 => wifi::data(frame, 0, false),
        LinkType::PRISM => wifi::prism(frame),
        LinkType::RADIOTAP => wifi::radiotap(frame),
        LinkType::AVS => wifi::avs(frame),
        LinkType::PPI => wifi::ppi(frame),
        other => Ok(other.network(frame)),
    }
}

fn closed(network: NetworkPacket, offset: usize, why: UnreadReason) -> FrameContent {
    FrameContent { network, offset, is_fragment: false, tunnels: 0, closed: Some(why) }
}

fn next(network: NetworkPacket, offset: usize, frame: &[u8]) -> Carried {
    let Some(packet) = frame.get(offset..) else { return HERE };
    match network {
        NetworkPacket::Macsec => Carried::Closed("MACsec"),
        NetworkPacket::Other => HERE,
        NetworkPacket::Ipv4 => {
            let Some(header) = packet.get(..20) else { return HERE };
            // Behind the first fragment there are no headers, and in it they may be cut.
            if u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0 {
                return Carried::Here { is_fragment: true };
            }
            tunnels::in_ip(header[9], frame, offset + usize::from(header[0] & 0x0f) * 4)
        }
        NetworkPacket::Ipv6 => {
            let Some(&first) = packet.get(6) else { return HERE };
            let (mut protocol, mut at) = (first, offset + 40);
            // Options for hops and for the destination, and routes (RFC 8200 §4); each says what follows and its length.
            while matches!(protocol, 0 | 43 | 60) {
                let Some(&[next, length]) = frame.get(at..at + 2) else { return HERE };
                (protocol, at) = (next, at + (usize::from(length) + 1) * 8);
            }
            if protocol == IPV6_FRAGMENT {
                return Carried::Here { is_fragment: true };
            }
            tunnels::in_ip(protocol, frame, at)
        }
    }
}

/// The extension header of a fragment (RFC 8200 §4.5).
const IPV6_FRAGMENT: u8 = 44;
/// Tunnels in tunnels that are opened.
const TUNNELS_MAX: u8 = 8;

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
            carried(LinkType(195), &[0; 40]).closed.unwrap().to_string(),
            "link type 195 (IEEE 802.15.4)"
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
