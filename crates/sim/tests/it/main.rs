//! The integration tests of the simulator, as one program.

mod absence;
mod conservation;
mod farewell;
mod life;
mod plans_bounded;
mod stepping;
mod support;
