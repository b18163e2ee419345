//! What the file of every table has in common: its name while it is written, and what its footer says of it.

use std::path::{Path, PathBuf};

use parquet::file::metadata::KeyValue;

use crate::schema::SCHEMA_VERSION;

/// How large a finished file is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct FileSize {
    /// Rows in it.
    pub rows: u64,
    /// Its size on the disk.
    pub bytes: u64,
}

/// The name of a table that is being written.
pub(crate) fn temporary(path: &Path) -> PathBuf {
    path.with_extension("parquet.tmp")
}

/// What the footer of every table says about the schema.
pub(crate) fn schema_version() -> KeyValue {
    KeyValue::new("mqttlab.schema_version".into(), SCHEMA_VERSION.to_string())
}

/// The program that wrote it.
pub(crate) const CREATED_BY: &str = concat!("mqttlab ", env!("CARGO_PKG_VERSION"));
