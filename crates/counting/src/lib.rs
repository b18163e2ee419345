//! The system's allocator, with a count of what is asked of it: for the tests that say what a message costs.
//!
//! A test makes it its own by `#[global_allocator] static ALLOCATOR: Counting = Counting;` and reads the counters
//! before and after what it measures. Tests of one program run beside each other, so what one of them does is counted by
//! thread ([`calls`], [`asked`], [`held`], [`peak`]); what a program's own threads do together is counted over all of them
//! ([`calls_of_all_threads`]), and then the program may have no other test.
//!
//! `realloc` is the default of [`GlobalAlloc`], a new allocation and a copy: growing is one call, as it is with the
//! system's own.

#![allow(unsafe_code, reason = "an allocator is")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// The system's allocator that counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static CALLS_HERE: Cell<u64> = const { Cell::new(0) };
    static ASKED_HERE: Cell<u64> = const { Cell::new(0) };
    static HELD: Cell<i64> = const { Cell::new(0) };
    static MOST: Cell<i64> = const { Cell::new(0) };
}

// SAFETY: every call goes to `System` unchanged; the counters are plain cells and an atomic, which allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        CALLS_HERE.set(CALLS_HERE.get() + 1);
        ASKED_HERE.set(ASKED_HERE.get() + layout.size() as u64);
        let held = HELD.get() + layout.size() as i64;
        HELD.set(held);
        MOST.set(MOST.get().max(held));
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size() as i64);
        // SAFETY: as above; `place` came from `System`.
        unsafe { System.dealloc(place, layout) }
    }
}

/// How often this thread has asked for memory.
#[must_use]
pub fn calls() -> u64 {
    CALLS_HERE.get()
}

/// How much this thread has asked for in all, in bytes: what it gave back is in it.
#[must_use]
pub fn asked() -> u64 {
    ASKED_HERE.get()
}

/// How often all threads have asked for memory.
#[must_use]
pub fn calls_of_all_threads() -> u64 {
    CALLS.load(Ordering::Relaxed)
}

/// What this thread has asked for and not given back, in bytes; negative where it gave back what others had asked for.
#[must_use]
pub fn held() -> i64 {
    HELD.get()
}

/// The most that this thread held at once while `work` was done, beyond what it held before, in bytes.
pub fn peak(work: impl FnOnce()) -> i64 {
    let before = held();
    MOST.set(before);
    work();
    MOST.get() - before
}
