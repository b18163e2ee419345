//! From secrets to keys, and from sealed records to what they hold (RFC 8446 §5, §7; RFC 5246 §6.3; RFC 5288; RFC 7905).

use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::{hkdf, hmac};

use super::suites::{Cipher, Hash, Suite};

/// Opens the records of one direction under one key.
#[derive(Debug)]
pub(super) struct Opener {
    key: LessSafeKey,
    iv: [u8; 12],
    scheme: Scheme,
}

/// How nonce and associated data are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    /// TLS 1.3: the type of what is inside stands behind it.
    Tls13,
    /// TLS 1.2: a part of the nonce stands in the record.
    ExplicitNonce,
    /// TLS 1.2 with ChaCha20-Poly1305.
    ImplicitNonce,
}

/// What a record holds.
pub(super) struct PlainRecord {
    /// Its content type.
    pub(super) kind: u8,
    pub(super) bytes: Vec<u8>,
}

impl Opener {
    /// Of a traffic secret of TLS 1.3.
    pub(super) fn of_traffic(suite: Suite, secret: &[u8]) -> Option<Opener> {
        let mut iv = [0; 12];
        expand_label(suite.hash, secret, "iv", &mut iv)?;
        let mut key = vec![0; suite.cipher.key_len()];
        expand_label(suite.hash, secret, "key", &mut key)?;
        Opener::new(suite.cipher, &key, iv, Scheme::Tls13)
    }

    /// Of a master secret of TLS 1.2, for each direction (RFC 5246 §6.3).
    pub(super) fn of_master(
        suite: Suite,
        master: &[u8],
        [client, server]: [&[u8]; 2],
    ) -> Option<[Opener; 2]> {
        let (key_len, is_gcm) = (suite.cipher.key_len(), suite.cipher != Cipher::ChaCha20Poly1305);
        let iv_len = if is_gcm { 4 } else { 12 };
        let mut block = vec![0; 2 * (key_len + iv_len)];
        prf(suite.hash, master, &[b"key expansion", server, client], &mut block);
        let (keys, ivs) = block.split_at(2 * key_len);
        let scheme = if is_gcm { Scheme::ExplicitNonce } else { Scheme::ImplicitNonce };
        let opener = |way: usize| {
            let mut iv = [0; 12];
            iv[..iv_len].copy_from_slice(&ivs[way * iv_len..(way + 1) * iv_len]);
            Opener::new(suite.cipher, &keys[way * key_len..(way + 1) * key_len], iv, scheme)
        };
        Some([opener(0)?, opener(1)?])
    }

    fn new(cipher: Cipher, key: &[u8], iv: [u8; 12], scheme: Scheme) -> Option<Opener> {
        let algorithm = match cipher {
            Cipher::Aes128Gcm => &AES_128_GCM,
            Cipher::Aes256Gcm => &AES_256_GCM,
            Cipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        };
        let key = LessSafeKey::new(UnboundKey::new(algorithm, key).ok()?);
        Some(Opener { key, iv, scheme })
    }

    /// Bytes of a record's body that are not what it holds.
    pub(super) fn overhead(&self) -> usize {
        match self.scheme {
            Scheme::Tls13 => TAG + 1,
            Scheme::ExplicitNonce => TAG + EXPLICIT_NONCE,
            Scheme::ImplicitNonce => TAG,
        }
    }

    /// What the record with this number holds; `None` when it is not sealed under this key and number.
    pub(super) fn open(&self, number: u64, header: [u8; 5], body: &[u8]) -> Option<PlainRecord> {
        let mut nonce = self.iv;
        let sealed = if self.scheme == Scheme::ExplicitNonce {
            nonce[4..].copy_from_slice(body.get(..EXPLICIT_NONCE)?);
            &body[EXPLICIT_NONCE..]
        } else {
            let number = number.to_be_bytes();
            nonce[4..].iter_mut().zip(number).for_each(|(byte, other)| *byte ^= other);
            body
        };
        let len = sealed.len().checked_sub(TAG)?;
        let mut bytes = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        if self.scheme == Scheme::Tls13 {
            self.key.open_in_place(nonce, Aad::from(header), &mut bytes).ok()?;
            bytes.truncate(len);
            // Zeros behind the type are padding (RFC 8446 §5.4).
            let end = bytes.iter().rposition(|&byte| byte != 0)?;
            let kind = bytes[end];
            bytes.truncate(end);
            return Some(PlainRecord { kind, bytes });
        }
        let mut data = [0; 13];
        data[..8].copy_from_slice(&number.to_be_bytes());
        data[8..11].copy_from_slice(&header[..3]);
        data[11..].copy_from_slice(&(len as u16).to_be_bytes());
        self.key.open_in_place(nonce, Aad::from(data), &mut bytes).ok()?;
        bytes.truncate(len);
        Some(PlainRecord { kind: header[0], bytes })
    }
}

