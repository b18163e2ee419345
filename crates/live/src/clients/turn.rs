//! What a client is given while a worker attends to it.

use std::sync::atomic::Ordering::Relaxed;

use mqttlab_recording::{Event, EventKind, Sink};
use mqttlab_units::{Duration, Instant};

use super::epoll::Epoll;
use super::shared::Shared;
use super::timers::Timers;
use crate::control::Figures;

/// One client's turn.
pub(super) struct Turn<'a> {
    pub(super) shared: &'a Shared,
    pub(super) epoll: &'a Epoll,
    pub(super) timers: &'a mut Timers,
    pub(super) sink: &'a mut Sink,
    pub(super) tally: &'a mut Tally,
    /// Where bytes are read to.
    pub(super) buffer: &'a mut Vec<u8>,
    /// The clock as it was last read.
    pub(super) now: Instant,
    /// Whether the run is over and clients say goodbye.
    pub(super) leaving: bool,
    /// Set when a client could have had more to do since its last turn.
    pub(super) hurried: &'a mut bool,
    /// Messages that a client has received in its turn and must acknowledge, by QoS.
    pub(super) answered: [u32; 3],
    /// What the session said about the message that has just arrived.
    pub(super) reception: Reception,
}

/// What becomes of a message that has just arrived.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reception {
    /// It came before, or nothing was said.
    Ignored,
    /// The application gets it.
    Delivered,
    /// The application gets it when its PUBREL comes.
    Held,
}

/// Changes of the run's figures since they were last brought there: many clients share each atomic.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) connected: i32,
    pub(super) ready: i32,
    pub(super) failed: u32,
    pub(super) publishing: i32,
    pub(super) offered: u64,
    pub(super) sent: u64,
    pub(super) expected: u64,
    pub(super) delivered: u64,
    pub(super) unacknowledged: i64,
    pub(super) disconnects: u64,
    pub(super) foreign: u64,
    pub(super) turned_away: u64,
    pub(super) no_descriptor: u64,
}

impl Turn<'_> {
    /// Records what happened to a client now.
    pub(super) fn event(&mut self, kind: EventKind, client: u32, took: Option<Duration>, detail: &str) {
        self.sink.event(&Event { at: self.now, kind, client: Some(client), took }, detail);
    }
}

impl Tally {
    /// Brings all changes to `figures`.
    pub(super) fn settle(&mut self, figures: &Figures) {
        // What should arrive is counted before what has arrived, so that nobody sees a run settled that is not.
        add(&figures.expected, self.expected);
        if self.unacknowledged != 0 {
            figures.unacknowledged.fetch_add(self.unacknowledged, Relaxed);
        }
        add(&figures.offered, self.offered);
        add(&figures.sent, self.sent);
        add(&figures.delivered, self.delivered);
        add(&figures.disconnects, self.disconnects);
        add(&figures.foreign, self.foreign);
        add(&figures.turned_away, self.turned_away);
        add(&figures.no_descriptor, self.no_descriptor);
        if self.publishing != 0 {
            figures.publishing.fetch_add(self.publishing, Relaxed);
        }
        // Two's complement: adding a negative number wraps around to the right one.
        if self.connected != 0 {
            figures.connected.fetch_add(self.connected as u32, Relaxed);
        }
        if self.ready != 0 {
            figures.ready.fetch_add(self.ready as u32, Relaxed);
        }
        if self.failed != 0 {
            figures.failed.fetch_add(self.failed, Relaxed);
        }
        *self = Tally::default();
    }
}

fn add(figure: &std::sync::atomic::AtomicU64, change: u64) {
    if change != 0 {
        figure.fetch_add(change, Relaxed);
    }
}
