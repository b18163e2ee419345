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

mod certificates;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use mqttlab_plan::{Group, Plan, TlsPlan, TlsVersion, Trust};
use mqttlab_recording::KEY_LOG;
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, KeyLog, RootCertStore, SupportedProtocolVersion};

use certificates::{Authority, CertifiedKey};

/// What clients need who open TLS, by group.
#[derive(Clone, Default)]
pub struct TlsConfigs {
    groups: Vec<Option<Arc<ClientConfig>>>,
}

impl TlsConfigs {
    /// Of a plan; its servers get their certificates. Secrets are logged in the recording's directory `place`.
    ///
    /// # Errors
    /// A sentence.
    pub fn of(plan: &mut Plan, place: &Path) -> Result<TlsConfigs, String> {
        if plan.groups.iter().all(|group| group.tls().is_none()) {
            return Ok(TlsConfigs::default());
        }
        let unmade = |error: rcgen::Error| format!("certificates cannot be made: {error}");
        for group in &plan.groups {
            server_name(plan, group)?;
        }
        let authority = Authority::new().map_err(unmade)?;
        authority.equip(plan).map_err(unmade)?;
        let client = authority.client().map_err(unmade)?;
        let log = SecretsLog::create(&place.join(KEY_LOG));
        let log = Arc::new(log.map_err(|error| format!("`{KEY_LOG}` cannot be written: {error}"))?);
        let unset = |error| format!("TLS cannot be set up: {error}");
        let of_group = |group: &Group| {
            let Some(tls) = group.tls() else { return Ok(None) };
            let roots = match &plan.server_of(group).trust {
                Some(trust) => trusted(trust)?,
                None => only(&authority).map_err(unset)?,
            };
            config(tls, roots, &client, Arc::clone(&log)).map(Some).map_err(unset)
        };
        let groups: Result<_, String> = plan.groups.iter().map(of_group).collect();
        Ok(TlsConfigs { groups: groups? })
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

/// Whom a group's clients expect at the other end.
pub(crate) fn server_name(plan: &Plan, group: &Group) -> Result<ServerName<'static>, String> {
    let server = plan.server_of(group);
    let name = server.trust.as_ref().and_then(|trust| trust.name.clone());
    let Some(name) = name else { return Ok(plan.endpoint_of(group).address.into()) };
    ServerName::try_from(name.clone())
        .map_err(|_| format!("`{name}`, for which the certificate of `{}` must be, is no name", server.name))
}

/// The authority of this run alone.
fn only(authority: &Authority) -> Result<RootCertStore, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.certificate().der().clone())?;
    Ok(roots)
}

/// The authorities that somebody else's server is known by.
fn trusted(trust: &Trust) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(trust.authorities.as_bytes()) {
        let certificate = certificate.map_err(|error| format!("the authorities are no PEM: {error}"))?;
        // A system's list may hold some that are of no use to TLS; what is left has to do.
        let _ = roots.add(certificate);
    }
    if roots.is_empty() { Err("the authorities' PEM has no usable certificate".into()) } else { Ok(roots) }
}

fn config(
    tls: &TlsPlan,
    roots: RootCertStore,
    client: &CertifiedKey,
    log: Arc<SecretsLog>,
) -> Result<Arc<ClientConfig>, rustls::Error> {
    let versions: &[&SupportedProtocolVersion] = match tls.version {
        TlsVersion::V12 => &[&TLS12],
        TlsVersion::V13 => &[&TLS13],
    };
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

/// rustls keeps so many for a server.
const TICKETS: usize = 8;

#[cfg(test)]
mod tests {
    use mqttlab_framing::tls::{CLIENT_HELLO_12, CLIENT_HELLO_13};
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
                let shared = config(&tls, only(&authority).unwrap(), &client, Arc::clone(&log)).unwrap();
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
    fn a_server_that_runs_elsewhere_is_known_by_what_the_plan_says() {
        let authority = Authority::new().unwrap();
        let pem = authority.certificate().pem();
        let trust = |authorities: &str| Trust { authorities: authorities.into(), name: None };
        assert_eq!(trusted(&trust(&format!("{pem}\n{pem}"))).unwrap().len(), 2);
        let words = |text: &str| trusted(&trust(text)).unwrap_err();
        assert_eq!(words("nothing"), "the authorities' PEM has no usable certificate");
        let cut = pem.replace("-----END CERTIFICATE-----", "");
        assert!(words(&cut).starts_with("the authorities are no PEM"), "{}", words(&cut));
        // A certificate's frame around what is none.
        let empty = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert_eq!(words(empty), "the authorities' PEM has no usable certificate");
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
