//! Commands: a name with its length, and what the name means (RFC 37, "commands"), and the subscriptions of ZMTP 3.0, which
//! are messages of one frame that begin with a 1 or a 0.

use crate::frame;
use crate::{Kind, Malformed, SocketType};

/// A command that came, over what stands for its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<B> {
    /// The peer's metadata.
    Ready {
        /// The type of its socket, where it is one of publish and subscribe.
        socket: Option<SocketType>,
        /// What it is called, where it says that.
        client: Option<B>,
    },
    /// Why the peer refuses.
    Error(B),
    /// A subscription to a prefix.
    Subscribe(B),
    /// The end of one.
    Cancel(B),
    /// To be answered with the same context.
    Ping {
        /// Up to 16 bytes.
        context: B,
    },
    /// The answer.
    Pong,
    /// Something else, which is ignored.
    Other,
}

impl<B> Command<B> {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Command::Ready { .. } => Kind::Ready,
            Command::Error(_) => Kind::Error,
            Command::Subscribe(_) => Kind::Subscribe,
            Command::Cancel(_) => Kind::Cancel,
            Command::Ping { .. } => Kind::Ping,
            Command::Pong => Kind::Pong,
            Command::Other => Kind::Command,
        }
    }

    /// The same over other bytes.
    pub fn map<C>(self, bytes: impl FnOnce(B) -> C) -> Command<C> {
        match self {
            Command::Ready { socket, client } => Command::Ready { socket, client: client.map(bytes) },
            Command::Error(reason) => Command::Error(bytes(reason)),
            Command::Subscribe(prefix) => Command::Subscribe(bytes(prefix)),
            Command::Cancel(prefix) => Command::Cancel(bytes(prefix)),
            Command::Ping { context } => Command::Ping { context: bytes(context) },
            Command::Pong => Command::Pong,
            Command::Other => Command::Other,
        }
    }
}

/// Reads the body of a command's frame.
///
/// # Errors
/// Fields that do not fill it.
pub fn decode(body: &[u8]) -> Result<Command<&[u8]>, Malformed> {
    let (name, data) = split(body)?;
    Ok(match name {
        b"READY" => Command::Ready { socket: socket_type(data)?, client: client_of(body) },
        b"ERROR" => match split(data)? {
            (reason, []) => Command::Error(reason),
            _ => return Err(Malformed::Command),
        },
        b"SUBSCRIBE" => Command::Subscribe(data),
        b"CANCEL" => Command::Cancel(data),
        // Behind the time-to-live, a hint to disconnect after that time (RFC 37), on which nothing here acts.
        b"PING" => match data.get(TTL_LEN..) {
            Some(context) if context.len() <= CONTEXT_MAX => Command::Ping { context },
            _ => return Err(Malformed::Command),
        },
        b"PONG" => match data.len() {
            ..=CONTEXT_MAX => Command::Pong,
            _ => return Err(Malformed::Command),
        },
        // Passed over: later minor versions may have more.
        _ => Command::Other,
    })
}

/// The subscription that a message of one frame is in ZMTP 3.0: whether it begins or ends, and the prefix.
pub fn subscription(body: &[u8]) -> Option<(bool, &[u8])> {
    match body {
        // %x01 and %x00 of RFC 23's grammar, and the rest is the prefix, which may be empty.
        [1, prefix @ ..] => Some((true, prefix)),
        [0, prefix @ ..] => Some((false, prefix)),
        _ => None,
    }
}

/// Appends READY. A client that says what it is called says it as libzmq does with `ZMQ_METADATA`, in a property of its own.
pub fn ready(socket: SocketType, client: Option<&str>, out: &mut Vec<u8>) {
    frame::command_header(ready_body(socket, client), out);
    name(b"READY", out);
    let named = client.map(|client| (CLIENT, client));
    for (property, value) in [(SOCKET_TYPE, socket.name())].into_iter().chain(named) {
        // A name has a length of one octet, a value one of four (RFC 37, "The NULL Security Mechanism").
        name(property, out);
        out.extend_from_slice(&(value.len() as u32).to_be_bytes());
        out.extend_from_slice(value.as_bytes());
    }
}

