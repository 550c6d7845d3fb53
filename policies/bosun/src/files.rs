//! The rules on files, and the names that must not be read.

use portcullis_sdk::{Context, FilePattern, FileRights, FileRule};

use crate::config::{Config, is_place};
use crate::rule_ids::{ALLOW_READ, ALLOW_WRITE, DENY_READ, DENY_WRITE, ELSEWHERE, READ_ONLY};

/// Returns the rules for every tool and command; a later one takes precedence.
pub(crate) fn standing(config: &Config, context: &Context) -> Vec<FileRule> {
    let run = FileRights::READ | FileRights::EXECUTE;
    let mut rules = vec![
        FileRule::deny(ELSEWHERE, FilePattern::tree("/"), FileRights::WRITE)
            .reason("`allow_write` does not name this place"),
    ];
    rules.extend(places(&config.allow_read, context).map(|(pattern, index)| {
        FileRule::allow(ALLOW_READ, pattern, run)
            .reason("`allow_read` names it")
            .setting(format!("/allow_read/{index}"))
    }));
    rules.extend(temp(context).map(|pattern| {
        FileRule::allow(ALLOW_WRITE, pattern, FileRights::READ_WRITE | FileRights::EXECUTE)
            .reason("it is the session's own temporary directory")
    }));
    rules.extend(places(&config.allow_write, context).map(|(pattern, index)| {
        FileRule::allow(ALLOW_WRITE, pattern, FileRights::READ_WRITE | FileRights::EXECUTE)
            .reason("`allow_write` names it")
            .setting(format!("/allow_write/{index}"))
    }));
    let deny_write = |(pattern, index)| {
        FileRule::deny(DENY_WRITE, pattern, FileRights::WRITE)
            .reason("`deny_write` names it")
            .setting(format!("/deny_write/{index}"))
    };
    rules.extend(places(&config.deny_write, context).chain(names(&config.deny_write)).map(deny_write));
    let unread = names_below(&config.deny_read, &tops(context));
    rules.extend(places(&config.deny_read, context).chain(unread).map(|(pattern, index)| {
        FileRule::deny(DENY_READ, pattern, FileRights::READ_WRITE | FileRights::EXECUTE)
            .conceal()
            .reason("`deny_read` names it")
            .setting(format!("/deny_read/{index}"))
    }));
    rules
}

/// Returns the directories in which names are hidden from commands: those with the user's own files. System files have
/// such names too, and no program works without them.
fn tops(context: &Context) -> Vec<String> {
    let mut tops = context.workspace.roots.clone();
    tops.push(context.machine.home.clone());
    tops.retain(|top| !top.is_empty());
    tops
}

/// Returns the rules for a command that writes only its temporary files.
pub(crate) fn read_only(context: &Context) -> Vec<FileRule> {
    let everywhere = FileRule::deny(READ_ONLY, FilePattern::tree("/"), FileRights::WRITE)
        .reason("commands of this agent write nothing; it changes files with its tools");
    let temp = temp(context).map(|pattern| {
        FileRule::allow(ALLOW_WRITE, pattern, FileRights::WRITE)
            .reason("it is the session's own temporary directory")
    });
    std::iter::once(everywhere).chain(temp).collect()
}

/// Returns the index of the entry in the list of unreadable files that matches this file by name.
pub(crate) fn unread_name(config: &Config, path: &str) -> Option<usize> {
    let mut named = names(&config.deny_read);
    // A malformed pattern is refused when the policy is configured.
    named.find(|(pattern, _)| pattern.matches(path).unwrap_or(true)).map(|(_, index)| index)
}

/// Returns the entries of a list that are places, with their index.
fn places<'a>(
    entries: &'a [String],
    context: &'a Context,
) -> impl Iterator<Item = (FilePattern, usize)> + 'a {
    let place = |(index, entry): (usize, &String)| {
        is_place(entry).then(|| Some((FilePattern::tree(context.absolute(entry)?), index))).flatten()
    };
    entries.iter().enumerate().filter_map(place)
}

/// Returns the entries of a list that are names, at any place, with their index.
fn names(entries: &[String]) -> impl Iterator<Item = (FilePattern, usize)> {
    names_below(entries, &["/".to_owned()]).into_iter()
}

/// Returns the entries of a list that are names, below each of these directories, with their index.
fn names_below(entries: &[String], tops: &[String]) -> Vec<(FilePattern, usize)> {
    let named = entries.iter().enumerate().filter(|(_, entry)| !is_place(entry));
    let below = |(index, entry): (usize, &String)| {
        let patterns = tops.iter().map(|top| FilePattern::name(top.as_str(), entry.as_str()));
        patterns.map(|pattern| (pattern, index)).collect::<Vec<_>>()
    };
    named.flat_map(below).collect()
}

/// Returns the session's temporary directory, which may differ from its usual name.
fn temp(context: &Context) -> Option<FilePattern> {
    let temp = &context.machine.temp;
    (!temp.is_empty()).then(|| FilePattern::tree(temp.as_str()))
}
