//! Whether a pack is taken: one function over values, with a refusal for everything that speaks against it.

use std::collections::BTreeSet;

use semver::Version;

use crate::date::Seconds;
use crate::error::PackError;
use crate::lock::{Lock, Locked};
use crate::manifest::{Manifest, StateScope};
use crate::pack::Pack;
use crate::signature::{Checked, Signatures, State};
use crate::trust::{Publisher, Trust};

/// Namespace of the policies that come with the program.
const OWN: &str = "portcullis";

/// All that a policy may do beyond saying yes and no, as `--allow` names it.
pub const CAPABILITIES: [&str; 5] =
    ["output", "rewrites", "state-project", "state-session", "workspace-view"];

/// A pack that somebody offers.
#[derive(Clone, Copy)]
pub struct Candidate<'a> {
    /// The component.
    pub bytes: &'a [u8],
    /// What signs it.
    pub signatures: &'a Signatures,
    /// Runs it, to hear what it says of itself. That is done only with what somebody trusted has signed.
    pub describe: &'a dyn Fn() -> Result<Described, Box<dyn std::error::Error + Send + Sync>>,
    /// The id that was asked for; none: whatever it is.
    pub wanted: Option<&'a str>,
    /// The version that was asked for; none: whatever it is.
    pub version: Option<&'a Version>,
    /// The exact digest that was asked for, `sha256:...`.
    pub pinned: Option<&'a str>,
    /// Where it comes from.
    pub source: &'a str,
}

/// What a component says of itself when it is run.
#[derive(Debug, Clone)]
pub struct Described {
    /// Its id.
    pub id: String,
    /// Its version.
    pub version: String,
}

impl std::fmt::Debug for Candidate<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Candidate")
            .field("bytes", &self.bytes.len())
            .field("wanted", &self.wanted)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

/// What the user agrees to, beyond what the files say.
#[derive(Debug, Clone, Default)]
pub struct Approval {
    /// What it may do beyond saying yes and no.
    pub capabilities: BTreeSet<String>,
    /// Bytes without a signature, for this one pack.
    pub unsigned: bool,
    /// A version that is older than the one in use, or other bytes of the same version.
    pub older: bool,
    /// A name that looks like another one.
    pub similar: bool,
}

