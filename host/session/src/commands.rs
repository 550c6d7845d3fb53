//! Commands: authorized as a whole, then run in the sandbox.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use portcullis_decision::request::{Action, Attribute, CommandExecution, Origin, PathKind, PathRef};
use portcullis_decision::{Decision, Grant, Request, RuleSet};
use portcullis_file_gate::{FileError, Purpose};
use portcullis_sandbox::{Command, Terminal};
use portcullis_sandbox_runtime::{Exit, Held, LaunchError, Next, Running};

use crate::authorized::Granted;
use crate::cancel::Cancel;
use crate::effective_policy::ForCommand;
use crate::environment::{environment, environment_of_agent};
use crate::limits::{Bounds, LimitMet, bounds, defaults, met};
use crate::network::{Sandbox, command_of};
use crate::paths;
use crate::pending_syscalls::Questions;
use crate::provoked::fault_point;
use crate::reading;
use crate::refused;
use crate::session::Session;

/// The program of a command.
#[derive(Debug, Clone)]
pub enum Program {
    /// A script for the shell.
    Script(String),
    /// A program with its arguments.
    Argv(Vec<OsString>),
}

/// A command to run.
#[derive(Debug, Clone)]
pub struct CommandCall<'a> {
    /// The program.
    pub program: Program,
    /// The working directory; absolute.
    pub cwd: &'a Path,
    /// The environment that the caller passes.
    pub environment: Vec<(String, String)>,
    /// Maximum run time, without the time spent waiting for answers.
    pub timeout: Option<Duration>,
    /// The author of the command.
    pub origin: Origin,
    /// The client's call, if any.
    pub call: Option<&'a str>,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The exit status.
    pub exit: Exit,
    /// The limit that ended it, if any.
    pub met: Option<LimitMet>,
}

impl Ended {
    /// Returns the time limit, if it ended the command.
    #[must_use]
    pub fn timed_out_after(&self) -> Option<Duration> {
        if let Some(LimitMet::Time(time)) = self.met { Some(time) } else { None }
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.exit {
            Exit::Code(code) => write!(formatter, "exit {code}")?,
            Exit::Signal(signal) => write!(formatter, "signal {signal}")?,
            Exit::Lost => formatter.write_str("lost with its sandbox")?,
        }
        self.met.iter().try_for_each(|met| write!(formatter, ", {met}"))
    }
}

