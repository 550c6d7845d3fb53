//! Disk access of this crate, and symbolic link resolution on top of it.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use portcullis_decision::path_text;

/// Size limit of a settings file. A larger file is a mistake or an attack.
pub const LARGEST_FILE: u64 = 1024 * 1024;

/// Maximum number of links in one path, the kernel's own limit (`path_resolution(7)`).
const MOST_LINKS: usize = 40;

/// Reads files and links by explicit paths.
pub trait Disk {
    /// Reads a whole regular file of at most [`LARGEST_FILE`] bytes.
    ///
    /// # Errors
    /// `NotFound` if the file does not exist; others if it cannot be read, is not a regular file, or is too large.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Returns the kind of file at `path`, without following a link.
    ///
    /// # Errors
    /// The system's error; `NotFound` if nothing exists there.
    fn look(&self, path: &Path) -> io::Result<DiskEntry>;

    /// Lists the names in a directory, in no particular order.
    ///
    /// # Errors
    /// The system's error.
    fn names(&self, directory: &Path) -> io::Result<Vec<OsString>>;

    /// Returns true if the file at `path` is a socket, or nobody but its owner can use it.
    fn is_private(&self, path: &Path) -> bool {
        is_private(path)
    }
}

fn is_private(path: &Path) -> bool {
    use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
    path.symlink_metadata()
        .is_ok_and(|found| found.file_type().is_socket() || found.permissions().mode() & 0o077 == 0)
}

/// The kind of file at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiskEntry {
    /// A symbolic link, with its target.
    Link(PathBuf),
    /// Anything else.
    Other,
}

/// The disk of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        use std::io::Read as _;
        use std::os::unix::fs::OpenOptionsExt as _;

        // Without O_NONBLOCK a named pipe in place of the file would block the host forever.
        let file = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        let file = file.map_err(|error| closed(path, error))?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"));
        }
        let mut bytes = Vec::new();
        // Read one byte more than allowed to detect a file that is too large, whatever size its metadata gives.
        file.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > LARGEST_FILE {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 1 MiB"));
        }
        Ok(bytes)
    }

    fn look(&self, path: &Path) -> io::Result<DiskEntry> {
        if path.symlink_metadata()?.file_type().is_symlink() {
            return path.read_link().map(DiskEntry::Link);
        }
        Ok(DiskEntry::Other)
    }

    fn names(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        std::fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name())).collect()
    }
}

/// Returns what to do about a file that cannot be read only because its owner, who is this user, has closed it or a
/// directory on the way. He can read it again at any time, so it does not count as one that he cannot read.
fn closed(path: &Path, error: io::Error) -> io::Error {
    use std::os::unix::fs::MetadataExt as _;
    if error.kind() != io::ErrorKind::PermissionDenied {
        return error;
    }
    // The first of them that can be looked at is the one that is closed, or holds it.
    let found = path.ancestors().find_map(|path| Some((path, path.symlink_metadata().ok()?)));
    match found {
        Some((at, status)) if status.uid() == rustix::process::geteuid().as_raw() => {
            io::Error::other(format!("`{}` is yours and closed; open it with `chmod u+rX`", at.display()))
        }
        Some(_) | None => error,
    }
}

/// A disk that looks up each path once.
///
/// All paths that are resolved with it see the same links, even if another process swaps them meanwhile.
pub(crate) struct Remembering<'a> {
    disk: &'a dyn Disk,
    /// Results by path; `None` if nothing exists there.
    looks: RefCell<HashMap<PathBuf, Option<DiskEntry>>>,
}

impl<'a> Remembering<'a> {
    pub(crate) fn new(disk: &'a dyn Disk) -> Self {
        Self { disk, looks: RefCell::default() }
    }
}

impl Disk for Remembering<'_> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.disk.read(path)
    }

    fn look(&self, path: &Path) -> io::Result<DiskEntry> {
        let known = self.looks.borrow().get(path).cloned();
        let seen = match known {
            Some(seen) => seen,
            None => {
                let seen = match self.disk.look(path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                    look => Some(look?),
                };
                self.looks.borrow_mut().insert(path.to_owned(), seen.clone());
                seen
            }
        };
        seen.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn names(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        self.disk.names(directory)
    }
}

