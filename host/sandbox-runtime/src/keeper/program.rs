//! Prepares the actions of a command's init, and of the command before it executes its program.
//!
//! Both run in the keeper's memory, so everything is prepared here, before they exist.

use std::ffi::{CString, NulError, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use portcullis_sandbox::{Command, Limits, Stage, Terminal};
use portcullis_sys::launch::{END, Script, Standard};
use portcullis_sys::process::ExecVector;

use super::session::Session;
use crate::layer::{limits, privileges, processes};

/// The search path for a command without `PATH`, as in glibc.
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";

/// Returns the script of every init of the session.
pub(super) fn script_of_init(session: &Session) -> Script<'static> {
    let mut script = Script::default();
    match &session.fence {
        None => processes::prepare_for_init(&mut script, session.identity),
        Some(fence) => {
            script.adopt_orphans(Stage::Process.number());
            script.hear_of_parents_end(Stage::Process.number(), END);
            script.restrict(Stage::Landlock.number(), fence.of_inits.as_fd());
        }
    }
    script
}

/// A command in the form that the kernel takes.
pub(super) struct Program {
    pub(super) candidates: Vec<CString>,
    pub(super) argv: ExecVector,
    pub(super) env: ExecVector,
    cwd: CString,
    limits: Limits,
    terminal: Terminal,
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
            cwd: CString::new(command.cwd.into_os_string().into_vec())?,
            limits: command.limits,
            terminal: command.terminal,
        })
    }

    /// Returns the script that applies the last part of the confinement, right before the program is executed.
    pub(super) fn script<'a>(
        &self,
        session: &Session,
        [input, output, error]: &'a [OwnedFd; 3],
        rules: Option<BorrowedFd<'a>>,
    ) -> Script<'a> {
        let mut script = Script::default();
        script.new_session(Stage::Process.number());
        let stdio = Stage::Stdio.number();
        script.connect(stdio, input.as_fd(), Standard::Input);
        script.connect(stdio, output.as_fd(), Standard::Output);
        script.connect(stdio, error.as_fd(), Standard::Error);
        if self.terminal == Terminal::Input {
            script.take_terminal(stdio);
        }
        script.close_on_exec(stdio);
        let limits = session.limits.strictest(self.limits);
        limits::prepare_for_command(&mut script, limits, session.isolation());
        privileges::prepare_for_command(&mut script);
        script.enter(Stage::Directory.number(), self.cwd.clone());
        if let Some(rules) = rules {
            script.restrict(Stage::Landlock.number(), rules);
        }
        script.unblock_signals(Stage::Process.number());
        script
    }
}

fn strings(all: impl IntoIterator<Item = OsString>) -> Result<Vec<CString>, NulError> {
    all.into_iter().map(|one| CString::new(one.into_vec())).collect()
}

/// Returns the paths to try, like execvp(3).
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
