//! The PROXY protocol, versions 1 and 2: a balancer says in front of a connection whose it is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Part, Request, spells};
use crate::segment::SocketEndpoint;

/// A header of version 1: a line of text (§2.1).
pub(super) fn text(bytes: &[u8]) -> Part<Request> {
    if !spells(bytes, b"PROXY ") {
        return Part::Other;
    }
    let end = bytes.iter().take(LINE_MAX).position(|&byte| byte == b'\n');
    let Some(end) = end else {
        return if bytes.len() < LINE_MAX { Part::Short } else { Part::Other };
    };
    let Ok(line) = std::str::from_utf8(&bytes[..end]) else { return Part::Other };
    let words: Vec<&str> = line.trim_end_matches('\r').split(' ').collect();
    let client = match words.as_slice() {
        ["PROXY", "UNKNOWN", ..] => None,
        ["PROXY", "TCP4" | "TCP6", source, _, port, _] => {
            let (Ok(address), Ok(port)) = (source.parse(), port.parse()) else { return Part::Other };
            Some(SocketEndpoint { address, port })
        }
        _ => return Part::Other,
    };
    Part::Whole(end + 1, Request::Proxy("PROXY protocol, version 1", client))
}

/// A header of version 2: 16 bytes, addresses, and further fields (§2.2).
pub(super) fn binary(bytes: &[u8]) -> Part<Request> {
    if !spells(bytes, SIGNATURE) {
        return Part::Other;
    }
    let Some(&[version, family, high, low]) = bytes.get(12..16) else { return Part::Short };
    if !matches!(version, 0x20 | 0x21) {
        return Part::Other;
    }
    let len = 16 + usize::from(u16::from_be_bytes([high, low]));
    let Some(addresses) = bytes.get(16..len) else { return Part::Short };
    // LOCAL is the balancer's own connection, whatever addresses follow.
    let client = match family >> 4 {
        1 if version == 0x21 => addresses.get(..12).map(|block| {
            let octets = [block[0], block[1], block[2], block[3]];
            end(Ipv4Addr::from(octets).into(), [block[8], block[9]])
        }),
        2 if version == 0x21 => addresses.get(..36).and_then(|block| {
            let octets: [u8; 16] = block[..16].try_into().ok()?;
            Some(end(Ipv6Addr::from(octets).into(), [block[32], block[33]]))
        }),
        // A socket of the balancer's host has a path, which is no address.
        _ => None,
    };
    Part::Whole(len, Request::Proxy("PROXY protocol, version 2", client))
}

fn end(address: IpAddr, port: [u8; 2]) -> SocketEndpoint {
    SocketEndpoint { address, port: u16::from_be_bytes(port) }
}

/// The longest line, with its end (§2.1).
const LINE_MAX: usize = 107;
/// How version 2 begins (§2.2).
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
