//! `portcullis run`: runs one command confined.

use std::io::IsTerminal as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use portcullis_bootstrap::loaded_settings::{self, Purpose, Wanted};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::session;
use portcullis_bootstrap::streams::say;
use portcullis_command_line::args::{Ask, Run};
use portcullis_command_line::exit::{self, Exit, RUN_FAILED, RUN_REFUSED};
use portcullis_decision::context::AgentInfo;
use portcullis_decision::request::Origin;
use portcullis_decision::{Reader, RefusalText};
use portcullis_sandbox::Tier;
use portcullis_sandbox_runtime::Exit as CommandExit;
use portcullis_server::grace::wait_out;
use portcullis_server::terminal::{AlwaysOnce, Terminal};
use portcullis_session::{
    Cancel, CommandCall, CommandFailure, Ended, NoUser, Program, Prompter, Runs, Session, Started,
    StderrHints, commands, rerun_after_denial, with_causes,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::{Handle, Signals};

use crate::commands::branch::Branch;
use crate::commands::stderr_tee::StderrTee;

/// Signals that are forwarded to the command.
const FORWARDED: [i32; 7] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH];

/// The id of the only call of this session. With it, questions name the program.
const CALL: &str = "run";

/// Time that a command has to exit after SIGTERM or SIGHUP.
const GRACE: Duration = Duration::from_secs(5);

/// Maximum time between the start of a command and the moment from which it gets signals.
const BEGINNING: Duration = Duration::from_secs(1);

/// Said after a command that failed, if nothing else is said and its error output was not read.
const UNREAD: &str = "portcullis: the command failed. If a file was closed to it, `portcullis check read FILE` (or \
     `write FILE`) names the rule";

/// Runs the command and returns its status.
pub(crate) fn run(run: Run) -> exit::Outcome {
    let mut around = ProcessEnv::read()?;
    around.ensure_outside()?;
    around.allow.extend(run.allow);
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
        inmate: portcullis_session::SandboxSubject::Commands,
        reader: Reader::User,
        refusals: None,
    };
    let loaded = loaded_settings::load(&around, &wanted)?;
    if !loaded.resolved.enabled {
        anyhow::bail!(
            "the sandbox is switched off in the settings (`enabled` is false); run the command without portcullis"
        );
    }
    let cwd = working_directory(&around.cwd, &loaded.resolved.workspace);
    let branch = run.branch.as_deref().map(|name| Branch::begin(&around, &loaded, name)).transpose()?;
    // Dropped after the session, which uses it.
    let wired = match &branch {
        None => session::open(&around, &wanted, loaded, prompter(ask))?,
        Some(branch) => branch.session(&around, &wanted, loaded, prompter(ask))?,
    };
    for warning in &wired.session.settings().warnings {
        say(&format!("portcullis: {}: {}", warning.origin, warning.text));
    }
    let tier = wired.session.effective_policy().tier();
    if !matches!(tier, Tier::Full | Tier::None) {
        say(&format!("portcullis: the sandbox is only of the tier `{tier}`; `portcullis doctor` says more"));
    }
    let call = CommandCall {
        program: Program::Argv(run.command),
        cwd: &cwd,
        environment: around.variables,
        timeout: None,
        origin: Origin::User,
        call: Some(CALL),
    };
    let (stdio, errors) = streams(listens(ask, &wired.session))?;
    // Caught before the command starts, so that it gets every signal that comes after its first instruction.
    let signals = Signals::new(FORWARDED).context("catching signals")?;
    let ended = forwarding(signals, |current| {
        match commands::start(&wired.session, call.clone(), stdio, &Cancel::default()) {
            Ok(started) => outcome(&wait_for(&wired.session, &call, (started, errors), current)?),
            Err(failure) => Ok(exit_for_failure(&failure)),
        }
    });
    drop(wired);
    if let Some(branch) = branch {
        branch.end()?;
    }
    ended
}

