//! `policy trust`: adds entries to the user's trust file. It never removes any.
//!
//! Entries are appended, so that the user's own text in the file stays. Revocations override all other entries.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use portcullis_packs::{
    COMPONENT_MAX, Key, Store, StoreError, TRUST_MAX, digest, is_digest, read, read_text, write,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::here;
use crate::args::share::{Dates, Publisher, Trust};
use crate::exit::{Exit, say};
use crate::output::{Page, Tint, cell, tinted};
use crate::process_env::ProcessEnv;
use crate::trust_files;

/// The entries to append.
#[derive(Debug, Default, Serialize)]
struct Entries {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    publisher: Vec<PublisherEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    key: Vec<KeyEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    revoked: Vec<RevokedEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    trusted: Vec<TrustedEntry>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct PublisherEntry {
    name: String,
    namespaces: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    registry: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_signers: Option<String>,
    threshold: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct KeyEntry {
    publisher: String,
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_after: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_before: Option<String>,
}

#[derive(Debug, Serialize)]
struct RevokedEntry {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    reason: String,
}

#[derive(Debug, Serialize)]
struct TrustedEntry {
    digest: String,
    note: String,
}

pub(super) fn run(verb: Trust) -> crate::Outcome {
    let around = ProcessEnv::read()?;
    let (entries, as_json) = match verb {
        Trust::List { json } => return list(&around, json),
        Trust::Publisher(publisher) => (publisher_entries(&around, &publisher)?, publisher.json),
        Trust::Key { publisher, keys, dates, json } => {
            let key = keys.iter().map(|key| key_entry(&around, &publisher, key, &dates));
            let key = key.collect::<anyhow::Result<_>>()?;
            (Entries { key, ..Entries::default() }, json)
        }
        Trust::Revoke { what, reason, json } => {
            let revoked = vec![revoked_entry(&around, &what, reason)?];
            (Entries { revoked, ..Entries::default() }, json)
        }
        Trust::File { file, json } => {
            let bytes = read(&here(&around, &file), COMPONENT_MAX)?;
            let note = file.display().to_string();
            let digest = format!("sha256:{}", digest(&bytes));
            (Entries { trusted: vec![TrustedEntry { digest, note }], ..Entries::default() }, json)
        }
    };
    let file = trust_files::user_file(&around.agent_directory);
    append(&file, &entries)?;
    if as_json {
        let mut page = Page::new(&around);
        page.json(&json!({ "file": file, "added": entries }));
        page.print()?;
        return Ok(Exit::Done);
    }
    say(&format!("portcullis: written to `{}`", file.display()));
    Ok(Exit::Done)
}

/// Appends entries. The new text is parsed before it is written, so that an invalid file is never written.
fn append(file: &Path, entries: &Entries) -> anyhow::Result<()> {
    let store = Store::new(file.parent().unwrap_or_else(|| Path::new("/")));
    let _alone = store.begin()?;
    let before = match read_text(file, TRUST_MAX) {
        Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            "# Whose policies are taken: see `portcullis policy trust --help`.\n".to_owned()
        }
        text => text?,
    };
    trust_files::parse(file, &before).context("the file has to be mended first")?;
    let added = toml::to_string(entries).context("writing the entry")?;
    let text = format!("{}\n\n{added}", before.trim_end());
    trust_files::parse(file, &text).context("nothing was written")?;
    Ok(write(file, text.as_bytes())?)
}

fn publisher_entries(around: &ProcessEnv, publisher: &Publisher) -> anyhow::Result<Entries> {
    if publisher.keys.is_empty() && publisher.signers.is_none() {
        bail!("a publisher needs a key; give `--key` or `--signers`");
    }
    let name = publisher.name.clone();
    let namespaces = match publisher.namespaces.as_slice() {
        [] => vec![name.clone()],
        namespaces => namespaces.to_vec(),
    };
    let registry =
        publisher.registry.as_deref().map(|text| text.trim_start_matches("oci://").trim_end_matches('/'));
    if let Some(registry) = registry {
        portcullis_packs::Reference::parse(&format!("{registry}/x"))?;
    }
    let keys = publisher.keys.iter().map(|key| key_entry(around, &name, key, &publisher.dates));
    Ok(Entries {
        key: keys.collect::<anyhow::Result<_>>()?,
        publisher: vec![PublisherEntry {
            allowed_signers: publisher
                .signers
                .as_deref()
                .map(|file| copied(around, &name, file))
                .transpose()?,
            namespaces,
            registry: registry.map(str::to_owned),
            threshold: publisher.threshold,
            name,
        }],
        ..Entries::default()
    })
}

/// Copies a signers file beside the trust file, where the agent cannot write.
fn copied(around: &ProcessEnv, name: &str, file: &Path) -> anyhow::Result<String> {
    let text = read_text(&here(around, file), TRUST_MAX)?;
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if name.is_empty() || !name.bytes().all(is_word) {
        bail!("`{name}` cannot be the name of a file; name the publisher with letters, digits, `-` and `_`");
    }
    let copy = format!("{name}.allowed_signers");
    let to = trust_files::user_file(&around.agent_directory).with_file_name(&copy);
    if to.exists() {
        bail!("`{}` is there already; the publisher is known", to.display());
    }
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("making `{}`", folder.display()))?;
    }
    write(&to, text.as_bytes())?;
    Ok(copy)
}

