//! Extensions of other sandboxes that pi loads.
//!
//! pi does not start if two extensions register the same flag or tool, so an old one must be removed before ours works.

use std::fs;
use std::path::{Path, PathBuf};

use portcullis_command_line::human;
use portcullis_settings::{Disk as _, Foreign, RealDisk};
use serde::Serialize;
use serde_json::Value;

/// Names of npm packages, each with the sandbox's name for `--from`.
const PACKAGES: [(&str, &str); 6] = [
    ("@oddsjam/pi-sandbox", "oddsjam"),
    ("@sysid/pi-sandbox", "sysid"),
    ("@sysid/pi-sandbox-extended", "sysid"),
    ("pi-sandbox", "pi-sandbox"),
    ("@carderne/pi-sandbox", "pi-sandbox"),
    ("pi-extension-sandbox", "pi-sandbox"),
];

/// Parts of git addresses of these extensions.
const REPOSITORIES: [(&str, &str); 3] =
    [("zackify/pi-sandbox", "oddsjam"), ("sysid/pi-", "sysid"), ("carderne/pi-sandbox", "pi-sandbox")];

/// The flag of these extensions, which is ours as well.
const FLAG: &str = "no-sandbox";

/// The package of our own extension.
const OURS: &str = "@portcullis/pi";

/// An extension of another sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OldExtension {
    /// Its name.
    pub(crate) name: String,
    /// The sandbox's name for `--from`; `None` if the extension only registers the same flag.
    pub(crate) sandbox: Option<&'static str>,
    /// The place from which pi loads it.
    pub(crate) at: Installation,
    /// The command that removes it.
    pub(crate) remove: String,
}

/// The place from which pi loads an extension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Installation {
    /// A file or directory in pi's directory of extensions.
    Directory(PathBuf),
    /// An entry of a list in pi's settings.
    Entry {
        /// The settings file.
        file: PathBuf,
        /// `packages` or `extensions`.
        list: &'static str,
        /// The entry.
        value: Value,
        /// Whether the file belongs to the project.
        is_of_project: bool,
    },
}

impl OldExtension {
    /// Returns the sandbox that it belongs to, if that is a known one.
    pub(crate) fn source(&self) -> Option<Foreign> {
        let known = crate::commands::take_over::SOURCES.iter();
        known.clone().find(|(name, _)| Some(*name) == self.sandbox).map(|(_, source)| *source)
    }

    /// Returns a warning for a user whose pi refuses to start because of it.
    pub(crate) fn warning(&self) -> String {
        format!(
            "the extension `{}` of another sandbox is installed, and pi does not start with both; `{}` removes it, and \
             `portcullis migrate` takes its settings over",
            self.name, self.remove
        )
    }
}

/// Finds the extensions of other sandboxes that pi loads for a project.
pub(crate) fn find(agent: &Path, project: &Path) -> Vec<OldExtension> {
    let mut found = in_directory(&agent.join("extensions"));
    found.extend(in_settings(&agent.join("settings.json"), false));
    let own = project.join(".pi");
    if own != agent {
        found.extend(in_settings(&own.join("settings.json"), true));
    }
    found
}

fn in_directory(directory: &Path) -> Vec<OldExtension> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut places: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    places.sort();
    let is_ours = |place: &PathBuf| place.join(".portcullis").exists();
    // pi does not load hidden names.
    let is_hidden =
        |place: &PathBuf| place.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
    let places = places.into_iter().filter(|place| !is_ours(place) && !is_hidden(place));
    let old = |place: PathBuf| {
        let (name, sandbox) = recognised(&place)?;
        let remove = format!("rm -r {}", human::quoted(&place));
        Some(OldExtension { name, sandbox, at: Installation::Directory(place), remove })
    };
    places.filter_map(old).collect()
}

/// Returns the name of an extension on the disk and its sandbox, if it is one or registers the same flag.
fn recognised(place: &Path) -> Option<(String, Option<&'static str>)> {
    let manifest: Option<Value> =
        RealDisk.read(&place.join("package.json")).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let name = manifest.as_ref().and_then(|manifest| manifest.get("name")?.as_str()).unwrap_or_default();
    if name == OURS {
        return None;
    }
    if let Some(sandbox) = package(name) {
        return Some((name.to_owned(), Some(sandbox)));
    }
    let named = manifest.as_ref().and_then(|manifest| manifest.pointer("/pi/extensions")?.as_array());
    let named: Vec<PathBuf> =
        named.into_iter().flatten().filter_map(|file| Some(place.join(file.as_str()?))).collect();
    let files = named.into_iter().chain(["index.ts", "index.js"].map(|name| place.join(name)));
    let is_script = place.extension().is_some_and(|ending| ending == "ts" || ending == "js");
    let mut files = files.chain(is_script.then(|| place.to_owned()));
    let file_name = || place.file_name().map(|name| name.to_string_lossy().into_owned());
    files.any(|file| registers_flag(&file)).then(file_name).flatten().map(|name| (name, None))
}

fn registers_flag(file: &Path) -> bool {
    let text = RealDisk.read(file).unwrap_or_default();
    names_flag(&String::from_utf8_lossy(&text))
}

/// Returns true if a script calls `registerFlag` with our flag. Other programs such as Chromium have a flag of this name
/// too, so the name alone proves nothing.
fn names_flag(script: &str) -> bool {
    script.split("registerFlag").skip(1).any(|rest| {
        let name = rest.trim_start().strip_prefix('(').map(str::trim_start).and_then(|rest| {
            let quote = rest.chars().next().filter(|letter| "\"'`".contains(*letter))?;
            rest.get(1..)?.split(quote).next()
        });
        name == Some(FLAG)
    })
}

