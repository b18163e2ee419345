//! Link-layer headers: where the network packet starts in a frame, behind tags, labels and sessions.

/// A link type as registered by the tcpdump group; the number in the capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkType(pub u16);

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkPacket {
    /// An IPv4 packet.
    Ipv4,
    /// An IPv6 packet.
    Ipv6,
    /// Something else (ARP, LLDP, …), or a link that is not understood.
    Other,
    /// Encrypted by MACsec (IEEE 802.1AE).
    Macsec,
}

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
/// 802.1Q, 802.1ad and the older stacked tags.
const ETHERTYPE_MACSEC: u16 = 0x88e5;
const ETHERTYPE_PPPOE_SESSION: u16 = 0x8864;
const ETHERTYPES_MPLS: [u16; 2] = [0x8847, 0x8848];
/// Greater numbers are types (IEEE 802.3 §3.2.6).
const LENGTH_MAX: u16 = 1500;
/// The field of NFLOG that holds the packet.
const NFLOG_PAYLOAD: u16 = 9;
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;
const PPP_MPLS: u16 = 0x0281;
const ETHERTYPES_VLAN: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];

impl LinkType {
    /// BSD loopback: the address family in the byte order of the capturing host.
    pub const NULL: LinkType = LinkType(0);
    /// Ethernet, with or without VLAN tags.
    pub const ETHERNET: LinkType = LinkType(1);
    /// Raw IP, version from the first nibble.
    pub const RAW: LinkType = LinkType(101);
    /// PPP, with or without HDLC's address and control bytes.
    pub const PPP: LinkType = LinkType(9);
    /// PPP in HDLC framing.
    pub const PPP_HDLC: LinkType = LinkType(50);
    /// A PPPoE session without its Ethernet header.
    pub const PPP_ETHER: LinkType = LinkType(51);
    /// Cisco PPP with HDLC framing: an Ethernet type after two bytes.
    pub const C_HDLC: LinkType = LinkType(104);
    /// OpenBSD loopback: the address family in network byte order.
    pub const LOOP: LinkType = LinkType(108);
    /// Linux "cooked" capture, version 1.
    pub const LINUX_SLL: LinkType = LinkType(113);
    /// Frames of IEEE 802.11.
    pub const IEEE802_11: LinkType = LinkType(105);
    /// These behind a header of Prism.
    pub const PRISM: LinkType = LinkType(119);
    /// These behind a header of radiotap.
    pub const RADIOTAP: LinkType = LinkType(127);
    /// These behind a header of AVS.
    pub const AVS: LinkType = LinkType(163);
    /// Per-packet information, mostly before frames of 802.11.
    pub const PPI: LinkType = LinkType(192);
    /// Packets that a rule of Linux's packet filter logs.
    pub const NFLOG: LinkType = LinkType(239);
    /// Raw IPv4.
    pub const IPV4: LinkType = LinkType(228);
    /// Raw IPv6.
    pub const IPV6: LinkType = LinkType(229);
    /// Linux "cooked" capture, version 2.
    pub const LINUX_SLL2: LinkType = LinkType(276);

    /// What the frame carries, and at which byte that starts. Those of Wi-Fi are read elsewhere.
    pub fn network(self, frame: &[u8]) -> (NetworkPacket, usize) {
        match self {
            LinkType::ETHERNET => ethernet(frame, 0),
            // Two numbers that libpcap writes for raw IP on some systems.
            LinkType::RAW | LinkType(12) | LinkType(14) => (by_nibble(frame), 0),
            LinkType::IPV4 => (NetworkPacket::Ipv4, 0),
            LinkType::IPV6 => (NetworkPacket::Ipv6, 0),
            LinkType::NULL | LinkType::LOOP => (by_family(frame), 4),
            LinkType::LINUX_SLL => behind_ethertype(frame, 14, 16),
            LinkType::LINUX_SLL2 => behind_ethertype(frame, 0, 20),
            LinkType::PPP | LinkType::PPP_HDLC => ppp(frame, 0),
            LinkType::PPP_ETHER => pppoe(frame, 0),
            LinkType::C_HDLC => behind_ethertype(frame, 2, 4),
            // What decrypts IPsec in OpenBSD, its packet filter, a byte for the direction before PPP, labels, an analyser's header.
            LinkType(109) => at_byte(frame, 12),
            LinkType(117) => {
                at_byte(frame, frame.first().map_or(0, |&len| usize::from(len).next_multiple_of(4)))
            }
            LinkType(204) => ppp(frame, 1),
            LinkType(219) => mpls(frame, 0),
            LinkType(240) => ethernet(frame, 4),
            LinkType::NFLOG => nflog(frame),
            _ => (NetworkPacket::Other, 0),
        }
    }

