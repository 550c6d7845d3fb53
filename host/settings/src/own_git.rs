//! Finds the hooks and settings that the user's own git takes from files of the project.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use portcullis_decision::path_text::normalize;
use portcullis_exec_surface::GIT_CONFIG;
use portcullis_exec_surface::git::config_text::parse;
use portcullis_settings_format::{ConfigError, HOOK_FILES};

use crate::disk::Disk;
use crate::protections::ProtectedAccess;

/// Maximum include depth, the limit of git.
const DEEPEST_INCLUDE: usize = 10;

/// A path from which the user's git takes hooks or settings.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// The id of its rule.
    pub(crate) id: &'static str,
    /// The path, as git's settings name it.
    pub(crate) path: PathBuf,
    /// The protection that it needs.
    pub(crate) kind: ProtectedAccess,
    /// One sentence for the user.
    pub(crate) reason: &'static str,
}

/// Returns the paths that git's settings for `workspace` name.
///
/// # Errors
/// For a file that cannot be read now, and that git may be able to read later. Files of other users that this one cannot
/// read are skipped; git refuses to work with them.
pub(crate) fn sources(
    workspace: &Path,
    homes: &[PathBuf],
    disk: &dyn Disk,
) -> Result<Vec<Source>, ConfigError> {
    let (top, mut files) = repository(workspace, disk)?;
    files.extend(homes.iter().flat_map(|home| [home.join(".gitconfig"), home.join(".config/git/config")]));
    let mut reading = Reading { top, homes, disk, read: BTreeSet::new(), found: Vec::new() };
    for file in files {
        reading.file(&file, 0)?;
    }
    Ok(reading.found)
}

/// Returns the top of the working tree around `workspace`, and its git settings files.
fn repository(workspace: &Path, disk: &dyn Disk) -> Result<(PathBuf, Vec<PathBuf>), ConfigError> {
    for top in workspace.ancestors() {
        let git = top.join(".git");
        if disk.look(&git).is_err() {
            continue;
        }
        // In a worktree or submodule `.git` is a file that names the git directory, which may name a common directory.
        let own = pointed_at(&git, "gitdir: ", disk)?.unwrap_or_else(|| git.clone());
        let common = pointed_at(&own.join("commondir"), "", disk)?.unwrap_or_else(|| own.clone());
        return Ok((top.to_owned(), vec![common.join("config"), own.join("config.worktree")]));
    }
    Ok((workspace.to_owned(), Vec::new()))
}

/// Reads a file if there is one that git could read as well.
fn read(file: &Path, disk: &dyn Disk) -> Result<Option<Vec<u8>>, ConfigError> {
    use std::io::ErrorKind::{InvalidInput, NotADirectory, NotFound, PermissionDenied};
    match disk.read(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory | PermissionDenied | InvalidInput) => {
            Ok(None)
        }
        Err(source) => Err(ConfigError::OfGit { file: file.to_owned(), source }),
    }
}

/// Returns the path in a file of one line.
fn pointed_at(file: &Path, prefix: &str, disk: &dyn Disk) -> Result<Option<PathBuf>, ConfigError> {
    let text = read(file, disk)?.and_then(|bytes| String::from_utf8(bytes).ok());
    let target = text.as_deref().and_then(|text| text.strip_prefix(prefix));
    let target = target.map(|target| target.trim_end_matches(['\n', '\r']));
    Ok(file.parent().zip(target).map(|(directory, target)| directory.join(target)))
}

struct Reading<'a> {
    top: PathBuf,
    homes: &'a [PathBuf],
    disk: &'a dyn Disk,
    read: BTreeSet<PathBuf>,
    found: Vec<Source>,
}

