//! The sandbox section of the system prompt, which saves the model from trial and error.

use std::path::Path;

use portcullis_session::{Session, Statement, Statements};
use portcullis_settings_format::PolicySource;
use portcullis_text::{escape, escape_subject};

/// Programs that a model looks for first.
const PROGRAMS: &[&str] = &[
    "bash", "git", "node", "npm", "python3", "cargo", "rustc", "gcc", "make", "go", "java", "curl", "rg",
    "fd", "jq", "gh", "pnpm", "yarn", "uv", "clang", "cmake", "just", "ruby", "sqlite3", "tar", "tmux",
    "podman", "nix", "wget",
];
/// Maximum number of words of the section.
const MOST_WORDS: usize = 150;
/// Maximum number of words of the texts that policies say of themselves.
const MOST_QUOTED: usize = 30;
/// Maximum number of items of a list.
const MOST_LISTED: usize = 4;

/// The topics of statements, the most important first; the first ones that fit are said.
const TOPICS: [&str; 12] = [
    "commands",
    "home",
    "commands and tools write",
    "commands write",
    "hosts",
    "commands and tools read",
    "commands read",
    "tools write",
    "tools read",
    "denied",
    "tier",
    "protected",
];

/// What the model does where the user can be asked.
const ASKING: &str = "To ask the user, name the path in a tool call or command. Each question interrupts them: ask only \
                      for what the task needs.";
/// Advice for the model in a session without a user.
const NOBODY: &str =
    "Nobody can be asked in this session: what would be a question is refused. Say what you needed.";
/// What the model does about errors and refusals.
const REFUSALS: &str = "What is refused says why: do not work around it. \"No such file\" or \"Permission denied\" may \
                        mean hidden, not missing.";

/// Returns the section.
///
/// It names the machine, as many of the statements in force as fit, and what to do about refusals, and quotes policies.
/// Statements and sentences are left out whole, never cut.
pub(super) fn brief(session: &Session, statements: &Statements) -> String {
    let asking = if session.is_interactive() { ASKING } else { NOBODY };
    let quotes = quotes(session);
    let title = "# Sandbox";
    let begin = format!("Tools and commands run in a sandbox on {}", machine(session));
    let tail = std::iter::once(format!("{REFUSALS} {asking}")).chain(quotes).collect::<Vec<_>>();
    let fixed: usize = [title, &begin].into_iter().chain(tail.iter().map(String::as_str)).map(words).sum();
    let (statements, left) = fitting(statements, MOST_WORDS.saturating_sub(fixed));
    let begin = format!("{begin}{}.", with_programs(&programs(session, left.saturating_sub(1))));
    let lines = [title.to_owned(), begin].into_iter().chain(statements).chain(tail);
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the statements that fit into `room` words, and the rest of the room. Lists are as long as all statements
/// allow.
fn fitting(statements: &Statements, room: usize) -> (Vec<String>, usize) {
    let length = |all: &[Statement]| all.iter().map(|one| words(&one.text)).sum::<usize>();
    let mut lists = (2..=MOST_LISTED).rev().map(|most| statements.all(most));
    let mut all = lists.find(|all| length(all) <= room).unwrap_or_else(|| statements.all(2));
    all.sort_by_key(|one| TOPICS.iter().position(|topic| *topic == one.about).unwrap_or(TOPICS.len()));
    let mut left = room;
    all.retain(|one| match left.checked_sub(words(&one.text)) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    });
    (all.into_iter().map(|one| one.text).collect(), left)
}

/// Returns at most `most` of the programs that commands can run.
pub(super) fn programs(session: &Session, most: usize) -> Vec<&'static str> {
    let path = &session.machine().path;
    let on_path = |name: &&&str| path.iter().any(|directory| Path::new(directory).join(name).exists());
    PROGRAMS.iter().filter(on_path).copied().take(most).collect()
}

fn with_programs(programs: &[&str]) -> String {
    if programs.is_empty() { String::new() } else { format!(" with {}", programs.join(", ")) }
}

/// Returns the first sentences that policies say of themselves, beyond their rules.
fn quotes(session: &Session) -> Vec<String> {
    let mut left = MOST_QUOTED;
    let mut quotes = Vec::new();
    for (policy, brief) in session.briefs().into_iter().filter(|(name, _)| !is_covered(session, name)) {
        let mut quoted = Vec::new();
        let sentences = brief.lines().flat_map(|line| line.split_inclusive(". ")).map(str::trim);
        for sentence in sentences.filter(|sentence| !sentence.is_empty()) {
            let Some(rest) = left.checked_sub(words(sentence)) else { break };
            left = rest;
            quoted.push(format!("> {}", escape_subject(sentence).0));
        }
        if !quoted.is_empty() {
            quotes.push(format!("Policy `{}` says:\n{}", escape(&policy), quoted.join("\n")));
        }
    }
    quotes
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// Shipped policies whose own text says no more than their rules, which the statements cover.
const COVERED: [&str; 3] = ["workspace", "guard", "bosun"];

/// Returns true if the statements already say everything in a policy's own description.
fn is_covered(session: &Session, name: &str) -> bool {
    let is_it = |source: &PolicySource| match source {
        PolicySource::Shipped(shipped) => COVERED.contains(&shipped.as_str()),
        PolicySource::Pack(_) | PolicySource::File(_) => false,
    };
    session.settings().policies.iter().any(|policy| policy.name == name && is_it(&policy.source))
}

/// Returns a sentence on the changes since the start of the session; empty without changes.
pub(super) fn changed(changes: &[String]) -> String {
    match listed(changes.iter().map(|change| escape(change))) {
        None => String::new(),
        Some(changes) => format!("\nThe sandbox settings have changed since this session began: {changes}."),
    }
}

fn listed(items: impl Iterator<Item = String>) -> Option<String> {
    let items: Vec<String> = items.collect();
    let left = items.len().saturating_sub(MOST_LISTED);
    let mut text = items.iter().take(MOST_LISTED).map(|item| escape(item)).collect::<Vec<_>>().join(", ");
    if left > 0 {
        text.push_str(&format!(" and {left} more"));
    }
    (!items.is_empty()).then_some(text)
}

/// Returns the system that commands run on.
pub(super) fn machine(session: &Session) -> String {
    let machine = session.machine();
    let system = system_name().unwrap_or_else(|| machine.os.clone());
    format!("{} ({})", escape(&system), escape(&machine.arch))
}

/// Returns the system's own name, such as `Debian GNU/Linux 12 (bookworm)`.
fn system_name() -> Option<String> {
    let text = std::fs::read_to_string("/etc/os-release").ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}
