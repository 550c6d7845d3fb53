//! The workflow that accepts newer documents, after section 5 of The Update Framework's specification.
//!
//! Each step checks one document against those that were accepted before. What a step has accepted stays accepted if
//! a later one fails, and nothing here ever takes away the bundle in force.

use std::collections::BTreeSet;

use portcullis_packs::Seconds;
use semver::Version;

use crate::bundle::{BUNDLE, Bundle};
use crate::document::SignedText;
use crate::held::{HeldBundle, Trusted};
use crate::refusal::TeamRefusal;
use crate::root::ROOT;
use crate::source::{DocumentName, Source, SourceError};
use crate::timestamp::{BundleAt, TIMESTAMP, Timestamp};

/// Largest number of new roots in one update.
const ROOTS_MAX: u64 = 64;

/// The digest and the bytes of a pack.
pub type PackBytes = (String, Vec<u8>);

/// Returns the reason why a bundle with these new packs cannot be used.
pub type Usable<'a> = dyn Fn(&Bundle, &[PackBytes]) -> Result<(), String> + 'a;

/// What a machine asks of a new bundle.
pub struct Checks<'a> {
    /// The version of this program.
    pub program: &'a Version,
    /// The current time.
    pub now: Seconds,
    /// Packs that the bundle must have.
    pub required: &'a [String],
    /// The oldest acceptable version.
    pub minimum_version: u64,
    /// Says whether this machine has a pack already.
    pub has_pack: &'a dyn Fn(&str) -> bool,
    /// Says whether the content can be used here. Gets the bundle and its new packs.
    pub usable: &'a Usable<'a>,
}

impl std::fmt::Debug for Checks<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Checks")
            .field("program", self.program)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// The result of an update.
#[derive(Debug, Default)]
pub struct Update {
    /// The bundle that came into force, with its new packs. `None` if the one in force stays.
    pub accepted: Option<(u64, Vec<PackBytes>)>,
    /// Bundles that the timestamp names and this machine does not accept, with the reasons.
    pub refused: Vec<(u64, SourceError)>,
}

/// Brings the documents of a machine up to date.
///
/// Documents that were accepted are in `trusted` even if this fails.
///
/// # Errors
/// If the source does not answer, or a root or the timestamp is refused.
pub fn update(
    trusted: &mut Trusted,
    source: &mut dyn Source,
    checks: &Checks<'_>,
) -> Result<Update, SourceError> {
    update_root(trusted, source, checks.now)?;
    let timestamp = update_timestamp(trusted, source, checks.now)?;
    let update = update_bundle(trusted, &timestamp, source, checks);
    if update.refused.is_empty() {
        trusted.held.checked_at = checks.now;
    }
    Ok(update)
}

/// Follows the roots, one version after the other.
fn update_root(trusted: &mut Trusted, source: &mut dyn Source, now: Seconds) -> Result<(), SourceError> {
    for count in 0.. {
        let Some(signed) = source.document(&DocumentName::Root(trusted.root.version + 1))? else { break };
        if count == ROOTS_MAX {
            return Err(TeamRefusal::TooManyRoots(ROOTS_MAX).into());
        }
        let next = trusted.root.next(&signed)?;
        // Versions that a key which no longer counts has raised must not lock out its successor.
        let (old, new) = (&trusted.root.roles, &next.roles);
        if new.timestamp != old.timestamp || new.bundle != old.bundle {
            (trusted.held.timestamp_floor, trusted.held.newest_seen) = (0, 0);
        }
        if new.bundle != old.bundle {
            trusted.held.bundle_floor = 0;
        }
        trusted.root = next;
        trusted.held.roots.push(signed);
    }
    check_expiry(&format!("{ROOT} {}", trusted.root.version), trusted.root.expires_at, now)
}

fn update_timestamp(
    trusted: &mut Trusted,
    source: &mut dyn Source,
    now: Seconds,
) -> Result<Timestamp, SourceError> {
    let signed =
        source.document(&DocumentName::Timestamp)?.ok_or("there is no timestamp; publish a bundle first")?;
    let timestamp = Timestamp::verified(&signed, &trusted.root)?;
    let held = &mut trusted.held;
    let (offered, floor) = (timestamp.version, held.timestamp_floor);
    if offered < floor {
        return Err(TeamRefusal::Rollback { what: TIMESTAMP, offered, held: floor }.into());
    }
    let is_other = |known: &SignedText| known.text != signed.text;
    if offered == floor && held.timestamp.as_ref().is_some_and(is_other) {
        return Err(TeamRefusal::Replaced { what: TIMESTAMP, version: offered }.into());
    }
    let (newest, floor) = (timestamp.bundle.version, held.bundle_floor.max(held.newest_seen));
    if newest < floor {
        return Err(TeamRefusal::Rollback { what: BUNDLE, offered: newest, held: floor }.into());
    }
    // The version counts even if it has expired: an older one is never accepted after it.
    (held.timestamp_floor, held.newest_seen, held.timestamp) = (offered, newest, Some(signed));
    check_expiry(TIMESTAMP, timestamp.expires_at, now)?;
    Ok(timestamp)
}

