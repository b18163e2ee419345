//! The kernel's clocks, in nanoseconds, and a sleep until a moment of one.

use mqttlab_units::Duration;
use rustix::time::{ClockId, Timespec};

/// `CLOCK_MONOTONIC`.
pub fn monotonic_ns() -> u64 {
    read(ClockId::Monotonic)
}

/// `CLOCK_REALTIME`: since 1970-01-01T00:00:00Z.
pub fn unix_ns() -> u64 {
    read(ClockId::Realtime)
}

/// The processor time of the calling thread; unlike schedstat's to the moment.
pub fn thread_processor_time() -> Duration {
    Duration::from_ns(read(ClockId::ThreadCPUTime))
}

/// The processor time of all threads of this process.
pub fn processor_time() -> Duration {
    Duration::from_ns(read(ClockId::ProcessCPUTime))
}

/// Sleeps until `CLOCK_MONOTONIC` says `until`, or until a signal.
pub fn sleep_until(until: Duration) {
    // A signal is the only error that it can have: the clock is there, and the time is a valid one.
    let _ = rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &timespec(until));
}

/// A length of time as the kernel takes it.
pub(crate) fn timespec(length: Duration) -> Timespec {
    let ns = length.as_ns();
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

fn read(clock: ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