/// What the body of a READY says that its sender is called.
pub fn client_of(body: &[u8]) -> Option<&[u8]> {
    let (name, mut data) = split(body).ok()?;
    if name != b"READY" {
        return None;
    }
    while !data.is_empty() {
        let (name, value, rest) = property(data).ok()?;
        if name == CLIENT {
            return Some(value);
        }
        data = rest;
    }
    None
}

/// Appends ERROR. A reason has at most 255 bytes.
pub fn error(reason: &str, out: &mut Vec<u8>) {
    let reason = &reason.as_bytes()[..reason.len().min(255)];
    frame::command_header(6 + 1 + reason.len(), out);
    name(b"ERROR", out);
    name(reason, out);
}

/// Appends a subscription or its end, as the peer's minor version of 3 has it.
pub fn subscribe(begins: bool, prefix: &[u8], minor: u8, out: &mut Vec<u8>) {
    match minor {
        // In 3.0 a subscription is a message that begins with 1 or 0 (RFC 23); 3.1 has commands for it.
        0 => {
            frame::message_header(1 + prefix.len(), false, out);
            out.push(u8::from(begins));
        }
        _ => {
            let word: &[u8] = if begins { b"SUBSCRIBE" } else { b"CANCEL" };
            frame::command_header(1 + word.len() + prefix.len(), out);
            name(word, out);
        }
    }
    out.extend_from_slice(prefix);
}

/// Appends PING without a context. It says for how long the peer may hear nothing: for ever.
pub fn ping(out: &mut Vec<u8>) {
    frame::command_header(5 + TTL_LEN, out);
    name(b"PING", out);
    out.extend_from_slice(&[0; TTL_LEN]);
}

/// Appends PONG.
pub fn pong(context: &[u8], out: &mut Vec<u8>) {
    frame::command_header(5 + context.len(), out);
    name(b"PONG", out);
    out.extend_from_slice(context);
}

/// Bytes of READY of nobody in particular, with its frame.
pub const fn ready_len(socket: SocketType) -> usize {
    frame::len(ready_body(socket, None))
}

/// Bytes of a subscription with its frame, for a prefix of so many.
pub const fn subscribe_len(prefix: usize) -> usize {
    frame::len(10 + prefix)
}

/// Bytes of the end of a subscription with its frame, for a prefix of so many.
pub const fn cancel_len(prefix: usize) -> usize {
    frame::len(7 + prefix)
}

/// Bytes of PING without a context, with its frame.
pub const PING_LEN: usize = frame::len(5 + TTL_LEN);
/// Bytes of PONG without a context, with its frame.
pub const PONG_LEN: usize = frame::len(5);

const fn ready_body(socket: SocketType, client: Option<&str>) -> usize {
    let named = match client {
        Some(client) => 1 + CLIENT.len() + 4 + client.len(),
        None => 0,
    };
    6 + 1 + SOCKET_TYPE.len() + 4 + socket.name().len() + named
}

fn name(text: &[u8], out: &mut Vec<u8>) {
    out.push(text.len() as u8);
    out.extend_from_slice(text);
}

/// What stands behind a length of one byte, and what follows.
fn split(bytes: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let (length, rest) = bytes.split_first().ok_or(Malformed::Command)?;
    rest.split_at_checked(usize::from(*length)).ok_or(Malformed::Command)
}

/// The socket type among the properties of READY.
fn socket_type(mut data: &[u8]) -> Result<Option<SocketType>, Malformed> {
    let mut found = None;
    while !data.is_empty() {
        let (name, value, rest) = property(data)?;
        // Names of properties are the same in capitals (RFC 37, "metadata").
        if name.eq_ignore_ascii_case(SOCKET_TYPE) {
            // A type of another pattern is `None`, as one that is not said: neither suits a socket here.
            found = SocketType::from_name(value);
        }
        data = rest;
    }
    Ok(found)
}

