//! Gives files their former content, attributes, mode and time.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, fchmod, fstat, ftruncate, openat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::attributes::{FILE_MODE, set_attributes, set_owner, set_time, write_all};
use super::restored::Restored;
use super::{Stop, Undoer};
use crate::contents::Kept;
use crate::disk::{self, Spot, set_mode};
use crate::interruption;
use crate::opened::{self, Access};
use crate::plan::{Why, World as _};
use crate::state::{Content, FileId, FileState, State};
use crate::world::Disk;

/// The permission with which its owner can open a file.
const READABLE: u32 = 0o400;

/// Whether a file got everything back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filled {
    Whole,
    WithoutAttributes,
    /// Another program has added to it meanwhile, and that stays.
    Longer,
}

/// What became of a name of a file with several names, into which edits were merged.
enum Merged {
    /// It is a name of that file again.
    Linked,
    /// It becomes a file of its own. The reason is reported if the other names keep what calls have written.
    Separate(Option<Why>),
}

impl Undoer<'_> {
    pub(super) fn restore_file(
        &mut self,
        spot: &Spot,
        path: &Path,
        (was, now): (&FileState, &State),
        text: Option<&[u8]>,
    ) -> Result<(), Stop> {
        let is_linked_since = now.id().is_some_and(|now| self.linked_since.contains_key(&now));
        if was.content == Content::Unread && text.is_none() {
            match is_linked_since {
                true => self.restore_status_of_copy(spot, path, (was, now))?,
                false => self.restore_status(spot, (was, now))?,
            }
            self.note_restored(was, path);
            return Ok(());
        }
        if text.is_none() {
            self.ensure_no_edit(now, &State::File(was.clone()))?;
        }
        // Written in place, it keeps its other names. A program that runs cannot be.
        if !is_linked_since && now.id().is_some_and(|now| self.is_version_of(now, was)) {
            let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            match openat(&spot.directory, &spot.name, flags, Mode::empty()) {
                Err(Errno::TXTBSY | Errno::ACCESS) => {}
                open => {
                    let open = open?;
                    if Some(disk::id(&open)?) != now.id() || !is_unchanged(&open, now)? {
                        return Err(Stop::Left(Why::Changed));
                    }
                    let filled = self.fill(&open, was, text)?;
                    self.note_filled(path, filled);
                    self.note_content(was, path, text);
                    return Ok(());
                }
            }
        }
        let mut why = None;
        if let Some(text) = text.filter(|_| was.links > 1) {
            match self.link_merged(spot, path, (was, now), text)? {
                Merged::Linked => return Ok(()),
                Merged::Separate(kept) => why = kept,
            }
        }
        if let (None, Some(other)) = (text, self.other_name(was, path)) {
            let twin = disk::look_at(&other)?;
            let is_same =
                twin.file().is_some_and(|twin| (twin.size, twin.modified) == (was.size, was.modified));
            // A name that was given back as a file of its own says nothing of this one.
            let restored = self.restored.get(&was.id).filter(|restored| twin.id() == Some(restored.id));
            let is_restored = restored.is_some();
            let is_of_call = self.is_of_call(&other, &twin)?;
            // It would be written by all of its names.
            let is_merged = restored.is_some_and(|restored| restored.is_merged);
            let is_free = !is_merged && self.can_be_linked(path, (&other, &twin), was)?;
            let may_be_written = is_restored || is_of_call;
            if is_free && (is_same || may_be_written && !twin.file().is_some_and(|twin| self.is_edit(twin))) {
                return self.link_again(spot, (path, &other, &twin), (was, is_same, None), now);
            }
            let is_linked_since = twin.id().is_some_and(|twin| self.linked_since.contains_key(&twin));
            why = (!is_linked_since).then_some(Why::Separate);
        }
        let name = self.temporary(spot, path)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = openat(&spot.directory, &name, flags, Mode::RUSR | Mode::WUSR)?;
        let filled = self.fill(&open, was, text).inspect_err(|_| {
            // On a full disk the unfinished copy must not stay.
            let _gone = unlinkat(&spot.directory, &name, AtFlags::empty());
        })?;
        self.put(spot, &name, now)?;
        self.note_filled(path, filled);
        self.note_other_names(path, was);
        self.report.left.extend(why.map(|why| (path.to_owned(), why, None)));
        self.note_content(was, path, text);
        Ok(())
    }

    /// Makes a path another name of its file again, with later edits merged into all of them, unless the user has changed
    /// the file by another name.
    fn link_merged(
        &mut self,
        spot: &Spot,
        path: &Path,
        (was, now): (&FileState, &State),
        text: &[u8],
    ) -> Result<Merged, Stop> {
        if let Some(other) = self.merged_name(was, path, text)? {
            let twin = disk::look_at(&other)?;
            self.link_again(spot, (path, &other, &twin), (was, true, None), now)?;
            self.report.left.retain(|(name, why, _)| *why != Why::OtherNamesKeep || *name != other);
            return Ok(Merged::Linked);
        }
        let Some(other) = self.search(was.id, path) else { return Ok(Merged::Separate(None)) };
        let twin = disk::look_at(&other)?;
        if self.can_be_linked(path, (&other, &twin), was)? && self.is_of_call(&other, &twin)? {
            self.link_again(spot, (path, &other, &twin), (was, false, Some(text)), now)?;
            self.note_content(was, path, Some(text));
            return Ok(Merged::Linked);
        }
        let key = |file: &FileState| (file.size, file.modified, file.mode);
        let is_changed = twin.file().map(key) != Some(key(was));
        Ok(Merged::Separate(is_changed.then_some(Why::OtherNamesKeep)))
    }

    /// Returns another name that a file was given back under, if the same text was merged there.
    fn merged_name(&self, was: &FileState, path: &Path, text: &[u8]) -> io::Result<Option<PathBuf>> {
        let Some(restored) = self.restored.get(&was.id).filter(|restored| restored.is_merged) else {
            return Ok(None);
        };
        for name in restored.names.iter().filter(|name| *name != path) {
            let now = disk::look_at(name)?;
            let size = u64::try_from(text.len()).unwrap_or_default();
            let is_it = |file: &FileState| file.id == restored.id && file.size == size;
            let Some(file) = now.file().filter(|file| is_it(file)) else { continue };
            if Disk(self.recorder.store()).text(name, file)?.is_some_and(|other| other == text) {
                return Ok(Some(name.clone()));
            }
        }
        Ok(None)
    }

    /// Reports that a file with several names was given back under one of them only, if no other step follows at it.
    fn note_other_names(&mut self, path: &Path, was: &FileState) {
        if self.linked_since.get(&was.id).is_some_and(|steps| *steps < was.links) {
            self.report.left.push((path.to_owned(), Why::OtherNames, None));
        }
    }

    /// Replaces a file by a copy with its former mode, time and attributes.
    fn restore_status_of_copy(
        &mut self,
        spot: &Spot,
        path: &Path,
        (was, now): (&FileState, &State),
    ) -> Result<(), Stop> {
        let is_it = |now: &&FileState| (now.id, now.size) == (was.id, was.size);
        let Some(file) = now.file().filter(is_it) else { return Err(Stop::Left(Why::Changed)) };
        let from =
            opened::file(self.recorder.store(), (&spot.directory, &spot.name, path), file, Access::Read)?;
        let name = self.temporary(spot, path)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let to = openat(&spot.directory, &name, flags, Mode::RUSR | Mode::WUSR)?;
        let fill = || {
            disk::copy(&from, &to, was.size)?;
            set_owner(&to, was.owner);
            let present = disk::attributes(&from);
            set_attributes(&to, was.attributes.as_ref().or(Some(&present)))?;
            fchmod(&to, Mode::from_raw_mode(was.mode & FILE_MODE))?;
            set_time(&to, was.modified)
        };
        fill().inspect_err(|_| {
            let _gone = unlinkat(&spot.directory, &name, AtFlags::empty());
        })?;
        self.put(spot, &name, now)?;
        self.note_other_names(path, was);
        Ok(())
    }

    /// Reports a file that was not given back exactly.
    pub(super) fn note_filled(&mut self, path: &Path, filled: Filled) {
        let why = match filled {
            Filled::Whole => return,
            Filled::WithoutAttributes => Why::Attributes,
            Filled::Longer => Why::Changed,
        };
        self.report.left.push((path.to_owned(), why, None));
    }

    /// Gives a file that is still the same, and that no call has written, its former mode, time and attributes.
    fn restore_status(&self, spot: &Spot, (was, now): (&FileState, &State)) -> Result<(), Stop> {
        let is_it = |now: &&FileState| (now.id, now.size) == (was.id, was.size);
        let Some(now) = now.file().filter(is_it) else { return Err(Stop::Left(Why::Changed)) };
        let mode = was.mode & FILE_MODE;
        if now.mode & READABLE == 0 {
            set_mode(spot, was.id, mode | READABLE)?;
        }
        let open = disk::open_same(&spot.directory, &spot.name, was.id)?;
        let restored =
            set_attributes(&open, was.attributes.as_ref()).and_then(|()| set_time(&open, was.modified));
        interruption::point();
        // An access list changes the mode as well.
        if fstat(&open)?.st_mode & 0o7777 != mode {
            fchmod(&open, Mode::from_raw_mode(mode))?;
        }
        Ok(restored?)
    }

    /// Returns true if a file is the recorded one, or the one that undo has made in its place.
    pub(super) fn is_version_of(&self, now: FileId, was: &FileState) -> bool {
        match self.restored.get(&was.id) {
            // Another name of it was given back as another file, and this one becomes a name of that.
            Some(restored) if restored.links.max(was.links) > 1 => now == restored.id,
            Some(restored) => now == restored.id || now == was.id,
            None => now == was.id,
        }
    }

    fn note_content(&mut self, was: &FileState, path: &Path, text: Option<&[u8]>) {
        self.note_restored(was, path);
        if let Some(restored) = self.restored.get_mut(&was.id) {
            restored.is_merged = text.is_some();
        }
    }

    pub(super) fn note_restored(&mut self, was: &FileState, path: &Path) {
        if let Ok(Some(id)) = disk::look_at(path).map(|now| now.id()) {
            let restored = self.restored.entry(was.id).or_insert_with(|| Restored {
                names: Vec::new(),
                id,
                links: was.links,
                is_merged: false,
            });
            if restored.id != id {
                *restored = Restored { names: Vec::new(), id, links: was.links, is_merged: false };
            }
            restored.links = restored.links.max(was.links);
            restored.names.retain(|name| name != path);
            restored.names.push(path.to_owned());
        }
    }

    /// Gives an open file its former content, owner, attributes, mode and time.
    pub(super) fn fill(&self, open: &OwnedFd, was: &FileState, text: Option<&[u8]>) -> Result<Filled, Stop> {
        let size = match (text, &was.content) {
            (Some(text), _) => rewrite(open, text)?,
            (None, Content::Kept(name)) => match self.recorder.store().kept(name)? {
                None => rewrite(open, &[])?,
                // A call that was killed before it removed the file has left it as it was.
                Some(Kept::File(kept)) if disk::id(&kept)? == disk::id(open)? => was.size,
                Some(Kept::Short(bytes)) => rewrite(open, &bytes)?,
                Some(Kept::File(kept)) => {
                    ftruncate(open, 0)?;
                    disk::copy(&kept, open, was.size)?;
                    was.size
                }
            },
            (None, Content::Lost(why)) => return Err(Stop::Left(Why::Lost(*why))),
            (None, Content::Unread) => return Err(io::Error::from(io::ErrorKind::InvalidData).into()),
        };
        // Another program has the file open, and has added to it.
        let is_longer = disk::size_of(open)? > size;
        set_owner(open, was.owner);
        interruption::point();
        // An access list can name a user that the session did not know. The content does not stay away for that.
        let attributes = set_attributes(open, was.attributes.as_ref());
        interruption::point();
        fchmod(open, Mode::from_raw_mode(was.mode & FILE_MODE))?;
        if text.is_none() && !is_longer {
            set_time(open, was.modified)?;
        }
        Ok(match attributes {
            _ if is_longer => Filled::Longer,
            Ok(()) => Filled::Whole,
            Err(_) => Filled::WithoutAttributes,
        })
    }
}

