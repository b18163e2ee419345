//! The few requests of rtnetlink(7) that a host's namespace needs (links, addresses, routes with metrics), and sockets for
//! those of sock_diag(7).
//!
//! Each call of rtnetlink opens a socket in the calling thread's namespace, sends one request and waits for its answer.
//! What it does not do: dumps, events, IPv6.

use std::ffi::CString;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::sockets;

/// What a link's settings shall be; `None` leaves one as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkSettings {
    /// Largest IP packet in bytes.
    pub mtu: Option<u32>,
    /// Length of the transmit queue in packets; of a TUN device also that of its ring.
    pub queue_length: Option<u32>,
    /// Do not resolve addresses: every neighbour has the device's own address.
    pub no_arp: bool,
}

/// Per-route TCP settings, the only way to give a namespace some of them (ip-route(8)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Congestion control of connections over the route (`congctl`), also of accepted ones. Unlike the sysctl it
    /// is not held to the host's `tcp_allowed_congestion_control`.
    pub congestion_control: Option<&'static str>,
    /// Minimum retransmission timeout in milliseconds.
    pub rto_min_ms: Option<u32>,
    /// Acknowledge every segment at once.
    pub quick_ack: bool,
    /// MSS that the SYN announces.
    pub advertised_mss: Option<u32>,
    /// Initial congestion window in segments.
    pub initial_window: Option<u32>,
}

/// Where a route leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteKind {
    /// To a neighbour on the device.
    Unicast,
    /// To this host itself; replaces the route that the kernel made with the address.
    Local,
}

/// The index of the link called `name` in the calling thread's namespace.
///
/// # Errors
/// There is none.
pub fn link_index(name: &str) -> io::Result<u32> {
    Ok(rustix::net::netdevice::name_to_index(sockets::any()?, name)?)
}

/// Brings a link up with these settings.
///
/// # Errors
/// What the kernel said.
pub fn set_link_up(link: u32, settings: LinkSettings) -> io::Result<()> {
    let no_arp = if settings.no_arp { libc::IFF_NOARP as u32 } else { 0 };
    let flags = libc::IFF_UP as u32 | no_arp;
    let mut request = NetlinkRequest::new(libc::RTM_NEWLINK, 0);
    request.interface_header(link, flags, flags);
    if let Some(mtu) = settings.mtu {
        request.attribute(libc::IFLA_MTU, &mtu.to_ne_bytes());
    }
    if let Some(length) = settings.queue_length {
        request.attribute(libc::IFLA_TXQLEN, &length.to_ne_bytes());
    }
    request.send()
}

/// Makes a pair of veth devices: `name` here, `peer` in the namespace `peer_namespace`.
///
/// # Errors
/// What the kernel said; `EOPNOTSUPP` where it has no veth.
pub fn add_veth(name: &str, peer: &str, peer_namespace: BorrowedFd<'_>) -> io::Result<()> {
    let mut request = NetlinkRequest::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
    request.interface_header(0, 0, 0);
    request.text(libc::IFLA_IFNAME, name);
    request.nested(libc::IFLA_LINKINFO, |request| {
        request.text(IFLA_INFO_KIND, "veth");
        request.nested(IFLA_INFO_DATA, |request| {
            request.nested(VETH_INFO_PEER, |request| {
                request.interface_header(0, 0, 0);
                request.text(libc::IFLA_IFNAME, peer);
                request.attribute(libc::IFLA_NET_NS_FD, &peer_namespace.as_raw_fd().to_ne_bytes());
            });
        });
    });
    request.send()
}

/// Gives a link an address of its own, without a subnet.
///
/// # Errors
/// What the kernel said.
pub fn add_address(link: u32, address: Ipv4Addr) -> io::Result<()> {
    let mut request = NetlinkRequest::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_REPLACE);
    let header = [libc::AF_INET as u8, 32, 0, libc::RT_SCOPE_UNIVERSE];
    request.bytes.extend_from_slice(&header);
    request.bytes.extend_from_slice(&link.to_ne_bytes());
    request.attribute(libc::IFA_LOCAL, &address.octets());
    request.attribute(libc::IFA_ADDRESS, &address.octets());
    request.send()
}

/// Adds a route to `destination`, or to everywhere, over `link`, with `source` as the address of what leaves.
///
/// # Errors
/// What the kernel said; `EINVAL` for a congestion control that it does not have.
pub fn add_route(
    kind: RouteKind,
    destination: Option<Ipv4Addr>,
    link: u32,
    source: Ipv4Addr,
    metrics: &Metrics,
) -> io::Result<()> {
    let (table, scope, route_type) = match kind {
        RouteKind::Unicast => (libc::RT_TABLE_MAIN, libc::RT_SCOPE_LINK, libc::RTN_UNICAST),
        RouteKind::Local => (libc::RT_TABLE_LOCAL, libc::RT_SCOPE_HOST, libc::RTN_LOCAL),
    };
    let mut request = NetlinkRequest::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_REPLACE);
    let prefix = if destination.is_some() { 32 } else { 0 };
    let protocol = if kind == RouteKind::Local { libc::RTPROT_KERNEL } else { libc::RTPROT_STATIC };
    let header = [libc::AF_INET as u8, prefix, 0, 0, table, protocol, scope, route_type];
    request.bytes.extend_from_slice(&header);
    request.bytes.extend_from_slice(&0u32.to_ne_bytes());
    if let Some(destination) = destination {
        request.attribute(libc::RTA_DST, &destination.octets());
    }
    request.attribute(libc::RTA_OIF, &link.to_ne_bytes());
    request.attribute(libc::RTA_PREFSRC, &source.octets());
    request.nested(libc::RTA_METRICS, |request| request.metrics(metrics));
    request.send()
}