type Property<'a> = (&'a [u8], &'a [u8], &'a [u8]);

/// A property's name and value, and what follows.
fn property(data: &[u8]) -> Result<Property<'_>, Malformed> {
    let (name, rest) = split(data)?;
    let (length, rest) = rest.split_at_checked(4).ok_or(Malformed::Command)?;
    let length = u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
    let (value, rest) = rest.split_at_checked(length).ok_or(Malformed::Command)?;
    Ok((name, value, rest))
}

const SOCKET_TYPE: &[u8] = b"Socket-Type";
/// Names of an application's own properties begin with `X-` (zmq_setsockopt, ZMQ_METADATA).
const CLIENT: &[u8] = b"X-Client";
/// A PING says for how long the peer may hear nothing.
const TTL_LEN: usize = 2;
const CONTEXT_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameHeader;

    fn body(bytes: &[u8]) -> &[u8] {
        let header = FrameHeader::peek(bytes).unwrap().unwrap();
        assert_eq!(bytes.len(), header.frame_len());
        &bytes[header.header_len..]
    }

    #[test]
    fn commands_are_read_back_and_as_long_as_is_said() {
        let mut out = Vec::new();
        ready(SocketType::Sub, Some("pub-3"), &mut out);
        let client = Some(&b"pub-3"[..]);
        assert_eq!(decode(body(&out)), Ok(Command::Ready { socket: Some(SocketType::Sub), client }));
        out.clear();
        ready(SocketType::Xpub, None, &mut out);
        assert_eq!(out.len(), ready_len(SocketType::Xpub));
        assert_eq!(decode(body(&out)), Ok(Command::Ready { socket: Some(SocketType::Xpub), client: None }));
        for prefix in [&b""[..], b"a/b", &[7; 300]] {
            for (begins, length) in [(true, subscribe_len(prefix.len())), (false, cancel_len(prefix.len()))] {
                out.clear();
                subscribe(begins, prefix, 1, &mut out);
                let expected = if begins { Command::Subscribe(prefix) } else { Command::Cancel(prefix) };
                assert_eq!((decode(body(&out)), out.len()), (Ok(expected), length));
                out.clear();
                subscribe(begins, prefix, 0, &mut out);
                assert_eq!(subscription(body(&out)), Some((begins, prefix)));
            }
        }
        out.clear();
        ping(&mut out);
        assert_eq!((decode(body(&out)), out.len()), (Ok(Command::Ping { context: &b""[..] }), PING_LEN));
        out.clear();
        pong(b"", &mut out);
        assert_eq!((decode(body(&out)), out.len()), (Ok(Command::Pong), PONG_LEN));
        out.clear();
        error("no", &mut out);
        assert_eq!(decode(body(&out)), Ok(Command::Error(&b"no"[..])));
    }

    #[test]
    fn fields_that_do_not_fill_a_command_are_refused_and_unknown_ones_ignored() {
        let long_context = [&b"\x04PING\0\0"[..], &[0; 17]].concat();
        for wrong in [
            &b""[..],
            b"\x05READ",
            b"\x05READY\x0bSocket-Type\0\0\0\x09PUB",
            b"\x05READY\x0bSocket-Type",
            b"\x05ERROR",
            b"\x05ERROR\x05no",
            b"\x04PING\0",
            &long_context,
        ] {
            assert_eq!(decode(wrong), Err(Malformed::Command), "{wrong:02x?}");
        }
        assert_eq!(decode(b"\x05HELLO..."), Ok(Command::Other));
        let other = b"\x05READY\x04Test\0\0\0\x01x\x0bsocket-type\0\0\0\x03SUB";
        assert_eq!(decode(other), Ok(Command::Ready { socket: Some(SocketType::Sub), client: None }));
        assert_eq!(decode(b"\x05READY"), Ok(Command::Ready { socket: None, client: None }));
        assert_eq!(subscription(b"\x02x"), None);
        assert_eq!(subscription(b""), None);
    }
}
