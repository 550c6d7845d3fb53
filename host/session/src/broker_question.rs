//! The action of a pending call.

use std::ffi::OsStr;
use std::path::Path;

use portcullis_decision::path_text;
use portcullis_decision::request::{
    Action, Content, FileAccess, FileFacts, FileOperation, PathKind, PathRef,
};
use portcullis_sandbox::{CallDetails, NameAccess};
use portcullis_sandbox_runtime::Held;

use crate::paths;
use crate::session::Session;

/// Returns the action of a pending call, from the existing end.
pub(crate) fn action(session: &Session, held: &Held) -> Action {
    let here = held.path();
    match held.deed() {
        CallDetails::Plain => plain(session, here, held.attempt()),
        CallDetails::Symlink(target) => file(session, here, FileOperation::Symlink(text(target))),
        CallDetails::Special => {
            file(session, here, FileOperation::Other("make a special file at".to_owned()))
        }
        CallDetails::LinkOf(name) => file(session, name, FileOperation::Link(reference(session, here))),
        CallDetails::LinkTo(name) => file(session, here, FileOperation::Link(reference(session, name))),
        CallDetails::MoveOf(name) => file(session, name, FileOperation::Move(reference(session, here))),
        CallDetails::MoveTo(name) => file(session, here, FileOperation::Move(reference(session, name))),
    }
}

fn plain(session: &Session, path: &Path, attempt: NameAccess) -> Action {
    let operation = match attempt {
        NameAccess::Read => FileOperation::Read,
        NameAccess::Write => FileOperation::Write(Content::Unknown),
        NameAccess::MakeDirectory => FileOperation::CreateDirectory,
        NameAccess::Remove => FileOperation::Delete,
    };
    let is_directory =
        attempt == NameAccess::MakeDirectory || path.symlink_metadata().is_ok_and(|found| found.is_dir());
    let kind = if is_directory { PathKind::Directory } else { PathKind::File };
    let path = paths::reference(&session.setup.context, &path.to_string_lossy(), path, path, kind);
    Action::File(FileAccess { path, operation, facts: FileFacts::default() })
}

fn file(session: &Session, path: &Path, operation: FileOperation) -> Action {
    let path = reference(session, path);
    Action::File(FileAccess { path, operation, facts: FileFacts::default() })
}

fn reference(session: &Session, path: &Path) -> PathRef {
    let is_directory = path.symlink_metadata().is_ok_and(|found| found.is_dir());
    let kind = if is_directory { PathKind::Directory } else { PathKind::File };
    paths::reference(&session.setup.context, &path.to_string_lossy(), path, path, kind)
}

fn text(target: &OsStr) -> String {
    path_text::encode(Path::new(target))
}
