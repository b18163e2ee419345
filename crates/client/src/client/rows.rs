//! A client's own messages, in the recording.

use mqttlab_rows::Sent;

use crate::facts::{GroupFacts, Who};
use crate::schedule::DueMessage;
use crate::surroundings::Surroundings;

/// A message of a client's own, as the recording has it before it is written. `None` where the plan has none.
pub(super) fn row(
    who: Who,
    facts: &GroupFacts,
    around: &impl Surroundings,
    DueMessage { content, intended, index, sequence }: DueMessage,
) -> Option<Sent> {
    let publish = facts.publications[content];
    let message = around.message(who, content, index, sequence)?;
    let (qos, retain) = message.quality.unwrap_or((publish.qos.level(), publish.retain));
    Some(Sent {
        publisher: who.number.0,
        // The recording counts 2^32 messages of one client; at a million a second that is over an hour.
        sequence: sequence as u32,
        topic: message.topic,
        qos,
        retain,
        payload_bytes: message.payload_bytes,
        intended,
        sent: around.now(),
        written: None,
        publication: publish.publication,
    })
}
