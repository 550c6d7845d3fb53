//! A team's documents and packs in one file, for machines without a network: a tar archive with flat names.
//!
//! An archive is a source like a registry: it is not trusted, and its names never become paths.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use crate::document::SignedText;
use crate::source::{DocumentName, Source, SourceError};
use crate::update::PackBytes;

/// Largest number of entries in an archive.
const ENTRIES_MAX: usize = 1000;
/// Largest size of all entries together, in bytes.
const ALL_MAX: u64 = 512 << 20;

/// The reason why an archive cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// Reading or writing failed.
    #[error("reading or writing the archive")]
    Io(#[from] std::io::Error),
    /// The archive is too large.
    #[error("it holds more than {ENTRIES_MAX} entries, or more than 512 MiB")]
    TooLarge,
    /// An entry is not a plain file with a short name.
    #[error("an entry of it is no plain file")]
    Entry,
    /// The archive has no documents of a team.
    #[error("it holds no documents of a team; `portcullis team save` writes such archives")]
    Empty,
}

/// An archive in memory.
#[derive(Debug)]
pub struct ArchiveSource {
    files: BTreeMap<String, Vec<u8>>,
}

impl ArchiveSource {
    /// Reads an archive, up to its limits.
    ///
    /// # Errors
    /// When it is no archive of a team, or too large.
    pub fn read(input: impl Read) -> Result<Self, ArchiveError> {
        let mut archive = tar::Archive::new(input.take(ALL_MAX + ALL_MAX / 8));
        let (mut files, mut left) = (BTreeMap::new(), ALL_MAX);
        for entry in archive.entries()? {
            let entry = entry?;
            let name = entry.path()?.to_str().map(str::to_owned);
            let is_plain = entry.header().entry_type().is_file();
            let name = name.filter(|name| is_plain && !name.contains('/') && name.len() < 150);
            let name = name.ok_or(ArchiveError::Entry)?;
            let mut bytes = Vec::new();
            entry.take(left + 1).read_to_end(&mut bytes)?;
            left = left.checked_sub(bytes.len() as u64).ok_or(ArchiveError::TooLarge)?;
            files.insert(name, bytes);
            if files.len() > ENTRIES_MAX {
                return Err(ArchiveError::TooLarge);
            }
        }
        if files.contains_key(&text_name(&DocumentName::Timestamp)) {
            Ok(Self { files })
        } else {
            Err(ArchiveError::Empty)
        }
    }
}

impl Source for ArchiveSource {
    fn document(&mut self, name: &DocumentName) -> Result<Option<SignedText>, SourceError> {
        let text = |name: &str| {
            let bytes = self.files.get(name).cloned();
            bytes
                .map(|bytes| String::from_utf8(bytes).map_err(|_| format!("`{name}` is no text")))
                .transpose()
        };
        let (document, signatures) = (text(&text_name(name))?, text(&signatures_name(name))?);
        Ok(document.map(|text| SignedText { text, signatures: signatures.unwrap_or_default() }))
    }

    fn pack(&mut self, digest: &str, _size: u64) -> Result<Vec<u8>, SourceError> {
        let bytes = self.files.get(&pack_name(digest)).cloned();
        bytes.ok_or_else(|| format!("the pack `{digest}` is not in the archive").into())
    }
}

/// Writes an archive.
///
/// # Errors
/// When it cannot be written.
pub fn save(
    output: impl Write,
    documents: &[(DocumentName, SignedText)],
    packs: &[PackBytes],
) -> Result<(), ArchiveError> {
    let mut archive = tar::Builder::new(output);
    let mut append = |name: &str, bytes: &[u8]| {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, bytes)
    };
    for (name, signed) in documents {
        append(&text_name(name), signed.text.as_bytes())?;
        append(&signatures_name(name), signed.signatures.as_bytes())?;
    }
    for (digest, bytes) in packs {
        append(&pack_name(digest), bytes)?;
    }
    archive.finish()?;
    Ok(())
}

fn text_name(name: &DocumentName) -> String {
    format!("{}.json", name.tag())
}

fn signatures_name(name: &DocumentName) -> String {
    format!("{}.json.sig", name.tag())
}

fn pack_name(digest: &str) -> String {
    format!("pack-{}.wasm", digest.replace(':', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_comes_back_as_it_was() {
        let signed = SignedText { text: "{}".to_owned(), signatures: "x".to_owned() };
        let documents = [(DocumentName::Timestamp, signed.clone()), (DocumentName::Root(1), signed.clone())];
        let mut bytes = Vec::new();
        save(&mut bytes, &documents, &[("sha256:ab".to_owned(), b"pack".to_vec())]).unwrap();
        let mut source = ArchiveSource::read(bytes.as_slice()).unwrap();
        assert_eq!(source.document(&DocumentName::Root(1)).unwrap(), Some(signed));
        assert_eq!(source.document(&DocumentName::Root(2)).unwrap(), None);
        assert_eq!(source.pack("sha256:ab", 4).unwrap(), b"pack");
        assert!(source.pack("sha256:cd", 4).is_err());
    }

    #[test]
    fn other_archives_are_refused() {
        assert!(matches!(ArchiveSource::read([7; 2000].as_slice()), Err(ArchiveError::Io(_))));
        assert!(matches!(ArchiveSource::read([].as_slice()), Err(ArchiveError::Empty)));
        let entry = |name: &str, kind: tar::EntryType| {
            let mut archive = tar::Builder::new(Vec::new());
            let mut header = tar::Header::new_ustar();
            header.set_entry_type(kind);
            header.set_size(0);
            archive.append_data(&mut header, name, std::io::empty()).unwrap();
            ArchiveSource::read(archive.into_inner().unwrap().as_slice())
        };
        for (name, kind) in [("a/b", tar::EntryType::Regular), ("timestamp.json", tar::EntryType::Symlink)] {
            assert!(matches!(entry(name, kind), Err(ArchiveError::Entry)), "{name}");
        }
        assert!(entry("timestamp.json", tar::EntryType::Regular).is_ok());
    }
}
