//! From the bytes of a component to a policy that can be asked.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};
use wasmtime::component::Component;

use crate::cache::{Cache, CacheKey, Start, hex};
use crate::compile::{Compiler, Workplace};
use crate::engine::SharedEngine;
use crate::error::LoadError;
use crate::input::{check_bytes, check_configuration};
use crate::limits::Limits;
use crate::link::{describe_copy, link};
use crate::policy::{ComponentPolicy, Description};
use crate::precompiled;
use crate::state::LogLine;
use crate::track::Surface;

/// Loads policies; one serves the whole process.
pub struct Runtime {
    shared: Arc<SharedEngine>,
    cache: Option<Cache>,
    limits: Limits,
    compiler: Compiler,
    /// Where the last component was compiled: it is usually described first and then loaded, or loaded again with
    /// another configuration.
    last: Mutex<Option<([u8; 32], Workplace)>>,
}

/// A component that is not loaded yet. Its digest, which takes a while, is computed once for all that is wanted of it.
#[derive(Clone, Copy)]
pub struct Unloaded<'a> {
    runtime: &'a Runtime,
    component: &'a [u8],
    digest: [u8; 32],
}

/// Where compiled policies are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CachePlace {
    /// Nowhere: every start compiles.
    None,
    /// In this directory, which must belong to the user alone and must lie where
    /// no sandboxed command or tool can write: machine code is loaded from it.
    Directory(PathBuf),
}

impl Runtime {
    /// Starts the engine; components are compiled where `compiler` says.
    ///
    /// # Errors
    /// When the machine does not let it, or the cache is within reach of others.
    pub fn new(limits: Limits, cache: &CachePlace, compiler: Compiler) -> Result<Self, LoadError> {
        let cache = match cache {
            CachePlace::None => None,
            CachePlace::Directory(path) => Some(Cache::open(path)?),
        };
        Ok(Self { shared: Arc::new(SharedEngine::start()?), cache, limits, compiler, last: Mutex::new(None) })
    }

    /// Takes a component, to have it described and loaded.
    ///
    /// # Errors
    /// When it is too large, or begins as no component does.
    pub fn take<'a>(&'a self, component: &'a [u8]) -> Result<Unloaded<'a>, LoadError> {
        check_bytes(component)?;
        Ok(Unloaded { runtime: self, component, digest: Sha256::digest(component).into() })
    }

    /// Loads a policy: [`Runtime::take`] and [`Unloaded::load`].
    ///
    /// # Errors
    /// As for these.
    pub fn load(
        &self,
        name: &str,
        component: &[u8],
        configuration: &str,
    ) -> Result<ComponentPolicy, LoadError> {
        self.take(component)?.load(name, configuration)
    }

    /// What a component says of itself: [`Runtime::take`] and [`Unloaded::describe`].
    ///
    /// # Errors
    /// As for these.
    pub fn describe(&self, component: &[u8]) -> Result<Description, LoadError> {
        self.take(component)?.describe()
    }

    /// What a component imports and exports; runs nothing of it.
    ///
    /// # Errors
    /// When it is no component or does not compile.
    pub fn surface(&self, component: &[u8]) -> Result<Surface, LoadError> {
        self.take(component)?.compile(Workplace::surface)
    }
}

impl Unloaded<'_> {
    /// Loads the policy and configures it. `name` is what decisions call it; `configuration` is a JSON object.
    ///
    /// # Errors
    /// When it is no policy that this host can serve, or refuses the configuration.
    pub fn load(&self, name: &str, configuration: &str) -> Result<ComponentPolicy, LoadError> {
        let Self { runtime, digest, .. } = *self;
        check_configuration(configuration)?;
        let key = CacheKey::new(runtime.shared.engine(), &digest, configuration);
        let kept = runtime.cache.as_ref().and_then(|cache| cache.find(runtime.shared.engine(), key));
        let (ready, start, log) = match kept {
            Some((ready, start)) => (ready, start, Vec::new()),
            None => self.make(configuration, key)?,
        };
        let (runner, exports) = link(&runtime.shared, runtime.limits, &ready)?;
        let description = describe_copy(&runner, &exports, runtime.limits)?;
        Ok(ComponentPolicy {
            name: name.to_owned(),
            digest: hex(&digest),
            description,
            configuration: configuration.to_owned(),
            start,
            limits: runtime.limits,
            runner,
            exports,
            rewrites: false,
            sees_output: true,
            log: Mutex::new(VecDeque::from(log)),
        })
    }

    /// What the component says of itself, without configuring it.
    ///
    /// # Errors
    /// As for [`Unloaded::load`].
    pub fn describe(&self) -> Result<Description, LoadError> {
        let Self { runtime, digest, .. } = *self;
        let key = CacheKey::new(runtime.shared.engine(), &digest, "");
        if let Some(kept) = runtime.cache.as_ref().and_then(|cache| cache.find_description(key)) {
            return Ok(kept);
        }
        let description = self.compile(Workplace::describe)?;
        if let Some(cache) = &runtime.cache {
            cache.keep_description(key, &description);
        }
        Ok(description)
    }

    /// Compiles and configures the component, and keeps the result.
    fn make(
        &self,
        configuration: &str,
        key: CacheKey,
    ) -> Result<(Component, Start, Vec<LogLine>), LoadError> {
        let made = self.compile(|place| place.make(configuration))?;
        let engine = self.runtime.shared.engine();
        // What lies in the cache is mapped, and takes no memory of this process alone.
        let kept = self.runtime.cache.as_ref().and_then(|cache| {
            cache.keep(key, &made.code, made.start);
            cache.find(engine, key)
        });
        let ready = match kept {
            Some((ready, _)) => ready,
            None => precompiled::deserialize_made(engine, &made.code)
                .map_err(|source| LoadError::Compile { source })?,
        };
        Ok((ready, made.start, made.log))
    }

    /// Has something done where this component is compiled.
    fn compile<T>(&self, job: impl FnOnce(&mut Workplace) -> Result<T, LoadError>) -> Result<T, LoadError> {
        let Self { runtime, component, digest } = *self;
        let mut last = runtime.last.lock().unwrap_or_else(PoisonError::into_inner);
        let mut place = match last.take() {
            Some((known, place)) if known == digest => place,
            other => {
                drop(other);
                Workplace::open(&runtime.compiler, &runtime.shared, runtime.limits, component)?
            }
        };
        let done = job(&mut place);
        let is_over = matches!(done, Err(LoadError::CompileLimit { .. } | LoadError::Compiler { .. }));
        if !is_over {
            *last = Some((digest, place));
        }
        done
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Runtime").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Unloaded<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Unloaded").field("digest", &hex(&self.digest)).finish_non_exhaustive()
    }
}
