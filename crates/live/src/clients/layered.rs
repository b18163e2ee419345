//! What lies between a client's socket and its packets, where something does: TLS, WebSocket (RFC 6455), or both.
//!
//! ```text
//!   packet ──► frame ──► record ──► outbox ──► socket ──► record ──► frame ──► packets
//!                opening: TCP ──► handshake of TLS ──► upgrade ──► the client is told that it is open
//! ```
//!
//! Each packet is a binary frame of its own, as Mosquitto and Paho write them; what comes may be cut anywhere. Masking keys are
//! drawn from the run's seed: they protect intermediaries that an emulated network does not have.

use mqttlab_client::{Loss, Rows, Transport, Who};
use mqttlab_layers::Layer;
use mqttlab_layers::frame::{self, Came, Decoder, Opcode};
use mqttlab_layers::upgrade::{self, Answer};
use mqttlab_recording::EventKind;
use mqttlab_units::{Dice, Duration, Instant};

use super::Client;
use super::connection::ClientConnection;
use super::outbox::Outbox;
use super::reading::Reading;
use super::secured::Secured;
use super::shared::Shared;
use super::turn::Turn;
use crate::tls;

/// The layers of one client's connections.
pub(super) struct Layered {
    stage: Stage,
    /// When the stage began.
    since: Instant,
    secured: Option<Secured>,
    websocket: Option<WebSocket>,
}

/// WebSocket of one client.
struct WebSocket {
    /// The server's address and port, and the resource there.
    resource: (String, String),
    /// For masking keys and nonces.
    dice: Dice,
    nonce: [u8; 16],
    answer: Answer,
    frames: Decoder,
    /// What a frame is made in before it is sealed.
    frame: Vec<u8>,
}

/// How far a connection is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Connecting,
    Securing,
    Upgrading,
    Open,
}

impl Layered {
    /// Of a client's connections, if they have any.
    pub(super) fn of(shared: &Shared, who: Who) -> Option<Layered> {
        let (plan, group) = (&shared.plan, shared.group(who.group));
        let server = plan.endpoint_of(group).socket_address();
        let config = shared.sockets.tls(who.group.0 as usize).zip(group.tls());
        let secured = config.map(|(config, tls)| {
            let name = tls::server_name(plan, group).expect("names were tried before the run");
            Secured::new(tls::config_of_client(&config, tls), name)
        });
        let dice = || plan.seed.derive("websocket").index(u64::from(who.number.0)).dice();
        let asked = group.tcp().and_then(|tcp| tcp.websocket.as_ref());
        let websocket = asked.map(|asked| WebSocket::new((server.to_string(), asked.path.clone()), dice()));
        (!group.layers().is_bare()).then(|| Layered {
            stage: Stage::Connecting,
            since: Instant::ZERO,
            secured,
            websocket,
        })
    }

    /// A new connection is being opened.
    pub(super) fn begin(&mut self, now: Instant) {
        (self.stage, self.since) = (Stage::Connecting, now);
        self.end();
    }

    /// There is no connection any more.
    pub(super) fn end(&mut self) {
        self.secured.iter_mut().for_each(Secured::clear);
        self.websocket.iter_mut().for_each(WebSocket::clear);
    }

    /// Whether TCP is open, and not all on it.
    pub(super) fn is_opening(&self) -> bool {
        matches!(self.stage, Stage::Securing | Stage::Upgrading)
    }

    /// What it waits for before packets can be sent; `None`: for TCP.
    pub(super) fn waits_for(&self) -> Option<Layer> {
        match self.stage {
            Stage::Connecting => None,
            Stage::Securing => Some(Layer::Tls),
            Stage::Upgrading | Stage::Open => Some(Layer::WebSocket),
        }
    }

    /// Appends a packet as it goes over the wire.
    pub(super) fn seal(&mut self, packet: &[u8], outbox: &mut Outbox) {
        match &mut self.websocket {
            None => put(&mut self.secured, packet, outbox),
            Some(_) => self.say(Opcode::Binary, packet, outbox),
        }
    }

