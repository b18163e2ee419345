//! The gateway's UDP socket, and numbers for those who speak to it.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use mqttlab_mqttsn::encode::{encapsulation, encode};
use mqttlab_mqttsn::gateway::Address;
use mqttlab_mqttsn::packet::{self, Forwarded};
use mqttlab_mqttsn::{Malformed, Packet};

/// A packet as the gateway's machine has it.
pub(crate) type Datagram = Packet<Arc<str>, Arc<[u8]>>;

/// The socket.
pub(crate) struct Peers {
    socket: UdpSocket,
    numbers: BTreeMap<SocketAddr, u32>,
    addresses: Vec<SocketAddr>,
    buffer: Vec<u8>,
    out: Vec<u8>,
    /// Datagrams that were no packets.
    pub(crate) malformed: u64,
    /// Datagrams that the kernel did not take.
    pub(crate) unsent: u64,
}

impl Peers {
    /// # Errors
    /// The address cannot be had.
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Peers> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        Ok(Peers {
            socket,
            numbers: BTreeMap::new(),
            addresses: Vec::new(),
            buffer: vec![0; 65_536],
            out: Vec::new(),
            malformed: 0,
            unsent: 0,
        })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The next packet that has come; `None` when there is none.
    pub(crate) fn receive(&mut self) -> Option<(Address, Datagram)> {
        loop {
            let (length, from) = match self.socket.recv_from(&mut self.buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                // An ICMP error of what was sent before to somebody who has gone.
                Err(_) => continue,
            };
            match decode(&self.buffer[..length]) {
                Ok((node, packet)) => return Some((Address { peer: self.number(from), node }, packet)),
                Err(_) => self.malformed += 1,
            }
        }
    }

    pub(crate) fn send(&mut self, to: &Address, packet: &Datagram) {
        self.out.clear();
        let wrapped = match &to.node {
            Some(node) => encapsulation(&Forwarded { radius: 0, node }, &mut self.out).is_ok(),
            None => true,
        };
        let whole = wrapped && encode(packet, &mut self.out).is_ok();
        let sent = whole && self.socket.send_to(&self.out, self.addresses[to.peer as usize]).is_ok();
        self.unsent += u64::from(!sent);
    }

    /// To everybody who has ever spoken.
    pub(crate) fn broadcast(&mut self, packet: &Datagram) {
        for peer in 0..self.addresses.len() as u32 {
            self.send(&Address { peer, node: None }, packet);
        }
    }

    fn number(&mut self, from: SocketAddr) -> u32 {
        let next = self.addresses.len() as u32;
        *self.numbers.entry(from).or_insert_with(|| {
            self.addresses.push(from);
            next
        })
    }
}

impl AsFd for Peers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The node behind a forwarder that a packet came from, where there is one.
type Node = Option<Arc<[u8]>>;

/// A datagram's packet, and where it came from.
fn decode(bytes: &[u8]) -> Result<(Node, Datagram), Malformed> {
    let datagram = packet::decode(bytes)?;
    let node = datagram.forwarded.first().map(|forwarded| Arc::from(forwarded.node));
    Ok((node, datagram.packet.map(Arc::from, Arc::from)))
}
