//! Resource limits of policies, and the budgets that enforce them.

use std::fmt;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use wasmtime::ResourceLimiter;

// These numbers are part of the contract (`wit/types.wit`, "Limits"). Policy authors rely on them.

/// Processor time for `evaluate`, `for-command` and `inspect`.
pub const DECISION_TIME: Duration = Duration::from_millis(250);
/// Processor time for `describe`, `standing` and `brief`.
pub const SETUP_TIME: Duration = Duration::from_secs(1);
/// Processor time for starting an instance and for `configure`.
pub const CONFIGURE_TIME: Duration = Duration::from_secs(2);
/// Factor from the limit on processor time to the limit on wall-clock time.
///
/// A busy machine causes no denials, and no call waits forever.
const CLOCK_FACTOR: u32 = 10;
/// Memory of one instance, summed over all of its linear memories.
pub const MEMORY: usize = 64 << 20;
/// Elements of one table, which hold function pointers. The largest guests (Python) have 12,000.
pub const TABLE_ELEMENTS: usize = 50_000;
/// Core instances in one component: main module, adapters, shims and the module that reads out a snapshot.
pub const CORE_INSTANCES: usize = 48;
/// Linear memories in one component.
pub const MEMORIES: usize = 8;
/// Tables in one component.
pub const TABLES: usize = 32;
/// Call stack of a guest. A calling thread needs twice as much for its own stack.
pub const STACK: usize = 512 << 10;
/// Bytes of one answer, with lists counted by the size of their elements.
///
/// This is enough for 4 MiB of text and the records around it.
pub const ANSWER: usize = 8 << 20;
/// Bytes of all strings of one answer together.
pub const ANSWER_TEXT: usize = 4 << 20;
/// Largest component file.
pub const COMPONENT: u64 = 64 << 20;
/// Largest machine code of one policy. The machine code of a whole Python interpreter has 60 MB.
pub const ARTIFACT: usize = 160 << 20;
/// Memory for compiling one component.
pub const COMPILE_MEMORY: u64 = 1536 << 20;
/// Processor time for compiling one component with one configuration, its snapshot included.
pub const COMPILE_CPU: Duration = Duration::from_secs(120);
/// Wall-clock time for each compilation step: several times the processor time, for busy machines.
pub const COMPILE_TIME: Duration = Duration::from_secs(600);
/// Largest configuration, as JSON.
pub const CONFIGURATION: usize = 1 << 20;
/// Number of policies that run at once. Further calls wait.
pub const CONCURRENT: u32 = 16;

/// Limits for compiling one component. The compiler process is killed when it exceeds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompileLimits {
    /// Bytes of memory.
    pub memory: u64,
    /// Processor time for each step.
    pub cpu: Duration,
    /// Wall-clock time for each step.
    pub time: Duration,
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self { memory: COMPILE_MEMORY, cpu: COMPILE_CPU, time: COMPILE_TIME }
    }
}

/// The limit that a compiler process exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompileLimit {
    /// Bytes of memory.
    Memory(u64),
    /// Processor time.
    ProcessorTime(Duration),
    /// Wall-clock time.
    Time(Duration),
}

impl fmt::Display for CompileLimit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(bytes) => write!(formatter, "{} MiB of memory", bytes >> 20),
            Self::ProcessorTime(time) => write!(formatter, "{} s of processor time", time.as_secs()),
            Self::Time(time) => write!(formatter, "{} s", time.as_secs()),
        }
    }
}

/// Adjustable limits of policies. All other limits are constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Processor time for `evaluate`, `for-command` and `inspect`.
    pub decision_time: Duration,
    /// Processor time for `describe`, `standing` and `brief`.
    pub setup_time: Duration,
    /// Processor time for starting an instance and for `configure`.
    pub configure_time: Duration,
    /// Memory of one instance in bytes, at most [`MEMORY`].
    pub memory: usize,
    /// Limits for compiling one component.
    pub compile: CompileLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            decision_time: DECISION_TIME,
            setup_time: SETUP_TIME,
            configure_time: CONFIGURE_TIME,
            memory: MEMORY,
            compile: CompileLimits::default(),
        }
    }
}

/// The error of a call that exceeded its time limit.
#[derive(Debug, thiserror::Error)]
#[error("the time is used up")]
pub(crate) struct TimeUsedUp;

/// The error of a guest that exceeded its memory limit.
#[derive(Debug, thiserror::Error)]
#[error("the memory is used up")]
pub(crate) struct MemoryUsedUp;

/// The time budget of one call: processor time of the calling thread, with an upper bound on wall-clock time.
#[derive(Debug)]
pub(crate) struct TimeBudget {
    limit: Duration,
    processor_start: Duration,
    clock_start: Instant,
}

impl TimeBudget {
    pub(crate) fn start(limit: Duration) -> Self {
        Self { limit, processor_start: processor_time(), clock_start: Instant::now() }
    }

    pub(crate) fn is_used_up(&self) -> bool {
        processor_time().saturating_sub(self.processor_start) >= self.limit
            || self.clock_start.elapsed() >= self.limit.saturating_mul(CLOCK_FACTOR)
    }
}

/// Returns the processor time of the calling thread.
fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// The memory budget of one instance, for the sum of its memories.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    left: usize,
}

impl MemoryBudget {
    pub(crate) fn new(limit: usize) -> Self {
        Self { left: limit.min(MEMORY) }
    }
}

impl ResourceLimiter for MemoryBudget {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        // An error, not `Ok(false)`: the guest would then fail in its own way and the reason would be lost.
        self.left = self
            .left
            .checked_sub(desired.saturating_sub(current))
            .ok_or(wasmtime::Error::new(MemoryUsedUp))?;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if desired > TABLE_ELEMENTS {
            return Err(wasmtime::Error::new(MemoryUsedUp));
        }
        Ok(true)
    }

    fn instances(&self) -> usize {
        CORE_INSTANCES
    }

    fn tables(&self) -> usize {
        TABLES
    }

    fn memories(&self) -> usize {
        MEMORIES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_counted_over_all_memories() {
        let mut budget = MemoryBudget::new(3 << 16);
        assert!(budget.memory_growing(0, 1 << 16, None).unwrap());
        assert!(budget.memory_growing(0, 2 << 16, None).unwrap());
        let error = budget.memory_growing(1 << 16, 2 << 16, None).unwrap_err();
        assert!(error.is::<MemoryUsedUp>());
    }

    #[test]
    fn waiting_is_not_working() {
        let budget = TimeBudget::start(Duration::from_millis(30));
        std::thread::sleep(Duration::from_millis(60));
        assert!(!budget.is_used_up());
        while !budget.is_used_up() {
            std::hint::spin_loop();
        }
        assert!(budget.clock_start.elapsed() >= Duration::from_millis(80));
    }

    #[test]
    fn nobody_waits_for_ever() {
        let budget = TimeBudget::start(Duration::from_millis(3));
        std::thread::sleep(Duration::from_millis(40));
        assert!(budget.is_used_up());
    }
}
