//! The compilation itself, in either process.

use std::sync::Arc;

use wasmtime::component::Component;

use crate::compile::job::{Artifact, Job};
use crate::engine::SharedEngine;
use crate::error::LoadError;
use crate::exports::Exports;
use crate::instance::{Runner, Running};
use crate::limits::Limits;
use crate::link::{describe_copy, in_call, link};
use crate::snapshot::Readable;

/// Compiles one component.
pub(super) struct Worker<'a> {
    pub(super) shared: &'a Arc<SharedEngine>,
    pub(super) limits: Limits,
    pub(super) component: &'a [u8],
}

impl Worker<'_> {
    pub(super) fn carry_out(&self, job: &Job) -> Result<Artifact, LoadError> {
        let compiled = match job {
            Job::Component => self.compile(self.component)?,
            Job::Snapshot { configuration } => self.snapshot(configuration)?,
        };
        compiled.serialize().map(Artifact::from_compiler).map_err(|source| LoadError::Compile { source })
    }

    /// Configures a copy of the component and turns its state into a component.
    fn snapshot(&self, configuration: &str) -> Result<Component, LoadError> {
        let readable = Readable::prepare(self.component).ok_or_else(no_snapshot)?;
        let (runner, exports) = self.link(&self.compile(&readable.component)?)?;
        let mut running = runner.start(self.limits.configure_time).map_err(in_call("configure"))?;
        let errors = exports
            .configure(&mut running, self.limits.configure_time, configuration)
            .map_err(in_call("configure"))?;
        if !errors.is_empty() {
            return Err(LoadError::Configuration { errors });
        }
        let bytes = self.read_state(&readable, &mut running)?;
        let snapshot = self.compile(&bytes)?;
        let described = |(runner, exports): (Runner, Exports)| describe_copy(&runner, &exports, self.limits);
        if described(self.link(&snapshot)?)? != described((runner, exports))? {
            return Err(no_snapshot());
        }
        Ok(snapshot)
    }

    fn read_state(&self, readable: &Readable<'_>, running: &mut Running) -> Result<Vec<u8>, LoadError> {
        // A handle refers to a table outside of the memory that the snapshot copies.
        if running.store.data().handles != 0 {
            return Err(no_snapshot());
        }
        readable.snapshot(&mut running.store, running.instance).ok_or_else(no_snapshot)
    }

    fn link(&self, compiled: &Component) -> Result<(Runner, Exports), LoadError> {
        link(self.shared, self.limits, compiled)
    }

    fn compile(&self, bytes: &[u8]) -> Result<Component, LoadError> {
        Component::from_binary(self.shared.engine(), bytes).map_err(|source| LoadError::Compile { source })
    }
}

fn no_snapshot() -> LoadError {
    LoadError::Compile { source: wasmtime::Error::msg("no snapshot of this component can be taken") }
}
