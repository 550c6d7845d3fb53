//! An on-disk cache of compiled policies: a component is compiled once, not at every start.

use std::path::Path;

use sha2::digest::Output;
use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::compile::Artifact;
use crate::digest::ComponentDigest;
use crate::error::LoadError;
use crate::own_files::{OwnDirectory, OwnDirectoryError};
use crate::precompiled;

/// Number of files that the cache keeps. A compiled policy is 0.3 to 60 MB.
const MAX_ENTRIES: usize = 32;
/// Largest file that the cache reads back.
const MAX_BYTES: u64 = 512 << 20;
/// Version of the steps that turn a component into its compiled form. Part of every cache key.
///
/// Machine code of another engine, or for another processor, does not load, and is replaced.
const STEPS: &str = concat!("snapshot-4 portcullis-", env!("CARGO_PKG_VERSION"));

/// The inputs that a compiled policy depends on, as a cache key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheKey {
    form: &'static str,
    digest: Output<Sha256>,
}

impl CacheKey {
    /// The key of the unconfigured component. Only its digest matters.
    pub(crate) fn component(component: ComponentDigest) -> Self {
        Self::new("component", component, "")
    }

    /// The key of the snapshot of a component after it was configured with `configuration`.
    pub(crate) fn snapshot(component: ComponentDigest, configuration: &str) -> Self {
        Self::new("snapshot", component, configuration)
    }

    fn new(form: &'static str, component: ComponentDigest, configuration: &str) -> Self {
        let mut all = Sha256::new();
        all.update(Sha256::digest(STEPS));
        all.update(component);
        all.update(Sha256::digest(configuration));
        Self { form, digest: all.finalize() }
    }

    fn file_name(self) -> String {
        format!("{}-{:x}", self.form, self.digest)
    }
}

/// The cache directory. Any failure here costs only a compilation.
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

    /// Returns the cached compiled form for `key`, if there is one.
    pub(crate) fn find(&self, engine: &Engine, key: CacheKey) -> Option<Component> {
        let code = self.directory.file(&key.file_name())?;
        precompiled::deserialize(engine, code, MAX_BYTES).ok()
    }

    /// Stores a compiled form.
    pub(crate) fn keep(&self, key: CacheKey, code: &Artifact) {
        // A cache that cannot be written makes starts slow, but is not an error.
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
