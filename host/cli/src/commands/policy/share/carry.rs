//! `policy vendor`, `save`, `load`: packs that travel as files.

use std::fs::File;
use std::io::BufReader;

use anyhow::{Context as _, bail};
use portcullis_packs::{FROM_FILE, Locked, Signed, Store, load, save, write};

use super::{Desk, Offer, here};
use crate::args::share::{Load, Save, Vendor};
use crate::exit::{Exit, say};

pub(super) fn vendor(vendor: &Vendor) -> crate::Outcome {
    let desk = Desk::open(&vendor.place)?;
    let lock = desk.store.lock()?;
    let signed = desk.all(&lock.policies)?;
    let to = here(&desk.around, &vendor.to);
    let new: Vec<(&Locked, &Signed)> = lock.policies.iter().zip(&signed).collect();
    Store::elsewhere(&to).begin()?.commit(&lock, &new)?;
    say(&format!("portcullis: {} packs and their lock are in `{}`", new.len(), to.display()));
    Ok(Exit::Done)
}

pub(super) fn save_packs(wanted: &Save) -> crate::Outcome {
    let desk = Desk::open(&wanted.place)?;
    let lock = desk.store.lock()?;
    if let Some(unknown) = wanted.ids.iter().find(|id| lock.find(id).is_none()) {
        bail!("`{unknown}` is not in the lock; `portcullis policy list` shows what is");
    }
    let chosen: Vec<Locked> = lock
        .policies
        .into_iter()
        .filter(|locked| wanted.ids.is_empty() || wanted.ids.contains(&locked.id))
        .collect();
    if chosen.is_empty() {
        bail!("nothing is in the lock");
    }
    let names = chosen.iter().map(|locked| format!("{}@{}", locked.id, locked.version));
    let packs: Vec<(String, Signed)> = names.zip(desk.all(&chosen)?).collect();
    let file = here(&desk.around, &wanted.file);
    let mut archive = Vec::new();
    save(&packs, &mut archive)?;
    write(&file, &archive)?;
    say(&format!("portcullis: {} packs are in `{}`", packs.len(), file.display()));
    Ok(Exit::Done)
}

pub(super) fn load_packs(wanted: &Load) -> crate::Outcome {
    let desk = Desk::open(&wanted.place)?;
    let file = here(&desk.around, &wanted.file);
    let refused = || format!("the archive `{}` is refused, and nothing was changed", file.display());
    let from = File::open(&file).with_context(|| format!("opening `{}`", file.display()))?;
    let packs = load(BufReader::new(from)).with_context(refused)?;
    let offer = |signed| Offer {
        signed,
        source: FROM_FILE.to_owned(),
        wanted: None,
        version: None,
        pinned: None,
        requirement: None,
    };
    let taken = desk.take(packs.into_iter().map(offer).collect(), &wanted.agreement.approval())?;
    desk.tell(&taken, wanted.json)
}

impl Desk {
    fn all(&self, policies: &[Locked]) -> anyhow::Result<Vec<Signed>> {
        policies.iter().map(|locked| Ok(self.store.signed(locked)?)).collect()
    }
}
