//! Grants: remembered answers of the user. A grant turns `ask` into `allow` and never affects a `deny`.

use serde::{Deserialize, Serialize};

use crate::pattern::{FilePattern, NetworkPattern};
use crate::profile::{FileRight, FileRights};
use crate::request::{Action, CommandExecution, FileOperation, Request, Stage, ToolCall};

/// A remembered "yes".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Grant {
    /// How long the grant lives.
    pub scope: GrantScope,
    /// The covered actions.
    pub pattern: GrantPattern,
    /// Seconds since 1970-01-01 UTC.
    pub granted_at: u32,
    /// Seconds since 1970-01-01 UTC; 0 for as long as the scope lasts.
    pub expires_at: u32,
}

/// How long a grant lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GrantScope {
    /// For this request only.
    Once,
    /// Until the session ends; in memory only.
    Session,
    /// In this project from now on.
    Project,
    /// In every project from now on.
    User,
}

/// The actions that a grant covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GrantPattern {
    /// Exactly the action of one request.
    Exact(Box<Action>),
    /// Paths.
    Path(PathPattern),
    /// Commands; every simple command of a script must match one of these.
    Command(Vec<CommandPattern>),
    /// Connections.
    Network(NetworkPattern),
    /// Tool calls.
    Tool(ToolPattern),
}

/// Paths and rights on them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PathPattern {
    /// The paths.
    pub pattern: FilePattern,
    /// The rights.
    pub rights: FileRights,
}

/// The beginning of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CommandPattern {
    /// First words, which must be equal and literal.
    pub argv_prefix: Vec<String>,
    /// Whether more words may follow.
    pub open_ended: bool,
}

/// Calls of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ToolPattern {
    /// Name of the tool.
    pub name: String,
    /// The provider; `*` for any.
    pub provider: String,
    /// JSON pointers into the input, each with the required value.
    pub input_equals: Vec<(String, String)>,
}

impl Grant {
    /// Returns true if the grant is live at `now` (seconds since 1970-01-01 UTC).
    #[must_use]
    pub fn is_live(&self, now: u32) -> bool {
        self.expires_at == 0 || now < self.expires_at
    }

    /// Returns true if the grant covers `request`.
    #[must_use]
    pub fn covers(&self, request: &Request) -> bool {
        self.pattern.covers(&request.action)
    }
}

impl GrantPattern {
    /// Returns true if the pattern covers `action`.
    #[must_use]
    pub fn covers(&self, action: &Action) -> bool {
        match (self, action) {
            (Self::Exact(granted), action) => **granted == *action,
            (Self::Path(pattern), Action::File(access)) => {
                pattern.covers(&access.path.canonical, access.operation.right())
                    && match &access.operation {
                        FileOperation::Move(other) | FileOperation::Link(other) => {
                            pattern.covers(&other.canonical, FileRight::Write)
                        }
                        // A symbolic link is not the file that was allowed under its name; a grant on its directory
                        // covers it.
                        FileOperation::Symlink(_) => pattern.covers_around(&access.path.canonical),
                        FileOperation::Read
                        | FileOperation::Write(_)
                        | FileOperation::Edit(_)
                        | FileOperation::List
                        | FileOperation::Search(_)
                        | FileOperation::CreateDirectory
                        | FileOperation::Delete
                        | FileOperation::ChangeMetadata
                        | FileOperation::Other(_) => true,
                    }
            }
            (Self::Command(patterns), Action::Command(command)) => covers_script(patterns, command),
            // Questions about later stages of an allowed connection are not about its target.
            (Self::Network(pattern), Action::Network(access)) => {
                access.stage == Stage::Connect && pattern.matches(&access.target, access.port)
            }
            (Self::Tool(pattern), Action::Tool(call)) => pattern.covers(call),
            (
                Self::Path(_) | Self::Command(_) | Self::Network(_) | Self::Tool(_),
                Action::File(_)
                | Action::Command(_)
                | Action::Network(_)
                | Action::Socket(_)
                | Action::Tool(_)
                | Action::Escalation(_)
                | Action::Other(_),
            ) => false,
        }
    }
}

impl PathPattern {
    /// Returns true if it covers writing in the directory that holds `canonical`.
    fn covers_around(&self, canonical: &str) -> bool {
        let path = crate::path_text::decode(canonical);
        path.as_deref()
            .and_then(std::path::Path::parent)
            .is_some_and(|holder| self.rights.write && self.pattern.matcher().matches(holder))
    }

    fn covers(&self, canonical: &str, right: FileRight) -> bool {
        let right_given = self.rights.contains(right) || right == FileRight::Read && self.rights.write;
        right_given
            && crate::path_text::decode(canonical).is_some_and(|path| self.pattern.matcher().matches(&path))
    }
}

