//! `policy list` and `policy lock`: show the lock file of packs and check it.

use portcullis_command_line::args::share::Shown;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::{Cell, Page, Tint, cell, tinted};
use portcullis_packs::Locked;
use portcullis_policy_tools::LockEditor;
use serde_json::{Value, json};

use super::empty_lock::NOTHING;

pub(super) fn list(shown: &Shown) -> exit::Outcome {
    let editor = LockEditor::open(shown.place.dir.as_deref())?;
    let lock = editor.store().lock()?;
    let mut page = Page::new(editor.environment());
    if shown.json {
        page.json(&json!({ "lock": editor.store().lock_file(), "policies": lock.policies }));
    } else if lock.policies.is_empty() {
        page.line(NOTHING);
    } else {
        page.table("", &lock.policies.iter().map(|locked| row(&editor, locked)).collect::<Vec<_>>());
    }
    page.print()?;
    Ok(Exit::Done)
}

/// Checks all packs as if they were offered now; changes nothing.
pub(super) fn check(shown: &Shown) -> exit::Outcome {
    let editor = LockEditor::open(shown.place.dir.as_deref())?;
    let lock = editor.store().lock()?;
    let judged: Vec<(&Locked, Option<String>)> =
        lock.policies.iter().map(|locked| (locked, editor.fault(locked, &lock))).collect();
    let mut page = Page::new(editor.environment());
    if shown.json {
        let one = |(locked, fault): &(&Locked, Option<String>)| -> Value {
            json!({ "id": locked.id, "version": locked.version, "digest": locked.digest, "fault": fault })
        };
        let all: Vec<Value> = judged.iter().map(one).collect();
        page.json(&json!({ "lock": editor.store().lock_file(), "policies": all }));
    } else if judged.is_empty() {
        page.line(NOTHING);
    } else {
        let row = |(locked, fault): &(&Locked, Option<String>)| {
            let state = match fault {
                None => tinted("holds", Tint::Good),
                Some(fault) => tinted(fault, Tint::Bad),
            };
            vec![cell(&locked.id), cell(&locked.version.to_string()), state]
        };
        page.table("", &judged.iter().map(row).collect::<Vec<_>>());
    }
    page.print()?;
    Ok(if judged.iter().all(|(_, fault)| fault.is_none()) { Exit::Done } else { Exit::Bad })
}

fn row(editor: &LockEditor, locked: &Locked) -> Vec<Cell> {
    let signer = match locked.signed_by.as_slice() {
        [] => tinted("unsigned", Tint::Open),
        keys => tinted(&format!("signed by {}", names(editor, keys).join(", ")), Tint::Good),
    };
    let wants: Vec<&str> = locked.capabilities.iter().map(String::as_str).collect();
    let wants = if wants.is_empty() { String::new() } else { format!("may: {}", wants.join(", ")) };
    let version = locked.version.to_string();
    vec![cell(&locked.id), cell(&version), signer, cell(&locked.source), cell(&wants)]
}

/// Returns the publishers that own these keys; an unknown key is shown itself.
fn names(editor: &LockEditor, keys: &[String]) -> Vec<String> {
    let name = |wanted: &String| {
        let owns = |key: &portcullis_packs::Key| key.fingerprint() == wanted;
        let mut publishers = editor.trust().publishers.iter();
        let owner = publishers.find(|publisher| publisher.keys.iter().any(|(key, _)| owns(key)));
        owner.map_or_else(|| wanted.clone(), |publisher| publisher.name.clone())
    };
    keys.iter().map(name).collect()
}
