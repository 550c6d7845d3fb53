//! Pointers from one part of a repository to another, judged by their target.
//!
//! Git writes three: the `.git` *file* of a worktree or submodule, `commondir` and `gitdir` in `.git/worktrees/NAME`,
//! and `core.worktree` in the configuration of a submodule. Each makes git use another directory as the repository or
//! its working tree, so only what git itself writes passes.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::finding::Finding;
use super::url::{self, Local};
use crate::site::Site;

/// Git's prefix of the path in a `.git` file.
const GIT_FILE: &[u8] = b"gitdir: ";

/// Returns why the `.git` file at `path` has a target that git would not give it; `None` if it is fine.
pub(crate) fn git_file(path: &Path, text: &[u8], site: &Site<'_>) -> Option<String> {
    if text.is_empty() {
        return None;
    }
    let Some(target) = text.strip_prefix(GIT_FILE).and_then(line) else {
        return Some("it is not one line `gitdir: PATH`".to_owned());
    };
    let from = path.parent()?;
    let Some(target) = resolve(from, target, site) else {
        return Some(format!("`{target}` is no plain path"));
    };
    let leads_to_own = is_worktree_of_repository(&target) || is_module_of_repository(&target, from);
    if leads_to_own && site.holds_straight(&target) {
        return None;
    }
    Some(format!(
        "`{}` is neither a worktree nor a submodule of a repository in the workspace",
        target.to_string_lossy().escape_debug()
    ))
}

/// Returns why the `commondir` file at `path` does not lead to its own repository.
pub(crate) fn common_directory(path: &Path, text: &[u8]) -> Option<String> {
    let lies_in_worktree = path.parent().is_some_and(is_worktree_of_repository);
    if text.is_empty() || lies_in_worktree && line(text) == Some("../..") {
        return None;
    }
    Some("it makes git take its configuration and hooks from another directory".to_owned())
}

/// Returns why the `gitdir` file of a worktree does not name a `.git` file in the workspace: git writes that file
/// (`git worktree repair`), and a push may write the files beside it.
pub(crate) fn way_back(text: &[u8], site: &Site<'_>) -> Option<String> {
    // Before 2.48 git resolves a relative path from its working directory, which may be anything.
    let names_git_file = |line: &str| {
        let target = resolve(Path::new("/"), line, site).filter(|_| line.starts_with('/'));
        target.is_some_and(|target| target.ends_with(".git") && site.holds_straight(&target))
    };
    if text.is_empty() || line(text).is_some_and(names_git_file) {
        return None;
    }
    Some("it is not the path of one `.git` file in the workspace".to_owned())
}

/// Returns true if `core.worktree` in the configuration file `path` is what git writes for a submodule.
pub(crate) fn is_own_worktree(path: &Path, value: &[u8], site: &Site<'_>) -> bool {
    let Some(directory) = path.parent() else { return false };
    let Some(target) = std::str::from_utf8(value).ok().and_then(|value| resolve(directory, value, site))
    else {
        return false;
    };
    let lies_in_modules =
        split_at_git(directory).is_some_and(|(_, inside)| inside.iter().any(|name| name == "modules"));
    lies_in_modules && site.holds_straight(&target) && split_at_git(&target).is_none()
}

/// Returns true if an address in the configuration file `path` is not in the file system, or is in the workspace, or is
/// a repository that commands can read anyhow: what the user's git fetches from there is no news to them.
pub(crate) fn is_near(path: &Path, value: &str, site: &Site<'_>) -> bool {
    let local = match url::local(value) {
        None | Some(Local::Path("" | ".")) => return true,
        Some(Local::Derived) => return false,
        Some(Local::Path(local)) => local,
    };
    let Some(directory) = path.parent() else { return false };
    let is_inside = |from: &Path| {
        let target = resolve(from, local, site);
        target.is_some_and(|target| site.holds_straight(&target) || (site.is_shown_repository)(&target))
    };
    match split_at_git(directory) {
        // Relative to the working tree; the one of a submodule is unknown.
        Some((top, inside)) if inside.is_empty() => is_inside(&top),
        Some(_) => (local.starts_with('/') || !climbs(local.as_bytes())) && is_inside(directory),
        None => is_inside(directory),
    }
}

