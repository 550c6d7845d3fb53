//! `portcullis pi --contain`: pi in a sandbox with all processes that it starts, and the host outside.
//!
//! This process is the host. It starts pi as one long-running command in its own sandbox, serves pi's extension through
//! a socket in it, and runs the agent's commands in other sandboxes beside it. Questions are shown outside.

mod agent_reload;
mod fd_handoff;
mod overlay;
mod places;
mod question_router;
mod start;
mod streams;
mod terminal;

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};
use portcullis_bootstrap::loaded_settings::{Purpose, Wanted};
use portcullis_bootstrap::process_env::{ProcessEnv, random_name};
use portcullis_bootstrap::scratch::Scratch;
use portcullis_bootstrap::session::{self, OpenSession};
use portcullis_bootstrap::streams::say;
use portcullis_decision::Reader;
use portcullis_decision::context::AgentInfo;
use portcullis_decision::request::Origin;
use portcullis_sandbox::{Terminal as Controlled, Tier};
use portcullis_sandbox_runtime::Exit as CommandExit;
use portcullis_session::{
    Cancel, CommandCall, Program, SandboxSubject, Session, Started, commands, with_causes,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::Signals;

use crate::contain::agent_reload::ContainedPi;
use crate::contain::fd_handoff::HandoffSocket;
use crate::contain::question_router::Asking;
use crate::grace::wait_out;
use crate::serve::{Contained, Watch};

pub(crate) use fd_handoff::{hand_over, socket_of_this_process};
pub use start::Start;

/// Signals that are forwarded to pi.
const FORWARDED: [i32; 7] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH];
/// Time that pi has to exit after it was told to, or after its terminal is gone.
const GRACE: Duration = Duration::from_secs(3);

/// The `--contain` flag.
pub const CONTAIN: &str = "--contain";

/// Runs pi in a sandbox and returns its exit status, or `None` if the sandbox has failed.
///
/// # Errors
/// If pi cannot be contained here, or was not started.
pub fn run(around: &ProcessEnv, start: &Start) -> anyhow::Result<Option<u8>> {
    if start.arguments.iter().any(is_no_sandbox) {
        bail!("`--no-sandbox` and `{CONTAIN}` exclude each other; leave one of them out");
    }
    let project = around.cwd.canonicalize().context("finding the project")?;
    let program = start.program.canonicalize()?;
    let sessions = around.state.join("sessions");
    let directory =
        Scratch::make(&sessions, &random_name()?).context("making a directory for the socket of pi")?;
    let places = places::of_pi(around, &project, start, [&program, &directory.temp()])?;
    let asking = Asking::here(&start.arguments)?;
    let wanted = Wanted {
        project: project.clone(),
        settings: None,
        policies: Vec::new(),
        agent: AgentInfo { name: "pi".to_owned(), ..AgentInfo::default() },
        trusted: start.trusted,
        interactive: asking.is_possible(),
        purpose: Purpose::Act,
        inmate: SandboxSubject::Agent(places),
        reader: Reader::User,
        refusals: None,
    };
    let trusted = wanted.trusted;
    let watch = Watch::new(around.clone(), wanted.clone(), None);
    let loaded = watch.begin()?;
    if !loaded.resolved.enabled {
        bail!(
            "the sandbox is switched off in the settings (`enabled` is false); start pi without `{CONTAIN}`"
        );
    }
    let wired = session::open(around, &wanted, loaded, asking.prompter())?;
    is_whole(&wired.session)?;
    let temp = wired.temp().context("the session has no temporary directory")?;
    let asks = asking.clone();
    let contained = move |place| Contained {
        project: project.clone(),
        trusted,
        interactive: asks.is_possible(),
        prompter: asks.prompter(),
        temp: temp.clone(),
        _place: place,
    };
    let socket = HandoffSocket::open(directory, around, contained)?;
    let (terminal, stdio, copies) = asking.streams()?;
    let variables = variables(around, start, socket.path());
    // From here on signals wait until pi runs, so that none of them ends the host and leaves pi without it.
    let signals = Signals::new(FORWARDED).context("catching signals")?;
    asking.begin();
    // A policy may ask about the start of pi itself.
    let ended = begin(&wired, &program, start, variables, (terminal, stdio)).map(|started| {
        let started = Arc::new(started);
        asking.introduce(&started);
        follow(ContainedPi { watch: &watch, wired: &wired, pi: &started }, signals, &asking)
    });
    asking.end();
    copies.finish();
    drop(socket);
    ended
}