fn in_settings(file: &Path, is_of_project: bool) -> Vec<OldExtension> {
    let settings: Option<Value> =
        RealDisk.read(file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let Some(settings) = settings else { return Vec::new() };
    let mut found = Vec::new();
    for list in ["packages", "extensions"] {
        let entries = settings.get(list).and_then(Value::as_array).into_iter().flatten();
        for value in entries {
            let Some(source) = value.as_str().or_else(|| value.get("source")?.as_str()) else { continue };
            let Some((name, sandbox)) = of_source(source, file) else { continue };
            let local = if is_of_project { "-l " } else { "" };
            let remove = format!("pi remove {local}{}", human::quoted(Path::new(source)));
            let at = Installation::Entry { file: file.to_owned(), list, value: value.clone(), is_of_project };
            found.push(OldExtension { name, sandbox, at, remove });
        }
    }
    found
}

/// Returns the name and the sandbox of a package source in pi's settings.
fn of_source(source: &str, file: &Path) -> Option<(String, Option<&'static str>)> {
    if let Some(name) = source.strip_prefix("npm:") {
        let end =
            name.char_indices().skip(1).find(|(_, letter)| *letter == '@').map_or(name.len(), |(at, _)| at);
        let name = name.get(..end)?;
        return package(name).map(|sandbox| (name.to_owned(), Some(sandbox)));
    }
    if source.starts_with("git:") || source.contains("://") {
        let known = REPOSITORIES.iter().find(|(part, _)| source.contains(part));
        return known.map(|(_, sandbox)| (source.to_owned(), Some(*sandbox)));
    }
    // A leading `-` or `!` disables an extension.
    let is_path = !source.starts_with(['-', '!']) && !source.starts_with("builtin:");
    is_path.then(|| recognised(&file.parent()?.join(source.trim_start_matches('+')))).flatten()
}

fn package(name: &str) -> Option<&'static str> {
    PACKAGES.iter().find(|(known, _)| *known == name).map(|(_, sandbox)| *sandbox)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(files: &[(&str, &str)]) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = home.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        home
    }

    fn names(home: &tempfile::TempDir) -> Vec<String> {
        let found = find(&home.path().join("agent"), &home.path().join("project"));
        found.into_iter().map(|old| format!("{} {:?} {}", old.name, old.sandbox, old.remove)).collect()
    }

    #[test]
    fn old_extensions_are_recognised_by_package_and_by_flag() {
        let home = home(&[
            ("agent/extensions/zackify-pi-sandbox/package.json", r#"{ "name": "@oddsjam/pi-sandbox" }"#),
            ("agent/extensions/own.ts", r#"pi.registerFlag("no-sandbox", {})"#),
            (
                "agent/extensions/fine.ts",
                r#"pi.registerFlag("plan", {}); launch("chromium", "--no-sandbox", "no-sandbox")"#,
            ),
            ("agent/extensions/ours/package.json", r#"{ "name": "@portcullis/pi" }"#),
            ("agent/extensions/ours/index.ts", r#"pi.registerFlag("no-sandbox", {})"#),
            ("agent/extensions/portcullis/.portcullis", ""),
            ("agent/extensions/portcullis/index.ts", r#"pi.registerFlag("no-sandbox", {})"#),
            (
                "agent/settings.json",
                r#"{ "packages": ["npm:@sysid/pi-sandbox-extended@1.0.6", "npm:other",
                { "source": "npm:pi-sandbox", "skills": [] }], "extensions": ["-npm:pi-sandbox"] }"#,
            ),
            ("project/.pi/settings.json", r#"{ "packages": ["git:github.com/zackify/pi-sandbox@v1"] }"#),
        ]);
        let names = names(&home);
        let expected = [
            ("own.ts None", "rm -r "),
            ("@oddsjam/pi-sandbox Some(\"oddsjam\")", "zackify-pi-sandbox"),
            ("@sysid/pi-sandbox-extended Some(\"sysid\")", "pi remove npm:@sysid/pi-sandbox-extended@1.0.6"),
            ("pi-sandbox Some(\"pi-sandbox\")", "pi remove npm:pi-sandbox"),
            ("git:github.com/zackify/pi-sandbox@v1 Some(\"oddsjam\")", "pi remove -l git:"),
        ];
        assert_eq!(names.len(), expected.len(), "{names:#?}");
        for (name, (begin, part)) in names.iter().zip(expected) {
            assert!(name.starts_with(begin) && name.contains(part), "{name} is not {begin} {part}");
        }
    }

    /// A project's settings are not trusted, and users paste the command into a shell.
    #[test]
    fn a_command_to_type_is_quoted() {
        let home = home(&[("project/.pi/settings.json", r#"{ "packages": ["npm:pi-sandbox@1;touch x"] }"#)]);
        assert!(names(&home)[0].ends_with("pi remove -l 'npm:pi-sandbox@1;touch x'"), "{:?}", names(&home));
    }

    #[test]
    fn broken_files_are_no_extensions() {
        let home = home(&[
            ("agent/settings.json", "{ broken"),
            ("agent/extensions/x/package.json", "[1]"),
            ("project/.pi/settings.json", r#"{ "packages": "npm:pi-sandbox" }"#),
        ]);
        assert_eq!(names(&home), [""; 0]);
    }
}
