//! `policy add`, `update`, `remove`: change the lock file of packs.

use std::path::Path;

use anyhow::{Context as _, bail};
use portcullis_packs::{Approval, FROM_FILE, Lock, Locked, Reference, Signed, Store};
use serde_json::json;

use super::{LockEditor, Offer, here};
use crate::args::share::{Add, Remove, Update};
use crate::exit::{Exit, say};
use crate::output::{Page, Tint, cell, tinted};

pub(super) fn add(add: &Add) -> crate::Outcome {
    let mut editor = LockEditor::open(&add.place)?;
    let offers = match (&add.what, &add.lock) {
        (Some(what), _) => vec![editor.find(what)?],
        (None, Some(file)) => of_lock(&mut editor, file)?,
        (None, None) => bail!("nothing is named"),
    };
    let taken = editor.take(offers, &add.agreement.approval())?;
    editor.tell(&taken, add.json)
}

pub(super) fn update(update: &Update) -> crate::Outcome {
    let mut editor = LockEditor::open(&update.place)?;
    let lock = editor.store.lock()?;
    if let Some(unknown) = update.ids.iter().find(|id| lock.find(id).is_none()) {
        bail!("`{unknown}` is not in the lock; `portcullis policy list` shows what is");
    }
    let chosen =
        lock.policies.iter().filter(|locked| update.ids.is_empty() || update.ids.contains(&locked.id));
    let mut offers = Vec::new();
    for locked in chosen {
        offers.extend(editor.newer(locked)?);
    }
    let taken = editor.take(offers, &update.agreement.approval())?;
    if taken.is_empty() && !update.json {
        say("portcullis: there is nothing newer");
    }
    editor.tell(&taken, update.json)
}

pub(super) fn remove(remove: &Remove) -> crate::Outcome {
    let editor = LockEditor::open(&remove.place)?;
    let writing = editor.store.begin()?;
    let mut lock = editor.store.lock()?;
    for id in &remove.ids {
        lock.remove(id).with_context(|| format!("`{id}` is not in the lock; nothing was removed"))?;
    }
    writing.commit(&lock, &[])?;
    if remove.json {
        let mut page = Page::new(&editor.around);
        page.json(&json!({ "lock": editor.store.lock_file(), "removed": remove.ids }));
        page.print()?;
        return Ok(Exit::Done);
    }
    for id in &remove.ids {
        say(&format!("portcullis: `{id}` is removed; settings that still name it refuse everything"));
    }
    Ok(Exit::Done)
}

/// Returns all packs in a team's lock file.
fn of_lock(editor: &mut LockEditor, file: &Path) -> anyhow::Result<Vec<Offer>> {
    let file = here(&editor.around, file);
    let directory =
        if file.is_dir() { file.as_path() } else { file.parent().unwrap_or_else(|| Path::new("/")) };
    let store = Store::new(directory);
    if store.lock_file() != file && !file.is_dir() {
        bail!("`{}` is no `policy.lock`", file.display());
    }
    let lock = store.lock()?;
    if lock.policies.is_empty() {
        bail!("`{}` names nothing", store.lock_file().display());
    }
    lock.policies.iter().map(|locked| editor.of_lock(&store, locked)).collect()
}

impl LockEditor {
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
    pub(super) fn take(&self, offers: Vec<Offer>, approval: &Approval) -> anyhow::Result<Vec<Locked>> {
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

    pub(super) fn tell(&self, taken: &[Locked], json: bool) -> crate::Outcome {
        let mut page = Page::new(&self.around);
        if json {
            page.json(&json!({ "lock": self.store.lock_file(), "taken": taken }));
        } else {
            let row = |locked: &Locked| {
                let signer = match locked.signed_by.as_slice() {
                    [] => tinted("unsigned, trusted by its digest", Tint::Open),
                    keys => tinted(&format!("signed by {}", keys.join(", ")), Tint::Good),
                };
                vec![cell(&locked.id), cell(&locked.version.to_string()), cell(&locked.digest), signer]
            };
            page.table("", &taken.iter().map(row).collect::<Vec<_>>());
            for locked in taken {
                page.line(&format!(
                    "use it with {{ \"use\": \"{}\" }} in `policies` of the settings",
                    locked.id
                ));
            }
        }
        page.print()?;
        Ok(Exit::Done)
    }
}
