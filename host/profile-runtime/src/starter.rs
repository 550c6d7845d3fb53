//! The starter: the process between the host and a command.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, getpid, getppid, kill_process_group, setsid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2};

use crate::limits;

/// The argument with which a program must call [`starter_main`] and nothing else.
pub const STARTER_ARGUMENT: &str = "__starter";

/// The exit code of a starter that has not started the command.
pub(crate) const NOT_STARTED: u8 = 125;
/// How often a starter looks whether its host is alive.
const LOOK: Duration = Duration::from_millis(100);
/// Signals that are sent to the whole group and are meant for the command.
const FOR_THE_COMMAND: [i32; 9] =
    [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2];

/// What a starter is told, in the order of its arguments.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Task {
    /// The process id of the host.
    pub(crate) host: u32,
    pub(crate) limits: portcullis_sandbox::Limits,
    pub(crate) cwd: PathBuf,
    /// The confiner and its arguments, which end with the command.
    pub(crate) confined: Vec<OsString>,
}

impl Task {
    pub(crate) fn into_arguments(self) -> Vec<OsString> {
        let fixed = [
            STARTER_ARGUMENT.into(),
            self.host.to_string().into(),
            limits::to_argument(self.limits).into(),
            self.cwd.into(),
        ];
        fixed.into_iter().chain(self.confined).collect()
    }

    fn parse(mut arguments: impl Iterator<Item = OsString>) -> Option<Self> {
        let host = arguments.next()?.to_str()?.parse().ok()?;
        let limits = limits::from_argument(arguments.next()?.to_str()?)?;
        let cwd = arguments.next()?.into();
        let confined: Vec<OsString> = arguments.collect();
        (!confined.is_empty()).then_some(Self { host, limits, cwd, confined })
    }
}

/// The main function of a starter. Ends as the command ends.
#[must_use]
pub fn starter_main() -> ExitCode {
    let Some(task) = Task::parse(std::env::args_os().skip(2)) else { return NOT_STARTED.into() };
    match start(task) {
        Ok(status) => end_like(status),
        Err(error) => {
            // The command's own standard error: the text becomes part of its result.
            let _unsaid = std::io::Write::write_fmt(
                &mut std::io::stderr(),
                format_args!("portcullis: the command was not started: {error}\n"),
            );
            NOT_STARTED.into()
        }
    }
}

fn start(task: Task) -> std::io::Result<ExitStatus> {
    // A session of its own has no terminal, into which a command could type.
    setsid()?;
    // Before the command exists: afterwards a signal to the group could end the starter first.
    for signal in FOR_THE_COMMAND {
        // Execution resets a handler, but keeps an ignored signal ignored.
        signal_hook::flag::register(signal, std::sync::Arc::default())?;
    }
    let host = Pid::from_raw(i32::try_from(task.host).unwrap_or_default());
    std::thread::Builder::new().spawn(move || end_with(host))?;
    limits::set(task.limits)?;
    let Some((confiner, arguments)) = task.confined.split_first() else {
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    Command::new(confiner).args(arguments).current_dir(&task.cwd).spawn()?.wait()
}

/// Kills the group, this process included, once the host is not its parent any more.
fn end_with(host: Option<Pid>) {
    while host.is_some() && getppid() == host {
        std::thread::sleep(LOOK);
    }
    let _ended = kill_process_group(getpid(), Signal::KILL);
}

fn end_like(status: ExitStatus) -> ExitCode {
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitCode::from(u8::try_from(code & 0xff).unwrap_or(NOT_STARTED)),
        (None, Some(signal)) => {
            let _ended = signal_hook::low_level::emulate_default_handler(signal);
            ExitCode::from(u8::try_from(128 + signal).unwrap_or(NOT_STARTED))
        }
        (None, None) => NOT_STARTED.into(),
    }
}

#[cfg(test)]
mod tests {
    use portcullis_sandbox::Limits;

    use super::*;

    #[test]
    fn a_task_survives_the_arguments_and_a_part_of_one_is_none() {
        let task = || Task {
            host: 7,
            limits: Limits { file_bytes: Some(9), ..Limits::default() },
            cwd: "/a b".into(),
            confined: vec!["/c".into(), "-f".into()],
        };
        let arguments = task().into_arguments();
        assert_eq!(arguments.first(), Some(&STARTER_ARGUMENT.into()));
        assert_eq!(Task::parse(arguments.into_iter().skip(1)), Some(task()));
        let three = ["7", "-,-,-,-,-,-", "/"].map(OsString::from);
        assert_eq!(Task::parse(three.into_iter()), None);
        assert_eq!(Task::parse(["x", "-,-,-,-,-,-", "/", "/c"].map(OsString::from).into_iter()), None);
    }
}
