//! The certificates of authorities that this machine trusts.
//!
//! They come from the files of the system, or from those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name.
//!
//! # Platforms
//! On macOS the file is `/etc/ssl/cert.pem`, which every macOS has. Certificates that a user or an administrator adds to
//! a keychain are not read: a program that is linked without Apple's SDK cannot ask which of them are trusted.

#[cfg(any(target_vendor = "apple", test))]
mod files;

use rustls::pki_types::CertificateDer;

/// The file of macOS, with the authorities that Apple ships.
#[cfg(target_vendor = "apple")]
const OF_MACOS: &str = "/etc/ssl/cert.pem";

/// Returns the certificates. Files that cannot be read have none.
#[must_use]
pub fn of_this_machine() -> Vec<CertificateDer<'static>> {
    #[cfg(target_vendor = "apple")]
    return files::read(std::env::var_os("SSL_CERT_FILE"), std::env::var_os("SSL_CERT_DIR"), OF_MACOS);
    #[cfg(not(target_vendor = "apple"))]
    rustls_native_certs::load_native_certs().certs
}
