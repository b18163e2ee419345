//! What the run's conductor and its clients tell each other while the run goes on.
//!
//! ```text
//!                 epoch, schedule, stop
//!   conductor  ───────────────────────────►  client workers
//!              ◄───────────────────────────
//!                 ready, counters, histograms
//! ```
//!
//! Everything is an atomic that is read now and then; nothing here wakes anybody. The schedule is announced at
//! least [`Control::NOTICE`] before it begins, so a worker that looks at it that often is never late.
//! All times of a run are nanoseconds of `CLOCK_MONOTONIC` since [`Control`] was made, on every thread.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::{self, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};

use mqttlab_run::Schedule;
use mqttlab_system::priority::Priority;
use mqttlab_units::{Duration, Instant};
use rustls::ClientConfig;

use crate::by_hand::HandEvents;
use crate::clients::delivery_sample::DeliverySample;
use crate::clock::Clock;
use crate::contact::ContactCounters;
use crate::histogram::{AtomicHistogram, HistogramSnapshot};
use crate::network::radio_sleep::SleepNotifier;
use crate::network::silent_sockets::SilentSockets;
use crate::parts::client_share::{ClientShare, ClientsStatus};
use crate::reception::ReceptionCounters;

/// Makes sockets that live in a host's namespace and carry its TCP knobs.
pub trait SocketFactory: Send + Sync {
    /// A new non-blocking, close-on-exec TCP socket in the namespace of `host` (an index into the plan's hosts), of the
    /// family of `server`'s address (an index into the plan's servers), not yet connected. Congestion control, buffers, MSS and timers are set; TCP_NODELAY belongs to the group
    /// and is left to the caller.
    ///
    /// # Errors
    /// What the kernel said: mostly too many open files.
    fn socket(&self, host: usize, server: usize) -> io::Result<OwnedFd>;

    /// A new non-blocking, close-on-exec UDP socket, as [`SocketFactory::socket`] makes one of TCP. It does not fragment.
    ///
    /// # Errors
    /// What the kernel said, or that there are none of them here.
    fn datagram_socket(&self, _host: usize, _server: usize) -> io::Result<OwnedFd> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Where clients of a server (an index into the plan's) connect to.
    fn server_address(&self, server: usize) -> SocketAddr;

    /// What clients of a group (an index into the plan's) open TLS with; `None`: they do not.
    fn tls(&self, _group: usize) -> Option<Arc<ClientConfig>> {
        None
    }
}

/// Shared by the conductor and all workers of one run.
pub struct Control {
    /// The run's clock.
    pub clock: Clock,
    /// How client workers are scheduled; see [`Control::enter_worker`].
    pub worker_priority: Priority,
    /// Which of the run's clients are here.
    pub share: ClientShare,
    /// Which hosts' radios sleep.
    pub radio_sleep: Arc<SleepNotifier>,
    /// Which sockets have no power.
    pub silent: Arc<SilentSockets>,
    /// Events that were fired by hand.
    pub by_hand: Arc<HandEvents>,
    schedule: OnceLock<Schedule>,
    stopped: AtomicBool,
    /// By server of the plan: until when an event had ended it, in nanoseconds of the run; 0: none has. Or [`STILL_DOWN`].
    servers_down: Vec<AtomicU64>,
    /// Live figures, which the workers keep and the conductor reads.
    pub figures: FleetFigures,
}

/// Live figures. Counters only rise, except for `connected`, `ready` and `unacknowledged`.
#[derive(Default)]
pub struct FleetFigures {
    /// Clients connected now (CONNACK read).
    pub connected: AtomicU32,
    /// Clients connected and with every subscription acknowledged, now. The run's warm-up begins when this is
    /// the number of all clients.
    pub ready: AtomicU32,
    /// Clients that gave up for good (refused, or no reconnect).
    pub failed: AtomicU32,
    /// Clients whose schedule holds messages that they have not offered yet, late ones included.
    pub publishing: AtomicI32,
    /// Messages due so far.
    pub offered: AtomicU64,
    /// Messages handed to sessions so far.
    pub sent: AtomicU64,
    /// Deliveries that the messages sent so far should cause: one for each receiving client.
    pub expected: AtomicU64,
    /// Deliveries so far, duplicates not counted.
    pub delivered: AtomicU64,
    /// Deliveries so far of what no client published: wills, and messages from elsewhere.
    pub foreign: AtomicU64,
    /// QoS 1 and 2 messages handed to sessions whose last acknowledgement is missing.
    pub unacknowledged: AtomicI64,
    /// Connections lost so far.
    pub disconnects: AtomicU64,
    /// Connections that the broker's host refused, because nothing listened.
    pub turned_away: AtomicU64,
    /// Connections that could not be opened, because the program had no descriptor left.
    pub no_descriptor: AtomicU64,
    /// Latency of every delivery, from the intended time.
    pub latency: AtomicHistogram,
    /// How late clients were with handing each message to its session, without what a burst takes by itself.
    pub sender_lateness: SenderLateness,
    /// By group of the plan.
    pub groups: Vec<GroupCounters>,
    /// By server of the plan.
    pub servers: Vec<ContactCounters>,
    /// By server of the plan: how it received clients while they connected for the first time.
    pub receptions: Vec<ReceptionCounters>,
    /// Some of the messages that were delivered since the last line.
    pub sample: DeliverySample,
}

/// How late messages were handed to their sessions. The measurement is judged by its own messages alone: others may be as late
/// as they like, and as many.
#[derive(Default)]
pub struct SenderLateness {
    warming_up: AtomicHistogram,
    measured: AtomicHistogram,
}

impl SenderLateness {
    /// Counts a message, by whether the measurement had begun when it was due.
    pub fn count(&self, is_measured: bool, late: Duration) {
        if is_measured { self.measured.count(late) } else { self.warming_up.count(late) }
    }

