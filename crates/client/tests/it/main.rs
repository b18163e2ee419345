//! The integration tests of a client's life, as one program.

mod absence;
mod churn;
mod life;
mod subscriptions;
mod world;
