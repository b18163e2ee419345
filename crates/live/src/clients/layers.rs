//! What lies between a client's socket and its packets, where something does: TLS, WebSocket (RFC 6455), or both.
//!
//! ```text
//!   packet ──► frame ──► record ──► outbox ──► socket ──► record ──► frame ──► packets
//!                opening: TCP ──► handshake of TLS ──► upgrade ──► the client is told that it is open
//! ```
//!
//! Each packet is a binary frame of its own, as Mosquitto and Paho write them; what comes may be cut anywhere. Masking keys are
//! drawn from the run's seed: they protect intermediaries that an emulated network does not have.

use mqttlab_client::{Loss, Who};
use mqttlab_framing::Layer;
use mqttlab_framing::frame::{self, Decoder, Opcode};
use mqttlab_framing::upgrade::{self, Answer};
use mqttlab_units::{Dice, Duration, Instant};

use super::context::FleetContext;
use super::outbox::SocketOutbox;
use super::tls_stream::TlsStream;
use crate::tls;

/// The layers of one client's connections.
pub(super) struct ClientLayers {
    pub(super) stage: OpeningStage,
    /// When the stage began.
    since: Instant,
    pub(super) secured: Option<TlsStream>,
    pub(super) websocket: Option<WebSocket>,
}

/// WebSocket of one client.
pub(super) struct WebSocket {
    /// The server's address and port, and the resource there.
    resource: (String, String),
    /// For masking keys and nonces.
    dice: Dice,
    pub(super) nonce: [u8; 16],
    pub(super) answer: Answer,
    pub(super) frames: Decoder,
    /// What a frame is made in before it is sealed.
    frame: Vec<u8>,
}

/// How far a connection is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpeningStage {
    Connecting,
    Securing,
    Upgrading,
    Open,
}

impl ClientLayers {
    /// Of a client's connections, if they have any.
    pub(super) fn of(shared: &FleetContext, who: Who) -> Option<ClientLayers> {
        let (plan, group) = (&shared.plan, shared.group(who.group));
        let server = plan.endpoint_of(group).socket_address();
        let config = shared.sockets.tls(who.group.0 as usize).zip(group.tls());
        let secured = config.map(|(config, tls)| {
            let name = tls::server_name(plan, group).expect("names were tried before the run");
            TlsStream::new(tls::config_of_client(&config, tls), name)
        });
        let dice = || plan.seed.derive("websocket").index(u64::from(who.number.0)).dice();
        let asked = group.tcp().and_then(|tcp| tcp.websocket.as_ref());
        let websocket =
            asked.map(|asked| WebSocket::new((server.to_string(), asked.path.as_str().to_owned()), dice()));
        (!group.layers().is_bare()).then(|| ClientLayers {
            stage: OpeningStage::Connecting,
            since: Instant::ZERO,
            secured,
            websocket,
        })
    }

    /// A new connection is being opened.
    pub(super) fn begin(&mut self, now: Instant) {
        (self.stage, self.since) = (OpeningStage::Connecting, now);
        self.end();
    }

    /// There is no connection any more.
    pub(super) fn end(&mut self) {
        self.secured.iter_mut().for_each(TlsStream::clear);
        self.websocket.iter_mut().for_each(WebSocket::clear);
    }

    /// Whether TCP is open, and not all on it.
    pub(super) fn is_opening(&self) -> bool {
        matches!(self.stage, OpeningStage::Securing | OpeningStage::Upgrading)
    }

    /// What it waits for before packets can be sent; `None`: for TCP.
    pub(super) fn waits_for(&self) -> Option<Layer> {
        match self.stage {
            OpeningStage::Connecting => None,
            OpeningStage::Securing => Some(Layer::Tls),
            OpeningStage::Upgrading | OpeningStage::Open => Some(Layer::WebSocket),
        }
    }

    /// Appends a packet as it goes over the wire.
    pub(super) fn seal(&mut self, packet: &[u8], outbox: &mut SocketOutbox) {
        match &mut self.websocket {
            Some(_) => self.write_frame(Opcode::Binary, packet, outbox),
            None => append(&mut self.secured, packet, outbox),
        }
    }

    /// Appends what says that nothing more will be said: of WebSocket with the status "normal closure", which the server answers
    /// before it ends the connection (RFC 6455 §7.1.1), of TLS alone its alert (RFC 8446 §6.1).
    pub(super) fn write_close(&mut self, outbox: &mut SocketOutbox) {
        match (&self.websocket, &mut self.secured) {
            (Some(_), _) => self.write_frame(Opcode::Close, &NORMAL_CLOSURE.to_be_bytes(), outbox),
            (None, Some(secured)) => secured.write_close(outbox),
            (None, None) => {}
        }
    }

    /// Appends a frame, where there are frames.
    pub(super) fn write_frame(&mut self, opcode: Opcode, payload: &[u8], outbox: &mut SocketOutbox) {
        let Some(WebSocket { dice, frame, .. }) = &mut self.websocket else { return };
        let key = (dice.bits() as u32).to_ne_bytes();
        frame.clear();
        frame::encode(opcode, Some(key), payload, frame);
        append(&mut self.secured, frame, outbox);
    }

    /// The stage is over at this time; says how long it took.
    fn enter(&mut self, stage: OpeningStage, now: Instant) -> Duration {
        self.stage = stage;
        now.since(std::mem::replace(&mut self.since, now))
    }

    /// The layer below is open: begins with the next one, and says how long that one took. At the end nothing begins.
    pub(super) fn open_next(&mut self, now: Instant, outbox: &mut SocketOutbox) -> Result<Duration, Loss> {
        let took = match (self.stage, &mut self.secured, &mut self.websocket) {
            (OpeningStage::Connecting, Some(secured), _) => {
                secured.begin(outbox)?;
                self.enter(OpeningStage::Securing, now)
            }
            (OpeningStage::Connecting | OpeningStage::Securing, secured, Some(websocket)) => {
                websocket.make_request();
                append(secured, &websocket.frame, outbox);
                self.enter(OpeningStage::Upgrading, now)
            }
            _ => self.enter(OpeningStage::Open, now),
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
    fn make_request(&mut self) {
        self.nonce = (u128::from(self.dice.bits()) << 64 | u128::from(self.dice.bits())).to_be_bytes();
        self.frame.clear();
        upgrade::request(&self.resource.0, &self.resource.1, self.nonce, &mut self.frame);
    }
}

/// Appends bytes, sealed where there is TLS.
fn append(secured: &mut Option<TlsStream>, bytes: &[u8], outbox: &mut SocketOutbox) {
    match secured {
        Some(secured) => secured.seal(bytes, outbox),
        None => outbox.bytes().extend_from_slice(bytes),
    }
}

const NORMAL_CLOSURE: u16 = 1000;
