//! Resolves the user's path lists, and decides which `denyRead` entries close a region and which are explicit denies.

use std::path::{Path, PathBuf};

use portcullis_decision::pattern::FilePattern;
use portcullis_decision::profile::FileRights;
use portcullis_decision::verdict::Effect;
use portcullis_settings_format::error::shown;
use portcullis_settings_format::{ConfigError, Elsewhere, Entry, Layer, Origin, PathEntry, Settings};

use crate::deny_rules::{deny, keep_links};
use crate::disk::DiskEntry;
use crate::pattern::{PathContext, Resolved};
use crate::rule::Rule;

/// Directories that contain only home directories, on any machine.
const HOMES_OF_EVERYBODY: [&str; 3] = ["/home", "/Users", "/root"];

/// The user's path lists, resolved.
#[derive(Debug, Default)]
pub(crate) struct Files {
    pub(crate) closed: Vec<PathBuf>,
    pub(crate) rules: Vec<Rule>,
    /// With the origins of the entries.
    pub(crate) allow_read: Vec<(FilePattern, Origin)>,
    pub(crate) allow_write: Vec<(FilePattern, Origin)>,
}

/// An entry of an allow list.
struct Allowed<'a> {
    entry: &'a Entry<PathEntry>,
    id: String,
    resolved: Resolved,
    rights: FileRights,
}

pub(crate) fn files(
    settings: &Settings,
    around: &PathContext<'_>,
    homes: &[PathBuf],
) -> Result<Files, ConfigError> {
    let filesystem = &settings.filesystem;
    let mut allowed = allowed("filesystem.allowRead", &filesystem.allow_read, READ, around)?;
    allowed.extend(self::allowed("filesystem.allowWrite", &filesystem.allow_write, FileRights::ALL, around)?);
    let mut files = Files::default();
    for allow in &allowed {
        let pattern = allow.resolved.allowing()?;
        let origin = &allow.entry.origin;
        let is_known = |list: &[(FilePattern, Origin)]| list.iter().any(|(known, _)| *known == pattern);
        if allow.rights.write && !is_known(&files.allow_write) {
            files.allow_write.push((pattern.clone(), origin.clone()));
        }
        if !is_known(&files.allow_read) {
            files.allow_read.push((pattern.clone(), origin.clone()));
        }
    }

    let mut covered: Vec<PathBuf> = Vec::new();
    let (mut plain, mut globs, mut links) = (Vec::new(), Vec::new(), Vec::new());
    for (index, entry) in filesystem.deny_read.iter().enumerate() {
        let id = format!("filesystem.denyRead[{index}]");
        let resolved = around.resolve(entry)?;
        links.extend(keep_links(Layer::User, &id, entry, around)?);
        if resolved.glob.is_some() {
            globs.extend(deny(Layer::User, &id, entry, FileRights::ALL, around)?);
            continue;
        }
        covered.extend(resolved.names.iter().cloned());
        if closes(&resolved, &allowed, around.workspace, homes) {
            files.closed.extend(resolved.names);
        } else {
            plain.extend(deny(Layer::User, &id, entry, FileRights::ALL, around)?);
            plain.extend(exceptions(&resolved, &allowed));
        }
    }
    for home in homes.iter().filter(|home| !covered.iter().any(|denied| home.starts_with(denied))) {
        own_home(home, &allowed, &mut files, &mut plain);
    }
    files.closed.extend(elsewhere(filesystem.elsewhere, around)?);
    for (index, entry) in settings.credentials.files.iter().enumerate() {
        let id = format!("credentials.files[{index}]");
        links.extend(keep_links(Layer::User, &id, entry, around)?);
        globs.extend(deny(Layer::User, &id, entry, FileRights::ALL, around)?);
    }
    for (index, entry) in &settings.credentials.source_files {
        let id = format!("credentials.brokered[{index}].source.file");
        links.extend(keep_links(Layer::User, &id, entry, around)?);
        globs.extend(deny(Layer::User, &id, entry, FileRights::ALL, around)?);
    }
    if let Some(entry) = &settings.credentials.signing_key {
        links.extend(keep_links(Layer::User, "credentials.signing.key", entry, around)?);
        globs.extend(deny(Layer::User, "credentials.signing.key", entry, FileRights::ALL, around)?);
    }

    // Sort by depth, shallow rules first: for reads the longest match must win, and the last matching rule wins.
    plain.sort_by_key(|rule| depth(&rule.pattern));
    plain.dedup();
    files.rules = plain;
    files.rules.extend(globs);
    for (index, entry) in filesystem.deny_write.iter().enumerate() {
        let id = format!("filesystem.denyWrite[{index}]");
        files.rules.extend(deny(Layer::User, &id, entry, FileRights::WRITE, around)?);
        links.extend(keep_links(Layer::User, &id, entry, around)?);
    }
    files.rules.extend(links);
    files.closed.sort();
    files.closed.dedup();
    Ok(files)
}

const READ: FileRights = FileRights { read: true, write: false, execute: true };

