//! A sample of the messages that are delivered, for whoever watches: the first few between two progress lines.
//!
//! A worker looks at one flag for each delivery, and never waits: where another is writing, its message is passed over.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use mqttlab_run::{MESSAGES_MAX, MessageFigures};

/// What workers put messages into, and the conductor takes them out of.
#[derive(Default)]
pub struct DeliverySample {
    is_full: AtomicBool,
    messages: Mutex<Vec<MessageFigures>>,
}

impl DeliverySample {
    /// Takes a message, where there is room and nobody else is here.
    pub fn offer(&self, message: impl FnOnce() -> MessageFigures) {
        if self.is_full.load(Relaxed) {
            return;
        }
        if let Ok(mut messages) = self.messages.try_lock() {
            if messages.len() < MESSAGES_MAX {
                messages.push(message());
            }
            self.is_full.store(messages.len() >= MESSAGES_MAX, Relaxed);
        }
    }

    /// The messages since the last time.
    pub fn drain(&self) -> Vec<MessageFigures> {
        let Ok(mut messages) = self.messages.lock() else { return Vec::new() };
        self.is_full.store(false, Relaxed);
        std::mem::take(&mut *messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_few_are_kept_and_then_as_many_again() {
        let sample = DeliverySample::default();
        let offer = |numbers: std::ops::Range<u64>| {
            numbers.for_each(|at_ns| sample.offer(|| MessageFigures { at_ns, ..MessageFigures::default() }));
        };
        let taken = || sample.drain().iter().map(|message| message.at_ns).collect::<Vec<_>>();
        offer(0..100);
        assert_eq!(taken(), (0..MESSAGES_MAX as u64).collect::<Vec<_>>());
        assert!(taken().is_empty());
        offer(7..9);
        assert_eq!(taken(), [7, 8]);
    }
}
