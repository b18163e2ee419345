//! Sockets of clients that have lost their power: the emulator takes no frame that they send, and hands none over to them.
//!
//! ```text
//!   worker: a client vanishes ──► add ──► emulator: frames from and to its port are gone
//! ```
//!
//! The kernel of a host that many clients share knows nothing of it. It goes on sending for the socket, which stays open to
//! the run's end so that no other one gets its port.
//!
//! What it does not know: frames over a loopback device, which the emulator does not carry.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Mutex, PoisonError};

/// Between workers and the emulator.
#[derive(Default)]
pub struct SilentSockets {
    has_any: AtomicBool,
    /// Hosts and ports.
    sockets: Mutex<BTreeSet<(usize, u16)>>,
}

impl SilentSockets {
    /// The socket of this port is silent from now on.
    pub(crate) fn add(&self, host: usize, port: u16) {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner).insert((host, port));
        self.has_any.store(true, Release);
    }

    /// Whether a packet that comes from this host is of such a socket.
    pub(crate) fn have_sent(&self, host: usize, packet: &[u8]) -> bool {
        self.has(host, packet, 0)
    }

    /// Whether a packet for this host is for such a socket.
    pub(crate) fn are_sent(&self, host: usize, packet: &[u8]) -> bool {
        self.has(host, packet, 2)
    }

    /// By the port at this place of the transport's header.
    fn has(&self, host: usize, packet: &[u8], place: usize) -> bool {
        if !self.has_any.load(Acquire) {
            return false;
        }
        let port = port_at(packet, place);
        let sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        port.is_some_and(|port| sockets.contains(&(host, port)))
    }
}

/// Of an IPv4 packet of TCP or UDP, both of which begin with their ports.
fn port_at(packet: &[u8], place: usize) -> Option<u16> {
    let header = usize::from(packet.first()? & 0x0f) * 4;
    if !matches!(packet.get(9)?, 6 | 17) {
        return None;
    }
    let port = packet.get(header + place..header + place + 2)?;
    Some(u16::from_be_bytes([port[0], port[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_from_and_to_a_silent_socket_are_known_by_host_and_port() {
        let sockets = SilentSockets::default();
        let mut packet = vec![0; 40];
        (packet[0], packet[9]) = (0x45, 6);
        packet[20..24].copy_from_slice(&[0x80, 1, 0x07, 0x5b]);
        assert!(!sockets.have_sent(3, &packet));
        sockets.add(3, 0x8001);
        assert!(
            sockets.have_sent(3, &packet) && !sockets.have_sent(2, &packet) && !sockets.are_sent(3, &packet)
        );
        sockets.add(0, 0x075b);
        assert!(sockets.are_sent(0, &packet));
        packet.truncate(21);
        assert!(!sockets.have_sent(3, &packet) && !sockets.have_sent(3, &[]));
    }
}
