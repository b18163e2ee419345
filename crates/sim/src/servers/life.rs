//! A server's life: it runs, stands still, has ended, and starts again.
//!
//! ```text
//!   stop, kill                       pause
//!   Ended ◄────────── Running ──────────────► Paused ──► what comes is held
//!         ──────────►         ◄──────────────
//!            start                 continue
//! ```
//!
//! The kernel of its host goes on meanwhile, as Linux does (measured with Mosquitto 2.0.11):
//!
//! - *Paused* (SIGSTOP): data are acknowledged and buffered until windows close, and connections are accepted into the queue of
//!   the listening socket until that is full; then SYNs are dropped. All of it is attended to when the program continues, in the order
//!   in which it came.
//! - *Ended*: of each connection the kernel sends what it has taken of the program, then a FIN; a RST at once where the
//!   program has left something unread, and to those who wait in the queue of the listening socket. What comes to the port
//!   is answered by a RST. Datagrams are lost.
//! - *Stop* (SIGTERM) differs from *kill* (SIGKILL) by what the program does before: Mosquitto publishes wills and writes its
//!   sessions to its disk. It sends no DISCONNECT, to MQTT 5 clients neither. One that stands still does so when it continues,
//!   which a stop makes it do.
//!
//! What it does not model: the time that a program takes to end and to start, the close_notify of TLS, and the ICMP message that answers a datagram to a closed port.

use std::rc::Rc;

use mqttlab_plan::{ServerChange, ServerChangeKind};
use mqttlab_tcp::{ConnectionState, TcpEvent};
use mqttlab_units::Instant;

use super::{End, ServerModel, ServerSurroundings};
use crate::hosts::Reception;
use crate::hosts::datagrams::SimDatagram;
use crate::ids::{ServerId, Side};

/// A server of a simulation.
pub(super) struct SimServer {
    id: ServerId,
    pub(super) model: Box<dyn ServerModel>,
    state: LifeState,
}

enum LifeState {
    Running,
    Paused {
        since: Instant,
        held: Vec<HeldEvent>,
    },
    Ended,
    /// It has ended by itself, and nobody starts it again, as in a live run.
    Lost,
}

/// What waits for a program that stands still.
enum HeldEvent {
    Tcp(End, TcpEvent),
    Read(End),
    Datagram(Rc<SimDatagram>),
}

impl SimServer {
    pub(super) fn new(id: ServerId, model: Box<dyn ServerModel>) -> SimServer {
        SimServer { id, model, state: LifeState::Running }
    }

    /// A datagram has come.
    pub(super) fn on_datagram(&mut self, around: &mut ServerSurroundings<'_>, datagram: Rc<SimDatagram>) {
        match &mut self.state {
            LifeState::Running => self.model.on_datagram(around, datagram),
            LifeState::Paused { held, .. } => held.push(HeldEvent::Datagram(datagram)),
            LifeState::Ended | LifeState::Lost => {}
        }
    }

    /// Its time may have come.
    pub(super) fn on_timer(&mut self, around: &mut ServerSurroundings<'_>) {
        if matches!(self.state, LifeState::Running) {
            self.model.on_timer(around);
        }
    }

    /// TCP has something to tell the program at this end.
    pub(super) fn on_tcp(&mut self, around: &mut ServerSurroundings<'_>, end: End, event: TcpEvent) {
        // Nobody is left to be told of a connection that an earlier run of the program had.
        if around.transport.connection(end.0).orphaned[end.1 as usize] {
            return;
        }
        match &mut self.state {
            LifeState::Running => self.model.on_tcp(around, end, event),
            LifeState::Paused { held, .. } => held.push(HeldEvent::Tcp(end, event)),
            LifeState::Ended | LifeState::Lost => {}
        }
    }

    /// The program at this end is awake.
    pub(super) fn read(&mut self, around: &mut ServerSurroundings<'_>, end: End) {
        if around.transport.connection(end.0).orphaned[end.1 as usize] {
            return;
        }
        match &mut self.state {
            LifeState::Running => self.model.read(around, end),
            LifeState::Paused { held, .. } => held.push(HeldEvent::Read(end)),
            LifeState::Ended | LifeState::Lost => {}
        }
    }

