//! The team of this machine or user: its membership file, and the bundle in force.
//!
//! Reading this never asks a registry. The bundle that was accepted last is read from the user's directory and all its
//! signatures are checked again; [`update`] gets newer ones, in a process of its own.

mod background;
mod machine_file;
mod unprotected;
pub mod update;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use portcullis_packs::{Seconds, StoreError, Trust, read_text};
use portcullis_settings::TeamSettings;
use portcullis_teams::{HeldBundle, Membership, Owner, Stage, StagedMode, Store, Trusted, Unprotected, slot};
use semver::Version;

use crate::process_env;

pub use background::refresh;
pub use unprotected::{Unprotect, may_be_unprotected};

/// Name of a membership file.
const FILE: &str = "team.toml";
/// The directory of the machine's settings.
const MACHINE: &str = "/etc/portcullis";
/// Largest membership file, in bytes.
const FILE_MAX: usize = 64 << 10;
const DAY: Seconds = 24 * 60 * 60;
/// How long a bundle is in force without a confirmation before sessions warn: as long as a timestamp is valid.
const UNCONFIRMED_DAYS: Seconds = 14;
/// The file with the id of the machine.
const MACHINE_ID: &str = "/etc/machine-id";

/// Returns the version of this program, for bundles that need a newer one.
#[must_use]
pub fn program_version() -> Version {
    Version::parse(env!("CARGO_PKG_VERSION")).unwrap_or(Version::new(0, 0, 0))
}

/// Returns the machine's membership file.
#[must_use]
pub fn machine_file() -> PathBuf {
    Path::new(MACHINE).join(FILE)
}

/// Returns the user's membership file.
#[must_use]
pub fn user_file(agent_directory: &Path) -> PathBuf {
    agent_directory.join("sandbox").join(FILE)
}

/// Returns the directory of what this user's machine holds of a team.
#[must_use]
pub fn store(agent_directory: &Path) -> Store {
    Store::new(&agent_directory.join("sandbox/team"))
}

/// Returns the files whose change can change what is in force.
#[must_use]
pub fn files(agent_directory: &Path) -> [PathBuf; 3] {
    [machine_file(), user_file(agent_directory), store(agent_directory).held_file()]
}

/// A team that the machine or the user has joined.
#[derive(Debug, Clone)]
pub struct Joined {
    /// The membership.
    pub membership: Membership,
    /// Whose file it is.
    pub owner: Owner,
    /// The file.
    pub file: PathBuf,
    /// What is held of the team.
    pub store: Store,
}

/// Returns the team of this machine, or else of the user.
///
/// # Errors
/// If a membership file exists and cannot be used, or the machine's could have been written by another user than root.
pub fn joined(agent_directory: &Path) -> anyhow::Result<Option<Joined>> {
    let machine = machine_file();
    if let Some(text) = read(&machine)? {
        machine_file::check(&machine)?;
        return parsed(agent_directory, machine, &text, Owner::Machine).map(Some);
    }
    let user = user_file(agent_directory);
    match read(&user)? {
        Some(text) => parsed(agent_directory, user, &text, Owner::User).map(Some),
        None => Ok(None),
    }
}

fn read(file: &Path) -> anyhow::Result<Option<String>> {
    match read_text(file, FILE_MAX) {
        Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        text => Ok(Some(text.with_context(|| format!("reading `{}`", file.display()))?)),
    }
}

fn parsed(agent_directory: &Path, file: PathBuf, text: &str, owner: Owner) -> anyhow::Result<Joined> {
    let membership = Membership::parse(text, owner)
        .with_context(|| format!("the team's file `{}` cannot be used", file.display()))?;
    Ok(Joined { membership, owner, file, store: store(agent_directory) })
}

impl Joined {
    /// Reads the accepted documents and checks their signatures. Returns `None` if there are none.
    ///
    /// # Errors
    /// If they are damaged, or not signed as they must be.
    pub fn open(&self) -> anyhow::Result<Option<Trusted>> {
        let Some(held) = self.store.held()? else { return Ok(None) };
        let Membership { team, root, .. } = &self.membership;
        let opened = Trusted::open(held, team, root, &program_version());
        opened.map(Some).with_context(|| {
            format!(
                "`{}` cannot be used; `portcullis team update` gets it again",
                self.store.held_file().display()
            )
        })
    }

    /// Returns how a pack runs on this machine.
    #[must_use]
    pub fn mode(&self, id: &str, stage: Stage) -> StagedMode {
        let slot = slot(&machine_id(), &self.membership.team, id);
        self.membership.stage.mode(slot).min(stage.mode(slot))
    }

    /// Checks what the machine asks of the bundle in force.
    fn check(&self, bundle: &HeldBundle) -> anyhow::Result<()> {
        let Membership { packs, minimum_version, .. } = &self.membership;
        let (content, file) = (&bundle.content, self.file.display());
        if content.version < *minimum_version {
            bail!(
                "bundle {} is older than version {minimum_version}, which `{file}` requires",
                content.version
            );
        }
        match packs.iter().find(|id| !content.packs.iter().any(|pack| pack.id == **id)) {
            Some(id) => bail!("bundle {} has no pack `{id}`, which `{file}` requires", content.version),
            None => Ok(()),
        }
    }
}

