//! The membership file of this machine or user, and the team's documents that were accepted here.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use portcullis_packs::{StoreError, read_text};
use portcullis_teams::{HeldBundle, Membership, Owner, Stage, StagedMode, Store, Trusted, slot};
use semver::Version;

use crate::teams::root_owned::ensure_root_owned;

/// Name of a membership file.
const FILE: &str = "team.toml";
/// The directory of the machine's settings.
const MACHINE: &str = "/etc/portcullis";
/// Largest membership file, in bytes.
const FILE_MAX: usize = 64 << 10;
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

/// Returns the files that a session watches: both membership files and the list of accepted documents.
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
    /// The team's accepted documents and packs.
    pub store: Store,
}

/// Returns the team of this machine, or else of the user.
///
/// # Errors
/// If a membership file exists and cannot be used, or the machine's could have been written by another user than root.
pub fn joined(agent_directory: &Path) -> anyhow::Result<Option<Joined>> {
    let machine = machine_file();
    if let Some(text) = read(&machine)? {
        ensure_root_owned(&machine)?;
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
    pub(super) fn check(&self, bundle: &HeldBundle) -> anyhow::Result<()> {
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
