//! `policy lint`: finds violations of the contract.

use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::args::policy::Lint;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::{Page, Tint, cell, tinted};
use portcullis_policy_tools::{Component, Finding, Severity, lint, manifest_findings};
use serde_json::json;

pub(super) fn run(args: &Lint) -> exit::Outcome {
    let component = Component::open(&args.policy)?;
    let runtime = portcullis_policy_tools::runtime()?;
    let policy = component.load_whole(&runtime, &args.config)?;
    let mut found = lint(&policy);
    found.extend(manifest_findings(&component, &policy));
    found.sort_by_key(|finding| std::cmp::Reverse(finding.gravity));
    let least = if args.strict { Severity::Warning } else { Severity::Error };
    let bad = found.iter().any(|finding| finding.gravity >= least);
    print(args, &found)?;
    Ok(if bad { Exit::Bad } else { Exit::Done })
}

fn print(args: &Lint, found: &[Finding]) -> anyhow::Result<()> {
    let around = ProcessEnv::read()?;
    let mut page = Page::new(&around);
    if args.json {
        page.json(&json!({ "findings": found }));
    } else {
        let rows: Vec<_> = found
            .iter()
            .map(|finding| {
                let (word, tint) = match finding.gravity {
                    Severity::Error => ("error", Tint::Bad),
                    Severity::Warning => ("warning", Tint::Open),
                    Severity::Note => ("note", Tint::Faint),
                };
                vec![tinted(word, tint), cell(finding.check), cell(&finding.message)]
            })
            .collect();
        page.table("", &rows);
        if found.iter().all(|finding| finding.gravity == Severity::Note) {
            page.row("", &[tinted("nothing breaks the contract", Tint::Good)], &[]);
        }
    }
    page.print()?;
    Ok(())
}
