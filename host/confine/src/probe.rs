//! Probes of this machine: each mechanism is tried by itself, in a throwaway process.
//!
//! A setting of the system only states an intention; trying shows the truth. Settings serve to explain the result.

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

/// The main function of a probing process; on this system there is nothing to probe.
#[cfg(not(target_os = "linux"))]
pub fn probe_main() -> std::process::ExitCode {
    std::process::ExitCode::FAILURE
}

/// The argument with which a program must call [`probe_main`] and nothing else.
pub const PROBE_ARGUMENT: &str = "__probe";

/// A mechanism that can be probed by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Primitive {
    /// A user namespace with the user mapped into it.
    UserNamespace,
    /// Mounts created, copied and restricted with the new mount calls.
    Mounts,
    /// A `/proc` of a new pid namespace.
    Proc,
    /// A network namespace.
    Network,
    /// A host name, System V objects and message queues of its own.
    Objects,
    /// Landlock rules on files, under the mounts.
    Landlock,
    /// Landlock scopes for signals and abstract sockets, which the sandbox without namespaces requires.
    Scopes,
    /// The seccomp filter.
    Filter,
    /// Seccomp user notification: a listener receives system calls.
    Listener,
    /// A process limit that the kernel also enforces on root.
    ProcessLimit,
    /// A control group beside this program's own that limits memory and processes.
    ControlGroup,
}

/// The result of probing one mechanism.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The mechanism.
    pub primitive: Primitive,
    /// Details of what is available, or the error.
    pub outcome: Result<String, Refused>,
}

/// A failed probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The step that failed.
    pub doing: String,
    /// The kernel's errno; 0 if there is none.
    pub errno: i32,
}

impl Primitive {
    /// All primitives, each after those that it builds on.
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

    /// Returns the name of the primitive.
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

    /// True if there is no sandbox without it.
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

/// Probes every mechanism; `executable` is a program that calls [`probe_main`] when its first argument is
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
    // Reads until every process that inherited the pipe has ended.
    let read = child.stdout.take().map(|mut output| output.read_to_string(&mut answer));
    child.wait().map_err(|error| broken("waiting for the process that tried it", &error))?;
    if let Some(Err(error)) = read {
        return Err(broken("reading what came of it", &error));
    }
    parse(&answer)
}

/// Parses `ok` or an errno, followed by a text.
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
