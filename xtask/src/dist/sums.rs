//! The sums of a release, and the signature over them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

use crate::run::quiet;

pub(super) const SUMS: &str = "SHA256SUMS";
/// The files of a release: names and bytes.
pub(super) type Release = BTreeMap<String, Vec<u8>>;

/// The namespace of the signature; `portcullis version --verify` accepts no other.
const PURPOSE: &str = "portcullis-release";

/// Returns the SHA-256 sum in hexadecimal.
pub(super) fn sum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the sums of files as `sha256sum` prints them.
pub(super) fn of(files: &Release) -> String {
    lines(files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())))
}

pub(super) fn lines<'file>(files: impl Iterator<Item = (&'file str, &'file [u8])>) -> String {
    files.map(|(name, bytes)| format!("{}  {name}\n", sum(bytes))).collect()
}

/// Writes the signature beside the sums. `ssh-keygen` asks for a passphrase on the terminal, or an agent.
pub(super) fn sign(directory: &Path, key: &Path) -> Result<()> {
    let mut command = Command::new("ssh-keygen");
    command.args(["-Y", "sign", "-n", PURPOSE, "-f"]).arg(key).arg(directory.join(SUMS));
    quiet(&mut command).map(drop).with_context(|| format!("signing with `{}`", key.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_sha256sum() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let files = Release::from([("b".to_owned(), vec![]), ("a".to_owned(), b"x".to_vec())]);
        let sums = of(&files);
        assert!(sums.ends_with(&format!("\n{empty}  b\n")), "{sums}");
        assert!(
            sums.starts_with("2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881  a\n"),
            "{sums}"
        );
    }
}
