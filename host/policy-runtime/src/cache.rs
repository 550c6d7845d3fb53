//! Compiled policies on disk: a component is compiled when it is new, and not at every start.

use std::hash::{Hash, Hasher};
use std::path::Path;

use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::compile::Artifact;
use crate::error::LoadError;
use crate::own_files::{OwnDirectory, OwnDirectoryError};
use crate::precompiled;

/// Files that are kept; a compiled policy is 0.3 to 60 MB.
const MAX_ENTRIES: usize = 32;
/// Largest file that is read back.
const MAX_BYTES: u64 = 512 << 20;
/// Changes when the steps between a component and its compiled form do.
const STEPS: &str = concat!("snapshot-3 portcullis-", env!("CARGO_PKG_VERSION"));

/// What a compiled policy was made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheKey {
    form: &'static str,
    digest: [u8; 32],
}

impl CacheKey {
    /// The component as it is. Only its digest counts.
    pub(crate) fn component(engine: &Engine, component: &[u8; 32]) -> Self {
        Self::new(engine, "component", component, "")
    }

    /// The component in the state that it has after `configuration`.
    pub(crate) fn snapshot(engine: &Engine, component: &[u8; 32], configuration: &str) -> Self {
        Self::new(engine, "snapshot", component, configuration)
    }

    fn new(engine: &Engine, form: &'static str, component: &[u8; 32], configuration: &str) -> Self {
        let mut environment = Sha256Hasher(Sha256::new());
        engine.precompile_compatibility_hash().hash(&mut environment);
        let mut all = Sha256::new();
        all.update(environment.0.finalize());
        all.update(Sha256::digest(STEPS));
        all.update(component);
        all.update(Sha256::digest(configuration));
        Self { form, digest: all.finalize().into() }
    }

    fn file_name(self) -> String {
        format!("{}-{}", self.form, hex(&self.digest))
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
    pub(crate) fn find(&self, engine: &Engine, key: CacheKey) -> Option<Component> {
        let code = self.directory.file(&key.file_name())?;
        precompiled::deserialize(engine, code, MAX_BYTES).ok()
    }

    /// Keeps a compiled form.
    pub(crate) fn keep(&self, key: CacheKey, code: &Artifact) {
        // A cache that cannot be written is a slow start and no fault.
        drop(self.directory.write(&key.file_name(), code.bytes()));
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
