//! Which settings apply, and the rules that they become.
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
//! Settings that cannot be read are an error, never "no rules". What a single document may say is in
//! `portcullis-settings-format`.
//!
//! This crate must never know how rules are enforced or what policies do with them. It reads no environment variables:
//! the caller passes directories as [`Places`], and files are read through a [`Disk`]. Unix only, since paths and links
//! are resolved as its kernels do.

mod agent_definition;
mod allow_item;
mod allowing;
mod bosun_lists;
mod deny_rules;
mod discover;
mod disk;
mod draft;
mod entries;
mod found;
mod git_directory;
mod glob_limit;
mod grant_changes;
mod grant_files;
mod hook_links;
mod import;
mod imports;
mod json_differences;
mod layered;
mod merge;
mod narrow;
mod old_settings;
mod old_tools;
mod own_git;
mod path_rules;
mod pattern;
mod places;
mod policy_config;
pub mod policy_text;
mod presets;
mod project_keys;
mod protect;
mod protections;
mod report;
mod resolve;
mod resolved;
mod rule;
mod rule_layers;
mod sensitive;
mod sensitive_table;
mod settings_files;
mod settings_text;
mod shared_tmp;
mod store;
mod stored_grants;
mod temporary_name;
mod validate;
mod writable;

pub use agent_definition::{AgentDefinition, Skill, TemplatePart, TemplateValue};
pub use allow_item::AllowItem;
pub use allowing::{AllowItemError, allow_item};
pub use discover::discover;
pub use disk::{Disk, DiskEntry, LARGEST_FILE, RealDisk, names_and_links_on_the_way, names_on_the_way};
pub use draft::{Draft, Obstacle};
pub use found::{FoundSettings, Source};
pub use grant_changes::{AllowLists, Denial, GrantFile, Seed};
pub use grant_files::{
    KeptGrant, grant_files, item_in_words, keep, keep_denial, keep_preset, kept_grants, revoke,
};
pub use import::whole::bosun_project;
pub use import::{Foreign, Imported, Left, read_foreign, stays_in_project};
pub use imports::{ImportRecord, forget_imports, record_import};
pub use layered::LAYERED_BUILT_IN;
pub use old_settings::{OldFile, Owner};
pub use old_tools::{OldRules, Wish};
pub use places::{Places, TeamSettings};
pub use presets::{
    Preset, PresetError, PresetHost, PresetLine, allow_connection, check_preset, is_preset_name, preset,
    shipped_presets, shipped_presets_with,
};
pub use protections::{Anchor, PROTECTIONS, ProtectedAccess, Protection};
pub use report::{Report, Setting, SourceReport, Standing, Unused, report};
pub use resolve::resolve;
pub use resolved::{PolicyAt, Resolved, ResolvedPolicy};
pub use rule::{ConnectionRule, Rule};
pub use sensitive::{SENSITIVE, Sensitive};
pub use sensitive_table::sensitive_table;
pub use settings_files::SettingsFiles;
pub use store::{Stamp, Store, StoreError, replace_file};
pub use validate::{Checked, validate, validate_all};
