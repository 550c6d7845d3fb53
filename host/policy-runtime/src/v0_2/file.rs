//! Converts paths and file operations to the types of the contract.

use portcullis_decision::request::{Content, FileAccess, FileOperation, PathKind, PathRef, Text, Zone};

use super::bindings::portcullis::policy::files as guest;

pub(super) fn file_access(access: &FileAccess) -> guest::FileAccess {
    guest::FileAccess {
        path: path_ref(&access.path),
        operation: file_operation(&access.operation),
        facts: (access.path.kind != PathKind::Missing).then_some(guest::FileFacts {
            size: access.facts.size,
            links: access.facts.links,
            owner: access.facts.owner,
            mode: access.facts.mode,
        }),
    }
}

pub(super) fn path_ref(path: &PathRef) -> guest::PathRef {
    guest::PathRef {
        given: path.given.clone(),
        absolute: path.absolute.clone(),
        canonical: path.canonical.clone(),
        zone: match path.zone {
            Zone::Workspace => guest::Zone::Workspace,
            Zone::Agent => guest::Zone::Agent,
            Zone::Temp => guest::Zone::Temp,
            Zone::Home => guest::Zone::Home,
            Zone::System => guest::Zone::System,
        },
        relative: path.relative.clone(),
        kind: match path.kind {
            PathKind::Missing => guest::PathKind::Missing,
            PathKind::File => guest::PathKind::File,
            PathKind::Directory => guest::PathKind::Directory,
            PathKind::Symlink => guest::PathKind::Symlink,
            PathKind::Other => guest::PathKind::Other,
        },
    }
}

fn file_operation(operation: &FileOperation) -> guest::FileOperation {
    match operation {
        FileOperation::Read => guest::FileOperation::Read,
        FileOperation::Write(content) => guest::FileOperation::Write(match content {
            Content::Text(value) => guest::Content::Text(text(value)),
            Content::Binary(length) => guest::Content::Binary(*length),
            Content::Unknown => guest::Content::Unknown,
        }),
        FileOperation::Edit(edits) => guest::FileOperation::Edit(
            edits.iter().map(|edit| guest::TextEdit { old: text(&edit.old), new: text(&edit.new) }).collect(),
        ),
        FileOperation::List => guest::FileOperation::List,
        FileOperation::Search(query) => guest::FileOperation::Search(guest::SearchQuery {
            pattern: query.pattern.clone(),
            glob: query.glob.clone(),
        }),
        FileOperation::CreateDirectory => guest::FileOperation::CreateDirectory,
        FileOperation::Delete => guest::FileOperation::Delete,
        FileOperation::Move(path) => guest::FileOperation::Move(path_ref(path)),
        FileOperation::Link(path) => guest::FileOperation::Link(path_ref(path)),
        FileOperation::Symlink(target) => guest::FileOperation::Symlink(target.clone()),
        FileOperation::ChangeMetadata => guest::FileOperation::ChangeMetadata,
        FileOperation::Other(name) => guest::FileOperation::Other(name.clone()),
    }
}

pub(super) fn text(text: &Text) -> guest::Text {
    guest::Text { value: text.value.clone(), length: text.length, truncated: text.truncated }
}
