//! Which documents of a folder still need signatures, and adding one.

use std::collections::BTreeSet;

use portcullis_packs::Signatures;

use super::counting::signers;
use super::error::FolderError;
use super::folder::Folder;
use crate::document::{RoleKeys, SignedText, unreadable};
use crate::refusal::TeamRefusal;
use crate::root::Root;
use crate::source::DocumentName;

const END: &str = "-----END SSH SIGNATURE-----";

/// A document that needs more signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// The document.
    pub name: DocumentName,
    /// How many signatures are missing.
    pub missing: usize,
    /// The fingerprints of the keys that may give them.
    pub keys: BTreeSet<String>,
}

impl Folder {
    /// Returns the documents that need more signatures before they can be published.
    ///
    /// # Errors
    /// When the signatures of a document are damaged.
    pub fn pending(&self) -> Result<Vec<Pending>, FolderError> {
        let mut pending = Vec::new();
        for (name, signed, roles) in self.wanted()? {
            let mut missing = 0;
            let mut keys = BTreeSet::new();
            for (root, role) in roles {
                let have = signers(root, role, &signed).map_err(|refusal| self.refused(refusal))?;
                let lacking = role.threshold.saturating_sub(have.len());
                if lacking > 0 {
                    missing = missing.max(lacking);
                    keys.extend(role.keys.difference(&have).cloned());
                }
            }
            if missing > 0 {
                pending.push(Pending { name, missing, keys });
            }
        }
        Ok(pending)
    }

    /// Signs each document that waits for this key. `sign` returns an ssh signature over a text.
    ///
    /// Returns the documents that were signed.
    ///
    /// # Errors
    /// When a signature cannot be made or a file cannot be written.
    pub fn sign<E>(
        &mut self,
        fingerprint: &str,
        mut sign: impl FnMut(&str) -> Result<String, E>,
    ) -> Result<Result<Vec<DocumentName>, E>, FolderError> {
        let mut done = Vec::new();
        for pending in self.pending()?.into_iter().filter(|pending| pending.keys.contains(fingerprint)) {
            let Some(mut signed) = self.documents.read(&pending.name)? else { continue };
            let added = match sign(&signed.text) {
                Ok(added) => added,
                Err(error) => return Ok(Err(error)),
            };
            signed.signatures = with_signature(&signed, &added).map_err(|refusal| self.refused(refusal))?;
            self.documents.write(&pending.name, &signed)?;
            done.push(pending.name);
        }
        self.reload()?;
        Ok(Ok(done))
    }

    /// Returns each document that must be signed, with the roles whose keys must sign it.
    #[expect(clippy::type_complexity, reason = "used twice, in this file")]
    fn wanted(&self) -> Result<Vec<(DocumentName, SignedText, Vec<(&Root, &RoleKeys)>)>, FolderError> {
        let mut wanted = Vec::new();
        let mut before: Option<&Root> = None;
        for (root, signed) in self.roots.iter().zip(&self.root_texts) {
            let mut roles = vec![(root, &root.roles.root)];
            roles.extend(before.map(|before| (before, &before.roles.root)));
            wanted.push((DocumentName::Root(root.version), signed.clone(), roles));
            before = Some(root);
        }
        let root = self.root();
        if let Some(newest) = self.bundles.last() {
            let name = DocumentName::Bundle(newest.0.version);
            wanted.push((name, newest.1.clone(), vec![(root, &root.roles.bundle)]));
        }
        if let Some(signed) = self.documents.read(&DocumentName::Timestamp)? {
            wanted.push((DocumentName::Timestamp, signed, vec![(root, &root.roles.timestamp)]));
        }
        Ok(wanted)
    }
}

/// Adds a signature, in place of an earlier one of the same key.
fn with_signature(signed: &SignedText, added: &str) -> Result<String, TeamRefusal> {
    let damaged = |error: portcullis_packs::SignatureError| unreadable("signature", &error.to_string());
    let new = Signatures::parse(added, "").map_err(damaged)?.fingerprints();
    let mut kept = String::new();
    for block in signed.signatures.split_inclusive(END).map(str::trim).filter(|block| !block.is_empty()) {
        let old = Signatures::parse(block, "").map_err(damaged)?.fingerprints();
        if !old.iter().any(|key| new.contains(key)) {
            kept.push_str(block);
            kept.push('\n');
        }
    }
    kept.push_str(added.trim());
    kept.push('\n');
    Ok(kept)
}