/// A request under construction.
struct NetlinkRequest {
    bytes: Vec<u8>,
}

impl NetlinkRequest {
    fn new(kind: u16, flags: libc::c_int) -> Self {
        let flags = (flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        let mut bytes = vec![0; 4];
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(&[0; 8]);
        NetlinkRequest { bytes }
    }

    /// `struct ifinfomsg`.
    fn interface_header(&mut self, link: u32, flags: u32, change: u32) {
        self.bytes.extend_from_slice(&[0; 4]);
        for field in [link, flags, change] {
            self.bytes.extend_from_slice(&field.to_ne_bytes());
        }
    }

    fn attribute(&mut self, kind: u16, value: &[u8]) {
        let length = (ATTRIBUTE_HEADER + value.len()) as u16;
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(value);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn text(&mut self, kind: u16, value: &str) {
        let value = CString::new(value).expect("names of devices and algorithms have no zero byte");
        self.attribute(kind, value.as_bytes_with_nul());
    }

    fn nested(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        self.attribute(kind | libc::NLA_F_NESTED as u16, &[]);
        fill(self);
        let length = (self.bytes.len() - start) as u16;
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
    }

    fn metrics(&mut self, metrics: &Metrics) {
        if let Some(rto_min_ms) = metrics.rto_min_ms {
            // TCP heeds this metric only where it is locked.
            self.attribute(RTAX_LOCK, &(1u32 << RTAX_RTO_MIN).to_ne_bytes());
            self.attribute(RTAX_RTO_MIN, &rto_min_ms.to_ne_bytes());
        }
        if let Some(mss) = metrics.advertised_mss {
            self.attribute(RTAX_ADVMSS, &mss.to_ne_bytes());
        }
        if let Some(window) = metrics.initial_window {
            self.attribute(RTAX_INITCWND, &window.to_ne_bytes());
        }
        if metrics.quick_ack {
            self.attribute(RTAX_QUICKACK, &1u32.to_ne_bytes());
        }
        if let Some(name) = metrics.congestion_control {
            self.text(RTAX_CC_ALGO, name);
        }
    }

    fn send(mut self) -> io::Result<()> {
        let length = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        let socket = open(ROUTE)?;
        say(&socket, &self.bytes)?;
        acknowledgement(&socket)
    }
}

/// A socket that asks the kernel about the sockets of this thread's namespace (sock_diag(7)).
///
/// # Errors
/// The kernel has no sock_diag, or forbids it.
pub fn open_diagnostics() -> io::Result<OwnedFd> {
    open(Some(rustix::net::netlink::SOCK_DIAG))
}

fn open(protocol: Option<Protocol>) -> io::Result<OwnedFd> {
    let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
    Ok(rustix::net::socket_with(family, SocketType::RAW, flags, protocol)?)
}

/// Says something to the kernel.
///
/// # Errors
/// What it said.
pub fn say(socket: impl AsFd, request: &[u8]) -> io::Result<()> {
    rustix::net::send(socket, request, SendFlags::empty())?;
    Ok(())
}

/// Waits for the kernel's next answer, and returns its length.
///
/// # Errors
/// What it said.
pub fn hear(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::net::recv(socket, buffer, RecvFlags::empty())?.0)
}

/// The kernel answers each request that asks for it with an NLMSG_ERROR, whose error 0 is an acknowledgement.
fn acknowledgement(socket: impl AsFd) -> io::Result<()> {
    let mut answer = [0u8; 1024];
    let length = hear(socket, &mut answer)?;
    let error = answer[..length].get(MESSAGE_HEADER..MESSAGE_HEADER + 4);
    match error.map(|bytes| i32::from_ne_bytes(bytes.try_into().expect("four bytes"))) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
    }
}

/// `NETLINK_ROUTE` is the number 0, which stands for it without a name.
const ROUTE: Option<Protocol> = None;
const MESSAGE_HEADER: usize = 16;
const ATTRIBUTE_HEADER: usize = 4;
// linux/if_link.h and linux/veth.h.
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
// linux/rtnetlink.h.
const RTAX_LOCK: u16 = 1;
const RTAX_ADVMSS: u16 = 8;
const RTAX_INITCWND: u16 = 11;
const RTAX_RTO_MIN: u16 = 13;
const RTAX_QUICKACK: u16 = 15;
const RTAX_CC_ALGO: u16 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_nests_know_their_length() {
        let mut request = NetlinkRequest::new(libc::RTM_NEWLINK, 0);
        request.nested(5, |request| request.text(1, "veth"));
        let nest = &request.bytes[MESSAGE_HEADER..];
        assert_eq!(nest.len(), 4 + 4 + 8);
        assert_eq!(u16::from_ne_bytes([nest[0], nest[1]]) as usize, nest.len());
        assert_eq!(u16::from_ne_bytes([nest[4], nest[5]]) as usize, 4 + "veth\0".len());
    }

    #[test]
    fn the_loopback_device_has_an_index_and_an_unknown_one_has_none() {
        assert!(link_index("lo").unwrap() > 0);
        assert!(link_index("no-such-link").is_err());
    }
}
