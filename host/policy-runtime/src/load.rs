//! The runtime: turns the bytes of a component into a loaded policy.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use wasmtime::component::Component;

use crate::cache::{Cache, CacheKey};
use crate::compile::{Compiler, Job};
use crate::description::Description;
use crate::digest::ComponentDigest;
use crate::embedded::Embedded;
use crate::engine::SharedEngine;
use crate::error::LoadError;
use crate::input::{check_bytes, check_configuration};
use crate::limits::Limits;
use crate::link::describe_copy;
use crate::policy::{ComponentPolicy, Parts};
use crate::precompiled;
use crate::ready::{Ready, Start};
use crate::snapshot_job::SnapshotJob;
use crate::toolchain::Toolchain;
use crate::track::Surface;

/// Loads policies. One runtime serves the whole process.
pub struct Runtime {
    toolchain: Toolchain,
    embedded: &'static [Embedded],
    /// The component used last.
    ///
    /// It is usually described first and then loaded, or loaded again with another configuration.
    last: Mutex<Option<(ComponentDigest, Component)>>,
}

/// A component that is not loaded yet, with its digest.
#[derive(Clone, Copy)]
pub struct Unloaded<'a> {
    runtime: &'a Runtime,
    component: &'a [u8],
    digest: ComponentDigest,
}

/// Where compiled policies are cached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CachePlace {
    /// Nowhere: every start compiles.
    None,
    /// In this directory.
    ///
    /// It must belong to the user alone and must be unwritable for sandboxed commands and tools, because the
    /// host runs machine code from it.
    Directory(PathBuf),
}

impl Runtime {
    /// Starts the engine. `compiler` says where components are compiled.
    ///
    /// # Errors
    /// Fails when the engine does not start on this machine, or other users can reach the cache.
    pub fn new(limits: Limits, cache: &CachePlace, compiler: Compiler) -> Result<Self, LoadError> {
        let cache = match cache {
            CachePlace::None => None,
            CachePlace::Directory(path) => Some(Arc::new(Cache::open(path)?)),
        };
        let shared = Arc::new(SharedEngine::start()?);
        let toolchain = Toolchain { shared, cache, limits, compiler };
        Ok(Self { toolchain, embedded: &[], last: Mutex::new(None) })
    }

    /// Adds embedded machine code of components.
    #[must_use]
    pub fn with_embedded(mut self, embedded: &'static [Embedded]) -> Self {
        self.embedded = embedded;
        self
    }

    /// Checks a component and prepares it for describing and loading.
    ///
    /// # Errors
    /// Fails when the component is too large or its first bytes are not those of a component.
    pub fn take<'a>(&'a self, component: &'a [u8]) -> Result<Unloaded<'a>, LoadError> {
        check_bytes(component)?;
        Ok(Unloaded { runtime: self, component, digest: ComponentDigest::compute(component) })
    }

    /// Loads a policy: [`Runtime::take`] and [`Unloaded::load`].
    ///
    /// # Errors
    /// Those of both functions.
    pub fn load(
        &self,
        name: &str,
        component: &[u8],
        configuration: &str,
    ) -> Result<ComponentPolicy, LoadError> {
        self.take(component)?.load(name, configuration)
    }

    /// Returns a component's description of itself: [`Runtime::take`] and [`Unloaded::describe`].
    ///
    /// # Errors
    /// Those of both functions.
    pub fn describe(&self, component: &[u8]) -> Result<Description, LoadError> {
        self.take(component)?.describe()
    }

    /// Returns the imports and exports of a component without running it.
    ///
    /// # Errors
    /// Fails when the bytes are not a component or do not compile.
    pub fn surface(&self, component: &[u8]) -> Result<Surface, LoadError> {
        let compiled = self.take(component)?.compiled()?;
        Ok(Surface::from_component(&compiled.component_type(), self.toolchain.engine()))
    }
}

impl Unloaded<'_> {
    /// Loads and configures the policy. `name` is its name in decisions; `configuration` is a JSON object.
    ///
    /// Copies start from a snapshot if there is one. Otherwise `configure` is called before each decision
    /// until [`ComponentPolicy::snapshot_job`] has made a snapshot.
    ///
    /// # Errors
    /// Fails when this host does not support the policy, or the policy rejects the configuration.
    pub fn load(&self, name: &str, configuration: &str) -> Result<ComponentPolicy, LoadError> {
        let Self { runtime: Runtime { toolchain, .. }, component, digest } = *self;
        check_configuration(configuration)?;
        let key = CacheKey::snapshot(digest, configuration);
        let (compiled, start) = match toolchain.cached(key) {
            Some(snapshot) => (snapshot, Start::Snapshot),
            None => (self.compiled()?, Start::Configure),
        };
        let (runner, exports) = toolchain.link(&compiled)?;
        let description = describe_copy(&runner, &exports, toolchain.limits)?;
        let ready = Arc::new(RwLock::new(Arc::new(Ready { runner, exports, start })));
        let job = (start == Start::Configure)
            .then(|| SnapshotJob::new(toolchain, component, configuration, key, &ready));
        ComponentPolicy::new(Parts {
            name: name.to_owned(),
            digest: digest.to_string(),
            description,
            configuration: configuration.to_owned(),
            limits: toolchain.limits,
            ready,
            snapshot: job,
        })
    }

    /// Returns the component's description of itself, without configuring it.
    ///
    /// # Errors
    /// Those of [`Unloaded::load`].
    pub fn describe(&self) -> Result<Description, LoadError> {
        let toolchain = &self.runtime.toolchain;
        let (runner, exports) = toolchain.link(&self.compiled()?)?;
        describe_copy(&runner, &exports, toolchain.limits)
    }

    /// Returns the compiled component: embedded, cached, or compiled by this call.
    fn compiled(&self) -> Result<Component, LoadError> {
        let Self { runtime, digest, .. } = *self;
        let mut last = runtime.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = last.as_ref().filter(|(known, _)| *known == digest) {
            return Ok(known.clone());
        }
        let found = match self.embedded().or_else(|| self.cached()) {
            Some(found) => found,
            None => self.compile()?,
        };
        *last = Some((digest, found.clone()));
        Ok(found)
    }

    fn embedded(&self) -> Option<Component> {
        let embedded = self.runtime.embedded.iter().find(|embedded| embedded.is_of(self.digest))?;
        // Wasmtime rejects code for another processor or from another version. The component is then
        // compiled.
        precompiled::deserialize_embedded(self.runtime.toolchain.engine(), embedded).ok()
    }

    fn cached(&self) -> Option<Component> {
        let toolchain = &self.runtime.toolchain;
        toolchain.cached(CacheKey::component(self.digest))
    }

    fn compile(&self) -> Result<Component, LoadError> {
        let toolchain = &self.runtime.toolchain;
        let code = toolchain.compile(self.component, &Job::Component)?;
        let compiled = toolchain.component_of(&code)?;
        // Only policies are cached: other components are not loaded again.
        if Surface::from_component(&compiled.component_type(), toolchain.engine()).check().is_err() {
            return Ok(compiled);
        }
        let key = CacheKey::component(self.digest);
        Ok(toolchain.keep(key, &code).unwrap_or(compiled))
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Runtime").field("limits", &self.toolchain.limits).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Unloaded<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Unloaded").field("digest", &self.digest).finish_non_exhaustive()
    }
}
