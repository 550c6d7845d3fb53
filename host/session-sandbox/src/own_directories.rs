//! The sandbox's own directories that replace the machine's, each with the host directory that is mounted there.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use portcullis_decision::path_text;
use portcullis_decision::request::{Action, FileOperation, PathRef};
use portcullis_decision::rules::{OwnHome, OwnPlaces};
use portcullis_sandbox::{OwnPlace, OwnSource, Owner};

/// Where programs share memory: the sandbox has its own `/dev` in any case.
const SHARED_MEMORY: &str = "/dev/shm";

/// Directories of a sandbox's own.
#[derive(Debug, Default)]
pub struct OwnDirectories {
    /// Directories of the session, such as `/var/tmp`, each with the host's.
    pub directories: Vec<(PathBuf, PathBuf)>,
    /// The directory for the sockets of the user's programs, one of these.
    pub runtime: Option<PathBuf>,
    /// The private home.
    pub home: Option<PrivateHome>,
    /// The branch in which commands work instead of in the project.
    pub branch: Option<BranchLayer>,
}

/// The branch of a project: commands see the project, and what they change is kept elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchLayer {
    /// The project, canonical.
    pub project: PathBuf,
    /// The directory of the changes.
    pub upper: PathBuf,
    /// A directory for the kernel's own use, in the file system of `upper`.
    pub work: PathBuf,
}

impl BranchLayer {
    /// Returns true if a path lies in the project.
    pub fn holds(&self, path: &Path) -> bool {
        path.starts_with(&self.project)
    }

    /// Returns true if an action is about a file of the project.
    pub fn concerns(&self, action: &Action) -> bool {
        let Action::File(access) = action else { return false };
        path_text::decode(&access.path.canonical).is_none_or(|path| self.holds(&path))
    }

    /// Returns true if an action changes names in the branch only.
    pub fn takes(&self, action: &Action) -> bool {
        let Action::File(access) = action else { return false };
        let is_inside = |path: &PathRef| {
            path_text::decode(&path.canonical).is_some_and(|path| path != self.project && self.holds(&path))
        };
        let changes = match &access.operation {
            FileOperation::Write(_)
            | FileOperation::Edit(_)
            | FileOperation::CreateDirectory
            | FileOperation::Delete
            | FileOperation::Symlink(_) => true,
            FileOperation::Move(other) | FileOperation::Link(other) => is_inside(other),
            FileOperation::Read
            | FileOperation::List
            | FileOperation::Search(_)
            | FileOperation::ChangeMetadata
            | FileOperation::Other(_) => false,
        };
        changes && is_inside(&access.path)
    }

    /// Returns the project as the sandbox has it: a layer over the user's own.
    #[must_use]
    pub fn place(&self) -> OwnPlace {
        let source = OwnSource::Branch { upper: self.upper.clone(), work: self.work.clone() };
        OwnPlace { path: self.project.clone(), source }
    }
}

/// The home that commands see.
#[derive(Debug)]
pub struct PrivateHome {
    /// The user's home directory, canonical.
    pub path: PathBuf,
    /// Caches of the user that commands see, and that they cannot change.
    pub caches: Vec<WarmCache>,
    /// The host's directories; `None` if no command runs.
    pub kept: Option<KeptHome>,
}

/// The directories in which a private home is kept.
#[derive(Debug)]
pub struct KeptHome {
    /// The directory of the private homes of all projects.
    pub homes: PathBuf,
    /// The home.
    pub directory: PathBuf,
    /// The commands' changes in caches, one directory for each cache.
    pub layers: PathBuf,
    /// The directory for changes that end with the session.
    pub passing: PathBuf,
    /// Whether this session keeps its changes in caches. Only one session at a time does, because the kernel leaves
    /// undefined what happens if a directory of changes is used twice.
    pub keeps_layers: bool,
    /// The number of directories made in `passing`.
    pub passed: AtomicUsize,
    /// The commands that run where changes in caches are kept.
    pub users: LayersUsers,
}

/// Counts the commands that run where changes in caches are kept. One of them may still run in the background when the
/// next sandbox of the session is set up.
#[derive(Debug, Default)]
pub struct LayersUsers(Arc<LayersUser>);

/// One of these commands.
#[derive(Debug, Default)]
pub struct LayersUser;

/// A cache of the user in the home directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarmCache {
    /// The path.
    pub path: PathBuf,
    /// Its kind.
    pub kind: CacheKind,
}

/// The kind of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheKind {
    /// A directory of files that can be fetched again.
    Directory,
    /// A directory of programs, which must be visible even if overlays are not possible.
    Programs,
    /// A file whose content does not matter, such as a lock.
    File,
}

/// Whether changes in caches outlive the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    /// If this session keeps them.
    Kept,
    /// Never: another sandbox of this session has the directory in use.
    Passing,
}

impl OwnDirectories {
    /// Returns the directories in the form of the rules.
    pub fn places(&self) -> OwnPlaces {
        let directories = self.directories.iter().map(|(path, _)| path.clone());
        let home = self.home.as_ref().map(|home| {
            OwnHome::new(home.path.clone(), home.caches.iter().map(|cache| cache.path.clone()).collect())
        });
        OwnPlaces { directories: directories.chain([SHARED_MEMORY.into()]).collect(), home }
    }

    /// Returns whether a new sandbox keeps changes in caches.
    pub fn changes(&self) -> Changes {
        let in_use = self.users().is_some_and(|users| Arc::strong_count(&users.0) > 1);
        if in_use { Changes::Passing } else { Changes::Kept }
    }

