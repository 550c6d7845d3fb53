//! Finds the settings that apply to a working directory.

use std::path::{Path, PathBuf};

use crate::disk::{Disk, follow};
use crate::entries::Entries;
use crate::error::{ConfigError, Problem, shown};
use crate::json::{Fault, Member, Node, Value};
use crate::layered;
use crate::layout::{Layout, SettingsFiles};
use crate::old_settings::{self, OldFile};
use crate::places::{Places, absolute, canonical};
use crate::settings::{BUILT_IN, Settings, invalid};
use crate::tighten::{Layer, Tightening};

/// Settings with their sources.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The user's settings.
    pub settings: Settings,
    /// The source of the user's settings.
    pub source: Source,
    /// Settings of the machine and the project. They can only tighten.
    pub layers: Vec<Tightening>,
    /// The user's settings files in the chosen layout.
    pub files: SettingsFiles,
    /// All files that were looked up, whether they exist or not.
    ///
    /// If one of them changes, the settings must be read again.
    pub watched: Vec<PathBuf>,
    /// Settings files of other sandboxes, which are not read.
    pub old: Vec<OldFile>,
    /// The documents, for the report on the origin of each value.
    pub(crate) documents: Vec<Document>,
}

/// A checked document, before it is decoded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Document {
    pub(crate) layer: Layer,
    pub(crate) file: PathBuf,
    pub(crate) pointer: String,
    pub(crate) node: Node,
}

/// The source of the user's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The file named on the command line.
    Named(PathBuf),
    /// An entry of `projects.json`.
    Project {
        /// The file.
        file: PathBuf,
        /// The entry's key, as written.
        key: String,
    },
    /// `default.json`.
    Default(PathBuf),
    /// The layers of the layered layout.
    Layered {
        /// The user's file for all projects. It may be missing.
        file: PathBuf,
        /// The key of the entry of `layered.json` that applies, if there is one.
        key: Option<String>,
    },
    /// The built-in settings, because no file exists.
    BuiltIn,
}

impl Source {
    /// Returns the file, if there is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Named(file)
            | Self::Default(file)
            | Self::Project { file, .. }
            | Self::Layered { file, .. } => Some(file),
            Self::BuiltIn => None,
        }
    }
}

/// Finds and reads the settings for [`Places::workspace`].
///
/// The file named on the command line replaces the user's settings. Otherwise they are the entry of `projects.json`
/// with the longest path that contains the workspace (merged with the settings it extends), else `default.json`, else
/// the built-in settings. If `default.json` chooses the layered layout, the files of that layout are read instead. The
/// files of the machine and the project are always read.
///
/// # Errors
/// When one of these files exists but cannot be used. There is no fallback to another file in that case.
pub fn discover(places: &Places, disk: &dyn Disk) -> Result<Found, ConfigError> {
    absolute(&places.agent_directory, "the agent's directory")?;
    let workspace = places.canonical_workspace(disk)?;
    let mut watched = Vec::new();
    let files = match &places.settings {
        Some(_) => SettingsFiles::in_layout(places, Layout::Projects),
        None => SettingsFiles::of(places, disk)?,
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
        layered::names_at_every_depth(&mut settings.filesystem.deny_write);
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
    let old = match &places.settings {
        // With a file named on the command line, no warning is needed: the user knows which file applies.
        Some(_) => Vec::new(),
        None => old_settings::find(places, files.layout, disk)?,
    };
    watched.extend(old.iter().map(|old| old.file.clone()));
    Ok(Found { settings, source, layers, files, watched, old, documents })
}

/// Returns the files that can only tighten.
pub(crate) fn tightening_files(places: &Places, layout: Layout) -> Vec<(PathBuf, Layer)> {
    let mut files = vec![(places.machine_file(), Layer::Machine), (places.project_file(), Layer::Project)];
    if layout == Layout::Layered {
        files.push((places.layered_project_file(), Layer::Sandbox));
    }
    files
}

impl Document {
    fn read(text: &str, file: &Path, layer: Layer) -> Result<Self, ConfigError> {
        let node = crate::json::read(text).map_err(|fault| invalid(file, fault))?;
        Ok(Self { layer, file: file.to_owned(), pointer: String::new(), node })
    }
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
    let document = crate::json::read(text).map_err(|fault| invalid(file, fault))?;
    let Some(member) = entry_that_holds(&document, file, places, disk)? else { return Ok(None) };
    let entries = Entries { document: &document, files: &files, places, disk };
    let document = Document {
        layer: Layer::User,
        file: file.to_owned(),
        pointer: crate::check::step("", &member.key),
        node: entries.complete(member)?,
    };
    Ok(Some((document, member.key.clone())))
}

/// Returns the entry with the longest path that contains the workspace.
///
/// A key whose path reaches the workspace through a link inside a project is an error: the agent of that project may
/// have made the link. Neither using the entry nor skipping it is safe, since each could loosen the user's settings. A
/// key through a link inside the workspace itself is skipped: it names a subdirectory, wherever the link leads at the
/// moment.
pub(crate) fn entry_that_holds<'a>(
    document: &'a Node,
    file: &Path,
    places: &Places,
    disk: &dyn Disk,
) -> Result<Option<&'a Member>, ConfigError> {
    closest_entry(document, file, places, disk, None)
}

/// Returns the entry of the closest directory above the one that `key` names.
///
/// Only entries whose path contains the workspace count.
pub(crate) fn entry_above<'a>(
    document: &'a Node,
    file: &Path,
    places: &Places,
    disk: &dyn Disk,
    key: &str,
) -> Result<Option<&'a Member>, ConfigError> {
    let below = canonical(Path::new(key), disk)?;
    closest_entry(document, file, places, disk, Some(&below))
}

