//! The places that commands write. A link that lies in one leads where the agent wants it to lead.

use std::path::{Path, PathBuf};

use crate::disk::{Followed, Link};

/// Canonical directories that commands may write, as far as that is known from settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Writable {
    workspace: PathBuf,
    others: Vec<PathBuf>,
}

impl Writable {
    /// The workspace and the trees of `allowWrite`. Those are followed here without asking who made the links on
    /// the way: a tree too many makes no link more trustworthy.
    pub(crate) fn new(workspace: &Path, trees: impl Iterator<Item = PathBuf>) -> Self {
        Self { workspace: workspace.to_owned(), others: trees.collect() }
    }

    /// Returns the first link on the way that leads out of the place it lies in. What is allowed under such a name is
    /// not what the user named, as far as anybody can tell.
    pub(crate) fn strayed<'a>(&self, followed: &'a Followed) -> Option<&'a Link> {
        followed.links.iter().find(|link| {
            let around = self.around(&link.at);
            let stays = |place: &Path| followed.canonical.starts_with(place);
            around.is_some_and(|place| !stays(place) && !stays(&self.workspace))
        })
    }

    /// Whether `path` lies in one of these places, where a command can put something else in its stead.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        self.around(path).is_some()
    }

    /// The innermost of the places that hold `path`.
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