fn allowed<'a>(
    field: &str,
    entries: &'a [Entry<PathEntry>],
    rights: FileRights,
    around: &PathContext<'_>,
) -> Result<Vec<Allowed<'a>>, ConfigError> {
    let one = |(index, entry): (usize, &'a Entry<PathEntry>)| {
        Ok(Allowed {
            entry,
            id: format!("{field}[{index}]"),
            resolved: around.resolve_to_open(entry)?,
            rights,
        })
    };
    entries.iter().enumerate().map(one).collect()
}

/// Directories at the top of the file system that hold the system: programs, libraries, their settings, and what the
/// sandbox has of its own.
const SYSTEM: [&str; 18] = [
    "bin", "dev", "etc", "gnu", "lib", "lib32", "lib64", "libexec", "libx32", "nix", "opt", "proc", "run",
    "sbin", "snap", "sys", "tmp", "usr",
];

/// Returns the directories that `filesystem.elsewhere` closes.
///
/// A directory that appears at the top later is not among them: only root makes one.
fn elsewhere(word: Elsewhere, around: &PathContext<'_>) -> Result<Vec<PathBuf>, ConfigError> {
    let top = Path::new("/");
    match word {
        Elsewhere::Open => Ok(Vec::new()),
        Elsewhere::Programs => Ok(vec![top.to_owned()]),
        Elsewhere::Closed => {
            let unread = |source| ConfigError::Path { path: top.to_owned(), source };
            let names = around.disk.names(top).map_err(unread)?.into_iter();
            let others = names.filter(|name| !SYSTEM.iter().any(|system| name == system));
            // The target of a link has a name of its own, which counts.
            let is_directory =
                |path: &PathBuf| around.disk.look(path).is_ok_and(|seen| seen == DiskEntry::Other);
            Ok(others.map(|name| top.join(name)).filter(is_directory).collect())
        }
    }
}

/// Returns true if an entry closes a region: it contains the working directory, a home directory or an allowed path.
///
/// An entry inside an allowed path does not, since that path would override it as a region; it is an explicit deny,
/// with exceptions for paths allowed further inside.
fn closes(denied: &Resolved, allowed: &[Allowed<'_>], workspace: &Path, homes: &[PathBuf]) -> bool {
    if is_inside_allowed(&denied.base, allowed) {
        return false;
    }
    let everybody = HOMES_OF_EVERYBODY.iter().map(Path::new);
    let mut held = homes.iter().map(PathBuf::as_path).chain([workspace]).chain(everybody);
    let bases = allowed.iter().map(|allow| allow.resolved.base.as_path());
    held.any(|path| path.starts_with(&denied.base))
        || bases.into_iter().any(|path| path.starts_with(&denied.base))
}

fn is_inside_allowed(path: &Path, allowed: &[Allowed<'_>]) -> bool {
    allowed.iter().any(|allow| path.starts_with(&allow.resolved.base) && path != allow.resolved.base)
}

/// Returns rules for the paths allowed inside an explicit deny.
fn exceptions(denied: &Resolved, allowed: &[Allowed<'_>]) -> Vec<Rule> {
    let inside =
        |allow: &&Allowed<'_>| allow.resolved.glob.is_none() && allow.resolved.base.starts_with(&denied.base);
    let rule = |allow: &Allowed<'_>| Rule {
        layer: Layer::User,
        id: allow.id.clone(),
        pattern: FilePattern::Tree(allow.resolved.base.clone()),
        rights: allow.rights,
        effect: Effect::Allow,
        reason: format!("`{}` is allowed in the settings", shown(&allow.entry.text)),
        origin: Some(allow.entry.origin.clone()),
    };
    allowed.iter().filter(inside).map(rule).collect()
}

/// Denies the caller's own home directory, wherever it lies.
fn own_home(home: &Path, allowed: &[Allowed<'_>], files: &mut Files, plain: &mut Vec<Rule>) {
    if home == Path::new("/") {
        // The account has no home of its own. Closing `/` would close the whole system.
        return;
    }
    if !is_inside_allowed(home, allowed) {
        files.closed.push(home.to_owned());
        return;
    }
    plain.push(Rule {
        layer: Layer::User,
        id: "filesystem.home".to_owned(),
        pattern: FilePattern::Tree(home.to_owned()),
        rights: FileRights::ALL,
        effect: Effect::Deny,
        reason: "it lies in your home directory".to_owned(),
        origin: None,
    });
    let inside = allowed.iter().filter(|allow| allow.resolved.glob.is_none());
    for allow in inside.filter(|allow| allow.resolved.base.starts_with(home)) {
        plain.extend(exceptions(&allow.resolved, std::slice::from_ref(allow)));
    }
}

fn depth(pattern: &FilePattern) -> usize {
    match pattern {
        FilePattern::Exact(path) | FilePattern::Tree(path) => path.components().count(),
        FilePattern::Glob(_) | FilePattern::Name { .. } => usize::MAX,
    }
}
