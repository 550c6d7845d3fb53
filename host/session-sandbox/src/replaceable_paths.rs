//! Writable paths whose mounts can become outdated: single files, which a rename replaces, paths that do not exist yet,
//! and directories that are removed and created again.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use portcullis_decision::rules::{Reach, RulePlace};
use portcullis_decision::{Base, RuleSet};

/// Rules with facts about their places. Building a sandbox needs these several times, and sorting paths is slow.
#[derive(Debug, Clone, Copy)]
pub struct Surveyed<'a> {
    /// The rules.
    pub rules: &'a RuleSet,
    /// Their places.
    pub places: &'a [RulePlace],
    /// The places that a mount does not pin.
    pub loose: &'a ReplaceablePaths,
}

/// Such paths with their state when a sandbox was built.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplaceablePaths {
    /// Paths that a mount does not pin.
    loose: Vec<(PathBuf, PathState)>,
    /// Directories. A mount pins each as long as it exists.
    directories: Vec<(PathBuf, PathState)>,
}

/// The state of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathState {
    Nothing,
    /// It cannot be accessed.
    Unknown,
    /// A directory, by device and inode.
    Directory(u64, u64),
    /// A file, by device and inode.
    File(u64, u64),
}

impl ReplaceablePaths {
    /// Finds these paths among `places`, which come from rules and grants over `base`.
    pub fn among(places: &[RulePlace], base: &Base) -> Self {
        let is_named = |path: &Path| base.workspace.iter().all(|top| top != path);
        let opened = places.iter().filter(|place| place.write && place.reach == Reach::Opens);
        // Skip paths in the session's own directory, which are not on the machine's disk.
        let writable = opened.filter_map(|place| place.location.on_machine());
        let found = writable.filter(|path| is_named(path)).map(|path| (path.to_owned(), found(path)));
        let (directories, loose) = found.partition(|(_, found)| matches!(found, PathState::Directory(..)));
        Self { loose, directories }
    }

    /// Returns true if their state is unchanged.
    pub fn is_as_it_was(&self) -> bool {
        self.loose.iter().chain(&self.directories).all(|(path, before)| found(path) == *before)
    }

    /// Returns those that do not exist.
    pub fn missing(&self) -> impl Iterator<Item = &Path> {
        self.loose.iter().filter(|(_, found)| *found == PathState::Nothing).map(|(path, _)| path.as_path())
    }
}

fn found(path: &Path) -> PathState {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => PathState::Directory(metadata.dev(), metadata.ino()),
        Ok(metadata) => PathState::File(metadata.dev(), metadata.ino()),
        Err(error) if error.kind() == ErrorKind::NotFound => PathState::Nothing,
        Err(_) => PathState::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use portcullis_decision::grant::PathPattern;
    use portcullis_decision::pattern::FilePattern;
    use portcullis_decision::profile::FileRights;
    use portcullis_decision::{Base, Grant, GrantPattern, GrantScope};

    use super::*;

    #[test]
    fn what_was_replaced_or_made_is_not_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("file"), "").unwrap();
        std::fs::create_dir(at("directory")).unwrap();
        let grant = |name: &str| Grant {
            scope: GrantScope::Session,
            pattern: GrantPattern::Path(PathPattern {
                pattern: FilePattern::Tree(at(name)),
                rights: FileRights::READ_WRITE,
            }),
            granted_at: 0,
            expires_at: 0,
        };
        let base =
            Base { workspace: vec!["/w".into()], temp: "/tmp/x".into(), closed: vec![], ..Base::default() };
        let rules = RuleSet::compile(Vec::new(), base, &["file", "directory", "new"].map(grant));
        let look = || ReplaceablePaths::among(&rules.places(), rules.base());
        let loose = look();
        assert_eq!(loose.missing().collect::<Vec<_>>(), [at("new")]);
        std::fs::write(at("file"), "more").unwrap();
        std::fs::write(at("directory/x"), "").unwrap();
        assert!(loose.is_as_it_was());
        std::fs::write(at("other"), "").unwrap();
        std::fs::rename(at("other"), at("file")).unwrap();
        assert!(!loose.is_as_it_was());
        let loose = look();
        std::fs::write(at("new"), "").unwrap();
        assert!(!loose.is_as_it_was());
        assert_eq!(look().missing().count(), 0);
        let loose = look();
        std::fs::create_dir(at("again")).unwrap();
        std::fs::remove_dir_all(at("directory")).unwrap();
        std::fs::rename(at("again"), at("directory")).unwrap();
        assert!(!loose.is_as_it_was());
    }
}
