//! Compares the answers of the old sandbox and of Portcullis for every entry of the old lists.

use std::path::Path;

use portcullis_bootstrap::in_force;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_decision::request::Endpoint;
use portcullis_decision::{Decision, Effect};
use portcullis_settings::{Disk, OldRules, Wish};
use serde_json::{Value, json};

use crate::args::action::{Action, Target};
use crate::commands::check;
use crate::human::path;
use crate::output::{Page, Tint, cell, tinted};

/// The port of the compared connections.
const PORT: u16 = 443;

/// Both answers to one wish.
#[derive(Debug)]
pub(crate) struct Compared {
    wish: Wish,
    old: Effect,
    new: Effect,
    /// The rule and the reason of the new answer.
    rule: String,
    reason: String,
}

/// Compares the answers in a project, with the settings files of `disk` in force.
pub(crate) fn compare(
    around: &ProcessEnv,
    project: &Path,
    rules: &OldRules,
    disk: &dyn Disk,
) -> anyhow::Result<Vec<Compared>> {
    let Some(open) = in_force::judging(around, project, None, disk)? else {
        anyhow::bail!(
            "the sandbox is switched off in the settings (`enabled` is false), so nothing is compared"
        );
    };
    let mut compared = Vec::new();
    for wish in rules.wishes() {
        let request = check::request(&open.session, around, action(&wish))?;
        let decision: Decision = open.session.decide(&request);
        let cause = decision.cause();
        compared.push(Compared {
            old: rules.answer(&wish),
            new: decision.effect(),
            rule: cause.rule.clone(),
            reason: cause.reason.clone(),
            wish,
        });
    }
    // The sort is stable, so each half keeps the order of the lists.
    compared.sort_by_key(|one| one.old == one.new);
    Ok(compared)
}

fn action(wish: &Wish) -> Action {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    match wish {
        Wish::Read(path) => Action::Read { path: text(path) },
        Wish::Write(path) => Action::Write { path: text(path) },
        Wish::Connect(host) => {
            let parsed = portcullis_decision::pattern::HostName::parse(host);
            Action::Connect {
                target: Target {
                    host: parsed.unwrap_or_else(|_| Endpoint::Domain(host.clone())),
                    port: PORT,
                },
            }
        }
    }
}

pub(crate) fn to_json(compared: &[Compared]) -> Value {
    let one = |one: &Compared| {
        let (verb, what) = words(&one.wish, |path| path.display().to_string());
        json!({
            "action": verb, "what": what, "before": one.old.to_string(), "now": one.new.to_string(),
            "same": one.old == one.new, "rule": one.rule, "reason": one.reason,
        })
    };
    compared.iter().map(one).collect()
}

pub(crate) fn print(page: &mut Page, around: &ProcessEnv, title: &str, compared: &[Compared]) {
    let different: Vec<&Compared> = compared.iter().filter(|one| one.old != one.new).collect();
    let same = compared.len() - different.len();
    page.line(&format!("\n{title}: {} different, {same} the same", different.len()));
    let row = |one: &&Compared| {
        let (verb, what) = words(&one.wish, |file| path(around, file));
        let why = format!("{} [{}]", one.reason, one.rule);
        vec![
            cell(verb),
            cell(&what),
            tinted(&format!("{} -> {}", one.old, one.new), tint(one)),
            tinted(&why, Tint::Faint),
        ]
    };
    page.table("  ", &different.iter().map(row).collect::<Vec<_>>());
    let same = compared.iter().filter(|one| one.old == one.new);
    let row = |one: &Compared| {
        let (verb, what) = words(&one.wish, |file| path(around, file));
        vec![cell(verb), cell(&what), tinted(&one.new.to_string(), Tint::Faint)]
    };
    page.table("  ", &same.map(row).collect::<Vec<_>>());
    if different
        .iter()
        .any(|one| matches!(one.wish, Wish::Connect(_)) && one.old == Effect::Allow && one.new == Effect::Ask)
    {
        page.line("  to reach every host as before, set `\"unlistedHosts\": \"allow\"` in `network` of your settings");
    }
}

/// Highlights an answer that became milder.
fn tint(one: &Compared) -> Tint {
    if one.new < one.old { Tint::Bad } else { Tint::Open }
}

fn words(wish: &Wish, name: impl Fn(&Path) -> String) -> (&'static str, String) {
    match wish {
        Wish::Read(path) => ("read", name(path)),
        Wish::Write(path) => ("write", name(path)),
        Wish::Connect(host) => ("connect", format!("{host}:{PORT}")),
    }
}
