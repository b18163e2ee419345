//! What the emulator reads of an IPv4 header, and what it changes in one.

/// The destination address of an IPv4 packet (RFC 791 §3.1).
pub(crate) fn destination(packet: &[u8]) -> Option<u32> {
    let is_ipv4 = packet.first()? >> 4 == 4;
    let address = packet.get(16..20)?.try_into().expect("four bytes");
    is_ipv4.then(|| u32::from_be_bytes(address))
}

/// Whether a queue may mark the packet instead of dropping it: its transport is ECN-capable (RFC 3168 §5).
pub(crate) fn is_ect(packet: &[u8]) -> bool {
    packet.get(1).is_some_and(|field| field & ECN != 0)
}

/// Marks an IPv4 packet: congestion experienced (RFC 3168 §5). The checksum follows by RFC 1624 equation 3, so that one that was
/// wrong before stays wrong.
pub(crate) fn mark(packet: &mut [u8]) {
    let Some(header) = packet.get_mut(..20) else { return };
    let word = |at: usize, header: &[u8]| u16::from_be_bytes([header[at], header[at + 1]]);
    let before = word(0, header);
    header[1] |= ECN;
    // ~(~HC + ~m + m'), in ones' complement.
    let sum = u32::from(!word(10, header)) + u32::from(!before) + u32::from(word(0, header));
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !(((folded & 0xffff) + (folded >> 16)) as u16);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// The two bits of the former type of service; both set are a mark.
const ECN: u8 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    /// The checksum of a header whose own field counts as zero (RFC 791 §3.1).
    fn checksum(header: &[u8]) -> u16 {
        let words = header[..20].chunks_exact(2).enumerate().filter(|(place, _)| *place != 5);
        let mut sum: u32 = words.map(|(_, word)| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn a_marked_header_has_the_checksum_of_its_words() {
        for (tos, id) in (0..=255_u8).flat_map(|tos| [0_u16, 1, 0x1234, 0xfffe, 0xffff].map(|id| (tos, id))) {
            let mut packet = vec![0x45, tos, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2];
            packet[4..6].copy_from_slice(&id.to_be_bytes());
            let before = checksum(&packet).to_be_bytes();
            packet[10..12].copy_from_slice(&before);
            mark(&mut packet);
            assert_eq!(packet[1], tos | 3);
            assert_eq!(packet[10..12], checksum(&packet).to_be_bytes(), "tos {tos}, id {id}");
        }
    }

    #[test]
    fn what_is_no_packet_is_left_alone() {
        let mut short = vec![0x45, 2, 0];
        mark(&mut short);
        assert_eq!(short, [0x45, 2, 0]);
        assert!(is_ect(&short) && !is_ect(&[0x45]) && !is_ect(&[0x45, 0xfc]));
    }
}