    /// Appends what says that nothing more will be said: of WebSocket with the status "normal closure", which the server answers
    /// before it ends the connection (RFC 6455 §7.1.1), of TLS alone its alert (RFC 8446 §6.1).
    pub(super) fn say_farewell(&mut self, outbox: &mut Outbox) {
        match (&self.websocket, &mut self.secured) {
            (Some(_), _) => self.say(Opcode::Close, &NORMAL_CLOSURE.to_be_bytes(), outbox),
            (None, Some(secured)) => secured.say_farewell(outbox),
            (None, None) => {}
        }
    }

    /// Appends a frame, where there are frames.
    fn say(&mut self, opcode: Opcode, payload: &[u8], outbox: &mut Outbox) {
        let Some(WebSocket { dice, frame, .. }) = &mut self.websocket else { return };
        let key = (dice.bits() as u32).to_ne_bytes();
        frame.clear();
        frame::encode(opcode, Some(key), payload, frame);
        put(&mut self.secured, frame, outbox);
    }

    /// The stage is over at this time; says how long it took.
    fn enter(&mut self, stage: Stage, now: Instant) -> Duration {
        self.stage = stage;
        now.since(std::mem::replace(&mut self.since, now))
    }

    /// The layer below is open: begins with the next one, and says how long that one took. At the end nothing begins.
    fn open_next(&mut self, now: Instant, outbox: &mut Outbox) -> Result<Duration, Loss> {
        let took = match (self.stage, &mut self.secured, &mut self.websocket) {
            (Stage::Connecting, Some(secured), _) => {
                secured.begin(outbox)?;
                self.enter(Stage::Securing, now)
            }
            (Stage::Connecting | Stage::Securing, secured, Some(websocket)) => {
                websocket.ask();
                put(secured, &websocket.frame, outbox);
                self.enter(Stage::Upgrading, now)
            }
            _ => self.enter(Stage::Open, now),
        };
        Ok(took)
    }
}

impl WebSocket {
    fn new(resource: (String, String), dice: Dice) -> WebSocket {
        let (answer, frames, frame) = (Answer::default(), Decoder::default(), Vec::new());
        WebSocket { resource, dice, nonce: [0; 16], answer, frames, frame }
    }

    fn clear(&mut self) {
        self.answer = Answer::default();
        self.frames.clear();
    }

    /// Makes a request for an upgrade.
    fn ask(&mut self) {
        self.nonce = (u128::from(self.dice.bits()) << 64 | u128::from(self.dice.bits())).to_be_bytes();
        self.frame.clear();
        upgrade::request(&self.resource.0, &self.resource.1, self.nonce, &mut self.frame);
    }
}

/// Appends bytes, sealed where there is TLS.
fn put(secured: &mut Option<Secured>, bytes: &[u8], outbox: &mut Outbox) {
    match secured {
        Some(secured) => secured.seal(bytes, outbox),
        None => outbox.bytes().extend_from_slice(bytes),
    }
}

impl Turn<'_> {
    /// TCP is open, and the next layer is opened. Again, while that goes on: writes what the socket did not take.
    pub(super) fn open_layers(&mut self, client: &mut Client) {
        let is_first = client.connection().layered.as_ref().is_some_and(|layered| !layered.is_opening());
        let begun = if is_first { self.pass(client, "tcp") } else { Ok(()) };
        if let Err(loss) = begun.and_then(|()| self.write(client.connection_mut())) {
            client.lose(self, &loss);
        }
    }

    /// A part of a client's connection is open: notes how long it took, and begins with the next one or tells the client.
    fn pass(&mut self, client: &mut Client, part: &str) -> Result<(), Loss> {
        let ClientConnection { layered: Some(layered), outbox, .. } = client.connection_mut() else {
            return Ok(());
        };
        let took = layered.open_next(self.now, outbox)?;
        let is_open = layered.stage == Stage::Open;
        self.event(EventKind::LayerOpen, client.who().number, Some(took), part);
        self.write(client.connection_mut())?;
        if is_open {
            client.opened(self);
        }
        Ok(())
    }
}

