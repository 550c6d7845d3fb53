//! `portcullis audit stats`: statistics of the log.

use std::collections::BTreeMap;

use portcullis_audit::{Stats, read_all};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::{Cell, Page, Tint, cell, tinted};
use portcullis_text::utc;

use super::logs::directory;

/// Maximum number of rules to print; the JSON output has all of them.
const MOST_RULES: usize = 15;

pub(super) fn run(around: &ProcessEnv, as_json: bool) -> exit::Outcome {
    let mut stats = Stats::default();
    for file in directory(around).files()? {
        stats.add(read_all(&file.path)?);
    }
    let mut page = Page::new(around);
    if as_json {
        page.json(&serde_json::to_value(&stats)?);
    } else {
        human(&mut page, &stats);
    }
    page.print()?;
    Ok(Exit::Done)
}

fn human(page: &mut Page, stats: &Stats) {
    let (Some(first), Some(last)) = (stats.first_at_ms, stats.last_at_ms) else {
        page.line("nothing has been decided yet");
        return;
    };
    let mut rows = vec![
        pair("logs", &stats.logs.to_string()),
        pair("from", &utc(first)),
        pair("to", &utc(last)),
        pair("decisions", &counts(&stats.effects)),
        pair("outcomes", &counts(&stats.outcomes)),
        pair("without outcome", &stats.open.to_string()),
        pair(
            "time to decide",
            &format!("half within {} µs, longest {} µs", stats.median_us, stats.longest_us),
        ),
    ];
    if !stats.answered.is_empty() {
        rows.push(pair("answered by", &counts(&stats.answered)));
    }
    if stats.unreadable > 0 {
        let text = format!("{} lines; see `portcullis audit verify`", stats.unreadable);
        rows.push(vec![tinted("unreadable", Tint::Bad), cell(&text)]);
    }
    page.table("", &rows);
    page.line("\nby action");
    let row = |(kind, effects): (&String, &BTreeMap<String, u64>)| vec![cell(kind), cell(&counts(effects))];
    page.table("  ", &stats.actions.iter().map(row).collect::<Vec<_>>());
    page.line("\nby policy");
    let row = |(name, policy): (&String, &portcullis_audit::PolicyStats)| {
        vec![cell(name), cell(&counts(&policy.verdicts)), cell(&format!("{} µs in all", policy.total_us))]
    };
    page.table("  ", &stats.policies.iter().map(row).collect::<Vec<_>>());
    page.line("\nby rule");
    let row = |rule: &portcullis_audit::RuleCount| {
        vec![
            cell(&format!("{:>6}", rule.count)),
            tinted(&rule.effect, Tint::for_word(&rule.effect)),
            cell(&rule.rule),
            tinted(&rule.policy, Tint::Faint),
        ]
    };
    page.table("  ", &stats.rules.iter().take(MOST_RULES).map(row).collect::<Vec<_>>());
}

fn pair(name: &str, value: &str) -> Vec<Cell> {
    vec![cell(name), cell(value)]
}

fn counts(counts: &BTreeMap<String, u64>) -> String {
    counts.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}
