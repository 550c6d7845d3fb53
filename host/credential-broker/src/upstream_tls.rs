//! How the gate speaks TLS to the servers of brokered hosts.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};

/// Returns a configuration with the certificates that this machine trusts, or of `SSL_CERT_FILE`.
pub fn configuration() -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    let (added, _ignored) = roots.add_parsable_certificates(portcullis_certificates::of_this_machine());
    if added == 0 {
        let reason = "this machine has no certificates of authorities; install the package `ca-certificates`";
        return Err(reason.to_owned());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    let mut configuration = builder.with_root_certificates(roots).with_no_client_auth();
    configuration.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(configuration))
}
