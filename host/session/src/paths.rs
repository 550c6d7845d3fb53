//! Paths in the form that policies get.

use std::path::{Path, PathBuf};

use portcullis_decision::request::{PathKind, PathRef, Zone};
use portcullis_decision::{Context, path_text};
use portcullis_file_gate::Located;

/// Returns the reference for a located file; `path` is the path by which it was located.
pub(crate) fn located(context: &Context, given: &str, path: &Path, located: &Located) -> PathRef {
    reference(context, given, path, located.canonical(), located.kind())
}

/// Returns the reference for a path with a known canonical form.
pub(crate) fn reference(
    context: &Context,
    given: &str,
    path: &Path,
    canonical: &Path,
    kind: PathKind,
) -> PathRef {
    let (zone, relative) = zone(context, canonical);
    PathRef {
        given: given.to_owned(),
        absolute: path_text::encode(&path_text::normalize(path)),
        canonical: path_text::encode(canonical),
        zone,
        relative,
        kind,
    }
}

/// Returns the innermost zone that contains `canonical`, and the path relative to the zone's top.
fn zone(context: &Context, canonical: &Path) -> (Zone, String) {
    let workspace = context.workspace.roots.iter().map(|root| (Zone::Workspace, PathBuf::from(root)));
    let others = [
        (Zone::Agent, agent_top(&context.agent.directory)),
        (Zone::Temp, PathBuf::from(&context.machine.temp)),
        (Zone::Home, PathBuf::from(&context.machine.home)),
    ];
    let holding = workspace.chain(others).filter(|(_, top)| top.is_absolute()).filter_map(|(zone, top)| {
        canonical.strip_prefix(&top).ok().map(|relative| (zone, top.clone(), relative))
    });
    match holding.max_by_key(|(_, top, _)| top.components().count()) {
        Some((zone, _, relative)) => (zone, path_text::encode(relative)),
        None => (Zone::System, path_text::encode(canonical)),
    }
}

/// Returns `~/.pi` for the agent directory `~/.pi/agent`.
fn agent_top(directory: &str) -> PathBuf {
    let directory = Path::new(directory);
    let parent = directory.parent().filter(|parent| parent.file_name().is_some_and(|name| name == ".pi"));
    parent.unwrap_or(directory).to_owned()
}

#[cfg(test)]
mod tests {
    use portcullis_decision::context::{AgentInfo, Machine, Workspace};

    use super::*;

    #[test]
    fn the_innermost_zone_counts() {
        let context = Context {
            session_id: String::new(),
            agent: AgentInfo { directory: "/home/u/.pi/agent".into(), ..AgentInfo::default() },
            workspace: Workspace { roots: vec!["/home/u/p".into()], ..Workspace::default() },
            machine: Machine { home: "/home/u".into(), temp: "/tmp".into(), ..Machine::default() },
            interactive: true,
            now: 0,
            grants: vec![],
            explain: false,
            attributes: vec![],
        };
        for (path, expected, relative) in [
            ("/home/u/p/a/b", Zone::Workspace, "a/b"),
            ("/home/u/p", Zone::Workspace, ""),
            ("/home/u/.pi/x", Zone::Agent, "x"),
            ("/home/u/x", Zone::Home, "x"),
            ("/tmp/x", Zone::Temp, "x"),
            ("/etc/x", Zone::System, "/etc/x"),
            ("/home/u/pp", Zone::Home, "pp"),
        ] {
            assert_eq!(zone(&context, Path::new(path)), (expected, relative.to_owned()), "{path}");
        }
    }
}
