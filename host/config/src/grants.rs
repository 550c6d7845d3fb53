//! Grants in settings files: decoding them, and the change that records a new one.
//!
//! Grants for trees and hosts without an expiry are items of the allow lists, as a person would write them. Grants that
//! these lists cannot express (a single name without its descendants, tools, commands, an expiry) are entries of
//! `grants`.

use std::path::{Path, PathBuf};

use portcullis_decision::grant::{CommandPattern, PathPattern, ToolPattern};
use portcullis_decision::pattern::{FilePattern, NetworkPattern};
use portcullis_decision::profile::FileRights;
use portcullis_decision::{Grant, GrantPattern, GrantScope};
use serde_json::{Map, Value as Json, json};

use crate::decode::Place;
use crate::edit::Change;
use crate::error::ConfigError;
use crate::json::Fault;
use crate::pattern::Surroundings;
use crate::settings::{Entry, PathEntry};

/// An entry of `grants` as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantEntry {
    pub(crate) what: What,
    /// The file that contains it.
    pub(crate) file: PathBuf,
    /// Time of the answer, in seconds since 1970-01-01 UTC.
    pub(crate) granted_at: u32,
    /// Time of expiry, in seconds since 1970-01-01 UTC; 0 means never.
    pub(crate) expires_at: u32,
}

/// The resources that a stored grant covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    Path { entry: Box<Entry<PathEntry>>, exact: bool, rights: FileRights },
    Connect(NetworkPattern),
    Tool(ToolPattern),
    Commands(Vec<CommandPattern>),
}

/// Whether a policy of the chain uses the allow lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowLists {
    /// A policy uses them: their items are allowed.
    Heard,
    /// No policy uses them: their items have no effect.
    Unheard,
}

/// Decodes the entries of `grants`.
pub(crate) fn decode(place: &Place<'_>) -> Result<Vec<GrantEntry>, Fault> {
    place.items().iter().map(one).collect()
}

fn one(item: &Place<'_>) -> Result<GrantEntry, Fault> {
    let given: Vec<&str> = ["path", "connect", "tool", "commands"]
        .into_iter()
        .filter(|key| item.child(key).node.is_some())
        .collect();
    let what = match given.as_slice() {
        ["path"] => {
            let path = item.child("path");
            let text = path.text().unwrap_or_default();
            crate::check::usable_path(text).map_err(|reason| path.fault(reason))?;
            let value = PathEntry { text: text.to_owned(), literal: true };
            What::Path {
                entry: Box::new(path.entry(value, text)),
                exact: item.child("exact").flag(false),
                rights: if item.child("rights").text() == Some("write") {
                    FileRights::READ_WRITE
                } else {
                    FileRights::READ
                },
            }
        }
        ["connect"] => {
            let connect = item.child("connect");
            let pattern = NetworkPattern::parse(connect.text().unwrap_or_default());
            What::Connect(pattern.map_err(|error| connect.fault(error.to_string()))?)
        }
        ["tool"] => What::Tool(ToolPattern {
            name: item.child("tool").text().unwrap_or_default().to_owned(),
            provider: item.child("provider").text().unwrap_or("*").to_owned(),
            input_equals: item.child("input").text_map().into_iter().collect(),
        }),
        ["commands"] => What::Commands(commands(item)?),
        _ => return Err(item.fault("write exactly one of `path`, `connect`, `tool` and `commands`")),
    };
    let number = |key| item.child(key).number().unwrap_or(0);
    Ok(GrantEntry {
        what,
        file: item.file.to_owned(),
        granted_at: number("grantedAt"),
        expires_at: number("expiresAt"),
    })
}

fn commands(item: &Place<'_>) -> Result<Vec<CommandPattern>, Fault> {
    let open_ended = item.child("openEnded").flag(false);
    let list = item.child("commands");
    let patterns: Vec<CommandPattern> =
        list.items().iter().map(|words| CommandPattern { argv_prefix: words.texts(), open_ended }).collect();
    if patterns.is_empty() || patterns.iter().any(|pattern| pattern.argv_prefix.is_empty()) {
        return Err(list.fault("a command has at least one word"));
    }
    Ok(patterns)
}

/// Returns the paths of the entries.
pub(crate) fn paths(entries: &[GrantEntry]) -> impl Iterator<Item = &Entry<PathEntry>> {
    entries.iter().filter_map(|entry| match &entry.what {
        What::Path { entry, .. } => Some(&**entry),
        What::Connect(_) | What::Tool(_) | What::Commands(_) => None,
    })
}

/// Returns the paths of the entries that allow writing.
pub(crate) fn written(entries: &[GrantEntry]) -> impl Iterator<Item = &Entry<PathEntry>> {
    entries.iter().filter_map(|entry| match &entry.what {
        What::Path { entry, rights, .. } if rights.write => Some(&**entry),
        What::Path { .. } | What::Connect(_) | What::Tool(_) | What::Commands(_) => None,
    })
}

