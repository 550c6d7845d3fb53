//! File identities, independent of names: device, inode number and generation.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use portcullis_sys::handle::file_handle;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags, openat, statx};
use rustix::io::{self, dup};

use crate::wire::codec::{DecodeError, Reader, Writer};

/// The largest number of levels that are walked upwards; more than any path has.
const LEVELS: usize = 4096;

/// Distinguishes a file from all others, including later files with the same inode number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    device: (u32, u32),
    inode: u64,
    generation: Generation,
}

/// Distinguishes successive files with the same inode number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Generation {
    /// The file handle, which contains a generation number on most file systems.
    Handle(Vec<u8>),
    /// The birth time, on other file systems (overlayfs, for one). Its clock ticks a few hundred times a second.
    Born(i64, u32),
    /// The file system has neither.
    Unknown,
}

impl Identity {
    /// Appends the identity to a message.
    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.number(self.device.0);
        writer.number(self.device.1);
        writer.long(self.inode);
        match &self.generation {
            Generation::Handle(handle) => {
                writer.number(1);
                writer.string(OsStr::from_bytes(handle));
            }
            Generation::Born(seconds, nanoseconds) => {
                writer.number(2);
                writer.long(seconds.cast_unsigned());
                writer.number(*nanoseconds);
            }
            Generation::Unknown => writer.number(3),
        }
    }

    /// Takes an identity from a message.
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let device = (reader.number()?, reader.number()?);
        let inode = reader.long()?;
        let generation = match reader.number()? {
            1 => Generation::Handle(reader.string()?.into_vec()),
            2 => Generation::Born(reader.long()?.cast_signed(), reader.number()?),
            3 => Generation::Unknown,
            _ => return Err(DecodeError),
        };
        Ok(Self { device, inode, generation })
    }

    /// Returns true if no other file ever has the same identity. If false, nothing may be permitted because of it.
    pub(crate) fn is_unique(&self) -> bool {
        self.generation != Generation::Unknown
    }
}

/// Returns the identity of `name` in `holder`, or of `holder` itself if the name is empty. Links are not followed.
pub(crate) fn identify(holder: impl AsFd, name: &CStr) -> io::Result<Identity> {
    Ok(look(holder, name)?.0)
}

/// Like [`identify`], with the type of the file.
pub(crate) fn look(holder: impl AsFd, name: &CStr) -> io::Result<(Identity, FileType)> {
    let holder = holder.as_fd();
    let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW;
    let status = statx(holder, name, flags, StatxFlags::INO | StatxFlags::TYPE | StatxFlags::BTIME)?;
    let generation = match file_handle(holder, name) {
        Ok(handle) => Generation::Handle(handle),
        Err(_) if status.stx_mask & StatxFlags::BTIME.bits() == 0 => Generation::Unknown,
        Err(_) => Generation::Born(status.stx_btime.tv_sec, status.stx_btime.tv_nsec),
    };
    let device = (status.stx_dev_major, status.stx_dev_minor);
    let kind = FileType::from_raw_mode(u32::from(status.stx_mode));
    Ok((Identity { device, inode: status.stx_ino, generation }, kind))
}

/// A directory that is about to move.
pub(crate) struct Moving<'a> {
    identity: Identity,
    to: BorrowedFd<'a>,
    /// It replaces a directory or link that was not made in this session.
    pub(crate) replaces: bool,
}

impl<'a> Moving<'a> {
    /// Describes the move of the directory `name` in `holder` into `to`.
    pub(crate) fn new(holder: impl AsFd, name: &CStr, to: BorrowedFd<'a>) -> io::Result<Self> {
        Ok(Self { identity: identify(holder, name)?, to, replaces: false })
    }

    /// Returns the identity of the moving directory.
    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }
}

/// Opens the parent of `here`, as if the `moving` directory were already at its target.
pub(crate) fn above(here: impl AsFd, moving: Option<&Moving<'_>>) -> io::Result<OwnedFd> {
    if let Some(moving) = moving
        && identify(&here, c"")? == moving.identity
    {
        return dup(moving.to);
    }
    openat(here, "..", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// An iterator over a directory and its ancestors up to the root.
pub(crate) struct Upwards<'a> {
    next: Option<io::Result<OwnedFd>>,
    moving: Option<&'a Moving<'a>>,
    below: Option<Identity>,
    left: usize,
}

impl<'a> Upwards<'a> {
    /// Starts at `directory`; the `moving` directory is treated as if it were already at its target.
    pub(crate) fn from(directory: impl AsFd, moving: Option<&'a Moving<'a>>) -> Self {
        Self { next: Some(dup(directory)), moving, below: None, left: LEVELS }
    }
}

impl Iterator for Upwards<'_> {
    type Item = io::Result<(OwnedFd, Identity)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let found = self.next.take()?.and_then(|here| Ok((identify(&here, c"")?, here)));
        let (identity, here) = match found {
            Ok(found) => found,
            Err(error) => return Some(Err(error)),
        };
        // The root is its own parent.
        if self.below.replace(identity.clone()).as_ref() == Some(&identity) {
            return None;
        }
        self.next = Some(above(&here, self.moving));
        Some(Ok((here, identity)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    #[test]
    fn a_directory_is_the_same_under_every_name_and_never_another() {
        let place = tempfile::tempdir().expect("a directory");
        let top = File::open(place.path()).expect("open");
        fs::create_dir(place.path().join("one")).expect("made");
        let one = identify(&top, c"one").expect("there");
        fs::rename(place.path().join("one"), place.path().join("two")).expect("renamed");
        assert_eq!(identify(&top, c"two").expect("there"), one);
        let open = File::open(place.path().join("two")).expect("open");
        assert_eq!(identify(&open, c"").expect("there"), one);
        drop(open);
        for _ in 0..50 {
            fs::remove_dir(place.path().join("two")).expect("removed");
            fs::create_dir(place.path().join("two")).expect("made");
            let again = identify(&top, c"two").expect("there");
            assert!(again != one || !again.is_unique(), "{again:?}");
        }
    }

    #[test]
    fn directories_are_listed_upwards_from_where_one_moves() {
        let place = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(place.path().join("a/b/c")).expect("made");
        let open = |name: &str| File::open(place.path().join(name)).expect("open");
        let of = |file: &File| identify(file, c"").expect("there");
        let listed = |moving: Option<&Moving<'_>>| -> Vec<Identity> {
            Upwards::from(open("a/b/c"), moving).map(|found| found.expect("there").1).take(3).collect()
        };
        let (top, a, b, c) = (open("."), open("a"), open("a/b"), open("a/b/c"));
        assert_eq!(listed(None), [of(&c), of(&b), of(&a)]);
        let moving = Moving::new(&a, c"b", top.as_fd()).expect("there");
        assert_eq!(listed(Some(&moving)), [of(&c), of(&b), of(&top)]);
        assert!(Upwards::from(&c, None).count() > 3, "it ends at the root");
    }
}
