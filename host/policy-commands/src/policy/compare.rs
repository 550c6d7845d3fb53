//! `policy replay` and `policy diff`: show which decisions would change.

use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::args::policy::{Diff, Replay};
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::{Page, Tint, cell, tinted};
use portcullis_policy_tools::{Comparison, Difference, Lacks, PolicyAnswer, ReplayWith};
use portcullis_text::counted;
use serde_json::json;

use super::progress::ProgressPrinter;

pub(super) fn replay(replay: Replay) -> exit::Outcome {
    let around = ProcessEnv::read()?;
    let with = ReplayWith {
        project: replay.sources.project,
        settings: replay.sources.settings,
        policies: replay.sources.policies,
    };
    let mut telling = ProgressPrinter::begin(replay.json);
    let progress = |done, total| telling.tell(|| format!("{done} of {total} decisions …"));
    let comparison = portcullis_policy_tools::replay(&around, &replay.log, with, progress)?;
    print(&around, &comparison, replay.json)?;
    Ok(ending(&comparison, replay.forbid_loosening))
}

pub(super) fn diff(diff: &Diff) -> exit::Outcome {
    let around = ProcessEnv::read()?;
    let mut telling = ProgressPrinter::begin(diff.json);
    let progress = |done, total| telling.tell(|| format!("{done} of {total} requests …"));
    let versions = [diff.old.as_path(), diff.new.as_path()];
    let comparison = portcullis_policy_tools::diff(&around, versions, &diff.config, &diff.logs, progress)?;
    print(&around, &comparison, diff.json)?;
    Ok(ending(&comparison, diff.forbid_loosening))
}

fn ending(comparison: &Comparison, forbid_loosening: bool) -> Exit {
    let loosens = comparison.differences.iter().any(|difference| difference.change.loosens);
    if forbid_loosening && loosens { Exit::Bad } else { Exit::Done }
}

fn print(around: &ProcessEnv, comparison: &Comparison, as_json: bool) -> anyhow::Result<()> {
    let Comparison { differences, total } = comparison;
    let mut page = Page::new(around);
    if as_json {
        for difference in differences {
            page.json(&json!(difference));
        }
        page.print()?;
        return Ok(());
    }
    let said = |said: &PolicyAnswer| tinted(&said.verdict, Tint::for_word(&said.verdict));
    let rows: Vec<_> = differences
        .iter()
        .map(|Difference { change, lacks }| {
            let mark =
                if change.loosens { tinted("looser", Tint::Bad) } else { tinted("stricter", Tint::Good) };
            let rule = format!("{} → {}", change.old.rule, change.new.rule);
            let beside = change.beside.map(|beside| beside.to_string());
            let notes: Vec<&str> = beside.as_deref().into_iter().chain(lacks.map(Lacks::text)).collect();
            let (name, lacks) = (cell(&change.name), cell(&notes.join("; ")));
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
        counted(*total, "request"),
        count("allow"),
        count("ask"),
        count("deny") + count("failed"),
    ));
    page.print()?;
    Ok(())
}
