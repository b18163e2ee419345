//! What files are that are no captures here, by their first bytes, and the program that makes one of them.

/// What a file is and how it becomes a capture that is read, in words that follow its name.
pub(crate) fn named(head: &[u8]) -> Option<&'static str> {
    let known = KNOWN.iter().find(|(first, _)| head.starts_with(first));
    known.map(|(_, words)| *words).or_else(|| text(head)).or_else(|| erf(head))
}

const KNOWN: [(&[u8], &str); 22] = [
    (b"\xfd7zXZ\0", "compressed with xz; unpack it first: unxz IN"),
    (b"BZh", "compressed with bzip2; unpack it first: bunzip2 IN"),
    (b"\x04\x22\x4d\x18", "compressed with LZ4; unpack it first: unlz4 IN"),
    (b"\x1f\x9d", "compressed with compress; unpack it first: uncompress IN"),
    (b"LZIP", "compressed with lzip; unpack it first: lzip -d IN"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive; unpack it first (7z x IN) and name the files in it"),
    (b"PK\x03\x04", "a ZIP archive; unpack it first (unzip IN) and name the files in it"),
    (b"Rar!", "a RAR archive; unpack it first (unrar x IN) and name the files in it"),
    (b"TRSNIFF data", "a capture of Sniffer (DOS); convert it with: editcap -F pcapng IN OUT"),
    (b"XCP\0", "a capture of Sniffer or NetXray (Windows); convert it with: editcap -F pcapng IN OUT"),
    (b"\x05VNF", "a capture of Visual Networks; convert it with: editcap -F pcapng IN OUT"),
    (b"\xaa\xaa\xaa\xaa", "a capture of 5View; convert it with: editcap -F pcapng IN OUT"),
    (b"ObserverPktBuffe", "a capture of Observer; convert it with: editcap -F pcapng IN OUT"),
    (b"\x01\x10\x4c\0", "a capture of LANalyzer; convert it with: editcap -F pcapng IN OUT"),
    (b"iptrace ", "a capture of AIX's iptrace; convert it with: editcap -F pcapng IN OUT"),
    (b"TR\0d", "a capture of HP-UX's nettl; convert it with: editcap -F pcapng -T ether IN OUT"),
    (b"\0\0\x02\0\x12\x05\0\x10", "a capture of K12; convert it with: editcap -F pcapng IN OUT"),
    (b"\x7fver", "a capture of EtherPeek or OmniPeek; convert it with: editcap -F pcapng IN OUT"),
    (b"btsnoop\0", "a capture of Bluetooth's host interface (btsnoop), which carries no TCP"),
    (
        b"+---------+---------------+----------+",
        "a text of K12; convert it with: editcap -F pcapng -T ether IN OUT",
    ),
    (b"%!PS", "a printed document; give the capture that it was made from"),
    (b"%PDF", "a printed document; give the capture that it was made from"),
];

/// Texts that programs make of packets.
fn text(head: &[u8]) -> Option<&'static str> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let text = String::from_utf8_lossy(head);
    let text = text.trim_start();
    let line = text.lines().next().unwrap_or_default();
    if text.starts_with('<') && (text.contains("<pdml") || text.contains("<psml")) {
        return Some(
            "packets as XML; give the capture that tshark made it from (or let tshark write one: -w OUT)",
        );
    }
    if text.starts_with(['[', '{']) && (text.contains("\"_index\"") || text.contains("\"layers\"")) {
        return Some(
            "packets as JSON; give the capture that tshark made it from (or let tshark write one: -w OUT)",
        );
    }
    if line.starts_with("\"No.\",\"Time\"") || line.trim_start().starts_with("No.     Time") {
        return Some("a list of packets; give the capture that Wireshark made it from (File, Save As)");
    }
    let (first, rest) = line.strip_prefix("0x").unwrap_or(line).split_once([' ', ':'])?;
    let is_number = (4..=8).contains(&first.len()) && first.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_dump = |words: &str| {
        let words: Vec<&str> =
            words.trim_start_matches([' ', ':', '\t']).split_whitespace().take(4).collect();
        words.len() == 4
            && words
                .iter()
                .all(|word| matches!(word.len(), 2 | 4) && word.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    if is_number && is_dump(rest) {
        return Some("a hex dump; make a capture of it with: text2pcap IN OUT");
    }
    let is_clock = first.len() == 2 && first.bytes().all(|byte| byte.is_ascii_digit());
    if is_clock && [" IP ", " IP6 ", " ARP"].iter().any(|word| line.contains(word)) {
        return Some("what tcpdump has printed; let it write the packets: tcpdump -w OUT");
    }
    None
}

/// Endace's records have no number at the start: the first one's kind, lengths and time must be possible, and the next one's.
fn erf(head: &[u8]) -> Option<&'static str> {
    let mut at = 0;
    for _ in 0..2 {
        let record = head.get(at..at + 16)?;
        let length = usize::from(u16::from_be_bytes([record[10], record[11]]));
        let on_link = u16::from_be_bytes([record[14], record[15]]);
        if !matches!(record[8] & 0x7f, 1..=33) || length < 16 || on_link == 0 || record[12..14] != [0, 0] {
            return None;
        }
        at += length;
    }
    Some("a capture of Endace (ERF), as it seems; convert it with: editcap -F pcapng IN OUT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_programs_are_named_with_the_way_to_a_capture() {
        for (head, words) in [
            (&b"\xfd7zXZ\0\0"[..], "compressed with xz; unpack it first: unxz IN"),
            (
                b"TRSNIFF data    \x1a",
                "a capture of Sniffer (DOS); convert it with: editcap -F pcapng IN OUT",
            ),
            (b"0000  45 00 00 2c 03 e9", "a hex dump; make a capture of it with: text2pcap IN OUT"),
            (b"0x0000:  4500 002c 03e9 4000", "a hex dump; make a capture of it with: text2pcap IN OUT"),
            (
                b"12:00:01.5 IP 10.0.0.1.40000 > 10.0.0.2.1883: Flags [S]",
                "what tcpdump has printed; let it write the packets: tcpdump -w OUT",
            ),
            (
                b"[\n  {\n    \"_index\": \"packets-2023\",",
                "packets as JSON; give the capture that tshark made it from (or let tshark write one: -w OUT)",
            ),
        ] {
            assert_eq!(named(head), Some(words));
        }
        for head in [&b"hello, this is not a capture at all"[..], b"", b"date,time,action,topic", b"\0\0\0\0"]
        {
            assert_eq!(named(head), None);
        }
    }
}
