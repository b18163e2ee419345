//! A binary search that begins where the last one ended.

use std::cell::Cell;

/// Where something was found last: the next is looked for near it, because packets are asked for in the order of time.
#[derive(Default)]
pub(crate) struct SearchHint(Cell<usize>);

impl SearchHint {
    /// The same as [`slice::partition_point`].
    pub(crate) fn partition_point<T>(&self, all: &[T], is_before: impl Fn(&T) -> bool) -> usize {
        let near = self.0.get().min(all.len());
        let (mut from, mut to, mut step) = (near, near, 1);
        if near < all.len() && is_before(&all[near]) {
            while to < all.len() && is_before(&all[to]) {
                from = to + 1;
                to = (to + step).min(all.len());
                step *= 2;
            }
        } else {
            while from > 0 && !is_before(&all[from - 1]) {
                to = from - 1;
                from = from.saturating_sub(step);
                step *= 2;
            }
        }
        let found = from + all[from..to].partition_point(is_before);
        self.0.set(found);
        found
    }
}
