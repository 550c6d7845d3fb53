//! What is on the disk at the paths that rules name.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use portcullis_sandbox::Access;

/// Paths as they are on the disk. Each is looked up once.
#[derive(Default)]
pub(super) struct Disk {
    /// By path; `None` where nothing exists.
    canonical: HashMap<PathBuf, Option<PathBuf>>,
    /// By path, whether it may exist. Links are not followed.
    exists: HashMap<PathBuf, bool>,
}

impl Disk {
    /// Returns the path to use for a place. A rule that restricts a link restricts its target. A rule that opens a
    /// link, or opens a missing path for writing, opens nothing.
    pub(super) fn place(&mut self, path: &Path, access: Access) -> Option<PathBuf> {
        let canonical = match self.canonicalize(path) {
            Ok(canonical) => canonical,
            Err(_) if access == Access::ReadWrite => return None,
            // No link leads elsewhere.
            Err(_) if self.exists.get(path) == Some(&false) => return Some(path.to_owned()),
            Err(_) => return missing(path),
        };
        if canonical == path {
            return Some(canonical);
        }
        (access == Access::Hidden).then_some(canonical)
    }

    /// Returns the path itself if it exists, or the closest directory above it that does.
    pub(super) fn existing<'a>(&mut self, path: &'a Path) -> Option<&'a Path> {
        path.ancestors().find(|above| {
            if let Some(known) = self.exists.get(*above) {
                return *known;
            }
            // A path that cannot be examined may exist.
            let exists =
                above.symlink_metadata().map_or_else(|error| error.kind() != ErrorKind::NotFound, |_| true);
            self.exists.insert(above.to_path_buf(), exists);
            exists
        })
    }

    fn canonicalize(&mut self, path: &Path) -> io::Result<PathBuf> {
        if let Some(known) = self.canonical.get(path) {
            return known.clone().ok_or_else(|| ErrorKind::NotFound.into());
        }
        let canonical = self.look(path);
        match &canonical {
            Ok(canonical) => drop(self.canonical.insert(path.to_owned(), Some(canonical.clone()))),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                drop(self.canonical.insert(path.to_owned(), None));
            }
            Err(_) => {}
        }
        canonical
    }

    fn look(&mut self, path: &Path) -> io::Result<PathBuf> {
        match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => {
                let found = self.canonicalize(parent).and_then(|parent| {
                    let place = parent.join(name);
                    match place.read_link() {
                        Ok(_) => Ok((place, true)),
                        // It is there, and no link.
                        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok((place, false)),
                        Err(error) => Err(error),
                    }
                });
                let exists = match &found {
                    Ok(_) => Some(true),
                    Err(error) => (error.kind() == ErrorKind::NotFound).then_some(false),
                };
                self.exists.extend(exists.map(|exists| (path.to_owned(), exists)));
                let (place, is_link) = found?;
                if is_link { place.canonicalize() } else { Ok(place) }
            }
            _ => path.canonicalize(),
        }
    }
}

/// Returns the place of a missing path: the end of the links on the way to it. Returns `None` if there is no directory
/// in which it could be created.
fn missing(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(target) = path.read_link() else { return Some(path) };
        let target = path.parent()?.join(target);
        path = target.parent()?.canonicalize().ok()?.join(target.file_name()?);
    }
    None
}

/// The number of links that the kernel follows in one path.
const MOST_LINKS: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_as_the_system_does() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("real/deep")).unwrap();
        std::fs::write(top.join("file"), "").unwrap();
        for (link, target) in [("one", "real"), ("real/up", "../one/deep"), ("round", "round"), ("gone", "x")]
        {
            std::os::unix::fs::symlink(target, top.join(link)).unwrap();
        }
        let mut disk = Disk::default();
        for path in [
            "",
            "real/deep",
            "one",
            "one/deep",
            "one/up",
            "one/up/..",
            "real/deep/../../file",
            "file/x",
            "round",
            "gone",
            "real/gone",
            "one/gone/deeper",
        ] {
            let path = top.join(path);
            for _ in 0..2 {
                assert_eq!(disk.canonicalize(&path).ok(), path.canonicalize().ok(), "{}", path.display());
            }
        }
    }

    #[test]
    fn a_missing_place_stays_where_it_is_and_a_dangling_link_leads_to_its_end() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        std::fs::create_dir(top.join("real")).unwrap();
        for (link, target) in [("gone", "real/x"), ("one", "real")] {
            std::os::unix::fs::symlink(target, top.join(link)).unwrap();
        }
        let mut disk = Disk::default();
        for (path, place, existing) in [
            ("none", "none", ""),
            ("real/none/deeper", "real/none/deeper", "real"),
            ("one/none", "one/none", "one"),
            ("gone", "real/x", "gone"),
            ("real", "real", "real"),
        ] {
            for _ in 0..2 {
                let (path, place) = (top.join(path), top.join(place));
                assert_eq!(disk.place(&path, Access::Hidden), Some(place), "{}", path.display());
                assert_eq!(disk.existing(&path), Some(top.join(existing).components().as_path()));
            }
            let mut without_place = Disk::default();
            assert_eq!(without_place.existing(&top.join(path)), disk.existing(&top.join(path)));
        }
        assert_eq!(disk.place(&top.join("none"), Access::ReadWrite), None);
    }
}
