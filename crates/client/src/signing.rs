//! Who a message is, written into the payload that its plan makes.

use mqttlab_plan::{IdentityPlace, MessageNumber, PayloadMaker};
use mqttlab_rows::identity::{self, Identity};

/// Writes `identity` where the payload that `maker` has made of a message carries it. Too small a payload stays as it is: it is told apart by its order.
pub fn sign(maker: &PayloadMaker, message: MessageNumber, identity: &Identity, payload: &mut [u8]) {
    match maker.identity_place(message) {
        IdentityPlace::Start => drop(identity.write(payload)),
        IdentityPlace::Text(at) => identity.write_text(&mut payload[at..at + identity::TEXT_BYTES]),
    }
    maker.seal(message, payload);
}
