//! Questions after a command has failed: their reasons and labels.

use std::path::Path;

use portcullis_decision::request::{Action, FileAccess, FileOperation, PathKind};
use portcullis_decision::{KnownPlace, Request, path_text};
use portcullis_text::escape_confusables;

use super::tilde::tilde;

/// Returns the reason for the question, with the path that the command named.
#[must_use]
pub fn reason(request: &Request) -> Option<String> {
    let said = escape_confusables(request.named_before_failure()?);
    Some(if is_reading(request) {
        format!("a command failed, and its output says that it did not find `{said}`")
    } else {
        format!("a command failed, and its output says that it could not write `{said}`")
    })
}

/// Returns the label of the choice that allows a path for the next run.
#[must_use]
pub fn once(access: &FileAccess, place: Option<&KnownPlace>, home: Option<&Path>) -> String {
    let shown = |path: &str| escape_confusables(&tilde(path, home));
    let path = shown(&access.path.canonical);
    if reads(access) {
        let place = place.map(|place| path_text::encode(&place.top));
        let what = place.map_or(path, |top| format!("everything below {}", shown(&top)));
        return format!("If the command runs again: reading {what}");
    }
    match access.path.kind {
        PathKind::Directory => {
            format!("If the command runs again: creating and writing files below {path}")
        }
        PathKind::File | PathKind::Missing | PathKind::Symlink | PathKind::Other => {
            format!("If the command runs again: writing {path}")
        }
    }
}

fn is_reading(request: &Request) -> bool {
    if let Action::File(access) = &request.action { reads(access) } else { false }
}

fn reads(access: &FileAccess) -> bool {
    matches!(access.operation, FileOperation::Read | FileOperation::List)
}
