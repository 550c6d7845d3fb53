//! A linked component that can be started, and how its copies are configured.

use std::time::Duration;

use portcullis_decision::PolicyError;

use crate::exports::Exports;
use crate::instance::{Runner, Running};

/// How copies of a policy are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// From a snapshot taken after `configure`.
    Snapshot,
    /// By calling `configure` each time: there is no snapshot yet, or the component does not allow one (it
    /// holds handles, or changes its tables while it runs).
    Configure,
}

/// A linked component.
pub(crate) struct Ready {
    pub(crate) runner: Runner,
    pub(crate) exports: Exports,
    pub(crate) start: Start,
}

impl Ready {
    /// Starts a configured copy.
    pub(crate) fn start(&self, time: Duration, configuration: &str) -> Result<Running, PolicyError> {
        let mut running = self.runner.start(time)?;
        if self.start == Start::Configure {
            let errors = self.exports.configure(&mut running, time, configuration)?;
            if !errors.is_empty() {
                let detail = "it now refuses the configuration that it took before".to_owned();
                return Err(PolicyError::BadAnswer { detail });
            }
            running.store.data_mut().forget_configuring();
        }
        Ok(running)
    }
}
