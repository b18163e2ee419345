//! Secrets that are known, found in any file: as they are, and behind a mask of WebSocket's.
//!
//! All of them are looked for in one pass: at each place the first four bytes say which there may be. Behind a mask of four
//! bytes (RFC 6455 §5.3), bytes that are four apart differ as the secret's do.
//!
//! What is not found: a secret of fewer than four bytes, one of fewer than eight behind a mask, and the ends of one that two
//! segments share.

use std::collections::HashMap;
use std::io::{self, Read};

use mqttlab_capture::credentials::Rewritten;

/// What is looked for.
pub struct Needles {
    plain: ByBeginning,
    masked: ByBeginning,
    longest: usize,
}

/// A secret, and what is looked for of it: itself, or its differences.
struct Needle {
    shape: Box<[u8]>,
    secret: Box<[u8]>,
}

/// Needles, by their first four bytes.
struct ByBeginning {
    needles: HashMap<u32, Vec<Needle>>,
    /// A bit for each pair of first bytes: most places end here.
    begins: Vec<u64>,
}

impl Needles {
    /// Of these secrets.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Needles {
        let mut needles = Needles { plain: ByBeginning::new(), masked: ByBeginning::new(), longest: 0 };
        for secret in secrets {
            for piece in pieces(secret.as_bytes()) {
                needles.longest = needles.longest.max(piece.len());
                if piece.len() >= SHORTEST {
                    needles.plain.add(piece.into(), piece);
                }
                if piece.len() >= MASKED_SHORTEST {
                    needles.masked.add(differences(piece).into(), piece);
                }
            }
        }
        needles
    }

    /// Asterisks in the places of what is found; behind masks where `masked` says so.
    pub fn find(&self, mut file: impl Read, masked: bool) -> io::Result<Rewritten> {
        let (mut found, mut part, mut begin) = (Rewritten::new(), Vec::new(), 0_u64);
        if self.longest == 0 {
            return Ok(found);
        }
        loop {
            let read = file.by_ref().take(READ_BYTES).read_to_end(&mut part)?;
            self.find_in(&part, begin, masked, &mut found);
            if read == 0 {
                return Ok(found);
            }
            // What is cut here is found whole with the next part.
            let passed = part.len().saturating_sub(self.longest);
            begin += passed as u64;
            part.drain(..passed);
        }
    }

    fn find_in(&self, part: &[u8], begin: u64, masked: bool, found: &mut Rewritten) {
        self.plain.each(part, |at, secret| {
            found.extend((begin + at as u64..).zip(std::iter::repeat_n(STAR, secret.len())));
        });
        if masked {
            self.masked.each(&differences(part), |at, secret| {
                let key: Vec<u8> =
                    part[at..].iter().zip(secret).take(MASK_BYTES).map(|(one, other)| one ^ other).collect();
                // Without a mask it was found as it is.
                if key.iter().any(|&byte| byte != 0) {
                    let stars = key.iter().cycle().map(|key| STAR ^ key).take(secret.len());
                    found.extend((begin + at as u64..).zip(stars));
                }
            });
        }
    }
}

impl ByBeginning {
    fn new() -> ByBeginning {
        ByBeginning { needles: HashMap::new(), begins: vec![0; (1 << 16) / 64] }
    }

    fn add(&mut self, shape: Box<[u8]>, secret: &[u8]) {
        let pair = usize::from(u16::from_le_bytes([shape[0], shape[1]]));
        self.begins[pair / 64] |= 1 << (pair % 64);
        let needles = self.needles.entry(four(&shape)).or_default();
        if needles.iter().all(|needle| needle.shape != shape) {
            needles.push(Needle { shape, secret: secret.into() });
        }
    }

    /// Calls `each` with the place and the secret of all that stand in these bytes.
    fn each(&self, bytes: &[u8], mut each: impl FnMut(usize, &[u8])) {
        for (at, window) in bytes.windows(4).enumerate() {
            let pair = usize::from(u16::from_le_bytes([window[0], window[1]]));
            if self.begins[pair / 64] >> (pair % 64) & 1 == 0 {
                continue;
            }
            for needle in self.needles.get(&four(window)).into_iter().flatten() {
                if bytes[at..].starts_with(&needle.shape) {
                    each(at, &needle.secret);
                }
            }
        }
    }
}

/// A secret, or the pieces of a long one: segments may share it.
fn pieces(secret: &[u8]) -> Vec<&[u8]> {
    if secret.len() < 2 * PIECE {
        return vec![secret];
    }
    secret.chunks_exact(PIECE).chain([&secret[secret.len() - PIECE..]]).collect()
}

/// Each byte, and the one four further on, exclusive-or.
fn differences(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().zip(bytes.iter().skip(MASK_BYTES)).map(|(one, other)| one ^ other).collect()
}

fn four(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

const STAR: u8 = b'*';
const SHORTEST: usize = 4;
const MASK_BYTES: usize = 4;
/// With fewer a masked secret would be found by chance.
const MASKED_SHORTEST: usize = 8;
const PIECE: usize = 16;
const READ_BYTES: u64 = 1 << 22;

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "hunter22-and-more";

    fn hidden(secrets: &[&str], mut file: Vec<u8>, masked: bool) -> Vec<u8> {
        let found = Needles::new(secrets.iter().copied()).find(&file[..], masked).unwrap();
        found.into_iter().for_each(|(place, byte)| file[place as usize] = byte);
        file
    }

    fn masked(text: &str, key: [u8; 4]) -> Vec<u8> {
        text.bytes().zip(key.into_iter().cycle()).map(|(byte, key)| byte ^ key).collect()
    }

    #[test]
    fn a_secret_is_found_as_it_is_and_where_two_parts_of_the_file_meet() {
        for before in [0, 7, READ_BYTES as usize - 5, READ_BYTES as usize] {
            let file = [vec![b'.'; before], SECRET.into(), vec![b'.'; 9]].concat();
            let expected = [vec![b'.'; before], vec![STAR; SECRET.len()], vec![b'.'; 9]].concat();
            assert!(hidden(&["none", SECRET], file, false) == expected, "{before}");
        }
    }

    #[test]
    fn a_secret_behind_a_mask_is_asterisks_behind_the_same_mask() {
        let key = [1, 0xfe, 0x37, 0x99];
        let stars = "*".repeat(SECRET.len());
        assert_eq!(hidden(&[SECRET], masked(SECRET, key), true), masked(&stars, key));
        assert_eq!(hidden(&[SECRET], masked(SECRET, key), false), masked(SECRET, key));
        let long = "0123456789abcdefghijklmnopqrstuvwxyzABCDE";
        assert_eq!(hidden(&[long], masked(long, key), true), masked(&"*".repeat(long.len()), key));
    }

    #[test]
    fn of_a_long_secret_that_two_segments_share_the_pieces_are_found() {
        let long = "0123456789abcdefghijklmnopqrstuvwxyz";
        let file = format!("{}|header|{}", &long[..20], &long[20..]);
        let shown = String::from_utf8(hidden(&[long], file.into(), false)).unwrap();
        assert_eq!(shown, format!("{}ghij|header|{}", "*".repeat(16), "*".repeat(16)));
    }

    #[test]
    fn nothing_is_looked_for_where_there_is_no_secret_or_a_short_one() {
        for secrets in [&[][..], &[""], &["abc"]] {
            assert_eq!(hidden(secrets, b"abcabc".to_vec(), true), b"abcabc");
        }
        assert_eq!(hidden(&["abcd"], b"xabcdabcd".to_vec(), true), b"x********");
    }
}
