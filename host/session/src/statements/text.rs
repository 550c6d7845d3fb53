//! The sentences of statements.

use std::path::Path;

use portcullis_decision::profile::FileRight;
use portcullis_decision::rules::{Availability, FileFacts, HostFact, HostFacts};
use portcullis_decision::{Caller, Effect};
use portcullis_text::escape;

use super::lists::{Items, Names, is_of_host, is_worth_saying};

/// One statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The topic, in a word or two: `commands read`, `hosts`.
    pub about: String,
    /// The full sentence.
    pub text: String,
}

fn statement(about: impl Into<String>, text: String) -> Statement {
    Statement { about: about.into(), text }
}

/// Returns the sentence on a right that all `callers` have alike.
pub(super) fn files(callers: &[Caller], right: FileRight, items: &Items, most: usize) -> Statement {
    let who = match callers {
        [Caller::Command] => "commands",
        [Caller::Tool] => "tools",
        _ => "commands and tools",
    };
    let verb = match right {
        FileRight::Read => "read",
        FileRight::Write => "write",
        FileRight::Execute => "run",
    };
    let free =
        if items.free.is_empty() { "nothing without a question".to_owned() } else { list(&items.free, most) };
    let mut text = format!("{} can {verb} {free}", capital(who));
    for (before, items, after) in [
        ("", &items.asked, " after a question"),
        ("", &items.named, " after a question, if a command names them"),
        ("not ", &items.hidden, ""),
        ("never ", &items.denied, ""),
    ] {
        if !items.is_empty() {
            text.push_str(&format!("; {before}{}{after}", list(items, most)));
        }
    }
    text.push('.');
    statement(format!("{who} {verb}"), text)
}

/// Returns the sentence on items denied to all callers, or `None` if there are none.
pub(super) fn never(verb: &str, items: &[String], most: usize) -> Option<Statement> {
    (!items.is_empty()).then(|| statement("denied", format!("Never {verb}: {}.", list(items, most))))
}

/// Returns the sentence on the rights of commands to read and to write in the user's home directory.
pub(super) fn home(
    (home, [read, write]): (&Path, [Availability; 2]),
    reading: &FileFacts,
    names: &Names<'_>,
    most: usize,
) -> Statement {
    let except = {
        let inside = reading.places.iter().filter(|place| place.path.starts_with(home) && place.path != home);
        let is_meant = |standing| (standing == Availability::Free) != (read == Availability::Free);
        let inside = inside.filter(|place| is_meant(place.standing) && is_worth_saying(place, names.base));
        let inside = inside.filter(|place| !is_of_host(&place.by));
        list(&inside.map(|place| names.place(&place.path)).collect::<Vec<_>>(), most)
    };
    let text = match (read, write, except.is_empty()) {
        (Availability::Free, Availability::Free, true) => {
            "Commands can read and write your home directory (~).".into()
        }
        (Availability::Free, Availability::Free, false) => {
            format!("Commands can read and write your home directory (~), but not {except}.")
        }
        (Availability::Free, _, true) => "Commands can read your home directory (~).".into(),
        (Availability::Free, _, false) => {
            format!("Commands can read your home directory (~), but not {except}.")
        }
        (_, _, true) => "Commands do not see your home directory (~).".into(),
        (_, _, false) => format!("Commands do not see your home directory (~), except {except}."),
    };
    statement("home", text)
}

/// Returns the sentence on the host's own protections.
pub(super) fn protected(sets: &[(&FileFacts, Items)], has_lifted: bool) -> Option<Statement> {
    let closes = |right| sets.iter().any(|(facts, items)| facts.right == right && items.is_protected);
    let except = if has_lifted { ", but for what `protections.lift` names" } else { "" };
    let text = match (closes(FileRight::Read), closes(FileRight::Write)) {
        (true, _) => format!(
            "Private keys, credentials and histories at their usual places are never read or written, and settings of \
             pi and Portcullis never written{except}."
        ),
        (false, true) => format!("Settings of pi and Portcullis are never written{except}."),
        (false, false) => return None,
    };
    Some(statement("protected", text))
}

/// Returns the sentence on names that ask in a writable project. Commands ask only where names are `watched`.
pub(super) fn names_that_ask(watched: bool) -> Statement {
    let names = "new dot files, and files from which other programs read settings or code,";
    let text = match watched {
        true => format!("In the project, {names} are written only after a question."),
        false => {
            format!("In the project, tools write {names} only after a question; commands need none.")
        }
    };
    statement("names", text)
}

