//! Commands: authorized as a whole, then run in the sandbox.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use portcullis_approvals::{Cancel, CommandQuestions};
use portcullis_decision::request::{Action, CommandExecution, PathKind, PathRef};
use portcullis_decision::{Decision, Fact, Grant, Request};
use portcullis_file_gate::{FileError, Purpose};
use portcullis_sandbox::{Command, Terminal};
use portcullis_sandbox_runtime::{Exit, Held, Next};
use portcullis_session_sandbox::environment::SANDBOX_VARIABLE;
use portcullis_session_sandbox::limits::{Bounds, LimitMet, bounds, defaults};

use crate::authorized::Granted;
use crate::changes;
use crate::command_call::{CommandCall, Program, shown};
use crate::command_variables::variables_of;
use crate::connection_judge;
use crate::credential_question;
use crate::effective_policy::ForCommand;
use crate::named_places;
use crate::paths;
use crate::pending_syscalls;
use crate::provoked::fault_point;
use crate::reading;
use crate::refused;
use crate::session::Session;
use crate::started::{CommandFailure, Ended, Started};

/// Returns the action of a command; does not decide.
///
/// # Errors
/// When the working directory cannot be used.
pub fn action(session: &Session, call: &CommandCall<'_>) -> Result<Action, CommandFailure> {
    let shell = match &call.program {
        Program::Script(_) => Some("bash".to_owned()),
        Program::Argv(_) => None,
    };
    let script = shown(&call.program);
    let parsed =
        reading::read(&call.program, call.cwd, &session.effective_policy().gate, &session.setup.context);
    Ok(Action::Command(CommandExecution {
        script,
        shell,
        cwd: directory(session, call.cwd)?,
        parsed,
        timeout_ms: call.timeout.map(|time| u32::try_from(time.as_millis()).unwrap_or(u32::MAX)),
        background: false,
    }))
}

/// Authorizes a command and starts it in the sandbox. `stdio` becomes its first three file descriptors.
///
/// # Errors
/// When the command is not allowed, or cannot be started.
pub fn start(
    session: &Session,
    call: CommandCall<'_>,
    stdio: [OwnedFd; 3],
    cancel: &Cancel,
) -> Result<Started, CommandFailure> {
    start_with(session, call, Terminal::None, stdio, cancel)
}

/// Starts a command that can get a controlling terminal.
///
/// # Errors
/// As for [`start`].
pub fn start_with(
    session: &Session,
    call: CommandCall<'_>,
    terminal: Terminal,
    stdio: [OwnedFd; 3],
    cancel: &Cancel,
) -> Result<Started, CommandFailure> {
    let request = request(session, &call)?;
    let granted = session.authorize(request, call.call, cancel).granted()?;
    credential_question::ask(session, &granted, call.call, cancel);
    let named = named_places::ask(session, &granted, call.call, cancel);
    let mut started = start_granted(session, granted, call, &named.opened, (terminal, stdio), cancel)?;
    started.closed = named.notes;
    started.opened = named.opened;
    started.made = named.made;
    Ok(started)
}

/// Returns the request for a command; does not decide.
pub(crate) fn request(session: &Session, call: &CommandCall<'_>) -> Result<Request, CommandFailure> {
    let action = action(session, call)?;
    let mut request = session.request(call.origin, action);
    // Record the sandbox of each command in the log.
    let effective = session.effective_policy();
    request.facts.push(Fact::SandboxTier(effective.tier().to_string()));
    request.facts.push(Fact::ControlGroup(effective.controllers()));
    if session.setup.inmate.is_agent() {
        request.facts.push(Fact::Contained("pi itself".to_owned()));
    }
    Ok(request)
}

/// Starts an allowed command, with the additional grants `opened`.
pub(crate) fn start_granted(
    session: &Session,
    granted: Granted,
    call: CommandCall<'_>,
    opened: &[Grant],
    streams: (Terminal, [OwnedFd; 3]),
    cancel: &Cancel,
) -> Result<Started, CommandFailure> {
    let request = granted.request.clone();
    launch(session, granted, call, opened, streams, cancel).inspect_err(|failure| {
        session.outcome(&request, &failure.to_string());
    })
}

