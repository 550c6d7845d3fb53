//! Limits that a command has met.

use std::fmt;

/// A limit that a command has met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breach {
    /// Its processes used more memory together than they may; it was killed.
    Memory,
    /// It had as many processes as it may, so no more could be started.
    Processes,
    /// It had more processes than it may, on a kernel that cannot refuse them; it was killed.
    TooManyProcesses,
    /// All commands of its sandbox used more memory together than they may, so the kernel ended some process while it
    /// ran.
    MemoryOfAll,
}

#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only a keeper tells of breaches"))]
impl Breach {
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::Memory => 1,
            Self::Processes => 2,
            Self::TooManyProcesses => 3,
            Self::MemoryOfAll => 4,
        }
    }

    pub(crate) fn from_number(number: u32) -> Option<Self> {
        [Self::Memory, Self::Processes, Self::TooManyProcesses, Self::MemoryOfAll]
            .into_iter()
            .find(|breach| breach.number() == number)
    }

    /// Whether the command is killed for it.
    pub(crate) fn is_fatal(self) -> bool {
        match self {
            Self::Memory | Self::TooManyProcesses => true,
            // The kernel has chosen whom to kill.
            Self::Processes | Self::MemoryOfAll => false,
        }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Memory => "its processes used more memory together than they may, so it was killed",
            Self::Processes => "it had as many processes as it may, so no more could be started",
            Self::TooManyProcesses => "it had more processes than it may, so it was killed",
            Self::MemoryOfAll => {
                "all commands of the session used more memory together than they may, so the kernel killed a process"
            }
        })
    }
}
