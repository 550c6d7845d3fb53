//! Operations that the host performs for commands, in its own view, after the user has approved them.
//!
//! The exact path of the question is used, and no symbolic link on the way to it is followed.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use portcullis_sandbox::Owner;
use portcullis_syscall_broker::wire::questions::Outside;
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Uid, chownat, fstat, ftruncate,
    linkat, mkdirat, openat2, renameat_with, symlinkat, unlinkat,
};
use rustix::io::Errno;

/// Performs the operation; returns the file that the command receives, if there is one.
pub(crate) fn perform(
    path: &Path,
    outside: &Outside,
    acting: Option<Owner>,
) -> Result<Option<OwnedFd>, Errno> {
    if let Outside::Open { flags, mode } = outside {
        return open(path, *flags, *mode, acting).map(Some);
    }
    let place = NameOnHost::open(path)?;
    match outside {
        Outside::Open { .. } => {}
        Outside::Truncate { length } => {
            let length =
                u64::try_from(i64::from_ne_bytes(length.to_ne_bytes())).map_err(|_negative| Errno::INVAL)?;
            ftruncate(open(path, OFlags::WRONLY.bits(), 0, acting)?, length)?;
        }
        Outside::MakeDirectory { mode } => {
            mkdirat(&place.holder, place.name, Mode::from_raw_mode(mode & 0o7777))?;
            place.give(acting)?;
        }
        Outside::MakeLink { target } => {
            symlinkat(target, &place.holder, place.name)?;
            place.give(acting)?;
        }
        Outside::Remove { is_directory } => {
            let flags = if *is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
            unlinkat(&place.holder, place.name, flags)?;
        }
        Outside::Move { from, replaces } => {
            let old = NameOnHost::open(from)?;
            // A file that has appeared at the target since is not covered by the answer.
            let flags = if *replaces { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
            renameat_with(&old.holder, old.name, &place.holder, place.name, flags)?;
        }
        Outside::Link { from } => {
            let old = NameOnHost::open(from)?;
            linkat(&old.holder, old.name, &place.holder, place.name, AtFlags::empty())?;
        }
    }
    Ok(None)
}

/// A name in an opened directory.
struct NameOnHost<'a> {
    holder: OwnedFd,
    name: &'a OsStr,
}

impl<'a> NameOnHost<'a> {
    fn open(path: &'a Path) -> Result<Self, Errno> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Err(Errno::INVAL) };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let holder = openat2(CWD, parent, flags, Mode::empty(), no_links())?;
        Ok(Self { holder, name })
    }

    /// Changes the owner to the user as whom commands act, if the host runs as root.
    fn give(&self, acting: Option<Owner>) -> Result<(), Errno> {
        let Some(Owner { uid, gid }) = acting else { return Ok(()) };
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        chownat(&self.holder, self.name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
    }
}

fn no_links() -> ResolveFlags {
    ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS
}

fn open(path: &Path, flags: u32, mode: u32, acting: Option<Owner>) -> Result<OwnedFd, Errno> {
    let wanted = OFlags::RWMODE | OFlags::CREATE | OFlags::EXCL | OFlags::TRUNC | OFlags::APPEND;
    let sure = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let flags = OFlags::from_bits_retain(flags) & wanted | sure;
    if flags.contains(OFlags::CREATE) {
        // O_EXCL tells whether the file is new.
        let new = open_as(path, flags | OFlags::EXCL, Mode::from_raw_mode(mode & 0o777));
        match new {
            Err(Errno::EXIST) if !flags.contains(OFlags::EXCL) => {}
            new => {
                let new = new?;
                give_open(&new, acting)?;
                return Ok(new);
            }
        }
    }
    let file = open_as(path, flags - OFlags::CREATE, Mode::empty())?;
    // The user approved a regular file.
    let is_file = FileType::from_raw_mode(fstat(&file)?.st_mode) == FileType::RegularFile;
    if is_file { Ok(file) } else { Err(Errno::ACCESS) }
}

fn open_as(path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    openat2(CWD, path, flags, mode, no_links())
}

fn give_open(file: impl AsFd, acting: Option<Owner>) -> Result<(), Errno> {
    let Some(Owner { uid, gid }) = acting else { return Ok(()) };
    rustix::fs::fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        super::open(path, flags.bits(), 0o600, None)
    }

    #[test]
    fn only_files_are_opened_and_by_no_other_name() {
        let place = tempfile::tempdir().expect("a directory");
        let place = place.path().canonicalize().expect("a path");
        open(&place.join("new"), OFlags::CREATE | OFlags::WRONLY).expect("made");
        open(&place.join("new"), OFlags::CREATE | OFlags::WRONLY).expect("there");
        std::os::unix::fs::symlink("new", place.join("link")).expect("a link");
        assert_eq!(open(&place.join("link"), OFlags::WRONLY).err(), Some(Errno::LOOP));
        std::os::unix::fs::symlink(".", place.join("here")).expect("a link");
        assert_eq!(open(&place.join("here/new"), OFlags::WRONLY).err(), Some(Errno::LOOP));
        assert!(open(Path::new("/dev/null"), OFlags::WRONLY).is_err());
    }

    #[test]
    fn names_are_made_moved_and_removed() {
        let place = tempfile::tempdir().expect("a directory");
        let place = place.path().canonicalize().expect("a path");
        let act = |name: &str, outside| perform(&place.join(name), &outside, None).map(drop);
        act("d", Outside::MakeDirectory { mode: 0o700 }).expect("made");
        act("l", Outside::MakeLink { target: "d".into() }).expect("made");
        std::fs::write(place.join("f"), "text").expect("a file");
        act("f", Outside::Truncate { length: 2 }).expect("cut");
        act("d/f", Outside::Move { from: place.join("f"), replaces: false }).expect("moved");
        act("g", Outside::Link { from: place.join("d/f") }).expect("linked");
        assert_eq!(std::fs::read_to_string(place.join("g")).expect("read"), "te");
        let onto = Outside::Move { from: place.join("g"), replaces: false };
        assert_eq!(act("l", onto.clone()), Err(Errno::EXIST));
        // No link is followed on the way.
        assert_eq!(act("l/x", onto), Err(Errno::LOOP));
        act("d/f", Outside::Remove { is_directory: false }).expect("removed");
        act("d", Outside::Remove { is_directory: true }).expect("removed");
        assert!(!place.join("d").exists() && place.join("g").exists());
    }
}
