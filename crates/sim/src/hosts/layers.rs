//! What lies between a simulated TCP connection and its packets, as lengths: how far it is open, what it adds.
//!
//! What it does not model: refusals, pings, frames of several packets, and how long processors work on keys.

use mqttlab_framing::tls::{Handshake, Version};
use mqttlab_framing::{End, Layer, Layers, Script, Sealed, Step};
use mqttlab_units::{Duration, Instant};

use crate::ids::Side;

/// The layers of a connection.
#[derive(Clone, Debug)]
pub(crate) struct SimLayers {
    layers: Layers,
    handshake: Handshake,
    script: Script,
    /// When the part below that is being opened was open; of TCP when it began to be opened.
    since: Instant,
    /// What is being opened, once TCP is open.
    waits_for: Option<Layer>,
    /// What the client has left of its server's tickets.
    tickets: Tickets,
}

/// What a client can resume sessions of TLS with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tickets(u8);

impl Tickets {
    /// How the next connection is opened, and what is left then: a ticket of TLS 1.3 is used once (RFC 8446 §C.4), as rustls
    /// does.
    fn used(self, layers: Layers) -> (Handshake, Tickets) {
        match (layers.tls, self.0) {
            (None, _) | (_, 0) => (Handshake::Full, self),
            (Some(tls), count) if tls.version == Version::V13 => (Handshake::Resumed, Tickets(count - 1)),
            _ => (Handshake::Resumed, self),
        }
    }
}

impl SimLayers {
    /// Of a connection to the resource `path` of `host` that is opened now, by a client with these tickets.
    pub(crate) fn new(
        layers: Layers,
        tickets: Tickets,
        resource: (&str, &str),
        now: Instant,
    ) -> Option<Box<SimLayers>> {
        let (handshake, tickets) = tickets.used(layers);
        let script = Script::new(layers, handshake, resource);
        let layered = SimLayers { layers, handshake, script, since: now, waits_for: None, tickets };
        (!layers.is_bare()).then(|| Box::new(layered))
    }

    /// Whether WebSocket is one of them.
    pub(crate) fn has_websocket(&self) -> bool {
        self.layers.websocket
    }

    /// What the client has left of tickets.
    pub(crate) fn tickets(&self) -> Tickets {
        self.tickets
    }

    /// What it waits for before packets can be sent; `None`: for TCP.
    pub(crate) fn waits_for(&self) -> Option<Layer> {
        self.waits_for
    }

    /// What is added to a packet of a length.
    pub(crate) fn seal(&self, from: Side, length: usize) -> Sealed {
        self.layers.seal(end(from), length)
    }

    /// Whether TLS is one of them.
    pub(crate) fn has_tls(&self) -> bool {
        self.layers.tls.is_some()
    }

    /// Bytes of a packet that an end writes at once; `None`: all of it.
    pub(crate) fn write_max(&self, from: Side) -> Option<u64> {
        self.layers.write_max(end(from)).map(|bytes| bytes as u64)
    }

    /// Bytes in which an end says that it will say no more.
    pub(crate) fn farewell(&self, from: Side) -> Sealed {
        self.layers.farewell(end(from))
    }

    /// What an end says when it has said or heard a step; before the first one, at the beginning.
    pub(crate) fn next(&self, from: Side, done: Option<u8>) -> impl Iterator<Item = (u8, Step)> {
        self.script.next(end(from), done)
    }

    /// TCP is open at this time; says how long it took.
    pub(crate) fn begin(&mut self, now: Instant) -> Duration {
        self.enter(now, self.script.first())
    }

    /// The client has said or heard a step: the layer that is open by that, if one is, how long it took, and whether it is
    /// the last one.
    pub(crate) fn opened(&mut self, step: u8, now: Instant) -> Option<(Layer, Duration, bool)> {
        if self.script.has_ticket(step) {
            self.tickets = Tickets(match self.layers.tls.map(|tls| tls.version) {
                Some(Version::V13) => self.tickets.0.saturating_add(1).min(TICKETS_MAX),
                _ => 1,
            });
        }
        let (layer, next) = self.script.opened(step)?;
        Some((layer, self.enter(now, next), next.is_none()))
    }

    /// A layer that is open, as an event tells it.
    pub(crate) fn in_words(&self, layer: Layer) -> String {
        match (layer, self.layers.tls) {
            (Layer::Tls, Some(tls)) => {
                let (version, handshake) = (tls.version.name(), self.handshake.name());
                format!("{} {version} {handshake} {}", layer.name(), tls.version.suite())
            }
            _ => layer.name().to_owned(),
        }
    }

    fn enter(&mut self, now: Instant, next: Option<Layer>) -> Duration {
        self.waits_for = next;
        now.since(std::mem::replace(&mut self.since, now))
    }
}

fn end(side: Side) -> End {
    match side {
        Side::Client => End::Client,
        Side::Server => End::Server,
    }
}

/// rustls keeps so many of a server.
const TICKETS_MAX: u8 = 8;

#[cfg(test)]
mod tests {
    use mqttlab_framing::tls::Tls;

    use super::*;

    fn layers(version: Version) -> Layers {
        Layers {
            tls: Some(Tls { version, resumption: true, client_certificate: false }),
            ..Layers::default()
        }
    }

    /// How connections of a client are opened one after the other, each of which comes as far as these steps of a handshake.
    fn handshakes(version: Version, ends: &[u8]) -> Vec<Handshake> {
        let mut tickets = Tickets::default();
        let open = |end: &u8| {
            let layered = SimLayers::new(layers(version), tickets, ("", "/"), Instant::ZERO);
            let mut layered = layered.expect("there is TLS");
            for step in 0..*end {
                layered.opened(step, Instant::ZERO);
            }
            tickets = layered.tickets();
            layered.handshake
        };
        ends.iter().map(open).collect()
    }

    #[test]
    fn a_ticket_of_tls_1_3_is_used_once_and_a_session_of_1_2_again_and_again() {
        use Handshake::{Full, Resumed};
        // Broken off before the tickets came; then with two of them, and with the one that a resumed session brings.
        assert_eq!(
            handshakes(Version::V13, &[3, 5, 0, 4, 0, 0, 5]),
            [Full, Full, Resumed, Resumed, Resumed, Full, Full]
        );
        assert_eq!(handshakes(Version::V12, &[3, 4, 0, 3, 0]), [Full, Full, Resumed, Resumed, Resumed]);
    }
}
