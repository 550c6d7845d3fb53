//! `team update`: looks for a newer bundle.

use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::teams::update::{Updated, refusal_text, update};
use portcullis_command_line::args::team::Update;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::{Page, Tint, cell, tinted};
use portcullis_policy_tools::registry_client;
use portcullis_session::with_causes;
use portcullis_teams::{RegistrySource, TeamRefusal};
use serde_json::{Value, json};

use super::membership::joined;

pub(super) fn run(around: &ProcessEnv, options: &Update) -> exit::Outcome {
    let joined = joined(around)?;
    let mut registry = registry_client(around)?;
    let mut source = RegistrySource::new(&mut registry, &joined.membership.registry);
    let updated = update(&joined, &mut source, &around.cache);
    if options.background {
        // The result of the check is kept for `team status`.
        return Ok(if updated.is_ok_and(|updated| updated.refused.is_empty()) {
            Exit::Done
        } else {
            Exit::Bad
        });
    }
    print(around, &updated?, options.json)
}

/// Prints the result of an update. A refused version gives the exit code 1.
pub(super) fn print(around: &ProcessEnv, updated: &Updated, as_json: bool) -> exit::Outcome {
    let mut page = Page::new(around);
    let in_force = updated.trusted.bundle.as_ref().map(|bundle| bundle.content.version);
    if as_json {
        let refused: Vec<Value> = updated
            .refused
            .iter()
            .map(|(version, error)| {
                let code = error.downcast_ref::<TeamRefusal>().map(TeamRefusal::code);
                json!({ "version": version, "code": code, "reason": with_causes(error.as_ref()) })
            })
            .collect();
        page.json(&json!({
            "accepted": updated.accepted, "inForce": in_force, "refused": refused,
            "root": updated.trusted.root.version,
        }));
    } else {
        for (version, error) in &updated.refused {
            let reason = refusal_text(*version, error);
            page.row("", &[tinted("refused", Tint::Bad), cell(&reason)], &[]);
        }
        match (updated.accepted, in_force) {
            (Some(version), _) => {
                page.row("", &[tinted("in force", Tint::Good), cell(&format!("bundle {version}"))], &[])
            }
            (None, Some(version)) => page.line(&format!("bundle {version} stays in force")),
            (None, None) => page.line("no bundle is in force"),
        }
    }
    page.print()?;
    Ok(if updated.refused.is_empty() { Exit::Done } else { Exit::Bad })
}
