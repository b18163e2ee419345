//! The program: one loop over all sockets.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use mqttlab_mqttsn::gateway::{self, Gateway, Input, Output};
use mqttlab_plan::GatewayProgram;
use mqttlab_system::poller::{Interest, Poller};
use mqttlab_system::signals;
use mqttlab_units::{Duration, Instant};
use serde_json::json;

use super::link::Link;
use super::peers::Peers;

/// Beginning of the line that says that it listens.
pub const READY: &str = "mqttlab gateway listens on";

type Bytes = Arc<[u8]>;

struct Program {
    began: std::time::Instant,
    gateway: Gateway<Bytes>,
    peers: Peers,
    links: BTreeMap<u32, Link>,
    broker: std::net::SocketAddr,
    poller: Poller,
}

/// Runs a gateway until a signal ends it. What it says goes to `out`; where nobody reads that any more (its parent is gone),
/// it serves its peers all the same, as any server does.
///
/// # Errors
/// It cannot listen, or the kernel refuses to wait.
pub fn run(settings: &GatewayProgram, mut out: impl io::Write) -> io::Result<()> {
    signals::watch();
    let mut program = Program {
        began: std::time::Instant::now(),
        gateway: Gateway::new(settings.role.options(), Instant::ZERO),
        peers: Peers::bind(settings.listen)?,
        links: BTreeMap::new(),
        broker: settings.broker,
        poller: Poller::new(SOCKETS)?,
    };
    program.poller.add(&program.peers, PEERS, Interest::Reading)?;
    // Where port 0 was asked for, the kernel has chosen.
    let _ = writeln!(out, "{READY} {}", program.peers.address()?);
    program.drain();
    while !signals::has_come() {
        program.turn()?;
    }
    let _ = writeln!(out, "{}", program.counters());
    Ok(())
}

impl Program {
    fn now(&self) -> Instant {
        Instant::from_ns(self.began.elapsed().as_nanos() as u64)
    }

    /// Waits for something to happen, and attends to it.
    fn turn(&mut self) -> io::Result<()> {
        for (number, link) in &mut self.links {
            let waits_for_room = link.wants_to_write();
            if waits_for_room != link.waited_for_room {
                link.waited_for_room = waits_for_room;
                let interest = if waits_for_room { Interest::ReadingAndWriting } else { Interest::Reading };
                self.poller.change(&*link, (*number).into(), interest)?;
            }
        }
        let length = self
            .gateway
            .next_deadline()
            .map_or(LONGEST, |at| at.checked_since(self.now()).unwrap_or_default().min(LONGEST));
        let ready = self.poller.wait(Some(length))?;
        if self.gateway.next_deadline().is_some_and(|at| at <= self.now()) {
            self.handle(Input::Tick);
        }
        for index in 0..ready {
            match self.poller.ready(index).number {
                PEERS => {
                    while let Some((from, packet)) = self.peers.receive() {
                        self.handle(Input::Packet { from, packet });
                    }
                }
                link => self.attend(link as u32),
            }
        }
        Ok(())
    }

    fn handle(&mut self, input: Input<Bytes>) {
        let now = self.now();
        self.gateway.handle(now, input);
        self.drain();
    }

    /// A connection to the broker has something to read, or room.
    fn attend(&mut self, number: u32) {
        let Some(link) = self.links.get_mut(&number) else { return };
        let mut packets = Vec::new();
        let outcome = match link.finish_opening() {
            Ok(true) => {
                self.handle(Input::Opened(gateway::Link(number)));
                return;
            }
            Ok(false) => link.receive(|packet| packets.push(packet)),
            Err(over) => Err(over),
        };
        for packet in packets {
            self.handle(Input::Broker(gateway::Link(number), packet));
        }
        let flushed = self.links.get_mut(&number).map_or(Ok(false), Link::flush);
        match (outcome, flushed) {
            (Ok(()), Ok(false)) => {}
            // It was to end, and has said everything.
            (_, Ok(true)) => drop(self.links.remove(&number)),
            _ => {
                self.links.remove(&number);
                self.handle(Input::Closed(gateway::Link(number)));
            }
        }
    }

    /// Does what the machine says.
    fn drain(&mut self) {
        while let Some(output) = self.gateway.poll() {
            match output {
                Output::Send { to, packet } => self.peers.send(&to, &packet),
                Output::Broadcast(packet) => self.peers.broadcast(&packet),
                Output::Open(link) => self.open(link),
                Output::Broker(link, packet) => {
                    if let Some(open) = self.links.get_mut(&link.0) {
                        open.put(&packet);
                        self.flush(link);
                    }
                }
                Output::Close(link) => {
                    if let Some(open) = self.links.get_mut(&link.0) {
                        open.end();
                        self.flush(link);
                    }
                }
                // Counted by the machine.
                Output::Dropped { .. } => {}
            }
        }
    }

    fn open(&mut self, link: gateway::Link) {
        let opened = Link::open(self.broker).and_then(|open| {
            self.poller.add(&open, link.0.into(), Interest::ReadingAndWriting)?;
            Ok(open)
        });
        match opened {
            Ok(open) => drop(self.links.insert(link.0, open)),
            Err(_) => {
                let now = self.now();
                self.gateway.handle(now, Input::Closed(link));
            }
        }
    }

    /// Writes at once; what is left waits until the socket has room.
    fn flush(&mut self, link: gateway::Link) {
        let Some(open) = self.links.get_mut(&link.0) else { return };
        match open.flush() {
            Ok(false) => {}
            Ok(true) => drop(self.links.remove(&link.0)),
            Err(_) => {
                self.links.remove(&link.0);
                let now = self.now();
                self.gateway.handle(now, Input::Closed(link));
            }
        }
    }

    fn counters(&self) -> serde_json::Value {
        let counters = self.gateway.counters();
        json!({
            "repeated": counters.repeated,
            "duplicates": counters.duplicates,
            "registered": counters.registered,
            "kept": counters.kept,
            "dropped": counters.dropped,
            "lost": counters.lost,
            "queue_max": counters.queue_max,
            "malformed": self.peers.malformed,
            "unsent": self.peers.unsent,
        })
    }
}

/// So many sockets are attended to in one turn.
const SOCKETS: usize = 256;
/// The number of the socket of those who speak MQTT-SN; connections to the broker have theirs.
const PEERS: u64 = u64::MAX;
/// A signal that comes just before a wait is noticed after this.
const LONGEST: Duration = Duration::from_ms(200);
