//! Tests of the help texts of all commands.

use clap::{Command, CommandFactory as _};

use super::Arguments;

/// Commands that pi starts and users do not type.
const NOT_TYPED: [&str; 1] = ["serve"];
/// Commands without machine-readable output, or with a format of their own.
const WITHOUT_JSON: [&str; 13] = [
    "run",
    "config schema",
    "config edit",
    "asks answer",
    "grants revoke",
    "ports open",
    "ports close",
    "serve",
    "pi",
    "pi-extension install",
    "pi-extension remove",
    "pi-extension path",
    "completions",
];

/// Returns all commands, with the words that lead to each. The subcommands of `check` and `policy run` count as
/// arguments.
fn commands() -> Vec<(String, Command)> {
    fn walk(command: &Command, path: &str, found: &mut Vec<(String, Command)>) {
        let is_whole = ["check", "policy run"].contains(&path) || !command.has_subcommands();
        if is_whole && !command.is_hide_set() {
            found.push((path.to_owned(), command.clone()));
        } else {
            for inner in command.get_subcommands() {
                walk(inner, format!("{path} {}", inner.get_name()).trim_start(), found);
            }
        }
    }
    let mut found = Vec::new();
    walk(&Arguments::command(), "", &mut found);
    found.retain(|(_, command)| !command.is_hide_set());
    found
}

fn after(command: &Command) -> String {
    command.get_after_help().map(ToString::to_string).unwrap_or_default()
}

#[test]
fn every_command_has_examples_of_itself() {
    let commands = commands();
    assert!(commands.len() > 50, "{}", commands.len());
    for (path, command) in commands.iter().filter(|(path, _)| !NOT_TYPED.contains(&path.as_str())) {
        let text = after(command);
        assert!(text.contains("Example"), "`{path}` has no example");
        assert!(text.contains(&format!("portcullis {path}")), "`{path}` is in none of its examples");
    }
}

#[test]
fn every_command_with_something_to_read_has_json() {
    for (path, command) in commands() {
        let has_json = command.get_arguments().any(|argument| argument.get_long() == Some("json"));
        assert_eq!(has_json, !WITHOUT_JSON.contains(&path.as_str()), "{path}");
    }
}

/// A paragraph is one line, which clap wraps at the width of the terminal; with line breaks of its own it would look
/// ragged.
#[test]
fn paragraphs_are_broken_once() {
    let mut all = commands();
    let groups = Arguments::command();
    all.extend(groups.get_subcommands().map(|group| (group.get_name().to_owned(), group.clone())));
    for (path, command) in all {
        let text = after(&command);
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2) {
            let [line, next] = pair else { continue };
            let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
            assert!(
                !is_prose(line) || !is_prose(next) || line.ends_with(['.', ':']),
                "`{path}`: “{line}” is broken in the middle"
            );
        }
        let widest = lines.iter().filter(|line| line.starts_with(' ')).map(|line| line.chars().count()).max();
        assert!(widest.unwrap_or(0) <= 100, "`{path}` has an example that is wider than the help");
    }
}
