//! A directory of packs with its lock file, and everything needed to check packs.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use portcullis_bootstrap::process_env::{ProcessEnv, now};
use portcullis_bootstrap::trust_files;
use portcullis_bootstrap::untrusted_paths::UntrustedPaths;
use portcullis_packs::{
    Approval, Candidate, Credentials, Described, Lock, Locked, PackRefusal, Reference, Registry, Seconds,
    Signed, Store, Trust, accept,
};
use portcullis_policy_runtime::Runtime;

use super::confirm::confirmed;
use super::offer::Offer;
use super::transfer_progress;
use crate::runtime::runtime;

/// A directory of packs, with everything needed to check packs.
#[derive(Debug)]
pub struct LockEditor {
    pub(super) around: ProcessEnv,
    pub(super) store: Store,
    pub(super) trust: Trust,
    pub(super) runtime: Runtime,
    pub(super) registry: Option<Registry>,
}

impl LockEditor {
    /// Returns the environment of the process.
    #[must_use]
    pub fn environment(&self) -> &ProcessEnv {
        &self.around
    }

    /// Returns the directory of packs.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the publishers that the user and the machine trust.
    #[must_use]
    pub fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Resolves a path relative to the user's working directory.
    #[must_use]
    pub fn here(&self, path: &Path) -> PathBuf {
        self.around.absolute(path)
    }

    /// Opens the packs of the user's settings, or those in `directory`.
    ///
    /// # Errors
    /// If the environment or the trust files cannot be read.
    pub fn open(directory: Option<&Path>) -> anyhow::Result<Self> {
        let around = ProcessEnv::read()?;
        let store = match directory {
            Some(directory) => Store::elsewhere(&around.cwd.join(directory)),
            None => Store::new(&around.agent_directory.join("sandbox")),
        };
        let trust = trust_files::read(&around.agent_directory)?;
        let runtime = runtime()?;
        Ok(Self { store, trust, runtime, registry: None, around })
    }

    /// Returns the registry client, with the credentials that docker stores.
    pub(super) fn registry(&mut self) -> anyhow::Result<&mut Registry> {
        if self.registry.is_none() {
            self.registry = Some(registry_client(&self.around)?);
        }
        self.registry.as_mut().context("making a client of registries")
    }

    /// Writes a pack to a registry and returns the digest of its manifest there.
    ///
    /// # Errors
    /// If the component cannot be read, or the registry refuses it.
    pub fn push(&mut self, to: &Reference, signed: &Signed) -> anyhow::Result<String> {
        let stale = signed.signatures.over_other_bytes(&signed.bytes, &self.trust.keys());
        if !stale.is_empty() {
            bail!(
                "the signature of `{}` is not over this component, which has changed since; nothing was pushed; sign it \
                 again with `portcullis policy sign`",
                stale.join("`, `")
            );
        }
        let surface = self.runtime.surface(&signed.bytes).context("reading the component")?;
        self.registry()?
            .push(to, signed, &surface.imports, &surface.exports)
            .with_context(|| format!("pushing to `{to}`"))
    }

    /// Checks an offer. Asks the user if it wants capabilities that were not agreed to.
    pub(super) fn judge(&self, offer: &Offer, lock: &Lock, approval: &Approval) -> anyhow::Result<Locked> {
        let name = offer.name();
        let refused = || format!("`{name}` is refused, and nothing was changed");
        match self.accept(offer, lock, approval) {
            Err(PackRefusal::Capabilities { wanted }) if agrees(&name, &wanted) => {
                let mut approval = approval.clone();
                approval.capabilities.extend(wanted.split(',').map(str::to_owned));
                self.accept(offer, lock, &approval).with_context(refused)
            }
            judged => judged.with_context(refused),
        }
    }

    /// Checks an offer.
    ///
    /// # Errors
    /// The refusal.
    pub fn accept(&self, offer: &Offer, lock: &Lock, approval: &Approval) -> Result<Locked, PackRefusal> {
        let bytes = &offer.signed.bytes;
        let candidate = Candidate {
            bytes,
            signatures: &offer.signed.signatures,
            describe: &|| {
                let said = self.runtime.describe(bytes)?;
                Ok(Described { id: said.id, version: said.version })
            },
            wanted: offer.wanted.as_deref(),
            version: offer.version.as_ref(),
            pinned: offer.pinned.as_deref(),
            source: &offer.source,
        };
        let mut locked = accept(&candidate, &self.trust, lock, approval, seconds())?;
        locked.requirement.clone_from(&offer.requirement);
        Ok(locked)
    }
}

/// Makes a client of registries, with the credentials that docker stores.
///
/// # Errors
/// If the file with the credentials cannot be used.
pub fn registry_client(around: &ProcessEnv) -> anyhow::Result<Registry> {
    let variable = |name: &str| {
        around.variables.iter().find(|(known, _)| known == name).map(|(_, value)| PathBuf::from(value))
    };
    // Do not run credential helpers that a command may have created.
    let reach = UntrustedPaths::of_project(&around.cwd, &around.homes());
    let path: Vec<PathBuf> = around.path.iter().filter(|folder| !reach.holds(folder)).cloned().collect();
    let folder = variable("DOCKER_CONFIG").unwrap_or_else(|| around.home.join(".docker"));
    let credentials = Credentials::read(&folder.join("config.json"), &path).map_err(anyhow::Error::msg)?;
    Ok(Registry::new(credentials).watched(transfer_progress::shown()))
}

/// Returns the current time in seconds since 1970.
fn seconds() -> Seconds {
    let since = now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

fn agrees(name: &str, wanted: &str) -> bool {
    let name = portcullis_text::escape(name);
    confirmed(&format!("`{name}` wants more than saying yes and no: {wanted}. Let it? [y/N]"))
}
