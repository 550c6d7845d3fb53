//! `policy vendor`, `save`, `load`: packs as files.

use std::io::BufReader;

use anyhow::{Context as _, anyhow, bail};
use portcullis_bootstrap::streams::say;
use portcullis_command_line::args::share::{Load, Save, Vendor};
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::Page;
use portcullis_packs::{Locked, Signed, Store, load, open, save, write};
use portcullis_policy_tools::{LockEditor, Offer};
use portcullis_text::{counted, escape};
use serde_json::{Value, json};

use super::add::print;
use super::approval::approval;
use super::empty_lock::NOTHING;

pub(super) fn vendor(vendor: &Vendor) -> exit::Outcome {
    let editor = LockEditor::open(vendor.place.dir.as_deref())?;
    let lock = editor.store().lock()?;
    if lock.policies.is_empty() {
        bail!("{NOTHING}");
    }
    let signed = editor.signed_packs(&lock.policies)?;
    let to = editor.here(&vendor.to);
    let new: Vec<(&Locked, &Signed)> = lock.policies.iter().zip(&signed).collect();
    Store::elsewhere(&to).begin()?.commit(&lock, &new)?;
    let shown = json!({ "directory": to, "policies": lock.policies });
    let told = format!("{} and the lock: in `{}`", counted(new.len(), "pack"), to.display());
    print_done(&editor, &told, &shown, vendor.json)
}

pub(super) fn save_packs(wanted: &Save) -> exit::Outcome {
    let editor = LockEditor::open(wanted.place.dir.as_deref())?;
    let lock = editor.store().lock()?;
    if let Some(unknown) = wanted.ids.iter().find(|id| lock.find(id).is_none()) {
        bail!("`{unknown}` is not in the lock; `portcullis policy list` shows its packs");
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
    let packs: Vec<(String, Signed)> = names.zip(editor.signed_packs(&chosen)?).collect();
    let file = editor.here(&wanted.file);
    let mut archive = Vec::new();
    save(&packs, &mut archive)?;
    write(&file, &archive)?;
    let shown = json!({ "archive": file, "policies": chosen });
    let told = format!("{}: in `{}`", counted(packs.len(), "pack"), file.display());
    print_done(&editor, &told, &shown, wanted.json)
}

pub(super) fn load_packs(wanted: &Load) -> exit::Outcome {
    let editor = LockEditor::open(wanted.place.dir.as_deref())?;
    let file = editor.here(&wanted.file);
    let refused = || format!("the archive `{}` is refused, and nothing was changed", file.display());
    let packs = load(BufReader::new(open(&file)?)).with_context(refused)?;
    if packs.is_empty() {
        return Err(anyhow!("there is no pack in it")).with_context(refused);
    }
    let taken = editor.take(packs.into_iter().map(Offer::of_file).collect(), &approval(&wanted.agreement))?;
    print(&editor, &taken, wanted.json)
}

/// Prints the result of a command: as a sentence, or as JSON.
fn print_done(editor: &LockEditor, sentence: &str, object: &Value, as_json: bool) -> exit::Outcome {
    if as_json {
        let mut page = Page::new(editor.environment());
        page.json(object);
        page.print()?;
    } else {
        say(&escape(&format!("portcullis: {sentence}")));
    }
    Ok(Exit::Done)
}
