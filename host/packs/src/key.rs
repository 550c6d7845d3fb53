//! Public keys of publishers, from ssh or minisign.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::date::Seconds;

/// A public key.
#[derive(Debug, Clone)]
pub struct Key {
    pub(crate) kind: KeyKind,
    fingerprint: String,
}

#[derive(Debug, Clone)]
pub(crate) enum KeyKind {
    Ssh(Box<ssh_key::PublicKey>),
    Minisign { id: [u8; 8], key: minisign_verify::PublicKey },
}

/// The validity period of a key, unlimited by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Validity {
    /// The first valid moment.
    pub after: Option<Seconds>,
    /// The first moment that is no longer valid.
    pub before: Option<Seconds>,
}

impl Validity {
    /// Returns true if the key is valid at `now`.
    #[must_use]
    pub fn holds(self, now: Seconds) -> bool {
        self.after.is_none_or(|after| after <= now) && self.before.is_none_or(|before| now < before)
    }
}

/// The reason why a key is refused.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The line is not a valid ssh key.
    #[error("it is no public key of ssh")]
    Ssh(#[source] ssh_key::Error),
    /// The type of the key is not accepted.
    #[error("keys of the kind `{0}` are not accepted; use `ssh-keygen -t ed25519` or minisign")]
    KeyKind(String),
    /// The text has no key, or several.
    #[error("there is not exactly one key")]
    NotOne,
    /// The text is neither an ssh key nor a minisign key.
    #[error("it is neither a line like `ssh-ed25519 AAAA...` nor a key of minisign like `RWQ...`")]
    Neither,
}

impl Key {
    /// Parses an ssh key (`ssh-ed25519 AAAA... comment`) or a minisign key (`RWQ...`, or its file).
    ///
    /// # Errors
    /// Fails when the text is neither, or the type of the key is not accepted.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let mut keys = lines.filter(|line| !line.starts_with("untrusted comment:"));
        let (Some(line), None) = (keys.next(), keys.next()) else { return Err(KeyError::NotOne) };
        if line.starts_with("RW") && !line.contains(' ') { minisign(line) } else { ssh(line) }
    }

    /// Returns a unique name of the key: `SHA256:...` for ssh, the key itself for minisign.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

fn ssh(line: &str) -> Result<Key, KeyError> {
    if !line.starts_with("ssh-") && !line.starts_with("ecdsa-") && !line.starts_with("sk-") {
        return Err(KeyError::Neither);
    }
    let key = ssh_key::PublicKey::from_openssh(line).map_err(KeyError::Ssh)?;
    let data = key.key_data();
    let p256 = data.ecdsa().is_some_and(|key| key.curve() == ssh_key::EcdsaCurve::NistP256);
    if !data.is_ed25519() && !data.is_sk_ed25519() && !p256 {
        return Err(KeyError::KeyKind(data.algorithm().to_string()));
    }
    let fingerprint = key.fingerprint(ssh_key::HashAlg::Sha256).to_string();
    Ok(Key { kind: KeyKind::Ssh(Box::new(key)), fingerprint })
}

fn minisign(text: &str) -> Result<Key, KeyError> {
    let bytes = STANDARD.decode(text).map_err(|_| KeyError::Neither)?;
    let id = bytes.get(2..10).and_then(|id| id.try_into().ok()).ok_or(KeyError::Neither)?;
    let key = minisign_verify::PublicKey::from_base64(text).map_err(|_| KeyError::Neither)?;
    Ok(Key { kind: KeyKind::Minisign { id, key }, fingerprint: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_both_kinds() {
        let ssh = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti user@example.com";
        assert!(Key::parse(ssh).unwrap().fingerprint().starts_with("SHA256:"));
        let minisign = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
        let file = format!("untrusted comment: minisign public key\n{minisign}\n");
        assert_eq!(Key::parse(&file).unwrap().fingerprint(), minisign);
        assert!(matches!(Key::parse(&format!("{ssh}\n{minisign}")), Err(KeyError::NotOne)));
        for wrong in ["", "RWQ", "hello", "ssh-ed25519 xx", "-----BEGIN OPENSSH PRIVATE KEY-----"] {
            assert!(Key::parse(wrong).is_err(), "{wrong}");
        }
    }
}
