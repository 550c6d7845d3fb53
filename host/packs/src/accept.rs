//! Decides whether to accept a pack: one pure function, with a refusal for each reason against it.

mod candidate;
mod refusal;
mod signed;
mod similar;

use std::collections::BTreeSet;

use semver::Version;

use crate::date::Seconds;
use crate::error::PackError;
use crate::lock::{Lock, Locked};
use crate::manifest::{Manifest, StateScope};
use crate::pack::Pack;
use crate::trust::Trust;

pub use candidate::{Approval, Candidate, Described, FROM_FILE};
pub use refusal::PackRefusal;
use signed::signers;
pub use signed::{Voucher, vouched};
use similar::look_alike;

/// Capabilities of a policy beyond answering requests, as `--allow` names them.
pub const CAPABILITIES: [&str; 5] =
    ["output", "rewrites", "state-project", "state-session", "workspace-view"];

/// Decides whether to accept a pack.
///
/// # Errors
/// Returns the first reason to refuse the pack.
pub fn accept(
    candidate: &Candidate<'_>,
    trust: &Trust,
    lock: &Lock,
    approval: &Approval,
    now: Seconds,
) -> Result<Locked, PackRefusal> {
    let digest = format!("sha256:{}", crate::digest::digest(candidate.bytes));
    check_digest(candidate, trust, &digest)?;
    let pack = Pack::read(candidate.bytes).map_err(PackRefusal::Pack)?.ok_or(PackRefusal::NoManifest)?;
    let manifest = &pack.manifest;
    let version = check_name(candidate, manifest)?;
    let id = manifest.policy.id.as_str();
    if !approval.similar
        && let Some(like) = look_alike(id, lock, trust)
    {
        return Err(PackRefusal::Similar { id: id.to_owned(), like });
    }
    let signed_by = signers(candidate, id, &digest, trust, lock, approval, now)?;
    check_version(candidate, id, &version, &digest, lock, approval, &signed_by)?;
    let described = (candidate.describe)().map_err(PackRefusal::Code)?;
    check_code(manifest, &described)?;
    let capabilities = capabilities(manifest);
    // Agreed capabilities carry over to later bytes of the same publisher, but not to other unsigned bytes.
    let is_agreed = |used: &&Locked| !signed_by.is_empty() || used.digest == digest;
    let agreed = lock.find(id).filter(is_agreed).map(|used| &used.capabilities);
    let is_new = |name: &&String| {
        !agreed.is_some_and(|agreed| agreed.contains(*name)) && !approval.capabilities.contains(*name)
    };
    let wanted: Vec<&str> = capabilities.iter().filter(is_new).map(String::as_str).collect();
    if !wanted.is_empty() {
        return Err(PackRefusal::Capabilities { wanted: wanted.join(",") });
    }
    let size = u64::try_from(candidate.bytes.len()).unwrap_or(u64::MAX);
    let (id, source) = (id.to_owned(), candidate.source.to_owned());
    Ok(Locked { id, version, requirement: None, source, digest, size, capabilities, signed_by })
}

/// Returns the capabilities that a manifest asks for, as `--allow` names them.
#[must_use]
pub fn capabilities(manifest: &Manifest) -> BTreeSet<String> {
    let wants = &manifest.capabilities;
    let state = match wants.state {
        StateScope::None => None,
        StateScope::Session => Some("state-session"),
        StateScope::Project => Some("state-project"),
    };
    let all = [
        wants.rewrites.then_some("rewrites"),
        wants.workspace_view.then_some("workspace-view"),
        wants.output.then_some("output"),
        state,
    ];
    all.into_iter().flatten().map(str::to_owned).collect()
}

fn check_digest(candidate: &Candidate<'_>, trust: &Trust, digest: &str) -> Result<(), PackRefusal> {
    if let Some(wanted) = candidate.pinned.filter(|wanted| *wanted != digest) {
        return Err(PackRefusal::Digest { wanted: wanted.to_owned(), found: digest.to_owned() });
    }
    match trust.revoked(digest) {
        Some(reason) => {
            Err(PackRefusal::RevokedDigest { digest: digest.to_owned(), reason: reason.to_owned() })
        }
        None => Ok(()),
    }
}

fn check_name(candidate: &Candidate<'_>, manifest: &Manifest) -> Result<Version, PackRefusal> {
    let about = &manifest.policy;
    if let Some(wanted) = candidate.wanted.filter(|wanted| *wanted != about.id) {
        return Err(PackRefusal::Name { wanted: wanted.to_owned(), found: about.id.clone() });
    }
    let found = Version::parse(&about.version).map_err(|error| {
        let detail = format!("`{}` is no semantic version: {error}", about.version);
        PackRefusal::Pack(PackError::Value { key: "policy.version", detail })
    })?;
    match candidate.version.filter(|wanted| **wanted != found) {
        Some(wanted) => Err(PackRefusal::Version { wanted: wanted.clone(), found }),
        None => Ok(found),
    }
}

fn check_code(manifest: &Manifest, described: &Described) -> Result<(), PackRefusal> {
    let about = &manifest.policy;
    let pairs = [("the id", &about.id, &described.id), ("the version", &about.version, &described.version)];
    match pairs.into_iter().find(|(_, manifest, code)| manifest != code) {
        Some((what, manifest, code)) => {
            Err(PackRefusal::Disagrees { what, manifest: manifest.clone(), code: code.clone() })
        }
        None => Ok(()),
    }
}

fn check_version(
    candidate: &Candidate<'_>,
    id: &str,
    version: &Version,
    digest: &str,
    lock: &Lock,
    approval: &Approval,
    signed_by: &[String],
) -> Result<(), PackRefusal> {
    if approval.older {
        return Ok(());
    }
    if let Some(used) = lock.newest(id).filter(|used| version < *used) {
        return Err(PackRefusal::Rollback { offered: version.clone(), used: used.clone() });
    }
    let Some(used) = lock.find(id).filter(|used| used.version == *version && used.digest != digest) else {
        return Ok(());
    };
    // Authors try one build after another, but the content of a published version never changes.
    let is_local = |source: &str| source == FROM_FILE;
    let is_trial = signed_by.is_empty() && is_local(&used.source) && is_local(candidate.source);
    if is_trial { Ok(()) } else { Err(PackRefusal::Replaced { version: version.clone() }) }
}

#[cfg(test)]
mod tests;
