//! The integration tests of a client's life, as one program.

mod datagrams;
mod life;
mod world;
