//! What a rebase or a series of picks that has stopped goes on with.
//!
//! Git merges with `git-merge-STRATEGY`, which may be any program on PATH or, with a slash in it, in the working tree.

use super::config_text::Entry;
use super::judge::{Finding, new_lines};

/// The strategies that git has built in.
const STRATEGIES: [&[u8]; 6] = [b"octopus", b"ort", b"ours", b"recursive", b"resolve", b"subtree"];

const WHY: &str = "a program that git merges with when it goes on";

/// The lines of `strategy` that name a program and did not stand there before.
pub(crate) fn strategy(previous: Option<&[u8]>, new: &[u8]) -> Vec<Finding> {
    new_lines(previous, new, programs, WHY)
}

fn programs(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let lines = text.split(|byte| *byte == b'\n').enumerate();
    let lines = lines.map(|(index, line)| (index + 1, line.trim_ascii()));
    lines.filter(|(_, line)| !line.is_empty() && !STRATEGIES.contains(line))
}

/// The entries of `sequencer/opts` that name a program.
pub(crate) fn options(entries: &[Entry]) -> Vec<Finding> {
    let is_program = |entry: &&Entry| {
        entry.name == b"options.strategy"
            && entry.value.as_deref().is_none_or(|value| !STRATEGIES.contains(&value))
    };
    let finding = |entry: &Entry| Finding {
        line: entry.line,
        key: Some("options.strategy".to_owned()),
        why: format!("names {WHY}"),
    };
    entries.iter().filter(is_program).map(finding).collect()
}
