//! What a run starts as processes of its own, each in its host's namespace: servers, and clients that are programs.
//!
//! They die with the engine, however it ends. When a server serves is in `readiness`, how it ends and starts again by events in
//! `life`, what its log tells of dropped messages in `broker_log`.

pub(crate) mod broker_log;
pub(crate) mod life;
pub(crate) mod programs;
pub(crate) mod readiness;
pub(crate) mod server;
