//! The host's own rulings, which only tighten what policies, rules and grants decide.
//!
//! They depend on the request with its [facts](crate::facts), on live grants, and on the [`Surroundings`] of names.

mod broker;
mod by_host;
mod content;
mod escalation;
mod executed_names;
mod grantable;
mod hard_links;
mod rerun;
mod reservations;
mod surroundings;

pub use broker::broker_rule;
pub use by_host::HOST;
pub use executed_names::ruling as ruling_on_names;
pub use grantable::{HARD_LINKS, is_offered};
pub use rerun::listed;
pub use reservations::{ClaimFailure, unclaimed};
pub use surroundings::Surroundings;

use crate::{Decision, Grant, Request};

/// Returns `decision`, tightened by each ruling that applies to `request`.
#[must_use]
pub fn tightened(
    request: &Request,
    decision: Decision,
    surroundings: &Surroundings<'_>,
    grants: &[Grant],
) -> Decision {
    let rulings = [
        escalation::ruling(&request.action),
        broker::ruling(request, surroundings, grants),
        executed_names::ruling(request, surroundings, grants),
        hard_links::ruling(request, grants),
        rerun::ruling(request),
    ];
    rulings.into_iter().flatten().fold(decision, Decision::tightened)
}
