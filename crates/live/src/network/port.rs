//! Where frames leave a namespace for the emulator, and come back.
//!
//! A TUN device hands whole IP packets to whoever holds its descriptor; without offloads, so a frame here is a
//! frame on the wire. Where `/dev/net/tun` may not be opened, a veth pair does the same: one end is the host's
//! device, and a packet socket on the other end, in a namespace of the emulator's own, reads and writes.
//!
//! What it does not carry: Ethernet headers, ARP, IPv6.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use mqttlab_plan::PortKind;
use mqttlab_system::devices::{self, LinkAddress};
use mqttlab_system::namespaces::Namespace;
use mqttlab_system::netlink::{self, LinkSettings, Metrics, RouteKind};

/// One host's port.
pub struct Port {
    fd: OwnedFd,
    /// Where a packet socket sends to; `None` for TUN.
    peer: Option<LinkAddress>,
    /// What PACKET_STATISTICS counted, which forgets when it is read.
    drops: std::sync::atomic::AtomicU64,
}

/// What a host's device shall be like.
#[derive(Clone, Debug)]
pub struct Device {
    /// The host's address.
    pub address: Ipv4Addr,
    /// Largest IP packet in bytes.
    pub mtu: u32,
    /// TCP settings of everything that leaves over it.
    pub metrics: Metrics,
}

impl Port {
    /// Makes the device of a host, up, with its address and a default route, and opens its other end.
    ///
    /// # Errors
    /// TUN may not be opened (with [`PortKind::Tun`]), or the kernel has no veth.
    pub fn open(host: &Namespace, wire: &Namespace, kind: PortKind, device: &Device) -> io::Result<Port> {
        let port = match kind {
            PortKind::Tun => Self::tun(host),
            PortKind::Packet => Self::packet(host, wire),
            PortKind::Auto => Self::tun(host).or_else(|_| Self::packet(host, wire)),
        }?;
        host.run(|| configure(port.peer.is_some(), device))?;
        Ok(port)
    }

    /// Whether it is a TUN device (or else a packet socket on veth).
    pub fn is_tun(&self) -> bool {
        self.peer.is_none()
    }

    /// Reads one frame into `buffer`; `None` when there is none now.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        devices::read(&self.fd, buffer)
    }

    /// Hands a frame to the host.
    ///
    /// # Errors
    /// `ENOBUFS` and the like when the host takes no more: the frame is lost at its receiver.
    pub fn write(&self, frame: &[u8]) -> io::Result<()> {
        devices::write(&self.fd, frame, self.peer.as_ref())
    }

    /// Frames that the host sent and that found the ring full, since the port was opened. They never reached
    /// the emulated link, so their loss is the emulator's fault.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn ring_drops(&self, host: &Namespace) -> io::Result<u64> {
        if self.is_tun() {
            return host.run(|| {
                let devices = std::fs::read_to_string("/proc/thread-self/net/dev")?;
                Ok(transmit_drops(&devices, DEVICE).unwrap_or(0))
            });
        }
        let new = devices::socket_drops(&self.fd)?;
        Ok(self.drops.fetch_add(new, std::sync::atomic::Ordering::Relaxed) + new)
    }

    fn tun(host: &Namespace) -> io::Result<Port> {
        let fd = host.run(|| devices::open_tun(DEVICE))?;
        Ok(Port { fd, peer: None, drops: Default::default() })
    }

    fn packet(host: &Namespace, wire: &Namespace) -> io::Result<Port> {
        // The wire's ends share a namespace, so that each needs a name of its own there.
        let end = format!("w{}", host.as_fd().as_raw_fd());
        host.run(|| {
            netlink::add_veth(DEVICE, &end, wire.as_fd())?;
            devices::switch_offloads_off(DEVICE)
        })?;
        let host_address = host.run(|| devices::hardware_address(DEVICE))?;
        let (fd, peer) = wire.run(|| {
            let link = netlink::link_index(&end)?;
            netlink::set_link_up(link, LinkSettings { mtu: Some(MTU_MAX), ..LinkSettings::default() })?;
            let address = LinkAddress::new(link, host_address);
            Ok((devices::packet_socket(&address, BUFFER_BYTES)?, address))
        })?;
        Ok(Port { fd, peer: Some(peer), drops: Default::default() })
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Runs in the host's namespace.
fn configure(is_veth: bool, device: &Device) -> io::Result<()> {
    let link = netlink::link_index(DEVICE)?;
    let settings = LinkSettings { mtu: Some(device.mtu), queue_length: Some(QUEUE_FRAMES), no_arp: is_veth };
    netlink::set_link_up(link, settings)?;
    netlink::add_address(link, device.address)?;
    netlink::add_route(RouteKind::Unicast, None, link, device.address, &device.metrics)
}

/// The field `drop` of the transmit half of a line of `/proc/net/dev`.
fn transmit_drops(devices: &str, name: &str) -> Option<u64> {
    let line = devices.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().nth(11)?.parse().ok()
}

const BUFFER_BYTES: usize = 8 << 20;
/// Every host's device has the same name; namespaces keep them apart.
const DEVICE: &str = "mqttlab0";
/// The device's default of 500 frames overflows when the emulator is not scheduled for a few milliseconds.
const QUEUE_FRAMES: u32 = 4096;
/// The wire's end takes whatever the host's end sends.
const MTU_MAX: u32 = 65_535;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transmit_drops_are_the_fourth_field_of_the_second_half() {
        let devices = "Inter-| Receive | Transmit\n face |bytes\n\
            lo: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
            mqttlab0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";
        assert_eq!(transmit_drops(devices, "mqttlab0"), Some(12));
        assert_eq!(transmit_drops(devices, "eth0"), None);
    }
}
