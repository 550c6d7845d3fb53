//! Releases: the sums of their files, and whose signature is under the sums.

use crate::allowed_signers;
use crate::date::Seconds;
use crate::digest::digest;
use crate::signature::{SignatureState, Signatures};

/// The namespace of signatures of releases: `ssh-keygen -Y sign -n portcullis-release`.
pub const RELEASE_PURPOSE: &str = "portcullis-release";

/// The file with the sums, beside the files of a release.
pub const SUMS: &str = "SHA256SUMS";

/// The file with the signature over the sums.
pub const SUMS_SIGNATURE: &str = "SHA256SUMS.sig";

/// A file of a release, with what vouches for it.
#[derive(Debug, Clone, Copy)]
pub struct ReleaseFile<'a> {
    /// The name, without a directory.
    pub name: &'a str,
    /// The content.
    pub bytes: &'a [u8],
    /// The text of [`SUMS`].
    pub sums: &'a str,
    /// The text of [`SUMS_SIGNATURE`].
    pub signature: &'a str,
    /// An `allowed_signers` file with the keys that may sign releases.
    pub signers: &'a str,
}

/// Why the check of a release file failed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ReleaseError {
    /// A line of the sums has another form.
    #[error("line {0} of SHA256SUMS is no `SUM  NAME`")]
    Line(usize),
    /// The sums do not name the file, or name it twice.
    #[error("SHA256SUMS does not name `{0}` exactly once")]
    NotNamed(String),
    /// The file has other bytes.
    #[error(
        "the file is not the one that was released: its sum is {found}, and SHA256SUMS says {expected}; fetch it again"
    )]
    Sum {
        /// The sum of the file.
        found: String,
        /// The sum that was released.
        expected: String,
    },
    /// The signature cannot be read.
    #[error("SHA256SUMS.sig cannot be read: {0}")]
    Signature(String),
    /// The file of signers cannot be read.
    #[error("the file of signers cannot be read: {0}")]
    Signers(String),
    /// A known key has signed something else.
    #[error("SHA256SUMS was changed after {0} signed it")]
    Broken(String),
    /// The signature is for another purpose.
    #[error("the signature of {key} is for `{purpose}`, and not for a release")]
    OtherPurpose {
        /// The key.
        key: String,
        /// The purpose.
        purpose: String,
    },
    /// No key of the file of signers has signed.
    #[error("SHA256SUMS is signed by {0}, which is none of the signers or no longer valid")]
    Unknown(String),
}

/// Checks a file against the signed sums. Returns its sum and the fingerprint of the key.
///
/// # Errors
/// Fails when no known signer signed the sums, or the file does not have its sum.
pub fn verify_release(file: &ReleaseFile<'_>, now: Seconds) -> Result<(String, String), ReleaseError> {
    let key = signer(file, now)?;
    let (found, expected) = (digest(file.bytes), sum_of(file.name, file.sums)?);
    if found == expected { Ok((found, key)) } else { Err(ReleaseError::Sum { found, expected }) }
}

/// Returns the fingerprint of the first known key with a valid signature.
fn signer(file: &ReleaseFile<'_>, now: Seconds) -> Result<String, ReleaseError> {
    let signatures =
        Signatures::parse(file.signature, "").map_err(|error| ReleaseError::Signature(error.to_string()))?;
    let keys = allowed_signers::parse(file.signers, RELEASE_PURPOSE)
        .map_err(|error| ReleaseError::Signers(error.to_string()))?;
    let valid: Vec<_> = keys.iter().filter(|(_, validity)| validity.holds(now)).map(|(key, _)| key).collect();
    let mut refusal = ReleaseError::Signature("it is empty".to_owned());
    for checked in signatures.check_for(RELEASE_PURPOSE, file.sums.as_bytes(), &valid) {
        let key = checked.key;
        refusal = match checked.state {
            SignatureState::Good => return Ok(key),
            SignatureState::Broken => ReleaseError::Broken(key),
            SignatureState::OtherPurpose(purpose) => ReleaseError::OtherPurpose { key, purpose },
            SignatureState::Unknown => ReleaseError::Unknown(key),
        };
    }
    Err(refusal)
}

