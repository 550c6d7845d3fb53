//! Settings as text: the table of fields, reading, checking, decoding and changing one settings document.
//!
//! [`Settings::parse`] reads a complete set of settings, [`Tightening::parse`] one that can only tighten, and [`Change`]
//! changes one place of a text and keeps the rest as it is. Every field of sandbox-runtime's schema is honoured, kept
//! without effect, or refused; the table [`FIELDS`] says which.
//!
//! Terms: a **field** is a row of that table. An **origin** is the file, JSON pointer and position of a value. A
//! **layer** is the owner of a settings file.
//!
//! This crate must never know where settings files lie, which of them apply or what they mean on a disk; that is
//! `portcullis-settings`. It reads no files.
//!
//! ```
//! use portcullis_settings_format::Settings;
//! let settings = Settings::built_in().unwrap();
//! assert_eq!(settings.filesystem.deny_read.len(), 2);
//! ```

mod credential_source;
pub mod error;
pub mod fault;
pub mod json;
pub mod pointer;
mod position;

pub mod field_lookup;
mod fields;
mod liftable;
mod schema;

mod aws;
mod brokered;
mod chain;
pub mod check;
mod choices;
mod decode;
mod document_value;
mod entry;
mod extends;
mod file_kind;
mod foreign_network;
mod grant_entry;
mod kept_field;
mod layer;
pub mod layout_choice;
pub mod name_globs;
mod parent_proxy;
mod parse;
mod policy_config_form;
mod pushes;
mod settings;
mod signing;
mod source_map;
mod ssh;
mod tighten;
mod warning;

mod edit;
mod json_schema;
mod reference;

pub use aws::{AWS_CREDENTIALS, aws_variables};
pub use brokered::{BrokeredCredential, CredentialForm, HostRequests, is_credential_name};
pub use chain::is_policy_name;
pub use choices::{Elsewhere, UnlistedHosts};
pub use credential_source::{CredentialSource, PlaceholderPart, PlaceholderVariable};
pub use edit::{Change, EditError};
pub use entry::{Entry, Origin, PathEntry};
pub use error::{ConfigError, Problem};
pub use extends::{EXTENDS, Extends};
pub use fault::Fault;
pub use field_lookup::field;
pub use fields::FIELDS;
pub use file_kind::FileKind;
pub use grant_entry::{GrantEntry, GrantResource};
pub use json_schema::json_schema;
pub use kept_field::KeptField;
pub use layer::Layer;
pub use layout_choice::Layout;
pub use liftable::{HOOK_FILES, LIFTABLE};
pub use parent_proxy::{ParentProxy, ProxyAddress, ProxyProtocol};
pub use policy_config_form::PolicyConfigForm;
pub use position::Position;
pub use pushes::HostPushes;
pub use reference::reference_tables;
pub use schema::{Field, Presence, Shape, Status};
pub use settings::{
    Ask, BUILT_IN, Connecting, Credentials, Environment, Escalation, Filesystem, Hold, Ignored, Network,
    PolicyEntry, PolicyMode, PolicySource, RequiredTier, Settings, UnattendedRefusals, Undo,
};
pub use signing::{SignedObject, SigningCredential, SigningForm};
pub use source_map::Sites;
pub use ssh::SshCredential;
pub use tighten::{Narrowing, TIGHTENING_FIELDS, Tightening};
pub use warning::Warning;
