//! Where frames leave a namespace for the emulator, and come back.
//!
//! A TUN device hands whole IP packets to whoever holds its descriptor; without offloads, so a frame here is a
//! frame on the wire. Where `/dev/net/tun` may not be opened, a veth pair does the same: one end is the host's
//! device, and a packet socket on the other end, in a namespace of the emulator's own, reads and writes.
//!
//! What it does not carry: Ethernet headers, ARP, IPv6.

use std::fs::OpenOptions;
use std::io;
use std::mem;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use mqttlab_plan::PortKind;

use crate::network::namespaces::Namespace;
use crate::network::netlink::{self, LinkSettings, Metrics, RouteKind};

/// One host's port.
pub struct Port {
    fd: OwnedFd,
    /// Where a packet socket sends to; `None` for TUN.
    peer: Option<libc::sockaddr_ll>,
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
        // SAFETY: the buffer is valid for its length.
        let length = unsafe { libc::read(self.fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
        if length >= 0 {
            return Ok(Some(length as usize));
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            error => Err(error),
        }
    }

    /// Hands a frame to the host.
    ///
    /// # Errors
    /// `ENOBUFS` and the like when the host takes no more: the frame is lost at its receiver.
    pub fn write(&self, frame: &[u8]) -> io::Result<()> {
        let fd = self.fd.as_raw_fd();
        let (data, length) = (frame.as_ptr().cast(), frame.len());
        // SAFETY: the frame is valid for its length, the address for its own.
        let result = unsafe {
            match &self.peer {
                None => libc::write(fd, data, length),
                Some(peer) => {
                    libc::sendto(fd, data, length, 0, (&raw const *peer).cast(), size_of_val(peer) as u32)
                }
            }
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
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
        let new = socket_drops(self.fd.as_fd())?;
        Ok(self.drops.fetch_add(new, std::sync::atomic::Ordering::Relaxed) + new)
    }

    fn tun(host: &Namespace) -> io::Result<Port> {
        let fd = host.run(|| {
            let mut options = OpenOptions::new();
            let file = options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
            let mut request = interface_request(DEVICE);
            request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
            // SAFETY: TUNSETIFF reads and writes one ifreq.
            check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request) })?;
            Ok(OwnedFd::from(file))
        })?;
        Ok(Port { fd, peer: None, drops: Default::default() })
    }

    fn packet(host: &Namespace, wire: &Namespace) -> io::Result<Port> {
        // The wire's ends share a namespace, so that each needs a name of its own there.
        let end = format!("w{}", host.as_fd().as_raw_fd());
        host.run(|| {
            netlink::add_veth(DEVICE, &end, wire.as_fd())?;
            switch_offloads_off(DEVICE)
        })?;
        let host_address = host.run(|| hardware_address(DEVICE))?;
        let (fd, peer) = wire.run(|| {
            let link = netlink::link_index(&end)?;
            netlink::set_link_up(link, LinkSettings { mtu: Some(MTU_MAX), ..LinkSettings::default() })?;
            let address = link_address(link, host_address);
            Ok((packet_socket(&address, BUFFER_BYTES)?, address))
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

/// Frames that a packet socket had no room for, since this was last asked.
///
/// # Errors
/// It is not a packet socket.
pub(crate) fn socket_drops(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut length = size_of_val(&statistics) as libc::socklen_t;
    // SAFETY: both pointers are valid for the sizes given.
    let result = unsafe {
        let value = (&raw mut statistics).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, value, &mut length)
    };
    check(result)?;
    Ok(u64::from(statistics.tp_drops))
}

/// A socket that receives what comes in on a link. Runs in its namespace.
pub(crate) fn packet_socket(address: &libc::sockaddr_ll, buffer: libc::c_int) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: socket takes no pointers; a descriptor that it returns is ours alone.
    let fd = unsafe {
        // Protocol 0 receives nothing until bind says which link.
        let fd = libc::socket(libc::AF_PACKET, kind, 0);
        check(fd)?;
        OwnedFd::from_raw_fd(fd)
    };
    let ignore: libc::c_int = 1;
    // SAFETY: every pointer is valid for the size given beside it.
    unsafe {
        let set = |level, option, value: &libc::c_int| {
            let size = size_of::<libc::c_int>() as u32;
            libc::setsockopt(fd.as_raw_fd(), level, option, (&raw const *value).cast(), size)
        };
        // The larger buffer is CAP_NET_ADMIN's in the first user namespace; the smaller one is what others get.
        if set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &buffer) != 0 {
            set(libc::SOL_SOCKET, libc::SO_RCVBUF, &buffer);
        }
        check(set(libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &ignore))?;
        check(libc::bind(fd.as_raw_fd(), (&raw const *address).cast(), size_of_val(address) as u32))?;
    }
    Ok(fd)
}

pub(crate) fn link_address(link: u32, hardware: [u8; 6]) -> libc::sockaddr_ll {
    // SAFETY: all zeros is a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_IP as u16).to_be();
    address.sll_ifindex = link as i32;
    address.sll_halen = 6;
    address.sll_addr[..6].copy_from_slice(&hardware);
    address
}

/// veth passes unfinished checksums and 64 KiB segments along, which no wire has.
fn switch_offloads_off(name: &str) -> io::Result<()> {
    switch_off(name, &[ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO])
}

/// Lets a device see each TCP segment by itself. Runs in its namespace.
///
/// # Errors
/// What the kernel said.
pub(crate) fn switch_segmentation_offloads_off(name: &str) -> io::Result<()> {
    switch_off(name, &[ETHTOOL_STSO, ETHTOOL_SGSO])
}

fn switch_off(name: &str, commands: &[u32]) -> io::Result<()> {
    for &command in commands {
        let mut value = [command, 0u32];
        let mut request = interface_request(name);
        request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
        interface_ioctl(SIOCETHTOOL, &mut request)?;
    }
    Ok(())
}

fn hardware_address(name: &str) -> io::Result<[u8; 6]> {
    let mut request = interface_request(name);
    interface_ioctl(libc::SIOCGIFHWADDR as libc::c_ulong, &mut request)?;
    // SAFETY: SIOCGIFHWADDR has just filled this member.
    let data = unsafe { request.ifr_ifru.ifru_hwaddr.sa_data };
    Ok(std::array::from_fn(|index| data[index] as u8))
}

fn interface_ioctl(command: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: both commands in use read and write one ifreq, and what it points to is alive.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), command as _, request) })
}

fn interface_request(name: &str) -> libc::ifreq {
    // SAFETY: all zeros is a valid ifreq.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    request
}

/// The field `drop` of the transmit half of a line of `/proc/net/dev`.
fn transmit_drops(devices: &str, name: &str) -> Option<u64> {
    let line = devices.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().nth(11)?.parse().ok()
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

const BUFFER_BYTES: libc::c_int = 8 << 20;
/// Every host's device has the same name; namespaces keep them apart.
const DEVICE: &str = "mqttlab0";
/// The device's default of 500 frames overflows when the emulator is not scheduled for a few milliseconds.
const QUEUE_FRAMES: u32 = 4096;
/// The wire's end takes whatever the host's end sends.
const MTU_MAX: u32 = 65_535;
// linux/if_packet.h, linux/sockios.h, linux/ethtool.h.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_STXCSUM: u32 = 0x17;
const ETHTOOL_STSO: u32 = 0x1f;
const ETHTOOL_SGSO: u32 = 0x24;
const ETHTOOL_SGRO: u32 = 0x2c;

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
