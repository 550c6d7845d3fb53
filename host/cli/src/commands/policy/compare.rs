//! `policy replay` and `policy diff`: what would be decided otherwise.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use portcullis_audit::Record;
use portcullis_decision::context::AgentInfo;
use portcullis_decision::{Context, Request};
use portcullis_session::Nobody;
use portcullis_workbench::{Change, Item, Said, changes};
use serde_json::json;

use super::bench::corpus;
use super::project::Component;
use crate::args::policy::{Diff, Replay};
use crate::exit::{Exit, say};
use crate::page::{Page, Tint, cell, tinted};
use crate::surroundings::Surroundings;
use crate::wire::{self, Purpose, Wanted};

/// What a log says of one decision.
struct Logged {
    name: String,
    request: Request,
    said: Said,
    at_ms: u64,
}

pub(super) fn replay(replay: Replay) -> crate::Outcome {
    let around = Surroundings::read()?;
    let logged = read_log(&replay.log)?;
    let wanted = Wanted {
        project: replay.sources.project.unwrap_or_else(|| around.cwd.clone()),
        settings: replay.sources.settings,
        policies: replay.sources.policies,
        agent: AgentInfo { name: "portcullis".to_owned(), ..AgentInfo::default() },
        trusted: false,
        interactive: true,
        purpose: Purpose::Judge,
        inmate: portcullis_session::Inmate::Commands,
    };
    let ground = wire::ground(&around, &wanted)?;
    let wired = wire::session(&around, &wanted, ground, Arc::new(Nobody))?;
    let total = logged.len();
    let mut differences = Vec::new();
    for logged in logged {
        let decision = wired.session.decide(&logged.request);
        let cause = decision.cause();
        let new = Said::new(&decision.effect().to_string(), &cause.rule, &cause.reason);
        differences.extend(Change::between(logged.name, logged.said, new));
    }
    print(&around, &differences, total, replay.json)?;
    Ok(ending(&differences, replay.forbid_loosening))
}

pub(super) fn diff(diff: &Diff) -> crate::Outcome {
    let around = Surroundings::read()?;
    let runtime = super::runtime()?;
    let (old, new) = (Component::open(&diff.old)?, Component::open(&diff.new)?);
    let load = |component: &Component| {
        runtime
            .load(&component.name(), &component.bytes, &diff.config)
            .with_context(|| format!("loading `{}`", component.file.display()))
    };
    let mut items = corpus(&[&old, &new])?;
    for log in &diff.logs {
        let context = context(&around)?;
        items.extend(read_log(log)?.into_iter().map(|logged| Item {
            name: logged.name,
            request: logged.request,
            context: Context {
                now: u32::try_from(logged.at_ms / 1000).unwrap_or(u32::MAX),
                ..context.clone()
            },
        }));
    }
    let (old, new) = (load(&old)?, load(&new)?);
    let differences: Vec<Change> = changes(&old, &new, &items).collect();
    print(&around, &differences, items.len(), diff.json)?;
    Ok(ending(&differences, diff.forbid_loosening))
}

/// The surroundings of this project, for requests of logs, which do not hold theirs.
fn context(around: &Surroundings) -> anyhow::Result<Context> {
    let wanted = Wanted {
        project: around.cwd.clone(),
        settings: None,
        policies: Vec::new(),
        agent: AgentInfo { name: "pi".to_owned(), ..AgentInfo::default() },
        trusted: false,
        interactive: true,
        purpose: Purpose::Judge,
        inmate: portcullis_session::Inmate::Commands,
    };
    let ground = wire::ground(around, &wanted)?;
    Ok(wire::context(around, &wanted, &ground, "replay"))
}

fn read_log(log: &Path) -> anyhow::Result<Vec<Logged>> {
    let lines =
        portcullis_audit::read(log).with_context(|| format!("reading the log `{}`", log.display()))?;
    let mut logged = Vec::new();
    let mut unread = 0_usize;
    for line in lines {
        let line = line.with_context(|| format!("reading the log `{}`", log.display()))?;
        let Record::Verdict(verdict) = line.record else { continue };
        // A request of another version, or one whose masked parts no longer fit.
        let Ok(request) = serde_json::from_value::<Request>(verdict.request) else {
            unread += 1;
            continue;
        };
        logged.push(Logged {
            name: format!("{}:{}", line.session, line.sequence),
            request,
            said: Said::new(&verdict.effect, &verdict.rule, &verdict.reason),
            at_ms: verdict.at_ms,
        });
    }
    if unread > 0 {
        say(&format!("{unread} decisions of the log cannot be taken again and are left out"));
    }
    Ok(logged)
}

fn ending(differences: &[Change], forbid_loosening: bool) -> Exit {
    let loosens = differences.iter().any(|change| change.loosens);
    if forbid_loosening && loosens { Exit::Bad } else { Exit::Done }
}

fn print(around: &Surroundings, differences: &[Change], total: usize, as_json: bool) -> anyhow::Result<()> {
    let mut page = Page::new(around);
    if as_json {
        for change in differences {
            page.json(&json!(change));
        }
        page.print()?;
        return Ok(());
    }
    let said = |said: &Said| tinted(&said.verdict, Tint::of(&said.verdict));
    let rows: Vec<_> = differences
        .iter()
        .map(|change| {
            let mark =
                if change.loosens { tinted("looser", Tint::Bad) } else { tinted("stricter", Tint::Good) };
            let rule = format!("{} → {}", change.old.rule, change.new.rule);
            vec![mark, said(&change.old), cell("→"), said(&change.new), cell(&rule), cell(&change.name)]
        })
        .collect();
    page.table("", &rows);
    let count = |verdict: &str| differences.iter().filter(|change| change.new.verdict == verdict).count();
    page.line(&format!(
        "{} of {total} requests are answered otherwise: {} newly allowed, {} newly asked, {} newly denied",
        differences.len(),
        count("allow"),
        count("ask"),
        count("deny") + count("failed"),
    ));
    page.print()?;
    Ok(())
}
