//! The tools that make a runnable component of bytes.

use std::sync::Arc;

use wasmtime::Engine;
use wasmtime::component::Component;

use crate::cache::{Cache, CacheKey};
use crate::compile::{Artifact, Compiler, Job};
use crate::engine::SharedEngine;
use crate::error::LoadError;
use crate::exports::Exports;
use crate::instance::Runner;
use crate::limits::Limits;
use crate::link::link;
use crate::precompiled;

/// The engine, the compiler and the cache, with the limits that hold for all of them.
#[derive(Clone)]
pub(crate) struct Toolchain {
    pub(crate) shared: Arc<SharedEngine>,
    pub(crate) cache: Option<Arc<Cache>>,
    pub(crate) limits: Limits,
    pub(crate) compiler: Compiler,
}

impl Toolchain {
    pub(crate) fn engine(&self) -> &Engine {
        self.shared.engine()
    }

    /// Returns the cached compiled form for `key`, if there is one.
    pub(crate) fn cached(&self, key: CacheKey) -> Option<Component> {
        self.cache.as_ref()?.find(self.engine(), key)
    }

    /// Compiles a component.
    pub(crate) fn compile(&self, component: &[u8], job: &Job) -> Result<Artifact, LoadError> {
        self.compiler.compile(&self.shared, self.limits, component, job)
    }

    /// Turns machine code into a component that can run.
    pub(crate) fn component_of(&self, code: &Artifact) -> Result<Component, LoadError> {
        precompiled::deserialize_made(self.engine(), code).map_err(|source| LoadError::Compile { source })
    }

    /// Stores machine code in the cache and returns the cached form, if there is a cache.
    ///
    /// A cached file is mapped, so its pages are shared and not private to this process.
    pub(crate) fn keep(&self, key: CacheKey, code: &Artifact) -> Option<Component> {
        self.cache.as_ref()?.keep(key, code);
        self.cached(key)
    }

    /// Links a component after checking that it is a policy of a supported contract version.
    pub(crate) fn link(&self, component: &Component) -> Result<(Runner, Exports), LoadError> {
        link(&self.shared, self.limits, component)
    }
}
