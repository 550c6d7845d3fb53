//! The label of a "yes" to a pending call of a command.

use std::path::Path;

use portcullis_decision::host_rules::HOST;
use portcullis_decision::profile::FileRight;
use portcullis_decision::request::{FileAccess, FileOperation, Origin};
use portcullis_decision::{Decision, KnownPlace, Request, path_text};
use portcullis_exec_surface::NEW_DOT_FILES;
use portcullis_text::escape_confusables;

use super::file_operation::{is_only_once, other_end};
use super::tilde::tilde;

/// Id of the rule that protects start-up files; rules on names cover the same names.
const START_UP_FILES: &str = "host.start-up-files";

/// Returns true if names under a rule need separate questions, since other programs execute them.
#[must_use]
pub fn has_own_question(rule: &str) -> bool {
    rule == START_UP_FILES || portcullis_exec_surface::rule(rule).is_some()
}

/// Returns the place that a person knows, if a question about a pending call is about that.
///
/// The host's own rules, on names that other programs execute and the like, ask about the name itself.
#[must_use]
pub fn known_place<'a>(request: &'a Request, decision: &Decision) -> Option<&'a KnownPlace> {
    let is_hosts = decision.policy() == HOST || has_own_question(&decision.cause().rule);
    request.known_place().filter(|_| !is_hosts && request.origin == Origin::Process)
}

/// Returns the first access of a command to a place, for the reason of the question.
#[must_use]
pub fn begins_with(access: &FileAccess, place: &KnownPlace) -> String {
    let path = Path::new(&access.path.canonical);
    let within = path.strip_prefix(&place.top).unwrap_or(path);
    let within = if within.as_os_str().is_empty() { path } else { within };
    let end = other_end(access).unwrap_or_default();
    format!("the command first wants to {} {}{end}", access.operation.verb(), within.display())
}

/// Label of a "yes" that lasts as long as the command runs.
pub const FOR_THIS_COMMAND: &str = "For this command";

/// Returns the label of a "yes" to a pending call, which says how far it reaches.
#[must_use]
pub fn once(request: &Request, access: &FileAccess, decision: &Decision, home: Option<&Path>) -> String {
    let shown = |path: &Path| escape_confusables(&tilde(&path_text::encode(path), home));
    if let Some(place) = known_place(request, decision) {
        let what = match access.operation.right() {
            FileRight::Write => "reading, changing and removing",
            FileRight::Read | FileRight::Execute => "reading",
        };
        return format!("{FOR_THIS_COMMAND}: {what} everything below {}", shown(&place.top));
    }
    if is_only_once(&access.operation) {
        return "Once".to_owned();
    }
    let path = Path::new(&access.path.canonical);
    let place = match request.question_place() {
        Some(place) if decision.cause().rule == NEW_DOT_FILES.id => {
            return format!("{FOR_THIS_COMMAND}: all new dot files in {}", shown(place));
        }
        Some(place) => Some(place).filter(|place| *place != path),
        None => path.parent().filter(|_| !has_own_question(&decision.cause().rule)),
    };
    let Some(place) = place else { return FOR_THIS_COMMAND.to_owned() };
    let what = match access.operation {
        FileOperation::Delete => "removing",
        FileOperation::Read | FileOperation::List | FileOperation::Search(_) => "reading",
        FileOperation::Write(_)
        | FileOperation::Edit(_)
        | FileOperation::CreateDirectory
        | FileOperation::Move(_)
        | FileOperation::Link(_)
        | FileOperation::Symlink(_)
        | FileOperation::ChangeMetadata
        | FileOperation::Other(_) => "creating and writing",
    };
    format!("{FOR_THIS_COMMAND}: {what} files in {}", shown(place))
}
