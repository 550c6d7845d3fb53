//! The settings files: schema, discovery, validation.
//!
//! [`discover`] finds and reads the files that apply to a working directory, and [`resolve`] turns them into rules over
//! canonical paths. The rule set of `portcullis-decision` is compiled from [`Resolved::ceiling`] and
//! [`Resolved::base`].
//!
//! Terms: a **closed region** is a `denyRead` entry that contains the working directory, a home directory or an allowed
//! path; commands cannot see it, and tools ask. Every other entry is an **explicit deny**. The **ceiling** is the set
//! of rules that no policy can override. A **layer** is the owner of the settings that a rule comes from; a lower layer
//! can only tighten.
//!
//! Settings that cannot be read are an error, never "no rules". Every field of sandbox-runtime's schema is honoured,
//! kept without effect, or refused; the table [`FIELDS`] says which.
//!
//! This crate must never know how rules are enforced or what policies do with them. It reads no environment variables:
//! the caller passes directories as [`Places`], and files are read through a [`Disk`]. Unix only, since paths and links
//! are resolved as its kernels do.
//!
//! ```
//! use portcullis_config::Settings;
//! let settings = Settings::built_in().unwrap();
//! assert_eq!(settings.filesystem.deny_read.len(), 2);
//! ```

mod chain;
mod check;
mod decode;
mod discover;
mod disk;
mod draft;
mod edit;
mod entries;
mod error;
mod fields;
mod git_directory;
mod grant_files;
mod grants;
mod hook_links;
mod import;
mod json;
mod json_schema;
mod layered;
mod layout;
mod narrow;
mod old_settings;
mod own_git;
mod parent_proxy;
mod path_rules;
mod pattern;
mod places;
mod policy_config;
mod protect;
mod reference;
mod report;
mod resolve;
mod resolved;
mod rule;
mod schema;
mod sensitive;
mod settings;
mod source_map;
mod store;
mod tighten;
mod validate;
mod writable;

pub use chain::is_policy_name;
pub use check::KeptField;
pub use discover::{Found, Source, discover};
pub use disk::{Disk, LARGEST_FILE, RealDisk, Seen, links_on_the_way, names_on_the_way};
pub use draft::{Draft, Obstacle};
pub use edit::{Change, EditError};
pub use error::{ConfigError, Problem};
pub use fields::FIELDS;
pub use grant_files::{KeptGrant, grant_files, keep, kept_grants, revoke};
pub use grants::{AllowLists, GrantEntry, GrantFile, Seed};
pub use import::{Foreign, Imported, Left, read_foreign, stays_in_project};
pub use json::Position;
pub use json_schema::json_schema;
pub use layered::LAYERED_BUILT_IN;
pub use layout::{Layout, SettingsFiles};
pub use old_settings::{OldFile, Owner};
pub use parent_proxy::{ParentProxy, ProxyAddress, ProxyProtocol};
pub use places::Places;
pub use protect::{Anchor, Kind, LIFTABLE, PROTECTIONS, Protection};
pub use reference::{reference_tables, sensitive_table};
pub use report::{Report, Setting, SourceReport, Standing, Unused, report};
pub use resolve::resolve;
pub use resolved::{PolicyAt, Resolved, ResolvedPolicy, Warning};
pub use rule::{ConnectionRule, Rule};
pub use schema::{Field, Presence, Shape, Status, field};
pub use sensitive::{SENSITIVE, Sensitive};
pub use settings::{
    Ask, BUILT_IN, Connecting, Credentials, Entry, Environment, Escalation, Filesystem, Hold, Ignored,
    Network, Origin, PathEntry, PolicyEntry, PolicyMode, PolicySource, RequiredTier, Settings,
};
pub use source_map::Sites;
pub use store::{Stamp, Store, StoreError};
pub use tighten::{Layer, Narrowing, TIGHTENING_FIELDS, Tightening};
pub use validate::{Checked, FileKind, validate, validate_all};
