//! Conversations in packetdrill's style: a script of what the network and the application do, and the transcript
//! of what the endpoint does. One file for each RFC; a test's name begins with the section it shows.
//!
//! A line is `+ms command`, the time since the line before. Commands: `open`, `listen`, `write n`, `read n`,
//! `shutdown`, `close`, `abort`, `wait` (nothing but timers), `nodelay`, and `< segment` for one that arrives,
//! written as [`mqttlab_tcp::Segment`] prints. In transcripts `>` is a segment sent, `!` an event.

mod linux;
mod observation;
mod reordering;
mod rfc1122;
mod rfc1337;
mod rfc2018;
mod rfc3042;
mod rfc3168;
mod rfc3522;
mod rfc3708;
mod rfc5681;
mod rfc5682;
mod rfc6298;
mod rfc6582;
mod rfc6675;
mod rfc6928;
mod rfc6937;
mod rfc7323;
mod rfc896;
mod rfc8985;
mod rfc9293;
mod rfc9438;
mod script;
mod timeout;
