//! Errors of loading a component.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::limits::CompileLimit;

/// The reason why a component could not be loaded.
///
/// Failures of a later call are [`PolicyError`](portcullis_decision::PolicyError)s.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum LoadError {
    /// The file could not be read.
    #[error("reading the policy `{}`", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// The file is larger than a component may be.
    #[error("the policy is larger than {limit} bytes; strip its debug information")]
    Size { limit: u64 },
    /// The file is a core module, which compilers emit before it is turned into a component.
    #[error(
        "this is a core WebAssembly module, not a component; build it for `wasm32-wasip2` or put it \
         through `wasm-tools component new`"
    )]
    CoreModule,
    /// The file is not WebAssembly.
    #[error("this is not a WebAssembly component; a policy is a single `.wasm` file")]
    NotWebAssembly,
    /// The component does not compile.
    #[error("compiling the policy")]
    Compile {
        #[source]
        source: wasmtime::Error,
    },
    /// Compilation exceeded a limit.
    #[error(
        "compiling the policy took more than {limit}, so it was stopped; build it optimised, or leave out what it does \
         not need"
    )]
    CompileLimit { limit: CompileLimit },
    /// The compiler process gave no answer.
    #[error("the process that compiles policies {detail}")]
    Compiler { detail: String },
    /// The component does not export the functions of a policy.
    #[error("this component is no policy: it does not export {missing}; {hint}")]
    MissingExports { missing: String, hint: String },
    /// The component was written for a contract version that this host does not support.
    #[error(
        "the policy needs a host that speaks contract {wanted}; this host speaks {oldest} to {newest}; {hint}"
    )]
    UnknownTrack { wanted: String, oldest: &'static str, newest: &'static str, hint: &'static str },
    /// The component has parts for two contract versions.
    #[error("the policy has parts of contract {first} and of {second}; build all of it against one version")]
    MixedTracks { first: &'static str, second: &'static str },
    /// The component imports functions that this host does not provide.
    #[error("the policy imports interfaces that this host does not provide: {names}; {hint}")]
    Imports { names: String, hint: &'static str },
    /// The type of an export differs from the contract.
    #[error("the policy's exports do not fit contract {track}; build it against that version's `wit` folder")]
    Contract {
        track: &'static str,
        #[source]
        source: wasmtime::Error,
    },
    /// A call failed during loading.
    #[error("the policy failed in `{call}`")]
    Call {
        call: &'static str,
        #[source]
        source: portcullis_decision::PolicyError,
    },
    /// The policy rejected its configuration.
    #[error("the policy refuses its configuration: {}", list(errors))]
    Configuration { errors: Vec<ConfigurationFault> },
    /// The cache directory is not safe to use.
    #[error("the cache of compiled policies `{}`", path.display())]
    Cache {
        path: PathBuf,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The engine could not be started.
    #[error("starting the WebAssembly engine")]
    Engine {
        #[source]
        source: wasmtime::Error,
    },
}

/// One fault in a configuration, as reported by the policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigurationFault {
    /// JSON pointer to the value. An empty pointer means the whole configuration.
    pub pointer: String,
    /// The problem with the value.
    pub message: String,
}

fn list(errors: &[ConfigurationFault]) -> String {
    let one = |fault: &ConfigurationFault| format!("`{}`: {}", fault.pointer, fault.message);
    errors.iter().map(one).collect::<Vec<_>>().join("; ")
}
