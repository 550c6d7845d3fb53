//! Stores, lists and revokes answers in the settings files.

use std::path::{Path, PathBuf};

use portcullis_decision::Grant;
use portcullis_decision::pattern::NetworkPattern;
use portcullis_settings_format::json::{Member, Node, Value};
use portcullis_settings_format::pointer::step;
use portcullis_settings_format::{BUILT_IN, Change, ConfigError, EXTENDS, Extends, FileKind, Layout, Origin};
use portcullis_text::tilde;
use serde_json::Value as Json;

use crate::disk::{Disk, RealDisk};
use crate::entries::{self, Entries};
use crate::found::{FoundSettings, Source};
use crate::grant_changes::{self, AllowLists, Denial, GrantFile, Seed};
use crate::places::{Places, canonical};
use crate::settings_files::SettingsFiles;
use crate::store::{Store, StoreError, Writer};
use crate::{discover, project_keys, settings_text};

/// An item of a settings file that allows something.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptGrant {
    /// Eight hexadecimal digits, which stay the same as long as the entry exists.
    pub id: String,
    /// The entry of `projects.json` (or `layered.json`) that contains it; `None` if it applies to all projects.
    pub project: Option<String>,
    /// The list that contains it, such as `filesystem.allowRead`.
    pub list: String,
    /// The item.
    pub value: Json,
    /// Time of expiry, in seconds since 1970-01-01 UTC; 0 means never.
    pub expires_at: u32,
    /// Where it was written.
    pub origin: Origin,
    #[serde(skip)]
    kind: FileKind,
    #[serde(skip)]
    way: Vec<String>,
    /// The file with one entry per project.
    #[serde(skip)]
    entries: (PathBuf, FileKind),
}

/// The resource that an item allows, as far as its text shows.
enum Allowed {
    /// A path and all paths below it, or only that path.
    Path { path: PathBuf, exact: bool },
    /// A host.
    Host(NetworkPattern),
}

impl KeptGrant {
    /// Returns true if this allows all or part of the resource of `other`.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        match (self.allowed(), other.allowed()) {
            (Some(Allowed::Path { path, exact }), Some(Allowed::Path { path: other, .. })) => {
                path == other || !exact && other.starts_with(&path)
            }
            (Some(Allowed::Host(own)), Some(Allowed::Host(other))) => {
                crate::narrow::common(&own, &other).as_ref() == Some(&other)
            }
            _ => false,
        }
    }

    fn allowed(&self) -> Option<Allowed> {
        let text = |key: &str| self.value.get(key).and_then(Json::as_str).or(self.value.as_str());
        match self.list.as_str() {
            "network.allowedDomains" => NetworkPattern::parse(text("")?).ok().map(Allowed::Host),
            "filesystem.allowRead" | "filesystem.allowWrite" => {
                Some(Allowed::Path { path: text("path")?.into(), exact: false })
            }
            _ => match (text("path"), text("connect")) {
                (Some(path), _) => {
                    let exact = self.value.get("exact") == Some(&true.into());
                    Some(Allowed::Path { path: path.into(), exact })
                }
                (None, connect) => NetworkPattern::parse(connect?).ok().map(Allowed::Host),
            },
        }
    }

    /// Returns the permission in words, such as `reading ~/notes`; `home` is the home directory.
    #[must_use]
    pub fn in_words(&self, home: &str) -> String {
        let item = item_in_words(&self.value, home);
        match self.list.as_str() {
            PRESETS => format!("preset {item}"),
            "network.allowedDomains" => format!("connections to {item}"),
            "filesystem.allowRead" => format!("reading {item}"),
            "filesystem.allowWrite" => format!("reading and writing {item}"),
            _ => item,
        }
    }

    /// Returns true if this allows a path at or below `top`.
    #[must_use]
    pub fn is_below(&self, top: &Path) -> bool {
        matches!(self.allowed(), Some(Allowed::Path { path, .. }) if path.starts_with(top))
    }
}

