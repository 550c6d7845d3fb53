//! `policy sign` and `policy verify`.

use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::args::share::{Sign, Verify};
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::{Page, Tint, cell, tinted};
use portcullis_packs::{Approval, PackRefusal, digest};
use portcullis_policy_tools::LockEditor;
use portcullis_session::with_causes;
use serde_json::json;

pub(super) fn sign(sign: &Sign) -> exit::Outcome {
    let around = ProcessEnv::read()?;
    let signed =
        portcullis_policy_tools::sign(&around, &sign.file, sign.key.as_deref(), sign.minisign.as_deref())?;
    let mut page = Page::new(&around);
    if sign.json {
        page.json(&json!({
            "id": signed.id, "version": signed.version, "digest": signed.digest,
            "signatures": signed.signatures,
        }));
        page.print()?;
        return Ok(Exit::Done);
    }
    for to in &signed.signatures {
        let id = cell(&format!("{} {}", signed.id, signed.version));
        page.row("", &[id, cell(&signed.digest), cell(&to.display().to_string())], &[]);
    }
    page.print()?;
    Ok(Exit::Done)
}

pub(super) fn verify(verify: &Verify) -> exit::Outcome {
    let editor = LockEditor::open(verify.place.dir.as_deref())?;
    let offer = editor.offer_of(&verify.file)?;
    let lock = editor.store().lock()?;
    // `add` asks about capabilities; here only the author matters.
    let approval = Approval { capabilities: all_capabilities(), ..Approval::default() };
    let judged = editor.accept(&offer, &lock, &approval);
    let found = offer.signed.signatures.fingerprints();
    let digest = format!("sha256:{}", digest(&offer.signed.bytes));
    let mut page = Page::new(editor.environment());
    let exit = if judged.is_ok() { Exit::Done } else { Exit::Bad };
    let refusal = judged.as_ref().err().map(|refusal| with_causes(refusal));
    if verify.json {
        page.json(&json!({
            "digest": digest, "signatures": found, "taken": judged.is_ok(), "refusal": refusal,
            "code": judged.as_ref().err().map(PackRefusal::code),
            "policy": judged.as_ref().ok(),
        }));
    } else {
        let word = match (&judged, &refusal) {
            (Ok(locked), _) if locked.signed_by.is_empty() => tinted("trusted by its digest", Tint::Open),
            (Ok(locked), _) => {
                tinted(&format!("good, signed by {}", locked.signed_by.join(", ")), Tint::Good)
            }
            (Err(_), refusal) => {
                tinted(&format!("refused: {}", refusal.as_deref().unwrap_or_default()), Tint::Bad)
            }
        };
        page.row("", &[cell(&verify.file.display().to_string()), cell(&digest), word], &[]);
    }
    page.print()?;
    Ok(exit)
}

fn all_capabilities() -> std::collections::BTreeSet<String> {
    portcullis_packs::CAPABILITIES.into_iter().map(str::to_owned).collect()
}
