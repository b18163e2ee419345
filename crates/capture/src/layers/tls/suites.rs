//! Cipher suites: which are opened, and what the others are called.

/// How records are sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cipher {
    Aes128Gcm,
    Aes256Gcm,
    ChaCha20Poly1305,
}

/// The hash behind the key schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hash {
    Sha256,
    Sha384,
}

/// A suite whose records are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Suite {
    pub(super) cipher: Cipher,
    pub(super) hash: Hash,
}

/// The suite of a number that IANA has assigned, if its records can be opened. Key exchange and signature do not matter.
pub(super) fn suite(number: u16) -> Option<Suite> {
    let cipher = match number {
        0x1301 | 0xd001 => Cipher::Aes128Gcm,
        0x1302 | 0xd002 => Cipher::Aes256Gcm,
        // Pairs of 128 and 256 bits, one for each key exchange (RFC 5288, 5289, 5487).
        0x009c..=0x00ad | 0xc02b..=0xc032 => {
            let first = if number < 0x100 { 0x009c } else { 0xc02b };
            if (number - first).is_multiple_of(2) { Cipher::Aes128Gcm } else { Cipher::Aes256Gcm }
        }
        0x1303 | 0xcca8..=0xccae => Cipher::ChaCha20Poly1305,
        _ => return None,
    };
    let hash = if cipher == Cipher::Aes256Gcm { Hash::Sha384 } else { Hash::Sha256 };
    Some(Suite { cipher, hash })
}

/// The suites of TLS 1.3 that a secret of this length may be of.
pub(super) fn of_secret(length: usize) -> &'static [u16] {
    if length == 48 { &[0x1302] } else { &[0x1301, 0x1303] }
}

/// What a suite is called.
pub(super) fn name(number: u16) -> String {
    let known = NAMES.iter().find(|(known, _)| *known == number);
    known.map_or_else(|| format!("cipher suite 0x{number:04x}"), |(_, name)| (*name).to_owned())
}

/// Those that brokers and devices have: the three of TLS 1.3, what browsers and OpenSSL choose, and what is not opened.
const NAMES: &[(u16, &str)] = &[
    (0x1301, "TLS_AES_128_GCM_SHA256"),
    (0x1302, "TLS_AES_256_GCM_SHA384"),
    (0x1303, "TLS_CHACHA20_POLY1305_SHA256"),
    (0x1304, "TLS_AES_128_CCM_SHA256"),
    (0x1305, "TLS_AES_128_CCM_8_SHA256"),
    (0x0004, "TLS_RSA_WITH_RC4_128_MD5"),
    (0x0005, "TLS_RSA_WITH_RC4_128_SHA"),
    (0x000a, "TLS_RSA_WITH_3DES_EDE_CBC_SHA"),
    (0x002f, "TLS_RSA_WITH_AES_128_CBC_SHA"),
    (0x0033, "TLS_DHE_RSA_WITH_AES_128_CBC_SHA"),
    (0x0035, "TLS_RSA_WITH_AES_256_CBC_SHA"),
    (0x0039, "TLS_DHE_RSA_WITH_AES_256_CBC_SHA"),
    (0x003c, "TLS_RSA_WITH_AES_128_CBC_SHA256"),
    (0x003d, "TLS_RSA_WITH_AES_256_CBC_SHA256"),
    (0x0067, "TLS_DHE_RSA_WITH_AES_128_CBC_SHA256"),
    (0x006b, "TLS_DHE_RSA_WITH_AES_256_CBC_SHA256"),
    (0x008c, "TLS_PSK_WITH_AES_128_CBC_SHA"),
    (0x008d, "TLS_PSK_WITH_AES_256_CBC_SHA"),
    (0x00ae, "TLS_PSK_WITH_AES_128_CBC_SHA256"),
    (0x00af, "TLS_PSK_WITH_AES_256_CBC_SHA384"),
    (0x009c, "TLS_RSA_WITH_AES_128_GCM_SHA256"),
    (0x009d, "TLS_RSA_WITH_AES_256_GCM_SHA384"),
    (0x009e, "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256"),
    (0x009f, "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384"),
    (0x00a8, "TLS_PSK_WITH_AES_128_GCM_SHA256"),
    (0x00a9, "TLS_PSK_WITH_AES_256_GCM_SHA384"),
    (0xc009, "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA"),
    (0xc00a, "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA"),
    (0xc013, "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"),
    (0xc014, "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA"),
    (0xc023, "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256"),
    (0xc024, "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384"),
    (0xc027, "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256"),
    (0xc028, "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384"),
    (0xc02b, "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
    (0xc02c, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
    (0xc02f, "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
    (0xc030, "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
    (0xc035, "TLS_ECDHE_PSK_WITH_AES_128_CBC_SHA"),
    (0xc036, "TLS_ECDHE_PSK_WITH_AES_256_CBC_SHA"),
    (0xc09c, "TLS_RSA_WITH_AES_128_CCM"),
    (0xc09d, "TLS_RSA_WITH_AES_256_CCM"),
    (0xc0a0, "TLS_RSA_WITH_AES_128_CCM_8"),
    (0xc0a4, "TLS_PSK_WITH_AES_128_CCM"),
    (0xc0a8, "TLS_PSK_WITH_AES_128_CCM_8"),
    (0xc0ac, "TLS_ECDHE_ECDSA_WITH_AES_128_CCM"),
    (0xc0ad, "TLS_ECDHE_ECDSA_WITH_AES_256_CCM"),
    (0xc0ae, "TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8"),
    (0xc0af, "TLS_ECDHE_ECDSA_WITH_AES_256_CCM_8"),
    (0xcca8, "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
    (0xcca9, "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
    (0xccaa, "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_with_gcm_or_chacha20_are_opened_by_their_names() {
        for (number, name) in NAMES {
            let cipher = if name.contains("128_GCM") {
                Some(Cipher::Aes128Gcm)
            } else if name.contains("256_GCM") {
                Some(Cipher::Aes256Gcm)
            } else {
                name.contains("CHACHA20").then_some(Cipher::ChaCha20Poly1305)
            };
            assert_eq!(suite(*number).map(|suite| suite.cipher), cipher, "{name}");
        }
        assert_eq!(name(0xfefe), "cipher suite 0xfefe");
    }
}
