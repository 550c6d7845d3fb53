//! Command line arguments, as typed.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub mod action;
pub mod allow;
pub mod asks;
pub mod audit;
pub mod branch;
pub mod config;
pub mod credentials;
#[cfg(test)]
mod doc_tests;
pub mod doctor;
#[cfg(test)]
mod help_tests;
pub mod home;
pub mod migrate;
pub mod policy;
pub mod ports;
pub mod share;
pub mod status;
pub mod team;
pub mod undo;
pub mod version;

use action::{Action, Sources};
use allow::{Presets, Rule};
use asks::{Asks, Grants};
use audit::{Audit, Explain};
use branch::Branch;
use config::Config;
use credentials::Credentials;
use doctor::Doctor;
use home::Home;
use migrate::Migrate;
use policy::Policy;
use ports::Ports;
use status::Status;
use team::Team;
use undo::{Changes, Redo, Undo};
use version::Version;

/// A policy engine and a sandbox for the pi coding agent.
#[derive(Debug, Parser)]
#[command(name = "portcullis", version, max_term_width = 100, arg_required_else_help = true, after_help = TOP_HELP)]
pub struct Arguments {
    /// What the program does.
    #[command(subcommand)]
    pub verb: Verb,
}

/// A verb with its arguments.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run one command in the sandbox
    #[command(after_help = RUN_HELP)]
    Run(Run),
    /// Show the running sessions: projects, commands, open questions
    #[command(visible_alias = "ps", after_help = status::STATUS_HELP)]
    Status(Status),
    /// Show what would be decided about an action, without doing it
    #[command(after_help = CHECK_HELP)]
    Check(Check),
    /// Explain a decision, by default the newest refusal in this project
    #[command(after_help = audit::EXPLAIN_HELP)]
    Explain(Explain),
    /// Read the audit log
    #[command(subcommand, after_help = audit::AUDIT_HELP)]
    Audit(Audit),
    /// Show and check settings
    #[command(subcommand, after_help = config::CONFIG_HELP)]
    Config(Config),
    /// Take over from another sandbox for pi: its settings, and its extension
    #[command(after_help = migrate::MIGRATE_HELP)]
    Migrate(Migrate),
    /// Check which layers of the sandbox work on this machine, and test them with attacks
    #[command(after_help = doctor::DOCTOR_HELP)]
    Doctor(Doctor),
    /// Write, build, test, compare and share policies
    #[command(subcommand, after_help = policy::POLICY_HELP)]
    Policy(Policy),
    /// Join a team and publish for one: settings, packs and trust for many machines
    #[command(subcommand, after_help = team::TEAM_HELP)]
    Team(Team),
    /// Answer questions of running sessions from this terminal
    #[command(subcommand, after_help = asks::ASKS_HELP)]
    Asks(Asks),
    /// Allow a preset, a host or a path, in this project or in all
    #[command(after_help = allow::ALLOW_HELP)]
    Allow(Rule),
    /// Deny a host or a path, in this project or in all
    #[command(after_help = allow::DENY_HELP)]
    Deny(Rule),
    /// Show the presets: named sets of hosts, with the reason for each
    #[command(after_help = allow::PRESETS_HELP)]
    Presets(Presets),
    /// Show and remove what you have allowed
    #[command(subcommand, after_help = asks::GRANTS_HELP)]
    Grants(Grants),
    /// Show the ports on which commands listen, and open them to this machine
    #[command(subcommand, after_help = ports::PORTS_HELP)]
    Ports(Ports),
    /// Let commands use credentials that they do not have
    #[command(subcommand, after_help = credentials::CREDENTIALS_HELP)]
    Credentials(Credentials),
    /// Show and remove the private homes in which commands keep caches and settings
    #[command(subcommand, after_help = home::HOME_HELP)]
    Home(Home),
    /// Show what a session changed in your files
    #[command(after_help = undo::CHANGES_HELP)]
    Changes(Changes),
    /// Take back what a session changed in your files
    #[command(after_help = undo::UNDO_HELP)]
    Undo(Undo),
    /// Review, commit and drop branches, in which commands work instead of in the project
    #[command(subcommand, after_help = branch::BRANCH_HELP)]
    Branch(Branch),
    /// Take back the last undo
    #[command(after_help = undo::REDO_HELP)]
    Redo(Redo),
    /// Serve the pi extension: JSON-RPC on standard input and output
    #[command(
        after_help = "pi starts this itself, with a socket as descriptor 3 for the output of commands.\ndocs/protocol.md describes the protocol for other clients."
    )]
    Serve,
    /// Run the command of a replaced tool through pi's extension
    #[command(hide = true)]
    ExecClient(ExecClient),
    /// Remove the files of killed sessions; the next session does so as well
    #[command(hide = true)]
    Sweep,
    /// Start pi with the extension, which checks every tool call
    #[command(after_help = PI_HELP)]
    Pi(Pi),
    /// Install the extension for plain `pi`
    #[command(subcommand, after_help = EXTENSION_HELP)]
    PiExtension(PiExtension),
    /// Show the version, or check a file of a release against its signed sums
    #[command(after_help = version::VERSION_HELP)]
    Version(Version),
    /// Write the manual pages into a directory; for packages
    #[command(hide = true)]
    Manual(Manual),
    /// Print a completion script for a shell
    #[command(
        after_help = "Completes commands and options, and ids of grants, questions and decisions, presets and packs. It needs `portcullis` on PATH.\n\nExamples:\n  portcullis completions bash > ~/.local/share/bash-completion/completions/portcullis\n  portcullis completions zsh > ~/.zfunc/_portcullis\n  portcullis completions fish > ~/.config/fish/completions/portcullis.fish"
    )]
    Completions(Completions),
    /// Print the words that can follow on a command line; for completion scripts
    #[command(hide = true)]
    Complete(Complete),
}

