//! `policy sign` and `policy verify`.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use portcullis_packs::{
    Approval, COMPONENT_MAX, PURPOSE, Pack, Refusal, beside, digest, read, signatures_beside, write,
};
use serde_json::json;

use super::{LockEditor, here};
use crate::args::share::{Sign, Verify};
use crate::exit::Exit;
use crate::output::{Page, Tint, cell, tinted};
use crate::process_env::ProcessEnv;
use crate::untrusted_paths::Reach;

pub(super) fn sign(sign: &Sign) -> crate::Outcome {
    let around = ProcessEnv::read()?;
    let file = here(&around, &sign.file);
    let bytes = read(&file, COMPONENT_MAX)?;
    let pack = Pack::read(&bytes).with_context(|| format!("reading what `{}` carries", file.display()))?;
    let pack = pack.context("only packs are signed; `portcullis policy build` makes one of a component")?;
    let mut signed = Vec::new();
    if let Some(key) = &sign.key {
        let mut signatures = signatures_beside(&file)?;
        signatures.add_ssh(&with_ssh(&around, &here(&around, key), &bytes)?, &bytes)?;
        let to = beside(&file, "sig");
        write(&to, signatures.ssh_text().as_bytes())?;
        signed.push(to);
    }
    if let Some(key) = &sign.minisign {
        let to = beside(&file, "minisig");
        with_minisign(&around, &here(&around, key), &file, &to)?;
        signed.push(to);
    }
    let mut page = Page::new(&around);
    let about = &pack.manifest.policy;
    if sign.json {
        page.json(&json!({
            "id": about.id, "version": about.version, "digest": format!("sha256:{}", digest(&bytes)),
            "signatures": signed,
        }));
        page.print()?;
        return Ok(Exit::Done);
    }
    for to in signed {
        let id = cell(&format!("{} {}", about.id, about.version));
        page.row(
            "",
            &[id, cell(&format!("sha256:{}", digest(&bytes))), cell(&to.display().to_string())],
            &[],
        );
    }
    page.print()?;
    Ok(Exit::Done)
}

/// Signs with `ssh-keygen`, so that agents and hardware tokens work too; it asks for a passphrase on the terminal.
fn with_ssh(around: &ProcessEnv, key: &Path, bytes: &[u8]) -> anyhow::Result<String> {
    let program = program(around, "ssh-keygen", "openssh-client")?;
    let mut child = Command::new(program)
        .args(["-Y", "sign", "-n", PURPOSE, "-f"])
        .arg(key)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("starting `ssh-keygen`")?;
    if let Some(mut input) = child.stdin.take() {
        // It exits early if it cannot use the key, and prints why.
        drop(input.write_all(bytes));
    }
    let output = child.wait_with_output().context("waiting for `ssh-keygen`")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        bail!("`ssh-keygen` did not sign with `{}`: {said}", key.display());
    }
    String::from_utf8(output.stdout).context("reading the signature")
}

fn with_minisign(around: &ProcessEnv, key: &Path, file: &Path, to: &Path) -> anyhow::Result<()> {
    let program = program(around, "minisign", "minisign")?;
    let status = Command::new(program)
        .arg("-S")
        .arg("-s")
        .arg(key)
        .arg("-m")
        .arg(file)
        .arg("-x")
        .arg(to)
        .stdout(Stdio::null())
        .status()
        .context("starting `minisign`")?;
    if !status.success() {
        bail!("`minisign` did not sign with `{}`", key.display());
    }
    Ok(())
}

fn program(around: &ProcessEnv, name: &str, package: &str) -> anyhow::Result<std::path::PathBuf> {
    around
        .find_program(OsStr::new(name), &Reach::of_project(&around.cwd, &around.homes()))
        .with_context(|| format!("`{name}` is not in PATH; Debian has it in the package `{package}`"))
}

pub(super) fn verify(verify: &Verify) -> crate::Outcome {
    let editor = LockEditor::open(&verify.place)?;
    let offer = editor.offer_of(&verify.file)?;
    let lock = editor.store.lock()?;
    // `add` asks about capabilities; here only the author matters.
    let approval = Approval { capabilities: all_capabilities(), ..Approval::default() };
    let judged = editor.accept(&offer, &lock, &approval);
    let found = offer.signed.signatures.fingerprints();
    let digest = format!("sha256:{}", digest(&offer.signed.bytes));
    let mut page = Page::new(&editor.around);
    let exit = if judged.is_ok() { Exit::Done } else { Exit::Bad };
    let refusal = judged.as_ref().err().map(|refusal| with_causes(refusal));
    if verify.json {
        page.json(&json!({
            "digest": digest, "signatures": found, "taken": judged.is_ok(), "refusal": refusal,
            "code": judged.as_ref().err().map(Refusal::code),
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

fn with_causes(error: &dyn std::error::Error) -> String {
    portcullis_session::with_causes(error)
}
