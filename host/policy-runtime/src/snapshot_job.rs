//! Makes a snapshot of a policy that is already in use.

use std::sync::{Arc, PoisonError, RwLock, Weak};

use crate::cache::CacheKey;
use crate::compile::Job;
use crate::error::LoadError;
use crate::ready::{Ready, Start};
use crate::toolchain::Toolchain;

/// The linked component that decisions run. A snapshot replaces it.
pub(crate) type Slot = RwLock<Arc<Ready>>;

/// Makes a snapshot of a configured policy, for this process and for later starts.
///
/// Compiling takes a second or more, so a long session does it in parallel to its first decisions.
pub struct SnapshotJob {
    toolchain: Toolchain,
    component: Box<[u8]>,
    configuration: String,
    key: CacheKey,
    slot: Weak<Slot>,
}

impl SnapshotJob {
    pub(crate) fn new(
        toolchain: &Toolchain,
        component: &[u8],
        configuration: &str,
        key: CacheKey,
        slot: &Arc<Slot>,
    ) -> Self {
        Self {
            toolchain: toolchain.clone(),
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
        let code = self.toolchain.compile(&self.component, &job)?;
        let snapshot = match self.toolchain.keep(self.key, &code) {
            Some(snapshot) => snapshot,
            None => self.toolchain.component_of(&code)?,
        };
        let (runner, exports) = self.toolchain.link(&snapshot)?;
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
