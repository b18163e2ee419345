//! Tunnels: at which byte the packet begins that a packet carries.
//!
//! [`BY_PROTOCOL`] and [`BY_PORT`] list what is opened, and what is closed and named. Datagrams to a tunnel's port that do not
//! have its header are datagrams like others.

use crate::link::{self, NetworkPacket};
use crate::wifi;

/// What a packet leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carried {
    /// Another packet lies in it, at this byte of the frame.
    Inside(NetworkPacket, usize),
    /// What keeps more from being read.
    Closed(&'static str),
    /// It is the innermost one.
    Here {
        /// Whether it is a part of a fragmented one.
        is_fragment: bool,
    },
}

/// A packet that carries no other.
pub(crate) const HERE: Carried = Carried::Here { is_fragment: false };

/// How a header is read that begins at a byte of the frame; `None`: it is none.
type Opened = fn(&[u8], usize) -> Option<Carried>;

/// What an IP packet of a protocol leads to, whose payload begins at `at`.
pub(crate) fn in_ip(protocol: u8, frame: &[u8], at: usize) -> Carried {
    // Almost all packets.
    match protocol {
        TCP => HERE,
        UDP => in_udp(frame, at),
        _ => {
            let known = BY_PROTOCOL.iter().find(|(number, _)| *number == protocol);
            known.and_then(|(_, open)| open(frame, at)).unwrap_or(HERE)
        }
    }
}

fn in_udp(frame: &[u8], at: usize) -> Carried {
    let Some(&[a, b, c, d, ..]) = frame.get(at..at + 8) else { return HERE };
    let [source, destination] = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
    for (port, either, open) in BY_PORT {
        if destination == port || either && source == port {
            return open(frame, at + 8).unwrap_or(HERE);
        }
    }
    HERE
}

/// Protocols of IP that carry packets.
const BY_PROTOCOL: [(u8, Opened); 9] = [
    // IP in IP (RFC 2003, RFC 4213, RFC 2473).
    (4, |_, at| Some(Carried::Inside(NetworkPacket::Ipv4, at))),
    (41, |_, at| Some(Carried::Inside(NetworkPacket::Ipv6, at))),
    (47, |frame, at| Some(gre(frame, at))),
    (50, |_, _| Some(named("IPsec ESP"))),
    (51, authentication_header),
    // IP with an Ethernet frame (RFC 3378): a header of two bytes.
    (97, |frame, at| Some(ethernet(frame, at + 2))),
    (115, |_, _| Some(named("L2TP, version 3"))),
    // MPLS (RFC 4023).
    (137, |frame, at| Some(inside(link::mpls(frame, at), "MPLS that carries no IP"))),
    // Ethernet in segment routing (RFC 8986).
    (143, |frame, at| Some(ethernet(frame, at))),
];

/// Ports of UDP that tunnels have, and whether the source's counts as well.
const BY_PORT: [(u16, bool, Opened); 14] = [
    (2152, true, gtp_u),
    (4789, false, vxlan),
    // What Linux used before the number was assigned, and still does where it is given none.
    (8472, false, vxlan),
    (4790, false, vxlan_gpe),
    (6081, false, geneve),
    (5247, true, capwap),
    (1701, true, l2tp),
    // MPLS in UDP (RFC 7510).
    (6635, false, |frame, at| readable(inside(link::mpls(frame, at), "MPLS in UDP that carries no IP"))),
    // Frames that routers of MikroTik and access points send to a listener.
    (37_008, false, tzsp),
    (4500, true, esp_in_udp),
    (51_820, true, |_, _| Some(named("WireGuard"))),
    (1194, true, open_vpn),
    (3544, true, |frame, at| readable(Carried::Inside(link::by_nibble(frame.get(at..)?), at))),
    (3386, true, |_, _| Some(named("GTP, version 0"))),
];

/// Encapsulation of user data in mobile networks (3GPP TS 29.281 §5.1).
fn gtp_u(frame: &[u8], at: usize) -> Option<Carried> {
    let header = frame.get(at..at + 8)?;
    // Version 1, and GTP rather than GTP'; type 255 carries a packet, the others are signalling.
    if header[0] >> 4 != 3 || header[1] != 255 {
        return None;
    }
    let mut inner = at + 8;
    if header[0] & 7 != 0 {
        // Sequence number, N-PDU number and the type of the next extension header, if any is there.
        let mut next = *frame.get(at + 11)?;
        inner += 4;
        // Each says its length in four bytes, and what follows in its last one (§5.2.1).
        while header[0] & 4 != 0 && next != 0 {
            let length = usize::from(*frame.get(inner)?) * 4;
            if length == 0 {
                return Some(named("GTP-U with a damaged extension header"));
            }
            inner += length;
            next = *frame.get(inner - 1)?;
        }
    }
    let network = link::by_nibble(frame.get(inner..)?);
    Some(inside((network, inner), "GTP-U that carries no IP"))
}

