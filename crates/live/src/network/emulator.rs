//! The emulator: moves frames between ports in real time, as the wire says.
//!
//! One thread, because a frame costs 2 to 4 µs when they come in batches and nearly all of the rest is waking up;
//! a second one would add a wake-up. It sleeps until a frame comes or one is due, stamps each
//! frame when it is read, and drains the ports before it sleeps again.
//!
//! Waking from a timer takes the kernel 20 to 80 µs, depending on how deeply the processor sleeps, so the emulator
//! learns how long and sets its timer that much earlier; what is left it spends asking for frames. It never spins
//! for longer than that, since a spinning thread is late as soon as something else wants its processor.
//!
//! How late it hands a frame over, against the time that the links worked out, is counted for every frame.
//! What it does not know: how long a frame waited in its port before it was read.

use std::io;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use mqttlab_net::radio::StationReport;
use mqttlab_recording::{Frame, Sink};
use mqttlab_system::poller::{Interest, Poller, Waker};
use mqttlab_system::priority::Priority;
use mqttlab_units::{Duration, Instant};

use crate::by_hand::HandEvents;
use crate::clock::Clock;
use crate::due_list::DueList;
use crate::network::by_hand::LinksByHand;
use crate::network::link_traffic::TrafficRequest;
use crate::network::port::Port;
use crate::network::radio_sleep::SleepNotifier;
use crate::network::silent_sockets::SilentSockets;
use crate::network::wire::{EmulatedWire, FrameDelivery, FrameRecorder};
use crate::network::wiring::{Change, Wiring};
use crate::verdict::path_lateness::PathLatenessCounters;
use crate::verdict::thread_delays;

/// What an emulator works with.
pub struct EmulatorSetting {
    /// Each host's port.
    pub ports: Vec<Port>,
    /// What lies between them.
    pub wiring: Wiring,
    /// How long it takes to hand a frame over; deliveries are begun this much earlier.
    pub compensation: Duration,
    /// The run's clock.
    pub clock: Clock,
    /// Which hosts' radios sleep.
    pub radio_sleep: Arc<SleepNotifier>,
    /// Which sockets have no power.
    pub silent: Arc<SilentSockets>,
    /// Events that were fired by hand.
    pub by_hand: Arc<HandEvents>,
    /// How its thread is scheduled.
    pub priority: Priority,
    /// Where frames are written down; `None` for nowhere.
    pub sink: Option<Sink>,
}

impl EmulatorSetting {
    /// Of a network that is only measured: nothing of it is written down, and no radio sleeps.
    pub(crate) fn unrecorded(
        ports: Vec<Port>,
        wiring: Wiring,
        compensation: Duration,
        clock: Clock,
        priority: Priority,
    ) -> EmulatorSetting {
        EmulatorSetting {
            ports,
            wiring,
            compensation,
            clock,
            radio_sleep: Arc::default(),
            silent: Arc::default(),
            by_hand: Arc::default(),
            priority,
            sink: None,
        }
    }
}

/// A running emulator.
pub struct Emulator {
    shared: Arc<EmulatorCounters>,
    waker: Waker,
    thread: JoinHandle<io::Result<Stopped>>,
}

/// What is left of an emulator.
pub struct Stopped {
    /// Each host's port.
    pub ports: Vec<Port>,
    /// What each radio has done.
    pub stations: Vec<StationReport>,
}

/// What the emulator counts.
#[derive(Default)]
pub struct EmulatorCounters {
    /// How late frames were handed over, against the time that they were due.
    pub lateness: PathLatenessCounters,
    /// Frames that a host sent.
    pub arrived: AtomicU64,
    /// Frames that were handed over.
    pub delivered: AtomicU64,
    /// Frames that the receiving host did not take.
    pub refused: AtomicU64,
    /// Frames to an address that no path leads to.
    pub unrouted: AtomicU64,
    /// When publishing begins, once that is known: changes of links count from then.
    pub publish_from: OnceLock<Instant>,
    /// What links have carried, for whoever asks.
    pub traffic: TrafficRequest,
    /// What held it up.
    pub held_up: thread_delays::DelayCounters,
    /// The emulator's thread, for its processor time; 0 until it runs.
    pub thread: AtomicI32,
}