/// Runs a command in the sandbox. Consumes the permit, which must be for this command.
fn launch(
    session: &Session,
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
    let effective = session.policy_for_start().map_err(CommandFailure::NoSandbox)?;
    let grants = session.live_grants();
    let context = session.context_for(&request, &grants);
    let grants = (grants.as_slice(), opened);
    let ForCommand { sandbox, rules: own_rules } = effective
        .for_command(&session.setup, session.network(), &request, &context, grants)
        .map_err(CommandFailure::NoSandbox)?;
    let rules = own_rules.as_deref().unwrap_or(&effective.rules);
    let bounds = bounds(rules.limits(defaults()), call.origin);
    let bounds = Bounds { wall: [call.timeout, bounds.wall].into_iter().flatten().min(), ..bounds };
    let command = Command {
        argv: argv(call.program),
        env: variables_of(session, call.environment, rules, effective.rules.base())
            .into_iter()
            .chain(sandbox.variables())
            .chain(inside_variable(session))
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
        cwd: call.cwd.to_owned(),
        limits: bounds.sandbox,
        terminal,
    };
    let layers = if sandbox.keeps_changes() { session.setup.own.count_user() } else { None };
    let recorded = session.changes().and_then(|changes| changes.length().ok());
    let running = Arc::new(sandbox.launch(command, stdio)?);
    session.connections.introduce(running.init(), &request.id, call.call);
    let killed = Arc::downgrade(&running);
    cancel.on_cancel(move || {
        if let Some(running) = killed.upgrade() {
            running.kill();
        }
    });
    Ok(Started {
        running,
        questions: CommandQuestions::default(),
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
        closed: Vec::new(),
        opened: Vec::new(),
        made: Vec::new(),
        recorded,
        _layers: layers,
    })
}

/// Returns the variable that marks the sandbox. A contained agent has its own way out of it.
fn inside_variable(session: &Session) -> Option<(String, String)> {
    (!session.setup.inmate.is_agent()).then(|| (SANDBOX_VARIABLE.to_owned(), "1".to_owned()))
}

/// Waits until a command and all its descendants have exited, and kills them at the time limit.
///
/// Meanwhile asks the user about pending calls; that time does not count.
pub fn finish(session: &Session, started: &Started) -> Ended {
    let command = started.running.init();
    let ended = std::thread::scope(|scope| {
        let ended = wait_for_end(session, started, command, |held| {
            // Dropping the call refuses it.
            let answer = || pending_syscalls::answer(session, started, held);
            scope.spawn(move || session.guarded("answering for a call", answer, drop));
        });
        started.questions.take_back();
        ended
    });
    if let Some(network) = session.network() {
        network.wait_for_connections(command);
    }
    let mut reports = session.connections.dismiss(command);
    let settings = session.settings();
    let script = script(&started.request.action);
    reports.retain(|report| !settings.ignored.iter().any(|ignored| ignored.covers(script, report)));
    // A second call finds no further notes.
    let _told_once = started.connections.set(connection_judge::gathered(reports));
    let effective = session.effective_policy();
    let rules = started.rules.as_deref().unwrap_or(&effective.rules);
    let refusals = started.running.refusals();
    let by_rules = refused::by_rules(&refusals, rules, session.setup.reader, &session.own_places());
    refused::record(session, &started.request, &refusals, started.rules.as_deref());
    let (changed, id) = (started.running.in_changes(), started.call.as_deref());
    let unrecorded = changed.map(|changed| changes::finish(session, changed, started.recorded, id, script));
    // A command that did without has no need of them.
    let closed = if ended.exit == Exit::Code(0) { &[][..] } else { started.closed.as_slice() };
    let refused = started
        .questions
        .refusal_notes()
        .into_iter()
        .chain(closed.iter().cloned())
        .chain(by_rules)
        .chain(unrecorded.unwrap_or_default())
        .collect();
    let _told_once = started.refused.set(refused);
    session.outcome(&started.request, &ended.to_string());
    ended
}

/// Passes pending calls to `answer`.
///
/// The command's time stops while one of its calls or connections waits for the user.
fn wait_for_end(session: &Session, started: &Started, command: u32, answer: impl Fn(Held)) -> Ended {
    loop {
        let is_open = started.questions.is_open();
        let time = match started.bounds.wall {
            None => FOREVER,
            Some(wall) => {
                let waited = session.connections.waited(command) + started.questions.waited();
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

fn directory(session: &Session, cwd: &Path) -> Result<PathRef, CommandFailure> {
    let effective = session.effective_policy();
    let located = effective.gate.locate(cwd, Purpose::Existing).map_err(CommandFailure::Directory)?;
    if located.kind() != PathKind::Directory {
        let path = located.canonical_text().to_owned();
        return Err(CommandFailure::Directory(FileError::NotADirectory { path }));
    }
    Ok(paths::located(&session.setup.context, &cwd.to_string_lossy(), cwd, &located))
}

/// Interval at which the time limit is checked while a question is open.
const PAUSE: Duration = Duration::from_millis(50);
/// Wait interval without a time limit.
const FOREVER: Duration = Duration::from_hours(24);

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
