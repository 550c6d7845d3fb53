//! The work of compiling, whichever process does it.

use std::sync::Arc;

use wasmtime::component::Component;

use crate::cache::Start;
use crate::compile::wire::{Done, Fault, Job};
use crate::engine::SharedEngine;
use crate::error::LoadError;
use crate::instance::{Runner, Running};
use crate::limits::Limits;
use crate::link::{describe_copy, in_call, link};
use crate::policy::Description;
use crate::snapshot::Readable;
use crate::state::LogLine;
use crate::track::Surface;
use crate::v0_1::{self, Exports};

/// Machine code that this host's own compiler has made, here or at the other end of a private pipe.
pub(crate) struct Artifact(Vec<u8>);

impl Artifact {
    /// Takes code that has come from the process that compiles.
    pub(super) fn from_compiler(code: Vec<u8>) -> Self {
        Self(code)
    }

    /// The code.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A component, compiled for one configuration.
pub(crate) struct Made {
    pub(crate) code: Artifact,
    pub(crate) start: Start,
    /// What the component logged while it was configured.
    pub(crate) log: Vec<LogLine>,
}

/// Does jobs for one component.
pub(crate) struct Worker {
    shared: Arc<SharedEngine>,
    limits: Limits,
    component: Vec<u8>,
    prepared: Option<Arc<Prepared>>,
}

/// A component, compiled so that its state can be read out, where that is possible.
struct Prepared {
    runner: Runner,
    exports: Exports,
    description: Description,
}

impl Worker {
    pub(crate) fn new(shared: Arc<SharedEngine>, limits: Limits, component: Vec<u8>) -> Self {
        Self { shared, limits, component, prepared: None }
    }

    pub(super) fn carry_out(&mut self, job: &Job) -> Result<Done, Fault> {
        match job {
            Job::Surface => {
                let compiled = self.compile(&self.component)?;
                Ok(Done::Surface(self.surface_of(&compiled)))
            }
            Job::Describe => Ok(Done::Description(self.prepare()?.description.clone())),
            Job::Make { configuration } => Ok(Done::Made(self.make(configuration)?)),
        }
    }

    /// Compiles and configures the component.
    fn make(&mut self, configuration: &str) -> Result<Made, Fault> {
        let prepared = self.prepare()?;
        let mut running = prepared.runner.start(self.limits.configure_time).map_err(in_call("configure"))?;
        let faults =
            v0_1::configure(&mut running, &prepared.exports, self.limits.configure_time, configuration)
                .map_err(in_call("configure"))?;
        if !faults.is_empty() {
            return Err(Fault::Configuration(faults));
        }
        let (ready, start) = match self.snapshot(&mut running, &prepared.description) {
            Some(snapshot) => (snapshot, Start::Snapshot),
            None => (self.compile(&self.component)?, Start::Configure),
        };
        let code = ready.serialize().map_err(|error| Fault::Compile(format!("{error:#}")))?;
        Ok(Made { code: Artifact(code), start, log: running.into_log() })
    }

    /// Compiles, checks and describes the component, once.
    fn prepare(&mut self) -> Result<Arc<Prepared>, Fault> {
        if let Some(prepared) = &self.prepared {
            return Ok(Arc::clone(prepared));
        }
        let compiled = match Readable::prepare(&self.component) {
            Some(readable) => self.compile(&readable.component)?,
            None => self.compile(&self.component)?,
        };
        let surface = self.surface_of(&compiled);
        if surface.check().is_err() {
            return Err(Fault::Surface(surface));
        }
        let (runner, exports) = link(&self.shared, self.limits, &compiled)?;
        let description = describe_copy(&runner, &exports, self.limits)?;
        let prepared = Arc::new(Prepared { runner, exports, description });
        self.prepared = Some(Arc::clone(&prepared));
        Ok(prepared)
    }

    /// Makes a component of the configured state; none: that cannot be done, or the result is not the same policy.
    fn snapshot(&self, running: &mut Running<'_>, description: &Description) -> Option<Component> {
        // A handle is an entry in a table outside the memory that is copied.
        if running.store.data().handles != 0 {
            return None;
        }
        let readable = Readable::prepare(&self.component)?;
        let bytes = readable.snapshot(&mut running.store, running.instance)?;
        let snapshot = self.compile(&bytes).ok()?;
        let (runner, exports) = link(&self.shared, self.limits, &snapshot).ok()?;
        let same = describe_copy(&runner, &exports, self.limits).ok()? == *description;
        same.then_some(snapshot)
    }

    fn surface_of(&self, compiled: &Component) -> Surface {
        Surface::of(&compiled.component_type(), self.shared.engine())
    }

    fn compile(&self, bytes: &[u8]) -> Result<Component, LoadError> {
        Component::from_binary(self.shared.engine(), bytes).map_err(|source| LoadError::Compile { source })
    }
}
