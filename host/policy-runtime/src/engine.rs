//! The one engine that all policies share: its settings, its clock, and the
//! number of policies that run at once.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::error::LoadError;
use crate::limits;

/// How often running guests look at their time account.
const TICK: Duration = Duration::from_millis(5);
/// The clock stands still after this many ticks without a call, so that an idle
/// host does not wake the machine.
const IDLE_TICKS: u32 = 200;
/// How long a call waits for its turn.
const TURN: Duration = Duration::from_secs(2);
/// Memory of an instance that is put back by hand for the next one, where more is
/// given back to the kernel: enough for all that a Rust guest has. Measured on the
/// default policy: a fresh copy costs 5 to 6 times a native decision so, and 12
/// times with the pages given back.
const KEEP_RESIDENT: usize = 2 << 20;
/// Instances whose memory stays with the process when nothing runs.
const WARM: u32 = 4;

/// Engine, clock and turns.
#[derive(Debug)]
pub(crate) struct SharedEngine {
    engine: Engine,
    clock: Arc<Clock>,
    ticker: Thread,
    running: Mutex<u32>,
    freed: Condvar,
}

impl SharedEngine {
    /// Starts an engine and the thread of its clock.
    pub(crate) fn start() -> Result<Self, LoadError> {
        let engine = Engine::new(&config()).map_err(|source| LoadError::Engine { source })?;
        let clock = Arc::new(Clock::new());
        let thread = thread::Builder::new().name("policy-clock".into());
        let (their_clock, their_engine) = (Arc::clone(&clock), engine.clone());
        let ticker = thread
            .spawn(move || their_clock.run(&their_engine))
            .map_err(|source| LoadError::Engine { source: wasmtime::Error::new(source) })?;
        Ok(Self {
            engine,
            clock,
            ticker: ticker.thread().clone(),
            running: Mutex::new(0),
            freed: Condvar::new(),
        })
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Waits for a turn to run a guest; none: the others took too long.
    pub(crate) fn turn(self: &Arc<Self>) -> Option<Turn> {
        let until = Instant::now() + TURN;
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        while *running >= limits::CONCURRENT {
            let left = until.checked_duration_since(Instant::now())?;
            running = self.freed.wait_timeout(running, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        *running += 1;
        drop(running);
        self.clock.calls.fetch_add(1, Ordering::SeqCst);
        if !self.clock.is_ticking.load(Ordering::SeqCst) {
            self.ticker.unpark();
        }
        Some(Turn { engine: Arc::clone(self) })
    }
}

impl Drop for SharedEngine {
    fn drop(&mut self) {
        self.clock.is_over.store(true, Ordering::SeqCst);
        self.ticker.unpark();
    }
}

/// The right to run one guest; given back when dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    engine: Arc<SharedEngine>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.engine.clock.calls.fetch_sub(1, Ordering::SeqCst);
        let mut running = self.engine.running.lock().unwrap_or_else(PoisonError::into_inner);
        *running = running.saturating_sub(1);
        drop(running);
        self.engine.freed.notify_one();
    }
}

/// Moves the engine's epoch on while there are calls.
#[derive(Debug)]
struct Clock {
    calls: AtomicU32,
    is_ticking: AtomicBool,
    is_over: AtomicBool,
}

impl Clock {
    fn new() -> Self {
        Self { calls: AtomicU32::new(0), is_ticking: AtomicBool::new(true), is_over: AtomicBool::new(false) }
    }

    fn run(&self, engine: &Engine) {
        let mut idle = 0;
        while !self.is_over.load(Ordering::SeqCst) {
            thread::sleep(TICK);
            engine.increment_epoch();
            idle = if self.calls.load(Ordering::SeqCst) == 0 { idle + 1 } else { 0 };
            if idle >= IDLE_TICKS {
                self.rest();
                idle = 0;
            }
        }
    }

    /// Sleeps until there is a call.
    ///
    /// INVARIANT: a caller counts itself, then looks at `is_ticking`; here it is
    /// the other way round. So either the caller wakes this thread, or this
    /// thread sees the call.
    fn rest(&self) {
        self.is_ticking.store(false, Ordering::SeqCst);
        while self.calls.load(Ordering::SeqCst) == 0 && !self.is_over.load(Ordering::SeqCst) {
            thread::park();
        }
        self.is_ticking.store(true, Ordering::SeqCst);
    }
}

/// The engine's settings. Guests get no threads, no 64-bit memories and nothing
/// else that is not in every toolchain's output; numbers behave the same on
/// every machine, so that a decision can be replayed elsewhere.
pub(crate) fn config() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .max_wasm_stack(limits::STACK)
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        .wasm_memory64(false)
        .memory_init_cow(true)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool()));
    config
}

fn pool() -> PoolingAllocationConfig {
    let in_all = |each: usize| limits::CONCURRENT.saturating_mul(u32::try_from(each).unwrap_or(u32::MAX));
    let each = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(limits::CONCURRENT)
        .total_core_instances(in_all(limits::CORE_INSTANCES))
        .max_core_instances_per_component(each(limits::CORE_INSTANCES))
        .total_memories(in_all(MEMORY_SLOTS))
        .max_memories_per_component(each(limits::MEMORIES))
        .total_tables(in_all(TABLE_SLOTS))
        .max_tables_per_component(each(limits::TABLES))
        .max_memory_size(limits::MEMORY)
        .table_elements(limits::TABLE_ELEMENTS)
        .linear_memory_keep_resident(KEEP_RESIDENT)
        .table_keep_resident(KEEP_RESIDENT)
        // Puts back only what was written to (Linux 6.7 and later).
        .pagemap_scan(Enabled::Auto)
        .max_unused_warm_slots(WARM);
    pool
}

/// Memories reserved for each running policy; nearly all have one.
const MEMORY_SLOTS: usize = 2;
/// Tables reserved for each running policy; nearly all have two.
const TABLE_SLOTS: usize = 4;