/// Returns the lines of `objects/info/alternates` at `path` that take objects from outside of the workspace.
pub(crate) fn lends(path: &Path, previous: Option<&[u8]>, new: &[u8], site: &Site<'_>) -> Vec<Finding> {
    let objects = path.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    let is_inside = |line: &[u8]| {
        // Git removes the quotes.
        let line = std::str::from_utf8(line).ok().filter(|line| !line.starts_with('"'));
        line.and_then(|line| resolve(objects, line, site)).is_some_and(|target| site.holds_straight(&target))
    };
    let is_told = |line: &[u8]| !line.is_empty() && !line.starts_with(b"#") && !is_inside(line);
    let telling = |text: &[u8]| -> Vec<(usize, Vec<u8>)> {
        let lines = text.split(|byte| *byte == b'\n').enumerate();
        lines.filter(|(_, line)| is_told(line)).map(|(index, line)| (index + 1, line.to_vec())).collect()
    };
    let before: BTreeSet<Vec<u8>> =
        previous.map(telling).unwrap_or_default().into_iter().map(|(_, line)| line).collect();
    let why = "git takes objects from a repository outside of the project";
    let added = telling(new).into_iter().filter(|(_, line)| !before.contains(line));
    added.map(|(line, _)| Finding { line, key: None, why: why.to_owned() }).collect()
}

/// Returns true if a path, or a text that contains one, leads upwards.
#[must_use]
pub fn climbs(text: &[u8]) -> bool {
    text.windows(3).any(|part| part == b"../") || text.ends_with(b"..")
}