/// Returns an item of a list as a person would write it: a literal path as a plain string, an item of `grants` with its
/// rights. Paths in the directory `home` begin with `~`.
#[must_use]
pub fn item_in_words(item: &Json, home: &str) -> String {
    let text = |key: &str| item.get(key).and_then(Json::as_str);
    match (text("path"), text("connect")) {
        (Some(path), _) if item.get("literal").is_some() => tilde(path, home),
        (Some(path), _) => {
            let rights = if text("rights") == Some("write") { "reading and writing" } else { "reading" };
            let is_exact = item.get("exact") == Some(&Json::Bool(true));
            format!("{rights} {}{}", if is_exact { "" } else { "everything below " }, tilde(path, home))
        }
        (None, Some(host)) => format!("connections to {host}"),
        (None, None) => item.as_str().map_or_else(|| item.to_string(), |text| tilde(text, home)),
    }
}

/// The list of presets that are allowed.
const PRESETS: &str = "presets";

/// The lists that hold answers.
const LISTS: [&[&str]; 6] = [
    &[PRESETS],
    &["network", "allowedDomains"],
    &["filesystem", "allowRead"],
    &["filesystem", "allowWrite"],
    &["tools", "allow"],
    &["grants"],
];

/// Returns the places that can store an answer, the narrowest first.
///
/// There are none if the settings file was named on the command line.
///
/// # Errors
/// When the working directory cannot be resolved.
pub fn grant_files(
    found: &FoundSettings,
    places: &Places,
    disk: &dyn Disk,
) -> Result<Vec<GrantFile>, ConfigError> {
    let workspace = places.canonical_workspace(disk)?;
    Ok(match &found.source {
        Source::Named(_) => Vec::new(),
        Source::Project { key, .. } | Source::Layered { key: Some(key), .. } => {
            let exact = canonical(key.as_ref(), disk)? == workspace;
            let mut grant_files = vec![GrantFile::Entry { key: key.clone(), exact }];
            if !exact {
                grant_files.push(GrantFile::NewEntry { key: workspace, seed: Seed::Parent });
            }
            grant_files.push(GrantFile::Default);
            grant_files
        }
        Source::Default(_) | Source::BuiltIn | Source::Layered { key: None, .. } => {
            vec![GrantFile::NewEntry { key: workspace, seed: Seed::Default }, GrantFile::Default]
        }
    })
}

/// Stores an answer, unless it is stored there already.
///
/// # Errors
/// When the file cannot be written, or no settings file can hold the answer. Nothing is changed in these cases.
pub fn keep(
    store: &Store,
    places: &Places,
    grant_file: &GrantFile,
    grant: &Grant,
    lists: AllowLists,
) -> Result<(), StoreError> {
    put(store, places, grant_file, lists, &|top, lists| grant_changes::keeping(grant, top, lists))
}

/// Allows a preset, unless it is allowed there already.
///
/// # Errors
/// As for [`keep`].
pub fn keep_preset(
    store: &Store,
    places: &Places,
    grant_file: &GrantFile,
    name: &str,
) -> Result<(), StoreError> {
    let change = |top: &[String], _| {
        Some(Change::Append([top, &[PRESETS.to_owned()]].concat(), Json::String(name.to_owned())))
    };
    put(store, places, grant_file, AllowLists::Unheard, &change)
}

/// Denies a host or a path, unless it is denied there already.
///
/// # Errors
/// As for [`keep`].
pub fn keep_denial(
    store: &Store,
    places: &Places,
    grant_file: &GrantFile,
    denial: &Denial,
) -> Result<(), StoreError> {
    let change = |top: &[String], _| {
        let (list, item) = denial.item()?;
        let list = list.split('.').map(str::to_owned).collect::<Vec<_>>();
        Some(Change::Append([top, &list].concat(), item))
    };
    put(store, places, grant_file, AllowLists::Unheard, &change)
}

/// Returns the change that records an answer in the settings at a path.
type MakeChange<'a> = &'a dyn Fn(&[String], AllowLists) -> Option<Change>;

