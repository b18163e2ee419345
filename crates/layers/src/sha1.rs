//! SHA-1 (RFC 3174), which RFC 6455 asks for; nothing secret depends on it there.

/// The digest of a message.
pub(crate) fn digest(message: &[u8]) -> [u8; 20] {
    let mut padded = message.to_vec();
    padded.push(0x80);
    // To eight bytes below a whole number of blocks, for the length in bits (§4).
    padded.resize((padded.len() + 8).div_ceil(BLOCK) * BLOCK - 8, 0);
    padded.extend_from_slice(&(8 * message.len() as u64).to_be_bytes());
    let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    padded.chunks_exact(BLOCK).for_each(|block| compress(&mut state, block));
    let mut digest = [0; 20];
    digest
        .chunks_exact_mut(4)
        .zip(state)
        .for_each(|(place, word)| place.copy_from_slice(&word.to_be_bytes()));
    digest
}

fn compress(state: &mut [u32; 5], block: &[u8]) {
    let mut words = [0; 80];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    for t in 16..80 {
        words[t] = (words[t - 3] ^ words[t - 8] ^ words[t - 14] ^ words[t - 16]).rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (t, word) in words.into_iter().enumerate() {
        let (f, k): (u32, u32) = match t {
            0..20 => ((b & c) | (!b & d), 0x5a82_7999),
            20..40 => (b ^ c ^ d, 0x6ed9_eba1),
            40..60 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6),
        };
        let next = a.rotate_left(5).wrapping_add(f).wrapping_add(e).wrapping_add(word).wrapping_add(k);
        (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
    }
    for (word, change) in state.iter_mut().zip([a, b, c, d, e]) {
        *word = word.wrapping_add(change);
    }
}

const BLOCK: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(message: &[u8]) -> String {
        digest(message).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn digests_are_those_of_the_rfc() {
        assert_eq!(hex(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(hex(b""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        let long = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(hex(long), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
        assert_eq!(hex(&[b'a'; 1_000_000]), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    }
}
