//! The init of one command, and the command itself until it replaces itself.

use std::ffi::{CString, NulError, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use portcullis_sys::landlock::restrict_self;
use portcullis_sys::process::{CloneFlags, Cloned, ExecVector, SingleThread, clone, exec, exit_now};
use portcullis_sys::{descriptor, signal};
use rustix::io::{Errno, ioctl_fionread};
use rustix::process::{Pid, WaitOptions, wait};

use super::serve::Said;
use super::{Session, tell};
use crate::layer::{During, Failure, limits, privileges, processes};
use crate::wire::{Ending, Event};
use crate::{Command, Limits, Stage};

/// Where programs are looked for when the command has no `PATH`, as in glibc.
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";

/// A command in the form the kernel wants, made before there are two processes.
pub(super) struct Program {
    candidates: Vec<CString>,
    argv: ExecVector,
    env: ExecVector,
    cwd: PathBuf,
    limits: Limits,
}

impl Program {
    pub(super) fn new(command: Command) -> Result<Self, NulError> {
        let path = command.env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
        let argv = strings(command.argv)?;
        let candidates = match argv.first() {
            Some(program) => candidates(program, path)?,
            None => Vec::new(),
        };
        let variables = command.env.into_iter().map(|(mut name, value)| {
            name.push("=");
            name.push(value);
            name
        });
        Ok(Self {
            candidates,
            argv: ExecVector::new(argv),
            env: ExecVector::new(strings(variables)?),
            cwd: command.cwd,
            limits: command.limits,
        })
    }
}

fn strings(all: impl IntoIterator<Item = OsString>) -> Result<Vec<CString>, NulError> {
    all.into_iter().map(|one| CString::new(one.into_vec())).collect()
}

/// Returns the paths to try, as execvp(3) does.
fn candidates(program: &CString, path: Option<OsString>) -> Result<Vec<CString>, NulError> {
    let name = program.as_bytes();
    if name.contains(&b'/') {
        return Ok(vec![program.clone()]);
    }
    let path = path.map_or_else(|| DEFAULT_PATH.to_vec(), OsString::into_vec);
    let directories = path.split(|&byte| byte == b':');
    directories
        .map(|directory| {
            // An empty entry means the current directory.
            let directory = if directory.is_empty() { b".".as_slice() } else { directory };
            CString::new([directory, b"/", name].concat())
        })
        .collect()
}

/// Process 1 of a command's pid namespace. When it ends, the kernel kills everything that is left in there.
pub(super) struct Init<'a> {
    pub(super) id: u64,
    pub(super) control: &'a OwnedFd,
    pub(super) single: &'a SingleThread,
    /// The keeper reads here what is written to `told`; the init only looks whether there is something.
    pub(super) record: OwnedFd,
    pub(super) told: OwnedFd,
}

impl Init<'_> {
    /// Runs the command to its end.
    pub(super) fn run(&self, session: &Session, program: &Program, stdio: &[OwnedFd; 3]) -> ! {
        match self.start(session, program, stdio) {
            // The command may have failed before it became the program; then it has said so.
            Ok(_) if ioctl_fionread(&self.record).is_ok_and(|bytes| bytes > 0) => {}
            Ok(command) => {
                tell(self.control, &Event::Started { id: self.id }, &[]);
                self.say(&Said::Ended(wait_for(command)));
            }
            Err(failure) => self.say(&Said::NotStarted(failure.refusal())),
        }
        exit_now(0)
    }

    fn start(&self, session: &Session, program: &Program, stdio: &[OwnedFd; 3]) -> Result<Pid, Failure> {
        signal::block_all().during(Stage::Process)?;
        processes::enforce()?;
        processes::mask(session.identity)?;
        match clone(self.single, CloneFlags::WAIT_FOR_EXEC).during(Stage::Process)? {
            Cloned::Child => {
                let Err(failure) = become_program(session, program, stdio);
                self.say(&Said::NotStarted(failure.refusal()));
                exit_now(127)
            }
            Cloned::Parent { pid, .. } => Pid::from_raw(pid).ok_or(Errno::SRCH).during(Stage::Process),
        }
    }

    fn say(&self, said: &Said) {
        // When the keeper has gone, so has this process.
        let _ = rustix::io::write(&self.told, &said.encode());
    }
}

/// Reaps everything, passes signals on, and returns how the command ended.
///
/// All signals are blocked: process 1 would lose them otherwise.
fn wait_for(command: Pid) -> Ending {
    loop {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if pid == command {
                return match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => Ending::Code(code),
                    (None, signal) => Ending::Signal(signal.unwrap_or(signal::KILL)),
                };
            }
        }
        match signal::wait_any() {
            Ok(signal::CHILD) | Err(_) => {}
            // The command's group has its number. It may have ended just now, which the next round finds.
            Ok(number) => drop(signal::send(-command.as_raw_nonzero().get(), number)),
        }
    }
}

/// Puts the last part of the confinement in force and replaces this process by the program.
fn become_program(
    session: &Session,
    program: &Program,
    stdio: &[OwnedFd; 3],
) -> Result<std::convert::Infallible, Failure> {
    let rules = session.landlock.as_ref().map(|landlock| landlock.for_command(stdio)).transpose()?;
    let [input, output, error] = stdio;
    rustix::process::setsid().during(Stage::Process)?;
    rustix::stdio::dup2_stdin(input).during(Stage::Stdio)?;
    rustix::stdio::dup2_stdout(output).during(Stage::Stdio)?;
    rustix::stdio::dup2_stderr(error).during(Stage::Stdio)?;
    descriptor::close_on_exec_from(3).during(Stage::Stdio)?;
    limits::enforce(session.limits)?;
    limits::enforce(program.limits)?;
    privileges::enforce_on_command()?;
    rustix::process::chdir(&program.cwd).during(Stage::Directory)?;
    if let Some(rules) = rules {
        restrict_self(rules).during(Stage::Landlock)?;
    }
    // Rust programs ignore this signal; no other program expects that.
    signal::restore_default(signal::PIPE).during(Stage::Process)?;
    signal::unblock_all().during(Stage::Process)?;
    Err(replace(program)).during(Stage::Exec)
}

/// Tries the candidates in their order; one that may not be executed is remembered, as in execvp(3).
fn replace(program: &Program) -> std::io::Error {
    let mut reason = std::io::Error::from(Errno::NOENT);
    for candidate in &program.candidates {
        let error = exec(candidate, &program.argv, &program.env);
        match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => {}
            Some(libc::EACCES) => reason = error,
            _ => return error,
        }
    }
    reason
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(program: &str, path: Option<&str>) -> Vec<String> {
        let program = CString::new(program).expect("no NUL");
        let found = candidates(&program, path.map(OsString::from)).expect("no NUL");
        found.into_iter().map(|path| path.into_string().expect("text")).collect()
    }

    #[test]
    fn programs_are_looked_for_as_execvp_does() {
        assert_eq!(tried("/bin/sh", Some("/x")), ["/bin/sh"]);
        assert_eq!(tried("./sh", Some("/x")), ["./sh"]);
        assert_eq!(tried("sh", Some("/a:/b")), ["/a/sh", "/b/sh"]);
        assert_eq!(tried("sh", Some("/a::")), ["/a/sh", "./sh", "./sh"]);
        assert_eq!(tried("sh", None), ["/bin/sh", "/usr/bin/sh"]);
    }
}
