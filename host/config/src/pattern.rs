//! Turns path entries into patterns over canonical paths.

use std::path::{Path, PathBuf};

use portcullis_decision::pattern::{FilePattern, GlobText};

use crate::discover::Found;
use crate::disk::{Disk, Followed, follow};
use crate::error::{ConfigError, Problem};
use crate::settings::{Entry, Origin, PathEntry};
use crate::writable::Writable;

/// The characters that make a path a glob.
const GLOB_CHARACTERS: [char; 4] = ['*', '?', '[', '{'];

/// All globs of all files together, in bytes. Some of them take the compiler of globs 25 ms for each KiB.
const GLOBS_MAX: usize = 64 << 10;

/// What entries are read against; all paths canonical.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) workspace: &'a Path,
    pub(crate) home: &'a Path,
    /// The session's temporary directory as commands and tools see it.
    pub(crate) temp: &'a Path,
    /// Where links are not the user's.
    pub(crate) writable: &'a Writable,
    pub(crate) disk: &'a dyn Disk,
}

/// An entry over canonical paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    /// Where it is, links followed: the path itself, or the fixed part of a glob. The session's temporary directory goes
    /// by the name that commands and tools have for it.
    pub(crate) base: PathBuf,
    /// The same under every name it went by.
    pub(crate) names: Vec<PathBuf>,
    followed: Followed,
    /// The rest of a glob.
    pub(crate) glob: Option<String>,
    /// A link of the agent's, where that leads somewhere else: the entry allows its own name only then.
    pub(crate) strayed: Option<Strayed>,
    /// The glob's text taken as a plain path.
    literally: Option<PathBuf>,
    origin: Origin,
}

/// A link on the way of an entry that leads out of a place that commands write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Strayed {
    /// Where it lies.
    pub(crate) link: PathBuf,
    /// What the entry would open by it.
    pub(crate) target: PathBuf,
}

/// A link may lead to such a name, whoever made it.
const NOT_UTF8: &str = "a glob cannot start from a path that is not UTF-8";

impl Resolved {
    /// Returns the pattern for a rule that allows: just what is meant.
    pub(crate) fn allowing(&self) -> Result<FilePattern, ConfigError> {
        self.pattern(&self.base)
    }

    /// Returns the patterns for a rule that denies: every name, and a glob's text taken literally as well, because
    /// `[x].env` may be what the file is called.
    pub(crate) fn denying(&self) -> Result<Vec<FilePattern>, ConfigError> {
        let mut patterns = Vec::new();
        for name in &self.names {
            // No pattern can be made of it; what is meant lies below.
            let has_no_pattern = self.glob.is_some() && name.to_str().is_none();
            patterns.push(if has_no_pattern { FilePattern::Tree(name.clone()) } else { self.pattern(name)? });
        }
        patterns.extend(self.literally.clone().map(FilePattern::Tree));
        Ok(patterns)
    }

    /// Returns the links on the way that commands could lead elsewhere. What is denied would not be found behind them
    /// any more by whoever uses the name, nor by these settings when they are read again.
    pub(crate) fn movable_links(&self, writable: &Writable) -> Vec<FilePattern> {
        let links = self.followed.links.iter().map(|link| &link.at).filter(|link| writable.holds(link));
        links.cloned().map(FilePattern::Exact).collect()
    }

    fn pattern(&self, base: &Path) -> Result<FilePattern, ConfigError> {
        let Some(glob) = &self.glob else { return Ok(FilePattern::Tree(base.to_owned())) };
        let Some(base) = base.to_str() else { return Err(refused(&self.origin, NOT_UTF8)) };
        let text = format!("{}/{glob}", escape(base.trim_end_matches('/')));
        GlobText::parse(&text)
            .map(FilePattern::Glob)
            .map_err(|error| refused(&self.origin, &error.to_string()))
    }
}

impl Surroundings<'_> {
    /// Expands `~` and relative paths, and follows links, for an entry that denies: whoever made the link, what it
    /// leads to is denied as well.
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
            return Err(refused(&entry.origin, "`..` cannot follow a glob"));
        }
        let mut resolved = self.follow(&self.expand(&base), Some(glob), &entry.origin)?;
        resolved.literally = Some(self.follow(&whole, None, &entry.origin)?.base);
        Ok(resolved)
    }

    /// The same for an entry that opens something: a link that the agent can have made is not followed out of
    /// where it lies. A whole path that is taken literally is as an answer is kept: it had no link in it when it was
    /// given, so that none is followed.
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
            resolved.strayed = Some(Strayed { link: link.at.clone(), target });
        }
        Ok(resolved)
    }

    /// Whether an entry names the session's temporary directory, whatever the machine has by that name.
    fn is_temp(&self, entry: &Entry<PathEntry>) -> bool {
        let text = &entry.value.text;
        self.expand(text.strip_suffix("/**").unwrap_or(text)) == self.temp
    }

    /// Why an entry opens nothing as things are on disk; none where it can. A command could otherwise keep settings from
    /// being read by what it puts in the way of a path.
    pub(crate) fn opens_nothing(&self, entry: &Entry<PathEntry>) -> Option<&'static str> {
        let resolved = self.resolve_to_open(entry).ok()?;
        (resolved.glob.is_some() && resolved.base.to_str().is_none()).then_some(NOT_UTF8)
    }

    fn expand(&self, text: &str) -> PathBuf {
        match text.strip_prefix('~') {
            Some(rest) => self.home.join(rest.trim_start_matches('/')),
            None => self.workspace.join(text),
        }
    }

    fn follow(&self, path: &Path, glob: Option<String>, origin: &Origin) -> Result<Resolved, ConfigError> {
        let followed = follow(path, self.disk).map_err(|error| refused(origin, &error.to_string()))?;
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

/// Refuses more globs than can be compiled while somebody waits.
pub(crate) fn globs_are_few(found: &Found) -> Result<(), ConfigError> {
    let filesystem = &found.settings.filesystem;
    let own = [
        &filesystem.deny_read,
        &filesystem.allow_read,
        &filesystem.allow_write,
        &filesystem.deny_write,
        &found.settings.credentials.files,
    ];
    let layers = found.layers.iter().flat_map(|layer| [&layer.deny_read, &layer.deny_write]);
    let mut length: usize = 0;
    for entry in own.into_iter().chain(layers).flatten() {
        let is_glob = !entry.value.literal && entry.value.text.contains(GLOB_CHARACTERS);
        length = length.saturating_add(if is_glob { entry.value.text.len() } else { 0 });
        if length > GLOBS_MAX {
            let reason = "with it all globs together are longer than 64 KiB; name directories in their place";
            return Err(refused(&entry.origin, reason));
        }
    }
    Ok(())
}

/// Splits a glob into the fixed directory it starts from and the rest.
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

pub(crate) fn refused(origin: &Origin, reason: &str) -> ConfigError {
    ConfigError::Invalid {
        file: origin.file.clone(),
        at: origin.at,
        pointer: origin.pointer.clone(),
        problem: Problem::BadValue { field: origin.pointer.clone(), reason: reason.to_owned() },
    }
}
