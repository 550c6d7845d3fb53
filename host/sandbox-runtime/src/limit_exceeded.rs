//! Resource limits that a command has exceeded.

use std::fmt;

/// A resource limit that a command has exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breach {
    /// The command's processes used more memory together than allowed; it was killed.
    Memory,
    /// The command had as many processes as allowed, so no more could be started.
    Processes,
    /// The command had more processes than allowed, on a kernel that cannot refuse them; it was killed.
    TooManyProcesses,
    /// All commands of the sandbox used more memory together than allowed, so the kernel killed a process while this
    /// command ran.
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

    /// True if the command is killed for it.
    pub(crate) fn is_fatal(self) -> bool {
        match self {
            Self::Memory | Self::TooManyProcesses => true,
            // The kernel has chosen which process to kill.
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
