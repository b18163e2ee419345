//! Non-blocking sockets of TCP and UDP: connect, read, write, and options.
//!
//! Options that rustix has not are set and read by two functions here, as numbers and as bytes.

use std::io;
use std::mem;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use mqttlab_units::Duration;
use rustix::io::Errno;
use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery};
use rustix::net::{AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType};

/// A TCP socket that can connect to `address`, in the calling thread's namespace.
///
/// # Errors
/// Too many open files.
pub fn stream(address: SocketAddr) -> io::Result<OwnedFd> {
    open(address, SocketType::STREAM)
}

/// A UDP socket that can connect to `address`, in the calling thread's namespace. None of its datagrams is fragmented.
///
/// # Errors
/// Too many open files.
pub fn datagrams(address: SocketAddr) -> io::Result<OwnedFd> {
    let socket = open(address, SocketType::DGRAM)?;
    sockopt::set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::DO)?;
    Ok(socket)
}

fn open(address: SocketAddr, kind: SocketType) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    Ok(rustix::net::socket_with(family, kind, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?)
}

/// Begins to connect; the socket becomes writable when it is done or has failed.
///
/// # Errors
/// What the kernel said at once.
pub fn connect(socket: impl AsFd, address: SocketAddr) -> io::Result<()> {
    match rustix::net::connect(socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// What has become of an attempt to connect.
///
/// # Errors
/// Why it has failed.
pub fn take_error(socket: impl AsFd) -> io::Result<()> {
    Ok(sockopt::socket_error(socket)??)
}

/// The port that a socket is bound to.
///
/// # Errors
/// It has no address of IPv4 or IPv6.
pub fn local_port(socket: impl AsFd) -> io::Result<u16> {
    Ok(SocketAddr::try_from(rustix::net::getsockname(socket)?)?.port())
}

/// Reads what is there; 0 is the end of the stream, `None` says that nothing is there.
///
/// # Errors
/// What the kernel said.
pub fn read(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    done(rustix::net::recv(socket, buffer, RecvFlags::empty()).map(|(count, _)| count))
}

/// Writes as much as the kernel takes of all pieces together; `None` says that it takes nothing now.
///
/// # Errors
/// What the kernel said.
pub fn write(socket: impl AsFd, pieces: &[io::IoSlice<'_>]) -> io::Result<Option<usize>> {
    // Of one piece the kernel need not fetch a header and a list first.
    done(match pieces {
        [piece] => rustix::net::send(socket, piece, SendFlags::NOSIGNAL),
        _ => rustix::net::sendmsg(socket, pieces, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL),
    })
}

/// A non-blocking call does not wait, so no signal can interrupt it.
fn done(count: Result<usize, Errno>) -> io::Result<Option<usize>> {
    match count {
        Ok(count) => Ok(Some(count)),
        Err(Errno::AGAIN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What the kernel has counted of a connection (tcp(7), `TCP_INFO`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// Segments that were sent again.
    pub retransmissions: u32,
    /// The smoothed round trip in microseconds.
    pub rtt_us: u32,
    /// The retransmission timeout in microseconds.
    pub rto_us: u32,
}

/// What the kernel has counted of this connection.
///
/// # Errors
/// It is not a TCP socket.
pub fn tcp_info(socket: impl AsFd) -> io::Result<TcpInfo> {
    let mut info = [0; TCP_INFO_BYTES];
    option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info)?;
    let field = |at: usize| u32::from_ne_bytes(info[at..at + 4].try_into().expect("four bytes"));
    Ok(TcpInfo { retransmissions: field(100), rtt_us: field(68), rto_us: field(8) })
}

/// Switches Nagle's algorithm off or on.
///
/// # Errors
/// It is not a TCP socket.
pub fn set_nodelay(socket: impl AsFd, nodelay: bool) -> io::Result<()> {
    Ok(sockopt::set_tcp_nodelay(socket, nodelay)?)
}

/// Ends a connection whose other end has acknowledged nothing for so long.
///
/// # Errors
/// It is not a TCP socket.
pub fn set_user_timeout(socket: impl AsFd, ms: u32) -> io::Result<()> {
    Ok(sockopt::set_tcp_user_timeout(socket, ms)?)
}

/// The congestion control of a socket.
///
/// # Errors
/// It is not a TCP socket.
pub fn congestion_control(socket: impl AsFd) -> io::Result<String> {
    Ok(sockopt::tcp_congestion(socket)?)
}

/// Gives a socket this congestion control.
///
/// # Errors
/// The kernel does not have it.
pub fn set_congestion_control(socket: impl AsFd, name: &str) -> io::Result<()> {
    Ok(sockopt::set_tcp_congestion(socket, name)?)
}

/// The longest time for which an acknowledgement waits for data that takes it along.
///
/// # Errors
/// Kernels before 6.11 do not have it, and later ones refuse what is shorter than two of their ticks.
pub fn set_delayed_ack_max(socket: impl AsFd, longest: Duration) -> io::Result<()> {
    let us = (longest.as_ns() / 1_000) as libc::c_int;
    set_option(socket, libc::IPPROTO_TCP, TCP_DELACK_MAX_US, us)
}

/// Marks a socket with a number, by which dumps and routes know it (socket(7), `SO_MARK`).
///
/// # Errors
/// Only an administrator may.
pub fn set_mark(socket: impl AsFd, mark: u32) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_MARK, mark.cast_signed())
}

/// Makes room for so many bytes that nobody has read yet.
pub fn make_room(socket: impl AsFd, bytes: usize) {
    // The larger buffer is CAP_NET_ADMIN's in the first user namespace; the smaller one is what others get.
    if sockopt::set_socket_recv_buffer_size_force(&socket, bytes).is_err() {
        let _ = sockopt::set_socket_recv_buffer_size(&socket, bytes);
    }
}

/// Lets the kernel stamp what this socket receives, by `CLOCK_REALTIME`.
///
/// # Errors
/// What the kernel said.
pub fn stamp(socket: impl AsFd) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
}

/// Receives a datagram or a frame, and the time at which the kernel had it, in nanoseconds since 1970.
///
/// # Errors
/// What the kernel said; `WouldBlock` when nothing is there.
pub fn receive_stamped(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
    let mut vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut control = [0u64; 16];
    // SAFETY: all zeros is a valid msghdr. It points to `buffer` and to `control`, which outlive the call. Only control
    // messages that the kernel has written are read; the data of this kind is a timespec, which may lie at any address.
    unsafe {
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &raw mut vector;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        let length = libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut message, 0);
        if length < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut next = libc::CMSG_FIRSTHDR(&raw const message);
        while let Some(header) = next.as_ref() {
            if (header.cmsg_level, header.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
                let time: libc::timespec = libc::CMSG_DATA(next).cast::<libc::timespec>().read_unaligned();
                let ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
                return Ok((length as usize, Some(ns)));
            }
            next = libc::CMSG_NXTHDR(&raw const message, next);
        }
        Ok((length as usize, None))
    }
}

/// Sets an option that is a number.
pub(crate) fn set_option(
    socket: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let size = size_of_val(&value) as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: `value` is a local of the size that is given.
    let result = unsafe { libc::setsockopt(fd, level, option, (&raw const value).cast(), size) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reads an option into as many bytes as the kernel has, or as there is room for.
pub(crate) fn option(
    socket: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &mut [u8],
) -> io::Result<()> {
    let mut size = value.len() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes no more than the size that is given, which is that of `value`.
    let result = unsafe { libc::getsockopt(fd, level, option, value.as_mut_ptr().cast(), &raw mut size) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The part of `struct tcp_info` (linux/tcp.h) that every kernel has, up to `tcpi_total_retrans`.
const TCP_INFO_BYTES: usize = 104;
// linux/tcp.h.
const TCP_DELACK_MAX_US: libc::c_int = 46;

/// A socket that interfaces are asked about by, in the calling thread's namespace.
pub(crate) fn any() -> io::Result<OwnedFd> {
    Ok(UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))?.into())
}

#[cfg(test)]
mod tests {
    use std::io::{IoSlice, Read, Write};
    use std::net::TcpListener;

    use crate::poller::{PollFd, PollFlags, poll};

    use super::*;

    #[test]
    fn a_socket_connects_reads_and_writes_without_waiting_over_both_families() {
        for local in ["127.0.0.1:0", "[::1]:0"] {
            // A kernel may have no IPv6.
            let Ok(listener) = TcpListener::bind(local) else { continue };
            let address = listener.local_addr().unwrap();
            let socket = stream(address).unwrap();
            connect(&socket, address).unwrap();
            poll(&mut [PollFd::new(&socket, PollFlags::OUT)], Some(Duration::from_s(60))).unwrap();
            take_error(&socket).unwrap();
            set_nodelay(&socket, true).unwrap();
            let (mut peer, from) = listener.accept().unwrap();
            assert_eq!(local_port(&socket).unwrap(), from.port());
            assert_eq!(read(&socket, &mut [0; 8]).unwrap(), None);
            assert_eq!(write(&socket, &[IoSlice::new(b"a")]).unwrap(), Some(1));
            assert_eq!(write(&socket, &[IoSlice::new(b"b"), IoSlice::new(b"cd")]).unwrap(), Some(3));
            let mut said = [0; 4];
            peer.read_exact(&mut said).unwrap();
            assert_eq!(&said, b"abcd");
            peer.write_all(b"x").unwrap();
            drop(peer);
            let mut ends = || {
                poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(Duration::from_s(60))).unwrap();
                read(&socket, &mut said).unwrap()
            };
            assert_eq!((ends(), ends()), (Some(1), Some(0)));
        }
    }

    #[test]
    fn an_attempt_to_connect_to_nobody_is_refused() {
        let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let socket = stream(nobody).unwrap();
        connect(&socket, nobody).unwrap();
        poll(&mut [PollFd::new(&socket, PollFlags::OUT)], Some(Duration::from_s(60))).unwrap();
        assert_eq!(take_error(&socket).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn the_kernel_tells_of_a_connection_and_takes_its_options() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let info = tcp_info(&socket).unwrap();
        // The round trip over lo is below a second, and Linux waits 200 ms and more before it repeats.
        assert!((1..1_000_000).contains(&info.rtt_us) && info.rto_us >= 200_000, "{info:?}");
        assert_eq!(info.retransmissions, 0);
        set_congestion_control(&socket, "reno").unwrap();
        assert_eq!(congestion_control(&socket).unwrap(), "reno");
        assert!(set_congestion_control(&socket, "no-such").is_err());
        set_user_timeout(&socket, 10_000).unwrap();
        assert!(tcp_info(datagrams(listener.local_addr().unwrap()).unwrap()).is_err());
    }

    #[test]
    fn a_datagram_has_the_time_at_which_the_kernel_had_it() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut buffer = [0; 16];
        receiver.send_to(b"before", receiver.local_addr().unwrap()).unwrap();
        assert_eq!(receive_stamped(&receiver, &mut buffer).unwrap(), (6, None));
        stamp(&receiver).unwrap();
        make_room(&receiver, 1 << 20);
        let began = crate::clock::unix_ns();
        receiver.send_to(b"after", receiver.local_addr().unwrap()).unwrap();
        let (length, at) = receive_stamped(&receiver, &mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"after");
        assert!((began..=crate::clock::unix_ns()).contains(&at.unwrap()));
        receiver.set_nonblocking(true).unwrap();
        let error = receive_stamped(&receiver, &mut buffer).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }
}
