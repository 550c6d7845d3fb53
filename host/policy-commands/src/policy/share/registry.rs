//! `policy push` and `policy pull`.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use portcullis_command_line::args::share::{Pull, Push};
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::{Page, cell};
use portcullis_packs::{Pack, Reference, Signed, digest, tag_of, version_of, write_signed};
use portcullis_policy_tools::{LockEditor, Offer};
use semver::Version;
use serde_json::json;

pub(super) fn push(push: &Push) -> exit::Outcome {
    let mut editor = LockEditor::open(None)?;
    let offer = editor.offer_of(&push.file)?;
    let pack = Pack::read(&offer.signed.bytes)?;
    let about =
        pack.context("it carries no manifest; `portcullis policy build` makes a pack")?.manifest.policy;
    let version = Version::parse(&about.version).context("reading the version in the manifest")?;
    if offer.signed.signatures.is_empty() && !push.unsigned {
        bail!(
            "`{}` is unsigned; sign it with `portcullis policy sign`, or pass `--unsigned`",
            push.file.display()
        );
    }
    let to = match &push.to {
        Some(text) => Reference::parse(text)?,
        None => editor.place_of(&about.id)?,
    };
    let to = match &to.tag {
        None => to.tagged(&tag_of(&version)),
        Some(tag) if version_of(tag).is_some_and(|tagged| tagged != version) => {
            bail!("the manifest says version {version}, the tag is `{tag}`; nothing was pushed")
        }
        Some(_) => to,
    };
    let manifest = editor.push(&to, &offer.signed)?;
    let mut page = Page::new(editor.environment());
    let digest = format!("sha256:{}", digest(&offer.signed.bytes));
    if push.json {
        page.json(&json!({ "artifact": to.to_string(), "manifest": manifest, "digest": digest }));
    } else {
        page.row("", &[cell(&to.to_string()), cell(&digest)], &[]);
    }
    page.print()?;
    Ok(Exit::Done)
}

pub(super) fn pull(pull: &Pull) -> exit::Outcome {
    let mut editor = LockEditor::open(None)?;
    let Offer { signed, source, .. } = editor.find(&pull.what)?;
    let file = editor.here(&pull.output.clone().unwrap_or_else(|| usual_name(&signed)));
    write_signed(&file, &signed)?;
    let mut page = Page::new(editor.environment());
    let digest = format!("sha256:{}", digest(&signed.bytes));
    let signers = signed.signatures.fingerprints();
    if pull.json {
        page.json(&json!({ "file": file, "source": source, "digest": digest, "signatures": signers }));
    } else {
        let by = if signers.is_empty() {
            "unsigned".to_owned()
        } else {
            // The author of a signature can write any key into it.
            format!("with signatures that name {}; not verified", signers.join(", "))
        };
        page.row("", &[cell(&file.display().to_string()), cell(&digest), cell(&by)], &[]);
    }
    page.print()?;
    Ok(Exit::Done)
}

/// Returns `NAME-VERSION.wasm`, from values that are valid in a manifest.
fn usual_name(signed: &Signed) -> PathBuf {
    let about = Pack::read(&signed.bytes).ok().flatten().map(|pack| pack.manifest.policy);
    let name = about.and_then(|about| {
        let version = Version::parse(&about.version).ok()?;
        Some(format!("{}-{version}.wasm", about.id.split(':').nth(1)?))
    });
    name.unwrap_or_else(|| format!("{}.wasm", digest(&signed.bytes))).into()
}
