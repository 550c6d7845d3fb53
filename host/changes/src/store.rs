//! The directory of one session: the journal, and the contents that were kept.
//!
//! Brokers and the host append to the same journal. A line is one write to a file in append mode, so lines of several
//! writers do not mix.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use portcullis_sys::descriptor::ReadLease;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, linkat, mkdirat, openat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::bounds::Bounds;
use crate::contents::{Contents, Kept, Outside};
use crate::disk;
use crate::interruption;
use crate::record::{CallKey, Record, read};
use crate::spared::Spared;
use crate::state::{Content, FileState, Lost};

const JOURNAL: &str = "journal";
const CONTENT: &str = "content";
/// How many bytes have been kept, how often an undo has begun, and how many changes were refused because the disk is
/// full; locked while it changes.
const USED: &str = "used";
/// How much is kept.
const BOUNDS: &str = "bounds";
const MODE: Mode = Mode::RUSR.union(Mode::WUSR);
/// Where the number of undos is in that file.
const UNDOS_AT: u64 = 8;
/// Where the number of refused changes is.
const REFUSALS_AT: u64 = 16;
/// The bytes that a writer counts as kept in advance, so that it does not lock for each file.
const IN_ADVANCE: u64 = 1 << 20;

/// How far a journal is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    pub(crate) length: u64,
    /// How often an undo has begun: then names change that no command has changed.
    pub(crate) undos: u64,
}

/// The store of one session.
#[derive(Debug)]
pub struct Store {
    contents: Contents,
    journal: File,
    used: File,
    /// The journal's progress when it was last read; `None` if it must be read again.
    known: Mutex<Option<Progress>>,
    /// The bytes that are counted, but not kept yet.
    in_advance: Mutex<u64>,
    /// The number of the next call of the host.
    next_call: AtomicU64,
    bounds: Bounds,
}

