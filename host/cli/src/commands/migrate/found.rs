//! The set-ups of other sandboxes on this machine.

use std::path::{Path, PathBuf};

use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_settings::{Foreign, OldRules, Places, RealDisk, stays_in_project, validate};
use portcullis_settings_format::{BUILT_IN, FileKind};
use serde_json::Value;

use super::extensions::{self, OldExtension};
use crate::commands::take_over::{SOURCES, of_project, read, usual};

/// A sandbox of which something was found.
#[derive(Debug)]
pub(crate) struct Setup {
    /// The sandbox.
    pub(crate) source: Foreign,
    /// Its name for `--from`.
    pub(crate) name: &'static str,
    /// Its extensions in pi.
    pub(crate) extensions: Vec<OldExtension>,
    /// Its settings files that are there.
    pub(crate) files: Vec<OldFile>,
}

/// A settings file of another sandbox.
#[derive(Debug)]
pub(crate) struct OldFile {
    /// The file.
    pub(crate) file: PathBuf,
    /// Whether it is the project's own.
    pub(crate) is_of_project: bool,
    /// Its settings, or the reason why it cannot be read.
    pub(crate) settings: Result<Value, String>,
}

/// The result of the search.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) setups: Vec<Setup>,
    /// Extensions of unknown sandboxes that register the same flag.
    pub(crate) strangers: Vec<OldExtension>,
}

/// Looks for all set-ups, or for that of one sandbox.
pub(crate) fn find(around: &ProcessEnv, places: &Places, only: Option<Foreign>) -> Found {
    let (known, strangers): (Vec<_>, Vec<_>) = extensions::find(&places.agent_directory, &places.workspace)
        .into_iter()
        .partition(|old| old.source().is_some());
    let mut setups = Vec::new();
    for (name, source) in SOURCES {
        let extensions: Vec<_> = known.iter().filter(|old| old.source() == Some(source)).cloned().collect();
        let is_wanted = match only {
            Some(only) => only == source,
            // It is not an extension of pi, so its settings do not concern pi.
            None => source != Foreign::Srt,
        };
        let files =
            if is_wanted { files(around, places, source, !extensions.is_empty()) } else { Vec::new() };
        if is_wanted && !(extensions.is_empty() && files.is_empty()) {
            setups.push(Setup { source, name, extensions, files });
        }
    }
    if only.is_none() {
        share_project_file(&mut setups);
    }
    Found { setups, strangers }
}

/// Two sandboxes use the same file name in a project. It counts for the one that also has an extension or a file of the
/// user; if neither has, for `sysid`.
fn share_project_file(setups: &mut Vec<Setup>) {
    let has_own =
        |setup: &Setup| !setup.extensions.is_empty() || setup.files.iter().any(|file| !file.is_of_project);
    let shares = |setup: &Setup| matches!(setup.source, Foreign::Sysid | Foreign::PiSandbox);
    let is_anyones = setups.iter().any(|setup| shares(setup) && has_own(setup));
    setups
        .retain(|setup| !shares(setup) || has_own(setup) || (!is_anyones && setup.source == Foreign::Sysid));
}

fn files(around: &ProcessEnv, places: &Places, source: Foreign, has_extension: bool) -> Vec<OldFile> {
    let users = usual(around, places, source).into_iter().map(|file| (file, false));
    let all = users.chain(of_project(places, source).map(|file| (file, true)));
    let there = all.filter(|(file, _)| file.symlink_metadata().is_ok());
    let file = |(file, is_of_project): (PathBuf, bool)| {
        let inside = if is_of_project { stays_in_project(&file, places, &RealDisk) } else { Ok(()) };
        let settings = inside.map_err(anyhow::Error::new).and_then(|()| read(&file, source));
        let settings = match settings {
            Ok(Some(settings)) => Ok(settings),
            Ok(None) => return None,
            Err(error) => Err(format!("{error:#}")),
        };
        let is_its = match (source, &settings) {
            (Foreign::Bosun, Ok(settings)) => source.recognises(settings),
            // Many programs have a `config.toml`, so one that cannot be read proves nothing.
            (Foreign::Bosun, Err(_)) => has_extension,
            // These files are our own settings as well. If they are usable and the old extension is gone, nothing is left
            // to do.
            (Foreign::Oddsjam, _) => has_extension || !is_usable(&file),
            _ => true,
        };
        let is_short = |settings: Value| ensure_short(&file, source.rules_of(&settings)).map(|()| settings);
        let settings = settings.and_then(|settings| is_short(settings).map_err(|error| format!("{error:#}")));
        is_its.then_some(OldFile { file, is_of_project, settings })
    };
    there.filter_map(file).collect()
}

/// The most entries of all lists together. An agent may have written a project's file, and each entry is compared with
/// each other one.
const MOST_ENTRIES: usize = 1000;

/// Returns an error if the lists are too long; the lists of each project count for themselves.
fn ensure_short(file: &Path, settings: &Value) -> anyhow::Result<()> {
    let of_projects = settings.as_object().filter(|_| kind_of(file) == FileKind::Projects);
    let longest = match of_projects {
        Some(projects) => projects.values().map(entries).max().unwrap_or(0),
        None => entries(settings),
    };
    anyhow::ensure!(
        longest <= MOST_ENTRIES,
        "the lists in `{}` have more than {MOST_ENTRIES} entries",
        file.display()
    );
    Ok(())
}

/// Returns the number of entries of all lists.
fn entries(settings: &Value) -> usize {
    match settings {
        Value::Array(items) => items.iter().map(|item| entries(item).max(1)).sum(),
        Value::Object(members) => members.values().map(entries).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Returns true if a settings file in our own place and shape can be used as it is.
pub(crate) fn is_usable(file: &Path) -> bool {
    validate(file, kind_of(file), &RealDisk).mistakes.is_empty()
}

/// Returns the kind of a file in our own place.
pub(crate) fn kind_of(file: &Path) -> FileKind {
    if file.ends_with("projects.json") { FileKind::Projects } else { FileKind::Settings }
}

impl Setup {
    /// Returns its rules in a project, or `None` if no settings of it can be read.
    pub(crate) fn rules(&self, around: &ProcessEnv, places: &Places) -> Option<OldRules> {
        let settings = |is_of_project: bool| {
            let mut files = self.files.iter().filter(move |file| file.is_of_project == is_of_project);
            files.find_map(|file| file.settings.as_ref().ok())
        };
        let settings = match self.source {
            Foreign::Oddsjam => self.longest_entry(places)?,
            Foreign::Bosun => self.source.complete(settings(true)?),
            Foreign::Sysid | Foreign::PiSandbox | Foreign::Srt => {
                let users = settings(false).cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
                self.source.merged(&users, settings(true).unwrap_or(&Value::Null))
            }
        };
        Some(OldRules::new(self.source, &settings, &around.home, &places.workspace))
    }

    /// Returns the settings that `@oddsjam/pi-sandbox` uses: the entry with the longest path, or those for all.
    fn longest_entry(&self, places: &Places) -> Option<Value> {
        let of = |name: &str| {
            let file = self.files.iter().find(|file| file.file.ends_with(name))?;
            file.settings.as_ref().ok()
        };
        let project = places.workspace.canonicalize().unwrap_or_else(|_| places.workspace.clone());
        let entries = of("projects.json").and_then(Value::as_object).into_iter().flatten();
        let entry = entries.filter(|(key, _)| project.starts_with(key)).max_by_key(|(key, _)| key.len());
        let settings = entry.map(|(_, settings)| settings).or_else(|| of("default.json")).cloned();
        settings.or_else(|| serde_json::from_str(BUILT_IN).ok())
    }
}
