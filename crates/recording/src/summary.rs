//! What a finished recording holds, in numbers: for `run.json`, and for whoever finished it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::footer::FileSize;

/// What was written.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Where it is.
    pub dir: PathBuf,
    /// How large each file is, by name.
    pub files: BTreeMap<String, FileSize>,
    /// Rows of `messages` by fate.
    pub messages: Fates,
    /// Which messages `messages` has, where it has a sample: `1 in 64`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampled: Option<String>,
    /// What passed each link.
    pub links: Vec<LinkTally>,
}

/// Rows by fate.
pub(crate) type Fates = BTreeMap<&'static str, u64>;

/// What passed one link in one direction, over the whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkTally {
    /// The link's name.
    pub link: String,
    /// `up` or `down`.
    pub direction: &'static str,
    /// Frames that came to its queue.
    pub frames: u64,
    /// Their sizes.
    pub bytes: u64,
    /// Frames that arrived as they were sent.
    pub delivered: u64,
    /// Their sizes.
    pub delivered_bytes: u64,
    /// Frames that arrived damaged.
    pub corrupted: u64,
    /// Copies that the link made.
    pub duplicated: u64,
    /// Frames that did not arrive, by cause.
    pub dropped: BTreeMap<&'static str, u64>,
}
