//! The ruling on new content of a file, if the decision depends on the content.

use portcullis_exec_surface::Rule;

use crate::request::{Action, FileOperation};
use crate::{ContentVerdict, Effect, Request};

/// Returns effect and reason from the verdict on the content to write; `None` if it does no harm.
pub(super) fn on_content(request: &Request, rule: &Rule) -> Option<(Effect, String)> {
    let is_edit =
        matches!(&request.action, Action::File(access) if matches!(access.operation, FileOperation::Edit(_)));
    match request.content_verdict() {
        Some(ContentVerdict::Harmless) => None,
        Some(ContentVerdict::Unreadable(reason)) => Some((Effect::Deny, reason.clone())),
        Some(ContentVerdict::Asks(reason)) => Some((Effect::Ask, reason.clone())),
        // The result of an edit is judged once it exists.
        None if is_edit => None,
        None => Some((Effect::Ask, rule.reason.to_owned())),
    }
}
