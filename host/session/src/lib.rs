//! A running session: the single path from a request to a permit.
//!
//! Owns open questions, grants in memory, [`Session::authorize`], and the conversion of settings, rules and grants into
//! a confinement profile. Every tool of pi, every command and every connection goes through `authorize`, the only
//! function that makes permits.
//!
//! Must never know: how policies run, wire formats, the content of connections, arguments, environment variables of the
//! host itself, the wall clock. The caller passes in the clock, the desk that shows questions, and the journal.
//!
//! Platforms: file operations and commands need Linux; decisions work everywhere.

mod again;
mod commands;
mod files;
mod heard;
mod refused;
mod rejudge;
mod searches;
mod session;
mod taken_over;
mod tools;

mod ask;
mod asked;
mod authorized;
mod cancel;
mod keeper;
mod loose;
mod memory;
mod question;
mod reservations;
mod special;

mod chain_rules;
mod elsewhere;
mod env_verdict_cache;
mod environment;
mod escalation;
mod executed;
mod fault;
mod force;
mod held;
mod inmate;
mod limits;
mod links;
mod network;
mod paths;
mod profile;
mod provoked;
mod reading;
mod sandbox;
mod statements;
mod user_links;

mod error;
mod journal;
mod names;

pub use again::{Afterwards, Again};
pub use ask::{Answer, Answerer, Choice, ChoiceKind, Desk, Nobody, Question, Refusal};
pub use authorized::{Authorized, Granted, advice};
pub use cancel::Cancel;
pub use commands::{CommandCall, CommandFailure, Ended, Program, Started};
pub use environment::{KeptBack, Withheld, kept_back};
pub use error::{OpenError, with_causes};
pub use fault::caught;
pub use files::{EditFile, FileCall, FileFailure, ReadFile};
pub use force::{Confining, Force};
pub use heard::Heard;
pub use inmate::{AgentPlaces, Inmate};
pub use journal::{Entry, Journal, JournalError};
pub use keeper::{Keeper, NoKeeper, Place};
pub use limits::{LimitMet, defaults as default_limits};
pub use memory::Remembered;
pub use names::{make_names, plain_name_rules};
pub use network::{InsidePort, PortError, Sandbox};
pub use provoked::fault_point;
#[cfg(debug_assertions)]
pub use provoked::provoke;
pub use question::keepable;
pub use reservations::{ClaimError, NoReservations, Reservations};
pub use sandbox::required_tier;
pub use searches::{Listed, SearchFailure};
pub use session::{Basis, Session, Settings, Setup};
pub use statements::{Statement, Statements};
pub use taken_over::TakenOver;
pub use tools::Output;
