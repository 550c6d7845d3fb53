//! Turns path entries into patterns over canonical paths.

use std::path::{Path, PathBuf};

use portcullis_decision::devices;
use portcullis_decision::pattern::{FilePattern, GlobText};
use portcullis_settings_format::{ConfigError, Entry, Origin, PathEntry, Problem};

use crate::disk::{Disk, Followed, follow};
use crate::writable::Writable;

/// The characters that make a path a glob.
pub(crate) const GLOB_CHARACTERS: [char; 4] = ['*', '?', '[', '{'];

/// The context in which entries are resolved; all paths are canonical.
#[derive(Clone, Copy)]
pub(crate) struct PathContext<'a> {
    pub(crate) workspace: &'a Path,
    pub(crate) home: &'a Path,
    /// The session's temporary directory, as commands and tools see it.
    pub(crate) temp: &'a Path,
    /// Directories in which links may be the agent's.
    pub(crate) writable: &'a Writable,
    pub(crate) disk: &'a dyn Disk,
}

/// An entry resolved to canonical paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    /// The canonical path, or that of the fixed part of a glob.
    ///
    /// The session's temporary directory keeps the name that commands and tools see.
    pub(crate) base: PathBuf,
    /// All names of `base`: itself and one for each link on the way.
    pub(crate) names: Vec<PathBuf>,
    followed: Followed,
    /// The rest of a glob.
    pub(crate) glob: Option<String>,
    /// A link that may be the agent's and leads elsewhere.
    ///
    /// In that case an entry that allows covers only the link's own name.
    pub(crate) strayed: Option<EscapingLink>,
    /// The text of a glob, taken as a plain path.
    literally: Option<PathBuf>,
    origin: Origin,
}

/// A link that leads out of a place that commands can write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EscapingLink {
    /// The path of the link.
    pub(crate) link: PathBuf,
    /// The path that the entry would open through the link.
    pub(crate) target: PathBuf,
}

/// Commands and users can both make a link to a name that is not UTF-8.
const NOT_UTF8: &str = "a glob cannot start from a path that is not UTF-8";

impl Resolved {
    /// Returns the pattern for a rule that allows.
    pub(crate) fn allowing(&self) -> Result<FilePattern, ConfigError> {
        self.pattern(&self.base)
    }

    /// Returns the patterns for a rule that denies.
    ///
    /// There is one for each name, and the text of a glob as a plain path, because a file can really be named
    /// `[x].env`.
    pub(crate) fn denying(&self) -> Result<Vec<FilePattern>, ConfigError> {
        let mut patterns = Vec::new();
        for name in &self.names {
            // A glob pattern must be UTF-8. The directory itself is denied instead, which includes all matches.
            let has_no_pattern = self.glob.is_some() && name.to_str().is_none();
            patterns.push(if has_no_pattern { FilePattern::Tree(name.clone()) } else { self.pattern(name)? });
        }
        patterns.extend(self.literally.clone().map(FilePattern::Tree));
        Ok(patterns)
    }

    /// Returns the links on the path that commands could redirect.
    ///
    /// With a redirected link, programs that use the name, and these settings when they are read again, would no longer
    /// find the denied file.
    pub(crate) fn movable_links(&self, writable: &Writable) -> Vec<FilePattern> {
        let links = self.followed.links.iter().map(|link| &link.at).filter(|link| writable.holds(link));
        links.cloned().map(FilePattern::Exact).collect()
    }

    fn pattern(&self, base: &Path) -> Result<FilePattern, ConfigError> {
        let Some(glob) = &self.glob else { return Ok(FilePattern::Tree(base.to_owned())) };
        let Some(base) = base.to_str() else { return Err(pattern_error(&self.origin, NOT_UTF8)) };
        let text = format!("{}/{glob}", escape(base.trim_end_matches('/')));
        GlobText::parse(&text)
            .map(FilePattern::Glob)
            .map_err(|error| pattern_error(&self.origin, &error.to_string()))
    }
}

