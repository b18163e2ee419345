//! TLS 1.2 and 1.3 (RFC 5246, RFC 8446) in lengths: records, and who says what until a connection is open.
//!
//! ```text
//!   1.3  client ──hello──► server ──hello … finished──► client ──finished──► server ──tickets──► client    one round trip
//!   1.2  client ──hello──► server ──hello … done──► client ──key … finished──► server ──finished──► client        two
//!   1.2, resumed           server ──hello … finished──► client ──finished──► server                               one
//! ```
//!
//! The lengths are those of rustls as a client and of OpenSSL 3.0, which is in Mosquitto, as a server: X25519, certificates with
//! ECDSA over P-256, AES-256-GCM with SHA-384 (what both prefer), no name of the server because it is an address. A signature
//! is 70 to 72 B long, and the most frequent length counts.
//!
//! What it does not model: refusals, a second ClientHello, early data, pre-shared keys from outside, key updates, and the
//! processor's time for keys and signatures.

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Version {
    V12,
    V13,
}

/// TLS on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The only version that the client speaks.
    pub version: Version,
    /// Whether the client wants tickets.
    pub resumption: bool,
    /// Whether the server asks for a certificate of the client, and gets one.
    pub client_certificate: bool,
}

/// Who opens TLS at the server's end: each names its sessions differently, and tickets are longer or shorter by that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// For MQTT.
    Mosquitto,
    /// For WebSocket, inside of Mosquitto.
    Libwebsockets,
}

/// How a connection is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Handshake {
    /// With certificates.
    #[default]
    Full,
    /// By a ticket of an earlier connection.
    Resumed,
}

impl Version {
    /// As people call it.
    pub fn name(self) -> &'static str {
        match self {
            Version::V12 => "TLSv1.2",
            Version::V13 => "TLSv1.3",
        }
    }

    /// The cipher suite that is agreed on.
    pub fn suite(self) -> &'static str {
        match self {
            Version::V12 => "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
            Version::V13 => "TLS13_AES_256_GCM_SHA384",
        }
    }

    /// What is added to bytes of which so many at most are sealed at once.
    pub fn added(self, bytes: usize, at_once: usize) -> usize {
        bytes.div_ceil(at_once) * self.record()
    }

    /// What is added to the content of a record.
    fn record(self) -> usize {
        match self {
            // Header, the nonce's explicit part (RFC 5288 §3), tag.
            Version::V12 => HEADER + 8 + TAG,
            // Header, the content's type behind it (RFC 8446 §5.2), tag.
            Version::V13 => HEADER + 1 + TAG,
        }
    }

    /// A record that says that nothing more will be said.
    pub fn close_notify(self) -> usize {
        self.record() + ALERT
    }
}

impl Handshake {
    /// As a recording calls it.
    pub fn name(self) -> &'static str {
        match self {
            Handshake::Full => "full",
            Handshake::Resumed => "resumed",
        }
    }
}

/// What is said in a handshake, in bytes of TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flights {
    /// The client's first words.
    pub hello: usize,
    /// The server's answer.
    pub answer: usize,
    /// The client's answer to that.
    pub finish: usize,
    /// What the server says then: of TLS 1.2 the end of its handshake, of 1.3 tickets, each written on its own.
    pub last: Vec<usize>,
}

impl Tls {
    /// What is said in a handshake to a listener of these.
    pub fn flights(self, handshake: Handshake, listener: Listener) -> Flights {
        match (self.version, handshake) {
            (Version::V13, Handshake::Full) => self.full_13(listener),
            (Version::V13, Handshake::Resumed) => self.resumed_13(listener),
            (Version::V12, Handshake::Full) => self.full_12(listener),
            (Version::V12, Handshake::Resumed) => self.resumed_12(listener),
        }
    }

    fn full_13(self, listener: Listener) -> Flights {
        let sealed = |message: usize| message + Version::V13.record();
        let chain = certificate_13(&[SERVER_CERTIFICATE, AUTHORITY]);
        // ChangeCipherSpec has no meaning in 1.3: it is sent for middleboxes (RFC 8446 appendix D.4).
        let mut answer = HEADER + SERVER_HELLO_13 + CHANGE_CIPHER_SPEC + sealed(ENCRYPTED_EXTENSIONS);
        answer += sealed(chain) + sealed(CERTIFICATE_VERIFY) + sealed(FINISHED_13);
        // rustls puts all that it says at once into one record.
        let mut finish = CHANGE_CIPHER_SPEC + sealed(FINISHED_13);
        if self.client_certificate {
            answer += sealed(CERTIFICATE_REQUEST_13);
            finish += certificate_13(&[CLIENT_CERTIFICATE]) + CERTIFICATE_VERIFY;
        }
        let last = self.tickets_13(listener).map(|ticket| ticket + TICKET_13_AROUND).to_vec();
        Flights { hello: CLIENT_HELLO_13, answer, finish, last }
    }

