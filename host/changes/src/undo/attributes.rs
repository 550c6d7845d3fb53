//! Gives open files and directories their former owner, attributes, mode and time.

use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, chownat, fchmod, fchown, fgetxattr,
    fremovexattr, fsetxattr, fstat, futimens, openat, unlinkat,
};
use rustix::io::Errno;

use crate::disk::{self, Spot, look, set_mode};
use crate::interruption;
use crate::state::{Attributes, DirectoryState, State, UNREAD};

/// The bits of a mode that files get back: set-id bits are left off.
pub(super) const FILE_MODE: u32 = 0o1777;
const DIRECTORY_MODE: u32 = 0o3777;
/// The permissions with which the owner of a directory can change names in it.
pub(super) const OWNER: u32 = 0o700;

/// The permissions with which its owner can set the attributes of a file.
const WRITTEN: Mode = Mode::RUSR.union(Mode::WUSR);

/// Gives a directory its former owner, attributes, mode and time, if it is there.
pub(super) fn restore_directory(path: &Path, was: &DirectoryState) -> rustix::io::Result<()> {
    let spot = disk::spot(path)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = match openat(&spot.directory, &spot.name, flags, Mode::empty()) {
        // It was made unreadable.
        Err(Errno::ACCESS) => {
            let now = look(&spot.directory, &spot.name)?;
            set_mode(&spot, now.id().ok_or(Errno::STALE)?, (was.mode & DIRECTORY_MODE) | OWNER)?;
            openat(&spot.directory, &spot.name, flags, Mode::empty())?
        }
        // The step that should have made it has failed, and was reported.
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        open => open?,
    };
    set_owner(&open, was.owner);
    let attributes = set_attributes(&open, was.attributes.as_ref());
    interruption::point();
    fchmod(&open, Mode::from_raw_mode(was.mode & DIRECTORY_MODE))?;
    set_time(&open, was.modified)?;
    attributes
}

/// Removes what is at a name.
pub(super) fn clear(spot: &Spot, now: &State) -> rustix::io::Result<()> {
    let flags = match now {
        State::Absent => return Ok(()),
        State::Directory(_) => AtFlags::REMOVEDIR,
        State::File(_) | State::Link { .. } | State::Special { .. } => AtFlags::empty(),
    };
    interruption::point();
    unlinkat(&spot.directory, &spot.name, flags)
}

/// What users and groups are called in a sandbox whose user namespace does not have them.
const UNKNOWN: u32 = 65_534;

/// Gives a file to its former owner. Only root can; for others it is theirs already.
pub(super) fn set_owner(open: &OwnedFd, owner: (u32, u32)) {
    let (user, group) = known(owner);
    let _is_theirs = fchown(open, user, group);
}

/// Returns a user and a group, where they are known.
fn known((user, group): (u32, u32)) -> (Option<Uid>, Option<Gid>) {
    let is_known = |id: &u32| *id != UNKNOWN;
    (Some(user).filter(is_known).map(Uid::from_raw), Some(group).filter(is_known).map(Gid::from_raw))
}

/// Gives a link to its former owner, like [`set_owner`].
pub(super) fn give(directory: &OwnedFd, name: &CStr, owner: (u32, u32)) {
    let (user, group) = known(owner);
    let _is_theirs = chownat(directory, name, user, group, AtFlags::SYMLINK_NOFOLLOW);
}

/// Gives a file exactly these extended attributes, if they are known. The mode has to be set afterwards.
///
/// # Errors
/// The system's, and `NODATA` if one of them is gone whose value could not be read.
pub(super) fn set_attributes(open: &OwnedFd, wanted: Option<&Attributes>) -> rustix::io::Result<()> {
    let Some(wanted) = wanted else { return Ok(()) };
    match try_to_set(open, wanted) {
        // The owner can set attributes of what the owner can write.
        Err(Errno::ACCESS) => {
            interruption::point();
            fchmod(open, Mode::from_raw_mode(fstat(open)?.st_mode & 0o7777) | WRITTEN)?;
            try_to_set(open, wanted)
        }
        set => set,
    }
}

fn try_to_set(open: &OwnedFd, wanted: &Attributes) -> rustix::io::Result<()> {
    let present = disk::attributes(open);
    let (unread, wanted): (Vec<_>, Vec<_>) = wanted.iter().partition(|(_, value)| value == UNREAD);
    let is_kept = |name: &String| unread.iter().chain(&wanted).any(|(other, _)| other == name);
    for (name, _) in &present {
        if !is_kept(name) {
            fremovexattr(open, disk::attribute(name).unwrap_or_default())?;
        }
    }
    for (name, value) in wanted {
        let (Some(name), Some(value)) = (disk::attribute(name), disk::attribute(value)) else { continue };
        let mut present = vec![0; value.len() + 1];
        let is_there = fgetxattr(open, name.as_slice(), present.as_mut_slice());
        if is_there.is_ok_and(|count| present.get(..count) == Some(value.as_slice())) {
            continue;
        }
        fsetxattr(open, name, &value, rustix::fs::XattrFlags::empty())?;
    }
    let is_gone = |(name, _): &&(String, String)| present.iter().all(|(other, _)| other != name);
    if unread.iter().any(is_gone) { Err(Errno::NODATA) } else { Ok(()) }
}

/// Sets the time of the last modification.
pub(super) fn set_time(open: &OwnedFd, (seconds, nanoseconds): (i64, u32)) -> rustix::io::Result<()> {
    let last_modification = Timespec { tv_sec: seconds, tv_nsec: i64::from(nanoseconds) };
    interruption::point();
    let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    futimens(open, &Timestamps { last_access, last_modification })
}

/// Writes a whole text at the current position.
pub(super) fn write_all(open: &OwnedFd, mut text: &[u8]) -> rustix::io::Result<()> {
    while !text.is_empty() {
        interruption::point();
        let count = rustix::io::write(open, text)?;
        text = text.get(count..).unwrap_or_default();
    }
    Ok(())
}
