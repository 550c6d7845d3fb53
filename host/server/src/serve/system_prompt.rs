//! The sandbox section of the system prompt, which saves the model from trial and error.

use std::path::Path;

use portcullis_session::{Session, Statements};
use portcullis_settings_format::PolicySource;
use portcullis_text::{escape, escape_subject};

/// Programs that a model looks for first.
const PROGRAMS: &[&str] = &[
    "bash", "cargo", "clang", "cmake", "curl", "fd", "gcc", "gh", "git", "go", "java", "jq", "just", "make",
    "nix", "node", "npm", "pnpm", "podman", "python3", "rg", "ruby", "rustc", "sqlite3", "tar", "tmux", "uv",
    "wget", "yarn",
];
/// Maximum number of items of a list.
const MOST_LISTED: usize = 4;
/// Maximum number of lines of one policy's own text.
const MOST_QUOTED: usize = 20;

/// Returns the section.
///
/// It describes the machine, the statements in force, and what to do after a refusal, and quotes each policy's text.
pub(super) fn brief(session: &Session, statements: &Statements) -> String {
    let mut lines =
        vec!["# Sandbox".to_owned(), format!("Tools and commands run in a sandbox on {}.", machine(session))];
    lines.extend(statements.in_short(MOST_LISTED).into_iter().map(|statement| statement.text));
    if !session.is_interactive() {
        lines.push("Nobody can be asked in this session: what would be a question is refused.".to_owned());
    }
    lines.push(
        "What is refused says why: do not look for a way around it; use what is allowed or say what you need."
            .to_owned(),
    );
    let default = |name: &str| is_default(session, name);
    for (policy, brief) in session.briefs().into_iter().filter(|(name, _)| !default(name)) {
        let quoted: Vec<String> =
            brief.lines().take(MOST_QUOTED).map(|line| format!("> {}", escape_subject(line).0)).collect();
        lines.push(format!("Policy `{}` says:\n{}", escape(&policy), quoted.join("\n")));
    }
    lines.join("\n")
}

/// Returns true if a policy is the shipped default, which has no text beyond its rules.
fn is_default(session: &Session, name: &str) -> bool {
    let settings = session.settings();
    let is_it = PolicySource::Shipped("workspace".to_owned());
    settings.policies.iter().any(|policy| policy.name == name && policy.source == is_it)
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

/// Returns the system and the programs that commands can run.
fn machine(session: &Session) -> String {
    let machine = session.machine();
    let on_path =
        |name: &&&str| machine.path.iter().any(|directory| Path::new(directory).join(name).exists());
    let programs: Vec<&str> = PROGRAMS.iter().filter(on_path).copied().collect();
    let system = system_name().unwrap_or_else(|| machine.os.clone());
    format!("{} ({}) with {}", escape(&system), escape(&machine.arch), programs.join(", "))
}

/// Returns the system's own name, such as `Debian GNU/Linux 12 (bookworm)`.
fn system_name() -> Option<String> {
    let text = std::fs::read_to_string("/etc/os-release").ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}
