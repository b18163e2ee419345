//! The integration tests of a client's life, as one program.

mod life;
mod world;
