//! `policy test`: runs the cases on the runtime that enforcement uses.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::streams::say;
use portcullis_command_line::args::policy::Test;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::{Page, Tint, print_document, tinted};
use portcullis_policy_runtime::LogLine;
use portcullis_policy_tools::{Component, Report, Source, cases_at, cases_of_log, junit, run as run_cases};
use portcullis_text::{counted, escape};
use serde_json::json;

pub(super) fn run(test: &Test) -> exit::Outcome {
    let component = Component::open(&test.policy)?;
    if let Some(log) = &test.from_log {
        let cases = cases_of_log(&component, log, &test.config)?;
        print_document(&cases)?;
        return Ok(Exit::Done);
    }
    let cases = match &test.cases {
        Some(path) => cases_at(path)?,
        None => component.cases()?,
    };
    if cases.is_empty() {
        bail!("there are no cases; name files under `[tests]` in `policy.toml`, or give `--cases`");
    }
    let runtime = portcullis_policy_tools::runtime()?;
    let capabilities = component.capabilities();
    let text = component.text.as_ref();
    let source = Source { component: &component.bytes, cases: &cases, capabilities, text };
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
    for (file, case, lines) in report.printed.iter().filter(|_| test.verbose) {
        page.row("", &[tinted("✓", Tint::Good), tinted(&format!("{file}: {case}"), Tint::Plain)], &[1]);
        printed(&mut page, lines);
    }
    for failure in &report.failures {
        let head = format!("{}: {}", failure.file, failure.case);
        page.row("", &[tinted("✗", Tint::Bad), tinted(&head, Tint::Plain)], &[1]);
        page.line(&format!("    {}", escape(&failure.message)));
        for step in &failure.trace {
            page.line(&format!("    {}", escape(step)));
        }
        printed(&mut page, &failure.printed);
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

/// Shows what a policy printed in a case.
fn printed(page: &mut Page, lines: &[LogLine]) {
    for line in lines {
        page.line(&format!("    | {}", escape(&line.message)));
    }
}
