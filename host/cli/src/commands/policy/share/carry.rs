//! `policy vendor`, `save`, `load`: packs as files.

use std::io::BufReader;

use anyhow::{Context as _, anyhow, bail};
use portcullis_packs::{FROM_FILE, Locked, Signed, Store, load, open, save, write};
use portcullis_text::escape;
use serde_json::{Value, json};

use super::list::NOTHING;
use super::{LockEditor, Offer, here};
use crate::args::share::{Load, Save, Vendor};
use crate::exit::{Exit, say};
use crate::output::{Page, counted};

pub(super) fn vendor(vendor: &Vendor) -> crate::Outcome {
    let editor = LockEditor::open(&vendor.place)?;
    let lock = editor.store.lock()?;
    if lock.policies.is_empty() {
        bail!("{NOTHING}");
    }
    let signed = editor.all(&lock.policies)?;
    let to = here(&editor.around, &vendor.to);
    let new: Vec<(&Locked, &Signed)> = lock.policies.iter().zip(&signed).collect();
    Store::elsewhere(&to).begin()?.commit(&lock, &new)?;
    let shown = json!({ "directory": to, "policies": lock.policies });
    let told = format!("{} and the lock: in `{}`", counted(new.len(), "pack"), to.display());
    editor.told(&told, &shown, vendor.json)
}

pub(super) fn save_packs(wanted: &Save) -> crate::Outcome {
    let editor = LockEditor::open(&wanted.place)?;
    let lock = editor.store.lock()?;
    if let Some(unknown) = wanted.ids.iter().find(|id| lock.find(id).is_none()) {
        bail!("`{unknown}` is not in the lock; `portcullis policy list` shows what is");
    }
    let chosen: Vec<Locked> = lock
        .policies
        .into_iter()
        .filter(|locked| wanted.ids.is_empty() || wanted.ids.contains(&locked.id))
        .collect();
    if chosen.is_empty() {
        bail!("{NOTHING}");
    }
    let names = chosen.iter().map(|locked| format!("{}@{}", locked.id, locked.version));
    let packs: Vec<(String, Signed)> = names.zip(editor.all(&chosen)?).collect();
    let file = here(&editor.around, &wanted.file);
    let mut archive = Vec::new();
    save(&packs, &mut archive)?;
    write(&file, &archive)?;
    let shown = json!({ "archive": file, "policies": chosen });
    let told = format!("{}: in `{}`", counted(packs.len(), "pack"), file.display());
    editor.told(&told, &shown, wanted.json)
}

pub(super) fn load_packs(wanted: &Load) -> crate::Outcome {
    let editor = LockEditor::open(&wanted.place)?;
    let file = here(&editor.around, &wanted.file);
    let refused = || format!("the archive `{}` is refused, and nothing was changed", file.display());
    let packs = load(BufReader::new(open(&file)?)).with_context(refused)?;
    if packs.is_empty() {
        return Err(anyhow!("there is no pack in it")).with_context(refused);
    }
    let offer = |signed| Offer {
        signed,
        source: FROM_FILE.to_owned(),
        wanted: None,
        version: None,
        pinned: None,
        requirement: None,
    };
    let taken = editor.take(packs.into_iter().map(offer).collect(), &wanted.agreement.approval())?;
    editor.tell(&taken, wanted.json)
}

impl LockEditor {
    /// Prints the result of a command: as a sentence, or as JSON.
    fn told(&self, sentence: &str, object: &Value, as_json: bool) -> crate::Outcome {
        if as_json {
            let mut page = Page::new(&self.around);
            page.json(object);
            page.print()?;
        } else {
            say(&escape(&format!("portcullis: {sentence}")));
        }
        Ok(Exit::Done)
    }

    fn all(&self, policies: &[Locked]) -> anyhow::Result<Vec<Signed>> {
        policies.iter().map(|locked| Ok(self.store.signed(locked)?)).collect()
    }
}
