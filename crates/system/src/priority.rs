//! How the run's threads and the broker are scheduled.
//!
//! On a busy machine the scheduler decides how late a thread wakes: a millisecond sleep overshoots by 16 µs at
//! the median and by 50 µs at the 99th percentile under SCHED_FIFO, but by 1.8 ms at the 99th percentile under
//! the normal policy. So the emulator runs first, then the clients and the broker, then everything else.
//! What it does not do: pin threads to processors, or isolate processors from interrupts.

use std::fs;
use std::io::{self, Write};
use std::num::NonZeroU64;

use rustix::mm::{MlockAllFlags, mlockall};

use crate::cgroups;

/// How the kernel schedules a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// SCHED_OTHER.
    Normal,
    /// SCHED_FIFO at this level, 1 to 99.
    RealTime(i32),
}

impl Priority {
    /// The emulator's: above all others, because a frame that is late in the emulator was late on the wire.
    pub const EMULATOR: Priority = Priority::RealTime(10);
    /// The clients' and the broker's. The same for both, so that neither starves the other.
    pub const ENDPOINT: Priority = Priority::RealTime(5);

    /// The watchdog's: above all others, for it sleeps until it is needed.
    pub const WATCHDOG: Priority = Priority::RealTime(15);

    /// Schedules the calling thread so, and takes away its timer slack (50 µs by default).
    ///
    /// # Errors
    /// Real-time priority is not permitted (CAP_SYS_NICE or RLIMIT_RTPRIO).
    pub fn apply(self) -> io::Result<()> {
        // Without it the timers of a thread of normal priority are late by the slack, and all else is the same.
        let _ = rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN));
        match self {
            Priority::Normal => Ok(()),
            Priority::RealTime(level) => set_fifo(0, level),
        }
    }

    /// Schedules a process and all threads it has now. Threads that it makes later inherit it.
    ///
    /// # Errors
    /// As [`Priority::apply`].
    pub fn apply_to_process(self, pid: i32) -> io::Result<()> {
        let Priority::RealTime(level) = self else { return Ok(()) };
        for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
            if let Ok(thread) = entry?.file_name().to_string_lossy().parse() {
                set_fifo(thread, level)?;
            }
        }
        Ok(())
    }
}

/// Keeps every processor out of sleep states that take long to leave, as long as it lives.
#[derive(Debug)]
pub struct CpuAwake {
    /// The request lasts as long as the file is open (Documentation/power/pm_qos_interface.rst).
    _request: fs::File,
}

impl CpuAwake {
    /// Asks for it.
    ///
    /// # Errors
    /// Only an administrator may, and not every kernel knows it.
    pub fn hold() -> io::Result<CpuAwake> {
        let mut request = fs::OpenOptions::new().write(true).open("/dev/cpu_dma_latency")?;
        request.write_all(&0i32.to_ne_bytes())?;
        Ok(CpuAwake { _request: request })
    }
}

/// Whether this process may have real-time priority; tried on a thread of its own.
pub fn real_time_permitted() -> io::Result<()> {
    let trial = std::thread::Builder::new().name("trial".into()).spawn(|| Priority::EMULATOR.apply())?;
    trial.join().expect("setting a priority does not panic")
}

/// What helps where it is not permitted.
pub fn real_time_remedy() -> String {
    cgroups::without_real_time().map_or("run as root, or permit it with `ulimit -r 10`".into(), |group| {
        format!("the control group {} permits none: raise its `cpu.rt_runtime_us`", group.display())
    })
}

/// Keeps all memory of the process in place, so that no page fault delays the emulator.
///
/// # Errors
/// RLIMIT_MEMLOCK is too small and the process may not exceed it.
pub fn lock_memory() -> io::Result<()> {
    // Pages are locked when first touched: locking a thread's whole untouched stack at once would need far more.
    Ok(mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT)?)
}

fn set_fifo(thread: i32, level: i32) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: level };
    // SAFETY: `parameter` outlives the call.
    let result = unsafe { libc::sched_setscheduler(thread, libc::SCHED_FIFO, &parameter) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_priority_can_always_be_had() {
        Priority::Normal.apply().unwrap();
    }
}
