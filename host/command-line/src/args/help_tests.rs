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

/// Splits an example as a shell does, up to a comment, a pipe or a redirection. Returns the words after `portcullis`.
pub(super) fn example(line: &str) -> Option<Vec<String>> {
    let line = line.trim().trim_start_matches("sudo ");
    let line = line.rsplit("| ").next().unwrap_or(line);
    let rest = line.strip_prefix("portcullis")?.strip_prefix([' '])?;
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = rest.chars().peekable();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some(_), letter) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '#' | '>') => break,
            (None, ' ') => {
                words.extend(word.take());
                // A column of explanations follows.
                if letters.peek() == Some(&' ') {
                    break;
                }
            }
            (None, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    Some(words)
}

pub(super) fn parses(words: &[String]) -> Result<(), String> {
    use clap::Parser as _;
    let words = std::iter::once("portcullis").chain(words.iter().map(String::as_str));
    Arguments::try_parse_from(words).map(drop).map_err(|error| error.to_string())
}

#[test]
fn every_example_in_help_is_a_command() {
    let mut texts: Vec<(String, String)> =
        commands().iter().map(|(path, command)| (path.clone(), after(command))).collect();
    let whole = Arguments::command();
    let groups = whole.get_subcommands().map(|group| (group.get_name().to_owned(), after(group)));
    texts.extend(groups.chain([("portcullis".to_owned(), after(&whole))]));
    let mut count = 0;
    for (path, text) in texts {
        let (_, examples) = text.split_once("Example").unwrap_or_default();
        for line in examples.lines().filter(|line| line.starts_with(' ')) {
            let Some(words) = example(line) else {
                // An explanation of the line above, in its column.
                assert!(line.starts_with("      "), "`{path}` has an example that is no command: {line}");
                continue;
            };
            count += 1;
            assert_eq!(parses(&words), Ok(()), "`{path}`: {words:?}");
        }
    }
    assert!(count > 120, "{count} examples");
}

/// Commands in the running text of the documents; upper case stands for values there.
#[test]
fn every_command_that_a_document_names_is_one() {
    let mut count = 0;
    for page in super::doc_tests::pages() {
        let mut is_code = false;
        for line in page.text.lines() {
            is_code ^= line.starts_with("```");
            let spans = line.split('`').skip(1).step_by(2).filter(|_| !is_code);
            for words in spans.filter_map(example) {
                let is_whole =
                    words.iter().all(|word| !word.contains(['[', '…']) && *word != word.to_uppercase());
                // A verb of a group is named without its arguments.
                let path: Vec<&str> =
                    words.iter().map(String::as_str).take_while(|word| !word.starts_with('-')).collect();
                if is_whole && path.len() < words.len() {
                    count += 1;
                    let named = Arguments::command();
                    let found = path.iter().try_fold(&named, |command, word| command.find_subcommand(word));
                    assert!(found.is_some() || parses(&words).is_ok(), "{}: {line}", page.name);
                }
            }
        }
    }
    assert!(count >= 15, "{count} commands");
}

#[test]
fn an_example_is_split_as_a_shell_does() {
    let words = |line: &str| example(line).map(|words| words.join("|"));
    assert_eq!(words("  portcullis run -- bash -c 'a b'").as_deref(), Some("run|--|bash|-c|a b"));
    assert_eq!(words("sudo portcullis doctor   what it does").as_deref(), Some("doctor"));
    assert_eq!(words("  portcullis config schema > x.json").as_deref(), Some("config|schema"));
    assert_eq!(words("portcullis doctor # why").as_deref(), Some("doctor"));
    assert_eq!(words("make test"), None);
}
