//! `policy add`, `update`, `remove`: change the lock file of packs.

use anyhow::bail;
use portcullis_bootstrap::streams::say;
use portcullis_command_line::args::share::{Add, Remove, Update};
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::{Page, Tint, cell, tinted};
use portcullis_packs::Locked;
use portcullis_policy_tools::LockEditor;
use serde_json::json;

use super::approval::approval;

pub(super) fn add(add: &Add) -> exit::Outcome {
    let mut editor = LockEditor::open(add.place.dir.as_deref())?;
    let offers = match (&add.what, &add.lock) {
        (Some(what), _) => vec![editor.find(what)?],
        (None, Some(file)) => editor.of_lock_file(file)?,
        (None, None) => bail!("nothing is named"),
    };
    let taken = editor.take(offers, &approval(&add.agreement))?;
    print(&editor, &taken, add.json)
}

pub(super) fn update(update: &Update) -> exit::Outcome {
    let mut editor = LockEditor::open(update.place.dir.as_deref())?;
    let offers = editor.newer_of(&update.ids)?;
    let taken = editor.take(offers, &approval(&update.agreement))?;
    if taken.is_empty() && !update.json {
        say("portcullis: there is no newer version");
    }
    print(&editor, &taken, update.json)
}

pub(super) fn remove(remove: &Remove) -> exit::Outcome {
    let editor = LockEditor::open(remove.place.dir.as_deref())?;
    editor.remove(&remove.ids)?;
    if remove.json {
        let mut page = Page::new(editor.environment());
        page.json(&json!({ "lock": editor.store().lock_file(), "removed": remove.ids }));
        page.print()?;
        return Ok(Exit::Done);
    }
    for id in &remove.ids {
        say(&format!("portcullis: `{id}` is removed; settings that still name it refuse everything"));
    }
    Ok(Exit::Done)
}

/// Prints the packs that were taken.
pub(super) fn print(editor: &LockEditor, taken: &[Locked], json: bool) -> exit::Outcome {
    let mut page = Page::new(editor.environment());
    if json {
        page.json(&json!({ "lock": editor.store().lock_file(), "taken": taken }));
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
            page.line(&format!("use it with {{ \"use\": \"{}\" }} in `policies` of the settings", locked.id));
        }
    }
    page.print()?;
    Ok(Exit::Done)
}