/// A path with its links resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Followed {
    /// The path with every link followed; components that do not exist are kept.
    pub(crate) canonical: PathBuf,
    /// The links on the path, in order.
    pub(crate) links: Vec<Link>,
    /// Whether a link on the path is dangling or part of a loop.
    pub(crate) dangling: bool,
}

/// A link on a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    /// The path of the link; its parent directories are canonical.
    pub(crate) at: PathBuf,
    /// The whole path as named through this link.
    ///
    /// A rule that denies also covers this name, because a link can later be replaced by a real directory.
    pub(crate) name: PathBuf,
}

impl Followed {
    /// Returns the canonical path and all other names.
    pub(crate) fn all(&self) -> impl Iterator<Item = &PathBuf> {
        let names = self.links.iter().map(|link| &link.name);
        std::iter::once(&self.canonical).chain(names.filter(|name| **name != self.canonical))
    }
}

/// Resolves the links of an absolute path.
///
/// A path that this process may not access counts as missing, since paths below it cannot be reached under another name
/// either. So does a path with more links than the kernel follows: an agent can easily leave a loop of links, and it
/// must not make the settings unusable.
pub(crate) fn follow(path: &Path, disk: &dyn Disk) -> io::Result<Followed> {
    let mut rest: VecDeque<PendingComponent> =
        steps(&path_text::normalize(path), ComponentSource::Path).collect();
    let mut followed = Followed { canonical: PathBuf::from("/"), links: Vec::new(), dangling: false };
    let mut exists = true;
    while let Some(step) = rest.pop_front() {
        let Some(name) = step.name else {
            followed.canonical.pop();
            continue;
        };
        let next = followed.canonical.join(&name);
        let seen = if exists { look(&next, disk)? } else { None };
        match seen {
            Some(DiskEntry::Link(target)) => {
                if followed.links.len() >= MOST_LINKS {
                    followed.dangling = true;
                    exists = false;
                    followed.canonical = next;
                    continue;
                }
                followed.links.push(Link { at: next.clone(), name: with_rest(&next, &rest) });
                if target.is_absolute() {
                    followed.canonical = PathBuf::from("/");
                }
                for step in steps(&target, ComponentSource::Link).collect::<Vec<_>>().into_iter().rev() {
                    rest.push_front(step);
                }
            }
            Some(DiskEntry::Other) => followed.canonical = next,
            None => {
                followed.dangling |= step.via == ComponentSource::Link;
                exists = false;
                followed.canonical = next;
            }
        }
    }
    Ok(followed)
}

/// Returns all names of a path: the canonical one first, then one for each link on it.
///
/// # Errors
/// When a link on the path cannot be read.
pub fn names_on_the_way(path: &Path, disk: &dyn Disk) -> io::Result<Vec<PathBuf>> {
    Ok(follow(path, disk)?.all().cloned().collect())
}

/// Returns all names of a path, and the paths of the links on it.
///
/// # Errors
/// When a link cannot be read.
pub fn names_and_links_on_the_way(path: &Path, disk: &dyn Disk) -> io::Result<Vec<PathBuf>> {
    let followed = follow(path, disk)?;
    let names = followed.all().cloned();
    Ok(names.chain(followed.links.iter().map(|link| link.at.clone())).collect())
}

/// A component that is still to be walked; `None` is `..`.
#[derive(Debug)]
struct PendingComponent {
    name: Option<OsString>,
    via: ComponentSource,
}

/// The source of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ComponentSource {
    Path,
    Link,
}

fn steps(path: &Path, via: ComponentSource) -> impl Iterator<Item = PendingComponent> {
    path.components().filter_map(move |component| match component {
        Component::Normal(name) => Some(PendingComponent { name: Some(name.to_owned()), via }),
        Component::ParentDir => Some(PendingComponent { name: None, via }),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    })
}

fn with_rest(start: &Path, rest: &VecDeque<PendingComponent>) -> PathBuf {
    let mut path = start.to_owned();
    for step in rest {
        match &step.name {
            Some(name) => path.push(name),
            None => {
                path.pop();
            }
        }
    }
    path
}

fn look(path: &Path, disk: &dyn Disk) -> io::Result<Option<DiskEntry>> {
    use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound, PermissionDenied};

    match disk.look(path) {
        Ok(seen) => Ok(Some(seen)),
        Err(error)
            if matches!(error.kind(), NotFound | NotADirectory | PermissionDenied | InvalidFilename) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
