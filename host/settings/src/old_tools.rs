//! The answers of other sandboxes, by their own lists and documented rules: one side of the comparison after a
//! migration.
//!
//! Links are not followed, and paths need not exist.

use std::path::{Path, PathBuf};

use portcullis_decision::path_text;
use portcullis_decision::pattern::{HostName, NetworkPattern, name_matches};
use portcullis_decision::verdict::Effect;
use serde_json::Value as Json;

use crate::import::Foreign;

/// Something that an agent may want to do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wish {
    /// Read a file with a tool.
    Read(PathBuf),
    /// Write a file with a tool.
    Write(PathBuf),
    /// Run a shell script.
    Run(String),
    /// Read a file in a command.
    CommandRead(PathBuf),
    /// Write a file in a command.
    CommandWrite(PathBuf),
    /// Connect to a host, on port 443.
    Connect(String),
}

/// The rules of another sandbox.
#[derive(Debug, Clone)]
pub struct OldRules {
    tool: Foreign,
    project: PathBuf,
    deny_read: Vec<OldEntry>,
    allow_read: Vec<OldEntry>,
    allow_write: Vec<OldEntry>,
    deny_write: Vec<OldEntry>,
    allowed: OldHosts,
    denied: OldHosts,
    commands: Vec<String>,
}

/// An entry of a list of paths, as the sandbox reads it.
#[derive(Debug, Clone)]
enum OldEntry {
    /// A name, or a pattern over names, at every depth.
    Name(String),
    /// A path, and everything below it.
    Place { path: PathBuf, length: usize },
}

/// A list of hosts.
#[derive(Debug, Clone)]
struct OldHosts {
    entries: Vec<String>,
    patterns: Vec<NetworkPattern>,
}

/// A host that no list names.
const ANY_HOST: &str = "unlisted.example";
/// A command that no list names.
const ANY_COMMAND: &str = "echo hello";

impl OldRules {
    /// Reads the rules from complete settings of a sandbox; see [`Foreign::complete`].
    #[must_use]
    pub fn new(tool: Foreign, settings: &Json, home: &Path, project: &Path) -> Self {
        let list = |pointer: &str| -> Vec<&str> {
            let items = settings.pointer(pointer).and_then(Json::as_array).into_iter().flatten();
            items.filter_map(|item| item.as_str().or_else(|| item.get("path")?.as_str())).collect()
        };
        let files = |key: &str| -> Vec<OldEntry> {
            let entries = list(&format!("/filesystem/{key}"));
            entries.into_iter().map(|entry| OldEntry::new(entry, tool, home, project)).collect()
        };
        let hosts = |key: &str| OldHosts::new(&list(&format!("/network/{key}")));
        Self {
            tool,
            project: project.to_owned(),
            deny_read: files("denyRead"),
            allow_read: files("allowRead"),
            allow_write: files("allowWrite"),
            deny_write: files("denyWrite"),
            allowed: hosts("allowedDomains"),
            denied: hosts("deniedDomains"),
            commands: commands(settings),
        }
    }

    /// Returns a wish for every path, host and command in the lists, and for a host and a command that none names.
    #[must_use]
    pub fn wishes(&self) -> Vec<Wish> {
        let paths = [&self.deny_read, &self.allow_read, &self.allow_write, &self.deny_write];
        let mut wishes = Vec::new();
        for path in paths.into_iter().flatten().map(|entry| self.sample(entry)) {
            wishes.extend([
                Wish::Read(path.clone()),
                Wish::Write(path.clone()),
                Wish::CommandRead(path.clone()),
                Wish::CommandWrite(path),
            ]);
        }
        wishes.extend(self.commands.iter().cloned().chain([ANY_COMMAND.to_owned()]).map(Wish::Run));
        let hosts = self.allowed.entries.iter().chain(&self.denied.entries);
        let hosts = hosts.filter_map(|entry| sample_host(entry));
        wishes.extend(hosts.chain([ANY_HOST.to_owned()]).map(Wish::Connect));
        wishes.sort();
        wishes.dedup();
        wishes
    }

    /// Returns the sandbox's answer.
    #[must_use]
    pub fn answer(&self, wish: &Wish) -> Effect {
        match wish {
            Wish::Read(path) => self.read(path),
            Wish::Write(path) => self.write(path),
            // Each of them runs every command in its sandbox.
            Wish::Run(_) => Effect::Allow,
            Wish::CommandRead(path) => self.command_read(path),
            Wish::CommandWrite(path) => self.command_write(path),
            Wish::Connect(host) => self.connect(host),
        }
    }

    fn read(&self, path: &Path) -> Effect {
        let denied = longest(&self.deny_read, path);
        let allowed = longest(&self.allow_read, path);
        match self.tool {
            Foreign::Sysid => {
                if denied.is_some() {
                    Effect::Deny
                } else {
                    Effect::Allow
                }
            }
            Foreign::Srt => {
                if denied > allowed {
                    Effect::Deny
                } else {
                    Effect::Allow
                }
            }
            Foreign::Bosun if denied.is_some() => Effect::Deny,
            Foreign::Bosun => {
                match path.starts_with(&self.project) || path.starts_with("/nix") || allowed.is_some() {
                    true => Effect::Allow,
                    false => Effect::Deny,
                }
            }
            Foreign::Oddsjam | Foreign::PiSandbox => match (denied, allowed) {
                (_, Some(_)) if allowed >= denied => Effect::Allow,
                // A denial inside of what is allowed is about that file; a wider one only closes a region.
                (Some(_), Some(_)) => Effect::Deny,
                _ => Effect::Ask,
            },
        }
    }

