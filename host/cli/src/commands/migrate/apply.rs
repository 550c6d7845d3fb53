//! Does what a migration has planned.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_settings::{Places, RealDisk, Store, stays_in_project};
use portcullis_settings_format::Change;

use super::extensions::{Installation, OldExtension};
use super::migration::Migration;
use super::plan::Write;
use super::record::{Made, Record, ensure_writable};
use crate::commands::{pi_extension, take_over};

/// The directory to which old extensions are moved. pi loads nothing from it.
const ASIDE: &str = "extensions-before-portcullis";

impl Migration {
    /// Writes the settings, installs our extension, and takes the old ones out of pi, in this order: pi is never without
    /// a sandbox.
    pub(super) fn apply(&mut self, around: &ProcessEnv, places: &Places) -> anyhow::Result<()> {
        let writes: Vec<&Write> = self.plans.iter().flat_map(|plan| &plan.writes).collect();
        let old: Vec<&OldExtension> = self
            .found
            .setups
            .iter()
            .flat_map(|setup| &setup.extensions)
            .filter(|old| is_users(old))
            .collect();
        if !writes.is_empty() || self.installs || !old.is_empty() {
            for path in touched(around, &writes, &old) {
                ensure_writable(&path)?;
            }
            let mut record = Record::open(&around.state)?;
            for write in &writes {
                put(&mut record, places, write)?;
            }
            if self.installs {
                record.note(Made::Installed { place: pi_extension::place(around) })?;
                pi_extension::install(around).context("installing the extension of this program")?;
            }
            for old in old {
                take_out(&mut record, places, old).with_context(|| format!("removing `{}`", old.name))?;
            }
        }
        for setup in &self.found.setups {
            for file in setup.files.iter().filter(|file| file.settings.is_ok()) {
                if !file.file.starts_with(places.sandbox_directory()) {
                    let command = format!("portcullis migrate --from {} --apply --replace", setup.name);
                    take_over::remember(places, &file.file, &command, setup.source)?;
                }
            }
        }
        self.is_done = true;
        Ok(())
    }
}

/// Returns true if an extension is the user's own, and not one that a project brings along.
pub(super) fn is_users(old: &OldExtension) -> bool {
    !matches!(old.at, Installation::Entry { is_of_project: true, .. })
}

fn touched(around: &ProcessEnv, writes: &[&Write], old: &[&OldExtension]) -> Vec<PathBuf> {
    let mut paths = vec![around.state.clone(), around.agent_directory.clone()];
    paths.extend(writes.iter().filter_map(|write| write.file.parent().map(Path::to_owned)));
    paths.extend(old.iter().filter_map(|old| match &old.at {
        Installation::Directory(place) => place.parent().map(Path::to_owned),
        Installation::Entry { file, .. } => Some(file.clone()),
    }));
    paths
}

fn put(record: &mut Record, places: &Places, write: &Write) -> anyhow::Result<()> {
    if write.file == places.project_file() {
        stays_in_project(&write.file, places, &RealDisk)?;
    }
    let Write { file, kind, before, text, .. } = write;
    record.write(file, text, || Ok(Store::new(places).replace(file, *kind, before.as_deref(), text)?))
}

/// Takes an old extension out of pi: a directory is moved, an entry removed.
fn take_out(record: &mut Record, places: &Places, old: &OldExtension) -> anyhow::Result<()> {
    match &old.at {
        Installation::Directory(place) => {
            let name = place.file_name().context("a place of an extension has a name")?;
            record.rename(place, &places.agent_directory.join(ASIDE).join(name))
        }
        Installation::Entry { file, list, value, .. } => {
            let text = std::fs::read_to_string(file)?;
            let changed = Change::Drop(vec![(*list).to_owned()], value.clone()).apply(&text)?;
            record.write(file, &changed, || Ok(std::fs::write(file, &changed)?))
        }
    }
}