/// Returns the sum of a file, from lines as `sha256sum` prints them.
fn sum_of(name: &str, sums: &str) -> Result<String, ReleaseError> {
    let mut found = Vec::new();
    for (number, line) in sums.lines().enumerate() {
        let (sum, named) = line
            .split_once("  ")
            .filter(|(sum, _)| sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .ok_or(ReleaseError::Line(number + 1))?;
        if named == name {
            found.push(sum.to_ascii_lowercase());
        }
    }
    match (found.pop(), found.is_empty()) {
        (Some(sum), true) => Ok(sum),
        _ => Err(ReleaseError::NotNamed(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use ssh_key::private::{Ed25519Keypair, PrivateKey};

    use super::*;

    const NOW: Seconds = 1_798_761_600;
    const BYTES: &[u8] = b"a program";

    fn private(seed: u8) -> PrivateKey {
        PrivateKey::from(Ed25519Keypair::from_seed(&[seed; 32]))
    }

    fn signature(seed: u8, purpose: &str, text: &str) -> String {
        let signature = private(seed).sign(purpose, ssh_key::HashAlg::Sha512, text.as_bytes()).unwrap();
        signature.to_pem(ssh_key::LineEnding::LF).unwrap()
    }

    fn signers(options: &str) -> String {
        format!("releases@portcullis {options} {}\n", private(1).public_key().to_openssh().unwrap())
    }

    fn check(bytes: &[u8], sums: &str, signature: &str, signers: &str) -> Result<(), ReleaseError> {
        let file = ReleaseFile { name: "p.tar.gz", bytes, sums, signature, signers };
        verify_release(&file, NOW).map(|(sum, key)| {
            assert!(sum == digest(bytes) && key.starts_with("SHA256:"), "{sum} {key}");
        })
    }

    #[test]
    fn a_released_file_is_told_from_any_other() {
        let sums = format!("{}  other\n{}  p.tar.gz\n", digest(b""), digest(BYTES));
        let good = signature(1, RELEASE_PURPOSE, &sums);
        assert_eq!(check(BYTES, &sums, &good, &signers("")), Ok(()));
        // A truncated file, and one that was changed together with its sum.
        assert!(matches!(check(b"a prog", &sums, &good, &signers("")), Err(ReleaseError::Sum { .. })));
        let changed = sums.replace(&digest(BYTES), &digest(b"evil"));
        assert!(matches!(check(b"evil", &changed, &good, &signers("")), Err(ReleaseError::Broken(_))));
    }

    #[test]
    fn only_a_known_signer_of_releases_counts() {
        let sums = format!("{}  p.tar.gz\n", digest(BYTES));
        let with = |text: &str, known: &str| check(BYTES, &sums, text, known);
        let good = signature(1, RELEASE_PURPOSE, &sums);
        let foreign = signature(2, RELEASE_PURPOSE, &sums);
        assert!(matches!(with(&foreign, &signers("")), Err(ReleaseError::Unknown(_))));
        assert_eq!(with(&format!("{foreign}{good}"), &signers("")), Ok(()));
        let pack = signature(1, crate::PURPOSE, &sums);
        assert!(matches!(with(&pack, &signers("")), Err(ReleaseError::OtherPurpose { .. })));
        let past = signers("valid-before=\"20200101\"");
        assert!(matches!(with(&good, &past), Err(ReleaseError::Unknown(_))));
        let packs = signers("namespaces=\"portcullis-policy\"");
        assert!(matches!(with(&good, &packs), Err(ReleaseError::Unknown(_))));
        assert!(matches!(with("", &signers("")), Err(ReleaseError::Signature(_))));
        assert!(matches!(with(good.split_at(40).0, &signers("")), Err(ReleaseError::Signature(_))));
        assert!(matches!(with(&good, "nobody"), Err(ReleaseError::Signers(_))));
    }

    #[test]
    fn damaged_sums_are_refused_even_when_signed() {
        let line = format!("{}  p.tar.gz\n", digest(BYTES));
        for (sums, expected) in [
            (String::new(), ReleaseError::NotNamed("p.tar.gz".to_owned())),
            (format!("{line}{line}"), ReleaseError::NotNamed("p.tar.gz".to_owned())),
            (format!("{line}{}", line.split_at(30).0), ReleaseError::Line(2)),
        ] {
            let found = check(BYTES, &sums, &signature(1, RELEASE_PURPOSE, &sums), &signers(""));
            assert_eq!(found, Err(expected), "{sums}");
        }
    }
}