impl Reading<'_, '_> {
    /// Takes what was read through the layers of its connection.
    pub(super) fn unseal(&mut self, client: &mut Client, bytes: &[u8]) -> Result<(), Loss> {
        if client.connection().layered.as_ref().is_none_or(|layered| layered.secured.is_none()) {
            return self.unframe(client, bytes);
        }
        let mut plain = std::mem::take(&mut self.turn.room.plain);
        let outcome = self.decrypt(client, bytes, &mut plain).and_then(|()| self.unframe(client, &plain));
        plain.clear();
        self.turn.room.plain = plain;
        outcome
    }

    /// Opens records. What TLS has to say itself is written at once.
    fn decrypt(&mut self, client: &mut Client, bytes: &[u8], plain: &mut Vec<u8>) -> Result<(), Loss> {
        let ClientConnection { layered: Some(layered), outbox, .. } = client.connection_mut() else {
            return Ok(());
        };
        let Layered { secured: Some(secured), stage, .. } = &mut **layered else { return Ok(()) };
        let opened = secured.open(bytes, plain, outbox);
        let is_over = *stage == Stage::Securing && opened.is_ok() && secured.is_open();
        let part = is_over.then(|| format!("{} {}", Layer::Tls.name(), secured.in_words()));
        // What ends a handshake is not held back for what comes next, nor an alert for the connection's end.
        self.turn.write(client.connection_mut())?;
        opened?;
        part.map_or(Ok(()), |part| self.turn.pass(client, &part))
    }

    /// Takes frames, or packets where there are none.
    fn unframe(&mut self, client: &mut Client, bytes: &[u8]) -> Result<(), Loss> {
        let rest = self.take_answer(client, bytes)?;
        let Some(layered) = &mut client.connection_mut().layered else { return Ok(()) };
        let Some(websocket) = &mut layered.websocket else { return self.take_packets(client, bytes) };
        let mut frames = std::mem::take(&mut websocket.frames);
        frames.feed(&bytes[rest..], |came| self.take_frame(client, came))?;
        if let Some(Layered { websocket: Some(websocket), .. }) =
            client.connection_mut().layered.as_deref_mut()
        {
            websocket.frames = frames;
        }
        Ok(())
    }

    /// Takes what belongs to the answer to the upgrade, and says how many bytes did.
    fn take_answer(&mut self, client: &mut Client, bytes: &[u8]) -> Result<usize, Loss> {
        let layered = client.connection_mut().layered.as_deref_mut();
        let Some(Layered { stage: Stage::Upgrading, websocket: Some(websocket), .. }) = layered else {
            return Ok(0);
        };
        let nonce = websocket.nonce;
        let taken = websocket.answer.feed(bytes, nonce).map_err(|refusal| Loss::Refused {
            how: format!("WebSocket upgrade: {refusal}").into(),
            for_good: refusal.is_for_good(),
        })?;
        let Some(taken) = taken else { return Ok(bytes.len()) };
        self.turn.pass(client, Layer::WebSocket.name())?;
        Ok(taken)
    }

    fn take_frame(&mut self, client: &mut Client, came: Came<'_>) -> Result<(), Loss> {
        match came {
            Came::Data(bytes) => return self.take_packets(client, bytes),
            Came::Pong => return Ok(()),
            Came::Ping(_) | Came::Close(_) => {}
        }
        let ClientConnection { layered: Some(layered), outbox, .. } = client.connection_mut() else {
            return Ok(());
        };
        let Came::Close(code) = came else {
            if let Came::Ping(payload) = came {
                layered.say(Opcode::Pong, payload, outbox);
            }
            return Ok(());
        };
        // It is answered before the connection ends (§5.5.1).
        layered.say_farewell(outbox);
        self.turn.write(client.connection_mut())?;
        let code = code.map_or_else(String::new, |code| format!(", code {code}"));
        Err(Loss::broken(format!("the broker closed the WebSocket{code}")))
    }
}

const NORMAL_CLOSURE: u16 = 1000;
