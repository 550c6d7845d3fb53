//! Mechanisms that can be probed separately, and the results.

use std::fmt;

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

    /// Returns its use in the sandbox, in a few words.
    #[must_use]
    pub fn purpose(self) -> &'static str {
        match self {
            Self::UserNamespace => "rights that end at the sandbox",
            Self::Mounts => "a file system of its own: what is hidden, read-only or writable",
            Self::Proc => "no other processes visible",
            Self::Network => "a network of its own: every connection is checked",
            Self::Objects => "a host name, shared memory and message queues of its own",
            Self::Landlock => "a second check of files, below the mounts",
            Self::Scopes => "no signals and abstract sockets to other processes",
            Self::Filter => "no system calls that could leave the sandbox",
            Self::Listener => "system calls that wait for your answer",
            Self::ProcessLimit => "a limit on processes, for root as well",
            Self::ControlGroup => "exact limits on memory and processes",
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

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.errno {
            0 => formatter.write_str(&self.doing),
            errno => write!(formatter, "{}: {}", self.doing, std::io::Error::from_raw_os_error(errno)),
        }
    }
}
