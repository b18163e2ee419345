//! The integration tests of plans, as one program.

mod check;