/// Returns the only line of `text`, if it contains no control characters.
fn line(text: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(text).ok()?;
    let line = text.strip_suffix('\n').unwrap_or(text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    (!line.is_empty() && !line.chars().any(char::is_control)).then_some(line)
}

/// Resolves `value` from `directory`. After a name that may become a link `..` is refused, but not after the path of the
/// workspace: `git clone ../lib` writes `/path/of/workspace/../lib`.
fn resolve(directory: &Path, value: &str, site: &Site<'_>) -> Option<PathBuf> {
    let value = Path::new(value);
    let mut path = if value.is_absolute() { PathBuf::new() } else { directory.to_owned() };
    let mut named = value.is_absolute();
    for component in value.components() {
        match component {
            Component::ParentDir if named && !site.is_fixed(&path) => return None,
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir | Component::Prefix(_) => {}
            Component::RootDir => path.push("/"),
            Component::Normal(name) => {
                named = true;
                path.push(name);
            }
        }
    }
    Some(path)
}

/// Splits `path` at its first component `.git`: the part before, and the names after.
fn split_at_git(path: &Path) -> Option<(PathBuf, Vec<std::ffi::OsString>)> {
    let mut components = path.components();
    let before: PathBuf = components.by_ref().take_while(|part| part.as_os_str() != ".git").collect();
    if before == path {
        return None;
    }
    Some((before, components.map(|part| part.as_os_str().to_owned()).collect()))
}

/// Returns true for `….git/worktrees/NAME`, also in a submodule's repository.
fn is_worktree_of_repository(path: &Path) -> bool {
    let Some((_, inside)) = split_at_git(path) else { return false };
    match inside.as_slice() {
        [worktrees, _] => worktrees == "worktrees",
        [modules, .., worktrees, _] => modules == "modules" && worktrees == "worktrees",
        _ => false,
    }
}

/// Returns true for `….git/modules/…` of a repository that contains `from`, or of one of its worktrees.
fn is_module_of_repository(path: &Path, from: &Path) -> bool {
    let Some((top, inside)) = split_at_git(path) else { return false };
    match inside.as_slice() {
        [modules, _, ..] if modules == "modules" => from != top && from.starts_with(top),
        [worktrees, _, modules, _, ..] => worktrees == "worktrees" && modules == "modules",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(path: &str, text: &str) -> bool {
        let roots = [PathBuf::from("/w"), PathBuf::from("/tmp/s")];
        let site = Site::without_files(&roots[0], &roots);
        git_file(Path::new(path), text.as_bytes(), &site).is_none()
    }

    #[test]
    fn git_files_that_git_writes() {
        assert!(judged("/w/sub/.git", "gitdir: ../.git/modules/sub\n"));
        assert!(judged("/w/a/b/.git", "gitdir: ../../.git/modules/a/b\n"));
        assert!(judged("/w/a/b/.git", "gitdir: ../../.git/modules/a/modules/b"));
        assert!(judged("/tmp/s/wt/.git", "gitdir: /w/.git/worktrees/wt\n"));
        assert!(judged("/w/wt/.git", "gitdir: ../.git/worktrees/wt\n"));
        assert!(judged("/w/p/wt/.git", "gitdir: /w/p/.git/modules/x/worktrees/wt\n"));
        assert!(judged("/w/wt/sub/.git", "gitdir: ../../.git/worktrees/wt/modules/sub\r\n"));
        assert!(judged("/w/wt/.git", ""));
    }

    #[test]
    fn git_files_that_lead_elsewhere() {
        for text in [
            "gitdir: ./evil\n",
            "gitdir: ../evil.git\n",
            "gitdir: /etc/.git/worktrees/x\n",
            "gitdir: ../.git/worktrees/../../evil\n",
            "gitdir: ../.git/hooks\n",
            "gitdir: ../.git\n",
            "gitdir: ../fixtures/x.git/worktrees/y\n",
            "gitdir: a\ngitdir: b\n",
            "gitdir:../.git/modules/x\n",
            "gitdir: \n",
            "x",
        ] {
            assert!(!judged("/w/sub/.git", text), "{text}");
        }
        assert!(!judged("/w/.git", "gitdir: .git/modules/x\n"), "a repository is no submodule of itself");
        assert!(!judged("/w/a/.git", "gitdir: ../b/.git/modules/x\n"), "a submodule of somebody else");
    }

    #[test]
    fn common_directories_lead_to_the_own_repository() {
        let judged = |path: &str, text: &str| common_directory(Path::new(path), text.as_bytes()).is_none();
        assert!(judged("/w/.git/worktrees/a/commondir", "../..\n"));
        assert!(judged("/w/.git/modules/m/worktrees/a/commondir", "../.."));
        assert!(!judged("/w/.git/commondir", "../..\n"));
        assert!(!judged("/w/.git/commondir", "../evil\n"));
        assert!(!judged("/w/x.git/commondir", "../..\n"));
        assert!(!judged("/w/.git/worktrees/a/commondir", "../../../evil\n"));
        assert!(!judged("/w/.git/worktrees/a/commondir", "../..\nx\n"));
    }

    #[test]
    fn ways_back_name_a_git_file() {
        let roots = [PathBuf::from("/w"), PathBuf::from("/home/u/trees")];
        let site = Site {
            is_link: &|path| path == Path::new("/w/a/link"),
            ..Site::without_files(&roots[0], &roots)
        };
        let passes = |text: &str| way_back(text.as_bytes(), &site).is_none();
        for text in ["", "/w/p/wt/.git\n", "/w/wt/.git", "/home/u/trees/x/.git\n"] {
            assert!(passes(text), "{text}");
        }
        for text in [
            "/etc/passwd\n",
            "/w/a/b\n",
            "/w/a/.git\n/w/b/.git\n",
            "/home/u/.git\n",
            "/home/u/treesx/.git\n",
            "/w/../home/u/.git\n",
            "/w/a/link/.git\n",
            "/w/a/link/x/.git\n",
            "../../../../../home/u/.git\n",
            "../../.git\n",
            "wt/.git\n",
        ] {
            assert!(!passes(text), "{text}");
        }
    }

    #[test]
    fn worktrees_of_submodules() {
        let roots = [PathBuf::from("/w")];
        let site = Site::without_files(&roots[0], &roots);
        let own = |path: &str, value: &str| is_own_worktree(Path::new(path), value.as_bytes(), &site);
        assert!(own("/w/.git/modules/sub/config", "../../../sub"));
        assert!(own("/w/.git/modules/a/modules/b/config.worktree", "../../../../../a/b"));
        assert!(own("/w/.git/worktrees/x/modules/b/config", "../../../../../x/b"));
        assert!(!own("/w/.git/config", "../sub"));
        assert!(!own("/w/.git/modules/sub/config", "/home/u"));
        assert!(!own("/w/.git/modules/sub/config", "../../../../u"));
        assert!(!own("/w/.git/modules/sub/config", "../../../sub/../../u"));
        assert!(!own("/w/.git/modules/sub/config", "../../../.git/hooks"));
    }

    #[test]
    fn an_address_can_be_a_repository_that_commands_read() {
        let roots = [PathBuf::from("/w")];
        let is_shown = |path: &Path| path == Path::new("/lib");
        let site = Site { is_shown_repository: &is_shown, ..Site::without_files(&roots[0], &roots) };
        for (address, expected) in [
            ("/lib", true),
            ("../lib", true),
            ("/w/../lib", true),
            ("/other", false),
            ("/lib/../other", false),
            ("/other/../lib", false),
            ("/w/a/../../lib", false),
            ("/w/../other/../lib", false),
        ] {
            assert_eq!(is_near(Path::new("/w/.git/config"), address, &site), expected, "{address}");
        }
        // Commands can replace a directory above the workspace that lies in another root.
        let roots = [PathBuf::from("/w/p"), PathBuf::from("/w"), PathBuf::from("/")];
        let site = Site { is_shown_repository: &is_shown, ..Site::without_files(&roots[0], &roots[..1]) };
        assert!(is_near(Path::new("/w/p/.git/config"), "/w/p/../../lib", &site));
        let site = Site { is_shown_repository: &is_shown, ..Site::without_files(&roots[0], &roots[..2]) };
        assert!(!is_near(Path::new("/w/p/.git/config"), "/w/p/../../lib", &site));
    }

    #[test]
    fn nothing_leads_through_a_link() {
        let roots = [PathBuf::from("/w")];
        let links = |linked: &'static str| move |path: &Path| path == Path::new(linked);
        let judged = |is_link: &dyn Fn(&Path) -> bool| {
            let site = Site { exists: &|_| true, is_link, ..Site::without_files(&roots[0], &roots) };
            let module = Path::new("/w/.git/modules/sub/config");
            let file = git_file(Path::new("/w/a/sub/.git"), b"gitdir: ../../.git/modules/sub\n", &site);
            let alternates = Path::new("/w/b/.git/objects/info/alternates");
            [
                is_own_worktree(module, b"../../../a/sub", &site),
                is_near(Path::new("/w/.git/config"), "a/sub", &site),
                lends(alternates, None, b"/w/a/sub/objects\n", &site).is_empty(),
                file.is_none(),
            ]
        };
        assert_eq!(judged(&|_| false), [true; 4]);
        // A root counts as it is, whatever links lead to it.
        assert_eq!(judged(&links("/w")), [true; 4]);
        assert_eq!(judged(&links("/w/a")), [false, false, false, true]);
        assert_eq!(judged(&links("/w/a/sub")), [false, false, false, true]);
        assert_eq!(judged(&links("/w/.git/modules/sub")), [true, true, true, false]);
    }
}
