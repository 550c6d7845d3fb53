//! For policy authors: the contract of `wit/` in Rust.
//!
//! A policy is a type that implements [`Policy`], and one line that exports it:
//!
//! ```
//! use portcullis_sdk::{Context, Descriptor, Evaluation, Never, Policy, Profile, Request};
//! use portcullis_sdk::{ConfigError, FilePattern, FileRights, FileRule};
//!
//! struct KeepTheLicence;
//!
//! impl Policy for KeepTheLicence {
//!     type Config = Never;
//!
//!     fn describe() -> Descriptor {
//!         Descriptor::new("example:keep-the-licence", "0.1.0", "The licence stays as it is")
//!             .rule("licence.keep", "Nobody changes LICENSE")
//!     }
//!
//!     fn configure(_: Never) -> Result<Self, Vec<ConfigError>> {
//!         Ok(Self)
//!     }
//!
//!     fn standing(&self, context: &Context) -> Profile {
//!         let licence = FilePattern::exact(format!("{}/LICENSE", context.cwd()));
//!         Profile::new().file(
//!             FileRule::deny("licence.keep", licence, FileRights::WRITE).reason("the licence stays as it is"),
//!         )
//!     }
//! }
//!
//! portcullis_sdk::export_policy!(KeepTheLicence);
//! ```
//!
//! Built for `wasm32-unknown-unknown` or `wasm32-wasip2` that crate is a policy
//! component; built natively it is an ordinary library, whose rules can be tried
//! with [`testing`] and, with the feature `cases`, with the files in `tests/` of a
//! policy ([`cases`](crate)). The crate knows nothing of the host.
//!
//! All types of the contract are re-exported here; their documentation is that of
//! `wit/types.wit` and `wit/exports.wit`.

#[doc(hidden)]
pub mod bindings;
#[cfg(all(feature = "cases", not(target_arch = "wasm32")))]
pub mod cases;
mod command;
mod configuration;
mod descriptor;
#[doc(hidden)]
pub mod export;
mod glob;
mod grant;
mod network;
mod pattern;
mod place;
mod policy;
pub mod reservation;
mod rules;
mod standing;
pub mod testing;
mod verdict;

pub use bindings::exports::portcullis::policy::confinement::{
    BudgetRule, Choice, Effect, EnvironmentRule, FileRule, Limits, NetworkRule, PortDirection, PortRule,
    Profile, SocketRule, Span,
};
pub use bindings::exports::portcullis::policy::lifecycle::{Descriptor, RuleInfo};
pub use bindings::portcullis::policy::types::*;
pub use command::{CommandLine, CommandMatch, CommandOption, Operand, OptionValue};
pub use configuration::{Never, read_config};
pub use glob::{Glob, GlobError};
pub use network::NetworkPatternError;
pub use policy::Policy;
pub use standing::Right;
