//! `policy bench`: measures how long decisions take.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::args::policy::Bench;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::{Page, cell};
use portcullis_policy_tools::{Component, Figures, Item, Simulator, measure, requests_of, runtime};
use portcullis_text::escape;
use serde_json::json;

use super::progress::ProgressPrinter;

pub(super) fn run(bench: &Bench) -> exit::Outcome {
    let runtime = runtime()?;
    let first = Component::open(&bench.policy)?;
    let second = bench.other.as_deref().map(Component::open).transpose()?;
    let components: Vec<&Component> = std::iter::once(&first).chain(&second).collect();
    let corpus = requests_of(&components)?;
    let policies = components
        .iter()
        .map(|component| Ok(Simulator::new(Arc::new(component.load(&runtime, &bench.config)?))))
        .collect::<anyhow::Result<Vec<_>>>()?;
    // Each request must be one that all policies judge, by a verdict or by a rule.
    let wanted: Vec<Item> =
        corpus.into_iter().filter(|item| policies.iter().all(|policy| policy.decides(item))).collect();
    if wanted.is_empty() {
        bail!(
            "no case has a request that a verdict or a rule decides; write one, because the requests of the cases are \
             measured"
        );
    }
    let rounds = usize::try_from(bench.rounds)?;
    let mut telling = ProgressPrinter::begin(bench.json);
    let progress = |round| telling.tell(|| format!("{round} of {rounds} rounds …"));
    let figures = measure(&policies, &wanted, rounds, progress).context("measuring")?;
    print(bench, &components, &figures, wanted.len())
}

fn print(bench: &Bench, components: &[&Component], figures: &[Figures], requests: usize) -> exit::Outcome {
    let around = ProcessEnv::read()?;
    let mut page = Page::new(&around);
    let ratio = match figures {
        [one, two] if one.p50 > 0.0 => Some(two.p50 / one.p50),
        _ => None,
    };
    if bench.json {
        let all: Vec<_> = components
            .iter()
            .zip(figures)
            .map(|(component, figures)| json!({ "component": component.file, "microseconds": figures }))
            .collect();
        page.json(&json!({ "requests": requests, "policies": all, "p50Ratio": ratio }));
    } else {
        let number = |number: f64| cell(&format!("{number:.1}"));
        let mut rows = vec![["", "calls", "p50 µs", "p99 µs", "max µs"].map(cell).to_vec()];
        rows.extend(components.iter().zip(figures).map(|(component, figures)| {
            vec![
                cell(&escape(&component.file.display().to_string())),
                cell(&figures.calls.to_string()),
                number(figures.p50),
                number(figures.p99),
                number(figures.max),
            ]
        }));
        page.table("", &rows);
        if let Some(ratio) = ratio {
            page.line(&format!("the second takes {ratio:.2} times as long (p50), over {requests} requests"));
        }
    }
    page.print()?;
    Ok(Exit::Done)
}