/// Why a pack is not taken.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It is damaged, or no pack.
    #[error("it cannot be read as a pack")]
    Pack(#[source] PackError),
    /// It carries no manifest.
    #[error("it carries no manifest; `portcullis policy build` makes a pack of a component")]
    NoManifest,
    /// Its bytes are not those that were asked for.
    #[error("its digest is `{found}`, not `{wanted}`: these are other bytes")]
    Digest {
        /// What was asked for.
        wanted: String,
        /// What there is.
        found: String,
    },
    /// Its bytes were revoked.
    #[error("`{digest}` was revoked: {reason}")]
    RevokedDigest {
        /// The digest.
        digest: String,
        /// Why.
        reason: String,
    },
    /// It is another policy than the one that was asked for.
    #[error("`{wanted}` was asked for, and this is `{found}`")]
    Name {
        /// What was asked for.
        wanted: String,
        /// What there is.
        found: String,
    },
    /// It is another version than the one that was asked for.
    #[error("version {wanted} was asked for, and this is {found}")]
    Version {
        /// What was asked for.
        wanted: Version,
        /// What there is.
        found: Version,
    },
    /// It cannot be run.
    #[error("it is no policy that this host can run")]
    Code(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Its manifest and its code disagree.
    #[error("its manifest says {what} `{manifest}`, its code says `{code}`")]
    Disagrees {
        /// What they disagree about.
        what: &'static str,
        /// The manifest's word.
        manifest: String,
        /// The code's word.
        code: String,
    },
    /// Its name can be taken for another one.
    #[error("`{id}` looks like `{like}`; if you mean it, say so with `--similar-name`")]
    Similar {
        /// Its name.
        id: String,
        /// What it looks like.
        like: String,
    },
    /// Nobody has signed it.
    #[error("nobody has signed it; {hint}")]
    Unsigned {
        /// What to do.
        hint: String,
    },
    /// Nobody whom it takes has signed it.
    #[error("`{id}` must be signed by `{publisher}` with {threshold} of their keys: {found}")]
    NotSigned {
        /// Its name.
        id: String,
        /// Whose name it is.
        publisher: String,
        /// How many keys it takes.
        threshold: usize,
        /// What there is.
        found: String,
    },
    /// It is signed by somebody whose namespace it is not in.
    #[error("`{id}` is signed by `{publisher}`, who may sign in {namespaces} only")]
    Namespace {
        /// Its name.
        id: String,
        /// Who signed.
        publisher: String,
        /// What they may sign.
        namespaces: String,
    },
    /// A signature is there, of somebody who is not known.
    #[error(
        "it is signed by `{keys}`, which nobody here trusts; `portcullis policy trust publisher` names one"
    )]
    Foreign {
        /// Who signed.
        keys: String,
    },
    /// It is older than what is used.
    #[error(
        "version {offered} is older than {used}, which is or was in use; `--allow-older` takes it all the same"
    )]
    Rollback {
        /// What is offered.
        offered: Version,
        /// What is used.
        used: Version,
    },
    /// The same version has other bytes than before.
    #[error(
        "version {version} has other bytes than when it was taken; `--allow-older` takes it all the same"
    )]
    Replaced {
        /// The version.
        version: Version,
    },
    /// It wants more than it may.
    #[error("it wants {wanted}; agree with `--allow {wanted}`")]
    Capabilities {
        /// What it wants and was not agreed to, separated by commas.
        wanted: String,
    },
}

/// Judges a pack.
///
/// # Errors
/// With the first thing that speaks against it.
pub fn accept(
    candidate: &Candidate<'_>,
    trust: &Trust,
    lock: &Lock,
    approval: &Approval,
    now: Seconds,
) -> Result<Locked, Refusal> {
    let digest = format!("sha256:{}", crate::digest(candidate.bytes));
    check_digest(candidate, trust, &digest)?;
    let pack = Pack::read(candidate.bytes).map_err(Refusal::Pack)?.ok_or(Refusal::NoManifest)?;
    let manifest = &pack.manifest;
    let version = check_name(candidate, manifest)?;
    let id = manifest.policy.id.as_str();
    if !approval.similar
        && let Some(like) = look_alike(id, lock, trust)
    {
        return Err(Refusal::Similar { id: id.to_owned(), like });
    }
    let signed_by = signers(candidate, id, &digest, trust, lock, approval, now)?;
    check_version(candidate, id, &version, &digest, lock, approval, &signed_by)?;
    let described = (candidate.describe)().map_err(Refusal::Code)?;
    check_code(manifest, &described)?;
    let capabilities = capabilities(manifest);
    let agreed = lock.find(id).map(|used| &used.capabilities);
    let is_new = |name: &&String| {
        !agreed.is_some_and(|agreed| agreed.contains(*name)) && !approval.capabilities.contains(*name)
    };
    let wanted: Vec<&str> = capabilities.iter().filter(is_new).map(String::as_str).collect();
    if !wanted.is_empty() {
        return Err(Refusal::Capabilities { wanted: wanted.join(",") });
    }
    let size = u64::try_from(candidate.bytes.len()).unwrap_or(u64::MAX);
    let (id, source) = (id.to_owned(), candidate.source.to_owned());
    Ok(Locked { id, version, requirement: None, source, digest, size, capabilities, signed_by })
}

/// What a policy may do beyond saying yes and no, as `--allow` names it.
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

