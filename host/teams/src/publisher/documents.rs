//! The documents in a publisher's folder: files named as in the registry, with signatures beside them.

use std::fs;
use std::path::{Path, PathBuf};

use portcullis_packs::{TEXT_MAX, beside, read_text, write};

use super::error::FolderError;
use crate::document::{DOCUMENT_MAX, SignedText};
use crate::source::DocumentName;

/// The directory of the documents in a publisher's folder.
const METADATA: &str = "metadata";

/// The documents of a folder.
#[derive(Debug, Clone)]
pub(super) struct Documents {
    pub(super) directory: PathBuf,
}

impl Documents {
    pub(super) fn of(folder: &Path) -> Self {
        Self { directory: folder.join(METADATA) }
    }

    fn file(&self, name: &DocumentName) -> PathBuf {
        self.directory.join(format!("{}.json", name.tag()))
    }

    /// Reads a document, or returns `None` if there is none.
    pub(super) fn read(&self, name: &DocumentName) -> Result<Option<SignedText>, FolderError> {
        let file = self.file(name);
        if !file.exists() {
            return Ok(None);
        }
        let signatures = beside(&file, "sig");
        let signatures = if signatures.exists() { read_text(&signatures, TEXT_MAX)? } else { String::new() };
        Ok(Some(SignedText { text: read_text(&file, DOCUMENT_MAX)?, signatures }))
    }

    /// Writes a document. Signatures over an earlier text go.
    pub(super) fn write(&self, name: &DocumentName, signed: &SignedText) -> Result<(), FolderError> {
        fs::create_dir_all(&self.directory)
            .map_err(|source| FolderError::Directory(self.directory.clone(), source))?;
        let file = self.file(name);
        let signatures = beside(&file, "sig");
        if signed.signatures.is_empty() {
            drop(fs::remove_file(&signatures));
        } else {
            write(&signatures, signed.signatures.as_bytes())?;
        }
        Ok(write(&file, signed.text.as_bytes())?)
    }

    /// Reads the documents `name(1)`, `name(2)`, and so on, up to the first that is missing.
    pub(super) fn series(&self, name: fn(u64) -> DocumentName) -> Result<Vec<SignedText>, FolderError> {
        let mut found = Vec::new();
        for version in 1.. {
            let Some(signed) = self.read(&name(version))? else { break };
            found.push(signed);
        }
        Ok(found)
    }
}
