//! The change of a settings file that records a grant.

use std::path::{Path, PathBuf};

use portcullis_decision::grant::PathPattern;
use portcullis_decision::pattern::{FilePattern, NetworkPattern};
use portcullis_decision::{Grant, GrantPattern};
use portcullis_exec_surface::{Change as NameChange, Class, Site, class};
use portcullis_settings_format::Change;
use serde_json::Value as Json;
use serde_json::{Map, json};

/// Whether a policy of the chain uses the allow lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowLists {
    /// A policy uses them: their items are allowed.
    Heard,
    /// No policy uses them: their items have no effect.
    Unheard,
}

/// Returns the change that records a grant in the settings at `top`, or `None` if it can only last for the session.
pub(crate) fn keeping(grant: &Grant, top: &[String], lists: AllowLists) -> Option<Change> {
    let at = |keys: &[&str]| [top, &keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>()].concat();
    if grant.expires_at == 0 && lists == AllowLists::Heard {
        match &grant.pattern {
            GrantPattern::Path(PathPattern { pattern: FilePattern::Tree(top), rights })
                if !(rights.write && is_asked_about(top)) =>
            {
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

/// Returns true for a directory whose files the user's other programs execute. An entry of the settings does not answer
/// the question about such a name, and a kept answer does.
fn is_asked_about(directory: &Path) -> bool {
    let site = Site::without_files(Path::new("/"), &[]);
    matches!(class(directory, NameChange::Write, &site), Class::Asked(_))
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

/// A denial to store in the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denial {
    /// Connections.
    Host(NetworkPattern),
    /// A path and all below it: reading, and with it writing.
    Read(PathBuf),
    /// A path and all below it: writing.
    Write(PathBuf),
}

impl Denial {
    /// Returns the list that it goes into.
    #[must_use]
    pub fn list(&self) -> &'static str {
        match self {
            Self::Host(_) => "network.deniedDomains",
            Self::Read(_) => "filesystem.denyRead",
            Self::Write(_) => "filesystem.denyWrite",
        }
    }

    /// Returns the path that it denies for reading.
    #[must_use]
    pub fn reads(&self) -> Option<&Path> {
        match self {
            Self::Read(path) => Some(path),
            Self::Host(_) | Self::Write(_) => None,
        }
    }

    pub(crate) fn item(&self) -> Option<(&'static str, Json)> {
        let item = match self {
            Self::Host(pattern) => pattern.to_string().into(),
            Self::Read(path) | Self::Write(path) => path_item(path)?,
        };
        Some((self.list(), item))
    }
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
