//! Why a component was not loaded.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::compile::CompileLimit;

/// Why a component was refused or could not be made ready.
///
/// What goes wrong later, in a call, is a
/// [`PolicyError`](portcullis_decision::PolicyError).
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file could not be read.
    #[error("reading the policy `{}`", path.display())]
    Read {
        /// Where it lies.
        path: PathBuf,
        /// What failed.
        #[source]
        source: std::io::Error,
    },
    /// The file is larger than a component may be.
    #[error("the policy is larger than {limit} bytes; strip its debug information")]
    Size {
        /// The limit in bytes.
        limit: u64,
    },
    /// A core module: what compilers give before it is made a component.
    #[error(
        "this is a core WebAssembly module, not a component; build it for `wasm32-wasip2` or put it \
         through `wasm-tools component new`"
    )]
    CoreModule,
    /// Not WebAssembly at all.
    #[error("this is not a WebAssembly component; a policy is a single `.wasm` file")]
    NotWebAssembly,
    /// It does not compile.
    #[error("compiling the policy")]
    Compile {
        /// What the compiler said.
        #[source]
        source: wasmtime::Error,
    },
    /// Compiling it took more than it may.
    #[error(
        "compiling the policy took more than {limit}, so it was stopped; build it optimised, or leave out what it does \
         not need"
    )]
    CompileLimit {
        /// What it had.
        limit: CompileLimit,
    },
    /// The process that compiles gave no answer.
    #[error("the process that compiles policies {detail}")]
    Compiler {
        /// What became of it.
        detail: String,
    },
    /// It does not export what makes a policy.
    #[error("this component is no policy: it does not export {missing}; {hint}")]
    MissingExports {
        /// The names, in words.
        missing: String,
        /// What it exports instead, and what to do.
        hint: String,
    },
    /// It was written for a contract that this host does not speak.
    #[error(
        "the policy needs a host that speaks contract {wanted}; this host speaks {oldest} to {newest}; {hint}"
    )]
    UnknownTrack {
        /// What it was written for.
        wanted: String,
        /// The oldest contract that this host speaks.
        oldest: &'static str,
        /// The newest one.
        newest: &'static str,
        /// What to do.
        hint: &'static str,
    },
    /// It wants something from the host that it does not get.
    #[error("the policy imports what this host does not give: {names}; {hint}")]
    Imports {
        /// The names, in words.
        names: String,
        /// What to do.
        hint: &'static str,
    },
    /// An export has another type than the contract says.
    #[error("the policy's exports do not fit contract {track}; build it against that version's `wit` folder")]
    Contract {
        /// The contract it was held against.
        track: &'static str,
        /// What does not fit.
        #[source]
        source: wasmtime::Error,
    },
    /// It could not be run when it was made ready.
    #[error("the policy failed in `{call}`")]
    Call {
        /// Which call.
        call: &'static str,
        /// How.
        #[source]
        source: portcullis_decision::PolicyError,
    },
    /// It does not take this configuration.
    #[error("the policy refuses its configuration: {}", list(errors))]
    Configuration {
        /// Each fault that it named.
        errors: Vec<ConfigurationFault>,
    },
    /// The directory for compiled policies is not safe to use.
    #[error("the cache of compiled policies `{}`", path.display())]
    Cache {
        /// Where it lies.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The engine could not be started.
    #[error("starting the WebAssembly engine")]
    Engine {
        /// What failed.
        #[source]
        source: wasmtime::Error,
    },
}

/// One fault in a configuration, as the policy named it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigurationFault {
    /// JSON pointer to the value; empty: the whole.
    pub pointer: String,
    /// What is wrong with it.
    pub message: String,
}

fn list(errors: &[ConfigurationFault]) -> String {
    let one = |fault: &ConfigurationFault| format!("`{}`: {}", fault.pointer, fault.message);
    errors.iter().map(one).collect::<Vec<_>>().join("; ")
}
