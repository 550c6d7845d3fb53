//! Accepting a newer bundle: from a registry or an archive into the user's directory.

use std::path::Path;

use anyhow::{Context as _, anyhow};
use portcullis_packs::digest;
use portcullis_policy_runtime::{CachePlace, Runtime};
use portcullis_session::with_causes;
use portcullis_settings::check_preset;
use portcullis_settings_format::{Layer, Tightening};
use portcullis_teams::{
    Bundle, BundlePack, Checks, DocumentName, Held, PackBytes, Source, SourceError, Store, TeamRefusal,
    Trusted,
};
use serde_json::Value;

use crate::policies;
use crate::process_env::unix_seconds;
use crate::teams::joined::{Joined, program_version};

/// The result of an update.
#[derive(Debug)]
pub struct Updated {
    /// The documents that are in force now.
    pub trusted: Trusted,
    /// The version that came into force; `None` if nothing changed.
    pub accepted: Option<u64>,
    /// Versions that are published and not accepted here, with the reasons.
    pub refused: Vec<(u64, SourceError)>,
}

/// Returns why a version is refused, with all causes.
#[must_use]
pub fn refusal_text(version: u64, error: &SourceError) -> String {
    let reason = with_causes(error.as_ref());
    let name = format!("bundle {version} ");
    if reason.starts_with(&name) { reason } else { format!("{name}is refused: {reason}") }
}

/// Gets newer documents from a source, checks them, and puts them in force.
///
/// # Errors
/// If the source does not answer, or a root or the timestamp is refused. The accepted bundle then still applies.
pub fn update(joined: &Joined, source: &mut dyn Source, cache: &Path) -> anyhow::Result<Updated> {
    // One process at a time: two would each write what the other has read.
    let _lock = joined.store.lock()?;
    let result = locked(joined, source, cache);
    let problem = match &result {
        Ok(updated) => {
            let told = updated.refused.iter().map(|(version, error)| refusal_text(*version, error));
            told.collect::<Vec<_>>().join("; ")
        }
        Err(error) => format!("{error:#}"),
    };
    joined.store.note_check((!problem.is_empty()).then_some(&problem))?;
    result
}

fn locked(joined: &Joined, source: &mut dyn Source, cache: &Path) -> anyhow::Result<Updated> {
    let mut trusted = begin(joined, source)?;
    let before = trusted.held.clone();
    let (store, membership, program) = (&joined.store, &joined.membership, program_version());
    let checks = Checks {
        program: &program,
        now: unix_seconds(),
        required: &membership.packs,
        minimum_version: membership.minimum_version,
        has_pack: &|digest| store.pack(digest).is_ok(),
        usable: &|bundle, packs| usable(bundle, packs, store, cache).map_err(|error| format!("{error:#}")),
    };
    let updated = portcullis_teams::update(&mut trusted, source, &checks);
    // Roots and versions that were accepted count even if the rest failed.
    let (accepted, packs) = match &updated {
        Ok(update) => update.accepted.clone().unzip(),
        Err(_) => (None, None),
    };
    let repaired = repaired(&trusted, store, source);
    let packs = [packs.unwrap_or_default(), repaired].concat();
    if trusted.held != before || !packs.is_empty() || !store.held_file().exists() {
        let used = trusted.bundle.iter().flat_map(|bundle| &bundle.content.packs);
        let used: Vec<&str> = used.map(|pack| pack.digest.as_str()).collect();
        store.write(&trusted.held, &packs, &used)?;
    }
    let update = updated.map_err(|error| anyhow!(error))?;
    Ok(Updated { trusted, accepted, refused: update.refused })
}

