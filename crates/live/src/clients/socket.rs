//! Non-blocking TCP: connect, read, write. Sockets come from the host's namespace, with its TCP settings.

use std::io;
use std::mem;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use serde_json::{Value, json};

/// Begins to connect; the socket becomes writable when it is done or has failed.
pub(super) fn connect(socket: BorrowedFd<'_>, address: SocketAddr) -> io::Result<()> {
    // SAFETY: all-zero is a valid `sockaddr_storage`.
    let mut storage: libc::sockaddr_storage = unsafe { mem::zeroed() };
    let length = fill(&mut storage, address);
    // SAFETY: `storage` holds an address of `length` bytes.
    let result = unsafe { libc::connect(socket.as_raw_fd(), (&raw const storage).cast(), length) };
    match result {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
            error => Err(error),
        },
    }
}

/// What has become of an attempt to connect.
pub(super) fn take_error(socket: BorrowedFd<'_>) -> io::Result<()> {
    let mut error: libc::c_int = 0;
    let mut length = mem::size_of_val(&error) as libc::socklen_t;
    // SAFETY: `error` and `length` are locals of the sizes that the option has.
    let result = unsafe {
        let fd = socket.as_raw_fd();
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_ERROR, (&raw mut error).cast(), &mut length)
    };
    match (result, error) {
        (0, 0) => Ok(()),
        (0, error) => Err(io::Error::from_raw_os_error(error)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// What the kernel has counted of a connection, for the recording (tcp(7), `TCP_INFO`).
pub(super) fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<Value> {
    // SAFETY: all-zero is a valid `tcp_info` and a valid `sockaddr_in`.
    let (mut info, mut local): (libc::tcp_info, libc::sockaddr_in) =
        unsafe { (mem::zeroed(), mem::zeroed()) };
    let mut length = mem::size_of_val(&info) as libc::socklen_t;
    let mut local_length = mem::size_of_val(&local) as libc::socklen_t;
    let fd = socket.as_raw_fd();
    // SAFETY: `info` and `local` are locals of the lengths that are said; the kernel writes no more than them.
    let results = unsafe {
        [
            libc::getsockopt(
                fd,
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                (&raw mut info).cast::<libc::c_void>(),
                &mut length,
            ),
            // The port is at the same place for IPv4 and IPv6.
            libc::getsockname(fd, (&raw mut local).cast(), &mut local_length),
        ]
    };
    if results != [0, 0] {
        return Err(io::Error::last_os_error());
    }
    Ok(json!({
        "port": u16::from_be(local.sin_port),
        "total_retrans": info.tcpi_total_retrans,
        "rtt_us": info.tcpi_rtt,
        "rto_us": info.tcpi_rto,
    }))
}

/// The port that a socket is bound to.
pub(super) fn local_port(socket: BorrowedFd<'_>) -> io::Result<u16> {
    // SAFETY: all-zero is a valid `sockaddr_in`.
    let mut local: libc::sockaddr_in = unsafe { mem::zeroed() };
    let mut length = mem::size_of_val(&local) as libc::socklen_t;
    // SAFETY: `local` is a local of the length that is said; the kernel writes no more than that.
    let result = unsafe { libc::getsockname(socket.as_raw_fd(), (&raw mut local).cast(), &mut length) };
    // The port is at the same place for IPv4 and IPv6.
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(u16::from_be(local.sin_port)) }
}

/// Switches Nagle's algorithm off or on.
pub(super) fn set_nodelay(socket: BorrowedFd<'_>, nodelay: bool) -> io::Result<()> {
    let value = libc::c_int::from(nodelay);
    let length = mem::size_of_val(&value) as libc::socklen_t;
    // SAFETY: `value` is a local of `length` bytes.
    let result = unsafe {
        let fd = socket.as_raw_fd();
        libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, (&raw const value).cast(), length)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reads what is there; 0 is the end of the stream, `None` says that nothing is there.
pub(super) fn read(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    // SAFETY: at most `buffer.len()` bytes are written to `buffer`.
    let count = unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    done(count)
}

/// Writes as much as the kernel takes of all pieces together; `None` says that it takes nothing now.
pub(super) fn write(socket: BorrowedFd<'_>, pieces: &[io::IoSlice<'_>]) -> io::Result<Option<usize>> {
    // Of one piece the kernel need not fetch a header and a list first.
    if let [piece] = pieces {
        // SAFETY: the piece is `piece.len()` bytes that can be read.
        let count =
            unsafe { libc::send(socket.as_raw_fd(), piece.as_ptr().cast(), piece.len(), libc::MSG_NOSIGNAL) };
        return done(count);
    }
    // SAFETY: `IoSlice` has the layout of `iovec`; all-zero is a valid msghdr.
    let count = unsafe {
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = pieces.as_ptr().cast_mut().cast();
        message.msg_iovlen = pieces.len() as _;
        libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_NOSIGNAL)
    };
    done(count)
}

fn done(count: isize) -> io::Result<Option<usize>> {
    if count >= 0 {
        return Ok(Some(count as usize));
    }
    // A non-blocking call does not wait, so no signal can interrupt it.
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        error => Err(error),
    }
}

fn fill(storage: &mut libc::sockaddr_storage, address: SocketAddr) -> libc::socklen_t {
    // SAFETY: `sockaddr_storage` is large and aligned enough for every address family.
    unsafe {
        match address {
            SocketAddr::V4(address) => {
                let place = (&raw mut *storage).cast::<libc::sockaddr_in>();
                (*place).sin_family = libc::AF_INET as libc::sa_family_t;
                (*place).sin_port = address.port().to_be();
                (*place).sin_addr.s_addr = u32::from_ne_bytes(address.ip().octets());
                mem::size_of::<libc::sockaddr_in>() as libc::socklen_t
            }
            SocketAddr::V6(address) => {
                let place = (&raw mut *storage).cast::<libc::sockaddr_in6>();
                (*place).sin6_family = libc::AF_INET6 as libc::sa_family_t;
                (*place).sin6_port = address.port().to_be();
                (*place).sin6_addr.s6_addr = address.ip().octets();
                (*place).sin6_scope_id = address.scope_id();
                mem::size_of::<libc::sockaddr_in6>() as libc::socklen_t
            }
        }
    }
}
