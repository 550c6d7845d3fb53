//! Locations: directories of the machine, or of the session alone.

use std::path::{Path, PathBuf};

/// A file or directory, either of the machine or of the session.
///
/// Commands see the session's temporary directory under a name that the machine has as well (`/tmp`). The same text
/// then means two directories, so rules, settings and mounts distinguish them by this type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Location {
    /// A file or directory of the machine, at this absolute path.
    Machine(PathBuf),
    /// A file or directory below the session's temporary directory, relative to it; or one in another directory of the
    /// sandbox's own, by its absolute path.
    Session(PathBuf),
}

impl Location {
    /// Returns the location of a path in the settings, if `temp` is the name of the session's temporary directory.
    ///
    /// The name itself means the session's directory, but names below it mean the machine's: the content of the
    /// session's directory is unknown before it starts.
    #[must_use]
    pub fn of_setting(path: PathBuf, temp: &Path) -> Self {
        if path == temp { Self::Session(PathBuf::new()) } else { Self::Machine(path) }
    }

    /// Returns true if this is `other`, or is below it in the same directory tree.
    #[must_use]
    pub fn lies_in(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Machine(path), Self::Machine(top)) | (Self::Session(path), Self::Session(top)) => {
                path.starts_with(top)
            }
            (Self::Machine(_), Self::Session(_)) | (Self::Session(_), Self::Machine(_)) => false,
        }
    }

    /// Returns the path on the machine; `None` for a location that only the session has.
    #[must_use]
    pub fn on_machine(&self) -> Option<&Path> {
        match self {
            Self::Machine(path) => Some(path),
            Self::Session(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_and_the_machine_share_no_directory() {
        let at = |path: &str| Location::of_setting(path.into(), Path::new("/tmp"));
        assert_eq!(at("/tmp"), Location::Session("".into()));
        assert_eq!(at("/tmp/x"), Location::Machine("/tmp/x".into()));
        assert!(Location::Session("x".into()).lies_in(&at("/tmp")));
        assert!(!at("/tmp/x").lies_in(&at("/tmp")));
        assert!(!at("/tmp").lies_in(&at("/")));
        assert!(at("/tmp/x/y").lies_in(&at("/tmp/x")) && !at("/tmp/xy").lies_in(&at("/tmp/x")));
        assert_eq!(at("/tmp").on_machine(), None);
    }
}