    /// Counts a command that runs where changes in caches are kept, as long as the result exists.
    pub fn count_user(&self) -> Option<Arc<LayersUser>> {
        self.users().map(|users| Arc::clone(&users.0))
    }

    fn users(&self) -> Option<&LayersUsers> {
        Some(&self.home.as_ref()?.kept.as_ref()?.users)
    }

    /// Returns the directory of the private homes of all projects.
    pub fn homes(&self) -> Option<&Path> {
        Some(self.home.as_ref()?.kept.as_ref()?.homes.as_path())
    }

    /// Returns the directories of programs that are the private home's.
    pub fn programs(&self) -> impl Iterator<Item = &Path> {
        let caches = self.home.iter().flat_map(|home| &home.caches);
        caches.filter(|cache| cache.kind == CacheKind::Programs).map(|cache| cache.path.as_path())
    }

    /// Returns the mounts of those that the rules have `left` to the sandbox. `has_places_below` tells whether
    /// something of the machine is shown or hidden below a path. Commands act as `user`, or as `owner`.
    ///
    /// # Errors
    /// The system's, when directories are made.
    pub fn mounts(
        &self,
        left: &OwnPlaces,
        (user, owner): (u32, Option<Owner>),
        changes: Changes,
        has_places_below: impl Fn(&Path) -> bool,
    ) -> io::Result<Vec<OwnPlace>> {
        let user = owner.map_or(user, |owner| owner.uid);
        let directories = self.directories.iter().filter(|(path, _)| left.directories.contains(path));
        let mut places: Vec<OwnPlace> =
            directories.map(|(path, source)| plain(path, source.clone())).collect();
        let (Some(left), Some(PrivateHome { caches, kept: Some(kept), .. })) = (&left.home, &self.home)
        else {
            return Ok(places);
        };
        places.push(plain(&left.path, kept.directory.clone()));
        for cache in caches.iter().filter(|cache| left.caches.contains(&cache.path)) {
            let is_in_machine = left.machine.innermost(&cache.path).is_some();
            let is_warm = !has_places_below(&cache.path) && cache.is_warm(user, is_in_machine);
            let name = name_of(cache.path.strip_prefix(&left.path).unwrap_or(&cache.path));
            if let Some(source) = kept.source(cache, &name, (is_warm, is_in_machine), owner, changes)? {
                places.push(OwnPlace { path: cache.path.clone(), source });
            }
        }
        Ok(places)
    }
}

impl KeptHome {
    /// Returns what to show at a cache; `None` where the home itself is enough.
    fn source(
        &self,
        cache: &WarmCache,
        name: &str,
        (is_warm, is_in_machine): (bool, bool),
        owner: Option<Owner>,
        changes: Changes,
    ) -> io::Result<Option<OwnSource>> {
        let kept = self.layers.join(name);
        let make = |top: &Path, name: &str| made(top, name, owner);
        if cache.kind == CacheKind::File {
            return if is_in_machine { file(&kept, owner).map(OwnSource::Plain).map(Some) } else { Ok(None) };
        }
        if !is_warm {
            let cold = || make(&kept, "cold").map(OwnSource::Plain);
            return is_in_machine.then(cold).transpose();
        }
        let cold = match cache.kind {
            CacheKind::Directory => Some(make(&kept, "cold")?),
            CacheKind::Programs | CacheKind::File => None,
        };
        let upper = make(&kept, "upper")?;
        let lower = cache.path.clone();
        if changes == Changes::Kept && self.keeps_layers {
            let work = make(&kept, "work")?;
            return Ok(Some(OwnSource::Layered { lower: vec![lower], upper, work, cold }));
        }
        let passing = self.passing.join(self.passed.fetch_add(1, Ordering::Relaxed).to_string());
        let lower = vec![upper, lower];
        let (upper, work) = (make(&passing, "upper")?, make(&passing, "work")?);
        Ok(Some(OwnSource::Layered { lower, upper, work, cold }))
    }
}

impl WarmCache {
    /// Returns true if there is a directory of the user's to show.
    ///
    /// Commands that act as another user could not write to it. Outside of toolchains, a tool works better without a
    /// cache than with a read-only one.
    fn is_warm(&self, user: u32, is_in_toolchain: bool) -> bool {
        let is_usable = |owner: u32| self.kind == CacheKind::Programs || is_in_toolchain || owner == user;
        self.path.symlink_metadata().is_ok_and(|found| found.is_dir() && is_usable(found.uid()))
    }
}

fn plain(path: &Path, source: PathBuf) -> OwnPlace {
    OwnPlace { path: path.to_owned(), source: OwnSource::Plain(source) }
}

/// Returns one name for a relative path.
fn name_of(path: &Path) -> String {
    path.to_string_lossy().replace('%', "%25").replace('/', "%2F")
}

/// Makes a directory for `owner` in one that only the host uses.
fn made(top: &Path, name: &str, owner: Option<Owner>) -> io::Result<PathBuf> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(top)?;
    let path = top.join(name);
    match builder.recursive(false).create(&path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => {
            made?;
            give(&path, owner)?;
        }
    }
    Ok(path)
}

/// Makes an empty file for `owner`.
fn file(top: &Path, owner: Option<Owner>) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(top)?;
    let path = top.join("file");
    match std::fs::OpenOptions::new().write(true).create_new(true).open(&path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => {
            drop(made?);
            give(&path, owner)?;
        }
    }
    Ok(path)
}

fn give(path: &Path, owner: Option<Owner>) -> io::Result<()> {
    match owner {
        Some(Owner { uid, gid }) => std::os::unix::fs::lchown(path, Some(uid), Some(gid)),
        None => Ok(()),
    }
}