    /// Whether frames of this link can be read at all.
    pub fn is_known(self) -> bool {
        matches!(self.0, 0 | 1 | 9 | 12 | 14 | 50 | 51 | 101 | 104 | 105 | 108 | 109 | 113 | 117 | 119 | 127)
            || matches!(self.0, 163 | 192 | 204 | 219 | 228 | 229 | 239 | 240 | 276)
    }

    /// What the registry calls it, as far as captures of MQTT may come so.
    pub fn name(self) -> &'static str {
        let known = NAMES.iter().find(|(number, _)| *number == self.0);
        let otherwise = if matches!(self.0, 147..=162) { "for private use" } else { "not known here" };
        known.map_or(otherwise, |(_, name)| name)
    }

    /// Which interface and way a frame of a capture of all interfaces took: frames with equal bytes and another key
    /// are copies that the host forwards. `None` for links that do not say.
    pub fn place_on_host(self, frame: &[u8]) -> Option<(u32, u8)> {
        match self {
            // Whether it came in or went out; which interface it was is not written down.
            LinkType::LINUX_SLL => Some((0, be16(frame, 0)? as u8)),
            LinkType::LINUX_SLL2 => {
                let interface = frame.get(4..8)?;
                let number = u32::from_be_bytes([interface[0], interface[1], interface[2], interface[3]]);
                Some((number, *frame.get(10)?))
            }
            _ => None,
        }
    }
}

/// What an Ethernet frame that starts at `at` carries.
pub(crate) fn ethernet(frame: &[u8], at: usize) -> (NetworkPacket, usize) {
    behind_ethertype(frame, at + 12, at + 14)
}

/// What lies behind the type at `kind_at`, whose own header ends at `payload_at`.
pub(crate) fn behind_ethertype(frame: &[u8], kind_at: usize, payload_at: usize) -> (NetworkPacket, usize) {
    let (mut kind_at, mut payload_at) = (kind_at, payload_at);
    while let Some(kind) = be16(frame, kind_at) {
        if ETHERTYPES_VLAN.contains(&kind) {
            // The tag's own type stands in front of its payload.
            (kind_at, payload_at) = (payload_at + 2, payload_at + 4);
        } else if ETHERTYPES_MPLS.contains(&kind) {
            return mpls(frame, payload_at);
        } else if kind == ETHERTYPE_PPPOE_SESSION {
            return pppoe(frame, payload_at);
        } else if kind <= LENGTH_MAX
            && let Some([0xaa, 0xaa, 3, 0, 0, 0]) = frame.get(payload_at..payload_at + 6)
        {
            // A length instead of a type; LLC and SNAP have the type (RFC 1042).
            (kind_at, payload_at) = (payload_at + 6, payload_at + 8);
        } else {
            return (by_ethertype(frame, kind_at), payload_at);
        }
    }
    (NetworkPacket::Other, 0)
}

/// A packet that says itself which version it is.
fn at_byte(frame: &[u8], at: usize) -> (NetworkPacket, usize) {
    (by_nibble(frame.get(at..).unwrap_or_default()), at)
}

/// Fields of NFLOG up to the one with the packet, in the byte order of the capturing host.
fn nflog(frame: &[u8]) -> (NetworkPacket, usize) {
    let mut at = 4;
    while let Some(field) = frame.get(at..at + 4) {
        let little = u16::from_le_bytes([field[2], field[3]]) & 0x7fff < 0x100;
        let number = |pair: [u8; 2]| if little { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) };
        let (length, kind) = (number([field[0], field[1]]), number([field[2], field[3]]));
        if kind & 0x7fff == NFLOG_PAYLOAD {
            return at_byte(frame, at + 4);
        }
        // A field is as long as its own header, at least.
        at += usize::from(length.max(4)).next_multiple_of(4);
    }
    (NetworkPacket::Other, 0)
}

/// Labels up to the bottom of the stack (RFC 3032 §2.1), and a packet that says itself which version it is.
pub(crate) fn mpls(frame: &[u8], mut at: usize) -> (NetworkPacket, usize) {
    while let Some(&low) = frame.get(at + 2) {
        at += 4;
        if low & 1 == 1 {
            return (by_nibble(frame.get(at..).unwrap_or_default()), at);
        }
    }
    (NetworkPacket::Other, 0)
}

/// A PPPoE session's header (RFC 2516 §4) and PPP behind it.
fn pppoe(frame: &[u8], at: usize) -> (NetworkPacket, usize) {
    ppp(frame, at + 6)
}

