//! What layers add to a packet, in bytes.

use crate::frame;
use crate::script::End;
use crate::tls::{LIBWEBSOCKETS_WRITE_MAX, RECORD_MAX, Tls};

/// The layers of a connection, between TCP and the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layers {
    /// TLS, next to TCP.
    pub tls: Option<Tls>,
    /// WebSocket frames.
    pub websocket: bool,
}

/// What layers add to a packet that is written at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sealed {
    /// Records' headers, nonces and tags.
    pub tls: u32,
    /// The frame's header with its masking key.
    pub websocket: u32,
}

impl Sealed {
    /// All together.
    pub fn bytes(self) -> u32 {
        self.tls + self.websocket
    }
}

impl Layers {
    /// Whether there are none.
    pub fn is_bare(self) -> bool {
        self == Layers::default()
    }

    /// What they add to a packet from this end.
    pub fn seal(self, from: End, packet: usize) -> Sealed {
        // Only clients mask (RFC 6455 §5.1).
        let websocket = if self.websocket { frame::header_len(packet, from == End::Client) } else { 0 };
        Sealed { tls: self.records(from, packet + websocket), websocket: websocket as u32 }
    }

    /// Bytes of the stream that an end writes at once of a packet: a broker writes record by record, and over WebSocket part by
    /// part (Mosquitto's packets and OpenSSL, libwebsockets). `None`: the whole packet.
    pub fn write_max(self, from: End) -> Option<usize> {
        let in_parts = from == End::Server && (self.websocket || self.tls.is_some());
        let content = self.content_max(from);
        in_parts.then(|| content + self.records(from, content) as usize)
    }

    /// What TLS adds to bytes that an end says at once.
    fn records(self, from: End, bytes: usize) -> u32 {
        self.tls.map_or(0, |tls| tls.version.added(bytes, self.content_max(from)) as u32)
    }

    /// Bytes above TLS that are written at once, at most.
    fn content_max(self, from: End) -> usize {
        if self.websocket && from == End::Server { LIBWEBSOCKETS_WRITE_MAX } else { RECORD_MAX }
    }

    /// Bytes in which WebSocket says something of its own.
    pub(crate) fn say(self, from: End, bytes: usize) -> Sealed {
        Sealed { tls: self.records(from, bytes), websocket: bytes as u32 }
    }

    /// Bytes in which an end says that it will say no more, behind its last packet.
    pub fn farewell(self, from: End) -> Sealed {
        // A Close frame with a status code, and the same as its answer (RFC 6455 §5.5.1). Over TLS Mosquitto ends the connection
        // at the DISCONNECT, whose record libwebsockets reads without the one behind it.
        let closes = self.websocket && (from == End::Client || self.tls.is_none());
        let close = if closes { frame::header_len(CLOSE, from == End::Client) + CLOSE } else { 0 };
        let said = self.say(from, close);
        // Over WebSocket it is the server who ends the connection (RFC 6455 §7.1.1).
        let ends = from == End::Server || !self.websocket;
        let alert = self.tls.filter(|_| ends).map_or(0, |tls| tls.version.close_notify());
        Sealed { tls: said.tls + alert as u32, ..said }
    }
}

/// A status code.
const CLOSE: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::Version;

    #[test]
    fn what_is_added_is_what_an_encoder_adds() {
        let layers = Layers { websocket: true, ..Layers::default() };
        for (from, key) in [(End::Client, Some([1, 2, 3, 4])), (End::Server, None)] {
            for length in [0, 1, 125, 126, 65_535, 65_536] {
                let mut frame = Vec::new();
                frame::encode(frame::Opcode::Binary, key, &vec![0; length], &mut frame);
                assert_eq!(layers.seal(from, length).bytes() as usize, frame.len() - length);
                assert_eq!(Layers::default().seal(from, length), Sealed::default());
            }
        }
        assert_eq!([End::Client, End::Server].map(|from| layers.farewell(from).bytes()), [8, 4]);
        assert_eq!(Layers::default().farewell(End::Client), Sealed::default());
    }

    #[test]
    fn a_record_holds_16_kib_and_is_sealed_on_its_own() {
        for (version, record) in [(Version::V12, 29), (Version::V13, 22)] {
            let tls = Some(Tls { version, resumption: true, client_certificate: false });
            let (plain, both) = (Layers { tls, ..Layers::default() }, Layers { tls, websocket: true });
            for (length, records) in [(2, 1), (16_384, 1), (16_385, 2), (40_000, 3)] {
                assert_eq!(plain.seal(End::Server, length), Sealed { tls: records * record, websocket: 0 });
            }
            // The frame's header is sealed, too; and libwebsockets writes in parts.
            assert_eq!([4_112, 4_113].map(|length| both.seal(End::Server, length).tls), [record, 2 * record]);
            assert_eq!(both.write_max(End::Server), Some(4_116 + record as usize));
            assert_eq!(plain.write_max(End::Server), Some(16_384 + record as usize));
            assert_eq!([both, plain].map(|layers| layers.write_max(End::Client)), [None, None]);
            assert_eq!(both.seal(End::Server, 20_000), Sealed { tls: 5 * record, websocket: 4 });
            assert_eq!(both.seal(End::Client, 16_380), Sealed { tls: 2 * record, websocket: 8 });
            assert_eq!(plain.farewell(End::Client), Sealed { tls: record + 2, websocket: 0 });
            assert_eq!(both.farewell(End::Client), Sealed { tls: record, websocket: 8 });
            assert_eq!(both.farewell(End::Server), Sealed { tls: record + 2, websocket: 0 });
        }
    }
}
