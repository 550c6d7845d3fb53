//! Asks before credentials are written, and removes them from the output of tools.
//!
//! Credentials are recognised by their form: keys of well-known services, private keys, tokens, and random-looking
//! values that are assigned to names like `password`. Credentials without a known form are not found.

mod detect;
mod random;

use portcullis_sdk::{
    Action, ActionKinds, CommandExecution, ConfigError, Content, ContentBlock, Context, Descriptor,
    Evaluation, FileAccess, FileOperation, OutputEvaluation, Policy, Request, Severity, ToolOutput,
};
use serde::Deserialize;

use detect::{Found, find};

const WRITE: &str = "secrets.write";
const COMMAND: &str = "secrets.command";
const OUTPUT: &str = "secrets.output";

/// The configuration; `config.schema.json` describes it for people and editors.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    writes: Writes,
    outputs: Outputs,
    ignore: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Writes {
    #[default]
    Ask,
    Deny,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Outputs {
    #[default]
    Redact,
    Withhold,
}

/// The policy, configured.
#[derive(Debug)]
pub struct Secrets {
    config: Config,
}

impl Policy for Secrets {
    type Config = Config;

    fn describe() -> Descriptor {
        Descriptor::new(
            "portcullis:secrets",
            env!("CARGO_PKG_VERSION"),
            "Credentials are neither written nor read",
        )
        .rule(WRITE, "what a tool writes looks like a credential")
        .rule(COMMAND, "a command holds what looks like a credential")
        .rule(OUTPUT, "credentials are taken out of outputs")
        .handles(ActionKinds::FILE | ActionKinds::COMMAND | ActionKinds::TOOL)
        .config_schema(include_str!("../config.schema.json"))
    }

    fn configure(config: Config) -> Result<Self, Vec<ConfigError>> {
        let short = |(index, text): (usize, &String)| {
            let message = "a text of less than four characters would hide too much";
            (text.chars().count() < 4).then(|| ConfigError::new(format!("/ignore/{index}"), message))
        };
        let errors: Vec<ConfigError> = config.ignore.iter().enumerate().filter_map(short).collect();
        if errors.is_empty() { Ok(Self { config }) } else { Err(errors) }
    }

    fn evaluate(&self, request: &Request, _context: &Context) -> Evaluation {
        match &request.action {
            Action::File(access) => self.file(access),
            Action::Command(command) => self.command(command),
            Action::Tool(call) => self.judge(&[&call.input], WRITE, "the tool's input holds"),
            Action::Network(_) | Action::Socket(_) | Action::Escalation(_) | Action::Other(_) => {
                Evaluation::abstain()
            }
        }
    }

    fn inspect(&self, output: &ToolOutput, _context: &Context) -> OutputEvaluation {
        let mut kinds = Vec::new();
        let blocks: Vec<ContentBlock> = output
            .content
            .iter()
            .map(|block| match block {
                ContentBlock::Text(text) => ContentBlock::Text(self.redact(text, &mut kinds)),
                ContentBlock::Other(json) => ContentBlock::Other(self.redact(json, &mut kinds)),
                ContentBlock::Image(image) => ContentBlock::Image(image.clone()),
            })
            .collect();
        kinds.dedup();
        if kinds.is_empty() {
            return OutputEvaluation::abstain();
        }
        let reason = format!("it holds {}", kinds.join(", "));
        match self.config.outputs {
            Outputs::Redact => OutputEvaluation::replace(OUTPUT, reason, blocks),
            Outputs::Withhold => OutputEvaluation::withhold(OUTPUT, reason),
        }
    }

    fn brief(&self, _context: &Context) -> String {
        "Credentials are taken out of what tools return. Do not write credentials into files or commands; ask the \
         user to put them where they belong."
            .to_owned()
    }
}

impl Secrets {
    fn file(&self, access: &FileAccess) -> Evaluation {
        let (texts, is_cut): (Vec<&str>, bool) = match &access.operation {
            FileOperation::Write(Content::Text(text)) => (vec![text.value.as_str()], text.truncated),
            FileOperation::Edit(edits) => (
                edits.iter().map(|edit| edit.new.value.as_str()).collect(),
                edits.iter().any(|edit| edit.new.truncated),
            ),
            FileOperation::Read
            | FileOperation::Write(Content::Binary(_) | Content::Unknown)
            | FileOperation::List
            | FileOperation::Search(_)
            | FileOperation::CreateDirectory
            | FileOperation::Delete
            | FileOperation::Move(_)
            | FileOperation::Link(_)
            | FileOperation::Symlink(_)
            | FileOperation::ChangeMetadata
            | FileOperation::Other(_) => return Evaluation::abstain(),
        };
        if is_cut && self.first(&texts).is_none() {
            let reason = "what is written is too long to be looked through";
            return Evaluation::ask(WRITE, reason, "Let the agent write what may hold a credential?");
        }
        self.judge(&texts, WRITE, "what is written holds")
    }

    fn command(&self, command: &CommandExecution) -> Evaluation {
        self.judge(&[&command.script], COMMAND, "the command holds")
    }

    fn judge(&self, texts: &[&str], rule: &str, what: &str) -> Evaluation {
        let Some(found) = self.first(texts) else { return Evaluation::abstain() };
        // Reason and title do not contain the credential itself, because both are logged.
        let reason = format!("{what} {}", found.kind);
        match self.config.writes {
            Writes::Ask => Evaluation::ask(rule, reason, "Let the agent use what looks like a credential?")
                .setting("/writes")
                .severity(Severity::High),
            Writes::Deny => Evaluation::deny(rule, reason)
                .setting("/writes")
                .hint("leave a placeholder and ask the user to fill it in"),
        }
    }

    fn first(&self, texts: &[&str]) -> Option<Found> {
        texts.iter().find_map(|text| self.all(text).into_iter().next())
    }

    fn redact(&self, text: &str, kinds: &mut Vec<&'static str>) -> String {
        let mut clean = String::with_capacity(text.len());
        let mut done = 0;
        for found in self.all(text) {
            clean.push_str(text.get(done..found.start).unwrap_or_default());
            clean.push_str("[taken out: ");
            clean.push_str(found.kind);
            clean.push(']');
            done = found.end;
            kinds.push(found.kind);
        }
        clean.push_str(text.get(done..).unwrap_or_default());
        clean
    }

    fn all(&self, text: &str) -> Vec<Found> {
        let ignored = |found: &Found| {
            let value = text.get(found.start..found.end).unwrap_or_default();
            self.config.ignore.iter().any(|ignored| value.contains(ignored.as_str()))
        };
        find(text).into_iter().filter(|found| !ignored(found)).collect()
    }
}

portcullis_sdk::export_policy!(Secrets);

#[cfg(test)]
mod tests {
    use portcullis_sdk::{Text, Verdict, testing};

    use super::*;

    #[test]
    fn what_is_cut_is_asked_for() {
        let policy = Secrets { config: Config::default() };
        let context = testing::context("/srv/app");
        for (truncated, asks) in [(true, true), (false, false)] {
            let text = Text { truncated, ..testing::text("harmless") };
            let write = FileOperation::Write(Content::Text(text));
            let evaluation = policy.evaluate(&testing::file(&context, "/srv/app/x", write), &context);
            assert_eq!(matches!(evaluation.verdict, Verdict::Ask(_)), asks, "{evaluation:?}");
        }
    }
}
