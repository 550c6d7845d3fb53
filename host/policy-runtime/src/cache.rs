//! Keeps compiled policies, so that a policy is compiled when it or its
//! configuration changes, and not at every start.

use std::hash::{Hash, Hasher};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::compile::Artifact;
use crate::error::LoadError;
use crate::own_files::{OwnDirectory, OwnDirectoryError};
use crate::policy::Description;
use crate::precompiled;

/// Files that are kept; a compiled policy is 0.3 to 60 MB, a description small.
const MAX_ENTRIES: usize = 32;
/// Largest file that is read back.
const MAX_BYTES: u64 = 512 << 20;
/// Changes when the steps between a component and its compiled form do.
const STEPS: &str = concat!("snapshot-2 portcullis-", env!("CARGO_PKG_VERSION"));

/// How copies of a policy are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Start {
    /// From a snapshot that was taken after `configure`.
    Snapshot,
    /// By calling `configure` each time, because no snapshot of this component
    /// can be taken (it holds handles, or changes its tables while it runs).
    Configure,
}

/// What a compiled policy was made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheKey([u8; 32]);

impl CacheKey {
    /// Of the component only its digest counts.
    pub(crate) fn new(engine: &Engine, component: &[u8; 32], configuration: &str) -> Self {
        let mut environment = Sha256Hasher(Sha256::new());
        engine.precompile_compatibility_hash().hash(&mut environment);
        let mut all = Sha256::new();
        all.update(environment.0.finalize());
        all.update(Sha256::digest(STEPS));
        all.update(component);
        all.update(Sha256::digest(configuration));
        Self(all.finalize().into())
    }

    fn file_name(self, form: &str) -> String {
        format!("{form}-{}", hex(&self.0))
    }
}

/// Lower-case hexadecimal digits of `bytes`.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Compiled policies on disk. Everything that goes wrong here costs a
/// compilation and nothing else.
#[derive(Debug)]
pub(crate) struct Cache {
    directory: OwnDirectory,
}

impl Cache {
    pub(crate) fn open(path: &Path) -> Result<Self, LoadError> {
        let unsafe_to_use =
            |source: OwnDirectoryError| LoadError::Cache { path: path.to_owned(), source: source.into() };
        Ok(Self { directory: OwnDirectory::open(path).map_err(unsafe_to_use)? })
    }

    /// The compiled form made from `key`, if it is there.
    pub(crate) fn find(&self, engine: &Engine, key: CacheKey) -> Option<(Component, Start)> {
        for (start, form) in FORMS {
            let Some(code) = self.directory.file(&key.file_name(form)) else { continue };
            return Some((precompiled::deserialize(engine, code, MAX_BYTES).ok()?, start));
        }
        None
    }

    /// Keeps a compiled form.
    pub(crate) fn keep(&self, key: CacheKey, code: &Artifact, start: Start) {
        let form = FORMS.iter().find(|(known, _)| *known == start).map_or("", |(_, form)| form);
        // A cache that cannot be written is a slow start and no fault.
        drop(self.directory.write(&key.file_name(form), &[code.bytes()]));
        self.forget_old();
    }

    /// What the component of `key` says of itself, if it was kept.
    pub(crate) fn find_description(&self, key: CacheKey) -> Option<Description> {
        let bytes = self.directory.read_checked(&key.file_name(DESCRIPTION), MAX_BYTES)?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Keeps a description that was checked.
    pub(crate) fn keep_description(&self, key: CacheKey, description: &Description) {
        let Ok(text) = serde_json::to_vec(description) else { return };
        drop(self.directory.write_checked(&key.file_name(DESCRIPTION), &text));
        self.forget_old();
    }

    fn forget_old(&self) {
        let Ok(names) = self.directory.names() else { return };
        let too_many = names.len().saturating_sub(MAX_ENTRIES);
        for name in names.iter().take(too_many) {
            drop(self.directory.remove(name));
        }
    }
}

/// Begins the name of a file with a description, in place of code.
const DESCRIPTION: &str = "description";
/// Begins the name of a file with code, and says how the component is started.
const FORMS: [(Start, &str); 2] = [(Start::Snapshot, "snapshot"), (Start::Configure, "plain")];

/// Feeds what is hashed into SHA-256: the standard hasher is not the same in
/// every process.
struct Sha256Hasher(Sha256);

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}
