//! A running session: the single path from a request to a permit.
//!
//! Owns open questions, grants in memory, [`Session::authorize`], and the conversion of settings, rules and grants into
//! a confinement profile. Every tool of pi, every command and every connection goes through `authorize`, the only
//! function that makes permits.
//!
//! Must never know: how policies run, wire formats, the content of connections, arguments, environment variables of the
//! host itself, the wall clock. The caller passes in the clock, the prompter that shows questions, and the journal.
//!
//! Platforms: on Linux commands run in its sandbox, elsewhere under a profile; decisions and file operations are the
//! same everywhere.

mod setup;
mod signing;

mod open;

pub mod commands;
pub mod escalation;
pub mod files;
pub mod overridden_tools;
pub mod ports;
pub mod rerun_after_denial;
pub mod searches;
pub mod tools;

mod connection_judge;
mod pending_syscalls;
mod rejudge;
mod session;
mod statements;

mod authorized;
mod basis;
mod broker_question;
mod brokering;
mod claims;

mod command_call;
mod command_variables;
mod credential_offers;
mod credential_question;
mod credential_reader;
mod exec_surface;
mod fault;
mod journal;
mod known_places;
mod links;
mod locate;
pub mod notices;
mod paths;
mod provoked;
mod reading;
mod referenced_paths;
mod refused;
mod reservations;
mod started;
mod tool_calls;

mod chain_rules;
mod changes;
mod effective_policy;
mod every_host;
mod named_places;
mod policy_in_force;
mod rule_symlinks;
mod upstream;

// The types of questions are part of a session's interface.
pub use portcullis_approvals::question::connections::preset_place;
pub use portcullis_approvals::question::keepable;
pub use portcullis_approvals::{
    Answer, Answerer, Cancel, Choice, ChoiceKind, GrantPlace, GrantStore, NoGrantStore, NoUser, Prompter,
    Question, Refusal, Remembered, refused_because,
};

// What a reader of credentials returns, and what it is asked for.
pub use portcullis_credential_broker::{AwsKeys, AwsLimits, Form, Secret, SshCommand};
pub use portcullis_network_gate::{Probe, probe, ssh_remedy};

pub use authorized::{Authorized, Granted, advice};
pub use basis::Basis;
pub use command_call::{CommandCall, Program};
pub use credential_offers::{CredentialNeed, CredentialOffers, CredentialProposal};
pub use credential_reader::{CredentialReader, GitClientRole, NoCredentials};
pub use effective_policy::EffectivePolicy;
pub use fault::caught;
pub use files::{EditFile, FileCall, FileFailure, ReadFile};
pub use journal::{Entry, Journal, JournalError, OutputChange};
pub use open::open;
pub use overridden_tools::TakenOver;
pub use portcullis_approvals::question::credential_offer::{CredentialOffer, OfferedUse};
pub use portcullis_session_sandbox::confining::{Confining, ProfilePlaces};
pub use portcullis_session_sandbox::environment::{KeptBack, SANDBOX_VARIABLE, Withheld, kept_back};
pub use portcullis_session_sandbox::error::{OpenError, with_causes};
pub use portcullis_session_sandbox::limits::{LimitMet, defaults as default_limits};
pub use portcullis_session_sandbox::names::{make_names, plain_name_rules};
pub use portcullis_session_sandbox::network::{InsidePort, PortError, Sandbox};
pub use portcullis_session_sandbox::own_directories::{
    BranchLayer, CacheKind, KeptHome, LayersUsers, OwnDirectories, PrivateHome, WarmCache,
};
pub use portcullis_session_sandbox::requirements::required_tier;
pub use portcullis_session_sandbox::sandbox_subject::{AgentPlaces, SandboxSubject};
pub use portcullis_session_sandbox::stderr_hints::StderrHints;
pub use provoked::fault_point;
#[cfg(debug_assertions)]
pub use provoked::provoke;
pub use rerun_after_denial::Runs;
pub use reservations::{ClaimError, NoReservations, Reservations};
pub use searches::{Listed, SearchFailure};
pub use session::Session;
pub use setup::{CommandVariables, Settings, Setup};
pub use started::{CommandFailure, Ended, Started};
pub use statements::{Statement, Statements};
pub use tools::Output;
