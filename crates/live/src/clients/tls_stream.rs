//! TLS on a client's connection: rustls between what is said and what the socket gets.
//!
//! ```text
//!   bytes ──► seal ──► records ──► outbox          socket ──► records ──► open ──► bytes
//! ```
//!
//! What is sealed at once becomes a record (two and more above 16 KiB), as with programs that hand packet by packet to OpenSSL.

use std::io::Write;
use std::sync::Arc;

use mqttlab_client::Loss;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Error, HandshakeKind, ProtocolVersion};

use super::outbox::SocketOutbox;

/// TLS of one client.
pub(super) struct TlsStream {
    config: Arc<ClientConfig>,
    server: ServerName<'static>,
    connection: Option<ClientConnection>,
}

impl TlsStream {
    pub(super) fn new(config: Arc<ClientConfig>, server: ServerName<'static>) -> TlsStream {
        TlsStream { config, server, connection: None }
    }

    /// TCP is open: says hello.
    pub(super) fn begin(&mut self, outbox: &mut SocketOutbox) -> Result<(), Loss> {
        let begun = ClientConnection::new(Arc::clone(&self.config), self.server.clone());
        let mut connection = begun.map_err(|error| refused(&error))?;
        // What is put is sealed at once and waits in the outbox.
        connection.set_buffer_limit(None);
        drain(&mut connection, outbox);
        self.connection = Some(connection);
        Ok(())
    }

    /// There is no connection any more.
    pub(super) fn clear(&mut self) {
        self.connection = None;
    }

    /// Whether the handshake is over.
    pub(super) fn is_open(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| !connection.is_handshaking())
    }

    /// Appends bytes as they go over the wire.
    pub(super) fn seal(&mut self, bytes: &[u8], outbox: &mut SocketOutbox) {
        let Some(connection) = &mut self.connection else { return };
        connection.writer().write_all(bytes).expect("its buffer has no limit");
        drain(connection, outbox);
    }

    /// Appends what says that nothing more will be said.
    pub(super) fn write_close(&mut self, outbox: &mut SocketOutbox) {
        let Some(connection) = &mut self.connection else { return };
        connection.send_close_notify();
        drain(connection, outbox);
    }

    /// Takes what was read, appends what it says to `plain`, and answers if it must.
    ///
    /// # Errors
    /// The other side breaks the protocol, or refuses.
    pub(super) fn open(
        &mut self,
        mut bytes: &[u8],
        plain: &mut Vec<u8>,
        outbox: &mut SocketOutbox,
    ) -> Result<(), Loss> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        while !bytes.is_empty() {
            // From memory it fails only when it has no room, which is made after every read.
            connection.read_tls(&mut bytes).expect("what was read is taken out at once");
            let processed = connection.process_new_packets();
            drain(connection, outbox);
            let waiting = processed.map_err(|error| handshake_loss(&error))?.plaintext_bytes_to_read();
            let from = plain.len();
            plain.resize(from + waiting, 0);
            io_read(connection, &mut plain[from..]);
        }
        Ok(())
    }

    /// What was agreed on: version, full or resumed, cipher suite.
    pub(super) fn in_words(&self) -> String {
        let Some(connection) = &self.connection else { return String::new() };
        let version = match connection.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
            Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
            _ => "unknown",
        };
        let handshake = match connection.handshake_kind() {
            Some(HandshakeKind::Resumed) => "resumed",
            _ => "full",
        };
        let suite = connection.negotiated_cipher_suite().map(|suite| suite.suite());
        let suite = suite.and_then(|suite| suite.as_str()).unwrap_or("unknown");
        format!("{version} {handshake} {suite}")
    }
}

/// Reads as much as there is.
fn io_read(connection: &mut ClientConnection, into: &mut [u8]) {
    use std::io::Read;
    connection.reader().read_exact(into).expect("so much was decrypted");
}

fn drain(connection: &mut ClientConnection, outbox: &mut SocketOutbox) {
    while connection.wants_write() {
        connection.write_tls(outbox.bytes()).expect("memory takes all");
    }
}

/// Why there is no connection to be had.
fn refused(error: &Error) -> Loss {
    Loss::Refused { how: format!("TLS: {error}").into(), for_good: true }
}

/// What the other side did. Certificates, versions and alerts will be the same the next time.
fn handshake_loss(error: &Error) -> Loss {
    match error {
        Error::InvalidCertificate(_)
        | Error::PeerIncompatible(_)
        | Error::AlertReceived(_)
        | Error::NoCertificatesPresented => refused(error),
        _ => Loss::broken(format!("the broker sent what is no TLS: {error}")),
    }
}
