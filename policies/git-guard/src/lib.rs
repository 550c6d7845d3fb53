//! Protects history, hooks and remotes from being rewritten.
//!
//! Commands are judged by the host's analysis, so quoting, wrappers and nested scripts make no difference. An
//! unreadable script that mentions git requires a question. Hooks are protected by a rule on files, which applies
//! however they are written.

mod arguments;
mod variables;
mod verbs;

use portcullis_sdk::{
    Action, ActionKinds, CommandExecution, ConfigError, Context, Descriptor, Evaluation, FilePattern,
    FileRights, FileRule, ParsedScript, Policy, Profile, Request, Severity, SimpleCommand,
};
use serde::Deserialize;

use arguments::Call;
use verbs::{Finding, Targets, finding};

const FORCE: &str = "git.force-push";
const DELETE: &str = "git.delete-remote";
const PROTECTED: &str = "git.push-protected";
const PUSH: &str = "git.push";
const REWRITE: &str = "git.rewrite";
const RUNS: &str = "git.runs-programs";
const UNREAD: &str = "git.unread";
const HOOKS: &str = "git.hooks";

/// The configuration; `config.schema.json` describes it for people and editors.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    push: Answer,
    protected: Vec<String>,
    rewrite: Answer,
}

impl Default for Config {
    fn default() -> Self {
        Self { push: Answer::Ask, protected: vec!["main".into(), "master".into()], rewrite: Answer::Ask }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Allow,
    Ask,
    Deny,
}

/// The policy, configured.
#[derive(Debug)]
pub struct GitGuard {
    config: Config,
}

impl Policy for GitGuard {
    type Config = Config;

    fn describe() -> Descriptor {
        Descriptor::new("portcullis:git-guard", env!("CARGO_PKG_VERSION"), "Git history stays as it is")
            .rule(FORCE, "pushed commits are not overwritten")
            .rule(DELETE, "branches and tags of a remote are not deleted")
            .rule(PROTECTED, "protected branches are not pushed to")
            .rule(PUSH, "pushes")
            .rule(REWRITE, "commands that rewrite or throw away local history or work")
            .rule(RUNS, "git is not made to run other programs")
            .rule(UNREAD, "commands around git that cannot be read")
            .rule(HOOKS, "hooks are not written")
            .handles(ActionKinds::COMMAND | ActionKinds::ESCALATION)
            .config_schema(include_str!("../config.schema.json"))
    }

    fn configure(config: Config) -> Result<Self, Vec<ConfigError>> {
        let odd = |(index, name): (usize, &String)| {
            let message = "write the name of a branch, for example `main`";
            name.trim().is_empty().then(|| ConfigError::new(format!("/protected/{index}"), message))
        };
        let errors: Vec<ConfigError> = config.protected.iter().enumerate().filter_map(odd).collect();
        if errors.is_empty() { Ok(Self { config }) } else { Err(errors) }
    }

    fn evaluate(&self, request: &Request, _context: &Context) -> Evaluation {
        match &request.action {
            Action::Command(command) | Action::Escalation(command) => self.command(command),
            Action::File(_) | Action::Network(_) | Action::Socket(_) | Action::Tool(_) | Action::Other(_) => {
                Evaluation::abstain()
            }
        }
    }

    fn standing(&self, context: &Context) -> Profile {
        context.workspace.roots.iter().fold(Profile::new(), |profile, root| {
            let hooks = FilePattern::tree(format!("{}/.git/hooks", root.trim_end_matches('/')));
            profile.file(
                FileRule::deny(HOOKS, hooks, FileRights::WRITE).reason("git runs hooks outside the sandbox"),
            )
        })
    }

