//! Rights on files that apply below the mounts, see landlock(7).
//!
//! A mount restricts a name, a Landlock rule restricts the file: it also applies if a command reaches the file around
//! the mounts, for example through a descriptor of the host. Landlock rules only add rights, so a path that is hidden
//! or read-only inside an allowed tree is protected by its mount alone.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use portcullis_sys::landlock::{Others, Rights, allow, create, version};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat, major, minor};
use rustix::io::{self, Errno};

pub(crate) mod landlock_only;

use super::failure::{During, Failure};
use super::mount_calls::open;
use portcullis_sandbox::Stage;
use portcullis_sandbox::{MountStep, Plan, Writable};

/// The first version forbids every move of a file between directories, whatever the rules say.
const FIRST_USABLE_VERSION: u32 = 2;
/// The first version with scopes for signals and abstract sockets.
const FIRST_VERSION_WITH_SCOPES: u32 = 6;
/// The first version with a right to truncate files.
const FIRST_VERSION_WITH_TRUNCATING: u32 = 3;
/// Major and minor number of `/dev/null`.
const NULL: (u32, u32) = (1, 3);

/// The rules of a session.
pub(crate) struct Landlock {
    version: u32,
    places: Vec<(OwnedFd, Rights)>,
    /// The ruleset of every command whose standard streams are not files of the host.
    shared: OwnedFd,
}

/// The rules of one command.
pub(crate) enum Rules<'a> {
    Shared(BorrowedFd<'a>),
    Own(OwnedFd),
}

impl AsFd for Rules<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Shared(rules) => *rules,
            Self::Own(rules) => rules.as_fd(),
        }
    }
}

/// Returns the version to use; `None` if the kernel has none, or none that is useful.
pub(crate) fn usable_version() -> Option<u32> {
    version().ok().filter(|&version| version >= FIRST_USABLE_VERSION)
}

impl Landlock {
    /// Makes the rules for a plan whose mounts are in place. Commands cannot change anything in the `judged` places
    /// themselves; only the broker does it for them.
    pub(crate) fn prepare(plan: &Plan, judged: &[PathBuf], version: u32) -> Result<Self, Failure> {
        Self::make(&wanted(plan, judged), version)
    }

    fn make(wanted: &[(impl AsRef<Path>, Rights)], version: u32) -> Result<Self, Failure> {
        let mut places = Vec::new();
        for (path, rights) in wanted {
            let (path, rights) = (path.as_ref(), *rights);
            let place = match open(path, OFlags::empty()) {
                // Paths that no longer exist, or cannot be reached, get no rule.
                Err(Errno::NOENT | Errno::ACCESS | Errno::NOTDIR) => continue,
                opened => opened.during_at(Stage::Landlock, path)?,
            };
            let is_directory = fstat(&place).map(|status| kind(&status) == FileType::Directory);
            let rights = match is_directory.during_at(Stage::Landlock, path)? {
                true => rights,
                false => rights & Rights::OF_A_FILE,
            };
            places.push((place, rights & Rights::known_to(version)));
        }
        let shared = assemble(version, &places)?;
        Ok(Self { version, places, shared })
    }

    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    /// Returns true if truncating a file requires a right.
    pub(crate) fn holds_truncating(&self) -> bool {
        self.version >= FIRST_VERSION_WITH_TRUNCATING
    }

    /// Returns the rules for a command with these standard streams.
    ///
    /// Programs open them again as `/dev/stdout` and the like, so a file among them gets a rule as well: with the
    /// rights that it is open with, and for this command only.
    pub(crate) fn for_command(&self, stdio: &[OwnedFd; 3]) -> Result<Rules<'_>, Failure> {
        let mut own = None;
        for descriptor in stdio {
            let Some(rights) = rights_of(descriptor).during(Stage::Landlock)? else { continue };
            let rules = match own.take() {
                Some(rules) => rules,
                None => assemble(self.version, &self.places)?,
            };
            give(&rules, descriptor, rights & Rights::known_to(self.version))?;
            own = Some(rules);
        }
        Ok(own.map_or(Rules::Shared(self.shared.as_fd()), Rules::Own))
    }
}

fn assemble(version: u32, places: &[(OwnedFd, Rights)]) -> Result<OwnedFd, Failure> {
    let others = if version >= FIRST_VERSION_WITH_SCOPES { Others::Unreachable } else { Others::Reachable };
    let rules = create(Rights::known_to(version), others).during(Stage::Landlock)?;
    places.iter().try_for_each(|(place, rights)| give(&rules, place, *rights))?;
    Ok(rules)
}

fn give(rules: &OwnedFd, place: &OwnedFd, rights: Rights) -> Result<(), Failure> {
    match allow(rules, place, rights) {
        // A file that exists in memory only (memfd_create(2)): Landlock has no rules for it, and it needs none.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::BADFD) => Ok(()),
        given => given.during(Stage::Landlock),
    }
}

/// Returns the paths that the mounts of a plan show, with their rights.
fn wanted<'a>(plan: &'a Plan, judged: &[PathBuf]) -> Vec<(&'a Path, Rights)> {
    let read = Rights::EXECUTE | Rights::READ_FILE | Rights::READ_DIRECTORY;
    let use_device = Rights::WRITE_FILE | Rights::DEVICE_REQUESTS;
    let change = use_device | Rights::CHANGE_NAMES | Rights::MOVE | Rights::TRUNCATE;
    let mut wanted = vec![(Path::new("/"), read)];
    for step in plan.steps() {
        match step {
            MountStep::Temp { .. } => wanted.push((Path::new("/tmp"), read | change)),
            MountStep::Own { path, .. } | MountStep::Show { path, writable: Writable::Yes } => {
                wanted.push((path, read | change));
            }
            MountStep::Devices { .. } => wanted.extend([
                (Path::new("/dev"), use_device),
                (Path::new("/dev/shm"), change),
                // The usual standard input comes from the host's `/dev`; it is the same device.
                (Path::new("/dev/null"), read | use_device),
            ]),
            MountStep::Prepare { .. }
            | MountStep::Pin { .. }
            | MountStep::Processes
            | MountStep::Show { writable: Writable::No, .. }
            | MountStep::HideDirectory { .. }
            | MountStep::HideFile { .. }
            | MountStep::Resolver { .. } => {}
        }
    }
    wanted.retain(|(path, _)| !judged.iter().any(|place| place == path));
    wanted
}

/// Returns the rights that opening a descriptor again requires; `None` if no rule is needed or wanted.
fn rights_of(descriptor: &OwnedFd) -> io::Result<Option<Rights>> {
    let status = fstat(descriptor)?;
    let flags = fcntl_getfl(descriptor)?;
    let kind = kind(&status);
    let is_null = kind == FileType::CharacterDevice && (major(status.st_rdev), minor(status.st_rdev)) == NULL;
    let has_rules = matches!(kind, FileType::RegularFile | FileType::CharacterDevice | FileType::BlockDevice);
    if is_null || !has_rules || flags.contains(OFlags::PATH) {
        return Ok(None);
    }
    let write = Rights::WRITE_FILE | Rights::TRUNCATE;
    let rights = match flags & OFlags::RWMODE {
        OFlags::WRONLY => write,
        OFlags::RDWR => Rights::READ_FILE | write,
        _ => Rights::READ_FILE,
    };
    Ok(Some(rights | Rights::DEVICE_REQUESTS))
}

fn kind(status: &rustix::fs::Stat) -> FileType {
    FileType::from_raw_mode(status.st_mode)
}

#[cfg(test)]
mod tests;
