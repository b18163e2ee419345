//! What must hold for any bytes: nothing panics, nothing is gathered that did not come, and what a proxy says back can be read.

use mqttlab_units::Instant;
use mqttlab_zmtp::command::{self, Command};
use mqttlab_zmtp::proxy::{Input, Output, Peer, Proxy, ProxyOptions};
use mqttlab_zmtp::stream::{Decoder, Raw};
use mqttlab_zmtp::{Malformed, SocketType};

/// A stream is the same packets, or is refused, however it is cut.
pub fn decoder(bytes: &[u8]) {
    let seen = |pieces: usize, whole: bool| {
        let (mut decoder, mut seen) = (Decoder::default(), Vec::new());
        for piece in bytes.chunks(pieces) {
            let outcome = decoder.feed(piece, whole, |raw| {
                seen.push(match raw {
                    Raw::Greeting(greeting) => format!("{greeting:?}"),
                    Raw::Command(command, bytes) => format!("{command:?} {bytes}"),
                    Raw::Message(message) => {
                        assert!(message.bytes.len() as u64 <= message.len);
                        assert!(message.payload.len() as u64 <= message.payload_bytes);
                        format!("{:?} {} {}", message.topic, message.payload_bytes, message.frames)
                    }
                });
                Ok::<(), Malformed>(())
            });
            if outcome.is_err() {
                break;
            }
        }
        seen
    };
    let expected = seen(bytes.len().max(1), true);
    for pieces in [1, 7, 100] {
        assert_eq!(seen(pieces, true), expected, "pieces of {pieces}");
    }
    assert_eq!(seen(7, false), expected, "large messages by their beginning");
}

/// A hostile peer at either socket of a proxy ends in a verdict, and others go on.
pub fn proxy(bytes: &[u8]) {
    let Some((which, bytes)) = bytes.split_first() else { return };
    let socket = if which & 1 == 0 { SocketType::Xsub } else { SocketType::Xpub };
    let mut proxy = Proxy::<Vec<u8>>::new(ProxyOptions { high_water_mark: u32::from(which >> 1) });
    let peer = Peer(0);
    let now = Instant::ZERO;
    proxy.handle(now, peer, Input::Accepted(socket));
    let mut decoder = Decoder::default();
    let outcome = decoder.feed(bytes, true, |raw| {
        match raw {
            Raw::Greeting(greeting) => proxy.handle(now, peer, Input::Greeting(greeting)),
            Raw::Command(command, _) => proxy.handle(now, peer, Input::Command(command)),
            Raw::Message(message) => match command::subscription(message.topic) {
                Some((true, prefix)) => proxy.handle(now, peer, Input::Command(Command::Subscribe(prefix))),
                _ => proxy.message(peer, message.topic, message.bytes.to_vec()),
            },
        }
        Ok::<(), Malformed>(())
    });
    if let Err(malformed) = outcome {
        proxy.refuse(peer, malformed);
    }
    let mut closed = false;
    while let Some(output) = proxy.poll() {
        assert!(!closed, "nothing is said behind the end: {output:?}");
        closed |= matches!(output, Output::Close(_));
    }
    let counters = proxy.counters();
    assert_eq!(counters.refused > 0, counters.refused == 1, "a connection is refused once");
}
