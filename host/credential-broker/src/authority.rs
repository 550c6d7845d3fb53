//! The certificate authority of a session. Its key exists only in the memory of the host.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portcullis_decision::request::Endpoint;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// The name of the authority, which programs show.
const NAME: &str = "Portcullis, for this session";

/// The authority that vouches for brokered hosts towards the commands of one session.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    /// The configurations of the brokered hosts, made when they are first needed.
    hosts: Mutex<HashMap<Endpoint, Arc<ServerConfig>>>,
}

impl Authority {
    /// Makes an authority with a new key.
    ///
    /// # Errors
    /// If no key can be made, for lack of random numbers.
    pub fn new() -> io::Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, NAME);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let certificate = params.self_signed(&key).map_err(io::Error::other)?.der().clone();
        Ok(Self { issuer: Issuer::new(params, key), certificate, hosts: Mutex::default() })
    }

    /// Returns the certificates that commands trust, in the format PEM: those of this machine, and this one.
    #[must_use]
    pub fn bundle(&self) -> String {
        let of_machine = portcullis_certificates::of_this_machine();
        of_machine.iter().chain([&self.certificate]).map(pem).collect()
    }

    /// Returns how the gate answers as a brokered host, without the versions of HTTP that it offers.
    pub fn server(&self, host: &Endpoint) -> io::Result<Arc<ServerConfig>> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = hosts.get(host) {
            return Ok(Arc::clone(known));
        }
        let made = Arc::new(self.certified(host)?);
        hosts.insert(host.clone(), Arc::clone(&made));
        Ok(made)
    }

    fn certified(&self, host: &Endpoint) -> io::Result<ServerConfig> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, host.to_string());
        params.subject_alt_names = vec![match host {
            Endpoint::Domain(name) => SanType::DnsName(name.as_str().try_into().map_err(io::Error::other)?),
            Endpoint::Address(address) => SanType::IpAddress(*address),
        }];
        params.is_ca = IsCa::ExplicitNoCa;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(io::Error::other)?;
        let chain = vec![certificate.der().clone(), self.certificate.clone()];
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(io::Error::other)?.with_no_client_auth();
        builder.with_single_cert(chain, key).map_err(io::Error::other)
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Authority").finish_non_exhaustive()
    }
}

/// Writes a certificate as PEM (RFC 7468).
fn pem(certificate: &CertificateDer<'static>) -> String {
    let text = STANDARD.encode(certificate);
    let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for line in text.as_bytes().chunks(64) {
        pem.push_str(&String::from_utf8_lossy(line));
        pem.push('\n');
    }
    pem + "-----END CERTIFICATE-----\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_one_certificate_and_every_session_its_own_authority() {
        let (one, other) = (Authority::new().unwrap(), Authority::new().unwrap());
        let host = Endpoint::Domain("a.test".to_owned());
        assert!(Arc::ptr_eq(&one.server(&host).unwrap(), &one.server(&host).unwrap()));
        assert_ne!(one.certificate, other.certificate);
        assert!(one.bundle().contains(pem(&one.certificate).as_str()));
        assert!(!one.bundle().contains(pem(&other.certificate).as_str()));
    }

    #[test]
    fn nothing_of_the_key_is_shown() {
        assert_eq!(format!("{:?}", Authority::new().unwrap()), "Authority { .. }");
    }
}
