//! The shared test cases, and a few that only the Rust helpers have.

use portcullis_sdk::{
    Action, CommandLine, CommandMatch, ParsedScript, ScriptFeatures, SimpleCommand, Word, testing,
};
use serde::Deserialize;

/// A case of `tables/spellings.json`.
#[derive(Debug, Deserialize)]
struct Case {
    pattern: String,
    expect: String,
    line: String,
    hides: bool,
    commands: Vec<Vec<(String, bool)>>,
}

impl Case {
    fn script(&self) -> ParsedScript {
        let features = if self.hides { ScriptFeatures::DYNAMIC } else { ScriptFeatures::empty() };
        let commands = self.commands.iter().map(|words| {
            command(words.iter().map(|(value, literal)| Word { value: value.clone(), literal: *literal }))
        });
        ParsedScript { commands: commands.collect(), features }
    }
}

fn command(argv: impl Iterator<Item = Word>) -> SimpleCommand {
    SimpleCommand {
        argv: argv.collect(),
        assignments: Vec::new(),
        redirects: Vec::new(),
        joined_by: String::new(),
        parent: None,
        program: None,
    }
}

#[test]
fn spellings() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("../tables/spellings.json")).unwrap();
    assert!(cases.len() > 250, "{} cases", cases.len());
    let wrong: Vec<String> = cases
        .iter()
        .map(|case| (case, format!("{:?}", case.script().matches(&case.pattern)).to_lowercase()))
        .filter(|(case, found)| case.expect != *found)
        .map(|(case, found)| format!("`{}` for `{}`: {found}, not {}", case.pattern, case.line, case.expect))
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
}

/// Any position and any further option: a forced push is found wherever the options stand.
#[test]
fn options_are_found_in_any_order() {
    let run = |line: &str| {
        command(line.split(' ').map(|word| Word { value: word.to_owned(), literal: true }))
            .matches("git push --force")
    };
    let more = ["-v", "origin", "main", "--tags", "-o x", "--repo=y"];
    for (index, one) in more.iter().enumerate() {
        for other in more.iter().cycle().skip(index).take(more.len()) {
            for forced in ["-f", "--force", "-fu", "--force-with-lease=a:b", "+a:b"] {
                for line in [
                    format!("{forced} {one} {other}"),
                    format!("{one} {forced} {other}"),
                    format!("{one} {other} {forced}"),
                ] {
                    assert_eq!(run(&format!("git -C x push {line}")), CommandMatch::Yes, "{line}");
                }
            }
            let plain = format!("git push {one} {other}");
            assert_eq!(run(&plain), CommandMatch::No, "control: {plain}");
        }
    }
}

#[test]
fn nesting_has_an_end() {
    let nested = |depth: usize| {
        let words = std::iter::repeat_n("npx", depth).chain(["git", "push"]);
        command(words.map(|word| Word { value: word.to_owned(), literal: true }))
    };
    let matches = |pattern: &str, command: SimpleCommand| {
        ParsedScript { commands: vec![command], features: ScriptFeatures::empty() }.matches(pattern)
    };
    assert_eq!(matches("git push", nested(10)), CommandMatch::Yes);
    assert_eq!(matches("git push", nested(10_000)), CommandMatch::Maybe);
    assert_eq!(matches("", nested(1)), CommandMatch::No);
    assert_eq!(matches("git push", command(std::iter::empty())), CommandMatch::No);
}

#[test]
fn other_requests_are_no_commands() {
    let context = testing::context("/srv");
    assert!(!testing::read(&context, "/srv/git").could_run("git"));
    assert!(testing::escalation(&context, "git push").runs("git push"));
}

#[test]
fn words_are_compared_one_by_one() {
    let context = testing::context("/srv");
    let request = testing::command(&context, "/usr/bin/git push --force origin");
    let Action::Command(command) = &request.action else { panic!("{request:?}") };
    let script = command.parsed.as_ref().unwrap();
    assert!(
        script.runs(&["git"])
            && script.runs(&["git", "push", "--force"])
            && script.runs(&["git", "push", "origin"])
    );
    assert!(!script.runs(&["git", "pull"]) && !script.runs(&["gi"]) && !script.runs(&[]));
    assert!(!script.runs(&["git", "push", "--force", "origin", "main"]));
    assert!(
        script.commands[0].begins_with(&["git", "push"])
            && !script.commands[0].begins_with(&["git", "origin"])
    );
    assert!(!script.hides() && command.mentions("git"));
}

#[test]
fn lines_are_taken_apart() {
    let request = testing::command(&testing::context("/srv"), "git -C x push -fu origin main");
    let Action::Command(command) = &request.action else { panic!("{request:?}") };
    let line: CommandLine = command.parsed.as_ref().unwrap().commands[0].line().unwrap();
    let operands: Vec<_> = line.operands.iter().filter_map(|operand| operand.text.as_deref()).collect();
    let options: Vec<_> = line.options.iter().map(|option| option.name.as_str()).collect();
    assert_eq!((line.program.as_str(), operands), ("git", vec!["push", "origin", "main"]));
    assert_eq!(options, ["-C", "--force", "--set-upstream"]);
    assert!(line.has("-f") && line.has("--force") && !line.has("--delete"));
}