    /// Of the messages of the measurement.
    pub fn measured(&self) -> HistogramSnapshot {
        self.measured.snapshot()
    }

    /// Of all messages.
    pub fn all(&self) -> HistogramSnapshot {
        self.warming_up.snapshot().and(&self.measured.snapshot())
    }
}

/// An event has ended a server, and it does not listen yet.
const STILL_DOWN: u64 = u64::MAX;

/// What a group's clients have done. Counters only rise.
#[derive(Default)]
pub struct GroupCounters {
    /// Messages due so far.
    pub offered: AtomicU64,
    /// Of these, messages that no session took.
    pub unsent: AtomicU64,
    /// Deliveries so far, duplicates not counted.
    pub delivered: AtomicU64,
}

impl FleetFigures {
    /// What these figures say now.
    pub(crate) fn clients_status(&self) -> ClientsStatus {
        let ready = self.ready.load(Relaxed);
        let groups = self.groups.iter().map(|group| {
            // What is not sent was offered before: in this order nothing is taken from too little.
            let unsent = group.unsent.load(Relaxed);
            [group.offered.load(Relaxed), unsent, group.delivered.load(Relaxed)]
        });
        // What is still to be published is read before what it causes: who sees nothing to publish sees all of that.
        let publishing = self.publishing.load(Relaxed).into();
        ClientsStatus {
            connected: self.connected.load(Relaxed),
            ready,
            gathered: ready + self.failed.load(Relaxed),
            publishing,
            offered: self.offered.load(Relaxed),
            sent: self.sent.load(Relaxed),
            expected: self.expected.load(Relaxed),
            delivered: self.delivered.load(Relaxed),
            unacknowledged: self.unacknowledged.load(Relaxed),
            disconnects: self.disconnects.load(Relaxed),
            groups: groups.collect(),
        }
    }
}

impl Control {
    /// How long before its beginning a schedule is announced, at least.
    pub const NOTICE: Duration = Duration::from_ms(100);

    /// For a run whose clock is `clock`, and so many groups.
    pub fn new(clock: Clock, worker_priority: Priority, groups: usize) -> Self {
        let groups = std::iter::repeat_with(GroupCounters::default).take(groups).collect();
        Control {
            clock,
            worker_priority,
            share: ClientShare::default(),
            radio_sleep: Arc::default(),
            silent: Arc::default(),
            by_hand: Arc::default(),
            schedule: OnceLock::new(),
            stopped: AtomicBool::new(false),
            servers_down: Vec::new(),
            figures: FleetFigures { groups, ..FleetFigures::default() },
        }
    }