    fn resumed_13(self, listener: Listener) -> Flights {
        let sealed = |message: usize| message + Version::V13.record();
        let [shown, new] = self.tickets_13(listener);
        let answer =
            HEADER + SERVER_HELLO_13 + SELECTED_KEY + CHANGE_CIPHER_SPEC + sealed(ENCRYPTED_EXTENSIONS);
        Flights {
            hello: CLIENT_HELLO_13 + shown + PRE_SHARED_KEY,
            // The pre-shared key stands for certificates (RFC 8446 §2.2).
            answer: answer + sealed(FINISHED_13),
            finish: CHANGE_CIPHER_SPEC + sealed(FINISHED_13),
            last: vec![new + TICKET_13_AROUND],
        }
    }

    fn full_12(self, listener: Listener) -> Flights {
        let plain = |message: usize| message + HEADER;
        // Without a ticket to come OpenSSL names a session instead.
        let hello =
            plain(if self.resumption { SERVER_HELLO_12 } else { SERVER_HELLO_12 + SESSION - EMPTY_TICKET });
        let mut answer = hello + plain(certificate_12(&[SERVER_CERTIFICATE, AUTHORITY]));
        answer += plain(SERVER_KEY_EXCHANGE) + plain(MESSAGE);
        let mut finish = plain(CLIENT_KEY_EXCHANGE) + FINISH_12;
        if self.client_certificate {
            answer += plain(CERTIFICATE_REQUEST_12);
            finish += plain(certificate_12(&[CLIENT_CERTIFICATE])) + plain(CERTIFICATE_VERIFY);
        }
        let ticket = if self.resumption { plain(MESSAGE + 6 + self.ticket_12(listener)) } else { 0 };
        Flights { hello: self.client_hello_12(), answer, finish, last: vec![ticket + FINISH_12] }
    }

    fn resumed_12(self, listener: Listener) -> Flights {
        Flights {
            // With a session's name, by which the client knows that its ticket was taken (RFC 5077 §3.4).
            hello: self.client_hello_12() + SESSION + self.ticket_12(listener),
            answer: HEADER + SERVER_HELLO_12_RESUMED + FINISH_12,
            finish: FINISH_12,
            last: Vec::new(),
        }
    }

    fn client_hello_12(self) -> usize {
        CLIENT_HELLO_12 + if self.resumption { EMPTY_TICKET } else { 0 }
    }

    /// One ticket of TLS 1.3 and the next one. A ticket holds the session, padded to blocks of 16 B, the client's certificate
    /// included. Of Mosquitto's half need a block more, for a random number that begins with a high bit.
    fn tickets_13(self, listener: Listener) -> [usize; 2] {
        match (listener, self.client_certificate) {
            (Listener::Mosquitto, false) => [224, 208],
            (Listener::Mosquitto, true) => [544; 2],
            (Listener::Libwebsockets, false) => [208; 2],
            (Listener::Libwebsockets, true) => [528; 2],
        }
    }

    fn ticket_12(self, listener: Listener) -> usize {
        match (listener, self.client_certificate) {
            (Listener::Mosquitto, false) => 176,
            (Listener::Libwebsockets, false) => 160,
            (_, true) => 496,
        }
    }
}

/// The message with these certificates, one after the other.
fn certificate_13(chain: &[usize]) -> usize {
    // An empty context, the list's length; a length and no extensions of each.
    MESSAGE + 1 + 3 + chain.iter().map(|certificate| 3 + certificate + 2).sum::<usize>()
}

fn certificate_12(chain: &[usize]) -> usize {
    MESSAGE + 3 + chain.iter().map(|certificate| 3 + certificate).sum::<usize>()
}

/// Content of a record at most (RFC 8446 §5.1).
pub const RECORD_MAX: usize = 1 << 14;
/// libwebsockets writes so much at once, and OpenSSL makes a record of it: its buffer and the room before a packet (4096 B,
/// `LWS_PRE` and 4 B; a first record of 4,138 B was measured).
pub const LIBWEBSOCKETS_WRITE_MAX: usize = 4096 + 16 + 4;
/// The certificate that a run makes for its servers (DER), which has an address in it.
pub const SERVER_CERTIFICATE: usize = 335;
/// The one that it makes for its clients.
pub const CLIENT_CERTIFICATE: usize = 318;
/// That of the authority which signs both. OpenSSL sends it, too, because it knows it.
pub const AUTHORITY: usize = 348;
/// What rustls says first.
pub const CLIENT_HELLO_13: usize = 210;
/// The same, where it wants no tickets.
pub const CLIENT_HELLO_12: usize = 132;
/// What says that it would take one.
pub const EMPTY_TICKET: usize = 4;