impl Store {
    /// Makes the files of a store in a directory that exists.
    ///
    /// # Errors
    /// The system's.
    pub fn make(directory: &Path, bounds: Bounds) -> io::Result<()> {
        let directory = open_directory(directory)?;
        match mkdirat(&directory, CONTENT, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        for name in [JOURNAL, USED] {
            drop(openat(&directory, name, OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC, MODE)?);
        }
        // When the disk is full, only what has a block already can be written.
        let mut used = File::from(openat(&directory, USED, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?);
        if used.metadata()?.len() == 0 {
            used.write_all(&[0; 3 * size_of::<u64>()])?;
        }
        let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::CLOEXEC;
        let numbers = [bounds.file.to_le_bytes(), bounds.session.to_le_bytes()].concat();
        File::from(openat(&directory, BOUNDS, flags, MODE)?).write_all(&numbers)
    }

    /// Opens a store.
    ///
    /// # Errors
    /// If it is none.
    pub fn open(directory: &Path) -> io::Result<Self> {
        Self::open_in(&open_directory(directory)?)
    }

    /// Opens the store in an open directory.
    ///
    /// # Errors
    /// If it is none.
    pub fn open_in(directory: &OwnedFd) -> io::Result<Self> {
        let open = |name: &str, flags: OFlags| {
            openat(directory, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
        };
        Ok(Self {
            contents: Contents::new(open(CONTENT, OFlags::PATH | OFlags::DIRECTORY)?)?,
            journal: File::from(open(JOURNAL, OFlags::RDWR | OFlags::APPEND)?),
            used: File::from(open(USED, OFlags::RDWR)?),
            known: Mutex::default(),
            in_advance: Mutex::new(0),
            next_call: AtomicU64::new(0),
            bounds: bounds_of(&File::from(open(BOUNDS, OFlags::RDONLY)?))?,
        })
    }

    /// Returns a key that no other call has.
    pub(crate) fn own_call(&self) -> CallKey {
        CallKey { view: self.contents.writer(), number: self.next_call.fetch_add(1, Ordering::Relaxed) }
    }

    /// Appends records.
    ///
    /// # Errors
    /// If they were not all written; then the change must not be made.
    pub fn append(&self, records: &[Record]) -> io::Result<()> {
        self.append_bytes(&records.iter().map(Record::line).collect::<io::Result<Vec<_>>>()?.concat())
    }

    fn append_bytes(&self, bytes: &[u8]) -> io::Result<()> {
        interruption::point();
        let mut known = self.known();
        let before = known.take();
        (&self.journal).write_all(bytes)?;
        // If others have written meanwhile, the journal is longer than that.
        *known = before.map(|then| Progress { length: then.length + bytes.len() as u64, ..then });
        Ok(())
    }

    /// Returns the length of the journal.
    ///
    /// # Errors
    /// The system's.
    pub fn length(&self) -> io::Result<u64> {
        Ok(self.journal.metadata()?.len())
    }

    /// Reads the journal from an earlier length on; also returns how many lines are damaged.
    ///
    /// # Errors
    /// The system's.
    pub fn records_from(&self, start: u64) -> io::Result<(Vec<Record>, usize)> {
        let length = usize::try_from(self.length()?.saturating_sub(start)).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        self.journal.read_exact_at(&mut bytes, start)?;
        Ok(read(&bytes))
    }

    /// Returns how far the journal is. An undo makes it longer before it changes anything.
    pub(crate) fn progress(&self) -> io::Result<Progress> {
        let mut known = self.known();
        let length = self.length()?;
        if let Some(then) = known.filter(|then| then.length == length) {
            return Ok(then);
        }
        let now = Progress { length, undos: self.undos()? };
        *known = Some(now);
        Ok(now)
    }

    /// Returns true if a journal is as long as it may be.
    pub(crate) fn is_full(&self, progress: Progress) -> bool {
        progress.length >= self.bounds.journal()
    }

    fn known(&self) -> MutexGuard<'_, Option<Progress>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn undos(&self) -> io::Result<u64> {
        self.number(UNDOS_AT)
    }

    /// Returns how many changes were refused because the disk is full.
    pub(crate) fn refusals(&self) -> io::Result<u64> {
        self.number(REFUSALS_AT)
    }

    /// Counts a change that is refused because the disk is full.
    pub(crate) fn count_refusal(&self) -> io::Result<()> {
        self.used.lock()?;
        let counted = self
            .refusals()
            .and_then(|number| self.used.write_all_at(&(number + 1).to_le_bytes(), REFUSALS_AT));
        self.used.unlock()?;
        counted
    }

    fn number(&self, at: u64) -> io::Result<u64> {
        let mut number = [0; size_of::<u64>()];
        let read = self.used.read_at(&mut number, at)?;
        Ok(if read == number.len() { u64::from_le_bytes(number) } else { 0 })
    }

    /// Counts an undo that begins.
    pub(crate) fn count_undo(&self) -> io::Result<()> {
        self.used.lock()?;
        let counted =
            self.undos().and_then(|number| self.used.write_all_at(&(number + 1).to_le_bytes(), UNDOS_AT));
        self.used.unlock()?;
        counted?;
        // Writers look at the number when the journal has become longer, this one as well.
        *self.known() = None;
        self.append_bytes(b"\n")
    }

    /// Returns when the journal was last written: seconds and nanoseconds.
    pub(crate) fn written(&self) -> io::Result<(i64, u32)> {
        let status = fstat(&self.journal)?;
        Ok((status.st_mtime, u32::try_from(status.st_mtime_nsec).unwrap_or_default()))
    }

    /// Keeps the content of an open file.
    ///
    /// # Errors
    /// If the store cannot be written, as on a full disk; then the change must not be made.
    pub(crate) fn keep(&self, file: &OwnedFd, state: &FileState) -> io::Result<Content> {
        if !self.keeps(state.size) {
            return Ok(Content::Lost(Lost::FileTooLarge));
        }
        if state.size == 0 {
            return Ok(Content::Kept(String::new()));
        }
        if !self.reserve(state.size)? {
            return Ok(Content::Lost(Lost::SessionFull));
        }
        Ok(Content::Kept(self.contents.keep(file, state.size)?))
    }

    /// Returns true if a content of this size is not too large to be kept.
    pub(crate) fn keeps(&self, size: u64) -> bool {
        size <= self.bounds.file
    }

    /// Keeps a text that an undo is about to write.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub(crate) fn keep_text(&self, text: &[u8]) -> io::Result<Content> {
        Ok(Content::Kept(if text.is_empty() { String::new() } else { self.contents.keep_text(text)? }))
    }

    /// Keeps the content of a file that is about to lose its only name, without a copy: by a link to it. `outside` is
    /// its directory on the mount that the store is on. `None` if that is not possible, not safe, or not worth it.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub(crate) fn spare(
        &self,
        file: &OwnedFd,
        (outside, name): (Outside<'_>, &CStr),
        state: &FileState,
    ) -> io::Result<Option<(Content, Spared<'_>)>> {
        // Undoing reads it as its owner. With another name, it could be changed by that.
        let is_fit = state.links == 1
            && !Contents::is_short(state.size)
            && self.keeps(state.size)
            && state.owner.0 == geteuid().as_raw()
            && state.mode & 0o6400 == 0o400;
        if !is_fit {
            return Ok(None);
        }
        let Some(outside) = outside() else { return Ok(None) };
        let Ok(lease) = ReadLease::take(file.try_clone()?) else { return Ok(None) };
        let kept = self.contents.new_name();
        // It may be on another mount or file system, or the system may restrict links.
        if linkat(&*outside, name, self.contents.directory(), &*kept, AtFlags::empty()).is_err() {
            return Ok(None);
        }
        let spared = Spared::new(&self.contents, lease, kept.clone(), state.size);
        // A mask may hide another file than the one that has the name outside.
        if disk::look(self.contents.directory(), &CString::new(kept.as_str())?)?.id() != Some(state.id) {
            spared.forget();
            return Ok(None);
        }
        if !self.reserve(state.size)? {
            spared.forget();
            return Ok(None);
        }
        Ok(Some((Content::Kept(kept), spared)))
    }

    /// Keeps the content of a file that does not change meanwhile, whatever its size: by a link to it if that is
    /// possible.
    pub(crate) fn stage(
        &self,
        file: &OwnedFd,
        (directory, name): (BorrowedFd<'_>, &CStr),
        state: &FileState,
    ) -> io::Result<Content> {
        if state.size == 0 {
            return Ok(Content::Kept(String::new()));
        }
        let kept = self.contents.new_name();
        if linkat(directory, name, self.contents.directory(), &*kept, AtFlags::empty()).is_ok() {
            if disk::look(self.contents.directory(), &CString::new(kept.as_str())?)?.id() == Some(state.id) {
                return Ok(Content::Kept(kept));
            }
            self.contents.remove(&kept);
        }
        self.contents.copy(file, &kept, state.size)?;
        Ok(Content::Kept(kept))
    }

    /// Removes a content that [`Self::stage`] has kept.
    pub(crate) fn unstage(&self, content: &Content) {
        if let Content::Kept(name) = content
            && !name.is_empty()
        {
            self.contents.remove(name);
        }
    }

    /// Opens a kept content; `None` for an empty one.
    pub(crate) fn kept(&self, name: &str) -> io::Result<Option<Kept>> {
        if name.is_empty() { Ok(None) } else { self.contents.open(name).map(Some) }
    }

    /// Counts bytes that are kept; false if they are too many.
    fn reserve(&self, bytes: u64) -> io::Result<bool> {
        let mut left = self.in_advance.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rest) = left.checked_sub(bytes) {
            *left = rest;
            return Ok(true);
        }
        let missing = bytes - *left;
        self.used.lock()?;
        let counted = match self.count(missing.saturating_add(IN_ADVANCE)) {
            Ok(false) => self.count(missing).map(|counted| (counted, 0)),
            counted => counted.map(|counted| (counted, IN_ADVANCE)),
        };
        self.used.unlock()?;
        let (is_counted, in_advance) = counted?;
        if is_counted {
            *left = in_advance;
        }
        Ok(is_counted)
    }

    fn count(&self, bytes: u64) -> io::Result<bool> {
        let sum = self.number(0)?.saturating_add(bytes);
        if sum > self.bounds.session {
            return Ok(false);
        }
        self.used.write_all_at(&sum.to_le_bytes(), 0)?;
        Ok(true)
    }
}

/// Opens the directory of a store.
///
/// # Errors
/// The system's.
pub fn open_directory(directory: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, directory, flags, Mode::empty())?)
}

/// Returns true if a store has no records but of turns.
///
/// # Errors
/// The system's.
pub fn is_empty(directory: &Path) -> io::Result<bool> {
    for line in BufReader::new(File::open(directory.join(JOURNAL))?).split(b'\n') {
        let line = line?;
        if !line.is_empty() && !matches!(Record::parse(&line), Some(Record::Turn { .. })) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the files of a store, for giving them to another user.
#[must_use]
pub fn files(directory: &Path) -> Vec<PathBuf> {
    [JOURNAL, CONTENT, USED, BOUNDS].map(|name| directory.join(name)).into()
}

fn bounds_of(file: &File) -> io::Result<Bounds> {
    let mut numbers = [[0; size_of::<u64>()]; 2];
    for (number, at) in numbers.iter_mut().zip([0, 8]) {
        file.read_exact_at(number, at)?;
    }
    let [file, session] = numbers.map(u64::from_le_bytes);
    Ok(Bounds { file, session })
}

/// Reads a whole open file.
pub(crate) fn read_all(file: impl AsFd) -> io::Result<Vec<u8>> {
    let file = File::from(file.as_fd().try_clone_to_owned()?);
    let mut bytes = vec![0; usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}
