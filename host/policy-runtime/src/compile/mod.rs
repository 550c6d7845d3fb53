//! Compiles components in a separate process.
//!
//! A small component can cost the compiler hours of work and gigabytes of memory, and no estimate is
//! reliable. So the host starts another process, sends it the component over a pipe, and reads back machine
//! code. The process has memory and CPU limits, cannot open anything, and is killed when it takes too long.
//!
//! The compiler is most of a program that contains it. With the feature `compiler` the process is this program
//! again; without it, it is `portcullis-compile`, which lies beside this program.

mod job;
mod process;
#[cfg(all(feature = "compiler", target_os = "linux"))]
mod restrict;
#[cfg(feature = "compiler")]
mod server;
mod wire;
#[cfg(feature = "compiler")]
mod worker;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::SharedEngine;
use crate::error::LoadError;
use crate::limits::Limits;

pub(crate) use job::{Artifact, Job};
pub use process::COMPILER_ARGUMENT;
use process::CompilerProcess;
#[cfg(feature = "compiler")]
pub use server::compiler_main;
#[cfg(feature = "compiler")]
use worker::Worker;

/// The name of the program that compiles for a host without a compiler.
const PROGRAM: &str = "portcullis-compile";
/// This program's own file, even after it was replaced.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Where components are compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compiler {
    /// In a limited process that runs this program.
    ///
    /// It must call [`compiler_main`](crate::compiler_main) when its first argument is [`COMPILER_ARGUMENT`].
    Process(PathBuf),
    /// In the calling process, without limits on memory and time.
    ///
    /// Only for components that the caller trusts, as in tests.
    #[cfg(feature = "compiler")]
    InProcess,
}

impl Compiler {
    /// Returns the compiler of the program in the file `executable`, which is the one that runs.
    #[must_use]
    pub fn of_program(executable: &Path) -> Self {
        if !cfg!(feature = "compiler") {
            Self::Process(executable.with_file_name(PROGRAM))
        } else if cfg!(target_os = "linux") {
            Self::Process(OWN_PROGRAM.into())
        } else {
            Self::Process(executable.to_owned())
        }
    }

    /// Returns the file of the compiling program, if it does not exist.
    #[must_use]
    pub fn missing(&self) -> Option<&Path> {
        match self {
            Self::Process(program) => (!program.exists()).then_some(program.as_path()),
            #[cfg(feature = "compiler")]
            Self::InProcess => None,
        }
    }

    /// Compiles a component.
    #[cfg_attr(
        not(feature = "compiler"),
        expect(unused_variables, reason = "the engine compiles nothing here")
    )]
    pub(crate) fn compile(
        &self,
        shared: &Arc<SharedEngine>,
        limits: Limits,
        component: &[u8],
        job: &Job,
    ) -> Result<Artifact, LoadError> {
        match self {
            Self::Process(program) => CompilerProcess::start(program, limits, component, job)?.answer(),
            #[cfg(feature = "compiler")]
            Self::InProcess => Worker { shared, limits, component }.carry_out(job),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_missing() {
        assert_eq!(Compiler::Process(OWN_PROGRAM.into()).missing(), None);
        let gone = Compiler::Process("/nonexistent/portcullis-compile".into());
        assert_eq!(gone.missing(), Some(Path::new("/nonexistent/portcullis-compile")));
    }
}
