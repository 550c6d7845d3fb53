//! Carries out the plan of a migration.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_settings::{Disk as _, Places, RealDisk, Store, replace_file};
use portcullis_settings_format::Change;

use super::extensions::{Installation, OldExtension};
use super::migration::Migration;
use super::plan::Write;
use super::record::{Made, NewText, Record, ensure_writable};
use crate::commands::take_over::project_file;
use crate::commands::{pi_extension, take_over};

impl Migration {
    /// Writes the settings, installs our extension, and removes the old ones from pi, in this order, so that pi always has
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
            let is_started = record.changes().len();
            if let Err(error) = change(&mut record, around, places, (&writes, &old), self.installs) {
                return Err(match record.changes().len() == is_started {
                    true => error.context("nothing was changed"),
                    false => {
                        error.context("some of it was changed; `portcullis migrate --undo` takes that back")
                    }
                });
            }
        }
        for setup in &self.found.setups {
            for file in &setup.files {
                let Ok(settings) = &file.settings else { continue };
                if !file.file.starts_with(places.sandbox_directory()) {
                    let command = format!("portcullis migrate --from {} --apply --replace", setup.name);
                    // The settings that the plan is made from, in case the file has changed since.
                    let taken =
                        take_over::Taken { file: &file.file, settings, is_of_project: file.is_of_project };
                    take_over::remember(places, &taken, &command, setup.source)?;
                }
            }
        }
        self.is_done = true;
        Ok(())
    }
}

/// Returns true if an extension is installed by the user, false if a project's settings name it.
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

fn change(
    record: &mut Record,
    around: &ProcessEnv,
    places: &Places,
    (writes, old): (&[&Write], &[&OldExtension]),
    installs: bool,
) -> anyhow::Result<()> {
    for write in writes {
        put(record, places, write)?;
    }
    if installs {
        record.note(Made::Installed { place: pi_extension::place(around) })?;
        pi_extension::install(around).context("installing the extension of this program")?;
    }
    for old in old {
        take_out(record, old).with_context(|| format!("removing `{}`", old.name))?;
    }
    Ok(())
}

fn put(record: &mut Record, places: &Places, write: &Write) -> anyhow::Result<()> {
    let Write { file, kind, before, text, .. } = write;
    let project = (*file == places.project_file()).then_some(places.workspace.as_path());
    let new = NewText { file, project, earlier: before.as_deref(), text, dropped: None };
    record.write(new, || match project {
        Some(project) => project_file::replace(project, file, Some(text)),
        None => Ok(Store::new(places).replace(file, *kind, before.as_deref(), text)?),
    })
}

/// Removes an old extension from pi: a directory is renamed, an entry of a list is dropped.
fn take_out(record: &mut Record, old: &OldExtension) -> anyhow::Result<()> {
    match &old.at {
        Installation::Directory(place) => record.hide(place),
        Installation::Entry { file, list, value, .. } => {
            let bytes = RealDisk.read(file)?;
            let text = std::str::from_utf8(&bytes)?;
            let changed = Change::Drop(vec![(*list).to_owned()], value.clone()).apply(text)?;
            let dropped = Some(((*list).to_owned(), value.clone()));
            let new = NewText { file, project: None, earlier: Some(&bytes), text: &changed, dropped };
            record.write(new, || Ok(replace_file(file, changed.as_bytes())?))
        }
    }
}