/// Why a command did not run.
#[derive(Debug, thiserror::Error)]
pub enum CommandFailure {
    /// It was not allowed.
    #[error("{} (rule `{}` of `{}`)", .0.cause().reason, .0.cause().rule, .0.policy())]
    Denied(Box<Decision>),
    /// There is no sandbox.
    #[error("commands are refused because the sandbox could not be set up: {0}")]
    NoSandbox(String),
    /// The working directory cannot be used.
    #[error("the working directory of the command")]
    Directory(#[source] FileError),
    /// It could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

impl From<Box<Decision>> for CommandFailure {
    fn from(decision: Box<Decision>) -> Self {
        Self::Denied(decision)
    }
}

/// A running command.
#[derive(Debug)]
pub struct Started {
    pub(crate) running: Arc<Running>,
    pub(crate) questions: Questions,
    /// The client's call, if any.
    pub(crate) call: Option<String>,
    // Keeps the sandbox alive while a command runs in it, even if grants have created a new one.
    _sandbox: Arc<Sandbox>,
    /// The command's own rules, if they differ from the session's.
    pub(crate) rules: Option<Arc<RuleSet>>,
    request: Request,
    advice: Vec<String>,
    bounds: Bounds,
    started_at: Instant,
    /// Whether it was killed because of too much output.
    said_too_much: AtomicBool,
    /// Notes on its connections, set after it has ended.
    connections: OnceLock<Vec<String>>,
    /// Notes on refused operations, set after it has ended.
    refused: OnceLock<Vec<String>>,
}

impl Session {
    /// Returns the action of a command; does not decide.
    ///
    /// # Errors
    /// When the working directory cannot be used.
    pub fn command_action(&self, call: &CommandCall<'_>) -> Result<Action, CommandFailure> {
        let shell = match &call.program {
            Program::Script(_) => Some("bash".to_owned()),
            Program::Argv(_) => None,
        };
        let script = shown(&call.program);
        let parsed = reading::read(&call.program, call.cwd, &self.force().gate, &self.setup.context);
        Ok(Action::Command(CommandExecution {
            script,
            shell,
            cwd: self.directory(call.cwd)?,
            parsed,
            timeout_ms: call.timeout.map(|time| u32::try_from(time.as_millis()).unwrap_or(u32::MAX)),
            background: false,
        }))
    }

    /// Authorizes a command and starts it in the sandbox. `stdio` becomes its first three file descriptors.
    ///
    /// # Errors
    /// When the command is not allowed, or cannot be started.
    pub fn start_command(
        &self,
        call: CommandCall<'_>,
        stdio: [OwnedFd; 3],
        cancel: &Cancel,
    ) -> Result<Started, CommandFailure> {
        self.start_with(call, Terminal::None, stdio, cancel)
    }

    /// Starts a command that can get a controlling terminal.
    ///
    /// # Errors
    /// As for [`Self::start_command`].
    pub fn start_with(
        &self,
        call: CommandCall<'_>,
        terminal: Terminal,
        stdio: [OwnedFd; 3],
        cancel: &Cancel,
    ) -> Result<Started, CommandFailure> {
        let request = self.command_request(&call)?;
        let granted = self.authorize(request, call.call, cancel).granted()?;
        self.start_granted(granted, call, &[], (terminal, stdio), cancel)
    }

    /// Returns the request for a command; does not decide.
    pub(crate) fn command_request(&self, call: &CommandCall<'_>) -> Result<Request, CommandFailure> {
        let action = self.command_action(call)?;
        let mut request = self.request(call.origin, action);
        // Record the sandbox tier of each command in the log.
        let tier = format!("\"{}\"", self.force().tier());
        request.attributes.push(Attribute { name: "host:sandbox-tier".to_owned(), value: tier });
        let value = format!("\"{}\"", self.force().controllers());
        request.attributes.push(Attribute { name: "host:control-group".to_owned(), value });
        if self.setup.inmate.is_agent() {
            let value = "\"pi itself\"".to_owned();
            request.attributes.push(Attribute { name: "host:contained".to_owned(), value });
        }
        Ok(request)
    }

    /// Starts an allowed command, with the additional grants `opened`.
    pub(crate) fn start_granted(
        &self,
        granted: Granted,
        call: CommandCall<'_>,
        opened: &[Grant],
        streams: (Terminal, [OwnedFd; 3]),
        cancel: &Cancel,
    ) -> Result<Started, CommandFailure> {
        let request = granted.request.clone();
        self.launch(granted, call, opened, streams, cancel).inspect_err(|failure| {
            self.outcome(&request, &failure.to_string());
        })
    }

    /// Runs a command in the sandbox. Consumes the permit, which must be for this command.
    fn launch(
        &self,
        granted: Granted,
        call: CommandCall<'_>,
        opened: &[Grant],
        (terminal, stdio): (Terminal, [OwnedFd; 3]),
        cancel: &Cancel,
    ) -> Result<Started, CommandFailure> {
        let Granted { permit, request, advice, .. } = granted;
        if !permit.is_for_script(&shown(&call.program)) {
            let denial = Decision::host_denial("host.wrong-permit", "the permit is for another command");
            return Err(CommandFailure::Denied(Box::new(denial)));
        }
        fault_point("exec");
        let force = self.force();
        let grants = self.live_grants();
        let context = self.context_for(&request, &grants);
        let grants = (grants.as_slice(), opened);
        let ForCommand { sandbox, rules: own_rules } = force
            .for_command(&self.setup, self.network.as_ref(), &request, &context, grants)
            .map_err(CommandFailure::NoSandbox)?;
        let rules = own_rules.as_deref().unwrap_or(&force.rules);
        let bounds = bounds(rules.limits(defaults()), call.origin);
        let bounds = Bounds { wall: [call.timeout, bounds.wall].into_iter().flatten().min(), ..bounds };
        let temp = force.rules.base().temp.to_string_lossy();
        let command = Command {
            argv: argv(call.program),
            env: self
                .variables_of(call.environment, rules, &temp)
                .into_iter()
                .chain(sandbox.proxy_variable())
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            cwd: call.cwd.to_owned(),
            limits: bounds.sandbox,
            terminal,
        };
        let running = Arc::new(sandbox.launch_asking(command, stdio)?);
        self.connections.introduce(command_of(&running), &request.id, call.call);
        let killed = Arc::downgrade(&running);
        cancel.on_cancel(move || {
            if let Some(running) = killed.upgrade() {
                running.kill();
            }
        });
        Ok(Started {
            running,
            questions: Questions::default(),
            call: call.call.map(str::to_owned),
            _sandbox: sandbox,
            rules: own_rules,
            request,
            advice,
            bounds,
            started_at: Instant::now(),
            said_too_much: AtomicBool::new(false),
            connections: OnceLock::new(),
            refused: OnceLock::new(),
        })
    }

    fn variables_of(
        &self,
        given: Vec<(String, String)>,
        rules: &RuleSet,
        temp: &str,
    ) -> Vec<(String, String)> {
        match self.setup.inmate.is_agent() {
            true => environment_of_agent(given, temp),
            false => {
                let harmless = self.env_verdicts.of(&given);
                environment(given, &harmless, self.variables(), rules, temp)
            }
        }
    }

    /// Waits until a command and all its descendants have exited, and kills them at the time limit.
    ///
    /// Meanwhile asks the user about pending calls; that time does not count.
    pub fn finish_command(&self, started: &Started) -> Ended {
        let command = command_of(&started.running);
        let ended = std::thread::scope(|scope| {
            let ended = self.wait_for_end(started, command, |held| {
                // Dropping the call refuses it.
                let answer =
                    move || self.guarded("answering for a call", || self.answer(started, held), drop);
                scope.spawn(answer);
            });
            started.questions.take_back();
            ended
        });
        if let Some(network) = &self.network {
            network.settle(command);
        }
        let mut reports = self.connections.dismiss(command);
        let settings = self.settings();
        let script = script(&started.request.action);
        reports.retain(|report| !settings.ignored.iter().any(|ignored| ignored.covers(script, report)));
        // A second call finds no further notes.
        let _told_once = started.connections.set(reports);
        let force = self.force();
        let rules = started.rules.as_deref().unwrap_or(&force.rules);
        let by_rules = refused::by_rules(&started.running.refusals(), rules);
        let refused = started.questions.refused().into_iter().chain(by_rules).collect();
        let _told_once = started.refused.set(refused);
        self.outcome(&started.request, &ended.to_string());
        ended
    }

    /// Passes pending calls to `answer`.
    ///
    /// The command's time stops while one of its calls or connections waits for the user.
    fn wait_for_end(&self, started: &Started, command: u32, answer: impl Fn(Held)) -> Ended {
        loop {
            let is_open = started.questions.is_open();
            let time = match started.bounds.wall {
                None => FOREVER,
                Some(wall) => {
                    let waited = self.connections.waited(command) + started.questions.waited();
                    let left = (wall + waited).saturating_sub(started.started_at.elapsed());
                    if left.is_zero() && !is_open {
                        started.running.kill();
                        return Ended { exit: started.running.wait(), met: Some(LimitMet::Time(wall)) };
                    }
                    if is_open { left.max(PAUSE) } else { left }
                }
            };
            match started.running.next(time) {
                Next::Ended(exit) => return Ended { exit, met: started.met(exit) },
                Next::Held(held) => answer(held),
                Next::Nothing => {}
            }
        }
    }

    fn directory(&self, cwd: &Path) -> Result<PathRef, CommandFailure> {
        let force = self.force();
        let located = force.gate.locate(cwd, Purpose::Existing).map_err(CommandFailure::Directory)?;
        if located.kind() != PathKind::Directory {
            let path = located.canonical_text().to_owned();
            return Err(CommandFailure::Directory(FileError::NotADirectory { path }));
        }
        Ok(paths::located(&self.setup.context, &cwd.to_string_lossy(), cwd, &located))
    }
}

/// Interval at which the time limit is checked while a question is open.
const PAUSE: Duration = Duration::from_millis(50);
/// Wait interval without a time limit.
const FOREVER: Duration = Duration::from_hours(24);

impl Started {
    /// Returns the policies' texts for the model, to be sent with the result.
    #[must_use]
    pub fn advice(&self) -> &[String] {
        &self.advice
    }

    /// Returns the notes on the command's connections, for the model; empty until the command has ended.
    #[must_use]
    pub fn connections(&self) -> &[String] {
        self.connections.get().map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the notes on refused operations, for the model; empty until the command has ended.
    #[must_use]
    pub fn refused(&self) -> &[String] {
        self.refused.get().map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the maximum number of output bytes, for output that passes through the host.
    #[must_use]
    pub fn output_bytes(&self) -> u64 {
        self.bounds.output_bytes
    }

    /// Kills the command because it exceeded the output limit.
    pub fn end_for_output(&self) {
        self.said_too_much.store(true, Ordering::Relaxed);
        self.running.kill();
    }

    /// Kills the command and all its descendants.
    pub fn kill(&self) {
        self.running.kill();
    }

    fn met(&self, exit: Exit) -> Option<LimitMet> {
        if self.said_too_much.load(Ordering::Relaxed) {
            return Some(LimitMet::Output(self.bounds.output_bytes));
        }
        met(self.bounds.sandbox, exit, self.running.breach())
    }

    /// Sends a signal to the command.
    pub fn signal(&self, signal: i32) {
        self.running.signal(signal);
    }
}

fn argv(program: Program) -> Vec<OsString> {
    match program {
        Program::Script(script) => vec!["/bin/bash".into(), "-c".into(), script.into()],
        Program::Argv(argv) => argv,
    }
}

/// Returns the script of a command; empty for other actions.
fn script(action: &Action) -> &str {
    match action {
        Action::Command(command) | Action::Escalation(command) => &command.script,
        Action::File(_) | Action::Network(_) | Action::Socket(_) | Action::Tool(_) | Action::Other(_) => "",
    }
}

/// Returns a program as policies and users see it.
fn shown(program: &Program) -> String {
    match program {
        Program::Script(script) => script.clone(),
        Program::Argv(argv) => shown_argv(argv),
    }
}

/// Returns the arguments as a shell command line.
fn shown_argv(argv: &[OsString]) -> String {
    argv.iter().map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

/// Quotes a word for a shell command line.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "_-./=:,@%+".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argv_is_shown_as_typed() {
        let argv: Vec<OsString> = ["echo", "a b", "it's", "", "x=1"].map(OsString::from).to_vec();
        assert_eq!(shown_argv(&argv), "echo 'a b' 'it'\\''s' '' x=1");
    }
}
