//! `team new`, `sign`, `publish`, `yank` and `rotate`: the folder of a publisher.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use portcullis_bootstrap::process_env::{ProcessEnv, unix_seconds};
use portcullis_bootstrap::teams::update::check_texts;
use portcullis_command_line::args::team::{New, Publish, Rotate, Sign, Yank};
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::human::path;
use portcullis_command_line::output::{Page, Tint, cell, tinted};
use portcullis_packs::{Key, Reference, beside, read_text};
use portcullis_policy_tools::{registry_client, ssh_signature};
use portcullis_teams::{Folder, NewTeam, Pending, Rotation, TEAM_PURPOSE, push};
use serde_json::{Value, json};

/// Largest file with a public key, in bytes.
const KEY_MAX: usize = 16 << 10;

pub(super) fn new(around: &ProcessEnv, new: &New) -> exit::Outcome {
    let directory = folder_path(around, &new.directory);
    let team = NewTeam {
        team: new.team.clone(),
        keys: public_keys(around, &new.key)?,
        threshold: new.threshold,
        timestamp_keys: public_keys(around, &new.timestamp_key)?,
    };
    let folder = Folder::create(&directory, &team, unix_seconds())?;
    let next = format!(
        "edit `{}`, then: portcullis team publish {} REGISTRY --key KEY",
        path(around, directory.join("bundle.toml")),
        path(around, &directory)
    );
    told(around, &json!({ "directory": directory, "root": folder.pin() }), &[next], new.json)?;
    Ok(Exit::Done)
}

pub(super) fn sign(around: &ProcessEnv, sign: &Sign) -> exit::Outcome {
    let mut folder = Folder::open(&around.absolute(&sign.directory))?;
    let signed = sign_with(around, &mut folder, &sign.key)?;
    let pending = folder.pending()?;
    let lines = match signed.as_slice() {
        [] => vec!["nothing waits for this key".to_owned()],
        names => names.iter().map(|name| format!("signed: {name}")).collect(),
    };
    told(around, &json!({ "signed": signed, "pending": as_json(&pending) }), &lines, sign.json)?;
    Ok(Exit::Done)
}

pub(super) fn publish(around: &ProcessEnv, publish: &Publish) -> exit::Outcome {
    let repository = Reference::parse(&publish.registry)?;
    if repository.tag.is_some() || repository.digest.is_some() {
        bail!("name the team's repository without a tag, as in `{}`", repository.place());
    }
    let (directory, now) = (folder_path(around, &publish.directory), unix_seconds());
    let mut folder = Folder::open(&directory)?;
    let draft = folder.draft()?;
    // Members would refuse it.
    check_texts(draft.bundle()).with_context(|| format!("the content of `{}`", directory.display()))?;
    folder.next(&draft, publish.renew, now)?;
    if publish.refresh {
        folder.next_timestamp(true, now)?;
    }
    sign_with(around, &mut folder, &publish.key)?;
    let pending = folder.pending()?;
    let version = folder.newest().map(|bundle| bundle.version);
    if !pending.is_empty() {
        return waiting(around, &directory, &pending, publish.json);
    }
    let (packs, documents) = (folder.packs_of(draft), folder.complete()?);
    let mut registry = registry_client(around)?;
    push(&mut registry, &repository, &packs, &documents)
        .with_context(|| format!("publishing to `{}`", repository.place()))?;
    let (place, pin) = (repository.place(), folder.pin());
    let lines = [
        format!("published: bundle {}", version.unwrap_or(0)),
        format!("members join with: portcullis team join {place} --root {pin}"),
    ];
    told(
        around,
        &json!({ "bundle": version, "registry": place, "root": pin, "pending": [] }),
        &lines,
        publish.json,
    )?;
    Ok(Exit::Done)
}

pub(super) fn yank(around: &ProcessEnv, yank: &Yank) -> exit::Outcome {
    let directory = folder_path(around, &yank.directory);
    let mut folder = Folder::open(&directory)?;
    let drafted = folder.yank(yank.version, &yank.reason, unix_seconds())?;
    sign_with(around, &mut folder, &yank.key)?;
    let version = drafted.bundle.unwrap_or(0);
    let shown = json!({ "bundle": version, "yanked": yank.version, "pending": as_json(&folder.pending()?) });
    let lines = [
        format!("bundle {version} takes version {} back", yank.version),
        format!("publish it with: portcullis team publish {} REGISTRY --key KEY", path(around, &directory)),
    ];
    told(around, &shown, &lines, yank.json)?;
    Ok(Exit::Done)
}

