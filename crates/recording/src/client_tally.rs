//! What the messages of a run say about each client, in numbers.

use serde::{Deserialize, Serialize};

/// What the messages say about a client.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ClientTally {
    pub sent: u64,
    pub unsent: u64,
    pub acknowledged: u64,
    pub acknowledged_ns: u128,
    pub delivered: u64,
    pub lost: u64,
    pub under_way: u64,
    pub unknown: u64,
    pub duplicates: u64,
    pub out_of_order: u64,
    pub late: u64,
    pub foreign: u64,
}
