//! Loads and calls policy components.
//!
//! Owns: the WebAssembly engine, limits of time, memory, stack and answers, the cache of compiled policies,
//! and one module per track of the contract in `wit/`. Must never know: settings files, users, and the files
//! and connections that requests are about. All calls block; the crate has no async code.
//!
//! Terms: a [`Runtime`] is the engine. [`Runtime::load`] compiles a component in a separate process (see
//! [`Compiler`]), unless its machine code is part of the program or in the cache. Each decision runs in a
//! **fresh copy** of the configured component, so no state passes from one decision to the next. Each copy is
//! configured anew until there is a **snapshot** of the configured instance (see [`SnapshotJob`]). A call
//! that fails or breaks the contract is a [`PolicyError`](portcullis_decision::PolicyError), which the policy
//! chain turns into a denial.
//!
//! A guest has no files, no sockets and no environment, and its clock stands still. Components that import
//! WASI get stubs. Components with unknown imports are not loaded.
//!
//! ```no_run
//! use std::path::Path;
//! use portcullis_policy_runtime::{CachePlace, Compiler, Limits, Runtime, read_component};
//!
//! let compiler = Compiler::Process("/proc/self/exe".into());
//! let runtime = Runtime::new(Limits::default(), &CachePlace::None, compiler)?;
//! let component = read_component(Path::new("workspace.wasm"))?;
//! let policy = runtime.load("workspace", &component, "{}")?;
//! println!("{} {}", policy.description().id, policy.description().version);
//! # Ok::<(), portcullis_policy_runtime::LoadError>(())
//! ```
//!
//! Platform: every target that wasmtime compiles for. The cache needs Unix.

mod cache;
mod check;
mod compile;
mod description;
mod digest;
mod embedded;
mod engine;
mod error;
mod exports;
mod host_tools;
mod input;
mod instance;
pub mod limits;
mod link;
mod load;
mod own_files;
mod policy;
mod precompiled;
mod ready;
#[cfg(feature = "compiler")]
mod snapshot;
mod snapshot_job;
mod state;
mod toolchain;
mod track;
mod v0_1;
mod v0_2;
mod wasi;

#[cfg(feature = "compiler")]
pub use compile::compiler_main;
pub use compile::{COMPILER_ARGUMENT, Compiler};
pub use description::{Capabilities, Description, RuleInfo};
pub use embedded::Embedded;
#[cfg(feature = "compiler")]
pub use embedded::{THIS_TARGET, embedded_name, precompile};
pub use error::{ConfigurationFault, LoadError};
pub use input::read_component;
pub use limits::{CompileLimit, CompileLimits, Limits};
pub use load::{CachePlace, Runtime, Unloaded};
pub use policy::{ComponentPolicy, PolicyCopy};
pub use ready::Start;
pub use snapshot_job::SnapshotJob;
pub use state::{LogLevel, LogLine};
pub use track::{SUPPORTED, Surface};
