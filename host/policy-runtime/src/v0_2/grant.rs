//! Converts grants and their patterns to the types of the contract, and patterns of a guest back.

use portcullis_decision::grant::{CommandPattern, Grant, GrantPattern, GrantScope, PathPattern, ToolPattern};
use portcullis_decision::pattern::{FilePattern, NetworkPattern, PortSet};
use portcullis_decision::profile::FileRights;
use portcullis_decision::request::Request;
use portcullis_decision::{PolicyError, path_text};

use super::bindings::portcullis::policy::{commands, files, grants as guest, network, tools};
use super::patterns;
use crate::check;

/// The provider in a pattern for the tools of all providers.
const ANY_PROVIDER: &str = "*";

pub(super) fn grant(grant: &Grant) -> guest::Grant {
    guest::Grant {
        scope: match grant.scope {
            GrantScope::Once => guest::GrantScope::Once,
            GrantScope::Session => guest::GrantScope::Session,
            GrantScope::Project => guest::GrantScope::Project,
            GrantScope::User => guest::GrantScope::User,
        },
        pattern: to_guest(&grant.pattern),
        granted_at: grant.granted_at,
        expires_at: Some(grant.expires_at).filter(|at| *at != 0),
    }
}

fn to_guest(pattern: &GrantPattern) -> guest::GrantPattern {
    match pattern {
        GrantPattern::Exact(_) => guest::GrantPattern::Exact,
        GrantPattern::Path(path) => guest::GrantPattern::Path(guest::PathPattern {
            pattern: file_pattern(&path.pattern),
            rights: file_rights(path.rights),
        }),
        GrantPattern::Command(patterns) => guest::GrantPattern::Command(
            patterns
                .iter()
                .map(|command| commands::CommandPattern {
                    argv_prefix: command.argv_prefix.clone(),
                    open_ended: command.open_ended,
                })
                .collect(),
        ),
        GrantPattern::Network(network) => guest::GrantPattern::Network(network_pattern(network)),
        GrantPattern::Tool(tool) => guest::GrantPattern::Tool(tools::ToolPattern {
            name: tool.name.clone(),
            provider: (tool.provider != ANY_PROVIDER).then(|| provider(&tool.provider)),
            input_equals: tool.input_equals.clone(),
        }),
    }
}

fn file_pattern(pattern: &FilePattern) -> files::FilePattern {
    match pattern {
        FilePattern::Exact(path) => files::FilePattern::Exact(path_text::encode(path)),
        FilePattern::Tree(path) => files::FilePattern::Tree(path_text::encode(path)),
        FilePattern::Glob(glob) => files::FilePattern::Glob(glob.as_str().to_owned()),
        FilePattern::Name { below, glob } => files::FilePattern::Name(files::NamePattern {
            below: path_text::encode(below),
            glob: glob.as_str().to_owned(),
        }),
    }
}

fn file_rights(rights: FileRights) -> files::FileRights {
    [
        (rights.read, files::FileRights::READ),
        (rights.write, files::FileRights::WRITE),
        (rights.execute, files::FileRights::EXECUTE),
    ]
    .into_iter()
    .filter(|(is_given, _)| *is_given)
    .fold(files::FileRights::empty(), |all, (_, right)| all | right)
}

fn network_pattern(pattern: &NetworkPattern) -> network::NetworkPattern {
    network::NetworkPattern {
        host: pattern.host.to_string(),
        ports: match &pattern.ports {
            PortSet::Every => network::PortSet::Every,
            PortSet::These(ports) => network::PortSet::These(ports.clone()),
        },
    }
}

/// Parses the provider of a tool, as the host writes it.
pub(super) fn provider(text: &str) -> tools::ToolProvider {
    match text.split_once(':') {
        None if text == "builtin" => tools::ToolProvider::Builtin,
        Some(("extension", name)) => tools::ToolProvider::Extension(name.to_owned()),
        Some(("mcp", name)) => tools::ToolProvider::Mcp(name.to_owned()),
        _ => tools::ToolProvider::Other(text.to_owned()),
    }
}

pub(super) fn scope(scope: guest::GrantScope) -> GrantScope {
    match scope {
        guest::GrantScope::Once => GrantScope::Once,
        guest::GrantScope::Session => GrantScope::Session,
        guest::GrantScope::Project => GrantScope::Project,
        guest::GrantScope::User => GrantScope::User,
    }
}

/// Converts a pattern that a guest offers for later requests like `request`.
pub(super) fn from_guest(
    pattern: guest::GrantPattern,
    request: &Request,
) -> Result<GrantPattern, PolicyError> {
    Ok(match pattern {
        guest::GrantPattern::Exact => GrantPattern::Exact(Box::new(request.action.clone())),
        guest::GrantPattern::Path(path) => GrantPattern::Path(PathPattern {
            pattern: patterns::file_pattern(path.pattern)?,
            rights: patterns::file_rights(path.rights),
        }),
        guest::GrantPattern::Command(patterns) => GrantPattern::Command(check::list(
            patterns,
            "grant-pattern.command",
            check::ENTRIES,
            |command| {
                Ok(CommandPattern {
                    argv_prefix: check::list(command.argv_prefix, "argv-prefix", check::ENTRIES, |word| {
                        check::data(word, "argv-prefix")
                    })?,
                    open_ended: command.open_ended,
                })
            },
        )?),
        guest::GrantPattern::Network(network) => GrantPattern::Network(patterns::network_pattern(network)?),
        guest::GrantPattern::Tool(tool) => GrantPattern::Tool(ToolPattern {
            name: check::tool_name(tool.name, "tool-pattern.name")?,
            provider: check::tool_name(provider_text(tool.provider), "tool-pattern.provider")?,
            input_equals: check::list(
                tool.input_equals,
                "input-equals",
                check::ENTRIES,
                |(place, value)| {
                    Ok((check::pointer(place, "input-equals")?, check::data(value, "input-equals")?))
                },
            )?,
        }),
    })
}

/// Returns the provider as the host writes it. A guest cannot make one case pass for another: of the names that the
/// host gives, only those of a case begin with its word.
fn provider_text(provider: Option<tools::ToolProvider>) -> String {
    match provider {
        None => ANY_PROVIDER.to_owned(),
        Some(tools::ToolProvider::Builtin) => "builtin".to_owned(),
        Some(tools::ToolProvider::Extension(name)) => format!("extension:{name}"),
        Some(tools::ToolProvider::Mcp(name)) => format!("mcp:{name}"),
        Some(tools::ToolProvider::Other(text)) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_comes_back_as_it_was() {
        for text in ["builtin", "extension:a:b", "mcp:x", "else", "builtin:x", ""] {
            assert_eq!(provider_text(Some(provider(text))), text);
        }
        assert_eq!(provider_text(None), ANY_PROVIDER);
    }
}
