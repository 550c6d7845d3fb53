//! Certificates in files of the form PEM.

use std::ffi::OsString;
use std::path::Path;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// Returns the certificates of a named file and a named directory, or else those of `usual`.
pub(crate) fn read(
    file: Option<OsString>,
    directory: Option<OsString>,
    usual: &str,
) -> Vec<CertificateDer<'static>> {
    if file.is_none() && directory.is_none() {
        return in_file(Path::new(usual));
    }
    let listed = directory.and_then(|directory| std::fs::read_dir(directory).ok());
    let others = listed.into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<_> =
        file.map(Into::into).into_iter().chain(others).flat_map(|path| in_file(&path)).collect();
    found.sort_by(|one, other| one.as_ref().cmp(other.as_ref()));
    found.dedup();
    found
}

fn in_file(path: &Path) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_file_iter(path).map(|found| found.flatten().collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    fn certificate(name: &str) -> String {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        let text = STANDARD.encode(made.cert.der());
        format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
    }

    #[test]
    fn named_files_count_instead_of_the_usual_one() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let [one, two, usual] = ["one.test", "two.test", "usual.test"].map(certificate);
        std::fs::write(at("usual"), format!("# Apple\n{usual}{two}")).unwrap();
        std::fs::create_dir(at("directory")).unwrap();
        std::fs::write(at("file"), &one).unwrap();
        std::fs::write(at("directory/one"), &one).unwrap();
        std::fs::write(at("directory/two"), &two).unwrap();
        std::fs::write(at("directory/other"), "no certificate").unwrap();
        let usual = at("usual").to_str().unwrap().to_owned();
        let count = |file: Option<&str>, directory: Option<&str>| {
            let named = |name: Option<&str>| name.map(|name| at(name).into_os_string());
            read(named(file), named(directory), &usual).len()
        };
        assert_eq!(count(None, None), 2);
        assert_eq!(count(Some("file"), None), 1);
        assert_eq!(count(Some("file"), Some("directory")), 2, "the same one counts once");
        assert_eq!(count(Some("missing"), None), 0, "a named file that is missing opens nothing else");
    }
}
