//! From the bytes of a component to a policy that can be asked.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use portcullis_decision::PolicyError;
use sha2::{Digest, Sha256};
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Linker};

use crate::cache::{Cache, CacheKey, Start, hex};
use crate::cost;
use crate::engine::SharedEngine;
use crate::error::LoadError;
use crate::input::{check_bytes, check_configuration};
use crate::instance::{Runner, Running};
use crate::limits::Limits;
use crate::policy::{ComponentPolicy, Description};
use crate::snapshot::Readable;
use crate::state::{HostState, LogLine};
use crate::track::Surface;
use crate::v0_1::{self, Exports};
use crate::wasi;

/// Loads policies; one serves the whole process.
pub struct Runtime {
    shared: Arc<SharedEngine>,
    cache: Option<Cache>,
    limits: Limits,
    /// The component that was compiled last: it is usually described first and
    /// then loaded, or loaded again with another configuration.
    last: Mutex<Option<Arc<Prepared>>>,
    /// Whether anything was compiled, which takes a lot of memory for a moment.
    has_compiled: AtomicBool,
}

/// A component that is not loaded yet. Its digest, which takes a while, is computed once for all that is wanted of it.
#[derive(Clone, Copy)]
pub struct Unloaded<'a> {
    runtime: &'a Runtime,
    component: &'a [u8],
    digest: [u8; 32],
}

/// A component, compiled so that its state can be read out, where that is possible.
struct Prepared {
    digest: [u8; 32],
    runner: Runner,
    exports: Exports,
    description: Description,
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
    /// Starts the engine.
    ///
    /// # Errors
    /// When the machine does not let it, or the cache is within reach of others.
    pub fn new(limits: Limits, cache: &CachePlace) -> Result<Self, LoadError> {
        let cache = match cache {
            CachePlace::None => None,
            CachePlace::Directory(path) => Some(Cache::open(path)?),
        };
        let (last, has_compiled) = (Mutex::new(None), AtomicBool::new(false));
        Ok(Self { shared: Arc::new(SharedEngine::start()?), cache, limits, last, has_compiled })
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
        check_bytes(component)?;
        cost::check(component)?;
        Ok(Surface::of(&self.compile(component)?.component_type(), self.shared.engine()))
    }

    /// Compiles and configures a component, and keeps the result.
    fn make(
        &self,
        (component, digest): (&[u8], [u8; 32]),
        configuration: &str,
        key: CacheKey,
    ) -> Result<(Component, Start, Vec<LogLine>), LoadError> {
        let prepared = self.prepare(component, digest)?;
        let mut running = prepared.runner.start(self.limits.configure_time).map_err(in_call("configure"))?;
        self.configure(&mut running, &prepared.exports, configuration)?;
        let snapshot = self.snapshot(component, &mut running, &prepared.description);
        let (ready, start) = match snapshot {
            Some(snapshot) => (snapshot, Start::Snapshot),
            None => (self.compile(component)?, Start::Configure),
        };
        if let Some(cache) = &self.cache {
            cache.keep(key, &ready, start);
        }
        Ok((ready, start, running.into_log()))
    }