impl Emulator {
    /// Starts it.
    ///
    /// # Errors
    /// Too many open files or threads.
    pub fn start(setting: EmulatorSetting) -> io::Result<Emulator> {
        let lateness = PathLatenessCounters::of(&setting.wiring);
        let shared = Arc::new(EmulatorCounters { lateness, ..EmulatorCounters::default() });
        let waker = Waker::new()?;
        let poller = Poller::new(PORTS)?;
        for (number, port) in setting.ports.iter().enumerate() {
            poller.add(port, number as u64, Interest::Reading)?;
        }
        poller.add(&waker, WAKER, Interest::Reading)?;
        let mut driver = Driver::new(setting, Arc::clone(&shared), poller);
        let thread = thread::Builder::new().name("emulator".into()).spawn(move || {
            driver.shared.thread.store(mqttlab_system::process::thread(), Relaxed);
            let _ = driver.priority.apply();
            driver.run().map(|()| driver.end())
        })?;
        Ok(Emulator { shared, waker, thread })
    }

    /// What it counts.
    pub fn shared(&self) -> &Arc<EmulatorCounters> {
        &self.shared
    }

    /// Whether it has ended by itself, which is a fault.
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Stops it. Frames under way are gone.
    ///
    /// # Errors
    /// The error that it ended with.
    ///
    /// # Panics
    /// When its thread did.
    pub fn stop(self) -> io::Result<Stopped> {
        self.waker.wake();
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

struct Driver {
    ports: Vec<Port>,
    wire: EmulatedWire,
    /// How links change.
    changes: DueList<Change>,
    by_hand: LinksByHand,
    /// Whether it is known when publishing begins.
    has_begun: bool,
    clock: Clock,
    radio_sleep: Arc<SleepNotifier>,
    silent: Arc<SilentSockets>,
    priority: Priority,
    poller: Poller,
    shared: Arc<EmulatorCounters>,
    recorder: OptionalSink,
    buffer: Box<[u8]>,
    /// How much earlier than needed the timer is set.
    margin: Duration,
    observer: thread_delays::DelayObserver,
}

/// The sink, if there is one.
struct OptionalSink(Option<Sink>);

impl OptionalSink {
    /// How long was waited for it.
    fn waited(&self) -> std::time::Duration {
        self.0.as_ref().map(Sink::waited).unwrap_or_default()
    }
}

impl FrameRecorder for OptionalSink {
    fn frame(&mut self, frame: &Frame, bytes: &[u8]) {
        if let Some(sink) = &mut self.0 {
            sink.frame(frame, bytes);
        }
    }
}

impl Driver {
    fn new(setting: EmulatorSetting, shared: Arc<EmulatorCounters>, poller: Poller) -> Driver {
        let changes = setting.wiring.changes.iter().map(|change| (change.at, change.change.clone()));
        Driver {
            changes: DueList::new(changes),
            by_hand: LinksByHand::new(&setting.wiring, setting.by_hand),
            has_begun: false,
            wire: EmulatedWire::new(setting.wiring, setting.compensation),
            ports: setting.ports,
            clock: setting.clock,
            radio_sleep: setting.radio_sleep,
            silent: setting.silent,
            priority: setting.priority,
            poller,
            shared,
            recorder: OptionalSink(setting.sink),
            buffer: vec![0; FRAME_BYTES_MAX].into(),
            margin: Duration::ZERO,
            observer: thread_delays::DelayObserver::of_this_thread(),
        }
    }

    fn run(&mut self) -> io::Result<()> {
        self.observer = thread_delays::DelayObserver::of_this_thread();
        let mut ready = Vec::with_capacity(self.ports.len() + 1);
        loop {
            self.deliver(self.clock.now());
            let now = self.clock.now();
            self.observer.in_time(now, self.recorder.waited());
            let timeout = self.time_to_sleep(now);
            self.shared.traffic.answer(now, timeout, || self.wire.traffic(now));
            ready.clear();
            let count = self.poller.wait(Some(timeout))?;
            ready.extend((0..count).map(|index| self.poller.ready(index).number));
            if ready.is_empty() && !timeout.is_zero() {
                self.adjust_margin(self.clock.now().since(now).saturating_sub(timeout));
            }
            if ready.contains(&WAKER) {
                self.shared.unrouted.store(self.wire.unrouted(), Relaxed);
                return Ok(());
            }
            for port in &ready {
                self.drain(*port as usize)?;
            }
            if let Some(sink) = &mut self.recorder.0 {
                sink.tick();
            }
        }
    }

    fn end(self) -> Stopped {
        Stopped { stations: self.wire.stations(self.clock.now()), ports: self.ports }
    }

    fn time_to_sleep(&self, now: Instant) -> Duration {
        let next = [self.wire.next_deadline(), self.next_change(), self.by_hand.next_at()];
        let next = next.into_iter().flatten().min();
        let next = next.map(|due| due.checked_since(now).unwrap_or(Duration::ZERO));
        next.map_or(IDLE, |length| length.saturating_sub(self.margin)).min(IDLE)
    }

    /// The timer woke us this late. A moving average, and a little more, so that most wakes are in time.
    fn adjust_margin(&mut self, late: Duration) {
        let ns = (self.margin.as_ns() * 7 + late.as_ns() * 5 / 4) / 8;
        self.margin = Duration::from_ns(ns).min(MARGIN_MAX);
    }

    /// Reads what a host has sent, a bounded number of frames, so that one host cannot starve the others.
    fn drain(&mut self, from: usize) -> io::Result<()> {
        for _ in 0..BATCH {
            let Some(length) = self.ports[from].read(&mut self.buffer)? else { return Ok(()) };
            if self.silent.have_sent(from, &self.buffer[..length]) {
                continue;
            }
            self.shared.arrived.fetch_add(1, Relaxed);
            let now = self.clock.now();
            // What is due before this frame comes to the links before it.
            self.deliver(now);
            self.wire.arrive(now, from, &self.buffer[..length]);
        }
        Ok(())
    }

    fn deliver(&mut self, until: Instant) {
        for change in self.radio_sleep.drain() {
            self.wire.set_asleep(change.at, change.host, change.asleep);
        }
        if !self.has_begun
            && let Some(at) = self.publish_from()
        {
            self.has_begun = true;
            self.wire.begin_traces(at);
        }
        self.by_hand.look();
        // Each at its time, however late this is: what happens before it comes first.
        while let Some(at) = self.next_change().into_iter().chain(self.by_hand.next_at()).min()
            && at <= until
        {
            self.hand_over(at);
            self.by_hand.perform(&mut self.wire, at);
            if let Some(change) = self.changes.take_due(self.publish_from(), at) {
                self.wire.change(at, change);
            }
        }
        self.hand_over(until);
    }

    fn next_change(&self) -> Option<Instant> {
        self.changes.next_at(self.publish_from())
    }

    fn publish_from(&self) -> Option<Instant> {
        self.shared.publish_from.get().copied()
    }

    fn hand_over(&mut self, until: Instant) {
        while let Some(delivery) = self.wire.poll(until, &mut self.recorder) {
            let now = self.clock.now();
            self.shared.lateness.count(self.changes.taken(), delivery.path, now.since(delivery.due));
            self.observer.done(delivery.due, now, self.recorder.waited(), &self.shared.held_up);
            let FrameDelivery { host, bytes, .. } = delivery;
            if self.silent.are_sent(host, &bytes) {
                self.wire.recycle(bytes);
                continue;
            }
            // The receiver's TCP runs inside this call.
            let counter = match self.ports[host].write(&bytes) {
                Ok(()) => &self.shared.delivered,
                Err(_) => &self.shared.refused,
            };
            counter.fetch_add(1, Relaxed);
            self.wire.recycle(bytes);
        }
    }
}

/// The largest IPv4 packet.
const FRAME_BYTES_MAX: usize = 65_536;
const BATCH: usize = 64;
/// So many ports are read before the next delivery.
const PORTS: usize = 256;
/// The recorder wants to hear from every sink ten times a second.
const IDLE: Duration = Duration::from_ms(50);
const MARGIN_MAX: Duration = Duration::from_us(120);
const WAKER: u64 = u64::MAX;