impl Undoer<'_> {
    /// Checks that the content of what is replaced or removed can be read: it was recorded just before.
    pub(super) fn ensure_readable(&self, spot: &Spot, path: &Path, now: &State) -> Result<(), Stop> {
        let Some(file) = now.file().filter(|file| !is_readable(file)) else { return Ok(()) };
        match opened::file(self.recorder.store(), (&spot.directory, &spot.name, path), file, Access::Read) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(Stop::Left(Why::Unreadable)),
            opened => {
                drop(opened?);
                Ok(())
            }
        }
    }
}

/// Returns true if an open file has the size and the time with which it was looked at.
pub(super) fn is_unchanged(open: &OwnedFd, looked_at: &State) -> io::Result<bool> {
    let now = fstat(open)?;
    let modified = (now.st_mtime, u32::try_from(now.st_mtime_nsec).unwrap_or_default());
    let is_it =
        |file: &FileState| (file.size, file.modified) == (disk::size_of(open).unwrap_or_default(), modified);
    Ok(looked_at.file().is_some_and(is_it))
}

/// Gives an open file another content. What other programs append meanwhile comes after it. Returns its size.
fn rewrite(open: &OwnedFd, content: &[u8]) -> rustix::io::Result<u64> {
    let size = content.len() as u64;
    ftruncate(open, 0)?;
    disk::extend(open, size)?;
    write_all(open, content)?;
    Ok(size)
}

/// Returns true if this user can read a file, by its mode.
fn is_readable(file: &FileState) -> bool {
    file.owner.0 == geteuid().as_raw() && file.mode & 0o400 != 0
}
