//! What this machine gives, tried out: each mechanism by itself, in a process that is thrown away.
//!
//! A setting of the system only says what should be; whether it is, is seen by doing it. Settings serve to
//! explain what was seen.

mod advice;
mod facts;

#[cfg(target_os = "linux")]
mod child;

use std::fmt;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

pub use advice::{Advice, advice, apparmor_profile};
#[cfg(target_os = "linux")]
pub use child::probe_main;
pub use facts::Facts;

/// The whole life of a process that tries something; on this system there is nothing to try.
#[cfg(not(target_os = "linux"))]
pub fn probe_main() -> std::process::ExitCode {
    std::process::ExitCode::FAILURE
}

/// The argument with which a program is to call [`probe_main`] and nothing else.
pub const PROBE_ARGUMENT: &str = "__probe";

/// One mechanism that can be tried by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Primitive {
    /// A user namespace with the user mapped into it.
    UserNamespace,
    /// Mounts made, copied and restricted with the new calls.
    Mounts,
    /// A `/proc` of a pid namespace.
    Proc,
    /// A network of its own.
    Network,
    /// Host name, System V objects and message queues of its own.
    Objects,
    /// Rights on files below the mounts.
    Landlock,
    /// Signals and sockets that do not leave Landlock's rules, without which there is no sandbox without namespaces.
    Scopes,
    /// The filter of system calls.
    Filter,
    /// Calls handed over to somebody who listens.
    Listener,
    /// A number of processes that the kernel keeps for root too.
    ProcessLimit,
    /// A control group beside this program's own, which bounds memory and processes.
    ControlGroup,
}

/// What came of trying it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was tried.
    pub primitive: Primitive,
    /// Details of what is there, or what the kernel said.
    pub outcome: Result<String, Refused>,
}

/// What the kernel said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// What was being done.
    pub doing: String,
    /// The kernel's answer; 0 where it gave none.
    pub errno: i32,
}

impl Primitive {
    /// Every one, in the order in which they build upon one another.
    pub const ALL: [Self; 11] = [
        Self::UserNamespace,
        Self::Mounts,
        Self::Proc,
        Self::Network,
        Self::Objects,
        Self::Filter,
        Self::Landlock,
        Self::Scopes,
        Self::Listener,
        Self::ProcessLimit,
        Self::ControlGroup,
    ];

    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::UserNamespace => "user-namespace",
            Self::Mounts => "mounts",
            Self::Proc => "proc",
            Self::Network => "network",
            Self::Objects => "objects",
            Self::Landlock => "landlock",
            Self::Scopes => "scopes",
            Self::Filter => "filter",
            Self::Listener => "listener",
            Self::ProcessLimit => "process-limit",
            Self::ControlGroup => "control-group",
        }
    }

    /// Whether there is no sandbox without it.
    #[must_use]
    pub fn is_needed(self) -> bool {
        match self {
            Self::UserNamespace
            | Self::Mounts
            | Self::Proc
            | Self::Network
            | Self::Objects
            | Self::Filter => true,
            Self::Landlock | Self::Scopes | Self::Listener | Self::ProcessLimit | Self::ControlGroup => false,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.errno {
            0 => formatter.write_str(&self.doing),
            errno => write!(formatter, "{}: {}", self.doing, std::io::Error::from_raw_os_error(errno)),
        }
    }
}

/// Tries every mechanism; `executable` is a program that calls [`probe_main`] when its first argument is
/// [`PROBE_ARGUMENT`], usually the running one.
#[must_use]
pub fn probe(executable: &Path) -> Vec<Finding> {
    let find = |primitive| Finding { primitive, outcome: attempt(executable, primitive) };
    Primitive::ALL.into_iter().map(find).collect()
}

fn attempt(executable: &Path, primitive: Primitive) -> Result<String, Refused> {
    let broken = |doing: &str, error: &std::io::Error| Refused {
        doing: doing.to_owned(),
        errno: error.raw_os_error().unwrap_or_default(),
    };
    let mut child = Command::new(executable)
        .args([PROBE_ARGUMENT, primitive.name()])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| broken("starting a process to try it in", &error))?;
    let mut answer = String::new();
    // Until everyone who was started has ended.
    let read = child.stdout.take().map(|mut output| output.read_to_string(&mut answer));
    child.wait().map_err(|error| broken("waiting for the process that tried it", &error))?;
    if let Some(Err(error)) = read {
        return Err(broken("reading what came of it", &error));
    }
    parse(&answer)
}

/// `ok` or the number of an error, and a text.
fn parse(answer: &str) -> Result<String, Refused> {
    match answer.trim_end_matches('\n').split_once(' ') {
        Some(("ok", text)) => Ok(text.to_owned()),
        Some((errno, doing)) => {
            Err(Refused { doing: doing.to_owned(), errno: errno.parse().unwrap_or_default() })
        }
        None => Err(Refused { doing: "the process that tried it died".to_owned(), errno: 0 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_understood() {
        assert_eq!(parse("ok version 7\n"), Ok("version 7".to_owned()));
        let refused = parse("1 making namespaces\n").expect_err("refused");
        assert_eq!((refused.errno, refused.doing.as_str()), (1, "making namespaces"));
        assert!(refused.to_string().starts_with("making namespaces: Operation not permitted"));
        assert_eq!(parse("").expect_err("died").errno, 0);
    }
}
