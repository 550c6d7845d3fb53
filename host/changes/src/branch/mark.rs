//! The marks that an overlay keeps in its upper directory, see the kernel's overlayfs.rst.
//!
//! With `userxattr` they are attributes `user.overlay.*`, which commands can neither set nor see through the overlay.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use portcullis_sys::handle::file_handle;
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, fgetxattr, major, minor, openat2, statat,
};
use rustix::io::Errno;

use super::change::Time;

/// The beginning of the overlay's own attributes.
pub(super) const OWN_ATTRIBUTES: &str = "user.overlay.";
const OPAQUE: &CStr = c"user.overlay.opaque";
/// The file or directory was copied up from the machine's layer.
const ORIGIN: &CStr = c"user.overlay.origin";
/// Marks that change the meaning of a name, and that overlays with `userxattr` do not make.
const UNKNOWN: [&CStr; 3] = [c"user.overlay.redirect", c"user.overlay.metacopy", c"user.overlay.whiteout"];
/// The bytes before the handle in a mark of the origin.
const ORIGIN_HEAD: usize = 21;
/// The bytes before the handle in the result of name_to_handle_at(2).
const HANDLE_TYPE: usize = 4;
/// More than any value that is compared.
const LONGEST: usize = 1 << 10;

/// Returns true if nothing of the machine's directory is visible in an upper directory; an error for a mark that is not
/// known.
pub(super) fn is_opaque(directory: &OwnedFd) -> Result<bool, UnknownMark> {
    match value(directory, OPAQUE).as_deref() {
        None => Ok(false),
        Some(b"y") => Ok(true),
        Some(_) => Err(UnknownMark),
    }
}

/// A mark that is not known.
pub(super) struct UnknownMark;

/// Returns true if a file or directory has a mark that is not known.
pub(super) fn has_unknown(file: &OwnedFd) -> bool {
    UNKNOWN.iter().any(|name| value(file, name).is_some())
}

/// Returns the handle of the file or directory of the machine's layer from which one was copied up: that of the same
/// name, or of the name that it had before it was moved or linked. `None` if it is new; empty if the handle is not known,
/// as always if the overlay was mounted in a user namespace.
pub(super) fn origin(file: &OwnedFd) -> Option<Vec<u8>> {
    let value = value(file, ORIGIN)?;
    // `struct ovl_fb`: version, magic number, length, flags, type, and the id of the file system, before the handle.
    Some(value.get(ORIGIN_HEAD..).unwrap_or_default().to_vec())
}

/// Returns true if the handle of a name is this one.
pub(super) fn has_handle(directory: &OwnedFd, name: &CStr, wanted: &[u8]) -> bool {
    file_handle(directory, name).is_ok_and(|handle| handle.get(HANDLE_TYPE..) == Some(wanted))
}

/// Returns an attribute; one that cannot be read, or is too long, counts as there.
fn value(file: &OwnedFd, name: &CStr) -> Option<Vec<u8>> {
    let mut value = vec![0; LONGEST];
    match fgetxattr(file, name, value.as_mut_slice()) {
        Ok(count) => {
            value.truncate(count);
            Some(value)
        }
        Err(Errno::NODATA | Errno::OPNOTSUPP) => None,
        Err(_) => Some(Vec::new()),
    }
}

/// Returns true if a name is removed by the upper directory: a device with the number 0.
pub(super) fn is_whiteout(directory: impl AsFd, name: &CStr) -> rustix::io::Result<bool> {
    let found = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let is_device = FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice;
    Ok(is_device && (major(found.st_rdev), minor(found.st_rdev)) == (0, 0))
}

/// Returns when the status of a name last changed.
pub(super) fn changed(directory: impl AsFd, name: &CStr) -> rustix::io::Result<Time> {
    let found = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok((found.st_ctime, u32::try_from(found.st_ctime_nsec).unwrap_or_default()))
}

/// Opens a directory below another one, without following a link.
pub(super) fn below(top: &OwnedFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    openat2(top, path, flags, Mode::empty(), resolve)
}

/// Returns the names in a directory, in order.
pub(super) fn names(directory: &OwnedFd) -> rustix::io::Result<Vec<std::ffi::CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

pub(super) fn open_in_project(project: &OwnedFd, path: &Path) -> io::Result<Option<OwnedFd>> {
    match below(project, path) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        opened => Ok(Some(opened?)),
    }
}
