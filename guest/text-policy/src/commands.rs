//! The resources of a command: its simple commands.

use std::collections::BTreeSet;

use portcullis_sdk::{CommandExecution, ScriptFeatures, SimpleCommand};
use serde_json::json;

use crate::entity::Entity;

/// Returns a resource for each simple command of a script, without repetitions.
///
/// If the script does more than its simple commands, or cannot be parsed, there is one more: opaque, without a program,
/// with the whole script as its line. So a rule that names a program never allows a script that the host cannot read.
pub(crate) fn resources(execution: &CommandExecution) -> impl Iterator<Item = Entity> + '_ {
    // Each entity has the whole script, so only one at a time is in memory.
    lines(execution).into_iter().map(|line| entity(execution, line))
}

fn lines(execution: &CommandExecution) -> Vec<Line> {
    let (commands, is_readable): (&[SimpleCommand], bool) = match &execution.parsed {
        Ok(parsed) => (&parsed.commands, !parsed.hides() && !parsed.commands.is_empty()),
        Err(_) => (&[], false),
    };
    let mut seen = BTreeSet::new();
    let mut lines: Vec<Line> = commands.iter().map(simple).filter(|line| seen.insert(line.clone())).collect();
    if !is_readable {
        lines.push(Line { line: execution.script.clone(), opaque: true, ..Line::default() });
    }
    lines
}

/// The parts of a simple command.
#[derive(Default, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    program: String,
    words: Vec<String>,
    line: String,
    literal: bool,
    opaque: bool,
    redirects: Vec<String>,
    variables: Vec<String>,
}

fn simple(command: &SimpleCommand) -> Line {
    let program = command.name().unwrap_or_default().to_owned();
    let words = command.argv.iter().skip(1).filter(|word| word.literal).map(|word| word.value.clone());
    let mut written: Vec<&str> = command.argv.iter().map(|word| word.value.as_str()).collect();
    // The program without its directory, so that a rule on the line cannot be avoided by writing the directory.
    if let Some(first) = written.first_mut().filter(|_| !program.is_empty()) {
        *first = &program;
    }
    Line {
        words: words.collect(),
        line: written.join(" "),
        literal: command.argv.iter().all(|word| word.literal),
        opaque: false,
        redirects: command.redirects.iter().map(|redirect| redirect.target.value.clone()).collect(),
        variables: command.assignments.iter().map(|(name, _)| name.clone()).collect(),
        program: program.clone(),
    }
}

fn entity(execution: &CommandExecution, line: Line) -> Entity {
    let features = execution.parsed.as_ref().map_or(ScriptFeatures::empty(), |parsed| parsed.features);
    let attributes = json!({
        "program": line.program,
        "words": line.words,
        "line": line.line,
        "literal": line.literal,
        "opaque": line.opaque,
        "redirects": line.redirects,
        "variables": line.variables,
        "script": execution.script,
        "cwd": execution.cwd.canonical,
        "background": execution.background || features.contains(ScriptFeatures::BACKGROUND),
    });
    Entity::new("Command", line.line, attributes)
}

#[cfg(test)]
mod tests {
    use portcullis_sdk::{Action, testing};

    use super::*;

    fn asked(change: impl FnOnce(&mut CommandExecution)) -> Vec<Entity> {
        let context = testing::context("/srv/app");
        let mut request = testing::command(&context, "/usr/bin/git push --force");
        let Action::Command(command) = &mut request.action else { panic!("{request:?}") };
        change(command);
        resources(command).collect()
    }

    #[test]
    fn the_program_is_named_without_its_directory() {
        let [command] = asked(|_| ()).try_into().expect("one command");
        let attribute = |name: &str| command.attributes.get(name).cloned();
        assert_eq!(attribute("program"), Some("git".into()));
        assert_eq!(attribute("line"), Some("git push --force".into()));
        assert_eq!(attribute("words"), Some(json!(["push", "--force"])));
        assert_eq!((attribute("literal"), attribute("opaque")), (Some(true.into()), Some(false.into())));
    }

    #[test]
    fn an_unreadable_script_is_opaque() {
        let last = |change: fn(&mut CommandExecution)| {
            let all = asked(change);
            let opaque = |entity: &Entity| entity.attributes.get("opaque") == Some(&true.into());
            (all.len(), all.last().is_some_and(|entity| opaque(entity) && entity.attributes["program"] == ""))
        };
        assert_eq!(last(|command| command.parsed = Err("odd".into())), (1, true));
        let hide: fn(&mut CommandExecution) = |command| {
            command.parsed.as_mut().expect("parsed").features |= ScriptFeatures::DYNAMIC;
        };
        assert_eq!(last(hide), (2, true), "its simple commands are judged as well");
        assert_eq!(last(|command| command.parsed.as_mut().expect("parsed").commands.clear()), (1, true));
    }

    #[test]
    fn repetitions_are_asked_once() {
        let all = asked(|command| {
            let commands = &mut command.parsed.as_mut().expect("parsed").commands;
            let first = commands.first().expect("a command").clone();
            commands.push(first);
        });
        assert_eq!(all.len(), 1);
    }
}
