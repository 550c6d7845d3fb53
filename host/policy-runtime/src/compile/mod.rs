//! Compiles components in a separate process.
//!
//! A small component can cost the compiler hours of work and gigabytes of memory, and no estimate is
//! reliable. So the host starts its own program again, sends it the component over a pipe, and reads back
//! machine code. The process has memory and CPU limits, cannot open anything, and is killed when it takes too
//! long.

mod job;
mod process;
#[cfg(target_os = "linux")]
mod restrict;
mod server;
mod wire;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;

use crate::engine::SharedEngine;
use crate::error::LoadError;
use crate::limits::Limits;

pub(crate) use job::{Artifact, Job};
pub use process::COMPILER_ARGUMENT;
use process::CompilerProcess;
pub use server::compiler_main;
use worker::Worker;

/// Where components are compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compiler {
    /// In a limited process that runs this program.
    ///
    /// It must call [`compiler_main`] when its first argument is [`COMPILER_ARGUMENT`].
    Process(PathBuf),
    /// In the calling process, without limits on memory and time.
    ///
    /// Only for components that the caller trusts, as in tests.
    InProcess,
}

impl Compiler {
    /// Compiles a component.
    pub(crate) fn compile(
        &self,
        shared: &Arc<SharedEngine>,
        limits: Limits,
        component: &[u8],
        job: &Job,
    ) -> Result<Artifact, LoadError> {
        match self {
            Self::Process(program) => CompilerProcess::start(program, limits, component, job)?.answer(),
            Self::InProcess => Worker { shared, limits, component }.carry_out(job),
        }
    }
}
