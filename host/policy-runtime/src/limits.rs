//! What a policy may use up, and the accounts that hold it to that.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use wasmtime::ResourceLimiter;

// The numbers are those of the contract (`wit/types.wit`, "Limits"); authors rely
// on them.

/// Processor time for `evaluate`, `for-command` and `inspect`.
pub const DECISION_TIME: Duration = Duration::from_millis(250);
/// Processor time for `describe`, `standing` and `brief`.
pub const SETUP_TIME: Duration = Duration::from_secs(1);
/// Processor time for starting an instance and `configure`.
pub const CONFIGURE_TIME: Duration = Duration::from_secs(2);
/// A call ends after this many times its processor time on the clock, so that a
/// busy machine refuses nothing and yet nobody waits for ever.
const CLOCK_FACTOR: u32 = 10;
/// Memory of one instance, over all of its linear memories.
pub const MEMORY: usize = 64 << 20;
/// Elements of one table: function pointers; the largest guests (Python) have 12,000.
pub const TABLE_ELEMENTS: usize = 50_000;
/// Core instances in one component: main module, adapters, shims and the module
/// that reads out a snapshot.
pub const CORE_INSTANCES: usize = 48;
/// Linear memories in one component.
pub const MEMORIES: usize = 8;
/// Tables in one component.
pub const TABLES: usize = 32;
/// Call stack of a guest. Calling threads need twice as much of their own.
pub const STACK: usize = 512 << 10;
/// Bytes that one answer may hand over, lists counted by the size of their
/// elements: 4 MiB of text and the records around it.
pub const ANSWER: usize = 8 << 20;
/// All strings of one answer together.
pub const ANSWER_TEXT: usize = 4 << 20;
/// Largest component file.
pub const COMPONENT: u64 = 64 << 20;
/// Machine code of one policy; that of Python's whole interpreter has 60 MB.
pub const ARTIFACT: usize = 160 << 20;
/// Memory for compiling one component.
pub const COMPILE_MEMORY: u64 = 1536 << 20;
/// Processor time for compiling one component with one configuration, its snapshot included.
pub const COMPILE_CPU: Duration = Duration::from_secs(120);
/// Time on the clock for each step of compiling: a busy machine has several times the processor time.
pub const COMPILE_TIME: Duration = Duration::from_secs(600);
/// Largest configuration, as JSON.
pub const CONFIGURATION: usize = 1 << 20;
/// Policies that run at the same moment; more wait for their turn.
pub const CONCURRENT: u32 = 16;

/// What compiling one component may use up; it is killed above that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompileLimits {
    /// Bytes of memory.
    pub memory: u64,
    /// Processor time, for each step.
    pub cpu: Duration,
    /// Time on the clock, for each step.
    pub time: Duration,
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self { memory: COMPILE_MEMORY, cpu: COMPILE_CPU, time: COMPILE_TIME }
    }
}

/// How long policies may take; the rest of the limits are constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For `evaluate`, `for-command` and `inspect`.
    pub decision_time: Duration,
    /// For `describe`, `standing` and `brief`.
    pub setup_time: Duration,
    /// For starting an instance and `configure`.
    pub configure_time: Duration,
    /// Memory of one instance in bytes, at most [`MEMORY`].
    pub memory: usize,
    /// For compiling one component.
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

/// A call went on for longer than it may.
#[derive(Debug, thiserror::Error)]
#[error("the time is used up")]
pub(crate) struct TimeUsedUp;

/// A guest wanted more memory than it may have.
#[derive(Debug, thiserror::Error)]
#[error("the memory is used up")]
pub(crate) struct MemoryUsedUp;

/// The time account of one call: processor time of the calling thread, and a
/// ceiling on the clock.
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

/// Processor time of the calling thread.
fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// The memory account of one instance: the sum over its memories counts.
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
        // An error, where "no" would leave the guest to fail in its own way:
        // so the reason is known.
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
