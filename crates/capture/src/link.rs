//! Link-layer headers: where the network packet starts in a frame.

/// A link type as registered by the tcpdump group; the number in the capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkType(pub u16);

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// An IPv4 packet.
    Ipv4,
    /// An IPv6 packet.
    Ipv6,
    /// Something else (ARP, LLDP, …), or a link that is not understood.
    Other,
}

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
/// 802.1Q, 802.1ad and the older stacked tags.
const ETHERTYPES_VLAN: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];

impl LinkType {
    /// BSD loopback: the address family in the byte order of the capturing host.
    pub const NULL: LinkType = LinkType(0);
    /// Ethernet, with or without VLAN tags.
    pub const ETHERNET: LinkType = LinkType(1);
    /// Raw IP, version from the first nibble.
    pub const RAW: LinkType = LinkType(101);
    /// OpenBSD loopback: the address family in network byte order.
    pub const LOOP: LinkType = LinkType(108);
    /// Linux "cooked" capture, version 1.
    pub const LINUX_SLL: LinkType = LinkType(113);
    /// Raw IPv4.
    pub const IPV4: LinkType = LinkType(228);
    /// Raw IPv6.
    pub const IPV6: LinkType = LinkType(229);
    /// Linux "cooked" capture, version 2.
    pub const LINUX_SLL2: LinkType = LinkType(276);

    /// What the frame carries, and at which byte that starts.
    pub fn network(self, frame: &[u8]) -> (Network, usize) {
        match self {
            LinkType::ETHERNET => ethernet(frame),
            // Two numbers that libpcap writes for raw IP on some systems.
            LinkType::RAW | LinkType(12) | LinkType(14) => (by_nibble(frame), 0),
            LinkType::IPV4 => (Network::Ipv4, 0),
            LinkType::IPV6 => (Network::Ipv6, 0),
            LinkType::NULL | LinkType::LOOP => (by_family(frame), 4),
            LinkType::LINUX_SLL => (by_ethertype(frame, 14), 16),
            LinkType::LINUX_SLL2 => (by_ethertype(frame, 0), 20),
            _ => (Network::Other, 0),
        }
    }
}

fn ethernet(frame: &[u8]) -> (Network, usize) {
    let mut at = 12;
    while let Some(kind) = be16(frame, at) {
        if !ETHERTYPES_VLAN.contains(&kind) {
            return (by_ethertype(frame, at), at + 2);
        }
        at += 4;
    }
    (Network::Other, 0)
}

fn by_ethertype(frame: &[u8], at: usize) -> Network {
    match be16(frame, at) {
        Some(ETHERTYPE_IPV4) => Network::Ipv4,
        Some(ETHERTYPE_IPV6) => Network::Ipv6,
        _ => Network::Other,
    }
}

fn by_nibble(frame: &[u8]) -> Network {
    match frame.first().map(|byte| byte >> 4) {
        Some(4) => Network::Ipv4,
        Some(6) => Network::Ipv6,
        _ => Network::Other,
    }
}

/// The address family's number differs between systems; that of IPv4 is 2 everywhere.
fn by_family(frame: &[u8]) -> Network {
    let Some(bytes) = frame.get(..4) else { return Network::Other };
    let value = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let family = if value > 0xffff { value.swap_bytes() } else { value };
    match family {
        2 => Network::Ipv4,
        10 | 24 | 28 | 30 => Network::Ipv6,
        _ => Network::Other,
    }
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacked_vlan_tags_are_passed_over() {
        let mut frame = [0_u8; 24];
        frame[12..16].copy_from_slice(&[0x88, 0xa8, 0, 1]);
        frame[16..20].copy_from_slice(&[0x81, 0x00, 0, 2]);
        frame[20..22].copy_from_slice(&[0x08, 0x00]);
        assert_eq!(LinkType::ETHERNET.network(&frame), (Network::Ipv4, 22));
    }

    #[test]
    fn a_frame_cut_inside_its_header_carries_nothing() {
        for link in
            [LinkType::ETHERNET, LinkType::RAW, LinkType::NULL, LinkType::LINUX_SLL, LinkType::LINUX_SLL2]
        {
            assert_eq!(link.network(&[]).0, Network::Other, "{link:?}");
        }
    }

    #[test]
    fn loopback_families_are_read_in_either_byte_order() {
        assert_eq!(LinkType::NULL.network(&[2, 0, 0, 0]), (Network::Ipv4, 4));
        assert_eq!(LinkType::LOOP.network(&[0, 0, 0, 24]), (Network::Ipv6, 4));
        assert_eq!(LinkType::NULL.network(&[30, 0, 0, 0]), (Network::Ipv6, 4));
    }
}