fn key_entry(around: &ProcessEnv, publisher: &str, text: &str, dates: &Dates) -> anyhow::Result<KeyEntry> {
    Ok(KeyEntry {
        publisher: publisher.to_owned(),
        key: key_text(around, text)?,
        valid_after: dates.valid_after.clone(),
        valid_before: dates.valid_before.clone(),
    })
}

/// Returns the line of a key, from the argument itself or from a file.
fn key_text(around: &ProcessEnv, text: &str) -> anyhow::Result<String> {
    let text = match Key::parse(text) {
        Ok(_) => text.to_owned(),
        Err(error) => {
            let file: PathBuf = here(around, Path::new(text));
            if !file.exists() {
                return Err(error).with_context(|| format!("`{text}` is neither a key nor a file with one"));
            }
            read_text(&file, TRUST_MAX)?
        }
    };
    Key::parse(&text).context("reading the key")?;
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.rfind(|line| !line.starts_with("untrusted comment:"));
    Ok(line.unwrap_or_default().to_owned())
}

fn revoked_entry(around: &ProcessEnv, what: &str, reason: String) -> anyhow::Result<RevokedEntry> {
    if is_digest(what) {
        return Ok(RevokedEntry { key: None, digest: Some(what.to_owned()), reason });
    }
    let key = if what.starts_with("SHA256:") { what.to_owned() } else { key_text(around, what)? };
    Ok(RevokedEntry { key: Some(key), digest: None, reason })
}

fn list(around: &ProcessEnv, json: bool) -> crate::Outcome {
    let trust = trust_files::read(&around.agent_directory)?;
    let mut page = Page::new(around);
    if json {
        let publishers: Vec<Value> = trust
            .publishers
            .iter()
            .map(|publisher| {
                let keys: Vec<&str> = publisher.keys.iter().map(|(key, _)| key.fingerprint()).collect();
                json!({
                    "name": publisher.name, "namespaces": publisher.namespaces, "registry": publisher.registry,
                    "threshold": publisher.threshold, "keys": keys,
                })
            })
            .collect();
        let revoked: Vec<Value> =
            trust.revocations().map(|(what, reason)| json!({ "what": what, "reason": reason })).collect();
        page.json(&json!({
            "publishers": publishers, "revoked": revoked, "trusted": trust.trusted(),
            "requireSignature": trust.require_signature,
        }));
        page.print()?;
        return Ok(Exit::Done);
    }
    for publisher in &trust.publishers {
        let names: Vec<String> = publisher.namespaces.iter().map(|name| format!("{name}:")).collect();
        page.row("", &[cell(&publisher.name), cell(&names.join(" ")), cell(&publisher.registry)], &[]);
        for (key, _) in &publisher.keys {
            let word = match trust.revoked(key.fingerprint()) {
                Some(reason) => tinted(&format!("revoked: {reason}"), Tint::Bad),
                None => tinted("", Tint::Plain),
            };
            page.row("  ", &[cell(key.fingerprint()), word], &[]);
        }
    }
    let revoked: Vec<_> = trust
        .revocations()
        .map(|(what, reason)| vec![tinted("revoked", Tint::Bad), cell(what), cell(reason)])
        .collect();
    page.table("", &revoked);
    if trust.publishers.is_empty() && trust.trusted().is_empty() && revoked.is_empty() {
        page.line("nobody is trusted yet; `portcullis policy trust publisher` names somebody");
    }
    let trusted: Vec<_> =
        trust.trusted().iter().map(|digest| vec![tinted("trusted", Tint::Open), cell(digest)]).collect();
    page.table("", &trusted);
    page.print()?;
    Ok(Exit::Done)
}
