//! Files of an interrupted rebase, or series of picks or patches, which determine how it continues.
//!
//! Git merges with `git-merge-STRATEGY`, which may be any program in PATH or, if it contains a slash, in the working
//! tree. Options of `git apply` and of strategies that are scripts can name files that git then writes
//! (`--build-fake-ancestor`, `--index-output`), so only options without file names pass.

use super::config_text::Entry;
use super::finding::{Finding, new_lines};
use super::value_shape::Shape;

/// The strategies that are built into git.
const STRATEGIES: [&[u8]; 6] = [b"octopus", b"ort", b"ours", b"recursive", b"resolve", b"subtree"];

/// One-word options of a strategy, from git-merge(1).
const MERGE_OPTIONS: [&str; 13] = [
    "find-renames",
    "histogram",
    "ignore-all-space",
    "ignore-cr-at-eol",
    "ignore-space-at-eol",
    "ignore-space-change",
    "no-renames",
    "no-renormalize",
    "ours",
    "patience",
    "renormalize",
    "subtree",
    "theirs",
];

const ALGORITHMS: &[&str] = &["default", "histogram", "minimal", "myers", "patience"];
const WHITESPACE: &[&str] = &["error", "error-all", "fix", "nowarn", "strip", "warn"];

/// Entries of `sequencer/opts` whose value is only yes, no, a number or a key of the user.
const PLAIN_OPTIONS: [&[u8]; 13] = [
    b"options.allow-empty",
    b"options.allow-empty-message",
    b"options.allow-ff",
    b"options.allow-rerere-auto",
    b"options.default-msg-cleanup",
    b"options.drop-redundant-commits",
    b"options.edit",
    b"options.gpg-sign",
    b"options.keep-redundant-commits",
    b"options.mainline",
    b"options.no-commit",
    b"options.record-origin",
    b"options.signoff",
];

const PROGRAM: &str = "a program with which git merges when it continues";
const MERGES: &str = "a merge option that is not in the list of harmless ones";
const APPLIES: &str = "an option for applying patches that may name a file to write";
const RECORDS: &str = "a file that git reads, copies into the repository or writes when it remembers how a conflict was \
     resolved, also through a link";

/// Returns the lines of `strategy` that name a program and were not there before.
pub(crate) fn strategy(previous: Option<&[u8]>, new: &[u8]) -> Vec<Finding> {
    new_lines(previous, new, |text| lines(text, |line| STRATEGIES.contains(&line)), PROGRAM)
}

/// Returns the lines of `strategy_opts` with unknown options that were not there before.
pub(crate) fn strategy_options(previous: Option<&[u8]>, new: &[u8]) -> Vec<Finding> {
    let is_known = |word: &str| is_merge_option(word.strip_prefix("--").unwrap_or(word));
    new_lines(previous, new, |text| lines(text, |line| has_only(line, is_known)), MERGES)
}

/// Returns the lines of `apply-opt` with unknown options that were not there before.
pub(crate) fn apply_options(previous: Option<&[u8]>, new: &[u8]) -> Vec<Finding> {
    new_lines(previous, new, |text| lines(text, |line| has_only(line, is_apply_option)), APPLIES)
}

/// Returns the entries of `MERGE_RR` that were not there before.
///
/// Checking for plain names is not enough: git opens these files through links, which may be created after the
/// judgement.
pub(crate) fn conflicts(previous: Option<&[u8]>, new: &[u8]) -> Vec<Finding> {
    new_lines(previous, new, records, RECORDS)
}

/// Returns the numbered records between NUL bytes.
fn records(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let records = text.split(|byte| *byte == 0).enumerate();
    records.map(|(index, record)| (index + 1, record)).filter(|(_, record)| !record.is_empty())
}

/// Returns the entries of `sequencer/opts` that name a program, or give a strategy unknown options.
pub(crate) fn options(entries: &[Entry]) -> Vec<Finding> {
    let why = |entry: &Entry| {
        let value = entry.value.as_deref().unwrap_or_default();
        match entry.name.as_slice() {
            b"options.strategy" => (!STRATEGIES.contains(&value)).then_some(PROGRAM),
            b"options.strategy-option" => {
                let is_known = std::str::from_utf8(value).is_ok_and(is_merge_option);
                (!is_known).then_some(MERGES)
            }
            name => (!PLAIN_OPTIONS.contains(&name)).then_some(MERGES),
        }
    };
    let finding = |entry: &Entry| {
        let key = Some(String::from_utf8_lossy(&entry.name).escape_debug().to_string());
        Some(Finding { line: entry.line, key, why: format!("names {}", why(entry)?) })
    };
    entries.iter().filter_map(finding).collect()
}

/// Returns the numbered lines that are neither empty nor `known`.
fn lines(text: &[u8], known: impl Fn(&[u8]) -> bool) -> impl Iterator<Item = (usize, &[u8])> {
    let lines = text.split(|byte| *byte == b'\n').enumerate();
    let lines = lines.map(|(index, line)| (index + 1, line.trim_ascii()));
    lines.filter(move |(_, line)| !line.is_empty() && !known(line))
}

/// Returns true if all words of a line, each quoted or not, are `known`. Words with other quoting are unknown.
fn has_only(line: &[u8], known: impl Fn(&str) -> bool) -> bool {
    let Ok(line) = std::str::from_utf8(line) else { return false };
    line.split_ascii_whitespace().all(|word| {
        let quoted = |quote: char| word.strip_prefix(quote)?.strip_suffix(quote);
        let word = quoted('\'').or_else(|| quoted('"')).unwrap_or(word);
        !word.contains(['\'', '"', '\\']) && known(word)
    })
}

fn is_merge_option(option: &str) -> bool {
    match option.split_once('=') {
        None => MERGE_OPTIONS.contains(&option),
        Some(("diff-algorithm", value)) => ALGORITHMS.contains(&value),
        Some(("find-renames" | "rename-threshold", value)) => {
            is(Shape::Number, value.strip_suffix('%').unwrap_or(value))
        }
        Some(("subtree", value)) => is(Shape::PathBelow, value),
        Some(_) => false,
    }
}

fn is_apply_option(option: &str) -> bool {
    match option.split_once('=') {
        None => {
            let digits = option.strip_prefix("-p").or_else(|| option.strip_prefix("-C"));
            ["--ignore-space-change", "--ignore-whitespace", "--reject"].contains(&option)
                || digits.is_some_and(|digits| is(Shape::Number, digits))
        }
        Some(("--whitespace", value)) => WHITESPACE.contains(&value),
        Some(("--directory", value)) => is(Shape::PathBelow, value),
        Some(("--exclude" | "--include", value)) => is(Shape::Paths, value),
        Some(_) => false,
    }
}

fn is(shape: Shape, value: &str) -> bool {
    shape.admits(Some(value.as_bytes()))
}
