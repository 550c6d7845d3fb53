//! Compares the answers of the old sandbox and of Portcullis for every entry of the old lists.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use portcullis_bootstrap::in_force;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::args::action::{Action, Target};
use portcullis_command_line::human::path;
use portcullis_command_line::output::{Page, Tint, cell, tinted};
use portcullis_decision::profile::FileRight;
use portcullis_decision::request::Endpoint;
use portcullis_decision::rules::HIDDEN_BY_DEFAULT;
use portcullis_decision::{Caller, Decision, Effect, RuleSet};
use portcullis_policy_commands::check;
use portcullis_session::Session;
use portcullis_settings::{Disk, OldRules, Wish};
use serde_json::{Value, json};

/// Why a command does not see a directory that no rule opens.
const HIDDEN: &str = "commands do not see it, unless a rule opens it";
/// The port of the compared connections.
const PORT: u16 = 443;

/// Both answers to one wish.
#[derive(Debug, Clone)]
pub(crate) struct Compared {
    wish: Wish,
    old: Effect,
    new: Answer,
}

/// An answer of Portcullis.
#[derive(Debug, Clone)]
struct Answer {
    effect: Effect,
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
    let wishes = rules.wishes();
    // Each decision configures the policies anew, which takes long with long lists.
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let judge = |part: &[Wish]| -> anyhow::Result<Vec<Compared>> {
        let compared = |wish: &Wish| {
            Ok(Compared {
                old: rules.answer(wish),
                new: answer(&open.session, around, wish)?,
                wish: wish.clone(),
            })
        };
        part.iter().map(compared).collect()
    };
    let parts: anyhow::Result<Vec<Vec<Compared>>> = thread::scope(|scope| {
        let parts = wishes.chunks(wishes.len().div_ceil(threads).max(1));
        let running: Vec<_> = parts.map(|part| scope.spawn(|| judge(part))).collect();
        running.into_iter().map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    let mut compared = parts?.concat();
    // The sort is stable, so each half keeps the order of the lists.
    compared.sort_by_key(Compared::is_same);
    Ok(compared)
}

/// Returns the answer of Portcullis to a wish.
fn answer(session: &Session, around: &ProcessEnv, wish: &Wish) -> anyhow::Result<Answer> {
    let asked = |action| -> anyhow::Result<Answer> {
        Ok(Answer::from(session.decide(&check::request(session, around, action)?)))
    };
    let text = |path: &Path| path.to_string_lossy().into_owned();
    match wish {
        Wish::Read(path) => asked(Action::Read { path: text(path) }),
        Wish::Write(path) => asked(Action::Write { path: text(path) }),
        Wish::Run(script) => asked(Action::Exec { script: script.clone() }),
        Wish::CommandRead(path) => Ok(in_command(&session.effective_policy().rules, path, FileRight::Read)),
        Wish::CommandWrite(path) => Ok(in_command(&session.effective_policy().rules, path, FileRight::Write)),
        Wish::Connect(host) => asked(connection(host)),
    }
}

/// Returns the answer to a command, by the rules and by the mounts that hide directories of the machine.
fn in_command(rules: &RuleSet, path: &Path, right: FileRight) -> Answer {
    let ruling = rules.file(path, right, Caller::Command);
    let is_of_the_base = rules.answer(path, right, Caller::Command).is_of_the_base();
    let is_hidden = is_of_the_base && HIDDEN_BY_DEFAULT.iter().any(|top| path.starts_with(top));
    let effect = if is_hidden { Effect::Deny } else { ruling.effect };
    let reason = if is_hidden { HIDDEN.to_owned() } else { ruling.reason };
    Answer { effect, rule: ruling.rule, reason }
}

fn connection(host: &str) -> Action {
    let parsed = portcullis_decision::pattern::HostName::parse(host);
    let host = parsed.unwrap_or_else(|_| Endpoint::Domain(host.to_owned()));
    Action::Connect { target: Target { host, port: PORT } }
}

impl From<Decision> for Answer {
    fn from(decision: Decision) -> Self {
        let cause = decision.cause();
        Self { effect: decision.effect(), rule: cause.rule.clone(), reason: cause.reason.clone() }
    }
}

impl Compared {
    fn is_same(&self) -> bool {
        self.old == self.new.effect
    }
}

pub(crate) fn to_json(compared: &[Compared]) -> Value {
    let one = |one: &Compared| {
        let (verb, what) = words(&one.wish, |path| path.display().to_string());
        json!({
            "action": verb, "what": what, "before": one.old.to_string(), "now": one.new.effect.to_string(),
            "same": one.is_same(), "rule": one.new.rule, "reason": one.new.reason,
        })
    };
    compared.iter().map(one).collect()
}

pub(crate) fn print(page: &mut Page, around: &ProcessEnv, title: &str, compared: &[Compared]) {
    let different: Vec<&Compared> = compared.iter().filter(|one| !one.is_same()).collect();
    let same = compared.len() - different.len();
    page.line(&format!("\n{title}: {} different, {same} the same", different.len()));
    let row = |one: &&Compared| {
        let (verb, what) = words(&one.wish, |file| path(around, file));
        let why = format!("{} [{}]", one.new.reason, one.new.rule);
        vec![
            cell(verb),
            cell(&what),
            tinted(&format!("{} -> {}", one.old, one.new.effect), tint(one)),
            tinted(&why, Tint::Faint),
        ]
    };
    page.table("  ", &different.iter().map(row).collect::<Vec<_>>());
    let same = compared.iter().filter(|one| one.is_same());
    let row = |one: &Compared| {
        let (verb, what) = words(&one.wish, |file| path(around, file));
        vec![cell(verb), cell(&what), tinted(&one.new.effect.to_string(), Tint::Faint)]
    };
    page.table("  ", &same.map(row).collect::<Vec<_>>());
    if different.iter().any(|one| {
        matches!(one.wish, Wish::Connect(_)) && one.old == Effect::Allow && one.new.effect == Effect::Ask
    }) {
        page.sentence(
            "  ",
            "to reach every host as before, set `\"unlistedHosts\": \"allow\"` in `network` of your settings",
        );
    }
}

/// Highlights an answer that became milder.
fn tint(one: &Compared) -> Tint {
    if one.new.effect < one.old { Tint::Bad } else { Tint::Open }
}

fn words(wish: &Wish, name: impl Fn(&Path) -> String) -> (&'static str, String) {
    match wish {
        Wish::Read(path) => ("read", name(path)),
        Wish::Write(path) => ("write", name(path)),
        Wish::Run(script) => ("exec", script.escape_debug().to_string()),
        Wish::CommandRead(path) => ("command reads", name(path)),
        Wish::CommandWrite(path) => ("command writes", name(path)),
        Wish::Connect(host) => ("connect", format!("{host}:{PORT}")),
    }
}
