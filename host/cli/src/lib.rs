//! The `portcullis` command: starts what its arguments name.
//!
//! This crate calls other crates and prints results. It contains no rules: policies and settings state what is allowed,
//! and `portcullis-session` decides. Arguments, output and exit codes are in `portcullis-command-line`, the verbs about
//! policies and their log in `portcullis-policy-commands`. The work behind the verbs is in `portcullis-bootstrap`,
//! `portcullis-server` and `portcullis-policy-tools`.
//!
//! Reading order: this file (the parts that the process can be, and the verbs), `commands` (one file for each verb).

mod commands;
mod in_force;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;
use portcullis_command_line::args::{Arguments, Verb};
use portcullis_command_line::exit::{self, Audience, Exit};
use portcullis_policy_commands::{audit, check, explain, policy};

/// The main function of the program. Depending on the first argument the process is a part of a sandbox, the compiler of
/// policies (unless it is built without, and `portcullis-compile` lies beside it), or the command line.
#[must_use]
pub fn start() -> ExitCode {
    let first = std::env::args_os().nth(1).unwrap_or_default();
    // This must come before any other code starts a thread or opens a file descriptor.
    if first == portcullis_sandbox_runtime::KEEPER_ARGUMENT {
        return portcullis_sandbox_runtime::keeper_main(portcullis_session::make_names);
    }
    if first == portcullis_sandbox_runtime::PROBE_ARGUMENT {
        return portcullis_sandbox_runtime::probe_main();
    }
    if first == portcullis_profile_runtime::STARTER_ARGUMENT {
        return portcullis_profile_runtime::starter_main();
    }
    #[cfg(feature = "compiler")]
    if first == portcullis_policy_runtime::COMPILER_ARGUMENT {
        return portcullis_policy_runtime::compiler_main();
    }
    run()
}

/// Runs the command line of this process.
fn run() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let audience = Audience::from_arguments(&words);
    let arguments = match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments,
        Err(error) => return exit::usage(&error),
    };
    let fallen = exit::AfterPanic::for_verb(&arguments.verb);
    exit::report_panics();
    #[cfg(debug_assertions)]
    if let Some(point) = portcullis_bootstrap::process_env::provoked_fault() {
        portcullis_session::provoke(point);
    }
    // A fault during a decision must not end in a permission.
    portcullis_session::caught(|| carry_out(arguments.verb, audience))
        .unwrap_or_else(|panic| fallen.end(&panic, audience))
}

fn carry_out(verb: Verb, audience: Audience) -> ExitCode {
    let outcome = match verb {
        Verb::Run(run) => return exit::of_run(commands::run::run(run)),
        Verb::Status(status) => commands::status::run(&status),
        Verb::Check(check) => check::run(check),
        Verb::Explain(decision) => explain::run(&decision),
        Verb::Audit(audit) => audit::run(audit),
        Verb::Config(config) => commands::config::run(config),
        Verb::Asks(asks) => commands::asks::run(&asks),
        Verb::Ports(ports) => commands::ports::run(&ports),
        Verb::Allow(rule) => commands::allow::allow(&rule),
        Verb::Deny(rule) => commands::allow::deny(&rule),
        Verb::Presets(presets) => commands::presets::run(&presets),
        Verb::Credentials(credentials) => commands::credentials::run(&credentials),
        Verb::Home(home) => commands::home::run(&home),
        Verb::Migrate(migrate) => commands::migrate::run(&migrate),
        Verb::Changes(changes) => commands::undo::changes(&changes),
        Verb::Undo(undo) => commands::undo::undo(&undo),
        Verb::Redo(redo) => commands::undo::redo(&redo),
        Verb::Branch(branch) => commands::branch::run(branch),
        Verb::Grants(grants) => commands::grants::run(&grants),
        Verb::Doctor(doctor) => commands::doctor::run(&doctor),
        Verb::Policy(verb) => policy::run(verb),
        Verb::Team(verb) => commands::team::run(&verb),
        Verb::Serve => portcullis_server::run().map(Exit::Command),
        Verb::ExecClient(client) => return exit::of_run(commands::exec_client::run(&client)),
        Verb::Sweep => commands::sweep::run(),
        Verb::Pi(pi) => commands::pi::run(&pi),
        Verb::PiExtension(action) => commands::pi_extension::run(&action),
        Verb::Version(version) => commands::version::run(&version),
        Verb::Manual(manual) => commands::manual::run(&manual),
        Verb::Completions(completions) => commands::completions::run(&completions),
        Verb::Complete(complete) => commands::complete::run(&complete),
    };
    exit::exit_code(outcome, audience)
}