fn put(
    store: &Store,
    places: &Places,
    grant_file: &GrantFile,
    lists: AllowLists,
    change: MakeChange<'_>,
) -> Result<(), StoreError> {
    // Hold the lock until all is written: another process could create the entry for this project in between, which
    // would then lack the answer.
    let writer = store.begin()?;
    let files = SettingsFiles::find(places, &RealDisk).map_err(StoreError::broken)?;
    // Do not use the allow lists here: a list in the user's file would replace the built-in one and allow less than
    // before.
    let lists = if files.layout == Layout::Layered { AllowLists::Unheard } else { lists };
    match grant_file {
        GrantFile::Entry { key, .. } => entry(&writer, places, &files, key, lists, change),
        GrantFile::NewEntry { key, .. } => match key.to_str() {
            Some(key) => entry(&writer, places, &files, key, lists, change),
            None => Err(StoreError::NotKept),
        },
        GrantFile::Default => {
            // The lists of `default.json` do not apply beside a complete entry, but its `grants` do.
            let lists = if has_complete_entries(&files)? { AllowLists::Unheard } else { lists };
            let usual = begins_as(files.layout);
            let change = |text: Option<&str>| kept(text.unwrap_or(usual), &files.default, change(&[], lists));
            writer.change(&files.default, files.default_kind(), change).map(drop)
        }
    }
}

fn entry(
    writer: &Writer,
    places: &Places,
    files: &SettingsFiles,
    key: &str,
    lists: AllowLists,
    change: MakeChange<'_>,
) -> Result<(), StoreError> {
    let change = |text: Option<&str>| {
        let text = text.unwrap_or("{}\n");
        // Another process may have removed the entry.
        let text = with_entry(text, files, places, key)?;
        let text = as_differences(&text, files, places, key)?;
        kept(&text, &files.entries, change(&[key.to_owned()], lists))
    };
    writer.change(&files.entries, files.entries_kind(), change).map(drop)
}

/// Returns the initial text of the file for all projects.
pub(crate) fn begins_as(layout: Layout) -> &'static str {
    match layout {
        Layout::Projects => BUILT_IN,
        Layout::Layered => "{}\n",
    }
}

/// Adds an entry at `key` if there is none.
///
/// It only says what it extends: the entry above it, or `default.json`. In the layered layout, where entries are always
/// added to the settings for all projects, it is a copy of the entry above it.
///
/// # Errors
/// When the change does not fit.
pub(crate) fn with_entry(
    text: &str,
    files: &SettingsFiles,
    places: &Places,
    key: &str,
) -> Result<String, StoreError> {
    let file = files.entries.as_path();
    let document = portcullis_settings_format::json::read(text)
        .map_err(|fault| StoreError::broken(portcullis_settings_format::fault::invalid(file, fault)))?;
    if document.member(key).is_some() {
        return Ok(text.to_owned());
    }
    let above =
        project_keys::entry_that_holds(&document, file, places, &RealDisk).map_err(StoreError::broken)?;
    let begins = match (files.layout, above) {
        (Layout::Layered, None) => begins_as(files.layout).to_owned(),
        (Layout::Layered, Some(above)) => outdented(text.get(above.node.span.clone()).unwrap_or_default()),
        (Layout::Projects, None) => Extends::Default.begins_as().to_owned(),
        (Layout::Projects, Some(_)) => Extends::Parent.begins_as().to_owned(),
    };
    Change::Copy(vec![key.to_owned()], begins).apply(text).map_err(|error| StoreError::edit(file, error))
}

