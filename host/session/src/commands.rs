//! Commands: authorized as a whole, then run in the sandbox.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use portcullis_confine::{Command, Exit, Held, LaunchError, Next, Running, Terminal};
use portcullis_decision::request::{Action, Attribute, CommandExecution, Origin, PathKind, PathRef};
use portcullis_decision::{Decision, Grant, Request, RuleSet};
use portcullis_file_gate::{FileError, Purpose};

use crate::authorized::Granted;
use crate::cancel::Cancel;
use crate::environment::{environment, environment_of_agent};
use crate::force::ForCommand;
use crate::held::Questions;
use crate::limits::{Bounds, LimitMet, bounds, defaults, met};
use crate::network::{Sandbox, command_of};
use crate::paths;
use crate::reading;
use crate::refused;
use crate::session::Session;

/// What is to be run.
#[derive(Debug, Clone)]
pub enum Program {
    /// A script for the shell.
    Script(String),
    /// A program with its arguments.
    Argv(Vec<OsString>),
}

/// A command to be run.
#[derive(Debug, Clone)]
pub struct CommandCall<'a> {
    /// What.
    pub program: Program,
    /// Where; absolute.
    pub cwd: &'a Path,
    /// The environment that the caller would give it.
    pub environment: Vec<(String, String)>,
    /// How long it may run; waiting for an answer does not count.
    pub timeout: Option<Duration>,
    /// Who wrote it.
    pub origin: Origin,
    /// The client's call, where there is one.
    pub call: Option<&'a str>,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub exit: Exit,
    /// The limit that it met, if it did.
    pub met: Option<LimitMet>,
}

impl Ended {
    /// The time that it had, where that ran out.
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

/// Why a command was not run.
#[derive(Debug, thiserror::Error)]
pub enum CommandFailure {
    /// It was not allowed.
    #[error("{} (rule `{}` of `{}`)", .0.cause().reason, .0.cause().rule, .0.policy())]
    Denied(Box<Decision>),
    /// There is no sandbox to run it in.
    #[error("commands are refused because the sandbox could not be set up: {0}")]
    NoSandbox(String),
    /// The directory cannot be used.
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

/// A command that is running.
#[derive(Debug)]
pub struct Started {
    pub(crate) running: Arc<Running>,
    pub(crate) questions: Questions,
    /// The client's call, where there is one.
    pub(crate) call: Option<String>,
    // The sandbox lives as long as a command runs in it, also when grants have made a new one.
    _sandbox: Arc<Sandbox>,
    /// The command's own rules, where they are not those of the session.
    pub(crate) rules: Option<Arc<RuleSet>>,
    request: Request,
    advice: Vec<String>,
    bounds: Bounds,
    started_at: Instant,
    /// Whether it was killed for saying too much.
    said_too_much: AtomicBool,
    /// What became of its connections, once it has ended.
    connections: OnceLock<Vec<String>>,
    /// What was refused to it, once it has ended.
    refused: OnceLock<Vec<String>>,
}

impl Session {
    /// The action of a command; nothing is decided.
    ///
    /// # Errors
    /// When its directory cannot be used.
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

    /// Has a command authorized and starts it in the sandbox. `stdio` becomes its first three descriptors.
    ///
    /// # Errors
    /// When it is not allowed, or cannot be started.
    pub fn start_command(
        &self,
        call: CommandCall<'_>,
        stdio: [OwnedFd; 3],
        cancel: &Cancel,
    ) -> Result<Started, CommandFailure> {
        self.start_with(call, Terminal::None, stdio, cancel)
    }

    /// The same for a command that may get a controlling terminal.
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

    /// The request for a command; nothing is decided.
    pub(crate) fn command_request(&self, call: &CommandCall<'_>) -> Result<Request, CommandFailure> {
        let action = self.command_action(call)?;
        let mut request = self.request(call.origin, action);
        // So that the log says in what every command ran.
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

    /// Starts a command that was allowed, with what is `opened` to it alone.
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

    /// Runs a command in the sandbox; the permit is used up and must be for this very command.
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

    /// Waits until a command and everything it started are gone, and kills it when its time runs out. Meanwhile the
    /// user is asked about what its calls wait for; that time does not count.
    pub fn finish_command(&self, started: &Started) -> Ended {
        let command = command_of(&started.running);
        let ended = std::thread::scope(|scope| {
            let ended = self.wait_for_end(started, command, |held| {
                // The call is refused when it is dropped.
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
        // A second call finds nothing more.
        let _told_once = started.connections.set(reports);
        let force = self.force();
        let rules = started.rules.as_deref().unwrap_or(&force.rules);
        let by_rules = refused::by_rules(&started.running.refusals(), rules);
        let refused = started.questions.refused().into_iter().chain(by_rules).collect();
        let _told_once = started.refused.set(refused);
        self.outcome(&started.request, &ended.to_string());
        ended
    }

    /// Passes calls that wait to `answer`. While a call or a connection of the command waits for the user, the time of
    /// the command stands still.
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

/// How often the time is looked at while an answer is waited for.
const PAUSE: Duration = Duration::from_millis(50);
/// What is waited for that has no limit; then it is waited for again.
const FOREVER: Duration = Duration::from_hours(24);

impl Started {
    /// What policies want the model to be told with the result.
    #[must_use]
    pub fn advice(&self) -> &[String] {
        &self.advice
    }

    /// What the model is to be told of the command's connections; nothing before the command has ended.
    #[must_use]
    pub fn connections(&self) -> &[String] {
        self.connections.get().map(Vec::as_slice).unwrap_or_default()
    }

    /// What the model is to be told of what was refused to the command; nothing before it has ended.
    #[must_use]
    pub fn refused(&self) -> &[String] {
        self.refused.get().map(Vec::as_slice).unwrap_or_default()
    }

    /// How many bytes it may put out, where its output passes through the host.
    #[must_use]
    pub fn output_bytes(&self) -> u64 {
        self.bounds.output_bytes
    }

    /// Ends it because it has put out more.
    pub fn end_for_output(&self) {
        self.said_too_much.store(true, Ordering::Relaxed);
        self.running.kill();
    }

    /// Kills the command with everything that it has started.
    pub fn kill(&self) {
        self.running.kill();
    }

    fn met(&self, exit: Exit) -> Option<LimitMet> {
        if self.said_too_much.load(Ordering::Relaxed) {
            return Some(LimitMet::Output(self.bounds.output_bytes));
        }
        met(self.bounds.sandbox, exit, self.running.breach())
    }

    /// Passes a signal on to the command.
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

/// The script of a command; empty for every other action.
fn script(action: &Action) -> &str {
    match action {
        Action::Command(command) | Action::Escalation(command) => &command.script,
        Action::File(_) | Action::Network(_) | Action::Socket(_) | Action::Tool(_) | Action::Other(_) => "",
    }
}

/// A program as policies and people see it.
fn shown(program: &Program) -> String {
    match program {
        Program::Script(script) => script.clone(),
        Program::Argv(argv) => shown_argv(argv),
    }
}

/// The arguments as a person would type them in a shell.
fn shown_argv(argv: &[OsString]) -> String {
    argv.iter().map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

/// A word as a person would type it in a shell.
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
