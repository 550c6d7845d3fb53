//! Looks at files and copies them, by descriptors only: no link is followed.

use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, SeekFrom, Statx, StatxFlags, chmod, copy_file_range,
    fgetxattr, flistxattr, fstat, ftruncate, getxattr, ioctl_ficlone, listxattr, llistxattr, openat, openat2,
    readlinkat, seek, statx,
};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use crate::interruption;
use crate::state::{Attributes, Content, DirectoryState, FileId, FileState, State, UNREAD};
use crate::text;

/// The most bytes of extended attributes that are kept of one file.
const ATTRIBUTE_BYTES: usize = 64 << 10;
/// The names of attributes that most files fit in.
const USUAL_ATTRIBUTES: usize = 512;
/// Files up to this length are compared by content where times do not tell.
const DIGEST_BYTES: u64 = 16 << 20;

/// A name in an open directory, with its path.
#[derive(Debug)]
pub(crate) struct Spot {
    pub(crate) directory: Arc<OwnedFd>,
    pub(crate) name: CString,
}

/// Opens the directory of a path. A link anywhere in it is an error: the path was canonical when it was recorded.
pub(crate) fn spot(path: &Path) -> rustix::io::Result<Spot> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Err(Errno::INVAL) };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let directory = openat2(CWD, parent, flags, Mode::empty(), resolve)?;
    Ok(Spot {
        directory: Arc::new(directory),
        name: CString::new(name.as_bytes()).map_err(|_nul| Errno::INVAL)?,
    })
}

/// Opens directories, and keeps the last one open: names are looked at one directory after the other.
#[derive(Debug, Default)]
pub(crate) struct Spots(Option<(PathBuf, rustix::io::Result<Arc<OwnedFd>>)>);

impl Spots {
    /// As the function [`spot`].
    pub(crate) fn spot(&mut self, path: &Path) -> rustix::io::Result<Spot> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Err(Errno::INVAL) };
        let name = CString::new(name.as_bytes()).map_err(|_nul| Errno::INVAL)?;
        let directory = match &self.0 {
            Some((last, directory)) if last == parent => directory.clone(),
            _ => {
                let opened = spot(path).map(|spot| spot.directory);
                self.0 = Some((parent.to_owned(), opened.clone()));
                opened
            }
        };
        Ok(Spot { directory: directory?, name })
    }
}

/// Returns the state of a path, without content. A missing directory on the way means that it is absent.
pub(crate) fn look_at(path: &Path) -> rustix::io::Result<State> {
    match spot(path) {
        Ok(spot) => look(&spot.directory, &spot.name),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(State::Absent),
        Err(error) => Err(error),
    }
}

/// Returns the state of a name, without content, digest and attributes.
pub(crate) fn look(directory: impl AsFd, name: &CStr) -> rustix::io::Result<State> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    match statx(&directory, name, AtFlags::SYMLINK_NOFOLLOW, wanted) {
        Ok(found) => state_of(&directory, name, &found),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(State::Absent),
        Err(error) => Err(error),
    }
}

fn state_of(directory: impl AsFd, name: &CStr, found: &Statx) -> rustix::io::Result<State> {
    let id = FileId {
        device: (found.stx_dev_major, found.stx_dev_minor),
        inode: found.stx_ino,
        born: (found.stx_btime.tv_sec, found.stx_btime.tv_nsec),
    };
    let mode = u32::from(found.stx_mode);
    let owner = (found.stx_uid, found.stx_gid);
    let modified = (found.stx_mtime.tv_sec, found.stx_mtime.tv_nsec);
    let attributes = None;
    Ok(match FileType::from_raw_mode(mode) {
        FileType::RegularFile => State::File(FileState {
            id,
            size: found.stx_size,
            modified,
            mode: mode & 0o7777,
            owner,
            links: found.stx_nlink,
            attributes,
            digest: None,
            content: Content::Unread,
        }),
        FileType::Directory => {
            State::Directory(DirectoryState { id, mode: mode & 0o7777, owner, modified, attributes })
        }
        FileType::Symlink => {
            let target = readlinkat(directory, name, Vec::new())?;
            State::Link { target: PathBuf::from(OsStr::from_bytes(target.as_bytes())), owner }
        }
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => State::Special { mode },
    })
}

/// Returns when a file was last changed, including its mode and its number of names: seconds and nanoseconds.
pub(crate) fn changed_at(path: &Path) -> rustix::io::Result<(i64, u32)> {
    let spot = spot(path)?;
    let found = statx(&spot.directory, &spot.name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::CTIME)?;
    Ok((found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec))
}

/// Returns when an open file or directory was last changed: seconds and nanoseconds.
pub(crate) fn changed_at_of(open: impl AsFd) -> rustix::io::Result<(i64, u32)> {
    let found = statx(open, c"", AtFlags::EMPTY_PATH, StatxFlags::CTIME)?;
    Ok((found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec))
}

