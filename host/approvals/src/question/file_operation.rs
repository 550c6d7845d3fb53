//! The description of a file operation in a question.

use std::path::{Path, PathBuf};

use portcullis_decision::path_text;
use portcullis_decision::profile::FileRight;
use portcullis_decision::request::{FileAccess, FileOperation};

/// Returns true if an operation can only be allowed once, because its path does not determine its effect.
#[must_use]
pub fn is_only_once(operation: &FileOperation) -> bool {
    match operation {
        FileOperation::Symlink(_)
        | FileOperation::Link(_)
        | FileOperation::Move(_)
        | FileOperation::Other(_) => true,
        FileOperation::Read
        | FileOperation::Write(_)
        | FileOperation::Edit(_)
        | FileOperation::List
        | FileOperation::Search(_)
        | FileOperation::CreateDirectory
        | FileOperation::Delete
        | FileOperation::ChangeMetadata => false,
    }
}

/// Returns true if an access needs the right to write.
pub(super) fn is_writing(access: &FileAccess) -> bool {
    access.operation.right() == FileRight::Write
}

/// Returns the other path of an operation or the target of its link, to be appended to the path.
#[must_use]
pub fn other_end(access: &FileAccess) -> Option<String> {
    match &access.operation {
        FileOperation::Symlink(target) => Some(format!(" -> {target}")),
        FileOperation::Link(other) | FileOperation::Move(other) => Some(format!(" to {}", other.canonical)),
        FileOperation::Read
        | FileOperation::Write(_)
        | FileOperation::Edit(_)
        | FileOperation::List
        | FileOperation::Search(_)
        | FileOperation::CreateDirectory
        | FileOperation::Delete
        | FileOperation::ChangeMetadata
        | FileOperation::Other(_) => None,
    }
}

/// Explains the effect of an operation to the user, or returns `None` if its name is clear.
#[must_use]
pub fn meaning(access: &FileAccess) -> Option<String> {
    if matches!(access.operation, FileOperation::Link(_)) {
        return Some("both names stand for one file; changing one changes the other".to_owned());
    }
    let FileOperation::Symlink(target) = &access.operation else { return None };
    let path = path_text::decode(&access.path.canonical)?;
    let aim = path.parent().map_or_else(PathBuf::new, Path::to_owned).join(path_text::decode(target)?);
    let aim = path_text::encode(&aim.canonicalize().unwrap_or(aim));
    Some(format!("this name, and every name below it, leads to {aim}"))
}
