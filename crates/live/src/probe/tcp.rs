//! One TCP connection of this kernel, with its defaults: how long it takes to open, and what it carries when it may.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use mqttlab_system::namespaces::Namespace;
use serde::Serialize;

/// What a bulk transfer in one direction found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Bulk {
    /// Payload that arrived in the last three fifths of the time, so that slow start does not count.
    pub bytes: u64,
    /// That over its time.
    pub goodput_bit_s: f64,
}

/// Opens connections and closes them; the shortest time one took, which is a round trip of two small frames.
pub fn shortest_connect(
    from: &Namespace,
    to: &Namespace,
    address: Ipv4Addr,
    tries: u32,
) -> io::Result<Option<Duration>> {
    let listener = to.run(|| TcpListener::bind((address, 0)))?;
    let target = listener.local_addr()?;
    let once = || {
        from.run(|| {
            let begin = Instant::now();
            TcpStream::connect_timeout(&target, PATIENCE).map(|_| begin.elapsed())
        })
    };
    Ok((0..tries).filter_map(|_| once().ok()).min())
}

/// Sends as much as it can for `length`; nothing when no connection could be opened.
pub fn bulk(
    from: &Namespace,
    to: &Namespace,
    address: Ipv4Addr,
    length: Duration,
) -> io::Result<Option<Bulk>> {
    let listener = to.run(|| TcpListener::bind((address, 0)))?;
    let target: SocketAddr = listener.local_addr()?;
    let Ok(sender) = from.run(|| TcpStream::connect_timeout(&target, PATIENCE)) else { return Ok(None) };
    let (receiver, _) = listener.accept()?;
    let end = Instant::now() + length;
    let counted_from = end - length.mul_f64(0.6);
    for stream in [&sender, &receiver] {
        stream.set_write_timeout(Some(STEP))?;
        stream.set_read_timeout(Some(STEP))?;
    }
    let bytes = thread::scope(|scope| {
        scope.spawn(|| send_until(&sender, end));
        receive_between(&receiver, counted_from, end)
    });
    let goodput_bit_s = bytes as f64 * 8.0 / length.mul_f64(0.6).as_secs_f64();
    Ok(Some(Bulk { bytes, goodput_bit_s }))
}

fn send_until(mut stream: &TcpStream, end: Instant) {
    let chunk = [0; 16 << 10];
    while Instant::now() < end {
        // A full buffer is waited for in steps; a connection that is gone will not take more either.
        match stream.write(&chunk) {
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(_) => return,
        }
    }
}

fn receive_between(mut stream: &TcpStream, begin: Instant, end: Instant) -> u64 {
    let (mut bytes, mut buffer) = (0, [0; 64 << 10]);
    loop {
        let read = stream.read(&mut buffer);
        let now = Instant::now();
        match read {
            _ if now >= end => return bytes,
            Ok(0) => return bytes,
            Ok(count) if now >= begin => bytes += count as u64,
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(_) => return bytes,
        }
    }
}

/// A connection may need several attempts where frames are lost.
const PATIENCE: Duration = Duration::from_secs(4);
/// How late the end is seen while nothing moves.
const STEP: Duration = Duration::from_millis(20);