pub(super) fn rotate(around: &ProcessEnv, rotate: &Rotate) -> exit::Outcome {
    let directory = folder_path(around, &rotate.directory);
    let mut folder = Folder::open(&directory)?;
    let rotation = Rotation {
        add: public_keys(around, &rotate.add)?,
        add_timestamp: public_keys(around, &rotate.add_timestamp)?,
        remove: rotate.remove.clone(),
        threshold: rotate.threshold,
    };
    let version = folder.rotate(&rotation, unix_seconds())?;
    sign_with(around, &mut folder, &rotate.key)?;
    let pending = folder.pending()?;
    let shown = json!({ "root": version, "digest": folder.pin(), "pending": as_json(&pending) });
    told(around, &shown, &[format!("made: root {version}")], rotate.json)?;
    if rotate.json || pending.is_empty() {
        Ok(Exit::Done)
    } else {
        waiting(around, &directory, &pending, false)
    }
}

/// Returns the absolute path of a folder, without `.` in it.
fn folder_path(around: &ProcessEnv, folder: &Path) -> PathBuf {
    around.absolute(folder).components().collect()
}

/// Signs what waits for these keys. Returns the names of the documents.
fn sign_with(around: &ProcessEnv, folder: &mut Folder, keys: &[PathBuf]) -> anyhow::Result<Vec<String>> {
    let mut signed = Vec::new();
    for key in keys.iter().map(|key| around.absolute(key)) {
        let public = if key.extension().is_some_and(|ending| ending == "pub") {
            key.clone()
        } else {
            beside(&key, "pub")
        };
        let public = public_key(&public)?;
        let fingerprint =
            Key::parse(&public).with_context(|| format!("the key beside `{}`", key.display()))?;
        let made = folder.sign(fingerprint.fingerprint(), |text| {
            ssh_signature(around, &key, TEAM_PURPOSE, text.as_bytes())
        })??;
        signed.extend(made.iter().map(ToString::to_string));
    }
    Ok(signed)
}

fn public_keys(around: &ProcessEnv, files: &[PathBuf]) -> anyhow::Result<Vec<String>> {
    files.iter().map(|file| public_key(&around.absolute(file))).collect()
}

fn public_key(file: &Path) -> anyhow::Result<String> {
    let text =
        read_text(file, KEY_MAX).with_context(|| format!("reading the public key `{}`", file.display()))?;
    let text = text.trim().to_owned();
    if let Err(error) = Key::parse(&text) {
        bail!("`{}` holds no public key of ssh: {error}", file.display());
    }
    Ok(text)
}

/// Prints which signatures are missing.
fn waiting(around: &ProcessEnv, directory: &Path, pending: &[Pending], is_json: bool) -> exit::Outcome {
    let mut page = Page::new(around);
    if is_json {
        page.json(&json!({ "bundle": null, "pending": as_json(pending) }));
    } else {
        for one in pending {
            let keys: Vec<&str> = one.keys.iter().map(String::as_str).collect();
            let text = format!("needs {} more of {}", one.missing, keys.join(", "));
            page.row("", &[tinted("waits", Tint::Open), cell(&one.name.to_string()), cell(&text)], &[]);
        }
        let folder = path(around, directory);
        page.line(&format!("nothing was published; the others run: portcullis team sign {folder} --key KEY"));
    }
    page.print()?;
    Ok(Exit::Bad)
}

fn as_json(pending: &[Pending]) -> Vec<Value> {
    let one =
        |one: &Pending| json!({ "document": one.name.to_string(), "missing": one.missing, "keys": one.keys });
    pending.iter().map(one).collect()
}

fn told(around: &ProcessEnv, shown: &Value, lines: &[String], is_json: bool) -> anyhow::Result<()> {
    let mut page = Page::new(around);
    if is_json {
        page.json(shown);
    } else {
        lines.iter().for_each(|line| page.line(line));
    }
    page.print()?;
    Ok(())
}
