//! How to know that a server serves: it accepts a connection, it answers a CONNECT, its host has a socket for datagrams, or
//! its log says so.
//!
//! Programs of a virtual machine accept connections seconds before they serve anybody, which would count as a slow broker.
//! A CONNACK is the first thing that only a broker that works can say; a line of its log is what its makers mean by ready.
//! A gateway says nothing before it has reached its broker, to which the emulated network leads only when all servers are ready.
//!
//! What it does not do: wait. It asks once, and whoever starts a server asks again.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use mqttlab_mqtt::encode::{self, ConnectFields};
use mqttlab_mqtt::{Kind, Version};
use mqttlab_plan::Readiness;
use mqttlab_system::namespaces::Namespace;

/// Whether a server is ready now, asked at `address` from its own namespace, or in its log from a place on.
pub(crate) fn is_ready(
    readiness: &Readiness,
    address: SocketAddr,
    namespace: Option<&Namespace>,
    (log, log_start): (&Path, u64),
) -> bool {
    let ask = || match readiness {
        Readiness::TcpAccept => connect(address).map(drop),
        Readiness::Connack => exchange_connect(connect(address)?),
        Readiness::UdpBound => find_bound(address),
        Readiness::LogLine(text) => find_line(log, log_start, text),
    };
    namespace.map_or_else(ask, |namespace| namespace.run(ask)).is_ok()
}

/// Whether a line of a program's output contains a text.
pub(crate) fn has_line(log: &Path, text: &str) -> bool {
    find_line(log, 0, text).is_ok()
}

/// What was waited for, in words.
pub(crate) fn in_words(readiness: &Readiness) -> String {
    match readiness {
        Readiness::TcpAccept => "accepted no connection".into(),
        Readiness::Connack => "sent no CONNACK".into(),
        Readiness::UdpBound => "bound no UDP socket to its endpoint".into(),
        Readiness::LogLine(text) => format!("logged no line with {text:?}"),
    }
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    TcpStream::connect_timeout(&address, PATIENCE)
}

/// A CONNECT, answered by a CONNACK. A refusal is an answer, too: who can refuse, serves.
fn exchange_connect(mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let fields = ConnectFields {
        version: Version::V311,
        client_id: CLIENT_ID,
        clean: true,
        keep_alive_s: 0,
        session_expiry_s: 0,
        receive_maximum: u16::MAX,
        topic_alias_maximum: 0,
        will: None,
        username: None,
        password: None,
    };
    let mut bytes = Vec::new();
    encode::connect(&fields, &mut bytes);
    stream.write_all(&bytes)?;
    let mut first = [0];
    stream.read_exact(&mut first)?;
    // The type of a control packet is in the high half of its first byte (MQTT 3.1.1, §2.2.1).
    if first[0] >> 4 != Kind::Connack as u8 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    bytes.clear();
    encode::bare(Kind::Disconnect, &mut bytes);
    stream.write_all(&bytes)
}

/// Whether a UDP socket is bound to an address, or to its port at every address.
fn find_bound(address: SocketAddr) -> io::Result<()> {
    let IpAddr::V4(ip) = address.ip() else { return Err(io::ErrorKind::Unsupported.into()) };
    // Addresses are printed as the machine's words, byte for byte as they are in memory.
    let own = format!("{:08X}", u32::from_ne_bytes(ip.octets()));
    let everywhere = ["0".repeat(8), "0".repeat(32)];
    let sockets = ["udp", "udp6"].map(|table| fs::read_to_string(format!("/proc/thread-self/net/{table}")));
    let is_there = |line: &str| {
        // "  12: 0100007F:075C 00000000:0000 07 ...": the first column numbers the row.
        let (host, port) = line.split_whitespace().nth(1)?.split_once(':')?;
        let fits = host == own || everywhere.iter().any(|any| any == host);
        (fits && u16::from_str_radix(port, 16).ok()? == address.port()).then_some(())
    };
    let mut lines = sockets.iter().flatten().flat_map(|table| table.lines().skip(1));
    lines.find_map(is_there).ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn find_line(log: &Path, start: u64, text: &str) -> io::Result<()> {
    let written = fs::read(log)?;
    let written = written.get(start as usize..).unwrap_or_default();
    // A line that is still being written does not count.
    let complete = written.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let written = String::from_utf8_lossy(&written[..complete]);
    written
        .lines()
        .any(|line| line.contains(text))
        .then_some(())
        .ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// How long a server may take to accept, and to answer, before it is asked again.
const PATIENCE: Duration = Duration::from_millis(200);
/// Nobody else in a run is called so.
const CLIENT_ID: &str = "mqttlab-ready";

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Whether a server that answers a CONNECT with these bytes is ready.
    fn ready_with(answer: &'static [u8], readiness: &Readiness) -> bool {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 2];
            if stream.read_exact(&mut request).is_ok() {
                assert_eq!(request[0], 0x10, "a CONNECT");
                stream.write_all(answer).unwrap();
                let _ = stream.read_to_end(&mut Vec::new());
            }
        });
        let ready = is_ready(readiness, address, None, (Path::new("/nowhere"), 0));
        server.join().unwrap();
        ready
    }

    #[test]
    fn a_connack_is_ready_and_silence_or_another_protocol_is_not() {
        assert!(ready_with(&[0x20, 2, 0, 0], &Readiness::Connack));
        assert!(ready_with(&[0x20, 2, 0, 5], &Readiness::Connack), "refused, but served");
        assert!(!ready_with(&[], &Readiness::Connack));
        assert!(!ready_with(b"HTTP/1.1 400 Bad Request\r\n", &Readiness::Connack));
        assert!(ready_with(&[], &Readiness::TcpAccept));
    }

    #[test]
    fn a_socket_for_datagrams_is_ready_once_it_is_bound() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let ready = |address| is_ready(&Readiness::UdpBound, address, None, (Path::new("/nowhere"), 0));
        assert!(ready(address));
        drop(socket);
        let everywhere = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        let port = everywhere.local_addr().unwrap().port();
        assert!(ready(SocketAddr::new("10.1.2.3".parse().unwrap(), port)));
        drop(everywhere);
        // Not the port that has been let go: it may be another program's by now.
        assert!(!ready(SocketAddr::new("10.1.2.3".parse().unwrap(), 1)));
    }

    #[test]
    fn a_line_of_the_log_counts_once_it_is_complete() {
        let log = std::env::temp_dir().join(format!("mqttlab-ready-{}", std::process::id()));
        let running = Readiness::LogLine("version 2 running".into());
        let address = "127.0.0.1:1".parse().unwrap();
        let ready = |text: &str| {
            fs::write(&log, text).unwrap();
            is_ready(&running, address, None, (&log, 0))
        };
        assert!(!ready("1: version 2 starting\n"));
        assert!(!ready("1: version 2 starting\n2: version 2 running"));
        assert!(ready("1: version 2 starting\n2: version 2 running\n"));
        assert!(!is_ready(&running, address, None, (&log, 43)), "an earlier start has written it");
        fs::remove_file(&log).unwrap();
        assert!(!is_ready(&running, address, None, (&log, 0)));
    }
}
