//! The configuration from the host, and the settings derived from it.

use portcullis_sdk::{ConfigError, FilePattern, NetworkPattern};
use serde::Deserialize;

/// The configuration of this policy; `config.schema.json` describes it for people and editors.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// Paths that may be read without a question.
    pub allow_read: Vec<Pattern>,
    /// Paths that may be written, and so also read, without a question.
    pub allow_write: Vec<Pattern>,
    /// Hosts to which commands may connect without a question.
    pub allowed_domains: Vec<String>,
    /// Whether all other connections are refused without a question.
    pub strict_allowlist: bool,
    /// Toolchains to show instead of those that the host found.
    pub toolchains: Option<Vec<String>>,
}

/// The paths that an entry covers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Pattern {
    /// A directory and everything below it.
    Tree(String),
    /// One path.
    Exact(String),
    /// A glob over whole paths.
    Glob(String),
    /// A glob for the last component below a directory.
    Name {
        /// The directory.
        below: String,
        /// The glob.
        glob: String,
    },
}

/// A configuration with only valid values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings {
    pub(crate) allow_read: Vec<Entry<FilePattern>>,
    pub(crate) allow_write: Vec<Entry<FilePattern>>,
    pub(crate) allowed_domains: Vec<Entry<NetworkPattern>>,
    pub(crate) strict_allowlist: bool,
    /// `None` for those that the host found.
    pub(crate) toolchains: Option<Vec<Entry<String>>>,
}

/// A value with the JSON pointer to its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry<T> {
    pub(crate) value: T,
    pub(crate) setting: String,
}

impl Settings {
    /// Reads every entry, and reports all invalid ones.
    pub(crate) fn read(config: Config) -> Result<Self, Vec<ConfigError>> {
        let mut errors = Vec::new();
        let allow_read = entries("/allowRead", config.allow_read, pattern, &mut errors);
        let allow_write = entries("/allowWrite", config.allow_write, pattern, &mut errors);
        let allowed_domains = entries("/allowedDomains", config.allowed_domains, domain, &mut errors);
        let toolchains = config.toolchains.map(|list| entries("/toolchains", list, directory, &mut errors));
        let strict_allowlist = config.strict_allowlist;
        let settings = Self { allow_read, allow_write, allowed_domains, strict_allowlist, toolchains };
        if errors.is_empty() { Ok(settings) } else { Err(errors) }
    }
}

fn entries<A, B>(
    list: &str,
    values: Vec<A>,
    read: impl Fn(A) -> Result<B, String>,
    errors: &mut Vec<ConfigError>,
) -> Vec<Entry<B>> {
    let mut entries = Vec::with_capacity(values.len());
    for (index, value) in values.into_iter().enumerate() {
        let setting = format!("{list}/{index}");
        match read(value) {
            Ok(value) => entries.push(Entry { value, setting }),
            Err(message) => errors.push(ConfigError::new(setting, message)),
        }
    }
    entries
}

fn pattern(pattern: Pattern) -> Result<FilePattern, String> {
    let pattern = match pattern {
        Pattern::Tree(path) => FilePattern::Tree(directory(path)?),
        Pattern::Exact(path) => FilePattern::Exact(directory(path)?),
        Pattern::Glob(glob) => FilePattern::Glob(glob),
        Pattern::Name { below, glob } => FilePattern::name(directory(below)?, glob),
    };
    // A malformed glob fails on the first path.
    pattern.matches("/").map_err(|error| error.to_string())?;
    Ok(pattern)
}

/// Reads an absolute path without `.`, `..` and doubled slashes: with any of these the host and this policy could
/// interpret it differently.
fn directory(path: String) -> Result<String, String> {
    let inner = path.strip_prefix('/').unwrap_or_default();
    let normal = path == "/" || inner.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if path.starts_with('/') && normal && !path.contains('\0') {
        return Ok(path);
    }
    Err(format!("`{path}` is not an absolute, normal path; write it from `/` and without `.` and `..`"))
}

fn domain(entry: String) -> Result<NetworkPattern, String> {
    let pattern = NetworkPattern::parse(&entry).map_err(|error| error.to_string())?;
    // As in the settings: one word may deny everything, but not allow everything.
    if pattern.host == "*" {
        return Err(format!("`{entry}` would allow every host; name the hosts"));
    }
    Ok(pattern)
}
