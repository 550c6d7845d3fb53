//! Directories that commands can write. A link inside one of them may be the agent's.

use std::path::{Path, PathBuf};

use crate::disk::{Followed, Link};

/// Canonical directories that commands can write, as far as settings show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Writable {
    workspace: PathBuf,
    others: Vec<PathBuf>,
}

impl Writable {
    /// Takes the workspace and the trees of `allowWrite`.
    ///
    /// Links in the paths of these trees are followed without checking who made them: an additional tree only makes
    /// fewer links trusted.
    pub(crate) fn new(workspace: &Path, trees: impl Iterator<Item = PathBuf>) -> Self {
        Self { workspace: workspace.to_owned(), others: trees.collect() }
    }

    /// Returns the first link on the path that leads out of its writable directory.
    ///
    /// A path through such a link may differ from the one that the user named.
    pub(crate) fn strayed<'a>(&self, followed: &'a Followed) -> Option<&'a Link> {
        followed.links.iter().find(|link| {
            let around = self.around(&link.at);
            let stays = |place: &Path| followed.canonical.starts_with(place);
            around.is_some_and(|place| !stays(place) && !stays(&self.workspace))
        })
    }

    /// Returns true if `path` lies in one of these directories, so that a command can replace it.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        self.around(path).is_some()
    }

    /// Returns the innermost of the directories that contain `path`.
    fn around(&self, path: &Path) -> Option<&Path> {
        let all = std::iter::once(&self.workspace).chain(&self.others).map(PathBuf::as_path);
        let holding = all.filter(|place| path.starts_with(place) && path != *place);
        holding.max_by_key(|place| place.components().count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_stays_in_the_innermost_place_around_it_or_in_the_workspace() {
        let writable = Writable::new(Path::new("/p"), ["/o", "/o/in"].map(PathBuf::from).into_iter());
        let check = |at: &str, canonical: &str, strays: bool| {
            let links = vec![Link { at: at.into(), name: at.into() }];
            let followed = Followed { canonical: canonical.into(), links, dangling: false };
            assert_eq!(writable.strayed(&followed).is_some(), strays, "{at} -> {canonical}");
        };
        check("/p/build", "/p/out", false);
        check("/p/build", "/home/u", true);
        check("/p/build", "/o/x", true);
        check("/p", "/home/u", false);
        check("/home/u/link", "/data", false);
        check("/o/in/x", "/o/y", true);
        check("/o/in/x", "/o/in/y", false);
        check("/o/x", "/p/y", false);
        check("/o/x", "/oo", true);
    }
}