/// Returns the documents accepted so far. At the first update that is only the root whose digest the member has pinned.
fn begin(joined: &Joined, source: &mut dyn Source) -> anyhow::Result<Trusted> {
    let (membership, program) = (&joined.membership, program_version());
    // Damaged documents are written again.
    let held = joined.store.held().ok().flatten();
    let opened = held.clone().map(|held| Trusted::open(held, &membership.team, &membership.root, &program));
    let is_other_root = match opened {
        Some(Ok(trusted)) => return Ok(trusted),
        Some(Err(TeamRefusal::Pin { .. })) | None => true,
        Some(Err(_)) => false,
    };
    let root = source
        .document(&DocumentName::PinnedRoot(membership.root.clone()))
        .map_err(|error| anyhow!(error))?
        .with_context(|| {
            format!(
                "`{}` has no root `{}`; compare `registry` and `root` in `{}` with what the team has published",
                membership.registry.place(),
                membership.root,
                joined.file.display()
            )
        })?;
    let mut trusted = Trusted::begin(root, &membership.team, &membership.root)?;
    if let (Some(held), false) = (held, is_other_root) {
        // A bundle that cannot be read by this program does not let an older one in.
        let Held { timestamp_floor, bundle_floor, newest_seen, .. } = held;
        trusted.held = Held { timestamp_floor, bundle_floor, newest_seen, ..trusted.held };
    }
    Ok(trusted)
}

/// Gets the packs of the bundle in force that are missing or have other bytes.
fn repaired(trusted: &Trusted, store: &Store, source: &mut dyn Source) -> Vec<PackBytes> {
    let packs = trusted.bundle.iter().flat_map(|bundle| &bundle.content.packs);
    let missing = packs.filter(|pack| store.pack(&pack.digest).is_err());
    let get = |pack: &BundlePack| {
        let bytes = source.pack(&pack.digest, pack.size).ok()?;
        (format!("sha256:{}", digest(&bytes)) == pack.digest).then(|| (pack.digest.clone(), bytes))
    };
    missing.filter_map(get).collect()
}

/// Checks the settings, presets and trust of a bundle.
///
/// # Errors
/// If a setting loosens or is unknown, a preset has a mistake, or a required pack is revoked.
pub fn check_texts(bundle: &Bundle) -> anyhow::Result<()> {
    let settings = Value::Object(bundle.settings.clone()).to_string();
    Tightening::parse(&settings, Path::new("settings.json"), Layer::Team)?;
    for (name, text) in &bundle.presets {
        check_preset(name, text)?;
    }
    let trust = bundle.trust().context("its trust")?;
    for pack in &bundle.packs {
        if let Some(reason) = trust.revoked(&pack.digest) {
            anyhow::bail!("it requires the pack `{}` and has revoked it: {reason}", pack.id);
        }
    }
    Ok(())
}

/// Checks that this program can use the content of a bundle.
fn usable(bundle: &Bundle, new: &[PackBytes], store: &Store, cache: &Path) -> anyhow::Result<()> {
    check_texts(bundle)?;
    if bundle.packs.is_empty() {
        return Ok(());
    }
    let runtime = policies::runtime(&CachePlace::Directory(cache.join("policies")))?;
    for pack in &bundle.packs {
        let bytes = match new.iter().find(|(digest, _)| *digest == pack.digest) {
            Some((_, bytes)) => bytes.clone(),
            None => store.pack(&pack.digest)?,
        };
        runs(&runtime, pack, &bytes).with_context(|| format!("the pack `{}`", pack.id))?;
    }
    Ok(())
}

/// Checks that a pack is the named one, and that this program can run it with its configuration.
fn runs(runtime: &Runtime, pack: &BundlePack, bytes: &[u8]) -> anyhow::Result<()> {
    let unloaded = runtime.take(bytes)?;
    let description = unloaded.describe()?;
    if (&description.id, &description.version) != (&pack.id, &pack.version.to_string()) {
        anyhow::bail!(
            "its code is `{}` {}",
            description.id.escape_debug(),
            description.version.escape_debug()
        );
    }
    unloaded.load("team", &Value::Object(pack.config.clone()).to_string())?;
    Ok(())
}
