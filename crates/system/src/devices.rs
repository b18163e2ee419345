//! Network devices of the calling thread's namespace: TUN devices, packet sockets, offloads.
//!
//! What it does not do: addresses and routes, which are netlink's.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketAddrAny, SocketFlags, SocketType};

use crate::sockets;

/// Where a packet socket sends to.
#[derive(Clone, Debug)]
pub struct LinkAddress(SocketAddrAny);

impl LinkAddress {
    /// The neighbour with this hardware address on a link, for packets of IPv4.
    pub fn new(link: u32, hardware: [u8; 6]) -> LinkAddress {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&hardware);
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: (libc::ETH_P_IP as u16).to_be(),
            sll_ifindex: link as i32,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 6,
            sll_addr: bytes,
        };
        let size = size_of_val(&address) as u32;
        // SAFETY: `address` is a valid one of its family, and of the size that is given.
        LinkAddress(unsafe { SocketAddrAny::read((&raw const address).cast(), size) })
    }
}

/// Makes a TUN device without headers of its own, and opens its other end. It does not wait.
///
/// # Errors
/// TUN may not be opened, or the name is taken.
pub fn open_tun(name: &str) -> io::Result<OwnedFd> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
    let mut request = InterfaceRequest::new(name);
    let flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    request.value[..2].copy_from_slice(&flags.to_ne_bytes());
    request.ask(&file, libc::TUNSETIFF as libc::c_ulong)?;
    Ok(file.into())
}

/// A socket that receives what comes in on the link of `address`, without its link header. It does not wait.
///
/// # Errors
/// Packet sockets are not permitted here.
pub fn packet_socket(address: &LinkAddress, room_bytes: usize) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    // Without a protocol it receives nothing until bind says which link.
    let socket = rustix::net::socket_with(AddressFamily::PACKET, SocketType::DGRAM, flags, None)?;
    sockets::make_room(&socket, room_bytes);
    sockets::set_option(&socket, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)?;
    rustix::net::bind(&socket, &address.0)?;
    Ok(socket)
}

/// Frames that a packet socket had no room for, since this was last asked.
///
/// # Errors
/// It is not a packet socket.
pub fn socket_drops(socket: impl AsFd) -> io::Result<u64> {
    // `struct tpacket_stats`: packets, drops.
    let mut statistics = [0; 8];
    sockets::option(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut statistics)?;
    let [.., a, b, c, d] = statistics;
    Ok(u32::from_ne_bytes([a, b, c, d]).into())
}

