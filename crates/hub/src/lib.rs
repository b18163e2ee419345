//! A hub as a program: the machine of any protocol of `crates/protocol`, over a UDP socket.
//!
//! One thread. It prints a line when it listens, and its counters as JSON when it ends (SIGTERM, SIGINT).
//!
//! What it does not do: forget those who are gone without a word; a machine may.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mqttlab_plan::HubProgram;
use mqttlab_protocol::{Hub, HubProtocol, Message, Of, Settings, hub_protocol};
use mqttlab_units::{Duration, Instant};
use serde_json::json;

/// Beginning of the line that says that it listens.
pub const READY: &str = "mqttlab hub listens on";

struct Program {
    began: std::time::Instant,
    protocol: &'static dyn HubProtocol,
    hub: Box<dyn Hub>,
    socket: UdpSocket,
    numbers: BTreeMap<SocketAddr, u32>,
    addresses: Vec<SocketAddr>,
    out: Vec<u8>,
    counters: Counters,
}

#[derive(Default)]
struct Counters {
    /// Datagrams that came and that went.
    received: u64,
    sent: u64,
    /// Datagrams that were no packets.
    malformed: u64,
    /// Datagrams that the kernel did not take.
    unsent: u64,
}

/// Runs a hub until a signal ends it. What it says goes to `out`; where nobody reads that any more (its parent is gone), it
/// serves its peers all the same, as any server does.
///
/// # Errors
/// There is no such protocol, or it cannot be set so; the address cannot be had, or the socket is of no use.
pub fn run(settings: &HubProgram, mut out: impl io::Write) -> io::Result<()> {
    let wrong = |problem: String| io::Error::new(io::ErrorKind::InvalidInput, problem);
    let protocol = hub_protocol(&settings.protocol)
        .ok_or_else(|| wrong(format!("{:?} is no protocol that has a hub", settings.protocol)))?;
    let set = Settings::new(protocol.settings(), Of::Hub, &settings.settings);
    // SAFETY: the handler does nothing but store to an atomic. Without SA_RESTART a signal ends the wait for a datagram.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = stop as extern "C" fn(libc::c_int) as libc::sighandler_t;
        for signal in [libc::SIGTERM, libc::SIGINT] {
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
    let mut program = Program {
        began: std::time::Instant::now(),
        protocol,
        hub: protocol.hub(&set.map_err(|problem| wrong(problem.to_string()))?),
        socket: UdpSocket::bind(settings.listen)?,
        numbers: BTreeMap::new(),
        addresses: Vec::new(),
        out: Vec::new(),
        counters: Counters::default(),
    };
    // Where port 0 was asked for, the kernel has chosen.
    let _ = writeln!(out, "{READY} {}", program.socket.local_addr()?);
    let mut buffer = vec![0; 65_536];
    while !STOPPED.load(Ordering::Relaxed) {
        program.turn(&mut buffer)?;
    }
    let Counters { received, sent, malformed, unsent } = program.counters;
    let _ = writeln!(
        out,
        "{}",
        json!({"received": received, "sent": sent, "malformed": malformed, "unsent": unsent})
    );
    Ok(())
}

impl Program {
    fn now(&self) -> Instant {
        Instant::from_ns(self.began.elapsed().as_nanos() as u64)
    }

    /// Waits for a datagram or a deadline, and attends to it.
    fn turn(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let next = self.hub.next_deadline().map(|at| at.checked_since(self.now()).unwrap_or_default());
        let length = next.map_or(LONGEST, |length| length.clamp(SHORTEST, LONGEST));
        self.socket.set_read_timeout(Some(std::time::Duration::from_nanos(length.as_ns())))?;
        match self.socket.recv_from(buffer) {
            Ok((length, from)) => self.hear(&buffer[..length], from),
            // Nothing came; or an ICMP error of what was sent before to somebody who has gone.
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
        let now = self.now();
        if self.hub.next_deadline().is_some_and(|at| at <= now) {
            self.hub.tick(now);
        }
        self.send();
        Ok(())
    }

    fn hear(&mut self, datagram: &[u8], from: SocketAddr) {
        self.counters.received += 1;
        let Some(head) = self.protocol.read(datagram) else {
            self.counters.malformed += 1;
            return;
        };
        let payload = || Message::Payload(Arc::from(&datagram[head.bytes..]));
        let message = head.kind.is_message().then(payload);
        let next = self.addresses.len() as u32;
        let number = *self.numbers.entry(from).or_insert_with(|| {
            self.addresses.push(from);
            next
        });
        self.hub.handle(self.now(), number, &head, message.as_ref());
    }

    /// Sends what the machine says.
    fn send(&mut self) {
        while let Some(sent) = self.hub.poll() {
            self.out.clear();
            self.out.extend_from_slice(&sent.head);
            if let Some(Message::Payload(payload)) = &sent.message {
                self.out.extend_from_slice(payload);
            }
            let taken = self.socket.send_to(&self.out, self.addresses[sent.to as usize]).is_ok();
            self.counters.sent += u64::from(taken);
            self.counters.unsent += u64::from(!taken);
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
    [WouldBlock, TimedOut, Interrupted, ConnectionRefused].contains(&error.kind())
}

extern "C" fn stop(_: libc::c_int) {
    STOPPED.store(true, Ordering::Relaxed);
}

static STOPPED: AtomicBool = AtomicBool::new(false);
/// A signal that comes just before a wait is noticed after this.
const LONGEST: Duration = Duration::from_ms(200);
/// A time-out of zero would be none.
const SHORTEST: Duration = Duration::from_us(1);