impl Reading<'_> {
    fn file(&mut self, file: &Path, depth: usize) -> Result<(), ConfigError> {
        self.read.insert(file.to_owned());
        // Git refuses to work with a file that it cannot parse.
        let entries = read(file, self.disk)?.and_then(|text| parse(&text).ok()).unwrap_or_default();
        for entry in entries {
            let value = entry.value.and_then(|value| String::from_utf8(value).ok());
            let Some(value) = value.filter(|value| !value.is_empty()) else { continue };
            let is_include = entry.name == b"include.path"
                || entry.name.starts_with(b"includeif.") && entry.name.ends_with(b".path");
            if entry.name == b"core.hookspath" {
                self.add(HOOK_FILES, self.expand(&value, &self.top), ProtectedAccess::Fixed, HOOKS);
            } else if is_include && depth < DEEPEST_INCLUDE {
                let from = file.parent().unwrap_or(Path::new("/"));
                let path = self.expand(&value, from);
                // Skip a file that was read before, and git's own settings files, which are judged by their content.
                if !self.read.contains(&path) {
                    self.file(&path, depth + 1)?;
                    self.add(GIT_CONFIG.id, path, ProtectedAccess::FixedOutside, INCLUDED);
                }
            }
        }
        Ok(())
    }

    fn expand(&self, value: &str, from: &Path) -> PathBuf {
        let home = self.homes.first().map_or(Path::new("/"), PathBuf::as_path);
        let path = match value.strip_prefix("~/") {
            Some(below) => home.join(below),
            None => from.join(value),
        };
        normalize(&path)
    }

    fn add(&mut self, id: &'static str, path: PathBuf, kind: ProtectedAccess, reason: &'static str) {
        let source = Source { id, path, kind, reason };
        // A directory that contains the whole working tree cannot be made read-only.
        if !self.top.starts_with(&source.path) && !self.found.contains(&source) {
            self.found.push(source);
        }
    }
}

const HOOKS: &str = "your own git takes its hooks from it";

const INCLUDED: &str = "your own git reads settings from it";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;

    fn found(files: &[(&str, &str)], workspace: &str) -> Vec<(String, String)> {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text.replace("TOP", &directory.path().display().to_string())).unwrap();
        }
        let homes = [directory.path().join("home")];
        let sources = sources(&directory.path().join(workspace), &homes, &RealDisk).unwrap();
        let below = |path: &Path| path.strip_prefix(directory.path()).unwrap_or(path).display().to_string();
        sources.iter().map(|source| (source.id.to_owned(), below(&source.path))).collect()
    }

    fn pair(id: &str, path: &str) -> (String, String) {
        (id.to_owned(), path.to_owned())
    }

    #[test]
    fn hooks_and_includes_of_the_repository() {
        let config =
            "[core]\n\thooksPath = scripts/hooks\n[include]\n\tpath = ../.gitconfig\n\tpath = ~/shared\n";
        let files = [("p/.git/config", config), ("p/.gitconfig", "[core]\nhooksPath = other\n")];
        let expected = [
            pair("host.git-hook-files", "p/scripts/hooks"),
            pair("host.git-hook-files", "p/other"),
            pair("host.git-config", "p/.gitconfig"),
            pair("host.git-config", "home/shared"),
        ];
        assert_eq!(found(&files, "p"), expected);
        assert_eq!(found(&files, "p/deeper/still"), expected);
    }

    #[test]
    fn hooks_that_the_user_has_everywhere() {
        let files = [
            ("home/.gitconfig", "[core]\nhooksPath = .githooks\n[includeIf \"gitdir:~/\"]\npath = work\n"),
            ("home/work", "[core]\nhooksPath = TOP/p/mine\n"),
            ("p/f", ""),
        ];
        let expected = [
            pair("host.git-hook-files", "p/.githooks"),
            pair("host.git-hook-files", "p/mine"),
            pair("host.git-config", "home/work"),
        ];
        assert_eq!(found(&files, "p"), expected);
    }

    #[test]
    fn worktrees_have_the_settings_of_their_repository() {
        let files = [
            ("p/.git/config", "[core]\nhooksPath = hooks\n"),
            ("p/.git/worktrees/w/commondir", "../..\n"),
            ("p/.git/worktrees/w/config.worktree", "[core]\nhooksPath = own\n"),
            ("w/.git", "gitdir: TOP/p/.git/worktrees/w\n"),
        ];
        assert_eq!(
            found(&files, "w"),
            [pair("host.git-hook-files", "w/hooks"), pair("host.git-hook-files", "w/own")]
        );
    }

    #[test]
    fn what_makes_no_sense_protects_nothing() {
        let itself =
            "[include]\npath = config\n[core]\nhooksPath = .\nhooksPath = /\nhooksPath\nhooksPath =\n";
        assert_eq!(found(&[("p/.git/config", itself)], "p"), []);
        assert_eq!(found(&[("p/.git/config", "[core\nhooksPath = x\n")], "p"), []);
        assert_eq!(found(&[], "p"), []);
    }
}
