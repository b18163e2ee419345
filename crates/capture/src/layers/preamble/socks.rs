//! SOCKS 4, 4a and 5 (RFC 1928, RFC 1929): a client asks a proxy to connect.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{Answer, Part, Reply, Request};

/// A request of SOCKS4, or of 4a, which has a name instead of an address.
pub(super) fn request_4(bytes: &[u8]) -> Part<Request> {
    match bytes.get(1) {
        Some(1 | 2) => {}
        Some(_) => return Part::Other,
        None => return Part::Short,
    }
    let Some(&[high, low, a, b, c, d]) = bytes.get(2..8) else { return Part::Short };
    let port = u16::from_be_bytes([high, low]);
    let user = match text(bytes, 8) {
        Part::Whole(end, _) => end,
        Part::Short => return Part::Short,
        Part::Other => return Part::Other,
    };
    if [a, b, c] != [0; 3] || d == 0 {
        return Part::Whole(user, Request::Socks4(written(Ipv4Addr::new(a, b, c, d).into(), port)));
    }
    match text(bytes, user) {
        Part::Whole(end, name) => Part::Whole(end, Request::Socks4(format!("{name}:{port}"))),
        Part::Short => Part::Short,
        Part::Other => Part::Other,
    }
}

/// A text that a zero ends.
fn text(bytes: &[u8], from: usize) -> Part<String> {
    let rest = &bytes[from..];
    match rest.iter().take(TEXT_MAX).position(|&byte| byte == 0) {
        Some(len) => Part::Whole(from + len + 1, String::from_utf8_lossy(&rest[..len]).into_owned()),
        None if rest.len() < TEXT_MAX => Part::Short,
        None => Part::Other,
    }
}

/// The methods of authentication that a client knows (RFC 1928 §3).
pub(super) fn greeting(bytes: &[u8]) -> Part<Request> {
    match bytes.get(1) {
        None => Part::Short,
        Some(0) => Part::Other,
        Some(&count) if bytes.len() < 2 + usize::from(count) => Part::Short,
        Some(&count) => Part::Whole(2 + usize::from(count), Request::Socks5Greeting),
    }
}

/// A name with its password (RFC 1929 §2), or the request (RFC 1928 §4).
pub(super) fn behind_greeting(bytes: &[u8]) -> Part<Request> {
    match bytes[0] {
        1 => {
            let Some(&name) = bytes.get(1) else { return Part::Short };
            let Some(&password) = bytes.get(2 + usize::from(name)) else { return Part::Short };
            let len = 3 + usize::from(name) + usize::from(password);
            if bytes.len() < len { Part::Short } else { Part::Whole(len, Request::Socks5Password) }
        }
        5 => match address(bytes) {
            Part::Whole(len, target) => Part::Whole(len, Request::Socks5(target)),
            Part::Short => Part::Short,
            Part::Other => Part::Other,
        },
        _ => Part::Other,
    }
}

/// The address of a request or reply, which begins in the fourth byte (RFC 1928 §5).
fn address(bytes: &[u8]) -> Part<String> {
    let Some(&kind) = bytes.get(3) else { return Part::Short };
    let port_at = match kind {
        1 => 8,
        3 => match bytes.get(4) {
            Some(&len) => 5 + usize::from(len),
            None => return Part::Short,
        },
        4 => 20,
        _ => return Part::Other,
    };
    let Some(&[high, low]) = bytes.get(port_at..port_at + 2) else { return Part::Short };
    let port = u16::from_be_bytes([high, low]);
    let target = match &bytes[4..port_at] {
        &[a, b, c, d] if kind == 1 => written(Ipv4Addr::new(a, b, c, d).into(), port),
        name if kind == 3 => format!("{}:{port}", String::from_utf8_lossy(&name[1..])),
        octets => <[u8; 16]>::try_from(octets)
            .map_or_else(|_| String::new(), |octets| written(Ipv6Addr::from(octets).into(), port)),
    };
    Part::Whole(port_at + 2, target)
}

fn written(address: IpAddr, port: u16) -> String {
    SocketAddr::new(address, port).to_string()
}

/// The reply of SOCKS4.
pub(super) fn reply_4(bytes: &[u8]) -> Part<Reply> {
    match bytes {
        [0, code, rest @ ..] if rest.len() >= 6 => {
            let refusal = match code {
                0x5a => None,
                0x5c => Some("SOCKS4: no identd at the client".into()),
                0x5d => Some("SOCKS4: identd names another user".into()),
                0x5b => Some("SOCKS4: rejected or failed".into()),
                code => Some(format!("SOCKS4: code 0x{code:02x}")),
            };
            Part::Whole(8, Reply { refusal, next: Vec::new(), is_last: true })
        }
        [0, ..] => Part::Short,
        _ => Part::Other,
    }
}

/// The method that the proxy chooses (RFC 1928 §3).
pub(super) fn method(bytes: &[u8]) -> Part<Reply> {
    let (refusal, next) = match bytes {
        [5] => return Part::Short,
        [5, 0, ..] => (None, vec![Answer::Socks5]),
        [5, 2, ..] => (None, vec![Answer::Socks5Password, Answer::Socks5]),
        [5, 0xff, ..] => (Some("SOCKS5: no method of authentication is accepted".into()), Vec::new()),
        _ => return Part::Other,
    };
    Part::Whole(2, Reply { refusal, next, is_last: true })
}

/// Whether name and password are right (RFC 1929 §2).
pub(super) fn password(bytes: &[u8]) -> Part<Reply> {
    let refusal = match bytes {
        [1] => return Part::Short,
        [1, 0, ..] => None,
        [1, ..] => Some("SOCKS5: user name or password is wrong".into()),
        _ => return Part::Other,
    };
    Part::Whole(2, Reply { refusal, next: Vec::new(), is_last: true })
}

/// The reply to the request (RFC 1928 §6).
pub(super) fn reply_5(bytes: &[u8]) -> Part<Reply> {
    let code = match bytes {
        [5, code, ..] => *code,
        [5] => return Part::Short,
        _ => return Part::Other,
    };
    match address(bytes) {
        Part::Whole(len, _) => {
            let refusal = (code != 0).then(|| format!("SOCKS5: {}", failure(code)));
            Part::Whole(len, Reply { refusal, next: Vec::new(), is_last: true })
        }
        Part::Short => Part::Short,
        Part::Other => Part::Other,
    }
}

fn failure(code: u8) -> String {
    let known = FAILURES.get(usize::from(code).wrapping_sub(1));
    known.map_or_else(|| format!("code 0x{code:02x}"), |words| (*words).to_owned())
}

/// What the codes 1 to 8 say (RFC 1928 §6).
const FAILURES: [&str; 8] = [
    "general failure",
    "connection not allowed by ruleset",
    "network unreachable",
    "host unreachable",
    "connection refused",
    "TTL expired",
    "command not supported",
    "address type not supported",
];
/// The longest text of SOCKS4 that is waited for.
const TEXT_MAX: usize = 512;
