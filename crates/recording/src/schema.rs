//! Which version of the recording's form this is.

/// The version of the schema that this program writes.
pub const SCHEMA_VERSION: u32 = 4;
