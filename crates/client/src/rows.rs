//! Where rows for the recording go.

use mqttlab_rows::{Acknowledged, Dropped, EventKind, Received, Sent, Unsent};
use mqttlab_units::Duration;

use crate::facts::ClientNumber;

/// Where rows for the recording go.
pub trait Rows {
    /// A message was handed to its session. A later row of the same message replaces it.
    fn sent(&mut self, row: &Sent);
    /// The last acknowledgement of a message came.
    fn acknowledged(&mut self, row: &Acknowledged);
    /// A message was due, and its session did not take it.
    fn unsent(&mut self, row: &Unsent);
    /// A message will not reach its receivers, as the other side says.
    fn dropped(&mut self, row: &Dropped);
    /// A message was delivered.
    fn received(&mut self, row: &Received);
    /// Something happened to a client.
    fn event(&mut self, kind: EventKind, client: ClientNumber, took: Option<Duration>, detail: &str);
}
