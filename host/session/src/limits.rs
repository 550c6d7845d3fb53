//! Limits of commands: what rules and settings bound, and the host's default for the rest.

use std::fmt;
use std::time::Duration;

use portcullis_confine::{Breach, Exit, Limits, machine_memory};
use portcullis_decision::profile::Limits as RuleLimits;
use portcullis_decision::request::Origin;

const MIB: u64 = 1 << 20;

/// More than any build needs, less than what makes a machine stand still.
const PROCESSES: u64 = 4096;
/// A disk is not filled by one file.
const FILE_BYTES: u64 = 16 << 30;
/// Three quarters of what systems give to a process at least; the sandbox takes that part of what there is.
const OPEN_FILES: u32 = 768;
/// Output that nobody reads to its end.
const OUTPUT_BYTES: u64 = 256 << 20;
/// A command of the agent's that takes longer hangs. Those of the user are the user's to end.
const WALL: Duration = Duration::from_secs(60 * 60);

/// What the numbers of signals are on Linux.
const XCPU: i32 = 24;
const XFSZ: i32 = 25;

/// The limits of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Those that the sandbox keeps.
    pub(crate) sandbox: Limits,
    /// How long it may run.
    pub(crate) wall: Option<Duration>,
    /// How much it may say.
    pub(crate) output_bytes: u64,
}

/// A limit that a command met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitMet {
    /// Its time ran out; how long it had.
    Time(Duration),
    /// It said too much; how many bytes it had.
    Output(u64),
    /// A process used too much processor time.
    ProcessorTime,
    /// A file became too big.
    FileSize,
    /// What the sandbox watches.
    Sandbox(Breach),
}

impl fmt::Display for LimitMet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => write!(
                formatter,
                "its time ran out after {} s, so it was killed (`limits.wallMs`, or its own timeout)",
                time.as_secs_f32()
            ),
            Self::Output(bytes) => write!(
                formatter,
                "it put out more than {} KiB, so it was killed (`limits.outputKib`)",
                bytes / 1024
            ),
            Self::ProcessorTime => {
                formatter.write_str("a process used all of its processor time (`limits.cpuMs`)")
            }
            Self::FileSize => formatter.write_str("a file became as big as it may be (`limits.fileMib`)"),
            Self::Sandbox(breach) => {
                let setting = match breach {
                    Breach::Memory | Breach::MemoryOfAll => "limits.memoryMib",
                    Breach::Processes | Breach::TooManyProcesses => "limits.processes",
                };
                write!(formatter, "{breach} (`{setting}`)")
            }
        }
    }
}

/// Returns what commands are held to where no rule says otherwise, as far as it can be said in the words of rules.
#[must_use]
pub fn defaults() -> RuleLimits {
    let small = |number: u64| u32::try_from(number).ok();
    RuleLimits {
        wall_ms: u32::try_from(WALL.as_millis()).ok(),
        cpu_ms: None,
        memory_mib: machine_memory().and_then(|all| small(share_of(all) / MIB)),
        processes: small(PROCESSES),
        open_files: Some(OPEN_FILES),
        file_mib: small(FILE_BYTES / MIB),
        output_kib: small(OUTPUT_BYTES / 1024),
    }
}

/// The rest is left to whoever else works on the machine.
fn share_of(memory: u64) -> u64 {
    memory / 4 * 3
}

/// Returns the limits of a command; what no rule bounds has the host's default.
pub(crate) fn bounds(rules: RuleLimits, origin: Origin) -> Bounds {
    let milliseconds = |ms: u32| Duration::from_millis(u64::from(ms));
    let default_wall = (origin == Origin::Agent).then_some(WALL);
    Bounds {
        sandbox: sandbox(rules),
        wall: rules.wall_ms.map(milliseconds).or(default_wall),
        output_bytes: rules.output_kib.map_or(OUTPUT_BYTES, |kib| u64::from(kib) * 1024),
    }
}

/// Returns those limits that the sandbox keeps.
pub(crate) fn sandbox(rules: RuleLimits) -> Limits {
    let memory_bytes = rules.memory_mib.map(|mib| u64::from(mib) * MIB);
    Limits {
        open_files: rules.open_files.map(u64::from),
        processes: Some(rules.processes.map_or(PROCESSES, u64::from)),
        file_bytes: Some(rules.file_mib.map_or(FILE_BYTES, |mib| u64::from(mib) * MIB)),
        memory_bytes: memory_bytes.or_else(|| machine_memory().map(share_of)),
        // What a process merely reserves counts here as well, so nobody is bound by it without being asked.
        data_bytes: memory_bytes,
        cpu_seconds: rules.cpu_ms.map(|ms| u64::from(ms).div_ceil(1000)),
    }
}

/// Returns the limit that a command met by itself, as far as its end tells.
pub(crate) fn met(limits: Limits, exit: Exit, breach: Option<Breach>) -> Option<LimitMet> {
    if let Some(breach) = breach {
        return Some(LimitMet::Sandbox(breach));
    }
    // A shell tells of a signal that ended its last program by a number above 128.
    let ended_by = |signal| exit == Exit::Signal(signal) || exit == Exit::Code(128 + signal);
    if ended_by(XCPU) && limits.cpu_seconds.is_some() {
        return Some(LimitMet::ProcessorTime);
    }
    (ended_by(XFSZ) && limits.file_bytes.is_some()).then_some(LimitMet::FileSize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_rule_bounds_has_a_default() {
        let bounds_of = |rules| bounds(rules, Origin::Agent);
        let usual = bounds_of(RuleLimits::default());
        assert_eq!(usual.sandbox.processes, Some(PROCESSES));
        assert_eq!(usual.sandbox.data_bytes, None);
        assert!(usual.sandbox.file_bytes.is_some() && usual.wall.is_some());
        assert_eq!(bounds(RuleLimits::default(), Origin::User).wall, None);
        let own = RuleLimits {
            processes: Some(9000),
            memory_mib: Some(1),
            wall_ms: Some(1500),
            ..RuleLimits::default()
        };
        let own = bounds_of(own);
        assert_eq!(own.sandbox.processes, Some(9000));
        assert_eq!((own.sandbox.memory_bytes, own.sandbox.data_bytes), (Some(MIB), Some(MIB)));
        assert_eq!(own.wall, Some(Duration::from_millis(1500)));
    }

    #[test]
    fn ends_tell_of_limits() {
        let limits = Limits { file_bytes: Some(1), ..Limits::default() };
        for (exit, expected) in [
            (Exit::Code(0), None),
            (Exit::Signal(XFSZ), Some(LimitMet::FileSize)),
            (Exit::Code(153), Some(LimitMet::FileSize)),
            (Exit::Signal(XCPU), None),
        ] {
            assert_eq!(met(limits, exit, None), expected, "{exit:?}");
        }
        let breach = met(limits, Exit::Signal(9), Some(Breach::Memory));
        assert!(breach.is_some_and(|met| met.to_string().ends_with("(`limits.memoryMib`)")));
        let together = met(limits, Exit::Code(137), Some(Breach::MemoryOfAll)).map(|met| met.to_string());
        assert!(
            together.is_some_and(|met| {
                met.starts_with("all commands") && met.ends_with("(`limits.memoryMib`)")
            })
        );
    }
}