/// VXLAN (RFC 7348 §5): the flag says that there is a network identifier. Another one is that of groups.
fn vxlan(frame: &[u8], at: usize) -> Option<Carried> {
    (frame.get(at)? & 0x7f == 0x08).then(|| ethernet(frame, at + 8))
}

/// VXLAN with a type of what it carries (draft-ietf-nvo3-vxlan-gpe).
fn vxlan_gpe(frame: &[u8], at: usize) -> Option<Carried> {
    let header = frame.get(at..at + 8)?;
    if header[0] & 0x04 == 0 {
        return vxlan(frame, at);
    }
    Some(match header[3] {
        1 => Carried::Inside(NetworkPacket::Ipv4, at + 8),
        2 => Carried::Inside(NetworkPacket::Ipv6, at + 8),
        3 => ethernet(frame, at + 8),
        5 => inside(link::mpls(frame, at + 8), "VXLAN-GPE that carries no IP"),
        _ => named("VXLAN-GPE that carries no IP"),
    })
}

/// GENEVE (RFC 8926 §3.4).
fn geneve(frame: &[u8], at: usize) -> Option<Carried> {
    let header = frame.get(at..at + 8)?;
    if header[0] >> 6 != 0 {
        return None;
    }
    let inner = at + 8 + usize::from(header[0] & 0x3f) * 4;
    Some(typed(frame, at + 2, inner, "GENEVE that carries no IP"))
}

/// GRE (RFC 2784, RFC 2890): checksum, key and sequence number are there or not. Version 1 carries PPP (RFC 2637 §4.1).
fn gre(frame: &[u8], at: usize) -> Carried {
    let Some(header) = frame.get(at..at + 4) else { return HERE };
    let [flags, version] = [header[0], header[1]];
    let has = |flag: u8| usize::from(flags & flag != 0);
    let kind = u16::from_be_bytes([header[2], header[3]]);
    if version & 7 == 1 {
        let inner = at + 8 + 4 * has(0x10) + 4 * usize::from(version & 0x80 != 0);
        return match (kind, has(0x10)) {
            (GRE_PPP, 1) => inside(link::ppp(frame, inner), "PPTP that carries no IP"),
            _ => HERE,
        };
    }
    // Routing takes the word of the checksum as well (RFC 1701), and a list that is in use nowhere.
    let inner = at + 4 + 4 * (has(0x80 | 0x40) + has(0x20) + has(0x10));
    match kind {
        // Type I has no header of its own, and no sequence number; type II has both (draft-foschiano-erspan §4).
        ERSPAN if flags & 0x10 == 0 => ethernet(frame, inner),
        ERSPAN => ethernet(frame, inner + 8),
        ERSPAN_3 => erspan_3(frame, inner),
        _ => typed(frame, at + 2, inner, "GRE that carries neither IP nor Ethernet"),
    }
}

/// ERSPAN of type III (draft-foschiano-erspan §4.2): twelve bytes, eight more where the last bit says so.
fn erspan_3(frame: &[u8], at: usize) -> Carried {
    let Some(header) = frame.get(at..at + 12) else { return HERE };
    let inner = at + 12 + 8 * usize::from(header[11] & 1);
    match header[10] >> 2 & 0x1f {
        0 => ethernet(frame, inner),
        2 => inside((link::by_nibble(frame.get(inner..).unwrap_or_default()), inner), "ERSPAN without IP"),
        _ => named("ERSPAN that carries no Ethernet"),
    }
}

/// CAPWAP's data (RFC 5415 §4.3): Ethernet frames, or those of Wi-Fi.
fn capwap(frame: &[u8], at: usize) -> Option<Carried> {
    let header = frame.get(at..at + 8)?;
    match header[0] {
        0 => {}
        1 => return Some(named("CAPWAP with DTLS")),
        _ => return None,
    }
    let inner = at + usize::from(header[1] >> 3) * 4;
    let flags = u16::from_be_bytes([header[2], header[3]]);
    // A keep-alive carries no frame; fragments of a frame are not put together.
    if flags & 0x0008 != 0 {
        return None;
    }
    if flags & 0x0080 != 0 {
        return Some(Carried::Here { is_fragment: true });
    }
    if flags & 0x0100 == 0 {
        return Some(ethernet(frame, inner));
    }
    Some(match wifi::data(frame, inner, false) {
        Ok((NetworkPacket::Other, _)) => HERE,
        Ok((network, at)) => Carried::Inside(network, at),
        Err(why) => named(why),
    })
}

