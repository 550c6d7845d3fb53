//! Limits of commands: those of rules and settings, and the host's defaults.

use std::fmt;
use std::time::Duration;

use portcullis_decision::profile::Limits as RuleLimits;
use portcullis_decision::request::Origin;
use portcullis_sandbox::{Limits, machine_memory};
use portcullis_sandbox_runtime::{Breach, Exit};

const MIB: u64 = 1 << 20;

/// Process limit: more than any build needs, but not enough to freeze a machine.
const PROCESSES: u64 = 4096;
/// File size limit, so that one file cannot fill a disk.
const FILE_BYTES: u64 = 16 << 30;
/// Limit on open files: three quarters of the minimum that systems give a process.
///
/// The sandbox takes the same share of the actual limit.
const OPEN_FILES: u32 = 768;
/// Output limit, beyond what a reader would use.
const OUTPUT_BYTES: u64 = 256 << 20;
/// Time limit for the agent's commands; one that takes longer hangs. Users end their own commands.
const WALL: Duration = Duration::from_secs(60 * 60);

/// Signal numbers on Linux.
const XCPU: i32 = 24;
const XFSZ: i32 = 25;

/// The limits of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Those that the sandbox enforces.
    pub sandbox: Limits,
    /// Maximum run time.
    pub wall: Option<Duration>,
    /// Maximum output.
    pub output_bytes: u64,
}

/// A limit that ended a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitMet {
    /// The run time; with the limit.
    Time(Duration),
    /// The output; with the limit in bytes.
    Output(u64),
    /// The processor time of a process.
    ProcessorTime,
    /// The size of a file.
    FileSize,
    /// A limit that the sandbox watches.
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

/// Returns the default limits of commands, as far as rules can express them.
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

/// Returns the share of memory for the sandbox; the rest is for other users of the machine.
fn share_of(memory: u64) -> u64 {
    memory / 4 * 3
}

/// Returns the limits of a command, with the host's defaults for those that no rule sets.
pub fn bounds(rules: RuleLimits, origin: Origin) -> Bounds {
    let milliseconds = |ms: u32| Duration::from_millis(u64::from(ms));
    let default_wall = (origin == Origin::Agent).then_some(WALL);
    Bounds {
        sandbox: sandbox(rules),
        wall: rules.wall_ms.map(milliseconds).or(default_wall),
        output_bytes: rules.output_kib.map_or(OUTPUT_BYTES, |kib| u64::from(kib) * 1024),
    }
}

/// Returns the limits that the sandbox enforces.
pub fn sandbox(rules: RuleLimits) -> Limits {
    let memory_bytes = rules.memory_mib.map(|mib| u64::from(mib) * MIB);
    Limits {
        open_files: rules.open_files.map(u64::from),
        processes: Some(rules.processes.map_or(PROCESSES, u64::from)),
        file_bytes: Some(rules.file_mib.map_or(FILE_BYTES, |mib| u64::from(mib) * MIB)),
        memory_bytes: memory_bytes.or_else(|| machine_memory().map(share_of)),
        // Reserved but unused memory counts too, so there is no default.
        data_bytes: memory_bytes,
        cpu_seconds: rules.cpu_ms.map(|ms| u64::from(ms).div_ceil(1000)),
    }
}

/// Returns the limit that ended a command, as far as its exit status shows.
pub fn met(limits: Limits, exit: Exit, breach: Option<Breach>) -> Option<LimitMet> {
    if let Some(breach) = breach {
        return Some(LimitMet::Sandbox(breach));
    }
    // If a signal ended its last program, a shell exits with 128 plus the signal number.
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
