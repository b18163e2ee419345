//! What a connection carries, by the first bytes of its streams.

/// What a connection carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConnectionProtocol {
    /// MQTT over TCP.
    Mqtt,
    /// ZMTP, ZeroMQ's protocol, over TCP.
    ZeroMq,
    /// TLS: what is inside cannot be read.
    Tls,
    /// HTTP that asks for a WebSocket.
    WebSocket,
    /// Other HTTP.
    Http,
    /// Nothing was sent, or nothing of it captured.
    Unknown,
    /// Anything else.
    Other,
}

impl ConnectionProtocol {
    /// As reports write it.
    pub const fn name(self) -> &'static str {
        match self {
            ConnectionProtocol::Mqtt => "MQTT",
            ConnectionProtocol::ZeroMq => "ZeroMQ",
            ConnectionProtocol::Tls => "TLS",
            ConnectionProtocol::WebSocket => "WebSocket",
            ConnectionProtocol::Http => "HTTP",
            ConnectionProtocol::Unknown => "no data",
            ConnectionProtocol::Other => "other",
        }
    }
}

/// What bytes that begin like these are; [`ConnectionProtocol::Unknown`] when they are none of these.
pub(super) fn of(bytes: &[u8]) -> ConnectionProtocol {
    match bytes {
        // A record of TLS (RFC 8446 §5.1): change cipher spec, alert, handshake or data, at most 2^14 + 256 bytes.
        [0x14..=0x17, 3, 0..=4, length, ..] if *length <= 0x41 => ConnectionProtocol::Tls,
        // A greeting's signature (ZeroMQ RFC 37): eight bytes between are padding, the last one a number in older versions.
        [0xff, 0, 0, 0, 0, 0, 0, 0, _, 0x7f, ..] => ConnectionProtocol::ZeroMq,
        _ if METHODS.iter().any(|method| bytes.starts_with(method)) => {
            let text = bytes.to_ascii_lowercase();
            let upgrade = text.windows(WEBSOCKET.len()).any(|window| window == WEBSOCKET);
            if upgrade { ConnectionProtocol::WebSocket } else { ConnectionProtocol::Http }
        }
        _ => ConnectionProtocol::Unknown,
    }
}

const METHODS: [&[u8]; 8] =
    [b"GET ", b"POST ", b"PUT ", b"HEAD ", b"DELETE ", b"OPTIONS ", b"CONNECT ", b"HTTP/1."];
/// The value of the header `Upgrade` (RFC 6455 §4.1).
const WEBSOCKET: &[u8] = b"websocket";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_and_web_sockets_are_told_by_their_first_bytes() {
        assert_eq!(of(&[0x16, 3, 1, 2, 0, 1, 0]), ConnectionProtocol::Tls);
        assert_eq!(of(&[0x17, 3, 3, 0, 0x45, 9]), ConnectionProtocol::Tls);
        assert_eq!(of(b"GET /mqtt HTTP/1.1\r\nUpgrade: WebSocket\r\n"), ConnectionProtocol::WebSocket);
        assert_eq!(of(b"HTTP/1.1 200 OK\r\n"), ConnectionProtocol::Http);
        let signature = [&[0xff][..], &[0; 7], &[1, 0x7f, 3]].concat();
        assert_eq!(of(&signature), ConnectionProtocol::ZeroMq);
        assert_eq!(of(&[0x10, 12, 0, 4, b'M', b'Q', b'T', b'T', 4]), ConnectionProtocol::Unknown);
    }
}
