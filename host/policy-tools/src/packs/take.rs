//! Adds, updates and removes packs of the lock file.

use std::path::Path;

use anyhow::{Context as _, bail};
use portcullis_bootstrap::streams::say;
use portcullis_packs::{Approval, FROM_FILE, Lock, Locked, Reference, Signed, Store};

use super::lock_editor::LockEditor;
use super::offer::Offer;

impl LockEditor {
    /// Returns all packs in a team's lock file.
    ///
    /// # Errors
    /// If the lock file or a pack cannot be read.
    pub fn of_lock_file(&mut self, file: &Path) -> anyhow::Result<Vec<Offer>> {
        let file = self.here(file);
        let directory =
            if file.is_dir() { file.as_path() } else { file.parent().unwrap_or_else(|| Path::new("/")) };
        let store = Store::new(directory);
        if store.lock_file() != file && !file.is_dir() {
            bail!("`{}` is no `policy.lock`", file.display());
        }
        let lock = store.lock()?;
        if lock.policies.is_empty() {
            bail!("`{}` lists no packs", store.lock_file().display());
        }
        lock.policies.iter().map(|locked| self.of_lock(&store, locked)).collect()
    }

    /// Returns the newer versions of locked packs: of those named, or of all.
    ///
    /// # Errors
    /// If a pack is not in the lock, or a registry does not answer.
    pub fn newer_of(&mut self, ids: &[String]) -> anyhow::Result<Vec<Offer>> {
        let lock = self.store.lock()?;
        if let Some(unknown) = ids.iter().find(|id| lock.find(id).is_none()) {
            bail!("`{unknown}` is not in the lock; `portcullis policy list` shows its packs");
        }
        let chosen = lock.policies.iter().filter(|locked| ids.is_empty() || ids.contains(&locked.id));
        let mut offers = Vec::new();
        for locked in chosen {
            offers.extend(self.newer(locked)?);
        }
        Ok(offers)
    }

    /// Removes packs from the lock: all of them, or none.
    ///
    /// # Errors
    /// If one is not in the lock, or the lock cannot be written.
    pub fn remove(&self, ids: &[String]) -> anyhow::Result<()> {
        let writing = self.store.begin()?;
        let mut lock = self.store.lock()?;
        for id in ids {
            lock.remove(id).with_context(|| format!("`{id}` is not in the lock; nothing was removed"))?;
        }
        Ok(writing.commit(&lock, &[])?)
    }

    /// Returns a newer version of a locked pack, or `None` if there is none or its registry is unknown.
    fn newer(&mut self, locked: &Locked) -> anyhow::Result<Option<Offer>> {
        let place = if locked.source == FROM_FILE {
            match self.place_of(&locked.id) {
                Ok(place) => place,
                Err(_) => {
                    say(&format!("portcullis: `{}` came from a file, and stays as it is", locked.id));
                    return Ok(None);
                }
            }
        } else {
            Reference::parse(&locked.source)?
        };
        let version = self.newest_version(&place, locked.requirement.as_ref())?;
        match version.filter(|version| *version > locked.version) {
            None => Ok(None),
            Some(_) => self.newest(&place, Some(&locked.id), locked.requirement.clone()).map(Some),
        }
    }

    /// Checks all offers, and then puts all of them in force atomically.
    ///
    /// # Errors
    /// If one is refused, or the lock cannot be written.
    pub fn take(&self, offers: Vec<Offer>, approval: &Approval) -> anyhow::Result<Vec<Locked>> {
        if offers.is_empty() {
            return Ok(Vec::new());
        }
        // A refused pack leaves no trace, not even an empty directory.
        let before = self.store.lock()?;
        let (_, first) = self.judge_all(&offers, before, approval)?;
        // Do not ask again what the user has agreed to.
        let mut approval = approval.clone();
        approval.capabilities.extend(first.into_iter().flat_map(|locked| locked.capabilities));
        let writing = self.store.begin()?;
        let (lock, taken) = self.judge_all(&offers, self.store.lock()?, &approval)?;
        let new: Vec<(&Locked, &Signed)> =
            taken.iter().zip(offers.iter().map(|offer| &offer.signed)).collect();
        writing.commit(&lock, &new)?;
        Ok(taken)
    }

    fn judge_all(
        &self,
        offers: &[Offer],
        mut lock: Lock,
        approval: &Approval,
    ) -> anyhow::Result<(Lock, Vec<Locked>)> {
        let mut taken: Vec<Locked> = Vec::new();
        for offer in offers {
            let locked = self.judge(offer, &lock, approval)?;
            if taken.iter().any(|other| other.id == locked.id) {
                bail!("`{}` is there twice; nothing was changed", locked.id);
            }
            lock.put(locked.clone());
            taken.push(locked);
        }
        Ok((lock, taken))
    }
}
