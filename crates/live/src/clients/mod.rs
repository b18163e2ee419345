//! The clients of a run: publishers, subscribers and relays, thousands on a thread.
//!
//! ```text
//!               schedule, stop            turn                        rows
//!   conductor ─────────────────► worker ◄──────► client (crates/client) ────► recorder
//!             ◄─────────────────   │              └─ connection: outbox ─► socket in the host's namespace ─► broker
//!                  figures         └─ poller, timers, one buffer to read into
//! ```
//!
//! What a client does, and when, is `crates/client`'s. Here are its surroundings (`turn`), its transport (`writing`,
//! `reading`: bytes, system calls) and the threads that give it turns.
//!
//! Open loop: the schedule says when each message is intended, whatever became of those before it, and latency
//! counts from there. How late a message was handed to its session is counted, too. What the session does not
//! take (no connection at QoS 0, too many waiting) is recorded as unsent.
//!
//! Times: a message is sent when it is handed to its session, written when the socket has taken its last byte,
//! received when the read returned that brought its last byte. All messages of one read share that instant.
//! When every publisher of a plan is back-to-back, workers look at their sockets less often; see `poll_pause`.
//!
//! A relay repeats what it receives under another topic and leaves the identity in the payload, so that the
//! subscriber of the copy measures the whole way from the first publisher's intended time.
//!
//! What it does not model: the processing time of an application. Connections to one broker port from one address
//! are limited by the kernel's ephemeral ports (28 232 by default, more in the engine's namespaces).

mod buffers;
mod connection;
mod context;
mod datagrams;
pub(crate) mod delivery_sample;
mod figure_changes;
mod frames;
mod layers;
mod message_order;
mod outbox;
mod own_packets;
mod packet_stream;
mod planned;
mod poll_pause;
mod reading;
mod reading_datagrams;
mod reading_layers;
mod timers;
mod tls_stream;
mod turn;
mod worker;
mod writing;

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use mqttlab_plan::Plan;
use mqttlab_recording::Recorder;

use crate::control::{Control, SocketFactory};
use crate::directory::Directory;
use connection::ClientConnection;
use context::FleetContext;
pub(crate) use message_order::ambiguous_topics;
use mqttlab_client::protocol::AnySession;
pub use own_packets::UnrecordedConnections;
use worker::Worker;

type Client = mqttlab_client::Client<AnySession, ClientConnection>;

/// All clients of a run, at work.
pub struct Fleet {
    workers: Vec<JoinHandle<io::Result<()>>>,
}

impl Fleet {
    /// Starts the plan's workers. Clients begin to connect at once, publish when `control` announces the schedule,
    /// and leave when it says stop. Of packets on connections that are `unrecorded` they record what they know.
    ///
    /// # Errors
    /// A payload's file cannot be read, or the kernel has no more threads or descriptors.
    pub fn start(
        plan: Arc<Plan>,
        sockets: Arc<dyn SocketFactory>,
        directory: Arc<Directory>,
        recorder: &Recorder,
        control: Arc<Control>,
        unrecorded: UnrecordedConnections,
    ) -> io::Result<Fleet> {
        let count = plan.live.workers.max(1);
        let shared = Arc::new(FleetContext::new(plan, sockets, directory, control, unrecorded)?);
        let mut workers = Vec::new();
        for which in 0..count {
            let worker = Worker::new(Arc::clone(&shared), recorder.sink(), which, count)?;
            let thread = std::thread::Builder::new().name(format!("clients {which}"));
            workers.push(thread.spawn(move || worker.run())?);
        }
        Ok(Fleet { workers })
    }

    /// Waits until every client has left, after [`Control::stop`].
    ///
    /// # Errors
    /// The first error that ended a worker.
    ///
    /// # Panics
    /// When a worker has panicked.
    pub fn join(self) -> io::Result<()> {
        let ended: Vec<_> =
            self.workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect();
        ended.into_iter().collect()
    }
}
