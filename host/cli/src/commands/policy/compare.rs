//! `policy replay` and `policy diff`: show which decisions would change.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use portcullis_decision::context::AgentInfo;
use portcullis_decision::{Context, path_text};
use portcullis_session::Nobody;
use portcullis_text::escape;
use portcullis_workbench::{Change, Item, Said, changes};
use serde::Serialize;
use serde_json::json;

use super::bench::corpus;
use super::logged::{self, Lacks};
use super::progress::Telling;
use super::project::Component;
use crate::args::policy::{Diff, Replay};
use crate::bootstrap::{self, Purpose, Wanted, Wired};
use crate::exit::{Exit, say};
use crate::output::{Page, Tint, cell, counted, tinted};
use crate::process_env::{ProcessEnv, random_name};

/// Number of requests between two progress reports.
const PART: usize = 64;

/// A request with a different decision.
#[derive(Debug, Serialize)]
struct Difference {
    #[serde(flatten)]
    change: Change,
    /// The parts missing in the log, which may explain the difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    lacks: Option<Lacks>,
}

pub(super) fn replay(replay: Replay) -> crate::Outcome {
    let around = ProcessEnv::read()?;
    let logged = logged::read(&replay.log)?;
    let wanted = Wanted {
        settings: replay.sources.settings,
        policies: replay.sources.policies,
        project: replay.sources.project.unwrap_or_else(|| around.cwd.clone()),
        ..usual(&around, "portcullis")
    };
    let loaded = bootstrap::load_settings(&around, &wanted)?;
    let workspace = path_text::encode(&loaded.resolved.workspace);
    let now = bootstrap::context(&around, &wanted, &loaded, "replay");
    let total = logged.len();
    if total == 0 {
        bail!("the log `{}` holds no decision that can be taken again", replay.log.display());
    }
    let mut telling = Telling::begin(replay.json);
    let mut differences = Vec::new();
    // Rules depend on the context, which seldom changes within a log.
    let mut judge: Option<(Context, Wired)> = None;
    for (done, logged) in logged.into_iter().enumerate() {
        telling.tell(|| format!("{done} of {total} decisions …"));
        let context = logged.context_or(&now);
        let facts = Context { now: 0, grants: Vec::new(), ..context.clone() };
        if judge.as_ref().is_none_or(|(known, _)| *known != facts) {
            tell_project(&facts, &workspace);
            let loaded = bootstrap::load_settings(&around, &wanted)?;
            let (id, nobody) = (random_name()?, Arc::new(Nobody));
            judge =
                Some((facts.clone(), bootstrap::session_in(&around, &wanted, loaded, nobody, &id, facts)?));
        }
        let Some((_, wired)) = &judge else { continue };
        let decision = wired.session.decide_in(&logged.request, context);
        let cause = decision.cause();
        let new = Said::new(&decision.effect().to_string(), &cause.rule, &cause.reason);
        let lacks = logged.lacks();
        let change = Change::between(logged.name, logged.said, new);
        differences.extend(change.map(|change| Difference { change, lacks }));
    }
    print(&around, &differences, total, replay.json)?;
    Ok(ending(&differences, replay.forbid_loosening))
}

/// Says whose settings decide: a log can be replayed in any project.
fn tell_project(facts: &Context, workspace: &str) {
    let Some(root) = facts.workspace.roots.first().filter(|root| *root != workspace) else { return };
    say(&escape(&format!(
        "the log is of the project `{root}`, and the settings are those of `{workspace}`; name another with `--project`"
    )));
}

pub(super) fn diff(diff: &Diff) -> crate::Outcome {
    let around = ProcessEnv::read()?;
    let runtime = super::runtime()?;
    let (old, new) = (Component::open(&diff.old)?, Component::open(&diff.new)?);
    let load = |component: &Component| {
        runtime
            .load(&component.name(), &component.bytes, &diff.config)
            .with_context(|| format!("loading `{}`", component.file.display()))
    };
    let mut items = corpus(&[&old, &new])?;
    let mut lacks = BTreeMap::new();
    for log in &diff.logs {
        let now = context(&around)?;
        for logged in logged::read(log)? {
            let context = logged.context_or(&now);
            lacks.extend(logged.lacks().map(|lacks| (logged.name.clone(), lacks)));
            items.push(Item { name: logged.name, request: logged.request, context });
        }
    }
    // An empty comparison must not look like a comparison without differences.
    if items.is_empty() {
        bail!("there is nothing to compare: neither policy carries cases; name a log with `--log`");
    }
    let (old, new) = (load(&old)?, load(&new)?);
    let lacking = |change: Change| Difference { lacks: lacks.get(&change.name).copied(), change };
    let mut telling = Telling::begin(diff.json);
    let mut differences = Vec::new();
    for (place, part) in items.chunks(PART).enumerate() {
        telling.tell(|| format!("{} of {} requests …", place * PART, items.len()));
        differences.extend(changes(&old, &new, part).map(lacking));
    }
    print(&around, &differences, items.len(), diff.json)?;
    Ok(ending(&differences, diff.forbid_loosening))
}

/// Returns the setup of a session that only decides, in the current directory.
fn usual(around: &ProcessEnv, agent: &str) -> Wanted {
    Wanted {
        project: around.cwd.clone(),
        settings: None,
        policies: Vec::new(),
        agent: AgentInfo { name: agent.to_owned(), ..AgentInfo::default() },
        trusted: false,
        interactive: true,
        purpose: Purpose::Judge,
        inmate: portcullis_session::Inmate::Commands,
    }
}

/// Returns the context of this directory, for requests without one.
pub(super) fn context(around: &ProcessEnv) -> anyhow::Result<Context> {
    let wanted = usual(around, "pi");
    let loaded = bootstrap::load_settings(around, &wanted)?;
    Ok(bootstrap::context(around, &wanted, &loaded, "replay"))
}

fn ending(differences: &[Difference], forbid_loosening: bool) -> Exit {
    let loosens = differences.iter().any(|difference| difference.change.loosens);
    if forbid_loosening && loosens { Exit::Bad } else { Exit::Done }
}

fn print(around: &ProcessEnv, differences: &[Difference], total: usize, as_json: bool) -> anyhow::Result<()> {
    let mut page = Page::new(around);
    if as_json {
        for difference in differences {
            page.json(&json!(difference));
        }
        page.print()?;
        return Ok(());
    }
    let said = |said: &Said| tinted(&said.verdict, Tint::of(&said.verdict));
    let rows: Vec<_> = differences
        .iter()
        .map(|Difference { change, lacks }| {
            let mark =
                if change.loosens { tinted("looser", Tint::Bad) } else { tinted("stricter", Tint::Good) };
            let rule = format!("{} → {}", change.old.rule, change.new.rule);
            let lacks = lacks.map_or("", Lacks::text);
            let (name, lacks) = (cell(&change.name), cell(lacks));
            vec![mark, said(&change.old), cell("→"), said(&change.new), cell(&rule), name, lacks]
        })
        .collect();
    page.table("", &rows);
    let count = |verdict: &str| {
        differences.iter().filter(|difference| difference.change.new.verdict == verdict).count()
    };
    page.line(&format!(
        "answered otherwise: {} of {}; {} newly allowed, {} newly asked, {} newly denied",
        differences.len(),
        counted(total, "request"),
        count("allow"),
        count("ask"),
        count("deny") + count("failed"),
    ));
    page.print()?;
    Ok(())
}
