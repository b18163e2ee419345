//! How a connection's layers are opened: who says how much, and after what.

use crate::tls::{Handshake, Listener, Tls, Version};
use crate::upgrade;
use crate::{Layers, Sealed};

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
    Tls,
    WebSocket,
}

impl Layer {
    /// As a recording calls it.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Tls => "tls",
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
    /// Its length, by layer.
    pub length: Sealed,
    /// The layer that is open at the client's end when the client has said or heard it.
    pub opens: Option<Layer>,
    /// Whether the client can resume a session once more when it has heard it.
    pub has_ticket: bool,
}

/// The opening of a connection's layers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    steps: Vec<Step>,
}

impl Script {
    /// Of these layers, to the resource `path` of `host`, by this handshake where TLS is one of them.
    pub fn new(layers: Layers, handshake: Handshake, (host, path): (&str, &str)) -> Script {
        let mut script = Script::default();
        let secured = layers.tls.map(|tls| {
            let listener = if layers.websocket { Listener::Libwebsockets } else { Listener::Mosquitto };
            script.add_tls(tls, handshake, listener)
        });
        if layers.websocket {
            let request = layers.say(End::Client, upgrade::request_len(host, path));
            // TLS is open before WebSocket asks for anything (RFC 6455 §4.1).
            let asks = script.add(End::Client, secured, request, None);
            let answer = layers.say(End::Server, SWITCHING_PROTOCOLS);
            script.add(End::Server, Some(asks), answer, Some(Layer::WebSocket));
        }
        script
    }

    /// Adds a handshake of TLS, and says by which step it is over for the client.
    fn add_tls(&mut self, tls: Tls, handshake: Handshake, listener: Listener) -> u8 {
        let flights = tls.flights(handshake, listener);
        let length = |bytes: usize| Sealed { tls: bytes as u32, ..Sealed::default() };
        let hello = self.add(End::Client, None, length(flights.hello), None);
        let answer = self.add(End::Server, Some(hello), length(flights.answer), None);
        // Whoever is the last to say something can begin with what comes next.
        let is_last_to_speak = tls.version == Version::V13 || handshake == Handshake::Resumed;
        let opens = is_last_to_speak.then_some(Layer::Tls);
        let finish = self.add(End::Client, Some(answer), length(flights.finish), opens);
        let mut last = finish;
        for bytes in flights.last {
            let opens = if is_last_to_speak { None } else { Some(Layer::Tls) };
            last = self.add(End::Server, Some(finish), length(bytes), opens);
            self.steps[usize::from(last)].has_ticket = tls.resumption;
        }
        if is_last_to_speak { finish } else { last }
    }

    fn add(&mut self, from: End, after: Option<u8>, length: Sealed, opens: Option<Layer>) -> u8 {
        self.steps.push(Step { from, after, length, opens, has_ticket: false });
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

    /// Whether the client can resume a session once more when it has heard a step.
    pub fn has_ticket(&self, step: u8) -> bool {
        self.steps.get(usize::from(step)).is_some_and(|step| step.has_ticket)
    }

    /// The layer that a step opens at the client's end, and the one that is opened next.
    pub fn opened(&self, step: u8) -> Option<(Layer, Option<Layer>)> {
        let mut later = self.steps.iter().skip(step.into());
        let layer = later.next()?.opens?;
        Some((layer, later.find_map(|step| step.opens)))
    }
}

/// As libwebsockets, which is in Mosquitto, answers: status line, Upgrade, Connection, Accept, Protocol.
const SWITCHING_PROTOCOLS: usize = 159;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upgrade_is_asked_for_and_answered() {
        let script = Script::new(WEBSOCKET, Handshake::Full, ("10.77.0.1:8083", "/mqtt"));
        let asked: Vec<_> = script.next(End::Client, None).collect();
        assert_eq!((asked.len(), asked[0].0, script.first()), (1, 0, Some(Layer::WebSocket)));
        assert_eq!(script.next(End::Server, None).count(), 0);
        assert_eq!(script.opened(0), None);
        let answered: Vec<_> = script.next(End::Server, Some(0)).collect();
        assert_eq!((answered[0].0, script.opened(1)), (1, Some((Layer::WebSocket, None))));
        assert_eq!(Script::new(Layers::default(), Handshake::Full, ("a", "/")), Script::default());
    }

    /// Who speaks, and what is open by that, as long as the client waits for something.
    fn conversation(layers: Layers, handshake: Handshake) -> Vec<(End, Option<Layer>)> {
        let script = Script::new(layers, handshake, ("10.77.0.1:8084", "/mqtt"));
        script.steps.iter().map(|step| (step.from, step.opens)).collect()
    }

    #[test]
    fn tls_1_3_opens_in_one_round_trip_and_1_2_in_two_or_resumed_in_one() {
        use End::{Client, Server};
        let tls = |version| Layers {
            tls: Some(Tls { version, resumption: true, client_certificate: false }),
            ..WEBSOCKET
        };
        let plain = |version| Layers { websocket: false, ..tls(version) };
        let begins = [(Client, None), (Server, None)];
        let opens = (Client, Some(Layer::Tls));
        let upgrade = [(Client, None), (Server, Some(Layer::WebSocket))];
        let full_13 = conversation(plain(Version::V13), Handshake::Full);
        assert_eq!(full_13, [&begins[..], &[opens, (Server, None), (Server, None)]].concat(), "two tickets");
        let resumed_13 = conversation(tls(Version::V13), Handshake::Resumed);
        assert_eq!(resumed_13, [&begins[..], &[opens, (Server, None)], &upgrade].concat(), "one ticket");
        let full_12 = conversation(tls(Version::V12), Handshake::Full);
        assert_eq!(full_12, [&begins[..], &[(Client, None), (Server, Some(Layer::Tls))], &upgrade].concat());
        let resumed_12 = conversation(plain(Version::V12), Handshake::Resumed);
        assert_eq!(resumed_12, [&begins[..], &[opens]].concat());
    }

    #[test]
    fn an_upgrade_follows_what_ended_the_handshake() {
        let tls = Some(Tls { version: Version::V12, resumption: true, client_certificate: true });
        let script = Script::new(Layers { tls, websocket: true }, Handshake::Full, ("a", "/"));
        assert_eq!(script.opened(3), Some((Layer::Tls, Some(Layer::WebSocket))));
        assert_eq!(script.next(End::Client, Some(3)).map(|(number, _)| number).collect::<Vec<_>>(), [4]);
        assert!(script.has_ticket(3) && !script.has_ticket(4));
    }

    const WEBSOCKET: Layers = Layers { tls: None, websocket: true };
}
