//! The work behind `portcullis policy`: writing, building, testing, comparing and sharing policies.
//!
//! Policies run on the engine of the enforcer: running cases, measuring, probing, comparing. Must never know: arguments
//! and how results are printed.
//!
//! Terms: a **case** is a question with the expected answer, written in TOML (`portcullis_sdk::cases`). A **corpus** is
//! a list of requests with their contexts. A **text** is a policy in Cedar or Rego. A **probe** is a question that every policy must survive. A **pack** is a
//! component that carries its manifest, cases and texts.
//!
//! Reading order: `project` (the folder of a policy and its component), `simulator` (one policy as the enforcer uses
//! it), `run`, `fuzz`, `lint` and `loosening` (what can be done with a policy), `replay` (decides the requests of a log again), `packs` (sharing).

mod runtime;

mod bench;
mod case_writer;
mod changes;
mod contribution;
mod corpus;
mod declared;
mod diff;
mod fuzz;
mod junit;
mod lint;
mod loosening;
mod policy_text;
mod question;
mod run;
mod simulator;

mod project;

mod logged;
mod logged_cases;
mod manifest_lint;
mod replay;

mod packs;

pub use bench::{Figures, measure};
pub use case_writer::{case, given};
pub use changes::changes;
pub use contribution::Beside;
pub use corpus::{Change, Item, PolicyAnswer, of_cases};
pub use diff::diff;
pub use fuzz::{FailedRequest, Fuzzed, fuzz};
pub use junit::junit;
pub use lint::{Finding, Severity, lint};
pub use logged::{Lacks, Logged, logged};
pub use logged_cases::cases_of_log;
pub use manifest_lint::manifest_findings;
pub use packs::lock_editor::LockEditor;
pub use packs::lock_editor::registry_client;
pub use packs::offer::Offer;
pub use packs::sign::{SignedFile, sign, ssh_signature};
pub use packs::trust_entries::{KeyDates, NewPublisher, TrustChange, TrustEntries, add_trust};
pub use policy_text::PolicyText;
pub use project::build::{Built, build};
pub use project::component::{Component, cases_at, requests_of};
pub use project::create::{Created, create};
pub use project::edits::Edits;
pub use question::request_of;
pub use replay::{Comparison, Difference, ReplayWith, context_here, replay, session_here};
pub use run::{Failure, Report, RunError, Source, run};
pub use runtime::runtime;
pub use simulator::{Simulated, Simulator};

/// The types of questions in cases.
pub mod cases {
    pub use portcullis_sdk::Origin;
    pub use portcullis_sdk::cases::{Connection, Operation, Question};
}