/// The secret after a KeyUpdate (RFC 8446 §7.2).
pub(super) fn updated(hash: Hash, secret: &[u8]) -> Option<Vec<u8>> {
    let mut next = vec![0; secret.len()];
    expand_label(hash, secret, "traffic upd", &mut next)?;
    Some(next)
}

impl Cipher {
    fn key_len(self) -> usize {
        if self == Cipher::Aes128Gcm { 16 } else { 32 }
    }
}

/// A length that HKDF is to expand to.
struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// HKDF-Expand-Label with an empty context (RFC 8446 §7.1).
fn expand_label(hash: Hash, secret: &[u8], label: &str, out: &mut [u8]) -> Option<()> {
    let algorithm = match hash {
        Hash::Sha256 => hkdf::HKDF_SHA256,
        Hash::Sha384 => hkdf::HKDF_SHA384,
    };
    let length = (out.len() as u16).to_be_bytes();
    let name_len = [(LABEL_PREFIX.len() + label.len()) as u8];
    let info = [&length[..], &name_len, LABEL_PREFIX, label.as_bytes(), &[0]];
    let prk = hkdf::Prk::new_less_safe(algorithm, secret);
    prk.expand(&info, Length(out.len())).ok()?.fill(out).ok()
}

/// The pseudo-random function of TLS 1.2 (RFC 5246 §5): label and seed are the parts of `seed`.
fn prf(hash: Hash, secret: &[u8], seed: &[&[u8]], out: &mut [u8]) {
    let algorithm = match hash {
        Hash::Sha256 => hmac::HMAC_SHA256,
        Hash::Sha384 => hmac::HMAC_SHA384,
    };
    let key = hmac::Key::new(algorithm, secret);
    let seed = seed.concat();
    let mut link = hmac::sign(&key, &seed);
    for part in out.chunks_mut(link.as_ref().len()) {
        let block = hmac::sign(&key, &[link.as_ref(), &seed].concat());
        part.copy_from_slice(&block.as_ref()[..part.len()]);
        link = hmac::sign(&key, link.as_ref());
    }
}

const LABEL_PREFIX: &[u8] = b"tls13 ";
/// The authentication tag of all three ciphers.
const TAG: usize = 16;
/// The part of the nonce that stands in a record of TLS 1.2 with GCM (RFC 5288 §3).
const EXPLICIT_NONCE: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::tls::suites::suite;

    fn bytes(text: &str) -> Vec<u8> {
        let digits: Vec<u8> =
            text.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
        digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    /// RFC 8448 §3, "Simple 1-RTT Handshake": the client's traffic secret, and the record that it sends under it.
    #[test]
    fn the_record_of_rfc_8448_is_opened_by_its_traffic_secret() {
        let secret = bytes("9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5");
        let record = bytes(
            "a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b395bd54a9a20441e2b62974e1f5a6292a2977014\
             bd1e3deae63aeebb21694915e4",
        );
        let opener = Opener::of_traffic(suite(0x1301).unwrap(), &secret).unwrap();
        let plain = opener.open(0, [0x17, 3, 3, 0, 0x43], &record).unwrap();
        assert_eq!((plain.kind, plain.bytes), (0x17, (0..50).collect()));
        assert!(opener.open(1, [0x17, 3, 3, 0, 0x43], &record).is_none());
    }

    /// The test vector of the IETF's TLS mailing list for P_SHA256 (2009), which RFC 5246 lacks.
    #[test]
    fn the_pseudo_random_function_of_tls_1_2_is_that_of_its_test_vector() {
        let secret = bytes("9bbe436ba940f017b17652849a71db35");
        let seed = bytes("a0ba9f936cda311827a6f796ffd5198c");
        let mut out = [0; 100];
        prf(Hash::Sha256, &secret, &[b"test label", &seed], &mut out);
        assert_eq!(out[..16], bytes("e3f229ba727be17b8d122620557cd453")[..]);
    }
}
