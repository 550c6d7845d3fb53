//! The commands that share packs, and their common parts.

mod add;
mod carry;
mod find;
mod list;
mod progress;
mod registry;
mod sign;
mod trust;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use portcullis_packs::{
    Approval, Candidate, Credentials, Described, FROM_FILE, Lock, Locked, Pack, Refusal, Registry, Seconds,
    Signed, Store, Trust, accept,
};
use portcullis_policy_runtime::Runtime;

use crate::args::share::{Agreement, Place, Share};
use crate::process_env::{ProcessEnv, now};
use crate::trust_files;
use crate::untrusted_paths::Reach;

/// Runs the subcommand.
pub(super) fn run(verb: Share) -> crate::Outcome {
    match verb {
        Share::Add(add) => add::add(&add),
        Share::Update(update) => add::update(&update),
        Share::Remove(remove) => add::remove(&remove),
        Share::List(shown) => list::list(&shown),
        Share::Lock(shown) => list::check(&shown),
        Share::Sign(sign) => sign::sign(&sign),
        Share::Verify(verify) => sign::verify(&verify),
        Share::Trust(verb) => trust::run(verb),
        Share::Push(push) => registry::push(&push),
        Share::Pull(pull) => registry::pull(&pull),
        Share::Vendor(vendor) => carry::vendor(&vendor),
        Share::Save(save) => carry::save_packs(&save),
        Share::Load(load) => carry::load_packs(&load),
    }
}

/// A directory of packs, with everything needed to check packs.
struct LockEditor {
    around: ProcessEnv,
    store: Store,
    trust: Trust,
    runtime: Runtime,
    registry: Option<Registry>,
}

/// A pack that is offered, and the request for it.
#[derive(Debug)]
struct Offer {
    signed: Signed,
    /// Its source, as in the lock file.
    source: String,
    /// The requested id.
    wanted: Option<String>,
    /// The requested version.
    version: Option<semver::Version>,
    /// The requested digest.
    pinned: Option<String>,
    /// The versions that `update` may use.
    requirement: Option<semver::VersionReq>,
}

impl Offer {
    /// Returns a name for messages: the requested one, or the pack's own.
    fn name(&self) -> String {
        let own = || match Pack::read(&self.signed.bytes) {
            Ok(Some(pack)) => pack.manifest.policy.id,
            Ok(None) | Err(_) => "the file".to_owned(),
        };
        match &self.wanted {
            Some(wanted) => wanted.clone(),
            None if self.source == FROM_FILE => own(),
            None => self.source.clone(),
        }
    }
}

impl LockEditor {
    fn open(place: &Place) -> anyhow::Result<Self> {
        let around = ProcessEnv::read()?;
        let store = match &place.dir {
            Some(directory) => Store::elsewhere(&around.cwd.join(directory)),
            None => Store::new(&around.agent_directory.join("sandbox")),
        };
        let trust = trust_files::read(&around.agent_directory)?;
        let runtime = super::runtime()?;
        Ok(Self { store, trust, runtime, registry: None, around })
    }

    /// Returns the registry client, with the credentials that docker stores.
    fn registry(&mut self) -> anyhow::Result<&mut Registry> {
        if self.registry.is_none() {
            let variable = |name: &str| {
                self.around
                    .variables
                    .iter()
                    .find(|(known, _)| known == name)
                    .map(|(_, value)| PathBuf::from(value))
            };
            // Do not run credential helpers that a command may have created.
            let reach = Reach::of_project(&self.around.cwd, &self.around.homes());
            let path: Vec<PathBuf> =
                self.around.path.iter().filter(|folder| !reach.holds(folder)).cloned().collect();
            let folder = variable("DOCKER_CONFIG").unwrap_or_else(|| self.around.home.join(".docker"));
            let credentials =
                Credentials::read(&folder.join("config.json"), &path).map_err(anyhow::Error::msg)?;
            self.registry = Some(Registry::new(credentials).watched(progress::shown()));
        }
        self.registry.as_mut().context("making a client of registries")
    }

    /// Checks an offer. Asks the user if it wants capabilities that were not agreed to.
    fn judge(&self, offer: &Offer, lock: &Lock, approval: &Approval) -> anyhow::Result<Locked> {
        let name = offer.name();
        let refused = || format!("`{name}` is refused, and nothing was changed");
        match self.accept(offer, lock, approval) {
            Err(Refusal::Capabilities { wanted }) if agrees(&name, &wanted) => {
                let mut approval = approval.clone();
                approval.capabilities.extend(wanted.split(',').map(str::to_owned));
                self.accept(offer, lock, &approval).with_context(refused)
            }
            judged => judged.with_context(refused),
        }
    }

    fn accept(&self, offer: &Offer, lock: &Lock, approval: &Approval) -> Result<Locked, Refusal> {
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

impl Agreement {
    fn approval(&self) -> Approval {
        Approval {
            capabilities: self.allow.iter().cloned().collect::<BTreeSet<_>>(),
            unsigned: self.unsigned,
            older: self.allow_older,
            similar: self.similar_name,
        }
    }
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

/// Asks the user; returns false without a terminal.
fn confirmed(question: &str) -> bool {
    use std::io::{BufRead as _, IsTerminal as _};
    let is_person = std::io::stdin().is_terminal() && crate::raw::errors().is_terminal();
    if !is_person {
        return false;
    }
    crate::exit::say(question);
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.is_ok() && ["y", "yes"].contains(&line.trim().to_ascii_lowercase().as_str())
}

/// Resolves a path relative to the user's working directory.
fn here(around: &ProcessEnv, path: &Path) -> PathBuf {
    around.cwd.join(path)
}
