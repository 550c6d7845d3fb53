//! The repository of a project that is a linked worktree or a submodule, outside the project.
//!
//! The project's own `.git` names the repository. That alone proves nothing, since an agent can write it: the
//! repository must name the project in return, which takes write access to the repository.

use std::path::{Path, PathBuf};

use crate::disk::{Disk, follow};

/// Returns the repository directory (objects and refs) of `workspace`, if it lies outside; both paths are canonical.
pub(crate) fn git_directory(workspace: &Path, disk: &dyn Disk) -> Option<PathBuf> {
    let link = workspace.join(".git");
    let named = text(&link, disk)?;
    let named = canonical(workspace, named.strip_prefix("gitdir:")?.trim(), disk)?;
    let repository = match worktree_of(&named, &link, disk) {
        Some(repository) => repository,
        None if is_submodule(&named, workspace, disk) => named,
        None => return None,
    };
    let is_one = !repository.starts_with(workspace)
        && !workspace.starts_with(&repository)
        && text(&repository.join("HEAD"), disk).is_some();
    is_one.then_some(repository)
}

/// Returns the common directory of a linked worktree.
///
/// `worktrees/<id>/gitdir` names the worktree's `.git`, see gitrepository-layout(5).
fn worktree_of(directory: &Path, link: &Path, disk: &dyn Disk) -> Option<PathBuf> {
    let back = canonical(directory, text(&directory.join("gitdir"), disk)?.trim(), disk)?;
    let common = canonical(directory, text(&directory.join("commondir"), disk)?.trim(), disk)?;
    (back == link && directory.parent()? == common.join("worktrees")).then_some(common)
}

/// Returns true if `directory` belongs to a submodule: its `core.worktree` setting names the submodule's files.
fn is_submodule(directory: &Path, workspace: &Path, disk: &dyn Disk) -> bool {
    let settings = text(&directory.join("config"), disk).unwrap_or_default();
    let mut values = settings.lines().filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        key.trim().eq_ignore_ascii_case("worktree").then(|| value.trim().trim_matches('"'))
    });
    values.next_back().and_then(|back| canonical(directory, back, disk)).is_some_and(|back| back == workspace)
}

fn canonical(from: &Path, path: &str, disk: &dyn Disk) -> Option<PathBuf> {
    if path.is_empty() {
        return None;
    }
    let followed = follow(&from.join(path), disk).ok()?;
    (!followed.dangling).then_some(followed.canonical)
}

fn text(path: &Path, disk: &dyn Disk) -> Option<String> {
    String::from_utf8(disk.read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;

    fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    struct Case {
        _root: tempfile::TempDir,
        tree: PathBuf,
        main: PathBuf,
    }

    /// A worktree and a submodule as git makes them.
    fn case() -> Case {
        let root = tempfile::tempdir().unwrap();
        let top = root.path().canonicalize().unwrap();
        let (tree, main) = (top.join("tree"), top.join("main/.git"));
        write(&tree.join(".git"), &format!("gitdir: {}\n", main.join("worktrees/tree").display()));
        write(&main.join("HEAD"), "ref: refs/heads/main\n");
        write(&main.join("worktrees/tree/gitdir"), &format!("{}\n", tree.join(".git").display()));
        write(&main.join("worktrees/tree/commondir"), "../..\n");
        write(&top.join("main/sub/.git"), "gitdir: ../.git/modules/sub\n");
        write(&main.join("modules/sub/HEAD"), "ref: refs/heads/main\n");
        write(&main.join("modules/sub/config"), "[core]\n\tbare = false\n\tworktree = ../../../sub\n");
        Case { _root: root, tree, main }
    }

    #[test]
    fn worktrees_and_submodules_lead_to_their_repository() {
        let case = case();
        assert_eq!(git_directory(&case.tree, &RealDisk), Some(case.main.clone()));
        let sub = case.main.with_file_name("sub");
        assert_eq!(git_directory(&sub, &RealDisk), Some(case.main.join("modules/sub")));
        // Newer versions of git write relative paths.
        write(&case.main.join("worktrees/tree/gitdir"), "../../../../tree/.git\n");
        write(&case.tree.join(".git"), "gitdir: ../main/.git/worktrees/tree\n");
        assert_eq!(git_directory(&case.tree, &RealDisk), Some(case.main.clone()));
    }

    #[test]
    fn a_project_alone_opens_nothing() {
        let case = case();
        let other = case.tree.with_file_name("other");
        // The project names a foreign repository, which does not name the project.
        for target in
            ["../main/.git/worktrees/tree", "../main/.git/modules/sub", "../main/.git", "..", "/", ""]
        {
            write(&other.join(".git"), &format!("gitdir: {target}\n"));
            assert_eq!(git_directory(&other, &RealDisk), None, "{target}");
        }
        // The project has a repository of its own that names a foreign directory as the common one.
        write(&other.join(".git"), "gitdir: fake/worktrees/x\n");
        write(&other.join("fake/worktrees/x/gitdir"), "../../../.git\n");
        write(&other.join("fake/worktrees/x/commondir"), &format!("{}\n", case.main.display()));
        assert_eq!(git_directory(&other, &RealDisk), None);
        // An ordinary repository lies inside its project.
        assert_eq!(git_directory(case.main.parent().unwrap(), &RealDisk), None);
    }
}