/// Type, version, length of a record.
const HEADER: usize = 5;
/// Of AES-GCM.
const TAG: usize = 16;
/// Type and length of a handshake's message.
const MESSAGE: usize = 4;
const ALERT: usize = 2;
const CHANGE_CIPHER_SPEC: usize = 6;
/// Algorithm, length, and a signature in DER, which is mostly 71 B long.
const CERTIFICATE_VERIFY: usize = MESSAGE + 4 + 71;
/// Version, random, session, cipher suite, compression; the version that counts, and a share of X25519.
const SERVER_HELLO_13: usize = MESSAGE + 72 + 46;
/// Which of the keys that were offered.
const SELECTED_KEY: usize = 6;
const ENCRYPTED_EXTENSIONS: usize = MESSAGE + 2;
/// A hash of SHA-384.
const FINISHED_13: usize = MESSAGE + 48;
/// An empty context, 16 signature algorithms.
const CERTIFICATE_REQUEST_13: usize = MESSAGE + 3 + 38;
/// Record; message, lifetime, age, nonce, lengths.
const TICKET_13_AROUND: usize = HEADER + 17 + MESSAGE + 21;
/// The extension's header, two lists' lengths, the ticket's length and age, a binder of SHA-384 with its length.
const PRE_SHARED_KEY: usize = 4 + 2 + 2 + 4 + 2 + 49;
/// Version, random, no session's name, cipher suite, compression; secure renegotiation, point formats, a ticket to come, an
/// extended master secret.
const SERVER_HELLO_12: usize = MESSAGE + 61;
/// With a session's name, without point formats and with no ticket to come.
const SERVER_HELLO_12_RESUMED: usize = SERVER_HELLO_12 + SESSION - 12;
/// A session's name.
const SESSION: usize = 32;
/// A curve's name, a share of X25519, algorithm, length and signature.
const SERVER_KEY_EXCHANGE: usize = MESSAGE + 4 + 32 + 4 + 71;
const CLIENT_KEY_EXCHANGE: usize = MESSAGE + 1 + 32;
/// Kinds of certificates, signature algorithms, authorities.
const CERTIFICATE_REQUEST_12: usize = MESSAGE + 48;
/// ChangeCipherSpec and a sealed Finished.
const FINISH_12: usize = CHANGE_CIPHER_SPEC + HEADER + 8 + TAG + MESSAGE + 12;

#[cfg(test)]
mod tests {
    use super::*;

    fn flights(
        version: Version,
        handshake: Handshake,
        client_certificate: bool,
        resumption: bool,
    ) -> Flights {
        Tls { version, resumption, client_certificate }.flights(handshake, Listener::Mosquitto)
    }

    /// The same at a listener for WebSocket, with tickets.
    fn over_websocket(version: Version, handshake: Handshake, client_certificate: bool) -> Flights {
        Tls { version, resumption: true, client_certificate }.flights(handshake, Listener::Libwebsockets)
    }

    /// rustls 0.23 with Mosquitto 2.0.11 and OpenSSL 3.0.19: the most frequent lengths of 41 connections each.
    #[test]
    fn handshakes_are_as_long_as_they_were_seen_to_be() {
        use Handshake::{Full, Resumed};
        use Version::{V12, V13};
        let seen =
            |hello, answer, finish, last: &[usize]| Flights { hello, answer, finish, last: last.to_vec() };
        assert_eq!(flights(V13, Full, false, true), seen(210, 1059, 80, &[271, 255]));
        assert_eq!(flights(V13, Full, true, true), seen(210, 1126, 490, &[591, 591]));
        assert_eq!(flights(V13, Full, false, false), flights(V13, Full, false, true), "tickets come unasked");
        assert_eq!(flights(V13, Resumed, false, true), seen(497, 241, 80, &[255]));
        assert_eq!(flights(V13, Resumed, true, true), seen(817, 241, 80, &[591]));
        assert_eq!(flights(V12, Full, false, true), seen(136, 900, 93, &[242]));
        assert_eq!(flights(V12, Full, true, true), seen(136, 957, 510, &[562]));
        assert_eq!(flights(V12, Full, false, false), seen(132, 928, 93, &[51]));
        assert_eq!(flights(V12, Resumed, false, true), seen(344, 141, 51, &[]));
        assert_eq!(flights(V12, Resumed, true, true), seen(664, 141, 51, &[]));
        assert_eq!(over_websocket(V13, Full, false), seen(210, 1059, 80, &[255, 255]));
        assert_eq!(over_websocket(V13, Full, true), seen(210, 1126, 490, &[575, 575]));
        assert_eq!(over_websocket(V13, Resumed, false), seen(481, 241, 80, &[255]));
        assert_eq!(over_websocket(V13, Resumed, true), seen(801, 241, 80, &[575]));
        assert_eq!(over_websocket(V12, Full, false), seen(136, 900, 93, &[226]));
        assert_eq!(over_websocket(V12, Full, true), seen(136, 957, 510, &[562]));
        assert_eq!(over_websocket(V12, Resumed, true), seen(664, 141, 51, &[]));
    }
}