/// Opens a file for reading; it must still be the one that was looked at.
pub(crate) fn open_same(directory: impl AsFd, name: &CStr, id: FileId) -> rustix::io::Result<OwnedFd> {
    open_same_for(directory, name, id, OFlags::RDONLY)
}

/// Opens a file; it must still be the one that was looked at.
pub(crate) fn open_same_for(
    directory: impl AsFd,
    name: &CStr,
    id: FileId,
    access: OFlags,
) -> rustix::io::Result<OwnedFd> {
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(directory, name, flags, Mode::empty())?;
    if self::id(&file)? == id { Ok(file) } else { Err(Errno::STALE) }
}

/// Sets the mode of a file or directory that may not be readable; it must still be the one that was looked at.
pub(crate) fn set_mode(spot: &Spot, id: FileId, mode: u32) -> rustix::io::Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(&spot.directory, &spot.name, flags, Mode::empty())?;
    if self::id(&file)? != id {
        return Err(Errno::STALE);
    }
    set_mode_of(&file, mode)
}

/// Sets the mode of a file that was opened, if only as a path.
pub(crate) fn set_mode_of(file: &OwnedFd, mode: u32) -> rustix::io::Result<()> {
    interruption::point();
    // The link leads to this very file.
    chmod(format!("/proc/self/fd/{}", file.as_raw_fd()), Mode::from_raw_mode(mode))
}

/// Returns the identity of an open file.
pub(crate) fn id(file: impl AsFd) -> rustix::io::Result<FileId> {
    let found = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS | StatxFlags::BTIME)?;
    Ok(FileId {
        device: (found.stx_dev_major, found.stx_dev_minor),
        inode: found.stx_ino,
        born: (found.stx_btime.tv_sec, found.stx_btime.tv_nsec),
    })
}

/// The access list of a file or directory, and the one that names in a directory get.
const ACCESS_LISTS: [&[u8]; 2] = [b"system.posix_acl_access", b"system.posix_acl_default"];

/// Returns the extended attributes that its owner can set.
pub(crate) fn attributes(file: impl AsFd) -> Attributes {
    attributes_by(|list| flistxattr(&file, list), |name, value| fgetxattr(&file, name, value))
}

/// Returns the extended attributes that its owner can set, of a file or directory that was opened only as a path.
///
/// The system lists the names for everyone, but gives values only to those who can read the file.
fn attributes_of_path(file: &OwnedFd) -> Attributes {
    // The link leads to this very file.
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    attributes_by(|list| listxattr(&link, list), |name, value| getxattr(&link, name, value))
}

fn attributes_by(
    list: impl Fn(&mut [u8]) -> rustix::io::Result<usize>,
    get: impl Fn(&OsStr, &mut [u8]) -> rustix::io::Result<usize>,
) -> Attributes {
    let mut names = vec![0; USUAL_ATTRIBUTES];
    let count = match list(names.as_mut_slice()) {
        Err(Errno::RANGE) => {
            names = vec![0; ATTRIBUTE_BYTES];
            list(names.as_mut_slice())
        }
        count => count,
    };
    // A file system without attributes, or with more than fit, has none to give back.
    let Ok(count) = count else { return Vec::new() };
    let names = names.get(..count).unwrap_or_default().split(|byte| *byte == 0);
    let mut found: Vec<_> = names
        .filter(|name| name.starts_with(b"user.") || ACCESS_LISTS.contains(name))
        .filter_map(|name| {
            let mut value = vec![0; ATTRIBUTE_BYTES];
            let value = match get(OsStr::from_bytes(name), value.as_mut_slice()) {
                Ok(count) => text::encode(value.get(..count)?),
                Err(Errno::ACCESS) => UNREAD.to_owned(),
                Err(_) => return None,
            };
            Some((text::encode(name), value))
        })
        .collect();
    found.sort();
    found
}

/// Returns the extended attributes of a name; `None` if it is another file by now, or cannot be opened.
pub(crate) fn attributes_at(directory: impl AsFd, name: &CStr, id: FileId) -> Option<Attributes> {
    // The link leads to this very directory.
    let link = format!("/proc/self/fd/{}/", directory.as_fd().as_raw_fd());
    let path = [link.as_bytes(), name.to_bytes()].concat();
    // Most files have none, and need not be opened.
    match llistxattr(path, &mut [0_u8; USUAL_ATTRIBUTES][..]) {
        Ok(0) | Err(Errno::OPNOTSUPP) => return Some(Attributes::new()),
        Ok(_) | Err(Errno::RANGE) => {}
        Err(_) => return None,
    }
    match open_same(&directory, name, id) {
        Err(Errno::ACCESS) => {
            open_same_for(&directory, name, id, OFlags::PATH).ok().map(|file| attributes_of_path(&file))
        }
        opened => opened.ok().map(attributes),
    }
}