/// Returns the command's working directory: ours if it lies in the project, else the project.
fn working_directory(cwd: &Path, project: &Path) -> PathBuf {
    match cwd.canonicalize() {
        Ok(here) if here.starts_with(project) => here,
        _ => project.to_owned(),
    }
}

fn prompter(ask: Ask) -> Arc<dyn Prompter> {
    match ask {
        Ask::Deny => Arc::new(NoUser),
        Ask::Allow => Arc::new(AlwaysOnce),
        Ask::Prompt => Arc::new(Terminal),
    }
}

/// Returns whether the command's error output is read for hints.
///
/// With a preset yes it is not: no command runs again then. A terminal is left alone where no question can follow about
/// writing, since programs notice that it is another one.
fn listens(ask: Ask, session: &Session) -> bool {
    match ask {
        Ask::Allow => false,
        Ask::Deny => StderrTee::is_unnoticed(),
        Ask::Prompt => StderrTee::is_unnoticed() || rerun_after_denial::asks_about_writing(session),
    }
}

/// Returns the command's streams: copies of our own, except for an error output that is read for hints.
fn streams(listens: bool) -> anyhow::Result<([OwnedFd; 3], Option<StderrTee>)> {
    let copies = "copying our input and output";
    let input = std::io::stdin().as_fd().try_clone_to_owned().context(copies)?;
    if listens {
        let (ours, output, errors) = StderrTee::open().context("making the command's error output")?;
        return Ok(([input, output, errors], Some(ours)));
    }
    let output = portcullis_bootstrap::streams::output().as_fd().try_clone_to_owned().context(copies)?;
    let errors = portcullis_bootstrap::streams::errors().as_fd().try_clone_to_owned().context(copies)?;
    Ok(([input, output, errors], None))
}

/// Forwards signals to the current run of the command until `run` returns.
fn forwarding(mut signals: Signals, run: impl FnOnce(&Current) -> exit::Outcome) -> exit::Outcome {
    let until_end = Catching(signals.handle());
    let current = Current::default();
    thread::scope(|scope| {
        let current = &current;
        let (told, last) = channel();
        scope.spawn(move || {
            for signal in signals.forever() {
                current.signal(signal);
                if signal == SIGTERM || signal == SIGHUP {
                    let _told_already = told.send(());
                }
            }
        });
        scope.spawn(move || {
            if is_outlasted(&last) {
                current.kill();
            }
        });
        // Also after a panic, or the thread that forwards would be waited for.
        let _until_end = until_end;
        run(current)
    })
}

/// Catches signals as long as it exists.
struct Catching(Handle);

impl Drop for Catching {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn outcome(ended: &Ended) -> exit::Outcome {
    Ok(match ended.exit {
        CommandExit::Lost => {
            say("portcullis: the sandbox ended while the command ran; the command is dead");
            Exit::Command(RUN_FAILED)
        }
        exit @ (CommandExit::Code(_) | CommandExit::Signal(_)) => {
            Exit::Command(u8::try_from(exit.shell_code()).unwrap_or(RUN_FAILED))
        }
    })
}

/// The runs of the command, with our own streams.
struct OwnRuns<'a> {
    session: &'a Session,
    current: &'a Current,
    /// Whether the command's error output is not read, and nothing was said about the command yet.
    is_silent: bool,
}

impl Runs for OwnRuns<'_> {
    type Output = Option<StderrTee>;
    type Error = anyhow::Error;

    fn streams(&mut self) -> anyhow::Result<([OwnedFd; 3], Option<StderrTee>)> {
        streams(true)
    }

    fn finish(
        &mut self,
        started: Started,
        errors: Option<StderrTee>,
    ) -> anyhow::Result<(Ended, StderrHints)> {
        let running = Arc::new((started, errors));
        self.current.set(&running);
        let (command, errors) = &*running;
        let mut heard = StderrHints::default();
        let ended = thread::scope(|scope| {
            if let Some(errors) = errors {
                scope.spawn(|| errors.pass(&mut heard));
            }
            commands::finish(self.session, command)
        });
        self.is_silent &= !tell(command, &ended);
        // From here on a signal ends this process again.
        drop(running);
        Ok((ended, heard))
    }

    fn not_run_again(&mut self, failure: &CommandFailure) {
        say(&format!("portcullis: the command could not be run again: {}", with_causes(failure)));
    }
}

