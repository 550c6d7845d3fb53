//! The lists, with their defaults: a missing list equals its default.

use portcullis_sdk::{ConfigError, FilePattern, NetworkPattern};
use serde::Deserialize;

const ALLOWED_DOMAINS: [&str; 10] = [
    "npmjs.org",
    "*.npmjs.org",
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "pypi.org",
    "*.pypi.org",
    "github.com",
    "*.github.com",
    "api.github.com",
    "raw.githubusercontent.com",
];
const DENY_READ: [&str; 3] = ["~/.ssh", "~/.aws", "~/.gnupg"];
const ALLOW_WRITE: [&str; 2] = [".", "/tmp"];
const DENY_WRITE: [&str; 4] = [".env", ".env.*", "*.pem", "*.key"];

/// The configuration; each list replaces its default.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    network: Network,
    filesystem: Filesystem,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Network {
    allowed_domains: Option<Vec<String>>,
    denied_domains: Option<Vec<String>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Filesystem {
    deny_read: Option<Vec<String>>,
    allow_read: Option<Vec<String>>,
    allow_write: Option<Vec<String>>,
    deny_write: Option<Vec<String>>,
}

/// A configuration with only valid values.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) allowed_domains: Vec<NetworkPattern>,
    pub(crate) denied_domains: Vec<NetworkPattern>,
    pub(crate) deny_read: Vec<String>,
    pub(crate) allow_read: Vec<String>,
    pub(crate) allow_write: Vec<String>,
    pub(crate) deny_write: Vec<String>,
}

impl Settings {
    /// Reads every entry, and reports all invalid ones.
    pub(crate) fn read(config: Config) -> Result<Self, Vec<ConfigError>> {
        let Config { network, filesystem } = config;
        let mut errors = Vec::new();
        let mut list = |key: &str, given: Option<Vec<String>>, usual: &[&str], fault: Fault| {
            let entries = given.unwrap_or_else(|| usual.iter().map(|entry| (*entry).to_owned()).collect());
            for (index, entry) in entries.iter().enumerate() {
                errors
                    .extend(fault(entry).map(|message| ConfigError::new(format!("{key}/{index}"), message)));
            }
            entries
        };
        let allowed =
            list("/network/allowedDomains", network.allowed_domains, &ALLOWED_DOMAINS, allowed_domain);
        let denied = list("/network/deniedDomains", network.denied_domains, &[], domain);
        let deny_read = list("/filesystem/denyRead", filesystem.deny_read, &DENY_READ, place);
        let allow_read = list("/filesystem/allowRead", filesystem.allow_read, &[], place);
        let allow_write = list("/filesystem/allowWrite", filesystem.allow_write, &ALLOW_WRITE, place);
        let deny_write = list("/filesystem/denyWrite", filesystem.deny_write, &DENY_WRITE, name);
        if !errors.is_empty() {
            return Err(errors);
        }
        let patterns = |entries: Vec<String>| {
            entries.iter().filter_map(|entry| NetworkPattern::parse(entry).ok()).collect()
        };
        Ok(Self {
            allowed_domains: patterns(allowed),
            denied_domains: patterns(denied),
            deny_read,
            allow_read,
            allow_write,
            deny_write,
        })
    }
}

/// Returns what is wrong with an entry.
type Fault = fn(&str) -> Option<String>;

fn domain(entry: &str) -> Option<String> {
    NetworkPattern::parse(entry).err().map(|error| error.to_string())
}

fn allowed_domain(entry: &str) -> Option<String> {
    match NetworkPattern::parse(entry) {
        Ok(pattern) if pattern.host == "*" => {
            Some(format!("`{entry}` would allow every host; name the hosts"))
        }
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    }
}

fn place(entry: &str) -> Option<String> {
    let empty = entry.is_empty() || entry.contains('\0');
    empty.then(|| "write a directory, for example `~/.ssh`, `.` or `/srv`".to_owned())
}

/// Checks a name; as in the original settings a name may be in any directory, `.env` for example.
fn name(entry: &str) -> Option<String> {
    if entry.is_empty() || entry.contains('/') {
        return Some(format!("`{entry}` is not a file name; write for example `*.pem`, without a `/`"));
    }
    FilePattern::name("/", entry).matches("/x").err().map(|error| error.to_string())
}