/// L2TP, version 2 (RFC 2661 §3.1): data, which is PPP.
fn l2tp(frame: &[u8], at: usize) -> Option<Carried> {
    let header = frame.get(at..at + 2)?;
    match (header[1] & 0x0f, header[0] & 0x80) {
        (2, 0) => {}
        // Control, which carries no packets.
        (2, _) => return None,
        (3, _) => return Some(named("L2TP, version 3")),
        _ => return None,
    }
    let has = |flag: u8| usize::from(header[0] & flag != 0);
    let mut inner = at + 2 + 2 * has(0x40) + 4 + 4 * has(0x08);
    if has(0x02) == 1 {
        inner += 2 + usize::from(link::be16(frame, inner)?);
    }
    Some(inside(link::ppp(frame, inner), "L2TP that carries no IP"))
}

/// TZSP: fields up to an end, and the frame of the protocol that the header names.
fn tzsp(frame: &[u8], at: usize) -> Option<Carried> {
    let header = frame.get(at..at + 4)?;
    // Version 1, a received packet or one to be sent.
    if header[0] != 1 || header[1] > 1 {
        return None;
    }
    let mut inner = at + 4;
    loop {
        match *frame.get(inner)? {
            1 => break,
            0 => inner += 1,
            _ => inner += 2 + usize::from(*frame.get(inner + 1)?),
        }
    }
    Some(match u16::from_be_bytes([header[2], header[3]]) {
        1 => ethernet(frame, inner + 1),
        18 => match wifi::data(frame, inner + 1, false) {
            Ok((network, at)) => Carried::Inside(network, at),
            Err(why) => named(why),
        },
        _ => named("TZSP that carries no Ethernet"),
    })
}

/// IPsec's authentication header (RFC 4302 §2), behind which the packet can be read.
fn authentication_header(frame: &[u8], at: usize) -> Option<Carried> {
    let header = frame.get(at..at + 2)?;
    let inner = at + (usize::from(header[1]) + 2) * 4;
    Some(match header[0] {
        4 | 41 | 47 => in_ip(header[0], frame, inner),
        _ => named("IPsec AH"),
    })
}

/// IPsec through address translation (RFC 3948 §2): four zeros come before what is no ESP.
fn esp_in_udp(frame: &[u8], at: usize) -> Option<Carried> {
    (frame.get(at..at + 8)?[..4] != [0; 4]).then(|| named("IPsec ESP in UDP"))
}

/// OpenVPN's first byte has an operation and a key's number; those of data are 6 and 9.
fn open_vpn(frame: &[u8], at: usize) -> Option<Carried> {
    matches!(frame.get(at)? >> 3, 6 | 9).then(|| named("OpenVPN"))
}

fn ethernet(frame: &[u8], at: usize) -> Carried {
    let (network, inner) = link::ethernet(frame, at);
    Carried::Inside(network, inner)
}

/// What the type of Ethernet at `kind_at` says of what lies at `inner`.
fn typed(frame: &[u8], kind_at: usize, inner: usize, otherwise: &'static str) -> Carried {
    match link::be16(frame, kind_at) {
        Some(TRANSPARENT_ETHERNET) => ethernet(frame, inner),
        Some(_) => inside(link::behind_ethertype(frame, kind_at, inner), otherwise),
        None => HERE,
    }
}

fn inside((network, at): (NetworkPacket, usize), otherwise: &'static str) -> Carried {
    if network == NetworkPacket::Other { named(otherwise) } else { Carried::Inside(network, at) }
}

/// What is inside where it can be read: another program may use the port.
fn readable(carried: Carried) -> Option<Carried> {
    matches!(carried, Carried::Inside(NetworkPacket::Ipv4 | NetworkPacket::Ipv6, _)).then_some(carried)
}

fn named(name: &'static str) -> Carried {
    Carried::Closed(name)
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const TRANSPARENT_ETHERNET: u16 = 0x6558;
const GRE_PPP: u16 = 0x880b;
const ERSPAN: u16 = 0x88be;
const ERSPAN_3: u16 = 0x22eb;
