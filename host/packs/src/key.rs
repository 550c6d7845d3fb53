//! Keys of publishers: those of ssh and those of minisign.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A public key.
#[derive(Debug, Clone)]
pub struct Key {
    pub(crate) kind: Kind,
    fingerprint: String,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Ssh(Box<ssh_key::PublicKey>),
    Minisign { id: [u8; 8], key: minisign_verify::PublicKey },
}

/// Why a text is no key that can be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// It is a line of ssh that cannot be read.
    #[error("it is no public key of ssh")]
    Ssh(#[source] ssh_key::Error),
    /// It is of a kind that is not accepted.
    #[error("keys of the kind `{0}` are not accepted; use `ssh-keygen -t ed25519` or minisign")]
    Kind(String),
    /// There is no key, or there are several.
    #[error("there is not exactly one key")]
    NotOne,
    /// It is neither a line of ssh nor a key of minisign.
    #[error("it is neither a line like `ssh-ed25519 AAAA...` nor a key of minisign like `RWQ...`")]
    Neither,
}

impl Key {
    /// Reads a line of ssh (`ssh-ed25519 AAAA... comment`) or a key of minisign (`RWQ...`, or its file).
    ///
    /// # Errors
    /// When it is neither, or of a kind that is not accepted.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let mut keys = lines.filter(|line| !line.starts_with("untrusted comment:"));
        let (Some(line), None) = (keys.next(), keys.next()) else { return Err(KeyError::NotOne) };
        if line.starts_with("RW") && !line.contains(' ') { minisign(line) } else { ssh(line) }
    }

    /// What tells this key from all others: `SHA256:...` for ssh, the key itself for minisign.
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
        return Err(KeyError::Kind(data.algorithm().to_string()));
    }
    let fingerprint = key.fingerprint(ssh_key::HashAlg::Sha256).to_string();
    Ok(Key { kind: Kind::Ssh(Box::new(key)), fingerprint })
}

fn minisign(text: &str) -> Result<Key, KeyError> {
    let bytes = STANDARD.decode(text).map_err(|_| KeyError::Neither)?;
    let id = bytes.get(2..10).and_then(|id| id.try_into().ok()).ok_or(KeyError::Neither)?;
    let key = minisign_verify::PublicKey::from_base64(text).map_err(|_| KeyError::Neither)?;
    Ok(Key { kind: Kind::Minisign { id, key }, fingerprint: text.to_owned() })
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