/// Waits for the end of the command, and of further runs that the user wants.
fn wait_for(
    session: &Session,
    call: &CommandCall<'_>,
    started: (Started, Option<StderrTee>),
    current: &Current,
) -> anyhow::Result<Ended> {
    let is_read = started.1.is_some();
    let mut runs = OwnRuns { session, current, is_silent: !is_read };
    let (ended, notes) = rerun_after_denial::follow(session, call, started, &mut runs, &Cancel::default())?;
    let is_silent = runs.is_silent && notes.is_empty();
    for note in notes {
        say(&format!("portcullis: {note}"));
    }
    if is_silent && matches!(ended.exit, CommandExit::Code(code) if code != 0) {
        say(UNREAD);
    }
    Ok(ended)
}

/// Says what happened to a command. Returns true if that was something.
fn tell(command: &Started, ended: &Ended) -> bool {
    let met = ended.met.map(|met| format!("the command met a limit: {met}"));
    let lines = [command.connections(), command.refusal_notes()].concat();
    let lines: Vec<String> = met.into_iter().chain(lines).collect();
    lines.iter().for_each(|line| say(&format!("portcullis: {line}")));
    !lines.is_empty()
}

/// The command that gets signals. Without one, as during a question, they end this process and the sandbox with it.
#[derive(Debug, Default)]
struct Current {
    running: Mutex<Weak<(Started, Option<StderrTee>)>>,
    begun: Condvar,
}

impl Current {
    fn set(&self, running: &Arc<(Started, Option<StderrTee>)>) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(running);
        self.begun.notify_all();
    }

    /// Returns the command, waiting a moment for one that is just starting.
    fn soon(&self) -> Option<Arc<(Started, Option<StderrTee>)>> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let is_missing = |running: &mut Weak<_>| running.strong_count() == 0;
        let waited = self.begun.wait_timeout_while(running, BEGINNING, is_missing);
        waited.unwrap_or_else(PoisonError::into_inner).0.upgrade()
    }

    fn signal(&self, signal: i32) {
        let Some(running) = self.soon() else {
            // Signals with another default action are ignored.
            let _ended = signal_hook::low_level::emulate_default_handler(signal);
            return;
        };
        let (command, errors) = &*running;
        if let Some(errors) = errors.as_ref().filter(|_| signal == SIGWINCH) {
            errors.follow_size();
        }
        command.signal(signal);
    }

    fn kill(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        if let Some(running) = running {
            running.0.kill();
        }
    }
}

/// Waits until the command is told to exit, and then for the grace period. Returns true if it is still running.
fn is_outlasted(told: &Receiver<()>) -> bool {
    told.recv().is_ok() && wait_out(told, GRACE) == RecvTimeoutError::Timeout
}

fn exit_for_failure(failure: &CommandFailure) -> Exit {
    let why = match failure {
        CommandFailure::Denied(decision) => {
            RefusalText::for_decision(decision).read_by(Reader::User).with_next_step(None)
        }
        CommandFailure::NoSandbox(_) | CommandFailure::Directory(_) | CommandFailure::Launch(_) => {
            with_causes(failure)
        }
    };
    say(&format!("portcullis: {why}"));
    Exit::Command(match failure {
        CommandFailure::Denied(_) => RUN_REFUSED,
        CommandFailure::Launch(error) => error.exit_code(),
        CommandFailure::NoSandbox(_) | CommandFailure::Directory(_) => RUN_FAILED,
    })
}
