//! The label of a "yes" to a pending call of a command.

use std::path::Path;

use portcullis_decision::request::{FileAccess, FileOperation};
use portcullis_decision::{Decision, Request};
use portcullis_exec_surface::NEW_DOT_FILES;
use portcullis_text::escape_confusables;

use super::file_operation::is_only_once;

/// Id of the rule that protects start-up files; rules on names cover the same names.
const START_UP_FILES: &str = "host.start-up-files";

/// Returns true if names under a rule need separate questions, since other programs execute them.
#[must_use]
pub fn has_own_question(rule: &str) -> bool {
    rule == START_UP_FILES || portcullis_exec_surface::rule(rule).is_some()
}

/// Label of a "yes" that lasts as long as the command runs.
pub const FOR_THIS_COMMAND: &str = "Allow for this command";

/// Returns the label of a "yes" to a pending call, which says how far it reaches.
#[must_use]
pub fn once(request: &Request, access: &FileAccess, decision: &Decision) -> String {
    if is_only_once(&access.operation) {
        return "Allow once".to_owned();
    }
    let path = Path::new(&access.path.canonical);
    let place = match request.question_place() {
        Some(place) if decision.cause().rule == NEW_DOT_FILES.id => {
            return format!(
                "{FOR_THIS_COMMAND}: all new dot files in {}",
                escape_confusables(&place.to_string_lossy())
            );
        }
        Some(place) => Some(place).filter(|place| *place != path),
        None => path.parent().filter(|_| !has_own_question(&decision.cause().rule)),
    };
    let Some(place) = place else { return FOR_THIS_COMMAND.to_owned() };
    let what = match access.operation {
        FileOperation::Delete => "removes",
        FileOperation::Read | FileOperation::List | FileOperation::Search(_) => "reads",
        FileOperation::Write(_)
        | FileOperation::Edit(_)
        | FileOperation::CreateDirectory
        | FileOperation::Move(_)
        | FileOperation::Link(_)
        | FileOperation::Symlink(_)
        | FileOperation::ChangeMetadata
        | FileOperation::Other(_) => "makes and writes",
    };
    format!("{FOR_THIS_COMMAND}: all that it {what} in {}", escape_confusables(&place.to_string_lossy()))
}
