//! Questions after a command has failed: their reasons and labels.

use portcullis_decision::Request;
use portcullis_decision::request::{FileAccess, PathKind};
use portcullis_text::escape_confusables;

/// Returns the reason for the question, with the path that the command named.
#[must_use]
pub fn reason(request: &Request) -> Option<String> {
    let said = request.named_before_failure()?;
    Some(format!(
        "a command failed, and its output says that it could not write `{}`",
        escape_confusables(said)
    ))
}

/// Returns the label of the choice that allows a path for the next run.
#[must_use]
pub fn once(access: &FileAccess) -> String {
    let path = escape_confusables(&access.path.canonical);
    match access.path.kind {
        PathKind::Directory => {
            format!("If the command is run again: all that it makes and writes below {path}")
        }
        PathKind::File | PathKind::Missing | PathKind::Symlink | PathKind::Other => {
            format!("If the command is run again: writing {path}")
        }
    }
}
