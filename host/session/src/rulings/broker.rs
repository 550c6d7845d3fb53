//! The ruling on a call for which the sandbox's broker asks.
//!
//! The host decides each question again from the facts that it sees itself. But if the broker asks, the user is asked
//! at least: the broker knows the call and the surroundings of the name best.

use std::path::{Path, PathBuf};

use portcullis_decision::request::{Action, Attribute};
use portcullis_decision::{Effect, Grant, Request, Ruling, path_text};
use portcullis_exec_surface::Anywhere;
use portcullis_sandbox::Deed;

use super::grantable::{HOST, may_be_granted};
use crate::exec_surface::ExecSurface;

/// Name of the attribute with the name rule for which the broker asks: a JSON string.
const RULE: &str = "host:asked-by";

/// Name of the attribute with the place that one question covers: a JSON string.
///
/// It is set for names that the user's programs execute.
const PLACE: &str = "host:place";

/// Id of the rule on links at names below which other rules restrict.
const SYMBOLIC_LINKS: &str = "host.symbolic-links";

/// Returns the attribute for the rule that asks about a call.
///
/// `None` if it is one of the session's own rules, which are evaluated anyway. A call that creates a link, or moves or
/// links a file, has an attribute in any case: permission for the name is not permission for its target.
pub(crate) fn attribute(rule: &str, deed: &Deed) -> Option<Attribute> {
    let is_link = matches!(deed, Deed::Symlink(_) | Deed::LinkOf(_) | Deed::MoveOf(_));
    let rule = if rule.is_empty() && is_link { SYMBOLIC_LINKS } else { rule };
    let is_known = rule == SYMBOLIC_LINKS || portcullis_exec_surface::rule(rule).is_some();
    let value = serde_json::Value::String(rule.to_owned()).to_string();
    is_known.then(|| Attribute { name: RULE.to_owned(), value })
}

/// Returns the attribute for the place that one question covers.
pub(crate) fn place_attribute(place: &Path) -> Attribute {
    let value = serde_json::Value::String(path_text::encode(place)).to_string();
    Attribute { name: PLACE.to_owned(), value }
}

/// Returns the place that one question covers, from the attribute of the request.
pub(crate) fn place_of(request: &Request) -> Option<PathBuf> {
    let told = request.attributes.iter().find(|attribute| attribute.name == PLACE)?;
    path_text::decode(&serde_json::from_str::<String>(&told.value).ok()?)
}

/// Returns the ruling of the broker's rule, or `None` if the rule is lifted or the user has allowed the operation.
pub(crate) fn ruling(request: &Request, surface: &ExecSurface<'_>, grants: &[Grant]) -> Option<Ruling> {
    let told = request.attributes.iter().find(|attribute| attribute.name == RULE)?;
    let id: String = serde_json::from_str(&told.value).unwrap_or_default();
    if surface.is_lifted(&id) {
        return None;
    }
    let Action::File(access) = &request.action else { return None };
    if path_text::decode(&access.path.canonical).is_some_and(|path| surface.is_private(&path)) {
        return None;
    }
    let reason = match portcullis_exec_surface::rule(&id) {
        Some(rule) => {
            let site = surface.bare_site();
            let covers = |grant: &Grant| grant.covers(request) && may_be_granted(rule, &grant.pattern, &site);
            if rule.anywhere == Anywhere::Asked && grants.iter().any(covers) {
                return None;
            }
            rule.reason
        }
        None => {
            "what rules say of this name, and of names below it, would not hold for what comes to stand there"
        }
    };
    Some(Ruling {
        effect: Effect::Ask,
        policy: HOST.to_owned(),
        rule: id,
        reason: reason.to_owned(),
        setting: String::new(),
        conceal: false,
    })
}