    /// Compiles, checks and describes a component.
    fn prepare(&self, component: &[u8], digest: [u8; 32]) -> Result<Arc<Prepared>, LoadError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = last.as_ref().filter(|known| known.digest == digest) {
            return Ok(Arc::clone(known));
        }
        cost::check(component)?;
        let compiled = match Readable::prepare(component) {
            Some(readable) => self.compile(&readable.component)?,
            None => self.compile(component)?,
        };
        let (runner, exports) = self.link(&compiled)?;
        let description = self.describe_copy(&runner, &exports)?;
        let prepared = Arc::new(Prepared { digest, runner, exports, description });
        *last = Some(Arc::clone(&prepared));
        Ok(prepared)
    }

    fn configure(
        &self,
        running: &mut Running<'_>,
        exports: &Exports,
        configuration: &str,
    ) -> Result<(), LoadError> {
        let errors = v0_1::configure(running, exports, self.limits.configure_time, configuration)
            .map_err(in_call("configure"))?;
        if errors.is_empty() { Ok(()) } else { Err(LoadError::Configuration { errors }) }
    }

    /// Makes a component of the configured state; none: that cannot be done, or
    /// what came of it is not the same policy.
    fn snapshot(
        &self,
        component: &[u8],
        running: &mut Running<'_>,
        description: &Description,
    ) -> Option<Component> {
        // A handle is an entry in a table outside the memory that is copied.
        if running.store.data().handles != 0 {
            return None;
        }
        let readable = Readable::prepare(component)?;
        let bytes = readable.snapshot(&mut running.store, running.instance)?;
        let snapshot = self.compile(&bytes).ok()?;
        let (runner, exports) = self.link(&snapshot).ok()?;
        let same = self.describe_copy(&runner, &exports).ok()? == *description;
        same.then_some(snapshot)
    }

    fn describe_copy(&self, runner: &Runner, exports: &Exports) -> Result<Description, LoadError> {
        let mut running = runner.start(self.limits.configure_time).map_err(in_call("describe"))?;
        exports.check(&mut running).map_err(|source| LoadError::Contract { track: v0_1::TRACK, source })?;
        v0_1::describe(&mut running, exports, self.limits.setup_time).map_err(in_call("describe"))
    }

    fn compile(&self, bytes: &[u8]) -> Result<Component, LoadError> {
        self.has_compiled.store(true, Ordering::Relaxed);
        Component::from_binary(self.shared.engine(), bytes).map_err(|source| LoadError::Compile { source })
    }

    /// Gives a component what it imports, after checking that it is a policy.
    fn link(&self, component: &Component) -> Result<(Runner, Exports), LoadError> {
        let engine = self.shared.engine();
        let contract = |source| LoadError::Contract { track: v0_1::TRACK, source };
        let ty = component.component_type();
        Surface::of(&ty, engine).check()?;
        let mut linker: Linker<HostState> = Linker::new(engine);
        v0_1::link(&mut linker).map_err(contract)?;
        for (name, import) in ty.imports(engine) {
            if let (true, ComponentItem::ComponentInstance(wanted)) = (wasi::is_wasi(name), &import.ty) {
                let mut instance = linker.instance(name).map_err(contract)?;
                wasi::define(engine, name, wanted, &mut instance).map_err(contract)?;
            }
        }
        let component = linker.instantiate_pre(component).map_err(contract)?;
        let exports = Exports::find(&component).map_err(contract)?;
        let runner = Runner { shared: Arc::clone(&self.shared), component, memory: self.limits.memory };
        Ok((runner, exports))
    }
}

impl Unloaded<'_> {
    /// Loads the policy and configures it. `name` is what decisions call it; `configuration` is a JSON object.
    ///
    /// # Errors
    /// When it is no policy that this host can serve, or refuses the configuration.
    pub fn load(&self, name: &str, configuration: &str) -> Result<ComponentPolicy, LoadError> {
        let Self { runtime, component, digest } = *self;
        check_configuration(configuration)?;
        let key = CacheKey::new(runtime.shared.engine(), &digest, configuration);
        let kept = runtime.cache.as_ref().and_then(|cache| cache.find(runtime.shared.engine(), key));
        let (ready, start, log) = match kept {
            Some((ready, start)) => (ready, start, Vec::new()),
            None => runtime.make((component, digest), configuration, key)?,
        };
        let (runner, exports) = runtime.link(&ready)?;
        let description = runtime.describe_copy(&runner, &exports)?;
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
        let Self { runtime, component, digest } = *self;
        let key = CacheKey::new(runtime.shared.engine(), &digest, "");
        if let Some(kept) = runtime.cache.as_ref().and_then(|cache| cache.find_description(key)) {
            return Ok(kept);
        }
        let description = runtime.prepare(component, digest)?.description.clone();
        if let Some(cache) = &runtime.cache {
            cache.keep_description(key, &description);
        }
        Ok(description)
    }
}

impl Drop for Runtime {
    /// Whoever has loaded all that it wants is about to live for hours with it.
    fn drop(&mut self) {
        if *self.has_compiled.get_mut() {
            drop(self.last.get_mut().unwrap_or_else(PoisonError::into_inner).take());
            #[cfg(target_os = "linux")]
            portcullis_sys::memory::give_back();
        }
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

fn in_call(call: &'static str) -> impl Fn(PolicyError) -> LoadError {
    move |source| LoadError::Call { call, source }
}
