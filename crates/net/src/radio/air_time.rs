//! What radios do with their time.

use mqttlab_units::Duration;

/// How long a radio was in each state, and how often it began to do something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AirTime {
    /// Sending.
    pub transmit: Duration,
    /// Receiving, or sensing a busy medium.
    pub receive: Duration,
    /// Listening to silence.
    pub idle: Duration,
    /// Off ([`Medium::rest`](super::Medium::rest)).
    pub sleep: Duration,
    /// Times that it went from listening to silence over to sending or receiving.
    pub wake_ups: u64,
}
