//! `policy fuzz`: sends random requests to a policy.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::args::policy::Fuzz;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::{Page, Tint, tinted};
use portcullis_policy_tools::{Component, Fuzzed, fuzz};
use portcullis_text::{counted, escape};
use serde_json::json;

use super::progress::ProgressPrinter;

pub(super) fn run(args: &Fuzz) -> exit::Outcome {
    let component = Component::open(&args.policy)?;
    let policy = component.load_whole(&portcullis_policy_tools::runtime()?, &args.config)?;
    let seed = match args.seed {
        Some(seed) => seed,
        None => getrandom::u64().context("asking the system for a seed")?,
    };
    let (started, time) = (Instant::now(), Duration::from_secs(args.seconds.into()));
    let mut telling = ProgressPrinter::begin(args.json);
    let fuzzed = fuzz(&policy, seed, |run| {
        telling.tell(|| format!("{} …", counted(run, "request")));
        args.runs.map_or(started.elapsed() < time, |runs| run < runs)
    });
    print(args, seed, &fuzzed)?;
    Ok(if fuzzed.found.is_empty() { Exit::Done } else { Exit::Bad })
}

fn print(args: &Fuzz, seed: u64, fuzzed: &Fuzzed) -> anyhow::Result<()> {
    let around = ProcessEnv::read()?;
    let mut page = Page::new(&around);
    let Fuzzed { run, verdicts: [allow, ask, deny, abstain], found } = fuzzed;
    if args.json {
        page.json(&json!({
            "seed": seed, "run": run, "found": found,
            "verdicts": { "allow": allow, "ask": ask, "deny": deny, "abstain": abstain },
        }));
        page.print()?;
        return Ok(());
    }
    for misstep in found {
        page.row("", &[tinted("✗", Tint::Bad), tinted(&misstep.message, Tint::Plain)], &[1]);
        page.line(&format!("    {}", escape(&json!(misstep.request).to_string())));
    }
    let tint = if found.is_empty() { Tint::Good } else { Tint::Bad };
    let sum = format!(
        "{}: {allow} allowed, {ask} asked, {deny} denied, {abstain} without an opinion; {} found (--seed {seed})",
        counted(*run, "request"),
        found.len()
    );
    page.row("", &[tinted(&sum, tint)], &[]);
    page.print()?;
    Ok(())
}
