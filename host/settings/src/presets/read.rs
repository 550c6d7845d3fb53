//! The text of a preset: one statement a line, each with its reason.
//!
//! ```text
//! title   npm's package registry
//! upload  8    packages are a few MiB
//! reads   GET,HEAD:/**    packages are fetched
//! host    registry.npmjs.org:443    packages
//! cache   ~/.npm/_cacache    packages that npm has fetched
//! include pypi    Python
//! ```

use std::path::{Path, PathBuf};

use portcullis_decision::pattern::{HostPattern, NetworkPattern, PortSet, RequestPattern};
use portcullis_settings_format::ConfigError;
use portcullis_settings_format::error::shown;

/// How much may be sent to a host of a preset that does not say: more than a tool sends that only fetches.
const UPLOAD_MIB: u32 = 8;
/// The most that a preset may say: the default without one.
const UPLOAD_MAX_MIB: u32 = 256;

/// Why a preset cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PresetError {
    /// A line has a mistake.
    #[error("`{}`, line {line}: {why}", shown(&file.to_string_lossy()))]
    Line {
        /// The file.
        file: PathBuf,
        /// The line, from 1 on.
        line: usize,
        /// The mistake.
        why: String,
    },
    /// The file cannot be read.
    #[error("`{}` cannot be read: {source}", shown(&file.to_string_lossy()))]
    Unread {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: Box<ConfigError>,
    },
}

/// A host of a preset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresetHost {
    /// The host and its port.
    pub pattern: NetworkPattern,
    /// Why it is in the preset.
    pub reason: String,
    /// MiB that may be sent there in a session.
    pub upload_mib: u32,
    /// The requests that only read; empty if the preset does not say.
    pub reads: Vec<RequestPattern>,
}

/// Another line of a preset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresetLine {
    /// Its value: a path, a preset.
    pub value: String,
    /// Why it is in the preset.
    pub reason: String,
}

/// The lines of one preset.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) title: String,
    pub(super) hosts: Vec<PresetHost>,
    pub(super) caches: Vec<PresetLine>,
    /// The requests that only read.
    pub(super) reads: Vec<PresetLine>,
    /// With the number of the line.
    pub(super) includes: Vec<(usize, PresetLine)>,
}

pub(super) fn lines(text: &str, file: &Path) -> Result<Lines, PresetError> {
    let mut lines = Lines::default();
    let mut upload = UPLOAD_MIB;
    let mut reads = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let bad = |why: String| PresetError::Line { file: file.to_owned(), line: number, why };
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        if word == "title" {
            rest.clone_into(&mut lines.title);
            continue;
        }
        let (value, reason) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let reason = reason.trim().to_owned();
        if value.is_empty() || reason.is_empty() {
            return Err(bad(format!("`{}` takes a value, and after it the reason for it", shown(word))));
        }
        let entry = PresetLine { value: value.to_owned(), reason: reason.clone() };
        match word {
            "host" => {
                let pattern = host(value).map_err(bad)?;
                lines.hosts.push(PresetHost { pattern, reason, upload_mib: UPLOAD_MIB, reads: Vec::new() });
            }
            "upload" => {
                let mib = value.parse().ok().filter(|mib| (1..=UPLOAD_MAX_MIB).contains(mib));
                upload = mib
                    .ok_or_else(|| bad(format!("`upload` is a number of MiB from 1 to {UPLOAD_MAX_MIB}")))?;
            }
            "reads" => {
                let pattern = RequestPattern::parse(&value.replacen(':', " ", 2)).map_err(bad)?;
                lines.reads.push(PresetLine { value: value.to_owned(), reason });
                reads.push(pattern);
            }
            "cache" if value.starts_with("~/") => lines.caches.push(entry),
            "cache" => return Err(bad("a cache is a path that starts with `~/`".to_owned())),
            "include" => lines.includes.push((number, entry)),
            _ => {
                let known = "`title`, `upload`, `reads`, `host`, `cache` and `include`";
                return Err(bad(format!("a line begins with {known}, not with `{}`", shown(word))));
            }
        }
    }
    if lines.title.is_empty() {
        let why = "there is no `title`".to_owned();
        return Err(PresetError::Line { file: file.to_owned(), line: 1, why });
    }
    for host in &mut lines.hosts {
        host.upload_mib = upload;
        host.reads.clone_from(&reads);
    }
    Ok(lines)
}

/// Parses a host with its port. A preset names servers, and no addresses: those of this machine and its network are a
/// matter of their own.
fn host(text: &str) -> Result<NetworkPattern, String> {
    let pattern = NetworkPattern::parse(text).map_err(|error| error.to_string())?;
    let is_named = matches!(pattern.host, HostPattern::Name(_) | HostPattern::Below(_));
    if !is_named || pattern.host.is_of_addresses() {
        return Err(format!("`{}` is not the name of a server", shown(text)));
    }
    match pattern.ports {
        PortSet::These(_) => Ok(pattern),
        PortSet::Every => Err(format!("`{}` has no port; write `HOST:PORT`", shown(text))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_name_their_line() {
        for (text, line, why) in [
            ("title t\nhost a.test:443", 2, "the reason"),
            ("title t\n\nhost a.test  why", 3, "no port"),
            ("title t\nhost 127.0.0.1:80  why", 2, "not the name"),
            ("title t\nhost localhost:80  why", 2, "not the name"),
            ("title t\nhost *:80  why", 2, "not the name"),
            ("title t\nupload 0  why", 2, "MiB"),
            ("title t\ncache /etc  why", 2, "`~/`"),
            ("title t\nreads GET  why", 2, "methods and the path"),
            ("title t\nallow a.test:443  why", 2, "begins with"),
            ("host a.test:443  why", 1, "title"),
        ] {
            let error = lines(text, Path::new("/p/x.preset")).expect_err(text);
            let PresetError::Line { line: at, .. } = &error else { panic!("{error}") };
            assert!(*at == line && error.to_string().contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn a_preset_has_its_budget_on_each_host() {
        let read =
            lines("# a comment\ntitle t\nhost a.test:443  x\nupload 3  y\nhost b.test:1  z", Path::new("/p"));
        let read = read.expect("read");
        assert_eq!(read.hosts.iter().map(|host| host.upload_mib).collect::<Vec<_>>(), [3, 3]);
    }
}
