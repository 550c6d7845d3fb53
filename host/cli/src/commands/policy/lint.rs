//! `policy lint`: finds violations of the contract.

use anyhow::Context as _;
use portcullis_workbench::{Finding, Gravity, lint};
use serde_json::json;

use super::project::Component;
use crate::args::policy::Lint;
use crate::exit::Exit;
use crate::output::{Page, Tint, cell, tinted};
use crate::process_env::ProcessEnv;

pub(super) fn run(args: &Lint) -> crate::Outcome {
    let component = Component::open(&args.policy)?;
    let runtime = super::runtime()?;
    let policy = runtime
        .load(&component.name(), &component.bytes, &args.config)
        .with_context(|| format!("loading `{}`", component.file.display()))?;
    let mut found = lint(&policy);
    found.extend(manifest(&component, policy.description()));
    found.sort_by_key(|finding| std::cmp::Reverse(finding.gravity));
    let least = if args.strict { Gravity::Warning } else { Gravity::Error };
    let bad = found.iter().any(|finding| finding.gravity >= least);
    print(args, &found)?;
    Ok(if bad { Exit::Bad } else { Exit::Done })
}

/// Returns the differences between the manifest and the component.
fn manifest(component: &Component, said: &portcullis_policy_runtime::Description) -> Vec<Finding> {
    let Some(pack) = &component.pack else {
        return vec![Finding {
            gravity: Gravity::Note,
            check: "pack.none",
            message: "it carries no manifest; `portcullis policy build` puts one into it".to_owned(),
        }];
    };
    let about = &pack.manifest.policy;
    let pairs = [("id", &about.id, &said.id), ("version", &about.version, &said.version)];
    let different = pairs.into_iter().filter(|(_, one, two)| one != two);
    different
        .map(|(what, one, two)| Finding {
            gravity: Gravity::Error,
            check: "pack.differs",
            message: format!("the {what} is `{one}` in the manifest and `{two}` in `describe`"),
        })
        .collect()
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
                    Gravity::Error => ("error", Tint::Bad),
                    Gravity::Warning => ("warning", Tint::Open),
                    Gravity::Note => ("note", Tint::Faint),
                };
                vec![tinted(word, tint), cell(finding.check), cell(&finding.message)]
            })
            .collect();
        page.table("", &rows);
        if found.iter().all(|finding| finding.gravity == Gravity::Note) {
            page.row("", &[tinted("nothing breaks the contract", Tint::Good)], &[]);
        }
    }
    page.print()?;
    Ok(())
}
