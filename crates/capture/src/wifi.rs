//! Frames of IEEE 802.11 as monitors capture them: behind radiotap, PPI, Prism and AVS headers, or bare.

use crate::link::{self, NetworkPacket};

/// What a frame carries and at which byte, or what keeps it from being read.
pub(crate) type Opened = Result<(NetworkPacket, usize), &'static str>;

const NOTHING: Opened = Ok((NetworkPacket::Other, 0));

/// Behind a header of radiotap, which says its length and whether the frame's header is padded.
pub(crate) fn radiotap(frame: &[u8]) -> Opened {
    match le16(frame, 2) {
        Some(length) => data(frame, usize::from(length), is_padded(frame)),
        None => NOTHING,
    }
}

/// Behind per-packet information, which says the link type of what follows.
pub(crate) fn ppi(frame: &[u8]) -> Opened {
    let (Some(length), Some(kind)) = (le16(frame, 2), le16(frame, 4)) else { return NOTHING };
    match kind {
        105 => data(frame, usize::from(length), false),
        1 => Ok(link::ethernet(frame, usize::from(length))),
        _ => NOTHING,
    }
}

/// Behind a header of Prism, or one of AVS, which some drivers write under the same number.
pub(crate) fn prism(frame: &[u8]) -> Opened {
    if frame.starts_with(&[0x80, 0x21, 0x10]) { avs(frame) } else { data(frame, PRISM_BYTES, false) }
}

/// Behind a header of AVS, which says its length.
pub(crate) fn avs(frame: &[u8]) -> Opened {
    match link::be16(frame, 6) {
        Some(length) => data(frame, usize::from(length), false),
        None => NOTHING,
    }
}

/// A frame of 802.11 (§9.2): what data carry, behind LLC and SNAP.
pub(crate) fn data(frame: &[u8], at: usize, is_padded: bool) -> Opened {
    let Some(header) = frame.get(at..).and_then(|rest| rest.get(..24)) else { return NOTHING };
    let [control, flags] = [header[0], header[1]];
    let subtype = control >> 4;
    // Data with a body: version 0, type 2, without the bit that says that there is none.
    if control & 0x0f != 0x08 || subtype & 4 != 0 {
        return NOTHING;
    }
    if flags & 0x40 != 0 {
        return Err(
            "Wi-Fi with encryption (decrypt it with airdecap-ng, or capture behind the access point)",
        );
    }
    if flags & 0x04 != 0 || header[22] & 0x0f != 0 {
        return Err("fragments of Wi-Fi frames");
    }
    let mut length = if flags & 3 == 3 { 30 } else { 24 };
    if subtype & 8 != 0 {
        if frame.get(at + length).is_some_and(|quality| quality & 0x80 != 0) {
            return Err("Wi-Fi frames with several packets (A-MSDU)");
        }
        length += if flags & 0x80 == 0 { 2 } else { 6 };
    }
    if is_padded {
        length = length.next_multiple_of(4);
    }
    let body = at + length;
    match frame.get(body..body + 6) {
        Some([0xaa, 0xaa, 3, 0, 0, 0 | 0xf8]) => Ok(link::behind_ethertype(frame, body + 6, body + 8)),
        _ => NOTHING,
    }
}

/// Whether radiotap's flags say that the frame's header is filled up to four bytes.
fn is_padded(frame: &[u8]) -> bool {
    let word = |at: usize| frame.get(at..at + 4).map(|word| [word[0], word[1], word[2], word[3]]);
    let Some(first) = word(4).map(u32::from_le_bytes) else { return false };
    let mut at = 8;
    let mut present = first;
    while present & 1 << 31 != 0 {
        let Some(next) = word(at).map(u32::from_le_bytes) else { return false };
        (present, at) = (next, at + 4);
    }
    if first & 1 != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    first & 2 != 0 && frame.get(at).is_some_and(|flags| flags & 0x20 != 0)
}

fn le16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
}

const PRISM_BYTES: usize = 144;
