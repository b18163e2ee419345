//! The program: one loop over all sockets.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::SystemTime;

use mqttlab_plan::ProxyProgram;
use mqttlab_system::poller::{Interest, Poller, Ready};
use mqttlab_system::signals;
use mqttlab_units::{Duration, Instant};
use mqttlab_zmtp::SocketType;
use mqttlab_zmtp::command::{self, Command};
use mqttlab_zmtp::greeting;
use mqttlab_zmtp::proxy::{self, Input, Output, Proxy, ProxyOptions, Send};
use mqttlab_zmtp::stream::Raw;
use serde_json::json;

use super::peer::{Over, Peer};

/// Beginning, behind the time, of the line that says that messages are dropped for a client, as Mosquitto has it.
const DROPPING: &str = "Outgoing messages are being dropped for client ";
/// Beginning of the line that says that it listens.
pub const READY: &str = "mqttlab proxy listens on";

type Bytes = Arc<[u8]>;

struct Program {
    began: std::time::Instant,
    proxy: Proxy<Bytes>,
    listeners: [(TcpListener, SocketType); 2],
    peers: BTreeMap<u32, Peer>,
    next: u32,
    /// Those that have something to write, or end.
    touched: BTreeSet<u32>,
    poller: Poller,
    buffer: Vec<u8>,
    /// What is to be said.
    lines: Vec<String>,
}

/// Runs a proxy until a signal ends it. What it says goes to `out`; where nobody reads that any more (its parent is gone),
/// it serves its peers all the same, as any server does.
///
/// # Errors
/// It cannot listen, or the kernel refuses to wait.
pub fn run(settings: &ProxyProgram, mut out: impl io::Write) -> io::Result<()> {
    signals::watch();
    let mut program = Program::new(settings)?;
    // Where a port of 0 was asked for, the kernel has chosen: what is said are the addresses that it listens on.
    let [publishers, subscribers] = &program.listeners;
    let _ = writeln!(
        out,
        "{READY} {} (XSUB) and {} (XPUB)",
        publishers.0.local_addr()?,
        subscribers.0.local_addr()?
    );
    while !signals::has_come() {
        program.turn()?;
        program.lines.drain(..).for_each(|line| drop(writeln!(out, "{line}")));
    }
    let _ = writeln!(out, "{}", program.counters());
    Ok(())
}

impl Program {
    fn new(settings: &ProxyProgram) -> io::Result<Program> {
        let poller = Poller::new(SOCKETS)?;
        let listen = |address: SocketAddr, number| {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            poller.add(&listener, number, Interest::Reading)?;
            io::Result::Ok(listener)
        };
        let listeners = [
            (listen(settings.publishers, 0)?, SocketType::Xsub),
            (listen(settings.subscribers, 1)?, SocketType::Xpub),
        ];
        Ok(Program {
            began: std::time::Instant::now(),
            proxy: Proxy::new(ProxyOptions { high_water_mark: settings.high_water_mark }),
            listeners,
            peers: BTreeMap::new(),
            next: FIRST_PEER,
            touched: BTreeSet::new(),
            poller,
            buffer: vec![0; 64 << 10],
            lines: Vec::new(),
        })
    }

    fn now(&self) -> Instant {
        Instant::from_ns(self.began.elapsed().as_nanos() as u64)
    }

    /// Waits for something to happen, and attends to it.
    fn turn(&mut self) -> io::Result<()> {
        for index in 0..self.poller.wait(Some(LONGEST))? {
            let Ready { number, readable, .. } = self.poller.ready(index);
            match number {
                0 | 1 => self.accept(number as usize)?,
                _ => self.attend(number as u32, readable),
            }
            self.drain();
        }
        Ok(())
    }

    /// Takes those who wait to be accepted. Where there is no descriptor for one, it waits on.
    fn accept(&mut self, listener: usize) -> io::Result<()> {
        while let Ok((stream, _)) = self.listeners[listener].0.accept() {
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            let (number, socket) = (self.next, self.listeners[listener].1);
            self.next += 1;
            self.poller.add(&stream, number.into(), Interest::Reading)?;
            self.peers.insert(number, Peer::new(stream, socket));
            self.proxy.handle(self.now(), proxy::Peer(number), Input::Accepted(socket));
        }
        Ok(())
    }

