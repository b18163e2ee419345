//! Certificates of a run: an authority that nobody else knows, and what it signs for servers and clients.
//!
//! ```text
//!   authority (ca.pem) ──► of each server that listens for TLS, for its address (server.pem, server.key)
//!                     └──► one that all clients share
//! ```
//!
//! Keys are of ECDSA over P-256, the curve that RFC 7925 wants of small devices. They live as long as the run: servers find them
//! in their private directories, and no recording has them.
//!
//! What it does not model: chains of several authorities, revocation, keys of RSA, a certificate for each client.

use mqttlab_framing::tls::{AUTHORITY, CLIENT_CERTIFICATE, SERVER_CERTIFICATE};
use mqttlab_plan::{Endpoint, Plan, ServerFile, Text};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    SanType, SerialNumber, date_time_ymd,
};

/// A certificate and its key.
pub(crate) struct CertifiedKey {
    pub(crate) certificate: Certificate,
    pub(crate) key: KeyPair,
}

/// The authority of a run.
pub(crate) struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// A new one.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(crate) fn new() -> Result<Authority, rcgen::Error> {
        let mut parameters = parameters("mqttlab authority", 1);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate()?;
        let certificate = of_length(AUTHORITY, || parameters.self_signed(&key))?;
        Ok(Authority { certificate, issuer: Issuer::new(parameters, key) })
    }

    /// Its own certificate.
    pub(crate) fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// What all clients of a run show where they are asked.
    ///
    /// # Errors
    /// As [`Authority::new`].
    pub(crate) fn client(&self) -> Result<CertifiedKey, rcgen::Error> {
        let mut parameters = parameters("mqttlab client", 3);
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.identity(&parameters, CLIENT_CERTIFICATE)
    }

    /// What a server shows that listens there.
    fn server(&self, endpoint: &Endpoint) -> Result<CertifiedKey, rcgen::Error> {
        let mut parameters = parameters("mqttlab server", 2);
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        parameters.subject_alt_names = vec![SanType::IpAddress(endpoint.address)];
        self.identity(&parameters, SERVER_CERTIFICATE)
    }

    fn identity(&self, parameters: &CertificateParams, length: usize) -> Result<CertifiedKey, rcgen::Error> {
        let key = KeyPair::generate()?;
        let certificate = of_length(length, || parameters.signed_by(&key, &self.issuer))?;
        Ok(CertifiedKey { certificate, key })
    }

    /// Gives the servers that listen for TLS what they need, as files of theirs.
    ///
    /// # Errors
    /// As [`Authority::new`].
    pub(crate) fn equip(&self, plan: &mut Plan) -> Result<(), rcgen::Error> {
        for server in &mut plan.servers {
            let secured = server.endpoints.iter().find(|endpoint| endpoint.transport.is_secured());
            let (Some(endpoint), Some(process)) = (secured, &mut server.process) else { continue };
            let CertifiedKey { certificate, key } = self.server(endpoint)?;
            let texts = [
                ("ca.pem", Text::open(self.certificate.pem())),
                ("server.pem", Text::open(certificate.pem())),
                ("server.key", Text::secret(key.serialize_pem())),
            ];
            process.files.extend(texts.map(|(name, text)| ServerFile { path: format!("tls/{name}"), text }));
        }
        Ok(())
    }
}

/// What all have in common. Names, numbers and times are always equally long.
fn parameters(name: &str, serial: u8) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters.serial_number = Some(SerialNumber::from_slice(&[serial]));
    // A run takes place at any time; UTCTime ends with 2049 (RFC 5280 §4.1.2.5).
    (parameters.not_before, parameters.not_after) = (date_time_ymd(2000, 1, 1), date_time_ymd(2049, 12, 31));
    parameters
}

/// Signs until the signature has its most frequent length, of which DER has some: equal handshakes are to be equally long.
fn of_length(
    length: usize,
    mut sign: impl FnMut() -> Result<Certificate, rcgen::Error>,
) -> Result<Certificate, rcgen::Error> {
    let mut certificate = sign()?;
    for _ in 0..TRIES {
        if certificate.der().len() == length {
            break;
        }
        certificate = sign()?;
    }
    Ok(certificate)
}

/// Half of all signatures are of the wanted length.
const TRIES: u32 = 40;

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use mqttlab_plan::EndpointTransport;

    use super::*;

    #[test]
    fn certificates_are_as_long_as_the_simulator_takes_them_for() {
        let address = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));
        let endpoint = Endpoint { transport: EndpointTransport::Tls, address, port: 8883 };
        for _ in 0..5 {
            let authority = Authority::new().unwrap();
            let made =
                [authority.server(&endpoint).unwrap().certificate, authority.client().unwrap().certificate];
            let lengths = made.map(|certificate| certificate.der().len());
            assert_eq!(
                (authority.certificate().der().len(), lengths),
                (AUTHORITY, [SERVER_CERTIFICATE, CLIENT_CERTIFICATE])
            );
        }
    }
}