/// Returns the id of this machine, or an empty text.
#[must_use]
pub fn machine_id() -> String {
    read_text(Path::new(MACHINE_ID), 4096).unwrap_or_default().trim().to_owned()
}

/// A team with what is in force of its bundle.
#[derive(Debug, Clone)]
pub struct InForce {
    /// The team.
    pub joined: Joined,
    /// The accepted documents.
    pub trusted: Option<Trusted>,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// Returns the bundle in force.
///
/// # Errors
/// If the machine requires a bundle and there is none that can be used: then nothing is allowed.
pub fn in_force(agent_directory: &Path) -> anyhow::Result<Option<InForce>> {
    let Some(joined) = joined(agent_directory)? else { return Ok(None) };
    let opened = joined.open().and_then(|trusted| {
        trusted
            .as_ref()
            .and_then(|trusted| trusted.bundle.as_ref())
            .map_or(Ok(()), |bundle| joined.check(bundle))?;
        Ok(trusted)
    });
    let team = &joined.membership.team;
    let (trusted, warnings) = match opened {
        Ok(trusted) if trusted.as_ref().is_some_and(|trusted| trusted.bundle.is_some()) => {
            let warnings = warnings(trusted.as_ref(), process_env::unix_seconds());
            (trusted, warnings)
        }
        opened if joined.membership.mandatory => {
            let why = format!(
                "this machine requires the bundle of the team `{team}` (`{}`), and has none that it can use; \
                 `portcullis team update` gets it",
                joined.file.display()
            );
            return match opened {
                Ok(_) => Err(anyhow::Error::msg(why)),
                Err(error) => Err(error.context(why)),
            };
        }
        Ok(trusted) => {
            let text =
                format!("there is no bundle of the team `{team}` yet; `portcullis team update` gets it");
            (trusted, vec![text])
        }
        Err(error) => (None, vec![format!("the bundle of the team `{team}` is not in force: {error:#}")]),
    };
    Ok(Some(InForce { joined, trusted, warnings }))
}

/// Returns what the user should know of a bundle in force.
fn warnings(trusted: Option<&Trusted>, now: Seconds) -> Vec<String> {
    let mut warnings = Vec::new();
    let Some((trusted, bundle)) = trusted.and_then(|trusted| Some((trusted, trusted.bundle.as_ref()?)))
    else {
        return warnings;
    };
    let (team, version) = (&trusted.root.team, bundle.content.version);
    if bundle.has_expired(now) {
        warnings.push(format!(
            "bundle {version} of the team `{team}` has expired; what it requires stays in force, and `portcullis team \
             update` looks for a newer one"
        ));
    }
    let unconfirmed = now.saturating_sub(trusted.held.checked_at) / DAY;
    if unconfirmed > UNCONFIRMED_DAYS {
        warnings.push(format!(
            "bundle {version} of the team `{team}` was not confirmed for {unconfirmed} days; what it requires stays in \
             force, and `portcullis team status` says why"
        ));
    }
    if !bundle.is_current {
        warnings.push(format!(
            "bundle {version} of the team `{team}` is signed by keys that the team no longer uses; what it requires \
             stays in force, and `portcullis team update` looks for a newer one"
        ));
    }
    warnings
}

impl InForce {
    /// Returns the bundle in force.
    #[must_use]
    pub fn bundle(&self) -> Option<&HeldBundle> {
        self.trusted.as_ref()?.bundle.as_ref()
    }

    /// Returns what the bundle contributes to the settings.
    #[must_use]
    pub fn settings(&self) -> TeamSettings {
        let content = self.bundle().map(|bundle| &bundle.content);
        let settings = content.map(|content| content.settings.clone()).unwrap_or_default();
        TeamSettings {
            file: self.joined.store.held_file(),
            settings: serde_json::Value::Object(settings).to_string(),
            presets: content.map(|content| content.presets.clone()).unwrap_or_default(),
            warnings: self.warnings.clone(),
        }
    }
}

/// Returns true if the machine forbids to switch the sandbox off.
///
/// # Errors
/// If the membership file cannot be used.
pub fn keeps_sandbox(agent_directory: &Path) -> anyhow::Result<bool> {
    Ok(joined(agent_directory)?.is_some_and(|joined| joined.membership.no_sandbox == Unprotected::Forbid))
}

/// Returns the publishers and revocations of the bundle in force.
///
/// # Errors
/// Those of [`in_force`].
pub fn trust(agent_directory: &Path) -> anyhow::Result<Trust> {
    let in_force = in_force(agent_directory)?;
    match in_force.as_ref().and_then(InForce::bundle) {
        Some(bundle) => bundle.content.trust().context("the trust in the team's bundle"),
        None => Ok(Trust::default()),
    }
}
