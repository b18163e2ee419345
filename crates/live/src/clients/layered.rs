//! What lies between a client's socket and its packets, where something does: WebSocket (RFC 6455).
//!
//! ```text
//!   packet ──► seal ──► outbox ──► socket ──► unseal ──► packets
//!                opening: TCP ──► upgrade ──► the client is told that it is open
//! ```
//!
//! Each packet is a binary frame of its own, as Mosquitto and Paho write them; what comes may be cut anywhere. Masking keys are
//! drawn from the run's seed: they protect intermediaries that an emulated network does not have.

use mqttlab_client::{Loss, Rows, Transport, Who};
use mqttlab_layers::Layer;
use mqttlab_layers::frame::{self, Came, Decoder, Opcode};
use mqttlab_layers::upgrade::{self, Answer};
use mqttlab_plan::{Group, Plan};
use mqttlab_recording::EventKind;
use mqttlab_units::{Dice, Duration, Instant};

use super::Client;
use super::connection::ClientConnection;
use super::outbox::Outbox;
use super::reading::Reading;
use super::turn::Turn;

/// The layers of one client's connections.
pub(super) struct Layered {
    stage: Stage,
    /// When the stage began.
    since: Instant,
    /// For masking keys and nonces.
    dice: Dice,
    nonce: [u8; 16],
    answer: Answer,
    frames: Decoder,
}

/// How far a connection is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Connecting,
    Upgrading,
    Open,
}

impl Layered {
    /// Of a client's connections, if they have any.
    pub(super) fn of(plan: &Plan, group: &Group, who: Who) -> Option<Layered> {
        let dice = plan.seed.derive("websocket").index(u64::from(who.number.0)).dice();
        (!group.layers().is_bare()).then(|| Layered {
            stage: Stage::Connecting,
            since: Instant::ZERO,
            dice,
            nonce: [0; 16],
            answer: Answer::default(),
            frames: Decoder::default(),
        })
    }

    /// A new connection is being opened.
    pub(super) fn begin(&mut self, now: Instant) {
        (self.stage, self.since) = (Stage::Connecting, now);
        self.answer = Answer::default();
        self.frames.clear();
    }

    /// Whether TCP is open, and not all on it.
    pub(super) fn is_opening(&self) -> bool {
        self.stage == Stage::Upgrading
    }

    /// What it waits for before packets can be sent; `None`: for TCP.
    pub(super) fn waits_for(&self) -> Option<Layer> {
        (self.stage != Stage::Connecting).then_some(Layer::WebSocket)
    }

    /// Appends a packet as it goes over the wire.
    pub(super) fn seal(&mut self, packet: &[u8], outbox: &mut Outbox) {
        self.say(Opcode::Binary, packet, outbox);
    }

    /// Appends what says that nothing more will be said (RFC 6455 §7.1.1), with the status "normal closure".
    pub(super) fn say_farewell(&mut self, outbox: &mut Outbox) {
        self.say(Opcode::Close, &NORMAL_CLOSURE.to_be_bytes(), outbox);
    }

    fn say(&mut self, opcode: Opcode, payload: &[u8], outbox: &mut Outbox) {
        let key = (self.dice.bits() as u32).to_ne_bytes();
        frame::encode(opcode, Some(key), payload, outbox.bytes());
    }

    /// The stage is over at this time; says how long it took.
    fn enter(&mut self, stage: Stage, now: Instant) -> Duration {
        self.stage = stage;
        now.since(std::mem::replace(&mut self.since, now))
    }

    /// TCP is open: asks for an upgrade.
    fn ask(&mut self, now: Instant, (host, path): (&str, &str), outbox: &mut Outbox) -> Duration {
        self.nonce = (u128::from(self.dice.bits()) << 64 | u128::from(self.dice.bits())).to_be_bytes();
        upgrade::request(host, path, self.nonce, outbox.bytes());
        self.enter(Stage::Upgrading, now)
    }
}

impl Turn<'_> {
    /// TCP is open, and the next layer is opened. Again, while that goes on: writes what the socket did not take.
    pub(super) fn open_layers(&mut self, client: &mut Client) {
        let (who, now) = (client.who(), self.now);
        let group = self.shared.group(who.group);
        let address = self.shared.plan.endpoint_of(group).socket_address().to_string();
        let path =
            group.tcp().and_then(|tcp| tcp.websocket.as_ref()).map_or("/", |websocket| &websocket.path);
        let ClientConnection { layered, outbox, .. } = client.connection_mut();
        if let Some(layered) = layered
            && layered.stage == Stage::Connecting
        {
            let took = layered.ask(now, (&address, path), outbox);
            self.event(EventKind::LayerOpen, who.number, Some(took), "tcp");
        }
        if let Err(loss) = self.write(client.connection_mut()) {
            client.lose(self, &loss);
        }
    }
}

impl Reading<'_, '_> {
    /// Takes what was read through the layers of its connection.
    pub(super) fn unseal(&mut self, client: &mut Client, bytes: &[u8]) -> Result<(), Loss> {
        let rest = self.take_answer(client, bytes)?;
        let Some(layered) = &mut client.connection_mut().layered else { return Ok(()) };
        let mut frames = std::mem::take(&mut layered.frames);
        frames.feed(&bytes[rest..], |came| self.take_frame(client, came))?;
        if let Some(layered) = &mut client.connection_mut().layered {
            layered.frames = frames;
        }
        Ok(())
    }

    /// Takes what belongs to the answer to the upgrade, and says how many bytes did.
    fn take_answer(&mut self, client: &mut Client, bytes: &[u8]) -> Result<usize, Loss> {
        let now = self.turn.now;
        let Some(layered) = client.connection_mut().layered.as_mut().filter(|layered| layered.is_opening())
        else {
            return Ok(0);
        };
        let nonce = layered.nonce;
        let taken = layered.answer.feed(bytes, nonce).map_err(|refusal| Loss::Refused {
            how: format!("WebSocket upgrade: {refusal}").into(),
            for_good: refusal.is_for_good(),
        })?;
        let Some(taken) = taken else { return Ok(bytes.len()) };
        let took = layered.enter(Stage::Open, now);
        self.turn.event(EventKind::LayerOpen, client.who().number, Some(took), "websocket");
        client.opened(self.turn);
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