    fn brief(&self, _context: &Context) -> String {
        format!(
            "Git: never force a push, delete remote branches or push to {}; commit and leave pushing to the user \
             where it is refused. Rewriting history (rebase, reset --hard, commit --amend) may be asked for.",
            self.config.protected.join(", ")
        )
    }
}

impl GitGuard {
    /// Returns the strictest verdict on the command's simple commands.
    fn command(&self, command: &CommandExecution) -> Evaluation {
        let Ok(script) = &command.parsed else { return unread(command) };
        let mut strictest = if script.hides() { unread(command) } else { Evaluation::abstain() };
        for simple in &script.commands {
            let answer = self.simple(script, simple);
            if strength(&answer) > strength(&strictest) {
                strictest = answer;
            }
        }
        strictest
    }

    fn simple(&self, script: &ParsedScript, command: &SimpleCommand) -> Evaluation {
        let Some(call) = Call::of(command) else { return Evaluation::abstain() };
        let runs = variables::running(script, command).map(|name| Finding::Runs(format!("`{name}`")));
        match runs.or_else(|| finding(&call)) {
            None => Evaluation::abstain(),
            Some(Finding::ForcePush) => Evaluation::deny(FORCE, "it overwrites what was pushed before")
                .hint("push without force, to a new branch if need be, or ask the user to do it"),
            Some(Finding::DeleteRemote) => {
                Evaluation::deny(DELETE, "it deletes branches or tags of the remote")
                    .hint("leave them, or ask the user to delete them")
            }
            Some(Finding::Runs(what)) => {
                Evaluation::deny(RUNS, format!("{what} makes git run other programs"))
                    .hint("run git without it")
            }
            Some(Finding::Push(targets)) => self.push(&targets),
            Some(Finding::Rewrite(what)) => answer(
                self.config.rewrite,
                REWRITE,
                format!("{what} rewrites or throws away history or work"),
                "/rewrite",
            ),
            Some(Finding::Unclear) => Evaluation::ask(
                UNREAD,
                "a word of this git command is not known before it runs",
                "Run this git command?",
            ),
        }
    }

    fn push(&self, targets: &Targets) -> Evaluation {
        let protected = targets.branches.iter().find(|branch| self.config.protected.contains(branch));
        let denied = |reason: String| {
            Evaluation::deny(PROTECTED, reason)
                .setting("/protected")
                .hint("push to another branch, by its name, and ask the user to merge it")
        };
        match (protected, self.config.push) {
            (Some(branch), _) => denied(format!("`{branch}` is a protected branch")),
            (None, _) if targets.many && !self.config.protected.is_empty() => {
                denied("it goes to all branches, protected ones too".to_owned())
            }
            (None, Answer::Allow) if targets.current && !self.config.protected.is_empty() => {
                Evaluation::ask(PUSH, "it goes to the branch that is checked out", "Run this git command?")
                    .setting("/protected")
            }
            (None, push) => answer(push, PUSH, "it sends commits to a remote".to_owned(), "/push"),
        }
    }
}

fn answer(answer: Answer, rule: &str, reason: String, setting: &str) -> Evaluation {
    match answer {
        // Other policies may still object to the command.
        Answer::Allow => Evaluation::abstain(),
        Answer::Ask => Evaluation::ask(rule, reason, "Run this git command?").setting(setting),
        Answer::Deny => Evaluation::deny(rule, reason).setting(setting).hint("ask the user to do it"),
    }
}

/// Asks about an unreadable script if it could be about git.
fn unread(command: &CommandExecution) -> Evaluation {
    if !command.mentions("git") {
        return Evaluation::abstain();
    }
    Evaluation::ask(UNREAD, "it mentions git and cannot be read for certain", "Run this command?")
        .severity(Severity::Medium)
}

fn strength(evaluation: &Evaluation) -> u8 {
    use portcullis_sdk::Verdict;
    match evaluation.verdict {
        Verdict::Abstain => 0,
        Verdict::Allow(_) => 1,
        Verdict::Ask(_) => 2,
        Verdict::Deny(_) => 3,
    }
}

portcullis_sdk::export_policy!(GitGuard);
