//! The sources of policy components, and the trust in them.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use portcullis_decision::Mode;
use portcullis_packs::{Locked, Store, Trust, Voucher, digest, signatures_beside, vouched};
use portcullis_policy_runtime::read_component;
use portcullis_settings::RealDisk;
use portcullis_settings::policy_text::{TextLanguage, configuration_of};
use portcullis_settings_format::PolicySource;
use portcullis_teams::StagedMode;
use serde_json::{Map, Value};

use crate::{process_env, shipped, teams, trust_files};

/// Returns name and description of each shipped policy that works without a text.
pub fn shipped() -> impl Iterator<Item = (&'static str, &'static str)> {
    shipped::policies()
}

/// Reads a text in Cedar or Rego: returns the component that runs it, and its configuration. Returns `None` if the file
/// is no such text, by its name.
///
/// # Errors
/// If the text cannot be read.
pub fn text(file: &Path) -> anyhow::Result<Option<(Component, Map<String, Value>)>> {
    let Some(language) = TextLanguage::of_file(file) else { return Ok(None) };
    let config = configuration_of(file, &RealDisk)?;
    Ok(Some((Component { bytes: shipped::component(language.policy())?, origin: Origin::Shipped }, config)))
}

/// The sources of components.
#[derive(Debug)]
pub struct PolicySources {
    store: Store,
    trust: Trust,
}

/// A component, with its source.
#[derive(Debug)]
pub struct Component {
    /// Its bytes.
    pub bytes: Cow<'static, [u8]>,
    /// Its source.
    pub origin: Origin,
}

/// The source of a component.
#[derive(Debug)]
pub enum Origin {
    /// Shipped with the program.
    Shipped,
    /// A file that the user has named, with its voucher. Its own manifest states its capabilities.
    File(PathBuf, Option<Voucher>),
    /// A pack, with the capabilities that the user agreed to when adding it.
    Pack(Box<Locked>),
    /// A pack of the bundle of this team.
    Team(String),
}

impl Origin {
    /// Returns the weight of its verdicts: a file without a voucher can only tighten.
    pub fn at_most(&self, mode: Mode) -> Mode {
        match (self, mode) {
            (Self::File(_, None), Mode::Enforce) => Mode::Tighten,
            (Self::Team(_), Mode::Enforce) => Mode::Tighten,
            (Self::Shipped | Self::Pack(_) | Self::File(..) | Self::Team(_), mode) => mode,
        }
    }

    /// Returns a description, for users.
    pub fn words(&self) -> String {
        match self {
            Self::Shipped => "comes with Portcullis".to_owned(),
            Self::File(_, Some(Voucher::Digest)) => "a file, trusted by its digest".to_owned(),
            Self::File(_, Some(Voucher::Keys(keys))) => format!("a file, signed by {}", keys.join(", ")),
            Self::File(_, None) => UNVOUCHED.to_owned(),
            Self::Pack(locked) if locked.signed_by.is_empty() => "a pack, trusted by its digest".to_owned(),
            Self::Pack(locked) => format!("a pack, signed by {}", locked.signed_by.join(", ")),
            Self::Team(team) => format!("required by the team `{team}`; it can only tighten"),
        }
    }
}

/// Description of a policy file without a trusted signature.
const UNVOUCHED: &str = "a file without a trusted signature: it can only tighten; `portcullis policy trust file` trusts its digest";

impl PolicySources {
    /// Opens the packs and trust files of the user.
    ///
    /// # Errors
    /// If a trust file cannot be used.
    pub fn open(agent_directory: &Path) -> anyhow::Result<Self> {
        let store = Store::new(&agent_directory.join("sandbox"));
        Ok(Self { store, trust: trust_files::read(agent_directory)? })
    }

    /// Returns the component of a policy in the settings.
    ///
    /// # Errors
    /// If it cannot be read, or was revoked.
    pub fn component(&self, source: &PolicySource) -> anyhow::Result<Component> {
        match source {
            PolicySource::Shipped(name) => {
                Ok(Component { bytes: shipped::component(name)?, origin: Origin::Shipped })
            }
            PolicySource::Pack(id) => self.pack(id),
            PolicySource::File(path) => self.file(path),
        }
    }