fn closest_entry<'a>(
    document: &'a Node,
    file: &Path,
    places: &Places,
    disk: &dyn Disk,
    below: Option<&Path>,
) -> Result<Option<&'a Member>, ConfigError> {
    let Value::Object(members) = &document.value else {
        let fault = crate::check::wrong_type(document, "the whole file", "an object".to_owned());
        return Err(invalid(file, fault));
    };
    let workspace = places.canonical_workspace(disk)?;
    let homes = places.canonical_homes(disk)?;
    let fault = |member: &Member, problem| invalid(file, key_fault(member, problem));
    let mut best: Option<(Key, &Member)> = None;
    for member in members {
        let key = project_key(member, disk).map_err(|problem| fault(member, problem))?;
        let is_above = |path: &Path| path.starts_with(&key.path) && path != key.path;
        if below.is_some_and(|path| !is_above(path)) {
            continue;
        }
        if !workspace.starts_with(&key.path) || key.links.iter().any(|link| is_in(link, &workspace, places)) {
            continue;
        }
        match &best {
            Some((known, _)) if known.path == key.path => match (known.doubt(&homes), key.doubt(&homes)) {
                (None, None) => {
                    let other = best.map(|(_, other)| other.key.as_str()).unwrap_or_default();
                    return Err(fault(member, same_directory(member, other)));
                }
                (Some(_), None) => best = Some((key, member)),
                (_, Some(_)) => {}
            },
            Some((known, _)) if known.path.starts_with(&key.path) => {}
            _ => best = Some((key, member)),
        }
    }
    let Some((key, member)) = best else { return Ok(None) };
    match key.doubt(&homes) {
        None => Ok(Some(member)),
        Some(link) => {
            let reason = format!(
                "it leads here through the link `{}`, which an agent may have made; write `{}` in its place if that \
                 is meant, or remove the link",
                shown(&link.to_string_lossy()),
                shown(&key.path.to_string_lossy())
            );
            Err(fault(member, Problem::BadValue { field: member.key.clone(), reason }))
        }
    }
}

/// Returns true if a link lies inside the workspace and is not on the path by which the session entered it.
fn is_in(link: &Path, workspace: &Path, places: &Places) -> bool {
    link.starts_with(workspace) && !places.workspace.starts_with(link)
}

/// The directory that a key of `projects.json` names.
#[derive(Debug)]
pub(crate) struct Key {
    /// The canonical path.
    pub(crate) path: PathBuf,
    /// Links on the path.
    pub(crate) links: Vec<PathBuf>,
}

impl Key {
    /// Returns the first link on the path that an agent could have made.
    ///
    /// Links directly in a home directory or in a directory above one are trusted, since no project that an agent would
    /// work in lies there.
    fn doubt(&self, homes: &[PathBuf]) -> Option<&Path> {
        let is_doubtful = |link: &&PathBuf| {
            link.parent().is_none_or(|around| !homes.iter().any(|home| home.starts_with(around)))
        };
        self.links.iter().find(is_doubtful).map(PathBuf::as_path)
    }
}

pub(crate) fn same_directory(member: &Member, other: &str) -> Problem {
    let reason = format!("it is the same directory as `{}`", shown(other));
    Problem::BadValue { field: member.key.clone(), reason }
}

/// Reads a key of `projects.json`.
///
/// A key that is not an absolute path is an error: it would never match, and the user would rely on rules without
/// effect.
pub(crate) fn project_key(member: &Member, disk: &dyn Disk) -> Result<Key, Problem> {
    let bad = |reason: String| Problem::BadValue { field: member.key.clone(), reason };
    let path = Path::new(&member.key);
    if !path.is_absolute() {
        return Err(bad("a project is named by its absolute path".to_owned()));
    }
    let followed = follow(path, disk).map_err(|error| bad(error.to_string()))?;
    Ok(Key { path: followed.canonical, links: followed.links.into_iter().map(|link| link.at).collect() })
}

pub(crate) fn key_fault(member: &Member, problem: Problem) -> Fault {
    Fault { at: member.key_at, pointer: crate::check::step("", &member.key), problem }
}

/// Checks that `file` resolves to a path inside the workspace.
///
/// Otherwise a project could have any file of the user parsed, and parts of it shown in the error.
pub(crate) fn stays_inside(file: &Path, workspace: &Path, disk: &dyn Disk) -> Result<(), ConfigError> {
    if canonical(file, disk)?.starts_with(workspace) {
        return Ok(());
    }
    Err(ConfigError::Unusable {
        file: file.to_owned(),
        problem: "lead out of the project through a link, replace the link by a plain file",
    })
}

pub(crate) fn read(file: &Path, disk: &dyn Disk) -> Result<Option<String>, ConfigError> {
    let source = match disk.read(file) {
        Ok(bytes) => {
            return String::from_utf8(bytes).map(Some).map_err(|_| ConfigError::Unusable {
                file: file.to_owned(),
                problem: "are not UTF-8 text, save them in that encoding",
            });
        }
        Err(source) => source,
    };
    if source.kind() != std::io::ErrorKind::NotFound {
        return Err(ConfigError::Read { file: file.to_owned(), source });
    }
    let followed =
        follow(file, disk).map_err(|source| ConfigError::Path { path: file.to_owned(), source })?;
    if followed.dangling {
        return Err(ConfigError::Unusable {
            file: file.to_owned(),
            problem: "lie behind a link that leads nowhere, mend or remove the link",
        });
    }
    Ok(None)
}
