//! Queues that hold one thing or none nearly all the time, of which a simulation has tens of thousands.

use std::collections::VecDeque;

/// Appends, and makes room for no more than one at first; a queue that has grown keeps its room.
pub(crate) fn push<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.capacity() == 0 {
        queue.reserve_exact(1);
    }
    queue.push_back(item);
}
