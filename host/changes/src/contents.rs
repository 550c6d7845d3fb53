//! Kept contents. Each has a file; all short ones of a writer have one together, and the shortest are in their records.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, Mode, OFlags, fchmod, openat, renameat, unlinkat};

use crate::{disk, text};

const MODE: Mode = Mode::RUSR.union(Mode::WUSR);
/// Contents up to this length are short: appending them to a file costs less than a file or a link of their own.
const SHORT_BYTES: u64 = 32 << 10;
/// Contents up to this length are in the record itself, which is written anyway.
const SHORTEST_BYTES: u64 = 512;
/// What the name of such a content begins with; its text follows.
const TEXT: char = '=';

/// The kept contents of a session, as one writer uses them.
#[derive(Debug)]
pub(crate) struct Contents {
    directory: OwnedFd,
    /// Makes the names of this writer differ from those of others.
    writer: u64,
    next: AtomicU64,
    /// The file of this writer's short contents and its length, once there is one.
    short: Mutex<Option<(Arc<File>, u64)>>,
}

/// Returns the directory of a place on the mount that the store is on, if it is known.
pub type Outside<'a> = &'a dyn Fn() -> Option<Arc<OwnedFd>>;

/// A content that was kept.
#[derive(Debug)]
pub(crate) enum Kept {
    /// It has a file of its own.
    File(OwnedFd),
    Short(Vec<u8>),
}

/// Where a short content is.
#[derive(Debug, PartialEq, Eq)]
struct Part<'a> {
    file: &'a str,
    start: u64,
    length: u64,
}

impl<'a> Part<'a> {
    fn parse(name: &'a str) -> Option<Self> {
        let mut fields = name.split(':');
        let (file, start, length) =
            (fields.next()?, fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        (length <= SHORT_BYTES && fields.next().is_none()).then_some(Self { file, start, length })
    }
}

impl Contents {
    pub(crate) fn new(directory: OwnedFd) -> io::Result<Self> {
        let writer = getrandom::u64().map_err(io::Error::other)?;
        Ok(Self { directory, writer, next: AtomicU64::new(0), short: Mutex::default() })
    }

    pub(crate) fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    pub(crate) fn writer(&self) -> u64 {
        self.writer
    }

    /// Returns a name that no other content has.
    pub(crate) fn new_name(&self) -> String {
        format!("{:016x}-{}", self.writer, self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Keeps a copy of an open file; returns its name.
    pub(crate) fn keep(&self, file: &OwnedFd, size: u64) -> io::Result<String> {
        if size <= SHORTEST_BYTES {
            let mut name = String::from(TEXT);
            name.push_str(&text::encode(&disk::read_up_to(file, size)?));
            return Ok(name);
        }
        if size <= SHORT_BYTES {
            return self.keep_short(file, size);
        }
        let name = self.new_name();
        self.copy(file, &name, size)?;
        Ok(name)
    }

    /// Keeps a text; returns its name.
    pub(crate) fn keep_text(&self, content: &[u8]) -> io::Result<String> {
        if content.len() as u64 <= SHORTEST_BYTES {
            return Ok([TEXT.to_string(), text::encode(content)].concat());
        }
        let name = self.new_name();
        File::from(self.create(&name)?).write_all_at(content, 0).inspect_err(|_| self.remove(&name))?;
        Ok(name)
    }

    /// Returns true if a copy of a content costs less than a link.
    pub(crate) fn is_short(size: u64) -> bool {
        size <= SHORT_BYTES
    }

    fn keep_short(&self, file: &OwnedFd, size: u64) -> io::Result<String> {
        let bytes = disk::read_up_to(file, size)?;
        let length = bytes.len() as u64;
        let name = format!("{:016x}-short", self.writer);
        let (all, start) = {
            let mut short = self.short.lock().unwrap_or_else(PoisonError::into_inner);
            let (all, end) = match short.take() {
                Some(short) => short,
                None => (Arc::new(File::from(self.create(&name)?)), 0),
            };
            *short = Some((Arc::clone(&all), end + length));
            (all, end)
        };
        all.write_all_at(&bytes, start)?;
        Ok(format!("{name}:{start}:{length}"))
    }

    /// Opens a kept content.
    pub(crate) fn open(&self, name: &str) -> io::Result<Kept> {
        if let Some(content) = name.strip_prefix(TEXT) {
            return text::decode(content).map(Kept::Short).ok_or_else(|| io::ErrorKind::InvalidData.into());
        }
        // A name with a slash was not written here.
        if name.contains('/') {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if let Some(part) = Part::parse(name) {
            let mut bytes = vec![0; usize::try_from(part.length).map_err(io::Error::other)?];
            File::from(self.open_file(part.file)?).read_exact_at(&mut bytes, part.start)?;
            return Ok(Kept::Short(bytes));
        }
        Ok(Kept::File(self.open_file(name)?))
    }

    fn open_file(&self, name: &str) -> io::Result<OwnedFd> {
        let open =
            |flags| openat(&self.directory, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
        match open(OFlags::RDONLY) {
            // It is the removed file itself. A process that had it open has changed its mode.
            Err(rustix::io::Errno::ACCESS) => {
                disk::set_mode_of(&open(OFlags::PATH)?, 0o400)?;
                Ok(open(OFlags::RDONLY)?)
            }
            opened => Ok(opened?),
        }
    }

    fn create(&self, name: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = openat(&self.directory, name, flags, MODE)?;
        // A broker has the umask of the command that it works for.
        fchmod(&file, MODE)?;
        Ok(file)
    }

    /// Copies an open file to a new name.
    pub(crate) fn copy(&self, file: &OwnedFd, name: &str, size: u64) -> io::Result<()> {
        // On a full disk the unfinished copy must not stay.
        disk::copy(file, &self.create(name)?, size).inspect_err(|_| self.remove(name))?;
        Ok(())
    }

    /// Puts a copy of an open file in the place of the link to it.
    pub(crate) fn copy_instead(&self, file: &OwnedFd, name: &str, size: u64) -> io::Result<()> {
        let copy = self.new_name();
        self.copy(file, &copy, size)?;
        Ok(renameat(&self.directory, &*copy, &self.directory, name)?)
    }

    /// Removes a content that has a file of its own.
    pub(crate) fn remove(&self, name: &str) {
        // One that stays is removed with the store.
        let _gone = unlinkat(&self.directory, name, AtFlags::empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_parts_are_parts() {
        assert_eq!(Part::parse("0f-short:10:5"), Some(Part { file: "0f-short", start: 10, length: 5 }));
        for name in ["0f-1", "0f-short:10", "0f-short:10:-5", "0f-short:10:5:1", "0f-short:0:99999999999"] {
            assert_eq!(Part::parse(name), None, "{name}");
        }
    }
}
