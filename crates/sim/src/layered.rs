//! What lies between a simulated TCP connection and its packets, as lengths: how far it is open, what it adds.
//!
//! What it does not model: refusals, pings, frames of several packets.

use mqttlab_layers::{End, Layer, Layers, Script, Sealed, Step};
use mqttlab_units::{Duration, Instant};

use crate::ids::Side;

/// The layers of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Layered {
    layers: Layers,
    script: Script,
    /// When the part below that is being opened was open; of TCP when it began to be opened.
    since: Instant,
    /// What is being opened, once TCP is open.
    waits_for: Option<Layer>,
}

impl Layered {
    /// Of a connection to the resource `path` of `host` that is opened now.
    pub(crate) fn new(layers: Layers, resource: (&str, &str), now: Instant) -> Option<Box<Layered>> {
        let script = Script::new(layers, resource);
        (!layers.is_bare()).then(|| Box::new(Layered { layers, script, since: now, waits_for: None }))
    }

    /// What it waits for before packets can be sent; `None`: for TCP.
    pub(crate) fn waits_for(&self) -> Option<Layer> {
        self.waits_for
    }

    /// What is added to a packet of a length.
    pub(crate) fn seal(&self, from: Side, length: usize) -> Sealed {
        self.layers.seal(end(from), length)
    }

    /// Bytes in which an end says that it will say no more.
    pub(crate) fn farewell(&self, from: Side) -> usize {
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
        let (layer, next) = self.script.opened(step)?;
        Some((layer, self.enter(now, next), next.is_none()))
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