/// PPP's address and control, if they are there, and its protocol, of one byte or two (RFC 1661 §2, RFC 1662 §3.2).
pub(crate) fn ppp(frame: &[u8], mut at: usize) -> (NetworkPacket, usize) {
    if frame.get(at..at + 2) == Some(&[0xff, 0x03]) {
        at += 2;
    }
    let Some(&first) = frame.get(at) else { return (NetworkPacket::Other, 0) };
    let (protocol, payload_at) = match be16(frame, at) {
        _ if first & 1 == 1 => (u16::from(first), at + 1),
        Some(protocol) => (protocol, at + 2),
        None => return (NetworkPacket::Other, 0),
    };
    match protocol {
        PPP_IPV4 => (NetworkPacket::Ipv4, payload_at),
        PPP_IPV6 => (NetworkPacket::Ipv6, payload_at),
        PPP_MPLS => mpls(frame, payload_at),
        _ => (NetworkPacket::Other, 0),
    }
}

pub(crate) fn by_ethertype(frame: &[u8], at: usize) -> NetworkPacket {
    match be16(frame, at) {
        Some(ETHERTYPE_IPV4) => NetworkPacket::Ipv4,
        Some(ETHERTYPE_IPV6) => NetworkPacket::Ipv6,
        Some(ETHERTYPE_MACSEC) => NetworkPacket::Macsec,
        _ => NetworkPacket::Other,
    }
}

pub(crate) fn by_nibble(frame: &[u8]) -> NetworkPacket {
    match frame.first().map(|byte| byte >> 4) {
        Some(4) => NetworkPacket::Ipv4,
        Some(6) => NetworkPacket::Ipv6,
        _ => NetworkPacket::Other,
    }
}

/// The address family's number differs between systems; that of IPv4 is 2 everywhere.
fn by_family(frame: &[u8]) -> NetworkPacket {
    let Some(bytes) = frame.get(..4) else { return NetworkPacket::Other };
    let value = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let family = if value > 0xffff { value.swap_bytes() } else { value };
    match family {
        2 => NetworkPacket::Ipv4,
        10 | 24 | 28 | 30 => NetworkPacket::Ipv6,
        _ => NetworkPacket::Other,
    }
}

pub(crate) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
}

/// Link types by number, as the tcpdump group registers them.
const NAMES: [(u16, &str); 24] = [
    (0, "BSD loopback"),
    (1, "Ethernet"),
    (6, "Token Ring"),
    (9, "PPP"),
    (10, "FDDI"),
    (50, "PPP in HDLC framing"),
    (51, "PPPoE"),
    (101, "raw IP"),
    (104, "Cisco HDLC"),
    (105, "IEEE 802.11"),
    (107, "frame relay"),
    (113, "Linux cooked"),
    (119, "IEEE 802.11 with Prism header"),
    (127, "IEEE 802.11 with radiotap header"),
    (163, "IEEE 802.11 with AVS header"),
    (187, "Bluetooth HCI"),
    (192, "per-packet information"),
    (195, "IEEE 802.15.4"),
    (220, "USB"),
    (230, "IEEE 802.15.4 without check sequence"),
    (239, "NFLOG"),
    (249, "USBPcap"),
    (252, "exported PDU of Wireshark"),
    (276, "Linux cooked, version 2"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacked_vlan_tags_are_passed_over() {
        let mut frame = [0_u8; 24];
        frame[12..16].copy_from_slice(&[0x88, 0xa8, 0, 1]);
        frame[16..20].copy_from_slice(&[0x81, 0x00, 0, 2]);
        frame[20..22].copy_from_slice(&[0x08, 0x00]);
        assert_eq!(LinkType::ETHERNET.network(&frame), (NetworkPacket::Ipv4, 22));
    }

    #[test]
    fn a_frame_cut_inside_its_header_carries_nothing() {
        for link in
            [LinkType::ETHERNET, LinkType::RAW, LinkType::NULL, LinkType::LINUX_SLL, LinkType::LINUX_SLL2]
        {
            assert_eq!(link.network(&[]).0, NetworkPacket::Other, "{link:?}");
        }
    }

    #[test]
    fn loopback_families_are_read_in_either_byte_order() {
        assert_eq!(LinkType::NULL.network(&[2, 0, 0, 0]), (NetworkPacket::Ipv4, 4));
        assert_eq!(LinkType::LOOP.network(&[0, 0, 0, 24]), (NetworkPacket::Ipv6, 4));
        assert_eq!(LinkType::NULL.network(&[30, 0, 0, 0]), (NetworkPacket::Ipv6, 4));
    }
}
