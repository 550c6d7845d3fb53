//! The resources of an operation on a file.

use portcullis_sdk::{Content, FileAccess, FileOperation, PathKind, PathRef, TextEdit, Zone};
use serde_json::json;

use crate::entity::Entity;

/// The actions on files, each with its group.
const ACTIONS: [(&str, &str); 12] = [
    ("read", "view"),
    ("list", "view"),
    ("search", "view"),
    ("write", "change"),
    ("edit", "change"),
    ("create-directory", "change"),
    ("delete", "change"),
    ("move", "change"),
    ("link", "change"),
    ("symlink", "change"),
    ("change-metadata", "change"),
    ("other", "change"),
];

pub(crate) fn group(action: &str) -> Option<&'static str> {
    ACTIONS.iter().find(|(name, _)| *name == action).map(|(_, group)| *group)
}

/// Returns the actions of an operation with their files. Moving and linking also write the new name.
pub(crate) fn resources(access: &FileAccess) -> Vec<(&'static str, Entity)> {
    let here = |action| vec![(action, file(&access.path, None))];
    let with_content = |action, content| vec![(action, file(&access.path, content))];
    let and_there =
        |action, target: &PathRef| vec![(action, file(&access.path, None)), ("write", file(target, None))];
    match &access.operation {
        FileOperation::Read => here("read"),
        FileOperation::List => here("list"),
        FileOperation::Search(_) => here("search"),
        FileOperation::Write(content) => with_content("write", written(content)),
        FileOperation::Edit(edits) => with_content("edit", edited(edits)),
        FileOperation::CreateDirectory => here("create-directory"),
        FileOperation::Delete => here("delete"),
        FileOperation::Move(target) => and_there("move", target),
        FileOperation::Link(target) => and_there("link", target),
        FileOperation::Symlink(_) => here("symlink"),
        FileOperation::ChangeMetadata => here("change-metadata"),
        FileOperation::Other(_) => here("other"),
    }
}

/// Returns the new content of a file, if all of it is known.
fn written(content: &Content) -> Option<String> {
    match content {
        Content::Text(text) if !text.truncated => Some(text.value.clone()),
        Content::Text(_) | Content::Binary(_) | Content::Unknown => None,
    }
}

/// Returns the new pieces of a file, if all of them are known.
fn edited(edits: &[TextEdit]) -> Option<String> {
    let pieces: Option<Vec<&str>> =
        edits.iter().map(|edit| (!edit.new.truncated).then_some(edit.new.value.as_str())).collect();
    pieces.map(|pieces| pieces.join("\n"))
}

fn file(path: &PathRef, content: Option<String>) -> Entity {
    let zone = match path.zone {
        Zone::Workspace => "workspace",
        Zone::Agent => "agent",
        Zone::Temp => "temp",
        Zone::Home => "home",
        Zone::System => "system",
    };
    let kind = match path.kind {
        PathKind::Missing => "missing",
        PathKind::File => "file",
        PathKind::Directory => "directory",
        PathKind::Symlink => "symlink",
        PathKind::Other => "other",
    };
    let name = path.canonical.rsplit('/').next().unwrap_or_default();
    let extension =
        name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map_or("", |(_, extension)| extension);
    let attributes = json!({
        "path": path.canonical,
        "name": name,
        "extension": extension,
        "zone": zone,
        "relative": path.relative,
        "kind": kind,
    });
    let mut file = Entity::new("File", path.canonical.as_str(), attributes);
    if let Some(content) = content {
        file.attributes.insert("content".into(), content.into());
    }
    file.parents = directories(&path.canonical);
    file
}

/// Returns a path itself and the directories above it, as groups.
fn directories(path: &str) -> Vec<(&'static str, String)> {
    let above = path.match_indices('/').filter_map(|(at, _)| path.get(..at.max(1)));
    let mut all: Vec<String> = above.chain([path]).map(str::to_owned).collect();
    all.dedup();
    all.into_iter().map(|directory| ("Directory", directory)).collect()
}

#[cfg(test)]
mod tests {
    use portcullis_sdk::{Action, testing};

    use super::*;

    #[test]
    fn a_file_is_in_every_directory_above_it() {
        let names = |path| directories(path).into_iter().map(|(_, name)| name).collect::<Vec<_>>();
        assert_eq!(names("/srv/app/a"), ["/", "/srv", "/srv/app", "/srv/app/a"]);
        assert_eq!(names("/"), ["/"]);
    }

    #[test]
    fn a_move_also_writes_the_new_name() {
        let context = testing::context("/srv/app");
        let target = testing::path_ref(&context, "/etc/passwd");
        let request = testing::file(&context, "/srv/app/.env.local", FileOperation::Move(target));
        let Action::File(access) = &request.action else { panic!("{request:?}") };
        let asked: Vec<_> = resources(access).into_iter().map(|(action, file)| (action, file.id)).collect();
        assert_eq!(asked, [("move", "/srv/app/.env.local".to_owned()), ("write", "/etc/passwd".to_owned())]);
        assert!(asked.iter().all(|(action, _)| group(action) == Some("change")));
    }

    #[test]
    fn unknown_content_has_no_attribute() {
        let context = testing::context("/srv/app");
        let content = |content| {
            let request = testing::file(&context, "/srv/app/a.rs", FileOperation::Write(content));
            let Action::File(access) = &request.action else { panic!("{request:?}") };
            let (_, file) = resources(access).remove(0);
            assert_eq!(file.attributes.get("extension"), Some(&"rs".into()));
            file.attributes.get("content").cloned()
        };
        assert_eq!(content(Content::Text(testing::text("x"))), Some("x".into()));
        let cut = portcullis_sdk::Text { truncated: true, ..testing::text("x") };
        assert_eq!(content(Content::Text(cut)), None);
        assert_eq!(content(Content::Unknown), None);
    }
}