fn check_digest(candidate: &Candidate<'_>, trust: &Trust, digest: &str) -> Result<(), Refusal> {
    if let Some(wanted) = candidate.pinned.filter(|wanted| *wanted != digest) {
        return Err(Refusal::Digest { wanted: wanted.to_owned(), found: digest.to_owned() });
    }
    match trust.revoked(digest) {
        Some(reason) => Err(Refusal::RevokedDigest { digest: digest.to_owned(), reason: reason.to_owned() }),
        None => Ok(()),
    }
}

fn check_name(candidate: &Candidate<'_>, manifest: &Manifest) -> Result<Version, Refusal> {
    let about = &manifest.policy;
    if let Some(wanted) = candidate.wanted.filter(|wanted| *wanted != about.id) {
        return Err(Refusal::Name { wanted: wanted.to_owned(), found: about.id.clone() });
    }
    let found = Version::parse(&about.version).map_err(|error| {
        let detail = format!("`{}` is no semantic version: {error}", about.version);
        Refusal::Pack(PackError::Value { key: "policy.version", detail })
    })?;
    match candidate.version.filter(|wanted| **wanted != found) {
        Some(wanted) => Err(Refusal::Version { wanted: wanted.clone(), found }),
        None => Ok(found),
    }
}

fn check_code(manifest: &Manifest, described: &Described) -> Result<(), Refusal> {
    let about = &manifest.policy;
    let pairs = [("the id", &about.id, &described.id), ("the version", &about.version, &described.version)];
    match pairs.into_iter().find(|(_, manifest, code)| manifest != code) {
        Some((what, manifest, code)) => {
            Err(Refusal::Disagrees { what, manifest: manifest.clone(), code: code.clone() })
        }
        None => Ok(()),
    }
}

/// A known name that people would take for `id`.
fn look_alike(id: &str, lock: &Lock, trust: &Trust) -> Option<String> {
    let used = lock.policies.iter().map(|policy| policy.id.clone());
    let known: Vec<String> = used.chain(lock.removed.iter().map(|old| old.id.clone())).collect();
    if known.iter().any(|known| known == id) {
        return None;
    }
    let looks = outline(id);
    if let Some(like) = known.into_iter().find(|known| outline(known) == looks) {
        return Some(like);
    }
    let namespace = id.split(':').next().unwrap_or_default();
    let owned = trust.publishers.iter().flat_map(|publisher| publisher.namespaces.iter().map(String::as_str));
    let mut namespaces = owned.chain([OWN]);
    if namespaces.clone().any(|known| known == namespace) {
        return None;
    }
    namespaces.find(|known| outline(known) == outline(namespace)).map(|known| format!("{known}:..."))
}

/// What is left of a name when all that looks alike is one.
fn outline(name: &str) -> String {
    let one = |character: char| match character {
        '1' | 'i' => 'l',
        '0' => 'o',
        '5' => 's',
        other => other,
    };
    let plain: String = name.chars().filter(|character| *character != '-').map(one).collect();
    plain.replace("rn", "m").replace("vv", "w").replace("cl", "d")
}

/// The keys that have signed, as far as they count.
fn signers(
    candidate: &Candidate<'_>,
    id: &str,
    digest: &str,
    trust: &Trust,
    lock: &Lock,
    approval: &Approval,
    now: Seconds,
) -> Result<Vec<String>, Refusal> {
    let checked = candidate.signatures.check(candidate.bytes, &trust.keys());
    let namespace = id.split(':').next().unwrap_or_default();
    if let Some(owner) = trust.owner(namespace) {
        return of_owner(&checked, id, owner, trust, now);
    }
    if let Some(one) = checked.iter().find(|one| one.state == State::Good) {
        let signed =
            |publisher: &&Publisher| publisher.keys.iter().any(|(key, _)| key.fingerprint() == one.key);
        let publisher = trust.publishers.iter().find(signed);
        let (publisher, namespaces) = publisher
            .map(|publisher| (publisher.name.clone(), publisher.namespaces.clone()))
            .unwrap_or_default();
        let namespaces = listed(&namespaces);
        return Err(Refusal::Namespace { id: id.to_owned(), publisher, namespaces });
    }
    // The names that come with the program are nobody else's.
    let may_be_unsigned = namespace != OWN && !trust.require_signature;
    let had_signature = lock.find(id).is_some_and(|used| !used.signed_by.is_empty());
    if may_be_unsigned && (trust.trusts(digest) || approval.unsigned && !had_signature) {
        return Ok(Vec::new());
    }
    if !candidate.signatures.is_empty() {
        let keys: Vec<String> = checked.into_iter().map(|one| one.key).collect();
        return Err(Refusal::Foreign { keys: keys.join("`, `") });
    }
    let hint = if may_be_unsigned && !had_signature {
        "`--unsigned` trusts exactly these bytes"
    } else {
        "here it must be signed"
    };
    Err(Refusal::Unsigned { hint: hint.to_owned() })
}