    /// The same with a part of the clients.
    #[must_use]
    pub fn with_share(self, share: ClientShare) -> Self {
        Control { share, ..self }
    }

    /// The same with so many servers.
    #[must_use]
    pub fn with_servers(mut self, servers: usize) -> Self {
        self.figures.servers = std::iter::repeat_with(ContactCounters::default).take(servers).collect();
        self.figures.receptions = std::iter::repeat_with(ReceptionCounters::default).take(servers).collect();
        self.servers_down = std::iter::repeat_with(AtomicU64::default).take(servers).collect();
        self
    }

    /// The same with radios that may sleep.
    #[must_use]
    pub fn with_radio_sleep(self, radio_sleep: SleepNotifier) -> Self {
        Control { radio_sleep: Arc::new(radio_sleep), ..self }
    }

    /// An event has ended a server, or it listens again.
    pub(crate) fn set_server_down(&self, server: usize, is_down: bool) {
        if let Some(until_ns) = self.servers_down.get(server) {
            let now_ns = self.now().as_ns();
            until_ns.store(if is_down { STILL_DOWN } else { now_ns }, Ordering::Release);
        }
    }

    /// Whether an event has ended a server, so that its host may have refused a connection that was begun at this instant: the
    /// answer may come when the server listens again.
    pub(crate) fn was_server_down(&self, server: usize, since: Instant) -> bool {
        self.servers_down.get(server).is_some_and(|until_ns| {
            let until_ns = until_ns.load(Ordering::Acquire);
            until_ns > 0 && until_ns >= since.as_ns()
        })
    }

    /// Now, in run time.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// To be called once by every client worker at the start of its thread: timer slack, real-time priority
    /// where the run has it.
    pub fn enter_worker(&self) {
        // What could not be had was found out, and recorded as a warning, before the first worker started.
        let _ = self.worker_priority.apply();
    }

    /// Announces when to publish. Once.
    ///
    /// # Panics
    /// When it is announced twice.
    pub fn announce(&self, schedule: Schedule) {
        assert!(self.schedule.set(schedule).is_ok(), "a run has one schedule");
    }

    /// When to publish, once that is known.
    pub fn schedule(&self) -> Option<Schedule> {
        self.schedule.get().copied()
    }

    /// Asks all workers to disconnect their clients (DISCONNECT, then close) and to end, within
    /// [`Control::FAREWELL`].
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    /// How long workers may take to say goodbye after [`Control::stop`].
    pub const FAREWELL: Duration = mqttlab_run::FAREWELL;

    /// Whether workers shall disconnect and end. To be looked at as often as [`Control::NOTICE`].
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Whether everything that was due has been offered, and every delivery that it caused and every acknowledgement
    /// have arrived.
    pub fn is_settled(&self) -> bool {
        self.figures.clients_status().is_settled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_began_while_a_server_was_down_may_be_refused_later() {
        let control = Control::new(Clock::start(), Priority::Normal, 0).with_servers(2);
        let before = control.now();
        assert!(!control.was_server_down(0, before));
        control.set_server_down(0, true);
        assert!(control.was_server_down(0, before) && !control.was_server_down(1, before));
        control.set_server_down(0, false);
        let after = control.now() + Duration::from_ns(1);
        assert!(control.was_server_down(0, before) && !control.was_server_down(0, after));
    }

    #[test]
    fn a_run_is_settled_when_deliveries_and_acknowledgements_are_in() {
        let control = Control::new(Clock::start(), Priority::Normal, 0);
        assert!(control.is_settled());
        control.figures.expected.fetch_add(2, Ordering::Relaxed);
        control.figures.delivered.fetch_add(1, Ordering::Relaxed);
        assert!(!control.is_settled());
        control.figures.delivered.fetch_add(1, Ordering::Relaxed);
        control.figures.unacknowledged.fetch_add(1, Ordering::Relaxed);
        assert!(!control.is_settled());
        control.figures.unacknowledged.fetch_sub(1, Ordering::Relaxed);
        assert!(control.is_settled());
    }
}
