//! Bytes as text (RFC 4648 §4), with padding.

/// The length of `bytes` bytes as text.
pub(super) const fn length(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

/// Appends `bytes` as text.
pub(super) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    for group in bytes.chunks(3) {
        let word = group.iter().fold(0, |word, &byte| word << 8 | u32::from(byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let digit = ALPHABET[(word >> (18 - 6 * place) & 63) as usize];
            out.push(if place <= group.len() { digit } else { b'=' });
        }
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn decode(text: &str) -> Vec<u8> {
        let digits: Vec<u32> = text
            .bytes()
            .filter_map(|digit| ALPHABET.iter().position(|known| *known == digit))
            .map(|digit| digit as u32)
            .collect();
        let whole = |group: &[u32]| {
            let word = group.iter().fold(0, |word, digit| word << 6 | digit) << (6 * (4 - group.len()));
            word.to_be_bytes()[1..group.len()].to_vec()
        };
        digits.chunks(4).flat_map(whole).collect()
    }

    #[test]
    fn texts_are_those_of_rfc_4648_section_10() {
        let table = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
        ];
        for (bytes, text) in table {
            let mut out = Vec::new();
            encode(bytes.as_bytes(), &mut out);
            assert_eq!(out, text.as_bytes());
            assert_eq!(out.len(), length(bytes.len()));
            assert_eq!(decode(text), bytes.as_bytes());
        }
    }
}
