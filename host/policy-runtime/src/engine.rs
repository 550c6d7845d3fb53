//! The WebAssembly engine that all policies share: its settings, its clock, and the limit on policies that
//! run at once.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::error::LoadError;
use crate::limits;

/// Interval at which running guests check their time budget.
const TICK: Duration = Duration::from_millis(5);
/// Number of ticks without a call after which the clock stops.
///
/// So an idle host does not wake the machine.
const IDLE_TICKS: u32 = 200;
/// How long a call waits for a free slot.
const TURN: Duration = Duration::from_secs(2);
/// Bytes of an instance's memory that are reset by copying; the rest is returned to the kernel.
///
/// This covers all the memory of a Rust guest. Measured on the default policy: a fresh copy then costs 5 to 6
/// times a native decision, and 12 times if its pages are returned.
const KEEP_RESIDENT: usize = 2 << 20;
/// Number of idle instances whose memory the process keeps.
const WARM: u32 = 4;

/// The engine, its clock and the count of running guests.
#[derive(Debug)]
pub(crate) struct SharedEngine {
    engine: Engine,
    clock: Arc<Clock>,
    ticker: Thread,
    running: Mutex<u32>,
    freed: Condvar,
}

impl SharedEngine {
    /// Starts an engine and its clock thread.
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

    /// Waits for a slot to run a guest. Returns `None` if none becomes free in time.
    pub(crate) fn turn(self: &Arc<Self>) -> Option<GuestSlot> {
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
        Some(GuestSlot { engine: Arc::clone(self) })
    }
}

impl Drop for SharedEngine {
    fn drop(&mut self) {
        self.clock.is_over.store(true, Ordering::SeqCst);
        self.ticker.unpark();
    }
}

/// A slot to run one guest, released on drop.
#[derive(Debug)]
pub(crate) struct GuestSlot {
    engine: Arc<SharedEngine>,
}

impl Drop for GuestSlot {
    fn drop(&mut self) {
        self.engine.clock.calls.fetch_sub(1, Ordering::SeqCst);
        let mut running = self.engine.running.lock().unwrap_or_else(PoisonError::into_inner);
        *running = running.saturating_sub(1);
        drop(running);
        self.engine.freed.notify_one();
    }
}

/// Advances the engine's epoch while calls are running.
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
    /// INVARIANT: a caller increments `calls` and then reads `is_ticking`. This thread clears `is_ticking`
    /// and then reads `calls`. So either the caller wakes this thread, or this thread sees the call.
    fn rest(&self) {
        self.is_ticking.store(false, Ordering::SeqCst);
        while self.calls.load(Ordering::SeqCst) == 0 && !self.is_over.load(Ordering::SeqCst) {
            thread::park();
        }
        self.is_ticking.store(true, Ordering::SeqCst);
    }
}

/// Returns the engine's settings.
///
/// Guests get no threads, no 64-bit memories and no other feature that some toolchains do not emit. Numbers
/// behave the same on every machine, so that a decision can be replayed elsewhere.
pub(crate) fn config() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .max_wasm_stack(limits::STACK)
        .relaxed_simd_deterministic(true)
        .wasm_memory64(false)
        .memory_init_cow(true)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool()));
    #[cfg(feature = "compiler")]
    config.cranelift_nan_canonicalization(true);
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
        // Resets only the pages that were written (needs Linux 6.7).
        .pagemap_scan(Enabled::Auto)
        .max_unused_warm_slots(WARM);
    pool
}

/// Memories reserved for each running policy. Nearly all policies have one.
const MEMORY_SLOTS: usize = 2;
/// Tables reserved for each running policy. Nearly all policies have two.
const TABLE_SLOTS: usize = 4;
