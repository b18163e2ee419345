//! Which end of a connection is the client's.

use crate::segment::{Bits, SocketEndpoint, TcpHeader};

/// Client and server of a connection, by its first segment.
pub(super) fn sides(
    segment: &TcpHeader,
    is_broker: impl Fn(&SocketEndpoint) -> bool,
) -> (SocketEndpoint, SocketEndpoint) {
    let to = (segment.source, segment.destination);
    let from = (segment.destination, segment.source);
    match (is_broker(&segment.source), is_broker(&segment.destination)) {
        (false, true) => return to,
        (true, false) => return from,
        _ => {}
    }
    if segment.bits.has(Bits::SYN) {
        return if segment.bits.has(Bits::ACK) { from } else { to };
    }
    if segment.destination.port <= segment.source.port { to } else { from }
}
