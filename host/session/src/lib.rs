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
mod own_directories;
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
mod closed_names;

mod command_call;
mod command_variables;
mod credential_offers;
mod credential_question;
mod credential_reader;
mod env_verdict_cache;
mod environment;
mod exec_surface;
mod fault;
mod host_sockets;
mod journal;
mod kept_back;
mod known_places;
mod limits;
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
mod stderr_hints;
mod system_caches;
mod tool_calls;

mod chain_rules;
mod changes;
mod effective_policy;
mod error;
mod every_host;
mod named_places;
mod names;
mod network;
mod new_directories;
mod policy_in_force;
mod profile;
mod profile_sandbox;
mod replaceable_paths;
mod repositories;
mod requirements;
mod rule_symlinks;
mod running;
mod sandbox;
mod sandbox_subject;
mod upstream;
mod user_links;

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
pub use environment::{KeptBack, SANDBOX_VARIABLE, Withheld, kept_back};
pub use error::{OpenError, with_causes};
pub use fault::caught;
pub use files::{EditFile, FileCall, FileFailure, ReadFile};
pub use journal::{Entry, Journal, JournalError, OutputChange};
pub use limits::{LimitMet, defaults as default_limits};
pub use names::{make_names, plain_name_rules};
pub use network::{InsidePort, PortError, Sandbox};
pub use open::open;
pub use overridden_tools::TakenOver;
pub use own_directories::{
    BranchLayer, CacheKind, KeptHome, LayersUsers, OwnDirectories, PrivateHome, WarmCache,
};
pub use portcullis_approvals::question::credential_offer::{CredentialOffer, OfferedUse};
pub use provoked::fault_point;
#[cfg(debug_assertions)]
pub use provoked::provoke;
pub use requirements::required_tier;
pub use rerun_after_denial::Runs;
pub use reservations::{ClaimError, NoReservations, Reservations};
pub use sandbox_subject::{AgentPlaces, SandboxSubject};
pub use searches::{Listed, SearchFailure};
pub use session::Session;
pub use setup::{Confining, ProfilePlaces, Settings, Setup};
pub use started::{CommandFailure, Ended, Started};
pub use statements::{Statement, Statements};
pub use stderr_hints::StderrHints;
pub use tools::Output;
