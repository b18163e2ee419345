//! Buffers of a worker that are used again and again.

use super::outbox::SocketOutbox;

/// What packets are made in before they are sealed. One for each worker.
#[derive(Default)]
pub(super) struct WorkerBuffers {
    pub(super) message: SocketOutbox,
    pub(super) bytes: Vec<u8>,
    /// What was read, opened.
    pub(super) plain: Vec<u8>,
}
