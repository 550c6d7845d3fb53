//! Cancellation of running calls.

use std::sync::{Arc, Mutex, PoisonError};

/// A cancellation flag, shared between the thread that runs a call and those that can cancel it.
#[derive(Clone, Default)]
pub struct Cancel {
    state: Arc<Mutex<CancelState>>,
}

#[derive(Default)]
struct CancelState {
    cancelled: bool,
    hooks: Vec<Box<dyn FnOnce() + Send>>,
}

impl Cancel {
    /// Cancels the call and runs all hooks. Hooks that are added later run at once.
    pub fn cancel(&self) {
        let hooks = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.cancelled = true;
            std::mem::take(&mut state.hooks)
        };
        for hook in hooks {
            hook();
        }
    }

    /// Returns true if the call was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).cancelled
    }

    /// Runs `hook` when the call is cancelled, or at once if it already was.
    pub fn on_cancel(&self, hook: impl FnOnce() + Send + 'static) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.cancelled {
            drop(state);
            hook();
        } else {
            state.hooks.push(Box::new(hook));
        }
    }
}

impl std::fmt::Debug for Cancel {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Cancel").field("cancelled", &self.is_cancelled()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn every_hook_runs_once() {
        let (cancel, count) = (Cancel::default(), Arc::new(AtomicU32::new(0)));
        let hook = |count: &Arc<AtomicU32>| {
            let count = Arc::clone(count);
            move || {
                count.fetch_add(1, Ordering::SeqCst);
            }
        };
        cancel.on_cancel(hook(&count));
        assert_eq!(count.load(Ordering::SeqCst), 0);
        cancel.cancel();
        cancel.cancel();
        cancel.on_cancel(hook(&count));
        assert_eq!(count.load(Ordering::SeqCst), 2);
        assert!(cancel.is_cancelled());
    }
}
