//! Signatures of a component, made by `ssh-keygen -Y sign` or `minisign`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::key::{Key, KeyKind};

/// The namespace of ssh signatures: `ssh-keygen -Y sign -n portcullis-policy`.
pub const PURPOSE: &str = "portcullis-policy";
/// Largest text of signatures, in bytes.
pub const TEXT_MAX: usize = 64 << 10;
/// Largest number of signatures of one component.
const MOST: usize = 16;
const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";
const END: &str = "-----END SSH SIGNATURE-----";

/// The signatures of one component.
#[derive(Debug, Clone, Default)]
pub struct Signatures {
    ssh: Vec<Block>,
    minisign: Vec<Minisign>,
    minisign_text: String,
}

/// A minisign signature with the key id that it names.
#[derive(Clone)]
struct Minisign {
    id: [u8; 8],
    signature: minisign_verify::Signature,
}

impl std::fmt::Debug for Minisign {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Minisign").field("id", &self.id).finish_non_exhaustive()
    }
}

/// An ssh signature with its text.
#[derive(Debug, Clone)]
struct Block {
    text: String,
    signature: ssh_key::SshSig,
}

/// The reason why signatures cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SignatureError {
    /// The text is too long, or has too many signatures.
    #[error("the signatures are longer than 64 KiB, or more than 16")]
    TooLong,
    /// An ssh signature is damaged.
    #[error("a signature of ssh is damaged")]
    Ssh(#[source] Option<ssh_key::Error>),
    /// The minisign signature is damaged.
    #[error("the signature of minisign is damaged")]
    Minisign,
}

/// The result of checking one signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The key that the signature names.
    pub key: String,
    /// The result.
    pub state: SignatureState,
}

/// The result of checking a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignatureState {
    /// A valid signature over these bytes.
    Good,
    /// A known key, but the signature is not over these bytes.
    Broken,
    /// A signature with another namespace.
    OtherPurpose(String),
    /// An unknown key.
    Unknown,
}

impl Signatures {
    /// Parses the content of `.sig` (one or more ssh signatures) and `.minisig` files.
    ///
    /// An empty text has no signatures.
    ///
    /// # Errors
    /// Fails when a text is too long or damaged.
    pub fn parse(ssh: &str, minisign: &str) -> Result<Self, SignatureError> {
        if ssh.len() > TEXT_MAX || minisign.len() > TEXT_MAX {
            return Err(SignatureError::TooLong);
        }
        let mut signatures = Self { minisign_text: minisign.to_owned(), ..Self::default() };
        let mut rest = ssh.trim();
        while !rest.is_empty() {
            let (block, after) = rest.split_once(END).ok_or(SignatureError::Ssh(None))?;
            if !block.starts_with(BEGIN) {
                return Err(SignatureError::Ssh(None));
            }
            let text = format!("{block}{END}\n");
            let signature =
                ssh_key::SshSig::from_pem(&text).map_err(|error| SignatureError::Ssh(Some(error)))?;
            signatures.ssh.push(Block { text, signature });
            rest = after.trim();
            if signatures.ssh.len() > MOST {
                return Err(SignatureError::TooLong);
            }
        }
        if !minisign.trim().is_empty() {
            signatures.minisign.push(read_minisign(minisign).ok_or(SignatureError::Minisign)?);
        }
        Ok(signatures)
    }

