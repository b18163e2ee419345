//! Which message it is: publisher, the number of its content, and sequence in one number.
//!
//! ```text
//! 63    62     61 ... 54     53 ... 32   31 ... 0
//! will  copy   content       publisher   sequence
//! ```
//!
//! A copy is what a relay makes of a message: topic and payload.
//!
//! A plan has at most 1,000,000 clients of 256 contents: publications, and what events make of them.

use crate::ids::ClientId;

/// The number of a publisher's message.
pub(crate) const fn token(publisher: ClientId, content: u8, sequence: u32) -> u64 {
    (content as u64) << CONTENT_BIT | (publisher.0 as u64) << 32 | sequence as u64
}

/// The number of a client's last will.
pub(crate) const fn will(client: ClientId) -> u64 {
    WILL | client.0 as u64
}

/// The number of a copy that a relay makes of a message.
pub(crate) const fn copy(message: u64) -> u64 {
    message | COPY
}

/// Whether a relay has made it.
pub(crate) const fn is_copy(message: u64) -> bool {
    message & (WILL | COPY) == COPY
}

/// Publisher and sequence; `None` of a will, which is not counted.
pub(crate) fn origin(message: u64) -> Option<(ClientId, u32)> {
    (message & WILL == 0).then_some((owner(message), message as u32))
}

/// The client whose message or will it is.
pub(crate) const fn owner(message: u64) -> ClientId {
    ClientId(if message & WILL == 0 { (message >> 32) as u32 & PUBLISHER } else { message as u32 })
}

/// The number of its content: its publication, or what an event makes of that; 0 of a will.
pub(crate) const fn content(message: u64) -> u8 {
    (message >> CONTENT_BIT & 0xff) as u8
}

const WILL: u64 = 1 << 63;
const COPY: u64 = 1 << 62;
const CONTENT_BIT: u32 = 54;
const PUBLISHER: u32 = (1 << (CONTENT_BIT - 32)) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_its_publisher_and_a_will_its_client_alone() {
        let (publisher, sequence) = (ClientId(PUBLISHER), u32::MAX);
        let message = token(publisher, 255, sequence);
        assert_eq!(content(message), 255);
        assert_eq!((is_copy(message), is_copy(copy(message))), (false, true));
        assert_eq!((origin(copy(message)), content(copy(message))), (origin(message), 255));
        assert_eq!((origin(message), owner(message)), (Some((publisher, sequence)), publisher));
        assert_eq!((origin(will(publisher)), owner(will(publisher))), (None, publisher));
    }
}
