//! A running session: the single path from a request to a permit.
//!
//! Owns open questions, grants in memory, [`Session::authorize`], and the conversion of settings, rules and grants into
//! a confinement profile. Every tool of pi, every command and every connection goes through `authorize`, the only
//! function that makes permits.
//!
//! Must never know: how policies run, wire formats, the content of connections, arguments, environment variables of the
//! host itself, the wall clock. The caller passes in the clock, the prompter that shows questions, and the journal.
//!
//! Platforms: file operations and commands need Linux; decisions work everywhere.

mod commands;
mod files;
mod overridden_tools;
mod refused;
mod rejudge;
mod rerun_after_denial;
mod searches;
mod session;
mod stderr_hints;
mod tools;

mod ask;
mod authorized;
mod broker_question;
mod cancel;
mod grant_store;
mod question;
mod remembered_answers;
mod replaceable_paths;
mod reservations;
mod special_addresses;

mod chain_rules;
mod effective_policy;
mod env_verdict_cache;
mod environment;
mod escalation;
mod exec_surface_rules;
mod fault;
mod limits;
mod links;
mod network;
mod paths;
mod pending_syscalls;
mod profile;
mod provoked;
mod reading;
mod rule_symlinks;
mod sandbox;
mod sandbox_subject;
mod statements;
mod user_links;

mod error;
mod journal;
mod names;

pub use ask::{Answer, Answerer, Choice, ChoiceKind, Nobody, Prompter, Question, Refusal};
pub use authorized::{Authorized, Granted, advice};
pub use cancel::Cancel;
pub use commands::{CommandCall, CommandFailure, Ended, Program, Started};
pub use effective_policy::{Confining, Force};
pub use environment::{KeptBack, Withheld, kept_back};
pub use error::{OpenError, with_causes};
pub use fault::caught;
pub use files::{EditFile, FileCall, FileFailure, ReadFile};
pub use grant_store::{Keeper, NoKeeper, Place};
pub use journal::{Entry, Journal, JournalError};
pub use limits::{LimitMet, defaults as default_limits};
pub use names::{make_names, plain_name_rules};
pub use network::{InsidePort, PortError, Sandbox};
pub use overridden_tools::TakenOver;
pub use provoked::fault_point;
#[cfg(debug_assertions)]
pub use provoked::provoke;
pub use question::keepable;
pub use remembered_answers::Remembered;
pub use rerun_after_denial::{Afterwards, Again};
pub use reservations::{ClaimError, NoReservations, Reservations};
pub use sandbox::required_tier;
pub use sandbox_subject::{AgentPlaces, Inmate};
pub use searches::{Listed, SearchFailure};
pub use session::{Basis, Session, Settings, Setup};
pub use statements::{Statement, Statements};
pub use stderr_hints::Heard;
pub use tools::Output;
