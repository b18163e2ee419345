//! Our packets as Wireshark's dissector reads them, where tshark is installed.

use std::process::{Command, Stdio};

use crate::samples::samples;
use mqttlab_mqttsn::encode::{encapsulation, encode};
use mqttlab_mqttsn::{Forwarded, Packet};

/// A capture of UDP datagrams to port 1884, as raw IPv4.
fn capture(datagrams: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    // pcap 2.4, microseconds, LINKTYPE_RAW.
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend(word.to_le_bytes());
    }
    for datagram in datagrams {
        let length = 28 + datagram.len();
        for word in [0, 0, length as u32, length as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend([0x45, 0]);
        file.extend((length as u16).to_be_bytes());
        file.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        for field in [40_000, 1884, length as u16 - 20, 0] {
            file.extend(u16::to_be_bytes(field));
        }
        file.extend(datagram);
    }
    file
}

/// A line a packet; `None` where tshark is not there.
fn dissect(datagrams: &[Vec<u8>], fields: &[&str]) -> Option<Vec<String>> {
    let path = std::env::temp_dir().join(format!("mqttlab-sn-{}-{}.pcap", std::process::id(), fields.len()));
    std::fs::write(&path, capture(datagrams)).unwrap();
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&path).args(["-d", "udp.port==1884,mqttsn", "-T", "fields"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.stderr(Stdio::null()).output().ok();
    std::fs::remove_file(&path).unwrap();
    let Some(output) = output else {
        eprintln!("skipped: tshark is not installed (Debian: apt install tshark)");
        return None;
    };
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

#[test]
fn wireshark_sees_the_types_lengths_and_identifiers_that_were_meant() {
    let packets = samples();
    let datagrams: Vec<Vec<u8>> = packets
        .iter()
        .map(|packet| {
            let mut bytes = Vec::new();
            encode(packet, &mut bytes).unwrap();
            bytes
        })
        .collect();
    let fields = ["mqttsn.msg.type", "mqttsn.msg.len", "mqttsn.msg.id", "_ws.malformed"];
    let Some(lines) = dissect(&datagrams, &fields) else { return };
    assert_eq!(lines.len(), packets.len());
    for ((packet, bytes), line) in packets.iter().zip(&datagrams).zip(&lines) {
        let seen: Vec<&str> = line.split('\t').collect();
        let kind = seen[0].trim_start_matches("0x");
        assert_eq!(u8::from_str_radix(kind, 16), Ok(packet.kind() as u8), "{packet:?}: {line}");
        assert_eq!(seen[1].parse(), Ok(bytes.len()), "{packet:?}: {line}");
        let id = match packet {
            Packet::Register { id, .. } | Packet::Publish { id, .. } | Packet::Subscribe { id, .. } => {
                Some(*id)
            }
            Packet::Puback { id, .. } | Packet::Pubrel { id } | Packet::Suback { id, .. } => Some(*id),
            _ => None,
        };
        if let Some(id) = id {
            assert_eq!(seen[2].parse(), Ok(id), "{packet:?}: {line}");
        }
        // The dissector (4.0) does not know that a WILLTOPIC without a topic deletes the will (§5.4.7).
        let deletes =
            matches!(packet, Packet::Willtopic { will: None } | Packet::Willtopicupd { will: None });
        assert_eq!(seen[3].is_empty(), !deletes, "{packet:?}: {line}");
    }
}

#[test]
fn wireshark_sees_a_forwarders_header() {
    let mut bytes = Vec::new();
    encapsulation(&Forwarded { radius: 1, node: &[0x12, 0x34] }, &mut bytes).unwrap();
    encode(&samples()[1], &mut bytes).unwrap();
    let Some(lines) = dissect(&[bytes], &["mqttsn.wireless.node.id", "mqttsn.msg.type"]) else { return };
    assert!(lines[0].starts_with("4660\t") || lines[0].starts_with("0x1234\t"), "{lines:?}");
}
