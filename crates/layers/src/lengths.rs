//! What layers add to a packet, in bytes.

use crate::frame;
use crate::script::End;

/// The layers of a connection, between TCP and the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layers {
    /// WebSocket frames.
    pub websocket: bool,
}

/// What layers add to a packet that is written at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sealed {
    /// The frame's header with its masking key.
    pub websocket: u32,
}

impl Sealed {
    /// All together.
    pub fn bytes(self) -> u32 {
        self.websocket
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
        Sealed { websocket: websocket as u32 }
    }

    /// Bytes in which an end says that it will say no more, behind its last packet.
    pub fn farewell(self, from: End) -> usize {
        // A Close frame with a status code, and the same as its answer (RFC 6455 §5.5.1).
        if self.websocket { frame::header_len(CLOSE, from == End::Client) + CLOSE } else { 0 }
    }
}

/// A status code.
const CLOSE: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_what_an_encoder_adds() {
        let layers = Layers { websocket: true };
        for (from, key) in [(End::Client, Some([1, 2, 3, 4])), (End::Server, None)] {
            for length in [0, 1, 125, 126, 65_535, 65_536] {
                let mut frame = Vec::new();
                frame::encode(frame::Opcode::Binary, key, &vec![0; length], &mut frame);
                assert_eq!(layers.seal(from, length).bytes() as usize, frame.len() - length);
                assert_eq!(Layers::default().seal(from, length), Sealed::default());
            }
        }
        assert_eq!([End::Client, End::Server].map(|from| layers.farewell(from)), [8, 4]);
        assert_eq!(Layers::default().farewell(End::Client), 0);
    }
}