/// Turns a complete entry into one of differences if this does not change its meaning.
///
/// The entry must have all values that it would extend. Earlier versions created such copies for answers.
fn as_differences(
    text: &str,
    files: &SettingsFiles,
    places: &Places,
    key: &str,
) -> Result<String, StoreError> {
    let file = files.entries.as_path();
    let document = portcullis_settings_format::json::read(text)
        .map_err(|fault| StoreError::broken(portcullis_settings_format::fault::invalid(file, fault)))?;
    let member = document.members().iter().find(|member| member.key == key);
    let Some(member) = member.filter(|member| Extends::from_entry(&member.node).is_none()) else {
        return Ok(text.to_owned());
    };
    if files.layout == Layout::Layered {
        return Ok(text.to_owned());
    }
    let entries = Entries { document: &document, files, places, disk: &RealDisk };
    let is_below = entries.above(member).map_err(StoreError::broken)?.is_some();
    let extends = if is_below { Extends::Parent } else { Extends::Default };
    let below = entries.below(member, extends).map_err(StoreError::broken)?;
    let Some(Json::Object(mut differences)) = entries::differences(&below.to_json(), &member.node.to_json())
    else {
        return Ok(text.to_owned());
    };
    let word = if is_below { "parent" } else { "default" };
    differences.insert(EXTENDS.to_owned(), word.into());
    let change = Change::Set(vec![key.to_owned()], Json::Object(differences));
    change.apply(text).map_err(|error| StoreError::edit(file, error))
}

/// Returns true if a project has a complete entry, so that the lists of `default.json` do not apply to it.
fn has_complete_entries(files: &SettingsFiles) -> Result<bool, StoreError> {
    let text = settings_text::read(&files.entries, &RealDisk).map_err(StoreError::broken)?;
    let Some(text) = text.filter(|_| files.layout == Layout::Projects) else { return Ok(false) };
    let document = portcullis_settings_format::json::read(&text).map_err(|fault| {
        StoreError::broken(portcullis_settings_format::fault::invalid(&files.entries, fault))
    })?;
    Ok(document.members().iter().any(|member| Extends::from_entry(&member.node).is_none()))
}

