//! The ruling on a call for which the sandbox's broker asks.
//!
//! The host decides each question again from the facts that it sees itself. But a call for which the broker asks is at
//! least a question: the broker knows the call and the surroundings of the name best.

use portcullis_exec_surface::Treatment;

use super::by_host::by_host;
use super::grantable::may_be_granted;
use super::surroundings::Surroundings;
use crate::request::Action;
use crate::{Effect, Fact, Grant, Request, Ruling, path_text};

/// Id of the rule on links at names below which other rules restrict.
const SYMBOLIC_LINKS: &str = "host.symbolic-links";

/// Returns the fact that the broker asks about a call by `rule`.
///
/// `None` if it is one of the session's own rules, which are evaluated anyway. A call that creates a link, or moves or
/// links a file, has the fact in any case: permission for the name is not permission for its target.
#[must_use]
pub fn broker_rule(rule: &str, makes_link: bool) -> Option<Fact> {
    let rule = if rule.is_empty() && makes_link { SYMBOLIC_LINKS } else { rule };
    let is_known = rule == SYMBOLIC_LINKS || portcullis_exec_surface::rule(rule).is_some();
    is_known.then(|| Fact::BrokerRule(rule.to_owned()))
}

/// Returns the ruling of the broker's rule, or `None` if the rule is lifted or the user has allowed the operation.
pub(super) fn ruling(request: &Request, surroundings: &Surroundings<'_>, grants: &[Grant]) -> Option<Ruling> {
    let id = request.broker_rule()?;
    if surroundings.is_lifted(id) {
        return None;
    }
    let Action::File(access) = &request.action else { return None };
    if path_text::decode(&access.path.canonical).is_some_and(|path| (surroundings.is_private)(&path)) {
        return None;
    }
    let reason = match portcullis_exec_surface::rule(id) {
        Some(rule) => {
            let site = surroundings.bare_site();
            let covers = |grant: &Grant| grant.covers(request) && may_be_granted(rule, &grant.pattern, &site);
            if rule.anywhere == Treatment::Asked && grants.iter().any(covers) {
                return None;
            }
            rule.reason
        }
        None => "rules protect this name or names below it, and this change would bypass them",
    };
    Some(by_host(Effect::Ask, id, reason.to_owned()))
}
