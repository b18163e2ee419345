//! TLS of a run: what its clients are told of versions, certificates and tickets, and the log of their secrets.
//!
//! ```text
//!   Authority ──► files of servers            (certificates)
//!            └──► ClientConfig of each group ──► a client's connections (clients/secured)
//!                                    └── secrets ──► keys.log of the recording ──► who reads its frames
//! ```
//!
//! rustls does it, with ring's cryptography and ring's random numbers: of what goes over a network with TLS, only lengths and
//! times are those of the plan's seed.
//!
//! What it does not model: pre-shared keys from outside, which rustls does not have.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use mqttlab_plan::{Plan, TlsPlan, TlsVersion};
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, KeyLog, RootCertStore, SupportedProtocolVersion};

use crate::certificates::{Authority, Identity};

/// What clients need who open TLS, by group.
#[derive(Clone, Default)]
pub(crate) struct Secured {
    groups: Vec<Option<Arc<ClientConfig>>>,
}

impl Secured {
    /// Of a plan; its servers get their certificates. Secrets are logged in the recording's directory `place`.
    ///
    /// # Errors
    /// A sentence.
    pub(crate) fn of(plan: &mut Plan, place: &Path) -> Result<Secured, String> {
        if plan.groups.iter().all(|group| group.tls().is_none()) {
            return Ok(Secured::default());
        }
        let unmade = |error: rcgen::Error| format!("certificates cannot be made: {error}");
        let authority = Authority::new().map_err(unmade)?;
        authority.equip(plan).map_err(unmade)?;
        let client = authority.client().map_err(unmade)?;
        let log = SecretsLog::create(&place.join(KEY_LOG));
        let log = Arc::new(log.map_err(|error| format!("`{KEY_LOG}` cannot be written: {error}"))?);
        let config = |tls: &TlsPlan| config(tls, &authority, &client, Arc::clone(&log));
        let groups = plan.groups.iter().map(|group| group.tls().map(config).transpose());
        let groups: Result<_, rustls::Error> = groups.collect();
        Ok(Secured { groups: groups.map_err(|error| format!("TLS cannot be set up: {error}"))? })
    }

    /// What a group's clients are told; `None` where they do not open TLS.
    pub(crate) fn config(&self, group: usize) -> Option<Arc<ClientConfig>> {
        self.groups.get(group).cloned().flatten()
    }
}

/// For one client of a group: sessions of its own, which outlive its connections.
pub(crate) fn config_of_client(shared: &ClientConfig, tls: &TlsPlan) -> Arc<ClientConfig> {
    let mut config = shared.clone();
    config.resumption =
        if tls.resumption { Resumption::in_memory_sessions(TICKETS) } else { Resumption::disabled() };
    Arc::new(config)
}

fn config(
    tls: &TlsPlan,
    authority: &Authority,
    client: &Identity,
    log: Arc<SecretsLog>,
) -> Result<Arc<ClientConfig>, rustls::Error> {
    let versions: &[&SupportedProtocolVersion] = match tls.version {
        TlsVersion::V12 => &[&TLS12],
        TlsVersion::V13 => &[&TLS13],
    };
    let mut roots = RootCertStore::empty();
    roots.add(authority.certificate().der().clone())?;
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_protocol_versions(versions)?.with_root_certificates(roots);
    let mut config = if tls.client_certificate {
        let key = PrivateKeyDer::Pkcs8(client.key.serialize_der().into());
        builder.with_client_auth_cert(vec![client.certificate.der().clone()], key)?
    } else {
        builder.with_no_client_auth()
    };
    config.key_log = log;
    Ok(Arc::new(config))
}

/// Secrets of connections, as NSS writes them (draft-ietf-tls-keylogfile): a line each.
#[derive(Debug)]
struct SecretsLog {
    file: Mutex<File>,
}

impl SecretsLog {
    /// Nobody but its owner may read it.
    fn create(path: &Path) -> io::Result<SecretsLog> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        Ok(SecretsLog { file: Mutex::new(file) })
    }
}

impl KeyLog for SecretsLog {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let line = format!("{label} {} {}\n", hex(client_random), hex(secret));
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // Without it the connection's packets stay closed to whoever reads the frames, who then says so.
        let _ = file.write_all(line.as_bytes());
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// As exports and imports know it.
const KEY_LOG: &str = "keys.log";
/// rustls keeps so many for a server.
const TICKETS: usize = 8;

#[cfg(test)]
mod tests {
    use mqttlab_layers::tls::{CLIENT_HELLO_12, CLIENT_HELLO_13};
    use rustls::ClientConnection;

    use super::*;

    #[test]
    fn a_client_begins_with_as_many_bytes_as_the_simulator_takes_it_to() {
        let directory = std::env::temp_dir().join(format!("mqttlab-secrets-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let log = Arc::new(SecretsLog::create(&directory.join(KEY_LOG)).unwrap());
        let authority = Authority::new().unwrap();
        let client = authority.client().unwrap();
        for (version, bytes) in [(TlsVersion::V12, CLIENT_HELLO_12), (TlsVersion::V13, CLIENT_HELLO_13)] {
            for client_certificate in [false, true] {
                let tls = TlsPlan { version, resumption: false, client_certificate };
                let shared = config(&tls, &authority, &client, Arc::clone(&log)).unwrap();
                let config = config_of_client(&shared, &tls);
                let server = "10.77.0.1".try_into().unwrap();
                let mut connection = ClientConnection::new(config, server).unwrap();
                let mut hello = Vec::new();
                connection.write_tls(&mut hello).unwrap();
                assert_eq!(hello.len(), bytes, "{version:?}");
            }
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn secrets_are_lines_that_only_their_owner_reads() {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("mqttlab-keys-{}.log", std::process::id()));
        let log = SecretsLog::create(&path).unwrap();
        log.log("CLIENT_RANDOM", &[1, 0xab], &[0xff]);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "CLIENT_RANDOM 01ab ff\n");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::remove_file(&path).unwrap();
    }
}