/// Returns the digest of a file; `None` if it is too long to be worth it.
pub(crate) fn digest(file: OwnedFd, size: u64) -> io::Result<Option<String>> {
    if size > DIGEST_BYTES {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    File::from(file).take(DIGEST_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(Some(digest_of(&bytes)))
}

/// Returns the first `size` bytes of an open file, with zeros for those that it does not have any more.
pub(crate) fn read_up_to(file: &OwnedFd, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(size).map_err(io::Error::other)?];
    let mut at = 0;
    while let Some(rest) = bytes.get_mut(at..).filter(|rest| !rest.is_empty()) {
        match rustix::io::pread(file, rest, at as u64) {
            Ok(0) => break,
            Ok(count) => at += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

/// Returns true if a file is an unfinished copy of another one: up to somewhere it has the same bytes, and then zeros.
pub(crate) fn is_unfinished_copy(copy: &OwnedFd, of: &OwnedFd, size: u64) -> rustix::io::Result<bool> {
    let (mut copied, mut original) = (vec![0; 128 << 10], vec![0; 128 << 10]);
    let (mut at, mut is_same) = (0, true);
    while at < size {
        let most = usize::try_from(size - at).unwrap_or(usize::MAX).min(copied.len());
        let count = rustix::io::pread(copy, copied.get_mut(..most).unwrap_or_default(), at)?;
        let mut rest = copied.get(..count).unwrap_or_default();
        if count == 0 {
            return Ok(true);
        }
        if is_same {
            let same = same_bytes(rest, of, (&mut original, at))?;
            is_same = same == count;
            rest = rest.get(same..).unwrap_or_default();
        }
        if !is_same && rest.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        at += count as u64;
    }
    Ok(true)
}

/// Returns how many of these bytes a file has from a position on.
fn same_bytes(bytes: &[u8], file: &OwnedFd, (buffer, at): (&mut [u8], u64)) -> rustix::io::Result<usize> {
    let mut same = 0;
    while same < bytes.len() {
        let part = buffer.get_mut(..bytes.len() - same).unwrap_or_default();
        let count = rustix::io::pread(file, &mut *part, at + same as u64)?;
        let pairs = part.iter().take(count).zip(bytes.iter().skip(same));
        let alike = pairs.take_while(|(one, other)| one == other).count();
        same += alike;
        if count == 0 || alike < count {
            break;
        }
    }
    Ok(same)
}

/// Returns the digest of a content.
pub(crate) fn digest_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Copies the content of a file to an empty one: shares it where the file system can, and keeps holes.
pub(crate) fn copy(from: &OwnedFd, to: &OwnedFd, size: u64) -> rustix::io::Result<()> {
    if ioctl_ficlone(to, from).is_ok() {
        return Ok(());
    }
    // What another program appends meanwhile comes after the content.
    extend(to, size)?;
    let mut at = 0;
    while at < size {
        let data = match seek(from, SeekFrom::Data(at)) {
            Ok(data) => data,
            // Only a hole follows.
            Err(Errno::NXIO) => break,
            // The file system knows no holes.
            Err(Errno::INVAL) => at,
            Err(error) => return Err(error),
        };
        let end = match seek(from, SeekFrom::Hole(data)) {
            Ok(end) => end.min(size),
            Err(Errno::INVAL | Errno::NXIO) => size,
            Err(error) => return Err(error),
        };
        copy_part(from, to, data, end)?;
        at = end.max(data.saturating_add(1));
    }
    Ok(())
}

/// Makes a file at least this long.
pub(crate) fn extend(file: &OwnedFd, size: u64) -> rustix::io::Result<()> {
    if size_of(file)? < size { ftruncate(file, size) } else { Ok(()) }
}

/// Returns the size of an open file.
pub(crate) fn size_of(file: impl AsFd) -> rustix::io::Result<u64> {
    Ok(u64::try_from(fstat(file)?.st_size).unwrap_or_default())
}

fn copy_part(from: &OwnedFd, to: &OwnedFd, start: u64, end: u64) -> rustix::io::Result<()> {
    let (mut read, mut written) = (start, start);
    while written < end {
        let left = usize::try_from(end - written).unwrap_or(usize::MAX);
        interruption::point();
        match copy_file_range(from, Some(&mut read), to, Some(&mut written), left) {
            // The file has become shorter meanwhile.
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(Errno::INTR) => {}
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                return copy_by_hand(from, to, written, end);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn copy_by_hand(from: &OwnedFd, to: &OwnedFd, start: u64, end: u64) -> rustix::io::Result<()> {
    let mut buffer = vec![0; 128 << 10];
    let mut at = start;
    while at < end {
        let most = usize::try_from(end - at).unwrap_or(usize::MAX).min(buffer.len());
        let count = rustix::io::pread(from, buffer.get_mut(..most).unwrap_or_default(), at)?;
        if count == 0 {
            return Ok(());
        }
        let mut piece = buffer.get(..count).unwrap_or_default();
        while !piece.is_empty() {
            let written = rustix::io::pwrite(to, piece, at)?;
            at += written as u64;
            piece = piece.get(written..).unwrap_or_default();
        }
    }
    Ok(())
}

/// Reads a text of the store as bytes of an attribute.
pub(crate) fn attribute(text: &str) -> Option<Vec<u8>> {
    text::decode(text)
}
