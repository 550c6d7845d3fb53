//! `portcullis explain`: prints why the host made a decision.

use anyhow::Context as _;
use portcullis_audit::{Decided, PolicyLine, VerdictLine, Winner, verify, winner};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::args::audit::Explain;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::human::{ago, path};
use portcullis_command_line::output::{Cell, Page, Tint, cell, tinted};
use portcullis_decision::path_text;
use portcullis_server::record_text;
use portcullis_text::{escape, utc};
use serde_json::{Value, json};

use crate::audit::logs::{causes, directory};

/// Explains a decision of the log.
///
/// # Errors
/// If there is no such decision, or the log cannot be read; if the output cannot be written.
pub fn run(wanted: &Explain) -> exit::Outcome {
    let around = ProcessEnv::read()?;
    let found = match &wanted.id {
        Some(id) => directory(&around).decision(id)?,
        None => newest_refusal(&around)?,
    };
    let winner = winner(&found.verdict);
    let broken = verify(&found.log).err().map(|trouble| causes(trouble.error));
    let mut page = Page::new(&around);
    if wanted.json {
        page.json(&as_json(&found, winner, broken.as_deref()));
    } else {
        human(&mut page, &around, &found, winner, broken.as_deref());
    }
    page.print()?;
    Ok(Exit::Done)
}

/// Returns the newest refusal in a project that contains the current directory.
fn newest_refusal(around: &ProcessEnv) -> anyhow::Result<Decided> {
    let here = around.cwd.canonicalize().unwrap_or_else(|_| around.cwd.clone());
    let is_around =
        |root: &Value| root.as_str().and_then(path_text::decode).is_some_and(|root| here.starts_with(root));
    let is_here = |facts: Option<&Value>| {
        let roots = facts.and_then(|facts| facts.pointer("/workspace/roots")?.as_array());
        roots.is_some_and(|roots| roots.iter().any(is_around))
    };
    let found = directory(around).newest(|facts, verdict| verdict.effect == "deny" && is_here(facts))?;
    found.with_context(|| {
        let here = escape(&path(around, &here));
        format!("no refusal in `{here}`; `portcullis explain LAST` explains the newest decision")
    })
}

fn human(page: &mut Page, around: &ProcessEnv, found: &Decided, winner: Winner, broken: Option<&str>) {
    let verdict = &found.verdict;
    let asked = record_text::shown(&verdict.request, &around.home);
    let headline = [tinted(&verdict.effect, Tint::for_word(&verdict.effect)), cell(&asked)];
    page.row("", &headline, &[]);
    let origin = verdict.request.get("origin").and_then(Value::as_str).unwrap_or("unknown");
    let mut rows = vec![
        pair("when", &format!("{} ({} UTC)", ago(verdict.at_ms), utc(verdict.at_ms))),
        pair("id", &record_text::id(&found.name, found.sequence)),
        pair("asked by", record_text::asked_by(origin)),
        pair("because", &verdict.reason),
        pair("rule", &format!("{} of {}", verdict.rule, verdict.policy)),
    ];
    if !verdict.setting.is_empty() {
        rows.push(pair("set by", &path(around, &verdict.setting)));
    }
    rows.push(pair("decided", winner.why.words()));
    if !verdict.answered_by.is_empty() {
        rows.push(pair("answered by", record_text::answered_by(&verdict.answered_by)));
    }
    rows.push(pair("outcome", &outcome(found)));
    if let Some(remedy) = record_text::remedy(verdict) {
        rows.push(pair("to allow", &remedy));
    }
    if let Some(broken) = broken {
        rows.push(vec![tinted("LOG BROKEN", Tint::Bad), cell(broken)]);
    }
    page.table("  ", &rows);
    page.line("");
    heard(page, around, verdict, winner);
}

/// Prints all votes and marks the one that decided.
pub(crate) fn heard(page: &mut Page, around: &ProcessEnv, verdict: &VerdictLine, winner: Winner) {
    if verdict.policies.is_empty() {
        return;
    }
    page.line("  votes (→ decided)");
    let votes = verdict.policies.iter().enumerate();
    let rows: Vec<_> = votes.map(|(place, vote)| row(vote, winner.place == Some(place))).collect();
    page.table("  ", &rows);
    for vote in verdict.policies.iter().filter(|vote| !vote.setting.is_empty()) {
        page.row("    ", &[cell(&vote.name), cell("set by"), cell(&path(around, &vote.setting))], &[]);
    }
}

fn row(vote: &PolicyLine, decided: bool) -> Vec<Cell> {
    let note = match (vote.counts, vote.tightens) {
        (true, _) => "",
        (false, true) => "(can only tighten) ",
        (false, false) => "(only observed) ",
    };
    vec![
        cell(if decided { "→" } else { " " }),
        cell(&vote.name),
        tinted(&vote.verdict, Tint::for_word(&vote.verdict)),
        cell(&vote.rule),
        cell(&format!("{note}{}", vote.reason)),
    ]
}

fn outcome(found: &Decided) -> String {
    match &found.outcome {
        Some(outcome) => format!("{}, {}", outcome.result, ago(outcome.at_ms)),
        None if found.verdict.effect == "allow" => {
            "none yet: it still runs, or Portcullis was stopped".to_owned()
        }
        None => "not done".to_owned(),
    }
}

fn as_json(found: &Decided, winner: Winner, broken: Option<&str>) -> Value {
    let verdict = &found.verdict;
    let votes: Vec<Value> = verdict
        .policies
        .iter()
        .enumerate()
        .map(|(place, vote)| {
            json!({
                "policy": vote.name, "digest": vote.digest, "verdict": vote.verdict, "rule": vote.rule,
                "reason": vote.reason, "setting": vote.setting, "counts": vote.counts, "costUs": vote.cost_us,
                "decided": winner.place == Some(place),
            })
        })
        .collect();
    json!({
        "id": record_text::id(&found.name, found.sequence), "log": found.log, "session": found.session,
        "atMs": verdict.at_ms, "asked": record_text::asked(&verdict.request), "request": verdict.request,
        "effect": verdict.effect, "policy": verdict.policy, "rule": verdict.rule, "reason": verdict.reason,
        "setting": verdict.setting, "answeredBy": verdict.answered_by, "costUs": verdict.cost_us,
        "why": winner.why, "whyText": winner.why.words(), "votes": votes, "outcome": found.outcome,
        "logIntact": broken.is_none(), "logError": broken,
    })
}

fn pair(name: &str, value: &str) -> Vec<Cell> {
    vec![tinted(name, Tint::Faint), cell(value)]
}