/// Removes the indentation of the last line from all lines but the first.
pub(crate) fn outdented(text: &str) -> String {
    let last = text.rsplit('\n').next().unwrap_or_default();
    let indent: String = last.chars().take_while(|character| character.is_whitespace()).collect();
    text.split('\n').map(|line| line.strip_prefix(&indent).unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

fn kept(text: &str, file: &Path, change: Option<Change>) -> Result<String, StoreError> {
    let failed = |error| StoreError::edit(file, error);
    change.ok_or(StoreError::NotKept)?.apply(text).map_err(failed)
}

/// Returns all items of the user's settings that allow more than the built-in settings.
///
/// These are the items of `default.json`, of the entry that applies here and of the entries it extends, or of all
/// entries if `all` is set. An item in both `default.json` and an entry is returned once.
///
/// # Errors
/// When a file cannot be used.
pub fn kept_grants(places: &Places, disk: &dyn Disk, all: bool) -> Result<Vec<KeptGrant>, ConfigError> {
    let mut kept = Vec::new();
    let here = project_key_of(places, disk)?;
    let files = SettingsFiles::find(places, disk)?;
    let projects = &files.entries;
    if let Some(text) = settings_text::read(projects, disk)? {
        let document = portcullis_settings_format::json::read(&text)
            .map_err(|fault| portcullis_settings_format::fault::invalid(projects, fault))?;
        let entries = Entries { document: &document, files: &files, places, disk };
        let holding = document.members().iter().find(|member| Some(&member.key) == here.as_ref());
        let holding = holding.map(|member| entries.chain(member)).transpose()?.unwrap_or_default();
        let is_meant = |member: &&Member| all || holding.iter().any(|other| other.key == member.key);
        for member in document.members().iter().filter(is_meant) {
            collect(&mut kept, &files, Some(&member.key), &member.node);
        }
    }
    let default = &files.default;
    if let Some(text) = settings_text::read(default, disk)? {
        let document = portcullis_settings_format::json::read(&text)
            .map_err(|fault| portcullis_settings_format::fault::invalid(default, fault))?;
        let mut for_all = Vec::new();
        collect(&mut for_all, &files, None, &document);
        kept.retain(|own| {
            !for_all.iter().any(|other| (&own.list, &own.value) == (&other.list, &other.value))
        });
        kept.extend(for_all);
    }
    Ok(kept)
}

fn collect(kept: &mut Vec<KeptGrant>, files: &SettingsFiles, project: Option<&str>, settings: &Node) {
    let (file, kind) = match project {
        Some(_) => (&files.entries, files.entries_kind()),
        None => (&files.default, files.default_kind()),
    };
    let top: Vec<String> = project.map(str::to_owned).into_iter().collect();
    for list in LISTS {
        let node = list.iter().try_fold(settings, |node, key| node.member(key));
        let Some(Value::List(items)) = node.map(|node| &node.value) else { continue };
        let way: Vec<String> = top.iter().cloned().chain(list.iter().map(|key| (*key).to_owned())).collect();
        let pointer = way.iter().fold(String::new(), |pointer, key| step(&pointer, key));
        for (index, item) in items.iter().enumerate() {
            let value = item.to_json();
            if is_built_in(list, &value) {
                continue;
            }
            let expires = item.member("expiresAt").and_then(Node::number);
            kept.push(KeptGrant {
                id: id(file, &pointer, &value),
                project: project.map(str::to_owned),
                list: list.join("."),
                expires_at: expires.and_then(|end| u32::try_from(end).ok()).unwrap_or(0),
                value,
                origin: Origin {
                    file: file.to_owned(),
                    pointer: step(&pointer, &index.to_string()),
                    at: item.at,
                },
                kind,
                way: way.clone(),
                entries: (files.entries.clone(), files.entries_kind()),
            });
        }
    }
}

fn is_built_in(list: &[&str], value: &Json) -> bool {
    match list.last() {
        Some(&"allowRead") => matches!(value.as_str(), Some("." | "~/.pi")),
        Some(&"allowWrite") => value.as_str() == Some("."),
        _ => false,
    }
}

/// Returns a short id that stays the same when other entries are added or removed (FNV-1a).
fn id(file: &Path, pointer: &str, value: &Json) -> String {
    let text = format!("{}\0{pointer}\0{value}", file.display());
    let hash =
        text.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{hash:08x}")
}

/// Removes an item that allows something.
///
/// An answer for all projects is also removed from every entry that has a copy of it, since earlier versions stored it
/// twice.
///
/// # Errors
/// When a file cannot be written.
pub fn revoke(store: &Store, grant: &KeptGrant) -> Result<bool, StoreError> {
    let writer = store.begin()?;
    let file = &grant.origin.file;
    let (entries, kind) = &grant.entries;
    let mut changed = false;
    if grant.project.is_none() && entries.exists() {
        changed |=
            writer.change(entries, *kind, |text| without_copies(text.unwrap_or("{}"), entries, grant))?;
    }
    changed |= writer.change(file, grant.kind, |text| {
        let failed = |error| StoreError::edit(file, error);
        Change::Drop(grant.way.clone(), grant.value.clone()).apply(text.unwrap_or("{}")).map_err(failed)
    })?;
    Ok(changed)
}

fn without_copies(text: &str, file: &Path, grant: &KeptGrant) -> Result<String, StoreError> {
    let document = portcullis_settings_format::json::read(text)
        .map_err(|fault| StoreError::broken(portcullis_settings_format::fault::invalid(file, fault)))?;
    let keys = document.members().iter().map(|member| member.key.clone());
    keys.into_iter().try_fold(text.to_owned(), |text, key| {
        let way = std::iter::once(key).chain(grant.way.iter().cloned()).collect();
        let dropped = Change::Drop(way, grant.value.clone()).apply(&text);
        dropped.map_err(|error| StoreError::edit(file, error))
    })
}

/// Returns the key of the entry that applies here.
fn project_key_of(places: &Places, disk: &dyn Disk) -> Result<Option<String>, ConfigError> {
    Ok(match discover(places, disk)?.source {
        Source::Project { key, .. } => Some(key),
        Source::Layered { key, .. } => key,
        Source::Named(_) | Source::Default(_) | Source::BuiltIn => None,
    })
}