fn of_owner(
    checked: &[Checked],
    id: &str,
    owner: &Publisher,
    trust: &Trust,
    now: Seconds,
) -> Result<Vec<String>, Refusal> {
    let mut good = BTreeSet::new();
    let mut notes = Vec::new();
    for one in checked {
        // A key that was renewed is there twice; either entry will do.
        let mut own = owner.keys.iter().filter(|(key, _)| key.fingerprint() == one.key).peekable();
        let is_own = own.peek().is_some();
        let holds = own.any(|(_, validity)| validity.holds(now));
        match &one.state {
            State::Unknown => notes.push(format!("the key `{}` is not theirs", one.key)),
            _ if !is_own => notes.push(format!("the key `{}` is not theirs", one.key)),
            State::Broken => {
                notes.push(format!("the signature of `{}` is not over these bytes", one.key));
            }
            State::OtherPurpose(purpose) => {
                notes.push(format!("the signature of `{}` was made for `{purpose}`", one.key));
            }
            State::Good => match trust.revoked(&one.key) {
                Some(reason) => notes.push(format!("the key `{}` was revoked: {reason}", one.key)),
                None if !holds => {
                    notes.push(format!("the key `{}` has expired, or does not count yet", one.key));
                }
                None => {
                    good.insert(one.key.clone());
                }
            },
        }
    }
    if good.len() >= owner.threshold {
        return Ok(good.into_iter().collect());
    }
    let count = match good.len() {
        0 if notes.is_empty() => "there is no signature".to_owned(),
        0 => String::new(),
        count => format!("{count} of them"),
    };
    let found = std::iter::once(count).filter(|count| !count.is_empty()).chain(notes);
    Err(Refusal::NotSigned {
        id: id.to_owned(),
        publisher: owner.name.clone(),
        threshold: owner.threshold,
        found: found.collect::<Vec<_>>().join("; "),
    })
}

fn check_version(
    candidate: &Candidate<'_>,
    id: &str,
    version: &Version,
    digest: &str,
    lock: &Lock,
    approval: &Approval,
    signed_by: &[String],
) -> Result<(), Refusal> {
    if approval.older {
        return Ok(());
    }
    if let Some(used) = lock.newest(id).filter(|used| version < *used) {
        return Err(Refusal::Rollback { offered: version.clone(), used: used.clone() });
    }
    let Some(used) = lock.find(id).filter(|used| used.version == *version && used.digest != digest) else {
        return Ok(());
    };
    // Authors try one build after the other; what is published has one content for good.
    let is_local = |source: &str| source == crate::FROM_FILE;
    let is_trial = signed_by.is_empty() && is_local(&used.source) && is_local(candidate.source);
    if is_trial { Ok(()) } else { Err(Refusal::Replaced { version: version.clone() }) }
}

fn listed(namespaces: &[String]) -> String {
    match namespaces {
        [] => "no namespace".to_owned(),
        names => names.iter().map(|name| format!("`{name}:`")).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests;
