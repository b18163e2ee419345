//! The broker, as conversations, and against a naive one.

mod delivery;
mod expiry;
mod persistence;
mod publishing;
mod random;
mod script;
mod sessions;
mod subscribing;
