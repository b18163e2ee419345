//! Room that is used again and again.

use super::outbox::Outbox;

/// What packets are made in before they are sealed. One for each worker.
#[derive(Default)]
pub(super) struct Room {
    pub(super) message: Outbox,
    pub(super) bytes: Vec<u8>,
    /// What was read, opened.
    pub(super) plain: Vec<u8>,
}
