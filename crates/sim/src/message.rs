//! Who a message is: publisher and sequence in one number.

/// The number of a publisher's message.
pub(crate) const fn token(publisher: u32, sequence: u32) -> u64 {
    (publisher as u64) << 32 | sequence as u64
}

/// The number of a client's last will.
pub(crate) const fn will(client: u32) -> u64 {
    WILL | client as u64
}

/// Publisher and sequence; `None` of a will, which nobody has counted.
pub(crate) fn origin(message: u64) -> Option<(u32, u32)> {
    (message & WILL == 0).then_some(((message >> 32) as u32, message as u32))
}

/// The client whose message or will it is.
pub(crate) const fn owner(message: u64) -> u32 {
    if message & WILL == 0 { (message >> 32) as u32 } else { message as u32 }
}

const WILL: u64 = 1 << 63;
