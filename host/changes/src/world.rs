//! The disk, as planning looks at it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{Dir, Mode, OFlags, openat};
use rustix::io::Errno;

use crate::contents::Kept;
use crate::disk;
use crate::opened::{self, Access, Opened};
use crate::plan::World;
use crate::state::{Content, DirectoryState, FileState, State};
use crate::store::{Store, read_all};

/// Texts up to this length are merged.
const TEXT_BYTES: u64 = 1 << 20;

/// The disk, and the store of a session.
#[derive(Debug, Clone, Copy)]
pub struct Disk<'a>(pub &'a Store);

impl World for Disk<'_> {
    fn look(&self, path: &Path) -> io::Result<State> {
        let mut state = disk::look_at(path)?;
        if let State::File(FileState { id, attributes, .. })
        | State::Directory(DirectoryState { id, attributes, .. }) = &mut state
        {
            let spot = disk::spot(path)?;
            *attributes = disk::attributes_at(&spot.directory, &spot.name, *id);
        }
        Ok(state)
    }

    fn digest(&self, path: &Path, file: &FileState) -> io::Result<Option<String>> {
        let opened = disk::spot(path).and_then(|spot| disk::open_same(&spot.directory, &spot.name, file.id));
        // What cannot be compared counts as changed.
        opened.map_or(Ok(None), |open| disk::digest(open, file.size))
    }

    fn digest_of_kept(&self, file: &FileState) -> io::Result<Option<String>> {
        let Content::Kept(name) = &file.content else { return Ok(None) };
        match self.0.kept(name)? {
            Some(Kept::File(open)) => disk::digest(open, file.size),
            Some(Kept::Short(bytes)) => Ok(Some(disk::digest_of(&bytes))),
            None => Ok(Some(disk::digest_of(b""))),
        }
    }

    fn text(&self, path: &Path, file: &FileState) -> io::Result<Option<Vec<u8>>> {
        if file.size > TEXT_BYTES {
            return Ok(None);
        }
        let opened = disk::spot(path).and_then(|spot| disk::open_same(&spot.directory, &spot.name, file.id));
        opened.map_or(Ok(None), |open| read_all(open).map(Some))
    }

    fn kept(&self, file: &FileState) -> io::Result<Option<Vec<u8>>> {
        let Content::Kept(name) = &file.content else { return Ok(None) };
        if file.size > TEXT_BYTES {
            return Ok(None);
        }
        match self.0.kept(name)? {
            Some(Kept::File(open)) => read_all(open).map(Some),
            Some(Kept::Short(bytes)) => Ok(Some(bytes)),
            None => Ok(Some(Vec::new())),
        }
    }

    fn is_beginning(&self, path: &Path, file: &FileState, of: &FileState) -> io::Result<bool> {
        if file.size > of.size {
            return Ok(false);
        }
        let spot = disk::spot(path)?;
        let place = (&spot.directory, spot.name.as_c_str(), path);
        // What cannot be compared counts as changed.
        let (Ok(open), Content::Kept(name)) = (opened::file(self.0, place, file, Access::Read), &of.content)
        else {
            return Ok(false);
        };
        match self.0.kept(name)? {
            Some(Kept::File(kept)) => Ok(disk::is_unfinished_copy(&open, &kept, file.size)?),
            Some(Kept::Short(bytes)) => {
                let now = read_all(open)?;
                let same = now.iter().zip(&bytes).take_while(|(now, of)| now == of).count();
                Ok(now.iter().skip(same).all(|byte| *byte == 0))
            }
            None => Ok(true),
        }
    }

    fn keeps(&self, size: u64) -> bool {
        self.0.keeps(size)
    }

    fn changed_at(&self, path: &Path) -> io::Result<(i64, u32)> {
        Ok(disk::changed_at(path)?)
    }

    fn names(&self, path: &Path) -> io::Result<Vec<OsString>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened =
            disk::spot(path).and_then(|spot| openat(&spot.directory, &spot.name, flags, Mode::empty()));
        let directory = match opened {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Vec::new()),
            opened => opened?,
        };
        let mut names = Vec::new();
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsStr::from_bytes(name).to_owned());
            }
        }
        Ok(names)
    }

    fn with_open_way(&self, path: &Path, may: &dyn Fn(&Path, &State) -> bool, look: &mut dyn FnMut()) {
        let mut opened = Opened::new(self.0);
        opened.open_the_way(path, may);
        if !opened.is_empty() {
            look();
        }
    }
}
