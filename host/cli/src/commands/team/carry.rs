//! `team save` and `team load`: a bundle in a file, for machines without a network.

use std::fs::File;
use std::io::BufReader;

use anyhow::{Context as _, bail};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::teams::update::update;
use portcullis_command_line::args::team::Archive;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::Page;
use portcullis_packs::{open, write};
use portcullis_teams::{ArchiveSource, DocumentName, save as save_archive};
use serde_json::json;

use super::membership::joined;
use super::update::print;

pub(super) fn save(around: &ProcessEnv, archive: &Archive) -> exit::Outcome {
    let joined = joined(around)?;
    let trusted = joined.open()?;
    let whole = trusted.as_ref().and_then(|trusted| {
        Some((
            trusted,
            trusted.bundle.as_ref()?,
            trusted.held.timestamp.as_ref()?,
            trusted.held.bundle.as_ref()?,
        ))
    });
    let Some((trusted, bundle, timestamp, text)) = whole else {
        bail!("no bundle is in force; `portcullis team update` gets one");
    };
    if trusted.held.newest_seen != bundle.content.version {
        bail!(
            "the timestamp names bundle {}, and {} is in force; only the newest can be saved",
            trusted.held.newest_seen,
            bundle.content.version
        );
    }
    let mut documents = vec![
        (DocumentName::Timestamp, timestamp.clone()),
        (DocumentName::Bundle(bundle.content.version), text.clone()),
    ];
    let first = trusted.root.version + 1 - trusted.held.roots.len() as u64;
    for (version, root) in (first..).zip(&trusted.held.roots) {
        documents.push((DocumentName::PinnedRoot(root.digest()), root.clone()));
        documents.push((DocumentName::Root(version), root.clone()));
    }
    let mut packs = Vec::new();
    for pack in &bundle.content.packs {
        packs.push((pack.digest.clone(), joined.store.pack(&pack.digest)?));
    }
    let (file, mut bytes) = (around.absolute(&archive.file), Vec::new());
    save_archive(&mut bytes, &documents, &packs)?;
    write(&file, &bytes)?;
    let mut page = Page::new(around);
    let version = bundle.content.version;
    if archive.json {
        page.json(&json!({ "file": file, "bundle": version, "packs": packs.len() }));
    } else {
        page.line(&format!("bundle {version} and its packs: in `{}`", file.display()));
    }
    page.print()?;
    Ok(Exit::Done)
}

pub(super) fn load(around: &ProcessEnv, archive: &Archive) -> exit::Outcome {
    let joined = joined(around)?;
    let file = around.absolute(&archive.file);
    let opened: File = open(&file)?;
    let mut source = ArchiveSource::read(BufReader::new(opened))
        .with_context(|| format!("reading the archive `{}`", file.display()))?;
    let updated = update(&joined, &mut source, &around.cache)?;
    print(around, &updated, archive.json)
}
