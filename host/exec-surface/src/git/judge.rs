//! Judges the content of git's own files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::config_text::{self, Entry};
use super::content::Content;
use super::finding::{Finding, Judgement, asks, shown};
use super::value_shape::{Shape, is_remote_name};
use super::{attributes, index, interrupted, keys, pointers, reasons, rebase_todo};
use crate::site::Site;

/// Judges the text `new` that is to replace `previous` at `path` (absolute, links followed).
///
/// Existing settings are the user's: a key with the same values as before passes, whatever its effect.
#[must_use]
pub fn judge(
    content: Content,
    path: &Path,
    previous: Option<&[u8]>,
    new: &[u8],
    site: &Site<'_>,
) -> Judgement {
    if previous == Some(new) {
        return Judgement::Harmless;
    }
    if new.len() > content.longest() {
        return Judgement::Unreadable(format!("it is longer than {} bytes", content.longest()));
    }
    match content {
        Content::Config | Content::Modules => match config_text::parse(new) {
            Ok(entries) => asks(config(content, path, previous, &entries, site)),
            Err(fault) => Judgement::Unreadable(fault.to_string()),
        },
        Content::GitFile => pointer(pointers::git_file(path, new, site)),
        Content::CommonDirectory => pointer(pointers::common_directory(path, new)),
        Content::WayBack => pointer(pointers::way_back(new, site)),
        Content::RebaseTodo => asks(rebase_todo::findings(previous, new)),
        Content::Strategy => asks(interrupted::strategy(previous, new)),
        Content::StrategyOptions => asks(interrupted::strategy_options(previous, new)),
        Content::ApplyOptions => asks(interrupted::apply_options(previous, new)),
        Content::SequencerOptions => match config_text::parse(new) {
            Ok(entries) => asks(interrupted::options(&entries)),
            Err(fault) => Judgement::Unreadable(fault.to_string()),
        },
        Content::Index => index::fault(new).map_or(Judgement::Harmless, Judgement::Unreadable),
        Content::Conflicts => asks(interrupted::conflicts(previous, new)),
        Content::Alternates => asks(pointers::lends(path, previous, new, site)),
        Content::Attributes => asks(attributes::findings(previous, new)),
    }
}

fn pointer(why: Option<String>) -> Judgement {
    asks(why.map(|why| Finding { line: 1, key: None, why }).into_iter().collect())
}

fn config(
    content: Content,
    path: &Path,
    previous: Option<&[u8]>,
    entries: &[Entry],
    site: &Site<'_>,
) -> Vec<Finding> {
    // A file that git could not parse had no effect.
    let previous = previous.and_then(|text| config_text::parse(text).ok()).unwrap_or_default();
    let before = by_name(&previous);
    let (was_bare, is_bare) = (is_bare(path, &previous), is_bare(path, entries));
    let (lent, lenders) = (lenders(&previous), lenders(entries));
    let (was_shared, is_shared) = (is_shared(&previous), is_shared(entries));
    let mut findings = Vec::new();
    for (name, entries) in by_name(entries) {
        let values = |entries: &[&Entry]| entries.iter().map(|entry| entry.value.clone()).collect::<Vec<_>>();
        let remote = name.strip_prefix(b"remote.").and_then(|rest| rest.strip_suffix(b".url"));
        let lends = remote.is_some_and(|remote| lenders.contains(remote));
        // Each worktree resolves this relative to its own settings.
        let strays = is_shared && name == b"core.worktree";
        // Another key may have changed the meaning of unchanged values.
        let lent_before = remote.is_some_and(|remote| lent.contains(remote));
        let means_as_before = was_bare == is_bare && (lent_before || !lends) && (was_shared || !strays);
        // All values of the key in their order: the last one counts, and some keys are lists.
        if means_as_before && before.get(name).is_some_and(|before| values(before) == values(&entries)) {
            continue;
        }
        let is_harmless =
            |entry: &&Entry| !lends && !strays && is_harmless(content, (path, is_bare), entry, site);
        let Some(first) = entries.iter().find(|entry| !is_harmless(entry)) else { continue };
        let known: BTreeSet<_> = before.get(name).into_iter().flatten().map(|entry| &entry.value).collect();
        let is_new = |entry: &&&Entry| !known.contains(&entry.value);
        let told = entries.iter().filter(|entry| !is_harmless(entry)).find(is_new).unwrap_or(first);
        findings.push(Finding {
            line: told.line,
            key: Some(shown(name)),
            why: match lends {
                true => reasons::FETCHES_BY_ITSELF.to_owned(),
                false => reasons::reason(&String::from_utf8_lossy(name), told.value.as_deref()).to_owned(),
            },
        });
    }
    findings.sort_by_key(|finding| finding.line);
    findings
}

/// Returns the promisor remotes, from which git fetches by itself whenever an object is missing.
fn lenders(entries: &[Entry]) -> BTreeSet<Vec<u8>> {
    let lends = |key: &[u8]| matches!(key, b"promisor" | b"partialclonefilter");
    let remote = |entry: &Entry| {
        if entry.name == b"extensions.partialclone" {
            return entry.value.clone();
        }
        let rest = entry.name.strip_prefix(b"remote.")?;
        let dot = rest.iter().rposition(|byte| *byte == b'.')?;
        let (remote, key) = rest.split_at(dot);
        lends(key.get(1..)?).then(|| remote.to_vec())
    };
    entries.iter().filter_map(remote).collect()
}

/// Returns true if a repository has no working tree: its settings say so, it is not the `.git` of a directory, and no
/// second settings file can override that.
fn is_bare(path: &Path, entries: &[Entry]) -> bool {
    let directory = path.parent().and_then(Path::file_name);
    let is_of_tree = directory.is_none_or(|name| name.eq_ignore_ascii_case(".git"));
    if is_of_tree || is_shared(entries) {
        return false;
    }
    let last = entries.iter().rev().find(|entry| entry.name == b"core.bare");
    last.is_some_and(|entry| entry.value.as_ref().is_none_or(|value| value.eq_ignore_ascii_case(b"true")))
}

/// Returns true if each worktree has a second settings file.
fn is_shared(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| entry.name == b"extensions.worktreeconfig")
}

fn by_name(entries: &[Entry]) -> BTreeMap<&[u8], Vec<&Entry>> {
    let mut names: BTreeMap<&[u8], Vec<&Entry>> = BTreeMap::new();
    for entry in entries {
        names.entry(&entry.name).or_default().push(entry);
    }
    names
}

fn is_harmless(content: Content, (path, is_bare): (&Path, bool), entry: &Entry, site: &Site<'_>) -> bool {
    let Ok(name) = std::str::from_utf8(&entry.name) else { return false };
    // From `.gitmodules` git only reads the submodules.
    let is_read = content == Content::Config || name.starts_with("submodule.");
    match keys::shape(name) {
        _ if !is_read => true,
        Some(Shape::Worktree) => {
            entry.value.as_ref().is_some_and(|value| pointers::is_own_worktree(path, value, site))
        }
        Some(Shape::InBare) => is_bare && Shape::Bool.admits(entry.value.as_deref()),
        Some(shape @ (Shape::Url | Shape::Remote)) if content == Content::Config => {
            let value = entry.value.as_deref().and_then(|value| std::str::from_utf8(value).ok());
            let is_name = |value: &str| shape == Shape::Remote && is_remote_name(value);
            shape.admits(entry.value.as_deref())
                && value.is_some_and(|value| is_name(value) || pointers::is_near(path, value, site))
        }
        Some(shape) => shape.admits(entry.value.as_deref()),
        None => false,
    }
}
