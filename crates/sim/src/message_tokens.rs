//! Which message it is: publisher and sequence in one number.

use crate::ids::ClientId;

/// The number of a publisher's message.
pub(crate) const fn token(publisher: ClientId, sequence: u32) -> u64 {
    (publisher.0 as u64) << 32 | sequence as u64
}

/// The number of a client's last will.
pub(crate) const fn will(client: ClientId) -> u64 {
    WILL | client.0 as u64
}

/// Publisher and sequence; `None` of a will, which is not counted.
pub(crate) fn origin(message: u64) -> Option<(ClientId, u32)> {
    (message & WILL == 0).then_some((ClientId((message >> 32) as u32), message as u32))
}

/// The client whose message or will it is.
pub(crate) const fn owner(message: u64) -> ClientId {
    ClientId(if message & WILL == 0 { (message >> 32) as u32 } else { message as u32 })
}

const WILL: u64 = 1 << 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_its_publisher_and_a_will_its_client_alone() {
        let (publisher, sequence) = (ClientId(u32::MAX >> 1), u32::MAX);
        let message = token(publisher, sequence);
        assert_eq!((origin(message), owner(message)), (Some((publisher, sequence)), publisher));
        assert_eq!((origin(will(publisher)), owner(will(publisher))), (None, publisher));
    }
}