/// Reads one frame of a TUN device or a packet socket; `None` when there is none now.
///
/// # Errors
/// What the kernel said.
pub fn read(device: impl AsFd, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match rustix::io::read(device, buffer) {
        Ok(length) => Ok(Some(length)),
        Err(Errno::AGAIN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Writes one frame to a TUN device, or to a neighbour by a packet socket.
///
/// # Errors
/// `ENOBUFS` and the like where the frame is not taken.
pub fn write(device: impl AsFd, frame: &[u8], neighbour: Option<&LinkAddress>) -> io::Result<()> {
    match neighbour {
        None => rustix::io::write(device, frame)?,
        Some(address) => rustix::net::sendto(device, frame, SendFlags::empty(), &address.0)?,
    };
    Ok(())
}

/// Takes what no wire has from a device: unfinished checksums, and segments of 64 KiB.
///
/// # Errors
/// What the kernel said.
pub fn switch_offloads_off(name: &str) -> io::Result<()> {
    switch_off(name, &[ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO])
}

/// Lets a device see each TCP segment by itself.
///
/// # Errors
/// What the kernel said.
pub fn switch_segmentation_offloads_off(name: &str) -> io::Result<()> {
    switch_off(name, &[ETHTOOL_STSO, ETHTOOL_SGSO])
}

fn switch_off(name: &str, commands: &[u32]) -> io::Result<()> {
    let socket = sockets::any()?;
    for &command in commands {
        // `struct ethtool_value`.
        let mut value = [command, 0u32];
        let mut request = InterfaceRequest::new(name);
        let place = value.as_mut_ptr().expose_provenance();
        request.value[..size_of::<usize>()].copy_from_slice(&place.to_ne_bytes());
        request.ask(&socket, SIOCETHTOOL)?;
    }
    Ok(())
}

/// The hardware address of a device.
///
/// # Errors
/// There is no such device.
pub fn hardware_address(name: &str) -> io::Result<[u8; 6]> {
    let mut request = InterfaceRequest::new(name);
    request.ask(sockets::any()?, libc::SIOCGIFHWADDR as libc::c_ulong)?;
    // `struct sockaddr`: a family of two bytes, then the address.
    let [_, _, a, b, c, d, e, f, ..] = request.value;
    Ok([a, b, c, d, e, f])
}

/// `struct ifreq`: a device's name, and what is asked or said of it.
#[repr(C, align(8))]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    value: [u8; VALUE_BYTES],
}

impl InterfaceRequest {
    fn new(name: &str) -> InterfaceRequest {
        let mut request = InterfaceRequest { name: [0; libc::IFNAMSIZ], value: [0; VALUE_BYTES] };
        // The last byte stays zero.
        for (place, byte) in request.name[..libc::IFNAMSIZ - 1].iter_mut().zip(name.bytes()) {
            *place = byte;
        }
        request
    }

    fn ask(&mut self, device: impl AsFd, command: libc::c_ulong) -> io::Result<()> {
        let (fd, request) = (device.as_fd().as_raw_fd(), &raw mut *self);
        // SAFETY: all commands in use read and write one `ifreq`, and what it points to is alive.
        let result = unsafe { libc::ioctl(fd, command as _, request) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

const VALUE_BYTES: usize = size_of::<libc::ifreq>() - libc::IFNAMSIZ;
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
    use crate::namespaces::Namespace;
    use crate::netlink::{LinkSettings, add_veth, link_index, set_link_up};
    use crate::poller::{PollFd, PollFlags, poll};

    fn namespaces() -> Option<(Namespace, Namespace)> {
        let made = Namespace::new().and_then(|one| Ok((one, Namespace::new()?)));
        made.inspect_err(|error| eprintln!("skipped: no network namespaces here: {error}")).ok()
    }

    #[test]
    fn a_frame_comes_to_the_packet_socket_at_the_other_end_of_a_pair_of_devices() {
        let Some((here, there)) = namespaces() else { return };
        let make = || {
            add_veth("near", "far", there.as_fd())?;
            switch_offloads_off("near")?;
            set_link_up(link_index("near")?, LinkSettings { no_arp: true, ..LinkSettings::default() })?;
            Ok((link_index("near")?, hardware_address("near")?))
        };
        if let Err(error) = here.run(make) {
            return eprintln!("skipped: no veth devices here: {error}");
        }
        let (far, address) = there
            .run(|| {
                let link = link_index("far")?;
                set_link_up(link, LinkSettings::default())?;
                let address = LinkAddress::new(link, [0; 6]);
                Ok((packet_socket(&address, 1 << 16)?, hardware_address("far")?))
            })
            .unwrap();
        let open = || {
            let neighbour = LinkAddress::new(link_index("near")?, address);
            Ok((packet_socket(&neighbour, 1 << 16)?, neighbour))
        };
        let (near, neighbour) = here.run(open).unwrap();
        assert_eq!(read(&near, &mut [0; 64]).unwrap(), None);
        // The kernel drops frames until it has noticed that the other end is up.
        let came = (0..600).any(|_| {
            write(&near, &[0x45; 40], Some(&neighbour)).unwrap();
            let tenth = mqttlab_units::Duration::from_ms(100);
            poll(&mut [PollFd::new(&far, PollFlags::IN)], Some(tenth)).unwrap() > 0
        });
        assert!(came);
        let mut buffer = [0; 64];
        assert_eq!(read(&far, &mut buffer).unwrap(), Some(40));
        assert_eq!(buffer[..40], [0x45; 40]);
        assert_eq!((socket_drops(&near).unwrap(), socket_drops(&far).unwrap()), (0, 0));
    }

    #[test]
    fn lo_has_no_hardware_address_and_an_unknown_device_is_an_error() {
        assert_eq!(hardware_address("lo").unwrap(), [0; 6]);
        assert!(hardware_address("no-such-link").is_err() && switch_offloads_off("no-such-link").is_err());
    }
}