    fn write(&self, path: &Path) -> Effect {
        if longest(&self.deny_write, path).is_some() {
            return Effect::Deny;
        }
        let is_secret = self.tool == Foreign::Bosun && longest(&self.deny_read, path).is_some();
        match longest(&self.allow_write, path) {
            Some(_) if !is_secret => Effect::Allow,
            _ if matches!(self.tool, Foreign::Srt | Foreign::Bosun) => Effect::Deny,
            _ => Effect::Ask,
        }
    }

    /// Commands see everything but what is denied, and fail where tools would ask.
    fn command_read(&self, path: &Path) -> Effect {
        match self.tool {
            Foreign::Sysid | Foreign::Bosun | Foreign::Srt => self.read(path),
            Foreign::Oddsjam | Foreign::PiSandbox => {
                let is_denied = longest(&self.deny_read, path) > longest(&self.allow_read, path);
                if is_denied { Effect::Deny } else { Effect::Allow }
            }
        }
    }

    fn command_write(&self, path: &Path) -> Effect {
        match (self.tool, self.write(path)) {
            // Its prompts for writing are for tools only.
            (Foreign::Sysid, Effect::Ask) => Effect::Deny,
            (_, effect) => effect,
        }
    }

    fn connect(&self, host: &str) -> Effect {
        let Ok(target) = HostName::parse(host) else { return Effect::Deny };
        let holds = |hosts: &OldHosts| hosts.patterns.iter().any(|pattern| pattern.matches(&target, 443));
        match self.tool {
            // It leaves the network alone.
            Foreign::Bosun => Effect::Allow,
            _ if holds(&self.denied) => Effect::Deny,
            _ if holds(&self.allowed) => Effect::Allow,
            Foreign::Srt => Effect::Deny,
            Foreign::Oddsjam | Foreign::Sysid | Foreign::PiSandbox => Effect::Ask,
        }
    }

    /// Returns a path that an entry is about: the place itself, or a file in the project that has such a name.
    fn sample(&self, entry: &OldEntry) -> PathBuf {
        match entry {
            OldEntry::Name(name) => self.project.join(name.replace('*', "example")),
            // Of a directory of many, something in it says more than the directory.
            OldEntry::Place { path, .. } if *path == self.project => path.join("example.txt"),
            OldEntry::Place { path, .. } => path.clone(),
        }
    }
}

impl OldEntry {
    fn new(entry: &str, tool: Foreign, home: &Path, project: &Path) -> Self {
        if let Some(name) = name(entry, tool) {
            return Self::Name(name.to_owned());
        }
        let path = match entry.strip_prefix('~') {
            Some(rest) => home.join(rest.trim_start_matches('/')),
            None => project.join(entry),
        };
        let path = path_text::normalize(&path);
        Self::Place { length: path.components().count(), path }
    }

    /// Returns how many components of the path it names, if it holds the path.
    fn length(&self, path: &Path) -> Option<usize> {
        match self {
            Self::Name(name) => {
                let mut names = path.components().filter_map(|part| part.as_os_str().to_str());
                names.any(|part| name_matches(name, part)).then_some(usize::MAX)
            }
            Self::Place { path: place, length } => path.starts_with(place).then_some(*length),
        }
    }
}

impl OldHosts {
    fn new(entries: &[&str]) -> Self {
        Self {
            entries: entries.iter().map(|entry| (*entry).to_owned()).collect(),
            patterns: entries.iter().filter_map(|entry| NetworkPattern::parse(entry).ok()).collect(),
        }
    }
}

/// Returns the number of components of the longest entry that holds a path.
fn longest(entries: &[OldEntry], path: &Path) -> Option<usize> {
    entries.iter().filter_map(|entry| entry.length(path)).max()
}

/// Returns the entry as a name or a pattern over names, if it is one in this sandbox.
fn name(entry: &str, tool: Foreign) -> Option<&str> {
    let bare = entry.strip_prefix("**/").unwrap_or(entry);
    let is_bare = !bare.contains('/') && ![".", "..", "~"].contains(&bare);
    let has_names = match tool {
        Foreign::Sysid | Foreign::PiSandbox | Foreign::Bosun => true,
        Foreign::Oddsjam | Foreign::Srt => entry.contains('*'),
    };
    (is_bare && has_names && (bare.starts_with('.') || bare.contains(['*', '.']))).then_some(bare)
}

/// Returns the commands that settings name: those whose reports are silenced, and the search program.
fn commands(settings: &Json) -> Vec<String> {
    let silenced = settings.get("ignoreViolations").and_then(Json::as_object).into_iter().flatten();
    let silenced = silenced.map(|(command, _)| command.as_str()).filter(|command| *command != "*");
    let search = settings.pointer("/ripgrep/command").and_then(Json::as_str);
    silenced.chain(search).filter(|command| !command.trim().is_empty()).map(str::to_owned).collect()
}

/// Returns a host that an entry is about.
fn sample_host(entry: &str) -> Option<String> {
    let host = entry.rsplit_once(':').map_or(entry, |(host, port)| {
        if port.bytes().all(|byte| byte.is_ascii_digit()) { host } else { entry }
    });
    match host.strip_prefix("*.") {
        Some(top) => Some(format!("example.{top}")),
        None => (host != "*").then(|| host.to_owned()),
    }
}

#[cfg(test)]
mod tests;
