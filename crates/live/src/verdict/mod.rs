//! Whether a run's timing may be believed: what was seen of it, and what follows.
//!
//! ```text
//!   path_lateness, control_timer, thread_delays ──► lateness: the cause in words ──► validity: the verdict
//! ```

pub(crate) mod control_timer;
pub(crate) mod lateness;
pub(crate) mod path_lateness;
pub(crate) mod server_silences;
pub(crate) mod thread_delays;
pub(crate) mod validity;
