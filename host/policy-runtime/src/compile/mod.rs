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
use crate::policy::Description;
use crate::track::Surface;

pub use process::CompileLimit;
use process::CompilerProcess;
pub use server::compiler_main;
use wire::{Done, Fault, Job};
use worker::Worker;
pub(crate) use worker::{Artifact, Made};

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

/// Compiles one component, for as many jobs as are wanted.
pub(crate) enum Workplace {
    Process(Box<CompilerProcess>),
    Here(Box<Worker>),
}

impl Workplace {
    /// Takes a component to where it is compiled.
    pub(crate) fn open(
        compiler: &Compiler,
        shared: &Arc<SharedEngine>,
        limits: Limits,
        component: &[u8],
    ) -> Result<Self, LoadError> {
        Ok(match compiler {
            Compiler::Process(program) => {
                Self::Process(Box::new(CompilerProcess::start(program, limits, component)?))
            }
            Compiler::InProcess => {
                Self::Here(Box::new(Worker::new(Arc::clone(shared), limits, component.to_vec())))
            }
        })
    }

    /// Returns what the component imports and exports.
    pub(crate) fn surface(&mut self) -> Result<Surface, LoadError> {
        match self.carry_out(&Job::Surface)? {
            Done::Surface(surface) => Ok(surface),
            Done::Description(_) | Done::Made(_) => Err(out_of_step()),
        }
    }

    /// Returns what the component says of itself.
    pub(crate) fn describe(&mut self) -> Result<Description, LoadError> {
        match self.carry_out(&Job::Describe)? {
            Done::Description(description) => Ok(description),
            Done::Surface(_) | Done::Made(_) => Err(out_of_step()),
        }
    }

    /// Configures the component and returns its machine code.
    pub(crate) fn make(&mut self, configuration: &str) -> Result<Made, LoadError> {
        match self.carry_out(&Job::Make { configuration: configuration.to_owned() })? {
            Done::Made(made) => Ok(made),
            Done::Surface(_) | Done::Description(_) => Err(out_of_step()),
        }
    }

    fn carry_out(&mut self, job: &Job) -> Result<Done, LoadError> {
        let answer = match self {
            Self::Process(process) => process.ask(job)?,
            Self::Here(worker) => worker.carry_out(job),
        };
        answer.map_err(Fault::into_error)
    }
}

fn out_of_step() -> LoadError {
    LoadError::Compiler { detail: "answered another question than was asked".to_owned() }
}
