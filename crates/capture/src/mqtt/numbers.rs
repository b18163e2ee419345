//! Numbers on the wire.

/// A variable byte integer (MQTT 5 §1.5.5): its value and how many bytes it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Varint {
    Value(u32, u8),
    TooShort,
    Invalid,
}

pub(super) fn variable_length(bytes: &[u8]) -> Varint {
    let mut value = 0;
    for index in 0..4 {
        let Some(&byte) = bytes.get(index) else { return Varint::TooShort };
        value |= u32::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Varint::Value(value, index as u8 + 1);
        }
    }
    Varint::Invalid
}

pub(super) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
}
