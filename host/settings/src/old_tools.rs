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
    home: PathBuf,
    project: PathBuf,
    deny_read: Vec<String>,
    allow_read: Vec<String>,
    allow_write: Vec<String>,
    deny_write: Vec<String>,
    allowed: Vec<String>,
    denied: Vec<String>,
    commands: Vec<String>,
}

/// A host that no list names.
const ANY_HOST: &str = "unlisted.example";
/// A command that no list names.
const ANY_COMMAND: &str = "echo hello";

impl OldRules {
    /// Reads the rules from complete settings of a sandbox; see [`Foreign::complete`].
    #[must_use]
    pub fn new(tool: Foreign, settings: &Json, home: &Path, project: &Path) -> Self {
        let list = |pointer: &str| -> Vec<String> {
            let items = settings.pointer(pointer).and_then(Json::as_array).into_iter().flatten();
            let text = |item: &Json| item.as_str().or_else(|| item.get("path")?.as_str()).map(str::to_owned);
            items.filter_map(text).collect()
        };
        let (files, network) = ("/filesystem", "/network");
        Self {
            tool,
            home: home.to_owned(),
            project: project.to_owned(),
            deny_read: list(&format!("{files}/denyRead")),
            allow_read: list(&format!("{files}/allowRead")),
            allow_write: list(&format!("{files}/allowWrite")),
            deny_write: list(&format!("{files}/denyWrite")),
            allowed: list(&format!("{network}/allowedDomains")),
            denied: list(&format!("{network}/deniedDomains")),
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
        let hosts = self.allowed.iter().chain(&self.denied).filter_map(|entry| sample_host(entry));
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
        let denied = self.longest(&self.deny_read, path);
        let allowed = self.longest(&self.allow_read, path);
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
        if self.longest(&self.deny_write, path).is_some() {
            return Effect::Deny;
        }
        let is_secret = self.tool == Foreign::Bosun && self.longest(&self.deny_read, path).is_some();
        match self.longest(&self.allow_write, path) {
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
                let is_denied = self.longest(&self.deny_read, path) > self.longest(&self.allow_read, path);
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
        let holds = |list: &[String]| {
            let mut patterns = list.iter().filter_map(|entry| NetworkPattern::parse(entry).ok());
            patterns.any(|pattern| pattern.matches(&target, 443))
        };
        match self.tool {
            // It leaves the network alone.
            Foreign::Bosun => Effect::Allow,
            _ if holds(&self.denied) => Effect::Deny,
            _ if holds(&self.allowed) => Effect::Allow,
            Foreign::Srt => Effect::Deny,
            Foreign::Oddsjam | Foreign::Sysid | Foreign::PiSandbox => Effect::Ask,
        }
    }

    /// Returns the number of components of the longest entry that holds a path.
    fn longest(&self, entries: &[String], path: &Path) -> Option<usize> {
        entries.iter().filter_map(|entry| self.length(entry, path)).max()
    }

    fn length(&self, entry: &str, path: &Path) -> Option<usize> {
        if let Some(name) = self.name(entry) {
            let names = path.components().filter_map(|part| part.as_os_str().to_str());
            return names.into_iter().any(|part| name_matches(name, part)).then_some(usize::MAX);
        }
        let place = self.place(entry);
        path.starts_with(&place).then(|| place.components().count())
    }

    /// Returns the entry as a name or a pattern over names, if it is one in this sandbox.
    fn name<'a>(&self, entry: &'a str) -> Option<&'a str> {
        let bare = entry.strip_prefix("**/").unwrap_or(entry);
        let is_bare = !bare.contains('/') && ![".", "..", "~"].contains(&bare);
        let has_names = match self.tool {
            Foreign::Sysid | Foreign::PiSandbox | Foreign::Bosun => true,
            Foreign::Oddsjam | Foreign::Srt => entry.contains('*'),
        };
        (is_bare && has_names && (bare.starts_with('.') || bare.contains(['*', '.']))).then_some(bare)
    }

    fn place(&self, entry: &str) -> PathBuf {
        let path = match entry.strip_prefix('~') {
            Some(rest) => self.home.join(rest.trim_start_matches('/')),
            None => self.project.join(entry),
        };
        path_text::normalize(&path)
    }

    /// Returns a path that an entry is about: the place itself, or a file in the project that has such a name.
    fn sample(&self, entry: &str) -> PathBuf {
        match self.name(entry) {
            Some(name) => self.project.join(name.replace('*', "example")),
            // Of a directory of many, something in it says more than the directory.
            None => {
                let place = self.place(entry);
                if place == self.project { place.join("example.txt") } else { place }
            }
        }
    }
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
