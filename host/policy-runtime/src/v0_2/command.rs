//! Converts commands to the types of the contract.

use portcullis_decision::request::{
    CommandExecution, ParsedScript, Redirect, ScriptFeatures, SimpleCommand, Word,
};

use super::bindings::portcullis::policy::commands as guest;
use super::file::path_ref;

pub(super) fn execution(execution: &CommandExecution) -> guest::CommandExecution {
    guest::CommandExecution {
        script: execution.script.clone(),
        shell: execution.shell.clone(),
        cwd: path_ref(&execution.cwd),
        parsed: execution.parsed.as_ref().map(script).map_err(Clone::clone),
        timeout_ms: execution.timeout_ms,
        background: execution.background,
    }
}

fn script(script: &ParsedScript) -> guest::ParsedScript {
    guest::ParsedScript {
        commands: script.commands.iter().map(simple_command).collect(),
        features: features(script.features),
    }
}

fn features(features: ScriptFeatures) -> guest::ScriptFeatures {
    [
        (features.substitution, guest::ScriptFeatures::SUBSTITUTION),
        (features.dynamic, guest::ScriptFeatures::DYNAMIC),
        (features.background, guest::ScriptFeatures::BACKGROUND),
        (features.redefinition, guest::ScriptFeatures::REDEFINITION),
        (features.heredoc, guest::ScriptFeatures::HEREDOC),
        (features.loops, guest::ScriptFeatures::LOOPS),
    ]
    .into_iter()
    .filter(|(is_there, _)| *is_there)
    .fold(guest::ScriptFeatures::empty(), |all, (_, feature)| all | feature)
}

fn simple_command(command: &SimpleCommand) -> guest::SimpleCommand {
    guest::SimpleCommand {
        argv: command.argv.iter().map(word).collect(),
        assignments: command.assignments.iter().map(|(name, value)| (name.clone(), word(value))).collect(),
        redirects: command.redirects.iter().map(redirect).collect(),
        joined_by: joint(&command.joined_by),
        parent: command.parent,
        program: command.program.clone(),
    }
}

fn word(word: &Word) -> guest::Word {
    guest::Word { value: word.value.clone(), literal: word.literal }
}

fn redirect(redirect: &Redirect) -> guest::Redirect {
    guest::Redirect {
        operator: redirection(&redirect.operator),
        fd: redirect.fd,
        target: word(&redirect.target),
        path: redirect.path.as_ref().map(path_ref),
    }
}

fn joint(joined_by: &str) -> guest::Joint {
    match joined_by {
        "" => guest::Joint::First,
        "&&" => guest::Joint::AndThen,
        "||" => guest::Joint::OrElse,
        "|" => guest::Joint::Pipe,
        "&" => guest::Joint::Background,
        _ => guest::Joint::Sequence,
    }
}

fn redirection(operator: &str) -> guest::Redirection {
    match operator {
        "<" => guest::Redirection::Input,
        ">" => guest::Redirection::Output,
        ">>" => guest::Redirection::Append,
        ">|" => guest::Redirection::Clobber,
        "<>" => guest::Redirection::ReadWrite,
        "<<" | "<<-" => guest::Redirection::HereDocument,
        "<<<" => guest::Redirection::HereString,
        "&>" => guest::Redirection::BothOutput,
        "&>>" => guest::Redirection::BothAppend,
        "<&" => guest::Redirection::DuplicateInput,
        ">&" => guest::Redirection::DuplicateOutput,
        other => guest::Redirection::Other(other.to_owned()),
    }
}