impl PathContext<'_> {
    /// Resolves an entry that denies: expands `~` and relative paths, and follows links.
    ///
    /// A link's target is denied in any case, even if the agent made the link.
    pub(crate) fn resolve(&self, entry: &Entry<PathEntry>) -> Result<Resolved, ConfigError> {
        let written = &entry.value;
        let whole = self.expand(&written.text);
        let trimmed = match written.text.strip_suffix("/**") {
            Some(text) if !written.literal && !text.is_empty() => self.expand(text),
            _ => whole.clone(),
        };
        let is_glob = |path: &Path| path.to_string_lossy().contains(GLOB_CHARACTERS);
        if written.literal || !is_glob(Path::new(written.text.trim_end_matches("/**"))) {
            let path = if written.literal { &whole } else { &trimmed };
            return self.follow(path, None, &entry.origin);
        }
        let (base, glob) = split(&written.text);
        if glob.split('/').any(|name| name == "..") {
            return Err(pattern_error(&entry.origin, "`..` cannot follow a glob"));
        }
        let mut resolved = self.follow(&self.expand(&base), Some(glob), &entry.origin)?;
        resolved.literally = Some(self.follow(&whole, None, &entry.origin)?.base);
        Ok(resolved)
    }

    /// Resolves an entry that allows. A link that the agent may have made is not followed out of its directory.
    ///
    /// An absolute literal path is a stored answer. It had no link in it when the user gave the answer, so no link in
    /// it is followed.
    pub(crate) fn resolve_to_open(&self, entry: &Entry<PathEntry>) -> Result<Resolved, ConfigError> {
        let mut resolved = self.resolve(entry)?;
        if self.is_temp(entry) {
            self.temp.clone_into(&mut resolved.base);
            return Ok(resolved);
        }
        let is_kept = entry.value.literal && Path::new(&entry.value.text).is_absolute();
        let link = match resolved.followed.links.first() {
            Some(first) if is_kept => Some(first),
            _ => self.writable.strayed(&resolved.followed),
        };
        if let Some(link) = link {
            let target = std::mem::replace(&mut resolved.base, link.name.clone());
            resolved.strayed = Some(EscapingLink { link: link.at.clone(), target });
        }
        Ok(resolved)
    }

    /// Returns true if an entry names the session's temporary directory.
    ///
    /// The machine's own directory of that name is not meant.
    fn is_temp(&self, entry: &Entry<PathEntry>) -> bool {
        let text = &entry.value.text;
        self.expand(text.strip_suffix("/**").unwrap_or(text)) == self.temp
    }

    /// Returns why an entry has no effect on the current disk, or `None` if it has one.
    ///
    /// Without this a command could make the settings invalid by changing a path.
    pub(crate) fn opens_nothing(&self, entry: &Entry<PathEntry>) -> Option<&'static str> {
        let resolved = self.resolve_to_open(entry).ok()?;
        (resolved.glob.is_some() && resolved.base.to_str().is_none()).then_some(NOT_UTF8)
    }

    /// Returns why commands do not get the device that an entry lets them write to, or `None` if they do, or it is none.
    pub(crate) fn gives_no_device(&self, entry: &Entry<PathEntry>) -> Option<&'static str> {
        let resolved = self.resolve_to_open(entry).ok().filter(|resolved| resolved.glob.is_none())?;
        let is_special = resolved.base.starts_with("/dev") && !devices::is_for_all(&resolved.base);
        let is_missing = || self.disk.look(&resolved.base).is_err();
        match devices::can_be_given(&resolved.base) {
            true => is_missing().then_some("this machine has no such device"),
            false => is_special
                .then_some("commands can get graphics cards, /dev/kvm and /dev/fuse, no other devices"),
        }
    }

    fn expand(&self, text: &str) -> PathBuf {
        match text.strip_prefix('~') {
            Some(rest) => self.home.join(rest.trim_start_matches('/')),
            None => self.workspace.join(text),
        }
    }

    fn follow(&self, path: &Path, glob: Option<String>, origin: &Origin) -> Result<Resolved, ConfigError> {
        let followed = follow(path, self.disk).map_err(|error| pattern_error(origin, &error.to_string()))?;
        Ok(Resolved {
            base: followed.canonical.clone(),
            names: followed.all().cloned().collect(),
            followed,
            glob,
            strayed: None,
            literally: None,
            origin: origin.clone(),
        })
    }
}

/// Splits a glob into its fixed directory and the rest.
fn split(text: &str) -> (String, String) {
    let rooted = text.starts_with('/');
    let names: Vec<&str> = text.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    let fixed = names.iter().take_while(|name| !name.contains(GLOB_CHARACTERS)).count();
    let (base, glob) = names.split_at_checked(fixed).unwrap_or((&[], &names));
    (format!("{}{}", if rooted { "/" } else { "" }, base.join("/")), glob.join("/"))
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if "*?[]{}!\\,".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

pub(crate) fn pattern_error(origin: &Origin, reason: &str) -> ConfigError {
    ConfigError::Invalid {
        file: origin.file.clone(),
        at: origin.at,
        pointer: origin.pointer.clone(),
        problem: Problem::BadValue { field: origin.pointer.clone(), reason: reason.to_owned() },
    }
}
