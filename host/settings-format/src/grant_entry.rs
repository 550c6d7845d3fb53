//! Entries of `grants`, as written.

use std::path::PathBuf;

use portcullis_decision::grant::{CommandPattern, ToolPattern};
use portcullis_decision::pattern::NetworkPattern;
use portcullis_decision::profile::FileRights;

use crate::document_value::DocumentValue;
use crate::entry::{Entry, PathEntry};
use crate::fault::Fault;

/// An entry of `grants` as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantEntry {
    /// The resources.
    pub what: GrantResource,
    /// The file that contains it.
    pub file: PathBuf,
    /// Time of the answer, in seconds since 1970-01-01 UTC.
    pub granted_at: u32,
    /// Time of expiry, in seconds since 1970-01-01 UTC; 0 means never.
    pub expires_at: u32,
}

/// The resources that a stored grant covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantResource {
    /// A path.
    Path {
        /// The path.
        entry: Box<Entry<PathEntry>>,
        /// Whether only this name is covered, without what lies below it.
        exact: bool,
        /// The rights.
        rights: FileRights,
    },
    /// Hosts and ports.
    Connect(NetworkPattern),
    /// A tool.
    Tool(ToolPattern),
    /// Commands.
    Commands(Vec<CommandPattern>),
}

/// Decodes the entries of `grants`.
pub(crate) fn decode(place: &DocumentValue<'_>) -> Result<Vec<GrantEntry>, Fault> {
    place.items().iter().map(one).collect()
}

/// Returns the entry for a tool that is allowed by its name, whoever supplies it.
pub(crate) fn tool(name: &DocumentValue<'_>) -> Option<GrantEntry> {
    let pattern =
        ToolPattern { name: name.text()?.to_owned(), provider: "*".to_owned(), input_equals: Vec::new() };
    let what = GrantResource::Tool(pattern);
    Some(GrantEntry { what, file: name.file.to_owned(), granted_at: 0, expires_at: 0 })
}

fn one(item: &DocumentValue<'_>) -> Result<GrantEntry, Fault> {
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
            GrantResource::Path {
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
            GrantResource::Connect(pattern.map_err(|error| connect.fault(error.to_string()))?)
        }
        ["tool"] => GrantResource::Tool(ToolPattern {
            name: item.child("tool").text().unwrap_or_default().to_owned(),
            provider: item.child("provider").text().unwrap_or("*").to_owned(),
            input_equals: item.child("input").text_map().into_iter().collect(),
        }),
        ["commands"] => GrantResource::Commands(commands(item)?),
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

fn commands(item: &DocumentValue<'_>) -> Result<Vec<CommandPattern>, Fault> {
    let open_ended = item.child("openEnded").flag(false);
    let list = item.child("commands");
    let patterns: Vec<CommandPattern> =
        list.items().iter().map(|words| CommandPattern { argv_prefix: words.texts(), open_ended }).collect();
    if patterns.is_empty() || patterns.iter().any(|pattern| pattern.argv_prefix.is_empty()) {
        return Err(list.fault("a command has at least one word"));
    }
    Ok(patterns)
}