    /// Something happens to the program. What does not fit its state changes nothing, as a signal to a program that has ended.
    /// Says whether a new model is to take its place, which keeps nothing.
    pub(super) fn change(&mut self, around: &mut ServerSurroundings<'_>, change: ServerChange) -> bool {
        let ServerChange { kind, persistence } = change;
        match (kind, &self.state) {
            (ServerChangeKind::Pause, LifeState::Running) => {
                self.state = LifeState::Paused { since: around.now(), held: Vec::new() };
                around.transport.set_reception(self.id, Reception::Queueing(0));
            }
            (ServerChangeKind::Continue, LifeState::Paused { .. }) => self.go_on(around),
            (ServerChangeKind::Stop, LifeState::Running | LifeState::Paused { .. }) => {
                self.go_on(around);
                self.model.say_farewell(around);
                self.end(around, true, persistence);
            }
            (ServerChangeKind::Kill, LifeState::Running | LifeState::Paused { .. }) => {
                self.end(around, false, persistence);
            }
            (ServerChangeKind::Start, LifeState::Ended) => {
                self.state = LifeState::Running;
                around.transport.set_reception(self.id, Reception::Open);
                return !self.model.start_again(around, persistence);
            }
            _ => {}
        }
        false
    }

    /// Whether it runs, and has come to need more memory than its host has.
    pub(super) fn exceeds_memory(&mut self) -> bool {
        matches!(self.state, LifeState::Running) && self.model.exceeds_memory()
    }

    /// The kernel kills it.
    pub(super) fn die(&mut self, around: &mut ServerSurroundings<'_>) {
        self.end(around, false, true);
        self.state = LifeState::Lost;
    }

    fn go_on(&mut self, around: &mut ServerSurroundings<'_>) {
        let LifeState::Paused { since, held } = std::mem::replace(&mut self.state, LifeState::Running) else {
            return;
        };
        around.transport.set_reception(self.id, Reception::Open);
        let readable = |event: &HeldEvent| match event {
            HeldEvent::Tcp(end, TcpEvent::Readable(_)) | HeldEvent::Read(end) => Some(*end),
            HeldEvent::Tcp(..) | HeldEvent::Datagram(_) => None,
        };
        let readable: Vec<End> = held.iter().filter_map(readable).collect();
        self.model.resume(around, around.now().since(since), &readable);
        for event in held {
            match event {
                HeldEvent::Tcp((id, _), _) | HeldEvent::Read((id, _))
                    if !around.transport.connections().is_current(id) => {}
                HeldEvent::Tcp(end, event) => self.model.on_tcp(around, end, event),
                HeldEvent::Read(end) => self.model.read(around, end),
                HeldEvent::Datagram(datagram) => self.model.on_datagram(around, datagram),
            }
        }
    }

    /// The program is gone.
    fn end(&mut self, around: &mut ServerSurroundings<'_>, in_order: bool, persistence: bool) {
        let was = std::mem::replace(&mut self.state, LifeState::Ended);
        let held = if let LifeState::Paused { held, .. } = was { held } else { Vec::new() };
        let in_queue = |end: End| {
            held.iter().any(|event| matches!(event, HeldEvent::Tcp(of, TcpEvent::Connected) if *of == end))
        };
        let ends: Vec<(End, bool)> = self
            .open_ends(around)
            .into_iter()
            .map(|end| (end, in_queue(end) || self.has_unread(around, end)))
            .collect();
        self.model.end(around, in_order, persistence);
        around.transport.set_reception(self.id, Reception::Closed);
        for ((id, side), is_reset) in ends {
            let connection = around.transport.connection_mut(id);
            connection.orphaned[side as usize] = true;
            connection.unserved = 0;
            around.transport.leave(around.agenda, around.evidence, (id, side), is_reset);
        }
    }

    /// Its ends of connections.
    fn open_ends(&self, around: &ServerSurroundings<'_>) -> Vec<End> {
        let mut ends = Vec::new();
        for connection in around.transport.connections().iter() {
            for side in Side::BOTH {
                let is_open = connection.ends[side as usize].state() != ConnectionState::Listen;
                if connection.server_at(side) == Some(self.id)
                    && is_open
                    && !connection.orphaned[side as usize]
                {
                    ends.push((connection.id, side));
                }
            }
        }
        ends
    }

    /// Whether something waits in a socket. What a model has read ahead of serving it, a program of one thread has left there.
    fn has_unread(&self, around: &ServerSurroundings<'_>, (id, side): End) -> bool {
        let connection = around.transport.connection(id);
        let served = u32::from(self.model.is_serving(id));
        side == Side::Server && connection.unserved > served || connection.ends[side as usize].readable() > 0
    }
}