    fn attend(&mut self, number: u32, readable: bool) {
        self.touched.insert(number);
        if !readable {
            return;
        }
        let now = self.now();
        let Some(peer) = self.peers.get_mut(&number) else { return };
        let (socket, proxy, id) = (peer.socket, &mut self.proxy, proxy::Peer(number));
        let mut client = None;
        let outcome = peer.receive(&mut self.buffer, |raw| {
            match raw {
                Raw::Greeting(greeting) => proxy.handle(now, id, Input::Greeting(greeting)),
                Raw::Command(command, _) => {
                    if let Command::Ready { client: Some(name), .. } = command {
                        client = Some(String::from_utf8_lossy(name).into_owned());
                    }
                    proxy.handle(now, id, Input::Command(command));
                }
                // What a subscriber of ZMTP 3.0 says is a message of one frame.
                Raw::Message(message) if socket.publishes() && message.frames == 1 => {
                    let command = match command::subscription(message.topic) {
                        Some((true, prefix)) => Command::Subscribe(prefix),
                        Some((false, prefix)) => Command::Cancel(prefix),
                        None => Command::Other,
                    };
                    proxy.handle(now, id, Input::Command(command));
                }
                Raw::Message(message) => proxy.message(id, message.topic, Arc::from(message.bytes)),
            }
            Ok(())
        });
        if client.is_some() {
            peer.client = client;
        }
        match outcome {
            Ok(_) => {}
            Err(Over::Malformed(malformed)) => self.proxy.refuse(id, malformed),
            Err(Over::Gone) => {
                self.peers.remove(&number);
                self.proxy.handle(now, id, Input::Closed);
            }
        }
    }

    /// Does what the machine says, and writes.
    fn drain(&mut self) {
        loop {
            while let Some(output) = self.proxy.poll() {
                self.perform(output);
            }
            let Some(number) = self.touched.pop_first() else { return };
            self.flush(number);
        }
    }

    fn perform(&mut self, output: Output<Bytes>) {
        let (to, bytes, is_message) = match output {
            Output::Send(to, packet) => (to, encoded(&packet), false),
            Output::Message(to, message) => (to, message, true),
            Output::Close(to) => {
                self.peers.get_mut(&to.0).into_iter().for_each(|peer| peer.ending = true);
                self.touched.insert(to.0);
                return;
            }
            // Counted by the machine.
            Output::Dropped(to, _) => return self.note_loss(to.0),
        };
        if let Some(peer) = self.peers.get_mut(&to.0) {
            peer.put(bytes, is_message);
            self.touched.insert(to.0);
        }
    }

    /// Says of a peer with a name that messages are dropped for it, once, in the words of a broker's log.
    fn note_loss(&mut self, number: u32) {
        let Some(peer) = self.peers.get_mut(&number) else { return };
        if let Some(client) = peer.client.as_ref().filter(|_| !peer.has_lost) {
            let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            self.lines.push(format!("{}: {DROPPING}{client}.", since_1970.as_secs()));
        }
        peer.has_lost = true;
    }

    /// Writes at once; what is left waits until the socket has room.
    fn flush(&mut self, number: u32) {
        let (now, id) = (self.now(), proxy::Peer(number));
        let Some(peer) = self.peers.get_mut(&number) else { return };
        let written = peer.flush();
        let waits = peer.has_unwritten();
        let is_over = written.is_err() || peer.ending && !waits;
        if !is_over && waits != peer.waits_for_room {
            peer.waits_for_room = waits;
            let interest = if waits { Interest::ReadingAndWriting } else { Interest::Reading };
            let _ = self.poller.change(&peer.stream, number.into(), interest);
        }
        match written {
            Ok(messages) if messages > 0 => self.proxy.handle(now, id, Input::Taken(messages)),
            _ => {}
        }
        if is_over {
            self.peers.remove(&number);
            self.proxy.handle(now, id, Input::Closed);
        }
    }

    fn counters(&self) -> serde_json::Value {
        let counters = self.proxy.counters();
        json!({
            "messages": counters.messages,
            "copies": counters.copies,
            "unmatched": counters.unmatched,
            "dropped": counters.dropped,
            "refused": counters.refused,
        })
    }
}

fn encoded(packet: &Send) -> Bytes {
    let mut out = Vec::new();
    match packet {
        Send::Greeting => greeting::encode(&mut out),
        Send::Ready(socket) => command::ready(*socket, None, &mut out),
        Send::Error(reason) => command::error(reason, &mut out),
        Send::Subscribe { begins, prefix, minor } => command::subscribe(*begins, prefix, *minor, &mut out),
        Send::Pong(context) => command::pong(context.as_bytes(), &mut out),
    }
    out.into()
}

/// Below are the listeners.
const FIRST_PEER: u32 = 2;
/// A signal that comes just before a wait is noticed after this.
const LONGEST: Duration = Duration::from_ms(200);
/// So many sockets are attended to in one turn.
const SOCKETS: usize = 256;