    /// Returns the component in a file.
    ///
    /// # Errors
    /// If it cannot be read, or was revoked.
    pub fn file(&self, path: &Path) -> anyhow::Result<Component> {
        let bytes = read_component(path)?;
        self.check(&format!("sha256:{}", digest(&bytes)), &[])?;
        let voucher = vouching(path, &bytes, &self.trust);
        Ok(Component { bytes: bytes.into(), origin: Origin::File(path.to_owned(), voucher) })
    }

    /// Reads a pack. The digest in the lock file is authoritative; the file must match it.
    fn pack(&self, id: &str) -> anyhow::Result<Component> {
        let lock = self.store.lock()?;
        let locked = lock.find(id).with_context(|| {
            format!(
                "`{id}` is not in `{}`; `portcullis policy add` takes it there",
                self.store.lock_file().display()
            )
        })?;
        self.check(&locked.digest, &locked.signed_by)?;
        let bytes = self.store.component(locked)?;
        Ok(Component { bytes: bytes.into(), origin: Origin::Pack(Box::new(locked.clone())) })
    }

    /// Checks that neither the digest nor a key was revoked since the pack was added.
    fn check(&self, digest: &str, keys: &[String]) -> anyhow::Result<()> {
        for what in std::iter::once(digest).chain(keys.iter().map(String::as_str)) {
            if let Some(reason) = self.trust.revoked(what) {
                return Err(Revoked { what: what.to_owned(), reason: reason.to_owned() }.into());
            }
        }
        Ok(())
    }
}

/// A pack of the team's bundle that runs on this machine.
#[derive(Debug)]
pub struct TeamPack {
    /// Its name in the chain.
    pub name: String,
    /// `sha256:...` of the component.
    pub digest: String,
    /// How its verdicts count.
    pub mode: Mode,
    /// Its configuration.
    pub config: Map<String, Value>,
    /// The team.
    pub team: String,
    store: portcullis_teams::Store,
}

impl TeamPack {
    /// Reads the component, which must have the digest that the bundle names.
    ///
    /// # Errors
    /// If it is missing or has other bytes.
    pub fn open(&self) -> anyhow::Result<(String, Component)> {
        let bytes = self.store.pack(&self.digest);
        let bytes = bytes.with_context(|| format!("reading the team's pack `{}`", self.name))?;
        let component = Component { bytes: bytes.into(), origin: Origin::Team(self.team.clone()) };
        Ok((self.name.clone(), component))
    }
}

/// Returns the packs of the team's bundle that run on this machine.
///
/// # Errors
/// If a bundle is required and there is none, or one of its packs was revoked.
pub fn team_packs(agent_directory: &Path) -> anyhow::Result<Vec<TeamPack>> {
    let Some(in_force) = teams::in_force(agent_directory)? else { return Ok(Vec::new()) };
    let joined = &in_force.joined;
    let mut packs = Vec::new();
    for pack in in_force.bundle().iter().flat_map(|bundle| &bundle.content.packs) {
        let mode = match joined.mode(&pack.id, pack.stage) {
            StagedMode::Off => continue,
            StagedMode::Observe => Mode::Observe,
            StagedMode::Enforce => Mode::Tighten,
        };
        packs.push(TeamPack {
            name: format!("team-{}", pack.id.replace(':', "-")),
            digest: pack.digest.clone(),
            mode,
            config: pack.config.clone(),
            team: joined.membership.team.clone(),
            store: joined.store.clone(),
        });
    }
    Ok(packs)
}

/// A pack or key in use was revoked.
#[derive(Debug)]
pub struct Revoked {
    what: String,
    reason: String,
}

impl std::fmt::Display for Revoked {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "`{}` was revoked: {}", self.what, self.reason)
    }
}

impl std::error::Error for Revoked {}

/// Returns the voucher for a file's component.
fn vouching(file: &Path, bytes: &[u8], trust: &Trust) -> Option<Voucher> {
    // Signatures that cannot be read do not vouch.
    let signatures = signatures_beside(file).unwrap_or_default();
    vouched(bytes, &signatures, trust, process_env::unix_seconds())
}

/// Describes the voucher for a file's component.
pub fn vouching_words(file: &Path, bytes: &[u8], agent_directory: &Path) -> anyhow::Result<String> {
    let trust = trust_files::read(agent_directory)?;
    Ok(Origin::File(file.to_owned(), vouching(file, bytes, &trust)).words())
}
