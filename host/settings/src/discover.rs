//! Finds the settings that apply to a working directory.

use std::path::{Path, PathBuf};

use portcullis_settings_format::fault::invalid;
use portcullis_settings_format::{
    BUILT_IN, ConfigError, Layer, Layout, Origin, Position, Settings, Tightening, Warning, name_globs,
};

use crate::disk::Disk;
use crate::entries::Entries;
use crate::found::{Document, FoundSettings, Source};
use crate::places::{Places, absolute};
use crate::project_keys::entry_that_holds;
use crate::settings_files::{SettingsFiles, tightening_files};
use crate::settings_text::{read, stays_inside};
use crate::{agent_definition, allowing, layered, old_settings, presets};

/// Finds and reads the settings for [`Places::workspace`].
///
/// The file named on the command line replaces the user's settings. Otherwise they are the entry of `projects.json`
/// with the longest path that contains the workspace (merged with the settings it extends), else `default.json`, else
/// the built-in settings. If `default.json` chooses the layered layout, the files of that layout are read instead. The
/// files of the machine and the project are always read.
///
/// # Errors
/// When one of these files exists but cannot be used. There is no fallback to another file in that case.
pub fn discover(places: &Places, disk: &dyn Disk) -> Result<FoundSettings, ConfigError> {
    absolute(&places.agent_directory, "the agent's directory")?;
    let workspace = places.canonical_workspace(disk)?;
    let mut watched = Vec::new();
    let files = match &places.settings {
        Some(_) => SettingsFiles::in_layout(places, Layout::Projects),
        None => SettingsFiles::find(places, disk)?,
    };
    let (document, source) = match (&places.settings, files.layout) {
        (Some(file), _) => {
            watched.push(file.clone());
            named(file, disk)?
        }
        (None, Layout::Projects) => by_directory(places, disk, &mut watched)?,
        (None, Layout::Layered) => {
            watched.extend([files.default.clone(), files.entries.clone(), places.default_file()]);
            layered::read(places, &files, disk)?
        }
    };
    let mut settings = Settings::from_node(&document.node, &document.file, &document.pointer)?;
    if files.layout == Layout::Layered {
        name_globs::names_at_every_depth(&mut settings.filesystem.deny_write);
    }
    let mut documents = vec![document];
    if files.layout == Layout::Layered
        && let Some(text) = read(&places.default_file(), disk)?
    {
        documents.push(Document::read(&text, &places.default_file(), Layer::User)?);
    }
    let mut layers = Vec::new();
    for (file, layer) in tightening_files(places, files.layout) {
        if layer != Layer::Machine {
            stays_inside(&file, &workspace, disk)?;
        }
        if let Some(text) = read(&file, disk)? {
            layers.push(Tightening::parse(&text, &file, layer)?);
            documents.push(Document::read(&text, &file, layer)?);
        }
        watched.push(file);
    }
    if let Some(team) = &places.team {
        layers.push(Tightening::parse(&team.settings, &team.file, Layer::Team)?);
        documents.push(Document::read(&team.settings, &team.file, Layer::Team)?);
    }
    let old = match &places.settings {
        // With a file named on the command line, no warning is needed: the user knows which file applies.
        Some(_) => Vec::new(),
        None => old_settings::find(places, files.layout, disk)?,
    };
    watched.extend(old.iter().map(|old| old.file.clone()));
    let (definition, warnings, preset_budgets) = (None, team_warnings(places), Vec::new());
    let mut found = FoundSettings {
        settings,
        source,
        layers,
        files,
        watched,
        old,
        definition,
        warnings,
        preset_budgets,
        documents,
    };
    allowing::apply(&mut found, &places.allow);
    presets::apply(&mut found, places, disk);
    agent_definition::apply(&mut found, places, disk);
    Ok(found)
}

/// Returns the warnings on the bundle of a team.
fn team_warnings(places: &Places) -> Vec<Warning> {
    let warning = |file: &Path, text: &String| {
        let origin = Origin { file: file.to_owned(), pointer: String::new(), at: Position::default() };
        Warning { text: text.clone(), origin }
    };
    places.team.iter().flat_map(|team| team.warnings.iter().map(|text| warning(&team.file, text))).collect()
}

fn named(file: &Path, disk: &dyn Disk) -> Result<(Document, Source), ConfigError> {
    let text = read(file, disk)?.ok_or_else(|| ConfigError::Missing { file: file.to_owned() })?;
    Ok((Document::read(&text, file, Layer::User)?, Source::Named(file.to_owned())))
}

fn by_directory(
    places: &Places,
    disk: &dyn Disk,
    watched: &mut Vec<PathBuf>,
) -> Result<(Document, Source), ConfigError> {
    let (projects, default) = (places.projects_file(), places.default_file());
    watched.extend([projects.clone(), default.clone()]);
    if let Some(text) = read(&projects, disk)?
        && let Some((document, key)) = project_entry(&text, places, disk)?
    {
        return Ok((document, Source::Project { file: projects, key }));
    }
    if let Some(text) = read(&default, disk)? {
        return Ok((Document::read(&text, &default, Layer::User)?, Source::Default(default)));
    }
    Ok((Document::read(BUILT_IN, Path::new("<built in>"), Layer::User)?, Source::BuiltIn))
}

/// Reads the entry with the longest path that contains the workspace, merged with the settings that it extends.
fn project_entry(
    text: &str,
    places: &Places,
    disk: &dyn Disk,
) -> Result<Option<(Document, String)>, ConfigError> {
    let files = SettingsFiles::in_layout(places, Layout::Projects);
    let file = files.entries.as_path();
    let document = portcullis_settings_format::json::read(text).map_err(|fault| invalid(file, fault))?;
    let Some(member) = entry_that_holds(&document, file, places, disk)? else { return Ok(None) };
    let entries = Entries { document: &document, files: &files, places, disk };
    let document = Document {
        layer: Layer::User,
        file: file.to_owned(),
        pointer: portcullis_settings_format::pointer::step("", &member.key),
        node: entries.complete(member)?,
    };
    Ok(Some((document, member.key.clone())))
}
