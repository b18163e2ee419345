//! How a connection's layers are opened: who says how much, and after what.

use crate::Layers;
use crate::upgrade;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum End {
    Client,
    Server,
}

/// A layer above TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Layer {
    WebSocket,
}

impl Layer {
    /// As a recording calls it.
    pub fn name(self) -> &'static str {
        match self {
            Layer::WebSocket => "websocket",
        }
    }
}

/// Something that an end says in one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Who says it.
    pub from: End,
    /// The step that it must have said or heard before; `None`: it begins.
    pub after: Option<u8>,
    /// Its length.
    pub bytes: u32,
    /// The layer that is open at the client's end when the client has said or heard it.
    pub opens: Option<Layer>,
}

/// The opening of a connection's layers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    steps: Vec<Step>,
}

impl Script {
    /// Of these layers, to the resource `path` of `host`.
    pub fn new(layers: Layers, (host, path): (&str, &str)) -> Script {
        let mut script = Script::default();
        if layers.websocket {
            let asks = script.add(End::Client, None, upgrade::request_len(host, path) as u32, None);
            script.add(End::Server, Some(asks), SWITCHING_PROTOCOLS, Some(Layer::WebSocket));
        }
        script
    }

    fn add(&mut self, from: End, after: Option<u8>, bytes: u32, opens: Option<Layer>) -> u8 {
        self.steps.push(Step { from, after, bytes, opens });
        self.steps.len() as u8 - 1
    }

    /// What an end says when it has said or heard a step; before the first one, at the beginning.
    pub fn next(&self, end: End, done: Option<u8>) -> impl Iterator<Item = (u8, Step)> {
        let numbered = (0..).zip(self.steps.iter().copied());
        numbered.filter(move |(_, step)| step.from == end && step.after == done)
    }

    /// The layer that is opened first.
    pub fn first(&self) -> Option<Layer> {
        self.steps.iter().find_map(|step| step.opens)
    }

    /// The layer that a step opens at the client's end, and the one that is opened next.
    pub fn opened(&self, step: u8) -> Option<(Layer, Option<Layer>)> {
        let mut later = self.steps.iter().skip(step.into());
        let layer = later.next()?.opens?;
        Some((layer, later.find_map(|step| step.opens)))
    }
}

/// As libwebsockets, which is in Mosquitto, answers: status line, Upgrade, Connection, Accept, Protocol.
const SWITCHING_PROTOCOLS: u32 = 159;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upgrade_is_asked_for_and_answered() {
        let script = Script::new(Layers { websocket: true }, ("10.77.0.1:8083", "/mqtt"));
        let asked: Vec<_> = script.next(End::Client, None).collect();
        assert_eq!((asked.len(), asked[0].0, script.first()), (1, 0, Some(Layer::WebSocket)));
        assert_eq!(script.next(End::Server, None).count(), 0);
        assert_eq!(script.opened(0), None);
        let answered: Vec<_> = script.next(End::Server, Some(0)).collect();
        assert_eq!((answered[0].0, script.opened(1)), (1, Some((Layer::WebSocket, None))));
        assert_eq!(Script::new(Layers::default(), ("a", "/")), Script::default());
    }
}
