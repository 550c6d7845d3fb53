//! `portcullis run`: one command, confined.

use std::io::IsTerminal as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use anyhow::Context as _;
use portcullis_confine::{Exit as CommandExit, Tier};
use portcullis_decision::context::AgentInfo;
use portcullis_decision::request::Origin;
use portcullis_session::{
    Cancel, CommandCall, CommandFailure, Desk, Nobody, Program, Session, Started, with_causes,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::Signals;

use crate::args::{Ask, Run};
use crate::exit::{Exit, RUN_FAILED, RUN_REFUSED, say};
use crate::surroundings::Surroundings;
use crate::terminal::{AlwaysOnce, Terminal};
use crate::wire::{self, Purpose, Wanted};

/// What is passed on to the command.
const FORWARDED: [i32; 7] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH];

/// Runs the command and returns its status.
pub(crate) fn run(run: Run) -> crate::Outcome {
    let around = Surroundings::read()?;
    let ask = run.ask.unwrap_or(if std::io::stdin().is_terminal() { Ask::Prompt } else { Ask::Deny });
    let wanted = Wanted {
        project: run.sources.project.unwrap_or_else(|| around.cwd.clone()),
        settings: run.sources.settings,
        policies: run.sources.policies,
        agent: AgentInfo {
            name: "portcullis".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..AgentInfo::default()
        },
        trusted: false,
        interactive: ask != Ask::Deny,
        purpose: Purpose::Act,
        inmate: portcullis_session::Inmate::Commands,
    };
    let ground = wire::ground(&around, &wanted)?;
    if !ground.resolved.enabled {
        anyhow::bail!(
            "the sandbox is switched off in the settings (`enabled` is false); run the command without portcullis"
        );
    }
    let cwd =
        if wanted.project == around.cwd { around.cwd.clone() } else { ground.resolved.workspace.clone() };
    let wired = wire::session(&around, &wanted, ground, desk(ask))?;
    for warning in &wired.session.settings().warnings {
        say(&format!("portcullis: {}: {}", warning.origin, warning.text));
    }
    let tier = wired.session.force().tier();
    if !matches!(tier, Tier::Full | Tier::None) {
        say(&format!("portcullis: the sandbox is only of the tier `{tier}`; `portcullis doctor` says more"));
    }
    match start(&wired.session, &around, &cwd, run.command) {
        // Until here a signal ends us, also at a question; the sandbox goes with us.
        Ok(started) => {
            Ok(follow(&wired.session, started, Signals::new(FORWARDED).context("catching signals")?))
        }
        Err(failure) => Ok(refused(&failure)),
    }
}

fn desk(ask: Ask) -> Arc<dyn Desk> {
    match ask {
        Ask::Deny => Arc::new(Nobody),
        Ask::Allow => Arc::new(AlwaysOnce),
        Ask::Prompt => Arc::new(Terminal),
    }
}

fn start(
    session: &Session,
    around: &Surroundings,
    cwd: &Path,
    command: Vec<std::ffi::OsString>,
) -> Result<Started, CommandFailure> {
    let call = CommandCall {
        program: Program::Argv(command),
        cwd,
        environment: around.variables.clone(),
        timeout: None,
        origin: Origin::User,
        call: None,
    };
    let stdio = standard_streams().map_err(|error| CommandFailure::NoSandbox(error.to_string()))?;
    session.start_command(call, stdio, &Cancel::default())
}

/// Copies of our own standard streams.
fn standard_streams() -> std::io::Result<[OwnedFd; 3]> {
    Ok([
        std::io::stdin().as_fd().try_clone_to_owned()?,
        std::io::stdout().as_fd().try_clone_to_owned()?,
        std::io::stderr().as_fd().try_clone_to_owned()?,
    ])
}

/// Passes signals on until the command has ended.
fn follow(session: &Session, started: Started, mut signals: Signals) -> Exit {
    let handle = signals.handle();
    let ended = thread::scope(|scope| {
        scope.spawn(|| {
            for signal in signals.forever() {
                started.signal(signal);
            }
        });
        let ended = session.finish_command(&started);
        handle.close();
        ended
    });
    if let Some(met) = ended.met {
        say(&format!("portcullis: the command met a limit: {met}"));
    }
    for line in started.connections().iter().chain(started.refused()) {
        say(&format!("portcullis: {line}"));
    }
    match ended.exit {
        CommandExit::Lost => {
            say("portcullis: the sandbox ended while the command ran; the command is dead");
            Exit::Command(RUN_FAILED)
        }
        exit @ (CommandExit::Code(_) | CommandExit::Signal(_)) => {
            Exit::Command(u8::try_from(exit.shell_code()).unwrap_or(RUN_FAILED))
        }
    }
}

fn refused(failure: &CommandFailure) -> Exit {
    say(&format!("portcullis: {}", with_causes(failure)));
    Exit::Command(match failure {
        CommandFailure::Denied(_) => RUN_REFUSED,
        CommandFailure::Launch(error) => error.exit_code(),
        CommandFailure::NoSandbox(_) | CommandFailure::Directory(_) => RUN_FAILED,
    })
}
