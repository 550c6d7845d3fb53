//! The repository of a project that is a linked worktree or a submodule: it lies elsewhere.
//!
//! The project's own `.git` names it, and what the project says is not believed by itself: the repository has to
//! name the project in return, which nobody can write who cannot write there.

use std::path::{Path, PathBuf};

use crate::disk::{Disk, follow};

/// Returns the directory with the objects and names of the repository that `workspace` belongs to, where that
/// is outside of it; both are canonical.
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

/// See gitrepository-layout(5): `worktrees/<id>/gitdir` leads back to the `.git` of the worktree.
fn worktree_of(directory: &Path, link: &Path, disk: &dyn Disk) -> Option<PathBuf> {
    let back = canonical(directory, text(&directory.join("gitdir"), disk)?.trim(), disk)?;
    let common = canonical(directory, text(&directory.join("commondir"), disk)?.trim(), disk)?;
    (back == link && directory.parent()? == common.join("worktrees")).then_some(common)
}

/// The directory of a submodule has a setting that leads back to its files.
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
        // Paths may be relative, as new versions of git write them.
        write(&case.main.join("worktrees/tree/gitdir"), "../../../../tree/.git\n");
        write(&case.tree.join(".git"), "gitdir: ../main/.git/worktrees/tree\n");
        assert_eq!(git_directory(&case.tree, &RealDisk), Some(case.main.clone()));
    }

    #[test]
    fn a_project_alone_opens_nothing() {
        let case = case();
        let other = case.tree.with_file_name("other");
        // It names somebody else's repository, which does not know it.
        for target in
            ["../main/.git/worktrees/tree", "../main/.git/modules/sub", "../main/.git", "..", "/", ""]
        {
            write(&other.join(".git"), &format!("gitdir: {target}\n"));
            assert_eq!(git_directory(&other, &RealDisk), None, "{target}");
        }
        // It brings a repository of its own that claims a place elsewhere as the common one.
        write(&other.join(".git"), "gitdir: fake/worktrees/x\n");
        write(&other.join("fake/worktrees/x/gitdir"), "../../../.git\n");
        write(&other.join("fake/worktrees/x/commondir"), &format!("{}\n", case.main.display()));
        assert_eq!(git_directory(&other, &RealDisk), None);
        // A usual repository has nothing elsewhere.
        assert_eq!(git_directory(case.main.parent().unwrap(), &RealDisk), None);
    }
}
