//! Checks of packs that are in the lock file.

use portcullis_packs::{Approval, Lock, Locked, Signed};

use super::lock_editor::LockEditor;
use super::offer::Offer;

impl LockEditor {
    /// Returns why a locked pack would be refused now, as if it were offered.
    #[must_use]
    pub fn fault(&self, locked: &Locked, lock: &Lock) -> Option<String> {
        let signed = match self.store.signed(locked) {
            Ok(signed) => signed,
            Err(error) => return Some(format!("{:#}", anyhow::Error::from(error))),
        };
        let offer = Offer::of_locked(signed, locked);
        // The entry itself says that these bytes are trusted; all other checks apply again.
        let approval = Approval { unsigned: locked.signed_by.is_empty(), ..Approval::default() };
        self.accept(&offer, lock, &approval)
            .err()
            .map(|refusal| format!("{:#}", anyhow::Error::from(refusal)))
    }

    /// Returns locked packs with their signatures.
    ///
    /// # Errors
    /// If one is missing or has changed.
    pub fn signed_packs(&self, policies: &[Locked]) -> anyhow::Result<Vec<Signed>> {
        policies.iter().map(|locked| Ok(self.store.signed(locked)?)).collect()
    }
}
