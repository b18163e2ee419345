//! The simulator: the same plan in virtual time. This room is empty as yet; the engine says so when it is asked for it.
