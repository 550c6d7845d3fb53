//! Makes a snapshot of a policy that is already in use.

use std::sync::{Arc, PoisonError, RwLock, Weak};

use crate::cache::{Cache, CacheKey};
use crate::compile::{Compiler, Job};
use crate::engine::SharedEngine;
use crate::error::LoadError;
use crate::limits::Limits;
use crate::link::link;
use crate::load::Runtime;
use crate::precompiled;
use crate::ready::{Ready, Start};

/// The linked component that decisions run. A snapshot replaces it.
pub(crate) type Slot = RwLock<Arc<Ready>>;

/// Makes a snapshot of a configured policy, for this process and for later starts.
///
/// Compiling takes a second or more, so a long session does it in parallel to its first decisions.
pub struct SnapshotJob {
    shared: Arc<SharedEngine>,
    cache: Option<Arc<Cache>>,
    limits: Limits,
    compiler: Compiler,
    component: Box<[u8]>,
    configuration: String,
    key: CacheKey,
    slot: Weak<Slot>,
}

impl SnapshotJob {
    pub(crate) fn new(
        runtime: &Runtime,
        component: &[u8],
        configuration: &str,
        key: CacheKey,
        slot: &Arc<Slot>,
    ) -> Self {
        Self {
            shared: Arc::clone(&runtime.shared),
            cache: runtime.cache.clone(),
            limits: runtime.limits,
            compiler: runtime.compiler.clone(),
            component: component.into(),
            configuration: configuration.to_owned(),
            key,
            slot: Arc::downgrade(slot),
        }
    }

    /// Makes the snapshot. Does nothing if the policy is no longer in use.
    ///
    /// # Errors
    /// Fails when no snapshot of this policy can be taken. The policy keeps working without one.
    pub fn run(&self) -> Result<(), LoadError> {
        if self.slot.strong_count() == 0 {
            return Ok(());
        }
        let job = Job::Snapshot { configuration: self.configuration.clone() };
        let code = self.compiler.compile(&self.shared, self.limits, &self.component, &job)?;
        let engine = self.shared.engine();
        let kept = self.cache.as_ref().and_then(|cache| {
            cache.keep(self.key, &code);
            cache.find(engine, self.key)
        });
        let snapshot = match kept {
            Some(snapshot) => snapshot,
            None => precompiled::deserialize_made(engine, &code)
                .map_err(|source| LoadError::Compile { source })?,
        };
        let (runner, exports) = link(&self.shared, self.limits, &snapshot)?;
        if let Some(slot) = self.slot.upgrade() {
            let ready = Arc::new(Ready { runner, exports, start: Start::Snapshot });
            *slot.write().unwrap_or_else(PoisonError::into_inner) = ready;
        }
        Ok(())
    }
}

impl std::fmt::Debug for SnapshotJob {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SnapshotJob").finish_non_exhaustive()
    }
}
