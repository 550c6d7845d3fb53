//! Finding the git directory of a working tree.

use std::path::{Component, Path, PathBuf};

use crate::directory::Directory;
use crate::stamp::Stamps;

/// The most directories above that are looked into.
const LEVELS: usize = 64;
/// The longest `.git` file, and the longest pointer in a git directory.
const POINTER: usize = 4 << 10;

/// The git directory of a working tree.
#[derive(Debug)]
pub(crate) struct GitDirectory {
    /// The top of the working tree.
    pub(crate) root: PathBuf,
    /// `HEAD` and the index of this working tree.
    pub(crate) own: Directory,
    pub(crate) own_path: PathBuf,
    /// References and configuration, which worktrees share.
    pub(crate) common: Directory,
    pub(crate) common_path: PathBuf,
}

impl GitDirectory {
    /// Finds the repository that contains `directory`: the one whose `.git` is nearest, as for git.
    pub(crate) fn find(directory: &Path, stamps: &mut Stamps) -> Option<Self> {
        for root in directory.ancestors().take(LEVELS) {
            let name = root.join(".git");
            stamps.note(name.clone());
            let at = Directory::open(root)?;
            if at.state(".git").is_none() {
                continue;
            }
            let git = match at.child(".git") {
                Some(own) => {
                    let common = at.child(".git")?;
                    let (own_path, common_path) = (name.clone(), name);
                    Self { root: root.to_owned(), own, own_path, common, common_path }
                }
                None => Self::pointed_to(root, &at, stamps)?,
            };
            return (at.is_own() && git.own.is_own() && git.common.is_own()).then_some(git);
        }
        None
    }

    /// Follows the `.git` file of a worktree or a submodule.
    fn pointed_to(root: &Path, at: &Directory, stamps: &mut Stamps) -> Option<Self> {
        let text = at.read(".git", POINTER)?;
        let target = line(text.strip_prefix(b"gitdir: ")?)?;
        let own_path = resolved(root, target)?;
        let own = Directory::open(&own_path)?;
        let pointer = own_path.join("commondir");
        stamps.note(pointer);
        if own.state("commondir").is_none() {
            // A submodule: its repository is part of one above, which is that of the user's own project.
            let is_module =
                root.ancestors().skip(1).any(|top| own_path.starts_with(top.join(".git/modules")));
            let common = Directory::open(&own_path).filter(|_| is_module)?;
            let common_path = own_path.clone();
            return Some(Self { root: root.to_owned(), own, own_path, common, common_path });
        }
        // A worktree: its repository must name this very file; git always writes the same path to the common directory.
        let named = own.read("gitdir", POINTER)?;
        let is_mutual = Path::new(line(&named)?) == root.join(".git");
        let leads_up = line(&own.read("commondir", POINTER)?)? == "../..";
        let common_path = own_path.parent()?.parent()?.to_owned();
        let common = Directory::open(&common_path).filter(|_| is_mutual && leads_up)?;
        Some(Self { root: root.to_owned(), own, own_path, common, common_path })
    }
}

/// Returns the text of a file with one line.
fn line(text: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(text).ok()?;
    let line = text.strip_suffix('\n').unwrap_or(text);
    (!line.is_empty() && !line.contains(['\n', '\0'])).then_some(line)
}

/// Returns the path that `target` is, seen from `directory`, without `.` and `..`. The parts of the result are opened
/// without following links, so that the removed ones cannot have led elsewhere.
fn resolved(directory: &Path, target: &str) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for part in directory.join(target).components() {
        match part {
            Component::RootDir | Component::Normal(_) => path.push(part),
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop().then_some(())?;
            }
            Component::Prefix(_) => return None,
        }
    }
    Some(path)
}
