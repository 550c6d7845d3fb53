//! The few things this crate asks of a disk, and following paths with them.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use portcullis_decision::path_text;

/// A settings file larger than this is a mistake or an attack.
pub const LARGEST_FILE: u64 = 1024 * 1024;

/// As many links in one path as the kernel follows (`path_resolution(7)`).
const MOST_LINKS: usize = 40;

/// Reads files and links by explicit paths.
pub trait Disk {
    /// Reads a whole plain file of at most [`LARGEST_FILE`] bytes.
    ///
    /// # Errors
    /// `NotFound` when nothing is there; others when it cannot be read, is no plain file, or is too large.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Says what is at `path`, without following it when it is a link.
    ///
    /// # Errors
    /// As the system says; `NotFound` when nothing is there.
    fn look(&self, path: &Path) -> io::Result<Seen>;

    /// Lists the names in a directory, in no particular order.
    ///
    /// # Errors
    /// As the system says.
    fn names(&self, directory: &Path) -> io::Result<Vec<OsString>>;
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// A symbolic link to this.
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

        // Without O_NONBLOCK a named pipe put in the file's place would hold the host for ever.
        let file = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"));
        }
        let mut bytes = Vec::new();
        // One byte more than allowed tells a full file from one that is too large, whatever its size says.
        file.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > LARGEST_FILE {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 1 MiB"));
        }
        Ok(bytes)
    }

    fn look(&self, path: &Path) -> io::Result<Seen> {
        if path.symlink_metadata()?.file_type().is_symlink() {
            return path.read_link().map(Seen::Link);
        }
        Ok(Seen::Other)
    }

    fn names(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        std::fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name())).collect()
    }
}

/// A disk on which each name is looked at once: whoever follows many paths sees the same links in all of them, even
/// where somebody swaps them meanwhile.
pub(crate) struct Remembering<'a> {
    disk: &'a dyn Disk,
    /// What is at a path; nothing where nothing is.
    looks: RefCell<HashMap<PathBuf, Option<Seen>>>,
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

    fn look(&self, path: &Path) -> io::Result<Seen> {
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

/// A path followed to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Followed {
    /// Every link followed; a part that does not exist is kept as it is.
    pub(crate) canonical: PathBuf,
    /// The links on the way, in order.
    pub(crate) links: Vec<Link>,
    /// Whether a link on the way leads to something that does not exist, or in circles.
    pub(crate) dangling: bool,
}

/// A link on the way of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    /// Where it lies; the directories around it are canonical.
    pub(crate) at: PathBuf,
    /// The name that the whole path goes by there. A rule that denies names this too, because a link can be
    /// replaced by a real directory later.
    pub(crate) name: PathBuf,
}

impl Followed {
    /// Returns the canonical path and all other names.
    pub(crate) fn all(&self) -> impl Iterator<Item = &PathBuf> {
        let names = self.links.iter().map(|link| &link.name);
        std::iter::once(&self.canonical).chain(names.filter(|name| **name != self.canonical))
    }
}

/// Follows an absolute path. What this process may not look into counts as not there: a path below it cannot be
/// reached under another name either. So does what lies behind more links than the kernel follows: a circle of links
/// is an ordinary thing for an agent to leave, and must not make settings unusable.
pub(crate) fn follow(path: &Path, disk: &dyn Disk) -> io::Result<Followed> {
    let mut rest: VecDeque<Step> = steps(&path_text::normalize(path), Via::Path).collect();
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
            Some(Seen::Link(target)) => {
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
                for step in steps(&target, Via::Link).collect::<Vec<_>>().into_iter().rev() {
                    rest.push_front(step);
                }
            }
            Some(Seen::Other) => followed.canonical = next,
            None => {
                followed.dangling |= step.via == Via::Link;
                exists = false;
                followed.canonical = next;
            }
        }
    }
    Ok(followed)
}

/// Returns every name that a path goes by: what it leads to first, then one for each link on the way.
///
/// # Errors
/// When a link on the way cannot be read.
pub fn names_on_the_way(path: &Path, disk: &dyn Disk) -> io::Result<Vec<PathBuf>> {
    Ok(follow(path, disk)?.all().cloned().collect())
}

/// Returns where the links on the way of a path lie.
///
/// # Errors
/// When one of them cannot be read.
pub fn links_on_the_way(path: &Path, disk: &dyn Disk) -> io::Result<Vec<PathBuf>> {
    Ok(follow(path, disk)?.links.into_iter().map(|link| link.at).collect())
}

/// One component still to be walked; without a name it is `..`.
#[derive(Debug)]
struct Step {
    name: Option<OsString>,
    via: Via,
}

/// Where a component comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Via {
    Path,
    Link,
}

fn steps(path: &Path, via: Via) -> impl Iterator<Item = Step> {
    path.components().filter_map(move |component| match component {
        Component::Normal(name) => Some(Step { name: Some(name.to_owned()), via }),
        Component::ParentDir => Some(Step { name: None, via }),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    })
}

fn with_rest(start: &Path, rest: &VecDeque<Step>) -> PathBuf {
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

fn look(path: &Path, disk: &dyn Disk) -> io::Result<Option<Seen>> {
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
