//! The host's own rulings, which only tighten what policies, rules and grants decide.

pub(crate) mod broker;
pub(crate) mod content;
pub(crate) mod escalation;
pub(crate) mod executed_names;
pub(crate) mod grantable;
pub(crate) mod hard_links;
pub(crate) mod rerun;

use portcullis_decision::{Decision, Grant, Request};

use crate::exec_surface::ExecSurface;

/// Returns `decision`, tightened by each ruling that applies to `request`.
pub(crate) fn tightened(
    request: &Request,
    decision: Decision,
    surface: &ExecSurface<'_>,
    grants: &[Grant],
) -> Decision {
    let rulings = [
        escalation::ruling(&request.action),
        broker::ruling(request, surface, grants),
        executed_names::ruling(request, surface, grants),
        hard_links::ruling(request, grants),
        rerun::ruling(request),
    ];
    rulings.into_iter().flatten().fold(decision, Decision::tightened)
}