impl ToolPattern {
    fn covers(&self, call: &ToolCall) -> bool {
        if self.name != call.name || self.provider != "*" && self.provider != call.provider {
            return false;
        }
        let Ok(input) = serde_json::from_str::<serde_json::Value>(&call.input) else {
            return false;
        };
        self.input_equals.iter().all(|(pointer, wanted)| {
            let wanted = serde_json::from_str::<serde_json::Value>(wanted).ok();
            wanted.is_some() && input.pointer(pointer) == wanted.as_ref()
        })
    }
}

fn covers_script(patterns: &[CommandPattern], command: &CommandExecution) -> bool {
    let Ok(parsed) = &command.parsed else {
        return false;
    };
    let features = parsed.features;
    // A compound command can do more than its simple commands.
    let is_open = features.substitution || features.dynamic || features.redefinition || !parsed.plain;
    if parsed.commands.is_empty() || is_open {
        return false;
    }
    parsed.commands.iter().all(|simple| {
        simple.assignments.is_empty()
            && simple.redirects.is_empty()
            && simple.argv.iter().all(|word| word.literal)
            && patterns.iter().any(|pattern| {
                let prefix = &pattern.argv_prefix;
                !prefix.is_empty()
                    && simple.argv.len() >= prefix.len()
                    && (pattern.open_ended || simple.argv.len() == prefix.len())
                    && simple.argv.iter().zip(prefix).all(|(word, wanted)| word.value == *wanted)
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{ParsedScript, PathKind, PathRef, ScriptFeatures, SimpleCommand, Word, Zone};

    fn tool(name: &str, input: &str) -> Action {
        Action::Tool(ToolCall { name: name.into(), provider: "mcp:x".into(), input: input.into() })
    }

    #[test]
    fn tool_grants() {
        let pattern = |provider: &str, equals: &[(&str, &str)]| {
            GrantPattern::Tool(ToolPattern {
                name: "t".into(),
                provider: provider.into(),
                input_equals: equals.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect(),
            })
        };
        assert!(pattern("*", &[]).covers(&tool("t", "{}")));
        assert!(!pattern("builtin", &[]).covers(&tool("t", "{}")));
        assert!(!pattern("*", &[]).covers(&tool("u", "{}")));
        assert!(pattern("*", &[("/a", "1")]).covers(&tool("t", r#"{"a":1}"#)));
        assert!(!pattern("*", &[("/a", "1")]).covers(&tool("t", r#"{"a":2}"#)));
        assert!(!pattern("*", &[("/a", "nonsense")]).covers(&tool("t", "{}")));
    }

    #[test]
    fn an_exact_grant_is_byte_for_byte() {
        let granted = GrantPattern::Exact(Box::new(tool("t", "{}")));
        assert!(granted.covers(&tool("t", "{}")));
        assert!(!granted.covers(&tool("t", "{ }")));
    }

    #[test]
    fn a_grant_for_a_command_covers_plain_lists_only() {
        let word = |value: &str| Word { value: value.into(), literal: true };
        let parsed = ParsedScript {
            commands: vec![SimpleCommand {
                argv: vec![word("git"), word("clean")],
                assignments: vec![],
                redirects: vec![],
                joined_by: String::new(),
                parent: None,
                program: None,
            }],
            features: ScriptFeatures::default(),
            plain: true,
        };
        let command = |parsed: ParsedScript| {
            Action::Command(CommandExecution {
                script: "git clean".into(),
                shell: None,
                cwd: PathRef {
                    relative: String::new(),
                    ..PathRef::plain("/p", Zone::Workspace, PathKind::Directory)
                },
                parsed: Ok(parsed),
                timeout_ms: None,
                background: false,
            })
        };
        let granted = GrantPattern::Command(vec![CommandPattern {
            argv_prefix: vec!["git".into(), "clean".into()],
            open_ended: false,
        }]);
        assert!(granted.covers(&command(parsed.clone())));
        // As the command of `[[ -v 'a[$(evil)]' ]]; git clean`.
        assert!(!granted.covers(&command(ParsedScript { plain: false, ..parsed.clone() })));
        let features = ScriptFeatures { dynamic: true, ..ScriptFeatures::default() };
        assert!(!granted.covers(&command(ParsedScript { features, ..parsed })));
    }

    #[test]
    fn expiry() {
        let grant = |expires_at| Grant {
            scope: GrantScope::Session,
            pattern: GrantPattern::Command(vec![]),
            granted_at: 5,
            expires_at,
        };
        assert!(grant(0).is_live(u32::MAX));
        assert!(grant(10).is_live(9));
        assert!(!grant(10).is_live(10));
    }
}