/// Returns true if pi may take a word for its option that disables the sandbox, with any value.
fn is_no_sandbox(word: &OsString) -> bool {
    let rest = word.as_encoded_bytes().strip_prefix(b"--no-sandbox");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"="))
}

/// Checks that the sandbox has the full tier, which pi itself needs.
fn is_whole(session: &Session) -> anyhow::Result<()> {
    let force = session.effective_policy();
    if let Err(reason) = &force.confinement {
        bail!("pi cannot be contained here, and is not started: {reason}");
    }
    let tier = force.tier();
    if tier != Tier::Full {
        bail!(
            "pi cannot be contained here, and is not started: the sandbox is only of the tier `{tier}`; \
             `portcullis doctor` says what is missing"
        );
    }
    Ok(())
}

fn variables(around: &ProcessEnv, start: &Start, socket: &Path) -> Vec<(String, String)> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let own = [
        ("PORTCULLIS_HOST".to_owned(), text(&around.executable)),
        (fd_handoff::VARIABLE.to_owned(), text(socket)),
    ];
    let set: Vec<(String, String)> = start.variables.iter().cloned().chain(own).collect();
    let is_set = |name: &str| set.iter().any(|(known, _)| known == name);
    let kept = around.variables.iter().filter(|(name, _)| !is_set(name)).cloned();
    kept.chain(set.clone()).collect()
}

fn begin(
    wired: &OpenSession,
    program: &Path,
    start: &Start,
    environment: Vec<(String, String)>,
    (terminal, stdio): (Controlled, [OwnedFd; 3]),
) -> anyhow::Result<Started> {
    let extension = [OsString::from("-e"), start.extension.clone().into_os_string()];
    let words = [program.as_os_str().to_owned()].into_iter().chain(extension);
    let call = CommandCall {
        program: Program::Argv(words.chain(start.arguments.iter().cloned()).collect()),
        cwd: &wired.session.settings().workspace.clone(),
        environment,
        timeout: None,
        origin: Origin::User,
        call: None,
    };
    let started = commands::start_with(&wired.session, call, terminal, stdio, &Cancel::default());
    started.map_err(|failure| anyhow::anyhow!("pi is not started: {}", with_causes(&failure)))
}

/// Forwards signals and puts edited settings in force until pi has exited.
fn follow(own: ContainedPi<'_>, mut signals: Signals, asking: &Asking) -> Option<u8> {
    let ContainedPi { wired, pi: started, .. } = own;
    let handle = signals.handle();
    let ended = thread::scope(|scope| {
        let (told, last) = channel();
        let (over, is_over) = channel();
        let tell = told.clone();
        scope.spawn(move || own.keep_up(asking, &tell, &is_over));
        scope.spawn(move || {
            for signal in signals.forever() {
                if signal != SIGWINCH || !asking.follow_size() {
                    started.signal(signal);
                }
                if signal == SIGTERM || signal == SIGHUP {
                    let _told_already = told.send(());
                }
            }
        });
        scope.spawn(move || {
            // Wait until pi exits by itself, and kill it after the grace period.
            if last.recv().is_ok() && wait_out(&last, GRACE) == RecvTimeoutError::Timeout {
                started.kill();
            }
        });
        let ended = commands::finish(&wired.session, started);
        handle.close();
        drop::<Sender<()>>(over);
        ended
    });
    if !asking.is_here() {
        // With a terminal, the user has seen the questions.
        for line in started.connections().iter().chain(started.refusal_notes()) {
            say(&format!("portcullis: {line}"));
        }
    }
    if let Some(met) = ended.met {
        say(&format!("portcullis: pi met a limit of its sandbox: {met}"));
    }
    match ended.exit {
        CommandExit::Lost => {
            say("portcullis: the sandbox of pi has ended, and pi with it");
            None
        }
        exit @ (CommandExit::Code(_) | CommandExit::Signal(_)) => u8::try_from(exit.shell_code()).ok(),
    }
}