    /// Returns true if there are no signatures.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ssh.is_empty() && self.minisign.is_empty()
    }

    /// Returns the text of the ssh signatures.
    #[must_use]
    pub fn ssh_text(&self) -> String {
        self.ssh.iter().map(|block| block.text.as_str()).collect()
    }

    /// Adds a new ssh signature. Removes earlier signatures of the same key, and those over other bytes.
    ///
    /// # Errors
    /// Fails when the signature is damaged or exceeds the limit.
    pub fn add_ssh(&mut self, text: &str, bytes: &[u8]) -> Result<(), SignatureError> {
        let added = Self::parse(text, "")?;
        let is_new = |block: &Block| {
            let key = block.signature.public_key();
            added.ssh.iter().any(|other| other.signature.public_key() == key)
        };
        self.ssh.retain(|block| !is_new(block) && block.is_over(bytes));
        self.ssh.extend(added.ssh);
        if self.ssh.len() > MOST { Err(SignatureError::TooLong) } else { Ok(()) }
    }

    /// Returns the keys of all signatures, known or not.
    #[must_use]
    pub fn fingerprints(&self) -> Vec<String> {
        self.check(&[], &[]).into_iter().map(|checked| checked.key).collect()
    }

    /// Returns the text of the minisign signature.
    #[must_use]
    pub fn minisign_text(&self) -> &str {
        &self.minisign_text
    }

    /// Returns the keys of signatures that are not over these bytes. A signature of ssh carries its key; one of minisign
    /// is checked if its key is known.
    #[must_use]
    pub fn over_other_bytes(&self, bytes: &[u8], known: &[&Key]) -> Vec<String> {
        let ssh = self.ssh.iter().filter(|block| !block.is_over(bytes));
        let ssh =
            ssh.map(|block| block.signature.public_key().fingerprint(ssh_key::HashAlg::Sha256).to_string());
        let minisign = self.minisign.iter().map(|one| check_minisign(one, bytes, known));
        let minisign = minisign.filter(|checked| checked.state == SignatureState::Broken);
        ssh.chain(minisign.map(|checked| checked.key)).collect()
    }

    /// Checks each signature against the known keys.
    #[must_use]
    pub fn check(&self, bytes: &[u8], known: &[&Key]) -> Vec<Checked> {
        self.check_for(PURPOSE, bytes, known)
    }

    /// Checks each signature against the known keys. An ssh signature must be for this namespace.
    #[must_use]
    pub fn check_for(&self, purpose: &str, bytes: &[u8], known: &[&Key]) -> Vec<Checked> {
        let ssh = self.ssh.iter().map(|block| check_ssh(&block.signature, purpose, bytes, known));
        let minisign = self.minisign.iter().map(|one| check_minisign(one, bytes, known));
        ssh.chain(minisign).collect()
    }
}

impl Block {
    fn is_over(&self, bytes: &[u8]) -> bool {
        let key = ssh_key::PublicKey::from(self.signature.public_key().clone());
        key.verify(PURPOSE, bytes, &self.signature).is_ok()
    }
}

fn check_ssh(signature: &ssh_key::SshSig, purpose: &str, bytes: &[u8], known: &[&Key]) -> Checked {
    let named = signature.public_key();
    let fingerprint = named.fingerprint(ssh_key::HashAlg::Sha256).to_string();
    let mut keys = known.iter().filter_map(|key| match &key.kind {
        KeyKind::Ssh(key) if key.key_data() == named => Some(key),
        KeyKind::Ssh(_) | KeyKind::Minisign { .. } => None,
    });
    let state = match keys.next_back() {
        None => SignatureState::Unknown,
        Some(_) if signature.namespace() != purpose => {
            SignatureState::OtherPurpose(signature.namespace().to_owned())
        }
        Some(key) => match key.verify(purpose, bytes, signature) {
            Ok(()) => SignatureState::Good,
            Err(_) => SignatureState::Broken,
        },
    };
    Checked { key: fingerprint, state }
}

fn check_minisign(one: &Minisign, bytes: &[u8], known: &[&Key]) -> Checked {
    let Minisign { id, signature } = one;
    let mut named =
        Checked { key: format!("minisign {:016X}", u64::from_le_bytes(*id)), state: SignatureState::Unknown };
    // Minisign key ids are short and chosen by the key's creator, so several keys may have the same id.
    for key in known {
        let KeyKind::Minisign { id: known, key: public } = &key.kind else { continue };
        if known == id && named.state != SignatureState::Good {
            let state = if public.verify(bytes, signature, false).is_ok() {
                SignatureState::Good
            } else {
                SignatureState::Broken
            };
            named = Checked { key: key.fingerprint().to_owned(), state };
        }
    }
    named
}

fn read_minisign(text: &str) -> Option<Minisign> {
    let signature = minisign_verify::Signature::decode(text).ok()?;
    let bytes = STANDARD.decode(text.lines().nth(1)?.trim()).ok()?;
    Some(Minisign { id: bytes.get(2..10)?.try_into().ok()?, signature })
}
