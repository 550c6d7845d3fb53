//! `policy test`: runs the cases on the runtime that enforcement uses.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use portcullis_audit::PolicyLine;
use portcullis_text::escape;
use portcullis_workbench::{Report, Source, case, given, run as run_cases};
use serde_json::json;

use super::logged;
use super::project::{Component, cases_at};
use crate::args::policy::Test;
use crate::exit::{Exit, say};
use crate::output::{Page, Tint, counted, print_document, tinted};
use crate::process_env::ProcessEnv;

pub(super) fn run(test: &Test) -> crate::Outcome {
    let component = Component::open(&test.policy)?;
    if let Some(log) = &test.from_log {
        return write_cases(&component, log, &test.config);
    }
    let cases = match &test.cases {
        Some(path) => cases_at(path)?,
        None => component.cases()?,
    };
    if cases.is_empty() {
        bail!("there are no cases; name files under `[tests]` in `policy.toml`, or give `--cases`");
    }
    let runtime = super::runtime()?;
    let source = Source { component: &component.bytes, cases: &cases };
    let report = run_cases(&runtime, source, |file| {
        if !test.json {
            say(&format!("{} …", escape(file)));
        }
    })?;
    if let Some(file) = &test.junit {
        fs::write(file, junit(&component.name(), &report))
            .with_context(|| format!("writing `{}`", file.display()))?;
    }
    print(&report, test, &component.file)?;
    Ok(if report.failures.is_empty() { Exit::Done } else { Exit::Bad })
}

/// Prints the logged verdicts of a policy as cases.
fn write_cases(component: &Component, log: &Path, config: &str) -> crate::Outcome {
    let configuration = serde_json::from_str(config).context("reading `--config`")?;
    let (name, digest) = (component.name(), portcullis_packs::digest(&component.bytes));
    let mut text = given(&configuration);
    let mut left_out = 0_usize;
    for logged in logged::read(log)? {
        let is_its = |vote: &&PolicyLine| vote.digest == digest || vote.name == name;
        let Some(vote) = logged.votes.iter().find(is_its) else { continue };
        let written = match (&logged.context, logged.lacks(), vote.verdict.as_str()) {
            // A failure is no useful expectation.
            (_, _, "failed") | (_, Some(_), _) | (None, _, _) => None,
            (Some(context), None, verdict) => {
                case(&logged.name, &logged.request, context, verdict, &vote.rule)
            }
        };
        match written {
            Some(written) => text += &written,
            None => left_out += 1,
        }
    }
    if left_out > 0 {
        say(&format!(
            "left out, as they have no form as a case or are not whole: {}",
            counted(left_out, "decision")
        ));
    }
    print_document(&text)?;
    Ok(Exit::Done)
}

fn print(report: &Report, test: &Test, file: &Path) -> anyhow::Result<()> {
    let around = ProcessEnv::read()?;
    let mut page = Page::new(&around);
    if test.json {
        page.json(&json!({
            "component": file, "run": report.run, "failures": report.failures,
            "rules": report.rules, "rulesSeen": report.seen(), "rulesDeclared": report.rules.len(),
        }));
        page.print()?;
        return Ok(());
    }
    for failure in &report.failures {
        let head = format!("{}: {}", failure.file, failure.case);
        page.row("", &[tinted("✗", Tint::Bad), tinted(&head, Tint::Plain)], &[1]);
        page.line(&format!("    {}", escape(&failure.message)));
        for step in &failure.trace {
            page.line(&format!("    {}", escape(step)));
        }
    }
    let unseen: Vec<_> =
        report.rules.iter().filter(|(_, seen)| !**seen).map(|(rule, _)| escape(rule)).collect();
    if !unseen.is_empty() {
        page.line(&format!("no case sees: {}", unseen.join(", ")));
    }
    let tint = if report.failures.is_empty() { Tint::Good } else { Tint::Bad };
    let held = report.run.saturating_sub(report.failures.len());
    let sum = format!(
        "held: {held} of {}; seen: {} of {}",
        counted(report.run, "case"),
        report.seen(),
        counted(report.rules.len(), "rule")
    );
    page.row("", &[tinted(&sum, tint)], &[]);
    page.print()?;
    Ok(())
}

/// Returns the report as JUnit XML, for build servers.
fn junit(name: &str, report: &Report) -> String {
    let escape = |text: &str| {
        let text = escape(text);
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
    };
    let failures: String = report
        .failures
        .iter()
        .map(|failure| {
            format!(
                "  <testcase classname=\"{}\" name=\"{}\"><failure message=\"{}\"/></testcase>\n",
                escape(&failure.file),
                escape(&failure.case),
                escape(&failure.message)
            )
        })
        .collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\">\n{failures}</testsuite>\n",
        escape(name),
        report.run,
        report.failures.len()
    )
}
