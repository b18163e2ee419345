//! Connections that end, in the recording.

use mqttlab_rows::EventKind;

use crate::acceptance::Rank;
use crate::facts::ClientNumber;
use crate::surroundings::Surroundings;
use crate::transport::Loss;

/// What the recording says of a connection that ended, by what the client was and whether it was open.
pub(super) fn record_loss(
    around: &mut impl Surroundings,
    number: ClientNumber,
    loss: &Loss,
    (was, was_open): (Rank, bool),
) {
    match loss {
        Loss::Broken(how) if was > Rank::Absent => {
            around.books().disconnects += 1;
            around.event(EventKind::Disconnect, number, None, how);
        }
        // What was never accepted is no disconnect.
        Loss::Broken(how) => around.event(EventKind::Note, number, None, how),
        Loss::Refused { how, .. } => around.event(EventKind::Refused, number, None, how),
        Loss::Farewell if was_open => around.event(EventKind::Close, number, None, ""),
        Loss::Farewell => {}
    }
}
