//! Compiling components, in a process of their own.
//!
//! A small component can be hours of work and gigabytes of memory for the compiler, and no estimate of that is safe.
//! So the host starts its own program again, hands it the component over a pipe, and gets machine code back. The
//! process has bounds of memory and processor time, can open nothing, and is killed when it takes too long.

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

pub use process::CompileLimit;
use process::CompilerProcess;
pub use server::compiler_main;
pub(crate) use wire::Job;
pub(crate) use worker::Artifact;
use worker::Worker;

/// The first argument of a process that compiles; the program then calls [`compiler_main`] and nothing else.
pub const COMPILER_ARGUMENT: &str = "__compiler";

/// Where components are compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compiler {
    /// In a bounded process. This program calls [`compiler_main`] when its first argument is [`COMPILER_ARGUMENT`].
    Process(PathBuf),
    /// In the calling process, without bounds on memory and time: only for components that the caller trusts, as
    /// tests do.
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