const TOP_HELP: &str = "\
Examples:
  portcullis pi                               pi, with every tool call under the policy
  portcullis run -- make test                 one command, confined
  portcullis check write ~/.bashrc            what would be decided, and why";

const RUN_HELP: &str = "\
The exit status is that of the command, or 128 + n when signal n ended it.
125: portcullis itself failed. 126: the command was refused or cannot be executed. 127: it was not found. \
2: wrong usage.

Examples:
  portcullis run -- make test
  portcullis run --project ~/src/foo -- bash -c 'curl https://example.com'
  portcullis run --allow registries -- npm ci
  portcullis run --branch -- sh -c 'make && make install DESTDIR=out'
  portcullis run --settings team.json --policy strict.wasm --ask deny -- npm install";

const CHECK_HELP: &str = "\
The exit status is 0 for allow, 10 for ask, 20 for deny, 2 for wrong usage, 1 for an error.

Examples:
  portcullis check read ~/.ssh/id_ed25519
  portcullis check --json write src/main.rs
  portcullis check --policy strict.wasm connect example.com:443
  portcullis check --explain exec 'git push --force'
  portcullis check tool mcp__db__query '{\"sql\":\"select 1\"}'";

const PI_HELP: &str = "\
Starts the `pi` that is first on PATH with the extension of Portcullis, without installing anything. It needs \
Node and pi: `npm install -g @earendil-works/pi-coding-agent`.

Everything after `pi` goes to pi; `portcullis pi -- --help` shows pi's own help. With --no-sandbox after the \
prompt, pi's tools run as if Portcullis were not installed. pi 0.x runs a project's own extensions without asking, so \
in such a project it starts only with --approve, as pi 1.x calls it.

With `-p` there is no user to ask: pi prints each refusal on standard error, and exits with status 126 if a question \
was refused for that reason (setting `unattendedRefusals`).

With --contain, pi itself runs in a sandbox, with its extensions and MCP servers. The host asks its questions outside \
the sandbox: on the terminal, and by `portcullis asks`. Without a sandbox, pi does not start.

Examples:
  portcullis pi
  portcullis pi --contain
  portcullis pi --branch=fix
  portcullis pi -p 'summarise README.md'
  portcullis pi --allow registries -p 'update the dependencies'";

const EXTENSION_HELP: &str = "\
After `install`, plain `pi` runs under the policy from its next start. `portcullis pi` does not need this.

Examples:
  portcullis pi-extension install
  portcullis pi-extension remove";

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The settings and policies that decide.
    #[command(flatten)]
    pub sources: Sources,
    /// What to do when a policy asks; by default prompt on a terminal, otherwise deny
    #[arg(long, value_enum, value_name = "WHAT")]
    pub ask: Option<Ask>,
    /// A preset, a host or a path to read, allowed for this command only; may be given several times
    #[arg(long, value_name = "WHAT")]
    pub allow: Vec<String>,
    /// Leave the project as it is: what the command changes in it goes to a branch, which you review with
    /// `portcullis branch`; without a name, a new one
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub branch: Option<String>,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// What to do when a policy asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Ask {
    /// Refuse
    Deny,
    /// Allow this once
    Allow,
    /// Ask on the terminal
    Prompt,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct Check {
    /// The settings and policies that decide.
    #[command(flatten)]
    pub sources: Sources,
    /// Show the answer of every policy, and which one decided; `--json` always has them
    #[arg(long)]
    pub explain: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// The action to decide about.
    #[command(subcommand)]
    pub action: Action,
}

/// Arguments of `pi`.
#[derive(Debug, Args)]
pub struct Pi {
    /// Also put pi itself, its extensions and MCP servers into a sandbox; the host stays outside
    #[arg(long)]
    pub contain: bool,
    /// A preset, a host or a path to read, allowed in this session only; may be given several times
    #[arg(long, value_name = "WHAT")]
    pub allow: Vec<String>,
    /// Leave the project as it is: what the agent changes in it goes to a branch, which you review with `/branch` and at
    /// the end; without a name, a new one
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub branch: Option<String>,
    /// Arguments for pi
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARG")]
    pub arguments: Vec<OsString>,
}

/// Arguments of `exec-client`.
#[derive(Debug, Args)]
pub struct ExecClient {
    /// The extension's socket
    pub socket: PathBuf,
    /// The ticket of the command
    pub ticket: String,
}

/// The verbs of `pi-extension`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub enum PiExtension {
    /// Install or update it
    #[command(after_help = "Example:\n  portcullis pi-extension install")]
    Install,
    /// Remove it
    #[command(after_help = "Example:\n  portcullis pi-extension remove")]
    Remove,
    /// Print where it is, or would be
    #[command(after_help = "Example:\n  portcullis pi-extension path")]
    Path,
}

/// Arguments of `manual`.
#[derive(Debug, Args)]
pub struct Manual {
    /// The directory, which exists
    pub directory: PathBuf,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Arguments of `complete`.
#[derive(Debug, Args)]
pub struct Complete {
    /// The words before the cursor, without the program's name
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD")]
    pub words: Vec<String>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_make_sense() {
        Arguments::command().debug_assert();
    }
}
