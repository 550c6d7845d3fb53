//! Questions after a command has failed: their reasons and labels.

use portcullis_decision::request::{Action, FileAccess, FileOperation, PathKind};
use portcullis_decision::{KnownPlace, Request, path_text};
use portcullis_text::escape_confusables;

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
pub fn once(access: &FileAccess, place: Option<&KnownPlace>) -> String {
    let path = escape_confusables(&access.path.canonical);
    if reads(access) {
        let place = place.map(|place| path_text::encode(&place.top));
        let what = place.map_or(path, |top| format!("everything below {}", escape_confusables(&top)));
        return format!("If the command is run again: reading {what}");
    }
    match access.path.kind {
        PathKind::Directory => {
            format!("If the command is run again: all that it makes and writes below {path}")
        }
        PathKind::File | PathKind::Missing | PathKind::Symlink | PathKind::Other => {
            format!("If the command is run again: writing {path}")
        }
    }
}

fn is_reading(request: &Request) -> bool {
    if let Action::File(access) = &request.action { reads(access) } else { false }
}

fn reads(access: &FileAccess) -> bool {
    matches!(access.operation, FileOperation::Read | FileOperation::List)
}
