//! Tools for authors of policies, on the engine of the enforcer: running cases, measuring, probing, comparing.
//!
//! Owns: putting questions to a component and checking the answers. Must never know: arguments, files, output. Cases
//! come as text, components as loaded policies.
//!
//! Terms: a **case** is a question with the expected answer, written in TOML (`portcullis_sdk::cases`). A **corpus** is
//! a list of requests with their contexts. A **probe** is a question that every policy must survive.

mod ask;
mod bench;
mod case_writer;
mod corpus;
mod fuzz;
mod lint;
mod question;
mod run;

pub use ask::ask;
pub use bench::{Figures, measure};
pub use case_writer::{case, given};
pub use corpus::{Change, Item, Said, changes, of_cases, say};
pub use fuzz::{Fuzzed, Misstep, fuzz};
pub use lint::{Finding, Gravity, lint};
pub use run::{Failure, Report, RunError, Source, run};

/// The types of questions in cases.
pub mod cases {
    pub use portcullis_sdk::Origin;
    pub use portcullis_sdk::cases::{Connection, Operation, Question};
}
