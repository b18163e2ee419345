//! Servers that the engine performs: they serve on when nobody reads what they say.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const ENGINE: &str = env!("CARGO_BIN_EXE_mqttlab-engine");

/// An address of loopback that is this process's own.
///
/// A port of 127.0.0.1 that was found free and let go may be another's before the server has it: the kernel gives those of
/// `ip_local_port_range` (from 32768 on) to whoever asks for none in particular. What the server has chosen itself (port 0)
/// nobody can read here.
fn own(port: u16) -> SocketAddr {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    // Process identifiers have 22 bits (PID_MAX_LIMIT of `proc(5)`).
    (Ipv4Addr::new(127, 64 | high, middle, low), port).into()
}

/// A server whose standard output nobody reads: its other end is closed before the server says anything.
struct Server {
    process: Child,
    settings: PathBuf,
}

impl Server {
    fn start(role: &str, settings: &Value) -> Server {
        let path = std::env::temp_dir().join(format!("mqttlab-test-{}-{role}.json", std::process::id()));
        fs::write(&path, settings.to_string()).unwrap();
        // The engine starts behind a shell that waits for a line, so that the reading end is surely gone by then.
        let mut process = Command::new("sh")
            .args(["-c", "read line; exec \"$0\" \"$1\" --settings \"$2\"", ENGINE, role])
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(process.stdout.take());
        writeln!(process.stdin.take().unwrap()).unwrap();
        Server { process, settings: path }
    }

    /// Ends it by SIGTERM: its exit status, and what it wrote to standard error.
    fn end(mut self) -> (Option<i32>, String) {
        let ended = Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status().unwrap();
        assert!(ended.success());
        let mut said = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.process.wait().unwrap().code(), said)
    }

    /// Asks `answer` until it is some, and fails where the server has ended before.
    fn until<T>(&mut self, mut answer: impl FnMut() -> Option<T>) -> T {
        let limit = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(found) = answer() {
                return found;
            }
            if let Some(status) = self.process.try_wait().unwrap() {
                let mut said = String::new();
                self.process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
                panic!("the server has ended ({status}): {said}");
            }
            assert!(Instant::now() < limit, "the server does not answer");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_file(&self.settings);
    }
}

#[test]
fn a_gateway_whose_reader_is_gone_serves_on_until_a_signal_ends_it() {
    let listen = own(21_883);
    let mut server = Server::start(
        "gateway",
        &json!({
            "listen": listen.to_string(), "broker": "127.0.0.1:1",
            "role": {
                "broker": 0, "mode": "transparent", "id": 7, "client_id": "gateway", "keep_alive_s": 60,
                "retry_ns": 10_000_000_000_u64, "retries": 3, "window": 0, "buffer": 10, "clients_max": 10,
                "broker_window": 10, "broker_queue": 10, "filter_duplicates": false, "advertise_ns": null,
                "predefined_topics": [], "service": { "per_packet_ns": 0, "per_copy_ns": 0, "jitter": [0, 1] },
            },
        }),
    );
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let answer = server.until(|| {
        let mut answer = [0; 16];
        // SEARCHGW (MQTT-SN 1.2 §5.4.2), which GWINFO answers.
        client.send_to(&[3, 0x01, 0], listen).ok()?;
        client.recv(&mut answer).ok().map(|length| answer[..length].to_vec())
    });
    assert_eq!(answer, [3, 0x02, 7]);
    assert_eq!(server.end(), (Some(0), String::new()));
}

#[test]
fn a_proxy_whose_reader_is_gone_serves_on_until_a_signal_ends_it() {
    let (publishers, subscribers) = (own(21_884), own(21_885));
    let mut server = Server::start(
        "proxy",
        &json!({
            "publishers": publishers.to_string(), "subscribers": subscribers.to_string(), "high_water_mark": 10,
        }),
    );
    let mut peer = server.until(|| TcpStream::connect(publishers).ok());
    let mut signature = [0; 10];
    peer.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    peer.read_exact(&mut signature).unwrap();
    assert_eq!((signature[0], signature[9]), (0xFF, 0x7F), "the signature of a ZMTP greeting");
    assert_eq!(server.end(), (Some(0), String::new()));
}
