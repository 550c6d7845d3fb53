//! Artifacts of texts and other small files, such as the documents of a team.

use super::artifact::{Descriptor, Manifest, of_parts};
use super::client::Registry;
use super::error::RegistryError;
use super::reference::Reference;
use crate::shown::shown;

/// A part of an artifact: a media type, and its bytes or their largest number.
#[derive(Debug, Clone, Copy)]
pub struct Part<T> {
    /// The media type.
    pub media_type: &'static str,
    /// The content, or its largest size.
    pub content: T,
}

impl Registry {
    /// Writes an artifact with these parts. Replaces one with the same tag.
    ///
    /// # Errors
    /// Fails when the registry refuses it.
    pub fn put_parts(
        &mut self,
        to: &Reference,
        kind: &str,
        parts: &[Part<&[u8]>],
    ) -> Result<(), RegistryError> {
        self.put(to, &of_parts(kind, parts.iter().map(|part| (part.media_type, part.content))))
    }

    /// Reads the parts of an artifact, in this order, each with its largest size. Returns `None` if there is no
    /// artifact with this tag.
    ///
    /// # Errors
    /// Fails when the registry does not answer, or the artifact has other parts or is too large.
    pub fn parts(
        &mut self,
        from: &Reference,
        parts: &[Part<u64>],
    ) -> Result<Option<Vec<Vec<u8>>>, RegistryError> {
        let manifest = match self.manifest(from) {
            Err(RegistryError::Missing(_)) => return Ok(None),
            manifest => Manifest::parse(&manifest?)?,
        };
        let kinds: Vec<&str> = manifest.layers.iter().map(|layer| layer.media_type.as_str()).collect();
        if kinds != parts.iter().map(|part| part.media_type).collect::<Vec<_>>() {
            let (found, tag) = (shown(&kinds.join("`, `")), from.tag.clone().unwrap_or_default());
            return Err(RegistryError::Parts { tag, found });
        }
        let read = |(layer, part): (&Descriptor, &Part<u64>)| self.blob(from, layer, part.content);
        manifest.layers.iter().zip(parts).map(read).collect::<Result<_, _>>().map(Some)
    }
}