/// Converts entries to grants. Links are resolved as for all other paths in settings.
pub(crate) fn resolve(
    entries: &[GrantEntry],
    scope: impl Fn(&Path) -> GrantScope,
    around: &Surroundings<'_>,
) -> Result<Vec<Grant>, ConfigError> {
    let grant = |entry: &GrantEntry| {
        let pattern = match &entry.what {
            What::Path { entry, exact, rights } => {
                let path = around.resolve_to_open(entry)?.base;
                let pattern = if *exact { FilePattern::Exact(path) } else { FilePattern::Tree(path) };
                GrantPattern::Path(PathPattern { pattern, rights: *rights })
            }
            What::Connect(pattern) => GrantPattern::Network(pattern.clone()),
            What::Tool(pattern) => GrantPattern::Tool(pattern.clone()),
            What::Commands(patterns) => GrantPattern::Command(patterns.clone()),
        };
        let scope = scope(&entry.file);
        Ok(Grant { scope, pattern, granted_at: entry.granted_at, expires_at: entry.expires_at })
    };
    entries.iter().map(grant).collect()
}

/// Returns the change that records a grant in the settings at `top`, or `None` if it can only last for the session.
pub(crate) fn keeping(grant: &Grant, top: &[String], lists: AllowLists) -> Option<Change> {
    let at = |keys: &[&str]| [top, &keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>()].concat();
    if grant.expires_at == 0 && lists == AllowLists::Heard {
        match &grant.pattern {
            GrantPattern::Path(PathPattern { pattern: FilePattern::Tree(top), rights }) => {
                let list = if rights.write { "allowWrite" } else { "allowRead" };
                return Some(Change::Append(at(&["filesystem", list]), path_item(top)?));
            }
            GrantPattern::Network(network) => {
                return Some(Change::Append(at(&["network", "allowedDomains"]), network.to_string().into()));
            }
            GrantPattern::Path(_)
            | GrantPattern::Exact(_)
            | GrantPattern::Command(_)
            | GrantPattern::Tool(_) => {}
        }
    }
    let mut item = Map::new();
    let mut put = |key: &str, value: Json| drop(item.insert(key.to_owned(), value));
    match &grant.pattern {
        GrantPattern::Path(path) => {
            put("path", plain_path(&path.pattern)?.to_str()?.into());
            put("exact", matches!(path.pattern, FilePattern::Exact(_)).into());
            put("rights", if path.rights.write { "write" } else { "read" }.into());
        }
        GrantPattern::Network(network) => put("connect", network.to_string().into()),
        GrantPattern::Tool(tool) => {
            put("tool", tool.name.as_str().into());
            put("provider", tool.provider.as_str().into());
            if !tool.input_equals.is_empty() {
                let input = tool.input_equals.iter().map(|(at, value)| (at.clone(), value.clone().into()));
                put("input", Json::Object(input.collect()));
            }
        }
        GrantPattern::Command(commands) => {
            let open_ended = commands.first()?.open_ended;
            if commands.iter().any(|command| command.open_ended != open_ended) {
                return None;
            }
            put("commands", commands.iter().map(|command| command.argv_prefix.clone()).collect());
            put("openEnded", open_ended.into());
        }
        GrantPattern::Exact(_) => return None,
    }
    put("grantedAt", grant.granted_at.into());
    if grant.expires_at != 0 {
        put("expiresAt", grant.expires_at.into());
    }
    Some(Change::Append(at(&["grants"]), Json::Object(item)))
}

fn plain_path(pattern: &FilePattern) -> Option<&Path> {
    match pattern {
        FilePattern::Exact(path) | FilePattern::Tree(path) => Some(path),
        FilePattern::Glob(_) | FilePattern::Name { .. } => None,
    }
}

/// Returns a path as an item of a list. It is literal: not a glob, and links that are made later are not followed.
pub(crate) fn path_item(path: &Path) -> Option<Json> {
    let text = path.to_str()?;
    Some(json!({ "path": text, "literal": true }))
}

/// A place in the settings files that can store an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantFile {
    /// The entry of `projects.json` that applies here.
    Entry {
        /// The key, as written.
        key: String,
        /// Whether it is the entry of this directory, not of one above it.
        exact: bool,
    },
    /// A new entry of `projects.json`, which extends the settings in force.
    NewEntry {
        /// The key: the canonical working directory.
        key: PathBuf,
        /// The settings that it extends.
        seed: Seed,
    },
    /// `default.json`.
    Default,
}

/// The settings that a new entry of `projects.json` extends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seed {
    /// The entry above it.
    Parent,
    /// `default.json`, or the built-in settings.
    Default,
}
