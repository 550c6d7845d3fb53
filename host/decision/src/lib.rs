//! The vocabulary of decisions: requests, verdicts, rules, the policy chain and permits.
//!
//! Everything here is a pure function over values: no I/O, no clock, no environment, no async.
//!
//! Terms, as in the contract (`wit/`): a [`Request`] describes the wanted action; a [`Policy`] answers with an
//! [`Evaluation`]; the [`chain`] consults all policies and the standing [`rules`], and the strictest answer becomes the
//! [`Decision`]; only an allowing decision yields a [`Permit`], and every gate needs one.
//!
//! This crate must never know where requests come from, how policies are run, or what is done with a permit.
//!
//! ```
//! use portcullis_decision::pattern::{HostName, NetworkPattern};
//!
//! let pattern = NetworkPattern::parse("*.example.com:443").unwrap();
//! assert!(pattern.matches(&HostName::parse("API.example.com.").unwrap(), 443));
//! ```

mod attribute;
pub mod chain;
mod claim;
pub mod combine;
mod connection_refusal;
pub mod context;
pub mod decision;
pub mod devices;
pub mod facts;
mod file_right;
pub mod grant;
pub mod host_rules;
pub mod inspect;
pub mod location;
pub mod path_text;
pub mod pattern;
pub mod permit;
pub mod policy;
pub mod profile;
mod refusal_text;
pub mod request;
pub mod reservation;
pub mod rules;
pub mod verdict;

pub use chain::{Chain, Member};
pub use combine::Combine;
pub use connection_refusal::ConnectionRefusal;
pub use context::Context;
pub use decision::{AnsweredBy, Decision, Mode, Vote};
pub use facts::{ContentVerdict, Fact, KnownPlace, KnownPlaceKind, OtherNames};
pub use grant::{Grant, GrantPattern, GrantScope};
pub use inspect::Inspection;
pub use location::Location;
pub use permit::Permit;
pub use policy::{Policy, PolicyError};
pub use profile::Profile;
pub use refusal_text::{Reader, RefusalOrigin, RefusalText, allow_path, host_step};
pub use request::{Action, Request};
pub use rules::{Base, Caller, RuleLayer, RuleSet, Ruling};
pub use verdict::{Effect, Evaluation, Verdict};
