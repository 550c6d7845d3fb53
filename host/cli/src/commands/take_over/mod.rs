//! Conversion of another sandbox's settings, shared by `config import` and `migrate`.

pub(crate) mod project_file;
pub(crate) mod written;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_settings::{
    Disk, Foreign, ImportRecord, Imported, Places, RealDisk, Store, read_foreign, record_import,
    stays_in_project,
};
use portcullis_settings_format::{Change, FileKind};
use serde_json::Value;

/// The conversion of one file.
pub(crate) struct Step {
    pub(crate) from: PathBuf,
    /// The key of the entry in `projects.json`.
    pub(crate) key: Option<String>,
    pub(crate) to: PathBuf,
    pub(crate) kind: FileKind,
    pub(crate) imported: Imported,
}

/// The values of `--from`.
pub(crate) const SOURCES: [(&str, Foreign); 5] = [
    ("oddsjam", Foreign::Oddsjam),
    ("sysid", Foreign::Sysid),
    ("pi-sandbox", Foreign::PiSandbox),
    ("srt", Foreign::Srt),
    ("bosun", Foreign::Bosun),
];

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Not written, because of `--dry-run`.
    Tried,
    /// Written.
    Written,
    /// Already present with the same content.
    Unchanged,
}

/// Returns the paths where a sandbox keeps the user's settings.
pub(crate) fn usual(around: &ProcessEnv, places: &Places, source: Foreign) -> Vec<PathBuf> {
    let agent = &places.agent_directory;
    match source {
        Foreign::Oddsjam => {
            ["default.json", "projects.json"].map(|name| agent.join("sandbox").join(name)).to_vec()
        }
        Foreign::Sysid => vec![agent.join("extensions/sandbox.json")],
        Foreign::PiSandbox => vec![agent.join("sandbox.json")],
        Foreign::Srt => vec![around.home.join(".srt-settings.json")],
        Foreign::Bosun => Vec::new(),
    }
}

/// Returns the path where a project keeps its own settings.
///
/// Only tightening values are imported from it, because an agent may have written it.
pub(crate) fn of_project(places: &Places, source: Foreign) -> Option<PathBuf> {
    match source {
        Foreign::Sysid | Foreign::PiSandbox => Some(places.workspace.join(".pi/sandbox.json")),
        Foreign::Bosun => Some(places.workspace.join("config.toml")),
        Foreign::Oddsjam | Foreign::Srt => None,
    }
}

pub(crate) fn read(file: &Path, source: Foreign) -> anyhow::Result<Option<Value>> {
    if source != Foreign::Bosun {
        return Ok(read_foreign(file, &RealDisk)?);
    }
    let reading = || format!("reading `{}`", file.display());
    match RealDisk.read(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        bytes => {
            let text = String::from_utf8(bytes.with_context(reading)?).with_context(reading)?;
            toml::from_str(&text).with_context(reading).map(Some)
        }
    }
}

/// Returns a step for each project entry, and one for the default settings.
pub(crate) fn of_user(places: &Places, source: Foreign, from: &Path, given: &Value) -> Vec<Step> {
    let step = |key: Option<&String>, given: &Value| Step {
        from: from.to_owned(),
        key: key.cloned(),
        to: places.sandbox_directory().join(if key.is_some() { "projects.json" } else { "default.json" }),
        kind: if key.is_some() { FileKind::Projects } else { FileKind::Settings },
        imported: source.user(given),
    };
    let projects = given.as_object().filter(|members| {
        let is_project = |(key, value): (&String, &Value)| key.starts_with('/') && value.is_object();
        !members.is_empty() && members.iter().all(is_project)
    });
    match projects {
        Some(projects) => projects.iter().map(|(key, given)| step(Some(key), given)).collect(),
        None => vec![step(None, given)],
    }
}

/// A settings file that was converted.
pub(crate) struct Taken<'a> {
    pub(crate) file: &'a Path,
    /// Its settings at the time it was read.
    pub(crate) settings: &'a Value,
    pub(crate) is_of_project: bool,
}

/// Records a converted file, so that later changes of it are reported. `command` converts it again.
pub(crate) fn remember(
    places: &Places,
    taken: &Taken<'_>,
    command: &str,
    source: Foreign,
) -> anyhow::Result<()> {
    let record = ImportRecord {
        file: taken.file.to_owned(),
        command: command.to_owned(),
        project: taken.is_of_project.then(|| places.workspace.clone()),
        settings: source.rules_of(taken.settings).clone(),
    };
    record_import(places, record, &RealDisk).context("remembering what was taken over")
}

pub(crate) fn write(places: &Places, step: &Step, replace: bool) -> anyhow::Result<Outcome> {
    let project = (step.to == places.project_file()).then_some(places.workspace.as_path());
    if project.is_some() {
        stays_in_project(&step.to, places, &RealDisk)?;
    }
    let before = match RealDisk.read(&step.to) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("reading `{}`", step.to.display())),
    };
    let text = match (&step.key, &before) {
        (None, Some(before)) if before == step.imported.text.as_bytes() => return Ok(Outcome::Unchanged),
        (None, _) => step.imported.text.clone(),
        (Some(key), before) => {
            let whole = before.as_ref().map_or("{}\n".into(), |bytes| String::from_utf8_lossy(bytes));
            let known: Value =
                serde_json::from_str(&whole).with_context(|| format!("reading `{}`", step.to.display()))?;
            let wanted: Value =
                serde_json::from_str(&step.imported.text).context("reading the imported settings")?;
            if known.get(key) == Some(&wanted) {
                return Ok(Outcome::Unchanged);
            }
            is_free(
                known.get(key).is_none(),
                replace,
                &format!("`{}` has an entry for `{key}`", step.to.display()),
            )?;
            Change::Copy(vec![key.clone()], step.imported.text.clone()).apply(&whole)?
        }
    };
    if step.key.is_none() {
        is_free(before.is_none(), replace, &format!("`{}` is there already", step.to.display()))?;
    }
    match project {
        Some(project) => project_file::replace(project, &step.to, Some(&text))?,
        None => Store::new(places).replace(&step.to, step.kind, before.as_deref(), &text)?,
    }
    Ok(Outcome::Written)
}

fn is_free(free: bool, replace: bool, what: &str) -> anyhow::Result<()> {
    ensure!(free || replace, "{what}; look at the outcome with `--dry-run` and replace it with `--replace`");
    Ok(())
}
