//! The documents of a team in a registry: each is an artifact with a tag of its own, and so is each pack.

use portcullis_packs::{Part, Reference, Registry, RegistryError, TEXT_MAX};

use crate::document::{DOCUMENT_MAX, SignedText};
use crate::source::{DocumentName, Source, SourceError};
use crate::update::PackBytes;

/// The kind of the artifacts.
const KIND: &str = "application/vnd.portcullis.team.v1";
/// Media type of a document.
const DOCUMENT: &str = "application/vnd.portcullis.team.document.v1+json";
/// Media type of signatures.
const SIGNATURES: &str = "application/vnd.portcullis.signature.ssh.v1";
/// Media type of a pack.
const PACK: &str = "application/wasm";

/// A team's repository in a registry.
#[derive(Debug)]
pub struct RegistrySource<'a> {
    registry: &'a mut Registry,
    repository: &'a Reference,
}

impl<'a> RegistrySource<'a> {
    /// Returns the source for a repository.
    #[must_use]
    pub fn new(registry: &'a mut Registry, repository: &'a Reference) -> Self {
        Self { registry, repository }
    }
}

impl Source for RegistrySource<'_> {
    fn document(&mut self, name: &DocumentName) -> Result<Option<SignedText>, SourceError> {
        let parts = [
            Part { media_type: DOCUMENT, content: DOCUMENT_MAX as u64 },
            Part { media_type: SIGNATURES, content: TEXT_MAX as u64 },
        ];
        let Some(parts) = self.registry.parts(&self.repository.tagged(&name.tag()), &parts)? else {
            return Ok(None);
        };
        let mut texts = parts.into_iter().map(String::from_utf8);
        match (texts.next(), texts.next()) {
            (Some(Ok(text)), Some(Ok(signatures))) => Ok(Some(SignedText { text, signatures })),
            _ => Err(format!("the {name} is no text").into()),
        }
    }

    fn pack(&mut self, digest: &str, size: u64) -> Result<Vec<u8>, SourceError> {
        let at = self.repository.tagged(&pack_tag(digest));
        let parts = self.registry.parts(&at, &[Part { media_type: PACK, content: size }])?;
        let pack = parts.and_then(|parts| parts.into_iter().next());
        pack.ok_or_else(|| format!("the pack `{digest}` is not there").into())
    }
}

/// Publishes packs and documents. The timestamp goes last, so that a bundle is never named before it is there.
///
/// # Errors
/// If the registry refuses something.
pub fn push(
    registry: &mut Registry,
    repository: &Reference,
    packs: &[PackBytes],
    documents: &[(DocumentName, SignedText)],
) -> Result<(), RegistryError> {
    for (digest, bytes) in packs {
        let part = Part { media_type: PACK, content: bytes.as_slice() };
        registry.put_parts(&repository.tagged(&pack_tag(digest)), KIND, &[part])?;
    }
    let mut documents: Vec<_> = documents.iter().collect();
    documents.sort_by_key(|(name, _)| *name == DocumentName::Timestamp);
    for (name, signed) in documents {
        let parts = [
            Part { media_type: DOCUMENT, content: signed.text.as_bytes() },
            Part { media_type: SIGNATURES, content: signed.signatures.as_bytes() },
        ];
        registry.put_parts(&repository.tagged(&name.tag()), KIND, &parts)?;
    }
    Ok(())
}

fn pack_tag(digest: &str) -> String {
    format!("pack-{}", digest.replace(':', "-"))
}
