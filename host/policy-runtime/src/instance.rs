//! Runs a component: each time in a fresh copy, within its limits.

use std::sync::Arc;
use std::time::Duration;

use portcullis_decision::PolicyError;
use wasmtime::component::{Instance, InstancePre};
use wasmtime::{Store, Trap, UpdateDeadline};

use crate::engine::{GuestSlot, SharedEngine};
use crate::limits::{self, MemoryUsedUp, TimeBudget, TimeUsedUp};
use crate::state::{HostState, LogLine};
use crate::wasi::Forbidden;

/// A linked component that is ready to be instantiated.
pub(crate) struct Runner {
    pub(crate) shared: Arc<SharedEngine>,
    pub(crate) component: InstancePre<HostState>,
    pub(crate) memory: usize,
}

impl Runner {
    /// Starts a copy. `time` limits only the start; each call has its own limit.
    pub(crate) fn start(&self, time: Duration) -> Result<Running, PolicyError> {
        let turn = self.shared.turn().ok_or_else(|| PolicyError::Host {
            detail: "too many policies are running at this moment".to_owned(),
        })?;
        let mut store = Store::new(self.shared.engine(), HostState::new(self.memory, time));
        store.limiter(|state| &mut state.memory);
        store.epoch_deadline_callback(|context| {
            if context.data().time.is_used_up() {
                return Err(wasmtime::Error::new(TimeUsedUp));
            }
            Ok(UpdateDeadline::Continue(1))
        });
        store.set_epoch_deadline(1);
        store.set_hostcall_fuel(limits::ANSWER);
        let instance = self
            .component
            .instantiate(&mut store)
            .map_err(|error| fault(&error, Stage::Start, time, self.memory))?;
        Ok(Running { store, instance, memory: self.memory, _turn: turn })
    }
}

/// One running copy.
pub(crate) struct Running {
    pub(crate) store: Store<HostState>,
    pub(crate) instance: Instance,
    memory: usize,
    _turn: GuestSlot,
}

impl Running {
    /// Makes one call within `time`.
    pub(crate) fn call<T>(
        &mut self,
        time: Duration,
        call: impl FnOnce(&mut Store<HostState>, &Instance) -> wasmtime::Result<T>,
    ) -> Result<T, PolicyError> {
        self.store.data_mut().time = TimeBudget::start(time);
        self.store.set_epoch_deadline(1);
        call(&mut self.store, &self.instance).map_err(|error| fault(&error, Stage::Call, time, self.memory))
    }

    /// Returns the lines that the copy logged.
    pub(crate) fn into_log(self) -> Vec<LogLine> {
        self.store.into_data().log.into_lines()
    }
}

/// The stage at which a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Start,
    Call,
}

/// Turns an error of wasmtime into a policy error.
fn fault(error: &wasmtime::Error, stage: Stage, time: Duration, memory: usize) -> PolicyError {
    if error.is::<TimeUsedUp>() {
        return PolicyError::TimeLimit { limit_ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX) };
    }
    if error.is::<MemoryUsedUp>() {
        return PolicyError::MemoryLimit { limit_mib: (memory as u64) >> 20 };
    }
    if let Some(forbidden) = error.downcast_ref::<Forbidden>() {
        return PolicyError::Trap { detail: forbidden.to_string() };
    }
    let cause = error.root_cause().to_string();
    if let Some(trap) = error.downcast_ref::<Trap>() {
        let detail = if *trap == Trap::StackOverflow {
            format!("its calls went deeper than {} KiB of stack", limits::STACK >> 10)
        } else {
            cause
        };
        return PolicyError::Trap { detail };
    }
    // The type of this error is private to wasmtime, so its text is compared.
    if cause.contains("fuel allocated for hostcalls") {
        return PolicyError::AnswerSize { detail: format!("more than {} MiB", limits::ANSWER >> 20) };
    }
    match stage {
        Stage::Start => PolicyError::Host { detail: cause },
        Stage::Call => PolicyError::BadAnswer { detail: cause },
    }
}