/// Accepts the newest bundle that this machine can use, and never one below the floor.
fn update_bundle(
    trusted: &mut Trusted,
    timestamp: &Timestamp,
    source: &mut dyn Source,
    checks: &Checks<'_>,
) -> Update {
    let mut update = Update::default();
    let floor = trusted.held.bundle_floor;
    let in_force = trusted.bundle.as_ref().filter(|bundle| bundle.is_current);
    let in_force = in_force.map(|bundle| (bundle.content.version, bundle.digest.clone()));
    for at in timestamp.bundles().take_while(|at| at.version >= floor) {
        if let Some((version, digest)) = &in_force
            && *version == at.version
        {
            if *digest != at.digest {
                let refusal = TeamRefusal::Replaced { what: BUNDLE, version: at.version };
                update.refused.push((at.version, refusal.into()));
            }
            return update;
        }
        match offered(trusted, at, source, checks) {
            Ok((signed, bundle, packs)) => {
                trusted.held.bundle = Some(signed);
                trusted.held.bundle_floor = at.version;
                trusted.held.since = checks.now;
                trusted.bundle = Some(bundle);
                update.accepted = Some((at.version, packs));
                return update;
            }
            Err(error) => update.refused.push((at.version, error)),
        }
    }
    update
}

type Offered = (SignedText, HeldBundle, Vec<PackBytes>);

/// Gets a bundle and its packs, and checks them.
fn offered(
    trusted: &Trusted,
    at: &BundleAt,
    source: &mut dyn Source,
    checks: &Checks<'_>,
) -> Result<Offered, SourceError> {
    let name = DocumentName::Bundle(at.version);
    let signed = source.document(&name)?.ok_or_else(|| format!("{name} is not there"))?;
    let (digest, size) = (signed.digest(), signed.text.len() as u64);
    if digest != at.digest {
        let (what, wanted) = (name.to_string(), at.digest.clone());
        return Err(TeamRefusal::Digest { what, wanted, found: digest }.into());
    }
    if size != at.size {
        return Err(TeamRefusal::Size { what: name.to_string(), wanted: at.size, found: size }.into());
    }
    let (content, signed_by) = Bundle::verified(&signed, &trusted.root, checks.program)?;
    let version = content.version;
    if version != at.version {
        return Err(TeamRefusal::Version { what: BUNDLE, wanted: at.version, found: version }.into());
    }
    check_expiry(&name.to_string(), content.expires_at, checks.now)?;
    if version < checks.minimum_version {
        return Err(TeamRefusal::TooOld { version, wanted: checks.minimum_version }.into());
    }
    let has = |id: &&String| content.packs.iter().any(|pack| pack.id == **id);
    if let Some(id) = checks.required.iter().find(|id| !has(id)) {
        return Err(TeamRefusal::RequiredPack { version, id: id.clone() }.into());
    }
    let packs = new_packs(&content, source, checks)?;
    (checks.usable)(&content, &packs).map_err(|reason| TeamRefusal::Unusable { version, reason })?;
    Ok((signed, HeldBundle { content, digest, signed_by, is_current: true }, packs))
}

fn new_packs(
    bundle: &Bundle,
    source: &mut dyn Source,
    checks: &Checks<'_>,
) -> Result<Vec<PackBytes>, SourceError> {
    let (mut packs, mut known) = (Vec::new(), BTreeSet::new());
    for pack in bundle.packs.iter().filter(|pack| !(checks.has_pack)(&pack.digest)) {
        if !known.insert(&pack.digest) {
            continue;
        }
        let bytes = source.pack(&pack.digest, pack.size)?;
        let what = format!("pack `{}`", pack.id);
        let (found, size) = (format!("sha256:{}", portcullis_packs::digest(&bytes)), bytes.len() as u64);
        if size != pack.size {
            return Err(TeamRefusal::Size { what, wanted: pack.size, found: size }.into());
        }
        if found != pack.digest {
            return Err(TeamRefusal::Digest { what, wanted: pack.digest.clone(), found }.into());
        }
        packs.push((found, bytes));
    }
    Ok(packs)
}

fn check_expiry(what: &str, at: Seconds, now: Seconds) -> Result<(), SourceError> {
    if now < at { Ok(()) } else { Err(TeamRefusal::Expired { what: what.to_owned(), at, now }.into()) }
}
