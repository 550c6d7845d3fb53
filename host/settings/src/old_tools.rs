//! What other sandboxes would answer, by their own lists and rules: the other side of the comparison after a migration.
//!
//! Each is described as its documentation says. Links are not followed, and paths need not exist.

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
}

/// A host that no list names.
const ANY_HOST: &str = "unlisted.example";

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
        }
    }

    /// Returns a wish for every path and host in the lists, and for a host that none names.
    #[must_use]
    pub fn wishes(&self) -> Vec<Wish> {
        let paths = [&self.deny_read, &self.allow_read, &self.allow_write, &self.deny_write];
        let mut wishes = Vec::new();
        for path in paths.into_iter().flatten().map(|entry| self.sample(entry)) {
            wishes.extend([Wish::Read(path.clone()), Wish::Write(path)]);
        }
        let hosts = self.allowed.iter().chain(&self.denied).filter_map(|entry| sample_host(entry));
        wishes.extend(hosts.chain([ANY_HOST.to_owned()]).map(Wish::Connect));
        wishes.sort();
        wishes.dedup();
        wishes
    }

    /// Returns what the sandbox would answer.
    #[must_use]
    pub fn answer(&self, wish: &Wish) -> Effect {
        match wish {
            Wish::Read(path) => self.read(path),
            Wish::Write(path) => self.write(path),
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
mod tests {
    use serde_json::json;

    use super::*;

    fn rules(tool: Foreign, settings: Json) -> OldRules {
        OldRules::new(tool, &settings, Path::new("/home/u"), Path::new("/work/project"))
    }

    fn check(rules: &OldRules, cases: &[(&str, &str, Effect)]) {
        for (verb, what, expected) in cases {
            let wish = match *verb {
                "read" => Wish::Read((*what).into()),
                "write" => Wish::Write((*what).into()),
                _ => Wish::Connect((*what).to_owned()),
            };
            assert_eq!(rules.answer(&wish), *expected, "{:?}: {verb} {what}", rules.tool);
        }
    }

    use Effect::{Allow, Ask, Deny};

    #[test]
    fn the_first_asks_outside_of_its_lists() {
        let lists = json!({
            "network": { "allowedDomains": ["x.com"], "deniedDomains": ["*.evil.test"] },
            "filesystem": { "denyRead": ["/Users", "/home", "~/.pi/agent/auth.json"], "allowRead": [".", "~/.pi"],
                "allowWrite": ["."], "denyWrite": ["~/.pi/agent/auth.json"] },
        });
        check(
            &rules(Foreign::Oddsjam, lists),
            &[
                ("read", "/work/project/a", Allow),
                ("read", "/home/u/notes", Ask),
                ("read", "/etc/passwd", Ask),
                ("read", "/home/u/.pi/agent/x", Allow),
                ("read", "/home/u/.pi/agent/auth.json", Deny),
                ("write", "/work/project/a", Allow),
                ("write", "/work/other/a", Ask),
                ("write", "/home/u/.pi/agent/auth.json", Deny),
                ("connect", "x.com", Allow),
                ("connect", "a.evil.test", Deny),
                ("connect", "b.test", Ask),
            ],
        );
    }

    /// The examples of "Enforcement Rules" in the documentation of the second.
    #[test]
    fn the_second_denies_names_first() {
        let rules = rules(Foreign::Sysid, Foreign::Sysid.complete(&json!({})));
        check(
            &rules,
            &[
                ("read", "/home/u/.ssh/id_rsa", Deny),
                ("read", "/home/u/notes", Allow),
                ("read", "/etc/passwd", Allow),
                ("write", "/work/project/.env.local", Deny),
                ("write", "/work/project/.env", Deny),
                ("write", "/work/project/certs/cert.pem", Deny),
                ("write", "/work/project/src/main.ts", Allow),
                ("write", "/tmp/x", Allow),
                ("write", "/etc/passwd", Ask),
                ("connect", "api.github.com", Allow),
                ("connect", "unlisted.example", Ask),
            ],
        );
        let wishes = rules.wishes();
        for wish in [
            Wish::Write("/work/project/.env.example".into()),
            Wish::Write("/work/project/example.pem".into()),
            Wish::Read("/home/u/.ssh".into()),
            Wish::Connect("example.github.com".to_owned()),
        ] {
            assert!(wishes.contains(&wish), "{wish:?} in {wishes:?}");
        }
    }

    #[test]
    fn the_third_reads_the_codebase_and_nix_and_that_is_it() {
        let lists = json!({ "filesystem": { "denyRead": [".ssh", ".env", "*.pem"], "allowWrite": ["workspace", ".pi"],
            "denyWrite": ["config.toml"] } });
        check(
            &rules(Foreign::Bosun, lists),
            &[
                ("read", "/nix/store/x", Allow),
                ("read", "/work/project/src/a", Allow),
                ("read", "/etc/passwd", Deny),
                ("read", "/work/project/.env", Deny),
                ("read", "/home/u/.ssh/id", Deny),
                ("read", "/work/project/a.pem", Deny),
                ("write", "/work/project/workspace/a", Allow),
                ("write", "/work/project/workspace/.env", Deny),
                ("write", "/work/project/src/a", Deny),
                ("write", "/work/project/config.toml", Deny),
                ("connect", "anything.example", Allow),
            ],
        );
    }

    #[test]
    fn plain_sandbox_runtime_asks_nothing() {
        let lists = json!({ "network": { "allowedDomains": ["a.test"], "deniedDomains": [] },
            "filesystem": { "denyRead": ["/home"], "allowRead": ["/home/u/p"], "allowWrite": ["."], "denyWrite": [] } });
        check(
            &rules(Foreign::Srt, lists),
            &[
                ("read", "/etc/passwd", Allow),
                ("read", "/home/u/x", Deny),
                ("read", "/home/u/p/x", Allow),
                ("write", "/etc/x", Deny),
                ("connect", "b.test", Deny),
                ("connect", "a.test", Allow),
            ],
        );
    }
}
