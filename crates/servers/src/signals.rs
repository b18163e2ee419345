//! The end of a server: a signal.

use std::sync::atomic::{AtomicBool, Ordering};

static STOPPED: AtomicBool = AtomicBool::new(false);

/// Lets SIGTERM and SIGINT end the server's loop.
pub(crate) fn watch() {
    // SAFETY: the handler does nothing but store to an atomic.
    unsafe {
        for signal in [libc::SIGTERM, libc::SIGINT] {
            libc::signal(signal, stop as extern "C" fn(libc::c_int) as libc::sighandler_t);
        }
    }
}

/// Whether one of them has come.
pub(crate) fn has_come() -> bool {
    STOPPED.load(Ordering::Relaxed)
}

extern "C" fn stop(_: libc::c_int) {
    STOPPED.store(true, Ordering::Relaxed);
}