/// Returns the sentence on the directories of the sandbox's own, and on its `home`.
pub(super) fn own(home: Option<&Path>, directories: &[&Path], names: &Names<'_>) -> Option<Statement> {
    let state = home.map(|home| format!("{}/.* (kept for this project)", names.place(home)));
    let items: Vec<String> =
        state.into_iter().chain(directories.iter().map(|path| names.place(path))).collect();
    let text = format!("The sandbox has its own writable {}.", list(&items, usize::MAX));
    (!items.is_empty()).then(|| statement("own", text))
}

/// Returns the sentence for a sandbox without mounts.
pub(super) fn without_mounts() -> Statement {
    let text = "This sandbox has no namespaces: the session's own directory is $TMPDIR, and commands cannot use /tmp, \
                /dev/shm, the files of processes in /proc and listings of directories that hold something hidden.";
    statement("tier", text.to_owned())
}

/// Returns the sentence on the sandbox of a profile.
pub(super) fn under_profile() -> Statement {
    let text = "Commands run under a profile of this system's sandbox, which cannot ask while they run: what would ask is \
                refused at once. The session's own directory is $TMPDIR, $HOME is a home of the project's own, and only \
                programs that use the proxy of the environment have network.";
    statement("tier", text.to_owned())
}

/// Returns the sentence on policies that can be stricter than the rules.
pub(super) fn stricter(policies: &[String]) -> Option<Statement> {
    let names: Vec<String> = policies.iter().map(|policy| format!("`{}`", escape(policy))).collect();
    let text = format!("Policies can refuse more to tools: {}.", list(&names, usize::MAX));
    (!names.is_empty()).then(|| statement("policies", text))
}

/// Returns the sentence on the hosts that commands can reach.
pub(super) fn hosts(facts: &HostFacts, granted: &[String], most: usize) -> Statement {
    let with = |effect| facts.targets.iter().filter(move |fact| fact.effect == effect).map(host);
    let mut open: Vec<String> = with(Effect::Allow).collect();
    open.extend(granted.iter().map(|host| escape(host)));
    let asked: Vec<String> = with(Effect::Ask).collect();
    let denied: Vec<String> = with(Effect::Deny).collect();
    let mut text = match (facts.elsewhere, open.is_empty()) {
        (Effect::Allow, _) => "Commands reach every host on the internet without a question".to_owned(),
        (_, true) => "Commands reach no host without a question".to_owned(),
        (_, false) => format!("Commands reach {} without a question", list(&open, most)),
    };
    let rest = "every other host on the internet".to_owned();
    let others = |effect| (facts.elsewhere == effect).then(|| rest.clone());
    for (before, hosts, after) in [
        ("", asked.into_iter().chain(others(Effect::Ask)).collect::<Vec<_>>(), " after a question"),
        ("never ", denied.into_iter().chain(others(Effect::Deny)).collect(), ""),
    ] {
        if !hosts.is_empty() {
            text.push_str(&format!("; {before}{}{after}", list(&hosts, most)));
        }
    }
    text.push('.');
    statement("hosts", text)
}

/// Returns the sentence for a sandbox without network.
pub(super) fn no_network() -> Statement {
    statement("hosts", "Commands reach no host: their sandbox has no network.".to_owned())
}

/// Returns the sentence for refused commands.
pub(super) fn no_commands() -> Statement {
    let text = "Commands are refused, because the sandbox cannot be set up; file tools work.";
    statement("commands", text.to_owned())
}

fn host(fact: &HostFact) -> String {
    let target = escape(&fact.target.to_string());
    if fact.program == "*" { target } else { format!("{target} (by {})", escape(&fact.program)) }
}

/// Joins the first `most` items of a list.
fn list(items: &[String], most: usize) -> String {
    let (shown, left) = items.split_at(items.len().min(most));
    // The item for everything else is never left out.
    let rest = left.last().filter(|last| *last == super::lists::EVERYTHING_ELSE);
    let mut shown = shown.to_vec();
    match left.split_at(left.len() - usize::from(rest.is_some())).0 {
        [] => {}
        [one] => shown.push(one.clone()),
        more => shown.push(format!("{} more", more.len())),
    }
    shown.extend(rest.cloned());
    match shown.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

fn capital(words: &str) -> String {
    let mut characters = words.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}
